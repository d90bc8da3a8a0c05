/* The audit reads limits by value with these functions. They say which attribute states which rate,
 * and what a value comes to as a price per slot-hour.
 *
 * base/rate.h says the same for the exchange. The audit does not use base/rate.h, so a fault in
 * either shows as a difference. Both follow "Limits by value" in docs/protocol.md. The functions
 * here read no clock, file or socket. */
#ifndef BOURSE_AUDIT_WORTH_H
#define BOURSE_AUDIT_WORTH_H

#include <stdint.h>

enum { AUDIT_RATE_NONE = 0, AUDIT_RATES = 9 }; /* numbers of rates on the wire; NONE included */

/* Returns the number of the rate that an attribute of this name states, or AUDIT_RATE_NONE. */
uint32_t audit_worth_rate(const char *attribute);

/* Returns the price of a slot-hour, in micro-credits and rounded down, that `value_micro` comes to
 * on a device of `operations` per second. The value is for 10^15 operations per second. Neither
 * figure is negative. A price that does not fit is INT64_MAX. */
int64_t audit_worth_limit(int64_t value_micro, int64_t operations);

#endif
