/* CPOP, "critical path on a processor", puts all tasks of the critical path on one processor. The
 * path is computed from mean costs, and the processor is the one that runs it fastest. Among the
 * other tasks, the ready one with the highest sum of upward and downward rank goes where it
 * finishes first (Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling
 * for heterogeneous computing", IEEE TPDS 13(3), 2002).
 *
 * The paper has one entry; here the path begins at the entry of highest rank. The paper finds the
 * path's next task by equal sums of ranks. Here it is the successor that gave its predecessor the
 * upward rank, which is equal but for rounding. If no processor can run the whole path, the one
 * that runs most of it takes these tasks. */
#include "planner/schedule/place.h"
#include "planner/schedule/rank.h"
#include "planner/schedule/schedulers.h"

#include <stdlib.h>

/* Marks the path's tasks. */
static void mark_path(const struct workload *graph, const double *upward, bool *is_critical)
{
    uint32_t at = WORKLOAD_NONE;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        bool is_entry = graph->in_first[task] == graph->in_first[task + 1];
        at = is_entry && (at == WORKLOAD_NONE || upward[task] > upward[at]) ? task : at;
    }
    while (at != WORKLOAD_NONE) {
        is_critical[at] = true;
        uint32_t next = WORKLOAD_NONE;
        double longest = -1;
        for (uint32_t i = graph->out_first[at]; i < graph->out_first[at + 1]; i++) {
            const struct workload_arc *arc = &graph->out[i];
            double behind = workload_mean_transfer(graph, arc->bytes) + upward[arc->task];
            if (behind > longest) {
                longest = behind;
                next = arc->task;
            }
        }
        at = next;
    }
}

static uint32_t choose_processor(const struct workload *graph, const bool *is_critical)
{
    uint32_t best = 0;
    uint32_t most = 0;
    double least = INFINITY;
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        uint32_t count = 0;
        double sum = 0;
        for (uint32_t t = 0; t < graph->task_count; t++) {
            if (is_critical[t] && workload_can_run(graph, t, p)) {
                count++;
                sum += workload_cost(graph, t, p);
            }
        }
        if (count > most || (count == most && sum < least)) {
            best = p;
            most = count;
            least = sum;
        }
    }
    return best;
}

static enum scheduler_status put_all(struct place *place, struct rank_ready *ready,
                                     const bool *is_critical, struct schedule *schedule)
{
    const struct workload *graph = ready->graph;
    uint32_t chosen = choose_processor(graph, is_critical);
    if (!place_begin(place, schedule)) {
        return SCHEDULER_NOWHERE;
    }
    for (uint32_t task = rank_ready_next(ready); task != WORKLOAD_NONE;
         task = rank_ready_next(ready)) {
        double *finishes = place_finishes(place, task);
        if (is_critical[task] && finishes[chosen] < INFINITY) {
            finishes[chosen] = -1; /* preferred; the others serve if it may not go there */
        }
        if (!place_put(place, task, finishes)) {
            return SCHEDULER_NOWHERE;
        }
    }
    return SCHEDULER_OK;
}

enum scheduler_status cpop_schedule(const struct workload *graph, struct schedule *schedule)
{
    struct place *place = place_create(graph);
    double *upward = malloc(graph->task_count * sizeof *upward);
    double *sums = malloc(graph->task_count * sizeof *sums);
    bool *is_critical = calloc(graph->task_count, sizeof *is_critical);
    struct rank_ready ready = {.count = 0};
    enum scheduler_status status = SCHEDULER_NO_MEMORY;
    if (place == NULL || upward == NULL || sums == NULL || is_critical == NULL) {
        goto end;
    }
    rank_upward(graph, RANK_MEAN, upward);
    rank_downward(graph, sums);
    for (uint32_t t = 0; t < graph->task_count; t++) {
        sums[t] += upward[t];
    }
    mark_path(graph, upward, is_critical);
    if (rank_ready_init(&ready, graph, sums)) {
        status = put_all(place, &ready, is_critical, schedule);
    }
end:
    rank_ready_fini(&ready);
    place_destroy(&place);
    free(upward);
    free(sums);
    free(is_critical);
    return status;
}
