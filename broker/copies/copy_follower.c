#include "broker/copies/copy_follower.h"

#include "base/checked.h"
#include "broker/blob/blob_store.h"
#include "broker/copies/copy_fetch.h"
#include "broker/copies/copy_log.h"
#include "broker/copies/copy_store.h"
#include "runtime/blob/blob_client.h"
#include "runtime/blob/blob_feed.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MS = 1000, /* the leader answers after so long without news */
    PAUSE_MS = 300, /* after a failure */
    SLICE_MS = 50,  /* so long a stop may take */
    HEAL_S = 5,     /* between two looks for blobs that this broker lost */
    HEALED_AT_ONCE = 16,
    SWEPT_AT_ONCE = 64,
    TELL_S = 60, /* between two lines about the same failure */
};

struct copy_follower {
    struct copy_follower_config config;
    pthread_t thread;
    atomic_bool ends;
    pthread_mutex_t mutex;
    char endpoint[LIMIT_ENDPOINT_BYTES + 1]; /* guarded by `mutex`, and so is `client` */
    struct blob_client *client;
    struct blob_store *store;
    struct copy_log *log;
    bool has_failed; /* the disk did: nothing is copied any more */
    /* One talk with one leader. */
    bool has_greeted, is_whole;
    uint64_t last; /* the leader's newest version, as it said */
    /* Far behind, this broker takes what is new and what is old in turns: it has every version
     * above `from`, up to `to`. Otherwise both are 0. */
    uint64_t from, to;
    struct copy_hashes lacks; /* to be told with the next question */
    struct hash32 healed_after;
    int64_t next_heal_ns, next_tell_ns;
    bool sweeps; /* blobs without an owner may be left of an earlier time */
};

/* ---------------------------------------------------------------- questions */

struct question {
    uint64_t after, until;
    int64_t wait_ms;
    const struct copy_change *offers;
    size_t offer_count;
};

static void set_offer(Bourse__V1__BlobChange *row, const struct copy_change *offer)
{
    bourse__v1__blob_change__init(row);
    row->version = offer->version;
    row->stamp = offer->stamp;
    row->kind = offer->kind;
    /* The bytes are only read. */
    row->key = (ProtobufCBinaryData){offer->key_length, (uint8_t *)(uintptr_t)offer->key};
    row->value = (ProtobufCBinaryData){offer->value_length, (uint8_t *)(uintptr_t)offer->value};
}

static bool ask(struct copy_follower *follower, const struct question *question,
                Bourse__V1__BlobChanges **ret_answer, struct problem *ret_problem)
{
    Bourse__V1__BlobFeed feed = BOURSE__V1__BLOB_FEED__INIT;
    Bourse__V1__BlobChange rows[LIMIT_BLOB_CHANGES];
    Bourse__V1__BlobChange *list[LIMIT_BLOB_CHANGES];
    ProtobufCBinaryData lacks[LIMIT_BLOB_WANTS];
    for (size_t i = 0; i < question->offer_count; i++) {
        set_offer(&rows[i], &question->offers[i]);
        list[i] = &rows[i];
    }
    for (size_t i = 0; i < follower->lacks.count; i++) {
        lacks[i] = (ProtobufCBinaryData){sizeof(struct hash32), follower->lacks.list[i].bytes};
    }
    feed.broker = (char *)(uintptr_t)follower->config.name; /* only read */
    feed.after = question->after;
    feed.until = question->until;
    feed.position = copy_log_position(follower->log);
    feed.from = follower->from;
    feed.to = follower->to;
    feed.wait_ms = follower->lacks.count > 0 ? 0 : question->wait_ms;
    feed.n_offers = question->offer_count;
    feed.offers = list;
    feed.n_lacks = follower->lacks.count;
    feed.lacks = lacks;
    if (!blob_feed_ask(follower->client, &feed, ret_answer, ret_problem)) {
        return false;
    }
    follower->lacks.count = 0;
    follower->last = (*ret_answer)->last;
    return true;
}

/* ---------------------------------------------------------------- the disk */

/* A full disk may have room later. Anything else ends the copying, because the store cannot say any
 * more what is durable. */
static bool check_disk(struct copy_follower *follower, enum blob_status status,
                       struct problem *ret_problem)
{
    if (status == BLOB_OK) {
        return true;
    }
    follower->has_failed = status != BLOB_DISK_FULL && status != BLOB_TOO_MANY;
    problem_set(ret_problem, "%.300s", blob_store_error(follower->store));
    return false;
}

