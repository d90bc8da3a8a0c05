/* consumer/model/model_staged.h tells what a task of a job on the market is, when the job runs a
 * model in stages.
 *
 * The manifest of such a job has the words of the whole model, beside those of its tasks, and the
 * names of its tasks say their stages and parts (model_stages.h). */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_STAGED_H
#define BOURSE_CONSUMER_MODEL_MODEL_STAGED_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true for a task that is a stage, and the part of the rows that it computes. */
bool model_staged_part(const Bourse__V1__Manifest *manifest, uint32_t index, uint32_t *ret_part,
                       uint32_t *ret_parts);
/* Returns true for a file that goes from stage to stage, and is no output of the model. */
bool model_staged_is_between(const Bourse__V1__Manifest *manifest, uint32_t index,
                             const char *output);

#endif
