#include "planner/cost/pace.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    FINE = 1000000, /* pace 1 during placement, relative to the first device */
    FINE_MOST = FINE * 1000,
};
#define WEIGHT_MOST (INT64_C(1) << 55) /* a year in ns: its square can be summed */

struct ratio {
    uint32_t pace;
    int128 weight;
};

struct candidate {
    uint64_t samples;
    uint32_t device;
};

struct placing {
    size_t count;
    uint32_t device_count;
    struct pace_row *by_work, *by_device; /* rows by device: the newest first */
    size_t *of_work, *of_device;          /* first row of each, and the end */
    /* Time of each work at FINE, and the samples behind it. Without samples, the work was measured
     * on no placed device. */
    int64_t *base_ns;
    uint64_t *base_samples;
    uint64_t *shared;         /* indexed by device: samples of work in base_samples */
    struct candidate *firsts; /* all devices, those with most samples first */
    struct candidate *order;  /* the placed devices, then those that can be placed */
    uint32_t order_count;
    bool *is_placed;
    struct ratio *ratios;
};

/* Returns floor(a * b / divisor), at most INT64_MAX, and at least 1 if a is above 0. */
static int64_t scaled(int64_t a, int64_t b, int64_t divisor)
{
    int64_t ret = INT64_MAX;
    (void)checked_muldiv_floor(a, b, divisor, &ret);
    return ret == 0 && a > 0 ? 1 : ret;
}

int64_t pace_takes_ns(int64_t base_ns, uint32_t pace)
{
    return scaled(base_ns, pace, PACE_ONE);
}

int64_t pace_base_ns(int64_t takes_ns, uint32_t pace)
{
    assert(pace > 0);
    return scaled(takes_ns, PACE_ONE, pace);
}

/* ---------------------------------------------------------------- rows by work and by device */

static int work_first(const void *a, const void *b)
{
    const struct pace_row *left = a;
    const struct pace_row *right = b;
    return (left->work > right->work) - (left->work < right->work);
}

static int device_first(const void *a, const void *b)
{
    const struct pace_row *left = a;
    const struct pace_row *right = b;
    return left->device != right->device ? (left->device > right->device ? 1 : -1)
           : left->at_ns != right->at_ns ? (left->at_ns < right->at_ns ? 1 : -1)
                                         : work_first(a, b);
}

static int most_first(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    return left->samples != right->samples
               ? (left->samples < right->samples ? 1 : -1)
               : (left->device > right->device) - (left->device < right->device);
}

static void fini(struct placing *placing)
{
    free(placing->by_work);
    free(placing->by_device);
    free(placing->of_work);
    free(placing->of_device);
    free(placing->base_ns);
    free(placing->base_samples);
    free(placing->shared);
    free(placing->firsts);
    free(placing->order);
    free(placing->is_placed);
    free(placing->ratios);
}

/* Returns false when memory is short. */
static bool init(struct placing *placing, const struct pace_row *rows, size_t count,
                 uint32_t work_count, uint32_t device_count)
{
    assert(work_count > 0 && device_count > 0);
    *placing = (struct placing){.count = count,
                                .device_count = device_count,
                                .by_work = calloc(count, sizeof *rows),
                                .by_device = calloc(count, sizeof *rows),
                                .of_work = calloc(work_count + 1U, sizeof(size_t)),
                                .of_device = calloc(device_count + 1U, sizeof(size_t)),
                                .base_ns = calloc(work_count, sizeof(int64_t)),
                                .base_samples = calloc(work_count, sizeof(uint64_t)),
                                .shared = calloc(device_count, sizeof(uint64_t)),
                                .firsts = calloc(device_count, sizeof *placing->firsts),
                                .order = calloc(device_count, sizeof *placing->order),
                                .is_placed = calloc(device_count, sizeof(bool)),
                                .ratios = calloc(count, sizeof(struct ratio))};
    if (placing->by_work == NULL || placing->by_device == NULL || placing->of_work == NULL ||
        placing->of_device == NULL || placing->base_ns == NULL || placing->base_samples == NULL ||
        placing->shared == NULL || placing->firsts == NULL || placing->order == NULL ||
        placing->is_placed == NULL || placing->ratios == NULL) {
        return false;
    }
    memcpy(placing->by_work, rows, count * sizeof *rows);
    memcpy(placing->by_device, rows, count * sizeof *rows);
    qsort(placing->by_work, count, sizeof *rows, work_first);
    qsort(placing->by_device, count, sizeof *rows, device_first);
    for (size_t i = 0; i < count; i++) {
        assert(rows[i].work < work_count && rows[i].device < device_count && rows[i].median_ns > 0);
        placing->of_work[rows[i].work + 1]++;
        placing->of_device[rows[i].device + 1]++;
        placing->firsts[rows[i].device].samples += rows[i].samples;
    }
    for (uint32_t w = 0; w < work_count; w++) {
        placing->of_work[w + 1] += placing->of_work[w];
    }
    for (uint32_t d = 0; d < device_count; d++) {
        placing->of_device[d + 1] += placing->of_device[d];
        placing->firsts[d].device = d;
    }
    qsort(placing->firsts, device_count, sizeof *placing->firsts, most_first);
    return true;
}

/* ---------------------------------------------------------------- one by one */

static int least_pace_first(const void *a, const void *b)
{
    const struct ratio *left = a;
    const struct ratio *right = b;
    return (left->pace > right->pace) - (left->pace < right->pace);
}

static uint32_t median_of(struct ratio *ratios, size_t count)
{
    int128 half = 0;
    qsort(ratios, count, sizeof *ratios, least_pace_first);
    for (size_t i = 0; i < count; i++) {
        half += ratios[i].weight;
    }
    half /= 2;
    size_t at = 0;
    for (int128 sum = ratios[0].weight; sum < half; sum += ratios[at].weight) {
        at++;
    }
    return ratios[at].pace;
}

