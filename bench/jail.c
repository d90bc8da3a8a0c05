/* bench/jail.c measures what a subtask costs beyond its program: one jail, many runs. The program
 * prints one JSON object.
 *
 *     jail [BIN-FOLDER [SECONDS]]
 *
 * BIN-FOLDER holds bourse-worker and bourse-tensor. As root, the program becomes nobody first. */
#include "provider/jail/jail.h"
#include "formats/npy.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"
#include "provider/privilege.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench {
    char folder[64], worker[96], tensor[96];
    struct cgroups *cgroups;
    struct launcher *launcher;
    struct jail *jail;
    double seconds;
};

static bool prepare(struct bench *bench, const char *programs, struct problem *problem)
{
    char worker[600];
    char tensor[600];
    (void)snprintf(worker, sizeof worker, "%s/bourse-worker", programs);
    (void)snprintf(tensor, sizeof tensor, "%s/bourse-tensor", programs);
    (void)snprintf(bench->folder, sizeof bench->folder, "/tmp/bourse-bench-XXXXXX");
    if (mkdtemp(bench->folder) == NULL) {
        problem_set(problem, "no folder");
        return false;
    }
    (void)snprintf(bench->worker, sizeof bench->worker, "%s/worker", bench->folder);
    (void)snprintf(bench->tensor, sizeof bench->tensor, "%s/tensor", bench->folder);
    uid_t uid = getuid();
    gid_t gid = getgid();
    bool root = uid == 0;
    if (root &&
        !(privilege_user("nobody", &uid, &gid, problem) && chown(bench->folder, uid, gid) == 0 &&
          cgroups_open(NULL, "bench", uid, gid, &bench->cgroups, problem))) {
        return false;
    }
    return jail_install_worker(worker, bench->worker, root ? uid : (uid_t)-1, problem) &&
           jail_install_worker(tensor, bench->tensor, root ? uid : (uid_t)-1, problem) &&
           (!root || privilege_drop(uid, gid, problem)) &&
           launcher_start(&bench->launcher, problem);
}

static double noop_rate(struct bench *bench)
{
    int64_t start_ns = clock_monotonic_ns();
    int64_t spent_ns = 0;
    long count = 0;
    while (spent_ns < (int64_t)(bench->seconds * 1e9) && jail_noop(bench->jail)) {
        count++;
        spent_ns = clock_monotonic_ns() - start_ns;
    }
    return (double)count * 1e9 / (double)spent_ns;
}

static double run_rate(struct bench *bench, const struct jail_request *request, double *ret_busy_us)
{
    int64_t start_ns = clock_monotonic_ns();
    int64_t spent_ns = 0;
    int64_t busy_ns = 0;
    long count = 0;
    while (spent_ns < (int64_t)(bench->seconds * 1e9)) {
        struct jail_reply reply;
        jail_run(bench->jail, request, &reply);
        jail_reply_fini(&reply);
        if (reply.outcome != OUTCOME_OK) {
            (void)fprintf(stderr, "outcome %d: %s\n", reply.outcome, reply.detail);
            return 0;
        }
        count++;
        busy_ns += reply.busy_ns;
        spent_ns = clock_monotonic_ns() - start_ns;
    }
    *ret_busy_us = (double)busy_ns / 1e3 / (double)count;
    return (double)count * 1e9 / (double)spent_ns;
}

