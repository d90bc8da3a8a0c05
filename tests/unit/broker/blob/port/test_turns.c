/* The tests ask whose message is next: shares of steps, in order for each account, and no more than
 * the caps say. */
#include "broker/blob/port/turns.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FLOODER = 1, HONEST = 2, BYTES = 100 };

static struct turns turns;
static struct turn messages[TURNS_EACH + 8];

static void put(size_t message, uint32_t account)
{
    ck_assert(turns_put(&turns, &messages[message], account, BYTES, 0));
}

/* Answers the next message, for so many steps; whose it is. */
static uint32_t answer(uint64_t steps)
{
    struct turn *turn = turns_first(&turns, 0);
    ck_assert_ptr_nonnull(turn);
    const uint32_t account = turn->account;
    turns_charge(&turns, account, steps, 0);
    turns_take(&turns, turn);
    return account;
}

static void set_up(void)
{
    memset(&turns, 0, sizeof turns);
}

START_TEST(each_account_keeps_its_order)
{
    put(0, FLOODER);
    put(1, HONEST);
    put(2, FLOODER);
    for (size_t i = 0; i < 3; i += 2) {
        ck_assert_ptr_eq(turns_first(&turns, 0), &messages[i]);
        turns_take(&turns, &messages[i]);
    }
    ck_assert_ptr_eq(turns_first(&turns, 0), &messages[1]);
    turns_take(&turns, &messages[1]);
    ck_assert_ptr_null(turns_first(&turns, 0));
    ck_assert_uint_eq(turns.count, 0);
    ck_assert_uint_eq(turns.bytes, 0);
}
END_TEST

START_TEST(who_has_cost_least_is_next)
{
    for (size_t i = 0; i < 100; i++) {
        put(i, FLOODER);
    }
    ck_assert_uint_eq(answer(1000000), FLOODER);
    for (size_t i = 0; i < 5; i++) { /* as long as it does not cost as much itself */
        put(200 + i, HONEST);
        ck_assert_uint_eq(answer(100000), HONEST);
    }
    ck_assert_uint_eq(answer(1000000), FLOODER);
}
END_TEST

START_TEST(two_that_ask_all_along_have_the_same_share)
{
    uint64_t steps[3] = {0};
    for (size_t i = 0; i < 200; i++) {
        put(i, FLOODER);
        put(200 + i, HONEST);
    }
    for (size_t i = 0; i < 150; i++) { /* one's messages cost ten times the other's */
        const struct turn *turn = turns_first(&turns, 0);
        const uint64_t cost = turn->account == FLOODER ? 10000 : 1000;
        steps[answer(cost)] += cost;
    }
    ck_assert_uint_le(steps[FLOODER], steps[HONEST] + 10000);
    ck_assert_uint_le(steps[HONEST], steps[FLOODER] + 10000);
}
END_TEST

START_TEST(who_did_not_ask_has_saved_nothing)
{
    put(0, HONEST);
    put(1, FLOODER);
    ck_assert_uint_eq(answer(10), HONEST);
    for (size_t i = 2; i < 100; i++) { /* alone for a long time */
        put(i, FLOODER);
        ck_assert_uint_eq(answer(1000000), FLOODER);
    }
    for (size_t i = 100; i < 110; i++) {
        put(i, HONEST);
        put(100 + i, FLOODER);
    }
    unsigned honest = 0;
    for (size_t i = 0; i < 10; i++) {
        honest += answer(1000000) == HONEST;
    }
    ck_assert_uint_le(honest, 6);
    ck_assert_uint_ge(honest, 4);
}
END_TEST

START_TEST(a_short_queue_does_not_hide_what_was_charged)
{
    put(0, HONEST);
    put(1, HONEST);
    put(2, HONEST);
    put(3, FLOODER);
    ck_assert_uint_eq(answer(10), HONEST);
    ck_assert_uint_eq(answer(1000), FLOODER);
    put(4, FLOODER); /* it asks again only when it has its answer */
    ck_assert_uint_eq(answer(10), HONEST);
    ck_assert_uint_eq(answer(10), HONEST);
    ck_assert_uint_eq(answer(10), FLOODER);
}
END_TEST

START_TEST(who_is_put_off_lets_others_pass)
{
    put(0, FLOODER);
    put(1, HONEST);
    turns_put_off(&turns, FLOODER, 50);
    ck_assert_ptr_eq(turns_first(&turns, 49), &messages[1]);
    turns_take(&turns, &messages[1]);
    ck_assert_ptr_null(turns_first(&turns, 49));
    ck_assert_ptr_eq(turns_first(&turns, 50), &messages[0]);
}
END_TEST

START_TEST(who_spends_more_time_than_there_is_waits)
{
    const int64_t saved_ns = TURNS_SAVED_MS * NS_PER_MS;
    const int64_t now_ns = 10 * saved_ns;
    put(0, FLOODER);
    turns_pace(&turns, FLOODER, saved_ns, now_ns); /* what was saved up */
    ck_assert_ptr_nonnull(turns_first(&turns, now_ns));
    turns_pace(&turns, FLOODER, 500, now_ns);
    turns_pace(&turns, FLOODER, 200, now_ns);
    ck_assert_ptr_null(turns_first(&turns, now_ns + 699));
    ck_assert_ptr_nonnull(turns_first(&turns, now_ns + 700));
    turns_pace(&turns, FLOODER, saved_ns, now_ns + 700); /* nothing is saved by now */
    ck_assert_ptr_null(turns_first(&turns, now_ns + 699 + saved_ns));
    const int64_t late_ns = 10 * now_ns;
    turns_pace(&turns, FLOODER, saved_ns, late_ns);
    ck_assert_ptr_nonnull(turns_first(&turns, late_ns));
    turns_pace(&turns, FLOODER, 1, late_ns); /* no more was saved in a long time */
    put(1, HONEST);
    ck_assert_ptr_eq(turns_first(&turns, late_ns), &messages[1]);
}
END_TEST

