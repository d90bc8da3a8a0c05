/* bench/endtoend.c measures subtasks per second through the whole market: a private broker and N
 * agents, each a process of its own, which speak CURVE over ipc. Agents sign results and the broker
 * verifies them. Every commit is synced, and every subtask is run by the worker of a jail. The
 * program prints one JSON value; docs/bench.md says what each figure means.
 *
 *     endtoend [--json] [--agents 1,8,64] [--rounds 5] [--subtasks 100000] [--trues 2000]
 *              [--slots N] [--seconds 1] [--sign-each] [--logs]
 *
 * The benchmark takes the programs from ../bin beside its own folder. As root its agents become
 * nobody. */
#include "bench/endtoend/parts.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "bench/shared/machine.h"
#include "bench/shared/thread_usage.h"
#include "consumer/client/bourse.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_MAX = 16, ROUNDS_MAX = 64, WAIT_S = 600 };

struct parameters {
    uint32_t agents[ROWS_MAX];
    size_t agent_counts;
    uint32_t rounds, subtasks, trues, slots;
    double seconds; /* that each anchor is measured */
    bool keeps_logs, signs_each;
    char programs[ENDTOEND_PATH_SIZE];
};

/* A round is one job, from SubmitJob to the event that says it is done. */
struct round {
    double per_s;        /* all of it, leases and jails included */
    double steady_per_s; /* from a tenth accepted to nine tenths */
    double echoes_per_s, rows_per_s;
    struct id128 job;
};

struct row {
    struct round rounds[ROUNDS_MAX];
    size_t count;
    struct usage usage; /* in the steady part of all rounds */
    uint64_t steady_subtasks;
    struct latency latency;
    uint64_t ledger_bytes;
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "endtoend: %s\n", what);
    return 1;
}

/* ---------------------------------------------------------------- one round */

struct watching {
    const struct private_market *market;
    int64_t from_ns, until_ns;
    uint32_t from_count, until_count, subtasks;
    struct usage from, until;
};

/* Takes the usage of the broker, of the agents with all their descendants, and of this process
 * ("client"). */
static void usage_take(const struct private_market *market, struct usage *ret_usage)
{
    *ret_usage = (struct usage){.count = 0};
    usage_add_process(ret_usage, "broker", market->broker);
    for (uint32_t i = 0; i < market->agent_count; i++) {
        usage_add_process(ret_usage, "agent", market->agents[i]);
    }
    usage_add_process(ret_usage, "client", getpid());
}

/* Takes the usage at the first event past a tenth of the subtasks, and past nine tenths. */
static bool watch(void *context, const struct bourse_job_row *row)
{
    struct watching *watching = context;
    if (row == NULL) {
        return true;
    }
    if (watching->from_ns == 0 && row->accepted >= watching->subtasks / 10) {
        watching->from_ns = clock_monotonic_ns();
        watching->from_count = row->accepted;
        usage_take(watching->market, &watching->from);
    } else if (watching->until_ns == 0 && row->accepted >= watching->subtasks / 10 * 9) {
        watching->until_ns = clock_monotonic_ns();
        watching->until_count = row->accepted;
        usage_take(watching->market, &watching->until);
    }
    return true;
}

static void add_usage(struct row *row, const struct watching *watching)
{
    if (watching->until_ns == 0) {
        return; /* it was over before two events came */
    }
    row->steady_subtasks += watching->until_count - watching->from_count;
    for (size_t i = 0; i < watching->until.count; i++) {
        const struct stage *stage = &watching->until.stages[i];
        size_t k = 0;
        while (k < row->usage.count && strcmp(row->usage.stages[k].name, stage->name) != 0) {
            k++;
        }
        if (k == row->usage.count) {
            row->usage.count++;
            row->usage.stages[k] = (struct stage){.cpu_ns = 0};
            memcpy(row->usage.stages[k].name, stage->name, sizeof stage->name);
        }
        uint64_t before_ns = usage_of(&watching->from, stage->name);
        row->usage.stages[k].cpu_ns += stage->cpu_ns > before_ns ? stage->cpu_ns - before_ns : 0;
    }
}

