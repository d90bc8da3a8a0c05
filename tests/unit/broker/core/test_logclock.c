#include "broker/core/logclock.h"

#include "base/checked.h"
#include "tests/support/suite.h"

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

START_TEST(it_leans_by_the_same_however_often_it_is_read)
{
    struct logclock often = logclock_from(1000 * NS_PER_S, 0);
    struct logclock once = often;
    int64_t now = 0;
    for (int64_t at = 99; at <= 99 * 100000; at += 99) {
        now = logclock_now(&often, at, 5000 * NS_PER_S);
    }
    ck_assert_int_eq(now, logclock_now(&once, 99 * 100000, 5000 * NS_PER_S));
    ck_assert_int_eq(now, 1000 * NS_PER_S + 99 * 100000 + 99 * 1000);
}
END_TEST

START_TEST(a_jump_of_the_wall_either_way_moves_it_by_a_hundredth_of_what_passes)
{
    struct logclock clock = logclock_from(1000 * NS_PER_S, 0);
    int64_t wall = 1000 * NS_PER_S;
    int64_t before = clock.log_ns;
    for (int64_t at = NS_PER_S; at <= 600 * NS_PER_S; at += NS_PER_S) {
        wall += NS_PER_S;
        wall += at == 100 * NS_PER_S ? NS_PER_HOUR : at == 300 * NS_PER_S ? -2 * NS_PER_HOUR : 0;
        int64_t now = logclock_now(&clock, at, wall);
        ck_assert_int_ge(now - before, NS_PER_S - NS_PER_S / 100);
        ck_assert_int_le(now - before, NS_PER_S + NS_PER_S / 100);
        before = now;
    }
    /* 100 s in step, 200 s leaning forward, 300 s leaning back: 1 s behind where it would be. */
    ck_assert_int_le(llabs(before - 1599 * NS_PER_S), NS_PER_S / 10);
}
END_TEST

START_TEST(after_a_restart_with_the_wall_behind_or_in_another_century_it_goes_on)
{
    const int64_t last =
        INT64_C(2147483640) * NS_PER_S; /* eight seconds before 2038-01-19 03:14:08 */
    const int64_t walls[] = {0, last - NS_PER_HOUR, last + NS_PER_HOUR, 2 * last};
    for (size_t i = 0; i < sizeof walls / sizeof walls[0]; i++) {
        struct logclock clock = logclock_from(last, 77 * NS_PER_S);
        int64_t now = logclock_stamp(&clock, 97 * NS_PER_S, walls[i]);
        ck_assert_int_ge(now, last + 20 * NS_PER_S - NS_PER_S / 5);
        ck_assert_int_le(now, last + 20 * NS_PER_S + NS_PER_S / 5);
    }
}
END_TEST

START_TEST(a_frozen_wall_holds_it_back_by_a_hundredth)
{
    struct logclock clock = logclock_from(500 * NS_PER_S, 0);
    int64_t now = 0;
    for (int64_t at = NS_PER_S; at <= 1000 * NS_PER_S; at += NS_PER_S) {
        now = logclock_now(&clock, at, 500 * NS_PER_S);
    }
    ck_assert_int_eq(now, 1490 * NS_PER_S);
}
END_TEST

SUITE("logclock", NULL, NULL, TEST(log_time_goes_on_from_the_journal_whatever_the_wall_says),
      TEST(a_small_offset_is_taken_up_whole_and_then_followed),
      TEST(it_never_goes_back_and_every_stamp_is_later),
      TEST(it_leans_by_the_same_however_often_it_is_read),
      TEST(a_jump_of_the_wall_either_way_moves_it_by_a_hundredth_of_what_passes),
      TEST(after_a_restart_with_the_wall_behind_or_in_another_century_it_goes_on),
      TEST(a_frozen_wall_holds_it_back_by_a_hundredth))
