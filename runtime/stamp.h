/* runtime/stamp.h - what of a file changes when its bytes do: whoever hashed it once need not do so
 * again while that is the same. */
#ifndef BOURSE_RUNTIME_STAMP_H
#define BOURSE_RUNTIME_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Of a file of another's, by its device and number. Times are those of its file system: two changes
 * within one tick of it look alike, and root can set them; so it tells of accidents, and not of
 * those who may change ourselves as well. */
struct stamp {
    bool is_known; /* all zero: it is not */
    dev_t device;
    ino_t number;
    nlink_t names;
    off_t size;
    struct timespec changed, written; /* ctime, mtime */
};

/* False: it cannot be looked at. */
bool stamp_take(int fd, struct stamp *ret_stamp);
/* Whether its bytes may be others than when `stamp`, which is known, was taken. One that only lost
 * or got a name since is the same. */
bool stamp_has_changed(const struct stamp *stamp, int fd);

#endif
