#include "planner/picture/picture_list_schedule.h"

#include "base/checked.h"

#include <stdlib.h>

static int by_group_and_start(const void *a, const void *b)
{
    const struct picture_bar *left = a;
    const struct picture_bar *right = b;
    if (left->group != right->group) {
        return left->group < right->group ? -1 : 1;
    }
    if (left->from != right->from) {
        return left->from < right->from ? -1 : 1;
    }
    return left->number < right->number ? -1 : left->number > right->number;
}

static int64_t added(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

void picture_list_schedule(const struct list_schedule *schedule, uint32_t first_group,
                           int64_t begin_ns, struct picture_bar *ret_bars)
{
    for (uint32_t i = 0; i < schedule->subtasks; i++) {
        const struct list_schedule_run *run = &schedule->runs[i];
        ret_bars[i] = (struct picture_bar){.group = first_group + run->device,
                                           .lane = run->lane,
                                           .number = i,
                                           .from = added(begin_ns, run->start_ns),
                                           .until = added(begin_ns, run->end_ns)};
    }
    qsort(ret_bars, schedule->subtasks, sizeof *ret_bars, by_group_and_start);
}
