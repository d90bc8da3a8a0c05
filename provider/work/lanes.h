/* The lanes are where leased work runs. Every lease has a context, with its job's manifest and
 * image. Every lane has a thread with a jail, made when its first subtask starts.
 *
 * The main loop calls in, and nothing here blocks it. A lane runs one subtask at a time. The
 * outputs are copied out of the jail and the lane is reported free; storing goes on beside it. */
#ifndef BOURSE_PROVIDER_WORK_LANES_H
#define BOURSE_PROVIDER_WORK_LANES_H

#include "provider/policy.h"
#include "provider/work/attempt_energy.h"
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
    const char *kernel_path; /* NULL: this agent runs no kernels */
    const char *plugin_path; /* the installed bourse-plugin; NULL: no plug-in is used */
    const struct config *config;
    const struct offers *offers;
    const struct machine *machine;
    bool cpu_enforced; /* a control group does; else each lane is bound to CPUs of its own */
    struct store *store;
    struct images *images;
    struct energy_counters counters; /* for the energy of attempts */
    /* Threads of the lanes call both functions. `left` reports that the lane is free. `done` takes
     * over the outcomes of the list, whose outputs are still to be stored. */
    void (*left)(void *context, const struct agent_work *work);
    void (*done)(void *context, struct list_link *outcomes);
    /* Takes the master of the terminal of a work's program over. A lane's thread calls it. */
    void (*terminal)(void *context, const struct agent_work *work, int master);
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
/* Ends what runs on the device with this label, because it takes more of the device's memory than
 * the owner allows. The result of one job has the outcome OUTCOME_MEMORY_LIMIT with `detail`. When
 * two jobs or more run there, nobody knows whose the memory is, and their work is given back.
 * Returns the number of ended works. */
size_t lanes_exceed(struct lanes *lanes, const char *label, const char *detail);
/* Tells the work's program once to end (SIGTERM), at once or when the program has begun. */
void lanes_notice(struct lanes *lanes, const struct agent_work *work);
/* Lets the programs of all lanes stand still, or go on. Programs that begin later stand still, too,
 * and their frozen time is not busy time. A program that lanes_notice tells to end goes on. */
void lanes_freeze(struct lanes *lanes, bool is_frozen);
/* Does the same for the lanes of the device with this label. A program goes on when neither its
 * device nor all lanes are frozen. */
void lanes_freeze_device(struct lanes *lanes, const char *label, bool is_frozen);
/* Ends the work's program as a terminal that hangs up does: SIGHUP, and SIGKILL a while later. */
void lanes_hang_up(struct lanes *lanes, const struct agent_work *work);
void lanes_end(struct lanes *lanes, uint64_t lease);
/* Repeats cancels and notices that came before their run began, and collects threads that have
 * ended. Call it now and then. */
void lanes_tick(struct lanes *lanes);
/* A piece of what a running subtask prints. */
struct lanes_output {
    struct agent_work work;
    bool is_error;   /* standard error */
    uint64_t offset; /* of the first byte in the stream */
    const uint8_t *bytes;
    size_t size;
};
enum {
    LANES_PIECE_BYTES = 64 << 10,
    /* A follower that comes late, or is too slow, gets so much of the end of each stream. */
    LANES_BEHIND_BYTES = 512 << 10,
};
/* A subtask that is visited this early is followed from its start: what its result keeps comes
 * whole, however fast the program prints. */
#define LANES_YOUNG_NS (2 * INT64_C(1000000000))
/* Visits what the lease's running subtasks have printed since the last visit. The first visit of a
 * subtask that is not young begins LANES_BEHIND_BYTES before the end of its streams. The visitor
 * borrows the piece and returns false to stop: that piece comes again at the next visit. */
typedef bool lanes_output_visitor(void *context, const struct lanes_output *output);
void lanes_visit_output(struct lanes *lanes, uint64_t lease, lanes_output_visitor *visitor,
                        void *context);
/* Returns true while the lane keeps the end of an ended work's output, which its result does not
 * have, and nobody has visited it. */
bool lanes_has_ends(struct lanes *lanes, const struct agent_work *work);
/* Lets the next visit of every lease except these begin as the first one. */
void lanes_forget_output(struct lanes *lanes, const uint64_t *leases, size_t count);
/* A device for kernels holds inputs in its memory, which has saved copies since the start. */
struct lanes_held {
    const struct kernel_device *device;
    const char *label;  /* of the device */
    uint64_t cap_bytes; /* all slots together */
    struct held_figures figures;
};
/* Returns false when the offer with this number is of no device for kernels. */
bool lanes_read_held(const struct lanes *lanes, size_t offer, struct lanes_held *ret_held);
/* Returns the number of open jails. */
uint32_t lanes_jails(const struct lanes *lanes);
/* Returns true while something needs lanes_tick within a tenth of a second. */
bool lanes_restless(const struct lanes *lanes);

#endif
