/* This file finds out at a start what this machine has and what runs on it. */
#include "base/checked.h"
#include "provider/executors/kernels.h"
#include "provider/executors/model_devices.h"
#include "provider/executors/onnx.h"
#include "provider/executors/plugins.h"
#include "provider/executors/tensor.h"
#include "provider/executors/wasm.h"
#include "provider/setup_internal.h"
#include "runtime/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Asks the machine for its OpenCL devices when the config has one, or a look wants to see them. */
static bool learn_kernels(struct setup *setup, struct problem *ret_problem)
{
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    config_visible(&setup->config, visible);
    const struct kernel_trial trial = {.launcher = setup->launcher,
                                       .cgroups = setup->cgroups,
                                       .worker_path = setup->worker_path,
                                       .kernel_path = setup->kernel_path,
                                       .visible = visible};
    const char *why = setup->isolation.level == 0 ? setup->isolation.refusal : setup->no_kernel;
    return kernels_learn(&setup->config, &trial, why, setup->is_look, &setup->machine, ret_problem);
}

static void learn_plugins(struct setup *setup)
{
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    config_visible(&setup->config, visible);
    const struct plugin_trial trial = {.launcher = setup->launcher,
                                       .cgroups = setup->cgroups,
                                       .worker_path = setup->worker_path,
                                       .helper_path = setup->plugin_path,
                                       .visible = visible};
    const char *why = setup->isolation.level == 0 ? setup->isolation.refusal : setup->no_plugin;
    plugins_learn(&setup->config, &trial, why, &setup->machine);
}

/* Tries the engine for WASM modules, or notes why there is none. */
static void learn_wasm(struct setup *setup)
{
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    config_visible(&setup->config, visible);
    const bool is_library = setup->config.wasm_is_library;
    const struct wasm_trial trial = {.launcher = setup->launcher,
                                     .cgroups = setup->cgroups,
                                     .worker_path = setup->worker_path,
                                     .visible = visible};
    const char *why =
        setup->isolation.level == 0 ? setup->isolation.refusal
        : !setup->config.has_wasm   ? "the config says `wasm: false`"
        : setup->config.wasm_engine[0] == '\0'
            ? "there is no node in /usr/bin (Debian package nodejs), and no library of wasmtime"
        : is_library ? setup->no_wasm_runner
                     : setup->no_wasm;
    struct wasm_engine *engine = &setup->machine.wasm;
    *engine = (struct wasm_engine){.is_known = true, .is_library = is_library};
    (void)snprintf(engine->path, sizeof engine->path, "%s", setup->config.wasm_engine);
    (void)snprintf(engine->host, sizeof engine->host, "%s",
                   is_library ? setup->wasm_runner_path : setup->wasm_path);
    (void)snprintf(engine->unusable, sizeof engine->unusable, "%s", why);
    if (why[0] == '\0') {
        wasm_look(&trial, engine);
    }
}

/* Tries what computes models, or notes why nothing does. */
static void learn_models(struct setup *setup)
{
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    config_visible(&setup->config, visible);
    const struct onnx_trial trial = {.launcher = setup->launcher,
                                     .cgroups = setup->cgroups,
                                     .worker_path = setup->worker_path,
                                     .visible = visible};
    const char *why = setup->isolation.level == 0   ? setup->isolation.refusal
                      : !setup->config.has_onnx     ? "the config says `onnx: false`"
                      : setup->onnx_path[0] == '\0' ? setup->no_onnx
                                                    : "";
    struct model_engine *engine = &setup->machine.models;
    *engine = (struct model_engine){.is_known = true};
    (void)snprintf(engine->library, sizeof engine->library, "%s", setup->config.onnx_library);
    (void)snprintf(engine->program, sizeof engine->program, "%s", setup->onnx_path);
    (void)snprintf(engine->unusable, sizeof engine->unusable, "%s", why);
    if (why[0] == '\0') {
        onnx_look(&trial, engine);
    }
    model_devices_learn(&setup->config, &trial, &setup->machine);
}

