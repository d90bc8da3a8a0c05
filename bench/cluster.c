/* bench/cluster.c measures one broker on SQLite's journal and three on etcd's, in one run on
 * loopback, with real processes. It kills the broker that leads again and again under load, and
 * compares what the client was told with the ledgers. The program prints one JSON value;
 * docs/bench.md says what each figure means.
 *
 *     cluster [--json] [--seconds 5] [--in-flight 1024] [--lone 300] [--subtasks 20000]
 *             [--agents 8] [--kills 50] [--catch-up 20000] [--source ROOT]
 *
 * The benchmark takes the programs from ../bin beside its own folder. Where etcd is not installed,
 * three brokers are left out. */
#include "bench/cluster/parts.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "bench/shared/machine.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONE_MAX = 100000,
    KILLS_MAX = 1000,
    CATCH_UP_MAX = 2000000,
    KILL_IN_FLIGHT = 64,
    WAIT_S = 600,
    BUDGET_CREDITS = 1000,
};
#define BEFORE_KILL_NS (300 * NS_PER_MS) /* of load, before each kill */
#define SLICE_NS (20 * NS_PER_MS)
#define FAILOVER_MOST_NS (120 * NS_PER_S)

struct parameters {
    uint32_t seconds, in_flight, lone, subtasks, agents, kills, catch_up;
    const char *source;
    char programs[PROGRAM_PATH_SIZE - 32];
};

struct figures {
    double commands_per_s, subtasks_per_s;
    double lone_p50_us, lone_p99_us;
    uint64_t refused;
    struct verdict verdict;
};

struct failover {
    double p50_ms, p99_ms, most_ms;
    double catch_up_s;
    uint64_t catch_up_commands;
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "cluster: %s\n", what);
    return 1;
}

/* ---------------------------------------------------------------- commands */

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static double percentile(const int64_t *sorted, size_t count, unsigned per_cent)
{
    return count == 0 ? 0 : (double)sorted[(count - 1) * per_cent / 100];
}

static bool measure_commands(const struct parameters *parameters, struct load *load,
                             struct figures *figures)
{
    const uint64_t before = load_acknowledged(load);
    const int64_t start_ns = clock_monotonic_ns();
    load_run(load, parameters->in_flight, UINT32_MAX,
             start_ns + (int64_t)parameters->seconds * NS_PER_S);
    const bool good = load_drain(load);
    figures->commands_per_s = (double)(load_acknowledged(load) - before) * 1e9 /
                              (double)(clock_monotonic_ns() - start_ns);
    return good;
}

static bool measure_lone(const struct parameters *parameters, struct load *load,
                         struct figures *figures)
{
    static int64_t took_ns[LONE_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < parameters->lone; i++) {
        const uint64_t before = load_acknowledged(load);
        load_run(load, 1, 1, INT64_MAX);
        if (!load_drain(load)) {
            return false;
        }
        took_ns[count] = load_newest_took_ns(load);
        count += load_acknowledged(load) > before;
    }
    qsort(took_ns, count, sizeof *took_ns, compare);
    figures->lone_p50_us = percentile(took_ns, count, 50) / 1e3;
    figures->lone_p99_us = percentile(took_ns, count, 99) / 1e3;
    return true;
}

/* ---------------------------------------------------------------- subtasks */

static bool run_subtasks(const struct brokers *brokers, uint32_t subtasks, double *ret_per_s,
                         struct bourse_error *error)
{
    char text[128];
    char id[BOURSE_ID_SIZE];
    struct bourse_job_row done;
    CLEANUP(bourse_close) struct bourse *bourse = NULL;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    const struct bourse_options options = {.market = brokers->market.file,
                                           .key = brokers->market.key,
                                           .program = "cluster",
                                           .timeout_ms = 60000};
    (void)snprintf(text, sizeof text,
                   "name: cluster\nexecutor: noop\narray: 0-%u\nlimit: 1m\nexpect: 1ms\n",
                   subtasks - 1);
    if (!bourse_open(&options, &bourse, error) ||
        !bourse_job_parse(text, strlen(text), ".", &job, error)) {
        return false;
    }
    const int64_t start_ns = clock_monotonic_ns();
    if (!bourse_submit(bourse, job, (int64_t)BUDGET_CREDITS * MICRO_PER_CREDIT,
                       100 * MICRO_PER_CREDIT, NULL, NULL, id, error) ||
        !bourse_wait(bourse, id, (int64_t)WAIT_S * 1000, NULL, NULL, &done, error)) {
        return false;
    }
    *ret_per_s = (double)subtasks * 1e9 / (double)(clock_monotonic_ns() - start_ns);
    if (done.accepted != subtasks) {
        (void)snprintf(error->text, sizeof error->text, "%u of %u subtasks were accepted",
                       done.accepted, subtasks);
    }
    return done.accepted == subtasks;
}

