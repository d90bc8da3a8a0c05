#include "planner/layout/split.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_PER_HOUR 3600.0

/* ---------------------------------------------------------------- figures */

/* Figures must be finite and in range, since they come from strangers. */
static bool is_amount(double value)
{
    return value >= 0 && value <= 1e300;
}

static bool are_good(const struct split_work *work, const struct split_device *devices,
                     size_t count)
{
    uint64_t slots = 0;
    bool good = count >= 1 && count <= SPLIT_DEVICES && work->units >= 1 &&
                work->units <= UINT32_MAX && is_amount(work->flop) && work->flop > 0 &&
                is_amount(work->bytes) && is_amount(work->overhead_s) && is_amount(work->margin_s);
    for (size_t i = 0; good && i < count; i++) {
        slots += devices[i].slots;
        good = is_amount(devices[i].flops) && devices[i].flops > 0 &&
               is_amount(devices[i].fixed_s) && is_amount(devices[i].link) &&
               devices[i].slots >= 1 && devices[i].price_micro >= 0;
    }
    return good && slots <= SPLIT_SLOTS;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the seconds of a unit in each slot, when all slots work. */
static double unit_s(const struct split_work *work, const struct split_device *device)
{
    double slots = least(device->slots, (double)work->units);
    double link_s = device->link > 0 ? slots * work->bytes / device->link : 0;
    return most(work->overhead_s + work->flop / device->flops, link_s);
}

/* Returns when the device has finished its n-th unit, n >= 1. */
static double finish_s(const struct split_work *work, const struct split_device *device, uint64_t n)
{
    uint64_t rounds = (n + device->slots - 1) / device->slots;
    return device->fixed_s + (double)rounds * unit_s(work, device);
}

/* ---------------------------------------------------------------- the level */

/* Finds the water level. A device whose fixed cost is above the level would get a negative share,
 * so it leaves. That lowers the level for the others, until each of them has a share. */
static double find_level(const struct split_work *work, const struct split_device *devices,
                         size_t count)
{
    double level = INFINITY;
    for (;;) {
        double rates = 0;
        double filled = (double)work->units;
        size_t dry = 0;
        for (size_t i = 0; i < count; i++) {
            if (devices[i].fixed_s < level) {
                double rate = devices[i].slots / unit_s(work, &devices[i]);
                rates += rate;
                filled += devices[i].fixed_s * rate;
            }
        }
        if (rates <= 0) {
            return level;
        }
        double next = filled / rates;
        for (size_t i = 0; i < count; i++) {
            dry += devices[i].fixed_s < level && devices[i].fixed_s >= next;
        }
        level = next;
        if (dry == 0) {
            return level;
        }
    }
}

/* ---------------------------------------------------------------- whole units */

static bool is_before(double a_s, const struct split_device *a, double b_s,
                      const struct split_device *b)
{
    return a_s < b_s || (a_s <= b_s && a->price_micro < b->price_micro);
}

/* Returns the device that finishes one more unit first. */
static size_t next_to_finish(const struct split_work *work, const struct split_device *devices,
                             size_t count, const struct split_share *shares)
{
    size_t first = 0;
    double first_s = finish_s(work, &devices[0], shares[0].units + 1);
    for (size_t i = 1; i < count; i++) {
        double at_s = finish_s(work, &devices[i], shares[i].units + 1);
        if (is_before(at_s, &devices[i], first_s, &devices[first])) {
            first = i;
            first_s = at_s;
        }
    }
    return first;
}

static void share_out(const struct split_work *work, const struct split_device *devices,
                      size_t count, struct split_share *shares)
{
    uint64_t left = work->units;
    double level = find_level(work, devices, count);
    for (size_t i = 0; i < count; i++) {
        double rounds = (level - devices[i].fixed_s) / unit_s(work, &devices[i]);
        uint64_t whole = rounds <= 0 ? 0 : rounds >= (double)left ? left : (uint64_t)rounds;
        whole *= devices[i].slots;
        shares[i].units = whole < left ? whole : left;
        left -= shares[i].units;
    }
    while (left > 0) {
        size_t i = next_to_finish(work, devices, count, shares);
        /* The units of a round end together. */
        uint64_t room = devices[i].slots - shares[i].units % devices[i].slots;
        room = room < left ? room : left;
        shares[i].units += room;
        left -= room;
    }
}

/* ---------------------------------------------------------------- the split */

static size_t best_single(const struct split_work *work, const struct split_device *devices,
                          size_t count)
{
    size_t best = 0;
    double best_s = finish_s(work, &devices[0], work->units);
    for (size_t i = 1; i < count; i++) {
        double at_s = finish_s(work, &devices[i], work->units);
        if (is_before(at_s, &devices[i], best_s, &devices[best])) {
            best = i;
            best_s = at_s;
        }
    }
    return best;
}

/* Returns how long others may wait for the device: half a unit, or its delay if its stated speed is
 * too high. */
static double late_s(const struct split_work *work, const struct split_device *device,
                     const struct split_share *share)
{
    double busy_s = share->finish_s - device->fixed_s;
    return least(unit_s(work, device) / 2, busy_s * SPLIT_DOUBT_PERCENT / 100);
}

static void sum_up(const struct split_work *work, const struct split_device *devices, size_t count,
                   struct split_share *shares, struct split *split)
{
    double micro = 0;
    uint64_t lanes = 0;
    split->finish_s = 0;
    split->tail_s = 0;
    split->device_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct split_share *share = &shares[i];
        share->finish_s = share->units > 0 ? finish_s(work, &devices[i], share->units) : 0;
        split->device_count += share->units > 0;
        lanes += share->units < devices[i].slots ? share->units : devices[i].slots;
        split->tail_s =
            most(split->tail_s, share->units > 0 ? late_s(work, &devices[i], share) : 0);
        split->finish_s = most(split->finish_s, share->finish_s);
        double busy_s = (double)share->units * (work->overhead_s + work->flop / devices[i].flops);
        micro += busy_s / SECONDS_PER_HOUR * (double)devices[i].price_micro;
    }
    split->tail_s = lanes > 1 ? split->tail_s : 0;
    split->cost_micro = micro >= 9e18 ? INT64_MAX : (int64_t)micro + 1;
}

