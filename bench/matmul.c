/* bench/matmul.c multiplies two square matrices through a market on one core, and through one on
 * two cores with an agent for each, against oneDNN called directly. It prints one JSON value.
 *
 *     matmul [--json] [--size N] [--rounds R] [--tiles RxC]
 *
 * The defaults are 4096, 3 and, for two cores, the tiles that are planned. The programs are those
 * of ../bin.
 *
 * The market on one core holds client, broker, agent and jail to that core. Those of the other
 * market have the same two cores. Each round makes new matrices, so that nothing is stored or
 * cached from the round before, and begins with another way. A virtual machine hands out memory
 * sooner shortly after somebody else has had it, so the order counts. oneDNN by itself is measured
 * afterwards, for the same reason.
 *
 * Each way has two times. `seconds` is what `bourse run matmul --no-check` prints: from the
 * agreement to the last tile, transfers included. `waited_s` is what a user waits for: from the
 * start of `bourse run matmul` to its end, with plan, quote, Freivalds' check and C.npy under its
 * name. */
#include "base/random.h"
#include "consumer/product/matrix.h"
#include "provider/tensor/gemm.h"
#include "runtime/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 1 << 16, CORES = 2, ROUNDS_MAX = 50, ANY_CPU = -1 };

struct bench {
    char programs[512]; /* folder */
    char self[512];
    char folder[64], markets[CORES][96], second[96]; /* of the markets on one core and on two */
    pid_t agent;                                     /* the second agent there; 0: not started */
    uint64_t side;
    int rounds;
    const char *tiles; /* for both slots, such as 4x1; NULL: as planned */
};

/* The ways say who multiplies. */
enum way {
    WAY_ONE_CORE, /* the market on one core */
    WAY_ONE_SLOT, /* one slot of two: client and broker have the second core */
    WAY_TWO_CORES,
    WAYS,
};
static const struct {
    const char *name;
    const char *at_most;
    int market, cores, cpu; /* of `cores`, the client's */
} ways[WAYS] = {
    [WAY_ONE_CORE] = {"one_core", "1", 0, 1, 0},
    [WAY_ONE_SLOT] = {"one_slot_of_two", "1", 1, 1, ANY_CPU},
    [WAY_TWO_CORES] = {"two_cores", "2", 1, 2, ANY_CPU},
};

/* A split begins to gain at these sizes: what the plan chooses is measured against one slot. */
static const uint64_t small_sides[] = {256, 512, 1024, 2048};
enum { SMALL_SIDES = sizeof small_sides / sizeof small_sides[0] };

static void fatal(const struct bench *bench, const char *what, const char *more)
{
    (void)fprintf(stderr, "matmul: %s: %s\n", what, more);
    if (bench->agent > 0) {
        (void)kill(bench->agent, SIGTERM);
    }
    exit(1);
}

/* ---------------------------------------------------------------- other programs */

/* Holds a thread, and what it will start, to one processor. */
static bool hold_to(pid_t thread, int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    return sched_setaffinity(thread, sizeof one, &one) == 0;
}

