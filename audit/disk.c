/* The audit tells a failed read from damaged data here; SQLite by itself reports both alike.
 * ledger/store/sqlite_code.c does the same for the broker. The audit has this code of its own,
 * because whoever checks the ledger uses nothing of it. */
#include "audit/audit_internal.h"

#include "base/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first file that the disk failed. It is written before `reads_failed` becomes true. */
static struct {
    char path[PATH_MAX];
    bool was_open;
} unread;
static atomic_bool is_named;
static atomic_bool reads_failed;

static void note_unread(const char *path, bool was_open)
{
    if (!atomic_exchange(&is_named, true)) {
        (void)snprintf(unread.path, sizeof unread.path, "%s", path); /* cut, never overrun */
        unread.was_open = was_open;
        atomic_store(&reads_failed, true);
    }
}

static void note_unread_at(int fd)
{
    char link[64];
    char path[PATH_MAX];
    const int error = errno;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* fits */
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    note_unread(length < 0 ? "a database" : path, true);
    errno = error;
}

/* SQLite takes EIO, ENXIO and ERANGE for damage. Any other error is an I/O error to it. */
static ssize_t as_failed(int fd, ssize_t count)
{
    if (count < 0 && errno != EINTR) {
        note_unread_at(fd);
        errno = EREMOTEIO;
    }
    return count;
}

static ssize_t read_next(int fd, void *bytes, size_t length)
{
    return as_failed(fd, read(fd, bytes, length));
}

static ssize_t read_at(int fd, void *bytes, size_t length, off_t offset)
{
    return as_failed(fd, pread(fd, bytes, length, offset));
}

static int open_file(const char *path, int flags, int mode)
{
    const int fd = open(path, flags, mode);
    if (fd < 0 && problem_is_of_disk(errno)) {
        note_unread(path, false);
    }
    return fd;
}

static int look_open(int fd, struct stat *ret_status)
{
    const int result = fstat(fd, ret_status);
    if (result != 0 && problem_is_of_disk(errno)) {
        note_unread_at(fd);
    }
    return result;
}

static int look_at(const char *path, struct stat *ret_status)
{
    const int result = stat(path, ret_status);
    if (result != 0 && problem_is_of_disk(errno)) {
        note_unread(path, false);
    }
    return result;
}

static int look_at_link(const char *path, struct stat *ret_status)
{
    const int result = lstat(path, ret_status);
    if (result != 0 && problem_is_of_disk(errno)) {
        note_unread(path, false);
    }
    return result;
}

static void replace_reads(void)
{
    static const struct {
        const char *name; /* SQLite's name; each build uses one of them */
        sqlite3_syscall_ptr call;
    } reads[] = {
        {"read", (sqlite3_syscall_ptr)read_next},    {"pread", (sqlite3_syscall_ptr)read_at},
        {"pread64", (sqlite3_syscall_ptr)read_at},   {"open", (sqlite3_syscall_ptr)open_file},
        {"fstat", (sqlite3_syscall_ptr)look_open},   {"stat", (sqlite3_syscall_ptr)look_at},
        {"lstat", (sqlite3_syscall_ptr)look_at_link}};
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
    atomic_store(&is_named, false);
}

bool audit_reads_failed(void)
{
    return atomic_load(&reads_failed);
}

void audit_explain_unread(char *ret_text, size_t capacity)
{
    (void)snprintf(ret_text, capacity, "%.300s cannot be %s. " PROBLEM_TRY_AGAIN, unread.path,
                   unread.was_open ? "read: the disk did not give every page"
                                   : "opened: the disk did not give it"); /* cut, never overrun */
}
