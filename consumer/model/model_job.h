/* consumer/model/model_job.h makes the words of a job that runs a model complete, from the model
 * itself.
 *
 * A person names a model and the files of its inputs. What else the subtasks need follows from the
 * model: the files of its weights, and the names of its outputs. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_JOB_H
#define BOURSE_CONSUMER_MODEL_MODEL_JOB_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"
#include "formats/onnx/onnx_interface.h"

#include <stdbool.h>

/* Settles a job of a model before its files are looked for. Any other job stays as it is, and so do
 * one with tasks, whose words are complete, and one of prompts (model_generate.h). Adds to `files`
 * the model, its files of weights and the files of inputs; to `run` an output for each of the
 * model's, unless the words have some; and each file of an output to `outputs`. With `parts`, the
 * job becomes an array of as many subtasks. With `stages`, it becomes a job of tasks
 * (model_stages.h). Paths are relative to `folder`. Returns false with the problem; the job is then
 * of no use. */
bool model_job_settle(struct bourse_job *job, const char *folder, struct problem *ret_problem);

/* Adds the model and its files of weights to the job's files. Returns false with the problem. */
bool model_job_add_files(struct job_file *file, const char *folder, const char *model,
                         const struct onnx_interface *interface, struct problem *ret_problem);

#endif
