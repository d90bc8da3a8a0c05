#include "broker/answer/follow.h"

#include "base/checked.h"
#include "broker/answer/listings.h"
#include "broker/core/arena.h"
#include "exchange/view/feed.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOLLOW_BYTES = 64 << 10, /* the most bytes of one answer, to bound the core's time */
    FIELD_BYTES = 8          /* the most bytes of a row's tag and length */
};

struct waiter {
    uint64_t session;
    struct id128 id;
    uint64_t after;
    int64_t until_ns;
};

struct follow {
    uint64_t feed;
    struct waiter waiters[FOLLOW_WAITING_MAX];
    size_t count;
    size_t at;        /* the waiter with whom follow_next goes on */
    int64_t due_ns;   /* when a change, or the end of a wait, is due */
    uint64_t noticed; /* newest change that waiters know or will soon be told */
    /* The answer with the changes after `last_after` up to `last_through`; most followers ask for
     * it. */
    struct outgoing *last;
    uint64_t last_after;
    uint64_t last_through;
};

struct follow *follow_create(uint64_t feed)
{
    struct follow *follow = calloc(1, sizeof *follow);
    if (follow != NULL) {
        follow->feed = feed;
        follow->due_ns = INT64_MAX;
    }
    return follow;
}

void follow_destroy(struct follow **self)
{
    struct follow *follow = *self;
    if (follow != NULL) {
        outgoing_destroy(&follow->last);
        free(follow);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- one answer */

struct rows {
    void **items;
    size_t count;
};

struct answer {
    struct arena arena;
    struct rows asks, needs, bids, trades, bars;
    size_t bytes;
    bool is_out_of_memory;
};

static void *take(struct answer *answer, size_t count, size_t size)
{
    void *taken = arena_take(&answer->arena, count, size);
    answer->is_out_of_memory = answer->is_out_of_memory || taken == NULL;
    return taken;
}

static bool rows_open(struct answer *answer, struct rows *rows)
{
    rows->items = take(answer, LIMIT_ROWS, sizeof *rows->items);
    return rows->items != NULL;
}

/* Returns false when the answer is full. */
static bool add_row(struct answer *answer, struct rows *rows, ProtobufCMessage *row)
{
    const size_t bytes = FIELD_BYTES + protobuf_c_message_get_packed_size(row);
    if (rows->count == LIMIT_ROWS || answer->bytes + bytes > FOLLOW_BYTES) {
        return false;
    }
    answer->bytes += bytes;
    rows->items[rows->count++] = row;
    return true;
}

/* Copies the text, because the change lives only as long as its visit. Returns NULL when memory is
 * short. */
static char *keep_text(struct answer *answer, const char *text)
{
    char *kept = take(answer, ATTRIBUTE_TEXT_SIZE, 1);
    if (kept != NULL) {
        memcpy(kept, text, ATTRIBUTE_TEXT_SIZE);
    }
    return kept;
}

static bool add_asks(struct answer *answer, const struct exchange_level *level)
{
    Bourse__V1__MarketAsks *row = take(answer, 1, sizeof *row);
    char *instrument = keep_text(answer, level->instrument);
    if (row == NULL || instrument == NULL) {
        return false;
    }
    bourse__v1__market_asks__init(row);
    row->instrument = instrument;
    row->price_micro = level->price_micro;
    row->orders = level->orders;
    row->slots = level->slots;
    row->free = level->free;
    row->has_limited = level->limited > 0;
    row->limited = level->limited;
    row->has_timed = level->timed > 0;
    row->timed = level->timed;
    row->has_daily = level->daily > 0;
    row->daily = level->daily;
    return add_row(answer, &answer->asks, &row->base);
}

/* Adds the requirement of a level of bids. An answer holds each requirement once, under its
 * number. */
static bool add_needs(struct answer *answer, const struct exchange_level *level)
{
    for (size_t i = 0; i < answer->needs.count; i++) {
        const Bourse__V1__BookNeeds *known = answer->needs.items[i];
        if (known->number == level->needs_number) {
            return true;
        }
    }
    Bourse__V1__BookNeeds *row = take(answer, 1, sizeof *row);
    if (row == NULL) {
        return false;
    }
    bourse__v1__book_needs__init(row);
    row->number = level->needs_number;
    row->has_rate = level->rate != RATE_NONE;
    row->rate = level->rate;
    row->needs = codec_requirement_to_wire(level->needs);
    answer->is_out_of_memory = answer->is_out_of_memory || row->needs == NULL;
    if (row->needs == NULL || !add_row(answer, &answer->needs, &row->base)) {
        codec_requirement_free(&row->needs);
        return false;
    }
    return true;
}

static bool add_bids(struct answer *answer, const struct exchange_level *level)
{
    Bourse__V1__MarketBids *row = take(answer, 1, sizeof *row);
    if (row == NULL || (level->needs != NULL && !add_needs(answer, level))) {
        return false;
    }
    bourse__v1__market_bids__init(row);
    row->needs = level->needs_number;
    row->limit_micro = level->price_micro;
    row->orders = level->orders;
    row->slots = level->slots;
    return add_row(answer, &answer->bids, &row->base);
}

static bool add_trade(struct answer *answer, const struct exchange_trade *trade)
{
    Bourse__V1__MarketTrade *row = take(answer, 1, sizeof *row);
    char *instrument = keep_text(answer, trade->instrument);
    if (row == NULL || instrument == NULL) {
        return false;
    }
    bourse__v1__market_trade__init(row);
    row->index = trade->index;
    row->has_entry = trade->entry > 0;
    row->entry = trade->entry;
    row->time_ms = trade->time_ns / NS_PER_MS;
    row->instrument = instrument;
    row->slots = trade->slots;
    row->price_micro = trade->price_micro;
    return add_row(answer, &answer->trades, &row->base);
}

static bool add_bar(struct answer *answer, const struct exchange_bar *bar)
{
    Bourse__V1__MarketBar *row = take(answer, 1, sizeof *row);
    char *instrument = keep_text(answer, bar->instrument);
    if (row == NULL || instrument == NULL) {
        return false;
    }
    listings_bar(bar, instrument, row);
    return add_row(answer, &answer->bars, &row->base);
}

static bool add_change(void *context, const struct exchange_change *change)
{
    struct answer *answer = context;
    switch (change->type) {
    case CHANGE_ASKS:
        return add_asks(answer, &change->level);
    case CHANGE_BIDS:
        return add_bids(answer, &change->level);
    case CHANGE_TRADE:
        return add_trade(answer, &change->trade);
    case CHANGE_BAR:
        return add_bar(answer, &change->bar);
    case CHANGE_BANDS:
        return true; /* every answer has the bands */
    }
    return false;
}

static bool answer_open(struct answer *answer)
{
    *answer = (struct answer){0};
    return rows_open(answer, &answer->asks) && rows_open(answer, &answer->needs) &&
           rows_open(answer, &answer->bids) && rows_open(answer, &answer->trades) &&
           rows_open(answer, &answer->bars);
}

static void answer_close(struct answer *answer)
{
    for (size_t i = 0; i < answer->needs.count; i++) {
        Bourse__V1__BookNeeds *needs = answer->needs.items[i];
        codec_requirement_free(&needs->needs);
    }
    arena_fini(&answer->arena);
}

static struct outgoing *answer_send(struct answer *answer, const struct exchange *exchange,
                                    Bourse__V1__MarketReply *reply)
{
    if (answer->is_out_of_memory) {
        return NULL;
    }
    reply->index = exchange_index(exchange);
    reply->log_time_ms = exchange_log_time_ns(exchange) / NS_PER_MS;
    const struct exchange_bands bands = exchange_bands_now(exchange);
    reply->has_least_micro = reply->has_most_micro = reply->has_notional_micro = true;
    reply->least_micro = bands.least_micro;
    reply->most_micro = bands.most_micro;
    reply->notional_micro = bands.notional_micro;
    reply->n_asks = answer->asks.count;
    reply->asks = (Bourse__V1__MarketAsks **)(void *)answer->asks.items;
    reply->n_needs = answer->needs.count;
    reply->needs = (Bourse__V1__BookNeeds **)(void *)answer->needs.items;
    reply->n_bids = answer->bids.count;
    reply->bids = (Bourse__V1__MarketBids **)(void *)answer->bids.items;
    reply->n_trades = answer->trades.count;
    reply->trades = (Bourse__V1__MarketTrade **)(void *)answer->trades.items;
    reply->n_bars = answer->bars.count;
    reply->bars = (Bourse__V1__MarketBar **)(void *)answer->bars.items;
    return outgoing_message(OUTGOING_REPLY, MESSAGE_MARKET_REPLY, &reply->base);
}

/* Answers with present levels from `place` on, for a follower that has the changes up to
 * `after`. */
static struct outgoing *book_from(const struct follow *follow, const struct exchange *exchange,
                                  uint64_t after, uint32_t place, bool is_anew)
{
    struct answer answer;
    struct outgoing *outgoing = NULL;
    if (answer_open(&answer)) {
        Bourse__V1__MarketReply reply = BOURSE__V1__MARKET_REPLY__INIT;
        reply.feed = follow->feed;
        reply.after = reply.through = after;
        reply.has_anew = reply.anew = is_anew;
        reply.has_next =
            exchange_feed_book(exchange, place, add_change, &answer, &reply.next) == LISTING_MORE;
        reply.has_more = reply.more = after < exchange_feed_number(exchange);
        outgoing = answer_send(&answer, exchange, &reply);
    }
    answer_close(&answer);
    return outgoing;
}

static struct outgoing *changes_after(const struct follow *follow, const struct exchange *exchange,
                                      uint64_t after)
{
    struct answer answer;
    struct outgoing *outgoing = NULL;
    if (answer_open(&answer)) {
        Bourse__V1__MarketReply reply = BOURSE__V1__MARKET_REPLY__INIT;
        reply.feed = follow->feed;
        reply.after = after;
        reply.has_more = reply.more = exchange_feed_changes(exchange, after, add_change, &answer,
                                                            &reply.through) == LISTING_MORE;
        outgoing = answer_send(&answer, exchange, &reply);
    }
    answer_close(&answer);
    return outgoing;
}

static struct outgoing *copy_of(const struct outgoing *from)
{
    struct outgoing *copy = outgoing_create(OUTGOING_REPLY);
    if (copy == NULL) {
        return NULL;
    }
    copy->type = from->type;
    copy->body = malloc(from->length);
    copy->length = from->length;
    if (copy->body == NULL) {
        outgoing_destroy(&copy);
        return NULL;
    }
    memcpy(copy->body, from->body, from->length);
    return copy;
}

static struct outgoing *news(struct follow *follow, const struct exchange *exchange, uint64_t after)
{
    const uint64_t last = exchange_feed_number(exchange);
    if (!exchange_feed_reaches(exchange, after)) {
        return book_from(follow, exchange, last, 0, true);
    }
    if (after == last) {
        return changes_after(follow, exchange, after);
    }
    if (follow->last == NULL || follow->last_after != after || follow->last_through != last) {
        outgoing_destroy(&follow->last);
        follow->last = changes_after(follow, exchange, after);
        follow->last_after = after;
        follow->last_through = last;
    }
    return follow->last == NULL ? NULL : copy_of(follow->last);
}

/* ---------------------------------------------------------------- waiting followers */

static struct waiter *waiter_of(struct follow *follow, uint64_t session)
{
    for (size_t i = 0; i < follow->count; i++) {
        if (follow->waiters[i].session == session) {
            return &follow->waiters[i];
        }
    }
    return NULL;
}

static void drop(struct follow *follow, struct waiter *waiter)
{
    const size_t place = (size_t)(waiter - follow->waiters);
    *waiter = follow->waiters[--follow->count];
    /* The last waiter has moved to `place`. If follow_next has passed that place, it begins
     * again. */
    follow->at = place < follow->at ? 0 : follow->at;
}

void follow_forget(struct follow *follow, uint64_t session)
{
    struct waiter *waiter = waiter_of(follow, session);
    if (waiter != NULL) {
        drop(follow, waiter);
    }
}

static struct outgoing *let_go(struct follow *follow, const struct exchange *exchange,
                               struct waiter *waiter)
{
    const struct waiter gone = *waiter;
    drop(follow, waiter);
    return outgoing_address(news(follow, exchange, gone.after), gone.session, &gone.id);
}

struct outgoing *follow_answer(struct follow *follow, const struct exchange *exchange,
                               const struct request *request, int64_t now_ns,
                               struct outgoing **ret_former)
{
    const Bourse__V1__MarketRequest *body = (const void *)request->translation.body;
    const uint64_t last = exchange_feed_number(exchange);
    const struct id128 *id = &request->envelope.id;
    struct waiter *former = waiter_of(follow, request->session);
    *ret_former = NULL;
    if (former != NULL && id128_equal(&former->id, id)) {
        drop(follow, former); /* the same request came again, on another connection */
    } else if (former != NULL) {
        *ret_former = let_go(follow, exchange, former);
    }
    if (!body->has_feed || body->feed != follow->feed || !body->has_after ||
        !exchange_feed_reaches(exchange, body->after)) {
        return outgoing_address(book_from(follow, exchange, last, 0, true), request->session, id);
    }
    if (body->has_place) {
        return outgoing_address(book_from(follow, exchange, body->after, body->place, false),
                                request->session, id);
    }
    if (!body->has_wait_ms || body->wait_ms == 0) {
        return outgoing_address(news(follow, exchange, body->after), request->session, id);
    }
    if (follow->count == FOLLOW_WAITING_MAX) {
        struct outgoing *refusal = outgoing_refuse(request, REJECT_BUSY, "", 0, 0);
        return outgoing_address(refusal, request->session, id);
    }
    const struct waiter waiter = {.session = request->session,
                                  .id = *id,
                                  .after = body->after,
                                  .until_ns = now_ns + body->wait_ms * NS_PER_MS};
    follow->waiters[follow->count++] = waiter;
    follow->noticed = body->after < last ? body->after : follow->noticed;
    follow->due_ns = waiter.until_ns < follow->due_ns ? waiter.until_ns : follow->due_ns;
    follow_notice(follow, exchange, now_ns);
    return NULL;
}

void follow_notice(struct follow *follow, const struct exchange *exchange, int64_t now_ns)
{
    const uint64_t last = exchange_feed_number(exchange);
    if (last != follow->noticed && follow->count > 0) {
        const int64_t due_ns = now_ns + FOLLOW_INTERVAL_NS;
        follow->due_ns = due_ns < follow->due_ns ? due_ns : follow->due_ns;
        follow->noticed = last;
    }
}

int64_t follow_due_ns(const struct follow *follow)
{
    return follow->due_ns;
}

struct outgoing *follow_next(struct follow *follow, const struct exchange *exchange, int64_t now_ns)
{
    if (now_ns < follow->due_ns) {
        return NULL;
    }
    const uint64_t last = exchange_feed_number(exchange);
    int64_t due_ns = INT64_MAX;
    for (; follow->at < follow->count; follow->at++) {
        struct waiter *waiter = &follow->waiters[follow->at];
        if (waiter->after != last || waiter->until_ns <= now_ns) {
            return let_go(follow, exchange, waiter);
        }
    }
    follow->at = 0;
    for (size_t i = 0; i < follow->count; i++) {
        const int64_t until_ns = follow->waiters[i].until_ns;
        due_ns = until_ns < due_ns ? until_ns : due_ns;
    }
    follow->due_ns = due_ns;
    follow->noticed = last;
    return NULL;
}
