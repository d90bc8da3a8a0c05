/* The exact search is branch and bound. It visits every schedule that could be better than the best
 * known, unless a bound excludes all schedules behind a choice.
 *
 * Tasks are placed in the order of their starts (ties by topological position), each behind the
 * tasks of its processor. So each schedule in which no task could start earlier alone is reached
 * exactly once, and one of these is optimal. Among empty processors that are equal, only the first
 * is tried. The bound on the remaining tasks relaxes the problem. They still wait for their
 * predecessors and for their processor's tasks, but not for one another. All processors together
 * also have to do the least remaining work.
 *
 * The method follows Kasahara and Narita, "Practical multiprocessor scheduling algorithms for
 * efficient parallel processing", IEEE Transactions on Computers C-33(11), 1984. */
#include "planner/schedule/bound.h"
#include "planner/schedule/schedulers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSORS = EXACT_PROCESSORS, STOP_NODES = 1024, PAIRS_OF_STEP = 4 };

struct search {
    const struct workload *graph;
    const struct search_budget *budget;
    struct schedule *best;
    uint64_t left; /* nodes left in the budget */
    bool is_stopped;
    double tails[EXACT_TASKS][PROCESSORS]; /* indexed by topological position, as all below */
    double costs[EXACT_TASKS][PROCESSORS];
    double least_cost[EXACT_TASKS];
    uint32_t class_of[PROCESSORS]; /* the first processor that is equal to it */
    uint32_t before[EXACT_TASKS];  /* predecessors, one bit each */
    double *transfers;             /* see transfers_of */
    /* State of the partial schedule: */
    uint32_t done; /* placed tasks, one bit each */
    uint32_t processor[EXACT_TASKS];
    double start[EXACT_TASKS], finish[EXACT_TASKS];
    double free_from[PROCESSORS];
    uint32_t on_it[PROCESSORS]; /* number of tasks */
};

/* ---------------------------------------------------------------- equal processors */

static bool are_alike(const struct workload *graph, uint32_t a, uint32_t b)
{
    size_t count = graph->processor_count;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        if (workload_cost(graph, t, a) != workload_cost(graph, t, b)) {
            return false;
        }
    }
    for (size_t other = 0; other < count; other++) {
        size_t of_a = other == b ? a : other; /* b takes the place of a */
        size_t there[] = {a * count + other, other * count + a};
        size_t here[] = {b * count + of_a, of_a * count + b};
        for (int i = 0; other != a && i < 2; i++) {
            if (graph->latency[there[i]] != graph->latency[here[i]] ||
                graph->bandwidth[there[i]] != graph->bandwidth[here[i]]) {
                return false;
            }
        }
    }
    return true;
}

static void find_classes(struct search *search)
{
    for (uint32_t p = 0; p < search->graph->processor_count; p++) {
        uint32_t first = 0;
        while (first < p &&
               (search->class_of[first] != first || !are_alike(search->graph, first, p))) {
            first++;
        }
        search->class_of[p] = first;
    }
}

/* An empty processor is tried only if no earlier empty one is equal to it. */
static bool is_worth_trying(const struct search *search, uint32_t p)
{
    bool is_first = true;
    for (uint32_t q = search->class_of[p]; is_first && search->on_it[p] == 0 && q < p; q++) {
        is_first = search->on_it[q] > 0 || search->class_of[q] != search->class_of[p];
    }
    return is_first;
}

/* ---------------------------------------------------------------- bound */

/* Returns the transfers of an arc of `in` from processor `from` to each processor. */
static const double *transfers_of(const struct search *search, uint32_t arc, uint32_t from)
{
    size_t count = search->graph->processor_count;
    return &search->transfers[(arc * count + from) * count];
}

