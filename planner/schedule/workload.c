#include "planner/schedule/workload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A count of 0 is allocated as 1, so that NULL always means that memory is short. */
static void *room_for(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size);
}

void workload_destroy(struct workload **self)
{
    struct workload *graph = *self;
    if (graph != NULL) {
        free(graph->costs);
        free(graph->out_first);
        free(graph->in_first);
        free(graph->out);
        free(graph->in);
        free(graph->order);
        free(graph->position);
        free(graph->latency);
        free(graph->bandwidth);
        free(graph);
        *self = NULL;
    }
}

double workload_mean_cost(const struct workload *graph, uint32_t task)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        if (workload_can_run(graph, task, p)) {
            sum += workload_cost(graph, task, p);
            count++;
        }
    }
    assert(count > 0);
    return sum / count;
}

double workload_least_cost(const struct workload *graph, uint32_t task)
{
    double least = WORKLOAD_CANNOT;
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        least = fmin(least, workload_cost(graph, task, p));
    }
    return least;
}

/* ---------------------------------------------------------------- figures */

static bool is_size_good(const struct workload_input *input)
{
    return input->task_count > 0 && input->task_count <= WORKLOAD_TASKS &&
           input->processor_count > 0 && input->processor_count <= WORKLOAD_PROCESSORS &&
           input->edge_count <= WORKLOAD_EDGES &&
           input->task_count * input->processor_count <= WORKLOAD_COSTS &&
           input->link_count <= (size_t)WORKLOAD_PROCESSORS * WORKLOAD_PROCESSORS;
}

static bool is_between(double value, double least, double most)
{
    return value >= least && value <= most; /* false for a NaN */
}

static enum workload_status check_costs(const struct workload_input *input,
                                        struct workload_fault *fault)
{
    for (size_t t = 0; t < input->task_count; t++) {
        bool runs = false;
        fault->task = (uint32_t)t;
        for (size_t p = 0; p < input->processor_count; p++) {
            double cost = input->costs[t * input->processor_count + p];
            if (cost != WORKLOAD_CANNOT &&
                !is_between(cost, WORKLOAD_TIME_LEAST, WORKLOAD_TIME_MOST)) {
                fault->processor = (uint32_t)p;
                return WORKLOAD_BAD_COST;
            }
            runs = runs || cost != WORKLOAD_CANNOT;
        }
        if (!runs) {
            return WORKLOAD_NOWHERE;
        }
    }
    fault->task = WORKLOAD_NONE;
    return WORKLOAD_OK;
}

static enum workload_status add_links(const struct workload_input *input, struct workload *graph,
                                      struct workload_fault *fault)
{
    size_t count = input->processor_count;
    for (size_t i = 0; i < count * count; i++) {
        bool is_own = i % (count + 1) == 0;
        graph->latency[i] = is_own ? 0 : INFINITY;
        graph->bandwidth[i] = INFINITY;
    }
    double latencies = 0;
    double slownesses = 0;
    graph->least_latency = input->link_count > 0 ? INFINITY : 0;
    graph->least_slowness = graph->least_latency;
    for (size_t i = 0; i < input->link_count; i++) {
        const struct workload_link *link = &input->links[i];
        size_t at = link->from * count + link->to;
        fault->link = (uint32_t)i;
        assert(link->from < count);
        assert(link->to < count);
        if (link->from == link->to || !is_between(link->latency, 0, WORKLOAD_TIME_MOST) ||
            !is_between(link->bandwidth, WORKLOAD_BANDWIDTH_LEAST, WORKLOAD_BANDWIDTH_MOST)) {
            return WORKLOAD_BAD_LINK;
        }
        if (graph->latency[at] < INFINITY) {
            return WORKLOAD_DUPLICATE;
        }
        graph->latency[at] = link->latency;
        graph->bandwidth[at] = link->bandwidth;
        latencies += link->latency;
        slownesses += 1 / link->bandwidth;
        graph->least_latency = fmin(graph->least_latency, link->latency);
        graph->least_slowness = fmin(graph->least_slowness, 1 / link->bandwidth);
    }
    fault->link = WORKLOAD_NONE;
    if (input->link_count > 0) {
        graph->mean_latency = latencies / (double)input->link_count;
        graph->mean_slowness = slownesses / (double)input->link_count;
    }
    graph->is_linked = input->link_count == count * (count - 1);
    return WORKLOAD_OK;
}

