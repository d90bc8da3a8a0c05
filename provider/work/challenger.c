#include "provider/work/challenger.h"

#include "base/text.h"
#include "provider/executors/kernel.h"
#include "provider/executors/plugin.h"
#include "provider/executors/trial.h"
#include "provider/jail/jail.h"
#include "provider/tensor/ask.h"
#include "runtime/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_BYTES (256 * MIB)
#define WALL_NS UINT64_C(60000000000)

enum {
    HEX_BYTES = 2 * CHALLENGE_ANSWER_MOST,
    WARM_S = 15, /* the jail of a device stays so long for the next challenge */
    WORDS_MOST = 16,
};

struct challenger {
    struct challenger_config config;
    pthread_t thread;
    bool has_thread; /* only the owner's thread */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_busy; /* a challenge was begun and not taken; only the owner's thread */
    /* All up to `length` are under the mutex. A challenge is the thread's from begin to done. */
    bool has_work, is_done, is_ending;
    bool is_over; /* the thread takes no more work */
    struct agent_challenge challenge;
    struct challenge_product product;
    const struct offer *offer;
    struct jail *running; /* while a run may be cancelled */
    size_t length;
    /* The rest is the thread's. */
    struct jail *warm; /* of the offer `warm_for`; NULL: none */
    const struct offer *warm_for;
    uint8_t digests[CHALLENGE_ANSWER_MOST];
    char hex[HEX_BYTES + 1];
    struct jail_reply reply; /* large */
};

