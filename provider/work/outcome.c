#include "provider/work/outcome.h"

#include "base/sha256.h"
#include "base/text.h"
#include "provider/work/free_space.h"
#include "provider/work/own_folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 17 };

struct left_outputs {
    /* Users are the lane, and each output that was left in the jail and is still kept. */
    atomic_uint users;
    pthread_mutex_t mutex;
    struct list_link outputs; /* outputs in the jail, oldest first */
};

struct left_outputs *outcome_left_create(void)
{
    struct left_outputs *left = calloc(1, sizeof *left);
    if (left != NULL) {
        atomic_init(&left->users, 1);
        pthread_mutex_init(&left->mutex, NULL);
        list_init(&left->outputs);
    }
    return left;
}

void outcome_left_release(struct left_outputs **self)
{
    if (*self != NULL && atomic_fetch_sub(&(*self)->users, 1) == 1) {
        pthread_mutex_destroy(&(*self)->mutex);
        free(*self);
    }
    *self = NULL;
}

bool outcome_left_is_empty(struct left_outputs *left)
{
    pthread_mutex_lock(&left->mutex);
    bool is_empty = list_empty(&left->outputs);
    pthread_mutex_unlock(&left->mutex);
    return is_empty;
}

static void kept_clear(struct kept *kept)
{
    struct left_outputs *left = kept->left_in;
    if (left != NULL) { /* the descriptor must not be reused during a move */
        pthread_mutex_lock(&left->mutex);
        list_remove(&kept->link);
    }
    if (kept->name != NULL && kept->fd >= 0) {
        close(kept->fd);
    }
    if (left != NULL) {
        pthread_mutex_unlock(&left->mutex);
        outcome_left_release(&left);
    }
    free(kept->name);
    free(kept->bytes);
    *kept = (struct kept){.fd = -1};
}

struct outcome *outcome_create(const struct agent_work *work, const struct id128 *job)
{
    struct outcome *outcome = calloc(1, sizeof *outcome);
    if (outcome != NULL) {
        list_init(&outcome->link);
        outcome->work = *work;
        outcome->job = *job;
    }
    return outcome;
}

static void drop_kept(struct outcome *outcome)
{
    kept_clear(&outcome->standard_output);
    kept_clear(&outcome->standard_error);
    for (size_t i = 0; i < outcome->output_count; i++) {
        kept_clear(&outcome->outputs[i]);
    }
    for (size_t i = 0; i < outcome->checkpoint_count; i++) {
        kept_clear(&outcome->checkpoint[i]);
    }
    outcome->output_count = 0;
    outcome->checkpoint_count = 0;
}

bool outcome_reserve(struct outcome *outcome, size_t count)
{
    assert(outcome->outputs == NULL);
    outcome->outputs = count == 0 ? NULL : calloc(count, sizeof *outcome->outputs);
    return count == 0 || outcome->outputs != NULL;
}

bool outcome_reserve_checkpoint(struct outcome *outcome, size_t count)
{
    assert(outcome->checkpoint == NULL);
    outcome->checkpoint = count == 0 ? NULL : calloc(count, sizeof *outcome->checkpoint);
    return count == 0 || outcome->checkpoint != NULL;
}

void outcome_destroy(struct outcome **self)
{
    if (*self != NULL) {
        drop_kept(*self);
        dispatch_inputs_fini(&(*self)->dispatch);
        free((*self)->outputs);
        free((*self)->checkpoint);
        free(*self);
        *self = NULL;
    }
}

static void add_size(const struct kept *kept, struct outcome_size *size)
{
    if (kept->name == NULL || kept->size == 0) {
        return; /* no bytes need no storage */
    }
    if (kept->fd >= 0) {
        size->files++;
        size->file_bytes += kept->size;
    } else {
        size->memory_bytes += kept->size;
    }
}

struct outcome_size outcome_measure(const struct outcome *outcome)
{
    struct outcome_size size = {0};
    add_size(&outcome->standard_output, &size);
    add_size(&outcome->standard_error, &size);
    for (size_t i = 0; i < outcome->output_count; i++) {
        add_size(&outcome->outputs[i], &size);
    }
    for (size_t i = 0; i < outcome->checkpoint_count; i++) {
        add_size(&outcome->checkpoint[i], &size);
    }
    return size;
}

static void let_go(struct kept *kept)
{
    if (kept->left_in != NULL) {
        pthread_mutex_lock(&kept->left_in->mutex);
        list_remove(&kept->link);
        pthread_mutex_unlock(&kept->left_in->mutex);
    }
}

void outcome_let_go(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->output_count; i++) {
        let_go(&outcome->outputs[i]);
    }
    for (size_t i = 0; i < outcome->checkpoint_count; i++) {
        let_go(&outcome->checkpoint[i]);
    }
}

void outcome_fail(struct outcome *outcome, enum result_outcome result, const char *format, ...)
{
    char text[LIMIT_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    drop_kept(outcome);
    outcome->result = result;
    outcome->verdict = VERDICT_NONE;
    text_printable(text, strlen(text), outcome->detail, sizeof outcome->detail);
}

static bool read_some(int fd, uint8_t *bytes, size_t length, uint64_t offset, size_t *ret_got)
{
    ssize_t got;
    do {
        got = pread(fd, bytes, length, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        errno = got == 0 ? ENODATA : errno; /* shorter than promised */
        return false;
    }
    *ret_got = (size_t)got;
    return true;
}

static bool write_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return false;
        }
        bytes += put;
        length -= (size_t)put;
    }
    return true;
}