static bool commit_or_undo(struct copy_follower *follower, enum blob_status status,
                           struct problem *ret_problem)
{
    if (status == BLOB_OK) {
        status = blob_store_commit(follower->store);
    } else {
        char error[300];
        (void)snprintf(error, sizeof error, "%s", blob_store_error(follower->store));
        blob_store_undo(follower->store);
        problem_set(ret_problem, "%s", error);
        follower->has_failed = status != BLOB_DISK_FULL && status != BLOB_TOO_MANY;
        return false;
    }
    return check_disk(follower, status, ret_problem);
}

/* ---------------------------------------------------------------- changes */

static bool read_row(const Bourse__V1__BlobChange *row, struct copy_change *ret_change)
{
    struct copy_change change = {.version = row->version,
                                 .stamp = row->stamp,
                                 .kind = (enum copy_kind)row->kind,
                                 .key_length = row->key.len,
                                 .value_length = row->value.len,
                                 .gone_s = row->has_gone_s ? row->gone_s : 1};
    if (row->key.len > sizeof change.key || row->value.len > sizeof change.value) {
        return false;
    }
    memcpy(change.key, row->key.data, row->key.len);
    if (row->value.len > 0) {
        memcpy(change.value, row->value.data, row->value.len);
    }
    *ret_change = change;
    return true;
}

static bool is_inline(const Bourse__V1__BlobChange *row, const struct copy_facts *facts)
{
    return facts->size <= BLOB_ROW_BYTES && (row->has_data || facts->size == 0) &&
           row->data.len == facts->size;
}

/* Fetches the bytes that did not come with the changes. */
static bool fetch_all(struct copy_follower *follower, const Bourse__V1__BlobChanges *answer,
                      struct problem *ret_problem)
{
    for (size_t i = 0; i < answer->n_changes; i++) {
        struct copy_change change;
        struct copy_facts facts;
        if (!read_row(answer->changes[i], &change) || !copy_store_names_blob(&change, &facts) ||
            is_inline(answer->changes[i], &facts) ||
            !copy_store_lacks(follower->store, &facts.hash)) {
            continue;
        }
        const enum copy_fetch fetched =
            copy_fetch(follower->store, follower->client, &facts.hash, facts.size, ret_problem);
        if (fetched == COPY_FETCH_LOST_LINK || fetched == COPY_FETCH_FAILED) {
            follower->has_failed = fetched == COPY_FETCH_FAILED;
            return false;
        }
        if (fetched == COPY_FETCH_REFUSED) {
            log_debug("the leader lacks the bytes of a blob: %s", ret_problem->text);
        }
    }
    return true;
}

/* Writes one change, after the bytes that came with it. */
static enum blob_status take_row(struct copy_follower *follower, const Bourse__V1__BlobChange *row)
{
    struct copy_change change;
    struct copy_facts facts;
    enum blob_status status = BLOB_OK;
    if (!read_row(row, &change)) {
        return BLOB_OK;
    }
    if (copy_store_names_blob(&change, &facts) && is_inline(row, &facts) &&
        copy_store_lacks(follower->store, &facts.hash)) {
        status = copy_fetch_put(follower->store, &facts.hash, row->data.data, row->data.len);
        status = status == BLOB_WRONG_HASH ? BLOB_OK : status; /* the blob is lost, and asked for */
    }
    return status == BLOB_OK ? copy_store_take(follower->store, &change) : status;
}

/* Takes an answer and makes it durable. The position is set with it, unless it is `keep`. */
static bool take(struct copy_follower *follower, const Bourse__V1__BlobChanges *answer,
                 uint64_t position, struct problem *ret_problem)
{
    if (!fetch_all(follower, answer, ret_problem)) {
        return false;
    }
    if (answer->n_changes == 0 && position == copy_log_position(follower->log)) {
        return true;
    }
    enum blob_status status = blob_store_begin(follower->store);
    for (size_t i = 0; i < answer->n_changes && status == BLOB_OK; i++) {
        status = take_row(follower, answer->changes[i]);
    }
    if (status == BLOB_OK && !copy_log_set_position(follower->log, position)) {
        status = BLOB_FAILED;
    }
    return commit_or_undo(follower, status, ret_problem);
}