static bool gains(double split_finish_s, double single_s, double margin_s)
{
    return split_finish_s <= single_s * (100 - SPLIT_GAIN_PERCENT) / 100 &&
           split_finish_s + margin_s <= single_s;
}

enum split_status split_make(const struct split_work *work, const struct split_device *devices,
                             size_t count, struct split_share *ret_shares, struct split *ret_split)
{
    if (!are_good(work, devices, count)) {
        return SPLIT_BAD_INPUT;
    }
    memset(ret_shares, 0, count * sizeof *ret_shares);
    struct split split = {.single = best_single(work, devices, count)};
    split.single_s = finish_s(work, &devices[split.single], work->units);
    share_out(work, devices, count, ret_shares);
    sum_up(work, devices, count, ret_shares, &split);
    split.is_split =
        split.device_count > 1 && gains(split.finish_s, split.single_s, work->margin_s);
    if (!split.is_split) {
        memset(ret_shares, 0, count * sizeof *ret_shares);
        ret_shares[split.single].units = work->units;
        sum_up(work, devices, count, ret_shares, &split);
    }
    *ret_split = split;
    return SPLIT_OK;
}

/* ---------------------------------------------------------------- tiles */

uint64_t split_edge(uint64_t length, uint32_t blocks, uint32_t index)
{
    assert(blocks >= 1);
    assert(index <= blocks);
    uint64_t longer = length % blocks;
    return length / blocks * index + (index < longer ? index : longer);
}

static double block(uint64_t length, uint32_t blocks)
{
    return (double)(split_edge(length, blocks, 1)); /* the first block is the longest */
}

struct tile { /* the largest tile of a grid */
    double flop, a_bytes, b_bytes, c_bytes;
};

