/* The baseline runs all tasks on one processor, one after the other; no plan may be worse. */
#include "planner/schedule/schedulers.h"

#include <assert.h>

double single_time(const struct workload *graph, uint32_t processor)
{
    assert(processor < graph->processor_count);
    double sum = 0;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        sum += workload_cost(graph, graph->order[i], processor);
    }
    return sum;
}

enum scheduler_status single_schedule(const struct workload *graph, struct schedule *schedule)
{
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        double time = single_time(graph, p);
        best = time < least ? p : best;
        least = time < least ? time : least;
    }
    if (!(least < INFINITY)) {
        return SCHEDULER_NOWHERE;
    }
    double now = 0;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        schedule->processor[task] = best;
        schedule->start[task] = now;
        now += workload_cost(graph, task, best);
        schedule->finish[task] = now;
    }
    schedule->makespan = now;
    return SCHEDULER_OK;
}
