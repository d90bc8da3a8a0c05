#include "ledger/store/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 16 << 10 };

static bool write_again(int fd, const uint8_t *bytes, size_t length, off_t offset)
{
    while (length > 0) {
        ssize_t count = pwrite(fd, bytes, length, offset);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        bytes += count;
        length -= (size_t)count;
        offset += count;
    }
    return true;
}

enum renewed { RENEWED, UNREAD, UNWRITTEN };

static enum renewed renew(int fd)
{
    uint8_t block[BLOCK_BYTES];
    off_t offset = 0;
    for (;;) {
        ssize_t count = pread(fd, block, sizeof block, offset);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return UNREAD;
        }
        if (count == 0) {
            return fsync(fd) == 0 ? RENEWED : UNWRITTEN;
        }
        if (!write_again(fd, block, (size_t)count, offset)) {
            return UNWRITTEN;
        }
        offset += count;
    }
}

bool wal_renew(const char *path, struct problem *ret_problem)
{
    char log[PATH_MAX];
    int length = snprintf(log, sizeof log, "%s-wal", path);
    if (length < 0 || (size_t)length >= sizeof log) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        return true;
    }
    const enum renewed renewed = fd < 0 ? UNREAD : renew(fd);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd); /* synced, or failed already */
    }
    switch (renewed) {
    case RENEWED:
        return true;
    case UNREAD:
        problem_set_unread(ret_problem, log, error);
        break;
    case UNWRITTEN: /* the bytes are the same, so nothing was changed */
        problem_set(ret_problem, "%.300s cannot be written again: %s%s", log, strerror(error),
                    problem_advice(error));
        break;
    }
    errno = error;
    return false;
}

bool wal_sync_name(const char *path)
{
    char copy[PATH_MAX];
    int length = snprintf(copy, sizeof copy, "%s", path);
    if (length < 0 || (size_t)length >= sizeof copy) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool synced = fsync(fd) == 0;
    int error = errno;
    (void)close(fd); /* only read */
    errno = error;
    return synced;
}

static int on_commit(void *self, sqlite3 *database, const char *name, int pages)
{
    struct wal *wal = self;
    (void)database;
    (void)name;
    wal->pages = pages;
    wal->is_synced = !wal->is_lazy;
    return SQLITE_OK;
}

void wal_init(struct wal *self, sqlite3 *database)
{
    *self = (struct wal){
        .database = database, .checkpoint_pages = WAL_CHECKPOINT_PAGES, .is_synced = true};
    (void)sqlite3_wal_hook(database, on_commit, self); /* replaces SQLite's own hook */
}

int wal_set_lazy(struct wal *self, bool is_lazy)
{
    if (self->is_lazy == is_lazy) {
        return SQLITE_OK;
    }
    const int code = sqlite3_exec(
        self->database, is_lazy ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", NULL,
        NULL, NULL);
    self->is_lazy = code == SQLITE_OK ? is_lazy : self->is_lazy;
    return code;
}

/* The descriptor is SQLite's own, so no failure of an earlier write-back is missed. */
int wal_sync(struct wal *self)
{
    sqlite3_file *log = NULL;
    if (self->is_synced) {
        return SQLITE_OK;
    }
    int code = sqlite3_file_control(self->database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (code == SQLITE_OK) {
        code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
    }
    self->is_synced = code == SQLITE_OK;
    return code;
}

int wal_checkpoint_when_due(struct wal *self)
{
    if (self->pages < self->checkpoint_pages) {
        return SQLITE_OK;
    }
    int pages = 0;
    int copied = 0;
    int code =
        sqlite3_wal_checkpoint_v2(self->database, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    /* SQLite fsyncs the database once it has the whole log. */
    self->is_synced = self->is_synced || (code == SQLITE_OK && pages == copied);
    if (code == SQLITE_IOERR_SHMSIZE) {
        return SQLITE_OK; /* also a full disk, as below */
    }
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
        return SQLITE_OK; /* all data is still in the log; the next commit tries again */
    default:
        return code;
    }
}