/* Starts a program on `cpu` alone (-1: on any); its output goes to `out` (-1: nowhere). */
static pid_t start(const struct bench *bench, const char *const *words, int out, int cpu)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", bench->programs, words[0]);
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(out >= 0 ? out : nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
        if (cpu >= 0 && !hold_to(0, cpu)) {
            _exit(126);
        }
        (void)execv(words[0][0] == '/' ? words[0] : path, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid;
}

/* Runs a program to its end. Returns false when it fails. `ret_output` may be NULL. */
static bool run_on(const struct bench *bench, int cpu, const char *const *words, char *ret_output)
{
    int pipes[2];
    size_t length = 0;
    int status = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        fatal(bench, "pipe", strerror(errno));
    }
    pid_t pid = start(bench, words, pipes[1], cpu);
    (void)close(pipes[1]);
    char scratch[OUTPUT_BYTES];
    char *output = ret_output != NULL ? ret_output : scratch;
    for (ssize_t got = 1; got > 0 && length + 1 < OUTPUT_BYTES;
         length += got > 0 ? (size_t)got : 0) {
        got = read(pipes[0], output + length, OUTPUT_BYTES - 1 - length);
    }
    output[length] = '\0';
    (void)close(pipes[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static bool run(const struct bench *bench, const char *const *words, char *ret_output)
{
    return run_on(bench, ANY_CPU, words, ret_output);
}

/* ---------------------------------------------------------------- the markets */

static void write_config(const struct bench *bench)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/provider.yaml", bench->second);
    FILE *file = fopen(path, "ae");
    if (file == NULL || fputs("slots: 1\n", file) < 0 || fclose(file) != 0) {
        fatal(bench, path, strerror(errno));
    }
}

static uint32_t multiplying(const struct bench *bench)
{
    char output[OUTPUT_BYTES];
    const char *const words[] = {"bourse", "devices", "--needs", "executor = tensor",
                                 "--json", NULL};
    uint32_t count = 0;
    if (run(bench, words, output)) {
        for (const char *at = output; (at = strstr(at, "\"gemm_fp32\"")) != NULL; at++) {
            count++;
        }
    }
    return count;
}

static void await_devices(const struct bench *bench, uint32_t count)
{
    for (int look = 0; multiplying(bench) < count; look++) {
        if (look == 600) {
            fatal(bench, "the agents", "they offer no products");
        }
        const struct timespec moment = {.tv_nsec = 100000000};
        (void)nanosleep(&moment, NULL); /* between two looks */
    }
}

/* Lets every thread of a process run on both cores. */
static void set_free(const struct bench *bench, pid_t pid)
{
    char path[64];
    cpu_set_t both;
    CPU_ZERO(&both);
    CPU_SET(0, &both);
    CPU_SET(1, &both);
    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *threads = opendir(path);
    if (threads == NULL) {
        fatal(bench, path, strerror(errno));
    }
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && sched_setaffinity(thread, sizeof both, &both) != 0) {
            fatal(bench, "two cores are needed", strerror(errno));
        }
    }
    (void)closedir(threads);
}

static void use_market(const struct bench *bench, int market)
{
    (void)setenv("BOURSE_MARKET", bench->markets[market], 1);
}

/* The market has one agent of one slot, all on the first core. Returns the broker's process. */
static pid_t open_market(const struct bench *bench, int market)
{
    char output[OUTPUT_BYTES];
    use_market(bench, market);
    const char *const up[] = {"bourse",  "up", "--detach", "--dir", bench->markets[market],
                              "--slots", "1",  "--json",   NULL};
    json_t *value = run_on(bench, 0, up, output) ? json_loads(output, 0, NULL) : NULL;
    if (value == NULL) {
        fatal(bench, "bourse up", "it failed");
    }
    pid_t pid = (pid_t)json_integer_value(json_object_get(value, "broker_pid"));
    json_decref(value);
    return pid;
}

/* Starts a second agent for the market on two cores. The agent is held to the second core, as the
 * other is to the first. */
static void join_second(struct bench *bench)
{
    char invitation[OUTPUT_BYTES];
    const char *const invite[] = {"bourse", "admin", "invite", "--role", "provider", NULL};
    if (!run(bench, invite, invitation)) {
        fatal(bench, "bourse admin invite", "it failed");
    }
    invitation[strcspn(invitation, "\n")] = '\0';
    const char *const join[] = {"bourse-provider", "join",        invitation,
                                "--dir",           bench->second, NULL};
    const char *const offer[] = {"bourse-provider", "run", "--dir", bench->second, NULL};
    if (mkdir(bench->second, 0700) != 0 || !run(bench, join, NULL)) {
        fatal(bench, "bourse-provider join", "it failed");
    }
    write_config(bench);
    bench->agent = start(bench, offer, -1, 1);
}

static void open_markets(struct bench *bench)
{
    (void)snprintf(bench->folder, sizeof bench->folder, "/tmp/bourse-matmul-XXXXXX");
    if (mkdtemp(bench->folder) == NULL || chmod(bench->folder, 0711) != 0 ||
        chdir(bench->folder) != 0) {
        fatal(bench, "a folder below /tmp", strerror(errno));
    }
    (void)snprintf(bench->markets[0], sizeof bench->markets[0], "%s/one", bench->folder);
    (void)snprintf(bench->markets[1], sizeof bench->markets[1], "%s/two", bench->folder);
    (void)snprintf(bench->second, sizeof bench->second, "%s/second", bench->folder);
    (void)setenv("XDG_CONFIG_HOME", bench->folder, 1);
    (void)setenv("XDG_STATE_HOME", bench->folder, 1);
    (void)open_market(bench, 0);
    await_devices(bench, 1);
    set_free(bench, open_market(bench, 1));
    join_second(bench);
    await_devices(bench, CORES);
}

