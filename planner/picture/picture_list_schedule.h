/* planner/picture/picture_list_schedule.h draws a list schedule of a job. Pure. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_LIST_SCHEDULE_H
#define BOURSE_PLANNER_PICTURE_PICTURE_LIST_SCHEDULE_H

#include "planner/picture/picture.h"
#include "planner/schedule/list_schedule.h"

struct picture_device {
    char label[PICTURE_LABEL_SIZE]; /* printable */
    bool is_simulated;
};

/* Creates a picture of the schedule. There is one entry of `devices` for each device of the
 * schedule. `names` are those of the subtasks, or NULL; they belong to the caller and outlive the
 * picture. The caller sets title and line. Returns NULL when memory is short. */
struct picture *picture_of_list_schedule(const struct list_schedule *schedule,
                                         const struct picture_device *devices,
                                         const char *const *names);

/* Writes one bar for each subtask, sorted by device and start; `ret_bars` has room for all.
 * Device 0 is group `first_group`, and the schedule begins at `begin_ns`. */
void picture_list_schedule(const struct list_schedule *schedule, uint32_t first_group,
                           int64_t begin_ns, struct picture_bar *ret_bars);

#endif
