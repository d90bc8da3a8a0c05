/* provider/onnx/own/own_product.h computes products of matrices for operators. Those of
 * float32 are computed by provider/tensor/gemm.h. Matrices are stored row by row. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_PRODUCT_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_PRODUCT_H

#include "provider/onnx/own/own_call.h"

struct own_sides {
    int64_t rows, inner, columns; /* A is rows x inner, B inner x columns */
};

/* Computes C = alpha A B + beta C on the call's threads. */
bool own_product(struct own_call *call, struct own_sides sides, float alpha, const float *a,
                 const float *b, float beta, float *c);
/* Computes C = A B in int32, which wraps. Both products return false after a fault. */
bool own_product_whole(struct own_call *call, struct own_sides sides, const int32_t *a,
                       const int32_t *b, int32_t *c);

/* Makes the transposed matrix of a `rows` x `columns` one. */
void own_turn(const float *from, int64_t rows, int64_t columns, float *to);

/* Tells the library below how many threads it may use from now on. */
void own_product_threads(unsigned threads);

#endif
