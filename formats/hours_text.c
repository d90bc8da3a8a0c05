#include "formats/hours_text.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const day_names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
enum { DAYS = sizeof day_names / sizeof day_names[0], DAY_LENGTH = 3 };

struct shown {
    char text[80];
};

/* User input as a message may show it. */
static struct shown shown(const char *text)
{
    struct shown copy;
    text_printable(text, strlen(text), copy.text, sizeof copy.text);
    return copy;
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Reads HH:MM at the front of the text, up to 24:00. */
static bool read_time(const char **text, uint16_t *ret_min)
{
    const char *at = *text;
    if (!is_digit(at[0]) || !is_digit(at[1]) || at[2] != ':' || !is_digit(at[3]) ||
        !is_digit(at[4])) {
        return false;
    }
    int hour = (at[0] - '0') * 10 + at[1] - '0';
    int minute = (at[3] - '0') * 10 + at[4] - '0';
    if (minute > 59 || hour * 60 + minute > HOURS_DAY_MIN) {
        return false;
    }
    *ret_min = (uint16_t)(hour * 60 + minute);
    *text = at + 5;
    return true;
}

/* Reads a day's name at the front of the text and returns its number. */
static bool read_day(const char **text, unsigned *ret_day, struct problem *problem)
{
    char word[16];
    size_t length = strcspn(*text, "-, ");
    (void)snprintf(word, sizeof word, "%.*s", (int)(length < 15 ? length : 15), *text);
    for (unsigned day = 0; day < DAYS; day++) {
        if (strcmp(word, day_names[day]) == 0) {
            *ret_day = day;
            *text += DAY_LENGTH;
            return true;
        }
    }
    const char *near = text_nearest(word, day_names, DAYS);
    problem_set(problem, "\"%s\" is no day%s%s%s; days are mon tue wed thu fri sat sun",
                shown(word).text, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                near != NULL ? "\"?" : "");
    return false;
}

/* Reads days and ranges of days, with commas between, and the blank that follows. */
static bool read_days(const char **text, uint8_t *ret_days, struct problem *problem)
{
    uint8_t days = 0;
    for (;;) {
        unsigned first;
        unsigned last;
        if (!read_day(text, &first, problem)) {
            return false;
        }
        last = first;
        if (**text == '-') {
            ++*text;
            if (!read_day(text, &last, problem)) {
                return false;
            }
        }
        for (unsigned day = first;; day = (day + 1) % DAYS) {
            days = (uint8_t)(days | 1u << day);
            if (day == last) {
                break;
            }
        }
        if (**text != ',') {
            break;
        }
        ++*text;
    }
    if (**text != ' ') {
        problem_set(problem, "behind the days come a blank and the hours: mon-fri 22:00-07:00");
        return false;
    }
    *text += strspn(*text, " ");
    *ret_days = days;
    return true;
}

bool hours_read_window(const char *text, struct hours_window *ret_window,
                       struct problem *ret_problem)
{
    struct hours_window window = {.days = HOURS_ALL_DAYS};
    const char *at = text;
    if (!is_digit(*at) && !read_days(&at, &window.days, ret_problem)) {
        return false;
    }
    bool is_read = read_time(&at, &window.from_min) && *at++ == '-' &&
                   read_time(&at, &window.till_min) && *at == '\0';
    if (!is_read || window.from_min == HOURS_DAY_MIN) {
        problem_set(ret_problem,
                    "\"%s\" is no window of hours; write for example 22:00-07:00, or mon-fri "
                    "18:00-24:00",
                    shown(text).text);
        return false;
    }
    if (window.from_min == window.till_min) {
        problem_set(ret_problem, "\"%s\" ends as it begins; a whole day is 00:00-24:00",
                    shown(text).text);
        return false;
    }
    /* The window ends at midnight. */
    window.till_min = window.till_min == 0 ? HOURS_DAY_MIN : window.till_min;
    *ret_window = window;
    return true;
}

bool hours_read_offset(const char *text, int32_t *ret_min, struct problem *ret_problem)
{
    uint16_t minutes = 0;
    const char *at = text + 1;
    bool is_read = (text[0] == '+' || text[0] == '-') && read_time(&at, &minutes) && *at == '\0';
    if (!is_read || minutes > HOURS_OFFSET_MOST_MIN) {
        problem_set(ret_problem,
                    "\"%s\" is no distance from UTC; write for example +01:00, -14:00 to +14:00",
                    shown(text).text);
        return false;
    }
    *ret_min = text[0] == '-' ? -(int32_t)minutes : (int32_t)minutes;
    return true;
}

static bool has_day(uint8_t days, unsigned day)
{
    return (days >> day & 1) != 0;
}

/* Writes ranges for three or more days in a row. No range wraps around the week. */
static size_t days_text(uint8_t days, char *ret_text, size_t capacity)
{
    size_t used = 0;
    for (unsigned day = 0; day < DAYS; day++) {
        if (!has_day(days, day)) {
            continue;
        }
        unsigned last = day;
        while (last + 1 < DAYS && has_day(days, last + 1)) {
            last++;
        }
        last = last < day + 2 ? day : last;
        used += (size_t)snprintf(ret_text + used, capacity - used, "%s%s%s%s", used > 0 ? "," : "",
                                 day_names[day], last > day ? "-" : "",
                                 last > day ? day_names[last] : "");
        day = last;
    }
    return used;
}

void hours_window_text(const struct hours_window *window, char ret_text[HOURS_TEXT_SIZE])
{
    size_t used = 0;
    if (window->days != HOURS_ALL_DAYS) {
        used = days_text(window->days, ret_text, HOURS_TEXT_SIZE); /* at most 27 characters */
        ret_text[used++] = ' ';
    }
    (void)snprintf(ret_text + used, HOURS_TEXT_SIZE - used, "%02u:%02u-%02u:%02u",
                   window->from_min / 60u, window->from_min % 60u, window->till_min / 60u,
                   window->till_min % 60u);
}

void hours_offset_text(int32_t offset_min, char ret_text[HOURS_TEXT_SIZE])
{
    const int minutes = abs((int)offset_min);
    (void)snprintf(ret_text, HOURS_TEXT_SIZE, "%c%02d:%02d", offset_min < 0 ? '-' : '+',
                   minutes / 60, minutes % 60);
}

void hours_text(const struct hours *hours, char ret_text[HOURS_ALL_TEXT_SIZE])
{
    char part[HOURS_TEXT_SIZE];
    size_t used = 0;
    (void)snprintf(ret_text, HOURS_ALL_TEXT_SIZE, "always");
    for (uint32_t i = 0; i < hours->count; i++) {
        hours_window_text(&hours->windows[i], part);
        used += (size_t)snprintf(ret_text + used, HOURS_ALL_TEXT_SIZE - used, "%s%s",
                                 i > 0 ? ", " : "", part);
    }
    if (hours->count > 0) {
        hours_offset_text(hours->offset_min, part);
        (void)snprintf(ret_text + used, HOURS_ALL_TEXT_SIZE - used, " (UTC%s)", part);
    }
}
