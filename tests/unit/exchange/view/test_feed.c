/* The market as it changes: what a level says, what is told to whom, and what cannot be told any
 * more. */
#include "exchange/view/feed.h"

#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static struct exchange_change told[MOST];
static size_t told_count, told_most;

static bool tell(void *context, const struct exchange_change *change)
{
    (void)context;
    if (told_count == told_most) {
        return false;
    }
    told[told_count++] = *change;
    return true;
}

/* Up to `most` changes after that one; the number up to which they are told. */
static uint64_t changes(uint64_t after, size_t most)
{
    uint64_t through = 0;
    told_count = 0;
    told_most = most;
    ck_assert(exchange_feed_reaches(market.exchange, after));
    bool is_all =
        exchange_feed_changes(market.exchange, after, tell, NULL, &through) == LISTING_END;
    ck_assert(is_all == (through == exchange_feed_number(market.exchange)));
    return through;
}

static uint64_t number(void)
{
    return exchange_feed_number(market.exchange);
}

static void open_market(void)
{
    set_up();
    ck_assert(exchange_feed_open(market.exchange, 0));
}

static struct id128 ask_at(int64_t at_price, uint32_t slots)
{
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){
        .device = {{(uint8_t)PROVIDER}}, .slots = slots, .price_micro = at_price};
    apply(&ask);
    return ask.id;
}

static void check_level(const struct exchange_change *change, enum exchange_change_type type,
                        int64_t at_price, uint32_t orders, uint64_t slots, uint64_t free_slots)
{
    ck_assert_int_eq(change->type, type);
    ck_assert_int_eq(change->level.price_micro, at_price);
    ck_assert_uint_eq(change->level.orders, orders);
    ck_assert_uint_eq(change->level.slots, slots);
    ck_assert_uint_eq(change->level.free, free_slots);
    ck_assert((change->level.needs != NULL) == (type == CHANGE_BIDS && orders > 0));
}

static void set_most(int64_t most_micro)
{
    struct exchange_command set = command(EXCHANGE_BANDS, OPERATOR);
    set.bands = (struct exchange_bands){.has_most = true, .most_micro = most_micro};
    apply(&set);
}

START_TEST(other_bands_are_a_change_and_of_several_the_last_is_told)
{
    const uint64_t before = number();
    set_most(price);
    set_most(price); /* as they were */
    ck_assert_uint_eq(number(), before + 1);
    changes(before, MOST);
    ck_assert_uint_eq(told_count, 1);
    ck_assert_int_eq(told[0].type, CHANGE_BANDS);
    set_most(2 * price);
    changes(before, MOST);
    ck_assert_uint_eq(told_count, 1);
    ck_assert_int_eq(told[0].type, CHANGE_BANDS);
    changes(before + 2, MOST);
    ck_assert_uint_eq(told_count, 0);
}
END_TEST

START_TEST(asks_at_one_price_are_one_level)
{
    offer(PROVIDER, 4, price);
    offer(OTHER_PROVIDER, 3, price);
    ck_assert_uint_eq(number(), 2);
    changes(1, MOST);
    ck_assert_uint_eq(told_count, 1);
    check_level(&told[0], CHANGE_ASKS, price, 2, 7, 7);
    changes(0, MOST); /* what was the first change says the second now */
    ck_assert_uint_eq(told_count, 1);
}
END_TEST

START_TEST(a_fill_is_a_trade_and_a_bar_and_changes_the_levels)
{
    offer(PROVIDER, 4, price);
    uint64_t before = number();
    submit(3, 1000);
    changes(before, MOST);
    ck_assert_uint_eq(told_count, 3); /* the bid came and was filled: never seen */
    ck_assert_int_eq(told[0].type, CHANGE_TRADE);
    ck_assert_int_eq(told[0].trade.price_micro, price);
    ck_assert_uint_eq(told[0].trade.slots, 3);
    ck_assert_uint_eq(told[0].trade.index, market.index);
    ck_assert_int_eq(told[0].trade.time_ns, market.now_ns);
    ck_assert_int_eq(told[1].type, CHANGE_BAR);
    ck_assert_uint_eq(told[1].bar.slots, 3);
    ck_assert_int_eq(told[1].bar.close_micro, price);
    check_level(&told[2], CHANGE_ASKS, price, 1, 4, 1);
}
END_TEST

