/* tests/support/scarce_vfs.h is SQLite's own VFS with a disk that can run out of room at will.
 *
 * One process and one thread use this VFS. It serves every database opened after scarce_register
 * and until scarce_unregister. */
#ifndef BOURSE_TESTS_SCARCE_VFS_H
#define BOURSE_TESTS_SCARCE_VFS_H

/* SQLite's codes for what fails from now on; 0: nothing fails. */
struct scarce {
    /* Writing a page into the database itself; with a WAL, only a checkpoint does that. */
    int database_write;
    int index_grow; /* another region of the WAL's index */
};
extern struct scarce scarce;

void scarce_register(void);
void scarce_unregister(void);

#endif
