/* consumer/command/plan/plan_model.h runs `bourse plan MODEL`. It reads the graph of an ONNX file,
 * and has the nodes made into the steps of a plan of work (work.h). The file is read in this
 * process, whole and with the caps of formats/onnx/onnx.h. Nothing of the model is executed. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PLAN_MODEL_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PLAN_MODEL_H

#include "consumer/command/plan/work.h"

struct plan_model;

/* Returns true when a word of the command line names a model: it ends with ".onnx". */
bool plan_model_is_named(const char *word);

/* Reads the model and makes the work's steps. Returns the exit status. */
int plan_model_make(struct work *work, const char *path);
void plan_model_destroy(struct plan_model **self);

/* Prints what the model is, above the plan. */
void plan_model_show(const struct work *work);
/* Returns the same for programs, with all nodes; NULL when memory is short. */
json_t *plan_model_json(const struct work *work);

#endif
