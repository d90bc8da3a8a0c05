#include "tests/crash/disk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHANGES_MAX = 1 << 17, NAMES_MAX = 1024, FILES_MAX = 4096 };
#define BYTES_MAX ((size_t)1 << 30)

/* A name as it stands now, to know what a path or a descriptor means. */
struct name {
    uint32_t folder, node;
    bool is_folder;
    char text[DISK_NAME_SIZE]; /* "" : free */
};

struct record {
    char root[PATH_MAX]; /* "": nothing is watched */
    uint32_t node_count;
    size_t change_count, byte_count;
    unsigned calls; /* that fail */
    uint64_t left;  /* until one does */
    int error;
    bool lasts, has_failed;
    struct name names[NAMES_MAX];
    struct disk_change changes[CHANGES_MAX];
    uint8_t bytes[BYTES_MAX];
};

static struct record *record;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Descriptors are of one process, so the table is not shared. */
static struct {
    bool is_watched, is_folder, appends;
    uint32_t node;
} files[FILES_MAX];

/* ---- the record */

static struct disk_change *add(enum disk_change_kind kind, uint32_t node)
{
    assert(record->change_count < CHANGES_MAX);
    struct disk_change *change = &record->changes[record->change_count++];
    memset(change, 0, sizeof *change);
    change->kind = kind;
    change->node = node;
    return change;
}

static void add_write(uint32_t node, const void *bytes, size_t length, uint64_t offset)
{
    assert(length <= BYTES_MAX - record->byte_count);
    struct disk_change *change = add(DISK_WRITE, node);
    change->offset = offset;
    change->length = length;
    change->data = record->byte_count;
    memcpy(record->bytes + record->byte_count, bytes, length);
    record->byte_count += length;
}

static struct name *find_name(uint32_t folder, const char *text)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (record->names[i].text[0] != '\0' && record->names[i].folder == folder &&
            strcmp(record->names[i].text, text) == 0) {
            return &record->names[i];
        }
    }
    return NULL;
}

static void set_name(uint32_t folder, const char *text, uint32_t node, bool is_folder)
{
    struct name *name = find_name(folder, text);
    for (size_t i = 0; i < NAMES_MAX && name == NULL; i++) {
        name = record->names[i].text[0] == '\0' ? &record->names[i] : NULL;
    }
    assert(name != NULL && strlen(text) < sizeof name->text);
    *name = (struct name){.folder = folder, .node = node, .is_folder = is_folder};
    strcpy(name->text, text);
}

static struct disk_change *add_named(enum disk_change_kind kind, uint32_t node, uint32_t folder,
                                     const char *text)
{
    struct disk_change *change = add(kind, node);
    assert(strlen(text) < sizeof change->name);
    change->folder = folder;
    strcpy(change->name, text);
    return change;
}

static uint32_t make_node(enum disk_change_kind kind, uint32_t folder, const char *text)
{
    uint32_t node = ++record->node_count;
    add_named(kind, node, folder, text);
    set_name(folder, text, node, kind == DISK_MAKE_FOLDER);
    return node;
}

/* ---- what a path means */

struct place {
    bool is_root;
    uint32_t folder;
    char text[DISK_NAME_SIZE];
};

static bool is_watched_descriptor(int fd)
{
    return record != NULL && fd >= 0 && fd < FILES_MAX && files[fd].is_watched;
}

/* False: not below the root. */
static bool find_place(int at, const char *path, struct place *ret_place)
{
    if (record == NULL || record->root[0] == '\0') {
        return false;
    }
    uint32_t folder = DISK_ROOT;
    if (path[0] != '/') {
        if (!is_watched_descriptor(at) || !files[at].is_folder) {
            return false;
        }
        folder = files[at].node;
    } else {
        size_t length = strlen(record->root);
        if (strncmp(path, record->root, length) != 0 ||
            (path[length] != '/' && path[length] != '\0')) {
            return false;
        }
        path += length;
    }
    *ret_place = (struct place){.is_root = true};
    for (;;) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0) {
            return true;
        }
        if (!ret_place->is_root) {
            const struct name *name = find_name(folder, ret_place->text);
            if (name == NULL) {
                return false; /* no such folder: the real call says so */
            }
            folder = name->node;
        }
        assert(length < sizeof ret_place->text);
        *ret_place = (struct place){.folder = folder};
        memcpy(ret_place->text, path, length);
        path += length;
    }
}