/* Returns how many ratios, from the first on, weigh as much as PACE_WORKS works. */
static size_t count_newest(const struct ratio *ratios, size_t count)
{
    int128 sum = 0;
    int128 squares = 0;
    size_t newest = 0;
    for (size_t i = 0; i < count; i++) {
        sum += ratios[i].weight;
        squares += ratios[i].weight * ratios[i].weight;
    }
    assert(sum > 0); /* no time is 0 */
    const int128 most = squares / sum * PACE_WORKS;
    for (sum = 0; newest < count && sum < most; newest++) {
        sum += ratios[newest].weight;
    }
    return newest;
}

static uint32_t pace_of(const struct placing *placing, uint32_t device)
{
    size_t count = 0;
    if (placing->shared[device] < PACE_TOLD) {
        return FINE;
    }
    for (size_t i = placing->of_device[device]; i < placing->of_device[device + 1]; i++) {
        const struct pace_row *row = &placing->by_device[i];
        if (placing->base_samples[row->work] > 0) {
            const int64_t base_ns = placing->base_ns[row->work];
            const int64_t least_ns = row->median_ns < base_ns ? row->median_ns : base_ns;
            const int64_t pace = scaled(row->median_ns, FINE, base_ns);
            placing->ratios[count++] =
                (struct ratio){.pace = pace < FINE_MOST ? (uint32_t)pace : FINE_MOST,
                               .weight = least_ns < WEIGHT_MOST ? least_ns : WEIGHT_MOST};
        }
    }
    return median_of(placing->ratios, count_newest(placing->ratios, count));
}

/* Adds the samples of a work to `shared` of all its devices. The work has just been measured on its
 * first placed device. */
static void share(struct placing *placing, uint32_t work)
{
    for (size_t i = placing->of_work[work]; i < placing->of_work[work + 1]; i++) {
        const struct pace_row *row = &placing->by_work[i];
        uint64_t *shared = &placing->shared[row->device];
        const bool was_told = *shared >= PACE_TOLD;
        *shared += row->samples;
        if (!placing->is_placed[row->device] && !was_told && *shared >= PACE_TOLD) {
            placing->order[placing->order_count++].device = row->device;
        }
    }
}

static void place(struct placing *placing, uint32_t device, uint32_t pace)
{
    const bool is_compared = placing->shared[device] >= PACE_TOLD;
    placing->is_placed[device] = true;
    for (size_t i = placing->of_device[device]; i < placing->of_device[device + 1]; i++) {
        const struct pace_row *row = &placing->by_device[i];
        uint64_t *samples = &placing->base_samples[row->work];
        int64_t *base_ns = &placing->base_ns[row->work];
        if (row->samples == 0 || (*samples > 0 && !is_compared)) {
            continue;
        }
        if (*samples == 0) {
            share(placing, row->work);
        }
        const int64_t own_ns = scaled(row->median_ns, FINE, pace);
        *base_ns = (int64_t)(((int128)*base_ns * *samples + (int128)own_ns * row->samples) /
                             (int128)(*samples + row->samples));
        *samples += row->samples;
    }
}

/* Places the devices from `from` on, and those that become comparable, until none is left. In each
 * round, devices that share most samples come first. Their paces go to `ret_paces` in FINE. */
static void place_rounds(struct placing *placing, uint32_t from, uint32_t *ret_paces)
{
    while (from < placing->order_count) {
        const uint32_t end = placing->order_count;
        for (uint32_t i = from; i < end; i++) {
            placing->order[i].samples = placing->shared[placing->order[i].device];
        }
        qsort(placing->order + from, end - from, sizeof *placing->order, most_first);
        for (; from < end; from++) {
            const uint32_t device = placing->order[from].device;
            ret_paces[device] = pace_of(placing, device);
            place(placing, device, ret_paces[device]);
        }
    }
}

/* Converts the paces of a group, which begins at `from`, from FINE of its first device to PACE_ONE
 * of its fastest. */
static void settle(const struct placing *placing, uint32_t from, uint32_t *paces)
{
    uint32_t least = FINE_MOST;
    for (uint32_t i = from; i < placing->order_count; i++) {
        const uint32_t pace = paces[placing->order[i].device];
        least = pace < least ? pace : least;
    }
    for (uint32_t i = from; i < placing->order_count; i++) {
        uint32_t *pace = &paces[placing->order[i].device];
        const int64_t found = scaled(*pace, PACE_ONE, least);
        const bool is_off = found * 100 > (100 + PACE_OFF_PERCENT) * (int64_t)PACE_ONE;
        *pace = !is_off ? PACE_ONE : found < PACE_MOST ? (uint32_t)found : PACE_MOST;
    }
}

bool pace_find(const struct pace_row *rows, size_t count, uint32_t work_count,
               uint32_t device_count, uint32_t *ret_paces)
{
    struct placing placing;
    for (uint32_t d = 0; d < device_count; d++) {
        ret_paces[d] = PACE_ONE;
    }
    if (count == 0) {
        return true;
    }
    const bool has_room = init(&placing, rows, count, work_count, device_count);
    for (uint32_t i = 0; has_room && i < device_count; i++) {
        const uint32_t first = placing.order_count;
        if (!placing.is_placed[placing.firsts[i].device]) {
            placing.order[placing.order_count++].device = placing.firsts[i].device;
            place_rounds(&placing, first, ret_paces);
            settle(&placing, first, ret_paces);
        }
    }
    fini(&placing);
    return has_room;
}
