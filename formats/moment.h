/* formats/moment.h - moments of UTC as people write them: 2026-12-24T18:00:00Z, or without the
 * seconds. Pure. */
#ifndef BOURSE_FORMATS_MOMENT_H
#define BOURSE_FORMATS_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it begins as one, with a year and a month: right or wrong, it is no duration. */
bool moment_is_meant(const char *text);
/* Milliseconds since 1970, of the years 1970 to 2199; false, and nothing is written: it is none. No
 * leap seconds. */
bool moment_read(const char *text, int64_t *ret_ms);

#endif
