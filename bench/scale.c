/* bench/scale.c measures what an agent costs one broker process, by how many agents there are. The
 * agents are the agent's own sessions, many in one process and without jails, over CURVE and ipc.
 * The program prints one JSON value; docs/bench.md says what each figure means.
 *
 *     scale [--json] [--agents 1,8,64,256,1000,4000] [--rate 500] [--seconds 5] [--rounds 3]
 *           [--burst 10000] [--idle 5] [--heartbeat 1s] [--no-restart]
 *
 * The work of all agents together stays the same: with more agents each subtask takes longer. So
 * what differs between two rows is the number of agents alone. The program takes bourse-broker from
 * ../bin beside its own folder. */
#include "bench/scale/parts.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "bench/shared/machine.h"
#include "bench/shared/thread_usage.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ROWS_MAX = 16,
    ROUNDS_MAX = 32,
    WAIT_S = 600,
    BUDGET_CREDITS = 10000,
    ROUNDS_EACH = 6, /* a job has at least so many subtasks for each agent */
};
#define SAMPLE_NS (100 * NS_PER_MS) /* between two samples of the processes */

struct parameters {
    uint32_t agents[ROWS_MAX];
    size_t rows;
    uint32_t rate, seconds, rounds, burst, idle;
    bool has_restart;
};

/* A sample holds what was counted at a moment. */
struct sample {
    int64_t at_ns;
    uint32_t accepted;
    uint64_t messages, heartbeats, result_messages;
    struct usage usage;
};

/* A span holds what happened between two samples. */
struct span {
    double seconds, cpu_us;
    uint64_t subtasks, messages, heartbeats, result_messages;
    struct usage usage; /* of each thread */
};

struct row {
    uint32_t agents;
    int64_t work_ms;
    struct span rounds[ROUNDS_MAX]; /* while subtasks wait for a lane */
    struct span tails[ROUNDS_MAX];  /* from then to the job's end */
    struct span idle, burst;
    double burst_per_s;
    double broker_bytes, agent_bytes; /* of each agent */
    double ready_s, back_s;           /* after the broker was told to end */
};

struct measuring {
    struct parameters parameters;
    struct scale_market market;
    struct agents_shared *shared;
    pid_t crowd;
    uint64_t broker_bytes, crowd_bytes; /* without agents */
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "scale: %s\n", what);
    return 1;
}

/* ---------------------------------------------------------------- samples */

static void take_sample(const struct measuring *measuring, uint32_t accepted,
                        struct sample *ret_sample)
{
    *ret_sample =
        (struct sample){.at_ns = clock_monotonic_ns(),
                        .accepted = accepted,
                        .messages = atomic_load(&measuring->shared->messages),
                        .heartbeats = atomic_load(&measuring->shared->heartbeats),
                        .result_messages = atomic_load(&measuring->shared->result_messages)};
    usage_add_process(&ret_sample->usage, "broker", measuring->market.broker);
}

static struct span span_of(const struct sample *from, const struct sample *until)
{
    struct span span = {.seconds = (double)(until->at_ns - from->at_ns) / 1e9,
                        .subtasks = until->accepted - from->accepted,
                        .messages = until->messages - from->messages,
                        .heartbeats = until->heartbeats - from->heartbeats,
                        .result_messages = until->result_messages - from->result_messages,
                        .usage = until->usage};
    for (size_t i = 0; i < span.usage.count; i++) {
        struct stage *stage = &span.usage.stages[i];
        stage->cpu_ns -= usage_of(&from->usage, stage->name);
    }
    span.cpu_us = (double)usage_total(&span.usage) / 1e3;
    return span;
}

/* ---------------------------------------------------------------- jobs */

struct watching {
    const struct measuring *measuring;
    uint32_t subtasks;
    struct sample from, until, done;
};

/* Takes a sample at the first event past a fifth of the subtasks, and then at events while subtasks
 * wait for a lane: the last of these samples ends the steady part. */
static bool watch(void *context, const struct bourse_job_row *row)
{
    struct watching *watching = context;
    if (row == NULL) {
        return true;
    }
    const int64_t since_ns = clock_monotonic_ns() - watching->until.at_ns;
    if (watching->from.at_ns == 0 && row->accepted >= watching->subtasks / 5) {
        take_sample(watching->measuring, row->accepted, &watching->from);
    } else if (watching->from.at_ns != 0 && row->waiting > 0 && since_ns > SAMPLE_NS) {
        take_sample(watching->measuring, row->accepted, &watching->until);
    } else if (row->accepted == watching->subtasks) {
        take_sample(watching->measuring, row->accepted, &watching->done);
    }
    return true;
}

