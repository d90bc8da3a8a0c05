/* bench/matmul.c - the product of two square matrices through a market of two agents, one core each, against oneDNN
 * called directly. Prints one JSON value.
 *
 *     matmul [--json] [--size N] [--rounds R]      4096, 3; the programs are those of ../bin
 *
 * Each round makes new matrices, so that nothing is stored or cached from the one before. Times through the market are those
 * of `bourse run matmul`: from the agreement to the last tile, transfers included, Freivalds' check not. */
#include "base/random.h"
#include "consumer/matrix.h"
#include "provider/tensor/gemm.h"
#include "runtime/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 24, OUTPUT_BYTES = 1 << 16, CORES = 2, ROUNDS_MAX = 50 };

struct bench {
    char programs[512]; /* folder */
    char self[512];
    char folder[64], market[96], second[96];
    pid_t agent; /* the second one; 0: not started */
    uint64_t side;
    int rounds;
};

static void fatal(const struct bench *bench, const char *what, const char *more)
{
    (void)fprintf(stderr, "matmul: %s: %s\n", what, more);
    if (bench->agent > 0) {
        (void)kill(bench->agent, SIGTERM);
    }
    exit(1);
}

/* ---------------------------------------------------------------- other programs */

/* Starts one; its standard output goes to `out` (-1: nowhere). `cpu` >= 0: on that one alone. */
static pid_t start(const struct bench *bench, const char *const *words, int out, int cpu)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", bench->programs, words[0]);
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(out >= 0 ? out : nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
        if (cpu >= 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET((unsigned)cpu, &one);
            (void)sched_setaffinity(0, sizeof one, &one); /* where it fails, both share the cores */
        }
        (void)execv(words[0][0] == '/' ? words[0] : path, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid;
}

/* Runs one to its end; false when it fails. `ret_output` may be NULL. */
static bool run(const struct bench *bench, const char *const *words, char *ret_output)
{
    int pipes[2];
    size_t length = 0;
    int status = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        fatal(bench, "pipe", strerror(errno));
    }
    pid_t pid = start(bench, words, pipes[1], -1);
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

/* ---------------------------------------------------------------- the market */

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

/* One agent takes the first core; the other is held to the second. */
static void open_market(struct bench *bench)
{
    char invitation[OUTPUT_BYTES];
    (void)snprintf(bench->folder, sizeof bench->folder, "/tmp/bourse-matmul-XXXXXX");
    if (mkdtemp(bench->folder) == NULL || chmod(bench->folder, 0711) != 0 ||
        chdir(bench->folder) != 0) {
        fatal(bench, "a folder below /tmp", strerror(errno));
    }
    (void)snprintf(bench->market, sizeof bench->market, "%s/market", bench->folder);
    (void)snprintf(bench->second, sizeof bench->second, "%s/second", bench->folder);
    (void)setenv("BOURSE_MARKET", bench->market, 1);
    (void)setenv("XDG_CONFIG_HOME", bench->folder, 1);
    (void)setenv("XDG_STATE_HOME", bench->folder, 1);
    const char *const up[] = {"bourse",      "up",      "--detach", "--dir",
                              bench->market, "--slots", "1",        NULL};
    const char *const invite[] = {"bourse", "admin", "invite", "--role", "provider", NULL};
    if (!run(bench, up, NULL) || !run(bench, invite, invitation)) {
        fatal(bench, "bourse up", "it failed");
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
    for (int look = 0; multiplying(bench) < CORES; look++) {
        if (look == 600) {
            fatal(bench, "the agents", "they offer no products");
        }
        const struct timespec moment = {.tv_nsec = 100000000};
        (void)nanosleep(&moment, NULL); /* between two looks */
    }
}

static void close_market(struct bench *bench)
{
    const char *const down[] = {"bourse", "down", "--dir", bench->market, NULL};
    const char *const clear[] = {"/bin/rm", "-rf", bench->folder, NULL};
    (void)kill(bench->agent, SIGTERM);
    (void)waitpid(bench->agent, NULL, 0);
    bench->agent = 0;
    (void)run(bench, down, NULL);
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

/* In a process of its own, so that OMP_NUM_THREADS counts: seconds of the second product, the first makes the code. */
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

struct result {
    double seconds[ROUNDS_MAX];
    double busy_s; /* of all tiles of the last round */
    int64_t tiles, providers, sent, fetched, predicted_ms;
};

static void through_market(const struct bench *bench, int cores, int round, struct result *result)
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
                                 cores == 1 ? "1" : "2",
                                 "--json",
                                 NULL};
    bool good = run(bench, words, output);
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
    result->busy_s = 0;
    json_array_foreach(json_object_get(value, "shares"), index, share)
    {
        result->busy_s += (double)json_integer_value(json_object_get(share, "paid_ns")) / 1e9;
    }
    json_decref(value);
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
                       int cores)
{
    double flop = 2.0 * (double)bench->side * (double)bench->side * (double)bench->side;
    double market_s = median(market->seconds, bench->rounds);
    double alone_s = median(direct_seconds, bench->rounds);
    double overhead_s = (market_s - alone_s) * cores / (double)market->tiles;
    return json_pack(
        "{s:i, s:f, s:[f,f], s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:I}", "cores",
        cores, "seconds", market_s, "range", market->seconds[0], market->seconds[bench->rounds - 1],
        "gflops", flop / market_s / 1e9, "direct_seconds", alone_s, "direct_gflops",
        flop / alone_s / 1e9, "ratio", alone_s / market_s, "tiles", (json_int_t)market->tiles,
        "providers", (json_int_t)market->providers, "bytes_sent", (json_int_t)market->sent,
        "bytes_fetched", (json_int_t)market->fetched, "overhead_ms_per_tile", overhead_s * 1e3,
        "busy_ms_per_tile", market->busy_s / (double)market->tiles * 1e3, "predicted_ms",
        (json_int_t)market->predicted_ms);
}

static bool read_arguments(struct bench *bench, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            continue; /* there is no other way it prints */
        }
        if (strcmp(argv[i], "--size") == 0 && has_value) {
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
    static struct result market[CORES];
    static double alone[CORES][ROUNDS_MAX];
    ssize_t length = readlink("/proc/self/exe", bench.self, sizeof bench.self - 1);
    if (argc == 3 && strcmp(argv[1], "--direct") == 0) {
        return direct(strtoull(argv[2], NULL, 10));
    }
    if (length < 0 || !read_arguments(&bench, argc, argv)) {
        (void)fputs("usage: matmul [--json] [--size N] [--rounds R]\n", stderr);
        return 2;
    }
    (void)snprintf(bench.programs, sizeof bench.programs, "%.*s/../bin",
                   (int)(strrchr(bench.self, '/') - bench.self), bench.self);
    struct random random = random_seeded(20261122);
    open_market(&bench);
    for (int round = -1; round < bench.rounds; round++) { /* -1 warms up */
        for (int cores = 1; cores <= CORES; cores++) {
            write_matrix(&bench, "A.npy", &random);
            write_matrix(&bench, "B.npy", &random);
            through_market(&bench, cores, round < 0 ? 0 : round, &market[cores - 1]);
            alone[cores - 1][round < 0 ? 0 : round] = direct_s(&bench, cores);
        }
    }
    close_market(&bench);
    json_t *one = figures(&bench, &market[0], alone[0], 1);
    json_t *two = figures(&bench, &market[1], alone[1], 2);
    double speedup = json_real_value(json_object_get(one, "seconds")) /
                     json_real_value(json_object_get(two, "seconds"));
    json_t *value = json_pack("{s:I, s:i, s:s, s:f, s:[o,o]}", "size", (json_int_t)bench.side,
                              "rounds", bench.rounds, "engine", gemm_engine(),
                              "two_cores_are_times_as_fast", speedup, "cores", one, two);
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(value);
    return 0;
}
