/* planner/schedule/deal.h - how what is on offer would run the subtasks of a job: what `plan` shows
 * of a job, what a quote of several parts says it takes, and what `report` draws above what became
 * of it.
 *
 *     0.02  box/cpu #0  |==0==|==3==|=6=|        of what is ready the highest rank goes first,
 *     0.02  box/cpu #1  |==1==|==4==|            on the cheapest slots that are free and fit its part
 *     0.05  far/cpu     |==2==|==5==|
 *
 * These are the rules by which the exchange takes leases and gives out work (online.h), as far as
 * anybody knows beforehand: a subtask takes as long on all devices of a class, all begin at once,
 * none fails, what it needs is there when those that it waits for have ended. Where it takes longer
 * on one class than on another, of the lanes that are idle that one gets it which is done with it
 * first; only where none is, slots that had nothing yet. Subtasks are numbered as they are
 * submitted, those of a part follow one another. Integers only. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_DEAL_H
#define BOURSE_PLANNER_SCHEDULE_DEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEAL_PARTS = 32, DEAL_DEVICES = 4096, DEAL_SUBTASKS = 1 << 20, DEAL_CLASSES = 16 };

struct deal_part {
    uint32_t subtasks; /* 0: it has none left */
    uint32_t slots;    /* of one, >= 1 */
    uint32_t at_most;  /* slots at a time; 0: any number */
};

struct deal_device {
    uint32_t slots;
    int64_t price_micro; /* per slot-hour, >= 0 */
    uint32_t parts;      /* bit i: it fits part i */
    uint32_t of_class;   /* below class_count */
};

/* The caller's; nothing of it is kept. */
struct deal_input {
    const struct deal_part *parts;
    size_t part_count; /* 1 to DEAL_PARTS */
    const int64_t
        *takes_ns;        /* by class and subtask, >= 1: of class 0 all of them, then of class 1 */
    uint32_t class_count; /* of devices, at most DEAL_CLASSES; 0: one */
    const uint32_t *rank; /* by subtask; NULL: all are alike */
    /* Whom each waits for: after_count[i] of `after`, subtask by subtask, each lower than i. NULL:
     * nobody waits. */
    const uint32_t *after_count, *after;
    const struct deal_device *devices; /* the cheapest first */
    size_t device_count;               /* 1 to DEAL_DEVICES */
};

struct deal_run { /* of a subtask */
    uint32_t device;
    uint32_t lane; /* of its device, from 0: one subtask at a time, however many slots it has */
    int64_t start_ns, end_ns;
};

struct deal_use { /* of a device */
    uint32_t subtasks, lanes;
    int64_t busy_ns;    /* of its lanes */
    int64_t slot_ns;    /* of its slots */
    int64_t cost_micro; /* rounded up */
};

struct deal {
    struct deal_run *runs; /* by subtask */
    struct deal_use *uses; /* by device */
    uint32_t subtasks, lanes;
    size_t device_count;
    int64_t makespan_ns;
    int64_t bound_ns; /* on these devices it cannot be done sooner: the longest way, the work over
                         all slots, a part's rounds or work on its lanes */
    int64_t busy_ns, cost_micro;
};

enum deal_status {
    DEAL_OK,
    DEAL_BAD_INPUT, /* a count, a time, a price or who waits for whom is out of its range */
    DEAL_TOO_MANY,  /* more than DEAL_SUBTASKS */
    DEAL_NOWHERE,   /* of a part with subtasks, none fits a device, or its width exceeds what it may
                       have at a time */
    DEAL_OVERFLOW,  /* more time or money than int64 holds */
    DEAL_NO_MEMORY,
};

/* The caller owns the deal. Any status but OK gives none. */
enum deal_status deal_make(const struct deal_input *input, struct deal **ret_deal);
void deal_destroy(struct deal **self);

/* The device that would be done first if all ran there, and when; of devices of a class that with
 * most slots stands for all. False: none can run all of it. */
bool deal_best_single(const struct deal_input *input, size_t *ret_device, int64_t *ret_makespan_ns);

/* busy_ns over all lanes for all of the time, in millionths. */
int64_t deal_share_ppm(const struct deal *deal);

#endif