START_TEST(a_bid_is_seen_while_it_wants_something)
{
    struct id128 job = submit(3, 1000);
    changes(0, MOST);
    ck_assert_uint_eq(told_count, 1);
    check_level(&told[0], CHANGE_BIDS, price, 1, 3, 0);
    ck_assert_uint_eq(told[0].level.needs->count, 0);
    uint32_t needs = told[0].level.needs_number;
    uint64_t before = number();
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    changes(before, MOST);
    ck_assert_uint_eq(told_count, 1);
    check_level(&told[0], CHANGE_BIDS, price, 0, 0, 0);
    ck_assert_uint_eq(told[0].level.needs_number, needs);
    before = number();
    submit(2, 1000); /* the same needs, known anew */
    changes(before, MOST);
    check_level(&told[0], CHANGE_BIDS, price, 1, 2, 0);
    ck_assert_uint_ne(told[0].level.needs_number, needs);
}
END_TEST

START_TEST(what_changes_nothing_is_no_change)
{
    offer(PROVIDER, 4, price);
    uint64_t before = number();
    ask_at(price, 4); /* replaced by the like */
    tick();
    ask_at(-5, 4); /* refused */
    ck_assert_uint_eq(number(), before);
}
END_TEST

START_TEST(a_reader_takes_as_much_as_it_likes)
{
    offer(PROVIDER, 4, price);
    offer(OTHER_PROVIDER, 4, price + 1);
    submit(8, 1000);
    const uint64_t last = number();
    uint64_t after = 0;
    size_t all = 0;
    while (after < last) {
        uint64_t through = changes(after, 1);
        ck_assert_uint_gt(through, after);
        all += told_count;
        after = through;
    }
    changes(0, MOST);
    ck_assert_uint_eq(all, told_count);
    ck_assert_uint_eq(changes(last, MOST), last);
    ck_assert_uint_eq(told_count, 0);
    ck_assert(!exchange_feed_reaches(market.exchange, last + 1)); /* of another feed */
}
END_TEST

START_TEST(the_book_comes_in_pages)
{
    offer(PROVIDER, 4, price);
    offer(OTHER_PROVIDER, 2, 2 * price);
    told_count = 0;
    told_most = 1;
    uint32_t next = 0;
    ck_assert_int_eq(exchange_feed_book(market.exchange, 0, tell, NULL, &next), LISTING_MORE);
    told_most = 2;
    ck_assert_int_eq(exchange_feed_book(market.exchange, next, tell, NULL, &next), LISTING_END);
    ck_assert_uint_eq(told_count, 2);
    ck_assert_int_eq(exchange_feed_book(market.exchange, UINT32_MAX, tell, NULL, &next),
                     LISTING_END);
    check_level(&told[0], CHANGE_ASKS, price, 1, 4, 4);
    check_level(&told[1], CHANGE_ASKS, 2 * price, 1, 2, 2);
}
END_TEST

/* A row costs its asker what telling takes, also when a page ends before it. */
START_TEST(a_told_row_costs_its_steps)
{
    enum { ROW_STEPS = 64 };
    offer(PROVIDER, 4, price);
    const uint64_t after = number();
    uint64_t before = exchange_steps(market.exchange);
    (void)changes(after, MOST);
    ck_assert_uint_lt(exchange_steps(market.exchange) - before, ROW_STEPS); /* nothing is told */
    before = exchange_steps(market.exchange);
    (void)changes(0, MOST);
    ck_assert_uint_gt(told_count, 0);
    ck_assert_uint_ge(exchange_steps(market.exchange) - before, told_count * ROW_STEPS);
    told_count = 0;
    told_most = MOST;
    uint32_t next = 0;
    before = exchange_steps(market.exchange);
    ck_assert_int_eq(exchange_feed_book(market.exchange, 0, tell, NULL, &next), LISTING_END);
    ck_assert_uint_eq(told_count, 1);
    ck_assert_uint_ge(exchange_steps(market.exchange) - before, ROW_STEPS);
}
END_TEST

START_TEST(who_is_too_far_back_begins_anew)
{
    offer(PROVIDER, 4, 1);
    ck_assert(exchange_feed_reaches(market.exchange, 0));
    int64_t at = 1;
    while (number() <= FEED_CHANGES) {
        ask_at(++at, 4); /* one level goes, another comes */
    }
    ck_assert(!exchange_feed_reaches(market.exchange, number() - FEED_CHANGES - 1));
    ck_assert(exchange_feed_reaches(market.exchange, number() - FEED_CHANGES));
    /* Nearly all changes from the oldest number that can be told are levels that went: none may be
     * missing. */
    uint64_t after = number() - FEED_CHANGES;
    size_t gone = 0;
    while (after < number()) {
        after = changes(after, MOST);
        for (size_t i = 0; i < told_count; i++) {
            gone += told[i].level.orders == 0;
        }
    }
    ck_assert_uint_eq(gone, FEED_CHANGES / 2);
    told_count = 0;
    told_most = MOST;
    uint32_t next = 0;
    ck_assert_int_eq(exchange_feed_book(market.exchange, 0, tell, NULL, &next), LISTING_END);
    ck_assert_uint_eq(told_count, 1);
    check_level(&told[0], CHANGE_ASKS, at, 1, 4, 4);
}
END_TEST

