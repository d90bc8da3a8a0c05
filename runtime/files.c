#include "runtime/files.h"

#include "runtime/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BLOCK_BYTES = 64 << 10 };

bool file_fail(struct problem *ret_problem, const char *path, const char *doing)
{
    problem_set(ret_problem, "%s: %s: %s", path, doing, strerror(errno));
    return false;
}

bool file_unseen(struct problem *ret_problem, const char *path, const char *doing)
{
    char words[80];
    (void)snprintf(words, sizeof words, ": %s", doing); /* our own words fit */
    problem_set_unseen(ret_problem, path, words, errno);
    return false;
}

/* Reports a failed read, with errno. */
bool file_unread(struct problem *ret_problem, const char *path)
{
    problem_set_unread(ret_problem, path, errno);
    return false;
}

static void name_user(uid_t user, char *ret_name, size_t size)
{
    const struct passwd *entry = getpwuid(user);
    if (entry != NULL) {
        (void)snprintf(ret_name, size, "%s", entry->pw_name);
    } else {
        (void)snprintf(ret_name, size, "%lu", (unsigned long)user);
    }
}

/* The message never suggests chown: the owner, such as a running agent, would lose the file. */
bool file_not_ours(const char *path, uid_t owner, uid_t us, struct problem *ret_problem)
{
    char their[64];
    char our[64];
    name_user(owner, their, sizeof their);
    name_user(us, our, sizeof our);
    if (us != geteuid()) {
        problem_set(ret_problem, "%s belongs to user %s, not to %s", path, their, our);
    } else if (us == 0) {
        problem_set(ret_problem,
                    "%s belongs to user %s, not to us (%s); as that user: runuser -u %s -- ...",
                    path, their, our, their);
    } else {
        problem_set(ret_problem,
                    "%s belongs to user %s, not to us (%s); run this as that user, or use one of "
                    "our own",
                    path, their, our);
    }
    return false;
}

bool file_sync_names(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = fsync(fd) == 0;
    (void)close(fd);
    return good;
}

/* Splits a path; the folder of "a" is ".". */
bool file_split_path(const char *path, char ret_folder[PATH_MAX], const char **ret_name,
                     struct problem *ret_problem)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t folder_length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (*name == '\0' || folder_length >= PATH_MAX || strlen(name) > NAME_MAX) {
        problem_set(ret_problem, "%.100s: not the name of a file", path);
        return false;
    }
    memcpy(ret_folder, slash == NULL ? "." : path, slash == NULL ? 1 : folder_length);
    ret_folder[slash == NULL ? 1 : folder_length] = '\0';
    *ret_name = name;
    return true;
}

