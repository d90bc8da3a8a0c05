/* The online rules say how a job's work goes on while it runs. They choose the next task, its lane,
 * the lane that takes work from another, and the tasks that have run too long. They also say when a
 * prediction has failed.
 *
 * A lane runs one task at a time. Two times are known of a lane, as measured so far:
 *
 *    lane 1 |######=====|=====|          load: until all work given to the lane is done
 *    lane 2 |###==|                      takes: time of one task more on the lane
 *           now                          finish of one task more = load + takes
 *
 * These are the rules of exchange/ that depend on time. They stand beside a planner's other rules,
 * so that there is one of each. The exchange applies them with every result, and the answers enter
 * its state. Therefore this file uses integers only, and is compiled without floating point. No
 * memory, no state. */
#ifndef BOURSE_PLANNER_SCHEDULE_ONLINE_H
#define BOURSE_PLANNER_SCHEDULE_ONLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONLINE_NS_PER_MS INT64_C(1000000)
/* Work in flight in a lane, enough to hide the round trip. */
#define ONLINE_WINDOW_NS (20 * ONLINE_NS_PER_MS)
/* The least gain for which work is taken back and sent elsewhere. */
#define ONLINE_MOVE_NS (50 * ONLINE_NS_PER_MS)
/* The least running time after which a task may be started once more elsewhere. */
#define ONLINE_PATIENCE_NS (1000 * ONLINE_NS_PER_MS)
#define ONLINE_NEVER INT64_MAX
#define ONLINE_NONE SIZE_MAX

enum {
    /* Least and most tasks in flight in a lane. The most is reached below 80 us a task, by no-ops
     * and not by tasks that start a process. */
    ONLINE_WINDOW_LEAST = 2,
    ONLINE_WINDOW_MOST = 256,
    /* Most tasks in flight in all lanes of a job, beyond ONLINE_WINDOW_ALWAYS in each lane. */
    ONLINE_WINDOW_JOB_MOST = 2048,
    ONLINE_WINDOW_ALWAYS = 64,
    /* Tolerance above or below: beyond it, loads are not level and times not as predicted. */
    ONLINE_SLACK_PERCENT = 20,
    /* Samples below which the time of tasks counts as unknown. */
    ONLINE_SAMPLES = 4,
    ONLINE_PATIENCE_TIMES = 2, /* multiple of the mean time of the others */
    /* Factor beyond which a stated time is not believed at all. */
    ONLINE_BELIEF_TIMES = 3,
};

/* ---- priorities */

struct online_task {
    /* Upward rank: the longest path from the task's start to the end of the job. A task without
     * successors has its own time. */
    uint32_t rank;
    uint32_t index;
};
/* Returns true when `a` goes first: the higher rank, or the lower index at equal ranks. */
bool online_goes_before(struct online_task a, struct online_task b);

/* ---- lanes */

struct online_lane {
    int64_t load_ns;  /* >= 0; ONLINE_NEVER: it may take no task */
    int64_t takes_ns; /* >= 0; ONLINE_NEVER: it may take no task */
    /* The last task of its load has not begun and may be taken back. */
    bool can_give;
};

/* Returns the time that remains of a task that has run for `so_far_ns`. An overdue task counts as
 * half done. The result is 0 when the time is unknown (0). */
int64_t online_left_ns(int64_t takes_ns, int64_t so_far_ns);

/* Returns when one more task of the lane would be done. Returns ONLINE_NEVER when the lane may take
 * none. */
int64_t online_finish_ns(const struct online_lane *lane);

/* Returns the lane where one more task would be done first. Among equals it is the lane with the
 * smaller load, then the first. Returns ONLINE_NONE when no lane may take one. */
size_t online_earliest(const struct online_lane *lanes, size_t count);

/* Returns how many tasks a lane may have in flight, at least 1. `takes_ns` is the time of one task
 * (0: unknown), and `waiting` counts the tasks that wait. The number is enough to hide the round
 * trip, but no more than the lane's share of half of the waiting tasks. So no lane ends long after
 * the others (guided self-scheduling: Polychronopoulos, Kuck, IEEE TC C-36(12), 1987). */
uint32_t online_depth(int64_t takes_ns, uint32_t lanes, uint32_t waiting);

/* ---- balance, after the last task has left the queue */

/* Returns the lane with the largest load that can give a task, the first among equals. Returns
 * ONLINE_NONE when none can. */
size_t online_fullest(const struct online_lane *lanes, size_t count);

/* Returns the lane that takes a task from another, idle or not. Candidates are lanes whose load is
 * more than ONLINE_SLACK_PERCENT below the mean of all that have one. The candidate that would
 * finish the task first wins, with ties as above. Returns ONLINE_NONE when there is no
 * candidate. */
