/* The tests follow work while it runs: order, lanes, moves, stragglers, drift. */
#include "planner/schedule/online.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>

#define SECONDS(n) ((n)*NS_PER_S)

START_TEST(the_higher_rank_goes_first_then_the_lower_index)
{
    ck_assert(online_goes_before((struct online_task){7, 9}, (struct online_task){6, 1}));
    ck_assert(!online_goes_before((struct online_task){6, 1}, (struct online_task){7, 9}));
    ck_assert(online_goes_before((struct online_task){6, 1}, (struct online_task){6, 2}));
    ck_assert(!online_goes_before((struct online_task){6, 2}, (struct online_task){6, 2}));
}
END_TEST

START_TEST(what_runs_is_expected_to_end_and_when_overdue_to_be_half_way)
{
    ck_assert_int_eq(online_left_ns(SECONDS(10), SECONDS(4)), SECONDS(6));
    ck_assert_int_eq(online_left_ns(SECONDS(10), SECONDS(10)), SECONDS(10));
    ck_assert_int_eq(online_left_ns(SECONDS(10), SECONDS(25)), SECONDS(25));
    ck_assert_int_eq(online_left_ns(0, SECONDS(4)), 0);
}
END_TEST

START_TEST(a_lane_that_may_not_take_any_is_never_done_with_one_more)
{
    const struct online_lane lanes[] = {
        {.load_ns = ONLINE_NEVER, .takes_ns = 1},
        {.load_ns = INT64_MAX - 5, .takes_ns = 9}, /* beyond all time: as good as never */
        {.load_ns = SECONDS(3), .takes_ns = SECONDS(2)},
    };
    ck_assert_int_eq(online_finish_ns(&lanes[0]), ONLINE_NEVER);
    ck_assert_int_eq(online_finish_ns(&lanes[1]), ONLINE_NEVER);
    ck_assert_int_eq(online_finish_ns(&lanes[2]), SECONDS(5));
}
END_TEST

START_TEST(a_lane_has_enough_in_flight_and_no_more_than_its_share)
{
    ck_assert_uint_eq(online_depth(SECONDS(5), 4, 1000), 2);
    ck_assert_uint_eq(online_depth(NS_PER_MS, 4, 1000), 20); /* 20 ms of work */
    ck_assert_uint_eq(online_depth(1, 4, 100000), ONLINE_WINDOW_MOST);
    ck_assert_uint_eq(online_depth(1, 1000, 10000000), ONLINE_WINDOW_ALWAYS);
    ck_assert_uint_eq(online_depth(NS_PER_MS, 4, 23), 3); /* 1 + half of 23, over 4 lanes */
    ck_assert_uint_eq(online_depth(SECONDS(5), 4, 0), 1);
    ck_assert_uint_eq(online_depth(0, 0, 0), 1);
}
END_TEST

START_TEST(twenty_percent_about_the_mean_is_level)
{
    struct online_lane lanes[] = {
        {.load_ns = SECONDS(120), .can_give = true},
        {.load_ns = SECONDS(80), .takes_ns = SECONDS(1)},
        {.load_ns = SECONDS(100)},
        {.load_ns = ONLINE_NEVER},
    };
    ck_assert_uint_eq(online_victim(lanes, 4, 1), ONLINE_NONE);
    lanes[0].load_ns = SECONDS(122);
    lanes[1].load_ns = SECONDS(80); /* of a mean of 100.7 it is less than 80 % */
    ck_assert_uint_eq(online_victim(lanes, 4, 1), 0);
    lanes[1].load_ns = SECONDS(90);
    ck_assert_uint_eq(online_victim(lanes, 4, 1), ONLINE_NONE);
}
END_TEST

START_TEST(an_idle_lane_takes_from_the_one_with_most_before_it)
{
    const struct online_lane lanes[] = {
        {.load_ns = 0, .takes_ns = SECONDS(1)},
        {.load_ns = SECONDS(5), .takes_ns = SECONDS(1), .can_give = true},
        {.load_ns = SECONDS(9), .takes_ns = SECONDS(9)}, /* it runs: nothing to take */
        {.load_ns = SECONDS(7), .takes_ns = SECONDS(2), .can_give = true},
    };
    ck_assert_uint_eq(online_victim(lanes, 4, 0), 3);
    ck_assert_uint_eq(online_victim(lanes, 4, 2), ONLINE_NONE);
    ck_assert_uint_eq(online_victim(lanes, 4, 3),
                      ONLINE_NONE); /* not from itself, nor when above */
}
END_TEST

