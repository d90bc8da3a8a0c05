#include "consumer/market/following.h"

#include "base/array.h"
#include "consumer/client/names.h"
#include "formats/requirement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDS_TEXT_SIZE = 16384 }; /* longer than any requirement's text */

struct level {
    struct bourse_depth depth; /* the level owns `of` */
    uint32_t needs;            /* number of a bid's needs */
};

struct levels {
    struct level *items;
    size_t count, capacity;
};

struct following {
    bool has_begun, has_place, is_anew, was_told;
    uint64_t feed, after;
    uint32_t place;
    uint64_t index;
    int64_t log_time_ms;
    struct levels book;    /* in order */
    struct levels changes; /* in the order of arrival */
    struct bourse_trade *trades;
    size_t trade_count, trade_capacity;
    struct bourse_bands bands, told; /* bands now, and in the last news */
    struct bourse_depth *shown;      /* the book, then the changes; news points to it */
};

struct following *following_create(void)
{
    return calloc(1, sizeof(struct following));
}

static void levels_clear(struct levels *levels)
{
    for (size_t i = 0; i < levels->count; i++) {
        free((char *)(uintptr_t)levels->items[i].depth.of); /* owned */
    }
    levels->count = 0;
}

void following_destroy(struct following **self)
{
    struct following *following = *self;
    if (following != NULL) {
        levels_clear(&following->book);
        levels_clear(&following->changes);
        free(following->book.items);
        free(following->changes.items);
        free(following->trades);
        free(following->shown);
        free(following);
        *self = NULL;
    }
}

void following_ask(const struct following *following, Bourse__V1__MarketRequest *ret_request)
{
    bourse__v1__market_request__init(ret_request);
    ret_request->has_feed = ret_request->has_after = following->has_begun;
    ret_request->feed = following->feed;
    ret_request->after = following->after;
    ret_request->has_place = following->has_place;
    ret_request->place = following->place;
}

/* ---------------------------------------------------------------- levels */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Asks come by instrument, cheapest first, then bids by the number of their needs, dearest
 * first. */
static int compare_levels(const struct level *a, const struct level *b)
{
    if (a->depth.is_bid != b->depth.is_bid) {
        return a->depth.is_bid ? 1 : -1;
    }
    int order =
        a->depth.is_bid ? compare_numbers(a->needs, b->needs) : strcmp(a->depth.of, b->depth.of);
    if (order != 0) {
        return order;
    }
    order = compare_numbers(a->depth.price_micro, b->depth.price_micro);
    return a->depth.is_bid ? -order : order;
}

