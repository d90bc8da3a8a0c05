/* bench/planner.c measures how long a task graph takes to plan. The program prints one JSON object.
 *
 *     planner [--tasks N,N,...] [--processors N] [--json]
 *     planner --forms N [--seed N]
 *
 * The graphs are random and layered, with N tasks [1000,10000,20000,100000] on 16 processors. In
 * `light` graphs an edge takes a tenth of a task's time, in `heavy` ones four times as long. The
 * program gives the processor time of reading each graph in, of each list scheduler and of `auto`,
 * per task too, and the most memory in use so far. `exact` is the time to prove what is best for
 * graphs of 10 tasks on 4 processors. `online` is one decision of planner/schedule/online.h over 64
 * lanes while a job runs. The decision says which lane would be done first with one task more, and
 * from which lane it would take work. `work` plans a language model's answer of 80 layers, in 64
 * stages, on 16 devices of two kinds, by time and by price (planner/layout/plan.h).
 *
 * `--forms` leaves out each form of a plan in turn. It says how much worse the best other plan is,
 * for five workloads and for N random cases (bench/planner/forms.h). */
#include "base/random.h"
#include "bench/give_up.h"
#include "bench/planner/forms.h"
#include "planner/cost/device_set.h"
#include "planner/layout/plan.h"
#include "planner/schedule/online.h"
#include "planner/templates/template_list.h"

#include <jansson.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LAYER = 64, EXACT_GRAPHS = 200, SIZES = 16, ONLINE_LANES = 64, ONLINE_DECISIONS = 100000 };

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double memory_mib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* Makes layers of tasks. Each task waits for up to three tasks of the layer before, and costs
 * differ by up to 4 times between processors. */
static struct workload *make_graph(struct random *dice, size_t tasks, size_t processors,
                                   size_t layer, double carrying)
{
    double *costs = memory(tasks * processors, sizeof *costs);
    struct workload_edge *edges = memory(3 * tasks, sizeof *edges);
    struct workload_link *links = memory(processors * processors, sizeof *links);
    size_t edge_count = 0;
    size_t link_count = 0;
    for (size_t t = 0; t < tasks; t++) {
        double least = 1 + (double)random_below(dice, 20);
        for (size_t p = 0; p < processors; p++) {
            costs[t * processors + p] = least * (1 + (double)random_below(dice, 300) / 100);
        }
        size_t begin = t / layer * layer;
        size_t most = layer < 3 ? layer : 3;
        for (size_t i = 0; begin > 0 && i < most; i++) {
            if (random_below(dice, 4) > 0) {
                edges[edge_count++] = (struct workload_edge){
                    (uint32_t)(begin - layer + (t - begin + i) % layer), (uint32_t)t,
                    carrying * (double)(1 + random_below(dice, 50))};
            }
        }
    }
    for (uint32_t p = 0; p < processors; p++) {
        for (uint32_t q = 0; q < processors; q++) {
            if (p != q) {
                links[link_count++] = (struct workload_link){p, q, 0.1, 1};
            }
        }
    }
    const struct workload_input input = {.task_count = tasks,
                                         .processor_count = processors,
                                         .link_count = link_count,
                                         .edge_count = edge_count,
                                         .costs = costs,
                                         .links = links,
                                         .edges = edges};
    struct workload *graph = NULL;
    struct workload_fault fault;
    if (workload_create(&input, &graph, &fault) != WORKLOAD_OK) {
        die("the graph cannot be planned");
    }
    free(costs);
    free(edges);
    free(links);
    return graph;
}

