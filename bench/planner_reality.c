/* The program measures how near the planner's predictions come to what happens here. It prints one
 * JSON object.
 *
 *     planner_reality [--tasks 200] [--items 48] [--runs 20] [--rounds 15] [--seed 1] [--trace]
 *                     [--json]
 *
 * Two workers, each held to a core, are the processors. A link of 20 MB/s and 1 ms each way carries
 * real bytes between them through socket pairs. First, each kind of work is measured at some sizes
 * on each core, `rounds` times; the medians are all that predictions know. Then a random graph, a
 * pipeline and a divided batch are planned once each, and run `runs` times as planned. The last two
 * also run on one core as often, in turns. `--trace` adds the plan and the outcome of the graph's
 * last run. Status 1 says that a run did not keep to its plan, or computed something else. */
#include "base/random.h"
#include "base/text.h"
#include "bench/give_up.h"
#include "bench/planner_reality/parts.h"
#include "consumer/client/bourse.h"
#include "planner/layout/split.h"
#include "planner/schedule/contention.h"
#include "planner/schedule/portfolio.h"
#include "runtime/process.h"

#include <getopt.h>
#include <jansson.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    TASKS_MOST = 2000,
    RUNS_MOST = 100,
    ROUNDS_MOST = 32,
    WIDTH_MOST = 12,   /* tasks in a layer of the graph */
    INPUTS_MOST = 3,   /* inputs for a task */
    EDGE_LEAST = 4096, /* bytes */
    EDGE_MOST = 196608,
    ITEMS_MOST = 1000, /* through the pipeline, and of the batch that is divided */
    ITEM_BYTES = 8192, /* in the pipeline */
};

static const struct wire_speed speed = {.latency_s = 1e-3, .bytes_per_s = 20e6};
static const struct piece layers[] = {
    {KIND_HASH, 4096},   {KIND_SORT, 20000}, {KIND_GEMM, 200},
    {KIND_COMPRESS, 32}, {KIND_HASH, 4096},  {KIND_GEMM, 240},
    {KIND_SORT, 20000},  {KIND_HASH, 4096},  {KIND_GEMM, 160},
};
enum { LAYERS = sizeof layers / sizeof layers[0] };
static const struct piece unit = {KIND_COMPRESS, 128};

struct bench {
    uint32_t tasks, items, runs, rounds, seed;
    bool has_trace, is_wrong;
    int cores[CORES];
    struct scratch *scratch[CORES];
    struct calibration calibration;
};

/* ---------------------------------------------------------------- figures */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts them. */
static json_t *spread(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
    return json_pack("{s:f, s:[f, f]}", "median", median, "spread", values[0], values[count - 1]);
}

static double seconds_of(const struct bench *bench, uint32_t core, struct piece piece)
{
    return calibration_seconds(&bench->calibration, core, piece);
}

static double off(double predicted, double measured)
{
    return fabs(predicted - measured) / measured;
}

/* ---------------------------------------------------------------- graphs */

static struct workload *make_graph(size_t tasks, const double *costs,
                                   const struct workload_edge *edges, size_t edge_count)
{
    const struct workload_link links[] = {{0, 1, speed.latency_s, speed.bytes_per_s},
                                          {1, 0, speed.latency_s, speed.bytes_per_s}};
    struct workload *graph = NULL;
    struct workload_fault fault;
    const struct workload_input input = {.task_count = tasks,
                                         .processor_count = CORES,
                                         .link_count = 2,
                                         .edge_count = edge_count,
                                         .costs = costs,
                                         .links = links,
                                         .edges = edges};
    if (workload_create(&input, &graph, &fault) != WORKLOAD_OK) {
        die("the graph cannot be planned");
    }
    return graph;
}

/* Runs the plan, and checks that the run kept to the plan and that its output is `right`. */
static void run_checked(struct bench *bench, struct run *run, const struct hash32 *right,
                        uint32_t *kept, uint32_t *good)
{
    run_once(run, bench->cores, bench->scratch, speed);
    struct hash32 output = run_output(run);
    bool is_kept = run_kept(run, speed);
    bool is_good = memcmp(&output, right, sizeof output) == 0;
    *kept += is_kept;
    *good += is_good;
    bench->is_wrong |= !is_kept || !is_good;
}