static bool await_agents(const struct agents_shared *shared, uint32_t agents,
                         struct problem *problem)
{
    const int64_t deadline_ns = clock_monotonic_ns() + WAIT_S * NS_PER_S;
    while (atomic_load(&shared->standing) < agents) {
        if (atomic_load(&shared->has_failed) || clock_monotonic_ns() > deadline_ns) {
            problem_set(problem, "the agents do not offer: %s", shared->failure);
            return false;
        }
        program_pause();
    }
    return true;
}

static bool measure_subtasks(const struct parameters *parameters, struct brokers *brokers,
                             struct agents_shared *shared, struct figures *figures,
                             struct problem *problem)
{
    struct bourse_error error = {.text = ""};
    double warm_up;
    if (!market_join(&brokers->market, parameters->agents, problem)) {
        return false;
    }
    atomic_store(&shared->wanted, parameters->agents);
    if (!await_agents(shared, parameters->agents, problem)) {
        return false;
    }
    const bool good = run_subtasks(brokers, parameters->subtasks / 10 + 1, &warm_up, &error) &&
                      run_subtasks(brokers, parameters->subtasks, &figures->subtasks_per_s, &error);
    if (!good) {
        problem_set(problem, "the subtasks: %.400s", error.text);
    }
    return good;
}

/* ---------------------------------------------------------------- failures */

/* Kills the broker that leads, and returns the time until a command was acknowledged on a new
 * connection; 0: none was. */
static int64_t kill_leader(struct brokers *brokers, struct load *load, uint32_t *ret_killed)
{
    load_run(load, KILL_IN_FLIGHT, UINT32_MAX, clock_monotonic_ns() + BEFORE_KILL_NS);
    const int leads = brokers_leader(brokers);
    if (leads < 0) {
        return 0;
    }
    load_run(load, KILL_IN_FLIGHT, UINT32_MAX, clock_monotonic_ns() + SLICE_NS);
    const uint64_t greeted = load_greeted(load);
    const int64_t start_ns = clock_monotonic_ns();
    *ret_killed = (uint32_t)leads;
    (void)kill(brokers->places[leads].pid, SIGKILL);
    while (load_greeted(load) == greeted || load_first_ns(load) == 0) {
        if (clock_monotonic_ns() - start_ns > FAILOVER_MOST_NS) {
            return 0;
        }
        load_run(load, KILL_IN_FLIGHT, UINT32_MAX, clock_monotonic_ns() + SLICE_NS);
    }
    return load_first_ns(load) - start_ns;
}

static bool measure_failover(const struct parameters *parameters, struct brokers *brokers,
                             struct load *load, struct failover *failover, struct problem *problem)
{
    static int64_t took_ns[KILLS_MAX];
    for (uint32_t i = 0; i < parameters->kills; i++) {
        uint32_t killed = 0;
        took_ns[i] = kill_leader(brokers, load, &killed);
        if (took_ns[i] == 0) {
            problem_set(problem, "kill %u: nobody took over", i + 1);
            return false;
        }
        (void)program_end(&brokers->places[killed].pid, SIGKILL, NS_PER_S);
        if (!brokers_restart(brokers, killed, problem) || !load_drain(load) ||
            !brokers_await(brokers, killed, problem)) {
            return false;
        }
    }
    qsort(took_ns, parameters->kills, sizeof *took_ns, compare);
    failover->p50_ms = percentile(took_ns, parameters->kills, 50) / 1e6;
    failover->p99_ms = percentile(took_ns, parameters->kills, 99) / 1e6;
    failover->most_ms = percentile(took_ns, parameters->kills, 100) / 1e6;
    return true;
}

