/* This file is the only one that knows oneDNN. The library's only function used is dnnl_sgemm,
 * which is alike in versions 1 to 3. BOURSE_ONEDNN is defined if the library was found
 * (cmake/packages.cmake). */
#include "provider/tensor/gemm.h"

#include <stddef.h>

#ifdef BOURSE_ONEDNN

#include <dnnl.h>
#include <stdio.h>

const char *gemm_onednn_version(void)
{
    static char text[48];
    const dnnl_version_t *version = dnnl_version();
    (void)snprintf(text, sizeof text, "oneDNN %d.%d.%d", version->major, version->minor,
                   version->patch);
    return text;
}

enum gemm_status gemm_onednn(const struct gemm *gemm)
{
    dnnl_dim_t rows = (dnnl_dim_t)gemm->rows;
    dnnl_dim_t inner = (dnnl_dim_t)gemm->inner;
    dnnl_dim_t columns = (dnnl_dim_t)gemm->columns;
    switch (dnnl_sgemm('N', 'N', rows, columns, inner, gemm->alpha, gemm->a, inner, gemm->b,
                       columns, gemm->beta, gemm->c, columns)) {
    case dnnl_success:
        return GEMM_OK;
    case dnnl_out_of_memory:
        return GEMM_OUT_OF_MEMORY;
    default: /* the library's own list, which grows */
        return GEMM_FAILED;
    }
}

#else

const char *gemm_onednn_version(void)
{
    return NULL;
}

enum gemm_status gemm_onednn(const struct gemm *gemm)
{
    (void)gemm;
    return GEMM_FAILED;
}

#endif
