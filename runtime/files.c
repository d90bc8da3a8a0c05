#include "runtime/files.h"

#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEED_BYTES = 32,
    KEYFILE_BYTES = 2 * SEED_BYTES + 1,
    KEYFILE_NOTES_BYTES = 16, /* longest second line, with its newline and a NUL */
    KEYFILE_TEXT_SIZE = KEYFILE_BYTES + KEYFILE_NOTES_BYTES,
    READ_BLOCK_BYTES = 64 << 10
};

static const char *const note_lines[] = {
    [0] = "",
    [KEYFILE_SIGNED] = "signed\n",
    [KEYFILE_FOLLOWS] = "follows\n",
    [KEYFILE_SIGNED | KEYFILE_FOLLOWS] = "follows signed\n",
};
enum { NOTE_LINES = sizeof note_lines / sizeof note_lines[0] };

static bool fail(struct problem *ret_problem, const char *path, const char *doing)
{
    problem_set(ret_problem, "%s: %s: %s", path, doing, strerror(errno));
    return false;
}

/* Reports a failed read, with errno. */
static bool unread(struct problem *ret_problem, const char *path)
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
static bool not_ours(const char *path, uid_t owner, uid_t us, struct problem *ret_problem)
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

/* ---- private folders ---- */

/* Returns true for folders that all programs need: closing one would break the machine. */
static bool is_shared(const char *path)
{
    static const char *const folders[] = {
        "/",      "/bin", "/boot", "/dev",     "/etc",     "/home",   "/lib", "/lib64",
        "/media", "/mnt", "/opt",  "/proc",    "/run",     "/sbin",   "/srv", "/sys",
        "/tmp",   "/usr", "/var",  "/var/lib", "/var/log", "/var/tmp"};
    static const char *const trees[] = {"/bin/",  "/boot/", "/dev/", "/lib/", "/lib64/",
                                        "/proc/", "/sbin/", "/sys/", "/usr/"};
    char real[PATH_MAX];
    const char *place = realpath(path, real) != NULL ? real : path;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (strcmp(place, folders[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        if (strncmp(place, trees[i], strlen(trees[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool folder_is_private(const char *path, const struct stat *status, uid_t us,
                              struct problem *ret_problem)
{
    if (S_ISLNK(status->st_mode)) {
        problem_set(ret_problem, "%s is a symbolic link; name the folder itself", path);
        return false;
    }
    if (!S_ISDIR(status->st_mode)) {
        problem_set(ret_problem, "%s is not a folder", path);
        return false;
    }
    if (status->st_uid != us) {
        return not_ours(path, status->st_uid, us, ret_problem);
    }
    bool is_open = (status->st_mode & 0067) != 0; /* a group may pass through, and no more */
    if (is_open && is_shared(path)) {
        problem_set(
            ret_problem,
            "%s is the system's, open to other users, and must stay so; use a folder of its own",
            path);
        return false;
    }
    if (is_open) {
        problem_set(ret_problem,
                    "%s has mode %04o, open to other users; use a folder that is not, or, if "
                    "nothing else needs it, run: chmod 700 '%s'",
                    path, status->st_mode & 07777U, path);
        return false;
    }
    return true;
}

static bool sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = fsync(fd) == 0;
    (void)close(fd);
    return good;
}

/* Syncs the folder that contains the folder `path`. */
static bool sync_parent(const char *path)
{
    char copy[PATH_MAX];
    int length = snprintf(copy, sizeof copy, "%s", path);
    return length > 0 && (size_t)length < sizeof copy && sync_folder(dirname(copy));
}

/* Makes one folder and makes its name durable, because synced files inside would vanish with it. */
static bool make_folder(const char *path, struct problem *ret_problem)
{
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST || fail(ret_problem, path, "cannot be made");
    }
    return sync_parent(path) || fail(ret_problem, path, "cannot be made durable");
}

/* Makes the missing folders above `path`. */
static bool make_parents(const char *path, struct problem *ret_problem)
{
    char parent[PATH_MAX];
    if ((size_t)snprintf(parent, sizeof parent, "%s", path) >= sizeof parent) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        return false;
    }
    for (char *at = parent + 1; *at != '\0'; at++) {
        if (*at != '/' || at[1] == '\0') {
            continue;
        }
        *at = '\0';
        if (!make_folder(parent, ret_problem)) {
            return false;
        }
        *at = '/';
    }
    return true;
}

bool private_folder_fits(const char *path, uid_t owner, struct problem *ret_problem)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        return fail(ret_problem, path, "cannot be used");
    }
    return folder_is_private(path, &status, owner, ret_problem);
}

bool private_folder(const char *path, bool create, struct problem *ret_problem)
{
    struct stat status;
    if (path[0] == '\0') {
        problem_set(ret_problem, "the name of the folder is empty");
        return false;
    }
    if (lstat(path, &status) != 0) {
        if (errno != ENOENT || !create) {
            return fail(ret_problem, path, "cannot be used");
        }
        if (!make_parents(path, ret_problem) || !make_folder(path, ret_problem)) {
            return false;
        }
        if (lstat(path, &status) != 0) {
            return fail(ret_problem, path, "cannot be used");
        }
    }
    if (!folder_is_private(path, &status, geteuid(), ret_problem)) {
        return false;
    }
    /* The process that made the folder, or names in it, may have been killed before they were
     * durable. We did not make a parent that we may not read. */
    if (create && (!sync_folder(path) || (!sync_parent(path) && errno != EACCES))) {
        return fail(ret_problem, path, "cannot be made durable");
    }
    return true;
}

/* Splits a path; the folder of "a" is ".". */
static bool split_path(const char *path, char ret_folder[PATH_MAX], const char **ret_name,
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

/* Returns the open folder of a key file, and the file's name in it, or -1 with the problem. */
static int open_key_folder(const char *path, const char **ret_name, struct problem *ret_problem)
{
    char folder[PATH_MAX];
    if (!split_path(path, folder, ret_name, ret_problem) ||
        !private_folder(folder, false, ret_problem)) {
        return -1;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        (void)fail(ret_problem, folder, "cannot be opened");
        return -1;
    }
    struct stat status; /* checked again, on the opened folder */
    if (fstat(fd, &status) != 0 || !folder_is_private(folder, &status, geteuid(), ret_problem)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* ---- key files ---- */

static bool keyfile_is_private(const char *path, const struct stat *status,
                               struct problem *ret_problem)
{
    if (!S_ISREG(status->st_mode)) {
        problem_set(ret_problem, "%s is not a file", path);
        return false;
    }
    if (status->st_uid != geteuid()) {
        return not_ours(path, status->st_uid, geteuid(), ret_problem);
    }
    if ((status->st_mode & 07777) != 0600 && (status->st_mode & 07777) != 0400) {
        problem_set(ret_problem,
                    "%s has mode %04o, and others might read the key; run: chmod 600 '%s'", path,
                    status->st_mode & 07777U, path);
        return false;
    }
    return true;
}

/* Reads everything up to `capacity`; returns -1 on failure. */
static ssize_t read_full(int fd, void *ret_bytes, size_t capacity)
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

static bool write_full(int fd, const void *bytes, size_t length)
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

static bool identity_from_seed(const uint8_t seed[SEED_BYTES], struct identity **ret_identity,
                               struct problem *ret_problem)
{
    struct identity *identity = identity_create(seed);
    if (identity == NULL) {
        problem_set(ret_problem, "out of memory for a key");
        return false;
    }
    *ret_identity = identity;
    return true;
}

static bool find_notes(const char *line, unsigned *ret_notes)
{
    for (unsigned notes = 0; notes < NOTE_LINES; notes++) {
        if (strcmp(line, note_lines[notes]) == 0) {
            *ret_notes = notes;
            return true;
        }
    }
    return false;
}

static bool parse_keyfile(int fd, const char *path, struct identity **ret_identity,
                          unsigned *ret_notes, struct problem *ret_problem)
{
    char text[KEYFILE_TEXT_SIZE + 1] = {0}; /* one byte more, to detect a longer file, and a NUL */
    uint8_t seed[SEED_BYTES];
    ssize_t length = read_full(fd, text, KEYFILE_TEXT_SIZE);
    if (length < 0) {
        (void)unread(ret_problem, path);
        sodium_memzero(text, sizeof text);
        return false;
    }
    bool good = length >= KEYFILE_BYTES && text[KEYFILE_BYTES - 1] == '\n' &&
                strlen(text) == (size_t)length && find_notes(text + KEYFILE_BYTES, ret_notes);
    text[KEYFILE_BYTES - 1] = '\0';
    good = good && text_unhex(text, seed, sizeof seed);
    if (good) {
        good = identity_from_seed(seed, ret_identity, ret_problem);
    } else {
        problem_set(ret_problem,
                    "%s is not a key file (64 hex digits and a newline); restore it from a backup",
                    path);
    }
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
    return good;
}

/* Opens the named key file in `folder` for reading; returns -1 with the problem. */
static int open_keyfile(int folder, const char *name, const char *path, struct stat *ret_status,
                        struct problem *ret_problem)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ELOOP) {
        problem_set(ret_problem, "%s is a symbolic link; put the key file itself there", path);
        return -1;
    }
    if (fd < 0) {
        (void)fail(ret_problem, path, "cannot be opened");
        return -1;
    }
    bool good = fstat(fd, ret_status) == 0 ? keyfile_is_private(path, ret_status, ret_problem)
                                           : fail(ret_problem, path, "cannot be looked at");
    if (!good) {
        (void)close(fd); /* nothing was read */
        return -1;
    }
    return fd;
}

bool keyfile_load_noted(const char *path, struct identity **ret_identity, unsigned *ret_notes,
                        struct problem *ret_problem)
{
    const char *name;
    struct stat status;
    int folder = open_key_folder(path, &name, ret_problem);
    if (folder < 0) {
        return false;
    }
    int fd = open_keyfile(folder, name, path, &status, ret_problem);
    (void)close(folder); /* only read */
    bool good = fd >= 0 && parse_keyfile(fd, path, ret_identity, ret_notes, ret_problem);
    if (fd >= 0) {
        (void)close(fd); /* only read */
    }
    return good;
}

bool keyfile_load(const char *path, struct identity **ret_identity, struct problem *ret_problem)
{
    unsigned notes = 0;
    return keyfile_load_noted(path, ret_identity, &notes, ret_problem);
}

/* Writes a new, durable file beside the key file; the caller still renames it. */
static bool write_beside(int folder, char ret_name[NAME_MAX + 1], const char *text, mode_t mode)
{
    uint64_t dice;
    randombytes_buf(&dice, sizeof dice);
    (void)snprintf(ret_name, NAME_MAX + 1, ".new-key-%016llx", (unsigned long long)dice);
    int fd = openat(folder, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    bool good = fchmod(fd, mode) == 0 && write_full(fd, text, strlen(text)) && fsync(fd) == 0;
    int error = errno;
    bool closed = close(fd) == 0;
    errno = good ? errno : error;
    return good && closed;
}

/* Writes beside and links into place, so that the key is complete or absent, and never replaces an
 * existing one. */
static bool store_keyfile(int folder, const char *path, const char *name, const char *text,
                          struct problem *ret_problem)
{
    char beside[NAME_MAX + 1];
    bool good =
        write_beside(folder, beside, text, 0600) && linkat(folder, beside, folder, name, 0) == 0;
    if (!good) {
        (void)fail(ret_problem, path,
                   errno == EEXIST ? "a key is there already" : "cannot be written");
    }
    (void)unlinkat(folder, beside, 0); /* at worst a spare copy stays, as private as the key */
    if (good && fsync(folder) != 0) {
        return fail(ret_problem, path, "its folder cannot be made durable");
    }
    return good;
}

/* Rewrites a key file that was just read whole: the seed's line, followed by other notes. */
static bool write_notes(int folder, const char *path, const char *name, unsigned notes,
                        struct problem *ret_problem)
{
    char text[KEYFILE_TEXT_SIZE + 1] = {0};
    char beside[NAME_MAX + 1];
    struct stat status;
    int fd = open_keyfile(folder, name, path, &status, ret_problem);
    if (fd < 0) {
        return false;
    }
    ssize_t length = read_full(fd, text, KEYFILE_BYTES);
    bool good = length == KEYFILE_BYTES || unread(ret_problem, path);
    (void)close(fd); /* only read */
    if (good) {
        strcpy(text + KEYFILE_BYTES, note_lines[notes]);
        good = write_beside(folder, beside, text, status.st_mode & 07777) &&
               renameat(folder, beside, folder, name) == 0 && fsync(folder) == 0;
        if (!good) {
            (void)fail(ret_problem, path, "cannot be written");
            (void)unlinkat(folder, beside, 0); /* at worst a spare copy stays, as private */
        }
    }
    sodium_memzero(text, sizeof text);
    return good;
}

bool keyfile_note(const char *path, unsigned notes, struct problem *ret_problem)
{
    assert(notes < NOTE_LINES);
    const char *name;
    int folder = open_key_folder(path, &name, ret_problem);
    bool good = folder >= 0 && write_notes(folder, path, name, notes, ret_problem);
    if (folder >= 0) {
        (void)close(folder); /* synced, or failed already */
    }
    return good;
}

bool keyfile_create(const char *path, struct identity **ret_identity, struct problem *ret_problem)
{
    const char *name;
    int folder = open_key_folder(path, &name, ret_problem);
    if (folder < 0) {
        return false;
    }
    uint8_t seed[SEED_BYTES];
    char text[KEYFILE_BYTES + 1];
    randombytes_buf(seed, sizeof seed);
    text_hex(seed, sizeof seed, text);
    text[KEYFILE_BYTES - 1] = '\n'; /* over the NUL */
    text[KEYFILE_BYTES] = '\0';

    struct identity *identity = NULL;
    bool good = identity_from_seed(seed, &identity, ret_problem) &&
                store_keyfile(folder, path, name, text, ret_problem);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
    (void)close(folder);
    if (!good) {
        identity_destroy(&identity);
        return false;
    }
    *ret_identity = identity;
    return true;
}

/* ---- files read and written whole ---- */

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
        ssize_t got = read_full(fd, bytes + length, capacity - length);
        if (got < 0) {
            (void)unread(ret_problem, path);
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
        return not_ours(path, status->st_uid, geteuid(), ret_problem);
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
        return fail(ret_problem, path, "cannot be opened");
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

bool file_write(const char *path, const void *bytes, size_t length, unsigned mode,
                struct problem *ret_problem)
{
    char folder[PATH_MAX];
    char beside[PATH_MAX];
    const char *name;
    if (!split_path(path, folder, &name, ret_problem)) {
        return false;
    }
    if ((size_t)snprintf(beside, sizeof beside, "%s/.new-XXXXXX", folder) >= sizeof beside) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        return false;
    }
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0) {
        return fail(ret_problem, path, "cannot be made");
    }
    bool good = fchmod(fd, mode) == 0 && write_full(fd, bytes, length) && fsync(fd) == 0;
    good = close(fd) == 0 && good;
    good = good && rename(beside, path) == 0;
    if (!good) {
        (void)fail(ret_problem, path, "cannot be written");
        (void)unlink(beside);
        return false;
    }
    return sync_folder(folder) || fail(ret_problem, folder, "cannot be made durable");
}

bool folder_sync(const char *path, struct problem *ret_problem)
{
    return sync_folder(path) || fail(ret_problem, path, "cannot be made durable");
}

/* Copies all bytes of `from` to `to`. Returns false with errno; *ret_unread: `from` failed. */
static bool pump(int from, int to, bool *ret_unread)
{
    uint8_t bytes[1 << 16];
    ssize_t count;
    while ((count = read_full(from, bytes, sizeof bytes)) > 0) {
        if (!write_full(to, bytes, (size_t)count)) {
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
        return unread(ret_problem, from);
    }
    int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (target < 0) {
        (void)fail(ret_problem, to, "cannot be made");
        (void)close(source); /* only read */
        return false;
    }
    bool good = pump(source, target, &is_unread) && fsync(target) == 0;
    if (is_unread) {
        (void)unread(ret_problem, from);
    } else if (!good) {
        (void)fail(ret_problem, to, "cannot be written");
    }
    if (close(target) != 0 && good) {
        good = fail(ret_problem, to, "cannot be written");
    }
    (void)close(source); /* only read */
    if (!good) {
        (void)unlink(to);
    }
    return good;
}
