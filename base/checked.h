/* base/checked.h defines integer arithmetic that reports overflow.
 *
 * The checked_* functions return false, and leave *ret alone, when the result does not fit.
 * Money is int64 micro-credits, prices are micro-credits per slot-hour, and time is int64 ns.
 * Products go through 128 bits, and every division names its rounding. */
#ifndef BOURSE_BASE_CHECKED_H
#define BOURSE_BASE_CHECKED_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_HOUR INT64_C(3600000000000)
#define MICRO_PER_CREDIT INT64_C(1000000)

static inline bool checked_add(int64_t a, int64_t b, int64_t *ret)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *ret = sum;
    return true;
}

static inline bool checked_sub(int64_t a, int64_t b, int64_t *ret)
{
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference)) {
        return false;
    }
    *ret = difference;
    return true;
}

static inline bool checked_mul(int64_t a, int64_t b, int64_t *ret)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *ret = product;
    return true;
}

/* The two functions return floor(a * b / divisor) and ceil(a * b / divisor). They need a, b >= 0
 * and divisor > 0. */
static inline bool checked_muldiv_floor(int64_t a, int64_t b, int64_t divisor, int64_t *ret)
{
    assert(a >= 0 && b >= 0);
    assert(divisor > 0);
    uint128 quotient = (uint128)a * (uint128)b / (uint128)divisor;
    if (quotient > (uint128)INT64_MAX) {
        return false;
    }
    *ret = (int64_t)quotient;
    return true;
}

static inline bool checked_muldiv_ceil(int64_t a, int64_t b, int64_t divisor, int64_t *ret)
{
    assert(a >= 0 && b >= 0);
    assert(divisor > 0);
    uint128 quotient = ((uint128)a * (uint128)b + (uint128)(divisor - 1)) / (uint128)divisor;
    if (quotient > (uint128)INT64_MAX) {
        return false;
    }
    *ret = (int64_t)quotient;
    return true;
}

#endif
