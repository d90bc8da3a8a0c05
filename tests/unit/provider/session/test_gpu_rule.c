/* The tests give the rule of a GPU readings by hand, and look at its orders and its reasons. */
#include "provider/session/gpu_rule.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define NS INT64_C(1000000000)

static struct gpu_rule rule;
static struct gpu_terms terms;
static struct gpu_reading quiet;

static void setup(void)
{
    terms = (struct gpu_terms){.is_set = true,
                               .after_ns = 60 * NS,
                               .give_back_ns = 30 * NS,
                               .celsius = 80,
                               .milliwatts = 200000};
    quiet = (struct gpu_reading){.sees_compute = true,
                                 .sees_graphics = true,
                                 .sees_heat = true,
                                 .sees_power = true,
                                 .celsius = 40,
                                 .milliwatts = 50000};
    gpu_rule_init(&rule, &terms, 0);
}

static enum idle_order at(int64_t seconds, const struct gpu_reading *reading)
{
    return gpu_rule_see(&rule, seconds * NS, reading);
}

static const char *reason(int64_t seconds)
{
    static char text[IDLE_REASON_SIZE];
    gpu_rule_reason(&rule, seconds * NS, text);
    return text;
}

START_TEST(other_terms_hold_from_the_next_reading_on)
{
    struct gpu_reading warm = quiet;
    warm.celsius = 82;
    (void)at(60, &quiet);
    ck_assert_int_eq(at(65, &warm), IDLE_HOLD);
    terms.celsius = 90;
    terms.after_ns = 0;
    gpu_rule_change(&rule, &terms);
    ck_assert_int_eq(at(70, &warm), IDLE_WORK); /* the heat is no sign any more */
    terms = (struct gpu_terms){.is_set = false};
    warm.celsius = 99;
    gpu_rule_change(&rule, &terms);
    ck_assert_int_eq(at(75, &warm), IDLE_WORK);
}
END_TEST

START_TEST(a_gpu_is_offered_after_it_was_watched_long_enough)
{
    ck_assert_int_eq(gpu_rule_order(&rule), IDLE_HOLD);
    ck_assert_int_eq(at(5, &quiet), IDLE_HOLD);
    ck_assert_str_eq(reason(5), "it has been watched for 5 s so far");
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
}
END_TEST

START_TEST(a_program_of_others_withholds_it_and_takes_the_work_away_in_steps)
{
    struct gpu_reading used = quiet;
    (void)strcpy(used.compute, "python3 (process 3182)");
    (void)at(60, &quiet);
    ck_assert_int_eq(at(65, &used), IDLE_HOLD);
    ck_assert_str_eq(reason(65), "python3 (process 3182) uses it");
    ck_assert_int_eq(at(94, &used), IDLE_HOLD);
    ck_assert_int_eq(at(95, &used), IDLE_SAVE);
    ck_assert_int_eq(at(100, &used), IDLE_RETURN);
    ck_assert_int_eq(at(105, &quiet), IDLE_RETURN);
    ck_assert_str_eq(reason(105), "python3 (process 3182) used it 5 s ago");
    ck_assert_int_eq(at(159, &quiet), IDLE_RETURN);
    ck_assert_int_eq(at(160, &quiet), IDLE_WORK);
}
END_TEST

START_TEST(programs_count_as_the_owner_says)
{
    struct gpu_reading draws = quiet;
    struct gpu_reading computes = quiet;
    (void)strcpy(draws.graphics, "Xorg (process 9)");
    (void)strcpy(computes.compute, "python3 (process 3182)");
    ck_assert_int_eq(at(60, &draws), IDLE_WORK);
    terms.programs = GPU_PROGRAMS_ANY;
    gpu_rule_init(&rule, &terms, 0);
    ck_assert_int_eq(at(60, &draws), IDLE_SAVE); /* held since 0 */
    ck_assert_str_eq(reason(60), "Xorg (process 9) uses it");
    terms.programs = GPU_PROGRAMS_RUN;
    gpu_rule_init(&rule, &terms, 0);
    ck_assert_int_eq(at(60, &computes), IDLE_WORK);
    computes.sees_compute = computes.sees_graphics = false;
    ck_assert_int_eq(at(65, &computes), IDLE_WORK);
}
END_TEST

