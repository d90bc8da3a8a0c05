/* formats/value.h reads and writes the value of a unit of work as people write it.
 *
 *     0.02 per bf16 TFLOP-hour           credits, a rate of the device, and the work at that rate
 *     1.5 per int8 TOP-hour              integer operations, not floating-point ones
 *
 * One TFLOP-hour is the work of a device that does 10^12 operations a second for an hour.
 * GFLOP-hour, PFLOP-hour, GOP-hour and POP-hour are read as well. All amounts are integers: a
 * fraction finer than a micro-credit for a PFLOP-hour is refused. */
#ifndef BOURSE_FORMATS_VALUE_H
#define BOURSE_FORMATS_VALUE_H

#include "base/problem.h"
#include "base/rate.h"

#include <stdbool.h>

struct value {
    /* The value is in micro-credits for 10^15 operations per second over an hour (base/rate.h). */
    int64_t micro;
    enum rate rate;
};

enum { VALUE_TEXT_SIZE = 48 };

/* Parses a value. Returns false with a problem; *ret_value is then unchanged. */
bool value_parse(const char *text, struct value *ret_value, struct problem *ret_problem);
/* Writes the value exactly, for the TFLOP-hour: reading it gives the same value. The value is >=
 * 0 and has a rate. */
void value_text(const struct value *value, char ret_text[VALUE_TEXT_SIZE]);

#endif
