/* The book as people read it, from pages of single orders. */
#include "consumer/market/depth.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static Bourse__V1__BookAsk ask_of(uint32_t provider, const char *instrument, int64_t price,
                                  uint32_t slots, uint32_t free)
{
    Bourse__V1__BookAsk ask = BOURSE__V1__BOOK_ASK__INIT;
    ask.provider = provider;
    ask.instrument = (char *)(uintptr_t)instrument;
    ask.price_micro = price;
    ask.slots = slots;
    ask.free = free;
    return ask;
}

START_TEST(asks_are_summed_up_by_instrument_and_price)
{
    Bourse__V1__BookAsk asks[] = {ask_of(4, "gpu", 9, 1, 1), ask_of(4, "cpu", 5, 4, 3),
                                  ask_of(5, "cpu", 5, 2, 0), ask_of(4, "cpu", 5, 8, 8),
                                  ask_of(5, "cpu", 1, 1, 1)};
    Bourse__V1__BookAsk *pointers[] = {&asks[0], &asks[1], &asks[2], &asks[3], &asks[4]};
    CLEANUP(bourse_book_destroy) struct bourse_book *book = depth_create();
    Bourse__V1__BookReply page = BOURSE__V1__BOOK_REPLY__INIT;
    page.asks = pointers;
    page.n_asks = 2; /* a level that two pages share */
    ck_assert_int_eq(depth_add(book, &page), DEPTH_OK);
    page.asks = pointers + 2;
    page.n_asks = 3;
    ck_assert_int_eq(depth_add(book, &page), DEPTH_OK);
    ck_assert(depth_settle(book));

    size_t count = 0;
    const struct bourse_ask_level *levels = bourse_book_asks(book, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(levels[0].instrument, "cpu");
    ck_assert_int_eq(levels[0].price_micro, 1);
    ck_assert_int_eq(levels[1].price_micro, 5);
    ck_assert_uint_eq(levels[1].slots, 14);
    ck_assert_uint_eq(levels[1].free, 11);
    ck_assert_uint_eq(levels[1].providers, 2); /* one has two devices there */
    ck_assert_str_eq(levels[2].instrument, "gpu");
    (void)bourse_book_bids(book, &count);
    ck_assert_uint_eq(count, 0);
}
END_TEST

/* A level is what a bid that may fill one of them may fill all of: those with other conditions are
 * another. */
START_TEST(asks_with_other_conditions_are_another_level)
{
    Bourse__V1__BookAsk asks[] = {ask_of(4, "cpu", 5, 4, 3), ask_of(5, "cpu", 5, 2, 2),
                                  ask_of(6, "cpu", 5, 8, 8), ask_of(7, "cpu", 5, 1, 1),
                                  ask_of(8, "cpu", 5, 1, 0)};
    Bourse__V1__BookAsk *pointers[] = {&asks[0], &asks[1], &asks[2], &asks[3], &asks[4]};
    Bourse__V1__AskHours night = BOURSE__V1__ASK_HOURS__INIT;
    Bourse__V1__AskHours *hours[] = {&night};
    night.days = 0x1f;
    night.from_min = 22 * 60;
    night.till_min = 7 * 60;
    for (size_t i = 0; i < 2; i++) { /* the same night, a day's bound each */
        asks[i].hours = hours;
        asks[i].n_hours = 1;
        asks[i].has_daily_ms = asks[i].has_left_ms = true;
        asks[i].daily_ms = 3600000;
        asks[i].left_ms = 60000 * (1 + (int64_t)i);
    }
    asks[2].has_to = asks[3].has_to = asks[3].has_for_you = asks[3].for_you = true;
    asks[2].to = asks[3].to = 2;
    CLEANUP(bourse_book_destroy) struct bourse_book *book = depth_create();
    Bourse__V1__BookReply page = BOURSE__V1__BOOK_REPLY__INIT;
    page.asks = pointers;
    page.n_asks = 5;
    ck_assert_int_eq(depth_add(book, &page), DEPTH_OK);
    ck_assert(depth_settle(book));
    size_t count = 0;
    const struct bourse_ask_level *levels = bourse_book_asks(book, &count);
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(levels[0].slots, 1); /* anybody's */
    ck_assert_str_eq(levels[0].hours, "");
    ck_assert_uint_eq(levels[1].slots, 6);
    ck_assert_uint_eq(levels[1].providers, 2);
    ck_assert_str_eq(levels[1].hours, "mon-fri 22:00-07:00 (UTC+00:00)");
    ck_assert_int_eq(levels[1].daily_ms, 3600000);
    ck_assert_int_eq(levels[1].left_ms, 180000);
    ck_assert_uint_eq(levels[2].to, 2);
    ck_assert(levels[2].for_you);
    ck_assert_uint_eq(levels[3].slots, 8);
    ck_assert(!levels[3].for_you);
}
END_TEST

START_TEST(hours_that_are_none_are_refused)
{
    Bourse__V1__BookAsk ask = ask_of(4, "cpu", 5, 4, 3);
    Bourse__V1__BookAsk *asks[] = {&ask};
    Bourse__V1__AskHours bad = BOURSE__V1__ASK_HOURS__INIT;
    Bourse__V1__AskHours *hours[] = {&bad};
    Bourse__V1__BookReply page = BOURSE__V1__BOOK_REPLY__INIT;
    page.asks = asks;
    page.n_asks = ask.n_hours = 1;
    ask.hours = hours;
    const uint32_t days[] = {0, 1, 0x101, 1, 1};
    const uint32_t from[] = {60, 60, 60, 70000, 60};
    const uint32_t till[] = {120, 60, 120, 120, 65536 + 120};
    for (size_t i = 0; i < 5; i++) {
        CLEANUP(bourse_book_destroy) struct bourse_book *book = depth_create();
        bad.days = days[i];
        bad.from_min = from[i];
        bad.till_min = till[i];
        ck_assert_int_eq(depth_add(book, &page), DEPTH_CONTRADICTS);
    }
}
END_TEST

static Bourse__V1__BookBid bid_of(uint32_t needs, int64_t limit, uint32_t slots)
{
    Bourse__V1__BookBid bid = BOURSE__V1__BOOK_BID__INIT;
    bid.needs = needs;
    bid.limit_micro = limit;
    bid.slots = slots;
    return bid;
}

/* The number of needs means something in its own reply only. */
START_TEST(bids_are_summed_up_by_needs_and_limit_across_pages)
{
    struct requirement any = {.count = 0};
    struct requirement cpus = {.count = 1};
    cpus.nodes[0].op = REQUIREMENT_EQ;
    cpus.nodes[0].attribute = (struct attribute){.name = "kind", .is_text = true, .text = "cpu"};
    Bourse__V1__BookNeeds needs[] = {BOURSE__V1__BOOK_NEEDS__INIT, BOURSE__V1__BOOK_NEEDS__INIT};
    Bourse__V1__BookNeeds *need_pointers[] = {&needs[0], &needs[1]};
    needs[0].needs = codec_requirement_to_wire(&any);
    needs[1].needs = codec_requirement_to_wire(&cpus);
    Bourse__V1__BookBid bids[] = {bid_of(1, 7, 10), bid_of(2, 7, 1), bid_of(2, 9, 2)};
    Bourse__V1__BookBid *bid_pointers[] = {&bids[0], &bids[1], &bids[2]};
    CLEANUP(bourse_book_destroy) struct bourse_book *book = depth_create();
    Bourse__V1__BookReply page = BOURSE__V1__BOOK_REPLY__INIT;
    page.needs = need_pointers;
    page.n_needs = 2;
    page.bids = bid_pointers;
    page.n_bids = 3;
    needs[0].number = 1;
    needs[1].number = 2;
    ck_assert_int_eq(depth_add(book, &page), DEPTH_OK);
    needs[0].number = 2; /* the next page has them the other way round */
    needs[1].number = 1;
    ck_assert_int_eq(depth_add(book, &page), DEPTH_OK);
    ck_assert(depth_settle(book));

    size_t count = 0;
    const struct bourse_bid_level *levels = bourse_book_bids(book, &count);
    ck_assert_uint_eq(count, 4);
    ck_assert_str_eq(levels[0].needs, "any");
    ck_assert_int_eq(levels[0].limit_micro, 9); /* the dearest first */
    ck_assert_uint_eq(levels[0].slots, 2);
    ck_assert_int_eq(levels[1].limit_micro, 7);
    ck_assert_uint_eq(levels[1].slots, 10 + 1);
    ck_assert_uint_eq(levels[1].bids, 2);
    ck_assert_str_eq(levels[3].needs, "kind = cpu");
    ck_assert_uint_eq(levels[3].slots, 10 + 1);
    codec_requirement_free(&needs[0].needs);
    codec_requirement_free(&needs[1].needs);
}
END_TEST

START_TEST(a_page_that_contradicts_itself_is_refused)
{
    Bourse__V1__BookBid bid = bid_of(1, 7, 10);
    Bourse__V1__BookBid *bids[] = {&bid};
    CLEANUP(bourse_book_destroy) struct bourse_book *book = depth_create();
    Bourse__V1__BookReply page = BOURSE__V1__BOOK_REPLY__INIT;
    page.bids = bids;
    page.n_bids = 1;
    ck_assert_int_eq(depth_add(book, &page), DEPTH_CONTRADICTS);
}
END_TEST

SUITE("depth", NULL, NULL, TEST(asks_with_other_conditions_are_another_level),
      TEST(hours_that_are_none_are_refused), TEST(asks_are_summed_up_by_instrument_and_price),
      TEST(bids_are_summed_up_by_needs_and_limit_across_pages),
      TEST(a_page_that_contradicts_itself_is_refused))
