/* This file computes products in plain C. Programs that compute on a device link it without
 * oneDNN. */
#include "provider/tensor/gemm.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

/* A smaller band costs more in starting its thread than the thread saves. */
#define BAND_PRODUCTS_LEAST (UINT64_C(1) << 20)

/* The inner loop runs over neighbours in memory, so that a compiler can use wide units. */
void gemm_reference(const struct gemm *gemm)
{
    for (uint64_t i = 0; i < gemm->rows; i++) {
        float *row = gemm->c + i * gemm->columns;
        for (uint64_t j = 0; j < gemm->columns; j++) {
            row[j] = gemm->beta == 0.0F ? 0.0F : gemm->beta * row[j];
        }
        for (uint64_t k = 0; k < gemm->inner; k++) {
            float factor = gemm->alpha * gemm->a[i * gemm->inner + k];
            const float *other = gemm->b + k * gemm->columns;
            for (uint64_t j = 0; j < gemm->columns; j++) {
                row[j] += factor * other[j];
            }
        }
    }
}

static void *run_band(void *band)
{
    gemm_reference(band);
    return NULL;
}

void gemm_plain(const struct gemm *gemm, unsigned threads)
{
    assert(threads >= 1);
    assert(threads <= GEMM_THREADS_MAX);
    uint64_t row_products = gemm->inner * gemm->columns;
    uint64_t rows_least =
        row_products > 0 ? BAND_PRODUCTS_LEAST / row_products + 1 : gemm->rows + 1;
    uint64_t rows = gemm->rows / threads + (gemm->rows % threads != 0);
    rows = rows < rows_least ? rows_least : rows;

    struct gemm bands[GEMM_THREADS_MAX];
    pthread_t running[GEMM_THREADS_MAX];
    unsigned count = 0;
    uint64_t first = 0;
    for (; gemm->rows - first > rows; first += rows) {
        bands[count] = *gemm;
        bands[count].rows = rows;
        bands[count].a += first * gemm->inner;
        bands[count].c += first * gemm->columns;
        if (pthread_create(&running[count], NULL, run_band, &bands[count]) != 0) {
            break; /* the calling thread does the rest */
        }
        count++;
    }
    struct gemm rest = *gemm;
    rest.rows = gemm->rows - first;
    rest.a += first * gemm->inner;
    rest.c += first * gemm->columns;
    gemm_reference(&rest);
    while (count > 0) {
        (void)pthread_join(running[--count], NULL); /* our own thread, joined once */
    }
}
