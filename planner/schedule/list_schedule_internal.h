/* This header holds what the files of list_schedule.h share. */
#ifndef BOURSE_PLANNER_SCHEDULE_LIST_SCHEDULE_INTERNAL_H
#define BOURSE_PLANNER_SCHEDULE_LIST_SCHEDULE_INTERNAL_H

#include "planner/schedule/list_schedule.h"

#define LIST_SCHEDULE_TIME_MOST_NS (INT64_MAX / 4)

static inline uint32_t list_schedule_classes(const struct list_schedule_input *input)
{
    return input->class_count == 0 ? 1 : input->class_count;
}

/* Returns the time of a task on a class; `count` is the number of subtasks. */
static inline int64_t list_schedule_takes(const struct list_schedule_input *input, uint32_t count,
                                          uint32_t task, uint32_t of_class)
{
    return input->takes_ns[(size_t)of_class * count + task];
}

/* Returns how many subtasks of a part run at once on so many slots. */
static inline uint32_t list_schedule_width(const struct list_schedule_part *part, uint32_t slots)
{
    return slots / part->slots;
}

/* Returns how many subtasks of a part may run at once on all its devices. */
uint64_t list_schedule_lanes(const struct list_schedule_input *input, size_t number);
/* Computes the time of each subtask on the class where it takes least. */
void list_schedule_least(const struct list_schedule_input *input, uint32_t count,
                         int64_t *ret_least_ns);
/* Computes the bound from these times. Returns false when memory is short, or the bound is above
 * LIST_SCHEDULE_TIME_MOST_NS. */
bool list_schedule_bound(const struct list_schedule_input *input, const int64_t *least_ns,
                         uint32_t count, int64_t *ret_bound_ns);

#endif
