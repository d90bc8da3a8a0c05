#include "planner/schedule/rank.h"

#include <stdlib.h>

static double cost_of(const struct workload *graph, enum rank_kind kind, uint32_t task)
{
    return kind == RANK_MEAN ? workload_mean_cost(graph, task) : workload_least_cost(graph, task);
}

static double transfer_of(const struct workload *graph, enum rank_kind kind, double bytes)
{
    return kind == RANK_MEAN ? workload_mean_transfer(graph, bytes)
                             : graph->least_latency + bytes * graph->least_slowness;
}

void rank_upward(const struct workload *graph, enum rank_kind kind, double *ret_ranks)
{
    for (uint32_t i = graph->task_count; i-- > 0;) {
        uint32_t task = graph->order[i];
        double behind = 0;
        for (uint32_t j = graph->out_first[task]; j < graph->out_first[task + 1]; j++) {
            const struct workload_arc *arc = &graph->out[j];
            behind = fmax(behind, transfer_of(graph, kind, arc->bytes) + ret_ranks[arc->task]);
        }
        ret_ranks[task] = cost_of(graph, kind, task) + behind;
    }
}

void rank_downward(const struct workload *graph, double *ret_ranks)
{
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        double before = 0;
        for (uint32_t j = graph->in_first[task]; j < graph->in_first[task + 1]; j++) {
            const struct workload_arc *arc = &graph->in[j];
            before = fmax(before, ret_ranks[arc->task] + workload_mean_cost(graph, arc->task) +
                                      workload_mean_transfer(graph, arc->bytes));
        }
        ret_ranks[task] = before;
    }
}

/* ---------------------------------------------------------------- order */

struct ranked {
    double rank;
    uint32_t position, task;
};

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    return a->position < b->position ? -1 : a->position > b->position;
}

bool rank_sequence(const struct workload *graph, const double *ranks, uint32_t *ret_sequence)
{
    struct ranked *all = malloc(graph->task_count * sizeof *all);
    if (all == NULL) {
        return false;
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        all[t] = (struct ranked){ranks[t], graph->position[t], t};
    }
    qsort(all, graph->task_count, sizeof *all, by_rank);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        ret_sequence[i] = all[i].task;
    }
    free(all);
    return true;
}

/* ---------------------------------------------------------------- ready */

static bool is_before(const struct rank_ready *ready, uint32_t a, uint32_t b)
{
    double left = ready->ranks[a];
    double right = ready->ranks[b];
    return left > right || (left == right && ready->graph->position[a] < ready->graph->position[b]);
}

static void push(struct rank_ready *ready, uint32_t task)
{
    uint32_t at = ready->count++;
    while (at > 0 && is_before(ready, task, ready->heap[(at - 1) / 2])) {
        ready->heap[at] = ready->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    ready->heap[at] = task;
}

static uint32_t pop(struct rank_ready *ready)
{
    uint32_t top = ready->heap[0];
    uint32_t last = ready->heap[--ready->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < ready->count &&
            is_before(ready, ready->heap[child + 1], ready->heap[child])) {
            child++;
        }
        if (child >= ready->count || !is_before(ready, ready->heap[child], last)) {
            break;
        }
        ready->heap[at] = ready->heap[child];
        at = child;
    }
    ready->heap[at] = last;
    return top;
}

bool rank_ready_init(struct rank_ready *ready, const struct workload *graph, const double *ranks)
{
    *ready = (struct rank_ready){.graph = graph, .ranks = ranks};
    ready->heap = malloc(graph->task_count * sizeof *ready->heap);
    ready->missing = malloc(graph->task_count * sizeof *ready->missing);
    if (ready->heap == NULL || ready->missing == NULL) {
        rank_ready_fini(ready);
        return false;
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        ready->missing[t] = graph->in_first[t + 1] - graph->in_first[t];
        if (ready->missing[t] == 0) {
            push(ready, t);
        }
    }
    return true;
}

void rank_ready_fini(struct rank_ready *ready)
{
    free(ready->heap);
    free(ready->missing);
    *ready = (struct rank_ready){.count = 0};
}

uint32_t rank_ready_next(struct rank_ready *ready)
{
    const struct workload *graph = ready->graph;
    if (ready->count == 0) {
        return WORKLOAD_NONE;
    }
    uint32_t task = pop(ready);
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        if (--ready->missing[graph->out[i].task] == 0) {
            push(ready, graph->out[i].task);
        }
    }
    return task;
}
