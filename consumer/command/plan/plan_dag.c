/* This file runs plan --dag, which reads a graph file (formats/dag.h), and plans the graph
 * (planner/schedule/portfolio.h). Tables, a timeline or a picture show the result. */
#include "consumer/command/plan/plan_dag.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/command/plan/dag_refusal.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/show.h"
#include "formats/dag.h"
#include "planner/schedule/portfolio.h"
#include "planner/schedule/usage.h"
#include "runtime/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dag_plan {
    struct invocation *invocation;
    const char *path;
    struct dag_file *file;
    struct workload *graph;
    struct schedule *schedule;
    struct portfolio portfolio;
    bool is_auto;
    enum portfolio_method method; /* method when it is not auto */
    uint32_t *sequence;           /* tasks by start */
    struct usage *usage;
    bool is_contended;
};

/* Tables list no more rows than this; --json has all. */
enum { TASKS_SHOWN = 100, PROCESSORS_SHOWN = 32, LINKS_SHOWN = 16 };

static void plan_fini(struct dag_plan *plan)
{
    dag_file_destroy(&plan->file);
    workload_destroy(&plan->graph);
    schedule_destroy(&plan->schedule);
    usage_destroy(&plan->usage);
    free(plan->sequence);
}

/* ---------------------------------------------------------------- reading and planning */

static bool read_method(struct dag_plan *plan)
{
    const char *names[PORTFOLIO_METHODS + 1];
    const char *text = option_text(plan->invocation, "scheduler", "auto");
    plan->is_auto = strcmp(text, "auto") == 0;
    for (int i = 0; i < PORTFOLIO_METHODS; i++) {
        names[i] = portfolio_name((enum portfolio_method)i);
        if (strcmp(names[i], text) == 0) {
            plan->method = (enum portfolio_method)i;
            bool is_possible = plan->method != PORTFOLIO_EXACT || !plan->is_contended;
            if (!is_possible) {
                (void)complain(plan->invocation, BOURSE_USAGE,
                               "--scheduler exact knows no --contended links; use auto");
            }
            return is_possible;
        }
    }
    names[PORTFOLIO_METHODS] = "auto";
    if (plan->is_auto) {
        return true;
    }
    const char *near = text_nearest(text, names, PORTFOLIO_METHODS + 1);
    (void)complain(plan->invocation, BOURSE_USAGE,
                   "--scheduler: '%s' is none of heft, peft, cpop, exact and auto%s%s", text,
                   near != NULL ? "; did you mean " : "; `man bourse` has others",
                   near != NULL ? near : "");
    return false;
}

/* Returns 0, or the exit status after a message. */
static int read_graph(struct dag_plan *plan)
{
    struct problem problem = {.text = ""};
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!file_read(plan->path, DAG_FILE_BYTES, &bytes, &length, &problem)) {
        return complain(plan->invocation, BOURSE_USAGE, "%s", problem.text);
    }
    enum dag_status read = dag_parse((const char *)bytes, length, &plan->file, &problem);
    free(bytes);
    if (read != DAG_OK) {
        return read == DAG_NO_MEMORY ? dag_no_memory(plan->invocation, plan->path)
                                     : dag_refuse(plan->invocation, plan->path, BOURSE_USAGE,
                                                  dag_status_name(read), problem.text);
    }
    const struct dag_file *file = plan->file;
    struct workload_link *links = calloc(file->link_count + 1, sizeof *links);
    struct workload_edge *edges = calloc(file->edge_count + 1, sizeof *edges);
    struct workload_fault fault = {.cycle_count = 0};
    enum workload_status status = WORKLOAD_NO_MEMORY;
    if (links != NULL && edges != NULL) {
        for (size_t i = 0; i < file->link_count; i++) {
            const struct dag_link *link = &file->links[i];
            links[i] = (struct workload_link){link->from, link->to, link->latency, link->bandwidth};
        }
        for (size_t i = 0; i < file->edge_count; i++) {
            const struct dag_edge *edge = &file->edges[i];
            edges[i] = (struct workload_edge){edge->from, edge->to, edge->bytes};
        }
        const struct workload_input input = {.task_count = file->task_count,
                                             .processor_count = file->processor_count,
                                             .link_count = file->link_count,
                                             .edge_count = file->edge_count,
                                             .costs = file->costs,
                                             .links = links,
                                             .edges = edges};
        status = workload_create(&input, &plan->graph, &fault);
    }
    free(links);
    free(edges);
    return status == WORKLOAD_OK
               ? BOURSE_OK
               : dag_refuse_graph(plan->invocation, plan->path, plan->file, status, &fault);
}

