/* base/hours.h keeps hours of the week, such as 22:00-07:00 from Monday to Friday. Their clock has
 * a fixed offset from UTC.
 *
 * A window begins on the days it names. A window whose end is not after its begin ends on the
 * next day. The clock has no summer time; the caller changes the offset instead. The caller
 * gives moments as nanoseconds since 1970 in UTC. All arithmetic is in integers. */
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
    uint8_t days;      /* bit 0: begins on Mondays ... bit 6: on Sundays */
    uint16_t from_min; /* minute of the day: 0 .. 1439 */
    /* The end is a minute from 1 to 1440, never equal to `from_min`. An end below `from_min` is
     * on the next day. */
    uint16_t till_min;
};

struct hours {
    uint32_t count;     /* 0: always open */
    int32_t offset_min; /* minutes that the clock is ahead of UTC */
    struct hours_window windows[HOURS_WINDOWS_MOST];
};

bool hours_well_formed(const struct hours *hours);
/* Returns true when a window of the well-formed `hours` is open at `at_ns`. A window includes
 * its first moment and excludes its last. */
bool hours_open(const struct hours *hours, int64_t at_ns);
/* Returns the first moment after `at_ns` at which any window begins or ends, even if another
 * window is open then. Returns INT64_MAX when there is no window. The call costs fifteen steps
 * for each window. */
int64_t hours_next_ns(const struct hours *hours, int64_t at_ns);
/* hours_day() returns the number of the clock's day since 1970. hours_next_day_ns() returns the
 * first moment of the day after, or INT64_MAX when no int64 holds it. */
int64_t hours_day(int32_t offset_min, int64_t at_ns);
int64_t hours_next_day_ns(int32_t offset_min, int64_t at_ns);

#endif
