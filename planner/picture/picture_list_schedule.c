#include "planner/picture/picture_list_schedule.h"

#include "base/checked.h"

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
    picture_sort_bars(ret_bars, schedule->subtasks);
}
