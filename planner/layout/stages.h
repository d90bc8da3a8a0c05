/* planner/layout/stages.h - columns that stand one after the other, cut into stages for devices of
 * a few groups of like ones: the fewest devices that keep each stage and link within a limit.
 *
 * pipeline.h finds the best of all cuts for eight devices. Here there may be as many as there are,
 * for a device is known by its group alone: from the last column backwards, for each number of
 * devices of each group,
 *
 *     first(n + one of g) = the least first column from which a device of g comes to first(n) within the limit
 *
 * To come further is never worse, so what is found is the best there is for the limit: contiguous
 * stages by dynamic programming over how many devices of each group are used (A. Tarnawski et al.,
 * "Piper", NeurIPS 2021, by number of devices).
 *
 * A stage holds the weights of its columns, and what these keep of each micro-batch in flight: all
 * of them where each comes around again and again, or, with one forward, one backward in turn, as
 * many as there are stages from it to the end (D. Narayanan et al., "Memory-efficient
 * pipeline-parallel DNN training", ICML 2021). Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_STAGES_H
#define BOURSE_PLANNER_LAYOUT_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STAGES_COLUMNS = 160,
    STAGES_GROUPS = 6,
    STAGES_DEVICES = 64,
    STAGES_NUMBERS = 2048, /* of devices of each group, in all */
};

struct stages_input {
    size_t column_count, group_count;
    const uint32_t
        *counts; /* of devices in each group; (count + 1) multiplied: at most STAGES_NUMBERS */
    const double
        *time_s; /* of a micro-batch: [column * group_count + group]; infinite: it cannot */
    const double *fixed_bytes;   /* of a column, in the same order */
    const double *held_bytes;    /* for each micro-batch in flight */
    const double *working_bytes; /* of a stage the most of them */
    const double *memory_bytes;  /* of a device of each group; infinite: unknown */
    const double *link_s; /* of a micro-batch from device to device: [from group * group_count + to
                             group]; infinite: no way */
    int64_t micro_batches;
    bool holds_all; /* every micro-batch is in flight at every stage */
};

struct stages_stage {
    uint32_t first, count; /* columns */
    uint32_t group;
};

struct stages {
    uint32_t stage_count;
    struct stages_stage stages[STAGES_DEVICES]; /* in the order of the columns */
    double slowest_s;                           /* stage */
    double sum_s;
};

enum stages_status { STAGES_OK, STAGES_BAD_INPUT, STAGES_NOWHERE, STAGES_NO_MEMORY };

struct stages_search;

/* The input is borrowed for as long as the search lives. Statuses: OK, BAD_INPUT, NO_MEMORY. */
enum stages_status stages_create(const struct stages_input *input,
                                 struct stages_search **ret_search);
void stages_destroy(struct stages_search **self);

/* Finds all that keeps to the limit. NOWHERE: nothing does. */
enum stages_status stages_find(struct stages_search *search, double limit_s);
/* Of what was found, with devices of just these groups (bits), that which needs the fewest; of as
 * many the one with the least sum. False: none. */
bool stages_take(const struct stages_search *search, uint32_t groups, struct stages *ret_stages);
/* The least limit for which anything is found, to a 100th; NOWHERE: there is none. */
enum stages_status stages_least(struct stages_search *search, double *ret_limit_s);

/* So many figures were worked out by now, each in a fraction of a microsecond. */
uint64_t stages_effort(const struct stages_search *search);

#endif
