#include "provider/work/transfer.h"

#include "base/text.h"
#include "runtime/blob/blob_client.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RETRY_MS_FIRST = 100,
    RETRY_MS_LONGEST = 5000,
    STEP_MS = 50,
    /* A blob counts as missing after this number of gets, of five seconds each, in which the broker
     * could not read it. */
    UNREAD_TRIES = 2,
    SOURCES_PER_OUTCOME = LIMIT_OUTPUTS + LIMIT_CHECKPOINT_FILES + 2
};

/* A connection belongs to one thread and is opened when first needed. */
struct connection {
    pthread_mutex_t mutex; /* guards `client` against interrupt */
    struct blob_client *client;
};

struct transfer {
    struct transfer_config config;
    atomic_bool stopping;
    struct connection fetchers[TRANSFER_FETCHERS];
    struct connection storers[TRANSFER_STORERS];
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct list_link queue; /* outcomes to store */
    size_t started;
    struct storer {
        struct transfer *transfer;
        struct connection *connection;
        pthread_t thread;
    } threads[TRANSFER_STORERS];
};

/* ---------------------------------------------------------------- connections */

static void disconnect(struct connection *connection)
{
    pthread_mutex_lock(&connection->mutex);
    blob_client_close(&connection->client);
    pthread_mutex_unlock(&connection->mutex);
}

static struct blob_client *connected(struct transfer *transfer, struct connection *connection,
                                     struct problem *problem)
{
    struct blob_port *port = transfer->config.port;
    if (connection->client != NULL && blob_port_has_moved(port, connection->client)) {
        disconnect(connection);
    }
    if (connection->client != NULL) {
        return connection->client;
    }
    struct blob_client *client = NULL;
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
    blob_port_where(port, endpoint);
    if (!blob_client_open(transfer->config.zmq, endpoint, &transfer->config.server,
                          transfer->config.identity, &client, problem)) {
        return NULL;
    }
    blob_client_follow(client, blob_port_where, port);
    blob_client_measure(client, transfer->config.meter, transfer->config.meter_context);
    pthread_mutex_lock(&connection->mutex);
    connection->client = client;
    pthread_mutex_unlock(&connection->mutex);
    return client;
}

static void interrupt(struct connection *connection)
{
    pthread_mutex_lock(&connection->mutex);
    if (connection->client != NULL) {
        blob_client_interrupt(connection->client);
    }
    pthread_mutex_unlock(&connection->mutex);
}

/* Sleeps in steps, so that a stop takes effect soon. */
static void wait_ms(const struct transfer *transfer, int ms)
{
    for (int waited = 0; waited < ms && !atomic_load(&transfer->stopping); waited += STEP_MS) {
        struct timespec step = {.tv_nsec = (long)STEP_MS * 1000000};
        (void)nanosleep(&step, NULL); /* an early return is fine */
    }
}

static int longer_pause_ms(int ms)
{
    return ms * 2 < RETRY_MS_LONGEST ? ms * 2 : RETRY_MS_LONGEST;
}

/* Returns true when the same request may succeed later. */
static bool is_passing(enum reject_code code)
{
    return code == REJECT_NONE || code == REJECT_BUSY || code == REJECT_RATE ||
           code == REJECT_SESSION || code == REJECT_UNAVAILABLE || code == REJECT_NOT_LEADER;
}

/* ---------------------------------------------------------------- fetching */

/* Reports that a blob is missing. This text replaces the broker's own text, which is for an account
 * that asks about its jobs. */
static enum store_status missing(enum reject_code code, const struct hash32 *hash,
                                 struct problem *ret_problem)
{
    char hex[65];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    if (code == REJECT_NOT_FOUND || code == REJECT_UNAVAILABLE) {
        problem_set(ret_problem, "the broker %s blob %s; the broker's log says why",
                    code == REJECT_NOT_FOUND ? "does not have" : "cannot read", hex);
    }
    return STORE_MISSING;
}

enum store_status transfer_fetch(void *context, size_t thread, const struct hash32 *hash,
                                 const struct id128 *job, uint64_t cap, int fd, uint64_t *ret_size,
                                 struct problem *ret_problem)
{
    struct transfer *transfer = context;
    assert(thread < TRANSFER_FETCHERS);
    struct connection *connection = &transfer->fetchers[thread];
    unsigned unread = 0;
    for (int pause_ms = RETRY_MS_FIRST;; pause_ms = longer_pause_ms(pause_ms)) {
        if (atomic_load(&transfer->stopping)) {
            return STORE_GIVEN_UP;
        }
        enum reject_code code = REJECT_NONE;
        int unwritten = 0;
        struct blob_client *client = connected(transfer, connection, ret_problem);
        if (client != NULL &&
            blob_client_get(client, hash, job, cap, fd, ret_size, &code, &unwritten, ret_problem)) {
            return STORE_OK;
        }
        if (unwritten != 0) {
            return store_unwritten(unwritten);
        }
        unread += code == REJECT_UNAVAILABLE;
        if (!is_passing(code) || unread >= UNREAD_TRIES) {
            return code == REJECT_TOO_LARGE ? STORE_TOO_LARGE : missing(code, hash, ret_problem);
        }
        log_debug("a blob could not be fetched, trying again: %s", ret_problem->text);
        disconnect(connection);
        wait_ms(transfer, pause_ms);
    }
}

