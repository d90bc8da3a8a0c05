/* planner/cost/pace.h - how fast devices are beside others of their class, by all work that was
 * measured on both.
 *
 * A pace is what work takes on a device, in thousandths of what it takes on the fastest of those
 * that it can be compared with. Devices are placed one by one, beside those that were before, those
 * that share most samples with them first. How a device is beside these is the median, over the
 * newest work that it shares with them, of what that took there over what it takes by theirs; work
 * weighs as long as it takes on the faster of both, since what is planned is time, and the newest
 * is what weighs as much as PACE_WORKS works, each as long as they are on average where each counts
 * as long as it takes: so a device that has become slower is known by as many new ones, and many
 * short ones are not many. One that shares fewer than PACE_TOLD samples with any is compared with
 * those only that share more with it, and is at pace 1 alone, as is one that is not more than
 * PACE_OFF_PERCENT slower than the fastest. Integers only. Pure. */
#ifndef BOURSE_PLANNER_COST_PACE_H
#define BOURSE_PLANNER_COST_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACE_ONE = 1000,
    PACE_MOST = 1000000, /* a thousand times as long */
    PACE_TOLD = 4,
    PACE_WORKS = 32,
    PACE_OFF_PERCENT = 20,
};

struct pace_row {          /* what one piece of work took on one device */
    uint32_t work, device; /* numbers from 0 on; devices of two classes share no work */
    uint32_t samples;
    int64_t median_ns; /* above 0 */
    int64_t at_ns;     /* of the newest */
};

/* Of each of `device_count`; from PACE_ONE on. False: no memory. */
bool pace_find(const struct pace_row *rows, size_t count, uint32_t work_count,
               uint32_t device_count, uint32_t *ret_paces);

/* What takes `base_ns` on the fastest, at that pace; and the other way round. Above 0 where that
 * is; INT64_MAX where it is more. */
int64_t pace_takes_ns(int64_t base_ns, uint32_t pace);
int64_t pace_base_ns(int64_t takes_ns, uint32_t pace);

#endif
