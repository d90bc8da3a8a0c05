/* provider/kernel/product/product_trial.h compares products of a device with those of plain C, and
 * measures them. */
#ifndef BOURSE_PROVIDER_KERNEL_PRODUCT_PRODUCT_TRIAL_H
#define BOURSE_PROVIDER_KERNEL_PRODUCT_PRODUCT_TRIAL_H

#include "provider/kernel/engine.h"

#include <stdbool.h>
#include <stdint.h>

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
bool product_trial(struct engine *engine, enum tensor_compute compute, uint64_t memory_bytes,
                   struct product_figures *ret_figures, struct problem *ret_problem);

#endif
