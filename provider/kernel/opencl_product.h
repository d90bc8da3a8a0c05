/* provider/kernel/opencl_product.h has the kernels in OpenCL C that compute products of matrices.
 * Both take every shape of at least one row, inner column and column. */
#ifndef BOURSE_PROVIDER_KERNEL_OPENCL_PRODUCT_H
#define BOURSE_PROVIDER_KERNEL_OPENCL_PRODUCT_H

#include "provider/kernel/interface.h"

/* Returns the kernel for a device of cores. Each work-group is one work-item, which computes with
 * vectors as wide as the device's: `lanes` float32 numbers, or 0 when the width is not known. */
struct kernel_product opencl_product_of_cores(uint32_t lanes);
/* Returns the kernel for every other device. The 256 work-items of a group share parts of A and B
 * in local memory. */
struct kernel_product opencl_product_of_groups(void);

#endif
