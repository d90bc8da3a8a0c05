#include "base/rate.h"

#include <string.h>

static const char *const names[RATES] = {
    [RATE_NONE] = "",     [RATE_FP64] = "fp64", [RATE_FP32] = "fp32",
    [RATE_TF32] = "tf32", [RATE_BF16] = "bf16", [RATE_FP16] = "fp16",
    [RATE_FP8] = "fp8",   [RATE_INT8] = "int8", [RATE_INT4] = "int4",
};

const char *rate_name(enum rate rate)
{
    return names[rate];
}

enum rate rate_named(const char *name)
{
    for (unsigned i = RATE_FP64; i < RATES; i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum rate)i;
        }
    }
    return RATE_NONE;
}

bool rate_is_of_integers(enum rate rate)
{
    return rate == RATE_INT8 || rate == RATE_INT4;
}

int64_t rate_of(enum rate rate, const struct attribute *attributes, size_t count)
{
    int64_t least = 0;
    for (size_t i = 0; i < count; i++) {
        const struct attribute *has = &attributes[i];
        if (!has->is_text && has->number > 0 && strcmp(has->name, names[rate]) == 0) {
            least = least == 0 || has->number < least ? has->number : least;
        }
    }
    return least;
}

int64_t rate_limit(int64_t value_micro, int64_t operations)
{
    int64_t limit = INT64_MAX;
    /* The limit stays INT64_MAX when the product does not fit. */
    (void)checked_muldiv_floor(value_micro, operations, RATE_UNIT, &limit);
    return limit;
}

bool rate_value_for(int64_t price_micro, int64_t operations, int64_t *ret_value_micro)
{
    return checked_muldiv_ceil(price_micro, RATE_UNIT, operations, ret_value_micro);
}
