/* planner/pace.h - how fast devices are beside others of their class, by all work that was measured on both.
 *
 * A pace is what work takes on a device, in thousandths of what it takes on the base: that device of those compared which was measured most.
 * Devices are placed one by one, beside those that were before, the one that shares most samples with them first. Its pace is the median, over
 * the work that it shares with them, of what that took there over what it takes on the base by theirs; work weighs as long as it takes on the
 * faster of both, times the samples, since what is planned is time. One that shares fewer than PACE_TOLD samples with any begins a base of its
 * own: it has pace 1, as has one that is not more than PACE_OFF_PERCENT off. Integers only. Pure. */
#ifndef BOURSE_PLANNER_PACE_H
#define BOURSE_PLANNER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACE_ONE = 1000,
    PACE_MOST = 1000000, /* a thousand times the base, or, 1, a thousandth of it */
    PACE_TOLD = 4,
    PACE_OFF_PERCENT = 20,
};

struct pace_row {          /* what one piece of work took on one device */
    uint32_t work, device; /* numbers from 0 on; devices of two classes share no work */
    uint32_t samples;
    int64_t median_ns; /* above 0 */
};

/* Of each of `device_count`. False: no memory. */
bool pace_find(const struct pace_row *rows, size_t count, uint32_t work_count,
               uint32_t device_count, uint32_t *ret_paces);

/* What takes `base_ns` on the base, at that pace; and the other way round. Above 0 where that is; INT64_MAX where it is more. */
int64_t pace_takes_ns(int64_t base_ns, uint32_t pace);
int64_t pace_base_ns(int64_t takes_ns, uint32_t pace);

#endif
