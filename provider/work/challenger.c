#include "provider/work/challenger.h"

#include "base/text.h"
#include "provider/jail/jail.h"
#include "provider/tensor/ask.h"
#include "runtime/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_BYTES (256 * MIB)
#define WALL_NS UINT64_C(60000000000)

enum { HEX_BYTES = 2 * CHALLENGE_ANSWER_MOST };

struct challenger {
    struct challenger_config config;
    pthread_t thread;
    bool has_thread; /* only the owner's thread */
    struct challenge_product product;
    struct agent_challenge challenge;
    pthread_mutex_t mutex;
    /* The next four are under the mutex. */
    bool is_done, is_ending;
    struct jail *jail; /* while a run may be cancelled */
    size_t length;
    uint8_t digests[CHALLENGE_ANSWER_MOST];
    char hex[HEX_BYTES + 1];
    struct jail_reply reply; /* large */
};

struct challenger *challenger_create(const struct challenger_config *config)
{
    struct challenger *challenger = calloc(1, sizeof *challenger);
    if (challenger != NULL) {
        challenger->config = *config;
        pthread_mutex_init(&challenger->mutex, NULL);
    }
    return challenger;
}

static void join(struct challenger *challenger)
{
    if (challenger->has_thread) {
        pthread_join(challenger->thread, NULL);
        challenger->has_thread = false;
    }
}

void challenger_destroy(struct challenger **self)
{
    struct challenger *challenger = *self;
    if (challenger != NULL) {
        pthread_mutex_lock(&challenger->mutex);
        challenger->is_ending = true;
        if (challenger->jail != NULL) {
            jail_cancel(challenger->jail, OUTCOME_CANCELLED);
        }
        pthread_mutex_unlock(&challenger->mutex);
        join(challenger);
        pthread_mutex_destroy(&challenger->mutex);
        free(challenger);
        *self = NULL;
    }
}

/* Returns false when the challenger ends: then nothing is run. */
static bool show_jail(struct challenger *challenger, struct jail *jail)
{
    pthread_mutex_lock(&challenger->mutex);
    const bool goes_on = !challenger->is_ending;
    challenger->jail = goes_on ? jail : NULL;
    pthread_mutex_unlock(&challenger->mutex);
    return goes_on;
}

static void hide_jail(struct challenger *challenger)
{
    pthread_mutex_lock(&challenger->mutex);
    challenger->jail = NULL;
    pthread_mutex_unlock(&challenger->mutex);
}

/* Reads the digests that the program has printed. Returns their length, or 0. */
static size_t read_digests(struct challenger *challenger)
{
    const size_t length = challenge_product_answer_bytes(&challenger->product);
    const struct jail_output *output = &challenger->reply.standard_output;
    if (challenger->reply.outcome != OUTCOME_OK || output->fd < 0 || output->size != 2 * length ||
        pread(output->fd, challenger->hex, 2 * length, 0) != (ssize_t)(2 * length)) {
        return 0;
    }
    challenger->hex[2 * length] = '\0';
    return text_unhex(challenger->hex, challenger->digests, length) ? length : 0;
}

static size_t compute(struct challenger *challenger)
{
    char seed[2 * sizeof challenger->product.seed.bytes + 1];
    char side[16];
    char rounds[16];
    const char *const words[] = {TENSOR_CHALLENGE, seed, side, rounds, NULL};
    const struct jail_spec spec = {.worker_path = challenger->config.worker_path,
                                   .tensor_path = challenger->config.tensor_path,
                                   .name = "challenge",
                                   .limits = {.memory_bytes = MEMORY_BYTES,
                                              .disk_bytes = 16 * MIB,
                                              .processes = 16,
                                              .cpu_milli = 1000},
                                   .cgroups = challenger->config.cgroups};
    const struct jail_request request = {.tensor_threads = 1,
                                         .argv = words,
                                         .stdin_fd = -1,
                                         .capture_bytes = HEX_BYTES,
                                         .wall_ns = WALL_NS};
    struct problem problem = {""};
    struct jail *jail = NULL;
    size_t length = 0;
    text_hex(challenger->product.seed.bytes, sizeof challenger->product.seed.bytes, seed);
    (void)snprintf(side, sizeof side, "%u", challenger->product.side);
    (void)snprintf(rounds, sizeof rounds, "%u", challenger->product.rounds);
    if (!jail_open(challenger->config.launcher, &spec, &jail, &problem)) {
        log_warning("a challenge of the broker cannot be computed: %s", problem.text);
        return 0;
    }
    if (show_jail(challenger, jail)) {
        jail_run(jail, &request, &challenger->reply);
        hide_jail(challenger);
        length = read_digests(challenger);
        if (length == 0) {
            log_warning("a challenge of the broker was not computed: %s", challenger->reply.detail);
        }
        jail_reply_fini(&challenger->reply);
    }
    jail_close(&jail);
    return length;
}

static void *run(void *context)
{
    struct challenger *challenger = context;
    const size_t length = compute(challenger);
    pthread_mutex_lock(&challenger->mutex);
    challenger->length = length;
    challenger->is_done = true;
    pthread_mutex_unlock(&challenger->mutex);
    challenger->config.done(challenger->config.context);
    return NULL;
}

bool challenger_begin(struct challenger *challenger, const struct agent_challenge *challenge)
{
    const struct challenge_product product = {
        .seed = challenge->seed, .side = challenge->side, .rounds = challenge->rounds};
    if (challenger->has_thread || !challenge_product_is_valid(&product)) {
        return false;
    }
    challenger->challenge = *challenge;
    challenger->product = product;
    challenger->has_thread = pthread_create(&challenger->thread, NULL, run, challenger) == 0;
    return challenger->has_thread;
}

bool challenger_take(struct challenger *challenger, struct agent_challenge *ret_challenge,
                     const uint8_t **ret_digests, size_t *ret_length)
{
    pthread_mutex_lock(&challenger->mutex);
    const bool is_done = challenger->is_done;
    challenger->is_done = false;
    pthread_mutex_unlock(&challenger->mutex);
    if (is_done) {
        join(challenger);
        *ret_challenge = challenger->challenge;
        *ret_digests = challenger->digests;
        *ret_length = challenger->length;
    }
    return is_done;
}
