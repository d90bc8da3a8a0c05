/* The blob port answers the brokers that copy its blobs here, and keeps promises back until they
 * have.
 *
 * Another broker is whoever has the market's own connection key. It may read every blob, and bring
 * back those that are lost. It is one account among others when it comes to turns, so that one that
 * has much to copy leaves time to everybody else. */
#include "broker/blob/port/blobs_internal.h"

#include "base/checked.h"
#include "broker/blob/blob_recover.h"
#include "broker/copies/copy_log.h"
#include "broker/copies/copy_store.h"
#include "broker/fatal.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WARNING_S = 60 };

bool blobs_copies_start(struct blobs *blobs)
{
    struct copying *copying = &blobs->copying;
    copying->peer = (struct directory_account){
        .number = BLOB_NOBODY, .roles = ROLE_CONSUMER | ROLE_PROVIDER, .name = "other brokers"};
    if (blobs->config.self == NULL) {
        return true;
    }
    copying->began_ns = clock_monotonic_ns();
    copying->peer.transport = *blobs->config.self;
    copying->promises = calloc(BLOBS_PROMISES_MAX, sizeof *copying->promises);
    return copying->promises != NULL;
}

void blobs_copies_stop(struct blobs *blobs)
{
    for (size_t i = 0; i < blobs->copying.promise_count; i++) {
        outgoing_destroy(&blobs->copying.promises[i].outgoing);
    }
    free(blobs->copying.promises);
}

const struct directory_account *blobs_sender(const struct blobs *blobs, const struct key32 *key)
{
    return blobs->config.self != NULL && key32_equal(key, blobs->config.self)
               ? &blobs->copying.peer
               : directory_transport(blobs->config.directory, key);
}

bool blobs_is_peer(const struct blobs *blobs, const struct directory_account *account)
{
    return account == &blobs->copying.peer;
}

/* ---------------------------------------------------------------- promises */

static uint64_t last_version(const struct blobs *blobs)
{
    return copy_log_last(blob_store_copies(blobs->config.store));
}

static unsigned others_needed(const struct blobs *blobs)
{
    return blobs->config.self == NULL || blobs->config.copies < 2 ? 0 : blobs->config.copies - 1;
}

static bool has_enough(const struct blobs *blobs, uint64_t version)
{
    const unsigned needed = others_needed(blobs);
    return needed == 0 || copy_peers_have(&blobs->copying.peers, version, needed);
}

bool blobs_are_copied(const struct blobs *blobs)
{
    return has_enough(blobs, last_version(blobs));
}

void blobs_promise(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing)
{
    struct copying *copying = &blobs->copying;
    outgoing = blobs_checked(outgoing);
    if (copying->promise_count == BLOBS_PROMISES_MAX) {
        outgoing_destroy(&outgoing);
        blobs_send_to(blobs, to,
                      outgoing_reject(0, &to->id, REJECT_BUSY, "copies", BLOBS_PROMISES_MAX + 1,
                                      BLOBS_PROMISES_MAX));
        return;
    }
    copying->promises[copying->promise_count++] =
        (struct promise){.version = last_version(blobs),
                         .due_ns = clock_monotonic_ns() + BLOBS_PROMISE_MS * NS_PER_MS,
                         .to = *to,
                         .outgoing = outgoing};
}

/* The blob is on this disk, and its sender will ask again: nothing is lost by the refusal. */
static void break_promise(struct blobs *blobs, struct promise *promise, int64_t now_ns)
{
    struct copying *copying = &blobs->copying;
    char who[LIMIT_TEXT_BYTES / 2];
    copy_peers_text(&copying->peers, promise->version, now_ns, who, sizeof who);
    if (now_ns >= copying->next_warning_ns) {
        copying->next_warning_ns = now_ns + WARNING_S * NS_PER_S;
        log_warning("a blob is not acknowledged: `cluster.copies` is %u, and too few brokers have "
                    "copied it within %d ms: %s. Start the brokers that are away, or set copies: 1 "
                    "and restart this one",
                    blobs->config.copies, BLOBS_PROMISE_MS, who);
    }
    outgoing_destroy(&promise->outgoing);
    blobs_send_to(blobs, &promise->to,
                  outgoing_not_copied(&promise->to.id, blobs->config.copies, who));
}