/* Starts the same program directly, for comparison. */
static double direct_rate(double seconds)
{
    int64_t start_ns = clock_monotonic_ns();
    int64_t spent_ns = 0;
    long count = 0;
    while (spent_ns < (int64_t)(seconds * 1e9)) {
        pid_t pid = vfork();
        if (pid == 0) {
            (void)execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        (void)waitpid(pid, NULL, 0);
        count++;
        spent_ns = clock_monotonic_ns() - start_ns;
    }
    return (double)count * 1e9 / (double)spent_ns;
}

/* Measures what a tensor subtask costs, by products of 16 x 16 matrices, which are nothing to
 * compute. The first product starts the program. */
static void measure_tensor(struct bench *bench)
{
    static const char *const product[] = {"matmul", "a.npy", "a.npy", "c.npy", NULL};
    static const char *const outputs[] = {"c.npy"};
    enum { SIDE = 16, DATA_BYTES = SIDE * SIDE * sizeof(float) };
    uint8_t file[NPY_MATRIX_BYTES + DATA_BYTES] = {0};
    char path[] = "/tmp/bourse-bench-input-XXXXXX";
    int input = mkstemp(path);
    (void)unlink(path);
    npy_write_matrix(SIDE, SIDE, file);
    if (input < 0 || write(input, file, sizeof file) != (ssize_t)sizeof file) {
        perror("jail: input");
        return;
    }
    struct jail_input place = {.name = "a.npy", .fd = input, .size = sizeof file};
    struct jail_request request = {.tensor_threads = 1,
                                   .argv = product,
                                   .stdin_fd = -1,
                                   .inputs = &place,
                                   .input_count = 1,
                                   .outputs = outputs,
                                   .output_count = 1};
    struct jail_reply first;
    double busy_us = 0;
    jail_run(bench->jail, &request, &first);
    jail_reply_fini(&first);
    double rate = run_rate(bench, &request, &busy_us);
    (void)printf("\"tensor_per_s\":%.0f,\"tensor_us\":%.1f,\"tensor_first_ms\":%.1f,", rate,
                 busy_us, (double)first.busy_ns / 1e6);
    (void)close(input);
}

static void measure(struct bench *bench, double open_ms)
{
    static const char *const argv[] = {"/bin/true", NULL};
    static const char *const copy[] = {"/bin/cp", "in", "out", NULL};
    static const char *const outputs[] = {"out"};
    char path[] = "/tmp/bourse-bench-input-XXXXXX";
    int input = mkstemp(path);
    (void)unlink(path);
    enum { INPUT_BYTES = 65536 };
    if (input < 0 || ftruncate(input, INPUT_BYTES) != 0) {
        perror("jail: input");
        return;
    }
    struct jail_input place = {.name = "in", .fd = input, .size = INPUT_BYTES};
    struct jail_request plain = {.argv = argv, .stdin_fd = -1};
    struct jail_request files = {.argv = copy,
                                 .stdin_fd = -1,
                                 .inputs = &place,
                                 .input_count = 1,
                                 .outputs = outputs,
                                 .output_count = 1};
    double true_us = 0;
    double copy_us = 0;
    double noops = noop_rate(bench);
    double trues = run_rate(bench, &plain, &true_us);
    double copies = run_rate(bench, &files, &copy_us);
    double direct = direct_rate(bench->seconds);
    (void)printf("{");
    measure_tensor(bench);
    (void)printf("\"noop_per_s\":%.0f,\"true_per_s\":%.0f,\"true_us\":%.1f,\"direct_true_us\":%.1f,"
                 "\"overhead_us\":%.1f,\"copy_64k_per_s\":%.0f,\"copy_64k_us\":%.1f,"
                 "\"open_ms\":%.1f,\"cgroups\":%d}\n",
                 noops, trues, true_us, 1e6 / direct, 1e6 / trues - 1e6 / direct, copies, copy_us,
                 open_ms, bench->cgroups != NULL ? cgroups_version(bench->cgroups) : 0);
    (void)close(input);
}

int main(int argc, char **argv)
{
    struct problem problem = {{0}};
    struct bench bench = {.seconds = argc > 2 ? strtod(argv[2], NULL) : 1.0};
    char folder[512];
    if (!process_start(&problem) || !process_folder(folder, sizeof folder)) {
        (void)fprintf(stderr, "jail: %s\n", problem.text);
        return 1;
    }
    char programs[540];
    (void)snprintf(programs, sizeof programs, "%s%s", argc > 1 ? argv[1] : folder,
                   argc > 1 ? "" : "/../bin");
    if (!prepare(&bench, programs, &problem)) {
        (void)fprintf(stderr, "jail: %s\n", problem.text);
        return 1;
    }
    struct jail_spec spec = {.worker_path = bench.worker,
                             .tensor_path = bench.tensor,
                             .name = "lane",
                             .cgroups = bench.cgroups,
                             .limits = {.disk_bytes = UINT64_C(256) << 20}};
    int64_t start_ns = clock_monotonic_ns();
    bool opened = jail_open(bench.launcher, &spec, &bench.jail, &problem);
    if (opened) {
        measure(&bench, (double)(clock_monotonic_ns() - start_ns) / 1e6);
    } else {
        (void)fprintf(stderr, "jail: %s\n", problem.text);
    }
    jail_close(&bench.jail);
    launcher_stop(&bench.launcher);
    cgroups_close(&bench.cgroups);
    (void)unlink(bench.worker);
    (void)unlink(bench.tensor);
    (void)rmdir(bench.folder);
    return opened ? 0 : 1;
}
