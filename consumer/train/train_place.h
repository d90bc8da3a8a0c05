/* consumer/train/train_place.h tells which outputs of a job that trains a model come back. */
#ifndef BOURSE_CONSUMER_TRAIN_TRAIN_PLACE_H
#define BOURSE_CONSUMER_TRAIN_TRAIN_PLACE_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true for a subtask of a job that trains a model whose outputs only go on to others: a
 * gradient, a sum, or a step that is no checkpoint. The manifest has the job's words. */
bool train_place_is_between(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