/* An outcome holds the figures of one job. */
struct outcome {
    struct span steady, tail;
    double per_s;
};

/* Runs a job of so many no-ops, each `work_ms` long. */
static bool run_job(struct measuring *measuring, struct bourse *bourse, uint32_t subtasks,
                    int64_t work_ms, struct outcome *ret_outcome, struct bourse_error *error)
{
    static struct watching watching; /* three tables of stages */
    char text[160];
    char id[BOURSE_ID_SIZE];
    struct bourse_job_row done;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    atomic_store(&measuring->shared->work_ns, work_ms * NS_PER_MS);
    (void)snprintf(text, sizeof text,
                   "name: scale\nexecutor: noop\narray: 0-%u\nlimit: 2m\nexpect: %ldms\n",
                   subtasks - 1, (long)(work_ms > 0 ? work_ms : 1));
    watching = (struct watching){.measuring = measuring, .subtasks = subtasks};
    if (!bourse_job_parse(text, strlen(text), ".", &job, error)) {
        return false;
    }
    const int64_t start_ns = clock_monotonic_ns();
    if (!bourse_submit(bourse, job, (int64_t)BUDGET_CREDITS * MICRO_PER_CREDIT,
                       100 * MICRO_PER_CREDIT, NULL, NULL, id, error) ||
        !bourse_wait(bourse, id, (int64_t)WAIT_S * 1000, watch, &watching, &done, error)) {
        return false;
    }
    ret_outcome->per_s = (double)subtasks * 1e9 / (double)(clock_monotonic_ns() - start_ns);
    if (done.accepted != subtasks) {
        (void)snprintf(error->text, sizeof error->text, "%u of %u subtasks were accepted: %.200s",
                       done.accepted, subtasks, done.reason_text);
        return false;
    }
    if (watching.done.at_ns == 0) {
        take_sample(measuring, subtasks, &watching.done);
    }
    const bool has_steady = watching.until.at_ns != 0;
    ret_outcome->steady = span_of(&watching.from, has_steady ? &watching.until : &watching.done);
    ret_outcome->tail = has_steady ? span_of(&watching.until, &watching.done) : (struct span){0};
    return true;
}

/* ---------------------------------------------------------------- a row */

/* Waits until so many asks stand in the book. */
static bool wait_for_all(const struct measuring *measuring, uint32_t agents,
                         struct problem *problem)
{
    const int64_t deadline_ns = clock_monotonic_ns() + WAIT_S * NS_PER_S;
    while (atomic_load(&measuring->shared->standing) < agents) {
        if (atomic_load(&measuring->shared->has_failed)) {
            problem_set(problem, "the agents: %s", measuring->shared->failure);
            return false;
        }
        if (clock_monotonic_ns() > deadline_ns) {
            problem_set(problem, "%u of %u agents were welcomed, and %u offer",
                        atomic_load(&measuring->shared->ready), agents,
                        atomic_load(&measuring->shared->standing));
            return false;
        }
        program_pause();
    }
    return true;
}

static bool run_jobs(struct measuring *measuring, struct row *row, struct problem *problem)
{
    const struct parameters *parameters = &measuring->parameters;
    CLEANUP(bourse_close) struct bourse *bourse = NULL;
    const struct bourse_options options = {.market = measuring->market.file,
                                           .key = measuring->market.key,
                                           .program = "scale",
                                           .timeout_ms = 60000};
    struct bourse_error error = {.text = ""};
    const uint32_t least = ROUNDS_EACH * row->agents;
    const uint32_t usual = parameters->rate * parameters->seconds;
    static struct outcome outcome;
    bool good = bourse_open(&options, &bourse, &error);
    for (uint32_t i = 0; good && i < parameters->rounds; i++) {
        good = wait_for_all(measuring, row->agents, problem) &&
               run_job(measuring, bourse, usual > least ? usual : least, row->work_ms, &outcome,
                       &error);
        row->rounds[i] = outcome.steady;
        row->tails[i] = outcome.tail;
    }
    if (good && parameters->burst > 0) {
        good = wait_for_all(measuring, row->agents, problem) &&
               run_job(measuring, bourse, parameters->burst, 0, &outcome, &error);
        row->burst = outcome.steady;
        row->burst_per_s = outcome.per_s;
    }
    if (!good) {
        problem_set(problem, "%u agents: %.400s", row->agents, error.text);
    }
    return good;
}

