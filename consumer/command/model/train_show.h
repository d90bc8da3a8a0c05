/* consumer/command/model/train_show.h shows what a job that trains a model does, as text and as
 * JSON. Other jobs show nothing. */
#ifndef BOURSE_CONSUMER_COMMAND_MODEL_TRAIN_SHOW_H
#define BOURSE_CONSUMER_COMMAND_MODEL_TRAIN_SHOW_H

#include "consumer/train/train_job.h"

#include <jansson.h>
#include <stdio.h>

void train_show(FILE *to, const struct bourse_job *job);
/* Adds "training" to the object. */
void train_add_json(json_t *value, const struct bourse_job *job);

#endif
