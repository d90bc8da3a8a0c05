/* A follower of a random market's feed has its book. Several readers, with pages of different sizes
 * and some lazier than others, put together what they are told, and the result is what the exchange
 * lists. Every fill is told once, in order, and the bars add the fills up. */
#include "exchange/view/feed.h"
#include "exchange/view/listings.h"
#include "tests/support/market_model.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 8, COMMANDS = 1200, LEVELS = 4096, TRADES = 1 << 16, FOLLOWERS = 4 };

struct row {
    bool is_bid;
    char instrument[ATTRIBUTE_TEXT_SIZE];
    uint32_t needs_number;
    struct requirement needs;
    enum rate rate;
    int64_t price_micro;
    uint32_t orders;
    uint64_t slots, free;
    uint32_t limited, timed, daily;
};

struct follower {
    uint32_t page, in_page; /* changes that it takes at a time */
    int every;              /* it reads after so many commands */
    bool has_begun, has_book;
    uint32_t place;
    uint64_t after;
    struct row *rows;
    size_t count;
    size_t trade_count; /* that it was told */
    size_t first_trade; /* of all, when it began */
    const struct exchange *exchange;
    struct exchange_bands bands; /* as they were when it began, or heard of others */
};

static struct exchange_trade trades[TRADES]; /* as the ledger has them */
static size_t trade_count;
static uint64_t records; /* of the ledger */

/* The book keeps no more of it than its nodes. */
static struct requirement copied(const struct requirement *needs)
{
    struct requirement copy = {.count = needs->count};
    memcpy(copy.nodes, needs->nodes, needs->count * sizeof needs->nodes[0]);
    return copy;
}

static struct row *row_of(struct follower *follower, const struct exchange_level *level,
                          bool is_bid)
{
    for (size_t i = 0; i < follower->count; i++) {
        struct row *row = &follower->rows[i];
        if (row->is_bid == is_bid && row->price_micro == level->price_micro &&
            (is_bid ? row->needs_number == level->needs_number
                    : strcmp(row->instrument, level->instrument) == 0)) {
            return row;
        }
    }
    return NULL;
}

static void take_level(struct follower *follower, const struct exchange_level *level, bool is_bid)
{
    struct row *row = row_of(follower, level, is_bid);
    if (level->orders == 0) {
        ck_assert_uint_eq(level->slots, 0);
        ck_assert_uint_eq(level->free, 0);
        if (row != NULL) {
            *row = follower->rows[--follower->count];
        }
        return;
    }
    if (row == NULL) {
        ck_assert_uint_lt(follower->count, LEVELS);
        row = &follower->rows[follower->count++];
        *row = (struct row){.is_bid = is_bid, .price_micro = level->price_micro};
        memcpy(row->instrument, level->instrument, sizeof row->instrument);
        row->needs_number = level->needs_number;
    }
    if (is_bid) {
        ck_assert_ptr_nonnull(level->needs);
        row->needs = copied(level->needs);
        row->rate = level->rate;
    }
    row->orders = level->orders;
    row->slots = level->slots;
    row->free = level->free;
    row->limited = level->limited;
    row->timed = level->timed;
    row->daily = level->daily;
}

static void take_trade(struct follower *follower, const struct exchange_trade *trade)
{
    size_t at = follower->first_trade + follower->trade_count++;
    ck_assert_uint_lt(at, trade_count);
    ck_assert_uint_eq(trade->index, trades[at].index);
    ck_assert_uint_eq(trade->entry, trades[at].entry);
    ck_assert_int_eq(trade->time_ns, trades[at].time_ns);
    ck_assert_int_eq(trade->price_micro, trades[at].price_micro);
    ck_assert_uint_eq(trade->slots, trades[at].slots);
    ck_assert_str_eq(trade->instrument, trades[at].instrument);
}

static bool take(void *context, const struct exchange_change *change)
{
    struct follower *follower = context;
    if (follower->in_page == follower->page) {
        return false;
    }
    follower->in_page++;
    switch (change->type) {
    case CHANGE_ASKS:
    case CHANGE_BIDS:
        take_level(follower, &change->level, change->type == CHANGE_BIDS);
        break;
    case CHANGE_TRADE:
        take_trade(follower, &change->trade);
        break;
    case CHANGE_BAR:
        ck_assert_int_le(change->bar.low_micro, change->bar.open_micro);
        ck_assert_int_le(change->bar.close_micro, change->bar.high_micro);
        break;
    case CHANGE_BANDS:
        follower->bands = exchange_bands_now(follower->exchange);
        break;
    }
    return true;
}

