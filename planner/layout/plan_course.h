/* The course computes when shares of a batch are done, with all transfers between their devices.
 *
 * One device is the home of the batch: the input of the whole work lies there, and the result has
 * to come there.
 *
 *    home     |==== share ====|wait|= sum =|== rest ==|
 *    second    ~~|=== share ===|   |= sum =|== rest ==|~~~> home      ~ transfers, which hold ports
 *    third     ~~~~~|= share =|wait|= sum =|== rest ==|   ~~~~> home
 *
 * Shares leave home in the order of how long they take, and results come back in the order in which
 * they are ready. A share without input still gets a start message, and reports its end. Each
 * message takes the latency of a link. A missing link makes the course impossible.
 *
 * Shares may have to meet. All wait for the last one, then exchange figures (in a template,
 * gradients) that are summed over all shares. The sum takes the longer of the devices' time and the
 * links' time. The links use the faster of two methods:
 *
 *    ring       2 (n - 1) rounds; in each, every device passes a part of n on to the next
 *               (Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 *               workstations", JPDC 69(2), 2009)
 *    two-level  A ring in each machine leaves a part at each device, and one device gathers them.
 *               These devices form a second ring; then the result goes back.
 *
 * A round is over when its last transfer is. Some sums run behind the work after them (sums_behind
 * in steps.h). They follow one another over the links. Each starts after the last share has reached
 * it and the sum before is over. Devices wait for the last of these sums at the next other meeting,
 * or before the rest of their work:
 *
 *     home     |==== back 2 ====|=== back 1 ===|wait|== rest ==|
 *     links                     |~~ sum 2 ~~|  |sum 1|
 *
 * The files of the planner alone use this header. */
#ifndef BOURSE_PLANNER_LAYOUT_PLAN_COURSE_H
#define BOURSE_PLANNER_LAYOUT_PLAN_COURSE_H

#include "planner/layout/plan_internal.h"

enum { PLAN_MEETINGS = 72 }; /* further meetings count as part of the last one */

struct plan_meeting {
    double after_s; /* work since the meeting before */
    double takes_s; /* time of the device for the sum */
    double bytes;   /* bytes summed; 0: no transfer */
    int64_t parts;  /* number of parts in all, here and elsewhere */
    bool is_behind; /* the links work while the device goes on */
};

struct plan_shard { /* share of one device */
    int64_t items;  /* 0: no share */
    int64_t rounds; /* parts made one after the other, as equal as possible; 1: all at once */
    struct figure time_s;
    double p90_s;
    uint32_t samples;
    bool is_streamed;
    struct plan_use use; /* use of the share alone */
    double brought_bytes, fetched_bytes;
    double rest_s; /* work after the last meeting */
    size_t meeting_count;
    struct plan_meeting meetings[PLAN_MEETINGS];
};

/* Measures `items` of the batch on the device, at once or in parts; shares that exchange data are
 * not made in parts. `parts` is the number of shares in all. The time is unknown when the share is
 * impossible. Returns false when memory is short. */
bool plan_shard_cut(const struct plan_case *whole, uint32_t device, int64_t items, int64_t parts,
                    struct plan_shard *ret_shard);

struct plan_course {
    const struct plan_input *input;
    /* Work takes its p90 time; only for shares that do not meet. */
    bool is_slow;
    /* Transfers and waits are recorded. Their ends, and the row of a wait, are devices. */
    bool is_recorded;
    /* Outputs: */
    uint32_t home;
    double begin_s[PLAN_DEVICES], end_s[PLAN_DEVICES]; /* begin and end of each share */
    double there_s[PLAN_DEVICES];                      /* arrival of each share's results at home */
    double first_s[PLAN_DEVICES], last_s[PLAN_DEVICES]; /* including its transfers */
    double makespan_s;
    /* Two devices without a path between them; PLAN_ANYWHERE means that there are none. */
    uint32_t unlinked[2];
    struct plan_transfer *transfers;
    size_t transfer_count;
    struct plan_wait *waits;
    size_t wait_count;
    bool is_out_of_memory;
    /* Scratch: */
    struct topology_traffic traffic;
    uint64_t summing; /* devices that the times below belong to */
    double sum_bytes[PLAN_MEETINGS], sum_s[PLAN_MEETINGS];
};

/* Begins an empty course. Returns false when memory is short. */
bool plan_course_init(struct plan_course *course, const struct plan_input *input);
void plan_course_fini(struct plan_course *course);

/* Computes the course of the shares, given by device. Returns false when a link is missing, which
 * `unlinked` names, or when memory is short. */
bool plan_course_run(struct plan_course *course, const struct plan_shard *shards);

/* Computes how long `bytes` take from one device to another while nothing else moves. Returns false
 * when there is no path. `ret_kind` (may be NULL) is the kind of the path. */
bool plan_course_idle(const struct plan_input *input, uint32_t from, uint32_t to, double bytes,
                      double *ret_s, enum topology_kind *ret_kind);

/* Returns how long the members take to pass `bytes` on around the ring, each to the next one. All
 * pass at once, and there is no other traffic. Returns INFINITY when a link is missing or memory is
 * short. */
double plan_course_ring_s(const struct plan_input *input, const uint32_t *members, size_t count,
                          double bytes);

#endif