/* Runs the same tasks on one core alone, in the same order. */
static struct run *alone(const struct plan *plan, uint32_t core, uint32_t **ret_processor)
{
    struct plan single = *plan;
    *ret_processor = memory(plan->graph->task_count, sizeof **ret_processor);
    for (uint32_t t = 0; t < plan->graph->task_count; t++) {
        (*ret_processor)[t] = core;
    }
    single.processor = *ret_processor;
    return run_create(&single);
}

/* The two ways are measured in turns; the prediction is there already. */
static json_t *compare_with_one(struct bench *bench, const struct plan *plan, uint32_t core,
                                double predicted_s, double single_s)
{
    double both[RUNS_MOST];
    double one[RUNS_MOST];
    double ratio[RUNS_MOST];
    double error[RUNS_MOST];
    uint32_t kept = 0;
    uint32_t good = 0;
    uint32_t *processor;
    struct run *run = run_create(plan);
    struct run *single = alone(plan, core, &processor);
    run_once(single, bench->cores, bench->scratch, speed); /* a first time, to warm up */
    struct hash32 right = run_output(single);
    for (uint32_t i = 0; i < bench->runs; i++) {
        run_checked(bench, run, &right, &kept, &good);
        run_once(single, bench->cores, bench->scratch, speed);
        both[i] = run->makespan;
        one[i] = single->makespan;
        ratio[i] = one[i] / both[i];
        error[i] = off(predicted_s, both[i]);
    }
    run_destroy(&single);
    run_destroy(&run);
    free(processor);
    return json_pack(
        "{s:f, s:o, s:o, s:f, s:o, s:f, s:o, s:f, s:i, s:i}", "predicted_s", predicted_s,
        "measured_s", spread(both, bench->runs), "error", spread(error, bench->runs),
        "one_core_predicted_s", single_s, "one_core_measured_s", spread(one, bench->runs),
        "speedup_predicted", single_s / predicted_s, "speedup_measured", spread(ratio, bench->runs),
        "speedup_ceiling", (double)CORES, "runs_kept", (int)kept, "runs_right", (int)good);
}

/* ---------------------------------------------------------------- a mixed graph */

static size_t draw_edges(struct random *dice, uint32_t tasks, struct workload_edge *edges)
{
    size_t count = 0;
    uint32_t before = 0; /* the layer before begins there */
    uint32_t begin = 0;
    while (begin < tasks) {
        uint32_t end = begin + 4 + (uint32_t)random_below(dice, WIDTH_MOST - 3);
        end = end < tasks ? end : tasks;
        for (uint32_t t = begin; t < end && begin > 0; t++) {
            uint32_t width = begin - before;
            uint32_t first = (uint32_t)random_below(dice, width);
            uint32_t inputs = 1 + (uint32_t)random_below(dice, INPUTS_MOST);
            for (uint32_t i = 0; i < inputs && i < width; i++) {
                uint64_t bytes = EDGE_LEAST + random_below(dice, EDGE_MOST - EDGE_LEAST);
                edges[count++] =
                    (struct workload_edge){before + (first + i) % width, t, (double)bytes};
            }
        }
        before = begin;
        begin = end;
    }
    return count;
}

/* Predicts each task on each core: its work, its inputs, and the longest message that it sends. */
static void predict(const struct bench *bench, const struct piece *pieces,
                    const struct workload_edge *edges, size_t edge_count, double *ret_costs)
{
    double *sent = memory(bench->tasks, sizeof *sent);
    double *taken = memory(bench->tasks, sizeof *taken);
    for (size_t i = 0; i < edge_count; i++) {
        sent[edges[i].from] = fmax(sent[edges[i].from], edges[i].bytes);
        taken[edges[i].to] += edges[i].bytes;
    }
    for (uint32_t t = 0; t < bench->tasks; t++) {
        for (uint32_t c = 0; c < CORES; c++) {
            ret_costs[t * CORES + c] = seconds_of(bench, c, pieces[t]) +
                                       taken[t] * bench->calibration.input_s_per_byte[c] +
                                       sent[t] * bench->calibration.output_s_per_byte[c];
        }
    }
    free(sent);
    free(taken);
}

