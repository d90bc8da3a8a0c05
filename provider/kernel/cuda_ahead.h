/* provider/kernel/cuda_ahead.h copies bytes to a CUDA device beside the launch that computes.
 * interface.h says what its functions do. */
#ifndef BOURSE_PROVIDER_KERNEL_CUDA_AHEAD_H
#define BOURSE_PROVIDER_KERNEL_CUDA_AHEAD_H

#include "provider/kernel/interface.h"

void *cuda_ahead_open(const struct engine *engine);
void cuda_ahead_close(const struct engine *engine, void *copier);
bool cuda_ahead_reserve(const struct engine *engine, uint64_t size,
                        struct kernel_buffer *ret_buffer);
bool cuda_ahead_write(const struct engine *engine, void *copier, struct kernel_buffer buffer,
                      uint64_t at, const void *bytes, size_t size);

#endif
