/* A workload is what has to be planned. It holds tasks with a cost on each processor, edges that
 * carry bytes between tasks, and links between processors. It is checked once, when it is made, and
 * does not change afterwards.
 *
 * Edges are stored twice in compressed rows: by the task they leave, and by the task they enter.
 *
 *    out_first  0     2  3  3          arcs out[out_first[t]] .. out[out_first[t + 1] - 1]
 *    out       [b][c]|[c]|             leave task t, by rising topological position of their ends
 *
 * An edge takes no time within one processor, and latency + bytes / bandwidth between two. A
 * missing link carries nothing: its latency is infinite. The cost of a task is infinite where the
 * task cannot run.
 *
 * Times are doubles in the unit of the costs. Nothing here is money, and nothing enters the log.
 * Every function of the planner works on times in a fixed order, so the same graph gives the same
 * plan. */
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
/* Values outside these limits are refused. */
#define WORKLOAD_TIME_LEAST 1e-12 /* time of a task */
#define WORKLOAD_TIME_MOST 1e15   /* time of a task, a latency, a transfer */
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

/* The caller keeps the input; workload_create copies it. */
struct workload_input {
    size_t task_count, processor_count, link_count, edge_count;
    const double *costs; /* cost of task t on processor p: costs[t * processor_count + p] */
    const struct workload_link *links;
    const struct workload_edge *edges;
};

struct workload_arc {
    uint32_t task; /* task at the other end */
    double bytes;
};

/* Callers only read the fields. */
struct workload {
    uint32_t task_count, processor_count, edge_count;
    double *costs;
    uint32_t *out_first, *in_first; /* task_count + 1 entries each */
    struct workload_arc *out, *in;
    /* The tasks in topological order. Among the tasks that could be next, the lowest comes
     * first. */
    uint32_t *order;
    uint32_t *position; /* position of each task in that order */
    /* Figures of the link from p to q: [p * processor_count + q]; 0 and infinite for p = q. */
    double *latency, *bandwidth;
    bool is_linked;                     /* every processor can send to every other */
    double mean_latency, mean_slowness; /* over existing links; slowness: 1 / bandwidth */
    double least_latency, least_slowness;
};

enum workload_status {
    WORKLOAD_OK,
    /* Tasks, processors, edges or costs exceed the limits above, or there are none. */
    WORKLOAD_TOO_LARGE,
    WORKLOAD_BAD_COST, /* zero, negative, not a number, or outside the range */
    /* The cost of this task is lost in rounding beside all the others together. */
    WORKLOAD_SPREAD,
    WORKLOAD_BAD_BYTES, /* negative, not a number, or too many */
    WORKLOAD_BAD_LINK,  /* a bad latency or bandwidth, or the link leads to its own start */
    WORKLOAD_DUPLICATE, /* a second link or edge between the same two */
    WORKLOAD_NOWHERE,   /* a task that no processor can run */
    WORKLOAD_NO_LINK,   /* an edge that no link can carry, wherever its tasks run */
    WORKLOAD_CYCLE,
    WORKLOAD_NO_MEMORY,
};

/* The place of a fault. A field that does not apply is WORKLOAD_NONE. */
struct workload_fault {
    uint32_t task, processor, edge, link;
    /* Tasks that each wait for the one before; the first waits for the last. */
    uint32_t cycle[WORKLOAD_CYCLE_SHOWN];
    uint32_t cycle_count; /* tasks of the whole cycle; may be more than are shown */
};

/* Checks the input and creates the graph, which the caller owns. Any status but OK gives none, and
 * `ret_fault` says where the input is wrong. The time is n log n, and for each edge the square of
 * the processors when links are missing. */
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

/* Returns the time of a transfer; it is infinite where no link is. */
static inline double workload_transfer(const struct workload *graph, double bytes, uint32_t from,
                                       uint32_t to)
{
    size_t at = (size_t)from * graph->processor_count + to;
    return graph->latency[at] + bytes / graph->bandwidth[at];
}

/* Returns the mean transfer over all links, or 0 where there is none. */
static inline double workload_mean_transfer(const struct workload *graph, double bytes)
{
    return graph->mean_latency + bytes * graph->mean_slowness;
}

/* Returns the mean or the least cost over the processors that can run the task. */
double workload_mean_cost(const struct workload *graph, uint32_t task);
double workload_least_cost(const struct workload *graph, uint32_t task);

#endif
