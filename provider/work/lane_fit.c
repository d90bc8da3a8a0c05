/* This file says whether a lane's device runs the work of a job, and within which bounds. */
#include "provider/executors/kernel.h"
#include "provider/executors/onnx.h"
#include "provider/executors/plugin.h"
#include "provider/executors/tensor.h"
#include "provider/executors/wasm.h"
#include "provider/work/lanes_internal.h"
#include "provider/work/lease_context.h"

#include <assert.h>

/* Returns true when job and device agree about what only such a device runs. Else the outcome says
 * what the job should need. */
static bool agrees(bool is_job, bool is_device, const char *what, const char *executor,
                   struct outcome *outcome)
{
    if (is_job && !is_device) {
        outcome_fail(outcome, OUTCOME_REFUSED,
                     "this device runs no %s; let the job need executor = %s", what, executor);
    }
    if (is_device && !is_job) {
        outcome_fail(outcome, OUTCOME_REFUSED,
                     "this device runs only %s; let the job need another executor", what);
    }
    return is_job == is_device;
}

/* A device for kernels computes matrices by bourse-kernel, any other one by bourse-tensor. */
static bool computes_matrices(const struct lane *lane)
{
    const struct kernel_device *device = lane->offer->kernel_device;
    return device != NULL ? device->gemm_mflops > 0 : lane->lanes->config.tensor_path != NULL;
}

/* Returns true when kernels go to a device for kernels, and operations of plug-ins to a device with
 * a plug-in. The former also takes matrices, and the latter nothing else. A device with a provider
 * of ONNX Runtime takes models alone. */
static bool fits_device(const struct lane *lane, struct outcome *outcome)
{
    const Bourse__V1__Manifest *manifest = lease_context_manifest(lane->context);
    const bool is_tensor = tensor_names(manifest) && lane->offer->kernel_device != NULL;
    if (lane->offer->model_device != NULL) {
        return agrees(onnx_names(manifest), true, "ONNX models", "onnx", outcome);
    }
    return (is_tensor || agrees(kernel_names(manifest), lane->offer->kernel_device != NULL,
                                "kernels", "kernel", outcome)) &&
           agrees(plugin_names(manifest), lane->offer->plugin != NULL, "operations of its plug-in",
                  "plugin", outcome);
}

static bool is_processor(const struct offer *offer)
{
    return offer->kernel_device == NULL && offer->plugin == NULL && offer->model_device == NULL &&
           offer->simulates == NULL;
}

/* The memory of one slot decides what is on offer. A job may bring more slots, or a limit. */
static bool offer_runs_wasm(const struct lane *lane)
{
    const struct wasm_engine *engine = &lane->lanes->config.machine->wasm;
    return engine->unusable[0] == '\0' && engine->is_known && is_processor(lane->offer);
}

static bool offer_runs_models(const struct lane *lane)
{
    const struct model_engine *engine = &lane->lanes->config.machine->models;
    return engine->unusable[0] == '\0' && engine->is_known &&
           (is_processor(lane->offer) || lane->offer->model_device != NULL);
}

bool lane_fits(const struct lane *lane, struct outcome *outcome)
{
    const Bourse__V1__Manifest *manifest = lease_context_manifest(lane->context);
    if (tensor_names(manifest) && !computes_matrices(lane)) {
        outcome_fail(outcome, OUTCOME_REFUSED, "this %s; let the job need executor = tensor",
                     lane->offer->kernel_device != NULL ? "device computes no matrices"
                                                        : "agent has no tensor executor");
        return false;
    }
    if (wasm_names(manifest) && !offer_runs_wasm(lane)) {
        outcome_fail(outcome, OUTCOME_REFUSED,
                     "this device has no engine for WASM; let the job need executor = wasm");
        return false;
    }
    if (onnx_names(manifest) && !offer_runs_models(lane)) {
        outcome_fail(outcome, OUTCOME_REFUSED,
                     "this device computes no ONNX models; let the job need executor = onnx");
        return false;
    }
    if (!fits_device(lane, outcome)) {
        return false;
    }
    if (lane->offer->simulates != NULL && !tensor_names(manifest)) {
        outcome_fail(outcome, OUTCOME_REFUSED,
                     "a simulated device runs no programs, only jobs of the executor tensor");
        return false;
    }
    return true;
}

static uint64_t lesser(uint64_t ours, int64_t asked)
{
    return asked > 0 && (uint64_t)asked < ours ? (uint64_t)asked : ours;
}

struct jail_limits lane_jail_limits(const struct offer *offer, uint32_t width, int64_t memory_bytes,
                                    int64_t disk_bytes, uint32_t processes, bool cpu_enforced)
{
    assert(width >= 1 && width <= LIMIT_SLOTS);
    return (struct jail_limits){
        .memory_bytes = lesser(offer->memory_bytes * width, memory_bytes),
        .disk_bytes = lesser(offer->disk_bytes * width, disk_bytes),
        .processes = (uint32_t)lesser((uint64_t)offer->processes * width, processes),
        .cpu_milli = cpu_enforced ? 10 * offer->cpu_percent * width : 0,
    };
}