static bool run_job(struct bourse *bourse, const struct private_market *market, bool is_noop,
                    uint32_t subtasks, struct row *row, struct bourse_error *error)
{
    static struct watching watching; /* two tables of stages */
    char text[128];
    char id[BOURSE_ID_SIZE];
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    (void)snprintf(text, sizeof text, "name: bench\n%s\narray: 0-%u\nlimit: 1m\nexpect: 1ms\n",
                   is_noop ? "executor: noop" : "run: [\"true\"]", subtasks - 1);
    if (!bourse_job_parse(text, strlen(text), ".", &job, error)) {
        return false;
    }
    watching = (struct watching){.market = market, .subtasks = subtasks};
    int64_t start_ns = clock_monotonic_ns();
    struct bourse_job_row done;
    if (!bourse_submit(bourse, job, 1000 * MICRO_PER_CREDIT, 100 * MICRO_PER_CREDIT, NULL, NULL, id,
                       error) ||
        !bourse_wait(bourse, id, (int64_t)WAIT_S * 1000, watch, &watching, &done, error)) {
        return false;
    }
    int64_t took_ns = clock_monotonic_ns() - start_ns;
    if (done.accepted != subtasks) {
        (void)snprintf(error->text, sizeof error->text, "%u of %u subtasks were accepted: %s",
                       done.accepted, subtasks, done.reason_text);
        return false;
    }
    struct round *round = &row->rounds[row->count];
    round->per_s = (double)subtasks * 1e9 / (double)took_ns;
    round->steady_per_s = watching.until_ns == 0
                              ? round->per_s
                              : (double)(watching.until_count - watching.from_count) * 1e9 /
                                    (double)(watching.until_ns - watching.from_ns);
    add_usage(row, &watching);
    return text_unhex(id, round->job.bytes, sizeof round->job.bytes);
}

/* ---------------------------------------------------------------- one row */

static bool wait_for_slots(struct bourse *bourse, uint32_t slots, struct bourse_error *error)
{
    static const char text[] = "executor: noop\nexpect: 1ms\n";
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct bourse_quote quote = {.slots_now = 0};
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    if (!bourse_job_parse(text, sizeof text - 1, ".", &job, error)) {
        return false;
    }
    for (int64_t end_ns = clock_monotonic_ns() + 120 * NS_PER_S; quote.slots_now < slots;) {
        if (!bourse_quote(bourse, job, &quote, error)) {
            return false;
        }
        if (clock_monotonic_ns() > end_ns) {
            (void)snprintf(error->text, sizeof error->text, "%u of %u slots are on offer",
                           quote.slots_now, slots);
            return false;
        }
        (void)nanosleep(&pause, NULL); /* a quote is the only way to see the offers come */
    }
    return true;
}

static bool run_rounds(const struct parameters *parameters, struct private_market *market,
                       uint32_t slots, bool is_noop, struct row *row, struct bourse_error *error)
{
    CLEANUP(bourse_close) struct bourse *bourse = NULL;
    struct bourse_options options = {
        .market = market->file, .key = market->key, .program = "endtoend", .timeout_ms = 60000};
    uint32_t subtasks = is_noop ? parameters->subtasks : parameters->trues;
    static struct row warmup;
    warmup = (struct row){.count = 0};
    if (!bourse_open(&options, &bourse, error) || !wait_for_slots(bourse, slots, error) ||
        !run_job(bourse, market, is_noop, subtasks / 10 + 1, &warmup, error)) {
        return false;
    }
    for (uint32_t i = 0; i < parameters->rounds; i++) {
        struct round *round = &row->rounds[row->count];
        round->echoes_per_s = anchor_echoes_per_s(parameters->seconds);
        round->rows_per_s = anchor_rows_per_s(market->folder, parameters->seconds);
        if (!wait_for_slots(bourse, slots, error) ||
            !run_job(bourse, market, is_noop, subtasks, row, error)) {
            return false;
        }
        row->count++;
    }
    return true;
}

