#include "broker/blob/blob_check.h"

#include "base/sha256.h"
#include "broker/core/queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE_BYTES = 256 << 10 };

struct check {
    struct queue_link link;
    struct blob_checks *checks;
    bool is_used;
    struct hash32 hash;
    int fd;
    pthread_t thread;
    enum blob_check_result result; /* the thread's until it has ended */
};

struct blob_checks {
    struct queue *ended;
    atomic_bool stopping;
    struct check list[BLOB_CHECKS_MAX];
    struct known {
        struct hash32 hash;
        int64_t until_ns;
    } known[BLOB_CHECKS_KNOWN];
    size_t known_next; /* place of the next, which is that of the oldest */
};

/* ---------------------------------------------------------------- on the check's thread */

static enum blob_check_result hash_file(const struct check *check, uint8_t *buffer)
{
    struct sha256 sum;
    off_t offset = 0;
    sha256_start(&sum);
    for (;;) {
        if (atomic_load(&check->checks->stopping)) {
            return BLOB_CHECK_UNREAD;
        }
        ssize_t got = pread(check->fd, buffer, PIECE_BYTES, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return BLOB_CHECK_UNREAD;
        }
        if (got == 0) {
            break;
        }
        sha256_add(&sum, buffer, (size_t)got);
        offset += got;
    }
    const struct hash32 found = sha256_end(&sum);
    return hash32_equal(&found, &check->hash) ? BLOB_CHECK_RIGHT : BLOB_CHECK_WRONG;
}

static void *run(void *argument)
{
    struct check *check = argument;
    uint8_t *buffer = malloc(PIECE_BYTES);
    check->result = buffer == NULL ? BLOB_CHECK_UNREAD : hash_file(check, buffer);
    free(buffer);
    (void)close(check->fd); /* only read */
    bool is_queued = queue_try_push(check->checks->ended, &check->link);
    assert(is_queued); /* there is room for all */
    (void)is_queued;
    return NULL;
}

/* ---------------------------------------------------------------- on the owner's thread */

struct blob_checks *blob_checks_create(void)
{
    struct blob_checks *checks = calloc(1, sizeof *checks);
    if (checks == NULL) {
        return NULL;
    }
    atomic_init(&checks->stopping, false);
    checks->ended = queue_create(BLOB_CHECKS_MAX);
    if (checks->ended == NULL) {
        free(checks);
        return NULL;
    }
    return checks;
}

bool blob_checks_knows(const struct blob_checks *checks, const struct hash32 *hash, int64_t now_ns)
{
    for (size_t i = 0; i < BLOB_CHECKS_KNOWN; i++) {
        const struct known *known = &checks->known[i];
        if (known->until_ns > now_ns && hash32_equal(&known->hash, hash)) {
            return true;
        }
    }
    return false;
}

bool blob_checks_has_room(const struct blob_checks *checks, const struct hash32 *hash)
{
    bool has_room = false;
    for (size_t i = 0; i < BLOB_CHECKS_MAX; i++) {
        const struct check *check = &checks->list[i];
        if (check->is_used && hash32_equal(&check->hash, hash)) {
            return false; /* under way */
        }
        has_room = has_room || !check->is_used;
    }
    return has_room;
}

static bool start_thread(struct check *check)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread has the mask of its maker */
    int failed = pthread_create(&check->thread, NULL, run, check);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

void blob_checks_begin(struct blob_checks *checks, const struct hash32 *hash, int fd)
{
    struct check *free_one = NULL;
    for (size_t i = 0; i < BLOB_CHECKS_MAX && blob_checks_has_room(checks, hash); i++) {
        free_one = checks->list[i].is_used ? free_one : &checks->list[i];
    }
    if (free_one != NULL) {
        *free_one = (struct check){.checks = checks, .is_used = true, .hash = *hash, .fd = fd};
        free_one->is_used = start_thread(free_one);
    }
    if (free_one == NULL || !free_one->is_used) {
        (void)close(fd); /* only read */
    }
}

int blob_checks_descriptor(const struct blob_checks *checks)
{
    return queue_descriptor(checks->ended);
}

bool blob_checks_take_ended(struct blob_checks *checks, int64_t now_ns, struct hash32 *ret_hash,
                            enum blob_check_result *ret_result)
{
    struct queue_link *link = queue_pop(checks->ended, 0);
    if (link == NULL) {
        return false;
    }
    struct check *check = QUEUE_ELEMENT(link, struct check, link);
    (void)pthread_join(check->thread, NULL); /* ours, and joined once */
    *ret_hash = check->hash;
    *ret_result = check->result;
    check->is_used = false;
    if (check->result == BLOB_CHECK_RIGHT) {
        checks->known[checks->known_next] =
            (struct known){.hash = check->hash, .until_ns = now_ns + BLOB_CHECK_QUIET_NS};
        checks->known_next = (checks->known_next + 1) % BLOB_CHECKS_KNOWN;
    }
    return true;
}

void blob_checks_destroy(struct blob_checks **self)
{
    struct blob_checks *checks = *self;
    if (checks == NULL) {
        return;
    }
    atomic_store(&checks->stopping, true);
    for (size_t i = 0; i < BLOB_CHECKS_MAX; i++) {
        if (checks->list[i].is_used) {
            (void)pthread_join(checks->list[i].thread, NULL); /* it ends within a piece */
        }
    }
    while (queue_pop(checks->ended, 0) != NULL) {
        continue; /* of those that are no more */
    }
    queue_close(checks->ended);
    queue_destroy(&checks->ended);
    free(checks);
    *self = NULL;
}
