#include "base/hours.h"

#include "base/checked.h"

#include <assert.h>

#define MIN_NS (60 * NS_PER_S)
enum { WEEK_MIN = 7 * HOURS_DAY_MIN, FIRST_DAY = 3 /* 1970 began on a Thursday */ };

static bool window_well_formed(const struct hours_window *window)
{
    return window->days != 0 && window->days <= HOURS_ALL_DAYS &&
           window->from_min < HOURS_DAY_MIN && window->till_min <= HOURS_DAY_MIN &&
           window->till_min > 0 && window->from_min != window->till_min;
}

bool hours_well_formed(const struct hours *hours)
{
    bool good = hours->count <= HOURS_WINDOWS_MOST && hours->offset_min >= -HOURS_OFFSET_MOST_MIN &&
                hours->offset_min <= HOURS_OFFSET_MOST_MIN;
    for (uint32_t i = 0; good && i < hours->count; i++) {
        good = window_well_formed(&hours->windows[i]);
    }
    return good;
}

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* Returns the minutes of the local clock since the Monday before 1970, rounded down. */
static int64_t minutes_at(const struct hours *hours, int64_t at_ns)
{
    return floor_div(at_ns, MIN_NS) + hours->offset_min + FIRST_DAY * HOURS_DAY_MIN;
}

static int64_t length_min(const struct hours_window *window)
{
    return window->till_min > window->from_min
               ? window->till_min - window->from_min
               : HOURS_DAY_MIN - window->from_min + window->till_min;
}

bool hours_open(const struct hours *hours, int64_t at_ns)
{
    assert(hours_well_formed(hours));
    const int64_t now = minutes_at(hours, at_ns);
    const int64_t week = floor_div(now, WEEK_MIN) * WEEK_MIN;
    bool is_open = hours->count == 0;
    for (uint32_t i = 0; i < hours->count; i++) {
        const struct hours_window *window = &hours->windows[i];
        for (int64_t day = -1; day < 7; day++) { /* Sunday's window may reach into this week */
            int64_t begins = week + day * HOURS_DAY_MIN + window->from_min;
            bool is_named = (window->days >> ((day + 7) % 7) & 1) != 0;
            is_open = is_open || (is_named && now >= begins && now < begins + length_min(window));
        }
    }
    return is_open;
}

int64_t hours_next_ns(const struct hours *hours, int64_t at_ns)
{
    assert(hours_well_formed(hours));
    const int64_t now = minutes_at(hours, at_ns);
    const int64_t week = floor_div(now, WEEK_MIN) * WEEK_MIN;
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < hours->count; i++) {
        const struct hours_window *window = &hours->windows[i];
        for (int64_t day = -1; day < 14; day++) {
            if ((window->days >> ((day + 7) % 7) & 1) == 0) {
                continue;
            }
            int64_t begins = week + day * HOURS_DAY_MIN + window->from_min;
            int64_t ends = begins + length_min(window);
            next = begins > now && begins < next ? begins : next;
            next = ends > now && ends < next ? ends : next;
        }
    }
    int64_t next_ns;
    int64_t utc_min =
        next == INT64_MAX ? next : next - hours->offset_min - (int64_t)FIRST_DAY * HOURS_DAY_MIN;
    return checked_mul(utc_min, MIN_NS, &next_ns) ? next_ns : INT64_MAX;
}

int64_t hours_day(int32_t offset_min, int64_t at_ns)
{
    return floor_div(floor_div(at_ns, MIN_NS) + offset_min, HOURS_DAY_MIN);
}

int64_t hours_next_day_ns(int32_t offset_min, int64_t at_ns)
{
    const int64_t begins_min = (hours_day(offset_min, at_ns) + 1) * HOURS_DAY_MIN - offset_min;
    int64_t next_ns;
    return checked_mul(begins_min, MIN_NS, &next_ns) ? next_ns : INT64_MAX;
}
