#include "planner/schedule/place.h"

#include "planner/schedule/domain.h"
#include "planner/schedule/slots.h"

#include <assert.h>
#include <stdlib.h>

struct place {
    const struct workload *graph;
    struct slots *slots;
    /* Domain of each task. NULL means that all processors are linked, so no choice restricts
     * another. */
    struct domain *domain;
    struct schedule *schedule; /* owned by the caller */
    double *starts, *finishes; /* times of one task on each processor */
};

struct place *place_create(const struct workload *graph)
{
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL) {
        return NULL;
    }
    place->graph = graph;
    place->slots = slots_create(graph->processor_count, graph->task_count);
    place->domain = graph->is_linked ? NULL : domain_create(graph);
    place->starts = calloc(graph->processor_count, sizeof *place->starts);
    place->finishes = calloc(graph->processor_count, sizeof *place->finishes);
    if (place->slots == NULL || (place->domain == NULL && !graph->is_linked) ||
        place->starts == NULL || place->finishes == NULL) {
        place_destroy(&place);
    }
    return place;
}

void place_destroy(struct place **self)
{
    struct place *place = *self;
    if (place != NULL) {
        slots_destroy(&place->slots);
        domain_destroy(&place->domain);
        free(place->starts);
        free(place->finishes);
        free(place);
        *self = NULL;
    }
}

bool place_begin(struct place *place, struct schedule *schedule)
{
    assert(schedule->task_count == place->graph->task_count);
    slots_clear(place->slots);
    place->schedule = schedule;
    schedule->makespan = 0;
    return place->domain == NULL || domain_reset(place->domain);
}

double *place_finishes(struct place *place, uint32_t task)
{
    const struct workload *graph = place->graph;
    uint32_t count = graph->processor_count;
    for (uint32_t p = 0; p < count; p++) {
        place->starts[p] = 0;
    }
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        const struct workload_arc *arc = &graph->in[i];
        uint32_t from = place->schedule->processor[arc->task];
        double finish = place->schedule->finish[arc->task];
        const double *latency = &graph->latency[(size_t)from * count];
        const double *bandwidth = &graph->bandwidth[(size_t)from * count];
        for (uint32_t p = 0; p < count; p++) {
            double arrival = finish + (latency[p] + arc->bytes / bandwidth[p]);
            place->starts[p] = arrival > place->starts[p] ? arrival : place->starts[p];
        }
    }
    for (uint32_t p = 0; p < count; p++) {
        double cost = workload_cost(graph, task, p);
        bool may = cost < WORKLOAD_CANNOT && place->starts[p] < INFINITY &&
                   (place->domain == NULL || domain_has(place->domain, task, p));
        if (may) {
            place->starts[p] = slots_find(place->slots, p, place->starts[p], cost);
        }
        place->finishes[p] = may ? place->starts[p] + cost : INFINITY;
    }
    return place->finishes;
}

bool place_put(struct place *place, uint32_t task, double *scores)
{
    const struct workload *graph = place->graph;
    struct schedule *schedule = place->schedule;
    for (;;) {
        uint32_t best = 0;
        for (uint32_t p = 1; p < graph->processor_count; p++) {
            best = scores[p] < scores[best] ? p : best;
        }
        if (!(scores[best] < INFINITY)) {
            return false;
        }
        if (place->domain != NULL && !domain_choose(place->domain, task, best)) {
            scores[best] = INFINITY;
            continue;
        }
        double cost = workload_cost(graph, task, best);
        slots_take(place->slots, best, place->starts[best], cost);
        schedule->processor[task] = best;
        schedule->start[task] = place->starts[best];
        schedule->finish[task] = place->starts[best] + cost;
        schedule->makespan = fmax(schedule->makespan, schedule->finish[task]);
        return true;
    }
}
