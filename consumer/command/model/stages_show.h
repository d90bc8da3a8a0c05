/* consumer/command/model/stages_show.h shows the stages that a model is cut into, before they run.
 */
#ifndef BOURSE_CONSUMER_COMMAND_MODEL_STAGES_SHOW_H
#define BOURSE_CONSUMER_COMMAND_MODEL_STAGES_SHOW_H

#include "consumer/command/json.h"
#include "consumer/job/bourse_job.h"

#include <stdio.h>

/* Prints a line for each stage of the job; nothing for a job without stages. */
void stages_show(FILE *to, const struct bourse_job *job);
/* Adds "stages" to an object; nothing for a job without stages. */
void stages_add_json(json_t *value, const struct bourse_job *job);

#endif