static void settle_promises(struct blobs *blobs, int64_t now_ns)
{
    struct copying *copying = &blobs->copying;
    size_t kept = 0;
    for (size_t i = 0; i < copying->promise_count; i++) {
        struct promise *promise = &copying->promises[i];
        if (has_enough(blobs, promise->version)) {
            blobs_send_to(blobs, &promise->to, promise->outgoing);
        } else if (now_ns >= promise->due_ns) {
            break_promise(blobs, promise, now_ns);
        } else {
            copying->promises[kept++] = *promise;
        }
    }
    copying->promise_count = kept;
}

/* ---------------------------------------------------------------- answers to other brokers */

struct page {
    struct copy_change changes[LIMIT_BLOB_CHANGES];
    Bourse__V1__BlobChange rows[LIMIT_BLOB_CHANGES];
    Bourse__V1__BlobChange *list[LIMIT_BLOB_CHANGES];
    struct hash32 wants[LIMIT_BLOB_WANTS];
    ProtobufCBinaryData wanted[LIMIT_BLOB_WANTS];
    uint8_t data[BLOBS_FEED_BYTES + LIMIT_BLOB_INLINE_BYTES];
    size_t data_bytes;
};

/* Adds the bytes of a small blob. One that cannot be read comes without them. */
static void add_data(struct blobs *blobs, struct page *page, Bourse__V1__BlobChange *row,
                     const struct copy_facts *facts)
{
    size_t length = 0;
    uint64_t size = 0;
    uint8_t *place = page->data + page->data_bytes;
    if (facts->size <= LIMIT_BLOB_INLINE_BYTES &&
        blob_store_get(blobs->config.store, &facts->hash, 0, LIMIT_BLOB_INLINE_BYTES, place,
                       &length, &size) == BLOB_OK &&
        length == size) {
        row->has_data = true;
        row->data = (ProtobufCBinaryData){length, place};
        page->data_bytes += length;
    }
}

static void add_row(struct blobs *blobs, struct page *page, size_t at)
{
    struct copy_change *change = &page->changes[at];
    Bourse__V1__BlobChange *row = &page->rows[at];
    struct copy_facts facts;
    bourse__v1__blob_change__init(row);
    row->version = change->version;
    row->stamp = change->stamp;
    row->kind = change->kind;
    row->key = (ProtobufCBinaryData){change->key_length, change->key};
    row->value = (ProtobufCBinaryData){change->value_length, change->value};
    row->has_gone_s = change->gone_s > 0;
    row->gone_s = change->gone_s;
    if (copy_store_names_blob(change, &facts)) {
        add_data(blobs, page, row, &facts);
    }
    page->list[at] = row;
}

static void read_failed(struct blobs *blobs)
{
    fatal("blobs.db cannot be read: %s", blob_store_error(blobs->config.store));
}

/* Adds changes above `after`, and returns the version that they reach. */
static uint64_t add_changes(struct blobs *blobs, struct page *page, uint64_t after, uint64_t until,
                            Bourse__V1__BlobChanges *answer)
{
    const uint64_t last = last_version(blobs);
    const uint64_t end = until < last ? until : last;
    if (after >= end) {
        return after;
    }
    const int count = copy_log_read(blob_store_copies(blobs->config.store), after, end,
                                    LIMIT_BLOB_CHANGES, page->changes);
    if (count < 0) {
        read_failed(blobs);
    }
    while (answer->n_changes < (size_t)count && page->data_bytes < BLOBS_FEED_BYTES) {
        add_row(blobs, page, answer->n_changes++);
    }
    answer->changes = page->list;
    const bool is_end = answer->n_changes == (size_t)count && count < LIMIT_BLOB_CHANGES;
    return is_end ? end : page->changes[answer->n_changes - 1].version;
}

