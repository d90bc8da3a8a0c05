/* formats/job_keys.h declares readers of the keys that a job and its tasks have in common. The
 * header is for job_read.c, job_tasks.c, kernel/job_kernel.c, onnx/job_onnx.c,
 * generate/job_generate.c and train/job_train.c only. Each reader refuses a wrong value at its
 * line, and leaves the field alone when the value is absent. */
#ifndef BOURSE_FORMATS_JOB_KEYS_H
#define BOURSE_FORMATS_JOB_KEYS_H

#include "formats/job.h"
#include "formats/yaml.h"

/* Refuses `value` because memory is short; returns false. */
bool job_read_no_memory(struct yaml_value value);
void job_read_text(struct yaml_value value, size_t most_bytes, char **field);
/* Reads a list, or one text that stands for a list of one. */
void job_read_names(struct yaml_value value, size_t most_items, struct job_strings *strings);
void job_read_run(struct yaml_value value, struct job_strings *run);
void job_read_environment(struct yaml_value map, struct job_variable **env, size_t *count);
void job_read_limits(struct yaml_value map, struct job_limits *limits);
/* Reads `kernel:` into `run`, and the kernel's files into `files` and `outputs`. The job's own are
 * read by then. */
void job_kernel_read(struct yaml_value map, struct job_file *job);

/* Reads `model:` with `inputs:`, `outputs:`, `split:`, `parts:` and `stages:` of the root. */
void job_onnx_read(struct yaml_value root, struct job_file *job);

/* Reads `generate:` of the root into `run`, which has the model's word. */
void job_generate_read(struct yaml_value root, struct job_file *job);

/* Reads `train:` of the root into `run`, likewise. Returns false when something was refused. */
bool job_train_read(struct yaml_value root, struct job_file *job);

/* Reads `tasks:`. The job's other fields are read by then, but not yet completed. */
void job_read_tasks(struct yaml_value list, struct job_file *job);

#endif
