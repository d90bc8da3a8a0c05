#include "base/hours.h"

#include "base/checked.h"
#include "formats/hours_text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define MIN_NS (60 * NS_PER_S)
#define HOUR_NS (60 * MIN_NS)
#define DAY_NS (24 * HOUR_NS)
/* Monday, 16 November 2026, 00:00 UTC */
#define MONDAY_NS (INT64_C(1794787200) * NS_PER_S)

static struct hours of(const char *window, const char *offset)
{
    struct hours hours = {.count = 1};
    struct problem problem = {""};
    ck_assert_msg(hours_read_window(window, &hours.windows[0], &problem), "%s", problem.text);
    ck_assert_msg(hours_read_offset(offset, &hours.offset_min, &problem), "%s", problem.text);
    ck_assert(hours_well_formed(&hours));
    return hours;
}

static bool open_at(const struct hours *hours, int day, int hour, int minute)
{
    return hours_open(hours, MONDAY_NS + day * DAY_NS + hour * HOUR_NS + minute * MIN_NS);
}

START_TEST(a_window_is_open_from_its_first_moment_until_its_last)
{
    const struct hours hours = of("09:00-17:30", "+00:00");
    ck_assert(!hours_open(&hours, MONDAY_NS + 9 * HOUR_NS - 1));
    ck_assert(hours_open(&hours, MONDAY_NS + 9 * HOUR_NS));
    ck_assert(hours_open(&hours, MONDAY_NS + 17 * HOUR_NS + 30 * MIN_NS - 1));
    ck_assert(!hours_open(&hours, MONDAY_NS + 17 * HOUR_NS + 30 * MIN_NS));
    ck_assert_int_eq(hours_next_ns(&hours, MONDAY_NS), MONDAY_NS + 9 * HOUR_NS);
    ck_assert_int_eq(hours_next_ns(&hours, MONDAY_NS + 9 * HOUR_NS),
                     MONDAY_NS + 17 * HOUR_NS + 30 * MIN_NS);
    ck_assert_int_eq(hours_next_ns(&hours, MONDAY_NS + 18 * HOUR_NS),
                     MONDAY_NS + DAY_NS + 9 * HOUR_NS);
}
END_TEST

START_TEST(a_night_belongs_to_the_day_it_begins_on)
{
    const struct hours hours = of("mon-fri 22:00-07:00", "+00:00");
    ck_assert(!open_at(&hours, 0, 6, 59)); /* Sunday's night is none */
    ck_assert(!open_at(&hours, 0, 21, 59));
    ck_assert(open_at(&hours, 0, 22, 0));
    ck_assert(open_at(&hours, 1, 0, 0));
    ck_assert(open_at(&hours, 1, 6, 59));
    ck_assert(!open_at(&hours, 1, 7, 0));
    ck_assert(open_at(&hours, 5, 6, 59)); /* Friday's, on Saturday morning */
    ck_assert(!open_at(&hours, 5, 7, 0));
    ck_assert(!open_at(&hours, 5, 22, 0));
    ck_assert_int_eq(hours_next_ns(&hours, MONDAY_NS + 5 * DAY_NS + 7 * HOUR_NS),
                     MONDAY_NS + 7 * DAY_NS + 22 * HOUR_NS); /* over the week's end */
}
END_TEST

START_TEST(sundays_night_reaches_into_the_next_week)
{
    const struct hours hours = of("sun 23:00-02:00", "+00:00");
    ck_assert(open_at(&hours, -1, 23, 0));
    ck_assert(open_at(&hours, 0, 1, 59));
    ck_assert(!open_at(&hours, 0, 2, 0));
    ck_assert_int_eq(hours_next_ns(&hours, MONDAY_NS), MONDAY_NS + 2 * HOUR_NS);
}
END_TEST

START_TEST(the_clock_may_be_ahead_of_utc_or_behind)
{
    const struct hours ahead = of("mon 00:00-24:00", "+05:30");
    ck_assert(open_at(&ahead, -1, 18, 30)); /* it is Monday there */
    ck_assert(!open_at(&ahead, -1, 18, 29));
    ck_assert(!open_at(&ahead, 0, 18, 30));
    const struct hours behind = of("mon 00:00-24:00", "-08:00");
    ck_assert(!open_at(&behind, 0, 7, 59));
    ck_assert(open_at(&behind, 0, 8, 0));
    ck_assert(open_at(&behind, 1, 7, 59));
    ck_assert_int_eq(hours_next_ns(&behind, MONDAY_NS), MONDAY_NS + 8 * HOUR_NS);
}
END_TEST

