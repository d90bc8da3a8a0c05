/* provider/tensor/challenge_answer.h computes what base/challenge_product.h asks for.
 *
 * The multiplier is that of the jobs' own products: one thread of a core, or a device. */
#ifndef BOURSE_PROVIDER_TENSOR_CHALLENGE_ANSWER_H
#define BOURSE_PROVIDER_TENSOR_CHALLENGE_ANSWER_H

#include "base/problem.h"
#include "provider/tensor/operation.h"

#include <stddef.h>

/* The words are TENSOR_CHALLENGE or PLUGIN_CHALLENGE, the seed in hex, side and rounds. Prints the
 * digests, in hex and without a newline. */
enum { CHALLENGE_WORDS = 4 };
enum operation_status challenge_answer_run(const char *const *words, size_t count,
                                           const struct operation_multiplier *multiplier,
                                           struct problem *ret_problem);

#endif