START_TEST(heat_ends_only_clearly_below_the_limit)
{
    struct gpu_reading warm = quiet;
    warm.celsius = 79;
    ck_assert_int_eq(at(60, &warm), IDLE_WORK);
    warm.celsius = 80;
    ck_assert_int_eq(at(65, &warm), IDLE_HOLD);
    ck_assert_str_eq(reason(65), "it is at 80 C, and the owner's limit is 80 C");
    for (int64_t second = 70; second <= 400; second += 5) {
        warm.celsius = second % 2 == 0 ? 76 : 79;
        ck_assert_int_ne(at(second, &warm), IDLE_WORK);
    }
    warm.celsius = 75;
    ck_assert_int_eq(at(405, &warm), IDLE_RETURN);
    ck_assert_str_eq(reason(405), "it was at 76 C, and the owner's limit is 80 C 5 s ago");
    warm.celsius = 79; /* no sign any more, as before the heat */
    ck_assert_int_eq(at(459, &warm), IDLE_RETURN);
    ck_assert_int_eq(at(460, &warm), IDLE_WORK);
}
END_TEST

START_TEST(power_ends_only_clearly_below_the_limit)
{
    struct gpu_reading busy = quiet;
    busy.milliwatts = 199999;
    ck_assert_int_eq(at(60, &busy), IDLE_WORK);
    busy.milliwatts = 200000;
    ck_assert_int_eq(at(65, &busy), IDLE_HOLD);
    ck_assert_str_eq(reason(65), "it takes 200 W, and the owner's limit is 200 W");
    busy.milliwatts = 180001;
    ck_assert_int_eq(at(95, &busy), IDLE_SAVE);
    ck_assert_int_eq(at(130, &busy), IDLE_RETURN);
    busy.milliwatts = 180000;
    ck_assert_int_eq(at(189, &busy), IDLE_RETURN);
    ck_assert_int_eq(at(190, &busy), IDLE_WORK);
}
END_TEST

START_TEST(what_nobody_tells_withholds_it_and_is_named)
{
    static const char *const said[] = {"nothing here tells which programs compute on it",
                                       "nothing here tells which programs draw with it",
                                       "nothing here tells its temperature",
                                       "nothing here tells its power"};
    terms.programs = GPU_PROGRAMS_ANY;
    for (int i = 0; i < 4; i++) {
        struct gpu_reading blind = quiet;
        blind.sees_compute = i != 0;
        blind.sees_graphics = i != 1;
        blind.sees_heat = i != 2;
        blind.sees_power = i != 3;
        gpu_rule_init(&rule, &terms, 0);
        ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
        ck_assert_int_eq(at(65, &blind), IDLE_HOLD);
        ck_assert_str_eq(reason(65), said[i]);
    }
    struct gpu_reading nothing = {.is_lost = false};
    terms = (struct gpu_terms){.is_set = true, .programs = GPU_PROGRAMS_RUN};
    gpu_rule_init(&rule, &terms, 0);
    ck_assert_int_eq(at(1, &nothing), IDLE_WORK); /* nothing is to be watched */
}
END_TEST

START_TEST(heat_that_is_not_told_any_more_stays)
{
    struct gpu_reading hot = quiet;
    (void)at(60, &quiet);
    hot.celsius = 95;
    (void)at(65, &hot);
    hot.sees_heat = false;
    hot.celsius = -1;
    ck_assert_int_eq(at(500, &hot), IDLE_SAVE);
    ck_assert_str_eq(reason(500), "it is at 95 C, and the owner's limit is 80 C");
}
END_TEST

START_TEST(a_lost_gpu_goes_at_once_whatever_the_terms)
{
    static const struct gpu_terms none;
    struct gpu_reading lost = {.is_lost = true};
    (void)at(60, &quiet);
    ck_assert_int_eq(at(65, &lost), IDLE_RETURN);
    ck_assert_str_eq(reason(65), "the driver says that it fell off the bus");
    ck_assert_int_eq(at(70, &quiet), IDLE_RETURN); /* it is back, and in use for a while */
    ck_assert_int_eq(at(125, &quiet), IDLE_WORK);
    gpu_rule_init(&rule, &none, 0);
    ck_assert_int_eq(gpu_rule_order(&rule), IDLE_WORK);
    ck_assert_int_eq(at(1, &lost), IDLE_RETURN);
    ck_assert_int_eq(at(2, &quiet), IDLE_WORK);
}
END_TEST

