/* provider/tensor/cores.h computes the products of operations on this machine's cores. */
#ifndef BOURSE_PROVIDER_TENSOR_CORES_H
#define BOURSE_PROVIDER_TENSOR_CORES_H

#include "provider/tensor/operation.h"

/* Computes by gemm_run, and needs no context. */
extern const struct operation_multiplier cores_multiplier;

#endif