/* Adds lost blobs that the follower may have. Each answer goes on after the former one. */
static void add_wants(struct blobs *blobs, struct page *page, size_t place,
                      Bourse__V1__BlobChanges *answer)
{
    struct copying *copying = &blobs->copying;
    struct copy_peers alone = {.count = 1};
    uint64_t sizes[LIMIT_BLOB_WANTS];
    struct hash32 lost[LIMIT_BLOB_WANTS];
    const int count = copy_log_lost(blob_store_copies(blobs->config.store), &copying->wanted_after,
                                    LIMIT_BLOB_WANTS, lost, sizes);
    if (count < 0) {
        read_failed(blobs);
    }
    alone.list[0] = copying->peers.list[place];
    for (int i = 0; i < count; i++) {
        if (copy_peers_may_have(&alone, &lost[i], clock_monotonic_ns())) {
            struct hash32 *want = &page->wants[answer->n_wants];
            *want = lost[i];
            page->wanted[answer->n_wants++] =
                (ProtobufCBinaryData){sizeof want->bytes, want->bytes};
        }
    }
    answer->wants = page->wanted;
    copying->wanted_after = count == LIMIT_BLOB_WANTS ? lost[count - 1] : (struct hash32){{0}};
}

/* Answers now. With `must`, also when there is nothing to say. Returns false when it did not. */
static bool tell_news(struct blobs *blobs, const struct claim *to, size_t place, uint64_t after,
                      uint64_t until, bool must)
{
    struct copy_log *log = blob_store_copies(blobs->config.store);
    Bourse__V1__BlobChanges answer = BOURSE__V1__BLOB_CHANGES__INIT;
    struct page *page = malloc(sizeof *page);
    if (page == NULL) {
        fatal("out of memory");
    }
    page->data_bytes = 0;
    answer.upto = add_changes(blobs, page, after, until, &answer);
    answer.last = last_version(blobs);
    answer.floor = copy_log_floor(log);
    add_wants(blobs, page, place, &answer);
    const uint64_t epoch = copy_version_epoch(blobs->copying.peers.list[place].position);
    if (!copy_log_offers_after(log, epoch, &answer.offer_after)) {
        read_failed(blobs);
    }
    answer.has_offer_after = answer.offer_after != UINT64_MAX;
    const bool says = must || answer.n_changes > 0 || answer.n_wants > 0;
    blobs->steps += (uint64_t)answer.n_changes * 2 * BLOBS_LOOK_STEPS + BLOBS_LOOK_STEPS;
    if (says) {
        blobs_send_to(blobs, to,
                      outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_CHANGES, &answer.base));
    }
    free(page);
    return says;
}

/* ---------------------------------------------------------------- questions of other brokers */

