#include "provider/executors/tensor.h"

#include "provider/jail/jail.h"
#include "provider/tensor/ask.h"

#include <jansson.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define ONCE_BYTES (4 * MIB)
#define PROBE_WALL_NS UINT64_C(20000000000)

bool tensor_names(const Bourse__V1__Manifest *manifest)
{
    return strcmp(manifest->executor, "tensor") == 0;
}

bool tensor_reads_once(const Bourse__V1__Manifest *manifest, uint64_t size)
{
    return tensor_names(manifest) && size >= ONCE_BYTES;
}

bool tensor_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    bool is_bare =
        !manifest->has_image && manifest->n_environment == 0 && manifest->standard_input == NULL;
    for (size_t i = 0; is_bare && i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        is_bare = task == NULL || (task->n_environment == 0 && task->standard_input == NULL);
    }
    if (!is_bare) {
        problem_set(ret_problem,
                    "a tensor subtask has no image, no environment and no standard input");
        return false;
    }
    return true;
}

/* The program prints a line such as {"engine":"oneDNN 2.6.3","mflops":98000}. */
static bool read_figure(const struct jail_output *output, struct profile_gemm *ret_gemm)
{
    char text[256];
    size_t size = output->size < sizeof text ? (size_t)output->size : sizeof text;
    ssize_t length = output->fd < 0 ? -1 : pread(output->fd, text, size, 0);
    if (length <= 0) {
        return false;
    }
    json_t *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
    const char *engine = json_string_value(json_object_get(root, "engine"));
    json_int_t mflops = json_integer_value(json_object_get(root, "mflops"));
    bool good = engine != NULL && strlen(engine) < sizeof ret_gemm->engine && mflops > 0;
    if (good) {
        (void)snprintf(ret_gemm->engine, sizeof ret_gemm->engine, "%s", engine);
        ret_gemm->mflops = probe_round(mflops);
    }
    json_decref(root);
    return good;
}

static bool measure(struct jail *jail, struct profile_gemm *ret_gemm, struct problem *problem)
{
    static const char *const operation[] = {TENSOR_MEASURE, NULL};
    struct jail_request request = {
        .tensor_threads = 1, .argv = operation, .stdin_fd = -1, .wall_ns = PROBE_WALL_NS};
    struct jail_reply reply;
    jail_run(jail, &request, &reply);
    bool good = reply.outcome == OUTCOME_OK && read_figure(&reply.standard_output, ret_gemm);
    if (!good) {
        char said[200] = "";
        ssize_t length = reply.standard_error.fd < 0
                             ? 0
                             : pread(reply.standard_error.fd, said, sizeof said - 1, 0);
        said[length > 0 ? length : 0] = '\0';
        said[strcspn(said, "\n")] = '\0';
        problem_set(problem, "%.200s%s%s",
                    reply.outcome == OUTCOME_OK ? "it says no figure" : reply.detail,
                    said[0] != '\0' ? ": " : "", said);
    }
    jail_reply_fini(&reply);
    return good;
}

bool tensor_probe(struct launcher *launcher, const char *worker_path, const char *tensor_path,
                  struct cgroups *cgroups, struct profile_gemm *ret_gemm,
                  struct problem *ret_problem)
{
    struct jail_spec spec = {.worker_path = worker_path,
                             .tensor_path = tensor_path,
                             .name = "probe-tensor",
                             .limits = {.memory_bytes = 256 * MIB,
                                        .disk_bytes = 16 * MIB,
                                        .processes = 16,
                                        .cpu_milli = 1000},
                             .cgroups = cgroups};
    struct jail *jail = NULL;
    if (!jail_open(launcher, &spec, &jail, ret_problem)) {
        return false;
    }
    bool good = measure(jail, ret_gemm, ret_problem);
    jail_close(&jail);
    return good;
}
