/* provider/kernel/product.h computes products of float32 matrices on a device.
 *
 * A library by the device's maker computes, when it is open (struct engine). Else the kernel is
 * bourse's own, and the interface of the device brings its text. The matrices go into
 * the device's memory and come back. Where A and C are too large for that memory, bands of their
 * rows go one after another. B is there whole. A factor whose content is known may stay on the
 * device for the next products (engine.h), but not A in bands. */
#ifndef BOURSE_PROVIDER_KERNEL_PRODUCT_H
#define BOURSE_PROVIDER_KERNEL_PRODUCT_H

#include "provider/kernel/engine.h"
#include "provider/tensor/gemm.h"

#include <stdbool.h>
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

/* An element of a product whose factors are rounded may differ from the exact one by this part of
 * the sum of its magnitudes. Each factor may lose 2^-10 of itself in TF32, and 2^-7 in bfloat16. */
#define PRODUCT_TF32_TOLERANCE 0x1p-9F
#define PRODUCT_BF16_TOLERANCE 0x1p-6F

/* The figures say what products of one type reach, in Mflop/s. */
struct product_figures {
    int64_t mflops;      /* the factors are copied to the device and the result back */
    int64_t held_mflops; /* the factors are in the device's memory, and the result stays there */
};

/* Compares products of the device with those of plain C, and measures within the two phases of
 * measure.h. Returns false with the problem when the device computes no product, or a wrong one. */
bool product_measure(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
                     struct product_figures *ret_figures, struct problem *ret_problem);

#endif