static struct workload *draw_graph(const struct bench *bench, struct piece *pieces)
{
    struct random dice = random_seeded(bench->seed);
    double *costs = memory((size_t)bench->tasks * CORES, sizeof *costs);
    struct workload_edge *edges = memory((size_t)bench->tasks * INPUTS_MOST, sizeof *edges);
    for (uint32_t t = 0; t < bench->tasks; t++) {
        enum kind kind = (enum kind)random_below(&dice, KINDS);
        uint32_t least = kind_least(kind);
        pieces[t] = (struct piece){
            kind, least + (uint32_t)random_below(&dice, kind_most(kind) - least + 1)};
    }
    size_t edge_count = draw_edges(&dice, bench->tasks, edges);
    predict(bench, pieces, edges, edge_count, costs);
    struct workload *graph = make_graph(bench->tasks, costs, edges, edge_count);
    free(costs);
    free(edges);
    return graph;
}

/* Gives the median and the 90th percentile of each kind and of all, over all tasks and runs. */
static json_t *task_errors(double *const *errors, const size_t *counts)
{
    json_t *all = json_object();
    for (int kind = 0; kind <= KINDS; kind++) {
        if (counts[kind] > 0) {
            json_t *row = spread(errors[kind], counts[kind]);
            (void)json_object_del(row, "spread");
            (void)json_object_set_new(row, "p90",
                                      json_real(errors[kind][(counts[kind] - 1) * 9 / 10]));
            (void)json_object_set_new(all, kind < KINDS ? kind_name((enum kind)kind) : "all", row);
        }
    }
    return all;
}

static json_t *trace(const struct run *run, const struct schedule *schedule)
{
    const struct workload *graph = run->plan.graph;
    json_t *tasks = json_array();
    json_t *edges = json_array();
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t t = run->plan.sequence[i];
        (void)json_array_append_new(
            tasks, json_pack("{s:i, s:i, s:f, s:f, s:f, s:f}", "task", (int)t, "processor",
                             (int)run->plan.processor[t], "planned_start_s", schedule->start[t],
                             "planned_finish_s", schedule->finish[t], "start_s", run->start[t],
                             "finish_s", run->finish[t]));
        for (uint32_t in = graph->in_first[t]; in < graph->in_first[t + 1]; in++) {
            uint32_t from = graph->in[in].task;
            bool is_moved = run->plan.processor[from] != run->plan.processor[t];
            double there = (double)(run->transfers[in].end_ns - run->begin_ns) * 1e-9;
            (void)json_array_append_new(
                edges, json_pack("{s:i, s:i, s:f, s:b, s:f}", "src", (int)from, "dst", (int)t,
                                 "bytes", graph->in[in].bytes, "moved", (int)is_moved, "there_s",
                                 is_moved ? there : run->finish[from]));
        }
    }
    return json_pack("{s:o, s:o}", "tasks", tasks, "edges", edges);
}

/* Counts the transfers and bytes that went over a link. */
static void count_moved(const struct run *run, uint32_t *ret_transfers, double *ret_bytes)
{
    *ret_transfers = 0;
    *ret_bytes = 0;
    for (uint32_t in = 0; in < run->plan.graph->edge_count; in++) {
        *ret_transfers += run->transfers[in].end_ns != 0;
        *ret_bytes += run->transfers[in].bytes;
    }
}

static json_t *run_graph(struct bench *bench, const struct plan *plan, const struct piece *pieces,
                         const struct schedule *schedule, uint32_t best)
{
    const struct workload *graph = plan->graph;
    size_t all = (size_t)graph->task_count * bench->runs;
    double *errors[KINDS + 1];
    size_t counts[KINDS + 1] = {0};
    for (int kind = 0; kind <= KINDS; kind++) {
        errors[kind] = memory(all, sizeof(double));
    }
    double makespans[RUNS_MOST];
    double error[RUNS_MOST];
    uint32_t kept = 0;
    uint32_t good = 0;
    uint32_t transfers = 0;
    double bytes = 0;
    uint32_t *processor;
    struct run *single = alone(plan, best, &processor);
    struct run *run = run_create(plan);
    run_once(single, bench->cores, bench->scratch, speed);
    struct hash32 right = run_output(single);
    for (uint32_t i = 0; i < bench->runs; i++) {
        run_checked(bench, run, &right, &kept, &good);
        makespans[i] = run->makespan;
        error[i] = off(schedule->makespan, run->makespan);
        for (uint32_t t = 0; t < graph->task_count; t++) {
            double one =
                off(schedule->finish[t] - schedule->start[t], run->finish[t] - run->start[t]);
            errors[pieces[t].kind][counts[pieces[t].kind]++] = one;
            errors[KINDS][counts[KINDS]++] = one;
        }
    }
    count_moved(run, &transfers, &bytes);
    json_t *row = json_pack(
        "{s:f, s:o, s:o, s:o, s:i, s:f, s:f, s:f, s:i, s:i}", "predicted_s", schedule->makespan,
        "measured_s", spread(makespans, bench->runs), "error", spread(error, bench->runs),
        "task_error", task_errors(errors, counts), "transfers", (int)transfers, "bytes_moved",
        bytes, "one_core_predicted_s", single_time(graph, best), "one_core_measured_s",
        single->makespan, "runs_kept", (int)kept, "runs_right", (int)good);
    if (bench->has_trace) {
        (void)json_object_set_new(row, "trace", trace(run, schedule));
    }
    for (int kind = 0; kind <= KINDS; kind++) {
        free(errors[kind]);
    }
    run_destroy(&single);
    run_destroy(&run);
    free(processor);
    return row;
}

