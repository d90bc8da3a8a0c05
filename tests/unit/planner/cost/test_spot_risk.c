/* Work on devices that may be taken away: the formula against hand-made figures and against
 * dice. */
#include "planner/cost/spot.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static double expected(struct spot_risk risk, double work_s)
{
    double expected_s = -1;
    ck_assert_int_eq(spot_expect(&risk, work_s, &expected_s), SPOT_OK);
    return expected_s;
}

START_TEST(without_interruptions_work_takes_its_time)
{
    ck_assert_double_eq(expected((struct spot_risk){.restart_s = 60}, 1000), 1000);
    ck_assert_double_eq(expected((struct spot_risk){.per_hour = 5}, 0), 0);
    /* Ten parts with a checkpoint of 3 s each. */
    struct spot_risk kept = {.interval_s = 100, .checkpoint_s = 3};
    ck_assert_double_eq_tol(expected(kept, 1000), 1030, 1e-9);
    ck_assert_double_eq_tol(expected(kept, 1001), 1034, 1e-9); /* eleven */
    ck_assert_double_eq(expected(kept, 100), 100);             /* one part needs none */
}
END_TEST

/* An hour of work, one interruption an hour: (1 / lambda) (e - 1) = 1.71828 hours; and e - 1
 * restarts. */
START_TEST(interruptions_make_it_longer)
{
    struct spot_risk risk = {.per_hour = 1};
    ck_assert_double_eq_tol(expected(risk, 3600), 3600 * (exp(1) - 1), 1e-6);
    risk.restart_s = 100;
    ck_assert_double_eq_tol(expected(risk, 3600), 3700 * (exp(1) - 1), 1e-6);
    /* Ten parts, each 360 s and 10 s to write, take 10 (3600 + 100) (e^(370 / 3600) - 1). */
    risk.interval_s = 360;
    risk.checkpoint_s = 10;
    ck_assert_double_eq_tol(expected(risk, 3600), 10 * 3700 * (exp(370.0 / 3600) - 1), 1e-6);
    /* Very seldom: hardly longer, and not lost in rounding. */
    struct spot_risk seldom = {.per_hour = 1e-12};
    ck_assert_double_eq_tol(expected(seldom, 3600), 3600, 1e-6);
    ck_assert(expected(seldom, 3600) >= 3600);
}
END_TEST

START_TEST(the_mean_of_many_tries_is_as_expected)
{
    const struct spot_risk risk = {
        .per_hour = 2, .restart_s = 120, .interval_s = 1200, .checkpoint_s = 30};
    enum { RUNS = 20000 };
    struct random random = random_seeded(7);
    double sum = 0;
    for (int i = 0; i < RUNS; i++) {
        for (int part = 0; part < 3; part++) { /* an hour in three */
            double left = 1230;
            while (left > 0) {
                double dice = ((double)(random_u64(&random) >> 11) + 1) / 9007199254740993.0;
                double until = -log(dice) * 3600 / risk.per_hour;
                sum += until < 1230 ? until + risk.restart_s : 1230;
                left = until < 1230 ? 1230 : 0;
            }
        }
    }
    ck_assert_double_eq_tol(sum / RUNS, expected(risk, 3600), 0.02 * expected(risk, 3600));
}
END_TEST

/* Young's interval is close to the best: the whole neighbourhood is not better by more than 2 %. */
START_TEST(checkpoints_are_best_at_their_interval)
{
    struct spot_risk risk = {.per_hour = 0.5, .restart_s = 60, .checkpoint_s = 20};
    risk.interval_s = spot_interval(&risk);
    ck_assert_double_eq_tol(risk.interval_s, sqrt(2 * 20 * 7200.0), 1e-9);
    double chosen = expected(risk, 36000);
    risk.interval_s = 50;
    for (int i = 0; i < 70; i++) { /* to 40,000 s */
        ck_assert_msg(chosen <= 1.02 * expected(risk, 36000), "every %g s", risk.interval_s);
        risk.interval_s *= 1.1;
    }
    risk.checkpoint_s = 0;
    ck_assert(spot_interval(&risk) == 0);
    risk = (struct spot_risk){.checkpoint_s = 20};
    ck_assert(spot_interval(&risk) == 0);
}
END_TEST

