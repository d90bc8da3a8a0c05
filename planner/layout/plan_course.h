/* planner/layout/plan_course.h - when shares of a batch are done, with all that goes between their
 * devices.
 *
 * One of the devices is the home of the batch: what the whole work is given lies there, and what it
 * is for has to come there.
 *
 *     home     |==== share ====|wait|= sum =|== rest ==|
 *     second    ~~|=== share ===|   |= sum =|== rest ==|~~~> home       ~ transfers, which hold their ports
 *     third     ~~~~~|= share =|wait|= sum =|== rest ==|   ~~~~> home
 *
 * Shares set out from home in the order of how long they take, and results come back in the order
 * in which they are there. Even what has no input is told to begin, and tells that it is done: that
 * takes the latency of a link, each way. A link that is missing makes the course impossible.
 *
 * Shares may have to meet: all wait for the last one, and then for one another's figures (of a
 * template, gradients), which are summed over all of them. That takes what the devices need for it,
 * or what the links do, whichever is longer; the links in one of two ways, whichever is shorter:
 *
 *     ring       2 (n - 1) rounds, in each of which all devices hand a part of n on to the next (Patarasuk, Yuan, "Bandwidth
 *                optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009)
 *     in two     a ring in each machine leaves a part with each device, which one of them gathers; a ring of these; and back
 *
 * A round is over when its last transfer is. Sums that are behind what comes after them (steps.h:
 * sums_behind) follow one another over the links, each from when the last share has come to it and
 * the sum before is over; devices wait for the last of them where they meet otherwise, or before
 * the rest of their work:
 *
 *     home     |==== back 2 ====|=== back 1 ===|wait|== rest ==|
 *     links                     |~~ sum 2 ~~|  |sum 1|
 *
 * Of the planner's own files. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_COURSE_H
#define BOURSE_PLANNER_LAYOUT_PLAN_COURSE_H

#include "planner/layout/plan_internal.h"

enum { PLAN_MEETINGS = 72 }; /* what comes after so many counts as if it were in the last */

struct plan_meeting {
    double after_s; /* of work, since the one before */
    double takes_s; /* the device itself */
    double bytes;   /* that are summed; 0: nothing flows */
    int64_t parts;  /* of how many there are, elsewhere, too */
    bool is_behind; /* what links do for it goes on while the device does what comes after */
};

struct plan_shard { /* a device's share */
    int64_t items;  /* 0: it has none */
    int64_t rounds; /* made one after the other, as equal as can be; 1: at once */
    struct figure time_s;
    double p90_s;
    uint32_t samples;
    bool is_streamed;
    struct plan_use use; /* as if it were alone */
    double brought_bytes, fetched_bytes;
    double rest_s; /* of work, after the last meeting */
    size_t meeting_count;
    struct plan_meeting meetings[PLAN_MEETINGS];
};

struct plan_course {
    const struct plan_input *input;
    bool is_slow; /* work takes what nine of ten take at most; of shares that do not meet only */
    bool is_kept; /* transfers and waits are to be kept; from and to are devices, as is the row of a
                     wait */
    /* made */
    uint32_t home;
    double begin_s[PLAN_DEVICES], end_s[PLAN_DEVICES];  /* of each share */
    double there_s[PLAN_DEVICES];                       /* when its results are */
    double first_s[PLAN_DEVICES], last_s[PLAN_DEVICES]; /* with its transfers */
    double makespan_s;
    uint32_t unlinked[2]; /* two devices without a way between them; PLAN_ANYWHERE: none were met */
    struct plan_transfer *transfers;
    size_t transfer_count;
    struct plan_wait *waits;
    size_t wait_count;
    bool is_out_of_memory;
    /* scratch */
    struct topology_traffic traffic;
    uint64_t summing; /* the devices of which the times below are */
    double sum_bytes[PLAN_MEETINGS], sum_s[PLAN_MEETINGS];
};

/* False without memory. */
bool plan_course_init(struct plan_course *course, const struct plan_input *input);
void plan_course_fini(struct plan_course *course);

/* Shares by device. False: a link is missing, which `unlinked` says, or there is no memory for what
 * is to be kept. */
bool plan_course_run(struct plan_course *course, const struct plan_shard *shards);

/* How long `bytes` take from one device to another while nothing else moves. False: there is no
 * way. `ret_kind` (may be NULL): of the way. */
bool plan_course_alone(const struct plan_input *input, uint32_t from, uint32_t to, double bytes,
                       double *ret_s, enum topology_kind *ret_kind);

/* How long it takes all of them to hand `bytes` on to the next, the last to the first, all at once
 * and nothing else. INFINITY: a link is missing, or there is no memory. */
double plan_course_ring_s(const struct plan_input *input, const uint32_t *members, size_t count,
                          double bytes);

#endif
