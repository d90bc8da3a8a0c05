/* consumer/train/train_job.h makes a job of tasks out of the training of a model.
 *
 *     weights 0 -+-> gradient-1.0 -+-> step-1 -> weights 1 -+-> gradient-2.0 -+-> step-2 ...
 *                +-> gradient-1.1 -+                        +-> gradient-2.1 -+
 *
 * Each task is a run of a model that is made here: the gradient (formats/train/gradient.h) of a
 * part of a batch, a sum of gradients, or an update of the weights (formats/train/update.h). More
 * than UPDATE_GRADIENTS_MOST parts are added by a tree of sums. Weights, gradients and states are
 * outputs of tasks, so that a task whose agent is lost runs again elsewhere, and each step is a
 * checkpoint. */
#ifndef BOURSE_CONSUMER_TRAIN_TRAIN_JOB_H
#define BOURSE_CONSUMER_TRAIN_TRAIN_JOB_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

#include <stdbool.h>

struct train_job;

/* Makes the tasks of a job whose words are those of training (formats/train/train_words.h); any
 * other job stays as it is. The job's own words then name files as in the work folder. Paths are
 * relative to `folder`. Returns false with the problem; the job is then of no use. */
bool train_job_settle(struct bourse_job *job, const char *folder, struct problem *ret_problem);
void train_job_destroy(struct train_job **self);

/* Appends the models and the first weights that a task takes to the job's own files; does nothing
 * for other jobs. */
bool train_job_add(struct bourse_job *job, size_t task, struct problem *ret_problem);

/* Describes what was planned. */
struct train_summary {
    uint32_t first_step, steps, parts, batches; /* batches of an epoch */
    int64_t weights, rows;                      /* rows of all data */
};
/* Returns false for a job that trains nothing. */
bool train_job_summary(const struct bourse_job *job, struct train_summary *ret_summary);

#endif
