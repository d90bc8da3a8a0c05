/* formats/job_check.h - the rules across the fields of a job. For job.c and job_read.c only. */
#ifndef BOURSE_FORMATS_JOB_CHECK_H
#define BOURSE_FORMATS_JOB_CHECK_H

#include "base/problem.h"
#include "formats/job.h"

#include <stdbool.h>
#include <stddef.h>

struct job_fault {
    const char *field; /* as the key in the file */
    size_t item;       /* of a list or map, where it is one */
    struct problem what;
};

/* True when the job obeys every rule; else false with the first fault. */
bool job_find_fault(const struct job_file *job, struct job_fault *ret_fault);
/* Fills in what a checked job leaves open: the name, the term. False when out of memory. */
bool job_complete(struct job_file *job);

#endif
