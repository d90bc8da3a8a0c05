/* tests/support/matrices.h draws matrices, and multiplies them by either engine. */
#ifndef BOURSE_TESTS_SUPPORT_MATRICES_H
#define BOURSE_TESTS_SUPPORT_MATRICES_H

#include "provider/tensor/gemm.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static uint64_t state = 1;

static inline float draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(state >> 32) / 2147483648.0F;
}

static inline float *drawn(uint64_t count)
{
    float *values = calloc(count + 1, sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = draw();
    }
    return values;
}

static inline void multiply(const struct gemm *gemm, bool by_reference)
{
    if (by_reference) {
        gemm_reference(gemm);
    } else {
        ck_assert_int_eq(gemm_run(gemm), GEMM_OK);
    }
}

#endif