START_TEST(no_account_takes_the_room_of_others)
{
    for (size_t i = 0; i < TURNS_EACH; i++) {
        put(i, FLOODER);
    }
    ck_assert(!turns_put(&turns, &messages[TURNS_EACH], FLOODER, BYTES, 0));
    put(TURNS_EACH + 1, HONEST);
    for (uint32_t i = 0; i < TURNS_BYTES / TURNS_EACH_BYTES; i++) {
        ck_assert(turns_put(&turns, &messages[i], 10 + i, TURNS_EACH_BYTES - BYTES, 0));
    }
    ck_assert(!turns_put(&turns, &messages[TURNS_EACH + 2], 10, TURNS_ASSURED_BYTES, 0));
    ck_assert(turns_put(&turns, &messages[TURNS_EACH + 3], HONEST, TURNS_ASSURED_BYTES - BYTES, 0));
}
END_TEST

START_TEST(accounts_beyond_the_cap_take_the_places_of_those_that_wait_for_nothing)
{
    for (uint32_t i = 0; i < TURNS_ACCOUNTS; i++) {
        put(i, i);
    }
    ck_assert(!turns_put(&turns, &messages[TURNS_ACCOUNTS], TURNS_ACCOUNTS, BYTES, 0));
    (void)answer(10);
    put(TURNS_ACCOUNTS, TURNS_ACCOUNTS);
    size_t count = 0;
    while (turns_take_any(&turns) != NULL) {
        count++;
    }
    ck_assert_uint_eq(count, TURNS_ACCOUNTS);
}
END_TEST

START_TEST(others_ask_when_they_wait_or_did_so_lately)
{
    ck_assert(turns_put(&turns, &messages[0], FLOODER, BYTES, 1000));
    ck_assert(!turns_are_contended(&turns, FLOODER, 0));
    ck_assert(turns_put(&turns, &messages[1], HONEST, BYTES, 2000));
    ck_assert(turns_are_contended(&turns, FLOODER, 9000));
    turns_take(&turns, &messages[1]);
    ck_assert(turns_are_contended(&turns, FLOODER, 2000));
    ck_assert(!turns_are_contended(&turns, FLOODER, 2001));
    ck_assert_uint_eq(turns_bytes(&turns, FLOODER), BYTES);
    ck_assert_uint_eq(turns_bytes(&turns, HONEST), 0);
}
END_TEST

START_TEST(what_was_charged_lately_is_forgotten)
{
    const int64_t each_ns = TURNS_LATELY_MS * NS_PER_MS;
    put(0, FLOODER);
    put(1, HONEST);
    turns_charge(&turns, FLOODER, 1000, each_ns);
    ck_assert(turns_has_cost_most(&turns, FLOODER));
    turns_charge(&turns, HONEST, 500, each_ns);
    ck_assert(!turns_has_cost_most(&turns, FLOODER)); /* no more than twice as much */
    turns_charge(&turns, HONEST, 1000, 4 * each_ns);
    ck_assert(turns_has_cost_most(&turns, HONEST));
    turns_charge(&turns, FLOODER, 1, 1000 * each_ns);
    ck_assert(turns_has_cost_most(&turns, FLOODER));
    ck_assert(!turns_has_cost_most(&turns, HONEST));
}
END_TEST

START_TEST(who_costs_most_leaves_time_while_others_ask)
{
    put(0, FLOODER);
    turns_charge(&turns, FLOODER, 1000, 0);
    turns_leave_time(&turns, FLOODER, -1, 100);
    ck_assert_ptr_nonnull(turns_first(&turns, 0)); /* nobody else has asked */
    put(1, HONEST);
    turns_charge(&turns, HONEST, 500, 0);
    turns_leave_time(&turns, FLOODER, -1, 100);
    ck_assert_ptr_nonnull(turns_first(&turns, 0)); /* no more than twice as much */
    turns_charge(&turns, FLOODER, 1000, 0);
    turns_leave_time(&turns, FLOODER, -1, 100);
    turns_leave_time(&turns, HONEST, -1, 100);
    ck_assert_uint_eq(turns_first(&turns, 0)->account, HONEST);
    turns_take(&turns, turns_first(&turns, 0));
    ck_assert_ptr_null(turns_first(&turns, 99));
    ck_assert_ptr_nonnull(turns_first(&turns, 100));
}
END_TEST

SUITE("turns", set_up, NULL, TEST(each_account_keeps_its_order), TEST(who_has_cost_least_is_next),
      TEST(two_that_ask_all_along_have_the_same_share), TEST(who_did_not_ask_has_saved_nothing),
      TEST(a_short_queue_does_not_hide_what_was_charged), TEST(who_is_put_off_lets_others_pass),
      TEST(who_spends_more_time_than_there_is_waits),
      TEST(who_costs_most_leaves_time_while_others_ask), TEST(no_account_takes_the_room_of_others),
      TEST(accounts_beyond_the_cap_take_the_places_of_those_that_wait_for_nothing),
      TEST(others_ask_when_they_wait_or_did_so_lately), TEST(what_was_charged_lately_is_forgotten))