int transfer_lend(void *context, size_t thread, const struct hash32 *hash, const struct id128 *job,
                  uint64_t cap, uint64_t *ret_size, bool *ret_is_hashed)
{
    struct transfer *transfer = context;
    struct problem problem = {""};
    assert(thread < TRANSFER_FETCHERS);
    struct blob_client *client = connected(transfer, &transfer->fetchers[thread], &problem);
    return client == NULL ? -1
                          : blob_client_borrow(client, hash, job, cap, ret_size, ret_is_hashed);
}

/* ---------------------------------------------------------------- storing */

static size_t add_source(const struct kept *kept, struct blob_source *sources, size_t count)
{
    if (kept->name == NULL || kept->size == 0) {
        return count; /* the broker has the empty blob anyway */
    }
    sources[count] = (struct blob_source){
        .hash = kept->hash, .size = kept->size, .fd = kept->fd, .bytes = kept->bytes};
    return count + 1;
}

static size_t sources_of(const struct outcome *outcome, struct blob_source *sources, size_t count)
{
    count = add_source(&outcome->standard_output, sources, count);
    count = add_source(&outcome->standard_error, sources, count);
    for (size_t i = 0; i < outcome->output_count; i++) {
        count = add_source(&outcome->outputs[i], sources, count);
    }
    for (size_t i = 0; i < outcome->checkpoint_count; i++) {
        count = add_source(&outcome->checkpoint[i], sources, count);
    }
    return count;
}

static void refused(struct outcome *outcome, enum reject_code code, const struct problem *problem)
{
    bool quota = code == REJECT_BLOB_QUOTA || code == REJECT_TOO_LARGE;
    outcome->is_unstored = true;
    if (outcome->checkpoint_count > 0) { /* the result counts, but has no checkpoint */
        outcome_fail(outcome, outcome->result,
                     "nothing was saved: the checkpoint could not be stored: %s", problem->text);
        return;
    }
    outcome_fail(outcome, quota ? OUTCOME_OUTPUT_LIMIT : OUTCOME_JAIL_FAILED,
                 "the outputs could not be stored: %s", problem->text);
}

/* Returns REJECT_NONE when all sources are stored. */
static enum reject_code store_sources(struct transfer *transfer, struct connection *connection,
                                      const struct blob_source *sources, size_t count,
                                      const struct id128 *job, struct problem *problem)
{
    for (int pause_ms = RETRY_MS_FIRST;; pause_ms = longer_pause_ms(pause_ms)) {
        enum reject_code code = REJECT_NONE;
        struct blob_client *client = connected(transfer, connection, problem);
        if (count == 0 || (client != NULL && blob_client_put(client, sources, count, job, NULL,
                                                             NULL, &code, NULL, problem))) {
            return REJECT_NONE;
        }
        if (!is_passing(code)) {
            return code;
        }
        if (atomic_load(&transfer->stopping)) {
            problem_set(problem, "the agent stopped before the broker was back");
            return REJECT_UNAVAILABLE;
        }
        log_debug("outputs could not be stored, trying again: %s", problem->text);
        disconnect(connection);
        wait_ms(transfer, pause_ms);
    }
}

static void store_alone(struct transfer *transfer, struct connection *connection,
                        struct outcome *outcome)
{
    struct blob_source sources[SOURCES_PER_OUTCOME];
    struct problem problem = {""};
    size_t count = sources_of(outcome, sources, 0);
    enum reject_code code =
        store_sources(transfer, connection, sources, count, &outcome->job, &problem);
    if (code != REJECT_NONE) {
        refused(outcome, code, &problem);
    }
}

/* Stores the outputs of outcomes of one job. If an output is refused, the outputs of each outcome
 * are stored apart, so that the other outcomes lose nothing. */
static void store_group(struct transfer *transfer, struct connection *connection,
                        struct outcome *const *group, size_t count)
{
    struct blob_source *sources = calloc(count * SOURCES_PER_OUTCOME, sizeof *sources);
    size_t source_count = 0;
    struct problem problem = {""};
    for (size_t i = 0; sources != NULL && i < count; i++) {
        source_count = sources_of(group[i], sources, source_count);
    }
    bool is_stored = sources != NULL && store_sources(transfer, connection, sources, source_count,
                                                      &group[0]->job, &problem) == REJECT_NONE;
    free(sources);
    struct list_link stored;
    list_init(&stored);
    for (size_t i = 0; i < count; i++) {
        if (!is_stored) {
            store_alone(transfer, connection, group[i]);
        }
        list_append(&stored, &group[i]->link);
    }
    transfer->config.done(transfer->config.context, &stored);
}

