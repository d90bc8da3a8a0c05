#include "provider/tensor/gemm.h"

#include <stddef.h>
#include <stdlib.h>

/* Reads OMP_NUM_THREADS as OpenMP does, which oneDNN uses. Anything but a number counts as 1. */
static unsigned threads_wanted(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    unsigned long threads = text != NULL ? strtoul(text, NULL, 10) : 1;
    return threads < 1 ? 1 : threads > GEMM_THREADS_MAX ? GEMM_THREADS_MAX : (unsigned)threads;
}

enum gemm_status gemm_run(const struct gemm *gemm)
{
    if (gemm_onednn_version() == NULL || gemm->rows == 0 || gemm->inner == 0 ||
        gemm->columns == 0) {
        gemm_plain(gemm, threads_wanted());
        return GEMM_OK;
    }
    return gemm_onednn(gemm);
}

const char *gemm_engine(void)
{
    const char *version = gemm_onednn_version();
    return version != NULL ? version : "plain C";
}
