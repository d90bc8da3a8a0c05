/* A division shares the batch out among a set of devices by split.h, and computes the outcome.
 *
 * For split.h, a device is a line: a fixed time and a time for each item. Real times are not
 * exactly linear. So each line goes through the times of the device's share and of half of it, with
 * transfers. Shares and lines are computed in turn a few times. The end of all work (plan_course.h)
 * is what counts. Only plan_split.c uses this header. */
#ifndef BOURSE_PLANNER_LAYOUT_DIVISION_H
#define BOURSE_PLANNER_LAYOUT_DIVISION_H

#include "planner/layout/plan_course.h"

enum {
    DIVISION_TRIES = 240, /* most sets of devices that are tried */
    DIVISION_CUTS = 1024, /* shares whose times are kept */
};

struct division_key {
    uint32_t kind;
    int64_t items, parts;
};

struct division_best {
    struct plan_outcome outcome;
    uint64_t devices;
    struct plan_shard shards[PLAN_DEVICES];
};

struct division {
    const struct plan_case *whole;
    const struct plan_input *asked;
    struct division_best *chosen; /* the best result of the search, by `asked` */
    int64_t grain;
    uint32_t kind[PLAN_DEVICES];    /* first device with the same costs */
    uint32_t machine[PLAN_DEVICES]; /* first device nearby */
    double single_s[PLAN_DEVICES];  /* the whole batch there; INFINITY: impossible */
    int64_t most[PLAN_DEVICES];     /* items that fit; 0: none */
    double begin_s[PLAN_DEVICES],
        each_s[PLAN_DEVICES]; /* time of a share: begin + each * items, without transfers */
    double brought_bytes, fetched_bytes; /* bytes of an item */
    struct division_key keys[DIVISION_CUTS];
    struct plan_shard *cuts[DIVISION_CUTS]; /* NULL: none yet */
    uint64_t tried[DIVISION_TRIES];
    size_t tried_count;
    bool has_met; /* two linked devices were tried */
    struct plan_course course;
    /* State of the current set: */
    bool may_use[PLAN_DEVICES];
    double fixed_s[PLAN_DEVICES], item_s[PLAN_DEVICES]; /* lines with transfers */
    struct plan_shard shards[PLAN_DEVICES];
};

/* Makes the share of a device. Cuts for devices of one kind, which are asked for often, are kept.
 * Returns false when memory is short, as the functions below do. */
bool division_cut(struct division *division, uint32_t device, int64_t items, int64_t parts,
                  struct plan_shard *ret_shard);
/* Finds the most items that the device can do, and its first line. */
bool division_measure(struct division *division, uint32_t device);
/* Tries a set of devices, by bits. */
bool division_try(struct division *division, uint64_t devices, struct division_best *best);
/* Weighs the division by the search's aim, and by `asked`. */
void division_weigh(struct division *division, struct division_best *best);
/* Fills in the use of each device and the makespan, by the course. */
void division_fill_uses(const struct division *division, struct plan_use *uses,
                        struct figure *ret_makespan_s);
/* Returns the p90 makespan of all shares; 0 when it is unknown, or shares meet. */
double division_slow_s(struct division *division);

#endif