START_TEST(without_terms_nothing_but_the_loss_counts)
{
    static const struct gpu_terms none;
    struct gpu_reading busy = quiet;
    struct gpu_reading nothing = {.is_lost = false};
    (void)strcpy(busy.compute, "python3 (process 3182)");
    busy.celsius = 200;
    gpu_rule_init(&rule, &none, 0);
    ck_assert_int_eq(at(1, &busy), IDLE_WORK);
    ck_assert_int_eq(at(2, &nothing), IDLE_WORK);
}
END_TEST

static enum idle_order after(int64_t seconds)
{
    return gpu_rule_wait(&rule, seconds * NS);
}

START_TEST(time_alone_makes_the_steps_and_never_offers)
{
    struct gpu_reading used = quiet;
    (void)strcpy(used.compute, "python3 (process 3182)");
    (void)at(60, &quiet);
    ck_assert(gpu_rule_due_ns(&rule) == INT64_MAX);
    ck_assert_int_eq(at(65, &used), IDLE_HOLD);
    ck_assert(gpu_rule_due_ns(&rule) == 95 * NS);
    ck_assert_int_eq(after(94), IDLE_HOLD);
    ck_assert_int_eq(after(97), IDLE_SAVE); /* late, and with its whole time */
    ck_assert(gpu_rule_due_ns(&rule) == 102 * NS);
    ck_assert_int_eq(after(101), IDLE_SAVE);
    ck_assert_int_eq(after(102), IDLE_RETURN);
    ck_assert_int_eq(after(1000), IDLE_RETURN);
    ck_assert_str_eq(reason(1000), "python3 (process 3182) uses it");
}
END_TEST

START_TEST(no_step_is_left_out_however_seldom_the_looks)
{
    struct gpu_reading used = quiet;
    (void)strcpy(used.compute, "python3 (process 3182)");
    (void)at(60, &quiet);
    ck_assert_int_eq(at(100, &used), IDLE_HOLD);
    ck_assert_int_eq(at(200, &used), IDLE_SAVE);
    ck_assert_int_eq(at(204, &used), IDLE_SAVE);
    ck_assert_int_eq(at(205, &used), IDLE_RETURN);
}
END_TEST

START_TEST(power_is_a_sign_only_when_it_lasts_as_long_as_the_owner_says)
{
    struct gpu_reading high = quiet;
    terms.power_for_ns = 10 * NS;
    gpu_rule_init(&rule, &terms, 0);
    high.milliwatts = 200000;
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(65, &high), IDLE_WORK);
    ck_assert_int_eq(at(70, &high), IDLE_WORK);
    ck_assert_int_eq(at(71, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(75, &high), IDLE_WORK); /* it begins anew */
    ck_assert_int_eq(at(84, &high), IDLE_WORK);
    ck_assert_int_eq(at(85, &high), IDLE_HOLD);
    ck_assert_str_eq(reason(85), "it takes 200 W, and the owner's limit is 200 W");
    high.milliwatts = 181000;
    ck_assert_int_eq(at(86, &high), IDLE_HOLD);
    ck_assert_str_eq(reason(86), "it takes 181 W, and the owner's limit is 200 W");
}
END_TEST

SUITE("the rule of a GPU", setup, NULL, TEST(other_terms_hold_from_the_next_reading_on),
      TEST(a_gpu_is_offered_after_it_was_watched_long_enough),
      TEST(a_program_of_others_withholds_it_and_takes_the_work_away_in_steps),
      TEST(programs_count_as_the_owner_says), TEST(heat_ends_only_clearly_below_the_limit),
      TEST(power_ends_only_clearly_below_the_limit),
      TEST(power_is_a_sign_only_when_it_lasts_as_long_as_the_owner_says),
      TEST(what_nobody_tells_withholds_it_and_is_named), TEST(heat_that_is_not_told_any_more_stays),
      TEST(a_lost_gpu_goes_at_once_whatever_the_terms),
      TEST(without_terms_nothing_but_the_loss_counts),
      TEST(time_alone_makes_the_steps_and_never_offers),
      TEST(no_step_is_left_out_however_seldom_the_looks))
