#include "planner/schedule/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct schedule *schedule_create(uint32_t task_count)
{
    assert(task_count > 0);
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (schedule == NULL) {
        return NULL;
    }
    schedule->task_count = task_count;
    schedule->processor = calloc(task_count, sizeof *schedule->processor);
    schedule->start = calloc(task_count, sizeof *schedule->start);
    schedule->finish = calloc(task_count, sizeof *schedule->finish);
    if (schedule->processor == NULL || schedule->start == NULL || schedule->finish == NULL) {
        schedule_destroy(&schedule);
    }
    return schedule;
}

void schedule_destroy(struct schedule **self)
{
    struct schedule *schedule = *self;
    if (schedule != NULL) {
        free(schedule->processor);
        free(schedule->start);
        free(schedule->finish);
        free(schedule);
        *self = NULL;
    }
}

void schedule_copy(struct schedule *to, const struct schedule *from)
{
    assert(to->task_count == from->task_count);
    memcpy(to->processor, from->processor, from->task_count * sizeof *to->processor);
    memcpy(to->start, from->start, from->task_count * sizeof *to->start);
    memcpy(to->finish, from->finish, from->task_count * sizeof *to->finish);
    to->makespan = from->makespan;
}

/* ---------------------------------------------------------------- order */

struct timed {
    double start;
    uint32_t position, task;
};

static int by_start(const void *left, const void *right)
{
    const struct timed *a = left;
    const struct timed *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return a->position < b->position ? -1 : a->position > b->position;
}

bool schedule_sequence(const struct workload *graph, const struct schedule *schedule,
                       uint32_t *ret_sequence)
{
    struct timed *all = malloc(graph->task_count * sizeof *all);
    if (all == NULL) {
        return false;
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        all[t] = (struct timed){schedule->start[t], graph->position[t], t};
    }
    qsort(all, graph->task_count, sizeof *all, by_start);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        ret_sequence[i] = all[i].task;
    }
    free(all);
    return true;
}

/* ---------------------------------------------------------------- times */

bool schedule_time(const struct workload *graph, const uint32_t *sequence,
                   const uint32_t *processor, double *free_from, struct schedule *ret_schedule)
{
    double makespan = 0;
    memset(free_from, 0, graph->processor_count * sizeof *free_from);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = sequence[i];
        uint32_t on = processor[task];
        double start = free_from[on];
        for (uint32_t j = graph->in_first[task]; j < graph->in_first[task + 1]; j++) {
            const struct workload_arc *arc = &graph->in[j];
            double arrival = ret_schedule->finish[arc->task] +
                             workload_transfer(graph, arc->bytes, processor[arc->task], on);
            start = arrival > start ? arrival : start;
        }
        double finish = start + workload_cost(graph, task, on);
        ret_schedule->processor[task] = on;
        ret_schedule->start[task] = start;
        ret_schedule->finish[task] = finish;
        free_from[on] = finish;
        makespan = finish > makespan ? finish : makespan;
    }
    ret_schedule->makespan = makespan;
    return makespan < INFINITY;
}
