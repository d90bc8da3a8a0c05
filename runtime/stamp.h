/* runtime/stamp.h takes the attributes of a file that change with its bytes. A file that was hashed
 * once need not be hashed again while they stay the same. */
#ifndef BOURSE_RUNTIME_STAMP_H
#define BOURSE_RUNTIME_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A stamp identifies a file by its device and number. Its times are those of the file system: two
 * changes within one tick look alike, and root can set them. A stamp therefore detects accidents. A
 * stamp does not protect against users who could change our program as well. */
struct stamp {
    bool is_known; /* all zero: unknown */
    dev_t device;
    ino_t number;
    nlink_t names;
    off_t size;
    struct timespec changed, written; /* ctime, mtime */
};

/* Takes a stamp. Returns false when the file cannot be examined. */
bool stamp_take(int fd, struct stamp *ret_stamp);
/* Returns true when the file's bytes may differ from those at the time of `stamp`, which is known.
 * A file that only lost or gained a name is unchanged. */
bool stamp_has_changed(const struct stamp *stamp, int fd);

#endif
