/* provider/work/lanes_internal.h declares what the lanes' main thread (lanes.c) and the thread of
 * each lane (lane.c) share. No other file includes it. */
#ifndef BOURSE_PROVIDER_WORK_LANES_INTERNAL_H
#define BOURSE_PROVIDER_WORK_LANES_INTERNAL_H

#include "provider/executors/copy_ahead.h"
#include "provider/jail/jail.h"
#include "provider/work/device_memory.h"
#include "provider/work/lanes.h"
#include "provider/work/last_outputs.h"
#include "provider/work/lease_context.h"

#include <pthread.h>
#include <stdatomic.h>

struct lane {
    struct list_link link; /* in its run */
    struct lanes *lanes;
    struct lease_context *context;
    const struct offer *offer; /* the device leased */
    uint32_t number;
    uint32_t first_cpu, cpu_count; /* taken from lanes->cpu_taken; 0: none */
    pthread_t thread;
    atomic_bool ended; /* the thread is about to return */

    bool is_noop;           /* the lane's thread only: no-ops run together */
    bool has_terminal;      /* the lane's thread only: the program had a terminal */
    struct list_link fresh; /* the main thread only: in lanes->fresh until lanes_go */
    /* The main thread only: how far the output of `printing` was visited. */
    struct agent_work printing;
    uint64_t printed[2];
    bool is_whole;           /* `printing` is followed from its start */
    atomic_bool is_followed; /* somebody reads along */

    pthread_mutex_t mutex;
    pthread_cond_t woken;
    bool stop;
    struct list_link waiting;   /* outcomes of works not begun, oldest first */
    struct agent_work running;  /* attempt 0: no work that could be cancelled */
    int64_t running_since_ns;   /* guarded */
    struct agent_work next;     /* announced and not started yet; attempt 0: none */
    atomic_bool cancel;         /* `running` is to end */
    enum result_outcome excess; /* guarded: why it ends, unless OUTCOME_OK */
    char excess_detail[256];    /* guarded, likewise */
    atomic_bool notice;         /* the program is to be told to end; false afterwards */
    struct jail *jail;          /* guarded: a cancel must not meet a close */
    struct jail_limits limits;  /* the lane's thread only: limits of the open jail */
    /* The end of a followed work's output, which its result does not keep. Guarded. */
    struct agent_work ended_work;
    struct lane_end {
        uint8_t *bytes; /* NULL: nothing */
        size_t size, visited;
        uint64_t offset;
    } ends[2];
    struct left_outputs *left; /* outputs in the jail; NULL: none may stay */
    bool has_device;           /* the lane's thread only: no other lane uses the device now */
    uint64_t held_bytes;       /* the lane's thread only: what the device holds for its jail */
    struct last_outputs made;  /* the lane's thread only: of the jail's last run on the device */
    struct hash32 open_model;  /* the lane's thread only: struct program's */
    /* Copies inputs of the announced work to the device; NULL: nothing does. */
    struct copy_ahead *ahead;
};

/* The local side of a lease: its context and its lanes. */
struct lease_run {
    struct list_link link;
    struct lease_context *context;
    const struct offer *offer;
    struct list_link lanes;
    bool ending;
};

struct lanes {
    struct lanes_config config;
    struct list_link runs;
    struct list_link fresh; /* lanes with new work */
    struct device_memory *device_memory;
    atomic_llong full_said_ns; /* last time the log said that the disk is full; 0: never */
    /* Programs stand still, and new jails begin so: of all devices, or of one by its place among
     * the offers. */
    atomic_bool is_frozen, is_device_frozen[1 + CONFIG_DEVICES_MAX];
    bool cpu_taken[DISCOVER_CPUS_MAX];
    bool restless;
    uint8_t piece[LANES_PIECE_BYTES]; /* scratch of lanes_visit_output */
};

/* Returns the number of the lane's device among the offers. */
size_t lanes_device_of(const struct lane *lane);
/* Returns true when the lane's programs stand still, by any rule. Any thread may ask. */
bool lanes_is_frozen(const struct lane *lane);
/* A lane's thread runs this: it does the lane's works, one after the other, until the lane is to
 * stop. `argument` is the lane. */
void *lane_loop(void *argument);
/* Returns true when the lane's device runs what the job of the lease asks for. Else the outcome
 * says what the job should need. */
bool lane_fits(const struct lane *lane, struct outcome *outcome);
/* Returns the bounds of the jail for `width` slots of the offer. A manifest may ask for less; 0
 * asks for nothing. */
struct jail_limits lane_jail_limits(const struct offer *offer, uint32_t width, int64_t memory_bytes,
                                    int64_t disk_bytes, uint32_t processes, bool cpu_enforced);
/* Returns true when two subtasks of the lease, by their indices, run in the same jail. `context` is
 * the lane. */
bool lane_shares_jail(void *context, uint32_t index, uint32_t next);
/* Keeps the end of the work's output for lanes_visit_output, where the result does not keep it. The
 * lane's thread calls this after the run, while the work is still the lane's. */
void lane_keep_ends(struct lane *lane, const struct agent_work *work);
void lane_drop_ends(struct lane *lane);

#endif
