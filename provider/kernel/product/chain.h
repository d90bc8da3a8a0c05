/* This module computes chains of products on a device. Such chains are the challenges of a fast
 * device (base/challenge_product.h). */
#ifndef BOURSE_PROVIDER_KERNEL_PRODUCT_CHAIN_H
#define BOURSE_PROVIDER_KERNEL_PRODUCT_CHAIN_H

#include "base/challenge_product.h"
#include "provider/kernel/engine.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The words are TENSOR_CHALLENGE, the seed in hex, side, rounds, rows and steps. */
enum { CHAIN_WORDS = 6 };

/* Computes the chain and prints its digests on `out`, in hex and without a newline. Bands of rows
 * go one after another where the factors and sums of a round do not fit `memory_bytes`. For any
 * status but OK the problem says why. */
enum operation_status chain_run(struct engine *engine, const char *const *words, size_t count,
                                uint64_t memory_bytes, FILE *out, struct problem *ret_problem);

#endif
