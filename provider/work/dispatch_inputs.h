/* provider/work/dispatch_inputs.h holds what came with a subtask's Dispatch. This is the files, by
 * name and hash, of subtasks that it waited for; a check's seed; and the checkpoint to resume from.
 *
 * The data is copied here, because lanes run on threads of their own. */
#ifndef BOURSE_PROVIDER_WORK_DISPATCH_INPUTS_H
#define BOURSE_PROVIDER_WORK_DISPATCH_INPUTS_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dispatch_file {
    uint32_t task; /* index of the subtask that made it */
    char *name;
    struct hash32 hash;
    bool is_executable;
};

struct dispatch_inputs {
    struct dispatch_file *files;
    size_t count;
    bool has_seed;
    struct hash32 seed;
    uint32_t checked; /* the subtask whose result is checked; set with a seed */
    /* Files of the checkpoint, by name below its folder. Their `task` is the attempt that saved
     * them, and so is `restored`; 0: none. */
    struct dispatch_file *checkpoint;
    size_t checkpoint_count;
    uint32_t restored;
};

/* Copies `work`, which may be freed afterwards; NULL counts as nothing. Returns false when memory
 * is short; then *ret_inputs is empty. */
bool dispatch_inputs_copy(const Bourse__V1__Work *work, struct dispatch_inputs *ret_inputs);
void dispatch_inputs_fini(struct dispatch_inputs *inputs);
/* Returns the file, or NULL when there is none. */
const struct dispatch_file *dispatch_inputs_find(const struct dispatch_inputs *inputs,
                                                 uint32_t task, const char *name);

#endif
