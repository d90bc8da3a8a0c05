#include "tests/support/schedule_verify.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

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
        /* the other task is earlier in the order, so it was checked */
        uint32_t from = graph->in[i].task;
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