static bool keep_in_memory(int fd, uint64_t size, struct kept *kept)
{
    kept->bytes = malloc((size_t)size);
    if (kept->bytes == NULL) {
        return false;
    }
    for (size_t done = 0; done < (size_t)size;) {
        size_t got;
        if (!read_some(fd, kept->bytes + done, (size_t)size - done, done, &got)) {
            return false;
        }
        done += got;
    }
    kept->hash = sha256_of(kept->bytes, (size_t)size);
    return true;
}

/* Reads all of `fd` once and hashes it. `copy` gets the same bytes, unless it is -1. */
static bool read_through(int fd, uint64_t size, int copy, struct hash32 *ret_hash)
{
    uint8_t *chunk = malloc(COPY_BYTES);
    bool good = chunk != NULL;
    struct sha256 sum;
    sha256_start(&sum);
    for (uint64_t done = 0; good && done < size;) {
        size_t got;
        size_t ask = size - done < COPY_BYTES ? (size_t)(size - done) : COPY_BYTES;
        good = read_some(fd, chunk, ask, done, &got) && (copy < 0 || write_all(copy, chunk, got));
        if (good) {
            sha256_add(&sum, chunk, got);
            done += got;
        }
    }
    *ret_hash = sha256_end(&sum);
    free(chunk);
    return good;
}

static bool keep_in_file(const char *spool, int fd, uint64_t size, struct kept *kept)
{
    kept->fd = own_folder_file(spool);
    return kept->fd >= 0 && read_through(fd, size, kept->fd, &kept->hash);
}

enum result_outcome outcome_leave(struct left_outputs *left, const char *name, int fd,
                                  uint64_t size, struct kept *ret_kept, struct problem *ret_problem)
{
    struct kept kept = {.fd = -1, .size = size};
    kept.name = strdup(name);
    if (kept.name == NULL || !read_through(fd, size, -1, &kept.hash) ||
        (kept.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0) {
        problem_set(ret_problem, "an output of %llu bytes could not be kept: %s",
                    (unsigned long long)size, strerror(errno));
        kept_clear(&kept);
        return OUTCOME_JAIL_FAILED;
    }
    (void)atomic_fetch_add(&left->users, 1);
    kept.left_in = left;
    *ret_kept = kept;
    pthread_mutex_lock(&left->mutex);
    list_append(&left->outputs, &ret_kept->link);
    pthread_mutex_unlock(&left->mutex);
    return OUTCOME_OK;
}

/* The mutex is held. */
static struct kept *oldest_left(const struct left_outputs *left)
{
    return list_empty(&left->outputs) ? NULL : LIST_ELEMENT(left->outputs.next, struct kept, link);
}

/* Replaces the file behind the output's descriptor by `copy`, unless the output went meanwhile.
 * Only the lane's thread leaves outputs. So the oldest output is still the same one, or a later
 * one. */
static bool replace_left(struct left_outputs *left, const struct kept *moved, int copy)
{
    bool good = true;
    pthread_mutex_lock(&left->mutex);
    struct kept *kept = oldest_left(left);
    if (kept == moved) {
        good = dup3(copy, kept->fd, O_CLOEXEC) >= 0;
        if (good) {
            list_remove(&kept->link);
        }
    }
    pthread_mutex_unlock(&left->mutex);
    return good;
}

bool outcome_left_move_out(struct left_outputs *left, const char *spool)
{
    for (bool good = true; good;) {
        struct hash32 hash; /* unused: the first hash counts */
        pthread_mutex_lock(&left->mutex);
        const struct kept *kept = oldest_left(left);
        const uint64_t size = kept == NULL ? 0 : kept->size;
        int from = kept == NULL ? -1 : fcntl(kept->fd, F_DUPFD_CLOEXEC, 3);
        pthread_mutex_unlock(&left->mutex);
        if (kept == NULL) {
            return true;
        }
        int copy = own_folder_file(spool);
        good = from >= 0 && copy >= 0 && read_through(from, size, copy, &hash) &&
               replace_left(left, kept, copy);
        if (from >= 0) {
            close(from);
        }
        if (copy >= 0) {
            close(copy);
        }
    }
    return false;
}

enum result_outcome outcome_unkept(const char *spool, uint64_t size, int error,
                                   struct problem *ret_problem)
{
    if (error == ENOENT) {
        problem_set(ret_problem, "no folder for an output of %llu bytes: %s is gone",
                    (unsigned long long)size, spool);
        return OUTCOME_CANCELLED;
    }
    if (error != ENOSPC && error != EDQUOT) {
        problem_set(ret_problem, "an output of %llu bytes could not be kept: %s",
                    (unsigned long long)size, strerror(error));
        return OUTCOME_JAIL_FAILED;
    }
    uint64_t free_bytes = free_space_of(spool);
    problem_set(ret_problem, "an output of %llu bytes does not fit: the disk of %s has %llu free",
                (unsigned long long)size, spool, (unsigned long long)free_bytes);
    return free_bytes < FREE_SPACE_LEAST ? OUTCOME_CANCELLED : OUTCOME_JAIL_FAILED;
}

enum result_outcome outcome_keep(const char *spool, const char *name, int fd, uint64_t size,
                                 struct kept *ret_kept, struct problem *ret_problem)
{
    struct kept kept = {.fd = -1, .size = size};
    kept.name = strdup(name);
    bool good = kept.name != NULL;
    if (good && size == 0) {
        kept.hash = sha256_of("", 0);
    } else if (good && size <= OUTCOME_MEMORY_BYTES) {
        good = keep_in_memory(fd, size, &kept);
    } else if (good) {
        good = keep_in_file(spool, fd, size, &kept);
    }
    if (!good) {
        int error = errno;
        kept_clear(&kept); /* frees its disk space before the check */
        return outcome_unkept(spool, size, error, ret_problem);
    }
    *ret_kept = kept;
    return OUTCOME_OK;
}
