/* The simulator's command line: sim [--seed N | --seeds A-B] [--jobs N] [--trace] [--quiet].
 *
 * Each seed runs in a child of its own, so that nothing of one is left for the next, and a failed
 * assert names its seed like any other failure. */
#include "tests/sim/market.h"
#include "tests/sim/world.h"

#include <inttypes.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* A crashed process of the simulated world takes its memory with it; what libraries held for it is
 * lost. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

const char *const fault_names[FAULT_COUNT] = {
    [FAULT_LOST] = "lost",
    [FAULT_REPEATED] = "repeated",
    [FAULT_REORDERED] = "reordered",
    [FAULT_GARBLED] = "garbled",
    [FAULT_DELAYED] = "delayed",
    [FAULT_CUT] = "cuts",
    [FAULT_UNSENT] = "unsent",
    [FAULT_BROKER_CRASH] = "broker crashes",
    [FAULT_AGENT_CRASH] = "agent crashes",
    [FAULT_CLIENT_CRASH] = "client crashes",
    [FAULT_STALL] = "stalls",
    [FAULT_MEMORY] = "failed allocations",
    [FAULT_JOURNAL] = "journal faults",
    [FAULT_TAKEOVER] = "takeovers",
    [FAULT_NONSENSE] = "hostile acts",
    [FAULT_LIE] = "lies",
    [FAULT_CLOCK] = "clock jumps",
    [FAULT_MEMBER] = "members of etcd",
    [FAULT_LATE] = "calls to etcd",
};

enum {
    JOBS_MAX = 64,
    SEED_SECONDS_MOST = 120
}; /* a seed takes one second; one that hangs is a bug */

/* Over so many seeds each of these must have happened, or a check watches nothing. */
enum { SEEDS_THAT_SHOW_ALL = 20 };
static const struct {
    const char *name;
    size_t offset;
    bool is_of_cluster;
} seen[] = {
#define SEEN(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct oracle_counts, name), false                                         \
    }
    SEEN(accepted),       SEEN(rejected),  SEEN(fills),       SEEN(results),     SEEN(late),
    SEEN(paid),           SEEN(settled),   SEEN(repeated),    SEEN(joined),      SEEN(acts),
    SEEN(refusals),       SEEN(given),     SEEN(checked),     SEEN(refuted),     SEEN(by_value),
    SEEN(gifts),          SEEN(wholes),    SEEN(killed),      SEEN(unrested),    SEEN(placed),
    SEEN(taken),          SEEN(noticed),   SEEN(begun),       SEEN(other_terms), SEEN(renewed),
    SEEN(bands),          SEEN(words),     SEEN(unsent),
#undef SEEN
#define SEEN(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct oracle_counts, name), true                                          \
    }
    SEEN(outages),        SEEN(takeovers), SEEN(fenced),      SEEN(stale_reads), SEEN(joins),
    SEEN(follower_reads), SEEN(risen),     SEEN(turned_away),
#undef SEEN
};
enum { SEEN_COUNT = sizeof seen / sizeof *seen };

struct options {
    uint64_t first, last;
    unsigned jobs;
    bool traces, quiet;
};

struct tally { /* shared with the children */
    uint64_t commands, entries, faults[FAULT_COUNT], seen[SEEN_COUNT];
};

static int usage(void)
{
    (void)fputs("usage: sim [--seed N | --seeds A-B] [--jobs N] [--trace] [--quiet]\n", stderr);
    return 2;
}

static bool parse(int count, char **words, struct options *ret)
{
    *ret = (struct options){.first = 1, .last = 500, .jobs = 2};
    for (int i = 1; i < count; i++) {
        char *end = NULL;
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--trace") == 0) {
            ret->traces = true;
        } else if (strcmp(words[i], "--quiet") == 0) {
            ret->quiet = true;
        } else if (strcmp(words[i], "--seed") == 0) {
            ret->first = ret->last = strtoull(value, &end, 10);
            i++;
        } else if (strcmp(words[i], "--jobs") == 0) {
            ret->jobs = (unsigned)strtoul(value, &end, 10);
            i++;
        } else if (strcmp(words[i], "--seeds") == 0) {
            ret->first = strtoull(value, &end, 10);
            ret->last = *end == '-' ? strtoull(end + 1, &end, 10) : ret->first;
            i++;
        } else {
            return false;
        }
        if (end != NULL && (*end != '\0' || *value == '\0')) {
            return false;
        }
    }
    return ret->first <= ret->last && ret->jobs > 0 && ret->jobs <= JOBS_MAX;
}

