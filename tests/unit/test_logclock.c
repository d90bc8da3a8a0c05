#include "broker/logclock.h"

#include "base/checked.h"

#include <check.h>
#include <stdlib.h>

START_TEST(log_time_goes_on_from_the_journal_whatever_the_wall_says)
{
    struct logclock clock = logclock_from(1000 * NS_PER_S, 5 * NS_PER_S);

    /* The wall is a day ahead: ten seconds pass, and at most a hundredth more. */
    int64_t now = logclock_now(&clock, 15 * NS_PER_S, 90000 * NS_PER_S);
    ck_assert_int_eq(now, 1010 * NS_PER_S + 100 * NS_PER_MS);
    /* Then a year behind: ten seconds pass, and at most a hundredth less. */
    now = logclock_now(&clock, 25 * NS_PER_S, 0);
    ck_assert_int_eq(now, 1020 * NS_PER_S);
}
END_TEST

START_TEST(a_small_offset_is_taken_up_whole_and_then_followed)
{
    struct logclock clock = logclock_from(100 * NS_PER_S, 0);

    ck_assert_int_eq(logclock_now(&clock, 10 * NS_PER_S, 110 * NS_PER_S + 7), 110 * NS_PER_S + 7);
    ck_assert_int_eq(logclock_now(&clock, 11 * NS_PER_S, 111 * NS_PER_S + 7), 111 * NS_PER_S + 7);
}
END_TEST

START_TEST(it_never_goes_back_and_every_stamp_is_later)
{
    struct logclock clock = logclock_from(100, 50);

    ck_assert_int_eq(logclock_now(&clock, 40, 0), 100); /* a monotonic clock of an earlier boot */
    ck_assert_int_eq(logclock_stamp(&clock, 50, 0), 101);
    ck_assert_int_eq(logclock_stamp(&clock, 50, 0), 102);
    int64_t before = 102;
    for (int64_t at = 60; at < 100000; at += 777) {
        int64_t stamp = logclock_stamp(&clock, at, 0);
        ck_assert_int_gt(stamp, before);
        before = stamp;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("logclock");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, log_time_goes_on_from_the_journal_whatever_the_wall_says);
    tcase_add_test(tests, a_small_offset_is_taken_up_whole_and_then_followed);
    tcase_add_test(tests, it_never_goes_back_and_every_stamp_is_later);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