static json_t *measure(size_t tasks, size_t processors, const char *kind, double carrying)
{
    struct random dice = random_seeded(1);
    double begin = now_s();
    struct workload *graph = make_graph(&dice, tasks, processors, LAYER, carrying);
    json_t *row = json_pack("{s:I, s:I, s:I, s:s, s:f}", "tasks", (json_int_t)tasks, "processors",
                            (json_int_t)processors, "edges", (json_int_t)graph->edge_count, "kind",
                            kind, "make_s", now_s() - begin);
    struct schedule *schedule = schedule_create(graph->task_count);
    const struct portfolio_options options = portfolio_defaults();
    struct portfolio portfolio;
    json_t *methods = json_object();
    for (int i = 0; i < PORTFOLIO_IMPROVE && schedule != NULL; i++) {
        enum portfolio_method method = (enum portfolio_method)i;
        begin = now_s();
        if (portfolio_single_method(graph, method, &options, schedule, &portfolio) ==
            SCHEDULER_OK) {
            (void)json_object_set_new(
                methods, portfolio_name(method),
                json_pack("{s:f, s:f}", "s", now_s() - begin, "makespan", schedule->makespan));
        }
    }
    begin = now_s();
    if (schedule == NULL ||
        portfolio_schedule(graph, &options, schedule, &portfolio) != SCHEDULER_OK) {
        die("no schedule");
    }
    double taken = now_s() - begin;
    (void)json_object_set_new(row, "methods", methods);
    (void)json_object_set_new(row, "auto_s", json_real(taken));
    (void)json_object_set_new(row, "auto_us_per_task", json_real(taken * 1e6 / (double)tasks));
    (void)json_object_set_new(row, "makespan", json_real(schedule->makespan));
    (void)json_object_set_new(row, "lower_bound", json_real(portfolio.bound));
    (void)json_object_set_new(row, "found_by", json_string(portfolio_name(portfolio.found_by)));
    (void)json_object_set_new(row, "memory_mib", json_real(memory_mib()));
    schedule_destroy(&schedule);
    workload_destroy(&graph);
    return row;
}

static json_t *measure_exact(void)
{
    struct random dice = random_seeded(2);
    double most = 0;
    double sum = 0;
    int proved = 0;
    for (int i = 0; i < EXACT_GRAPHS; i++) {
        const double carrying[] = {0.05, 0.25, 1, 4};
        struct workload *graph = make_graph(&dice, 10, 4, 1 + (size_t)(i / 4) % 4, carrying[i % 4]);
        struct schedule *schedule = schedule_create(10);
        const struct portfolio_options options = portfolio_defaults();
        struct portfolio portfolio;
        double begin = now_s();
        if (schedule == NULL || portfolio_single_method(graph, PORTFOLIO_EXACT, &options, schedule,
                                                        &portfolio) != SCHEDULER_OK) {
            die("no schedule");
        }
        double taken = now_s() - begin;
        most = taken > most ? taken : most;
        sum += taken;
        proved += portfolio.is_proved;
        schedule_destroy(&schedule);
        workload_destroy(&graph);
    }
    return json_pack("{s:i, s:i, s:f, s:f}", "graphs", (int)EXACT_GRAPHS, "proved", proved,
                     "mean_s", sum / EXACT_GRAPHS, "most_s", most);
}

