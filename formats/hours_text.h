/* formats/hours_text.h - windows of hours as people write them, and back.
 *
 *     window   22:00-07:00               every day, until the next morning
 *              mon-fri 18:00-24:00       on days that are named: mon tue wed thu fri sat sun, ranges and
 *              sat,sun 00:00-24:00       commas between them; a range may go round: sat-mon
 *     offset   +01:00  -03:30            what the clock is ahead of UTC
 *
 * Two digits each, nothing left over. Pure. */
#ifndef BOURSE_FORMATS_HOURS_TEXT_H
#define BOURSE_FORMATS_HOURS_TEXT_H

#include "base/hours.h"
#include "base/problem.h"

enum {
    HOURS_TEXT_SIZE = 48,                                            /* of a window */
    HOURS_ALL_TEXT_SIZE = HOURS_WINDOWS_MOST * HOURS_TEXT_SIZE + 16, /* of all, and the offset */
};

/* False with what is wrong and what would be right; *ret is untouched. */
bool hours_read_window(const char *text, struct hours_window *ret_window,
                       struct problem *ret_problem);
bool hours_read_offset(const char *text, int32_t *ret_min, struct problem *ret_problem);
/* Of well-formed ones; reading them gives the same again. */
void hours_window_text(const struct hours_window *window, char ret_text[HOURS_TEXT_SIZE]);
void hours_offset_text(int32_t offset_min, char ret_text[HOURS_TEXT_SIZE]);
/* For people: "mon-fri 18:00-24:00, sat,sun 00:00-24:00 (UTC+01:00)", or "always". */
void hours_text(const struct hours *hours, char ret_text[HOURS_ALL_TEXT_SIZE]);

#endif
