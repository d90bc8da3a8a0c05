/* The local search works on the critical path. This path is a chain of tasks that decides the
 * makespan. Each of its tasks waited for the one before it, on its processor or for its data. Only
 * a change to the chain makes the schedule shorter. So a task of the chain (now and then any other)
 * goes to another processor, to another place in the order, or both. Then all times are computed
 * anew.
 *
 * A change is kept when the schedule is not longer than it was LATE changes ago. This leaves local
 * minima easily at first, and less and less later (Burke and Bykov, "The late acceptance
 * hill-climbing heuristic", European Journal of Operational Research 258(1), 2017). After a long
 * time without success, the search restarts from the best schedule with some random changes
 * (iterated local search). */
#include "base/random.h"
#include "planner/schedule/contention.h"
#include "planner/schedule/schedulers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LATE = 50, PATIENCE = 2000, KICKS = 8, STOP_TRIES = 64 };

struct climb {
    const struct workload *graph;
    struct random dice;
    struct schedule *now, *next;
    uint32_t *sequence; /* an order in which the tasks can be placed */
    uint32_t *place;    /* place of each task in the sequence */
    uint32_t *critical; /* tasks of one critical path of `now` */
    uint32_t critical_count;
    uint32_t *last_on; /* scratch: a task for each processor */
    uint32_t *ahead;   /* the task before, on the same processor */
    double *free_from;
    struct contention *contention; /* NULL: links carry any number of transfers at once */
    double late[LATE];
};

static void climb_fini(struct climb *climb)
{
    schedule_destroy(&climb->now);
    schedule_destroy(&climb->next);
    free(climb->sequence);
    free(climb->place);
    free(climb->critical);
    free(climb->last_on);
    free(climb->ahead);
    free(climb->free_from);
    contention_destroy(&climb->contention);
}

static bool climb_init(struct climb *climb, const struct workload *graph, uint64_t seed,
                       bool is_contended)
{
    *climb = (struct climb){.graph = graph, .dice = random_seeded(seed)};
    climb->now = schedule_create(graph->task_count);
    climb->next = schedule_create(graph->task_count);
    climb->sequence = calloc(graph->task_count, sizeof *climb->sequence);
    climb->place = calloc(graph->task_count, sizeof *climb->place);
    climb->critical = calloc(graph->task_count, sizeof *climb->critical);
    climb->last_on = calloc(graph->processor_count, sizeof *climb->last_on);
    climb->ahead = calloc(graph->task_count, sizeof *climb->ahead);
    climb->free_from = calloc(graph->processor_count, sizeof *climb->free_from);
    climb->contention = is_contended ? contention_create(graph) : NULL;
    return (climb->contention != NULL || !is_contended) && climb->now != NULL &&
           climb->next != NULL && climb->sequence != NULL && climb->place != NULL &&
           climb->critical != NULL && climb->last_on != NULL && climb->ahead != NULL &&
           climb->free_from != NULL;
}

static bool work_out(struct climb *climb, const uint32_t *processor, struct schedule *schedule)
{
    return climb->contention != NULL
               ? contention_time(climb->contention, climb->sequence, processor, schedule)
               : schedule_time(climb->graph, climb->sequence, processor, climb->free_from,
                               schedule);
}

/* ---------------------------------------------------------------- the critical path */

/* Returns the task that `task` waited for last. Returns WORKLOAD_NONE when it starts at 0, or waits
 * for a link. */
static uint32_t waited_for(const struct climb *climb, uint32_t task)
{
    const struct workload *graph = climb->graph;
    const struct schedule *now = climb->now;
    uint32_t ahead = climb->ahead[task];
    if (ahead != WORKLOAD_NONE && now->finish[ahead] == now->start[task]) {
        return ahead;
    }
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        const struct workload_arc *arc = &graph->in[i];
        double arrival =
            now->finish[arc->task] +
            workload_transfer(graph, arc->bytes, now->processor[arc->task], now->processor[task]);
        if (arrival == now->start[task]) {
            return arc->task;
        }
    }
    return WORKLOAD_NONE;
}

static void find_critical(struct climb *climb)
{
    const struct workload *graph = climb->graph;
    uint32_t at = climb->sequence[0];
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        climb->last_on[p] = WORKLOAD_NONE;
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = climb->sequence[i];
        climb->ahead[task] = climb->last_on[climb->now->processor[task]];
        climb->last_on[climb->now->processor[task]] = task;
        at = climb->now->finish[task] > climb->now->finish[at] ? task : at;
    }
    climb->critical_count = 0;
    while (at != WORKLOAD_NONE) {
        climb->critical[climb->critical_count++] = at;
        at = waited_for(climb, at);
    }
}

/* ---------------------------------------------------------------- changes */

