#include "formats/moment.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

START_TEST(moments_are_read)
{
    const struct {
        const char *text;
        int64_t s;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},          {"1970-01-01T00:01Z", 60},
        {"2024-02-29T23:59:59Z", 1709251199}, {"2026-12-24T18:00:00Z", 1798135200},
        {"2100-03-01T00:00Z", 4107542400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = -1;
        ck_assert_msg(moment_read(rows[i].text, &ms), "%s", rows[i].text);
        ck_assert_int_eq(ms, rows[i].s * 1000);
        ck_assert(moment_is_meant(rows[i].text));
    }
}
END_TEST

START_TEST(what_is_none_is_refused)
{
    static const char *const texts[] = {
        "",
        "2h",
        "2026",
        "2026-12-24",
        "2026-12-24T18:00:00",
        "2026-12-24 18:00:00Z",
        "2026-12-24T18:00:00z",
        "2026-12-24T18:00:00+01:00",
        "2026-12-24T18:00:00.5Z",
        "2026-12-24T18:00:00ZZ",
        "2026-12-24T18Z",
        "2026-12-24T24:00Z",
        "2026-12-24T23:60Z",
        "2026-12-24T23:59:60Z",
        "2026-02-29T00:00Z",
        "2100-02-29T00:00Z",
        "2026-13-01T00:00Z",
        "2026-00-01T00:00Z",
        "2026-01-00T00:00Z",
        "2026-04-31T00:00Z",
        "1969-12-31T23:59Z",
        "2200-01-01T00:00Z",
        "26-12-24T18:00Z",
        "2026-1-24T18:00Z",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ms = 77;
        ck_assert_msg(!moment_read(texts[i], &ms), "%s", texts[i]);
        ck_assert_int_eq(ms, 77);
    }
    ck_assert(moment_is_meant("2026-12-24"));
    ck_assert(!moment_is_meant("2026h"));
    ck_assert(!moment_is_meant("90m"));
}
END_TEST

SUITE("moment", NULL, NULL, TEST(moments_are_read), TEST(what_is_none_is_refused))
