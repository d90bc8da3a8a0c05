/* A list schedule says how the devices on offer would run the subtasks of a job. plan_make makes it
 * the plan of the job (planner/plan/plan_make.h).
 *
 *     0.02  box/cpu #0  |==0==|==3==|=6=|     of what is ready the highest rank goes first,
 *     0.02  box/cpu #1  |==1==|==4==|         on the cheapest slots that are free and fit its part
 *     0.05  far/cpu     |==2==|==5==|
 *
 * These are the rules by which the exchange takes leases and gives out work (online.h), as far as
 * they can be known beforehand. A subtask takes equally long on all devices of a class. All devices
 * begin at once, and none fails. A subtask's inputs are there when the subtasks it waits for have
 * ended. When a subtask takes longer on one class than on another, it goes to the idle lane that
 * would finish it first. Only when no lane is idle does it take unused slots. Subtasks are numbered
 * as they are submitted, and the subtasks of a part follow one another.
 * All figures are integers. */
#ifndef BOURSE_PLANNER_SCHEDULE_LIST_SCHEDULE_H
#define BOURSE_PLANNER_SCHEDULE_LIST_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LIST_SCHEDULE_PARTS = 32,
    LIST_SCHEDULE_DEVICES = 4096,
    LIST_SCHEDULE_SUBTASKS = 1 << 20,
    LIST_SCHEDULE_CLASSES = 16
};

struct list_schedule_part {
    uint32_t subtasks; /* 0: none are left */
    uint32_t slots;    /* slots of one subtask, >= 1 */
    uint32_t at_most;  /* slots at a time; 0: any number */
};

struct list_schedule_device {
    uint32_t slots;
    int64_t price_micro; /* per slot-hour, >= 0 */
    uint32_t parts;      /* bit i: it fits part i */
    uint32_t of_class;   /* below class_count */
};

/* The caller keeps the input; the schedule keeps nothing of it. */
struct list_schedule_input {
    const struct list_schedule_part *parts;
    size_t part_count; /* 1 to LIST_SCHEDULE_PARTS */
    /* Times by class and subtask, >= 1: first all of class 0, then all of class 1. */
    const int64_t *takes_ns;
    uint32_t class_count; /* classes of devices, at most LIST_SCHEDULE_CLASSES; 0: one */
    const uint32_t *rank; /* indexed by subtask; NULL: all are equal */
    /* Subtasks that each subtask waits for: after_count[i] entries of `after`, subtask by subtask,
     * each lower than i. NULL means that no subtask waits. */
    const uint32_t *after_count, *after;
    const struct list_schedule_device *devices; /* the cheapest first */
    size_t device_count;                        /* 1 to LIST_SCHEDULE_DEVICES */
};

struct list_schedule_run { /* one subtask */
    uint32_t device;
    /* Lane of the device, from 0. It runs one subtask at a time, however many slots it has. */
    uint32_t lane;
    int64_t start_ns, end_ns;
};

struct list_schedule {
    struct list_schedule_run *runs; /* indexed by subtask */
    uint32_t *lanes;                /* used lanes, indexed by device */
    uint32_t subtasks;
    size_t device_count;
    int64_t makespan_ns;
    /* Lower bound of the time on these devices. It is the largest of the longest path, the work
     * over all slots, and each part's rounds or work on its lanes. */
    int64_t bound_ns;
};

enum list_schedule_status {
    LIST_SCHEDULE_OK,
    /* A count, a time, a price or a dependency is out of its range. */
    LIST_SCHEDULE_BAD_INPUT,
    LIST_SCHEDULE_TOO_MANY, /* more than LIST_SCHEDULE_SUBTASKS */
    /* A part with subtasks fits no device, or one subtask is wider than its `at_most`. */
    LIST_SCHEDULE_NOWHERE,
    LIST_SCHEDULE_OVERFLOW, /* more time than int64 holds */
    LIST_SCHEDULE_NO_MEMORY,
};

/* Computes the schedule, which the caller owns. Any status but OK gives none. */
enum list_schedule_status list_schedule_make(const struct list_schedule_input *input,
                                             struct list_schedule **ret_schedule);
void list_schedule_destroy(struct list_schedule **self);

/* Finds the single device that would finish first if all subtasks ran there, and its makespan. In
 * each class, the device with most slots stands for all. Returns false when no device can run all
 * of them. */
bool list_schedule_best_single(const struct list_schedule_input *input, size_t *ret_device,
                               int64_t *ret_makespan_ns);

#endif
