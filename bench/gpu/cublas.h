/* bench/gpu/cublas.h measures NVIDIA's own library of matrix products, where it is installed. The
 * library is loaded when the program runs; its names and numbers here are written down by us, and
 * were never tried on hardware. */
#ifndef BOURSE_BENCH_GPU_CUBLAS_H
#define BOURSE_BENCH_GPU_CUBLAS_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

struct cublas_rates {
    bool is_found;           /* there are a device and the library */
    const char *library;     /* its name */
    double fp32, tf32, bf16; /* GFLOP/s of a product, without copies: the median of some runs */
};

/* Multiplies N x N matrices on the first device. Returns false with the problem; `is_found` then
 * tells a failure from a machine that has none. */
bool cublas_measure(size_t n, struct cublas_rates *ret_rates, struct problem *ret_problem);

#endif