/* ---------------------------------------------------------------- one talk with a leader */

static bool begin_anew(struct copy_follower *follower, uint64_t floor, struct problem *ret_problem)
{
    log_warning("this broker was away for longer than the leader keeps what is gone (version "
                "%" PRIu64 ", the leader has all since %" PRIu64 "): it copies all facts anew, and "
                "only the bytes that it lacks",
                copy_log_position(follower->log), floor);
    enum blob_status status = blob_store_begin(follower->store);
    status = status == BLOB_OK ? copy_store_begin_anew(follower->store) : status;
    follower->sweeps = true;
    return commit_or_undo(follower, status, ret_problem);
}

/* Forgets the versions of a history that the leader does not share. */
static bool forget_history(struct copy_follower *follower, struct problem *ret_problem)
{
    enum blob_status status = blob_store_begin(follower->store);
    if (status == BLOB_OK &&
        (!copy_log_be_alone(follower->log) || !copy_log_follow(follower->log))) {
        status = BLOB_FAILED;
    }
    return commit_or_undo(follower, status, ret_problem);
}

/* Offers what this broker has of an earlier leader, and the present one may never have seen. */
static bool offer_all(struct copy_follower *follower, uint64_t after, struct problem *ret_problem)
{
    const uint64_t until = copy_version_first(copy_version_epoch(follower->last)) - 1;
    struct copy_change *offers = malloc(LIMIT_BLOB_CHANGES * sizeof *offers);
    bool good = offers != NULL;
    int count = LIMIT_BLOB_CHANGES;
    while (good && count == LIMIT_BLOB_CHANGES && !atomic_load(&follower->ends)) {
        Bourse__V1__BlobChanges *answer = NULL;
        count = copy_log_read(follower->log, after, until, LIMIT_BLOB_CHANGES, offers);
        if (count <= 0) {
            good = count == 0;
            break;
        }
        const struct question question = {
            .after = UINT64_MAX, .offers = offers, .offer_count = (size_t)count};
        good = ask(follower, &question, &answer, ret_problem);
        after = offers[count - 1].version;
        codec_free((ProtobufCMessage **)(void *)&answer);
    }
    free(offers);
    return good;
}

/* Says where this broker is, and learns where the leader is. */
static bool greet(struct copy_follower *follower, struct problem *ret_problem)
{
    Bourse__V1__BlobChanges *answer = NULL;
    const struct question question = {.after = UINT64_MAX};
    follower->from = follower->to = 0;
    if (!ask(follower, &question, &answer, ret_problem)) {
        return false;
    }
    const uint64_t floor = answer->floor;
    const bool has_offers = answer->has_offer_after;
    const uint64_t offer_after = answer->offer_after;
    const uint64_t position = copy_log_position(follower->log);
    codec_free((ProtobufCMessage **)(void *)&answer);
    if (copy_version_epoch(position) > copy_version_epoch(follower->last)) {
        return forget_history(follower, ret_problem); /* the next turn greets again */
    }
    if (position > 0 && position < floor && !begin_anew(follower, floor, ret_problem)) {
        return false;
    }
    if (position >= floor && has_offers && !offer_all(follower, offer_after, ret_problem)) {
        return false;
    }
    log_info("copies the blobs of the leader, from version %" PRIu64 " of %" PRIu64,
             copy_log_position(follower->log), follower->last);
    follower->has_greeted = true;
    follower->is_whole = false;
    return true;
}

static void tell_whole(struct copy_follower *follower)
{
    if (!follower->is_whole && copy_log_position(follower->log) >= follower->last) {
        follower->is_whole = true;
        log_info("has all blobs of the leader, up to version %" PRIu64,
                 copy_log_position(follower->log));
    }
}

/* Sends what the leader lost, as far as it is here. */
static bool send_wanted(struct copy_follower *follower, const Bourse__V1__BlobChanges *answer,
                        struct problem *ret_problem)
{
    for (size_t i = 0; i < answer->n_wants; i++) {
        const struct hash32 hash = codec_hash(answer->wants[i]);
        switch (copy_fetch_send(follower->store, follower->client, &hash, ret_problem)) {
        case COPY_FETCH_DONE:
            log_info("the leader lacked a blob, and has it from this broker");
            break;
        case COPY_FETCH_REFUSED:
            follower->lacks.list[follower->lacks.count++] = hash;
            break;
        case COPY_FETCH_LOST_LINK:
        case COPY_FETCH_FAILED:
            return false;
        }
    }
    return true;
}

