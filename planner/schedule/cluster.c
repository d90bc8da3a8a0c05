/* Clustering puts tasks that send each other much on one processor; it helps where transfers take
 * longer than computing. It goes through the edges from the longest transfer to the shortest. It
 * merges the clusters of their tasks unless the result exceeds a bound on work. This order of
 * internalising edges is from Sarkar, "Partitioning and scheduling parallel programs for
 * multiprocessors", 1989. Sarkar estimates the whole schedule after each merge, which takes the
 * square of the edges. The bound on work replaces this estimate, and several bounds are tried.
 *
 * Then tasks are placed by falling upward rank. The first task of a cluster decides the processor
 * of the whole cluster. It goes where the task finishes first, but not before the processor could
 * have done all its clusters and this one. */
#include "planner/schedule/place.h"
#include "planner/schedule/rank.h"
#include "planner/schedule/schedulers.h"

#include <stdlib.h>
#include <string.h>

enum { BOUNDS = 10 };

struct clusters {
    const struct workload *graph;
    struct place *place;
    uint32_t *sequence;          /* tasks by falling rank */
    struct workload_edge *edges; /* sorted by falling bytes */
    double *costs;               /* mean cost of each task */
    uint32_t *parent;            /* indexed by task: parent towards the root of its cluster */
    double *work;                /* indexed by root: mean costs of its cluster */
    double *times;               /* indexed by root: times of its cluster on each processor */
    uint32_t *chosen;            /* indexed by root: processor; WORKLOAD_NONE: none yet */
    double *loads;               /* indexed by processor */
    struct schedule *schedule;   /* scratch */
};

static void clusters_fini(struct clusters *clusters)
{
    place_destroy(&clusters->place);
    schedule_destroy(&clusters->schedule);
    free(clusters->sequence);
    free(clusters->edges);
    free(clusters->costs);
    free(clusters->parent);
    free(clusters->work);
    free(clusters->times);
    free(clusters->chosen);
    free(clusters->loads);
}

static int by_bytes(const void *left, const void *right)
{
    const struct workload_edge *a = left;
    const struct workload_edge *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return a->to < b->to ? -1 : a->to > b->to;
}

static bool clusters_init(struct clusters *clusters, const struct workload *graph)
{
    size_t tasks = graph->task_count;
    size_t processors = graph->processor_count;
    *clusters = (struct clusters){.graph = graph};
    clusters->place = place_create(graph);
    clusters->schedule = schedule_create(graph->task_count);
    clusters->sequence = malloc(tasks * sizeof *clusters->sequence);
    clusters->edges = malloc((graph->edge_count + (size_t)1) * sizeof *clusters->edges);
    clusters->costs = malloc(tasks * sizeof *clusters->costs);
    clusters->parent = malloc(tasks * sizeof *clusters->parent);
    clusters->work = malloc(tasks * sizeof *clusters->work);
    clusters->times = malloc(tasks * processors * sizeof *clusters->times);
    clusters->chosen = malloc(tasks * sizeof *clusters->chosen);
    clusters->loads = malloc(processors * sizeof *clusters->loads);
    if (clusters->place == NULL || clusters->schedule == NULL || clusters->sequence == NULL ||
        clusters->edges == NULL || clusters->costs == NULL || clusters->parent == NULL ||
        clusters->work == NULL || clusters->times == NULL || clusters->chosen == NULL ||
        clusters->loads == NULL) {
        return false;
    }
    size_t count = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        clusters->costs[t] = workload_mean_cost(graph, t);
        for (uint32_t i = graph->out_first[t]; i < graph->out_first[t + 1]; i++) {
            clusters->edges[count++] = (struct workload_edge){
                graph->position[t], graph->position[graph->out[i].task], graph->out[i].bytes};
        }
    }
    qsort(clusters->edges, count, sizeof *clusters->edges, by_bytes);
    rank_upward(graph, RANK_MEAN, clusters->work); /* scratch until clusters are made */
    return rank_sequence(graph, clusters->work, clusters->sequence);
}

