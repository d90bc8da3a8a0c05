/* base/rate.h converts between the value of work and the price of a slot-hour, by the rates of a
 * device.
 *
 * A *value* is the worth of a unit of work: micro-credits for 10^15 operations per second over
 * an hour. 0.02 credits per TFLOP-hour are 20,000,000. A rate of the device names the operation:
 * it is an attribute in operations per second of one slot. On a device of rate R a slot-hour is
 * worth value x R / 10^15 micro-credits. This worth is the bid's limit there.
 *
 * Limits of unlike devices, prices per work, and limits by value and by slot-hour are compared
 * as whole products in 128 bits. Values, prices and rates are below 2^63 and 10^15 is below
 * 2^50, so no product reaches 2^126. Payments and limits are rounded down; comparisons
 * are exact. */
#ifndef BOURSE_BASE_RATE_H
#define BOURSE_BASE_RATE_H

#include "base/checked.h"
#include "base/requirement.h"

#include <stddef.h>

#define RATE_UNIT INT64_C(1000000000000000) /* operations per second that a value refers to */

/* The numbers are on the wire too, so they never change. */
enum rate {
    RATE_NONE = 0,
    RATE_FP64 = 1,
    RATE_FP32 = 2,
    RATE_TF32 = 3,
    RATE_BF16 = 4,
    RATE_FP16 = 5,
    RATE_FP8 = 6,
    RATE_INT8 = 7,
    RATE_INT4 = 8,
};
enum { RATES = 9 }; /* RATE_NONE included */

const char *rate_name(enum rate rate);    /* the attribute's name; "" for RATE_NONE */
enum rate rate_named(const char *name);   /* RATE_NONE: no rate has this name */
bool rate_is_of_integers(enum rate rate); /* the other rates count floating-point operations */
/* Returns the rate that the attributes state, the least of several figures. Returns 0 when they
 * state none above 0. The attributes need not be sorted. */
int64_t rate_of(enum rate rate, const struct attribute *attributes, size_t count);

/* rate_worth() returns the worth of a slot-hour at a rate, rate_price() a price. Both are in
 * parts of RATE_UNIT of a micro-credit, so they compare exactly. */
static inline int128 rate_worth(int64_t value_micro, int64_t operations)
{
    return (int128)value_micro * operations;
}
static inline int128 rate_price(int64_t price_micro)
{
    return (int128)price_micro * RATE_UNIT;
}

/* Returns the limit that a value >= 0 gives on a device of a rate >= 0. The limit is rounded
 * down; it is INT64_MAX where it does not fit. */
int64_t rate_limit(int64_t value_micro, int64_t operations);
/* Finds the least value whose limit on a device of a rate > 0 is at least `price_micro`, which
 * is >= 0. Returns false when there is none. */
bool rate_value_for(int64_t price_micro, int64_t operations, int64_t *ret_value_micro);

#endif
