/* provider/tensor/challenge_answer.h computes the products of a challenge, on one thread, with the
 * multiplier of the jobs' own products (base/challenge_product.h). */
#ifndef BOURSE_PROVIDER_TENSOR_CHALLENGE_ANSWER_H
#define BOURSE_PROVIDER_TENSOR_CHALLENGE_ANSWER_H

#include "base/problem.h"
#include "provider/tensor/operation.h"

#include <stddef.h>

/* The words are TENSOR_CHALLENGE, the seed in hex, side and rounds. Prints the digests, in hex and
 * without a newline. */
enum { CHALLENGE_WORDS = 4 };
enum operation_status challenge_answer_run(const char *const *words, size_t count,
                                           struct problem *ret_problem);

#endif