static void close_markets(struct bench *bench)
{
    const char *const clear[] = {"/bin/rm", "-rf", bench->folder, NULL};
    (void)kill(bench->agent, SIGTERM);
    (void)waitpid(bench->agent, NULL, 0);
    bench->agent = 0;
    for (int i = 0; i < CORES; i++) {
        const char *const down[] = {"bourse", "down", "--dir", bench->markets[i], NULL};
        (void)run(bench, down, NULL);
    }
    if (chdir("/") != 0) {
        return; /* not from inside the folder */
    }
    (void)run(bench, clear, NULL);
}

/* ---------------------------------------------------------------- matrices */

static void fill(float *elements, size_t count, struct random *random)
{
    for (size_t i = 0; i < count; i++) {
        elements[i] = (float)(random_u64(random) >> 40) / (1 << 23) - 1.0F;
    }
}

static void write_matrix(const struct bench *bench, const char *path, struct random *random)
{
    struct problem problem = {.text = "out of memory"};
    const struct matrix_block all = {.rows = bench->side, .columns = bench->side};
    float *elements = calloc((size_t)(bench->side * bench->side), sizeof *elements);
    struct matrix_draft *draft =
        elements == NULL ? NULL : matrix_draft_create(path, bench->side, bench->side, &problem);
    if (draft == NULL) {
        fatal(bench, path, problem.text);
    }
    fill(elements, (size_t)(bench->side * bench->side), random);
    if (!matrix_draft_write(draft, &all, elements, &problem) ||
        !matrix_draft_keep(draft, &problem)) {
        fatal(bench, path, problem.text);
    }
    matrix_draft_destroy(&draft);
    free(elements);
}

/* ---------------------------------------------------------------- measurements */

/* Runs in a process of its own, so that OMP_NUM_THREADS counts. Prints the seconds of the second
 * product; the first makes the code. */
static int direct(uint64_t side)
{
    size_t count = (size_t)(side * side);
    struct random random = random_seeded(1);
    float *values = calloc(3 * count, sizeof *values);
    if (values == NULL) {
        return 1;
    }
    fill(values, 2 * count, &random);
    const struct gemm gemm = {.rows = side,
                              .inner = side,
                              .columns = side,
                              .alpha = 1,
                              .a = values,
                              .b = values + count,
                              .c = values + 2 * count};
    int64_t before_ns = 0;
    for (int i = 0; i < 2; i++) {
        before_ns = clock_monotonic_ns();
        if (gemm_run(&gemm) != GEMM_OK) {
            return 1;
        }
    }
    (void)printf("%.9f\n", (double)(clock_monotonic_ns() - before_ns) / 1e9);
    free(values);
    return 0;
}

static double direct_s(const struct bench *bench, int cores)
{
    char output[OUTPUT_BYTES];
    char side[24];
    (void)snprintf(side, sizeof side, "%llu", (unsigned long long)bench->side);
    (void)setenv("OMP_NUM_THREADS", cores == 1 ? "1" : "2", 1);
    const char *const words[] = {bench->self, "--direct", side, NULL};
    bool good = run(bench, words, output);
    (void)unsetenv("OMP_NUM_THREADS");
    if (!good) {
        fatal(bench, "oneDNN", "the direct product failed");
    }
    return strtod(output, NULL);
}

/* Measures what memory costs that nobody has used for a while, in ms a MiB. A virtual machine may
 * have to wait until its host gives the memory back. Much of a product's time is that wait. */
static double memory_ms(const struct bench *bench)
{
    enum { MEMORY_MIB = 64 };
    const size_t bytes = (size_t)MEMORY_MIB << 20;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile uint8_t *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fatal(bench, "memory", strerror(errno));
    }
    const int64_t began_ns = clock_monotonic_ns();
    for (size_t at = 0; at < bytes; at += page) {
        memory[at] = 1;
    }
    const double taken_ms = (double)(clock_monotonic_ns() - began_ns) / 1e6;
    (void)munmap((void *)(uintptr_t)memory, bytes);
    return taken_ms / MEMORY_MIB;
}

struct result {
    double seconds[ROUNDS_MAX];
    double waited_s[ROUNDS_MAX]; /* for the whole command, with its check */
    double busy_s;               /* of all tiles of the last round */
    int64_t tiles, providers, sent, fetched, predicted_ms;
    bool is_split;
};

