/* This scheduler puts every task where it takes least, by falling upward rank. It is best when
 * transfers cost nothing and no two tasks want the same processor. It is usually a bad plan, but
 * sometimes the best of the portfolio. */
#include "planner/schedule/place.h"
#include "planner/schedule/rank.h"
#include "planner/schedule/schedulers.h"

#include <stdlib.h>

static enum scheduler_status put_all(struct place *place, const struct workload *graph,
                                     const uint32_t *sequence, struct schedule *schedule)
{
    if (!place_begin(place, schedule)) {
        return SCHEDULER_NOWHERE;
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        double *scores = place_finishes(place, sequence[i]);
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            scores[p] = scores[p] < INFINITY ? workload_cost(graph, sequence[i], p) : INFINITY;
        }
        if (!place_put(place, sequence[i], scores)) {
            return SCHEDULER_NOWHERE;
        }
    }
    return SCHEDULER_OK;
}

enum scheduler_status all_best_schedule(const struct workload *graph, struct schedule *schedule)
{
    struct place *place = place_create(graph);
    double *ranks = malloc(graph->task_count * sizeof *ranks);
    uint32_t *sequence = malloc(graph->task_count * sizeof *sequence);
    enum scheduler_status status = SCHEDULER_NO_MEMORY;
    if (place != NULL && ranks != NULL && sequence != NULL) {
        rank_upward(graph, RANK_MEAN, ranks);
        if (rank_sequence(graph, ranks, sequence)) {
            status = put_all(place, graph, sequence, schedule);
        }
    }
    place_destroy(&place);
    free(ranks);
    free(sequence);
    return status;
}
