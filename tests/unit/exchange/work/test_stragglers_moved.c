/* Work that only waits in a slow lane at the end of a job is moved to another lane. */
#include "base/checked.h"
#include "exchange/state/records.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/straggler_market.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(what_waits_in_a_slow_lane_is_moved_to_an_idle_one)
{
    struct id128 job = all_but_what_the_other_holds();
    ck_assert_uint_eq(held_count[1], 2);
    ck_assert_uint_eq(withdrawn_count, 1); /* of what only waits there */
    struct exchange_work back = withdrawn;
    ck_assert_uint_eq(back.index, held[1][1].index);
    tick_and_listen();
    answer(OTHER_PROVIDER, job, 1, OUTCOME_CANCELLED, 0);
    struct exchange_work moved = take(PROVIDER, held_count[0] - 1);
    ck_assert_uint_eq(moved.index, back.index);
    ck_assert_uint_eq(moved.attempt, 2);
    check_hash();
}
END_TEST

/* It need not be idle for it. */
START_TEST(what_waits_in_a_slow_lane_is_moved_to_a_busy_one)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit(8, 400);
    listen();
    while (withdrawn_count == 0) {
        ck_assert_uint_gt(held_count[0], 0);
        market.now_ns += NS_PER_S;
        answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    }
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(held_count[1], 2);
    ck_assert_uint_eq(withdrawn.index, held[1][1].index);
    answer(OTHER_PROVIDER, job, 1, OUTCOME_CANCELLED, 0);
    ck_assert_uint_eq(held_count[1], 1);
    ck_assert_uint_eq(held_count[0], 2);
    ck_assert_uint_eq(held[0][1].index, withdrawn.index);
    ck_assert_uint_eq(held[0][1].attempt, 2);
    check_hash();
}
END_TEST

/* The two lanes do a subtask a second; the second runs one and has one more to do when the first
 * has nothing left. */
START_TEST(what_waits_behind_another_is_moved_where_it_is_done_sooner)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit(12, 400);
    listen();
    for (int done = 0; done < 2; done++) {
        market.now_ns += NS_PER_S;
        answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
        answer(OTHER_PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    }
    while (held_count[0] > 0) { /* from here on the first is faster */
        market.now_ns += NS_PER_S / 8;
        answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S / 8);
    }
    ck_assert_uint_eq(job_row(job).waiting, 0);
    ck_assert_uint_eq(held_count[1], 2);
    ck_assert_uint_eq(withdrawn_count, 1);
    ck_assert_uint_eq(withdrawn.index, held[1][1].index);
    check_hash();
}
END_TEST

/* Two lanes of one lease: what is queued behind the one that takes long keeps the other from
 * nothing. */
START_TEST(what_waits_behind_another_is_moved_within_a_lease)
{
    offer(PROVIDER, 2, price);
    struct id128 job = submit(6, 400);
    listen();
    ck_assert_uint_eq(held[0][0].index, 0);
    const uint32_t long_lane = held[0][0].lane;
    for (uint32_t done = 0; done < 4; done++) {
        size_t at = 0;
        while (held[0][at].lane == long_lane) {
            at++;
        }
        market.now_ns += NS_PER_S / 5;
        answer(PROVIDER, job, at, OUTCOME_OK, NS_PER_S / 5);
    }
    ck_assert_uint_eq(held_count[0], 2);
    ck_assert_uint_eq(held[0][1].lane, long_lane);
    ck_assert_uint_eq(withdrawn_count, 1);
    ck_assert_uint_eq(withdrawn.index, held[0][1].index);
    answer(PROVIDER, job, 1, OUTCOME_CANCELLED, 0);
    ck_assert_uint_eq(held_count[0], 2);
    ck_assert_uint_ne(held[0][1].lane, long_lane);
    check_hash();
}
END_TEST

/* The lane that is busy will be done with it before the one that is idle: it stays where it is. */
START_TEST(what_waits_is_not_moved_where_it_is_done_later)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit(6, 400);
    listen();
    market.now_ns += 10 * NS_PER_S;
    answer(OTHER_PROVIDER, job, 0, OUTCOME_OK, 10 * NS_PER_S); /* ten seconds each */
    while (job_row(job).waiting > 0 || held_count[1] > 0) {
        size_t who = held_count[0] > 1 || held_count[1] == 0 ? 0 : 1;
        market.now_ns += who == 0 ? NS_PER_S / 10 : 10 * NS_PER_S;
        answer(who == 0 ? PROVIDER : OTHER_PROVIDER, job, 0, OUTCOME_OK,
               who == 0 ? NS_PER_S / 10 : 10 * NS_PER_S);
        ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    }
    check_hash();
}
END_TEST

SUITE("stragglers: moved", begin, tear_down,
      TEST(what_waits_in_a_slow_lane_is_moved_to_an_idle_one),
      TEST(what_waits_in_a_slow_lane_is_moved_to_a_busy_one),
      TEST(what_waits_behind_another_is_moved_where_it_is_done_sooner),
      TEST(what_waits_behind_another_is_moved_within_a_lease),
      TEST(what_waits_is_not_moved_where_it_is_done_later))
