/* planner/cost.h - how long an operation takes on a device and what energy it uses: the roofline.
 *
 *     t = max(operations / peak(dtype), bytes / bandwidth)         energy = t x power
 *
 * Peaks and bandwidth are the device's best, so t is the least that the device can need: a real one takes
 * longer, by how much only a measurement tells. Operations of a product are 2 M N K; bytes are each operand
 * once and the result once. A result has its operands' type; that of fp8 has two bytes an element, of int8
 * and int4 four.
 *
 * What a device cannot do is said by name, never taken for slow: no rate is known for the type, or operands
 * and result are more than its memory. An unknown memory is not held against it; an unknown bandwidth
 * leaves the operations alone to bound t. A figure worked out of others is as good as the worst of them. Pure. */
#ifndef BOURSE_PLANNER_COST_H
#define BOURSE_PLANNER_COST_H

#include "base/problem.h"
#include "planner/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cost_dtype {
    COST_FP64,
    COST_FP32,
    COST_TF32,
    COST_FP16,
    COST_BF16,
    COST_FP8,
    COST_INT8,
    COST_INT4,
    COST_DTYPES,
};

enum cost_kind {
    COST_MATMUL, /* C = A B */
    COST_GEMM,   /* C = alpha A B + beta C: C is read, too */
};

#define COST_DIMENSION_MOST (UINT64_C(1) << 40)

struct cost_operation {
    enum cost_kind kind;
    uint64_t m, n, k; /* A is m x k, B is k x n; 1 to COST_DIMENSION_MOST each */
    enum cost_dtype dtype;
};

enum cost_status {
    COST_OK,
    COST_NO_DTYPE, /* no rate of that type is known */
    COST_NO_MEMORY,
};

struct cost {
    double operations, bytes;
    struct figure compute_s; /* operations / peak */
    struct figure memory_s;  /* bytes / bandwidth; unknown: not part of time_s */
    struct figure time_s;
    struct figure energy_j; /* unknown when the power is */
    uint32_t passes;        /* cost_float32: products made for one; else 1 */
    enum cost_dtype dtype;  /* that it was worked out for */
};

const char *cost_dtype_name(enum cost_dtype dtype); /* "bf16" */

/* "matmul:MxNxK:bf16" or "gemm:MxNxK:fp32". False with what is wrong. */
bool cost_parse(const char *text, struct cost_operation *ret_operation,
                struct problem *ret_problem);

/* Any status but OK leaves `ret_cost` with operations, bytes and nothing else. */
enum cost_status cost_estimate(const struct device_profile *profile,
                               const struct cost_operation *operation, struct cost *ret_cost);

/* The same for float32 arrays, whatever the operation's own dtype. A device without an fp32 rate splits each
 * element into parts whose products keep float32's 24 bits: three parts of bf16 take 6 passes (XLA's "highest"
 * precision), two of tf32 or fp16 take 3 (Ootomo and Yokota 2022). The fastest of these is taken, and said. */
enum cost_status cost_float32(const struct device_profile *profile,
                              const struct cost_operation *operation, struct cost *ret_cost);

/* A line for people on a status that is not OK: `name` has no such rate, or not the room. */
void cost_explain(enum cost_status status, const char *name, const struct device_profile *profile,
                  const struct cost_operation *operation, char *ret_text, size_t capacity);

#endif
