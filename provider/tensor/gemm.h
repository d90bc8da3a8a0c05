/* provider/tensor/gemm.h computes the product of float32 matrices, C = alpha A B + beta C. Matrices
 * are stored row by row, and nothing is copied.
 *
 * There are two ways. oneDNN computes if it was found at configure time; gemm_onednn.c is the only
 * file that knows it. Plain C is always there, and tests compare with it. Both add in float32, each
 * in an order of its own. NaN and infinities follow IEEE 754. With beta = 0 the old content of C is
 * not read, not even a NaN. */
#ifndef BOURSE_PROVIDER_TENSOR_GEMM_H
#define BOURSE_PROVIDER_TENSOR_GEMM_H

#include "formats/tensor_op.h"

#include <stdbool.h>
#include <stdint.h>

struct gemm {
    uint64_t rows, inner, columns; /* A is rows x inner, B inner x columns */
    float alpha, beta;
    const float *a, *b;
    float *c;
    /* A device may round the factors to this type. Cores compute in float32 in any case. */
    enum tensor_compute compute;
};

enum gemm_status { GEMM_OK, GEMM_OUT_OF_MEMORY, GEMM_FAILED };

/* Computes by oneDNN, else in plain C, on as many threads as OMP_NUM_THREADS says. */
enum gemm_status gemm_run(const struct gemm *gemm);
/* gemm_plain.c defines the next two. Computes in plain C on one thread. Cannot fail. */
void gemm_reference(const struct gemm *gemm);
/* Computes the same values to the last bit, with bands of rows side by side. Uses at most `threads`
 * threads, 1 to GEMM_THREADS_MAX. The calling thread computes the bands for which no thread can be
 * had. */
enum { GEMM_THREADS_MAX = 64 };
void gemm_plain(const struct gemm *gemm, unsigned threads);

/* Returns the engine that gemm_run uses: "oneDNN 2.6.3" or "plain C". */
const char *gemm_engine(void);

/* gemm_onednn.c defines these two; all three dimensions are at least 1. They return NULL and
 * GEMM_FAILED if oneDNN was not found at configure time. */
const char *gemm_onednn_version(void);
enum gemm_status gemm_onednn(const struct gemm *gemm);

#endif