START_TEST(nothing_is_taken_that_would_be_done_as_soon_where_it_is)
{
    struct online_lane lanes[] = {
        {.load_ns = 0, .takes_ns = SECONDS(3)},
        {.load_ns = SECONDS(3), .takes_ns = SECONDS(1), .can_give = true},
    };
    ck_assert_uint_eq(online_victim(lanes, 2, 0), ONLINE_NONE);
    lanes[1].load_ns = SECONDS(3) + ONLINE_MOVE_NS - 1; /* less than the way takes */
    ck_assert_uint_eq(online_victim(lanes, 2, 0), ONLINE_NONE);
    lanes[1].load_ns++;
    ck_assert_uint_eq(online_victim(lanes, 2, 0), 1);
    lanes[0].takes_ns = INT64_MAX;
    ck_assert_uint_eq(online_victim(lanes, 2, 0), ONLINE_NONE);
}
END_TEST

START_TEST(who_takes_need_not_be_idle)
{
    struct online_lane lanes[] = {
        {.load_ns = SECONDS(2), .takes_ns = SECONDS(5)},
        {.load_ns = SECONDS(3), .takes_ns = SECONDS(1)},
        {.load_ns = SECONDS(12), .takes_ns = ONLINE_NEVER, .can_give = true},
        {.load_ns = SECONDS(5), .takes_ns = SECONDS(0)}, /* not 20 % below the mean, 5.5 s */
    };
    ck_assert_uint_eq(online_fullest(lanes, 4), 2);
    ck_assert_uint_eq(online_earliest(lanes, 4), 1);
    ck_assert_uint_eq(online_thief(lanes, 4), 1);
    ck_assert_uint_eq(online_victim(lanes, 4, 1), 2);
    lanes[1].takes_ns = ONLINE_NEVER;
    ck_assert_uint_eq(online_earliest(lanes, 4), 3);
    ck_assert_uint_eq(online_thief(lanes, 4), 0);
    lanes[0].load_ns = lanes[3].load_ns = ONLINE_NEVER;
    ck_assert_uint_eq(online_earliest(lanes, 4), ONLINE_NONE);
    ck_assert_uint_eq(online_thief(lanes, 4), ONLINE_NONE);
    lanes[2].can_give = false;
    ck_assert_uint_eq(online_fullest(lanes, 4), ONLINE_NONE);
}
END_TEST

START_TEST(patience_is_twice_the_mean_and_a_second_at_least)
{
    ck_assert_int_eq(online_patience_ns(SECONDS(3), ONLINE_SAMPLES), SECONDS(6));
    ck_assert_int_eq(online_patience_ns(NS_PER_MS, ONLINE_SAMPLES), ONLINE_PATIENCE_NS);
    ck_assert_int_eq(online_patience_ns(SECONDS(3), ONLINE_SAMPLES - 1), ONLINE_NEVER);
    ck_assert_int_eq(online_patience_ns(0, 100), ONLINE_NEVER);
    ck_assert_int_eq(online_patience_ns(INT64_MAX, 100), ONLINE_NEVER);
}
END_TEST

/* Converts to milliseconds; ONLINE_NEVER stays what it is. */
static int64_t late_ms(int64_t said, int64_t usual, int64_t there)
{
    const struct online_late late = {said * NS_PER_MS, usual * NS_PER_MS, there * NS_PER_MS};
    const int64_t ns = online_late_ns(&late);
    return ns == ONLINE_NEVER ? ns : ns / NS_PER_MS;
}

START_TEST(with_few_samples_a_fifth_more_than_expected_and_than_elsewhere_is_late)
{
    ck_assert_int_eq(late_ms(1000, 0, 1000), 1200);
    ck_assert_int_eq(late_ms(1500, 0, 1000), 1800); /* it was not to be as fast as the idle one */
    ck_assert_int_eq(late_ms(1000, 0, 1500), 1800); /* all are slower than was said */
    ck_assert_int_eq(late_ms(1000, 4000, 1000), 4800); /* it is known to be slow there */
    ck_assert_int_eq(late_ms(1000, 500, 1000), 1200);
    ck_assert_int_eq(late_ms(100, 0, 100), 150); /* not worth less than a move */
}
END_TEST

