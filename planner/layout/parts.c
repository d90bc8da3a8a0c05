#include "planner/layout/parts.h"

#include <math.h>

/* Splits so many pieces over the devices. */
static enum split_status split_in(const struct parts_work *work, const struct split_device *devices,
                                  size_t count, uint32_t parts, struct split_share *ret_shares,
                                  struct split *ret_split)
{
    const struct split_work pieces = {.units = parts,
                                      .flop = work->flop / parts,
                                      .bytes = work->bytes / parts,
                                      .overhead_s = work->overhead_s};
    return split_make(&pieces, devices, count, ret_shares, ret_split);
}

static uint32_t most_parts(const struct parts_work *work, const struct split_device *devices,
                           size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        most += (uint64_t)devices[i].slots * PARTS_EACH;
    }
    most = most < work->rows ? most : work->rows;
    return most < PARTS_MOST ? (uint32_t)most : PARTS_MOST;
}

static void take(const struct split_share *shares, const struct split_device *devices, size_t count,
                 struct parts *parts)
{
    parts->device_count = 0;
    parts->slots = 0;
    parts->least_flops = INFINITY;
    for (size_t i = 0; i < count; i++) {
        const uint64_t units = shares[i].units;
        if (units > 0) {
            parts->device_count++;
            parts->slots += units < devices[i].slots ? (uint32_t)units : devices[i].slots;
            parts->least_flops = fmin(parts->least_flops, devices[i].flops);
        }
    }
}

enum split_status parts_choose(const struct parts_work *work, const struct split_device *devices,
                               size_t count, struct parts *ret_parts)
{
    struct split_share shares[SPLIT_DEVICES];
    struct split split;
    if (work->rows == 0 || split_in(work, devices, count, 1, shares, &split) != SPLIT_OK) {
        return SPLIT_BAD_INPUT;
    }
    struct parts parts = {.parts = 1, .finish_s = split.finish_s, .single_s = split.finish_s};
    const uint32_t most = most_parts(work, devices, count);
    double least_s = split.finish_s;
    for (uint32_t i = 2; i <= most; i++) {
        (void)split_in(work, devices, count, i, shares, &split);
        least_s = fmin(least_s, split.finish_s);
    }
    const double good_s = least_s * (1 + PARTS_FINER_PERCENT / 100.0);
    const bool gains = good_s <= parts.single_s * (1 - SPLIT_GAIN_PERCENT / 100.0);
    for (uint32_t i = 2; gains && parts.finish_s > good_s && i <= most; i++) {
        (void)split_in(work, devices, count, i, shares, &split);
        if (split.finish_s <= good_s) {
            parts.parts = i;
            parts.finish_s = split.finish_s;
        }
    }
    (void)split_in(work, devices, count, parts.parts, shares, &split);
    take(shares, devices, count, &parts);
    *ret_parts = parts;
    return SPLIT_OK;
}
