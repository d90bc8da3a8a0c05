/* This file makes the work of a case into a graph for schedulers (plan_internal.h). */
#include "planner/layout/plan_internal.h"

#include <stdlib.h>

#define SHORTEST_S 1e-9      /* shortest time of a step */
#define SHORTEST_SHARE 2e-15 /* share of all costs and transfers: see WORKLOAD_SPREAD_MOST */

struct sketch {
    const struct plan_case *of;
    double *costs;
    struct workload_link *links;
    size_t link_count;
    struct workload_edge *edges;
    double least_bytes, most_bytes; /* bytes of an edge */
    double carried_s;               /* all edges, each over the slowest pair */
};

static bool idle_s(const struct plan_case *of, uint32_t from, uint32_t to, double bytes,
                   double *ret_s)
{
    struct topology_transfer route;
    if (of->input->topology == NULL ||
        topology_find(of->input->topology, NULL, UINT64_C(1) << of->input->devices[from].memory,
                      of->input->devices[to].memory, (int64_t)bytes, 0, &route) != TOPOLOGY_OK) {
        return false;
    }
    *ret_s = route.finish_s;
    return true;
}

/* The least time over several ways is concave in the bytes. So the line through the times of the
 * least and the most bytes is above none between. */
static void add_link(struct sketch *sketch, uint32_t from, uint32_t to)
{
    const struct plan_device *devices = sketch->of->input->devices;
    struct workload_link link = {from, to, 0, WORKLOAD_BANDWIDTH_MOST};
    double fewest = sketch->least_bytes < sketch->most_bytes ? sketch->least_bytes : 0;
    double least_s = 0;
    double most_s = 0;
    if (devices[from].memory != devices[to].memory) {
        if (!idle_s(sketch->of, from, to, fewest, &least_s) ||
            !idle_s(sketch->of, from, to, sketch->most_bytes, &most_s)) {
            return;
        }
        double slope =
            sketch->most_bytes > fewest ? (most_s - least_s) / (sketch->most_bytes - fewest) : 0;
        link.latency = fmax(least_s - slope * fewest, 0);
        link.bandwidth = slope * WORKLOAD_BANDWIDTH_MOST > 1 ? 1 / slope : WORKLOAD_BANDWIDTH_MOST;
        link.bandwidth = fmax(link.bandwidth, WORKLOAD_BANDWIDTH_LEAST);
    }
    sketch->links[sketch->link_count++] = link;
    sketch->carried_s = fmax(sketch->carried_s, most_s * (double)sketch->of->steps->edge_count);
}

static void draw_edges(struct sketch *sketch)
{
    const struct steps *steps = sketch->of->steps;
    uint32_t devices = (uint32_t)sketch->of->input->device_count;
    sketch->least_bytes = INFINITY;
    for (size_t i = 0; i < steps->edge_count; i++) {
        double bytes = (double)steps->edges[i].bytes;
        sketch->edges[i] = (struct workload_edge){steps->edges[i].from, steps->edges[i].to, bytes};
        sketch->least_bytes = fmin(sketch->least_bytes, bytes);
        sketch->most_bytes = fmax(sketch->most_bytes, bytes);
    }
    for (uint32_t p = 0; p < devices && steps->edge_count > 0; p++) {
        for (uint32_t q = 0; q < devices; q++) {
            if (p != q) {
                add_link(sketch, p, q);
            }
        }
    }
}

/* Very short steps get a least time; all of them add at most `ret_slack_s`. */
static void draw_costs(struct sketch *sketch, double *ret_slack_s)
{
    const struct plan_case *of = sketch->of;
    size_t devices = of->input->device_count;
    size_t steps = of->steps->step_count;
    double sum = sketch->carried_s;
    for (size_t i = 0; i < steps * devices; i++) {
        double cost = of->costs[i].here.time_s.value;
        bool can = plan_can_run(of, i / devices, i % devices) && cost <= WORKLOAD_TIME_MOST;
        sketch->costs[i] = can ? cost : WORKLOAD_CANNOT;
        sum += can ? cost : 0;
    }
    double shortest = fmax(SHORTEST_S, sum * SHORTEST_SHARE);
    for (size_t i = 0; i < steps * devices; i++) {
        sketch->costs[i] = fmax(sketch->costs[i], shortest);
    }
    *ret_slack_s = shortest * (double)steps;
}

enum workload_status plan_workload(const struct plan_case *of, struct workload **ret_graph,
                                   double *ret_slack_s, struct workload_fault *ret_fault)
{
    size_t devices = of->input->device_count;
    struct sketch sketch = {.of = of};
    enum workload_status status = WORKLOAD_NO_MEMORY;
    sketch.costs = calloc(of->steps->step_count * devices, sizeof *sketch.costs);
    sketch.links = calloc(devices * devices, sizeof *sketch.links);
    sketch.edges = calloc(of->steps->edge_count + 1, sizeof *sketch.edges);
    if (sketch.costs != NULL && sketch.links != NULL && sketch.edges != NULL) {
        draw_edges(&sketch);
        draw_costs(&sketch, ret_slack_s);
        const struct workload_input input = {.task_count = of->steps->step_count,
                                             .processor_count = devices,
                                             .link_count = sketch.link_count,
                                             .edge_count = of->steps->edge_count,
                                             .costs = sketch.costs,
                                             .links = sketch.links,
                                             .edges = sketch.edges};
        status = workload_create(&input, ret_graph, ret_fault);
    }
    free(sketch.costs);
    free(sketch.links);
    free(sketch.edges);
    return status;
}
