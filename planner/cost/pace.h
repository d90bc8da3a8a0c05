/* The pace compares the speed of devices of one class, by all work that was measured on both.
 *
 * A pace is the time of work on a device, in thousandths of its time on the fastest device that can
 * be compared. Devices are placed one by one, each beside the devices placed before. Devices that
 * share most samples with the placed ones come first.
 *
 * The pace of a device is a median of ratios over the newest work that it shares with the placed
 * devices. Each ratio is the time of the work on this device, over its time by their paces. Work
 * weighs as much as its time on the faster side, since plans are about time.
 *
 * The newest work is work that together weighs as much as PACE_WORKS works. Each of these weighs as
 * much as the average work, where work counts by its time. So a device that has become slower is
 * recognised after that many new works, and many short works do not count as many.
 *
 * A device that shares fewer than PACE_TOLD samples with any placed device is not compared with
 * them. Such a device begins a group of its own, at pace 1. A device that is at most
 * PACE_OFF_PERCENT slower than the fastest counts as pace 1, too. All figures are integers. */
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

struct pace_row {          /* time of one piece of work on one device */
    uint32_t work, device; /* numbers from 0 on; devices of two classes share no work */
    uint32_t samples;
    int64_t median_ns; /* above 0 */
    int64_t at_ns;     /* time of the newest sample */
};

/* Computes the pace of each of `device_count` devices, from PACE_ONE on. Returns false when memory
 * is short. */
bool pace_find(const struct pace_row *rows, size_t count, uint32_t work_count,
               uint32_t device_count, uint32_t *ret_paces);

/* Converts between `base_ns`, a time on the fastest device, and the time at that pace. A time above
 * 0 stays above 0; a time too large becomes INT64_MAX. */
int64_t pace_takes_ns(int64_t base_ns, uint32_t pace);
int64_t pace_base_ns(int64_t takes_ns, uint32_t pace);

#endif