static bool measure_catch_up(const struct parameters *parameters, struct brokers *brokers,
                             struct load *load, struct failover *failover, struct problem *problem)
{
    if (parameters->catch_up == 0) {
        return true;
    }
    const uint64_t before = load_sent(load);
    if (!brokers_back_up(brokers, problem)) {
        return false;
    }
    load_run(load, parameters->in_flight, parameters->catch_up, INT64_MAX);
    failover->catch_up_commands = load_sent(load) - before;
    return load_drain(load) && brokers_join(brokers, &failover->catch_up_s, problem);
}

/* ---------------------------------------------------------------- one market */

static bool verify(struct brokers *brokers, const struct load *load, struct figures *figures,
                   struct problem *problem)
{
    bool good = true;
    for (uint32_t i = 0; good && brokers->is_cluster && i < brokers->count; i++) {
        good = brokers_await(brokers, i, problem);
    }
    if (!good || !brokers_stop(brokers)) {
        problem_set(problem, "a broker did not end well");
        return false;
    }
    for (uint32_t i = 0; good && i < brokers->count; i++) {
        struct verdict verdict;
        good = verify_ledger(brokers, i, load, &verdict, problem);
        figures->verdict.lost += verdict.lost;
        figures->verdict.duplicated += verdict.duplicated;
        figures->verdict.unanswered += verdict.unanswered;
    }
    figures->refused = load_refused(load);
    return good;
}

static bool measure_all(const struct parameters *parameters, struct brokers *brokers,
                        struct agents_shared *shared, struct figures *figures,
                        struct failover *failover, struct problem *problem)
{
    struct load *load = load_open(brokers, problem);
    bool good = load != NULL;
    if (good && (!measure_commands(parameters, load, figures) ||
                 !measure_lone(parameters, load, figures))) {
        problem_set(problem, "commands were not answered");
        good = false;
    }
    good = good && (parameters->subtasks == 0 ||
                    measure_subtasks(parameters, brokers, shared, figures, problem));
    atomic_store(&shared->has_to_end, true);
    if (good && brokers->is_cluster) {
        good = measure_failover(parameters, brokers, load, failover, problem) &&
               measure_catch_up(parameters, brokers, load, failover, problem);
    }
    good = good && verify(brokers, load, figures, problem);
    load_close(&load);
    return good;
}

static bool measure_market(const struct parameters *parameters, bool is_cluster,
                           struct figures *figures, struct failover *failover,
                           struct problem *problem)
{
    static struct brokers brokers;
    struct agents_shared *shared = NULL;
    brokers = (struct brokers){.market = {.heartbeat = "1s"}};
    (void)snprintf(brokers.market.programs, sizeof brokers.market.programs, "%s",
                   parameters->programs);
    bool good = brokers_start(&brokers, is_cluster, parameters->source, problem);
    pid_t crowd = good ? agents_start(brokers.market.folder, &shared, problem) : 0;
    good =
        good && crowd > 0 && measure_all(parameters, &brokers, shared, figures, failover, problem);
    (void)program_end(&crowd, SIGKILL, NS_PER_S);
    brokers_end(&brokers);
    return good;
}

/* ---------------------------------------------------------------- the program */

static void print_figures(const char *name, const struct figures *figures)
{
    (void)printf(",\"%s\":{\"commands_per_s\":%.0f,\"lone_p50_us\":%.0f,\"lone_p99_us\":%.0f,"
                 "\"subtasks_per_s\":%.0f,\"refused\":%" PRIu64 "}",
                 name, figures->commands_per_s, figures->lone_p50_us, figures->lone_p99_us,
                 figures->subtasks_per_s, figures->refused);
    (void)fflush(stdout);
}