static uint32_t find(struct clusters *clusters, uint32_t task)
{
    while (clusters->parent[task] != task) {
        clusters->parent[task] = clusters->parent[clusters->parent[task]];
        task = clusters->parent[task];
    }
    return task;
}

/* Makes clusters of at most `bound` work. A larger task is a cluster of its own. */
static void make_clusters(struct clusters *clusters, double bound)
{
    const struct workload *graph = clusters->graph;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        clusters->parent[t] = t;
        clusters->work[t] = clusters->costs[t];
        clusters->chosen[t] = WORKLOAD_NONE;
    }
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        uint32_t a = find(clusters, graph->order[clusters->edges[i].from]);
        uint32_t b = find(clusters, graph->order[clusters->edges[i].to]);
        if (a != b && clusters->work[a] + clusters->work[b] <= bound) {
            bool is_first_larger = clusters->work[a] >= clusters->work[b];
            uint32_t into = is_first_larger ? a : b; /* the larger one keeps its root */
            uint32_t other = is_first_larger ? b : a;
            clusters->parent[other] = into;
            clusters->work[into] += clusters->work[other];
        }
    }
    size_t processors = graph->processor_count;
    memset(clusters->loads, 0, processors * sizeof *clusters->loads);
    memset(clusters->times, 0, graph->task_count * processors * sizeof *clusters->times);
    for (uint32_t t = 0; t < graph->task_count; t++) {
        double *times = &clusters->times[find(clusters, t) * processors];
        for (uint32_t p = 0; p < processors; p++) {
            times[p] += workload_cost(graph, t, p);
        }
    }
}

/* Places a task. The scores favour the cluster's processor, given or to be chosen. Other processors
 * count only if that one is impossible. */
static bool put_task(struct clusters *clusters, uint32_t task)
{
    uint32_t processors = clusters->graph->processor_count;
    uint32_t cluster = find(clusters, task);
    const double *times = &clusters->times[(size_t)cluster * processors];
    double *scores = place_finishes(clusters->place, task);
    uint32_t chosen = clusters->chosen[cluster];
    if (chosen != WORKLOAD_NONE) {
        scores[chosen] = scores[chosen] < INFINITY ? -1 : INFINITY;
        return place_put(clusters->place, task, scores);
    }
    for (uint32_t p = 0; p < processors; p++) {
        double done = clusters->loads[p] + times[p];
        /* A cluster that no processor can run whole goes where its first task finishes first. */
        scores[p] = done < INFINITY ? fmax(scores[p], done) : scores[p] * 2;
    }
    if (!place_put(clusters->place, task, scores)) {
        return false;
    }
    chosen = clusters->schedule->processor[task];
    clusters->chosen[cluster] = chosen;
    clusters->loads[chosen] += times[chosen] < INFINITY ? times[chosen] : clusters->work[cluster];
    return true;
}

static bool put_all(struct clusters *clusters)
{
    bool ok = place_begin(clusters->place, clusters->schedule);
    for (uint32_t i = 0; ok && i < clusters->graph->task_count; i++) {
        ok = put_task(clusters, clusters->sequence[i]);
    }
    return ok;
}

enum scheduler_status cluster_schedule(const struct workload *graph, struct schedule *schedule)
{
    struct clusters clusters;
    enum scheduler_status status = SCHEDULER_NO_MEMORY;
    if (clusters_init(&clusters, graph)) {
        double all = 0;
        for (uint32_t t = 0; t < graph->task_count; t++) {
            all += clusters.costs[t];
        }
        status = SCHEDULER_NOWHERE;
        for (int i = 0; i < BOUNDS; i++) {
            make_clusters(&clusters, all / (double)(1 << 2 * i));
            if (put_all(&clusters) &&
                (status != SCHEDULER_OK || clusters.schedule->makespan < schedule->makespan)) {
                schedule_copy(schedule, clusters.schedule);
                status = SCHEDULER_OK;
            }
        }
    }
    clusters_fini(&clusters);
    return status;
}
