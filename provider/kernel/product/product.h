/* provider/kernel/product/product.h computes products of float32 matrices on a device.
 *
 * A library by the device's maker computes, when it is open (struct engine). Else the kernel is
 * bourse's own, and the interface of the device brings its text. The matrices go into
 * the device's memory and come back. Where A and C are too large for that memory, bands of their
 * rows go one after another. B is there whole. A factor whose content is known may stay on the
 * device for the next products (engine.h), but not A in bands. */
#ifndef BOURSE_PROVIDER_KERNEL_PRODUCT_PRODUCT_H
#define BOURSE_PROVIDER_KERNEL_PRODUCT_PRODUCT_H

#include "provider/kernel/engine.h"
#include "provider/tensor/gemm.h"

#include <stdint.h>

/* No matrix on a device has more rows or columns. The kernels count them in 32 bits. */
#define PRODUCT_SIDE_MOST (UINT64_C(1) << 30)

/* The parts of files that the factors are; NULL: not known. */
struct product_parts {
    const struct held_part *a, *b;
    const char *result_name; /* of the file that C becomes; NULL: C does not stay */
    struct held_part result; /* without its hash */
};

/* Computes one product. The buffers together, and the inputs that the engine holds, have at most
 * `memory_bytes`. For any status but OK the problem says why, and C is undefined. */
enum operation_status product_run(struct engine *engine, const struct gemm *gemm,
                                  struct product_parts parts, uint64_t memory_bytes,
                                  struct problem *ret_problem);

/* Computes one product of matrices that are on the device, and waits for its end. *kernel, which is
 * NULL before the first product, is bourse's own kernel once a product needed it. The caller drops
 * it. For any status but OK the problem says why. */
enum operation_status product_on_device(struct engine *engine,
                                        const struct kernel_multiplication *terms, void **kernel,
                                        struct problem *ret_problem);

#endif