static bool measure(const struct parameters *parameters, struct problem *problem)
{
    static struct figures one;
    static struct figures three;
    static struct failover failover;
    const bool has_etcd = etcd_cluster_is_possible();
    (void)printf("{");
    machine_print();
    (void)printf(",");
    machine_print_versions();
    (void)printf(",\"parameters\":{\"seconds\":%u,\"in_flight\":%u,\"lone\":%u,\"subtasks\":%u,"
                 "\"agents\":%u,\"transport\":\"tcp on loopback, CURVE\"}",
                 parameters->seconds, parameters->in_flight, parameters->lone, parameters->subtasks,
                 parameters->agents);
    if (!measure_market(parameters, false, &one, &failover, problem)) {
        return false;
    }
    print_figures("one", &one);
    if (has_etcd && !measure_market(parameters, true, &three, &failover, problem)) {
        return false;
    }
    if (has_etcd) {
        print_figures("three", &three);
        (void)printf(",\"failover_ms\":{\"p50\":%.0f,\"p99\":%.0f,\"max\":%.0f,\"kills\":%u}",
                     failover.p50_ms, failover.p99_ms, failover.most_ms, parameters->kills);
        (void)printf(",\"catch_up_s\":%.2f,\"catch_up_commands\":%" PRIu64, failover.catch_up_s,
                     failover.catch_up_commands);
    }
    (void)printf(",\"lost\":%" PRIu64 ",\"duplicated\":%" PRIu64 ",\"unanswered\":%" PRIu64 "}\n",
                 one.verdict.lost + three.verdict.lost,
                 one.verdict.duplicated + three.verdict.duplicated,
                 one.verdict.unanswered + three.verdict.unanswered);
    return true;
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

static bool read_options(int argc, char **argv, struct parameters *parameters)
{
    enum { JSON = 1, SECONDS, IN_FLIGHT, LONE, SUBTASKS, AGENTS, KILLS, CATCH_UP, SOURCE };
    static const struct option table[] = {
        {"json", no_argument, NULL, JSON},
        {"seconds", required_argument, NULL, SECONDS},
        {"in-flight", required_argument, NULL, IN_FLIGHT},
        {"lone", required_argument, NULL, LONE},
        {"subtasks", required_argument, NULL, SUBTASKS},
        {"agents", required_argument, NULL, AGENTS},
        {"kills", required_argument, NULL, KILLS},
        {"catch-up", required_argument, NULL, CATCH_UP},
        {"source", required_argument, NULL, SOURCE},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    for (int found; good && (found = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (found) {
        case JSON:
            break; /* the only form there is */
        case SECONDS:
            good = read_number(optarg, 1, 600, &parameters->seconds);
            break;
        case IN_FLIGHT:
            good = read_number(optarg, 1, 4096, &parameters->in_flight);
            break;
        case LONE:
            good = read_number(optarg, 1, LONE_MAX, &parameters->lone);
            break;
        case SUBTASKS:
            good = read_number(optarg, 0, 10000000, &parameters->subtasks);
            break;
        case AGENTS:
            good = read_number(optarg, 1, 256, &parameters->agents);
            break;
        case KILLS:
            good = read_number(optarg, 0, KILLS_MAX, &parameters->kills);
            break;
        case CATCH_UP:
            good = read_number(optarg, 0, CATCH_UP_MAX, &parameters->catch_up);
            break;
        case SOURCE:
            parameters->source = optarg;
            break;
        default:
            good = false;
        }
    }
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    static struct parameters parameters = {.seconds = 5,
                                           .in_flight = 1024,
                                           .lone = 300,
                                           .subtasks = 20000,
                                           .agents = 8,
                                           .kills = 50,
                                           .catch_up = 20000,
                                           .source = "."};
    struct problem problem = {""};
    char folder[PROGRAM_PATH_SIZE - 64];
    if (!process_start(&problem) || !process_folder(folder, sizeof folder)) {
        return fail("the process cannot start");
    }
    if (!read_options(argc, argv, &parameters)) {
        (void)fail("--seconds 5 --in-flight 1024 --lone 300 --subtasks 20000 --agents 8 "
                   "--kills 50 --catch-up 20000 --source ROOT");
        return 2;
    }
    (void)snprintf(parameters.programs, sizeof parameters.programs, "%s/../bin", folder);
    return measure(&parameters, &problem) ? 0 : fail(problem.text);
}
