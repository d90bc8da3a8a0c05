/* provider/work/unaccepted.h - outcomes whose results the broker has not accepted, with what they
 * left.
 *
 * The broker may lose a file between its upload and the result that names the file. Whoever holds
 * the bytes then stores them again. What is held is bounded: the oldest goes first, and its result
 * still counts unless its file is lost. One outcome is held whatever its size. One thread. */
#ifndef BOURSE_PROVIDER_WORK_UNACCEPTED_H
#define BOURSE_PROVIDER_WORK_UNACCEPTED_H

#include "provider/work/outcome.h"

enum {
    UNACCEPTED_MEMORY_BYTES = 64 << 20, /* of outputs that lie in memory */
    UNACCEPTED_FILES = 256,             /* descriptors */
};
#define UNACCEPTED_FILE_BYTES (UINT64_C(1) << 30) /* of outputs that lie in files */

struct unaccepted {
    struct list_link outcomes; /* oldest first */
    size_t count;
    struct outcome_size size; /* of all of them */
};

void unaccepted_init(struct unaccepted *self);
void unaccepted_fini(struct unaccepted *self);
/* Takes the outcome over. */
void unaccepted_add(struct unaccepted *unaccepted, struct outcome *outcome);
/* The outcome of that work, which is the caller's from now on; NULL: it is not held. */
struct outcome *unaccepted_take(struct unaccepted *unaccepted, const struct agent_work *work);

#endif
