/* planner/schedule/workload.h - what is to be planned: tasks with a cost on each processor, edges
 * that carry bytes between them, and links between the processors. Checked once, when it is made;
 * it does not change afterwards.
 *
 * Edges lie twice in compressed rows: those that leave a task, and those that enter it.
 *
 *     out_first  0     2  3  3          arcs out[out_first[t]] .. out[out_first[t + 1] - 1] leave task t,
 *     out       [b][c]|[c]|             by rising topological position of the task they lead to
 *
 * An edge takes no time on one processor, and latency + bytes / bandwidth from one to another. A
 * link that is not there carries nothing: its latency is infinite. The cost of a task where it
 * cannot run is infinite, too.
 *
 * Times are doubles in whatever unit the costs are in: nothing here is money, and none of it enters
 * the log. Every function of the planner works on them in a fixed order, so the same graph gives
 * the same plan. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_WORKLOAD_H
#define BOURSE_PLANNER_SCHEDULE_WORKLOAD_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WORKLOAD_TASKS = 1 << 20,
    WORKLOAD_PROCESSORS = 1024,
    WORKLOAD_EDGES = 1 << 22,
    WORKLOAD_COSTS = 1 << 25, /* tasks x processors */
    WORKLOAD_CYCLE_SHOWN = 8, /* tasks of a cycle that a fault names */
};
#define WORKLOAD_NONE UINT32_MAX
#define WORKLOAD_CANNOT INFINITY /* the cost of a task on a processor that cannot run it */
/* What is shorter, longer, larger or slower is no figure of anything: */
#define WORKLOAD_TIME_LEAST 1e-12 /* of a task */
#define WORKLOAD_TIME_MOST 1e15   /* of a task, a latency, a transfer */
#define WORKLOAD_BYTES_MOST 1e18
#define WORKLOAD_SPREAD_MOST 1e15 /* all costs and transfers together, over the least cost */
#define WORKLOAD_BANDWIDTH_LEAST 1e-12
#define WORKLOAD_BANDWIDTH_MOST 1e18

struct workload_link {
    uint32_t from, to;
    double latency, bandwidth;
};

struct workload_edge {
    uint32_t from, to;
    double bytes;
};

/* The caller's; copied by workload_create. */
struct workload_input {
    size_t task_count, processor_count, link_count, edge_count;
    const double *costs; /* of task t on processor p: costs[t * processor_count + p] */
    const struct workload_link *links;
    const struct workload_edge *edges;
};

struct workload_arc {
    uint32_t task; /* at the other end */
    double bytes;
};

struct workload { /* to be read only */
    uint32_t task_count, processor_count, edge_count;
    double *costs;
    uint32_t *out_first, *in_first; /* task_count + 1 each */
    struct workload_arc *out, *in;
    uint32_t
        *order; /* the tasks in topological order: of those that could be next, the lowest first */
    uint32_t *position; /* of each task in that order */
    double *latency,
        *bandwidth; /* from p to q: [p * processor_count + q]; 0 and infinite for p = q */
    bool is_linked; /* every processor can send to every other */
    double mean_latency, mean_slowness; /* over the links there are; slowness: 1 / bandwidth */
    double least_latency, least_slowness;
};

enum workload_status {
    WORKLOAD_OK,
    WORKLOAD_TOO_LARGE, /* tasks, processors, edges or costs: see above; or none at all */
    WORKLOAD_BAD_COST,  /* zero, negative, not a number, or outside the range */
    WORKLOAD_SPREAD,    /* beside all the others together, this task's cost is lost in rounding */
    WORKLOAD_BAD_BYTES, /* negative, not a number, or too many */
    WORKLOAD_BAD_LINK,  /* its latency, its bandwidth, or from a processor to itself */
    WORKLOAD_DUPLICATE, /* a second link or edge between the same two */
    WORKLOAD_NOWHERE,   /* a task that no processor can run */
    WORKLOAD_NO_LINK,   /* an edge that no link can carry, wherever its tasks run */
    WORKLOAD_CYCLE,
    WORKLOAD_NO_MEMORY,
};

/* Where it is wrong. What does not apply is WORKLOAD_NONE. */
struct workload_fault {
    uint32_t task, processor, edge, link;
    uint32_t cycle[WORKLOAD_CYCLE_SHOWN]; /* tasks, each waiting for the one before; the first for
                                             the last */
    uint32_t cycle_count;                 /* of all of it; may be more than are shown */
};

/* The caller owns the graph. Any status but OK gives none, and says where. Time n log n, and for
 * each edge the square of the processors where links are missing. */
enum workload_status workload_create(const struct workload_input *input,
                                     struct workload **ret_graph, struct workload_fault *ret_fault);
void workload_destroy(struct workload **self);

static inline double workload_cost(const struct workload *graph, uint32_t task, uint32_t processor)
{
    return graph->costs[(size_t)task * graph->processor_count + processor];
}

static inline bool workload_can_run(const struct workload *graph, uint32_t task, uint32_t processor)
{
    return workload_cost(graph, task, processor) < WORKLOAD_CANNOT;
}

/* Infinite where no link is. */
static inline double workload_transfer(const struct workload *graph, double bytes, uint32_t from,
                                       uint32_t to)
{
    size_t at = (size_t)from * graph->processor_count + to;
    return graph->latency[at] + bytes / graph->bandwidth[at];
}

/* The mean over all links; 0 where there is none. */
static inline double workload_mean_transfer(const struct workload *graph, double bytes)
{
    return graph->mean_latency + bytes * graph->mean_slowness;
}

/* Over those that can run it. */
double workload_mean_cost(const struct workload *graph, uint32_t task);
double workload_least_cost(const struct workload *graph, uint32_t task);

#endif
