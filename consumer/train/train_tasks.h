/* consumer/train/train_tasks.h makes the tasks of a job that trains a model. train_job.h is its
 * only user, and says how the tasks hang together. */
#ifndef BOURSE_CONSUMER_TRAIN_TRAIN_TASKS_H
#define BOURSE_CONSUMER_TRAIN_TRAIN_TASKS_H

#include "base/problem.h"
#include "consumer/train/train_model.h"
#include "formats/job.h"
#include "formats/train/update.h"

/* The job makes these and sends them beside the files of this machine. A sum of n gradients has the
 * number TRAIN_MADE_SUMS + n. */
enum train_made {
    TRAIN_MADE_GRADIENT,
    TRAIN_MADE_UPDATE,
    TRAIN_MADE_WEIGHTS,
    TRAIN_MADE_STATE,
    TRAIN_MADE_LOSSES,
    TRAIN_MADE_SUMS,
    TRAIN_MADE = TRAIN_MADE_SUMS + UPDATE_GRADIENTS_MOST + 1,
};

/* One thing that a task takes, and its name in the work folder. */
struct train_take {
    enum train_made made;
    char name[24];
};
enum { TRAIN_TAKES_MOST = 4 };
struct train_takes {
    struct train_take items[TRAIN_TAKES_MOST];
    size_t count;
};

struct train_tasks_input {
    struct job_file *file;
    const struct train_words *words; /* with paths */
    const struct train_model *model;
    uint32_t first_step; /* steps done before, by the checkpoint */
};

/* Adds the tasks to the file, which has none. `*ret_takes` has what each task takes, and the caller
 * frees it. Returns false with the problem. */
bool train_tasks_make(const struct train_tasks_input *input, struct train_takes **ret_takes,
                      struct problem *ret_problem);

/* Returns how many gradients the update adds, when a batch has so many parts. */
uint32_t train_tasks_width(uint32_t parts);

#endif