static void run_seed(uint64_t seed, const struct options *options, struct tally *tally)
{
    (void)alarm(SEED_SECONDS_MOST);
    struct market_result run = run_market(seed, options->traces);
    if (run.commands < market_commands_least || run.faults < market_faults_least) {
        sim_fail("only %" PRIu64 " commands and %" PRIu64 " faults", run.commands, run.faults);
    }
    __atomic_fetch_add(&tally->commands, run.commands, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&tally->entries, run.entries, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        __atomic_fetch_add(&tally->faults[i], world.faults[i], __ATOMIC_SEQ_CST);
    }
    for (size_t i = 0; i < SEEN_COUNT; i++) {
        uint64_t count;
        memcpy(&count, (const char *)&run.seen + seen[i].offset, sizeof count);
        __atomic_fetch_add(&tally->seen[i], count, __ATOMIC_SEQ_CST);
    }
    if (!options->quiet && !options->traces) {
        printf("seed %" PRIu64 ": %" PRIu64 " commands in %" PRIu64 " entries, %" PRIu64
               " faults, %.0f s\n",
               seed, run.commands, run.entries, run.faults, run.virtual_s);
    }
    (void)fflush(stdout);
}

/* Waits for one child; false when its seed failed. */
static bool reap(const pid_t *children, const uint64_t *seeds, unsigned *ret_place, unsigned jobs)
{
    int status;
    pid_t child = wait(&status);
    for (*ret_place = 0; *ret_place < jobs && children[*ret_place] != child; (*ret_place)++) {
    }
    if (*ret_place == jobs) {
        return true;
    }
    if (WIFSIGNALED(status)) {
        (void)fprintf(stderr,
                      "seed %" PRIu64 " ended by signal %d\n  replay: %s --seed %" PRIu64
                      " --trace\n",
                      seeds[*ret_place], WTERMSIG(status), market_command, seeds[*ret_place]);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint64_t run_all(const struct options *options, struct tally *tally)
{
    pid_t children[JOBS_MAX] = {0};
    uint64_t seeds[JOBS_MAX] = {0};
    unsigned running = 0;
    uint64_t failed = 0;
    uint64_t next = options->first;
    while (running > 0 || next <= options->last) {
        unsigned place = 0;
        if (running == options->jobs || next > options->last) {
            failed += reap(children, seeds, &place, options->jobs) ? 0 : 1;
            children[place] = 0;
            running--;
            continue;
        }
        while (children[place] != 0) {
            place++;
        }
        (void)fflush(NULL);
        seeds[place] = next++;
        children[place] = fork();
        if (children[place] == 0) {
            run_seed(seeds[place], options, tally);
            _Exit(0);
        }
        running++;
    }
    return failed;
}

/* Prints what was seen; returns false when many seeds did not show some of it. */
static bool tell_seen(const struct tally *tally, uint64_t seeds)
{
    bool good = true;
    for (size_t i = 0; i < SEEN_COUNT; i++) {
        if (seen[i].is_of_cluster && !market_is_cluster) {
            continue;
        }
        printf("%s %s %" PRIu64, i > 0 ? "," : "", seen[i].name, tally->seen[i]);
        if (tally->seen[i] == 0 && seeds >= SEEDS_THAT_SHOW_ALL) {
            (void)fprintf(stderr, "%s: none in %" PRIu64 " seeds\n", seen[i].name, seeds);
            good = false;
        }
    }
    (void)putchar('\n');
    return good;
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    struct options options;
    if (!parse(count, words, &options)) {
        return usage();
    }
    if (sodium_init() < 0) {
        return 1;
    }
    struct tally *tally =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED) {
        return 1;
    }
    double began_s = now_s();
    uint64_t failed = run_all(&options, tally);
    double took_s = now_s() - began_s;
    uint64_t seeds = options.last - options.first + 1;
    if (!options.traces) {
        printf("%" PRIu64 " seeds, %" PRIu64 " failed; %" PRIu64 " commands in %" PRIu64
               " entries; %.1f s, %.1f seeds/s; faults:",
               seeds, failed, tally->commands, tally->entries, took_s, (double)seeds / took_s);
        for (size_t i = 0; i < FAULT_COUNT; i++) {
            printf(" %s %" PRIu64 "%s", fault_names[i], tally->faults[i],
                   i + 1 < FAULT_COUNT ? "," : "; seen:");
        }
        failed += tell_seen(tally, seeds) ? 0 : 1;
    }
    return failed == 0 ? 0 : 1;
}
