/* provider/tensor/gemm.h - the product of float32 matrices, C = alpha A B + beta C: rows one after
 * the other, no copies.
 *
 * Two ways: oneDNN where it was there at configure time (gemm_onednn.c, the only file that knows
 * it), and plain C, which is always there and is what tests compare with. Both add in float32, in
 * an order of their own; NaN and infinities follow IEEE 754, and with beta = 0 what C held is not
 * read, not even a NaN. */
#ifndef BOURSE_PROVIDER_TENSOR_GEMM_H
#define BOURSE_PROVIDER_TENSOR_GEMM_H

#include <stdbool.h>
#include <stdint.h>

struct gemm {
    uint64_t rows, inner, columns; /* A is rows x inner, B inner x columns */
    float alpha, beta;
    const float *a, *b;
    float *c;
};

enum gemm_status { GEMM_OK, GEMM_OUT_OF_MEMORY, GEMM_FAILED };

/* By oneDNN, else in plain C; on as many threads as OMP_NUM_THREADS says. */
enum gemm_status gemm_run(const struct gemm *gemm);
/* Plain C, one thread. Cannot fail. */
void gemm_reference(const struct gemm *gemm);
/* The same values to the last bit, bands of rows side by side on at most so many threads: 1 to
 * GEMM_THREADS_MAX. What threads cannot be had for is done by the caller's. */
enum { GEMM_THREADS_MAX = 64 };
void gemm_plain(const struct gemm *gemm, unsigned threads);

/* What gemm_run uses: "oneDNN 2.6.3" or "plain C". */
const char *gemm_engine(void);

/* gemm_onednn.c; all three dimensions are at least 1. NULL and FAILED where it was not there. */
const char *gemm_onednn_version(void);
enum gemm_status gemm_onednn(const struct gemm *gemm);

#endif