static void measure_idle(const struct measuring *measuring, struct row *row)
{
    static struct sample from;
    static struct sample until;
    const struct timespec pause = {.tv_sec = measuring->parameters.idle};
    take_sample(measuring, 0, &from);
    (void)nanosleep(&pause, NULL);
    take_sample(measuring, 0, &until);
    row->idle = span_of(&from, &until);
}

static bool measure_restart(struct measuring *measuring, struct row *row, struct problem *problem)
{
    const struct timespec look = {.tv_nsec = 50 * NS_PER_MS};
    (void)atomic_fetch_add(&measuring->shared->restarts, 1);
    (void)nanosleep(&look, NULL); /* the agents' process has seen it */
    const int64_t start_ns = clock_monotonic_ns();
    if (!program_end(&measuring->market.broker, SIGTERM, 60 * NS_PER_S) ||
        !market_start(&measuring->market, problem)) {
        return false;
    }
    row->ready_s = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    if (!wait_for_all(measuring, row->agents, problem)) {
        return false;
    }
    row->back_s = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    return true;
}

static bool measure_row(struct measuring *measuring, struct row *row, struct problem *problem)
{
    const struct timespec settle = {.tv_sec = 1};
    if (!market_join(&measuring->market, row->agents, problem)) {
        return false;
    }
    atomic_store(&measuring->shared->wanted, row->agents);
    if (!wait_for_all(measuring, row->agents, problem)) {
        return false;
    }
    (void)nanosleep(&settle, NULL); /* the broker writes what it deferred */
    row->broker_bytes =
        (double)usage_resident_bytes(measuring->market.broker) - (double)measuring->broker_bytes;
    row->agent_bytes =
        (double)usage_resident_bytes(measuring->crowd) - (double)measuring->crowd_bytes;
    measure_idle(measuring, row);
    return run_jobs(measuring, row, problem) &&
           (!measuring->parameters.has_restart || measure_restart(measuring, row, problem));
}

/* ---------------------------------------------------------------- figures */

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double part(double of, double by)
{
    return by > 0 ? of / by : 0;
}

static double figure_cpu(const struct span *span, const struct span *idle)
{
    (void)idle;
    return part(span->cpu_us, (double)span->subtasks);
}

/* Leaves out the time that the same agents cost while they do nothing. */
static double figure_above_idle(const struct span *span, const struct span *idle)
{
    const double idle_us = part(idle->cpu_us, idle->seconds) * span->seconds;
    return part(span->cpu_us - idle_us, (double)span->subtasks);
}

static double figure_message(const struct span *span, const struct span *idle)
{
    (void)idle;
    return part(span->cpu_us, (double)span->messages);
}

static double figure_messages(const struct span *span, const struct span *idle)
{
    (void)idle;
    return part((double)(span->messages - span->heartbeats), (double)span->subtasks);
}

static double figure_rate(const struct span *span, const struct span *idle)
{
    (void)idle;
    return part((double)span->subtasks, span->seconds);
}

typedef double figure(const struct span *span, const struct span *idle);

static double median(const struct span *spans, const struct span *idle, uint32_t rounds, figure *of)
{
    double values[ROUNDS_MAX];
    for (uint32_t i = 0; i < rounds; i++) {
        values[i] = of(&spans[i], idle);
    }
    qsort(values, rounds, sizeof *values, compare);
    return (values[rounds / 2] + values[(rounds - 1) / 2]) / 2;
}

static void print_threads(const struct span *span, double by)
{
    (void)printf("{");
    for (size_t i = 0; i < span->usage.count; i++) {
        const char *name = span->usage.stages[i].name;
        const char *thread = strchr(name, '/');
        (void)printf("%s\"%s\":%.2f", i == 0 ? "" : ",", thread == NULL ? name : thread + 1,
                     part((double)span->usage.stages[i].cpu_ns / 1e3, by));
    }
    (void)printf("}");
}

