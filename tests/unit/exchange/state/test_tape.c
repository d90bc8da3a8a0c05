/* The tests ask what was paid lately: bars, the usual price, and that the oldest fills go. */
#include "exchange/state/tape.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tape *tape;
static const uint64_t key[2] = {1, 2};
static uint64_t last_number;
static const int64_t minute_ns = TAPE_BAR_NS;

static void open_tape(void)
{
    tape = tape_create(key);
    ck_assert_ptr_nonnull(tape);
    last_number = 0;
}

static void close_tape(void)
{
    tape_destroy(&tape);
}

/* The bar that it went into. */
static const struct tape_bar *trade(const char *instrument, int64_t time_ns, int64_t price_micro,
                                    uint32_t slots)
{
    char name[ATTRIBUTE_TEXT_SIZE] = {0};
    uint32_t place;
    uint32_t bar;
    memcpy(name, instrument, strlen(instrument));
    const struct tape_fill fill = {
        .instrument = name, .time_ns = time_ns, .price_micro = price_micro, .slots = slots};
    ck_assert(tape_add(tape, &fill, last_number + 1, last_number + 2, &place, &bar));
    last_number += 2;
    ck_assert_int_eq(tape_trade(tape, place)->price_micro, price_micro);
    return tape_bar(tape, bar);
}

static void choose(const char *instrument)
{
    char name[ATTRIBUTE_TEXT_SIZE] = {0};
    memcpy(name, instrument, strlen(instrument));
    tape_choose(tape, name);
}

static struct tape_usual usual_of(const char *instrument, int64_t now_ns)
{
    tape_choose_none(tape);
    choose(instrument);
    return tape_usual(tape, now_ns);
}

static bool count_bar(void *context, const struct tape_bar *bar)
{
    struct tape_bar *last = context;
    uint32_t count = last->trades;
    *last = *bar;
    last->trades = count + 1; /* of bars */
    return true;
}

static uint32_t bars_of(const char *instrument, int64_t since_ns, struct tape_bar *ret_last)
{
    char name[ATTRIBUTE_TEXT_SIZE] = {0};
    memcpy(name, instrument, strlen(instrument));
    *ret_last = (struct tape_bar){0};
    tape_bars(tape, name, since_ns, count_bar, ret_last);
    return ret_last->trades;
}

START_TEST(a_bar_is_a_minute_of_one_instrument)
{
    trade("cpu", 5 * minute_ns, 30, 1);
    trade("gpu", 5 * minute_ns + 1, 99, 4);
    trade("cpu", 5 * minute_ns + 2, 10, 2);
    trade("cpu", 5 * minute_ns + 3, 50, 1);
    const struct tape_bar *bar = trade("cpu", 6 * minute_ns - 1, 40, 8);
    ck_assert_int_eq(bar->start_ns, 5 * minute_ns);
    ck_assert_int_eq(bar->open_micro, 30);
    ck_assert_int_eq(bar->high_micro, 50);
    ck_assert_int_eq(bar->low_micro, 10);
    ck_assert_int_eq(bar->close_micro, 40);
    ck_assert_uint_eq(bar->slots, 12);
    ck_assert_uint_eq(bar->trades, 4);
    bar = trade("cpu", 6 * minute_ns, 41, 1);
    ck_assert_int_eq(bar->start_ns, 6 * minute_ns);
    ck_assert_uint_eq(bar->trades, 1);
    struct tape_bar last;
    ck_assert_uint_eq(bars_of("cpu", 0, &last), 2);
    ck_assert_uint_eq(bars_of("cpu", 6 * minute_ns, &last), 1);
    ck_assert_int_eq(last.close_micro, 41);
    ck_assert_uint_eq(bars_of("gpu", 0, &last), 1);
    ck_assert_uint_eq(bars_of("tpu", 0, &last), 0);
}
END_TEST

START_TEST(all_minutes_of_an_instrument_make_one_sum)
{
    trade("cpu", 1 * minute_ns, 30, 1);
    trade("gpu", 1 * minute_ns, 99, 4);
    trade("cpu", 2 * minute_ns, 10, 2);
    trade("cpu", 9 * minute_ns, 20, 4);
    struct tape_bar last = {0};
    tape_sums(tape, 0, count_bar, &last);
    ck_assert_uint_eq(last.trades, 2); /* instruments; cpu, traded last, came first */
    ck_assert_int_eq(last.close_micro, 99);
    last = (struct tape_bar){0};
    tape_sums(tape, 2 * minute_ns, count_bar, &last);
    ck_assert_uint_eq(last.trades, 1);
    ck_assert_int_eq(last.open_micro, 10);
    ck_assert_int_eq(last.high_micro, 20);
    ck_assert_int_eq(last.close_micro, 20);
    ck_assert_uint_eq(last.slots, 6);
}
END_TEST