/* ---- faults */

/* Returns true, with errno set, when this call shall fail. */
static bool fails(enum disk_call call)
{
    if ((record->calls & (unsigned)call) == 0 || (record->left == 0 && !record->lasts)) {
        return false;
    }
    if (record->left > 1) {
        record->left--;
        return false;
    }
    record->left = record->lasts ? 1 : 0;
    record->has_failed = true;
    errno = record->error;
    return true;
}

static bool path_fails(enum disk_call call, int at, const char *path)
{
    struct place place;
    pthread_mutex_lock(&mutex);
    bool failed = find_place(at, path, &place) && fails(call);
    pthread_mutex_unlock(&mutex);
    return failed;
}

static bool file_fails(enum disk_call call, int fd)
{
    pthread_mutex_lock(&mutex);
    bool failed = is_watched_descriptor(fd) && fails(call);
    pthread_mutex_unlock(&mutex);
    return failed;
}

/* ---- opening */

static void note_open(int fd, int at, const char *path, int flags)
{
    struct place place;
    if (!find_place(at, path, &place)) {
        return;
    }
    assert(fd < FILES_MAX);
    struct stat status;
    bool is_folder = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
    uint32_t node = DISK_ROOT;
    if (!place.is_root) {
        const struct name *name = find_name(place.folder, place.text);
        assert(name != NULL || (flags & O_CREAT) != 0);
        node = name == NULL ? make_node(DISK_MAKE, place.folder, place.text) : name->node;
        if (name != NULL && (flags & O_TRUNC) != 0) {
            add(DISK_RESIZE, node);
        }
    }
    files[fd].is_watched = true;
    files[fd].is_folder = is_folder;
    files[fd].appends = (flags & O_APPEND) != 0;
    files[fd].node = node;
}

static int open_at(int at, const char *path, int flags, unsigned mode)
{
    if (path_fails(DISK_CALL_OPEN, at, path)) {
        return -1;
    }
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && (flags & O_TMPFILE) != O_TMPFILE) { /* a file without a name leaves nothing */
        pthread_mutex_lock(&mutex);
        note_open(fd, at, path, flags);
        pthread_mutex_unlock(&mutex);
    }
    return fd;
}

#define MODE_OF(flags)                                                                             \
    unsigned mode = 0;                                                                             \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                                  \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode = va_arg(arguments, unsigned);                                                        \
        va_end(arguments);                                                                         \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(at, path, flags, mode);
}

