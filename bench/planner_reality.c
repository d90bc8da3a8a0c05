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
#include "base/text.h"
#include "bench/give_up.h"
#include "bench/planner_reality/measure.h"
#include "bench/planner_reality/mixed_graph.h"
#include "consumer/client/bourse.h"
#include "planner/layout/split.h"
#include "runtime/process.h"

#include <getopt.h>
#include <jansson.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    TASKS_MOST = 2000,
    ROUNDS_MOST = 32,
    ITEMS_MOST = 1000, /* through the pipeline, and of the batch that is divided */
    ITEM_BYTES = 8192, /* in the pipeline */
};

static const struct piece layers[] = {
    {KIND_HASH, 4096},   {KIND_SORT, 20000}, {KIND_GEMM, 200},
    {KIND_COMPRESS, 32}, {KIND_HASH, 4096},  {KIND_GEMM, 240},
    {KIND_SORT, 20000},  {KIND_HASH, 4096},  {KIND_GEMM, 160},
};
enum { LAYERS = sizeof layers / sizeof layers[0] };
static const struct piece unit = {KIND_COMPRESS, 128};

/* ---------------------------------------------------------------- a pipeline */

/* Task (micro-batch x stages + stage) takes its items one by one through the stage's layers. */
static json_t *measure_pipeline(struct bench *bench)
{
    struct cut cut;
    const struct line line = {layers, LAYERS, bench->items, ITEM_BYTES};
    if (!cut_line(&line, &bench->calibration, measure_speed, &cut)) {
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
    struct workload *graph = measure_make_graph(tasks, costs, edges, edge_count);
    const struct plan plan = {graph, processor, sequence, work};
    json_t *row = measure_with_one(bench, &plan, cut.single, cut.time_s, cut.single_s);
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
    double transfer_s = measure_speed.latency_s + bytes / measure_speed.bytes_per_s;
    const struct split_work batch = {.units = bench->items, .flop = 1, .bytes = bytes};
    const struct split_device devices[CORES] = {
        {.flops = 1 / measure_seconds(bench, 0, unit), .slots = 1},
        {.flops = 1 / measure_seconds(bench, 1, unit),
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
        costs[t * CORES] = costs[t * CORES + 1] = measure_seconds(bench, 0, unit);
        if (t > 0) {
            work[t] = (struct work){&unit, 1};
            processor[t] = t > shares[0].units ? 1 : 0;
            if (processor[t] == 1) {
                edges[edge_count++] = (struct workload_edge){0, t, bytes};
            }
        }
    }
    struct workload *graph = measure_make_graph(tasks, costs, edges, edge_count);
    const struct plan plan = {graph, processor, sequence, work};
    json_t *row =
        measure_with_one(bench, &plan, (uint32_t)split.single, split.finish_s, split.single_s);
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
        (int)bench.rounds, "seed", (int)bench.seed, "link_latency_s", measure_speed.latency_s,
        "link_bytes_per_s", measure_speed.bytes_per_s, "calibration", describe_calibration(&bench));
    (void)json_object_set_new(all, "graph", mixed_graph_measure(&bench));
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
