/* This list keeps the outcomes whose results the broker has not accepted, with their outputs.
 *
 * The broker may lose a file between its upload and the result that names the file. A provider that
 * has the bytes then stores them again. The list is bounded: the oldest outcome goes first, and its
 * result still counts unless its file is lost. One outcome is held even if it is larger. One thread
 * uses the list. */
#ifndef BOURSE_PROVIDER_WORK_UNACCEPTED_H
#define BOURSE_PROVIDER_WORK_UNACCEPTED_H

#include "provider/work/outcome.h"

enum {
    UNACCEPTED_MEMORY_BYTES = 64 << 20, /* bytes of outputs in memory */
    UNACCEPTED_FILES = 256,             /* descriptors */
};
#define UNACCEPTED_FILE_BYTES (UINT64_C(1) << 30) /* bytes of outputs in files */

struct unaccepted {
    struct list_link outcomes; /* oldest first */
    size_t count;
    struct outcome_size size; /* sum over all outcomes */
};

void unaccepted_init(struct unaccepted *self);
void unaccepted_fini(struct unaccepted *self);
/* Takes the outcome over. */
void unaccepted_add(struct unaccepted *unaccepted, struct outcome *outcome);
/* Removes the outcome of that work and hands it to the caller. Returns NULL when it is not held. */
struct outcome *unaccepted_take(struct unaccepted *unaccepted, const struct agent_work *work);

#endif