static json_t *measure_graph(struct bench *bench)
{
    struct piece *pieces = memory(bench->tasks, sizeof *pieces);
    struct workload *graph = draw_graph(bench, pieces);
    struct schedule *schedule = schedule_create(graph->task_count);
    uint32_t *sequence = memory(graph->task_count, sizeof *sequence);
    struct work *work = memory(graph->task_count, sizeof *work);
    struct portfolio_options options = portfolio_defaults();
    struct portfolio portfolio;
    options.is_contended = true;
    if (schedule == NULL ||
        portfolio_schedule(graph, &options, schedule, &portfolio) != SCHEDULER_OK ||
        !schedule_sequence(graph, schedule, sequence)) {
        die("no schedule");
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        work[t] = (struct work){&pieces[t], 1};
    }
    const struct plan plan = {graph, schedule->processor, sequence, work};
    uint32_t best = single_time(graph, 1) < single_time(graph, 0) ? 1 : 0;
    json_t *row = run_graph(bench, &plan, pieces, schedule, best);
    (void)json_object_set_new(row, "tasks", json_integer(graph->task_count));
    (void)json_object_set_new(row, "edges", json_integer(graph->edge_count));
    (void)json_object_set_new(row, "found_by", json_string(portfolio_name(portfolio.found_by)));
    (void)json_object_set_new(row, "lower_bound_s", json_real(portfolio.bound));
    schedule_destroy(&schedule);
    workload_destroy(&graph);
    free(sequence);
    free(work);
    free(pieces);
    return row;
}

/* ---------------------------------------------------------------- a pipeline */

/* Task (micro-batch x stages + stage) takes its items one by one through the stage's layers. */
static json_t *measure_pipeline(struct bench *bench)
{
    struct cut cut;
    const struct line line = {layers, LAYERS, bench->items, ITEM_BYTES};
    if (!cut_line(&line, &bench->calibration, speed, &cut)) {
        die("no pipeline");
    }
    uint32_t stages = cut.stages.stage_count;
    uint32_t batches = cut.micro_batches;
    uint32_t tasks = batches * stages;
    struct workload_edge *edges = memory(tasks, sizeof *edges);
    double *costs = memory((size_t)tasks * CORES, sizeof *costs);
    struct piece *pieces = memory((size_t)bench->items * LAYERS, sizeof *pieces);
    struct work *work = memory(tasks, sizeof *work);
    uint32_t *processor = memory(tasks, sizeof *processor);
    uint32_t *sequence = memory(tasks, sizeof *sequence);
    size_t used = 0;
    size_t edge_count = 0;
    for (uint32_t t = 0; t < tasks; t++) {
        const struct stages_stage *stage = &cut.stages.stages[t % stages];
        uint32_t first = t / stages * cut.items;
        uint32_t items = bench->items - first < cut.items ? bench->items - first : cut.items;
        processor[t] = stage->group;
        sequence[t] = t;
        work[t] = (struct work){pieces + used, items * stage->count};
        for (uint32_t i = 0; i < work[t].count; i++) {
            pieces[used++] = layers[stage->first + i % stage->count];
        }
        for (uint32_t c = 0; c < CORES; c++) {
            costs[t * CORES + c] = cut.stage_s[t % stages];
        }
        if (t % stages > 0) {
            edges[edge_count++] = (struct workload_edge){t - 1, t, ITEM_BYTES * (double)items};
        }
    }
    struct workload *graph = make_graph(tasks, costs, edges, edge_count);
    const struct plan plan = {graph, processor, sequence, work};
    json_t *row = compare_with_one(bench, &plan, cut.single, cut.time_s, cut.single_s);
    json_t *list = json_array();
    for (uint32_t i = 0; i < stages; i++) {
        const struct stages_stage *stage = &cut.stages.stages[i];
        (void)json_array_append_new(list,
                                    json_pack("{s:i, s:i, s:f}", "processor", (int)stage->group,
                                              "layers", (int)stage->count, "s", cut.stage_s[i]));
    }
    (void)json_object_set_new(row, "items", json_integer(bench->items));
    (void)json_object_set_new(row, "micro_batches", json_integer(batches));
    (void)json_object_set_new(row, "stages", list);
    workload_destroy(&graph);
    free(edges);
    free(costs);
    free(pieces);
    free(work);
    free(processor);
    free(sequence);
    return row;
}