static struct tile tile_of(const struct split_product *product, struct split_grid grid)
{
    double rows = block(product->rows, grid.rows);
    double columns = block(product->columns, grid.columns);
    double inner = (double)product->inner;
    return (struct tile){.flop = 2 * rows * columns * inner,
                         .a_bytes = rows * inner * product->element_bytes,
                         .b_bytes = inner * columns * product->element_bytes,
                         .c_bytes = rows * columns * product->element_bytes};
}

static double bytes_of(const struct tile *tile)
{
    return tile->a_bytes + tile->b_bytes + tile->c_bytes;
}

/* Describes a grid over `count` devices, with its tiles as units. */
static struct split_work work_of(const struct split_product *product, struct split_grid grid,
                                 const struct tile *tile, size_t count)
{
    /* Devices that share a row of tiles each fetch its block of A. */
    double sharing = least((double)count, grid.columns) / grid.columns;
    return (struct split_work){
        .units = (uint64_t)grid.rows * grid.columns,
        .flop = tile->flop,
        .bytes = tile->a_bytes * sharing + tile->c_bytes,
        .overhead_s = product->tile_s + bytes_of(tile) / product->staging,
        .margin_s = product->margin_s,
    };
}

/* Reasons to leave out a device; a larger value means less wanted. */
enum aversion { AVERSE_TO_LITTLE_MEMORY, AVERSE_TO_PRICE, AVERSIONS };

static int64_t aversion_to(const struct split_device *device, enum aversion aversion)
{
    const int64_t bytes = device->tile_bytes < INT64_MAX ? (int64_t)device->tile_bytes : INT64_MAX;
    return aversion == AVERSE_TO_PRICE ? device->price_micro : -bytes;
}

/* All available devices, in the order in which their slots are taken. */
struct market {
    const struct split_device *devices;
    size_t count;
    int64_t most[AVERSIONS]; /* devices above a limit stay out */
};

static struct market market_of(const struct split_device *devices, size_t count)
{
    return (struct market){devices, count, {INT64_MAX, INT64_MAX}};
}

static bool is_wanted(const struct market *market, const struct split_device *device)
{
    return aversion_to(device, AVERSE_TO_LITTLE_MEMORY) <= market->most[AVERSE_TO_LITTLE_MEMORY] &&
           aversion_to(device, AVERSE_TO_PRICE) <= market->most[AVERSE_TO_PRICE];
}

/* The devices that a grid is planned on. */
struct party {
    struct split_device devices[SPLIT_DEVICES]; /* devices with the transfer of B */
    size_t from[SPLIT_DEVICES];                 /* index of each in the market */
    size_t count;
};

static void invite(const struct split_product *product, const struct market *market,
                   double tile_bytes, struct party *ret_party)
{
    double b_bytes = (double)product->inner * (double)product->columns * product->element_bytes;
    uint32_t left = product->slots > 0 ? product->slots : UINT32_MAX;
    ret_party->count = 0;
    for (size_t i = 0; i < market->count && left > 0; i++) {
        const struct split_device *device = &market->devices[i];
        if (tile_bytes > (double)device->tile_bytes || !is_wanted(market, device)) {
            continue;
        }
        struct split_device *ready = &ret_party->devices[ret_party->count];
        *ready = *device;
        ready->fixed_s += device->link > 0 ? b_bytes / device->link : 0;
        ready->slots = device->slots < left ? device->slots : left;
        left -= ready->slots;
        ret_party->from[ret_party->count++] = i;
    }
}

static enum split_status try_grid(const struct split_product *product, const struct market *market,
                                  struct split_grid grid, struct split_share *ret_shares,
                                  struct split *ret_split)
{
    struct party party;
    struct split_share shares[SPLIT_DEVICES];
    const struct tile tile = tile_of(product, grid);
    if (market->count > SPLIT_DEVICES) {
        return SPLIT_BAD_INPUT;
    }
    invite(product, market, bytes_of(&tile), &party);
    const struct split_work work = work_of(product, grid, &tile, party.count);
    if (split_make(&work, party.devices, party.count, shares, ret_split) != SPLIT_OK) {
        return SPLIT_BAD_INPUT;
    }
    memset(ret_shares, 0, market->count * sizeof *ret_shares);
    for (size_t i = 0; i < party.count; i++) {
        ret_shares[party.from[i]] = shares[i];
    }
    ret_split->single = party.from[ret_split->single];
    return SPLIT_OK;
}