static int by_size(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static json_t *measure_online(void)
{
    struct random dice = random_seeded(3);
    struct online_lane lanes[ONLINE_LANES];
    int64_t *taken = memory(ONLINE_DECISIONS, sizeof *taken);
    size_t moved = 0;
    for (size_t i = 0; i < ONLINE_DECISIONS; i++) {
        for (size_t k = 0; k < ONLINE_LANES; k++) {
            const int64_t takes_ns = 1000000 * (int64_t)(1 + random_below(&dice, 5000));
            const int64_t queued = (int64_t)random_below(&dice, 4);
            lanes[k] = (struct online_lane){
                .load_ns = queued * takes_ns, .takes_ns = takes_ns, .can_give = queued > 1};
        }
        int64_t begin = now_ns();
        size_t first = 0;
        for (size_t k = 1; k < ONLINE_LANES; k++) {
            first = online_finish_ns(&lanes[k]) < online_finish_ns(&lanes[first]) ? k : first;
        }
        size_t victim = online_victim(lanes, ONLINE_LANES, first);
        taken[i] = now_ns() - begin;
        moved += victim != ONLINE_NONE;
    }
    qsort(taken, ONLINE_DECISIONS, sizeof *taken, by_size);
    json_t *row = json_pack("{s:i, s:i, s:I, s:I, s:I, s:I}", "devices", (int)ONLINE_LANES,
                            "decisions", (int)ONLINE_DECISIONS, "moved", (json_int_t)moved,
                            "p50_ns", (json_int_t)taken[ONLINE_DECISIONS / 2], "p99_ns",
                            (json_int_t)taken[ONLINE_DECISIONS / 100 * 99], "most_ns",
                            (json_int_t)taken[ONLINE_DECISIONS - 1]);
    free(taken);
    return row;
}

static struct device_set *make_devices(struct plan_device *ret_devices)
{
    static const char *const names[] = {"amd-mi300x", "nvidia-h200-sxm"};
    const struct device_set_links links = device_set_defaults();
    struct device_set *set = device_set_create();
    struct problem problem = {""};
    for (uint32_t i = 0; set != NULL && i < 16; i++) {
        const struct catalogue_device *device = catalogue_find(names[i / 8]);
        if (device == NULL || device_set_add(set, i / 8, device, NULL, &device->profile, false,
                                             MICRO_PER_CREDIT, &problem) != DEVICE_SET_OK) {
            die("no such device");
        }
    }
    if (set == NULL || device_set_link(set, &links, &problem) != DEVICE_SET_OK) {
        die("no devices");
    }
    for (size_t i = 0; i < set->count; i++) {
        ret_devices[i] = (struct plan_device){.name = set->items[i].name,
                                              .cost = &set->items[i].cost,
                                              .memory = set->items[i].memory,
                                              .price_micro = set->items[i].price_micro};
    }
    return set;
}

static json_t *measure_plan(const struct plan_input *input)
{
    struct plan *plan = NULL;
    struct plan_fault fault;
    double begin = now_s();
    if (plan_search(input, &plan, &fault) != PLAN_OK) {
        die(fault.problem.text);
    }
    json_t *row = json_pack(
        "{s:s, s:I, s:I, s:f, s:s, s:f, s:f}", "objective", plan_objective_name(input->objective),
        "steps", (json_int_t)input->steps->step_count, "devices", (json_int_t)input->device_count,
        "plan_s", now_s() - begin, "form", plan_form_name(plan->form), "makespan_s",
        plan->total.makespan_s.value, "gap", plan->gap);
    plan_destroy(&plan);
    return row;
}

static json_t *measure_work(void)
{
    static const char *const settings[][2] = {
        {"model", "llama-3-70b"}, {"batch", "64"}, {"stages", "64"}};
    const struct template *llm = template_named("llm");
    int64_t values[TEMPLATE_PARAMETERS];
    struct plan_device devices[DEVICE_SET_MOST];
    struct steps *steps = NULL;
    struct problem problem = {""};
    template_begin(llm, values);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (!template_set(llm, settings[i][0], settings[i][1], values, &problem)) {
            die(problem.text);
        }
    }
    if (template_create(llm, values, &steps, &problem) != STEPS_OK) {
        die(problem.text);
    }
    struct device_set *set = make_devices(devices);
    struct plan_input input = {.steps = steps,
                               .template = llm,
                               .values = values,
                               .devices = devices,
                               .device_count = set->count,
                               .topology = set->topology,
                               .budget_micro = LIMIT_NONE,
                               .may_leave_out = true,
                               .effort = PLAN_EFFORT};
    json_t *rows = json_array();
    (void)json_array_append_new(rows, measure_plan(&input));
    input.objective = PLAN_PRICE;
    (void)json_array_append_new(rows, measure_plan(&input));
    device_set_destroy(&set);
    steps_destroy(&steps);
    return rows;
}

static size_t read_sizes(const char *text, size_t *sizes)
{
    size_t count = 0;
    while (*text != '\0' && count < SIZES) {
        char *end = NULL;
        sizes[count] = strtoul(text, &end, 10);
        if (end == text || sizes[count] == 0 || sizes[count] > WORKLOAD_TASKS) {
            die("--tasks: numbers from 1 on, separated by commas");
        }
        count++;
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void print(json_t *all)
{
    (void)json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    (void)putchar('\n');
    json_decref(all);
}

int main(int argc, char **argv)
{
    const char *tasks = "1000,10000,20000,100000";
    size_t processors = 16;
    size_t forms = 0;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            continue;
        }
        if (i + 1 < argc && strcmp(argv[i], "--tasks") == 0) {
            tasks = argv[++i];
        } else if (i + 1 < argc && strcmp(argv[i], "--processors") == 0) {
            processors = strtoul(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--forms") == 0) {
            forms = strtoul(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 10);
        } else {
            die("planner [--tasks N,N,...] [--processors N] [--json] [--forms N [--seed N]]");
        }
    }
    if (forms > 0) {
        print(forms_measure(forms, seed));
        return 0;
    }
    if (processors < 1 || processors > WORKLOAD_PROCESSORS) {
        die("--processors: 1 to 1024");
    }
    size_t sizes[SIZES];
    size_t count = read_sizes(tasks, sizes);
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(rows, measure(sizes[i], processors, "light", 0.1));
        (void)json_array_append_new(rows, measure(sizes[i], processors, "heavy", 4));
    }
    json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "graphs", rows, "exact", measure_exact(),
                            "online", measure_online(), "work", measure_work());
    print(all);
    return 0;
}
