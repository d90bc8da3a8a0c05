/* consumer/model/model_stage_tasks.h makes the stages of a model that is cut into tasks of a job.
 * model_stages.h is its only user. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_STAGE_TASKS_H
#define BOURSE_CONSUMER_MODEL_MODEL_STAGE_TASKS_H

#include "consumer/job/bourse_job.h"
#include "consumer/model/model_cut.h"
#include "consumer/model/model_file.h"
#include "formats/onnx/onnx_cut.h"
#include "formats/onnx/onnx_words.h"

/* A model that is cut, for as long as the job's blobs may be read. */
struct model_stages {
    struct model_file *file;
    char *folder; /* of the model, with its files of weights */
    struct onnx_model *model;
    struct onnx_shapes *shapes, *other; /* of the largest and the smallest part; other: or NULL */
    struct model_cut choice;
    struct onnx_cut *cut;
    int weights_fd; /* the file of weights that was read last; -1: none */
    struct onnx_span weights;
};

/* The time of a task, beside that of its nodes: its way into the jail, and the model's opening. */
enum { MODEL_STAGE_START_MS = 100 };

/* Makes the tasks of a job whose model is cut and hashed. `words` are those of the job's file, with
 * paths, and `now` those with names of the work folder. */
bool model_stage_tasks_make(struct bourse_job *job, const struct onnx_words *words,
                            const struct onnx_words *now, struct problem *ret_problem);

/* Writes the name of a stage's model in the work folder; stages count from 1. */
enum { MODEL_STAGE_NAME_SIZE = 32 };
void model_stage_tasks_file_name(uint32_t stage, char ret_name[MODEL_STAGE_NAME_SIZE]);

/* Returns true when a stage takes a value that another one makes. */
bool model_stage_tasks_is_taken(const struct onnx_cut *cut, uint32_t value);

#endif
