#include "planner/schedule/bound.h"

#include <assert.h>
#include <stdlib.h>

enum { ROUNDS = 64 };

static bool is_many(const struct workload *graph)
{
    uint64_t pairs = (uint64_t)graph->processor_count * graph->processor_count;
    return graph->edge_count * pairs > BOUND_PAIRS;
}

/* Returns the least over q of `times` at q and the transfer between p and q. With `into` the
 * transfer goes from q to p, else from p to q. */
static double least_with_transfer(const struct workload *graph, const double *times, double bytes,
                                  uint32_t p, bool into)
{
    size_t count = graph->processor_count;
    size_t step = into ? count : 1;
    size_t at = into ? p : p * count;
    double least = INFINITY;
    for (size_t q = 0; q < count; q++, at += step) {
        double time = times[q] + (graph->latency[at] + bytes / graph->bandwidth[at]);
        least = time < least ? time : least;
    }
    return least;
}

/* Raises `row` to the bound from an edge of `bytes`: the times at its other end and the transfer
 * from there. */
static void raise(const struct workload *graph, const double *times, double bytes, bool into,
                  bool exact, double *row)
{
    uint32_t count = graph->processor_count;
    double elsewhere = INFINITY;
    for (uint32_t q = 0; !exact && q < count; q++) {
        elsewhere = times[q] < elsewhere ? times[q] : elsewhere;
    }
    elsewhere += graph->least_latency + bytes * graph->least_slowness;
    for (uint32_t p = 0; p < count; p++) {
        double time = times[p];
        if (exact) {
            time = least_with_transfer(graph, times, bytes, p, into);
        } else if (elsewhere < time) {
            time = elsewhere;
        }
        row[p] = time > row[p] ? time : row[p];
    }
}

void bound_tails(const struct workload *graph, double *ret_tails)
{
    uint32_t count = graph->processor_count;
    bool exact = !is_many(graph);
    for (uint32_t i = graph->task_count; i-- > 0;) {
        uint32_t task = graph->order[i];
        double *row = &ret_tails[(size_t)task * count];
        for (uint32_t p = 0; p < count; p++) {
            row[p] = 0;
        }
        for (uint32_t j = graph->out_first[task]; j < graph->out_first[task + 1]; j++) {
            const struct workload_arc *arc = &graph->out[j];
            raise(graph, &ret_tails[(size_t)arc->task * count], arc->bytes, false, exact, row);
        }
        for (uint32_t p = 0; p < count; p++) {
            row[p] += workload_cost(graph, task, p);
        }
    }
}

static double path_bound(const struct workload *graph, const double *tails)
{
    double bound = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        double least = INFINITY;
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            least = fmin(least, tails[(size_t)t * graph->processor_count + p]);
        }
        bound = fmax(bound, least);
    }
    return bound;
}

/* ---------------------------------------------------------------- work */

/* Returns the value of the dual at `weights`, and the load of each processor under these
 * weights. */
static double work_at(const struct workload *graph, const double *weights, double *ret_loads)
{
    uint32_t count = graph->processor_count;
    double sum = 0;
    for (uint32_t p = 0; p < count; p++) {
        ret_loads[p] = 0;
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        const double *row = &graph->costs[(size_t)t * count];
        uint32_t best = 0;
        double least = INFINITY;
        for (uint32_t p = 0; p < count; p++) {
            double time = row[p] < WORKLOAD_CANNOT ? weights[p] * row[p] : INFINITY;
            best = time < least ? p : best;
            least = time < least ? time : least;
        }
        ret_loads[best] += row[best];
        sum += least;
    }
    return sum;
}

/* Weights grow where the load is above the mean, by less each round (multiplicative weights: Arora,
 * Hazan, Kale, Theory of Computing 8, 2012). */
static void move_weights(double *weights, const double *loads, uint32_t count, int round)
{
    double most = 0;
    double sum = 0;
    for (uint32_t p = 0; p < count; p++) {
        most = fmax(most, loads[p]);
    }
    assert(most > 0);
    for (uint32_t p = 0; p < count; p++) {
        weights[p] *= 1 + loads[p] / most * (2.0 / (2 + round));
        sum += weights[p];
    }
    for (uint32_t p = 0; p < count; p++) {
        weights[p] /= sum;
    }
}

/* Starts from equal weights, and from weights that make the processors equal on average. */
static double work_bound(const struct workload *graph, double *weights, double *loads)
{
    uint32_t count = graph->processor_count;
    double bound = 0;
    for (int begin = 0; begin < 2; begin++) {
        double sum = 0;
        for (uint32_t p = 0; p < count; p++) {
            double speeds = 0;
            for (uint32_t t = 0; begin == 1 && t < graph->task_count; t++) {
                double cost = workload_cost(graph, t, p);
                speeds += cost < WORKLOAD_CANNOT ? 1 / cost : 0;
            }
            weights[p] = begin == 1 ? fmax(speeds, 1e-300) : 1;
            sum += weights[p];
        }
        for (uint32_t p = 0; p < count; p++) {
            weights[p] /= sum;
        }
        for (int round = 0; round < ROUNDS; round++) {
            bound = fmax(bound, work_at(graph, weights, loads));
            move_weights(weights, loads, count, round);
        }
    }
    return bound;
}

bool bound_work(const struct workload *graph, double *ret_bound)
{
    double *weights = malloc(2 * (size_t)graph->processor_count * sizeof *weights);
    if (weights != NULL) {
        *ret_bound = work_bound(graph, weights, weights + graph->processor_count);
    }
    bool ok = weights != NULL;
    free(weights);
    return ok;
}

bool bound_make(const struct workload *graph, double *ret_bound)
{
    uint32_t count = graph->processor_count;
    double *tails = malloc((size_t)graph->task_count * count * sizeof *tails);
    double *weights = malloc(2 * (size_t)count * sizeof *weights);
    bool ok = tails != NULL && weights != NULL;
    if (ok) {
        bound_tails(graph, tails);
        *ret_bound = fmax(path_bound(graph, tails), work_bound(graph, weights, weights + count));
    }
    free(tails);
    free(weights);
    return ok;
}
