/* base/hours.h - hours of the week: windows such as 22:00-07:00 from Monday to Friday, on a clock
 * of a fixed distance from UTC.
 *
 * A window begins on the days it names, and one that ends no later than it began ends on the next
 * day. The clock has no summer time: whoever wants one changes the distance. Moments are
 * nanoseconds since 1970 in UTC, given by the caller; integers only. Pure. */
#ifndef BOURSE_BASE_HOURS_H
#define BOURSE_BASE_HOURS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HOURS_WINDOWS_MOST = 8,
    HOURS_DAY_MIN = 24 * 60,
    HOURS_ALL_DAYS = 0x7f,
    HOURS_OFFSET_MOST_MIN = 14 * 60, /* no country is further from UTC */
};

struct hours_window {
    uint8_t days;      /* bit 0: it begins on Mondays ... bit 6: on Sundays */
    uint16_t from_min; /* of the day: 0 .. 1439 */
    uint16_t till_min; /* 1 .. 1440, or not after `from_min`: of the next day. Not equal to it */
};

struct hours {
    uint32_t count;     /* 0: always */
    int32_t offset_min; /* what the clock is ahead of UTC */
    struct hours_window windows[HOURS_WINDOWS_MOST];
};

bool hours_well_formed(const struct hours *hours);
/* Of well-formed ones: whether a window is open at that moment. A window is open from its first
 * moment on, and no longer at its last. */
bool hours_open(const struct hours *hours, int64_t at_ns);
/* The first moment after that one at which a window begins or ends, whatever others do then;
 * INT64_MAX where there are none. Costs fifteen steps for each window. */
int64_t hours_next_ns(const struct hours *hours, int64_t at_ns);
/* The day on that clock, since 1970, and the first moment of the one after it; INT64_MAX: beyond
 * all moments. */
int64_t hours_day(int32_t offset_min, int64_t at_ns);
int64_t hours_next_day_ns(int32_t offset_min, int64_t at_ns);

#endif
