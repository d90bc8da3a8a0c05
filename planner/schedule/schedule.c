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

/* ---------------------------------------------------------------- verification */

static enum schedule_flaw check_task(const struct workload *graph, const struct schedule *schedule,
                                     uint32_t task)
{
    uint32_t on = schedule->processor[task];
    if (on >= graph->processor_count || !workload_can_run(graph, task, on)) {
        return SCHEDULE_WRONG_PROCESSOR;
    }
    if (!(schedule->start[task] >= 0) ||
        schedule->finish[task] != schedule->start[task] + workload_cost(graph, task, on)) {
        return SCHEDULE_WRONG_TIME;
    }
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        uint32_t from = graph->in[i].task; /* earlier in the order, so it was checked */
        double arrival = schedule->finish[from] + workload_transfer(graph, graph->in[i].bytes,
                                                                    schedule->processor[from], on);
        if (!(arrival <= schedule->start[task])) {
            return SCHEDULE_TOO_EARLY;
        }
    }
    return SCHEDULE_SOUND;
}

enum schedule_flaw schedule_verify(const struct workload *graph, const struct schedule *schedule,
                                   uint32_t *ret_task)
{
    assert(schedule->task_count == graph->task_count);
    double makespan = 0;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        *ret_task = graph->order[i];
        enum schedule_flaw flaw = check_task(graph, schedule, *ret_task);
        if (flaw != SCHEDULE_SOUND) {
            return flaw;
        }
        makespan = fmax(makespan, schedule->finish[*ret_task]);
    }
    *ret_task = WORKLOAD_NONE;
    uint32_t *sequence = malloc(graph->task_count * sizeof *sequence);
    double *free_from = calloc(graph->processor_count, sizeof *free_from);
    enum schedule_flaw flaw = SCHEDULE_SOUND;
    if (sequence == NULL || free_from == NULL || !schedule_sequence(graph, schedule, sequence)) {
        flaw = SCHEDULE_UNCHECKED;
        goto end;
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = sequence[i];
        if (schedule->start[task] < free_from[schedule->processor[task]]) {
            *ret_task = task;
            flaw = SCHEDULE_OVERLAP;
            goto end;
        }
        free_from[schedule->processor[task]] = schedule->finish[task];
    }
    if (makespan != schedule->makespan) {
        flaw = SCHEDULE_WRONG_MAKESPAN;
    }
end:
    free(sequence);
    free(free_from);
    return flaw;
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
