/* consumer/model/model_join.h puts the outputs of a model together, when the rows of its inputs
 * were cut into parts.
 *
 *     results/0/y.npy   float32[3,10]
 *     results/1/y.npy   float32[4,10]   ->   results/y.npy   float32[7,10]
 *
 * The files of the parts stay, so that another fetch finds them there. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_JOIN_H
#define BOURSE_CONSUMER_MODEL_MODEL_JOIN_H

#include "base/problem.h"
#include "protocol/codec.h"

#include <stdbool.h>
#include <stddef.h>

/* Joins each output whose parts are all in the folder, by rows in the order of the parts. A job of
 * another kind is left alone. An output whose parts are single numbers stays in parts. A file that
 * is there with the same bytes counts as made; another one is never replaced. Returns false with
 * the problem; *ret_count is how many files were made. */
bool model_join(const Bourse__V1__Manifest *manifest, const char *folder, size_t *ret_count,
                struct problem *ret_problem);

#endif
