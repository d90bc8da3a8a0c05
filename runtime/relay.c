#include "runtime/relay.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A thread with the turn to read takes the turn to write before it gives up the first. Pieces are
 * thus written one at a time, in order, while the next is read and hashed. Two writers would gain
 * nothing, because a file system admits one of them. The waiting one would be overtaken again and
 * again, and hold a piece meanwhile. */
struct relaying {
    const struct relay *relay;
    pthread_mutex_t reading, writing;
    uint64_t next; /* offset of the next piece to read */
    atomic_bool has_failed;
    atomic_bool has_helper_left; /* the helper left before the end */
};

static atomic_uint under_way; /* relays in this process */

/* Reads and hashes the next piece. Returns false when there is no more, or no more is wanted. */
static bool take_piece(struct relaying *relaying, uint8_t *piece, uint64_t *ret_offset,
                       size_t *ret_length)
{
    const struct relay *relay = relaying->relay;
    const uint64_t left = relay->to - relaying->next;
    if (atomic_load(&relaying->has_failed) || left == 0) {
        return false;
    }
    *ret_offset = relaying->next;
    *ret_length = left < RELAY_PIECE_BYTES ? (size_t)left : RELAY_PIECE_BYTES;
    if (!relay->read(relay->context, *ret_offset, piece, *ret_length)) {
        atomic_store(&relaying->has_failed, true);
        return false;
    }
    sha256_add(relay->sum, piece, *ret_length);
    relaying->next += *ret_length;
    return true;
}

/* Reads and writes one piece. Returns false when there is no more. */
static bool carry_one(struct relaying *relaying, uint8_t *piece)
{
    const struct relay *relay = relaying->relay;
    uint64_t offset = 0;
    size_t length = 0;
    pthread_mutex_lock(&relaying->reading);
    bool is_read = take_piece(relaying, piece, &offset, &length);
    if (is_read) {
        pthread_mutex_lock(&relaying->writing);
    }
    pthread_mutex_unlock(&relaying->reading);
    if (!is_read) {
        return false;
    }
    if (!atomic_load(&relaying->has_failed) &&
        !relay->write(relay->context, offset, piece, length)) {
        atomic_store(&relaying->has_failed, true);
    }
    pthread_mutex_unlock(&relaying->writing);
    return true;
}

/* Returns true when a processor is free for a helper, with all relays under way counted. More
 * threads than processors would only wait for one another. */
static bool has_processor(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) != 0 ||
           (unsigned)CPU_COUNT(&cpus) > atomic_load(&under_way);
}

static void *help(void *argument)
{
    struct relaying *relaying = argument;
    uint8_t *piece = malloc(RELAY_PIECE_BYTES);
    while (piece != NULL && has_processor() && carry_one(relaying, piece)) {
        continue;
    }
    free(piece);
    atomic_store(&relaying->has_helper_left, true);
    return NULL;
}

static bool start_helper(struct relaying *relaying, pthread_t *ret_helper)
{
    sigset_t all;
    sigset_t before;
    atomic_store(&relaying->has_helper_left, false);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits the mask */
    int failed = pthread_create(ret_helper, NULL, help, relaying);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

/* Carries the pieces of the caller. The caller has a helper while there is a processor for one.
 * Other relays that begin or end change this. */
static void carry_helped(struct relaying *relaying)
{
    pthread_t helper;
    uint8_t *piece = malloc(RELAY_PIECE_BYTES);
    bool is_helped = false;
    bool goes_on = piece != NULL;
    while (goes_on) {
        if (is_helped && atomic_load(&relaying->has_helper_left)) {
            (void)pthread_join(helper, NULL); /* our own thread, joined once */
            is_helped = false;
        }
        is_helped = is_helped || /* alone, so no other thread uses `next` */
                    (relaying->relay->to - relaying->next > 2 * (uint64_t)RELAY_PIECE_BYTES &&
                     has_processor() && start_helper(relaying, &helper));
        goes_on = carry_one(relaying, piece);
    }
    free(piece);
    if (is_helped) {
        (void)pthread_join(helper, NULL); /* our own thread, joined once */
    }
}

bool relay_run(const struct relay *relay)
{
    struct relaying relaying = {.relay = relay, .next = relay->from};
    assert(relay->from <= relay->to);
    atomic_init(&relaying.has_failed, false);
    atomic_init(&relaying.has_helper_left, false);
    pthread_mutex_init(&relaying.reading, NULL);
    pthread_mutex_init(&relaying.writing, NULL);
    (void)atomic_fetch_add(&under_way, 1);
    carry_helped(&relaying);
    (void)atomic_fetch_sub(&under_way, 1);
    pthread_mutex_destroy(&relaying.writing);
    pthread_mutex_destroy(&relaying.reading);
    return !atomic_load(&relaying.has_failed) && relaying.next == relay->to;
}
