/* protocol/subtask.h - what holds for one subtask of a manifest: what its task says itself, else what the manifest says for all.
 *
 * The one place that decides it, for who writes a manifest's checks, who runs its subtasks and who judges whether a check is
 * about its subtask: they must read alike. Environments are not chosen between but joined, so they are not here. Pure. */
#ifndef BOURSE_PROTOCOL_SUBTASK_H
#define BOURSE_PROTOCOL_SUBTASK_H

#include "protocol/bourse.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct subtask_terms { /* borrowed from the manifest */
    /* What templates stand for. */
    uint32_t number;   /* in the job that was begun */
    const char *value; /* a task's name; NULL: the number */
    const char *input; /* the name of {in}; NULL: a task's files are none, or it has no file */
    /* Templates. */
    char *const *arguments;
    size_t argument_count;
    char *const *outputs;
    size_t output_count;
    const char *standard_input;               /* NULL: empty */
    const char *checkpoint;                   /* no template; NULL: it saves no state */
    const Bourse__V1__ManifestLimits *limits; /* NULL: none */
};

/* The subtask of a manifest, NULL where it lists none; and its task, NULL where the manifest says
 * it all. */
const Bourse__V1__ManifestSubtask *subtask_at(const Bourse__V1__Manifest *manifest, uint32_t index);
const Bourse__V1__ManifestTask *subtask_task(const Bourse__V1__Manifest *manifest, uint32_t index);

struct subtask_terms subtask_terms(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
