/* Stages are runs of consecutive columns on devices of a few groups of equal ones. The search finds
 * the fewest devices that keep each stage and link within a limit.
 *
 * Only a device's group matters, so there may be many devices. The search goes from the last column
 * backwards, for each number of devices of each group:
 *
 *    first(n + one of g) = the least first column from which a device of g reaches first(n)
 *                          within the limit
 *
 * Reaching further is never worse, so the result is optimal for the limit. This is contiguous
 * stages by dynamic programming over the number of devices of each group (A. Tarnawski et al.,
 * "Piper", NeurIPS 2021, by number of devices).
 *
 * A stage holds the weights of its columns, and their data of each micro-batch in flight. If
 * micro-batches go around again and again, all of them are in flight. With one forward, one
 * backward in turn, there are as many in flight as stages from this one to the end (D. Narayanan et
 * al., "Memory-efficient pipeline-parallel DNN training", ICML 2021). */
#ifndef BOURSE_PLANNER_LAYOUT_STAGES_H
#define BOURSE_PLANNER_LAYOUT_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STAGES_COLUMNS = 160,
    STAGES_GROUPS = 6,
    STAGES_DEVICES = 64,
    STAGES_NUMBERS = 2048, /* combinations of the numbers of devices of each group */
};

struct stages_input {
    size_t column_count, group_count;
    /* Devices in each group; the product of all (count + 1) is at most STAGES_NUMBERS. */
    const uint32_t *counts;
    /* Time of a micro-batch: [column * group_count + group]; infinite means that the column cannot
     * run. */
    const double *time_s;
    const double *fixed_bytes;   /* bytes of a column, in the same order */
    const double *held_bytes;    /* bytes for each micro-batch in flight */
    const double *working_bytes; /* a stage takes the most of its columns */
    const double *memory_bytes;  /* memory of a device of each group; infinite: unknown */
    /* Time of a micro-batch's data between devices: [from group * group_count + to group]; infinite
     * means no path. */
    const double *link_s;
    int64_t micro_batches;
    bool holds_all; /* every micro-batch is in flight at every stage */
};

struct stages_stage {
    uint32_t first, count; /* columns */
    uint32_t group;
};

struct stages {
    uint32_t stage_count;
    struct stages_stage stages[STAGES_DEVICES]; /* sorted by column */
    double slowest_s;                           /* the slowest stage */
    double sum_s;
};

enum stages_status { STAGES_OK, STAGES_BAD_INPUT, STAGES_NOWHERE, STAGES_NO_MEMORY };

struct stages_search;

/* Creates a search. The input is borrowed while the search lives. Statuses: OK, BAD_INPUT,
 * NO_MEMORY. */
enum stages_status stages_create(const struct stages_input *input,
                                 struct stages_search **ret_search);
void stages_destroy(struct stages_search **self);

/* Finds all stages within the limit. NOWHERE means that there are none. */
enum stages_status stages_find(struct stages_search *search, double limit_s);
/* Takes, from the result, the stages with the fewest devices of exactly these groups (bits). Among
 * equals, the least sum wins. Returns false when there are none. */
bool stages_take(const struct stages_search *search, uint32_t groups, struct stages *ret_stages);
/* Finds the least limit with a result, to 1 %; NOWHERE means that there is none. */
enum stages_status stages_least(struct stages_search *search, double *ret_limit_s);

/* Returns the number of figures computed so far; each takes a fraction of a microsecond. */
uint64_t stages_effort(const struct stages_search *search);

#endif
