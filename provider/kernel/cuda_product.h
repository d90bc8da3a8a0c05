/* provider/kernel/cuda_product.h has the kernel in PTX that computes products of matrices. The
 * kernel takes every shape of at least one row, inner column and column. The interface sets how
 * many blocks of rows go at a time. */
#ifndef BOURSE_PROVIDER_KERNEL_CUDA_PRODUCT_H
#define BOURSE_PROVIDER_KERNEL_CUDA_PRODUCT_H

#include "provider/kernel/interface.h"

/* Returns the kernel. Its text is a static array of this function. */
struct kernel_product cuda_product(void);

#endif