static void through_market(const struct bench *bench, enum way way, int round,
                           struct result *result)
{
    char output[OUTPUT_BYTES];
    const char *const words[] = {"bourse",
                                 "run",
                                 "-y",
                                 "matmul",
                                 "A.npy",
                                 "B.npy",
                                 "-o",
                                 "C.npy",
                                 "--no-check",
                                 "--at-most",
                                 ways[way].at_most,
                                 "--json",
                                 way == WAY_TWO_CORES && bench->tiles != NULL ? "--tiles" : NULL,
                                 bench->tiles,
                                 NULL};
    use_market(bench, ways[way].market);
    bool good = run_on(bench, ways[way].cpu, words, output);
    json_t *value = json_loads(output, 0, NULL);
    if (!good || value == NULL) {
        fatal(bench, "bourse run matmul", output);
    }
    size_t index;
    json_t *share;
    result->seconds[round] = json_number_value(json_object_get(value, "seconds"));
    result->tiles = json_integer_value(json_object_get(value, "tiles"));
    result->providers = json_integer_value(json_object_get(value, "providers"));
    result->sent = json_integer_value(json_object_get(value, "bytes_sent"));
    result->fetched = json_integer_value(json_object_get(value, "bytes_fetched"));
    result->predicted_ms = json_integer_value(json_object_get(value, "predicted_ms"));
    result->is_split = json_is_true(json_object_get(value, "split"));
    result->busy_s = 0;
    json_array_foreach(json_object_get(value, "shares"), index, share)
    {
        result->busy_s += (double)json_integer_value(json_object_get(share, "paid_ns")) / 1e9;
    }
    json_decref(value);
}

/* Runs the command as a user types it, and measures it from outside. */
static void wait_for_file(const struct bench *bench, enum way way, int round, struct result *result)
{
    char output[OUTPUT_BYTES];
    const bool has_tiles = way == WAY_TWO_CORES && bench->tiles != NULL;
    const char *const words[] = {"bourse",     "run",
                                 "-y",         "matmul",
                                 "A.npy",      "B.npy",
                                 "-o",         "C.npy",
                                 "--at-most",  ways[way].at_most,
                                 "--json",     has_tiles ? "--tiles" : NULL,
                                 bench->tiles, NULL};
    (void)unlink("C.npy");
    use_market(bench, ways[way].market);
    const int64_t began_ns = clock_monotonic_ns();
    if (!run_on(bench, ways[way].cpu, words, output) || access("C.npy", R_OK) != 0) {
        fatal(bench, "bourse run matmul", output);
    }
    result->waited_s[round] = (double)(clock_monotonic_ns() - began_ns) / 1e9;
    if (strstr(output, "\"check_seconds\"") == NULL) {
        fatal(bench, "bourse run matmul", "it did not check the product");
    }
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static json_t *figures(const struct bench *bench, struct result *market, double *direct_seconds,
                       enum way way)
{
    int cores = ways[way].cores;
    double flop = 2.0 * (double)bench->side * (double)bench->side * (double)bench->side;
    double market_s = median(market->seconds, bench->rounds);
    double alone_s = median(direct_seconds, bench->rounds);
    double waited_s = median(market->waited_s, bench->rounds);
    double overhead_s = (market_s - alone_s) * cores / (double)market->tiles;
    return json_pack("{s:s, s:i, s:f, s:[f,f], s:f, s:[f,f], s:f, s:f, s:f, s:f, s:I, s:I, s:I, "
                     "s:I, s:f, s:f, s:I}",
                     "way", ways[way].name, "slots", cores, "seconds", market_s, "range",
                     market->seconds[0], market->seconds[bench->rounds - 1], "waited_s", waited_s,
                     "waited_range", market->waited_s[0], market->waited_s[bench->rounds - 1],
                     "gflops", flop / market_s / 1e9, "direct_seconds", alone_s, "direct_gflops",
                     flop / alone_s / 1e9, "ratio", alone_s / market_s, "tiles",
                     (json_int_t)market->tiles, "providers", (json_int_t)market->providers,
                     "bytes_sent", (json_int_t)market->sent, "bytes_fetched",
                     (json_int_t)market->fetched, "overhead_ms_per_tile", overhead_s * 1e3,
                     "busy_ms_per_tile", market->busy_s / (double)market->tiles * 1e3,
                     "predicted_ms", (json_int_t)market->predicted_ms);
}

static void make_factors(const struct bench *bench, struct random *random)
{
    write_matrix(bench, "A.npy", random);
    write_matrix(bench, "B.npy", random);
}

/* Measures what the plan chooses with two agents on offer, against one slot. */
static json_t *small_products(const struct bench *bench, struct random *random)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < SMALL_SIDES; i++) {
        struct bench small = *bench;
        static struct result chosen;
        static struct result single;
        small.side = small_sides[i];
        for (int round = 0; round < small.rounds; round++) {
            make_factors(&small, random);
            through_market(&small, WAY_TWO_CORES, round, &chosen);
            make_factors(&small, random);
            through_market(&small, WAY_ONE_SLOT, round, &single);
        }
        double chosen_s = median(chosen.seconds, small.rounds);
        double single_s = median(single.seconds, small.rounds);
        (void)json_array_append_new(
            rows, json_pack("{s:I, s:b, s:f, s:f, s:f}", "size", (json_int_t)small.side, "split",
                            chosen.is_split, "seconds", chosen_s, "single_seconds", single_s,
                            "times_as_fast", single_s / chosen_s));
    }
    return rows;
}

