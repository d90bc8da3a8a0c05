#include "planner/picture/picture_list_schedule.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

static const struct picture_words words = {
    .thing = "subtask", .things = "subtasks", .more_group = "devices"};

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

struct picture *picture_of_list_schedule(const struct list_schedule *schedule,
                                         const struct picture_device *devices,
                                         const char *const *names)
{
    struct picture *picture = calloc(1, sizeof *picture);
    if (picture == NULL) {
        return NULL;
    }
    *picture = (struct picture){.title = "",
                                .line = "",
                                .note = "Planned: nothing has run. Times are estimates.",
                                .words = &words,
                                .names = names,
                                .until = schedule->makespan_ns,
                                .span = schedule->makespan_ns,
                                .expected = -1,
                                .group_count = schedule->device_count,
                                .bar_count = schedule->subtasks};
    picture->groups = calloc(picture->group_count + 1, sizeof *picture->groups);
    picture->bars = calloc(picture->bar_count + 1, sizeof *picture->bars);
    if (picture->groups == NULL || picture->bars == NULL) {
        picture_destroy(&picture);
        return NULL;
    }
    for (size_t i = 0; i < schedule->device_count; i++) {
        struct picture_group *group = &picture->groups[i];
        memcpy(group->label, devices[i].label, sizeof group->label);
        group->lanes = schedule->uses[i].lanes;
        group->is_simulated = devices[i].is_simulated;
    }
    picture_list_schedule(schedule, 0, 0, picture->bars);
    return picture;
}