START_TEST(a_guess_makes_nothing_late)
{
    ck_assert_int_eq(late_ms(0, 0, 1000), ONLINE_NEVER);
    ck_assert_int_eq(late_ms(0, 1000, 1000), ONLINE_NEVER);
    ck_assert_int_eq(late_ms(1000, 0, 0), ONLINE_NEVER);
    ck_assert_int_eq(late_ms(5000, 0, 1600), ONLINE_NEVER);
    ck_assert_int_eq(late_ms(5000, 0, 1700), 6000);
    ck_assert_int_eq(late_ms(5000, 0, 15000), 18000);
    ck_assert_int_eq(late_ms(5000, 0, 15001), ONLINE_NEVER);
    const struct online_late longest = {INT64_MAX, INT64_MAX, INT64_MAX};
    ck_assert_int_eq(online_late_ns(&longest), ONLINE_NEVER);
}
END_TEST

START_TEST(a_pace_says_how_long_another_takes)
{
    const struct online_pace twice = {.said_ns = SECONDS(2), .took_ns = SECONDS(4)};
    ck_assert_int_eq(online_at_pace_ns(SECONDS(10), twice), SECONDS(20));
    ck_assert_int_eq(online_at_pace_ns(0, twice), 0);
    ck_assert_int_eq(online_at_pace_ns(SECONDS(10), (struct online_pace){0, 0}), 0);
    ck_assert_int_eq(online_at_pace_ns(INT64_MAX, twice), ONLINE_NEVER);
}
END_TEST

/* All paces in percent of what was said, 0: none. */
static int64_t own_late_ms(int64_t said, int64_t all, uint64_t samples, int64_t here, int64_t there)
{
    const struct online_own own = {
        .said_ns = said * NS_PER_MS,
        .all = {.said_ns = all > 0 ? 100 : 0, .took_ns = all},
        .samples = samples,
        .here = {.said_ns = here > 0 ? 100 : 0, .took_ns = here},
        .there = {.said_ns = there > 0 ? 100 : 0, .took_ns = there},
    };
    const int64_t ns = online_own_late_ns(&own);
    return ns == ONLINE_NEVER ? ns : ns / NS_PER_MS;
}

START_TEST(one_that_is_not_like_the_others_is_late_by_what_was_said_of_it)
{
    /* Four results give twice as long at the pace of all, however short the others were. */
    ck_assert_int_eq(own_late_ms(8000, 100, ONLINE_SAMPLES, 100, 100), 16000);
    ck_assert_int_eq(own_late_ms(8000, 150, ONLINE_SAMPLES, 100, 100), 24000);
    ck_assert_int_eq(own_late_ms(8000, 25, ONLINE_SAMPLES, 25, 25), 16000);
    ck_assert_int_eq(own_late_ms(100, 100, ONLINE_SAMPLES, 100, 100), 1000);
    /* Fewer results give a fifth longer: than here, and than there. */
    ck_assert_int_eq(own_late_ms(8000, 100, ONLINE_SAMPLES - 1, 0, 100), 9600);
    ck_assert_int_eq(own_late_ms(8000, 100, ONLINE_SAMPLES - 1, 200, 100), 19200);
    ck_assert_int_eq(own_late_ms(8000, 100, ONLINE_SAMPLES - 1, 100, 150), 14400);
    ck_assert_int_eq(own_late_ms(8000, 50, ONLINE_SAMPLES - 1, 50, 50), 9600);
    ck_assert_int_eq(own_late_ms(100, 100, 1, 100, 100), 150);
}
END_TEST

START_TEST(one_of_which_nothing_is_known_is_never_late)
{
    ck_assert_int_eq(own_late_ms(0, 100, 100, 100, 100), ONLINE_NEVER);
    ck_assert_int_eq(own_late_ms(8000, 0, 100, 0, 0), ONLINE_NEVER); /* the others had none */
    ck_assert_int_eq(own_late_ms(8000, 100, 1, 100, 0), ONLINE_NEVER);
    ck_assert_int_eq(own_late_ms(8000, 20, 1, 20, 20),
                     ONLINE_NEVER); /* what was said was a guess */
    const struct online_own longest = {
        .said_ns = INT64_MAX, .all = {.said_ns = 1, .took_ns = INT64_MAX}, .samples = 100};
    ck_assert_int_eq(online_own_late_ns(&longest), ONLINE_NEVER);
}
END_TEST

