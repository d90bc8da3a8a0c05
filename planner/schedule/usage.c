#include "planner/schedule/usage.h"

#include <stdlib.h>

static int busiest_first(const void *a, const void *b)
{
    const struct usage_link *left = a;
    const struct usage_link *right = b;
    if (left->busy != right->busy) {
        return left->busy > right->busy ? -1 : 1;
    }
    if (left->from != right->from) {
        return left->from < right->from ? -1 : 1;
    }
    return left->to < right->to ? -1 : left->to > right->to;
}

static void count_task(const struct workload *graph, const struct schedule *schedule, uint32_t task,
                       struct usage *usage)
{
    uint32_t here = schedule->processor[task];
    usage->processors[here].tasks++;
    usage->processors[here].busy += workload_cost(graph, task, here);
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        const struct workload_arc *arc = &graph->out[i];
        uint32_t there = schedule->processor[arc->task];
        const double carried =
            here == there ? 0 : workload_transfer(graph, arc->bytes, here, there);
        const double arrives = schedule->finish[task] + carried;
        usage->ready[arc->task] =
            arrives > usage->ready[arc->task] ? arrives : usage->ready[arc->task];
        if (here == there) {
            continue;
        }
        struct usage_link *link = &usage->links[(size_t)here * graph->processor_count + there];
        link->from = here;
        link->to = there;
        link->transfers++;
        link->bytes += arc->bytes;
        link->busy += carried;
        usage->transfers++;
        usage->bytes += arc->bytes;
    }
}

struct usage *usage_create(const struct workload *graph, const struct schedule *schedule)
{
    size_t pairs = (size_t)graph->processor_count * graph->processor_count;
    struct usage *usage = calloc(1, sizeof *usage);
    if (usage == NULL) {
        return NULL;
    }
    usage->processors = calloc(graph->processor_count, sizeof *usage->processors);
    usage->links = calloc(pairs, sizeof *usage->links);
    usage->ready = calloc(graph->task_count, sizeof *usage->ready);
    if (usage->processors == NULL || usage->links == NULL || usage->ready == NULL) {
        usage_destroy(&usage);
        return NULL;
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        count_task(graph, schedule, i, usage);
    }
    for (size_t i = 0; i < pairs; i++) {
        if (usage->links[i].transfers > 0) {
            usage->links[usage->link_count++] = usage->links[i];
        }
    }
    qsort(usage->links, usage->link_count, sizeof *usage->links, busiest_first);
    return usage;
}

void usage_destroy(struct usage **self)
{
    if (*self != NULL) {
        free((*self)->processors);
        free((*self)->links);
        free((*self)->ready);
        free(*self);
        *self = NULL;
    }
}
