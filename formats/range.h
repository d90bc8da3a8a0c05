/* formats/range.h reads ranges of whole numbers in even steps, as a job's `array` key has them.
 *
 *     range = number [ "-" number [ ":" step ] ]          "7", "1-100", "0-100:25"
 *
 * The last number of the text is a bound: 1-100:2 ends at 99, and `last` says so. */
#ifndef BOURSE_FORMATS_RANGE_H
#define BOURSE_FORMATS_RANGE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

struct range {
    int64_t first;
    int64_t last; /* in the range; >= first */
    int64_t step; /* >= 1 */
};

/* Parses a range. Returns false with a problem for a text outside the grammar, a backward range, a
 * step of 0, or more than FORMAT_SUBTASKS numbers. *ret_range is unchanged then. */
bool range_parse(const char *text, struct range *ret_range, struct problem *ret_problem);
int64_t range_count(const struct range *range);
/* Returns the number at `index` (0 .. count - 1), which the caller has checked. */
int64_t range_at(const struct range *range, int64_t index);

#endif
