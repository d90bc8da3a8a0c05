/* The tests tell the rule of failing devices what happened, and look at when a device is tried. */
#include "provider/session/fault_rule.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define NS INT64_C(1000000000)

static struct fault_rule rule;

static void setup(void)
{
    rule = (struct fault_rule){.failures = 0};
}

static bool fails(int64_t seconds)
{
    return fault_rule_fail(&rule, seconds * NS, DEVICE_FAULT_LOST, "it is gone");
}

/* Lets the device fail until it is withheld. */
static void withhold(int64_t seconds)
{
    for (int i = 1; i < FAULT_RULE_MOST; i++) {
        ck_assert(!fails(seconds));
    }
    ck_assert(fails(seconds));
}

static bool try_at(int64_t seconds, bool has_passed)
{
    ck_assert_int_ge(seconds * NS, fault_rule_due_ns(&rule));
    fault_rule_try(&rule);
    ck_assert(fault_rule_due_ns(&rule) == INT64_MAX);
    return fault_rule_tried(&rule, seconds * NS, has_passed, has_passed ? "" : "still gone");
}

START_TEST(the_third_failure_in_a_row_withholds_the_device)
{
    ck_assert(!fails(1));
    ck_assert(!fails(2));
    ck_assert(!rule.is_withheld && fault_rule_due_ns(&rule) == INT64_MAX);
    ck_assert(fails(3));
    ck_assert(rule.is_withheld && rule.fault == DEVICE_FAULT_LOST);
    ck_assert_str_eq(rule.cause, "it is gone");
    ck_assert_int_eq(fault_rule_due_ns(&rule), 3 * NS + FAULT_RULE_FIRST_NS);
}
END_TEST

START_TEST(work_that_was_done_ends_the_row)
{
    ck_assert(!fails(1));
    ck_assert(!fails(2));
    fault_rule_work(&rule);
    ck_assert(!fails(3));
    ck_assert(!fails(4));
    ck_assert(fails(5));
}
END_TEST

START_TEST(work_that_runs_on_changes_nothing_while_the_device_is_withheld)
{
    withhold(0);
    const int64_t due_ns = fault_rule_due_ns(&rule);
    ck_assert(!fails(1));
    fault_rule_work(&rule);
    ck_assert(rule.is_withheld);
    ck_assert_int_eq(rule.failures, FAULT_RULE_MOST);
    ck_assert_int_eq(fault_rule_due_ns(&rule), due_ns);
}
END_TEST

START_TEST(each_trial_that_fails_doubles_the_wait_up_to_an_hour)
{
    static const int64_t waits_s[] = {60, 120, 240, 480, 960, 1920, 3600, 3600};
    int64_t now_s = 0;
    withhold(0);
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++) {
        ck_assert_int_eq(fault_rule_due_ns(&rule), (now_s + waits_s[i]) * NS);
        now_s += waits_s[i];
        ck_assert(!try_at(now_s, false));
        ck_assert_str_eq(rule.cause, "still gone");
        ck_assert_uint_eq(rule.trials, i + 1);
    }
}
END_TEST

START_TEST(a_trial_that_passes_offers_the_device)
{
    withhold(0);
    ck_assert(try_at(60, true));
    ck_assert(!rule.is_withheld && fault_rule_due_ns(&rule) == INT64_MAX);
    ck_assert(!fails(61)); /* a new row */
}
END_TEST

START_TEST(a_device_that_passes_and_does_no_work_waits_longer_the_next_time)
{
    withhold(0);
    ck_assert(try_at(60, true));
    withhold(70);
    ck_assert_int_eq(fault_rule_due_ns(&rule), (70 + 120) * NS);
    ck_assert(try_at(190, true));
    fault_rule_work(&rule);
    withhold(200);
    ck_assert_int_eq(fault_rule_due_ns(&rule), (200 + 60) * NS);
}
END_TEST

START_TEST(a_long_cause_is_cut)
{
    char cause[2 * FAULT_RULE_CAUSE_SIZE];
    memset(cause, 'x', sizeof cause);
    cause[sizeof cause - 1] = '\0';
    (void)fault_rule_fail(&rule, 0, DEVICE_FAULT_OTHER, cause);
    ck_assert_uint_eq(strlen(rule.cause), FAULT_RULE_CAUSE_SIZE - 1);
}
END_TEST

START_TEST(each_fault_has_a_word_and_advice_of_its_own)
{
    for (enum device_fault i = DEVICE_FAULT_NONE; i < DEVICE_FAULTS; i++) {
        ck_assert_uint_gt(strlen(fault_rule_word(i)), 0);
        ck_assert_uint_gt(strlen(fault_rule_advice(i)), 0);
        for (enum device_fault other = DEVICE_FAULT_NONE; other < i; other++) {
            ck_assert_str_ne(fault_rule_word(i), fault_rule_word(other));
            ck_assert_str_ne(fault_rule_advice(i), fault_rule_advice(other));
        }
    }
}
END_TEST

SUITE("fault_rule", setup, NULL, TEST(the_third_failure_in_a_row_withholds_the_device),
      TEST(work_that_was_done_ends_the_row),
      TEST(work_that_runs_on_changes_nothing_while_the_device_is_withheld),
      TEST(each_trial_that_fails_doubles_the_wait_up_to_an_hour),
      TEST(a_trial_that_passes_offers_the_device),
      TEST(a_device_that_passes_and_does_no_work_waits_longer_the_next_time),
      TEST(a_long_cause_is_cut), TEST(each_fault_has_a_word_and_advice_of_its_own))