/* ---------------------------------------------------------------- edges */

/* Sorts the edges into rows by counting; the task of the edge chooses the row. */
static void fill_rows(const struct workload_input *input, bool out, uint32_t *first,
                      struct workload_arc *arcs)
{
    for (size_t i = 0; i < input->edge_count; i++) {
        const struct workload_edge *edge = &input->edges[i];
        first[(out ? edge->from : edge->to) + 1]++;
    }
    for (size_t t = 0; t < input->task_count; t++) {
        first[t + 1] += first[t];
    }
    for (size_t i = input->edge_count; i-- > 0;) { /* each row is filled from its end */
        const struct workload_edge *edge = &input->edges[i];
        uint32_t row = out ? edge->from : edge->to;
        first[row + 1]--;
        arcs[first[row + 1]] =
            (struct workload_arc){.task = out ? edge->to : edge->from, .bytes = edge->bytes};
    }
    /* Each row's end has become its beginning: the value at t + 1 belongs at t. */
    memmove(first, first + 1, input->task_count * sizeof *first);
    first[input->task_count] = (uint32_t)input->edge_count;
}

static enum workload_status add_edges(const struct workload_input *input, struct workload *graph,
                                      struct workload_fault *fault)
{
    for (size_t i = 0; i < input->edge_count; i++) {
        const struct workload_edge *edge = &input->edges[i];
        fault->edge = (uint32_t)i;
        assert(edge->from < input->task_count);
        assert(edge->to < input->task_count);
        if (!is_between(edge->bytes, 0, WORKLOAD_BYTES_MOST) ||
            (input->link_count > 0 &&
             !(graph->least_latency + edge->bytes * graph->least_slowness <= WORKLOAD_TIME_MOST))) {
            return WORKLOAD_BAD_BYTES;
        }
        if (edge->from == edge->to) {
            fault->cycle[0] = edge->from;
            fault->cycle_count = 1;
            return WORKLOAD_CYCLE;
        }
    }
    fault->edge = WORKLOAD_NONE;
    fill_rows(input, true, graph->out_first, graph->out);
    fill_rows(input, false, graph->in_first, graph->in);
    return WORKLOAD_OK;
}

/* ---------------------------------------------------------------- topological order */

static void heap_push(uint32_t *heap, size_t *count, uint32_t task)
{
    size_t at = (*count)++;
    while (at > 0 && heap[(at - 1) / 2] > task) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = task;
}

