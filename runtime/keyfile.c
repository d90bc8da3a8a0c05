#include "runtime/keyfile.h"

#include "base/text.h"
#include "runtime/files_internal.h"
#include "runtime/private_folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
};

static const char *const note_lines[] = {
    [0] = "",
    [KEYFILE_SIGNED] = "signed\n",
    [KEYFILE_FOLLOWS] = "follows\n",
    [KEYFILE_SIGNED | KEYFILE_FOLLOWS] = "follows signed\n",
};
enum { NOTE_LINES = sizeof note_lines / sizeof note_lines[0] };

/* Returns the open folder of a key file, and the file's name in it, or -1 with the problem. */
static int open_key_folder(const char *path, const char **ret_name, struct problem *ret_problem)
{
    char folder[PATH_MAX];
    if (!file_split_path(path, folder, ret_name, ret_problem) ||
        !private_folder(folder, false, ret_problem)) {
        return -1;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        (void)file_unseen(ret_problem, folder, "cannot be opened");
        return -1;
    }
    struct stat status; /* checked again, on the opened folder */
    if (fstat(fd, &status) != 0
            ? !file_unseen(ret_problem, folder, "cannot be looked at")
            : !private_folder_status_fits(folder, &status, geteuid(), ret_problem)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool keyfile_is_private(const char *path, const struct stat *status,
                               struct problem *ret_problem)
{
    if (!S_ISREG(status->st_mode)) {
        problem_set(ret_problem, "%s is not a file", path);
        return false;
    }
    if (status->st_uid != geteuid()) {
        return file_not_ours(path, status->st_uid, geteuid(), ret_problem);
    }
    if ((status->st_mode & 07777) != 0600 && (status->st_mode & 07777) != 0400) {
        problem_set(ret_problem,
                    "%s has mode %04o, and others might read the key; run: chmod 600 '%s'", path,
                    status->st_mode & 07777U, path);
        return false;
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
    ssize_t length = file_read_full(fd, text, KEYFILE_TEXT_SIZE);
    if (length < 0) {
        (void)file_unread(ret_problem, path);
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
        (void)file_unseen(ret_problem, path, "cannot be opened");
        return -1;
    }
    bool good = fstat(fd, ret_status) == 0 ? keyfile_is_private(path, ret_status, ret_problem)
                                           : file_unseen(ret_problem, path, "cannot be looked at");
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

/* ---------------------------------------------------------------- credentials */

/* Returns false when there is no folder of credentials, or its path does not fit. */
static bool credential_path(const char *name, char ret_path[PATH_MAX])
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    int written = folder == NULL || folder[0] != '/'
                      ? -1
                      : snprintf(ret_path, PATH_MAX, "%s/%s", folder, name);
    return written > 0 && written < PATH_MAX;
}

bool keyfile_has_credential(const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    return credential_path(name, path) && (lstat(path, &status) == 0 || errno != ENOENT);
}

/* systemd gives the file to the service's user. Where it uses an access list instead, the file
 * stays root's, and the list shows as the rights of the group. */
static bool credential_is_private(const char *path, const struct stat *status,
                                  struct problem *ret_problem)
{
    const mode_t allowed = status->st_uid == 0 && status->st_gid == 0 ? 0640 : 0600;
    if (!S_ISREG(status->st_mode)) {
        problem_set(ret_problem, "%s is not a file", path);
        return false;
    }
    if (status->st_uid != geteuid() && status->st_uid != 0) {
        return file_not_ours(path, status->st_uid, geteuid(), ret_problem);
    }
    if ((status->st_mode & 07777 & ~allowed) != 0) {
        problem_set(ret_problem, "%s has mode %04o, and others might read the key", path,
                    status->st_mode & 07777U);
        return false;
    }
    return true;
}

bool keyfile_load_credential(const char *name, struct identity **ret_identity, unsigned *ret_notes,
                             struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct stat status;
    unsigned notes = 0;
    if (!credential_path(name, path)) {
        problem_set(ret_problem, "no credential %s: $CREDENTIALS_DIRECTORY names no folder", name);
        return false;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        (void)file_unseen(ret_problem, path, "cannot be opened");
        return false;
    }
    bool good = fstat(fd, &status) != 0
                    ? file_unseen(ret_problem, path, "cannot be looked at")
                    : credential_is_private(path, &status, ret_problem) &&
                          parse_keyfile(fd, path, ret_identity, &notes, ret_problem);
    (void)close(fd); /* only read */
    if (good && ret_notes != NULL) {
        *ret_notes = notes;
    }
    return good;
}

/* ---------------------------------------------------------------- writing */

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
    bool good = fchmod(fd, mode) == 0 && file_write_full(fd, text, strlen(text)) && fsync(fd) == 0;
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
        (void)file_fail(ret_problem, path,
                        errno == EEXIST ? "a key is there already" : "cannot be written");
    }
    (void)unlinkat(folder, beside, 0); /* at worst a spare copy stays, as private as the key */
    if (good && fsync(folder) != 0) {
        return file_fail(ret_problem, path, "its folder cannot be made durable");
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
    ssize_t length = file_read_full(fd, text, KEYFILE_BYTES);
    bool good = length == KEYFILE_BYTES || file_unread(ret_problem, path);
    (void)close(fd); /* only read */
    if (good) {
        strcpy(text + KEYFILE_BYTES, note_lines[notes]);
        good = write_beside(folder, beside, text, status.st_mode & 07777) &&
               renameat(folder, beside, folder, name) == 0 && fsync(folder) == 0;
        if (!good) {
            (void)file_fail(ret_problem, path, "cannot be written");
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