/* Reads everything up to `capacity`; returns -1 on failure. */
ssize_t file_read_full(int fd, void *ret_bytes, size_t capacity)
{
    size_t done = 0;
    while (done < capacity) {
        ssize_t got = read(fd, (uint8_t *)ret_bytes + done, capacity - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

bool file_write_full(int fd, const void *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t put = write(fd, (const uint8_t *)bytes + done, length - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

/* Reads to the end of the file; the size from stat is only a hint. */
static bool read_all(int fd, const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                     struct problem *ret_problem)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    size_t capacity = 0;
    for (;;) {
        if (length == capacity) {
            capacity = capacity == 0 ? READ_BLOCK_BYTES : 2 * capacity;
            uint8_t *grown = realloc(bytes, capacity + 1);
            if (grown == NULL) {
                free(bytes);
                problem_set(ret_problem, "%s: out of memory", path);
                return false;
            }
            bytes = grown;
        }
        ssize_t got = file_read_full(fd, bytes + length, capacity - length);
        if (got < 0) {
            (void)file_unread(ret_problem, path);
            free(bytes);
            return false;
        }
        length += (size_t)got;
        if (length > cap) {
            problem_set(ret_problem, "%s has more than %zu bytes, the most that is read here", path,
                        cap);
            free(bytes);
            return false;
        }
        if (length < capacity) {
            break;
        }
    }
    bytes[length] = '\0';
    *ret_bytes = bytes;
    *ret_length = length;
    return true;
}

/* Checks the rule of key files for a file that is not secret: everybody may read it. */
static bool file_is_trusted(const char *path, const struct stat *status,
                            struct problem *ret_problem)
{
    if (!S_ISREG(status->st_mode)) {
        problem_set(ret_problem, "%s is not a file", path);
        return false;
    }
    if (status->st_uid != 0 && status->st_uid != geteuid()) {
        return file_not_ours(path, status->st_uid, geteuid(), ret_problem);
    }
    if ((status->st_mode & 0022) != 0) {
        problem_set(ret_problem,
                    "%s has mode %04o, and others might have changed it; look at what it says, "
                    "then run: chmod go-w '%s'",
                    path, status->st_mode & 07777U, path);
        return false;
    }
    return true;
}

static bool read_looked_at(const char *path, size_t cap, bool must_trust, uint8_t **ret_bytes,
                           size_t *ret_length, struct file_hands *ret_hands,
                           struct problem *ret_problem)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (must_trust ? O_NONBLOCK : 0));
    if (fd < 0 || fstat(fd, &status) != 0) {
        if (fd >= 0) {
            (void)close(fd); /* read only */
        }
        return file_unseen(ret_problem, path, "cannot be opened");
    }
    bool good = (!must_trust || file_is_trusted(path, &status, ret_problem)) &&
                read_all(fd, path, cap, ret_bytes, ret_length, ret_problem);
    (void)close(fd); /* read only */
    if (good) {
        *ret_hands =
            (struct file_hands){.owner = status.st_uid, .is_open = (status.st_mode & 0022) != 0};
    }
    return good;
}

bool file_read_owned(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                     struct file_hands *ret_hands, struct problem *ret_problem)
{
    return read_looked_at(path, cap, false, ret_bytes, ret_length, ret_hands, ret_problem);
}

bool file_read_trusted(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                       struct problem *ret_problem)
{
    struct file_hands hands;
    return read_looked_at(path, cap, true, ret_bytes, ret_length, &hands, ret_problem);
}

bool file_read(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
               struct problem *ret_problem)
{
    struct file_hands hands;
    return read_looked_at(path, cap, false, ret_bytes, ret_length, &hands, ret_problem);
}

bool file_read_at(int fd, void *ret_bytes, size_t length, uint64_t offset)
{
    uint8_t *to = ret_bytes;
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(fd, to + done, length - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            errno = got == 0 ? ENODATA : errno;
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool file_write_at(int fd, const void *bytes, size_t length, uint64_t offset)
{
    const uint8_t *from = bytes;
    for (size_t done = 0; done < length;) {
        const size_t step = length - done < FILE_STEP_BYTES ? length - done : FILE_STEP_BYTES;
        ssize_t put = pwrite(fd, from + done, step, (off_t)(offset + done));
        if (put == 0 || (put < 0 && errno != EINTR)) {
            errno = put == 0 ? EIO : errno;
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* Writes beside and renames over `path`. With `durable` the file's bytes reach the disk first. */
static bool replace(const char *path, const char *folder, const void *bytes, size_t length,
                    unsigned mode, bool durable, struct problem *ret_problem)
{
    char beside[PATH_MAX];
    if ((size_t)snprintf(beside, sizeof beside, "%s/.new-XXXXXX", folder) >= sizeof beside) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        return false;
    }
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0) {
        return file_fail(ret_problem, path, "cannot be made");
    }
    bool good =
        fchmod(fd, mode) == 0 && file_write_full(fd, bytes, length) && (!durable || fsync(fd) == 0);
    good = close(fd) == 0 && good;
    good = good && rename(beside, path) == 0;
    if (!good) {
        (void)file_fail(ret_problem, path, "cannot be written");
        (void)unlink(beside);
    }
    return good;
}

bool file_write(const char *path, const void *bytes, size_t length, unsigned mode,
                struct problem *ret_problem)
{
    char folder[PATH_MAX];
    const char *name;
    return file_split_path(path, folder, &name, ret_problem) &&
           replace(path, folder, bytes, length, mode, true, ret_problem) &&
           (file_sync_names(folder) || file_fail(ret_problem, folder, "cannot be made durable"));
}

bool file_write_of_many(const char *path, const void *bytes, size_t length, unsigned mode,
                        struct problem *ret_problem)
{
    char folder[PATH_MAX];
    const char *name;
    return file_split_path(path, folder, &name, ret_problem) &&
           replace(path, folder, bytes, length, mode, false, ret_problem);
}

bool file_sync_many(const char *folder, struct problem *ret_problem)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && syncfs(fd) == 0;
    if (!good) {
        (void)file_fail(ret_problem, folder, "cannot be made durable");
    }
    if (fd >= 0) {
        (void)close(fd); /* only read */
    }
    return good;
}

bool file_sync_folder(const char *path, struct problem *ret_problem)
{
    return file_sync_names(path) || file_fail(ret_problem, path, "cannot be made durable");
}

/* Copies all bytes of `from` to `to`. Returns false with errno; *ret_unread: `from` failed. */
static bool pump(int from, int to, bool *ret_unread)
{
    uint8_t bytes[1 << 16];
    ssize_t count;
    while ((count = file_read_full(from, bytes, sizeof bytes)) > 0) {
        if (!file_write_full(to, bytes, (size_t)count)) {
            return false;
        }
    }
    *ret_unread = count < 0;
    return count == 0;
}

bool file_copy(const char *from, const char *to, struct problem *ret_problem)
{
    bool is_unread = false;
    int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (source < 0) {
        return file_unread(ret_problem, from);
    }
    int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (target < 0) {
        (void)file_fail(ret_problem, to, "cannot be made");
        (void)close(source); /* only read */
        return false;
    }
    bool good = pump(source, target, &is_unread) && fsync(target) == 0;
    if (is_unread) {
        (void)file_unread(ret_problem, from);
    } else if (!good) {
        (void)file_fail(ret_problem, to, "cannot be written");
    }
    if (close(target) != 0 && good) {
        good = file_fail(ret_problem, to, "cannot be written");
    }
    (void)close(source); /* only read */
    if (!good) {
        (void)unlink(to);
    }
    return good;
}
