#include "broker/storage/head.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/sha256.h"
#include "runtime/log.h"

enum {
    MARKS = 2, /* written in turn */
    SLOTS = 2 * MARKS,
    FILE_BYTES = SLOTS * HEAD_SLOT_BYTES,
    HASHED_BYTES = HEAD_SLOT_BYTES - 32,
    FIELD_BYTES = 177,
    READS = 3
};

static const char magic[8] = "BJHEAD1"; /* with its NUL */

struct head_file {
    int fd;
    int folder; /* kept open: the path may name another folder by now */
    char name[NAME_MAX + 1];
    uint64_t counter; /* counter of the newest mark */
    /* The file has two slots: `newest` has no copy yet. */
    bool is_short;
    unsigned damaged; /* slots that were damaged when the file was opened */
    uint8_t newest[HEAD_SLOT_BYTES];
};

static void write_slot(const struct head *head, uint64_t counter, uint8_t ret_slot[HEAD_SLOT_BYTES])
{
    memset(ret_slot, 0, HEAD_SLOT_BYTES);
    struct writer out = writer_over(ret_slot, HEAD_SLOT_BYTES);
    writer_bytes(&out, magic, sizeof magic);
    writer_u64(&out, counter);
    writer_u64(&out, head->index);
    writer_bytes(&out, head->chain.bytes, sizeof head->chain.bytes);
    writer_u64(&out, head->tree_size);
    writer_u64(&out, head->acts.number);
    writer_bytes(&out, head->acts.chain.bytes, sizeof head->acts.chain.bytes);
    writer_bytes(&out, head->acts.signature.bytes, sizeof head->acts.signature.bytes);
    writer_u8(&out, head->restored);
    writer_u64(&out, head->acts_lost);
    assert(!out.failed && out.position == FIELD_BYTES);
    struct hash32 hash = sha256_of(ret_slot, HASHED_BYTES);
    memcpy(ret_slot + HASHED_BYTES, hash.bytes, sizeof hash.bytes);
}

static bool read_slot(const uint8_t slot[HEAD_SLOT_BYTES], struct head *ret_head,
                      uint64_t *ret_counter)
{
    struct hash32 hash = sha256_of(slot, HASHED_BYTES);
    if (memcmp(hash.bytes, slot + HASHED_BYTES, sizeof hash.bytes) != 0 ||
        memcmp(slot, magic, sizeof magic) != 0) {
        return false;
    }
    struct reader in = reader_over(slot + sizeof magic, FIELD_BYTES - sizeof magic);
    *ret_counter = reader_u64(&in);
    ret_head->index = reader_u64(&in);
    reader_bytes(&in, ret_head->chain.bytes, sizeof ret_head->chain.bytes);
    ret_head->tree_size = reader_u64(&in);
    ret_head->acts.number = reader_u64(&in);
    reader_bytes(&in, ret_head->acts.chain.bytes, sizeof ret_head->acts.chain.bytes);
    reader_bytes(&in, ret_head->acts.signature.bytes, sizeof ret_head->acts.signature.bytes);
    ret_head->restored = reader_u8(&in) != 0;
    ret_head->acts_lost = reader_u64(&in);
    assert(reader_finished(&in));
    return true;
}

static bool read_all(int fd, uint8_t *bytes, size_t capacity, size_t *ret_length)
{
    size_t length = 0;
    while (length < capacity) {
        ssize_t count = pread(fd, bytes + length, capacity - length, (off_t)length);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return false;
        }
        if (count == 0) {
            break;
        }
        length += (size_t)count;
    }
    *ret_length = length;
    return true;
}

static bool write_all(int fd, const uint8_t *bytes, size_t length, off_t offset)
{
    size_t written = 0;
    while (written < length) {
        ssize_t count = pwrite(fd, bytes + written, length - written, offset + (off_t)written);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        written += (size_t)count;
    }
    return true;
}

/* Returns true for a file that was made and never written. A power cut then may leave it empty, or
 * with its size and zeros. Nothing was committed yet, or else the journal beside it shows that. */