/* ---------------------------------------------------------------- a divided batch */

/* All texts lie at core 0: task 0 sends each that core 1 gets, one after the other. */
static json_t *measure_split(struct bench *bench)
{
    double bytes = (double)unit.size * 1024;
    double transfer_s = speed.latency_s + bytes / speed.bytes_per_s;
    const struct split_work batch = {.units = bench->items, .flop = 1, .bytes = bytes};
    const struct split_device devices[CORES] = {
        {.flops = 1 / seconds_of(bench, 0, unit), .slots = 1},
        {.flops = 1 / seconds_of(bench, 1, unit),
         .slots = 1,
         .fixed_s = transfer_s,
         .link = bytes / transfer_s}};
    struct split_share shares[CORES];
    struct split split;
    if (split_make(&batch, devices, CORES, shares, &split) != SPLIT_OK) {
        die("no split");
    }
    uint32_t tasks = bench->items + 1;
    struct workload_edge *edges = memory(tasks, sizeof *edges);
    double *costs = memory((size_t)tasks * CORES, sizeof *costs);
    struct work *work = memory(tasks, sizeof *work);
    uint32_t *processor = memory(tasks, sizeof *processor);
    uint32_t *sequence = memory(tasks, sizeof *sequence);
    size_t edge_count = 0;
    for (uint32_t t = 0; t < tasks; t++) {
        sequence[t] = t;
        costs[t * CORES] = costs[t * CORES + 1] = seconds_of(bench, 0, unit);
        if (t > 0) {
            work[t] = (struct work){&unit, 1};
            processor[t] = t > shares[0].units ? 1 : 0;
            if (processor[t] == 1) {
                edges[edge_count++] = (struct workload_edge){0, t, bytes};
            }
        }
    }
    struct workload *graph = make_graph(tasks, costs, edges, edge_count);
    const struct plan plan = {graph, processor, sequence, work};
    json_t *row =
        compare_with_one(bench, &plan, (uint32_t)split.single, split.finish_s, split.single_s);
    (void)json_object_set_new(row, "items", json_integer(bench->items));
    (void)json_object_set_new(
        row, "shares",
        json_pack("[I, I]", (json_int_t)shares[0].units, (json_int_t)shares[1].units));
    (void)json_object_set_new(row, "bytes_moved", json_real((double)shares[1].units * bytes));
    workload_destroy(&graph);
    free(edges);
    free(costs);
    free(work);
    free(processor);
    free(sequence);
    return row;
}

/* ---------------------------------------------------------------- the program */

static json_t *describe_machine(const struct bench *bench)
{
    char model[128] = "unknown";
    char line[256];
    struct utsname kernel;
    FILE *cpus = fopen("/proc/cpuinfo", "re");
    while (cpus != NULL && fgets(line, sizeof line, cpus) != NULL) {
        const char *name = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (name != NULL) {
            line[strcspn(line, "\n")] = '\0';
            text_printable(name + 2, strlen(name + 2), model, sizeof model);
            break;
        }
    }
    if (cpus != NULL) {
        (void)fclose(cpus);
    }
    (void)uname(&kernel);
    return json_pack("{s:s, s:I, s:[i, i], s:s}", "processor", model, "processors",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "cores", bench->cores[0],
                     bench->cores[1], "kernel", kernel.release);
}