/* Returns the size of the ledger of a market whose broker has ended. */
static uint64_t ledger_bytes(const struct private_market *market)
{
    char path[ENDTOEND_PATH_SIZE + 32];
    struct stat status = {.st_size = 0};
    (void)snprintf(path, sizeof path, "%s/ledger.db", market->folder);
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static bool run_row(const struct parameters *parameters, uint32_t agents, uint32_t slots,
                    bool is_noop, struct row *row)
{
    struct private_market market;
    struct problem problem = {""};
    struct bourse_error error = {.text = ""};
    struct id128 jobs[ROUNDS_MAX];
    struct market_wishes wishes = {.agents = agents,
                                   .slots = slots,
                                   .programs = parameters->programs,
                                   .keeps_logs = parameters->keeps_logs,
                                   .signs_each = parameters->signs_each};
    bool good = market_open(&wishes, &market, &problem);
    if (good && !run_rounds(parameters, &market, agents * slots, is_noop, row, &error)) {
        problem_set(&problem, "%u agents: %s", agents, error.text);
        good = false;
    }
    if (good && !market_stop(&market)) {
        problem_set(&problem, "%u agents: a process did not end well", agents);
        good = false;
    }
    row->ledger_bytes = ledger_bytes(&market);
    for (size_t i = 0; i < row->count; i++) {
        jobs[i] = row->rounds[i].job;
    }
    good = good && latency_of(market.folder, jobs, row->count, &row->latency, &problem);
    market_close(&market);
    if (!good) {
        (void)fail(problem.text);
    }
    return good;
}

/* ---------------------------------------------------------------- figures */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

struct spread {
    double least, median, most;
};

static struct spread spread_of(const struct row *row, double (*figure)(const struct round *))
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < row->count; i++) {
        values[i] = figure(&row->rounds[i]);
    }
    qsort(values, row->count, sizeof *values, compare);
    return (struct spread){.least = values[0],
                           .median = (values[row->count / 2] + values[(row->count - 1) / 2]) / 2,
                           .most = values[row->count - 1]};
}

static double figure_per_s(const struct round *round)
{
    return round->per_s;
}

static double figure_steady(const struct round *round)
{
    return round->steady_per_s;
}

static double figure_echoes(const struct round *round)
{
    return round->echoes_per_s;
}

static double figure_rows(const struct round *round)
{
    return round->rows_per_s;
}

static double figure_per_echo(const struct round *round)
{
    return round->echoes_per_s > 0 ? round->per_s / round->echoes_per_s : 0;
}

static double figure_per_row(const struct round *round)
{
    return round->rows_per_s > 0 ? round->per_s / round->rows_per_s : 0;
}

static void print_usage(const struct row *row)
{
    const char *comma = "";
    (void)printf(",\"cpu_us\":{");
    for (size_t i = 0; i < row->usage.count; i++) {
        const struct stage *stage = &row->usage.stages[i];
        double us = row->steady_subtasks == 0
                        ? 0
                        : (double)stage->cpu_ns / 1e3 / (double)row->steady_subtasks;
        (void)printf("%s\"%s\":%.2f", comma, stage->name, us);
        comma = ",";
    }
    (void)printf("}");
}

static double per(size_t results, uint64_t count)
{
    return count == 0 ? 0 : (double)results / (double)count;
}

static void print_row(const struct row *row, uint32_t agents, uint32_t slots, const char *figure)
{
    struct spread rate = spread_of(row, figure_per_s);
    (void)printf("{\"agents\":%u,\"slots\":%u,\"%s\":%.0f,\"spread\":[%.0f,%.0f]", agents, slots,
                 figure, rate.median, rate.least, rate.most);
    (void)printf(",\"steady_per_s\":%.0f,\"p50_ms\":%.2f,\"p99_ms\":%.2f",
                 spread_of(row, figure_steady).median, row->latency.p50_ms, row->latency.p99_ms);
    (void)printf(",\"curve_echoes_per_s\":%.0f,\"per_curve_echo\":%.4f",
                 spread_of(row, figure_echoes).median, spread_of(row, figure_per_echo).median);
    (void)printf(",\"sqlite_rows_per_s\":%.0f,\"per_sqlite_row\":%.4f",
                 spread_of(row, figure_rows).median, spread_of(row, figure_per_row).median);
    (void)printf(",\"results_per_signature\":%.2f,\"results_per_commit\":%.2f",
                 per(row->latency.count, row->latency.signatures),
                 per(row->latency.count, row->latency.commits));
    /* The job that warms up has a tenth of the subtasks of a round. */
    const size_t subtasks = row->latency.count + row->latency.count / 10 / row->count;
    (void)printf(",\"bytes_per_subtask\":%.0f", per(row->ledger_bytes, subtasks));
    print_usage(row);
    (void)printf("}");
}

