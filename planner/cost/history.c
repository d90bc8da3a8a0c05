#include "planner/cost/history.h"

#include "base/checked.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

bool history_add(struct history *history, int64_t sample)
{
    if (sample <= 0) {
        return false;
    }
    history->samples[history->next] = sample;
    history->next = (history->next + 1) % HISTORY_SAMPLES;
    history->count += history->count < HISTORY_SAMPLES;
    return true;
}

/* Insertion sort is enough for so few values. */
static void sort(int64_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        int64_t value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--) {
            values[at] = values[at - 1];
        }
        values[at] = value;
    }
}

static int64_t median_of(const int64_t *sorted, uint32_t count)
{
    int64_t low = sorted[(count - 1) / 2];
    return low + (sorted[count / 2] - low) / 2;
}

/* Returns three standard deviations, estimated by MAD. */
static int128 allowed_distance(const int64_t *sorted, uint32_t count, int64_t median)
{
    int64_t distances[HISTORY_KEEP_MOST];
    for (uint32_t i = 0; i < count; i++) {
        distances[i] = sorted[i] > median ? sorted[i] - median : median - sorted[i];
    }
    sort(distances, count);
    int64_t mad = median_of(distances, count);
    int64_t least = median / 50;
    return (int128)(mad > least ? mad : least) * 3 * 14826 / 10000;
}

uint32_t history_keep(const int64_t *sorted, uint32_t count, uint32_t *ret_first)
{
    assert(count <= HISTORY_KEEP_MOST);
    *ret_first = 0;
    if (count < HISTORY_DOUBTED) {
        return count;
    }
    int64_t median = median_of(sorted, count);
    int128 allowed = allowed_distance(sorted, count, median);
    uint32_t first = 0;
    uint32_t end = count;
    while (median - sorted[first] > allowed) {
        first++;
    }
    while (sorted[end - 1] - median > allowed) {
        end--;
    }
    uint32_t outliers = count - (end - first);
    bool is_mode = outliers > count / HISTORY_OUTLIER_SHARE;
    *ret_first = is_mode ? 0 : first;
    return is_mode ? count : end - first;
}

struct history_summary history_summarise(const struct history *history)
{
    int64_t sorted[HISTORY_SAMPLES];
    struct history_summary summary = {.count = 0};
    uint32_t first = 0;
    assert(history->count <= HISTORY_SAMPLES);
    if (history->count == 0) {
        return summary;
    }
    memcpy(sorted, history->samples, history->count * sizeof sorted[0]);
    sort(sorted, history->count);
    summary.count = history_keep(sorted, history->count, &first);
    summary.outliers = history->count - summary.count;
    summary.median = median_of(sorted + first, summary.count);
    if (summary.count >= HISTORY_P90_LEAST) {
        summary.p90 = sorted[first + (9 * summary.count + 9) / 10 - 1];
    }
    return summary;
}

int64_t history_blend(const struct history_summary *summary, int64_t model)
{
    assert(model >= 0);
    if (summary->count == 0 || model == 0) {
        return summary->count == 0 ? model : summary->median;
    }
    int128 weight = (int128)summary->count + HISTORY_MODEL_WEIGHT;
    int128 sum = (int128)summary->count * summary->median + (int128)HISTORY_MODEL_WEIGHT * model;
    return (int64_t)((sum + weight - 1) / weight); /* between the two, so it fits */
}
