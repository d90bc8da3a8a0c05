#include "audit/worth.h"

#include <stdbool.h>
#include <string.h>

#define OPERATIONS_OF_A_VALUE UINT64_C(1000000000000000)

uint32_t audit_worth_rate(const char *attribute)
{
    static const struct {
        const char *name;
        uint32_t number;
    } rates[] = {
        {"int4", 8}, {"int8", 7}, {"fp8", 6},  {"fp16", 5},
        {"bf16", 4}, {"tf32", 3}, {"fp32", 2}, {"fp64", 1},
    };
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        if (strcmp(attribute, rates[i].name) == 0) {
            return rates[i].number;
        }
    }
    return AUDIT_RATE_NONE;
}

/* Adds to a fraction of OPERATIONS_OF_A_VALUE. Returns true when the sum holds a whole one, which
 * is taken out of the fraction. */
static bool carries(uint64_t *part, uint64_t add)
{
    *part += add; /* both are below 10^15, so the sum fits */
    if (*part < OPERATIONS_OF_A_VALUE) {
        return false;
    }
    *part -= OPERATIONS_OF_A_VALUE;
    return true;
}

/* The exchange divides one product of 128 bits. This function takes the value bit by bit, from the
 * highest on, as long multiplication does. `price` is the whole part and `part` the rest, in parts
 * of 10^15. */
int64_t audit_worth_limit(int64_t value_micro, int64_t operations)
{
    const uint64_t whole = (uint64_t)operations / OPERATIONS_OF_A_VALUE;
    const uint64_t rest = (uint64_t)operations % OPERATIONS_OF_A_VALUE;
    uint64_t price = 0;
    uint64_t part = 0;
    for (int bit = 62; bit >= 0; bit--) {
        if (price > INT64_MAX / 2) {
            return INT64_MAX; /* a further step only makes the price larger */
        }
        price = 2 * price + (carries(&part, part) ? 1 : 0);
        if (((uint64_t)value_micro >> bit & 1) != 0) {
            price += whole + (carries(&part, rest) ? 1 : 0);
        }
    }
    return price < INT64_MAX ? (int64_t)price : INT64_MAX;
}