static void learn_machine(struct setup *setup)
{
    char file[CONFIG_PATH_SIZE + 32];
    (void)snprintf(file, sizeof file, "%s/profile.json", setup->config.folder);
    isolation_probe(setup->launcher, setup->worker_path, setup->cgroups, &setup->isolation);
    struct profile_gemm gemm = {.engine = ""};
    struct problem problem = {""};
    if (setup->isolation.level > 0 && setup->tensor_path[0] != '\0' &&
        !tensor_probe(setup->launcher, setup->worker_path, setup->tensor_path, setup->cgroups,
                      &gemm, &problem)) {
        setup->tensor_path[0] = '\0';
        (void)snprintf(setup->no_tensor, sizeof setup->no_tensor, "%s", problem.text);
    }
    probe_profile(file, setup->machine.model, &gemm, clock_wall_ns() / NS_PER_S, &setup->profile);
}

bool setup_learn(struct setup *setup, struct problem *ret_problem)
{
    if (!discover_machine(NULL, &setup->machine, ret_problem)) {
        return false;
    }
    learn_machine(setup);
    learn_plugins(setup);
    learn_wasm(setup);
    learn_models(setup);
    return learn_kernels(setup, ret_problem);
}

/* ---------------------------------------------------------------- a check of what needs trials */

static bool print_plugins(const struct plugin_list *list, FILE *out, struct problem *ret_problem)
{
    bool good = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct plugin_device *device = &list->items[i];
        if (device->unusable[0] == '\0') {
            fprintf(out, "the plug-in of \"%s\" is %s, a device of kind %s\n", device->name,
                    device->description.name, device->description.kind);
        } else if (good) {
            problem_set(ret_problem, "the device \"%s\": %.400s", device->name, device->unusable);
            good = false;
        }
    }
    return good;
}

/* Prints the engine that the config names. */
static bool print_wasm(const struct setup *setup, FILE *out, struct problem *ret_problem)
{
    const struct wasm_engine *engine = &setup->machine.wasm;
    if (!setup->config.names_wasm) {
        return true;
    }
    if (engine->unusable[0] != '\0') {
        problem_set(ret_problem, "wasm: %.400s", engine->unusable);
        return false;
    }
    fprintf(out, "WASM modules are run by %s, which is %s\n", engine->path, engine->name);
    return true;
}

/* Prints what computes models, when the config names the library. */
static bool print_models(const struct setup *setup, FILE *out, struct problem *ret_problem)
{
    const struct model_engine *engine = &setup->machine.models;
    for (size_t i = 0; i < setup->machine.model_devices.count; i++) {
        const struct model_device *device = &setup->machine.model_devices.items[i];
        if (device->unusable[0] != '\0') {
            problem_set(ret_problem, "the device \"%s\": %.400s", device->name, device->unusable);
            return false;
        }
        fprintf(out, "the device \"%s\" computes ONNX models by %s\n", device->name,
                device->engine);
    }
    if (!setup->config.names_onnx) {
        return true;
    }
    if (engine->unusable[0] != '\0') {
        problem_set(ret_problem, "onnx: %.400s", engine->unusable);
        return false;
    }
    fprintf(out, "ONNX models are computed by %s%s%s\n", engine->name,
            engine->library[0] != '\0' ? ", of " : "", engine->library);
    return true;
}

/* A look as root gives its folder to the service user. So this look has a folder of its own. */
bool setup_check_trials(const struct setup_options *options, FILE *out, struct problem *ret_problem)
{
    static struct setup setup; /* large */
    struct problem problem = {""};
    char folder[] = "/tmp/bourse-check-XXXXXX";
    char file[CONFIG_PATH_SIZE + 32];
    if (!setup_config(options, &setup.config, &problem) ||
        !(plugins_wanted(&setup.config) || setup.config.names_wasm || setup.config.names_onnx ||
          model_devices_wanted(&setup.config))) {
        return true; /* setup_check has read it */
    }
    (void)snprintf(file, sizeof file, "%s/%s", setup.config.folder, MARKET_PROVIDER_CONFIG);
    if (mkdtemp(folder) == NULL) {
        problem_set(ret_problem, "cannot make a folder below /tmp: %s", strerror(errno));
        return false;
    }
    const struct setup_options look = {
        .config_file = options->config_file != NULL ? options->config_file : file,
        .folder = folder,
        .is_look = true,
    };
    bool good = setup_begin(&look, &setup, &problem);
    if (good) {
        good = print_plugins(&setup.machine.plugins, out, &problem) &&
               print_wasm(&setup, out, &problem) && print_models(&setup, out, &problem);
        setup_end(&setup);
    }
    (void)snprintf(file, sizeof file, "%s/profile.json", folder);
    (void)unlink(file);
    (void)rmdir(folder);
    if (!good) {
        *ret_problem = problem;
    }
    return good;
}
