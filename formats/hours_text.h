/* formats/hours_text.h reads and writes windows of hours as people write them.
 *
 *     window   22:00-07:00               every day, until the next morning
 *              mon-fri 18:00-24:00       on the days named: mon tue wed thu fri sat sun, with
 *              sat,sun 00:00-24:00       ranges and commas; a range may wrap around: sat-mon
 *     offset   +01:00  -03:30            the clock's offset from UTC
 *
 * Every number has two digits, and nothing may follow. */
#ifndef BOURSE_FORMATS_HOURS_TEXT_H
#define BOURSE_FORMATS_HOURS_TEXT_H

#include "base/hours.h"
#include "base/problem.h"

enum {
    HOURS_TEXT_SIZE = 48, /* of a window */
    /* The size of all windows and the offset. */
    HOURS_ALL_TEXT_SIZE = HOURS_WINDOWS_MOST * HOURS_TEXT_SIZE + 16,
};

/* The two functions read a text. They return false with a problem that says what is wrong and what
 * would be right; *ret is then unchanged. */
bool hours_read_window(const char *text, struct hours_window *ret_window,
                       struct problem *ret_problem);
bool hours_read_offset(const char *text, int32_t *ret_min, struct problem *ret_problem);
/* The two functions write a well-formed value; reading the text gives the same value again. */
void hours_window_text(const struct hours_window *window, char ret_text[HOURS_TEXT_SIZE]);
void hours_offset_text(int32_t offset_min, char ret_text[HOURS_TEXT_SIZE]);
/* Writes the hours for people: "mon-fri 18:00-24:00, sat,sun 00:00-24:00 (UTC+01:00)", or
 * "always". */
void hours_text(const struct hours *hours, char ret_text[HOURS_ALL_TEXT_SIZE]);

#endif