size_t online_thief(const struct online_lane *lanes, size_t count);

/* Returns the lane that gives a task to `thief`. It is the lane with the largest load that can give
 * one, the first among equals. Its load is more than ONLINE_SLACK_PERCENT above the mean of all
 * that have one, and the thief's load is as much below. The thief must also finish the task
 * ONLINE_MOVE_NS earlier. Returns ONLINE_NONE when there is no such lane.
 *
 * Moves never loop. The thief's load with the task is below the victim's load before the move. So
 * each move lowers the sorted loads in lexicographic order. With the same `takes_ns` there are only
 * finitely many of them. */
size_t online_victim(const struct online_lane *lanes, size_t count, size_t thief);

/* Returns false when online_victim() surely names no lane of so many tasks, the one that runs among
 * them, of which none takes or has taken longer. */
bool online_may_give(uint32_t tasks, int64_t longest_ns);

/* ---- late tasks */

/* Returns how long a task may run before it is started once more elsewhere, when `samples` tasks
 * took `mean_ns` on average. Returns ONLINE_NEVER while the samples are too few. */
int64_t online_patience_ns(int64_t mean_ns, uint64_t samples);

struct online_late {
    int64_t said_ns;  /* stated time of the task; 0: none was stated */
    int64_t usual_ns; /* time of tasks on the lane where it runs; 0: unknown */
    int64_t there_ns; /* time of tasks on the idle lane; 0: unknown */
};
/* Returns the same patience while samples are too few, as when each of two lanes has one large
 * task. The task must run ONLINE_SLACK_PERCENT longer than expected and than on the idle lane, and
 * longer by at least ONLINE_MOVE_NS. A stated time counts as an expectation only if the idle lane
 * confirms it within ONLINE_BELIEF_TIMES. Otherwise the result is ONLINE_NEVER, since a guess does
 * not justify paying twice for work. */
int64_t online_late_ns(const struct online_late *late);

/* Mean stated and measured times of finished tasks; 0 means that there are none. */
struct online_pace {
    int64_t said_ns, took_ns;
};
/* Returns the time of a task at that pace. Returns 0 without a pace, and ONLINE_NEVER on
 * overflow. */
int64_t online_at_pace_ns(int64_t said_ns, struct online_pace pace);

struct online_own {
    int64_t said_ns; /* stated for the task itself; 0: nothing */
    /* Pace of all finished siblings, and how many they are. */
    struct online_pace all;
    uint64_t samples;
    /* Paces of the siblings on the lane where the task runs, and on the idle lane. */
    struct online_pace here, there;
};
/* Returns the same patience where each task has an expectation of its own, because tasks differ.
 * Other tasks then say how fast the work goes, not how long this task is. With ONLINE_SAMPLES, the
 * patience uses the task's own time at the pace of all. With fewer samples, the task is late as
 * above, by the paces here and there. The result is never below the stated time, since faster tasks
 * prove nothing about a different one. */
int64_t online_own_late_ns(const struct online_own *own);

struct online_done {        /* Results of a job, or of a part of it. */
    struct online_pace sum; /* sum of stated and of measured times */
    uint64_t samples;
    /* Stated time of all its subtasks, done or not, and their number. */
    int64_t all_ns;
    uint64_t subtasks;
};
/* Returns true when the results say something about the rest. They are as much work as
 * ONLINE_SAMPLES mean subtasks, or off by more than ONLINE_SLACK_PERCENT of all work. A millisecond
 * more for some small files says nothing about the large file that remains. */
bool online_is_weighty(const struct online_done *done);
/* Returns the pace expected of the rest. It is the pace of the results if they are at least
 * ONLINE_SAMPLES and weighty, else the stated one. */
struct online_pace online_pace_of_rest(const struct online_done *done);

/* Returns the time that remains of a task that has run for `so_far_ns`. An overdue task is taken to
 * be overdue once more for as long. So the remaining time has no jump when a task becomes late. */
int64_t online_ends_in_ns(int64_t takes_ns, int64_t so_far_ns);

struct online_rest {
    /* Time of all unfinished work, without the finished part of running tasks. */
    int64_t work_ns;
    /* The longest path from running or ready tasks to the end. */
    int64_t way_ns;
    uint32_t lanes, open; /* lanes of the job, and unfinished tasks */
};
/* Returns how long the rest takes: at least the work over the lanes that have a task, and at least
 * the longest path. */
int64_t online_rest_ns(const struct online_rest *rest);

/* Returns true when the measurement is more than ONLINE_SLACK_PERCENT away from the prediction, so
 * that a plan should be made anew. Returns false while samples are too few, or when nothing was
 * predicted (0). */
bool online_drifts(int64_t predicted_ns, int64_t measured_ns, uint64_t samples);

#endif
