/* planner/picture/picture_deal.h draws the dealt subtasks of a job as bars. Pure. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_DEAL_H
#define BOURSE_PLANNER_PICTURE_PICTURE_DEAL_H

#include "planner/picture/picture.h"
#include "planner/schedule/deal.h"

/* Writes one bar for each subtask, sorted by device and start; `ret_bars` has room for all.
 * Device 0 is group `first_group`, and the deal begins at `begin_ns`. */
void picture_deal(const struct deal *deal, uint32_t first_group, int64_t begin_ns,
                  struct picture_bar *ret_bars);

#endif
