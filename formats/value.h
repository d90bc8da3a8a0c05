/* formats/value.h - what a unit of work is worth, as people write it.
 *
 *     0.02 per bf16 TFLOP-hour           credits, a rate of the device, and how much work at that rate
 *     1.5 per int8 TOP-hour              integers: operations, not operations on numbers with a point
 *
 * The work of one TFLOP-hour is what a device does in an hour that does 10^12 operations a second;
 * GFLOP-hour, PFLOP-hour, GOP-hour and POP-hour are read as well. Integers only: a fraction finer
 * than a micro-credit for a PFLOP-hour is refused. Pure. */
#ifndef BOURSE_FORMATS_VALUE_H
#define BOURSE_FORMATS_VALUE_H

#include "base/problem.h"
#include "base/rate.h"

#include <stdbool.h>

struct value {
    int64_t micro; /* base/rate.h: micro-credits for 10^15 operations per second over an hour */
    enum rate rate;
};

enum { VALUE_TEXT_SIZE = 48 };

/* False with a problem, and *ret_value untouched. */
bool value_parse(const char *text, struct value *ret_value, struct problem *ret_problem);
/* Exactly, for the TFLOP-hour: reading it gives the same value. It is >= 0, and of a rate. */
void value_text(const struct value *value, char ret_text[VALUE_TEXT_SIZE]);

#endif