static const uint32_t counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, SPLIT_BLOCKS};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static bool is_worth_trying(uint64_t length, uint32_t blocks)
{
    return blocks == 1 || length / blocks >= SPLIT_BLOCK_LEAST;
}

struct candidate {
    struct split_grid grid;
    struct split split;
};

/* Tries each useful grid, and returns their number. *ret_single has the best single device. */
static size_t try_grids(const struct split_product *product, const struct market *market,
                        struct candidate *ret_candidates, struct split_share *shares,
                        const struct split **ret_single)
{
    size_t found = 0;
    *ret_single = NULL;
    for (size_t r = 0; r < COUNTS && is_worth_trying(product->rows, counts[r]); r++) {
        for (size_t c = 0; c < COUNTS && is_worth_trying(product->columns, counts[c]); c++) {
            struct candidate *at = &ret_candidates[found];
            at->grid = (struct split_grid){counts[r], counts[c]};
            if (try_grid(product, market, at->grid, shares, &at->split) != SPLIT_OK) {
                continue;
            }
            found++;
            if (*ret_single == NULL || at->split.single_s < (*ret_single)->single_s) {
                *ret_single = &at->split;
            }
        }
    }
    return found;
}

static double likely_s(const struct split *split)
{
    return split->finish_s + split->tail_s;
}

/* Returns true when the candidate may be taken. With several devices it must gain over the best
 * single one in its own best grid. */
static bool is_good(const struct candidate *candidate, size_t devices, double single_s,
                    double margin_s)
{
    return devices == 1 ||
           (candidate->split.is_split && gains(candidate->split.finish_s, single_s, margin_s));
}

/* Returns the finest good candidate, or NULL. */
static const struct candidate *finest(const struct candidate *candidates, size_t count,
                                      size_t devices, double single_s, double margin_s)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (is_good(&candidates[i], devices, single_s, margin_s)) {
            least_s = least(least_s, likely_s(&candidates[i].split));
        }
    }
    double enough_s = least_s * (100 + SPLIT_FINER_PERCENT) / 100;
    const struct candidate *best = NULL;
    uint64_t most_tiles = 0;
    for (size_t i = 0; i < count; i++) {
        const struct candidate *at = &candidates[i];
        uint64_t tiles = (uint64_t)at->grid.rows * at->grid.columns;
        /* Among equals, more rows win: a row of blocks is contiguous in the files. */
        bool is_better = best == NULL || tiles > most_tiles ||
                         (tiles == most_tiles && likely_s(&at->split) <= likely_s(&best->split));
        if (is_good(at, devices, single_s, margin_s) && likely_s(&at->split) <= enough_s &&
            is_better) {
            best = at;
            most_tiles = tiles;
        }
    }
    return best;
}

static bool is_possible(const struct split_product *product, const struct split_grid *fixed)
{
    return product->rows >= 1 && product->inner >= 1 && product->columns >= 1 &&
           product->element_bytes >= 1 && is_amount(product->staging) && product->staging > 0 &&
           is_amount(product->tile_s) && is_amount(product->margin_s) &&
           (fixed == NULL || (fixed->rows >= 1 && fixed->columns >= 1 &&
                              fixed->rows <= product->rows && fixed->columns <= product->columns));
}

/* A plan that is not split stays on its own device. */
static void compare_with(struct split *split, const struct split *single)
{
    split->single_s = single->single_s;
    split->single = split->is_split ? single->single : split->single;
}

