/* formats/job_internal.h - the rules across the fields of a job, and what its readers share. For
 * formats/job*.c only. */
#ifndef BOURSE_FORMATS_JOB_INTERNAL_H
#define BOURSE_FORMATS_JOB_INTERNAL_H

#include "base/problem.h"
#include "formats/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NO_TASK SIZE_MAX
struct job_fault {
    size_t task;       /* of which task, or JOB_NO_TASK */
    const char *field; /* as the key in the file */
    size_t item;       /* of a list or map, where it is one */
    struct problem what;
};

/* True when the job obeys every rule; else false with the first fault. */
bool job_find_fault(const struct job_file *job, struct job_fault *ret_fault);
/* Fills in what a checked job leaves open: the name, the term. False when out of memory. */
bool job_complete(struct job_file *job);

/* As job_file_add_variable, for any list. */
bool job_variables_add(struct job_variable **variables, size_t *count, const char *name,
                       const char *value);
/* Room for one more element of a list that doubles at powers of two, so that only its count is
 * kept. */
bool job_grow(void **elements, size_t count, size_t size);
char *job_copy(const char *text); /* NULL when out of memory */

#endif