/* Second 2^31 since 1970 is a Tuesday, 03:14:08. */
START_TEST(nothing_ends_in_2038_or_began_in_1970)
{
    const int64_t rolls_ns = (INT64_C(1) << 31) * NS_PER_S;
    const struct hours hours = of("tue 03:00-04:00", "+00:00");
    const int64_t opens_ns = rolls_ns - 14 * MIN_NS - 8 * NS_PER_S;
    ck_assert(hours_open(&hours, rolls_ns - 1));
    ck_assert(hours_open(&hours, rolls_ns));
    ck_assert(!hours_open(&hours, opens_ns - 1));
    ck_assert_int_eq(hours_next_ns(&hours, rolls_ns), opens_ns + HOUR_NS);
    ck_assert_int_eq(hours_next_ns(&hours, opens_ns - 1), opens_ns);
    const struct hours thursday = of("thu 00:00-01:00", "-02:00");
    ck_assert(hours_open(&thursday, 2 * HOUR_NS)); /* the first day of all was one */
    ck_assert(!hours_open(&thursday, 0));
    ck_assert(!hours_open(&thursday, -1));
    ck_assert_int_eq(hours_next_ns(&thursday, INT64_MAX), INT64_MAX); /* no clock comes there */
}
END_TEST

START_TEST(of_several_windows_any_will_do)
{
    struct hours hours = of("mon-fri 18:00-24:00", "+00:00");
    struct problem problem = {""};
    ck_assert(hours_read_window("sat,sun 00:00-24:00", &hours.windows[hours.count++], &problem));
    ck_assert(open_at(&hours, 4, 23, 59));
    ck_assert(open_at(&hours, 5, 0, 0));
    ck_assert(open_at(&hours, 6, 23, 59));
    ck_assert(!open_at(&hours, 7, 0, 0));
    ck_assert(open_at(&(struct hours){.count = 0}, 3, 3, 3)); /* none: always */
    ck_assert_int_eq(hours_next_ns(&(struct hours){.count = 0}, MONDAY_NS), INT64_MAX);
}
END_TEST

/* Against every minute of two weeks, one after the other. */
START_TEST(between_two_turns_nothing_changes)
{
    static const char *const texts[] = {"22:00-07:00", "mon-fri 22:00-07:00", "sun 23:59-00:01",
                                        "wed 00:00-24:00", "tue,thu,sat 12:00-11:59"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct hours hours = of(texts[i], i % 2 == 0 ? "+01:00" : "-09:30");
        int64_t next_ns = hours_next_ns(&hours, MONDAY_NS);
        bool was_open = hours_open(&hours, MONDAY_NS);
        bool is_right = true;
        for (int64_t at = MONDAY_NS + MIN_NS; at < MONDAY_NS + 14 * DAY_NS; at += MIN_NS) {
            const bool is_open = hours_open(&hours, at);
            is_right = is_right && (is_open == was_open || at == next_ns) && next_ns >= at;
            next_ns = at == next_ns ? hours_next_ns(&hours, at) : next_ns;
            was_open = is_open;
        }
        ck_assert_msg(is_right, "%s", texts[i]);
    }
}
END_TEST

