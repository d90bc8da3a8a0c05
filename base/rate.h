/* base/rate.h - work by the hour: the rates that a device has, and what a bid by value gives for
 * one of its slot-hours.
 *
 * A *value* is what a unit of work is worth: micro-credits for 10^15 operations per second over an
 * hour, so that 0.02 credits per TFLOP-hour are 20,000,000. Which operations is a rate of the
 * device, an attribute in operations per second of one slot. On a device of rate R a slot-hour is
 * worth value x R / 10^15 micro-credits: the bid's limit there.
 *
 * Limits of unlike devices, prices per work and limits by value and by the slot-hour are compared
 * as whole products, in 128 bits: values, prices and rates are below 2^63 and 10^15 is below 2^50,
 * so none is as large as 2^126. Only what is paid is rounded, down. Pure. */
#ifndef BOURSE_BASE_RATE_H
#define BOURSE_BASE_RATE_H

#include "base/checked.h"
#include "base/requirement.h"

#include <stddef.h>

#define RATE_UNIT INT64_C(1000000000000000) /* operations per second of which a value is said */

enum rate { /* on the wire too: numbers never change */
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
enum { RATES = 9 }; /* NONE among them */

const char *rate_name(enum rate rate);    /* of its attribute; "" for NONE */
enum rate rate_named(const char *name);   /* NONE: no rate has that name */
bool rate_is_of_integers(enum rate rate); /* operations, where others are on numbers with a point */
/* What the attributes, sorted by name or not, say of it: the least of several figures. 0: nothing,
 * or none above 0. */
int64_t rate_of(enum rate rate, const struct attribute *attributes, size_t count);

/* What a slot-hour of that rate is worth, and a price, in parts of RATE_UNIT of a micro-credit:
 * these compare exactly. */
static inline int128 rate_worth(int64_t value_micro, int64_t operations)
{
    return (int128)value_micro * operations;
}
static inline int128 rate_price(int64_t price_micro)
{
    return (int128)price_micro * RATE_UNIT;
}

/* The limit of a value >= 0 on a device of that rate >= 0: rounded down, INT64_MAX where it is
 * more. */
int64_t rate_limit(int64_t value_micro, int64_t operations);
/* The least value whose limit on a device of that rate > 0 is at least the price >= 0; false: none
 * is. */
bool rate_value_for(int64_t price_micro, int64_t operations, int64_t *ret_value_micro);

#endif
