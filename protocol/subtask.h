/* protocol/subtask.h resolves the settings of one subtask. A task's own setting replaces the
 * manifest's setting for all.
 *
 * The writer of a manifest's checks, the agent that runs subtasks, and the judge of a check must
 * read a manifest alike. All of them use this module. Environments are not here, because they are
 * joined instead of replaced. */
#ifndef BOURSE_PROTOCOL_SUBTASK_H
#define BOURSE_PROTOCOL_SUBTASK_H

#include "protocol/bourse.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct subtask_terms { /* borrowed from the manifest */
    /* The values of placeholders. */
    uint32_t number;   /* in the job as it began */
    const char *value; /* a task's name; NULL: the number */
    /* The name of {in}; NULL: the subtask has no input of its own, as every task. */
    const char *input;
    /* The templates. */
    char *const *arguments;
    size_t argument_count;
    char *const *outputs;
    size_t output_count;
    const char *standard_input;               /* NULL: empty */
    const char *checkpoint;                   /* no template; NULL: the program saves no state */
    const Bourse__V1__ManifestLimits *limits; /* NULL: none */
};

/* subtask_at() returns a subtask of the manifest, or NULL where the manifest lists none.
 * subtask_task() returns its task, or NULL where the manifest has no tasks. */
const Bourse__V1__ManifestSubtask *subtask_at(const Bourse__V1__Manifest *manifest, uint32_t index);
const Bourse__V1__ManifestTask *subtask_task(const Bourse__V1__Manifest *manifest, uint32_t index);

struct subtask_terms subtask_terms(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
