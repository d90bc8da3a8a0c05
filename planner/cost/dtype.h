/* planner/cost/dtype.h - the types of array elements: what they are called and how many bits they
 * take.
 *
 * A sum of products has the type of its factors, except that the sum of fp8 has 16 bits, of int8
 * and int4
 * 32. tf32 is a way to multiply: such arrays are fp32 in memory. Pure. */
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
/* False: no type is called so. */
bool dtype_find(const char *name, enum dtype *ret_dtype);

uint32_t dtype_bits(enum dtype dtype);     /* of an element */
uint32_t dtype_sum_bits(enum dtype dtype); /* of a sum of products */

#endif
