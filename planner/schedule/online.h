/* planner/schedule/online.h - how a job's work goes on while it runs: which task is first, which
 * lane takes it, who takes work from whom, what has run too long, and when a prediction has failed.
 *
 * A lane runs one task at a time. What is known of it are two times, as measured so far:
 *
 *     lane 1 |######=====|=====|          load: until all that it was given is done
 *     lane 2 |###==|                      takes: what one task more would take there
 *            now                          finish of one task more = load + takes
 *
 * These are the rules of exchange/ that depend on time, put where a planner's other rules are, so
 * that there is one of each: the exchange asks them with every result, and what they say enters its
 * state. Therefore integers only: this file is compiled without floating point. No memory, no
 * state. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_ONLINE_H
#define BOURSE_PLANNER_SCHEDULE_ONLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONLINE_NS_PER_MS INT64_C(1000000)
/* In flight in a lane: this much work, to hide the way there and back. */
#define ONLINE_WINDOW_NS (20 * ONLINE_NS_PER_MS)
/* Taking work back and sending it elsewhere is not worth less than this. */
#define ONLINE_MOVE_NS (50 * ONLINE_NS_PER_MS)
/* Nothing that ran less is started once more elsewhere. */
#define ONLINE_PATIENCE_NS (1000 * ONLINE_NS_PER_MS)
#define ONLINE_NEVER INT64_MAX
#define ONLINE_NONE SIZE_MAX

enum {
    ONLINE_WINDOW_LEAST = 2, /* tasks in flight in a lane, */
    ONLINE_WINDOW_MOST =
        256, /* reached below 80 us only: by no-ops, not by what starts a process */
    ONLINE_WINDOW_JOB_MOST = 2048, /* of all lanes of a job together, beyond */
    ONLINE_WINDOW_ALWAYS = 64,     /* in each */
    ONLINE_SLACK_PERCENT = 20,     /* above or below: no longer level, no longer as predicted */
    ONLINE_SAMPLES = 4,            /* without which nothing is known of what tasks take */
    ONLINE_PATIENCE_TIMES = 2,     /* as long as the others took on average */
    ONLINE_BELIEF_TIMES = 3,       /* more or less than was said: nothing more is believed of it */
};

/* ---- priorities */

struct online_task {
    uint32_t rank; /* upward rank: the longest way from its start to the end of the job; of one that
                      nobody waits for what it takes */
    uint32_t index;
};
/* The higher rank goes first; of equal ones the lower index. */
bool online_goes_before(struct online_task a, struct online_task b);

/* ---- lanes */

struct online_lane {
    int64_t load_ns;  /* >= 0; ONLINE_NEVER: it may not take any */
    int64_t takes_ns; /* >= 0; ONLINE_NEVER: it may not take any */
    bool can_give;    /* the last task of its load has not begun, and may be taken back */
};

/* How long a lane still runs what it has run for `so_far_ns`: what is left of what a task takes
 * there. One that is overdue is supposed to be half way; of what nobody knows (0), 0. */
int64_t online_left_ns(int64_t takes_ns, int64_t so_far_ns);

/* When one more task of that lane would be done; ONLINE_NEVER where it may not take any. */
int64_t online_finish_ns(const struct online_lane *lane);

/* Where one more task would be done first: of equals the lane with the smaller load, then the
 * first. ONLINE_NONE: nowhere. */
size_t online_earliest(const struct online_lane *lanes, size_t count);

/* How many tasks a lane may have in flight, where one takes `takes_ns` (0: unknown), the job has so
 * many lanes, and so many tasks wait: enough work to hide the way there and back, but no more than
 * its share of half of what waits (guided self-scheduling: Polychronopoulos, Kuck, IEEE TC
 * C-36(12), 1987), so that no lane ends long after the others. At least 1. */
uint32_t online_depth(int64_t takes_ns, uint32_t lanes, uint32_t waiting);

/* ---- balance, where nothing waits any more */

/* The lane with the largest load that can give a task; of equals the first. ONLINE_NONE: none
 * can. */
size_t online_fullest(const struct online_lane *lanes, size_t count);

/* Who takes one, idle or not: of the lanes whose load is more than ONLINE_SLACK_PERCENT below the
 * mean of all that have one, that where it would be done first, as above. ONLINE_NONE: nobody. */
size_t online_thief(const struct online_lane *lanes, size_t count);