static int make_schedule(struct dag_plan *plan)
{
    const struct workload *graph = plan->graph;
    struct portfolio_options options = portfolio_defaults();
    char text[200];
    options.is_contended = plan->is_contended;
    if (!plan->is_auto && plan->method == PORTFOLIO_EXACT) {
        options.exact_steps = PORTFOLIO_PROOF_STEPS;
    }
    plan->schedule = schedule_create(graph->task_count);
    plan->sequence = calloc(graph->task_count, sizeof *plan->sequence);
    if (plan->schedule == NULL || plan->sequence == NULL) {
        return dag_no_memory(plan->invocation, plan->path);
    }
    enum scheduler_status status =
        plan->is_auto ? portfolio_schedule(graph, &options, plan->schedule, &plan->portfolio)
                      : portfolio_single_method(graph, plan->method, &options, plan->schedule,
                                                &plan->portfolio);
    switch (status) {
    case SCHEDULER_OK:
        break;
    case SCHEDULER_NOWHERE:
        (void)snprintf(text, sizeof text, "%s found no processors for all tasks that %s allow%s",
                       plan->is_auto ? "no scheduler" : portfolio_name(plan->method),
                       plan->method == PORTFOLIO_SINGLE && !plan->is_auto ? "their costs"
                                                                          : "the links",
                       plan->is_auto ? "" : "; --scheduler auto tries more");
        return dag_refuse(plan->invocation, plan->path, BOURSE_NO_MATCH, "DAG_NO_PLAN", text);
    case SCHEDULER_TOO_MANY:
        (void)snprintf(text, sizeof text,
                       "%u tasks on %u processors; exact takes at most %d on %d: use auto",
                       graph->task_count, graph->processor_count, EXACT_TASKS, EXACT_PROCESSORS);
        return dag_refuse(plan->invocation, plan->path, BOURSE_USAGE, "DAG_TOO_LARGE", text);
    case SCHEDULER_NO_MEMORY:
        return dag_no_memory(plan->invocation, plan->path);
    }
    plan->usage = usage_create(graph, plan->schedule);
    bool is_ready = plan->usage != NULL && schedule_sequence(graph, plan->schedule, plan->sequence);
    return is_ready ? BOURSE_OK : dag_no_memory(plan->invocation, plan->path);
}

/* ---------------------------------------------------------------- showing it */

static double gap_of(const struct dag_plan *plan)
{
    return plan->schedule->makespan / plan->portfolio.bound - 1;
}

/* Returns the best single processor, or WORKLOAD_NONE when none can run all tasks. */
static uint32_t best_single(const struct workload *graph, double *ret_time)
{
    uint32_t best = WORKLOAD_NONE;
    *ret_time = INFINITY;
    for (uint32_t p = 0; p < graph->processor_count; p++) {
        double time = single_time(graph, p);
        best = time < *ret_time ? p : best;
        *ret_time = time < *ret_time ? time : *ret_time;
    }
    return best;
}

/* The share is of the whole makespan. */
static double share_of(const struct dag_plan *plan, double busy)
{
    return busy / plan->schedule->makespan;
}