static void print_row(const struct row *row, const struct parameters *parameters)
{
    const uint32_t rounds = parameters->rounds;
    const struct span *last = &row->rounds[rounds - 1];
    const struct span *idle = &row->idle;
    (void)printf("{\"agents\":%u,\"work_ms\":%ld,\"subtasks_per_s\":%.0f", row->agents,
                 (long)row->work_ms, median(row->rounds, idle, rounds, figure_rate));
    (void)printf(",\"cpu_us_per_subtask\":%.2f,\"above_idle_us_per_subtask\":%.2f"
                 ",\"cpu_us_per_message\":%.2f,\"messages_per_subtask\":%.2f,\"cpu_us\":",
                 median(row->rounds, idle, rounds, figure_cpu),
                 median(row->rounds, idle, rounds, figure_above_idle),
                 median(row->rounds, idle, rounds, figure_message),
                 median(row->rounds, idle, rounds, figure_messages));
    print_threads(last, (double)last->subtasks);
    (void)printf(",\"tail\":{\"above_idle_us_per_subtask\":%.2f,\"cpu_us\":",
                 median(row->tails, idle, rounds, figure_above_idle));
    print_threads(&row->tails[rounds - 1], (double)row->tails[rounds - 1].subtasks);
    (void)printf("}");
    (void)printf(",\"burst\":{\"subtasks_per_s\":%.0f,\"cpu_us_per_subtask\":%.2f,"
                 "\"results_per_message\":%.2f}",
                 row->burst_per_s, figure_cpu(&row->burst, idle),
                 part((double)row->burst.subtasks, (double)row->burst.result_messages));
    (void)printf(",\"idle\":{\"percent_of_core\":%.2f,\"heartbeats_per_s\":%.0f,"
                 "\"cpu_us_per_heartbeat\":%.2f,\"us_per_s\":",
                 part(idle->cpu_us, idle->seconds) / 1e4,
                 part((double)idle->heartbeats, idle->seconds),
                 part(idle->cpu_us, (double)idle->heartbeats));
    print_threads(idle, idle->seconds);
    (void)printf("},\"broker_kib_per_agent\":%.1f,\"agent_kib\":%.1f",
                 row->broker_bytes / 1024 / row->agents, row->agent_bytes / 1024 / row->agents);
    (void)printf(",\"restart\":{\"broker_s\":%.2f,\"all_back_s\":%.2f}}", row->ready_s,
                 row->back_s);
    (void)fflush(stdout);
}

/* ---------------------------------------------------------------- the program */

static bool print_rows(struct measuring *measuring, struct problem *problem)
{
    const struct parameters *parameters = &measuring->parameters;
    static struct row row;
    double at_8 = 0;
    double at_1000 = 0;
    double idle = 0;
    for (size_t i = 0; i < parameters->rows; i++) {
        const uint32_t agents = parameters->agents[i];
        row = (struct row){.agents = agents, .work_ms = agents * 1000 / parameters->rate};
        if (!measure_row(measuring, &row, problem)) {
            return false;
        }
        (void)printf("%s", i == 0 ? "" : ",");
        print_row(&row, parameters);
        const double cost = median(row.rounds, &row.idle, parameters->rounds, figure_above_idle);
        at_8 = agents == 8 ? cost : at_8;
        at_1000 = agents == 1000 ? cost : at_1000;
        idle = part(row.idle.cpu_us, row.idle.seconds) / 1e4;
    }
    (void)printf("],\"subtask_at_1000_by_at_8\":%.3f,\"most_idle_percent_of_core\":%.2f}\n",
                 part(at_1000, at_8), idle);
    return true;
}

static bool measure(struct measuring *measuring, struct problem *problem)
{
    const struct parameters *parameters = &measuring->parameters;
    if (!market_prepare(&measuring->market, problem)) {
        return false;
    }
    measuring->crowd = agents_start(measuring->market.folder, &measuring->shared, problem);
    if (measuring->crowd <= 0 || !market_start(&measuring->market, problem)) {
        return false;
    }
    const struct timespec settle = {.tv_sec = 1};
    (void)nanosleep(&settle, NULL);
    measuring->broker_bytes = usage_resident_bytes(measuring->market.broker);
    measuring->crowd_bytes = usage_resident_bytes(measuring->crowd);
    (void)printf("{");
    machine_print();
    (void)printf(",");
    machine_print_versions();
    (void)printf(",\"parameters\":{\"rate\":%u,\"seconds\":%u,\"rounds\":%u,\"burst\":%u,"
                 "\"idle_s\":%u,\"heartbeat\":\"%s\",\"transport\":\"ipc, CURVE\"},\"rows\":[",
                 parameters->rate, parameters->seconds, parameters->rounds, parameters->burst,
                 parameters->idle, measuring->market.heartbeat);
    return print_rows(measuring, problem);
}