START_TEST(windows_are_written_as_they_are_read)
{
    static const char *const pairs[][2] = {
        {"22:00-07:00", "22:00-07:00"},
        {"mon-sun 00:00-24:00", "00:00-24:00"},
        {"22:00-00:00", "22:00-24:00"},
        {"mon-fri 18:00-24:00", "mon-fri 18:00-24:00"},
        {"sat,sun  09:30-12:00", "sat,sun 09:30-12:00"},
        {"sat-mon 01:00-02:00", "mon,sat,sun 01:00-02:00"},
        {"sun,mon,tue,wed 01:00-02:00", "mon-wed,sun 01:00-02:00"},
        {"mon,wed,fri,sun 01:00-02:00", "mon,wed,fri,sun 01:00-02:00"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct hours_window window;
        struct problem problem = {""};
        char text[HOURS_TEXT_SIZE];
        ck_assert_msg(hours_read_window(pairs[i][0], &window, &problem), "%s", problem.text);
        hours_window_text(&window, text);
        ck_assert_str_eq(text, pairs[i][1]);
    }
    int32_t offset_min;
    struct problem problem = {""};
    char text[HOURS_TEXT_SIZE];
    ck_assert(hours_read_offset("-03:30", &offset_min, &problem));
    ck_assert_int_eq(offset_min, -210);
    hours_offset_text(offset_min, text);
    ck_assert_str_eq(text, "-03:30");
    char all[HOURS_ALL_TEXT_SIZE];
    struct hours hours = of("mon-fri 18:00-24:00", "+01:00");
    ck_assert(hours_read_window("sat,sun 00:00-24:00", &hours.windows[hours.count++], &problem));
    hours_text(&hours, all);
    ck_assert_str_eq(all, "mon-fri 18:00-24:00, sat,sun 00:00-24:00 (UTC+01:00)");
    hours_text(&(struct hours){.count = 0}, all);
    ck_assert_str_eq(all, "always");
    hours.count = HOURS_WINDOWS_MOST; /* of the longest */
    for (uint32_t i = 0; i < hours.count; i++) {
        ck_assert(hours_read_window("mon,wed,fri,sun 01:00-02:00", &hours.windows[i], &problem));
    }
    hours_text(&hours, all);
    ck_assert_str_eq(all + strlen(all) - 11, "(UTC+01:00)");
}
END_TEST

START_TEST(what_is_no_window_is_refused_with_what_would_be_right)
{
    static const char *const wrong[][2] = {
        {"", "is no day"},
        {"22-7", "is no window"},
        {"22:00", "is no window"},
        {"22:00-07:00 ", "is no window"},
        {"25:00-07:00", "is no window"},
        {"24:00-07:00", "is no window"},
        {"07:60-08:00", "is no window"},
        {"07:00-07:00", "00:00-24:00"},
        {"mo 07:00-08:00", "did you mean \"mon\"?"},
        {"mon-fir 07:00-08:00", "did you mean \"fri\"?"},
        {"mon 07:00", "is no window"},
        {"mon", "come a blank and the hours"},
        {"mon, 07:00-08:00", "is no day"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hours_window window = {.days = 77};
        struct problem problem = {""};
        ck_assert_msg(!hours_read_window(wrong[i][0], &window, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
        ck_assert_uint_eq(window.days, 77);
    }
    static const char *const offsets[] = {"", "1", "01:00", "+1", "+15:00", "-14:01", "+01:00x"};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        int32_t minutes = 77;
        struct problem problem = {""};
        ck_assert_msg(!hours_read_offset(offsets[i], &minutes, &problem), "%s", offsets[i]);
        ck_assert_int_eq(minutes, 77);
    }
}
END_TEST

START_TEST(a_day_begins_at_midnight_of_its_clock)
{
    const int64_t hour_ns = 3600 * NS_PER_S;
    const int64_t day_ns = 24 * hour_ns;
    ck_assert_int_eq(hours_day(0, 0), 0);
    ck_assert_int_eq(hours_day(0, -1), -1);
    ck_assert_int_eq(hours_day(0, day_ns - 1), 0);
    ck_assert_int_eq(hours_day(60, day_ns - hour_ns), 1); /* it is midnight there */
    ck_assert_int_eq(hours_day(-210, day_ns), 0);
    ck_assert_int_eq(hours_next_day_ns(0, 0), day_ns);
    ck_assert_int_eq(hours_next_day_ns(60, 0), day_ns - hour_ns);
    ck_assert_int_eq(hours_next_day_ns(60, day_ns - hour_ns), 2 * day_ns - hour_ns);
    ck_assert_int_eq(hours_next_day_ns(-210, day_ns), day_ns + 210 * 60 * NS_PER_S);
    ck_assert_int_eq(hours_next_day_ns(0, INT64_MAX), INT64_MAX);
}
END_TEST

START_TEST(hours_from_elsewhere_are_looked_at)
{
    const struct hours good = of("22:00-07:00", "+01:00");
    struct hours bad[7];
    for (size_t i = 0; i < 7; i++) {
        bad[i] = good;
    }
    bad[0].count = HOURS_WINDOWS_MOST + 1;
    bad[1].offset_min = HOURS_OFFSET_MOST_MIN + 1;
    bad[2].offset_min = -HOURS_OFFSET_MOST_MIN - 1;
    bad[3].windows[0].days = 0;
    bad[4].windows[0].days = 0x80;
    bad[5].windows[0].from_min = HOURS_DAY_MIN;
    bad[6].windows[0].till_min = bad[6].windows[0].from_min;
    for (size_t i = 0; i < 7; i++) {
        ck_assert_msg(!hours_well_formed(&bad[i]), "%zu", i);
    }
}
END_TEST

SUITE("hours", NULL, NULL, TEST(a_window_is_open_from_its_first_moment_until_its_last),
      TEST(a_night_belongs_to_the_day_it_begins_on), TEST(sundays_night_reaches_into_the_next_week),
      TEST(a_day_begins_at_midnight_of_its_clock), TEST(the_clock_may_be_ahead_of_utc_or_behind),
      TEST(nothing_ends_in_2038_or_began_in_1970), TEST(of_several_windows_any_will_do),
      TEST(between_two_turns_nothing_changes), TEST(windows_are_written_as_they_are_read),
      TEST(what_is_no_window_is_refused_with_what_would_be_right),
      TEST(hours_from_elsewhere_are_looked_at))
