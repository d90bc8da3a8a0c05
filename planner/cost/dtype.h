/* Data types of array elements have names and sizes in bits here.
 *
 * A sum of products has the type of its factors, with two exceptions: a sum of fp8 has 16 bits, and
 * a sum of int8 or int4 has 32. tf32 is a way to multiply; its arrays are fp32 in memory. */
#ifndef BOURSE_PLANNER_COST_DTYPE_H
#define BOURSE_PLANNER_COST_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum dtype {
    DTYPE_FP64,
    DTYPE_FP32,
    DTYPE_TF32,
    DTYPE_FP16,
    DTYPE_BF16,
    DTYPE_FP8,
    DTYPE_INT8,
    DTYPE_INT4,
    DTYPES,
};

const char *dtype_name(enum dtype dtype); /* "bf16" */
/* Returns false when no type has this name. */
bool dtype_find(const char *name, enum dtype *ret_dtype);

uint32_t dtype_bits(enum dtype dtype);     /* bits of an element */
uint32_t dtype_sum_bits(enum dtype dtype); /* bits of a sum of products */

#endif
