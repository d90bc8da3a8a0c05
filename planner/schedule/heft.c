/* HEFT, "heterogeneous earliest finish time", places tasks by falling upward rank, each on the
 * processor where it finishes first (Topcuoglu, Hariri, Wu, "Performance-effective and
 * low-complexity task scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002). Other ranks
 * than the mean are in Zhao and Sakellariou, "An experimental investigation into the rank function
 * of the HEFT scheduling algorithm", Euro-Par 2003. */
#include "planner/schedule/place.h"
#include "planner/schedule/rank.h"
#include "planner/schedule/schedulers.h"

#include <stdlib.h>

static enum scheduler_status put_all(struct place *place, const struct workload *graph,
                                     const uint32_t *sequence, const bool *may_use,
                                     struct schedule *schedule)
{
    if (!place_begin(place, schedule)) {
        return SCHEDULER_NOWHERE;
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        double *finishes = place_finishes(place, sequence[i]);
        for (uint32_t p = 0; may_use != NULL && p < graph->processor_count; p++) {
            finishes[p] = may_use[p] ? finishes[p] : INFINITY;
        }
        if (!place_put(place, sequence[i], finishes)) {
            return SCHEDULER_NOWHERE;
        }
    }
    return SCHEDULER_OK;
}

static enum scheduler_status by_ranks(const struct workload *graph, enum rank_kind kind,
                                      const bool *may_use, struct schedule *schedule)
{
    struct place *place = place_create(graph);
    double *ranks = malloc(graph->task_count * sizeof *ranks);
    uint32_t *sequence = malloc(graph->task_count * sizeof *sequence);
    enum scheduler_status status = SCHEDULER_NO_MEMORY;
    if (place != NULL && ranks != NULL && sequence != NULL) {
        rank_upward(graph, kind, ranks);
        if (rank_sequence(graph, ranks, sequence)) {
            status = put_all(place, graph, sequence, may_use, schedule);
        }
    }
    place_destroy(&place);
    free(ranks);
    free(sequence);
    return status;
}

enum scheduler_status heft_schedule(const struct workload *graph, struct schedule *schedule)
{
    return by_ranks(graph, RANK_MEAN, NULL, schedule);
}

enum scheduler_status heft_best_schedule(const struct workload *graph, struct schedule *schedule)
{
    return by_ranks(graph, RANK_BEST, NULL, schedule);
}

enum scheduler_status heft_subset_schedule(const struct workload *graph, const bool *may_use,
                                           struct schedule *schedule)
{
    return by_ranks(graph, RANK_MEAN, may_use, schedule);
}
