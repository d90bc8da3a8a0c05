/* planner/picture/picture_list_schedule.h draws a list schedule as bars. Pure. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_LIST_SCHEDULE_H
#define BOURSE_PLANNER_PICTURE_PICTURE_LIST_SCHEDULE_H

#include "planner/picture/picture.h"
#include "planner/schedule/list_schedule.h"

/* Writes one bar for each subtask, sorted by device and start; `ret_bars` has room for all.
 * Device 0 is group `first_group`, and the schedule begins at `begin_ns`. */
void picture_list_schedule(const struct list_schedule *schedule, uint32_t first_group,
                           int64_t begin_ns, struct picture_bar *ret_bars);

#endif
