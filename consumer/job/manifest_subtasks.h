/* consumer/job/manifest_subtasks.h makes the subtasks of a manifest from a job's file and inputs.
 * The files of the manifest alone use this header. */
#ifndef BOURSE_CONSUMER_JOB_MANIFEST_SUBTASKS_H
#define BOURSE_CONSUMER_JOB_MANIFEST_SUBTASKS_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

/* These are the values of a job's subtasks before encoding; they point into one block of text. */
struct manifest_subtasks {
    Bourse__V1__ManifestSubtask *items;
    Bourse__V1__ManifestSubtask **pointers;
    Bourse__V1__ManifestInput *inputs;
    Bourse__V1__ManifestInput **input_pointers;
    char *text;
    Bourse__V1__ManifestTask *tasks; /* the following fields are for tasks */
    Bourse__V1__ManifestLimits *limits;
    Bourse__V1__ManifestVariable *variables;
    Bourse__V1__ManifestVariable **variable_pointers;
    Bourse__V1__ManifestFrom *from;
    Bourse__V1__ManifestFrom **from_pointers;
    size_t count; /* 0: the index says everything, as in a single subtask or an array from 0 by 1 */
};

/* Makes the subtasks, and sets their number in the job. Names are relative to `folder`. The caller
 * ends the subtasks, on failure too. */
bool manifest_subtasks_make(struct bourse_job *job, const char *folder,
                            struct manifest_subtasks *subtasks, struct bourse_error *error);
void manifest_subtasks_fini(struct manifest_subtasks *subtasks);

/* Write fields of the wire that point into what they are given. */
void manifest_input_to_wire(struct input_file *file, Bourse__V1__ManifestInput *wire);
void manifest_variables_to_wire(const struct job_variable *env, size_t count,
                                Bourse__V1__ManifestVariable *wire,
                                Bourse__V1__ManifestVariable **pointers);
void manifest_limits_to_wire(int64_t limit_ms, const struct job_limits *asked,
                             Bourse__V1__ManifestLimits *limits);

#endif