/* One page. True: that was all. */
static bool read_page(struct follower *follower, const struct exchange *exchange)
{
    follower->in_page = 0;
    if (!follower->has_begun) {
        follower->has_begun = true;
        follower->after = exchange_feed_number(exchange);
        follower->first_trade = trade_count;
        follower->bands = exchange_bands_now(exchange);
    }
    if (!follower->has_book) {
        follower->has_book = exchange_feed_book(exchange, follower->place, take, follower,
                                                &follower->place) == LISTING_END;
        return false;
    }
    ck_assert(exchange_feed_reaches(exchange, follower->after));
    return exchange_feed_changes(exchange, follower->after, take, follower, &follower->after) ==
           LISTING_END;
}

/* --------------------------------------------------------------- what the exchange itself lists */

struct listed {
    struct row *rows;
    size_t count;
};

static bool add_listed(void *context, const struct exchange_book_row *order)
{
    struct listed *listed = context;
    struct row *row = NULL;
    for (size_t i = 0; i < listed->count && row == NULL; i++) {
        struct row *at = &listed->rows[i];
        bool is_same = at->is_bid == order->is_bid && at->price_micro == order->price_micro &&
                       (order->is_bid ? at->needs_number == order->class_id
                                      : strcmp(at->instrument, order->instrument) == 0);
        row = is_same ? at : NULL;
    }
    if (row == NULL) {
        ck_assert_uint_lt(listed->count, LEVELS);
        row = &listed->rows[listed->count++];
        *row = (struct row){.is_bid = order->is_bid,
                            .price_micro = order->price_micro,
                            .needs_number = order->class_id};
        memcpy(row->instrument, order->instrument, sizeof row->instrument);
        if (order->is_bid) {
            row->needs = copied(order->needs);
            row->rate = order->rate;
        }
    }
    row->orders++;
    row->slots += order->slots;
    row->free += order->is_bid ? 0 : order->free;
    row->limited += !order->is_bid && order->to_count > 0;
    row->timed += !order->is_bid && order->hours->count > 0;
    row->daily += !order->is_bid && order->daily_ns > 0;
    return true;
}

static bool same_needs(const struct requirement *a, const struct requirement *b)
{
    return a->count == b->count && memcmp(a->nodes, b->nodes, a->count * sizeof *a->nodes) == 0;
}

static bool has_row(const struct follower *follower, const struct row *wanted)
{
    for (size_t i = 0; i < follower->count; i++) {
        const struct row *row = &follower->rows[i];
        if (row->is_bid == wanted->is_bid && row->price_micro == wanted->price_micro &&
            row->orders == wanted->orders && row->slots == wanted->slots &&
            row->free == wanted->free && row->limited == wanted->limited &&
            row->timed == wanted->timed && row->daily == wanted->daily &&
            (row->is_bid ? row->rate == wanted->rate && same_needs(&row->needs, &wanted->needs)
                         : strcmp(row->instrument, wanted->instrument) == 0)) {
            return true;
        }
    }
    return false;
}

static void check_book(const struct follower *follower, const struct exchange *exchange,
                       struct row *memory)
{
    struct listed listed = {.rows = memory};
    uint32_t from = 0;
    while (exchange_list_book(exchange, NULL, from, add_listed, &listed, &from) == LISTING_MORE) {
    }
    const struct exchange_bands bands = exchange_bands_now(exchange);
    ck_assert_int_eq(follower->bands.least_micro, bands.least_micro);
    ck_assert_int_eq(follower->bands.most_micro, bands.most_micro);
    ck_assert_int_eq(follower->bands.notional_micro, bands.notional_micro);
    ck_assert_uint_eq(follower->count, listed.count);
    for (size_t i = 0; i < listed.count; i++) {
        ck_assert_msg(has_row(follower, &listed.rows[i]), "%s at %lld is told otherwise",
                      listed.rows[i].is_bid ? "a bid" : "an ask",
                      (long long)listed.rows[i].price_micro);
    }
}

/* ---------------------------------------------------------------- bars */

struct bars {
    size_t at; /* next trade to be added up */
    size_t count;
};

static bool check_bar(void *context, const struct exchange_bar *bar)
{
    struct bars *bars = context;
    const int64_t minute_ns = INT64_C(60000000000);
    struct exchange_bar sum = {.start_ns = trades[bars->at].time_ns / minute_ns * minute_ns,
                               .open_micro = trades[bars->at].price_micro,
                               .low_micro = INT64_MAX};
    for (;
         bars->at < trade_count && trades[bars->at].time_ns / minute_ns * minute_ns == sum.start_ns;
         bars->at++) {
        const struct exchange_trade *trade = &trades[bars->at];
        sum.high_micro = trade->price_micro > sum.high_micro ? trade->price_micro : sum.high_micro;
        sum.low_micro = trade->price_micro < sum.low_micro ? trade->price_micro : sum.low_micro;
        sum.close_micro = trade->price_micro;
        sum.slots += trade->slots;
        sum.trades++;
    }
    ck_assert_int_eq(bar->start_ns, sum.start_ns);
    ck_assert_int_eq(bar->open_micro, sum.open_micro);
    ck_assert_int_eq(bar->high_micro, sum.high_micro);
    ck_assert_int_eq(bar->low_micro, sum.low_micro);
    ck_assert_int_eq(bar->close_micro, sum.close_micro);
    ck_assert_uint_eq(bar->slots, sum.slots);
    ck_assert_uint_eq(bar->trades, sum.trades);
    bars->count++;
    return true;
}