static bool read_number(const char *text, uint32_t least, uint32_t most, uint32_t *ret_number)
{
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || number < least || number > most) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

/* The numbers grow from row to row: accounts and agents of a row stay for the next. */
static bool read_agents(char *text, struct parameters *parameters)
{
    char *rest = NULL;
    uint32_t least = 1;
    parameters->rows = 0;
    for (char *one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        if (parameters->rows == ROWS_MAX ||
            !read_number(one, least, SCALE_AGENTS_MAX, &parameters->agents[parameters->rows])) {
            return false;
        }
        least = parameters->agents[parameters->rows++];
    }
    return parameters->rows > 0;
}

static bool read_options(int argc, char **argv, struct parameters *parameters,
                         const char **ret_heartbeat)
{
    enum { JSON = 1, AGENTS, RATE, SECONDS, ROUNDS, BURST, IDLE, HEARTBEAT, NO_RESTART };
    static const struct option table[] = {
        {"json", no_argument, NULL, JSON},
        {"agents", required_argument, NULL, AGENTS},
        {"rate", required_argument, NULL, RATE},
        {"seconds", required_argument, NULL, SECONDS},
        {"rounds", required_argument, NULL, ROUNDS},
        {"burst", required_argument, NULL, BURST},
        {"idle", required_argument, NULL, IDLE},
        {"heartbeat", required_argument, NULL, HEARTBEAT},
        {"no-restart", no_argument, NULL, NO_RESTART},
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
        case RATE:
            good = read_number(optarg, 1, 100000, &parameters->rate);
            break;
        case SECONDS:
            good = read_number(optarg, 1, 600, &parameters->seconds);
            break;
        case ROUNDS:
            good = read_number(optarg, 1, ROUNDS_MAX, &parameters->rounds);
            break;
        case BURST:
            good = read_number(optarg, 0, 10000000, &parameters->burst);
            break;
        case IDLE:
            good = read_number(optarg, 1, 600, &parameters->idle);
            break;
        case HEARTBEAT:
            *ret_heartbeat = optarg; /* the broker says what is wrong with it */
            break;
        case NO_RESTART:
            parameters->has_restart = false;
            break;
        default:
            good = false;
        }
    }
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    static struct measuring measuring = {.parameters = {.agents = {1, 8, 64, 256, 1000, 4000},
                                                        .rows = 6,
                                                        .rate = 500,
                                                        .seconds = 5,
                                                        .rounds = 3,
                                                        .burst = 10000,
                                                        .idle = 5,
                                                        .has_restart = true},
                                         .market = {.heartbeat = "1s"}};
    struct problem problem = {""};
    char folder[PROGRAM_PATH_SIZE - 64];
    if (!process_start(&problem) || !process_folder(folder, sizeof folder)) {
        return fail("the process cannot start");
    }
    if (!read_options(argc, argv, &measuring.parameters, &measuring.market.heartbeat)) {
        (void)fail("--agents 1,8,64,256,1000,4000 --rate 500 --seconds 5 --rounds 3 --burst 10000 "
                   "--idle 5 --heartbeat 1s --no-restart");
        return 2;
    }
    (void)snprintf(measuring.market.programs, sizeof measuring.market.programs, "%s/../bin",
                   folder);
    const bool good = measure(&measuring, &problem);
    if (measuring.shared != NULL) {
        atomic_store(&measuring.shared->has_to_end, true);
    }
    (void)program_end(&measuring.crowd, SIGTERM, 10 * NS_PER_S);
    (void)program_end(&measuring.market.broker, SIGTERM, 60 * NS_PER_S);
    program_folder_remove(measuring.market.folder);
    return good ? 0 : fail(problem.text);
}
