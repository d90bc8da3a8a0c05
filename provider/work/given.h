/* provider/work/given.h holds what came with a subtask's Dispatch. This is the files, by name and
 * hash, of subtasks that it waited for; a check's seed; and the checkpoint to resume from.
 *
 * The data is copied here, because lanes run on threads of their own. */
#ifndef BOURSE_PROVIDER_WORK_GIVEN_H
#define BOURSE_PROVIDER_WORK_GIVEN_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct given_file {
    uint32_t task; /* index of the subtask that made it */
    char *name;
    struct hash32 hash;
};

struct given_files {
    struct given_file *files;
    size_t count;
    bool has_seed;
    struct hash32 seed;
    uint32_t checked; /* the subtask whose result is checked; set with a seed */
    /* Files of the checkpoint, by name below its folder. Their `task` is the attempt that saved
     * them, and so is `restored`; 0: none. */
    struct given_file *saved;
    size_t saved_count;
    uint32_t restored;
};

/* Copies `work`, which may be freed afterwards; NULL counts as nothing. Returns false when memory
 * is short; then *ret_given is empty. */
bool given_copy(const Bourse__V1__Work *work, struct given_files *ret_given);
void given_fini(struct given_files *given);
/* Returns the file, or NULL when there is none. */
const struct given_file *given_find(const struct given_files *given, uint32_t task,
                                    const char *name);

#endif