/* Returns the first level that does not come before `level`. */
static size_t place_of(const struct levels *levels, const struct level *level)
{
    size_t low = 0;
    size_t high = levels->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_levels(&levels->items[middle], level) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Inserts a copy of the level. Returns false when memory is short or there are too many levels. */
static bool insert(struct levels *levels, size_t at, const struct level *level)
{
    struct level *items =
        levels->count == FOLLOWING_LEVELS_MAX
            ? NULL
            : array_with_room(levels->items, levels->count, &levels->capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    levels->items = items;
    char *of = strdup(level->depth.of);
    if (of == NULL) {
        return false;
    }
    memmove(&levels->items[at + 1], &levels->items[at],
            (levels->count - at) * sizeof *levels->items);
    levels->items[at] = *level;
    levels->items[at].depth.of = of;
    levels->count++;
    return true;
}

static void take_out(struct levels *levels, size_t at)
{
    free((char *)(uintptr_t)levels->items[at].depth.of); /* owned */
    levels->count--;
    memmove(&levels->items[at], &levels->items[at + 1],
            (levels->count - at) * sizeof *levels->items);
}

/* `level` gives the present state of a level. A vanished level that was never in the book is no
 * news. */
static bool take_level(struct following *following, struct level *level)
{
    struct levels *book = &following->book;
    const size_t at = place_of(book, level);
    const bool is_known = at < book->count && compare_levels(&book->items[at], level) == 0;
    if (level->depth.orders == 0 && !is_known) {
        return true;
    }
    if (level->depth.of[0] == '\0' && is_known) {
        level->depth.of = book->items[at].depth.of;     /* needs of a vanished bid */
        level->depth.rate = book->items[at].depth.rate; /* unit of its limit */
    }
    if (!insert(&following->changes, following->changes.count, level)) {
        return false;
    }
    if (level->depth.orders == 0) {
        take_out(book, at);
        return true;
    }
    if (!is_known) {
        return insert(book, at, level);
    }
    const char *of = book->items[at].depth.of;
    book->items[at].depth = level->depth;
    book->items[at].depth.of = of;
    return true;
}

static bool take_asks(struct following *following, const Bourse__V1__MarketReply *reply)
{
    for (size_t i = 0; i < reply->n_asks; i++) {
        const Bourse__V1__MarketAsks *asks = reply->asks[i];
        struct level level = {.depth = {.of = asks->instrument,
                                        .price_micro = asks->price_micro,
                                        .orders = asks->orders,
                                        .slots = asks->slots,
                                        .free = asks->free,
                                        .limited = asks->has_limited ? asks->limited : 0,
                                        .timed = asks->has_timed ? asks->timed : 0,
                                        .daily = asks->has_daily ? asks->daily : 0}};
        if (!take_level(following, &level)) {
            return false;
        }
    }
    return true;
}

static const Bourse__V1__BookNeeds *needs_numbered(const Bourse__V1__MarketReply *reply,
                                                   uint32_t number)
{
    for (size_t i = 0; i < reply->n_needs; i++) {
        if (reply->needs[i]->number == number) {
            return reply->needs[i];
        }
    }
    return NULL;
}

static enum following_status take_bids(struct following *following,
                                       const Bourse__V1__MarketReply *reply)
{
    char text[NEEDS_TEXT_SIZE];
    for (size_t i = 0; i < reply->n_bids; i++) {
        const Bourse__V1__MarketBids *bids = reply->bids[i];
        const Bourse__V1__BookNeeds *wire = needs_numbered(reply, bids->needs);
        struct requirement needs;
        text[0] = '\0';
        if (bids->orders > 0 &&
            (wire == NULL || !codec_requirement_from_wire(wire->needs, &needs) ||
             !requirement_text(&needs, text, sizeof text))) {
            return FOLLOWING_CONTRADICTS;
        }
        struct level level = {.depth = {.is_bid = true,
                                        .of = text,
                                        .price_micro = bids->limit_micro,
                                        .rate = names_rate(wire == NULL ? 0 : wire->rate),
                                        .orders = bids->orders,
                                        .slots = bids->slots},
                              .needs = bids->needs};
        if (!take_level(following, &level)) {
            return FOLLOWING_OUT_OF_MEMORY;
        }
    }
    return FOLLOWING_MORE;
}

static bool take_trades(struct following *following, const Bourse__V1__MarketReply *reply)
{
    for (size_t i = 0; i < reply->n_trades; i++) {
        struct bourse_trade *trades = array_with_room(following->trades, following->trade_count,
                                                      &following->trade_capacity, sizeof *trades);
        if (trades == NULL) {
            return false;
        }
        following->trades = trades;
        const Bourse__V1__MarketTrade *from = reply->trades[i];
        struct bourse_trade *trade = &trades[following->trade_count++];
        *trade = (struct bourse_trade){.entry = from->has_entry ? from->entry : 0,
                                       .index = from->index,
                                       .time_ms = from->time_ms,
                                       .slots = from->slots,
                                       .price_micro = from->price_micro};
        (void)snprintf(trade->instrument, sizeof trade->instrument, "%s", from->instrument);
    }
    return true;
}

/* ---------------------------------------------------------------- replies */

enum following_status following_take(struct following *following,
                                     const Bourse__V1__MarketReply *reply)
{
    if (following->was_told) {
        levels_clear(&following->changes);
        following->trade_count = 0;
        following->is_anew = following->was_told = false;
    }
    if (reply->has_anew && reply->anew) {
        levels_clear(&following->book);
        levels_clear(&following->changes);
        following->trade_count = 0; /* the ledger has these trades and the missed ones */
        following->is_anew = true;
    } else if (!following->has_begun || reply->feed != following->feed ||
               reply->after != following->after || reply->through < reply->after) {
        return FOLLOWING_CONTRADICTS;
    }
    following->has_begun = true;
    following->feed = reply->feed;
    following->after = reply->through;
    following->has_place = reply->has_next;
    following->place = reply->next;
    following->index = reply->index;
    following->log_time_ms = reply->log_time_ms;
    following->bands = (struct bourse_bands){
        .least_micro = reply->has_least_micro ? reply->least_micro : 0,
        .most_micro = reply->has_most_micro ? reply->most_micro : 0,
        .notional_micro = reply->has_notional_micro ? reply->notional_micro : 0,
    };
    if (!take_asks(following, reply) || !take_trades(following, reply)) {
        return FOLLOWING_OUT_OF_MEMORY;
    }
    const enum following_status status = take_bids(following, reply);
    const bool is_whole = !reply->has_next && !(reply->has_more && reply->more);
    if (status != FOLLOWING_MORE || !is_whole) {
        return status;
    }
    const size_t count = following->book.count + following->changes.count;
    struct bourse_depth *shown = reallocarray(following->shown, count + 1, sizeof *shown);
    if (shown == NULL) {
        return FOLLOWING_OUT_OF_MEMORY;
    }
    following->shown = shown;
    return FOLLOWING_WHOLE;
}

static bool are_same_bands(const struct bourse_bands *a, const struct bourse_bands *b)
{
    return a->least_micro == b->least_micro && a->most_micro == b->most_micro &&
           a->notional_micro == b->notional_micro;
}

void following_news(struct following *following, struct bourse_news *ret_news)
{
    struct bourse_depth *shown = following->shown;
    for (size_t i = 0; i < following->book.count; i++) {
        shown[i] = following->book.items[i].depth;
    }
    struct bourse_depth *changes = shown + following->book.count;
    for (size_t i = 0; i < following->changes.count; i++) {
        changes[i] = following->changes.items[i].depth;
    }
    *ret_news =
        (struct bourse_news){.is_anew = following->is_anew,
                             .index = following->index,
                             .log_time_ms = following->log_time_ms,
                             .levels = shown,
                             .level_count = following->book.count,
                             .changes = changes,
                             .change_count = following->changes.count,
                             .trades = following->trades,
                             .trade_count = following->trade_count,
                             .bands = following->bands,
                             .has_new_bands = !are_same_bands(&following->bands, &following->told)};
    following->told = following->bands;
    following->was_told = true;
}