static bool print_rows(const struct parameters *parameters, bool is_noop)
{
    static struct row row;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < parameters->agent_counts; i++) {
        uint32_t agents = parameters->agents[i];
        uint32_t share = processors > (long)agents ? (uint32_t)processors / agents : 1;
        uint32_t slots = parameters->slots != 0 ? parameters->slots : share;
        row = (struct row){.count = 0};
        if (!run_row(parameters, agents, slots, is_noop, &row)) {
            return false;
        }
        (void)printf("%s", i == 0 ? "" : ",");
        print_row(&row, agents, slots, is_noop ? "noop_per_s" : "true_per_s");
        (void)fflush(stdout);
    }
    return true;
}

/* ---------------------------------------------------------------- the program */

static int measure(const struct parameters *parameters)
{
    (void)printf("{");
    machine_print();
    (void)printf(",");
    machine_print_versions();
    (void)printf(",\"parameters\":{\"rounds\":%u,\"subtasks\":%u,\"trues\":%u,\"transport\":\"ipc, "
                 "CURVE\",\"synchronous\":\"FULL\",\"sign_each\":%s,\"ed25519_verifies_per_s\":%."
                 "0f},\"rows\":[",
                 parameters->rounds, parameters->subtasks, parameters->trues,
                 parameters->signs_each ? "true" : "false",
                 anchor_verifies_per_s(parameters->seconds));
    if (!print_rows(parameters, true)) {
        return 1;
    }
    (void)printf("],\"command\":[");
    if (parameters->trues > 0 && !print_rows(parameters, false)) {
        return 1;
    }
    (void)printf("]}\n");
    return 0;
}

static bool read_number(const char *text, uint32_t most, uint32_t *ret_number)
{
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || number > most) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

static bool read_agents(char *text, struct parameters *parameters)
{
    parameters->agent_counts = 0;
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        uint32_t *agents = &parameters->agents[parameters->agent_counts];
        if (parameters->agent_counts == ROWS_MAX || !read_number(one, AGENTS_MAX, agents) ||
            *agents == 0) {
            return false;
        }
        parameters->agent_counts++;
    }
    return parameters->agent_counts > 0;
}

static bool read_options(int argc, char **argv, struct parameters *parameters)
{
    enum { JSON = 1, AGENTS, ROUNDS, SUBTASKS, TRUES, SLOTS, SECONDS, SIGN_EACH, LOGS };
    static const struct option table[] = {
        {"json", no_argument, NULL, JSON},
        {"agents", required_argument, NULL, AGENTS},
        {"rounds", required_argument, NULL, ROUNDS},
        {"subtasks", required_argument, NULL, SUBTASKS},
        {"trues", required_argument, NULL, TRUES},
        {"slots", required_argument, NULL, SLOTS},
        {"seconds", required_argument, NULL, SECONDS},
        {"sign-each", no_argument, NULL, SIGN_EACH},
        {"logs", no_argument, NULL, LOGS},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    for (int found; good && (found = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (found) {
        case JSON:
            break; /* the only form there is */
        case AGENTS:
            good = read_agents(optarg, parameters);
            break;
        case ROUNDS:
            good = read_number(optarg, ROUNDS_MAX, &parameters->rounds) && parameters->rounds > 0;
            break;
        case SUBTASKS:
            good = read_number(optarg, 10000000, &parameters->subtasks) && parameters->subtasks > 0;
            break;
        case TRUES:
            good = read_number(optarg, 10000000, &parameters->trues);
            break;
        case SLOTS:
            good = read_number(optarg, 4096, &parameters->slots);
            break;
        case SECONDS:
            parameters->seconds = strtod(optarg, NULL);
            good = parameters->seconds > 0 && parameters->seconds <= 60;
            break;
        case SIGN_EACH:
            parameters->signs_each = true;
            break;
        case LOGS:
            parameters->keeps_logs = true;
            break;
        default:
            good = false;
        }
    }
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    static struct parameters parameters = {.agents = {1, 8, 64},
                                           .agent_counts = 3,
                                           .rounds = 5,
                                           .subtasks = 100000,
                                           .trues = 2000,
                                           .seconds = 1};
    struct problem problem = {""};
    char folder[ENDTOEND_PATH_SIZE - 16];
    if (!process_start(&problem) || !process_folder(folder, sizeof folder)) {
        return fail("the process cannot start");
    }
    (void)snprintf(parameters.programs, sizeof parameters.programs, "%s/../bin", folder);
    if (!read_options(argc, argv, &parameters)) {
        (void)fail("--agents 1,8,64 --rounds 5 --subtasks 100000 --trues 2000 --slots N "
                   "--seconds 1 --sign-each --logs");
        return 2;
    }
    return measure(&parameters);
}
