#include "ledger/store/sqlite_code.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* ---------------------------------------------------------------- quotas, and reads that fail */

static_assert(sizeof(off_t) == 8, "SQLite hands 64 bits to pwrite64");

static ssize_t as_full(ssize_t count)
{
    if (count < 0 && errno == EDQUOT) {
        errno = ENOSPC;
    }
    return count;
}

static ssize_t write_next(int fd, const void *bytes, size_t length)
{
    return as_full(write(fd, bytes, length));
}

static ssize_t write_at(int fd, const void *bytes, size_t length, off_t offset)
{
    return as_full(pwrite(fd, bytes, length, offset));
}

/* The first file that the disk failed. It is written once, before `reads_failed` becomes true. */
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

/* SQLite takes EIO, ENXIO and ERANGE from a read for a damaged file system, and reports damaged
 * data. */
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

/* After a failure SQLite opens the file for reading only, and fails at the first write. */
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

static void replace_calls(void)
{
    static const struct {
        const char *name; /* SQLite's name; each build uses one of each kind */
        sqlite3_syscall_ptr call;
    } calls[] = {
        {"write", (sqlite3_syscall_ptr)write_next},  {"pwrite", (sqlite3_syscall_ptr)write_at},
        {"pwrite64", (sqlite3_syscall_ptr)write_at}, {"read", (sqlite3_syscall_ptr)read_next},
        {"pread", (sqlite3_syscall_ptr)read_at},     {"pread64", (sqlite3_syscall_ptr)read_at},
        {"open", (sqlite3_syscall_ptr)open_file},    {"fstat", (sqlite3_syscall_ptr)look_open},
        {"stat", (sqlite3_syscall_ptr)look_at},      {"lstat", (sqlite3_syscall_ptr)look_at_link}};
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    for (size_t i = 0; vfs != NULL && i < sizeof calls / sizeof calls[0]; i++) {
        if (vfs->xGetSystemCall(vfs, calls[i].name) != NULL) {
            (void)vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call); /* the call exists */
        }
    }
}

void sqlite_know_errors(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, replace_calls); /* cannot fail */
}

bool sqlite_reads_failed(void)
{
    return atomic_load(&reads_failed);
}

void sqlite_explain_unread(struct problem *ret_problem)
{
    problem_set(ret_problem, "%.300s cannot be %s. " PROBLEM_TRY_AGAIN, unread.path,
                unread.was_open ? "read: the disk did not give every page"
                                : "opened: the disk did not give it");
}

/* ---------------------------------------------------------------- codes */

static bool is_of_the_machine(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
    case SQLITE_ERROR: /* a missing table or column */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return false;
    default:
        return true;
    }
}

bool sqlite_could_not(sqlite3 *database)
{
    return database == NULL || is_of_the_machine(sqlite3_errcode(database));
}

bool sqlite_can_write(sqlite3 *database, struct problem *ret_problem)
{
    const char *path = sqlite3_db_filename(database, "main");
    /* The transaction writes nothing. It begins only when the WAL is open for writing. */
    const bool can_write =
        sqlite3_db_readonly(database, "main") == 0 &&
        (sqlite3_exec(database, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) == SQLITE_OK ||
         (sqlite3_errcode(database) & 0xff) != SQLITE_READONLY);
    if (can_write) {
        return true;
    }
    if (sqlite_reads_failed()) {
        sqlite_explain_unread(ret_problem);
    } else if (access(path, W_OK) != 0) {
        problem_set_unseen(ret_problem, path, " cannot be opened for writing", errno);
    } else {
        problem_set(ret_problem, "%.300s or its WAL could not be opened for writing. Try again",
                    path);
    }
    return false;
}

static int keep_first(void *context, int columns, char **values, char **names)
{
    char *line = context;
    (void)names;
    if (columns > 0 && values[0] != NULL && line[0] == '\0') {
        (void)snprintf(line, PAGES_TEXT, "%s", values[0]); /* cut, never overrun */
    }
    return 0;
}

/* Returns true for a line such as "... Page 144: unable to get the page. error code=8458". */
static bool says_unread(const char *line)
{
    static const char words[] = "error code=";
    const char *code = strstr(line, words);
    return code != NULL && is_of_the_machine(atoi(code + sizeof words - 1));
}

enum pages_status sqlite_check_pages(sqlite3 *database, const char *table, char ret_why[PAGES_TEXT])
{
    char sql[128] = "PRAGMA quick_check(1)";
    if (table != NULL) {
        /* The names are our own. */
        (void)snprintf(sql, sizeof sql, "PRAGMA quick_check('%.60s')", table);
    }
    ret_why[0] = '\0';
    if (sqlite3_exec(database, sql, keep_first, ret_why, NULL) != SQLITE_OK) {
        (void)snprintf(ret_why, PAGES_TEXT, "%s", sqlite3_errmsg(database));
        return sqlite_could_not(database) ? PAGES_UNREAD : PAGES_DAMAGED;
    }
    if (strcmp(ret_why, "ok") == 0) {
        return PAGES_WHOLE;
    }
    return says_unread(ret_why) ? PAGES_UNREAD : PAGES_DAMAGED;
}