/* Takes what is new. A broker that is far behind then also has what came before to take. */
static bool take_new(struct copy_follower *follower, struct problem *ret_problem)
{
    Bourse__V1__BlobChanges *answer = NULL;
    const bool is_behind = follower->to > 0;
    const uint64_t position = copy_log_position(follower->log);
    const struct question question = {.after = is_behind ? follower->to : position,
                                      .until = UINT64_MAX,
                                      .wait_ms = is_behind ? 0 : WAIT_MS};
    if (!ask(follower, &question, &answer, ret_problem)) {
        return false;
    }
    const bool good = take(follower, answer, is_behind ? position : answer->upto, ret_problem) &&
                      send_wanted(follower, answer, ret_problem);
    if (good && is_behind) {
        follower->to = answer->upto;
    } else if (good && answer->upto < answer->last) {
        follower->from = follower->to = answer->last;
    }
    codec_free((ProtobufCMessage **)(void *)&answer);
    return good;
}

static bool take_old(struct copy_follower *follower, struct problem *ret_problem)
{
    Bourse__V1__BlobChanges *answer = NULL;
    const struct question question = {.after = copy_log_position(follower->log),
                                      .until = follower->from};
    if (follower->to == 0) {
        return true;
    }
    if (!ask(follower, &question, &answer, ret_problem)) {
        return false;
    }
    const bool is_end = answer->upto >= follower->from;
    const bool good = take(follower, answer, is_end ? follower->to : answer->upto, ret_problem);
    if (good && is_end) {
        follower->from = follower->to = 0;
    }
    codec_free((ProtobufCMessage **)(void *)&answer);
    return good;
}

/* Asks for blobs that this broker lost, a few at a time. */
static bool heal(struct copy_follower *follower, struct problem *ret_problem)
{
    struct hash32 lost[HEALED_AT_ONCE];
    uint64_t sizes[HEALED_AT_ONCE];
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns < follower->next_heal_ns) {
        return true;
    }
    follower->next_heal_ns = now_ns + HEAL_S * NS_PER_S;
    const int count =
        copy_log_lost(follower->log, &follower->healed_after, HEALED_AT_ONCE, lost, sizes);
    for (int i = 0; i < count; i++) {
        const enum copy_fetch fetched =
            copy_fetch(follower->store, follower->client, &lost[i], sizes[i], ret_problem);
        if (fetched == COPY_FETCH_LOST_LINK || fetched == COPY_FETCH_FAILED) {
            follower->has_failed = fetched == COPY_FETCH_FAILED;
            return false;
        }
    }
    follower->healed_after = count == HEALED_AT_ONCE ? lost[count - 1] : (struct hash32){{0}};
    return true;
}

/* Removes what nobody owns, and values that are gone for long. */
static bool tidy(struct copy_follower *follower, struct problem *ret_problem)
{
    size_t removed = 0;
    if (!follower->is_whole) {
        return true;
    }
    copy_log_set_time(follower->log, clock_wall_ns() / NS_PER_S);
    enum blob_status status = blob_store_begin(follower->store);
    if (status == BLOB_OK && !copy_log_trim(follower->log)) {
        status = BLOB_FAILED;
    }
    if (status == BLOB_OK && follower->sweeps) {
        status = copy_store_sweep(follower->store, SWEPT_AT_ONCE, &removed);
        follower->sweeps = removed > 0;
    }
    return commit_or_undo(follower, status, ret_problem);
}

static bool talk(struct copy_follower *follower, struct problem *ret_problem)
{
    if (!follower->has_greeted) {
        return greet(follower, ret_problem);
    }
    const bool good = take_new(follower, ret_problem) && take_old(follower, ret_problem) &&
                      heal(follower, ret_problem) && tidy(follower, ret_problem);
    if (good) {
        tell_whole(follower);
    }
    return good;
}

/* ---------------------------------------------------------------- the thread */

static void pause_for(const struct copy_follower *follower, int ms)
{
    for (; ms > 0 && !atomic_load(&follower->ends); ms -= SLICE_MS) {
        (void)poll(NULL, 0, SLICE_MS);
    }
}

