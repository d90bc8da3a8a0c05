/* provider/work/lanes.h - where leased work runs: for every lease a holding (its job's manifest and
 * image), and for every lane of it a thread with a jail, made when its first subtask starts.
 *
 * The main loop calls in; nothing here blocks it. A lane runs one subtask at a time; what it leaves
 * is copied out of the jail, the lane is reported free, and storing goes on beside it. */
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
    bool cpu_enforced; /* by a control group; else each lane is bound to CPUs of its own */
    struct store *store;
    struct images *images;
    /* Both are called on lanes' threads. `left`: the lane is free. `done` takes the outcomes of the
     * list over; their outputs are still to be stored. */
    void (*left)(void *context, const struct agent_work *work);
    void (*done)(void *context, struct list_link *outcomes);
    void *context;
};

struct lanes;

struct lanes *lanes_create(const struct lanes_config *config);
/* Cancels what runs, ends every jail and thread. */
void lanes_destroy(struct lanes **self);

/* The actions of provider/session/session.h; `given`: what agent_session_given says of the work.
 * False: out of memory or threads; the work is not taken. */
bool lanes_begin(struct lanes *lanes, const struct agent_grant *grant);
bool lanes_start(struct lanes *lanes, const struct agent_work *work, const Bourse__V1__Work *given);
/* Wakes the lanes that were given something: once for all of it. */
void lanes_go(struct lanes *lanes);
void lanes_prepare(struct lanes *lanes, const struct agent_work *work,
                   const Bourse__V1__Work *given);
void lanes_cancel(struct lanes *lanes, const struct agent_work *work);
/* Its program is told to end (SIGTERM), once: at once, or when it has begun. */
void lanes_notice(struct lanes *lanes, const struct agent_work *work);
void lanes_end(struct lanes *lanes, uint64_t lease);
/* Now and then: repeats cancels and notices that came before their run began, collects threads that
 * have ended. */
void lanes_tick(struct lanes *lanes);
/* Jails that stand now. */
uint32_t lanes_jails(const struct lanes *lanes);
/* True while something wants lanes_tick within a tenth of a second. */
bool lanes_restless(const struct lanes *lanes);

#endif
