/* Graph files: what is read and makes a graph is planned by every scheduler, with links as
 * resources and without, soundly, and no bound is beaten. */
#include "formats/dag.h"
#include "planner/schedule/portfolio.h"
#include "tests/support/schedule_verify.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { COSTS_PLANNED = 4096, STEPS = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan(const struct workload *graph, bool is_contended)
{
    struct schedule *schedule = schedule_create(graph->task_count);
    struct portfolio_options options = portfolio_defaults();
    options.exact_steps = STEPS;
    options.improve_steps = STEPS;
    options.is_contended = is_contended;
    for (int i = 0; schedule != NULL && i < PORTFOLIO_METHODS; i++) {
        struct portfolio portfolio;
        uint32_t task = 0;
        if (portfolio_single_method(graph, (enum portfolio_method)i, &options, schedule,
                                    &portfolio) == SCHEDULER_OK) {
            assert(schedule_verify(graph, schedule, &task) == SCHEDULE_SOUND);
            assert(portfolio.bound <= schedule->makespan * (1 + 1e-9));
        }
    }
    schedule_destroy(&schedule);
}

static void make_workload(const struct dag_file *file)
{
    struct workload_link *links = calloc(file->link_count + 1, sizeof *links);
    struct workload_edge *edges = calloc(file->edge_count + 1, sizeof *edges);
    assert(links != NULL && edges != NULL);
    for (size_t i = 0; i < file->link_count; i++) {
        links[i] = (struct workload_link){file->links[i].from, file->links[i].to,
                                          file->links[i].latency, file->links[i].bandwidth};
    }
    for (size_t i = 0; i < file->edge_count; i++) {
        edges[i] =
            (struct workload_edge){file->edges[i].from, file->edges[i].to, file->edges[i].bytes};
    }
    const struct workload_input input = {.task_count = file->task_count,
                                         .processor_count = file->processor_count,
                                         .link_count = file->link_count,
                                         .edge_count = file->edge_count,
                                         .costs = file->costs,
                                         .links = links,
                                         .edges = edges};
    struct workload *graph = NULL;
    struct workload_fault fault;
    if (workload_create(&input, &graph, &fault) == WORKLOAD_OK) {
        plan(graph, false);
        plan(graph, true);
    }
    workload_destroy(&graph);
    free(links);
    free(edges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dag_file *file = NULL;
    struct problem problem = {""};
    if (dag_parse((const char *)data, size, &file, &problem) != DAG_OK) {
        assert(file == NULL && problem.text[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < file->edge_count; i++) {
        assert(file->edges[i].from < file->task_count && file->edges[i].to < file->task_count);
    }
    if (file->task_count * file->processor_count <= COSTS_PLANNED) {
        make_workload(file);
    }
    dag_file_destroy(&file);
    return 0;
}