static void hang_up(struct copy_follower *follower)
{
    pthread_mutex_lock(&follower->mutex);
    struct blob_client *client = follower->client;
    follower->client = NULL;
    pthread_mutex_unlock(&follower->mutex);
    blob_client_close(&client);
    follower->has_greeted = false;
}

/* Connects to the present leader. Returns false when there is none. */
static bool call(struct copy_follower *follower, struct problem *ret_problem)
{
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
    struct blob_client *client = NULL;
    pthread_mutex_lock(&follower->mutex);
    memcpy(endpoint, follower->endpoint, sizeof endpoint);
    pthread_mutex_unlock(&follower->mutex);
    if (follower->client != NULL) {
        if (strcmp(blob_client_endpoint(follower->client), endpoint) == 0) {
            return true;
        }
        hang_up(follower);
    }
    ret_problem->text[0] = '\0';
    if (endpoint[0] == '\0' || !blob_client_open(follower->config.context, endpoint,
                                                 identity_transport(follower->config.identity),
                                                 follower->config.identity, &client, ret_problem)) {
        return false;
    }
    pthread_mutex_lock(&follower->mutex);
    follower->client = client;
    if (atomic_load(&follower->ends)) {
        blob_client_interrupt(client);
    }
    pthread_mutex_unlock(&follower->mutex);
    return true;
}

static void tell_failure(struct copy_follower *follower, const struct problem *problem)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (follower->has_failed) {
        log_error("the blobs of the leader are not copied any more, until this broker starts anew: "
                  "%s",
                  problem->text);
    } else if (problem->text[0] != '\0' && !atomic_load(&follower->ends) &&
               now_ns >= follower->next_tell_ns) {
        follower->next_tell_ns = now_ns + TELL_S * NS_PER_S;
        log_warning("the blobs of the leader cannot be copied now: %s", problem->text);
    }
}

static void *run(void *argument)
{
    struct copy_follower *follower = argument;
    process_name_thread("copies");
    while (!atomic_load(&follower->ends) && !follower->has_failed) {
        struct problem problem = {.text = ""};
        if (!call(follower, &problem) || !talk(follower, &problem)) {
            hang_up(follower);
            tell_failure(follower, &problem);
            pause_for(follower, PAUSE_MS);
        }
    }
    hang_up(follower);
    return NULL;
}

static bool open_store(struct copy_follower *follower, struct problem *ret_problem)
{
    const struct blob_store_config config = {.folder = follower->config.folder,
                                             .quota_bytes = follower->config.quota_bytes,
                                             .size_bytes = follower->config.size_bytes};
    if (!blob_store_open(&config, &follower->store, ret_problem)) {
        return false;
    }
    follower->log = blob_store_copies(follower->store);
    if (copy_store_begin(follower->store, UINT64_MAX) != BLOB_OK) {
        problem_set(ret_problem, "%.300s", blob_store_error(follower->store));
        return false;
    }
    return true;
}

struct copy_follower *copy_follower_start(const struct copy_follower_config *config,
                                          struct problem *ret_problem)
{
    struct copy_follower *follower = calloc(1, sizeof *follower);
    if (follower == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    follower->config = *config;
    pthread_mutex_init(&follower->mutex, NULL);
    bool good = open_store(follower, ret_problem);
    if (good && pthread_create(&follower->thread, NULL, run, follower) != 0) {
        problem_set(ret_problem, "no thread is left to copy blobs");
        good = false;
    }
    if (!good) {
        blob_store_close(&follower->store);
        pthread_mutex_destroy(&follower->mutex);
        free(follower);
        return NULL;
    }
    return follower;
}

void copy_follower_point(struct copy_follower *follower, const char *endpoint)
{
    pthread_mutex_lock(&follower->mutex);
    (void)snprintf(follower->endpoint, sizeof follower->endpoint, "%s", endpoint);
    pthread_mutex_unlock(&follower->mutex);
}

void copy_follower_stop(struct copy_follower **self)
{
    struct copy_follower *follower = *self;
    if (follower != NULL) {
        pthread_mutex_lock(&follower->mutex);
        atomic_store(&follower->ends, true);
        if (follower->client != NULL) {
            blob_client_interrupt(follower->client);
        }
        pthread_mutex_unlock(&follower->mutex);
        pthread_join(follower->thread, NULL);
        blob_store_close(&follower->store);
        pthread_mutex_destroy(&follower->mutex);
        free(follower);
        *self = NULL;
    }
}