/* Raises `ready`, one number for each processor, to the earliest arrival of the arc's bytes. */
static void await_arc(const struct search *search, uint32_t arc, double starts[][PROCESSORS],
                      double *ready)
{
    uint32_t count = search->graph->processor_count;
    uint32_t from = search->graph->position[search->graph->in[arc].task];
    bool is_done = (search->done >> from & 1) != 0;
    double arrivals[PROCESSORS];
    for (uint32_t p = 0; p < count; p++) {
        arrivals[p] = INFINITY;
    }
    for (uint32_t q = 0; q < count; q++) {
        if (is_done && q != search->processor[from]) {
            continue;
        }
        double finish = is_done ? search->finish[from] : starts[from][q] + search->costs[from][q];
        const double *transfers = transfers_of(search, arc, q);
        for (uint32_t p = 0; p < count; p++) {
            double arrival = finish + transfers[p];
            arrivals[p] = arrival < arrivals[p] ? arrival : arrivals[p];
        }
    }
    for (uint32_t p = 0; p < count; p++) {
        ready[p] = arrivals[p] > ready[p] ? arrivals[p] : ready[p];
    }
}

/* Returns true when no continuation ends before the best known. `starts` becomes the earliest start
 * of each remaining task. */
static bool is_hopeless(const struct search *search, double last_start, double starts[][PROCESSORS])
{
    const struct workload *graph = search->graph;
    uint32_t count = graph->processor_count;
    double limit = search->best->makespan;
    double work = 0;
    for (uint32_t p = 0; p < count; p++) {
        work += fmax(search->free_from[p], last_start);
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        if ((search->done >> i & 1) != 0) {
            continue;
        }
        uint32_t task = graph->order[i];
        double least = INFINITY;
        for (uint32_t p = 0; p < count; p++) {
            starts[i][p] = fmax(search->free_from[p], last_start);
        }
        for (uint32_t j = graph->in_first[task]; j < graph->in_first[task + 1]; j++) {
            await_arc(search, j, starts, starts[i]);
        }
        for (uint32_t p = 0; p < count; p++) {
            least = fmin(least, starts[i][p] + search->tails[i][p]);
        }
        work += search->least_cost[i];
        if (least >= limit) {
            return true;
        }
    }
    return work >= limit * count;
}

/* ---------------------------------------------------------------- search */

static void keep(struct search *search, double makespan)
{
    const struct workload *graph = search->graph;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        search->best->processor[task] = search->processor[i];
        search->best->start[task] = search->start[i];
        search->best->finish[task] = search->finish[i];
    }
    search->best->makespan = makespan;
}

static void search_from(struct search *search, double last_start, uint32_t from, double makespan);

static void try_child(struct search *search, uint32_t i, uint32_t p, double start, double makespan)
{
    double free_before = search->free_from[p];
    search->processor[i] = p;
    search->start[i] = start;
    search->finish[i] = start + search->costs[i][p];
    search->free_from[p] = search->finish[i];
    search->on_it[p]++;
    search->done |= 1u << i;
    search_from(search, start, i + 1, fmax(makespan, search->finish[i]));
    search->done &= ~(1u << i);
    search->on_it[p]--;
    search->free_from[p] = free_before;
}

struct child {
    double start, end; /* `end`: bound of all that follows it */
    uint32_t task, processor;
};

/* Returns true when a ready task could start before `time`, by its inputs and its processor. */
static bool starts_before(const struct search *search, uint32_t i, uint32_t p, double time)
{
    const struct workload *graph = search->graph;
    uint32_t task = graph->order[i];
    bool is_before = search->free_from[p] < time;
    for (uint32_t j = graph->in_first[task]; is_before && j < graph->in_first[task + 1]; j++) {
        uint32_t from = graph->position[graph->in[j].task];
        double carried = transfers_of(search, j, search->processor[from])[p];
        is_before = search->finish[from] + carried < time;
    }
    return is_before;
}

/* Lists where ready tasks could go next, the most promising first. Tasks that start before
 * `last_start` belong to another order. So do tasks that start at it and are below `from`. */