static uint32_t heap_pop(uint32_t *heap, size_t *count)
{
    uint32_t top = heap[0];
    uint32_t last = heap[--*count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child < *count && child + 1 < *count && heap[child + 1] < heap[child]) {
            child++;
        }
        if (child >= *count || heap[child] >= last) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* Finds a cycle. A task that was never ready waits, directly or through others, for a cycle. So the
 * walk from task to waiting predecessor must return to an earlier task. */
static void find_cycle(const struct workload *graph, const uint32_t *missing,
                       struct workload_fault *fault)
{
    uint32_t at = 0;
    while (missing[at] == 0) {
        at++;
    }
    for (uint32_t step = 0; step < graph->task_count; step++) { /* inside a cycle afterwards */
        const struct workload_arc *arc = &graph->in[graph->in_first[at]];
        while (missing[arc->task] == 0) {
            arc++;
        }
        at = arc->task;
    }
    uint32_t begin = at;
    do {
        const struct workload_arc *arc = &graph->in[graph->in_first[at]];
        while (missing[arc->task] == 0) {
            arc++;
        }
        if (fault->cycle_count < WORKLOAD_CYCLE_SHOWN) {
            fault->cycle[fault->cycle_count] = at;
        }
        fault->cycle_count++;
        at = arc->task;
    } while (at != begin);
    uint32_t shown =
        fault->cycle_count < WORKLOAD_CYCLE_SHOWN ? fault->cycle_count : WORKLOAD_CYCLE_SHOWN;
    for (uint32_t i = 0; i < shown / 2; i++) { /* the walk went against the edges */
        uint32_t other = fault->cycle[i];
        fault->cycle[i] = fault->cycle[shown - 1 - i];
        fault->cycle[shown - 1 - i] = other;
    }
}

static enum workload_status make_order(struct workload *graph, struct workload_fault *fault)
{
    uint32_t *missing = room_for(graph->task_count, sizeof *missing);
    uint32_t *ready = room_for(graph->task_count, sizeof *ready);
    size_t ready_count = 0;
    uint32_t done = 0;
    enum workload_status status = WORKLOAD_NO_MEMORY;
    if (missing == NULL || ready == NULL) {
        goto end;
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        missing[t] = graph->in_first[t + 1] - graph->in_first[t];
        if (missing[t] == 0) {
            heap_push(ready, &ready_count, t);
        }
    }
    while (ready_count > 0) {
        uint32_t task = heap_pop(ready, &ready_count);
        graph->position[task] = done;
        graph->order[done++] = task;
        for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
            if (--missing[graph->out[i].task] == 0) {
                heap_push(ready, &ready_count, graph->out[i].task);
            }
        }
    }
    status = done == graph->task_count ? WORKLOAD_OK : WORKLOAD_CYCLE;
    if (status == WORKLOAD_CYCLE) {
        find_cycle(graph, missing, fault);
    }
end:
    free(missing);
    free(ready);
    return status;
}

/* Rebuilds the rows by position. Going through the tasks in order, and writing each into its
 * neighbours' rows, sorts all rows at once. Equal neighbours become adjacent. */
static enum workload_status sort_rows(struct workload *graph, const struct workload_input *input,
                                      struct workload_fault *fault)
{
    uint32_t *next = room_for(graph->task_count, sizeof *next);
    struct workload_arc *sorted = room_for(graph->edge_count, sizeof *sorted);
    enum workload_status status = WORKLOAD_NO_MEMORY;
    if (next == NULL || sorted == NULL) {
        goto end;
    }
    status = WORKLOAD_OK;
    memcpy(next, graph->out_first, graph->task_count * sizeof *next);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        for (uint32_t j = graph->in_first[task]; j < graph->in_first[task + 1]; j++) {
            sorted[next[graph->in[j].task]++] =
                (struct workload_arc){.task = task, .bytes = graph->in[j].bytes};
        }
    }
    memcpy(graph->out, sorted, graph->edge_count * sizeof *sorted);
    memcpy(next, graph->in_first, graph->task_count * sizeof *next);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        for (uint32_t j = graph->out_first[task]; j < graph->out_first[task + 1]; j++) {
            bool again = j > graph->out_first[task] && graph->out[j - 1].task == graph->out[j].task;
            if (again) {
                fault->task = task;
                fault->edge = 0;
                while (input->edges[fault->edge].from != task ||
                       input->edges[fault->edge].to != graph->out[j].task) {
                    fault->edge++;
                }
                status = WORKLOAD_DUPLICATE;
                goto end;
            }
            sorted[next[graph->out[j].task]++] =
                (struct workload_arc){.task = task, .bytes = graph->out[j].bytes};
        }
    }
    memcpy(graph->in, sorted, graph->edge_count * sizeof *sorted);
end:
    free(next);
    free(sorted);
    return status;
}

/* Returns true when some pair of processors can run the edge's tasks and carry its bytes. */
static bool is_carried(const struct workload *graph, const struct workload_edge *edge)
{
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        for (uint32_t q = 0; workload_can_run(graph, edge->from, p) && q < graph->processor_count;
             q++) {
            if (workload_can_run(graph, edge->to, q) &&
                graph->latency[(size_t)p * graph->processor_count + q] < INFINITY) {
                return true;
            }
        }
    }
    return false;
}

static enum workload_status check_links(const struct workload *graph,
                                        const struct workload_input *input,
                                        struct workload_fault *fault)
{
    for (size_t i = 0; !graph->is_linked && i < input->edge_count; i++) {
        if (!is_carried(graph, &input->edges[i])) {
            fault->edge = (uint32_t)i;
            return WORKLOAD_NO_LINK;
        }
    }
    return WORKLOAD_OK;
}