static bool read_offer(const Bourse__V1__BlobChange *row, struct copy_change *ret_change)
{
    struct copy_change change = {.kind = (enum copy_kind)row->kind,
                                 .version = row->version,
                                 .stamp = row->stamp,
                                 .key_length = row->key.len,
                                 .value_length = row->value.len};
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

/* Takes in what an earlier leader had told the sender and not this broker. Outputs that results
 * have named meanwhile become their owners' at once. */
static void take_offers(struct blobs *blobs, const Bourse__V1__BlobFeed *body)
{
    struct blob_store *store = blobs->config.store;
    bool has_pending = false;
    size_t taken = 0;
    struct problem problem;
    blobs_begin_batch(blobs);
    for (size_t i = 0; i < body->n_offers; i++) {
        struct copy_change offer;
        bool is_news = false;
        if (read_offer(body->offers[i], &offer) &&
            copy_store_accept(store, &offer, &is_news) == BLOB_FAILED) {
            fatal("blobs.db cannot be written: %s", blob_store_error(store));
        }
        taken += is_news;
        has_pending = has_pending || (is_news && offer.kind == COPY_PENDING);
    }
    blobs_end_batch(blobs);
    blobs->steps += (uint64_t)body->n_offers * 4 * BLOBS_LOOK_STEPS;
    if (has_pending && !blob_recover(store, blobs->config.database, NULL, &problem)) {
        log_warning("%s", problem.text);
    }
    if (taken > 0) {
        log_info("%s knew %zu changes of blobs that this broker did not", body->broker, taken);
    }
}

static size_t hear(struct blobs *blobs, const Bourse__V1__BlobFeed *body)
{
    struct copying *copying = &blobs->copying;
    bool is_new = false;
    const size_t place = copy_peers_hear(&copying->peers, body->broker, body->position, body->from,
                                         body->to, clock_monotonic_ns(), &is_new);
    if (is_new) {
        log_info("%s copies the blobs of this broker", body->broker);
        copying->feeds[place].waits = false;
    }
    for (size_t i = 0; i < body->n_lacks; i++) {
        const struct hash32 hash = codec_hash(body->lacks[i]);
        copy_peers_lack(&copying->peers, place, &hash);
    }
    return place;
}

bool blobs_feed(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobFeed *body)
{
    const size_t place = hear(blobs, body);
    const struct claim to = blobs_claim_of(asked);
    blobs_end_batch(blobs); /* only what is durable is told */
    if (body->n_offers > 0) {
        take_offers(blobs, body);
    }
    settle_promises(blobs, clock_monotonic_ns());
    if (!tell_news(blobs, &to, place, body->after, body->until, body->wait_ms == 0)) {
        blobs->copying.feeds[place] =
            (struct feed){.waits = true,
                          .to = to,
                          .after = body->after,
                          .until = body->until,
                          .due_ns = clock_monotonic_ns() + body->wait_ms * NS_PER_MS};
    }
    return true;
}

void blobs_copies_serve(struct blobs *blobs)
{
    struct copying *copying = &blobs->copying;
    const int64_t now_ns = clock_monotonic_ns();
    const uint64_t last = blobs->config.self == NULL ? 0 : last_version(blobs);
    const bool has_unread = blobs->has_unread;
    blobs->has_unread = false;
    for (size_t i = 0; i < copying->peers.count; i++) {
        struct feed *feed = &copying->feeds[i];
        const bool has_news = last > feed->after && feed->after < feed->until;
        if (feed->waits && (has_news || has_unread || now_ns >= feed->due_ns)) {
            feed->waits =
                !tell_news(blobs, &feed->to, i, feed->after, feed->until, now_ns >= feed->due_ns);
        }
    }
    settle_promises(blobs, now_ns);
}

void blobs_copies_trim(struct blobs *blobs)
{
    if (blobs->config.self == NULL) {
        return;
    }
    struct copy_log *log = blob_store_copies(blobs->config.store);
    copy_log_set_time(log, clock_wall_ns() / NS_PER_S);
    blobs_end_batch(blobs);
    blobs_begin_batch(blobs);
    if (!copy_log_trim(log)) {
        log_warning("blobs.db keeps what is gone: the next second tries again");
    }
    blobs_end_batch(blobs);
}

long blobs_copies_wait_ms(const struct blobs *blobs, long most_ms)
{
    const struct copying *copying = &blobs->copying;
    const int64_t now_ns = clock_monotonic_ns();
    int64_t due_ns = now_ns + most_ms * NS_PER_MS;
    for (size_t i = 0; i < copying->peers.count; i++) {
        const struct feed *feed = &copying->feeds[i];
        due_ns = feed->waits && feed->due_ns < due_ns ? feed->due_ns : due_ns;
    }
    if (copying->promise_count > 0 && copying->promises[0].due_ns < due_ns) {
        due_ns = copying->promises[0].due_ns;
    }
    return due_ns <= now_ns ? 0 : (long)((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

bool blobs_copies_may_bring(const struct blobs *blobs, const struct asked *asked,
                            const struct hash32 *hash, bool is_known)
{
    const struct copying *copying = &blobs->copying;
    const int64_t now_ns = clock_monotonic_ns();
    if (blobs->config.self == NULL || blobs_is_peer(blobs, asked->account)) {
        return false;
    }
    return now_ns - copying->began_ns < BLOBS_YOUNG_MS * NS_PER_MS ||
           (is_known && copy_peers_may_have(&copying->peers, hash, now_ns));
}
