#include "planner/cost/dtype.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bits, sum_bits;
} facts[DTYPES] = {
    [DTYPE_FP64] = {"fp64", 64, 64}, [DTYPE_FP32] = {"fp32", 32, 32},
    [DTYPE_TF32] = {"tf32", 32, 32}, [DTYPE_FP16] = {"fp16", 16, 16},
    [DTYPE_BF16] = {"bf16", 16, 16}, [DTYPE_FP8] = {"fp8", 8, 16},
    [DTYPE_INT8] = {"int8", 8, 32},  [DTYPE_INT4] = {"int4", 4, 32},
};

const char *dtype_name(enum dtype dtype)
{
    assert(dtype < DTYPES);
    return facts[dtype].name;
}

bool dtype_find(const char *name, enum dtype *ret_dtype)
{
    for (int i = 0; i < DTYPES; i++) {
        if (strcmp(facts[i].name, name) == 0) {
            *ret_dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

uint32_t dtype_bits(enum dtype dtype)
{
    assert(dtype < DTYPES);
    return facts[dtype].bits;
}

uint32_t dtype_sum_bits(enum dtype dtype)
{
    assert(dtype < DTYPES);
    return facts[dtype].sum_bits;
}