static json_t *describe_calibration(const struct bench *bench)
{
    const struct calibration *made = &bench->calibration;
    json_t *all = json_object();
    for (int kind = 0; kind < KINDS; kind++) {
        json_t *rows = json_array();
        for (int i = 0; i < CALIBRATION_POINTS; i++) {
            (void)json_array_append_new(
                rows, json_pack("{s:i, s:[f, f]}", "size", (int)made->sizes[kind][i], "s",
                                made->seconds[0][kind][i], made->seconds[1][kind][i]));
        }
        (void)json_object_set_new(all, kind_name((enum kind)kind), rows);
    }
    (void)json_object_set_new(
        all, "input_ns_per_byte",
        json_pack("[f, f]", made->input_s_per_byte[0] * 1e9, made->input_s_per_byte[1] * 1e9));
    (void)json_object_set_new(
        all, "output_ns_per_byte",
        json_pack("[f, f]", made->output_s_per_byte[0] * 1e9, made->output_s_per_byte[1] * 1e9));
    (void)json_object_set_new(all, "outliers", json_integer(made->outliers));
    return all;
}

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most) {
        die("--tasks 1 to 2000, --items 1 to 1000, --runs 1 to 100, --rounds 1 to 32, --seed 0 to "
            "1000000");
    }
    return (uint32_t)value;
}

static void read_options(int argc, char **argv, struct bench *bench)
{
    enum { JSON = 1, TRACE, TASKS, ITEMS, RUNS, ROUNDS, SEED };
    static const struct option table[] = {
        {"json", no_argument, NULL, JSON},         {"trace", no_argument, NULL, TRACE},
        {"tasks", required_argument, NULL, TASKS}, {"items", required_argument, NULL, ITEMS},
        {"runs", required_argument, NULL, RUNS},   {"rounds", required_argument, NULL, ROUNDS},
        {"seed", required_argument, NULL, SEED},   {NULL, 0, NULL, 0},
    };
    for (int found; (found = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (found) {
        case JSON:
            break; /* the only form there is */
        case TRACE:
            bench->has_trace = true;
            break;
        case TASKS:
            bench->tasks = number(optarg, 1, TASKS_MOST);
            break;
        case ITEMS:
            bench->items = number(optarg, 1, ITEMS_MOST);
            break;
        case RUNS:
            bench->runs = number(optarg, 1, RUNS_MOST);
            break;
        case ROUNDS:
            bench->rounds = number(optarg, 1, ROUNDS_MOST);
            break;
        case SEED:
            bench->seed = number(optarg, 0, 1000000);
            break;
        default:
            exit(2);
        }
    }
    if (optind != argc) {
        die("[--tasks 200] [--items 48] [--runs 20] [--rounds 15] [--seed 1] [--trace] [--json]");
    }
}

/* Chooses the first two cores that this process may use. */
static void choose_cores(struct bench *bench)
{
    cpu_set_t set;
    int count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        die("the cores cannot be counted");
    }
    for (int i = 0; i < CPU_SETSIZE && count < CORES; i++) {
        if (CPU_ISSET((size_t)i, &set)) {
            bench->cores[count++] = i;
        }
    }
    if (count < CORES) {
        die("two cores are needed");
    }
}

int main(int argc, char **argv)
{
    static struct bench bench = {.tasks = 200, .items = 48, .runs = 20, .rounds = 15, .seed = 1};
    struct problem problem = {""};
    if (!process_start(&problem)) {
        die("the process cannot start");
    }
    read_options(argc, argv, &bench);
    choose_cores(&bench);
    for (int c = 0; c < CORES; c++) {
        bench.scratch[c] = scratch_create();
    }
    calibration_make(bench.cores, bench.scratch, bench.rounds, bench.seed, &bench.calibration);
    json_t *all = json_pack(
        "{s:o, s:{s:s}, s:{s:i, s:i, s:i, s:f, s:f}, s:o}", "machine", describe_machine(&bench),
        "versions", "bourse", bourse_version(), "parameters", "runs", (int)bench.runs, "rounds",
        (int)bench.rounds, "seed", (int)bench.seed, "link_latency_s", speed.latency_s,
        "link_bytes_per_s", speed.bytes_per_s, "calibration", describe_calibration(&bench));
    (void)json_object_set_new(all, "graph", measure_graph(&bench));
    (void)json_object_set_new(all, "pipeline", measure_pipeline(&bench));
    (void)json_object_set_new(all, "split", measure_split(&bench));
    (void)json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    (void)putchar('\n');
    json_decref(all);
    for (int c = 0; c < CORES; c++) {
        scratch_destroy(&bench.scratch[c]);
    }
    return bench.is_wrong ? 1 : 0;
}