static void move_in_sequence(struct climb *climb, uint32_t from, uint32_t to)
{
    uint32_t task = climb->sequence[from];
    uint32_t *sequence = climb->sequence;
    if (from < to) {
        memmove(&sequence[from], &sequence[from + 1], (to - from) * sizeof *sequence);
    } else {
        memmove(&sequence[to + 1], &sequence[to], (from - to) * sizeof *sequence);
    }
    sequence[to] = task;
    for (uint32_t i = from < to ? from : to; i <= (from < to ? to : from); i++) {
        climb->place[sequence[i]] = i;
    }
}

/* Returns a place behind all predecessors and before all successors. */
static uint32_t other_place(struct climb *climb, uint32_t task)
{
    const struct workload *graph = climb->graph;
    uint32_t first = 0;
    uint32_t last = graph->task_count - 1;
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        uint32_t after = climb->place[graph->in[i].task] + 1;
        first = after > first ? after : first;
    }
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        uint32_t before = climb->place[graph->out[i].task] - 1;
        last = before < last ? before : last;
    }
    assert(first <= last);
    return first + (uint32_t)random_below(&climb->dice, last - first + 1);
}

static uint32_t other_processor(struct climb *climb, uint32_t task)
{
    uint32_t count = climb->graph->processor_count;
    uint32_t p = (uint32_t)random_below(&climb->dice, count);
    while (!workload_can_run(climb->graph, task, p)) {
        p = p + 1 < count ? p + 1 : 0;
    }
    return p;
}

/* Tries one change, and undoes it unless it is kept. */
static void try_change(struct climb *climb, double limit)
{
    enum { MOVE = 1, SHIFT = 2 };
    static const unsigned kinds[] = {MOVE, SHIFT, MOVE | SHIFT, MOVE | SHIFT};
    const struct workload *graph = climb->graph;
    bool is_critical = random_below(&climb->dice, 4) > 0;
    uint32_t task = is_critical ? climb->critical[random_below(&climb->dice, climb->critical_count)]
                                : (uint32_t)random_below(&climb->dice, graph->task_count);
    unsigned kind = kinds[random_below(&climb->dice, sizeof kinds / sizeof *kinds)];
    uint32_t place = climb->place[task];
    uint32_t processor = climb->now->processor[task];
    if ((kind & MOVE) != 0) {
        climb->now->processor[task] = other_processor(climb, task);
    }
    if ((kind & SHIFT) != 0) {
        move_in_sequence(climb, place, other_place(climb, task));
    }
    bool is_same = climb->now->processor[task] == processor && climb->place[task] == place;
    if (!is_same && work_out(climb, climb->now->processor, climb->next) &&
        (climb->next->makespan <= limit || climb->next->makespan <= climb->now->makespan)) {
        struct schedule *former = climb->now;
        climb->now = climb->next;
        climb->next = former;
        find_critical(climb);
        return;
    }
    climb->now->processor[task] = processor;
    if (climb->place[task] != place) {
        move_in_sequence(climb, climb->place[task], place);
    }
}

/* Restarts from `best`. Its tasks move up as far as their order allows; then `kicks` random changes
 * follow. */
static bool begin_from(struct climb *climb, const struct schedule *best, int kicks)
{
    const struct workload *graph = climb->graph;
    if (!schedule_sequence(graph, best, climb->sequence)) {
        return false;
    }
    bool is_sound = work_out(climb, best->processor, climb->now);
    assert(is_sound);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        climb->place[climb->sequence[i]] = i;
    }
    find_critical(climb);
    for (int i = 0; i < kicks; i++) {
        try_change(climb, INFINITY);
    }
    for (size_t i = 0; i < LATE; i++) {
        climb->late[i] = climb->now->makespan;
    }
    return true;
}

static bool climb_on(struct climb *climb, const struct search_budget *budget, double bound,
                     struct schedule *best)
{
    uint64_t tries = budget->steps / climb->graph->task_count;
    uint64_t idle = 0;
    bool ok = begin_from(climb, best, 0);
    for (uint64_t i = 0; ok && i < tries && best->makespan > bound; i++) {
        if (climb->now->makespan < best->makespan) {
            schedule_copy(best, climb->now);
            idle = 0;
        }
        if (i % STOP_TRIES == 0 && budget->stop != NULL && budget->stop(budget->context)) {
            break;
        }
        if (++idle > PATIENCE) {
            idle = 0;
            ok = begin_from(climb, best, KICKS);
        }
        try_change(climb, climb->late[i % LATE]);
        climb->late[i % LATE] = climb->now->makespan;
    }
    if (ok && climb->now->makespan < best->makespan) {
        schedule_copy(best, climb->now);
    }
    return ok;
}

enum scheduler_status improve_schedule(const struct workload *graph,
                                       const struct search_budget *budget, uint64_t seed,
                                       double bound, bool is_contended, struct schedule *schedule)
{
    struct climb climb;
    bool ok =
        climb_init(&climb, graph, seed, is_contended) && climb_on(&climb, budget, bound, schedule);
    climb_fini(&climb);
    return ok ? SCHEDULER_OK : SCHEDULER_NO_MEMORY;
}
