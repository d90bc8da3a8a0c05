/* PEFT, "predict earliest finish time", is HEFT that looks ahead. The optimistic cost table holds,
 * for each task and processor, the shortest time from there to the end if processors were never
 * busy. A task goes where its finish and this time together are least (Arabnejad and Barbosa, "List
 * scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE TPDS 25(3),
 * 2014).
 *
 *    OCT(t, p) = max over successors s of
 *                min over q of OCT(s, q) + cost(s, q) + (q = p ? 0 : mean transfer)
 *
 * Ranks are the table's means over the processors that can run the task. Among ready tasks, the
 * highest rank goes first. */
#include "planner/schedule/place.h"
#include "planner/schedule/rank.h"
#include "planner/schedule/schedulers.h"

#include <stdlib.h>

/* The minimum over all q may replace the minimum over q other than p, since a transfer only adds
 * time. */
static void make_table(const struct workload *graph, double *table)
{
    uint32_t count = graph->processor_count;
    for (uint32_t i = graph->task_count; i-- > 0;) {
        uint32_t task = graph->order[i];
        double *row = &table[(size_t)task * count];
        for (uint32_t p = 0; p < count; p++) {
            row[p] = 0;
        }
        for (uint32_t j = graph->out_first[task]; j < graph->out_first[task + 1]; j++) {
            const struct workload_arc *arc = &graph->out[j];
            const double *behind = &table[(size_t)arc->task * count];
            double least = INFINITY;
            for (uint32_t q = 0; q < count; q++) {
                least = fmin(least, behind[q] + workload_cost(graph, arc->task, q));
            }
            least += workload_mean_transfer(graph, arc->bytes);
            for (uint32_t p = 0; p < count; p++) {
                double here = fmin(least, behind[p] + workload_cost(graph, arc->task, p));
                row[p] = here > row[p] ? here : row[p];
            }
        }
    }
}

static void make_ranks(const struct workload *graph, const double *table, double *ret_ranks)
{
    for (uint32_t t = 0; t < graph->task_count; t++) {
        double sum = 0;
        uint32_t count = 0;
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            if (workload_can_run(graph, t, p)) {
                sum += table[(size_t)t * graph->processor_count + p];
                count++;
            }
        }
        ret_ranks[t] = sum / count;
    }
}

static enum scheduler_status put_all(struct place *place, struct rank_ready *ready,
                                     const double *table, struct schedule *schedule)
{
    uint32_t count = ready->graph->processor_count;
    if (!place_begin(place, schedule)) {
        return SCHEDULER_NOWHERE;
    }
    for (uint32_t task = rank_ready_next(ready); task != WORKLOAD_NONE;
         task = rank_ready_next(ready)) {
        double *scores = place_finishes(place, task);
        for (uint32_t p = 0; p < count; p++) {
            scores[p] += table[(size_t)task * count + p];
        }
        if (!place_put(place, task, scores)) {
            return SCHEDULER_NOWHERE;
        }
    }
    return SCHEDULER_OK;
}

enum scheduler_status peft_schedule(const struct workload *graph, struct schedule *schedule)
{
    struct place *place = place_create(graph);
    double *table = malloc((size_t)graph->task_count * graph->processor_count * sizeof *table);
    double *ranks = malloc(graph->task_count * sizeof *ranks);
    struct rank_ready ready = {.count = 0};
    enum scheduler_status status = SCHEDULER_NO_MEMORY;
    if (place != NULL && table != NULL && ranks != NULL) {
        make_table(graph, table);
        make_ranks(graph, table, ranks);
        if (rank_ready_init(&ready, graph, ranks)) {
            status = put_all(place, &ready, table, schedule);
        }
    }
    rank_ready_fini(&ready);
    place_destroy(&place);
    free(table);
    free(ranks);
    return status;
}
