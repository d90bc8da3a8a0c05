/* formats/job_keys.h - readers of the keys that a job and its tasks have in common. For job_read.c
 * and job_tasks.c only. What is wrong is refused at its value; an absent one leaves the field
 * alone. */
#ifndef BOURSE_FORMATS_JOB_KEYS_H
#define BOURSE_FORMATS_JOB_KEYS_H

#include "formats/job.h"
#include "formats/yaml.h"

/* Refuses `value` for want of memory; false. */
bool job_read_no_memory(struct yaml_value value);
void job_read_text(struct yaml_value value, size_t most_bytes, char **field);
/* A list, or one text that stands for a list of one. */
void job_read_names(struct yaml_value value, size_t most_items, struct job_strings *strings);
void job_read_run(struct yaml_value value, struct job_strings *run);
void job_read_environment(struct yaml_value map, struct job_variable **env, size_t *count);
void job_read_limits(struct yaml_value map, struct job_limits *limits);

/* `tasks:`, with the job's other fields read and not yet completed. */
void job_read_tasks(struct yaml_value list, struct job_file *job);

#endif