/* Whom `thief` takes a task from: the lane with the largest load that can give one, if it is more
 * than ONLINE_SLACK_PERCENT above the mean of all that have one, the thief is as much below it, and
 * the task would be done there ONLINE_MOVE_NS before it would be where it is; of equals the first.
 * ONLINE_NONE: nobody.
 *
 * Never a loop: the thief's load with the task is below the victim's without having given it. So
 * each time the loads, sorted from the largest, become less in lexicographic order, and with the
 * same `takes_ns` there are only so many of them. */
size_t online_victim(const struct online_lane *lanes, size_t count, size_t thief);

/* ---- what was not foreseen */

/* How long a task may run before it is started once more elsewhere, where `samples` tasks took
 * `mean_ns` on average; ONLINE_NEVER while they are too few. */
int64_t online_patience_ns(int64_t mean_ns, uint64_t samples);

struct online_late {
    int64_t said_ns;  /* what a task is expected to take; 0: nothing was said */
    int64_t usual_ns; /* what tasks took on the lane where it runs; 0: unknown */
    int64_t there_ns; /* what tasks took on the lane that is idle; 0: unknown */
};
/* The same while samples are too few, as where each of two lanes has one large task:
 * ONLINE_SLACK_PERCENT longer than what it was expected to take, and than it would take on the lane
 * that is idle; longer by ONLINE_MOVE_NS at least. What was said counts as an expectation where the
 * idle lane has borne it out, within ONLINE_BELIEF_TIMES; else ONLINE_NEVER, for nobody wants to
 * pay twice for work because of a guess. */
int64_t online_late_ns(const struct online_late *late);

/* Of tasks that are done: what was said of them, and what they took, on average; 0: there are
 * none. */
struct online_pace {
    int64_t said_ns, took_ns;
};
/* What a task takes at that pace; 0 where there is none, ONLINE_NEVER beyond all time. */
int64_t online_at_pace_ns(int64_t said_ns, struct online_pace pace);

struct online_own {
    int64_t said_ns;        /* of the task itself; 0: nothing */
    struct online_pace all; /* of all its siblings that are done, */
    uint64_t samples;       /* so many, and */
    struct online_pace here,
        there; /* of those on the lane where it runs, and on the lane that is idle */
};
/* The same where each task has an expectation of its own, because they are not alike: what others
 * took says how fast they are done, not how long this one is. With ONLINE_SAMPLES the patience is
 * that of a mean that is the task's own at the pace of all; with fewer it is late as above, at the
 * pace here and there. Never before what was said of it: tasks that were done sooner are no
 * evidence of one that is not like them. */
int64_t online_own_late_ns(const struct online_own *own);

struct online_done {        /* results of a job, or of a part of it */
    struct online_pace sum; /* of all of them: what was said, and what they took */
    uint64_t samples;
    int64_t all_ns;    /* what was said of all its subtasks, done or not, and */
    uint64_t subtasks; /* how many these are */
};
/* Whether they say something of the rest: they are as much work as ONLINE_SAMPLES mean subtasks, or
 * are off by more than ONLINE_SLACK_PERCENT of all. A millisecond more for some small files says
 * nothing of the large one that is left. */
bool online_is_weighty(const struct online_done *done);
/* The pace at which the rest is expected to go: theirs, where they are ONLINE_SAMPLES and weighty;
 * else as was said. */
struct online_pace online_pace_of_rest(const struct online_done *done);

/* What is left of a task that has run for `so_far_ns`. One that is overdue is supposed to take as
 * long again as it is: so it counts down, and no jump tells that it will be late. */
int64_t online_ends_in_ns(int64_t takes_ns, int64_t so_far_ns);

struct online_rest {
    int64_t work_ns; /* what all that is not done takes, without what is done of those that run */
    int64_t way_ns;  /* the longest way from what runs or may begin to the end */
    uint32_t lanes, open; /* that it has, and tasks that are not done */
};
/* How long it takes: no less than the work over the lanes that have a task, and the longest way. */
int64_t online_rest_ns(const struct online_rest *rest);

/* Whether what was measured is more than ONLINE_SLACK_PERCENT of the prediction away from it:
 * whoever planned with it should plan anew. Never while samples are too few, or nothing was
 * predicted (0). */
bool online_drifts(int64_t predicted_ns, int64_t measured_ns, uint64_t samples);

#endif
