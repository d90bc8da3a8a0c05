#include "provider/executors/kernel.h"

#include "base/text.h"
#include "provider/device/probe.h"
#include "provider/executors/trial.h"
#include "provider/tensor/ask.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_WALL_NS UINT64_C(10000000000)
/* The measurement takes MEASURE_MOST_NS. The rest is for the compiler, which starts slowly. */
#define MEASURE_WALL_NS UINT64_C(60000000000)

bool kernel_names(const Bourse__V1__Manifest *manifest)
{
    return strcmp(manifest->executor, "kernel") == 0;
}

bool kernel_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    const bool is_bare =
        !manifest->has_image && manifest->n_environment == 0 && manifest->standard_input == NULL;
    bool has_tasks = false;
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        has_tasks = has_tasks || manifest->subtasks[i]->task != NULL;
    }
    if (!is_bare || has_tasks) {
        problem_set(ret_problem,
                    "a kernel subtask has no image, no environment, no standard input and no tasks "
                    "of its own");
        return false;
    }
    return true;
}

struct jail_kernel kernel_jail(const char *kernel_path, const struct kernel_device *device)
{
    return (struct jail_kernel){.path = kernel_path,
                                .nodes = kernel_device_nodes(device),
                                .pocl_devices = getenv(KERNEL_POCL_DEVICES)};
}

/* ---------------------------------------------------------------- trials */

/* Runs one ASK of the agent's own in a trial jail. Returns the length of what was printed, or -1
 * with the problem. */
static ssize_t ask(const struct kernel_trial *trial, const struct kernel_device *device,
                   const char *const *words, uint64_t wall_ns, char said[TRIAL_SAID_BYTES],
                   struct problem *problem)
{
    const struct jail_kernel kernel = kernel_jail(trial->kernel_path, device);
    const struct jail_spec spec = {.worker_path = trial->worker_path,
                                   .kernel = &kernel,
                                   .name = "probe-kernel",
                                   .cpus = trial->cpus,
                                   .visible = trial->visible,
                                   .cgroups = trial->cgroups};
    return trial_ask(trial->launcher, &spec, "bourse-kernel", words, wall_ns, said, trial->stop,
                     problem);
}

void kernel_list(const struct kernel_trial *trial, enum kernel_api api,
                 struct kernel_device_list *ret_list)
{
    static char said[TRIAL_SAID_BYTES];
    const char *const words[] = {KERNEL_LIST, kernel_op_api_word(api), NULL};
    struct problem problem = {""};
    const ssize_t length = ask(trial, NULL, words, LIST_WALL_NS, said, &problem);
    if (length < 0 || !kernel_device_read(said, (size_t)length, api, ret_list)) {
        *ret_list = (struct kernel_device_list){.api = api, .is_known = true};
        (void)snprintf(ret_list->problem, sizeof ret_list->problem,
                       "%s devices cannot be listed: %.200s", kernel_op_api_name(api),
                       length < 0 ? problem.text : "bourse-kernel prints no list");
    }
    for (size_t i = 0; i < ret_list->count; i++) {
        kernel_device_learn_node(KERNEL_DEVICE_FOLDER, &ret_list->items[i]);
        kernel_device_learn_render(KERNEL_DEVICE_PCI, &ret_list->items[i]);
    }
}

static void read_text(const json_t *root, const char *name, char *ret_text, size_t capacity)
{
    const char *text = json_string_value(json_object_get(root, name));
    text_printable(text != NULL ? text : "", text != NULL ? strlen(text) : 0, ret_text, capacity);
}

/* Returns the rounded figure of this name; 0: there is none. */
static int64_t read_figure(const json_t *root, const char *name)
{
    const json_int_t figure = json_integer_value(json_object_get(root, name));
    return figure > 0 ? probe_round(figure) : 0;
}

/* The program prints a line such as
 * {"mflops":98000,"bandwidth":9000000000,"gemm":64000,"gemm_held":71000,"tf32":0,"tf32_held":0,
 * "bf16":0,"bf16_held":0,"no_gemm":"","library":"","no_library":""}. */
static bool read_figures(const char *said, size_t length, struct kernel_device *device)
{
    json_t *root = json_loadb(said, length, JSON_REJECT_DUPLICATES, NULL);
    const int64_t mflops = read_figure(root, "mflops");
    const int64_t bandwidth = read_figure(root, "bandwidth");
    const bool good = mflops > 0 && bandwidth > 0;
    if (good) {
        device->mflops = mflops;
        device->bandwidth_bytes = bandwidth;
        device->gemm_mflops = read_figure(root, "gemm");
        device->gemm_held_mflops = read_figure(root, "gemm_held");
        device->tf32_mflops = read_figure(root, "tf32");
        device->tf32_held_mflops = read_figure(root, "tf32_held");
        device->bf16_mflops = read_figure(root, "bf16");
        device->bf16_held_mflops = read_figure(root, "bf16_held");
        read_text(root, "no_gemm", device->no_gemm, sizeof device->no_gemm);
        read_text(root, "library", device->library, sizeof device->library);
        read_text(root, "no_library", device->no_library, sizeof device->no_library);
    }
    json_decref(root);
    return good;
}

void kernel_measure(const struct kernel_trial *trial, struct kernel_device *device)
{
    static char said[TRIAL_SAID_BYTES];
    struct problem problem = {""};
    char memory[24];
    const char *const words[] = {kernel_op_api_word(device->api),
                                 device->id,
                                 device->name,
                                 memory,
                                 "0",
                                 "-",
                                 KERNEL_LIBRARY,
                                 KERNEL_MEASURE,
                                 NULL};
    (void)snprintf(memory, sizeof memory, "%llu", (unsigned long long)device->memory_bytes);
    const ssize_t length = ask(trial, device, words, MEASURE_WALL_NS, said, &problem);
    if (length < 0 || !read_figures(said, (size_t)length, device)) {
        (void)snprintf(device->unusable, sizeof device->unusable, "%.200s",
                       length < 0 ? problem.text : "bourse-kernel prints no figures");
    }
}
