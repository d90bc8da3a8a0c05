/* The book of who follows the market: put together from replies, and what cannot be true is not
 * taken. */
#include "consumer/market/following.h"

#include "base/rate.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FEED = 5 };

static struct following *following;
static Bourse__V1__MarketReply reply;
static Bourse__V1__MarketAsks asks[3];
static Bourse__V1__MarketAsks *all_asks[] = {&asks[0], &asks[1], &asks[2]};
static Bourse__V1__MarketBids bids;
static Bourse__V1__MarketBids *all_bids[] = {&bids};
static Bourse__V1__Requirement anything;
static Bourse__V1__BookNeeds needs;
static Bourse__V1__BookNeeds *all_needs[] = {&needs};
static Bourse__V1__MarketTrade trade;
static Bourse__V1__MarketTrade *trades[] = {&trade};

static Bourse__V1__MarketAsks asks_at(const char *instrument, int64_t price_micro, uint32_t orders)
{
    Bourse__V1__MarketAsks made = BOURSE__V1__MARKET_ASKS__INIT;
    made.instrument = (char *)(uintptr_t)instrument; /* read only */
    made.price_micro = price_micro;
    made.orders = orders;
    made.slots = made.free = orders;
    return made;
}

static void open_following(void)
{
    following = following_create();
    ck_assert_ptr_nonnull(following);
    bourse__v1__market_reply__init(&reply);
    bourse__v1__requirement__init(&anything);
    bourse__v1__book_needs__init(&needs);
    bourse__v1__market_bids__init(&bids);
    bourse__v1__market_trade__init(&trade);
    needs.number = 9;
    needs.needs = &anything;
    bids.needs = 9;
    bids.limit_micro = 50;
    bids.orders = 2;
    bids.slots = 7;
    trade.instrument = (char *)(uintptr_t) "cpu";
    reply.feed = FEED;
    reply.after = reply.through = 10;
    reply.has_anew = reply.anew = true;
    reply.asks = all_asks;
    reply.bids = all_bids;
    reply.needs = all_needs;
    reply.trades = trades;
}

static void close_following(void)
{
    following_destroy(&following);
}

/* The reply after the last one, of changes. */
static void go_on(uint64_t changes)
{
    reply.anew = false;
    reply.after = reply.through;
    reply.through += changes;
    reply.n_asks = reply.n_bids = reply.n_needs = reply.n_trades = 0;
}

static void expect(enum following_status status)
{
    ck_assert_int_eq(following_take(following, &reply), status);
}

static struct bourse_news news(void)
{
    struct bourse_news told;
    following_news(following, &told);
    return told;
}

START_TEST(the_book_comes_in_pages_and_in_order)
{
    Bourse__V1__MarketRequest request;
    following_ask(following, &request);
    ck_assert(!request.has_feed && !request.has_after && !request.has_place);
    asks[0] = asks_at("gpu", 5, 1);
    asks[1] = asks_at("cpu", 9, 1);
    reply.n_asks = 2;
    reply.has_next = true;
    reply.next = 70;
    expect(FOLLOWING_MORE);
    following_ask(following, &request);
    ck_assert_uint_eq(request.feed, FEED);
    ck_assert_uint_eq(request.after, 10);
    ck_assert(request.has_place);
    ck_assert_uint_eq(request.place, 70);
    go_on(0);
    reply.has_next = false;
    asks[0] = asks_at("cpu", 3, 1);
    reply.n_asks = reply.n_bids = reply.n_needs = 1;
    expect(FOLLOWING_WHOLE);
    following_ask(following, &request);
    ck_assert(!request.has_place);
    struct bourse_news told = news();
    ck_assert(told.is_anew);
    ck_assert_uint_eq(told.level_count, 4);
    ck_assert_uint_eq(told.change_count, 4);
    ck_assert_str_eq(told.levels[0].of, "cpu");
    ck_assert_int_eq(told.levels[0].price_micro, 3);
    ck_assert_int_eq(told.levels[1].price_micro, 9);
    ck_assert_str_eq(told.levels[2].of, "gpu");
    ck_assert(told.levels[3].is_bid);
    ck_assert_uint_eq(told.levels[3].slots, 7);
}
END_TEST

START_TEST(the_dearest_bid_of_a_need_comes_first)
{
    Bourse__V1__MarketBids low = bids;
    Bourse__V1__MarketBids *both[] = {&low, &bids};
    low.limit_micro = 20;
    reply.bids = both;
    reply.n_bids = 2;
    reply.n_needs = 1;
    expect(FOLLOWING_WHOLE);
    struct bourse_news told = news();
    ck_assert_uint_eq(told.level_count, 2);
    ck_assert_int_eq(told.levels[0].price_micro, 50);
    ck_assert_int_eq(told.levels[1].price_micro, 20);
}
END_TEST

