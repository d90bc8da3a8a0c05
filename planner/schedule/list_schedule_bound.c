/* This file computes the lower bound of a list schedule (list_schedule.h). */
#include "planner/schedule/list_schedule_internal.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>

uint64_t list_schedule_lanes(const struct list_schedule_input *input, size_t number)
{
    const struct list_schedule_part *part = &input->parts[number];
    const uint64_t most = part->at_most > 0 ? list_schedule_width(part, part->at_most) : UINT64_MAX;
    uint64_t lanes = 0;
    for (size_t i = 0; i < input->device_count; i++) {
        const bool fits = (input->devices[i].parts >> number & 1) != 0;
        lanes += fits ? list_schedule_width(part, input->devices[i].slots) : 0;
    }
    return lanes < most ? lanes : most;
}

void list_schedule_least(const struct list_schedule_input *input, uint32_t count,
                         int64_t *ret_least_ns)
{
    uint32_t task = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        bool is_there[LIST_SCHEDULE_CLASSES] = {false};
        for (size_t d = 0; d < input->device_count; d++) {
            const struct list_schedule_device *device = &input->devices[d];
            is_there[device->of_class] =
                is_there[device->of_class] ||
                ((device->parts >> i & 1) != 0 && device->slots >= input->parts[i].slots);
        }
        for (uint32_t k = 0; k < input->parts[i].subtasks; k++, task++) {
            ret_least_ns[task] = INT64_MAX;
            for (uint32_t c = 0; c < list_schedule_classes(input); c++) {
                const int64_t takes_ns = list_schedule_takes(input, count, task, c);
                ret_least_ns[task] =
                    is_there[c] && takes_ns < ret_least_ns[task] ? takes_ns : ret_least_ns[task];
            }
        }
    }
}

/* Computes the longest path from start to end. Returns false when memory is short, or the path is
 * too long. */
static bool longest_path(const struct list_schedule_input *input, const int64_t *least_ns,
                         uint32_t count, int64_t *ret_longest_ns)
{
    int64_t *path_ns = calloc(count, sizeof *path_ns);
    size_t edge = 0;
    bool ok = path_ns != NULL;
    *ret_longest_ns = 0;
    /* Dependencies have lower numbers, so one pass computes the path to each end. */
    for (uint32_t i = 0; ok && i < count; i++) {
        int64_t before_ns = 0;
        for (uint32_t k = 0; input->after_count != NULL && k < input->after_count[i]; k++) {
            const int64_t other_ns = path_ns[input->after[edge++]];
            before_ns = other_ns > before_ns ? other_ns : before_ns;
        }
        ok = checked_add(before_ns, least_ns[i], &path_ns[i]) &&
             path_ns[i] <= LIST_SCHEDULE_TIME_MOST_NS;
        *ret_longest_ns = ok && path_ns[i] > *ret_longest_ns ? path_ns[i] : *ret_longest_ns;
    }
    free(path_ns);
    return ok;
}

/* Returns the bound of one part alone on its lanes: rounds of the shortest subtask, or all its
 * work. */
static int128 part_bound_ns(const struct list_schedule_input *input, const int64_t *takes_ns,
                            size_t number)
{
    const struct list_schedule_part *part = &input->parts[number];
    const uint64_t lanes = list_schedule_lanes(input, number);
    int64_t least_ns = INT64_MAX;
    int128 sum_ns = 0;
    if (part->subtasks == 0) {
        return 0;
    }
    assert(lanes > 0); /* each part has a place */
    for (uint32_t i = 0; i < part->subtasks; i++) {
        least_ns = takes_ns[i] < least_ns ? takes_ns[i] : least_ns;
        sum_ns += takes_ns[i];
    }
    const int128 rounds_ns = (int128)((part->subtasks + lanes - 1) / lanes) * least_ns;
    const int128 work_ns = (sum_ns + lanes - 1) / lanes;
    return rounds_ns > work_ns ? rounds_ns : work_ns;
}

static int128 work_ns(const struct list_schedule_input *input, const int64_t *least_ns)
{
    int128 slot_ns = 0;
    uint64_t slots = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < input->part_count; i++) {
        for (uint32_t k = 0; k < input->parts[i].subtasks; k++) {
            slot_ns += (int128)least_ns[at++] * input->parts[i].slots;
        }
    }
    for (size_t i = 0; i < input->device_count; i++) {
        slots += input->devices[i].parts != 0 ? input->devices[i].slots : 0;
    }
    return slots == 0 ? 0 : (slot_ns + slots - 1) / slots;
}

bool list_schedule_bound(const struct list_schedule_input *input, const int64_t *least_ns,
                         uint32_t count, int64_t *ret_bound_ns)
{
    int64_t longest_ns = 0;
    if (!longest_path(input, least_ns, count, &longest_ns)) {
        return false;
    }
    int128 bound_ns = work_ns(input, least_ns);
    bound_ns = longest_ns > bound_ns ? longest_ns : bound_ns;
    for (size_t i = 0, first = 0; i < input->part_count; i++) {
        const int128 part_ns = part_bound_ns(input, least_ns + first, i);
        bound_ns = part_ns > bound_ns ? part_ns : bound_ns;
        first += input->parts[i].subtasks;
    }
    *ret_bound_ns =
        bound_ns > LIST_SCHEDULE_TIME_MOST_NS ? LIST_SCHEDULE_TIME_MOST_NS : (int64_t)bound_ns;
    return bound_ns <= LIST_SCHEDULE_TIME_MOST_NS;
}