static double quotient(struct result *slower, struct result *faster, int rounds)
{
    return median(slower->seconds, rounds) / median(faster->seconds, rounds);
}

/* The least times contain least of what others do to the machine. The times are sorted. */
static double quotient_at_best(const struct result *slower, const struct result *faster)
{
    return slower->seconds[0] / faster->seconds[0];
}

static bool read_arguments(struct bench *bench, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            continue; /* there is no other way it prints */
        }
        if (strcmp(argv[i], "--tiles") == 0 && has_value) {
            bench->tiles = argv[++i];
        } else if (strcmp(argv[i], "--size") == 0 && has_value) {
            bench->side = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0 && has_value) {
            bench->rounds = (int)strtol(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return bench->side >= 1 && bench->side <= 65536 && bench->rounds >= 1 &&
           bench->rounds <= ROUNDS_MAX;
}

int main(int argc, char **argv)
{
    struct bench bench = {.side = 4096, .rounds = 3};
    static struct result market[WAYS];
    static double alone[WAYS][ROUNDS_MAX];
    static double memory[ROUNDS_MAX];
    json_t *figures_of[WAYS];
    ssize_t length = readlink("/proc/self/exe", bench.self, sizeof bench.self - 1);
    if (argc == 3 && strcmp(argv[1], "--direct") == 0) {
        return direct(strtoull(argv[2], NULL, 10));
    }
    if (length < 0 || !read_arguments(&bench, argc, argv)) {
        (void)fputs("usage: matmul [--json] [--size N] [--rounds R] [--tiles RxC]\n", stderr);
        return 2;
    }
    (void)snprintf(bench.programs, sizeof bench.programs, "%.*s/../bin",
                   (int)(strrchr(bench.self, '/') - bench.self), bench.self);
    struct random random = random_seeded(20261122);
    open_markets(&bench);
    for (int round = -1; round < bench.rounds; round++) { /* -1 warms up */
        int at = round < 0 ? 0 : round;
        for (int turn = 0; turn < WAYS; turn++) {
            int way = (turn + at) % WAYS;
            make_factors(&bench, &random);
            through_market(&bench, (enum way)way, at, &market[way]);
        }
        memory[at] = memory_ms(&bench);
    }
    for (int at = 0; at < bench.rounds * WAYS; at++) {
        int way = (at + at / WAYS) % WAYS;
        make_factors(&bench, &random);
        wait_for_file(&bench, (enum way)way, at / WAYS, &market[way]);
    }
    for (int at = 0; at < bench.rounds * WAYS; at++) {
        alone[at % WAYS][at / WAYS] = direct_s(&bench, ways[at % WAYS].cores);
    }
    json_t *small = small_products(&bench, &random);
    close_markets(&bench);
    for (int way = 0; way < WAYS; way++) {
        figures_of[way] = figures(&bench, &market[way], alone[way], (enum way)way);
    }
    const double memory_median = median(memory, bench.rounds); /* in order from here on */
    json_t *value =
        json_pack("{s:I, s:i, s:s, s:f, s:[f,f], s:f, s:f, s:f, s:[o,o,o], s:o}", "size",
                  (json_int_t)bench.side, "rounds", bench.rounds, "engine", gemm_engine(),
                  "memory_ms_per_mib", memory_median, "memory_range", memory[0],
                  memory[bench.rounds - 1], "two_cores_are_times_as_fast",
                  quotient(&market[WAY_ONE_CORE], &market[WAY_TWO_CORES], bench.rounds), "at_best",
                  quotient_at_best(&market[WAY_ONE_CORE], &market[WAY_TWO_CORES]),
                  "two_slots_are_times_as_fast",
                  quotient(&market[WAY_ONE_SLOT], &market[WAY_TWO_CORES], bench.rounds), "ways",
                  figures_of[WAY_ONE_CORE], figures_of[WAY_ONE_SLOT], figures_of[WAY_TWO_CORES],
                  "small", small);
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(value);
    return 0;
}