/* ---------------------------------------------------------------- the market */

static void note_trades(const struct exchange_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct ledger_record *record = &effects->items[i].ledger;
        records += effects->items[i].type == EFFECT_LEDGER;
        if (effects->items[i].type == EFFECT_LEDGER && record->kind == LEDGER_FILL) {
            ck_assert_uint_lt(trade_count, TRADES);
            struct exchange_trade *trade = &trades[trade_count++];
            *trade = (struct exchange_trade){.index = record->log_index,
                                             .entry = records,
                                             .time_ns = record->log_time_ns,
                                             .price_micro = record->price_micro,
                                             .slots = record->slots};
            memcpy(trade->instrument, record->name, sizeof trade->instrument);
        }
    }
}

START_TEST(who_follows_the_feed_has_the_book)
{
    static const struct follower kinds[FOLLOWERS] = {{.page = 1 << 20, .every = 1},
                                                     {.page = 3, .every = 1},
                                                     {.page = 1 << 20, .every = 40},
                                                     {.page = 7, .every = 200}};
    static struct model model;
    static struct row memory[FOLLOWERS + 1][LEVELS];
    struct follower followers[FOLLOWERS];
    uint64_t seed = 1 + (uint64_t)_i;
    size_t checked = 0;
    size_t levels = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    model_init(&model, seed);
    trade_count = 0;
    records = 900 * seed;
    for (int i = 0; i < 100; i++) { /* something stands when the feed is opened */
        model_next(&model);
        ck_assert_int_eq(model_apply(&model), EXCHANGE_OK);
    }
    ck_assert(exchange_feed_open(model.exchange, records));
    for (size_t f = 0; f < FOLLOWERS; f++) {
        followers[f] = kinds[f];
        followers[f].rows = memory[f];
        followers[f].exchange = model.exchange;
    }
    for (int i = 0; i < COMMANDS; i++) {
        model_next(&model);
        ck_assert_int_eq(model_apply(&model), EXCHANGE_OK);
        note_trades(&model.effects);
        for (size_t f = 0; f < FOLLOWERS; f++) {
            struct follower *follower = &followers[f];
            if (i % follower->every != 0) {
                continue;
            }
            /* A page a command for who takes small ones: the market moves on between them. */
            bool is_at_end = read_page(follower, model.exchange);
            while (follower->page > 100 && !is_at_end) {
                is_at_end = read_page(follower, model.exchange);
            }
            if (is_at_end) {
                check_book(follower, model.exchange, memory[FOLLOWERS]);
                ck_assert_uint_eq(follower->first_trade + follower->trade_count, trade_count);
                checked++;
                levels += follower->count;
            }
        }
    }
    for (size_t f = 0; f < FOLLOWERS; f++) {
        while (!read_page(&followers[f], model.exchange)) {
        }
        check_book(&followers[f], model.exchange, memory[FOLLOWERS]);
        ck_assert_uint_eq(followers[f].first_trade + followers[f].trade_count, trade_count);
    }
    struct bars bars = {0};
    exchange_bars(model.exchange, "", 0, check_bar, &bars);
    ck_assert_uint_gt(bars.count, 0);
    ck_assert_uint_eq(bars.at, trade_count);
    ck_assert_uint_gt(checked, COMMANDS);
    ck_assert_uint_gt(levels, checked); /* books of more than a level */
    ck_assert_uint_gt(trade_count, 0);
    model_fini(&model);
}
END_TEST

/* Nobody's market goes another way because somebody looks on. */
START_TEST(the_feed_is_no_state)
{
    static struct model watched;
    static struct model alone;
    model_init(&watched, 7);
    model_init(&alone, 7);
    ck_assert(exchange_feed_open(watched.exchange, 0));
    for (int i = 0; i < COMMANDS; i++) {
        model_next(&watched);
        model_next(&alone);
        ck_assert_int_eq(model_apply(&watched), EXCHANGE_OK);
        ck_assert_int_eq(model_apply(&alone), EXCHANGE_OK);
        ck_assert_uint_eq(watched.effects.count, alone.effects.count);
    }
    struct hash32 ours = exchange_state_hash(watched.exchange);
    struct hash32 theirs = exchange_state_hash(alone.exchange);
    ck_assert(hash32_equal(&ours, &theirs));
    model_fini(&watched);
    model_fini(&alone);
}
END_TEST

SUITE("feed", NULL, NULL, LOOP(who_follows_the_feed_has_the_book, 0, SEEDS),
      TEST(the_feed_is_no_state))