START_TEST(more_than_twenty_percent_off_is_drift)
{
    ck_assert(!online_drifts(100, 120, ONLINE_SAMPLES));
    ck_assert(!online_drifts(100, 80, ONLINE_SAMPLES));
    ck_assert(online_drifts(100, 121, ONLINE_SAMPLES));
    ck_assert(online_drifts(100, 79, ONLINE_SAMPLES));
    ck_assert(!online_drifts(100, 1000, ONLINE_SAMPLES - 1));
    ck_assert(!online_drifts(0, 1000, 100));
    ck_assert(online_drifts(1, INT64_MAX, 100));
}
END_TEST

static struct online_pace pace_ms(int64_t said, int64_t took, uint64_t samples, int64_t all,
                                  uint64_t subtasks)
{
    return online_pace_of_rest(&(struct online_done){
        .sum = {said, took}, .samples = samples, .all_ns = all, .subtasks = subtasks});
}

START_TEST(results_tell_the_pace_of_the_rest_where_they_are_many_and_weigh_something)
{
    /* Four of ten alike of 100 are as much work as 400. */
    ck_assert_int_eq(pace_ms(400, 800, 4, 1000, 10).took_ns, 800);
    ck_assert_int_eq(pace_ms(300, 600, 3, 1000, 10).took_ns, 1); /* as was said */
    /* Five of six are short: the pace counts only where they take a fifth of all more. */
    ck_assert_int_eq(pace_ms(250, 500, 5, 4250, 6).took_ns, 1);
    ck_assert_int_eq(pace_ms(250, 1100, 5, 4250, 6).took_ns, 1);
    ck_assert_int_eq(pace_ms(250, 1101, 5, 4250, 6).took_ns, 1101);
    ck_assert_int_eq(pace_ms(0, 500, 5, 0, 6).took_ns, 1);
}
END_TEST

START_TEST(what_runs_counts_down_and_when_overdue_takes_as_long_again_as_it_is)
{
    ck_assert_int_eq(online_ends_in_ns(SECONDS(4), 0), SECONDS(4));
    ck_assert_int_eq(online_ends_in_ns(SECONDS(4), SECONDS(3)), SECONDS(1));
    ck_assert_int_eq(online_ends_in_ns(SECONDS(4), SECONDS(4)), 0);
    ck_assert_int_eq(online_ends_in_ns(SECONDS(4), SECONDS(6)), SECONDS(2));
}
END_TEST

START_TEST(the_rest_takes_its_work_over_the_lanes_and_its_longest_way_at_least)
{
    struct online_rest rest = {
        .work_ns = SECONDS(12), .way_ns = SECONDS(2), .lanes = 3, .open = 30};
    ck_assert_int_eq(online_rest_ns(&rest), SECONDS(4));
    rest.way_ns = SECONDS(5);
    ck_assert_int_eq(online_rest_ns(&rest), SECONDS(5));
    rest.open = 2; /* the third has nothing */
    ck_assert_int_eq(online_rest_ns(&rest), SECONDS(6));
    rest.lanes = 0;
    ck_assert_int_eq(online_rest_ns(&rest), SECONDS(5));
}
END_TEST

SUITE("online", NULL, NULL, TEST(the_higher_rank_goes_first_then_the_lower_index),
      TEST(what_runs_is_expected_to_end_and_when_overdue_to_be_half_way),
      TEST(a_lane_that_may_not_take_any_is_never_done_with_one_more),
      TEST(a_lane_has_enough_in_flight_and_no_more_than_its_share),
      TEST(twenty_percent_about_the_mean_is_level),
      TEST(an_idle_lane_takes_from_the_one_with_most_before_it),
      TEST(nothing_is_taken_that_would_be_done_as_soon_where_it_is),
      TEST(who_takes_need_not_be_idle), TEST(patience_is_twice_the_mean_and_a_second_at_least),
      TEST(with_few_samples_a_fifth_more_than_expected_and_than_elsewhere_is_late),
      TEST(a_guess_makes_nothing_late), TEST(a_pace_says_how_long_another_takes),
      TEST(one_that_is_not_like_the_others_is_late_by_what_was_said_of_it),
      TEST(one_of_which_nothing_is_known_is_never_late),
      TEST(more_than_twenty_percent_off_is_drift),
      TEST(results_tell_the_pace_of_the_rest_where_they_are_many_and_weigh_something),
      TEST(what_runs_counts_down_and_when_overdue_takes_as_long_again_as_it_is),
      TEST(the_rest_takes_its_work_over_the_lanes_and_its_longest_way_at_least))
