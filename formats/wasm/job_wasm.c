/* This file checks a job whose `executor` is `wasm`. Its `run` is a WASM module, which is a file of
 * the job, and the module's arguments. */
#include "formats/job_internal.h"
#include "formats/limits.h"
#include "formats/units.h"

#include <stdint.h>

#define FAULT(fault, key, index, ...)                                                              \
    ((fault)->field = (key), (fault)->item = (index), problem_set(&(fault)->what, __VA_ARGS__),    \
     false)

bool job_wasm_check(const struct job_file *job, struct job_fault *fault)
{
    if (!job->is_wasm) {
        return true;
    }
    const char *field = job->image != NULL       ? "image"
                        : job->has_entrypoint    ? "entrypoint"
                        : job->directory != NULL ? "directory"
                                                 : NULL;
    if (field != NULL) {
        return FAULT(fault, field, 0,
                     "a WASM module needs no image, and starts in the work folder");
    }
    if (job->limits.memory_bytes > 0 && job->limits.memory_bytes < FORMAT_WASM_MEMORY_BYTES) {
        char given[UNITS_TEXT_SIZE];
        char least[UNITS_TEXT_SIZE];
        units_text(UNITS_BYTES, job->limits.memory_bytes, given);
        units_text(UNITS_BYTES, FORMAT_WASM_MEMORY_BYTES, least);
        return FAULT(fault, "limits", SIZE_MAX, /* no item, the limits as a whole */
                     "memory: %s is too small for a WASM module with its engine; the least is %s",
                     given, least);
    }
    return true;
}