struct challenger *challenger_create(const struct challenger_config *config)
{
    struct challenger *challenger = calloc(1, sizeof *challenger);
    if (challenger != NULL) {
        pthread_condattr_t terms;
        challenger->config = *config;
        pthread_condattr_init(&terms);
        pthread_condattr_setclock(&terms, CLOCK_MONOTONIC);
        pthread_mutex_init(&challenger->mutex, NULL);
        pthread_cond_init(&challenger->changed, &terms);
        pthread_condattr_destroy(&terms);
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
        if (challenger->running != NULL) {
            jail_cancel(challenger->running, OUTCOME_CANCELLED);
        }
        pthread_cond_signal(&challenger->changed);
        pthread_mutex_unlock(&challenger->mutex);
        join(challenger);
        pthread_cond_destroy(&challenger->changed);
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
    challenger->running = goes_on ? jail : NULL;
    pthread_mutex_unlock(&challenger->mutex);
    return goes_on;
}

static void hide_jail(struct challenger *challenger)
{
    pthread_mutex_lock(&challenger->mutex);
    challenger->running = NULL;
    pthread_mutex_unlock(&challenger->mutex);
}

/* ---------------------------------------------------------------- the jail */

/* Returns true for a device that is attached, and no core. */
static bool is_attached(const struct offer *offer)
{
    return offer->kernel_device != NULL || offer->plugin != NULL;
}

static struct jail_spec spec_of(const struct challenger *challenger)
{
    const bool on_device = is_attached(challenger->offer);
    return (struct jail_spec){
        .worker_path = challenger->config.worker_path,
        .tensor_path = on_device ? NULL : challenger->config.tensor_path,
        .name = "challenge",
        .limits = {.memory_bytes = on_device ? TRIAL_MEMORY_BYTES : MEMORY_BYTES,
                   .disk_bytes = (on_device ? 64 : 16) * MIB,
                   .processes = on_device ? 64 : 16,
                   .cpu_milli = 10 * challenger->offer->cpu_percent},
        .cgroups = challenger->config.cgroups};
}

/* Opens a jail for the challenge, or takes the one that stayed. Returns NULL after it has said
 * why. */
static struct jail *open_jail(struct challenger *challenger)
{
    struct problem problem = {""};
    struct jail *jail = NULL;
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    struct jail_kernel kernel;
    struct plugin_parts plugin;
    const struct offer *offer = challenger->offer;
    struct jail_spec spec = spec_of(challenger);
    if (challenger->warm != NULL && challenger->warm_for == offer) {
        jail = challenger->warm;
        challenger->warm = NULL;
        return jail;
    }
    jail_close(&challenger->warm);
    if (is_attached(offer)) {
        config_visible(challenger->config.config, visible);
        spec.visible = visible;
    }
    if (offer->kernel_device != NULL) {
        kernel = kernel_jail(challenger->config.kernel_path, offer->kernel_device);
        spec.kernel = &kernel;
    }
    if (offer->plugin != NULL) {
        plugin_fill(challenger->config.plugin_path, &offer->plugin->program, &plugin);
        spec.plugin = &plugin.jail;
    }
    if (!jail_open(challenger->config.launcher, &spec, &jail, &problem)) {
        log_warning("a challenge of the broker cannot be computed: %s", problem.text);
        return NULL;
    }
    return jail;
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

/* The words of one challenge. The device's own come first. */
struct words {
    const char *items[WORDS_MOST];
    size_t count;
    char memory[24], seed[2 * sizeof(struct hash32) + 1], side[16], rounds[16], rows[16], steps[16];
};

static void add(struct words *words, const char *word)
{
    words->items[words->count++] = word;
}

static void fill_words(const struct challenger *challenger, struct words *words)
{
    const struct kernel_device *device = challenger->offer->kernel_device;
    const struct challenge_product *product = &challenger->product;
    *words = (struct words){.count = 0};
    (void)snprintf(words->memory, sizeof words->memory, "%llu",
                   (unsigned long long)challenger->offer->buffer_bytes);
    text_hex(product->seed.bytes, sizeof product->seed.bytes, words->seed);
    (void)snprintf(words->side, sizeof words->side, "%u", product->side);
    (void)snprintf(words->rounds, sizeof words->rounds, "%u", product->rounds);
    (void)snprintf(words->rows, sizeof words->rows, "%u", product->rows);
    (void)snprintf(words->steps, sizeof words->steps, "%u", product->steps);
    if (device != NULL) {
        add(words, kernel_op_api_word(device->api));
        add(words, device->id);
        add(words, device->name);
        add(words, words->memory);
        add(words, "0");
        add(words, "-");
        add(words, device->library[0] != '\0' ? KERNEL_LIBRARY : "-");
    }
    add(words, challenger->offer->plugin != NULL ? PLUGIN_CHALLENGE : TENSOR_CHALLENGE);
    add(words, words->seed);
    add(words, words->side);
    add(words, words->rounds);
    if (challenge_product_is_chain(product)) {
        add(words, words->rows);
        add(words, words->steps);
    }
}

/* ---------------------------------------------------------------- the thread */

/* Computes the challenge. The jail of a device that computed stays. */
static size_t compute(struct challenger *challenger)
{
    struct words words;
    struct jail *jail = open_jail(challenger);
    size_t length = 0;
    if (jail == NULL) {
        return 0;
    }
    fill_words(challenger, &words);
    const struct jail_request request = {.tensor_threads = 1,
                                         .argv = words.items,
                                         .stdin_fd = -1,
                                         .capture_bytes = HEX_BYTES,
                                         .wall_ns = WALL_NS};
    if (show_jail(challenger, jail)) {
        jail_run(jail, &request, &challenger->reply);
        hide_jail(challenger);
        length = read_digests(challenger);
        if (length == 0) {
            log_warning("a challenge of the broker was not computed: %s", challenger->reply.detail);
        }
        jail_reply_fini(&challenger->reply);
    }
    if (length > 0 && is_attached(challenger->offer)) {
        challenger->warm = jail;
        challenger->warm_for = challenger->offer;
    } else {
        jail_close(&jail);
    }
    return length;
}

/* Waits for the next challenge while a jail is warm. Returns false when the thread is to end. */
static bool await_work(struct challenger *challenger)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WARM_S;
    pthread_mutex_lock(&challenger->mutex);
    int status = challenger->warm != NULL ? 0 : ETIMEDOUT;
    while (!challenger->has_work && !challenger->is_ending && status == 0) {
        status = pthread_cond_timedwait(&challenger->changed, &challenger->mutex, &until);
    }
    const bool has_work = challenger->has_work && !challenger->is_ending;
    challenger->has_work = false;
    challenger->is_over = !has_work;
    pthread_mutex_unlock(&challenger->mutex);
    return has_work;
}

static void *run(void *context)
{
    struct challenger *challenger = context;
    do {
        const size_t length = compute(challenger);
        pthread_mutex_lock(&challenger->mutex);
        challenger->length = length;
        challenger->is_done = true;
        pthread_mutex_unlock(&challenger->mutex);
        challenger->config.done(challenger->config.context);
    } while (await_work(challenger));
    jail_close(&challenger->warm);
    return NULL;
}

/* Gives the challenge to the thread that waits, or to a new one. */
static bool give(struct challenger *challenger)
{
    pthread_mutex_lock(&challenger->mutex);
    const bool waits = challenger->has_thread && !challenger->is_over;
    challenger->has_work = waits;
    challenger->is_over = false;
    pthread_cond_signal(&challenger->changed);
    pthread_mutex_unlock(&challenger->mutex);
    if (waits) {
        return true;
    }
    join(challenger);
    challenger->has_thread = pthread_create(&challenger->thread, NULL, run, challenger) == 0;
    return challenger->has_thread;
}

bool challenger_begin(struct challenger *challenger, const struct agent_challenge *challenge,
                      const struct offer *offer)
{
    const struct challenge_product product = {.seed = challenge->seed,
                                              .side = challenge->side,
                                              .rounds = challenge->rounds,
                                              .rows = challenge->rows,
                                              .steps = challenge->steps};
    const bool is_computed =
        !challenge_product_is_chain(&product) || offer->kernel_device != NULL; /* else too slow */
    const char *program = offer->plugin != NULL          ? challenger->config.plugin_path
                          : offer->kernel_device != NULL ? challenger->config.kernel_path
                                                         : challenger->config.tensor_path;
    if (challenger->is_busy || program == NULL || !is_computed ||
        !challenge_product_is_valid(&product)) {
        return false;
    }
    pthread_mutex_lock(&challenger->mutex);
    challenger->challenge = *challenge;
    challenger->product = product;
    challenger->offer = offer;
    pthread_mutex_unlock(&challenger->mutex);
    challenger->is_busy = give(challenger);
    return challenger->is_busy;
}

bool challenger_take(struct challenger *challenger, struct agent_challenge *ret_challenge,
                     const uint8_t **ret_digests, size_t *ret_length)
{
    pthread_mutex_lock(&challenger->mutex);
    const bool is_done = challenger->is_done;
    challenger->is_done = false;
    pthread_mutex_unlock(&challenger->mutex);
    if (is_done) {
        challenger->is_busy = false;
        *ret_challenge = challenger->challenge;
        *ret_digests = challenger->digests;
        *ret_length = challenger->length;
    }
    return is_done;
}
