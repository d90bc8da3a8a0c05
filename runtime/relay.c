#include "runtime/relay.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct relaying {
    const struct relay *relay;
    pthread_mutex_t turn; /* who has it reads and hashes */
    uint64_t next;
    bool has_failed;
};

/* The next piece, read and hashed. False: there is no more, or no more is wanted. */
static bool take_turn(struct relaying *relaying, uint8_t *piece, uint64_t *ret_offset,
                      size_t *ret_length)
{
    const struct relay *relay = relaying->relay;
    const uint64_t left = relay->to - relaying->next;
    if (relaying->has_failed || left == 0) {
        return false;
    }
    *ret_offset = relaying->next;
    *ret_length = left < RELAY_PIECE_BYTES ? (size_t)left : RELAY_PIECE_BYTES;
    if (!relay->read(relay->context, *ret_offset, piece, *ret_length)) {
        relaying->has_failed = true;
        return false;
    }
    sha256_add(relay->sum, piece, *ret_length);
    relaying->next += *ret_length;
    return true;
}

static void *carry(void *argument)
{
    struct relaying *relaying = argument;
    const struct relay *relay = relaying->relay;
    uint8_t *piece = malloc(RELAY_PIECE_BYTES);
    uint64_t offset = 0;
    size_t length = 0;
    pthread_mutex_lock(&relaying->turn);
    while (piece != NULL && take_turn(relaying, piece, &offset, &length)) {
        const bool is_first = offset == relay->from;
        if (!is_first) {
            pthread_mutex_unlock(&relaying->turn);
        }
        bool is_written = relay->write(relay->context, offset, piece, length);
        if (!is_first) {
            pthread_mutex_lock(&relaying->turn);
        }
        relaying->has_failed = relaying->has_failed || !is_written;
    }
    pthread_mutex_unlock(&relaying->turn);
    free(piece);
    return NULL;
}

bool relay_run(const struct relay *relay)
{
    struct relaying relaying = {.relay = relay, .next = relay->from};
    sigset_t all;
    sigset_t before;
    pthread_t helper;
    assert(relay->from <= relay->to);
    bool is_helped = relay->to - relay->from > 2 * (uint64_t)RELAY_PIECE_BYTES;
    pthread_mutex_init(&relaying.turn, NULL);
    if (is_helped) {
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all,
                              &before); /* the thread has the mask of its maker */
        is_helped = pthread_create(&helper, NULL, carry, &relaying) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)carry(&relaying);
    if (is_helped) {
        (void)pthread_join(helper, NULL); /* ours, and joined once */
    }
    pthread_mutex_destroy(&relaying.turn);
    return !relaying.has_failed && relaying.next == relay->to;
}
