/* provider/kernel/cublaslt.h computes products on a CUDA device by cuBLASLt. Never tried on
 * hardware.
 *
 * The matrices lie row by row, and cuBLASLt counts by columns. So it computes the product of the
 * transposed matrices in the other order, which are the same bytes. */
#ifndef BOURSE_PROVIDER_KERNEL_CUBLASLT_H
#define BOURSE_PROVIDER_KERNEL_CUBLASLT_H

#include "provider/kernel/cublaslt_api.h"
#include "provider/kernel/interface.h"

/* Memory of the device that cuBLASLt may use beside the matrices. NVIDIA recommends this size for
 * its newest devices. */
#define CUBLASLT_WORKSPACE_BYTES (UINT64_C(32) << 20)

struct cublaslt {
    struct cublaslt_api api;
    char name[CUBLASLT_NAME_SIZE];
    cublaslt_handle handle;
    uint64_t workspace; /* its address on the device; 0: none */
    size_t workspace_bytes;
};

/* Opens the library for the device that is open. The workspace becomes the struct's, which never
 * frees it. Returns false with the problem; then nothing is open. */
bool cublaslt_open(const char *library, struct cublaslt *ret_lt, struct problem *ret_problem);
void cublaslt_close(struct cublaslt *lt);

/* The outcome of a product. */
enum cublaslt_outcome {
    CUBLASLT_DONE,    /* the product is on its way to the device */
    CUBLASLT_REFUSED, /* the library does not compute this product, and nothing was begun */
    CUBLASLT_FAILED,  /* the device or the library failed */
};

/* Starts a product on the default stream. For any outcome but DONE, the problem says why. */
enum cublaslt_outcome cublaslt_multiply(struct cublaslt *lt,
                                        const struct kernel_multiplication *product,
                                        struct problem *ret_problem);

#endif
