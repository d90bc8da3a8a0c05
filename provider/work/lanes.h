/* The lanes are where leased work runs. Every lease has a context, with its job's manifest and
 * image. Every lane has a thread with a jail, made when its first subtask starts.
 *
 * The main loop calls in, and nothing here blocks it. A lane runs one subtask at a time. The
 * outputs are copied out of the jail and the lane is reported free; storing goes on beside it. */
#ifndef BOURSE_PROVIDER_WORK_LANES_H
#define BOURSE_PROVIDER_WORK_LANES_H

#include "provider/policy.h"
#include "provider/work/images.h"
#include "provider/work/outcome.h"
#include "provider/work/store.h"

#include <stdbool.h>
#include <stddef.h>

struct lanes_config {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *tensor_path; /* NULL: this agent computes no matrices */
    const struct config *config;
    const struct offers *offers;
    const struct machine *machine;
    bool cpu_enforced; /* a control group does; else each lane is bound to CPUs of its own */
    struct store *store;
    struct images *images;
    /* Threads of the lanes call both functions. `left` reports that the lane is free. `done` takes
     * over the outcomes of the list, whose outputs are still to be stored. */
    void (*left)(void *context, const struct agent_work *work);
    void (*done)(void *context, struct list_link *outcomes);
    void *context;
};

struct lanes;

struct lanes *lanes_create(const struct lanes_config *config);
/* Cancels running work, ends every jail and thread, and frees. */
void lanes_destroy(struct lanes **self);

/* These functions carry out the actions of provider/session/agent_session.h. `inputs` is what
 * agent_session_inputs returns for the work. They return false when memory or threads are short;
 * then the work is not taken. */
bool lanes_begin(struct lanes *lanes, const struct agent_grant *grant);
bool lanes_start(struct lanes *lanes, const struct agent_work *work,
                 const Bourse__V1__Work *inputs);
/* Wakes the lanes that got work. Call it once for all new work. */
void lanes_go(struct lanes *lanes);
void lanes_prepare(struct lanes *lanes, const struct agent_work *work,
                   const Bourse__V1__Work *inputs);
void lanes_cancel(struct lanes *lanes, const struct agent_work *work);
/* Tells the work's program once to end (SIGTERM), at once or when the program has begun. */
void lanes_notice(struct lanes *lanes, const struct agent_work *work);
void lanes_end(struct lanes *lanes, uint64_t lease);
/* Repeats cancels and notices that came before their run began, and collects threads that have
 * ended. Call it now and then. */
void lanes_tick(struct lanes *lanes);
/* Returns the number of open jails. */
uint32_t lanes_jails(const struct lanes *lanes);
/* Returns true while something needs lanes_tick within a tenth of a second. */
bool lanes_restless(const struct lanes *lanes);

#endif
