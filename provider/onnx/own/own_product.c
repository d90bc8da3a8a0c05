#include "provider/onnx/own/own_product.h"

#include "base/checked.h"
#include "provider/onnx/own/own_parallel.h"
#include "provider/tensor/gemm.h"

#include <dlfcn.h>
#include <string.h>

/* A product of fewer terms costs less than to call a library for it. */
#define SMALL_PRODUCT (INT64_C(1) << 14)

bool own_product(struct own_call *call, struct own_sides sides, float alpha, const float *a,
                 const float *b, float beta, float *c)
{
    const struct gemm gemm = {.rows = (uint64_t)sides.rows,
                              .inner = (uint64_t)sides.inner,
                              .columns = (uint64_t)sides.columns,
                              .alpha = alpha,
                              .beta = beta,
                              .a = a,
                              .b = b,
                              .c = c};
    int64_t sums = 0;
    if (!checked_mul(sides.rows, sides.columns, &sums) || !own_spend(call, sums, sides.inner)) {
        return false;
    }
    const bool is_empty = sides.rows == 0 || sides.inner == 0 || sides.columns == 0;
    const bool is_small = is_empty || sides.rows * sides.inner < SMALL_PRODUCT / sides.columns;
    if (is_small) {
        gemm_reference(&gemm);
        return true;
    }
    if (gemm_onednn_version() == NULL) {
        gemm_plain(&gemm, call->threads > GEMM_THREADS_MAX ? GEMM_THREADS_MAX : call->threads);
        return true;
    }
    switch (gemm_onednn(&gemm)) {
    case GEMM_OK:
        return true;
    case GEMM_OUT_OF_MEMORY:
        return own_fault(call, ONNX_NO_MEMORY, ONNX_NO_INPUT, "%s has no memory for a product",
                         gemm_engine());
    case GEMM_FAILED:
        break;
    }
    return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "%s failed at a product", gemm_engine());
}

struct whole {
    struct own_sides sides;
    const int32_t *a, *b;
    int32_t *c;
};

static void work(void *context, int64_t first, int64_t last)
{
    const struct whole *whole = context;
    const int64_t columns = whole->sides.columns;
    for (int64_t i = first; i < last; i++) {
        uint32_t *row = (uint32_t *)whole->c + i * columns;
        memset(row, 0, (size_t)columns * sizeof *row);
        for (int64_t k = 0; k < whole->sides.inner; k++) {
            const uint32_t factor = (uint32_t)whole->a[i * whole->sides.inner + k];
            const int32_t *other = whole->b + k * columns;
            for (int64_t j = 0; j < columns; j++) {
                row[j] += factor * (uint32_t)other[j];
            }
        }
    }
}

bool own_product_whole(struct own_call *call, struct own_sides sides, const int32_t *a,
                       const int32_t *b, int32_t *c)
{
    int64_t sums = 0;
    if (!checked_mul(sides.rows, sides.columns, &sums) || !own_spend(call, sums, sides.inner)) {
        return false;
    }
    struct whole whole = {sides, a, b, c};
    own_parallel(call->threads, sides.rows, own_parallel_least(sides.inner * sides.columns), work,
                 &whole);
    return true;
}

/* Goes by squares, so that both sides stay in the cache. */
void own_turn(const float *from, int64_t rows, int64_t columns, float *to)
{
    enum { SIDE = 16 };
    for (int64_t i = 0; i < rows; i += SIDE) {
        for (int64_t k = 0; k < columns; k += SIDE) {
            for (int64_t row = i; row < i + SIDE && row < rows; row++) {
                for (int64_t column = k; column < k + SIDE && column < columns; column++) {
                    to[column * rows + row] = from[row * columns + column];
                }
            }
        }
    }
}

/* oneDNN is built with OpenMP, whose library is in the process then. */
void own_product_threads(unsigned threads)
{
    void (*set)(int count) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (found != NULL) {
        memcpy(&set, &found, sizeof set); /* ISO C has no cast from an object to a function */
        set((int)threads);
    }
}