/* No schedule made here is longer than all costs and transfers together, at their slowest. If the
 * shortest task still counts beside this sum, every task takes time wherever it runs. */
static enum workload_status check_spread(const struct workload *graph,
                                         const struct workload_input *input,
                                         struct workload_fault *fault)
{
    double all = 0;
    double least = INFINITY;
    uint32_t shortest = 0;
    double latency = 0;
    double slowness = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        double most = 0;
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            double cost = workload_cost(graph, t, p);
            most = cost < WORKLOAD_CANNOT && cost > most ? cost : most;
            shortest = cost < least ? t : shortest;
            least = cost < least ? cost : least;
        }
        all += most;
    }
    for (size_t i = 0; i < input->link_count; i++) {
        latency = fmax(latency, input->links[i].latency);
        slowness = fmax(slowness, 1 / input->links[i].bandwidth);
    }
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        all += latency + graph->out[i].bytes * slowness;
    }
    if (all > least * WORKLOAD_SPREAD_MOST) {
        fault->task = shortest;
        return WORKLOAD_SPREAD;
    }
    return WORKLOAD_OK;
}

static bool make_room(const struct workload_input *input, struct workload *graph)
{
    size_t tasks = input->task_count;
    size_t pairs = input->processor_count * input->processor_count;
    graph->task_count = (uint32_t)tasks;
    graph->processor_count = (uint32_t)input->processor_count;
    graph->edge_count = (uint32_t)input->edge_count;
    graph->costs = room_for(tasks * input->processor_count, sizeof *graph->costs);
    graph->out_first = room_for(tasks + 1, sizeof *graph->out_first);
    graph->in_first = room_for(tasks + 1, sizeof *graph->in_first);
    graph->out = room_for(input->edge_count, sizeof *graph->out);
    graph->in = room_for(input->edge_count, sizeof *graph->in);
    graph->order = room_for(tasks, sizeof *graph->order);
    graph->position = room_for(tasks, sizeof *graph->position);
    graph->latency = room_for(pairs, sizeof *graph->latency);
    graph->bandwidth = room_for(pairs, sizeof *graph->bandwidth);
    return graph->costs != NULL && graph->out_first != NULL && graph->in_first != NULL &&
           graph->out != NULL && graph->in != NULL && graph->order != NULL &&
           graph->position != NULL && graph->latency != NULL && graph->bandwidth != NULL;
}

enum workload_status workload_create(const struct workload_input *input,
                                     struct workload **ret_graph, struct workload_fault *ret_fault)
{
    struct workload_fault fault = {WORKLOAD_NONE, WORKLOAD_NONE, WORKLOAD_NONE,
                                   WORKLOAD_NONE, {0},           0};
    enum workload_status status =
        is_size_good(input) ? check_costs(input, &fault) : WORKLOAD_TOO_LARGE;
    struct workload *graph = status == WORKLOAD_OK ? calloc(1, sizeof *graph) : NULL;
    if (status == WORKLOAD_OK && (graph == NULL || !make_room(input, graph))) {
        status = WORKLOAD_NO_MEMORY;
    }
    if (status == WORKLOAD_OK) {
        memcpy(graph->costs, input->costs,
               input->task_count * input->processor_count * sizeof *graph->costs);
        status = add_links(input, graph, &fault);
    }
    if (status == WORKLOAD_OK) {
        status = add_edges(input, graph, &fault);
    }
    if (status == WORKLOAD_OK) {
        status = make_order(graph, &fault);
    }
    if (status == WORKLOAD_OK) {
        status = sort_rows(graph, input, &fault);
    }
    if (status == WORKLOAD_OK) {
        status = check_links(graph, input, &fault);
    }
    if (status == WORKLOAD_OK) {
        status = check_spread(graph, input, &fault);
    }
    if (status != WORKLOAD_OK) {
        workload_destroy(&graph);
        *ret_fault = fault;
        return status;
    }
    *ret_graph = graph;
    return WORKLOAD_OK;
}