static uint32_t find_children(const struct search *search, double last_start, uint32_t from,
                              double starts[][PROCESSORS], struct child *ret_children)
{
    const struct workload *graph = search->graph;
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        bool is_ready = (search->done >> i & 1) == 0 && (search->before[i] & ~search->done) == 0;
        for (uint32_t p = 0; is_ready && p < graph->processor_count; p++) {
            struct child child = {.start = starts[i][p], .task = i, .processor = p};
            child.end = child.start + search->tails[i][p];
            bool in_turn =
                child.start > last_start || (i >= from && !starts_before(search, i, p, last_start));
            if (!in_turn || !(child.end < search->best->makespan) || !is_worth_trying(search, p)) {
                continue;
            }
            uint32_t at = count++;
            while (at > 0 && ret_children[at - 1].end > child.end) {
                ret_children[at] = ret_children[at - 1];
                at--;
            }
            ret_children[at] = child;
        }
    }
    return count;
}

static void search_from(struct search *search, double last_start, uint32_t from, double makespan)
{
    const struct workload *graph = search->graph;
    double starts[EXACT_TASKS][PROCESSORS];
    struct child children[EXACT_TASKS * PROCESSORS];
    if (search->done == (1u << graph->task_count) - 1) {
        if (makespan < search->best->makespan) {
            keep(search, makespan);
        }
        return;
    }
    const struct search_budget *budget = search->budget;
    if (search->left == 0 ||
        (search->left % STOP_NODES == 0 && budget->stop != NULL && budget->stop(budget->context))) {
        search->is_stopped = true;
    }
    if (search->is_stopped || is_hopeless(search, last_start, starts)) {
        return;
    }
    search->left--;
    uint32_t count = find_children(search, last_start, from, starts, children);
    for (uint32_t i = 0; i < count && !search->is_stopped; i++) {
        if (children[i].end < search->best->makespan) { /* the makespan may have become less */
            try_child(search, children[i].task, children[i].processor, children[i].start, makespan);
        }
    }
}

static bool prepare(struct search *search)
{
    const struct workload *graph = search->graph;
    size_t count = graph->processor_count;
    double tails[EXACT_TASKS * PROCESSORS];
    bound_tails(graph, tails);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = graph->order[i];
        search->least_cost[i] = workload_least_cost(graph, task);
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            search->costs[i][p] = workload_cost(graph, task, p);
            search->tails[i][p] = tails[(size_t)task * graph->processor_count + p];
        }
        for (uint32_t j = graph->in_first[task]; j < graph->in_first[task + 1]; j++) {
            search->before[i] |= 1u << graph->position[graph->in[j].task];
        }
    }
    find_classes(search);
    search->transfers = malloc((graph->edge_count + 1) * count * count * sizeof(double));
    for (size_t i = 0; search->transfers != NULL && i < graph->edge_count * count * count; i++) {
        uint32_t from = (uint32_t)(i / count % count);
        search->transfers[i] = workload_transfer(graph, graph->in[i / (count * count)].bytes, from,
                                                 (uint32_t)(i % count));
    }
    return search->transfers != NULL;
}

enum scheduler_status exact_schedule(const struct workload *graph,
                                     const struct search_budget *budget, struct schedule *schedule,
                                     bool *ret_proved)
{
    if (graph->task_count > EXACT_TASKS || graph->processor_count > EXACT_PROCESSORS) {
        return SCHEDULER_TOO_MANY;
    }
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return SCHEDULER_NO_MEMORY;
    }
    search->graph = graph;
    search->budget = budget;
    search->best = schedule;
    /* A node visits each task, and each pair of processors for most edges. */
    uint64_t pairs = (uint64_t)graph->edge_count * graph->processor_count * graph->processor_count;
    search->left = budget->steps / (graph->task_count + pairs / PAIRS_OF_STEP);
    bool ok = prepare(search);
    if (ok) {
        search_from(search, 0, 0, 0);
        *ret_proved = !search->is_stopped;
    }
    free(search->transfers);
    free(search);
    return ok ? SCHEDULER_OK : SCHEDULER_NO_MEMORY;
}