/* Plans by time, with the best single device. Returns false when no device can hold a tile. */
static bool plan_by_time(const struct split_product *product, const struct market *market,
                         const struct split_grid *fixed, struct candidate *ret_plan,
                         struct split_share *ret_shares)
{
    struct candidate candidates[COUNTS * COUNTS];
    const struct split *single = NULL;
    size_t found = try_grids(product, market, candidates, ret_shares, &single);
    const struct candidate *best =
        found == 0 ? NULL
                   : finest(candidates, found, market->count, single->single_s, product->margin_s);
    if (fixed != NULL || best != NULL) {
        ret_plan->grid = fixed != NULL ? *fixed : best->grid;
        if (try_grid(product, market, ret_plan->grid, ret_shares, &ret_plan->split) != SPLIT_OK) {
            return false;
        }
        if (single != NULL && single->single_s < ret_plan->split.single_s) {
            compare_with(&ret_plan->split, single);
        }
        return true;
    }
    if (found == 0) {
        return false;
    }
    /* The best single device plans as if it were alone, since there is no gain. */
    const size_t single_device = single->single;
    const struct market only = market_of(&market->devices[single_device], 1);
    struct split_share share;
    (void)plan_by_time(product, &only, NULL, ret_plan, &share); /* the grid was good just now */
    memset(ret_shares, 0, market->count * sizeof *ret_shares);
    ret_shares[single_device] = share;
    ret_plan->split.single = single_device;
    return true;
}

static int by_value(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Returns the sorted values of the devices with a share; there is at least one. */
static size_t aversions_of(const struct market *market, const struct split_share *shares,
                           enum aversion aversion, int64_t ret_values[SPLIT_DEVICES])
{
    size_t count = 0;
    for (size_t i = 0; i < market->count; i++) {
        if (shares[i].units > 0) {
            ret_values[count++] = aversion_to(&market->devices[i], aversion);
        }
    }
    qsort(ret_values, count, sizeof *ret_values, by_value);
    return count;
}

/* Returns true when the plan without some devices is about as good as the plan with them. */
static bool does_as_well(const struct split *without, const struct split *with,
                         const struct split_grid *fixed, double margin_s)
{
    const bool is_gain = fixed != NULL || !without->is_split ||
                         gains(without->finish_s, with->single_s, margin_s); /* over all devices */
    return is_gain && without->finish_s <= most(with->single_s, with->finish_s) &&
           likely_s(without) <= likely_s(with) * (100 + SPLIT_GAIN_PERCENT) / 100;
}

/* Leaves out as many devices as the plan can spare. */
static void leave_out(const struct split_product *product, struct market *market,
                      enum aversion aversion, const struct split_grid *fixed,
                      struct candidate *plan, struct split_share *shares)
{
    int64_t values[SPLIT_DEVICES];
    struct split_share fewer[SPLIT_DEVICES];
    const struct split with = plan->split;
    size_t low = 0;
    size_t high = aversions_of(market, shares, aversion, values) - 1;
    while (low < high) {
        struct candidate without;
        struct market part = *market;
        const size_t middle = low + (high - low) / 2;
        part.most[aversion] = values[middle];
        if (values[middle] == values[high]) {
            high = middle;
        } else if (plan_by_time(product, &part, fixed, &without, fewer) &&
                   does_as_well(&without.split, &with, fixed, product->margin_s) &&
                   (aversion != AVERSE_TO_PRICE || without.split.cost_micro <= with.cost_micro)) {
            *plan = without;
            *market = part;
            memcpy(shares, fewer, market->count * sizeof *shares);
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    compare_with(&plan->split, &with);
}

enum split_status split_product(const struct split_product *product,
                                const struct split_device *devices, size_t count,
                                const struct split_grid *fixed, struct split_grid *ret_grid,
                                struct split_share *ret_shares, struct split *ret_split)
{
    struct market market = market_of(devices, count);
    struct candidate plan;
    if (!is_possible(product, fixed) || !plan_by_time(product, &market, fixed, &plan, ret_shares)) {
        return SPLIT_BAD_INPUT;
    }
    leave_out(product, &market, AVERSE_TO_LITTLE_MEMORY, fixed, &plan, ret_shares);
    leave_out(product, &market, AVERSE_TO_PRICE, fixed, &plan, ret_shares);
    *ret_grid = plan.grid;
    *ret_split = plan.split;
    return SPLIT_OK;
}