/* Takes the oldest outcome and later outcomes of the same job. The mutex is held. */
static size_t take_group(struct transfer *transfer, struct outcome *group[TRANSFER_GROUP])
{
    size_t count = 0;
    for (struct list_link *link = transfer->queue.next;
         link != &transfer->queue && count < TRANSFER_GROUP;) {
        struct outcome *outcome = LIST_ELEMENT(link, struct outcome, link);
        link = link->next;
        if (count == 0 || id128_equal(&outcome->job, &group[0]->job)) {
            list_remove(&outcome->link);
            group[count++] = outcome;
        }
    }
    return count;
}

static void *store_loop(void *argument)
{
    struct storer *self = argument;
    process_name_thread("storer");
    struct transfer *transfer = self->transfer;
    for (;;) {
        struct outcome *group[TRANSFER_GROUP];
        pthread_mutex_lock(&transfer->mutex);
        while (list_empty(&transfer->queue) && !atomic_load(&transfer->stopping)) {
            pthread_cond_wait(&transfer->arrived, &transfer->mutex);
        }
        size_t count = take_group(transfer, group);
        pthread_mutex_unlock(&transfer->mutex);
        if (count == 0) {
            return NULL; /* stopping, and nothing waits */
        }
        store_group(transfer, self->connection, group, count);
    }
}

void transfer_submit(struct transfer *transfer, struct list_link *outcomes)
{
    struct list_link finished; /* outcomes with nothing to store */
    struct list_link storable;
    list_init(&finished);
    list_init(&storable);
    while (!list_empty(outcomes)) {
        struct blob_source sources[SOURCES_PER_OUTCOME];
        struct outcome *outcome = LIST_ELEMENT(outcomes->next, struct outcome, link);
        list_remove(&outcome->link);
        list_append(sources_of(outcome, sources, 0) == 0 ? &finished : &storable, &outcome->link);
    }
    if (!list_empty(&finished)) {
        transfer->config.done(transfer->config.context, &finished);
    }
    if (!list_empty(&storable)) {
        pthread_mutex_lock(&transfer->mutex);
        list_append_all(&transfer->queue, &storable);
        pthread_cond_signal(&transfer->arrived);
        pthread_mutex_unlock(&transfer->mutex);
    }
}

/* ---------------------------------------------------------------- life */

bool transfer_open(const struct transfer_config *config, struct transfer **ret_transfer,
                   struct problem *ret_problem)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    transfer->config = *config;
    pthread_mutex_init(&transfer->mutex, NULL);
    pthread_cond_init(&transfer->arrived, NULL);
    list_init(&transfer->queue);
    for (size_t i = 0; i < TRANSFER_FETCHERS; i++) {
        pthread_mutex_init(&transfer->fetchers[i].mutex, NULL);
    }
    for (size_t i = 0; i < TRANSFER_STORERS; i++) {
        pthread_mutex_init(&transfer->storers[i].mutex, NULL);
    }
    for (size_t i = 0; i < TRANSFER_STORERS; i++) {
        transfer->threads[i] =
            (struct storer){.transfer = transfer, .connection = &transfer->storers[i]};
        if (pthread_create(&transfer->threads[i].thread, NULL, store_loop, &transfer->threads[i]) !=
            0) {
            problem_set(ret_problem, "cannot start thread %zu of %d that send results", i + 1,
                        TRANSFER_STORERS);
            transfer_close(&transfer);
            return false;
        }
        transfer->started++;
    }
    *ret_transfer = transfer;
    return true;
}

void transfer_stop(struct transfer *transfer)
{
    pthread_mutex_lock(&transfer->mutex);
    atomic_store(&transfer->stopping, true);
    pthread_cond_broadcast(&transfer->arrived);
    pthread_mutex_unlock(&transfer->mutex);
    for (size_t i = 0; i < TRANSFER_FETCHERS; i++) {
        interrupt(&transfer->fetchers[i]);
    }
    for (size_t i = 0; i < TRANSFER_STORERS; i++) {
        interrupt(&transfer->storers[i]);
    }
}

void transfer_close(struct transfer **self)
{
    struct transfer *transfer = *self;
    if (transfer == NULL) {
        return;
    }
    transfer_stop(transfer);
    for (size_t i = 0; i < transfer->started; i++) {
        pthread_join(transfer->threads[i].thread, NULL);
    }
    for (size_t i = 0; i < TRANSFER_FETCHERS; i++) {
        disconnect(&transfer->fetchers[i]);
        pthread_mutex_destroy(&transfer->fetchers[i].mutex);
    }
    for (size_t i = 0; i < TRANSFER_STORERS; i++) {
        disconnect(&transfer->storers[i]);
        pthread_mutex_destroy(&transfer->storers[i].mutex);
    }
    while (!list_empty(&transfer->queue)) { /* submitted after the threads had ended */
        struct outcome *outcome = LIST_ELEMENT(transfer->queue.next, struct outcome, link);
        list_remove(&outcome->link);
        outcome_destroy(&outcome);
    }
    pthread_cond_destroy(&transfer->arrived);
    pthread_mutex_destroy(&transfer->mutex);
    free(transfer);
    *self = NULL;
}
