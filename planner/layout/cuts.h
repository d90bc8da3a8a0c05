/* Cuts divide a row of columns into stages, at places where little crosses.
 *
 *     columns    | 3 | 1 | 2 | 4 | 1 |          time of each
 *     crossing       9   1   9   2              time of the data between two columns
 *     2 stages   |   4   |     7     |          cut where 1 crosses: 4 + 1, and 1 + 7
 *
 * A stage takes as long as its columns, and as what crosses at both of its ends. The slowest stage
 * decides how fast a pipeline goes on, so that it is made as fast as it can be. Among the cuts that
 * are at most CUTS_SLACK_PERCENT slower, those win at which least crosses in all. Both are found
 * by dynamic programming over the columns, with a fixed number of stages. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_CUTS_H
#define BOURSE_PLANNER_LAYOUT_CUTS_H

#include <stddef.h>
#include <stdint.h>

enum { CUTS_COLUMNS = 512, CUTS_STAGES = 16, CUTS_SLACK_PERCENT = 2 };

struct cuts_input {
    size_t column_count, stage_count; /* 1 to CUTS_COLUMNS, and to CUTS_STAGES */
    const double *time_s;             /* by column; >= 0 */
    /* The time of what crosses before each column. Infinite: no cut is possible there. The first
     * one counts for nothing. */
    const double *cross_s;
};

struct cuts {
    size_t first[CUTS_STAGES]; /* the first column of each stage; ascending, from 0 */
    double slowest_s;          /* the slowest stage */
    double crossing_s;         /* what crosses at all cuts */
};

/* NOWHERE: there are fewer places for cuts than cuts. */
enum cuts_status { CUTS_OK, CUTS_BAD_INPUT, CUTS_NOWHERE, CUTS_NO_MEMORY };

enum cuts_status cuts_find(const struct cuts_input *input, struct cuts *ret_cuts);

#endif