START_TEST(bands_are_those_of_the_last_reply)
{
    expect(FOLLOWING_WHOLE);
    ck_assert_int_eq(news().bands.most_micro, 0); /* not said */
    go_on(1);
    reply.has_least_micro = reply.has_most_micro = reply.has_notional_micro = true;
    reply.least_micro = 1;
    reply.most_micro = 20;
    reply.notional_micro = 300;
    expect(FOLLOWING_WHOLE);
    struct bourse_news told = news();
    ck_assert(told.has_new_bands);
    ck_assert_int_eq(told.bands.least_micro, 1);
    ck_assert_int_eq(told.bands.most_micro, 20);
    ck_assert_int_eq(told.bands.notional_micro, 300);
    go_on(0);
    expect(FOLLOWING_WHOLE);
    ck_assert(!news().has_new_bands);
}
END_TEST

START_TEST(a_level_changes_and_goes)
{
    asks[0] = asks_at("cpu", 3, 1);
    reply.n_asks = reply.n_bids = reply.n_needs = 1;
    needs.has_rate = true;
    needs.rate = RATE_FP32;
    expect(FOLLOWING_WHOLE);
    ck_assert_str_eq(news().levels[1].rate, "fp32");
    go_on(4);
    asks[0] = asks_at("cpu", 3, 2);
    asks[1] = asks_at("cpu", 4, 0); /* never heard of: it came and went */
    reply.n_asks = 2;
    bids.orders = 0; /* gone: nobody says what it needed */
    bids.slots = 0;
    reply.n_bids = reply.n_trades = 1;
    expect(FOLLOWING_WHOLE);
    struct bourse_news told = news();
    ck_assert(!told.is_anew);
    ck_assert_uint_eq(told.level_count, 1);
    ck_assert_uint_eq(told.levels[0].orders, 2);
    ck_assert_uint_eq(told.change_count, 2);
    ck_assert(told.changes[1].is_bid);
    ck_assert_uint_eq(told.changes[1].orders, 0);
    ck_assert_uint_gt(strlen(told.changes[1].of), 0); /* it is remembered, */
    ck_assert_str_eq(told.changes[1].rate, "fp32");   /* with the unit of its limit */
    ck_assert_uint_eq(told.trade_count, 1);
    go_on(0);
    expect(FOLLOWING_WHOLE);
    told = news();
    ck_assert_uint_eq(told.change_count + told.trade_count, 0);
    ck_assert_uint_eq(told.level_count, 1);
}
END_TEST

START_TEST(news_of_several_replies_are_told_together)
{
    expect(FOLLOWING_WHOLE);
    (void)news();
    go_on(1);
    reply.has_more = reply.more = true;
    reply.n_trades = 1;
    expect(FOLLOWING_MORE);
    go_on(1);
    reply.more = false;
    reply.n_trades = 1;
    expect(FOLLOWING_WHOLE);
    ck_assert_uint_eq(news().trade_count, 2);
}
END_TEST

START_TEST(beginning_anew_forgets_the_book)
{
    asks[0] = asks_at("cpu", 3, 1);
    reply.n_asks = 1;
    expect(FOLLOWING_WHOLE);
    (void)news();
    reply.feed = FEED + 1;
    reply.anew = true;
    reply.n_asks = 0;
    expect(FOLLOWING_WHOLE);
    struct bourse_news told = news();
    ck_assert(told.is_anew);
    ck_assert_uint_eq(told.level_count, 0);
}
END_TEST

START_TEST(a_gap_is_not_taken)
{
    reply.anew = false; /* before any beginning */
    expect(FOLLOWING_CONTRADICTS);
    reply.anew = true;
    expect(FOLLOWING_WHOLE);
    go_on(3);
    reply.after++;
    expect(FOLLOWING_CONTRADICTS);
    reply.after--;
    reply.feed++;
    expect(FOLLOWING_CONTRADICTS);
    reply.feed--;
    reply.through = reply.after - 1;
    expect(FOLLOWING_CONTRADICTS);
}
END_TEST

START_TEST(bids_without_needs_are_not_taken)
{
    reply.n_bids = 1;
    expect(FOLLOWING_CONTRADICTS);
    reply.n_needs = 1;
    needs.number = 8;
    expect(FOLLOWING_CONTRADICTS);
}
END_TEST

SUITE("following", open_following, close_following, TEST(the_book_comes_in_pages_and_in_order),
      TEST(the_dearest_bid_of_a_need_comes_first), TEST(bands_are_those_of_the_last_reply),
      TEST(a_level_changes_and_goes), TEST(news_of_several_replies_are_told_together),
      TEST(beginning_anew_forgets_the_book), TEST(a_gap_is_not_taken),
      TEST(bids_without_needs_are_not_taken))
