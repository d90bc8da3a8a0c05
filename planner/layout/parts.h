/* Parts are how many equal pieces the rows of an array are cut into, for devices of unlike speed.
 *
 *     2 parts   | A  A  A  A  |             the slower device decides: 4
 *               | B  B  B  B  |
 *     4 parts   | A A | A A | A A |         each takes the next piece when it is free: 3
 *               | B  B  B  B  |
 *
 * A device takes one piece after another, so that its share of the rows follows its speed, with
 * pieces as the unit (split.h). More pieces share the rows more evenly, and each has its overhead.
 * The fewest pieces are taken that end at most PARTS_FINER_PERCENT later than the best number. One
 * piece is taken unless more of them gain SPLIT_GAIN_PERCENT. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PARTS_H
#define BOURSE_PLANNER_LAYOUT_PARTS_H

#include "planner/layout/split.h"

enum {
    PARTS_MOST = 1024,
    PARTS_FINER_PERCENT = 2,
    PARTS_EACH = 8, /* pieces of a slot, at most, on average */
};

struct parts_work {
    uint64_t rows;     /* >= 1 */
    double flop;       /* of all rows; > 0 */
    double bytes;      /* of all rows, to the devices and back; >= 0 */
    double overhead_s; /* of a piece; >= 0 */
};

struct parts {
    uint32_t parts;
    double finish_s, single_s; /* with so many parts, and with one */
    size_t device_count;       /* devices with a share */
    double least_flops;        /* the slowest of them */
    uint32_t slots;            /* slots that have a piece at a time, at most */
};

/* Chooses the number of parts for these devices. BAD_INPUT is as in split.h. */
enum split_status parts_choose(const struct parts_work *work, const struct split_device *devices,
                               size_t count, struct parts *ret_parts);

#endif
