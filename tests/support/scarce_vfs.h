/* tests/support/scarce_vfs.h - SQLite's own VFS, where a disk without room can be had at will.
 *
 * One process, one thread; every database opened after scarce_register and until scarce_unregister. */
#ifndef BOURSE_TESTS_SCARCE_VFS_H
#define BOURSE_TESTS_SCARCE_VFS_H

/* SQLite's codes for what is to fail from now on; 0: nothing does. */
struct scarce {
    int database_write; /* a page into the database itself: with a WAL, only a checkpoint does that */
    int index_grow;     /* another region of the WAL's index */
};
extern struct scarce scarce;

void scarce_register(void);
void scarce_unregister(void);

#endif
