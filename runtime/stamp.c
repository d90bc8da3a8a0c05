#include "runtime/stamp.h"

bool stamp_take(int fd, struct stamp *ret_stamp)
{
    struct stat now;
    *ret_stamp = (struct stamp){.is_known = false};
    if (fstat(fd, &now) != 0) {
        return false;
    }
    *ret_stamp = (struct stamp){.is_known = true,
                                .device = now.st_dev,
                                .number = now.st_ino,
                                .names = now.st_nlink,
                                .size = now.st_size,
                                .changed = now.st_ctim,
                                .written = now.st_mtim};
    return true;
}

static bool is_same_time(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

bool stamp_has_changed(const struct stamp *stamp, int fd)
{
    struct stamp now;
    if (!stamp_take(fd, &now)) {
        return true;
    }
    /* A changed number of names changes the ctime too. */
    const bool has_its_names = now.names == stamp->names;
    return now.device != stamp->device || now.number != stamp->number || now.size != stamp->size ||
           !is_same_time(now.written, stamp->written) ||
           (has_its_names && !is_same_time(now.changed, stamp->changed));
}