static json_t *json_processors(const struct dag_plan *plan)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < plan->graph->processor_count; i++) {
        const struct usage_processor *use = &plan->usage->processors[i];
        (void)json_array_append_new(rows, json_pack("{s:s, s:i, s:f, s:f}", "processor",
                                                    plan->file->processors[i], "tasks",
                                                    (int)use->tasks, "busy", use->busy, "share",
                                                    share_of(plan, use->busy)));
    }
    return rows;
}

static json_t *json_links(const struct dag_plan *plan)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < plan->usage->link_count; i++) {
        const struct usage_link *use = &plan->usage->links[i];
        json_t *row =
            json_pack("{s:s, s:s, s:i, s:f, s:f}", "src", plan->file->processors[use->from], "dst",
                      plan->file->processors[use->to], "transfers", (int)use->transfers, "bytes",
                      use->bytes, "busy", use->busy);
        if (plan->is_contended) {
            (void)json_object_set_new(row, "share", json_real(share_of(plan, use->busy)));
        }
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

static int show_json(const struct dag_plan *plan)
{
    const struct dag_file *file = plan->file;
    const struct schedule *schedule = plan->schedule;
    json_t *rows = json_array();
    json_t *methods = json_object();
    for (uint32_t i = 0; i < plan->graph->task_count; i++) {
        uint32_t task = plan->sequence[i];
        json_t *row =
            json_pack("{s:s, s:s, s:f, s:f, s:f}", "task", file->tasks[task], "processor",
                      file->processors[schedule->processor[task]], "start", schedule->start[task],
                      "finish", schedule->finish[task], "ready", plan->usage->ready[task]);
        (void)json_array_append_new(rows, row);
    }
    for (int i = 0; i < PORTFOLIO_METHODS; i++) {
        if (plan->portfolio.makespans[i] < INFINITY) {
            (void)json_object_set_new(methods, portfolio_name((enum portfolio_method)i),
                                      json_real(plan->portfolio.makespans[i]));
        }
    }
    double single_makespan = 0;
    uint32_t single = best_single(plan->graph, &single_makespan);
    json_t *baseline = single == WORKLOAD_NONE
                           ? json_null()
                           : json_pack("{s:s, s:f}", "processor", file->processors[single],
                                       "makespan", single_makespan);
    json_t *value = json_pack(
        "{s:s, s:s, s:b, s:o, s:f, s:f, s:f, s:b, s:s, s:s, s:o, s:o}", "name", file->name,
        "time_unit", file->time_unit, "contended", (int)plan->is_contended, "schedule", rows,
        "makespan", schedule->makespan, "lower_bound", plan->portfolio.bound, "gap", gap_of(plan),
        "proved", (int)plan->portfolio.is_proved, "scheduler",
        plan->is_auto ? "auto" : portfolio_name(plan->method), "found_by",
        portfolio_name(plan->portfolio.found_by), "makespans", methods, "best_single", baseline);
    (void)json_object_set_new(value, "processors", json_processors(plan));
    (void)json_object_set_new(value, "links", json_links(plan));
    (void)json_object_set_new(value, "transfers", json_integer(plan->usage->transfers));
    (void)json_object_set_new(value, "bytes_moved", json_real(plan->usage->bytes));
    return json_print(value, BOURSE_OK);
}

struct number {
    char text[32];
};

static struct number number_of(double value)
{
    struct number number;
    (void)snprintf(number.text, sizeof number.text, "%.9g", value);
    return number;
}

static struct number percent_of(const struct dag_plan *plan, double busy)
{
    struct number number;
    (void)snprintf(number.text, sizeof number.text, "%.0f%%", floor(100 * share_of(plan, busy)));
    return number;
}

static void say_others(size_t count, const char *what)
{
    if (count > 0) {
        (void)printf("and %zu more %s%s: --json has them\n", count, what, text_plural(count));
    }
}

static void show_tasks(const struct dag_plan *plan)
{
    static const char *const titles[] = {"TASK", "PROCESSOR", "START", "FINISH"};
    const struct schedule *schedule = plan->schedule;
    uint32_t count = plan->graph->task_count;
    uint32_t shown = count <= TASKS_SHOWN ? count : TASKS_SHOWN;
    struct grid table = grid_of(4, titles, "llrr");
    for (uint32_t i = 0; i < shown; i++) {
        uint32_t task = plan->sequence[i];
        struct number start = number_of(schedule->start[task]);
        struct number finish = number_of(schedule->finish[task]);
        const char *cells[] = {cell_plain(plan->file->tasks[task]),
                               cell_plain(plan->file->processors[schedule->processor[task]]),
                               start.text, finish.text};
        grid_add(&table, cells);
    }
    grid_print(&table, stdout, plan->invocation->color);
    grid_fini(&table);
    say_others(count - shown, "task");
}

static void show_processors(const struct dag_plan *plan)
{
    static const char *const titles[] = {"PROCESSOR", "TASKS", "BUSY", "SHARE"};
    uint32_t count = plan->graph->processor_count;
    uint32_t shown = count <= PROCESSORS_SHOWN ? count : PROCESSORS_SHOWN;
    struct grid table = grid_of(4, titles, "lrrr");
    for (uint32_t p = 0; p < shown; p++) {
        const struct usage_processor *use = &plan->usage->processors[p];
        char tasks[16];
        struct number busy = number_of(use->busy);
        struct number share = percent_of(plan, use->busy);
        (void)snprintf(tasks, sizeof tasks, "%u", use->tasks);
        const char *cells[] = {cell_plain(plan->file->processors[p]), tasks, busy.text, share.text};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, plan->invocation->color);
    grid_fini(&table);
    say_others(count - shown, "processor");
}

/* A link that carries any number of transfers at once has no share. */
static void show_links(const struct dag_plan *plan)
{
    static const char *const titles[] = {"LINK", "TRANSFERS", "BYTES", "BUSY", "SHARE"};
    const struct usage *usage = plan->usage;
    if (!plan->is_contended || usage->link_count == 0) {
        return;
    }
    size_t shown = usage->link_count <= LINKS_SHOWN ? usage->link_count : LINKS_SHOWN;
    struct grid table = grid_of(5, titles, "lrrrr");
    for (size_t i = 0; i < shown; i++) {
        const struct usage_link *use = &usage->links[i];
        char name[CELL_SIZE];
        char transfers[16];
        struct number bytes = number_of(use->bytes);
        struct number busy = number_of(use->busy);
        struct number share = percent_of(plan, use->busy);
        (void)snprintf(name, sizeof name, "%.70s -> %.70s",
                       cell_plain(plan->file->processors[use->from]),
                       cell_plain(plan->file->processors[use->to]));
        (void)snprintf(transfers, sizeof transfers, "%u", use->transfers);
        const char *cells[] = {name, transfers, bytes.text, busy.text, share.text};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, plan->invocation->color);
    grid_fini(&table);
    say_others(usage->link_count - shown, "link");
}

/* Returns the unit of time, e.g. "units" in "73 units". */
static const char *unit_of(const struct dag_plan *plan)
{
    return cell_plain(plan->file->time_unit);
}

static void show_figures(const struct dag_plan *plan)
{
    const char *unit = unit_of(plan);
    const char *blank = unit[0] != '\0' ? " " : "";
    double single_makespan = 0;
    uint32_t single = best_single(plan->graph, &single_makespan);
    (void)printf("\nmakespan     %.9g%s%s, found by %s\n", plan->schedule->makespan, blank, unit,
                 portfolio_name(plan->portfolio.found_by));
    if (plan->portfolio.is_proved) {
        (void)printf("lower bound  %.9g%s%s: proved, none is better\n", plan->portfolio.bound,
                     blank, unit);
    } else {
        (void)printf("lower bound  %.9g%s%s: none is better by more than %.1f%%\n",
                     plan->portfolio.bound, blank, unit,
                     100 * (1 - plan->portfolio.bound / plan->schedule->makespan));
    }
    if (single != WORKLOAD_NONE) {
        (void)printf("best single  %.9g%s%s on %s: %.2f times as long\n", single_makespan, blank,
                     unit, cell_plain(plan->file->processors[single]),
                     single_makespan / plan->schedule->makespan);
    } else {
        (void)printf("best single  none: no processor can run all tasks\n");
    }
    (void)printf("moved        %.9g bytes in %u transfer%s\n", plan->usage->bytes,
                 plan->usage->transfers, text_plural(plan->usage->transfers));
}

/* ---------------------------------------------------------------- drawing it */

static struct picture *draw(const struct dag_plan *plan)
{
    const struct picture_schedule drawn = {
        .task_count = plan->graph->task_count,
        .processor_count = plan->graph->processor_count,
        .processor = plan->schedule->processor,
        .start = plan->schedule->start,
        .finish = plan->schedule->finish,
        .makespan = plan->schedule->makespan,
        .unit = plan->file->time_unit,
        .task_names = (const char *const *)plan->file->tasks,
        .processor_names = (const char *const *)plan->file->processors,
    };
    return picture_of_schedule(&drawn);
}

static int write_svg(struct dag_plan *plan, const char *path)
{
    CLEANUP(picture_destroy) struct picture *picture = draw(plan);
    int status = BOURSE_OK;
    char line[300];
    if (picture == NULL) {
        return dag_no_memory(plan->invocation, plan->path);
    }
    (void)snprintf(line, sizeof line,
                   "%u tasks on %u processors: makespan %.9g %.40s, found by %s; no schedule is "
                   "below %.9g; %.9g bytes moved",
                   plan->graph->task_count, plan->graph->processor_count, plan->schedule->makespan,
                   unit_of(plan), portfolio_name(plan->portfolio.found_by), plan->portfolio.bound,
                   plan->usage->bytes);
    picture->title = plan->file->name[0] != '\0' ? plan->file->name : plan->path;
    picture->line = line;
    picture->note = plan->is_contended ? "Planned: nothing has run. Links carry one transfer at a "
                                         "time."
                                       : "Planned: nothing has run.";
    (void)picture_write(plan->invocation, path, picture_svg(picture), &status);
    return status;
}

static void show_timeline(struct dag_plan *plan, unsigned width)
{
    CLEANUP(picture_destroy) struct picture *picture = draw(plan);
    const struct picture_style style = picture_style_of(plan->invocation, width);
    picture_print(picture != NULL ? picture_timeline(picture, &style) : NULL);
}

int plan_dag(struct invocation *invocation)
{
    struct dag_plan plan = {.invocation = invocation,
                            .path = option_text(invocation, "dag", ""),
                            .is_contended = option_given(invocation, "contended")};
    unsigned width = 0;
    const char *svg = NULL;
    int status = BOURSE_USAGE;
    if (picture_width(invocation, &width) && picture_path(invocation, &svg, &status) &&
        read_method(&plan)) {
        status = read_graph(&plan);
    }
    if (status == BOURSE_OK) {
        status = make_schedule(&plan);
    }
    if (status == BOURSE_OK && svg != NULL) {
        status = write_svg(&plan, svg);
    }
    if (status == BOURSE_OK && invocation->json) {
        status = show_json(&plan);
    } else if (status == BOURSE_OK && invocation->quiet) {
        (void)printf("%.9g\n", plan.schedule->makespan);
    } else if (status == BOURSE_OK) {
        show_tasks(&plan);
        show_processors(&plan);
        show_links(&plan);
        show_timeline(&plan, width);
        show_figures(&plan);
    }
    plan_fini(&plan);
    return status;
}
