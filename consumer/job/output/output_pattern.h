/* consumer/job/output/output_pattern.h finds out which files an output may have. The header is not
 * installed. */
#ifndef BOURSE_CONSUMER_JOB_OUTPUT_OUTPUT_PATTERN_H
#define BOURSE_CONSUMER_JOB_OUTPUT_OUTPUT_PATTERN_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* A struct output_pattern says where the files of an output lie that the job declares as a pattern.
 * All fields are NULL for another output. */
struct output_pattern {
    char *text;       /* the pattern for this subtask */
    char *folder;     /* the folder that its files lie in: "", or with a slash at its end */
    const char *rest; /* the pattern of the names below the folder; part of the text */
};

/* Looks the output of that name up in the manifest. The caller ends *ret_pattern with
 * output_pattern_fini. Returns false when memory is short; then there is nothing to end. */
bool output_pattern_find(const Bourse__V1__Manifest *manifest, uint32_t index, const char *name,
                         struct output_pattern *ret_pattern);
void output_pattern_fini(struct output_pattern *pattern);

#endif
