/* consumer/job/output/output_pattern.h finds out which files an output may bring back. The header
 * is not installed. */
#ifndef BOURSE_CONSUMER_JOB_OUTPUT_OUTPUT_PATTERN_H
#define BOURSE_CONSUMER_JOB_OUTPUT_OUTPUT_PATTERN_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* An output_pattern says where the files lie that an output with a pattern may match. All fields
 * are NULL for an output without a pattern. */
struct output_pattern {
    char *text;       /* the pattern for this subtask */
    char *folder;     /* the folder that its files lie in: "", or with a slash at its end */
    const char *rest; /* the pattern of the names below the folder; part of the text */
};

/* Finds the output `name` of subtask `index` in the manifest. The caller calls output_pattern_fini.
 * Returns false when memory is short; then nothing needs output_pattern_fini. */
bool output_pattern_find(const Bourse__V1__Manifest *manifest, uint32_t index, const char *name,
                         struct output_pattern *ret_pattern);
void output_pattern_fini(struct output_pattern *pattern);

#endif
