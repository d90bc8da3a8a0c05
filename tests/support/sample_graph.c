#include "tests/support/sample_graph.h"

#include "tests/support/schedule_verify.h"

#include <check.h>
#include <stdlib.h>

struct workload *sample_linked(size_t tasks, size_t processors, const double *costs, size_t edges,
                               const struct workload_edge *list)
{
    struct workload_link *links = calloc(processors * processors, sizeof *links);
    struct workload *graph = NULL;
    struct workload_fault fault;
    size_t count = 0;
    ck_assert_ptr_nonnull(links);
    for (uint32_t p = 0; p < processors; p++) {
        for (uint32_t q = 0; q < processors; q++) {
            if (p != q) {
                links[count++] = (struct workload_link){p, q, 0, 1};
            }
        }
    }
    const struct workload_input input = {.task_count = tasks,
                                         .processor_count = processors,
                                         .link_count = count,
                                         .edge_count = edges,
                                         .costs = costs,
                                         .links = links,
                                         .edges = list};
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    free(links);
    return graph;
}

struct workload *sample_of_heft(void)
{
    static const double costs[] = {14, 16, 9, 13, 19, 18, 11, 13, 19, 13, 8,  17, 12, 13, 10,
                                   13, 16, 9, 7,  15, 11, 5,  11, 14, 18, 12, 20, 21, 7,  16};
    static const struct workload_edge edges[] = {{0, 1, 18}, {0, 2, 12}, {0, 3, 9},  {0, 4, 11},
                                                 {0, 5, 14}, {1, 7, 19}, {1, 8, 16}, {2, 6, 23},
                                                 {3, 7, 27}, {3, 8, 23}, {4, 8, 13}, {5, 7, 15},
                                                 {6, 9, 17}, {7, 9, 11}, {8, 9, 13}};
    return sample_linked(10, 3, costs, sizeof edges / sizeof *edges, edges);
}

struct workload *sample_of_peft(void)
{
    static const double costs[] = {22, 21, 36, 22, 18, 18, 32, 27, 43, 7,  10, 4, 29, 27, 35,
                                   26, 17, 24, 14, 25, 30, 29, 23, 36, 15, 21, 8, 13, 16, 33};
    static const struct workload_edge edges[] = {{0, 1, 17}, {0, 2, 31}, {0, 3, 29}, {0, 4, 13},
                                                 {0, 5, 7},  {1, 7, 3},  {1, 8, 30}, {2, 6, 16},
                                                 {3, 7, 11}, {3, 8, 7},  {4, 8, 57}, {5, 7, 5},
                                                 {6, 9, 9},  {7, 9, 42}, {8, 9, 7}};
    return sample_linked(10, 3, costs, sizeof edges / sizeof *edges, edges);
}

static bool hits(struct random *dice, uint32_t percent)
{
    return random_below(dice, 100) < percent;
}

/* One task in three waits for nothing much; the others for up to three of those shortly before
 * them. */
static size_t add_edges(struct random *dice, const struct sample_shape *shape,
                        struct workload_edge *edges)
{
    uint32_t reach = 1 + (uint32_t)random_below(dice, 2 + shape->tasks / 4);
    size_t count = 0;
    for (uint32_t t = 1; t < shape->tasks; t++) {
        size_t begin = count;
        for (uint64_t left = random_below(dice, 4); left > 0; left--) {
            uint32_t back = 1 + (uint32_t)random_below(dice, reach);
            uint32_t from = back > t ? 0 : t - back;
            bool is_new = true;
            for (size_t i = begin; i < count; i++) {
                is_new = is_new && edges[i].from != from;
            }
            if (is_new) {
                double units = (double)random_below(dice, 40 * (shape->carrying_percent + 1)) / 128;
                edges[count++] =
                    (struct workload_edge){from, t, (double)(uint64_t)(units * 16) / 16};
            }
        }
    }
    return count;
}

struct workload *sample_random(struct random *dice, const struct sample_shape *shape)
{
    size_t pairs = (size_t)shape->processors * shape->processors;
    double *costs = calloc((size_t)shape->tasks * shape->processors, sizeof *costs);
    struct workload_link *links = calloc(pairs, sizeof *links);
    struct workload_edge *edges = calloc(3 * (size_t)shape->tasks, sizeof *edges);
    ck_assert_ptr_nonnull(costs);
    ck_assert_ptr_nonnull(links);
    ck_assert_ptr_nonnull(edges);
    for (uint32_t t = 0; t < shape->tasks; t++) {
        uint32_t surely = (uint32_t)random_below(dice, shape->processors);
        double alike = 1 + (double)random_below(dice, 40);
        for (uint32_t p = 0; p < shape->processors; p++) {
            double cost = shape->is_uniform ? alike : 1 + (double)random_below(dice, 40);
            bool runs = p == surely || hits(dice, shape->runs_percent);
            costs[t * shape->processors + p] = runs ? cost : WORKLOAD_CANNOT;
        }
    }
    size_t link_count = 0;
    for (uint32_t p = 0; p < shape->processors; p++) {
        for (uint32_t q = 0; q < shape->processors; q++) {
            if (p != q && hits(dice, shape->links_percent)) {
                double bandwidth =
                    shape->is_uniform ? 1 : (double)(1u << random_below(dice, 3)) / 2;
                double latency = shape->is_uniform ? 0 : (double)random_below(dice, 3);
                links[link_count++] = (struct workload_link){p, q, latency, bandwidth};
            }
        }
    }
    const struct workload_input input = {.task_count = shape->tasks,
                                         .processor_count = shape->processors,
                                         .link_count = link_count,
                                         .edge_count = add_edges(dice, shape, edges),
                                         .costs = costs,
                                         .links = links,
                                         .edges = edges};
    struct workload *graph = NULL;
    struct workload_fault fault;
    enum workload_status status = workload_create(&input, &graph, &fault);
    ck_assert(status == WORKLOAD_OK || (status == WORKLOAD_NO_LINK && shape->links_percent < 100));
    free(costs);
    free(links);
    free(edges);
    return graph;
}

void sample_check(const struct workload *graph, const struct schedule *schedule)
{
    uint32_t task = WORKLOAD_NONE;
    enum schedule_flaw flaw = schedule_verify(graph, schedule, &task);
    ck_assert_msg(flaw == SCHEDULE_SOUND, "flaw %d of task %u", (int)flaw, task);
}
