/* protocol/subtask.h resolves the settings of one subtask. A task's own setting replaces the
 * manifest's setting for all.
 *
 * The writer of a manifest's checks, the agent that runs subtasks, and the judge of a check must
 * read a manifest alike. All of them use this module. Environments are not here, because they are
 * joined instead of replaced. */
#ifndef BOURSE_PROTOCOL_SUBTASK_H
#define BOURSE_PROTOCOL_SUBTASK_H

#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
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

/* Returns true when the manifest lists the numbers of an `array:`. The values are then rising whole
 * numbers, no subtask but a check is a task or has an input, and no template has {line}. An array
 * that counts from 0 in steps of 1 lists nothing. */
bool subtask_is_array(const Bourse__V1__Manifest *manifest);
/* Returns the number by which people know a subtask. In an array, this is the number that the user
 * wrote. Elsewhere it is the index. `is_array` is the result of subtask_is_array. */
uint64_t subtask_number(const Bourse__V1__Manifest *manifest, bool is_array, uint32_t index);

#endif
