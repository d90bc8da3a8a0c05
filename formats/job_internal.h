/* formats/job_internal.h declares the rules across the fields of a job, and helpers that its
 * readers share. The header is for the files job*.c of formats and its folders only. */
#ifndef BOURSE_FORMATS_JOB_INTERNAL_H
#define BOURSE_FORMATS_JOB_INTERNAL_H

#include "base/problem.h"
#include "formats/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NO_TASK SIZE_MAX
struct job_fault {
    size_t task;       /* index of the faulty task, or JOB_NO_TASK */
    const char *field; /* the key in the file */
    size_t item;       /* index in a list or map */
    struct problem what;
};

/* Returns true when the job obeys every rule; else false with the first fault. */
bool job_find_fault(const struct job_file *job, struct job_fault *ret_fault);
/* Return true when a text, or a template, is UTF-8 and no longer than may be. */
bool job_text_fits(const char *field, size_t item, const char *text, size_t most,
                   struct job_fault *fault);
bool job_template_fits(const struct job_file *job, const char *field, size_t item, const char *text,
                       struct job_fault *fault);
/* Return true when the outputs, or the checkpoint's folder, obey every rule. */
bool job_check_outputs(const struct job_file *job, struct job_fault *fault);
bool job_check_checkpoint(const struct job_file *job, struct job_fault *fault);
/* Returns true when the image and how its programs start obey every rule. */
bool job_check_image(const struct job_file *job, struct job_fault *fault);
/* Returns true when nothing in the job contradicts its objective. */
bool job_check_objective(const struct job_file *job, struct job_fault *fault);
/* Returns true when the job's kernel obeys every rule, and nothing beside it is in its way. */
bool job_kernel_check(const struct job_file *job, struct job_fault *fault);
/* Returns true when `run`, which is not empty, begins with an operation of a plug-in, and nothing
 * beside it is in its way. */
bool job_plugin_check(const struct job_file *job, struct job_fault *fault);
/* wasm/job_wasm.c. */
bool job_wasm_check(const struct job_file *job, struct job_fault *fault);
/* onnx/job_onnx.c. */
bool job_onnx_check(const struct job_file *job, struct job_fault *fault);
/* generate/job_generate.c. */
bool job_generate_check(const struct job_file *job, struct job_fault *fault);
/* train/job_train.c. */
bool job_train_check(const struct job_file *job, struct job_fault *fault);
/* Fills in the name and the term that a checked job leaves open. Returns false when memory is
 * short. */
bool job_complete(struct job_file *job);

/* Does the same as job_file_add_variable, for any list. */
bool job_variables_add(struct job_variable **variables, size_t *count, const char *name,
                       const char *value);
/* Makes room for one more element. The list doubles at powers of two, so that its count tells
 * its capacity. Returns false when memory is short. */
bool job_grow(void **elements, size_t count, size_t size);
char *job_copy(const char *text); /* NULL when out of memory */

#endif
