/* The audit tells a failed read from damaged data here; SQLite by itself reports both alike. */
#include "audit/audit_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool reads_failed;

/* SQLite takes EIO, ENXIO and ERANGE for damage. Any other error is an I/O error to it. */
static ssize_t as_failed(ssize_t count)
{
    if (count < 0 && errno != EINTR) {
        atomic_store(&reads_failed, true);
        errno = EREMOTEIO;
    }
    return count;
}

static ssize_t read_next(int fd, void *bytes, size_t length)
{
    return as_failed(read(fd, bytes, length));
}

static ssize_t read_at(int fd, void *bytes, size_t length, off_t offset)
{
    return as_failed(pread(fd, bytes, length, offset));
}

static void replace_reads(void)
{
    static const struct {
        const char *name; /* SQLite's name; each build uses one of them */
        sqlite3_syscall_ptr call;
    } reads[] = {{"read", (sqlite3_syscall_ptr)read_next},
                 {"pread", (sqlite3_syscall_ptr)read_at},
                 {"pread64", (sqlite3_syscall_ptr)read_at}};
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    for (size_t i = 0; vfs != NULL && i < sizeof reads / sizeof reads[0]; i++) {
        if (vfs->xGetSystemCall(vfs, reads[i].name) != NULL) {
            (void)vfs->xSetSystemCall(vfs, reads[i].name, reads[i].call); /* the call exists */
        }
    }
}

void audit_watch_reads(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, replace_reads); /* cannot fail */
    atomic_store(&reads_failed, false);
}

bool audit_reads_failed(void)
{
    return atomic_load(&reads_failed);
}
