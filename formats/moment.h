/* formats/moment.h reads moments of UTC as people write them, with or without seconds. An example
 * is 2026-12-24T18:00:00Z. */
#ifndef BOURSE_FORMATS_MOMENT_H
#define BOURSE_FORMATS_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* This half of a message about a text that is no moment says what to write. */
#define MOMENT_HELP "a moment is of UTC, of the years 1970 to 2199, as in 2026-12-24T18:00:00Z"

/* Returns true when the text begins with a year and a month. A text that begins so is meant as a
 * moment, right or wrong, and not as a duration. */
bool moment_is_meant(const char *text);
/* Writes milliseconds since 1970, for the years 1970 to 2199, without leap seconds. Returns
 * false and writes nothing when the text is no moment. */
bool moment_read(const char *text, int64_t *ret_ms);

#endif