/* ---------------------------------------------------------------- prices */

static struct exchange_trade trade_at(const char *instrument, int64_t time_ns, int64_t at_price)
{
    struct exchange_trade trade = {.time_ns = time_ns, .price_micro = at_price, .slots = 1};
    memcpy(trade.instrument, instrument, strlen(instrument));
    return trade;
}

static bool count_bar(void *context, const struct exchange_bar *bar)
{
    *(uint32_t *)context += bar->trades;
    return true;
}

START_TEST(what_was_traded_before_the_feed_is_recalled_without_a_change)
{
    struct exchange_trade trade = trade_at("", market.now_ns - NS_PER_S, 77);
    ck_assert(exchange_feed_recall(market.exchange, &trade));
    ck_assert_uint_eq(number(), 0);
    uint32_t trades = 0;
    exchange_bars(market.exchange, "", 0, count_bar, &trades);
    ck_assert_uint_eq(trades, 1);
    trades = 0;
    exchange_bars(market.exchange, NULL, market.now_ns - 100 * NS_PER_S, count_bar, &trades);
    ck_assert_uint_eq(trades, 1);
    trades = 0;
    exchange_bars(market.exchange, "no.such", 0, count_bar, &trades);
    ck_assert_uint_eq(trades, 0);
    ck_assert(exchange_feed_reaches(market.exchange, 0));
}
END_TEST

static void advertise_as(const char *instrument)
{
    struct attribute attribute = {.name = "instrument", .is_text = true};
    memcpy(attribute.text, instrument, strlen(instrument));
    struct exchange_device device = {.device = {{(uint8_t)PROVIDER}},
                                     .slots = 4,
                                     .attributes = &attribute,
                                     .attribute_count = 1};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&device, 1};
    apply(&made);
}

START_TEST(a_usual_price_is_of_instruments_that_would_do)
{
    struct exchange_trade trade = trade_at("gpu.a", market.now_ns - NS_PER_S, 77);
    ck_assert(exchange_feed_recall(market.exchange, &trade));
    ck_assert_uint_eq(exchange_usual_price(market.exchange, &anything).trades, 0); /* no device */
    advertise_as("gpu.a");
    struct exchange_usual usual = exchange_usual_price(market.exchange, &anything);
    ck_assert_uint_eq(usual.trades, 1);
    ck_assert_int_eq(usual.price_micro, 77);
    ck_assert_int_eq(usual.since_ns, market.now_ns - NS_PER_S);
    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    needs.nodes[0].attribute =
        (struct attribute){.name = "instrument", .is_text = true, .text = "gpu.b"};
    ck_assert_uint_eq(exchange_usual_price(market.exchange, &needs).trades, 0);
    advertise_as("gpu.b");
    ck_assert_uint_eq(exchange_usual_price(market.exchange, &needs).trades, 0); /* never traded */
}
END_TEST

/* The kind of device goes with its last one, and its number is used again: names must not be mixed
 * up. */
START_TEST(asks_of_two_instruments_are_two_levels)
{
    static const char *const names[] = {"gpu.a", "gpu.b", "gpu.a"};
    for (size_t i = 0; i < 3; i++) {
        const uint64_t before = number();
        advertise_as(names[i]);
        (void)ask_at(price, 4);
        changes(before, MOST);
        ck_assert_uint_eq(told_count, i == 0 ? 1 : 2);
        const struct exchange_change *came = &told[told_count - 1];
        check_level(came, CHANGE_ASKS, price, 1, 4, 4);
        ck_assert_str_eq(came->level.instrument, names[i]);
        if (i > 0) {
            check_level(&told[0], CHANGE_ASKS, price, 0, 0, 0);
            ck_assert_str_eq(told[0].level.instrument, names[i - 1]);
        }
    }
}
END_TEST

SUITE("feed", open_market, tear_down,
      TEST(other_bands_are_a_change_and_of_several_the_last_is_told),
      TEST(asks_at_one_price_are_one_level),
      TEST(a_fill_is_a_trade_and_a_bar_and_changes_the_levels),
      TEST(a_bid_is_seen_while_it_wants_something), TEST(what_changes_nothing_is_no_change),
      TEST(a_reader_takes_as_much_as_it_likes), TEST(the_book_comes_in_pages),
      TEST(a_told_row_costs_its_steps), TEST(who_is_too_far_back_begins_anew),
      TEST(what_was_traded_before_the_feed_is_recalled_without_a_change),
      TEST(asks_of_two_instruments_are_two_levels),
      TEST(a_usual_price_is_of_instruments_that_would_do))