START_TEST(what_never_ends_and_what_is_no_figure_is_refused)
{
    static const double wrong[] = {-1, NAN, INFINITY, 1e19};
    struct spot_risk risk = {.per_hour = 1};
    double expected_s = 77;
    ck_assert_int_eq(spot_expect(&risk, 21 * 3600, &expected_s), SPOT_HOPELESS);
    risk.interval_s = 3600; /* with checkpoints it does */
    ck_assert_int_eq(spot_expect(&risk, 21 * 3600, &expected_s), SPOT_OK);
    risk.checkpoint_s = 21 * 3600;
    ck_assert_int_eq(spot_expect(&risk, 21 * 3600, &expected_s), SPOT_HOPELESS);
    expected_s = 77;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct spot_risk each[4] = {{.per_hour = wrong[i]},
                                    {.restart_s = wrong[i]},
                                    {.interval_s = wrong[i]},
                                    {.checkpoint_s = wrong[i]}};
        for (size_t k = 0; k < 4; k++) {
            ck_assert_int_eq(spot_expect(&each[k], 1, &expected_s), SPOT_BAD_FIGURE);
        }
        risk = (struct spot_risk){.per_hour = 1};
        ck_assert_int_eq(spot_expect(&risk, wrong[i], &expected_s), SPOT_BAD_FIGURE);
    }
    risk = (struct spot_risk){.interval_s = 1e-9}; /* more parts than anybody counts */
    ck_assert_int_eq(spot_expect(&risk, 1e9, &expected_s), SPOT_BAD_FIGURE);
    ck_assert(expected_s == 77);
}
END_TEST

START_TEST(more_risk_takes_no_less)
{
    struct random random = random_seeded((uint64_t)_i + 1);
    for (int i = 0; i < 200; i++) {
        struct spot_risk risk = {.per_hour = (double)random_below(&random, 1000) / 1000,
                                 .restart_s = (double)random_below(&random, 600),
                                 .interval_s = (double)random_below(&random, 3000),
                                 .checkpoint_s = (double)random_below(&random, 100)};
        double work = (double)random_below(&random, 36000);
        double now = expected(risk, work);
        ck_assert(now >= work);
        risk.per_hour += 0.5;
        ck_assert(expected(risk, work) >= now);
        risk.restart_s += 10;
        ck_assert(expected(risk, work) >= now);
    }
}
END_TEST

/* Dealt out in random parts, none shorter than the shortest. */
START_TEST(parts_of_work_take_no_less_than_the_least)
{
    struct random random = random_seeded((uint64_t)_i + 100);
    for (int i = 0; i < 200; i++) {
        struct spot_risk risk = {.per_hour = (double)random_below(&random, 60),
                                 .restart_s = (double)random_below(&random, 600),
                                 .interval_s = (double)random_below(&random, 2) * 90,
                                 .checkpoint_s = (double)random_below(&random, 10)};
        const double shortest_s = (double)random_below(&random, 200);
        double work_s = 0;
        double takes_s = 0;
        for (uint64_t k = 1 + random_below(&random, 20); k > 0; k--) {
            double part_s = shortest_s + (double)random_below(&random, 400);
            work_s += part_s;
            takes_s += expected(risk, part_s);
        }
        double least_s = spot_least(&risk, work_s, shortest_s);
        ck_assert(least_s >= work_s && least_s <= takes_s * (1 + 1e-12));
    }
    /* One part of that length: just that. */
    const struct spot_risk risk = {.per_hour = 6, .restart_s = 20};
    ck_assert_double_eq_tol(spot_least(&risk, 500, 500), expected(risk, 500), 1e-9);
}
END_TEST

SUITE("spot risk", NULL, NULL, TEST(without_interruptions_work_takes_its_time),
      TEST(interruptions_make_it_longer), TEST(the_mean_of_many_tries_is_as_expected),
      TEST(checkpoints_are_best_at_their_interval),
      TEST(what_never_ends_and_what_is_no_figure_is_refused), LOOP(more_risk_takes_no_less, 0, 5),
      LOOP(parts_of_work_take_no_less_than_the_least, 0, 5))