START_TEST(the_usual_price_is_what_three_quarters_of_the_slots_paid_at_most)
{
    ck_assert_uint_eq(usual_of("cpu", minute_ns).trades, 0);
    trade("cpu", 100, 40, 1);
    trade("cpu", 101, 10, 2);
    trade("cpu", 102, 30, 1);
    struct tape_usual usual = usual_of("cpu", 103);
    ck_assert_int_eq(usual.price_micro, 30); /* 2 of 4 slots at 10, 3 of 4 at 30 */
    ck_assert_int_eq(usual.middle_micro, 10);
    ck_assert_uint_eq(usual.trades, 3);
    ck_assert_int_eq(usual.since_ns, 100);
    trade("cpu", 103, 5, 100);
    ck_assert_int_eq(usual_of("cpu", 103).price_micro, 5);
    trade("gpu", 104, 1000, 100);
    ck_assert_int_eq(usual_of("cpu", 104).price_micro, 5);
    tape_choose_none(tape);
    choose("cpu");
    choose("gpu");
    ck_assert_int_eq(tape_usual(tape, 104).price_micro, 1000); /* 104 of 204 slots below */
    ck_assert_uint_eq(usual_of("tpu", 104).trades, 0);
}
END_TEST

START_TEST(the_usual_price_is_of_the_last_day_and_of_the_last_trades)
{
    trade("cpu", 0, 900, 1);
    trade("cpu", TAPE_USUAL_AGE_NS, 7, 1);
    ck_assert_uint_eq(usual_of("cpu", TAPE_USUAL_AGE_NS).trades, 2);
    ck_assert_int_eq(usual_of("cpu", TAPE_USUAL_AGE_NS + 1).price_micro, 7);
    ck_assert_uint_eq(usual_of("cpu", 2 * TAPE_USUAL_AGE_NS + 1).trades, 0);
    for (int i = 0; i < TAPE_USUAL_TRADES; i++) {
        trade("cpu", TAPE_USUAL_AGE_NS + i, 8, 1);
    }
    ck_assert_int_eq(usual_of("cpu", TAPE_USUAL_AGE_NS + TAPE_USUAL_TRADES).price_micro, 8);
    ck_assert_uint_eq(usual_of("cpu", TAPE_USUAL_AGE_NS + TAPE_USUAL_TRADES).trades,
                      TAPE_USUAL_TRADES);
}
END_TEST

START_TEST(an_instrument_keeps_so_many_bars)
{
    struct tape_bar last;
    for (int i = 0; i < TAPE_BARS_EACH; i++) {
        trade("cpu", i * minute_ns, i, 1);
    }
    ck_assert_uint_eq(tape_forgotten(tape), 0);
    ck_assert_uint_eq(bars_of("cpu", 0, &last), TAPE_BARS_EACH);
    trade("gpu", TAPE_BARS_EACH * minute_ns, 1, 1);
    ck_assert_uint_eq(tape_forgotten(tape), 0);
    trade("cpu", TAPE_BARS_EACH * minute_ns, 1, 1);
    ck_assert_uint_eq(tape_forgotten(tape), 2); /* the number of its first bar */
    ck_assert_uint_eq(bars_of("cpu", 0, &last), TAPE_BARS_EACH);
    ck_assert_uint_eq(bars_of("gpu", 0, &last), 1);
}
END_TEST

START_TEST(bars_go_when_they_are_a_week_old)
{
    struct tape_bar last;
    trade("cpu", 3 * minute_ns, 5, 1);
    trade("gpu", 3 * minute_ns + TAPE_BARS_AGE_NS, 5, 1);
    ck_assert_uint_eq(bars_of("cpu", 0, &last), 1);
    trade("gpu", 4 * minute_ns + TAPE_BARS_AGE_NS, 5, 1);
    ck_assert_uint_eq(bars_of("cpu", 0, &last), 0);
    ck_assert_uint_eq(bars_of("gpu", 0, &last), 2);
}
END_TEST

/* Trades are kept longer than the bars of many instruments, or shorter: neither may outlive the
 * name. */
START_TEST(more_instruments_than_there_is_room_for_push_out_the_oldest)
{
    char name[ATTRIBUTE_TEXT_SIZE];
    struct tape_bar last;
    for (int i = 0; i < TAPE_BARS + 5; i++) {
        (void)snprintf(name, sizeof name, "custom.%d", i);
        trade(name, i, i, 1);
    }
    ck_assert_uint_eq(bars_of("custom.4", 0, &last), 0);
    ck_assert_uint_eq(bars_of("custom.5", 0, &last), 1);
    ck_assert_uint_eq(tape_forgotten(tape), 2 * (TAPE_BARS + 5 - TAPE_TRADES) - 1);
    ck_assert_int_eq(usual_of(name, TAPE_BARS + 5).price_micro, TAPE_BARS + 4);
    ck_assert_uint_eq(usual_of("custom.5", TAPE_BARS + 5).trades, 0); /* its trade is gone */
}
END_TEST

SUITE("tape", open_tape, close_tape, TEST(a_bar_is_a_minute_of_one_instrument),
      TEST(all_minutes_of_an_instrument_make_one_sum),
      TEST(the_usual_price_is_what_three_quarters_of_the_slots_paid_at_most),
      TEST(the_usual_price_is_of_the_last_day_and_of_the_last_trades),
      TEST(an_instrument_keeps_so_many_bars), TEST(bars_go_when_they_are_a_week_old),
      TEST(more_instruments_than_there_is_room_for_push_out_the_oldest))