static bool is_blank(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* The marks are what all slots of a file say. */
struct marks {
    struct head newest;
    uint64_t counter;
    size_t slot; /* a slot that holds the newest mark */
    bool found;
    unsigned damaged;
};

/* A slot of zeros was never written, as long as the counter has not reached it. */
static bool was_written(const uint8_t *bytes, size_t slot, size_t length, uint64_t newest)
{
    const uint8_t *at = bytes + slot * HEAD_SLOT_BYTES;
    return !is_blank(at, HEAD_SLOT_BYTES) ||
           (newest >= MARKS && length > slot * HEAD_SLOT_BYTES && length > MARKS * HEAD_SLOT_BYTES);
}

static void look_at_slots(const uint8_t bytes[FILE_BYTES], size_t length, struct marks *marks)
{
    bool is_valid[SLOTS];
    for (size_t i = 0; i < SLOTS; i++) {
        struct head head = {.index = 0};
        uint64_t counter;
        is_valid[i] = read_slot(bytes + i * HEAD_SLOT_BYTES, &head, &counter);
        if (is_valid[i] && (!marks->found || counter > marks->counter)) {
            marks->newest = head;
            marks->counter = counter;
            marks->slot = i;
            marks->found = true;
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        marks->damaged += !is_valid[i] && was_written(bytes, i, length, marks->counter);
    }
}

/* Reads the newest valid mark; a crash may have spoilt the mark that was being written. `file` may
 * be NULL. */
static enum head_status read_newest(int fd, const char *path, struct head *ret_head,
                                    struct head_file *file, struct problem *ret_problem)
{
    uint8_t bytes[FILE_BYTES] = {0};
    struct marks marks = {.found = false};
    size_t length;
    if (!read_all(fd, bytes, sizeof bytes, &length)) {
        problem_set_unread(ret_problem, path, errno);
        return HEAD_FAILED;
    }
    if (is_blank(bytes, length)) {
        return HEAD_MISSING;
    }
    look_at_slots(bytes, length, &marks);
    if (!marks.found) {
        problem_set(ret_problem, "%s is damaged: none of its marks is whole", path);
        return HEAD_CORRUPT;
    }
    marks.newest.damaged_slots = marks.damaged;
    *ret_head = marks.newest;
    if (file != NULL) {
        file->counter = marks.counter;
        file->is_short = length <= MARKS * HEAD_SLOT_BYTES;
        file->damaged = marks.damaged;
        memcpy(file->newest, bytes + marks.slot * HEAD_SLOT_BYTES, HEAD_SLOT_BYTES);
    }
    return HEAD_OK;
}

static enum head_status open_file(const char *path, int flags, int *ret_fd,
                                  struct problem *ret_problem)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == ENOENT) {
        return HEAD_MISSING;
    }
    if (fd < 0) {
        problem_set_unread(ret_problem, path, errno);
        return HEAD_FAILED;
    }
    *ret_fd = fd;
    return HEAD_OK;
}

enum head_status head_read(const char *path, struct head *ret_head, struct problem *ret_problem)
{
    int fd;
    int reads = READS;
    enum head_status status = open_file(path, O_RDONLY, &fd, ret_problem);
    if (status != HEAD_OK) {
        return status;
    }
    do { /* a running broker may be writing a slot */
        status = read_newest(fd, path, ret_head, NULL, ret_problem);
    } while (--reads > 0 && status == HEAD_OK && ret_head->damaged_slots > 0);
    (void)close(fd); /* nothing was written */
    return status;
}

void head_warn(const char *path, const struct head *head)
{
    if (head->damaged_slots > 0) {
        log_warning("%s: %u of its copies of a mark %s damaged; the newest that is whole is of "
                    "entry %" PRIu64 ". Look at the disk, unless its power was cut",
                    path, head->damaged_slots, head->damaged_slots == 1 ? "is" : "are",
                    head->index);
    }
}

