#include "planner/pace.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ratio {
    uint32_t pace;
    int128 weight;
};

struct placing {
    size_t count;
    uint32_t device_count;
    struct pace_row *by_work, *by_device;
    size_t *of_work, *of_device; /* where the rows of each begin there; one more for the end */
    int64_t *base_ns;            /* by work: what it takes on the base, */
    uint64_t *base_samples;      /* by so many; 0: it was measured on no device that was placed */
    uint64_t *shared;            /* by device: samples of other work than that */
    uint64_t *total;
    bool *is_placed;
    struct ratio *ratios;
};

/* floor(a * b / divisor), of what is above 0 at least 1, and at most INT64_MAX. */
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
    return (left->device > right->device) - (left->device < right->device);
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
    free(placing->total);
    free(placing->is_placed);
    free(placing->ratios);
}

/* False: no memory. */
static bool init(struct placing *placing, const struct pace_row *rows, size_t count,
                 uint32_t work_count, uint32_t device_count)
{
    *placing = (struct placing){.count = count,
                                .device_count = device_count,
                                .by_work = calloc(count, sizeof *rows),
                                .by_device = calloc(count, sizeof *rows),
                                .of_work = calloc(work_count + 1U, sizeof(size_t)),
                                .of_device = calloc(device_count + 1U, sizeof(size_t)),
                                .base_ns = calloc(work_count, sizeof(int64_t)),
                                .base_samples = calloc(work_count, sizeof(uint64_t)),
                                .shared = calloc(device_count, sizeof(uint64_t)),
                                .total = calloc(device_count, sizeof(uint64_t)),
                                .is_placed = calloc(device_count, sizeof(bool)),
                                .ratios = calloc(count, sizeof(struct ratio))};
    if (placing->by_work == NULL || placing->by_device == NULL || placing->of_work == NULL ||
        placing->of_device == NULL || placing->base_ns == NULL || placing->base_samples == NULL ||
        placing->shared == NULL || placing->total == NULL || placing->is_placed == NULL ||
        placing->ratios == NULL) {
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
        placing->total[rows[i].device] += rows[i].samples;
    }
    for (uint32_t w = 0; w < work_count; w++) {
        placing->of_work[w + 1] += placing->of_work[w];
    }
    for (uint32_t d = 0; d < device_count; d++) {
        placing->of_device[d + 1] += placing->of_device[d];
    }
    return true;
}

/* ---------------------------------------------------------------- one by one */

/* Of those that are not placed that which shares most with those that are, else that was measured most. There is one. */
static uint32_t next_device(const struct placing *placing)
{
    uint32_t best = placing->device_count;
    uint64_t best_shared = 0;
    for (uint32_t d = 0; d < placing->device_count; d++) {
        if (placing->is_placed[d]) {
            continue;
        }
        const uint64_t shared = placing->shared[d] >= PACE_TOLD ? placing->shared[d] : 0;
        if (best == placing->device_count || shared > best_shared ||
            (shared == best_shared && placing->total[d] > placing->total[best])) {
            best = d;
            best_shared = shared;
        }
    }
    return best;
}

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

static uint32_t pace_of(const struct placing *placing, uint32_t device)
{
    size_t count = 0;
    if (placing->shared[device] < PACE_TOLD) {
        return PACE_ONE;
    }
    for (size_t i = placing->of_device[device]; i < placing->of_device[device + 1]; i++) {
        const struct pace_row *row = &placing->by_device[i];
        if (placing->base_samples[row->work] > 0) {
            const int64_t base_ns = placing->base_ns[row->work];
            const int64_t least_ns = row->median_ns < base_ns ? row->median_ns : base_ns;
            const int64_t pace = scaled(row->median_ns, PACE_ONE, base_ns);
            placing->ratios[count++] =
                (struct ratio){.pace = pace < PACE_MOST ? (uint32_t)pace : PACE_MOST,
                               .weight = (int128)least_ns * row->samples};
        }
    }
    return median_of(placing->ratios, count);
}

/* What is the first of a work to be measured on a device that is placed is shared from now on with all others. */
static void share(struct placing *placing, uint32_t work)
{
    for (size_t i = placing->of_work[work]; i < placing->of_work[work + 1]; i++) {
        const struct pace_row *row = &placing->by_work[i];
        placing->shared[row->device] += row->samples;
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
        const int64_t own_ns = pace_base_ns(row->median_ns, pace);
        *base_ns = (int64_t)(((int128)*base_ns * *samples + (int128)own_ns * row->samples) /
                             (int128)(*samples + row->samples));
        *samples += row->samples;
    }
}

static bool is_off(uint32_t pace)
{
    const uint64_t percent = UINT64_C(100) * pace / PACE_ONE;
    return percent > 100 + PACE_OFF_PERCENT || percent < 100 - PACE_OFF_PERCENT;
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
        const uint32_t device = next_device(&placing);
        const uint32_t pace = pace_of(&placing, device);
        place(&placing, device, pace);
        ret_paces[device] = is_off(pace) ? pace : PACE_ONE;
    }
    fini(&placing);
    return has_room;
}
