#include "planner/schedule/contention.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct contention {
    const struct workload *graph;
    double *link_free; /* link from p to q: [p * processor_count + q] */
    /* The task that runs next on the same processor, and the first task of each processor. */
    uint32_t *after, *first;
    /* Events that each task still waits for: its transfers, and the end of the task before it. */
    uint32_t *missing;
    uint32_t *heap; /* heap of running tasks, by finish */
    size_t heap_count;
};

struct contention *contention_create(const struct workload *graph)
{
    size_t pairs = (size_t)graph->processor_count * graph->processor_count;
    struct contention *contention = calloc(1, sizeof *contention);
    if (contention == NULL) {
        return NULL;
    }
    contention->graph = graph;
    contention->link_free = calloc(pairs, sizeof *contention->link_free);
    contention->after = calloc(graph->task_count, sizeof *contention->after);
    contention->first = calloc(graph->processor_count, sizeof *contention->first);
    contention->missing = calloc(graph->task_count, sizeof *contention->missing);
    contention->heap = calloc(graph->task_count, sizeof *contention->heap);
    if (contention->link_free == NULL || contention->after == NULL || contention->first == NULL ||
        contention->missing == NULL || contention->heap == NULL) {
        contention_destroy(&contention);
        return NULL;
    }
    return contention;
}

void contention_destroy(struct contention **self)
{
    struct contention *contention = *self;
    if (contention != NULL) {
        free(contention->link_free);
        free(contention->after);
        free(contention->first);
        free(contention->missing);
        free(contention->heap);
        free(contention);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- running tasks */

static bool ends_before(const struct contention *contention, const struct schedule *schedule,
                        uint32_t a, uint32_t b)
{
    double left = schedule->finish[a];
    double right = schedule->finish[b];
    return left < right ||
           (left == right && contention->graph->position[a] < contention->graph->position[b]);
}

static void push(struct contention *contention, const struct schedule *schedule, uint32_t task)
{
    size_t at = contention->heap_count++;
    uint32_t *heap = contention->heap;
    while (at > 0 && ends_before(contention, schedule, task, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = task;
}

static uint32_t pop(struct contention *contention, const struct schedule *schedule)
{
    uint32_t *heap = contention->heap;
    uint32_t top = heap[0];
    uint32_t last = heap[--contention->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < contention->heap_count &&
            ends_before(contention, schedule, heap[child + 1], heap[child])) {
            child++;
        }
        if (child >= contention->heap_count ||
            !ends_before(contention, schedule, heap[child], last)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* ---------------------------------------------------------------- times */

/* Counts one event of a task at `time`; the last event starts the task. */
static void arrive(struct contention *contention, struct schedule *schedule, uint32_t task,
                   double time)
{
    double start = schedule->start[task];
    schedule->start[task] = time > start ? time : start;
    if (--contention->missing[task] == 0) {
        schedule->finish[task] = schedule->start[task] +
                                 workload_cost(contention->graph, task, schedule->processor[task]);
        push(contention, schedule, task);
    }
}

static void end_task(struct contention *contention, struct schedule *schedule, uint32_t task)
{
    const struct workload *graph = contention->graph;
    uint32_t on = schedule->processor[task];
    double now = schedule->finish[task];
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        const struct workload_arc *arc = &graph->out[i];
        uint32_t to = schedule->processor[arc->task];
        double arrival = now;
        if (to != on) {
            double *link_free = &contention->link_free[(size_t)on * graph->processor_count + to];
            double begin = *link_free > now ? *link_free : now;
            arrival = begin + workload_transfer(graph, arc->bytes, on, to);
            *link_free = arrival;
        }
        arrive(contention, schedule, arc->task, arrival);
    }
    if (contention->after[task] != WORKLOAD_NONE) {
        arrive(contention, schedule, contention->after[task], now);
    }
}

/* Sets the order of tasks on each processor, and the number of events that each task waits for. */
static void line_up(struct contention *contention, const uint32_t *sequence,
                    const uint32_t *processor, struct schedule *schedule)
{
    const struct workload *graph = contention->graph;
    size_t pairs = (size_t)graph->processor_count * graph->processor_count;
    memset(contention->link_free, 0, pairs * sizeof *contention->link_free);
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        contention->first[p] = WORKLOAD_NONE;
    }
    for (uint32_t i = graph->task_count; i-- > 0;) {
        uint32_t task = sequence[i];
        uint32_t on = processor[task];
        contention->after[task] = contention->first[on];
        contention->first[on] = task;
        contention->missing[task] = graph->in_first[task + 1] - graph->in_first[task] + 1;
        schedule->processor[task] = on;
        schedule->start[task] = 0;
    }
    contention->heap_count = 0;
}

bool contention_time(struct contention *contention, const uint32_t *sequence,
                     const uint32_t *processor, struct schedule *ret_schedule)
{
    const struct workload *graph = contention->graph;
    uint32_t ended = 0;
    line_up(contention, sequence, processor, ret_schedule);
    ret_schedule->makespan = 0;
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        if (contention->first[p] != WORKLOAD_NONE) { /* the processor is free from the start */
            arrive(contention, ret_schedule, contention->first[p], 0);
        }
    }
    for (; contention->heap_count > 0; ended++) {
        uint32_t task = pop(contention, ret_schedule);
        ret_schedule->makespan = fmax(ret_schedule->makespan, ret_schedule->finish[task]);
        end_task(contention, ret_schedule, task);
    }
    assert(ended == graph->task_count); /* the sequence was a topological order */
    return ret_schedule->makespan < INFINITY;
}