/* libc's own would open past us. */
int mkostemp(char *path, int flags)
{
    static unsigned serial;
    char *letters = path + strlen(path) - 6;
    assert(strcmp(letters, "XXXXXX") == 0);
    for (;;) {
        (void)snprintf(letters, 7, "%06x", ++serial & 0xffffff); /* fits */
        int fd = open_at(AT_FDCWD, path, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
}

/* A copy of a descriptor is watched too. */
int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    unsigned long argument = va_arg(arguments, unsigned long);
    va_end(arguments);
    int result = (int)syscall(SYS_fcntl, fd, command, argument);
    if (result >= 0 && (command == F_DUPFD_CLOEXEC || command == F_DUPFD) &&
        is_watched_descriptor(fd)) {
        assert(result < FILES_MAX);
        files[result] = files[fd];
    }
    return result;
}

int close(int fd)
{
    if (is_watched_descriptor(fd)) {
        files[fd].is_watched = false;
    }
    return (int)syscall(SYS_close, fd);
}

/* ---- bytes */

static ssize_t write_at(int fd, const void *bytes, size_t length, off_t offset)
{
    if (file_fails(DISK_CALL_WRITE, fd)) {
        return -1;
    }
    ssize_t count = syscall(SYS_pwrite64, fd, bytes, length, offset);
    if (count > 0 && is_watched_descriptor(fd)) {
        pthread_mutex_lock(&mutex);
        add_write(files[fd].node, bytes, (size_t)count, (uint64_t)offset);
        pthread_mutex_unlock(&mutex);
    }
    return count;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    return write_at(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset)
{
    return write_at(fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    if (!is_watched_descriptor(fd)) {
        return syscall(SYS_write, fd, bytes, length);
    }
    if (file_fails(DISK_CALL_WRITE, fd)) {
        return -1;
    }
    off_t offset = lseek(fd, 0, files[fd].appends ? SEEK_END : SEEK_CUR);
    ssize_t count = syscall(SYS_write, fd, bytes, length);
    if (count > 0) {
        pthread_mutex_lock(&mutex);
        add_write(files[fd].node, bytes, (size_t)count, (uint64_t)offset);
        pthread_mutex_unlock(&mutex);
    }
    return count;
}

static int resize(int fd, off_t size)
{
    if (file_fails(DISK_CALL_WRITE, fd)) {
        return -1;
    }
    int code = (int)syscall(SYS_ftruncate, fd, size);
    if (code == 0 && is_watched_descriptor(fd)) {
        pthread_mutex_lock(&mutex);
        add(DISK_RESIZE, files[fd].node)->offset = (uint64_t)size;
        pthread_mutex_unlock(&mutex);
    }
    return code;
}

int ftruncate(int fd, off_t size)
{
    return resize(fd, size);
}

int ftruncate64(int fd, off_t size)
{
    return resize(fd, size);
}

ssize_t read(int fd, void *bytes, size_t length)
{
    return file_fails(DISK_CALL_READ, fd) ? -1 : syscall(SYS_read, fd, bytes, length);
}

ssize_t pread(int fd, void *bytes, size_t length, off_t offset)
{
    return file_fails(DISK_CALL_READ, fd) ? -1 : syscall(SYS_pread64, fd, bytes, length, offset);
}

ssize_t pread64(int fd, void *bytes, size_t length, off_t offset)
{
    return pread(fd, bytes, length, offset);
}

/* Every fsync of a watched file is believed rather than made: the record is the disk, and a real
 * one would only cost time. */
static int sync_file(int fd, long number)
{
    if (!is_watched_descriptor(fd)) {
        return (int)syscall(number, fd);
    }
    pthread_mutex_lock(&mutex);
    bool failed = fails(DISK_CALL_SYNC);
    add(failed ? DISK_SYNC_FAILED : DISK_SYNC, files[fd].node);
    pthread_mutex_unlock(&mutex);
    return failed ? -1 : 0;
}

int fsync(int fd)
{
    return sync_file(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_file(fd, SYS_fdatasync);
}

/* Everything that is watched. */
int syncfs(int fd)
{
    if (!is_watched_descriptor(fd)) {
        return (int)syscall(SYS_syncfs, fd);
    }
    pthread_mutex_lock(&mutex);
    bool failed = fails(DISK_CALL_SYNC);
    for (uint32_t node = 1; node <= record->node_count; node++) {
        add(failed ? DISK_SYNC_FAILED : DISK_SYNC, node);
    }
    pthread_mutex_unlock(&mutex);
    return failed ? -1 : 0;
}

/* ---- names */

int mkdirat(int at, const char *path, mode_t mode)
{
    struct place place;
    if (path_fails(DISK_CALL_NAME, at, path)) {
        return -1;
    }
    int code = (int)syscall(SYS_mkdirat, at, path, mode);
    pthread_mutex_lock(&mutex);
    if (code == 0 && find_place(at, path, &place)) {
        make_node(DISK_MAKE_FOLDER, place.folder, place.text);
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

static void note_rename(const struct place *from, const struct place *to)
{
    struct name *name = find_name(from->folder, from->text);
    assert(name != NULL && strlen(to->text) < DISK_NAME_SIZE);
    struct disk_change *change = add_named(DISK_RENAME, name->node, from->folder, from->text);
    change->to_folder = to->folder;
    strcpy(change->to_name, to->text);
    uint32_t node = name->node;
    name->text[0] = '\0';
    set_name(to->folder, to->text, node, false);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    struct place from_place;
    struct place to_place;
    if (path_fails(DISK_CALL_NAME, from_at, from)) {
        return -1;
    }
    int code = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&mutex);
    if (code == 0 && find_place(from_at, from, &from_place)) {
        bool is_inside = find_place(to_at, to, &to_place);
        assert(is_inside);
        note_rename(&from_place, &to_place);
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return renameat2(from_at, from, to_at, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    struct place from_place;
    struct place to_place;
    if (path_fails(DISK_CALL_NAME, to_at, to)) {
        return -1;
    }
    int code = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&mutex);
    if (code == 0 && find_place(from_at, from, &from_place) && find_place(to_at, to, &to_place)) {
        const struct name *name = find_name(from_place.folder, from_place.text);
        assert(name != NULL);
        uint32_t node = name->node;
        add_named(DISK_LINK, node, to_place.folder, to_place.text);
        set_name(to_place.folder, to_place.text, node, false);
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

int unlinkat(int at, const char *path, int flags)
{
    struct place place;
    if (path_fails(DISK_CALL_NAME, at, path)) {
        return -1;
    }
    int code = (int)syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&mutex);
    if (code == 0 && find_place(at, path, &place)) {
        struct name *name = find_name(place.folder, place.text);
        assert(name != NULL);
        add_named(DISK_UNLINK, name->node, place.folder, place.text);
        name->text[0] = '\0';
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

/* ---- watching */

void disk_watch(const char *root)
{
    assert(record == NULL && strlen(root) < PATH_MAX);
    record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (record == MAP_FAILED) {
        perror("the record of the disk");
        abort();
    }
    strcpy(record->root, root);
}

static void adopt_file(const char *path, uint32_t node)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    assert(fd >= 0);
    static uint8_t block[1 << 16];
    uint64_t offset = 0;
    ssize_t got;
    while ((got = syscall(SYS_read, fd, block, sizeof block)) > 0) {
        add_write(node, block, (size_t)got, offset);
        offset += (uint64_t)got;
    }
    (void)syscall(SYS_close, fd);
    add(DISK_SYNC, node);
}

static void adopt_folder(const char *path, uint32_t folder)
{
    DIR *directory = opendir(path);
    assert(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char below[PATH_MAX];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        assert(length > 0 && (size_t)length < sizeof below && lstat(below, &status) == 0);
        if (S_ISDIR(status.st_mode)) {
            adopt_folder(below, make_node(DISK_MAKE_FOLDER, folder, entry->d_name));
        } else {
            adopt_file(below, make_node(DISK_MAKE, folder, entry->d_name));
        }
    }
    (void)closedir(directory);
    add(DISK_SYNC, folder);
}

void disk_restart(const char *root)
{
    assert(record != NULL && strlen(root) < PATH_MAX);
    record->node_count = 0;
    record->change_count = 0;
    record->byte_count = 0;
    record->calls = 0;
    memset(record->names, 0, sizeof record->names);
    memset(files, 0, sizeof files);
    adopt_folder(root, DISK_ROOT);
    strcpy(record->root, root);
}

size_t disk_change_count(void)
{
    return record->change_count;
}

const struct disk_change *disk_change_at(size_t index)
{
    assert(index < record->change_count);
    return &record->changes[index];
}

const uint8_t *disk_bytes(size_t data)
{
    return record->bytes + data;
}

uint32_t disk_node_count(void)
{
    return record->node_count + 1;
}

const char *disk_name(uint32_t node)
{
    const char *found = node == DISK_ROOT ? "the root" : "?";
    for (size_t i = 0; i < record->change_count; i++) {
        const struct disk_change *change = &record->changes[i];
        if (change->node != node) {
            continue;
        }
        if (change->kind == DISK_MAKE || change->kind == DISK_MAKE_FOLDER) {
            found = change->name;
        } else if (change->kind == DISK_RENAME) {
            found = change->to_name;
        }
    }
    return found;
}

bool disk_is_folder(uint32_t node)
{
    for (size_t i = 0; i < record->change_count; i++) {
        if (record->changes[i].kind == DISK_MAKE_FOLDER && record->changes[i].node == node) {
            return true;
        }
    }
    return node == DISK_ROOT;
}

void disk_fail(unsigned calls, uint64_t nth, int error, bool lasts)
{
    record->calls = nth == 0 ? 0 : calls;
    record->left = nth;
    record->error = error;
    record->lasts = lasts;
    record->has_failed = false;
}

bool disk_has_failed(void)
{
    return record->has_failed;
}

void disk_note_fault(void)
{
    record->has_failed = true;
}
