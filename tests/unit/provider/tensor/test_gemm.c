/* Plain C on several threads: what one thread makes, to the last bit, however the rows fall. */
#include "provider/tensor/gemm.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static float *values(uint64_t count, unsigned seed)
{
    float *made = malloc((count + 1) * sizeof *made);
    ck_assert_ptr_nonnull(made);
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        made[i] = (float)(int32_t)seed / 1e9F;
    }
    return made;
}

static void compare(uint64_t rows, uint64_t inner, uint64_t columns, unsigned threads)
{
    float *a = values(rows * inner, 1);
    float *b = values(inner * columns, 2);
    float *one = values(rows * columns + 1, 3);
    float *many = values(rows * columns + 1, 3);
    struct gemm gemm = {.rows = rows,
                        .inner = inner,
                        .columns = columns,
                        .alpha = 1.5F,
                        .beta = 0.5F,
                        .a = a,
                        .b = b,
                        .c = one};
    gemm_reference(&gemm);
    gemm.c = many;
    gemm_plain(&gemm, threads);
    ck_assert_mem_eq(one, many, (rows * columns + 1) * sizeof *one);
    free(a);
    free(b);
    free(one);
    free(many);
}

START_TEST(threads_change_no_bit)
{
    /* The last shapes are large enough for several bands; rows that do not divide, one, none, more
     * threads than rows. */
    static const uint64_t shapes[][3] = {{0, 5, 5},       {1, 1, 1},       {5, 0, 7},
                                         {7, 3, 0},       {64, 64, 64},    {67, 256, 256},
                                         {3, 1024, 1024}, {1, 2048, 1024}, {9, 700, 1600}};
    static const unsigned threads[] = {1, 2, 3, 7, GEMM_THREADS_MAX};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
            compare(shapes[i][0], shapes[i][1], shapes[i][2], threads[k]);
        }
    }
}
END_TEST

SUITE("gemm", NULL, NULL, TEST(threads_change_no_bit))