static int open_folder_of(const char *path, char ret_name[NAME_MAX + 1])
{
    char copy[PATH_MAX];
    char again[PATH_MAX];
    if (strlen(path) >= sizeof copy) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(copy, path);
    strcpy(again, path);
    (void)snprintf(ret_name, NAME_MAX + 1, "%s", basename(again)); /* the name fits */
    return open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static enum head_status own_file(const char *path, int fd, const struct head_file *found,
                                 struct head_file **ret_file, struct problem *ret_problem)
{
    struct head_file *file = malloc(sizeof *file);
    if (file == NULL) {
        (void)close(fd); /* nothing was written */
        problem_set(ret_problem, "out of memory");
        return HEAD_FAILED;
    }
    *file = *found;
    file->fd = fd;
    file->folder = open_folder_of(path, file->name);
    if (file->folder < 0) {
        problem_set(ret_problem, "the folder of %s cannot be opened: %s", path, strerror(errno));
        (void)close(fd); /* nothing was written */
        free(file);
        return HEAD_FAILED;
    }
    *ret_file = file;
    return HEAD_OK;
}

enum head_status head_open(const char *path, struct head_file **ret_file, struct head *ret_head,
                           struct problem *ret_problem)
{
    int fd;
    struct head_file found = {.counter = 0};
    *ret_file = NULL;
    enum head_status status = open_file(path, O_RDWR, &fd, ret_problem);
    if (status != HEAD_OK) {
        return status;
    }
    status = read_newest(fd, path, ret_head, &found, ret_problem);
    if (status != HEAD_OK) {
        (void)close(fd); /* nothing was written */
        return status;
    }
    return own_file(path, fd, &found, ret_file, ret_problem);
}

enum head_status head_create(const char *path, const struct head *head, struct head_file **ret_file,
                             struct problem *ret_problem)
{
    int fd;
    const struct head_file none = {.counter = 0};
    *ret_file = NULL;
    enum head_status status = open_file(path, O_RDWR | O_CREAT | O_TRUNC, &fd, ret_problem);
    if (status != HEAD_OK) {
        problem_set(ret_problem, "%s cannot be made: %s", path, strerror(errno));
        return HEAD_FAILED;
    }
    status = own_file(path, fd, &none, ret_file, ret_problem);
    if (status != HEAD_OK) {
        return status;
    }
    /* A new file survives a power cut only once its folder is synced too. */
    if (head_write(*ret_file, head) != HEAD_OK || fsync((*ret_file)->folder) != 0) {
        problem_set(ret_problem, "%s cannot be written: %s", path, strerror(errno));
        head_close(ret_file);
        return HEAD_FAILED;
    }
    return HEAD_OK;
}

static bool put_copy(const struct head_file *file, const uint8_t slot[HEAD_SLOT_BYTES],
                     uint64_t number)
{
    return write_all(file->fd, slot, HEAD_SLOT_BYTES, (off_t)(number * HEAD_SLOT_BYTES));
}

enum head_status head_write(struct head_file *file, const struct head *head)
{
    uint8_t slot[HEAD_SLOT_BYTES];
    uint64_t counter = file->counter + 1;
    write_slot(head, counter, slot);
    if ((file->is_short && !put_copy(file, file->newest, MARKS + file->counter % MARKS)) ||
        !put_copy(file, slot, counter % MARKS) || !put_copy(file, slot, MARKS + counter % MARKS) ||
        fdatasync(file->fd) != 0) {
        return HEAD_FAILED;
    }
    file->counter = counter;
    file->is_short = false;
    return HEAD_OK;
}

/* Each write fills the two slots of one mark, so two writes fill all. */
enum head_status head_mend(struct head_file *file, unsigned *ret_mended)
{
    struct head newest = {.index = 0};
    uint64_t counter = 0;
    *ret_mended = 0;
    if (file->damaged == 0) {
        return HEAD_OK;
    }
    const bool is_whole = read_slot(file->newest, &newest, &counter);
    assert(is_whole);
    for (int i = 0; i < MARKS; i++) {
        if (head_write(file, &newest) != HEAD_OK) {
            return HEAD_FAILED;
        }
    }
    *ret_mended = file->damaged;
    file->damaged = 0;
    return HEAD_OK;
}

int64_t head_written_ns(const struct head_file *file)
{
    struct stat ours;
    return fstat(file->fd, &ours) == 0
               ? (int64_t)ours.st_mtim.tv_sec * 1000000000 + ours.st_mtim.tv_nsec
               : 0;
}

enum head_place head_look(const struct head_file *file)
{
    struct stat ours;
    struct stat there;
    if (fstat(file->fd, &ours) != 0) {
        return HEAD_UNSEEN;
    }
    if (fstatat(file->folder, file->name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? HEAD_REMOVED : HEAD_UNSEEN;
    }
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino ? HEAD_STANDS : HEAD_REPLACED;
}

enum head_status head_create_again(struct head_file *file, const struct head *head)
{
    struct head_file anew = *file;
    anew.fd = openat(file->folder, file->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (anew.fd < 0) {
        return HEAD_FAILED;
    }
    if (head_write(&anew, head) != HEAD_OK || fsync(anew.folder) != 0) {
        int error = errno;
        (void)close(anew.fd); /* the caller stops */
        errno = error;
        return HEAD_FAILED;
    }
    (void)close(file->fd); /* no process can read it any more */
    *file = anew;
    return HEAD_OK;
}

void head_close(struct head_file **self)
{
    if (*self != NULL) {
        (void)close((*self)->fd); /* every write was synced */
        (void)close((*self)->folder);
        free(*self);
        *self = NULL;
    }
}
