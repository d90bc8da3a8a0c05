#include "provider/tensor/gemm.h"

#include <stddef.h>

/* Row by row, the inner loop over neighbours in memory, so that a compiler can use wide units. */
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

enum gemm_status gemm_run(const struct gemm *gemm)
{
    if (gemm_onednn_version() == NULL || gemm->rows == 0 || gemm->inner == 0 ||
        gemm->columns == 0) {
        gemm_reference(gemm);
        return GEMM_OK;
    }
    return gemm_onednn(gemm);
}

const char *gemm_engine(void)
{
    const char *version = gemm_onednn_version();
    return version != NULL ? version : "plain C";
}
