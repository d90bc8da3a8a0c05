/* This file runs the works of a lane, in the thread of the lane. */
#include "protocol/subtask.h"
#include "provider/executors/check.h"
#include "provider/executors/kernel.h"
#include "provider/executors/noop.h"
#include "provider/executors/onnx.h"
#include "provider/executors/plugin.h"
#include "provider/executors/program.h"
#include "provider/executors/tensor.h"
#include "provider/executors/wasm.h"
#include "provider/work/lanes.h"
#include "provider/work/lanes_internal.h"
#include "provider/work/lease_context.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FULL_AGAIN_NS INT64_C(60000000000)
enum { LEFT_SHARE = 4 }; /* a left output takes at most 1/LEFT_SHARE of its jail's disk */

static bool cpu_set(const struct lane *lane, cpu_set_t *ret_set)
{
    CPU_ZERO(ret_set);
    for (uint32_t i = 0; i < lane->cpu_count; i++) {
        uint32_t cpu = lane->lanes->config.machine->cpus[lane->first_cpu + i];
        if (cpu >= CPU_SETSIZE) {
            return false;
        }
        CPU_SET(cpu, ret_set);
    }
    return lane->cpu_count > 0;
}

static void end_jail(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    struct jail *jail = lane->jail;
    lane->jail = NULL;
    pthread_mutex_unlock(&lane->mutex);
    jail_close(&jail);
    if (lane->has_device) {
        device_memory_give(lane->lanes->device_memory, lanes_device_of(lane));
        lane->has_device = false;
    }
    device_memory_forget(lane->lanes->device_memory, lanes_device_of(lane), &lane->held_bytes);
    last_outputs_clear(&lane->made);
    lane->open_model = (struct hash32){{0}};
    outcome_left_release(&lane->left);
}

static struct jail_limits limits_of(const struct lane *lane, uint32_t index)
{
    const struct lanes_config *config = &lane->lanes->config;
    const Bourse__V1__ManifestLimits *asked =
        subtask_terms(lease_context_manifest(lane->context), index).limits;
    return lane_jail_limits(lane->offer, lease_context_grant(lane->context)->slots_per_subtask,
                            asked != NULL ? asked->memory_bytes : 0,
                            asked != NULL ? asked->disk_bytes : 0,
                            asked != NULL ? asked->processes : 0, config->cpu_enforced);
}

static bool is_bounded(const struct jail_limits *a, const struct jail_limits *b)
{
    return a->memory_bytes == b->memory_bytes && a->disk_bytes == b->disk_bytes &&
           a->processes == b->processes && a->cpu_milli == b->cpu_milli;
}

bool lane_shares_jail(void *context, uint32_t index, uint32_t next)
{
    const struct lane *lane = context;
    const struct jail_limits limits = limits_of(lane, index);
    const struct jail_limits next_limits = limits_of(lane, next);
    return is_bounded(&limits, &next_limits);
}

/* Returns true when bourse-kernel runs the subtasks of this job, on the lane's device. */
static bool runs_on_device(const struct lane *lane, const Bourse__V1__Manifest *manifest)
{
    return lane->offer->kernel_device != NULL && (kernel_names(manifest) || tensor_names(manifest));
}

/* Jobs reach the memory of a device whose files are in their jails. So the next job's jail opens
 * when that of the job before has ended: bourse-kernel then clears the memory. Such a device has
 * one slot, so that the wait is as short as the end of a jail. */
static void take_device(struct lane *lane)
{
    if (offer_is_open(lane->offer)) {
        device_memory_take(lane->lanes->device_memory, lanes_device_of(lane));
        lane->has_device = true;
    }
}

/* A jail serves several subtasks, unless the next has other limits. The jail also ends when an
 * output left in it cannot be moved out, because the next subtask needs that room. */
static bool begin_jail(struct lane *lane, uint32_t index, struct problem *problem)
{
    struct jail_limits limits = limits_of(lane, index);
    const struct lanes_config *config = &lane->lanes->config;
    if (lane->jail != NULL && is_bounded(&lane->limits, &limits) &&
        (lane->left == NULL || outcome_left_move_out(lane->left, config->config->spool))) {
        return true;
    }
    end_jail(lane);
    const struct agent_grant *grant = lease_context_grant(lane->context);
    const Bourse__V1__Manifest *manifest = lease_context_manifest(lane->context);
    char name[48];
    cpu_set_t cpus;
    (void)snprintf(name, sizeof name, "l%llx-%u", (unsigned long long)grant->lease, lane->number);
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    config_visible(config->config, visible);
    const struct jail_kernel kernel = kernel_jail(config->kernel_path, lane->offer->kernel_device);
    const bool on_device = runs_on_device(lane, manifest);
    const struct model_device *device = lane->offer->model_device;
    struct onnx_parts model;
    onnx_fill(&config->machine->models, device != NULL ? &device->provider : NULL, &model);
    struct plugin_parts plugin;
    const bool is_plugin = plugin_names(manifest) && lane->offer->plugin != NULL;
    if (is_plugin) {
        plugin_fill(config->plugin_path, &lane->offer->plugin->program, &plugin);
    }
    struct jail_spec spec = {
        .worker_path = config->worker_path,
        .visible = visible,
        .tensor_path = tensor_names(manifest) && !on_device ? config->tensor_path : NULL,
        .kernel = on_device ? &kernel : NULL,
        .plugin = is_plugin ? &plugin.jail : NULL,
        .model = onnx_names(manifest) ? &model.jail : NULL,
        .image_path = lease_context_image(lane->context),
        .directory = manifest->directory,
        .user = manifest->has_user ? manifest->user : 0,
        .group = manifest->has_group ? manifest->group : 0,
        .name = name,
        .limits = limits,
        .cpus = cpu_set(lane, &cpus) ? &cpus : NULL,
        .cgroups = config->cgroups,
    };
    if (wasm_names(manifest)) {
        wasm_show(&config->machine->wasm, &spec);
    }
    struct jail *jail = NULL;
    take_device(lane);
    if (!jail_open(config->launcher, &spec, &jail, problem)) {
        end_jail(lane);
        return false;
    }
    log_debug("lease %llu, lane %u: a jail was opened", (unsigned long long)grant->lease,
              lane->number);
    lane->limits = limits;
    lane->left = outcome_left_create();
    pthread_mutex_lock(&lane->mutex);
    lane->jail = jail;
    jail_freeze(jail, lanes_is_frozen(lane));
    pthread_mutex_unlock(&lane->mutex);
    return true;
}

/* No jail could be opened. An image of the job may be the reason, and else the device is. */
static void fail_jail(const struct lane *lane, struct outcome *outcome,
                      const struct problem *problem)
{
    outcome_fail(outcome, OUTCOME_JAIL_FAILED, "%s", problem->text);
    outcome->fault =
        lease_context_image(lane->context) == NULL ? DEVICE_FAULT_OTHER : DEVICE_FAULT_NONE;
}

static struct program_source source_of(const struct lane *lane, const struct outcome *outcome)
{
    return (struct program_source){.manifest = lease_context_manifest(lane->context),
                                   .index = outcome->work.index,
                                   .dispatch = &outcome->dispatch,
                                   .store = lane->lanes->config.store,
                                   .job = &lease_context_grant(lane->context)->job,
                                   .give_up = &lane->cancel};
}

/* Notes how well the jail closes in which the work runs. */
static void note_isolation(const struct lane *lane, struct outcome *outcome)
{
    outcome->has_isolation = true;
    outcome->isolation = lane->offer->isolation;
}

static void run_noops(struct lane *lane, struct outcome *const *outcomes, size_t count)
{
    struct problem problem = {""};
    bool ended = false;
    if (begin_jail(lane, outcomes[0]->work.index, &problem)) {
        for (size_t i = 0; i < count; i++) {
            note_isolation(lane, outcomes[i]);
        }
        noop_run(lane->jail, outcomes, count, &ended);
    } else {
        for (size_t i = 0; i < count; i++) {
            fail_jail(lane, outcomes[i], &problem);
        }
    }
    if (ended) {
        end_jail(lane);
    }
}

/* The next work of the lane would have to move the output out. Called when there is an output. */
static bool may_leave_outputs(void *context)
{
    struct lane *lane = context;
    pthread_mutex_lock(&lane->mutex);
    bool is_last = list_empty(&lane->waiting) && lane->next.attempt == 0;
    pthread_mutex_unlock(&lane->mutex);
    return is_last;
}

/* Passes the terminal's master on. This thread alone changes `running`. */
static void take_terminal(void *context, int master)
{
    struct lane *lane = context;
    lane->has_terminal = true;
    lane->lanes->config.terminal(lane->lanes->config.context, &lane->running, master);
}

static void note_held(void *context, const struct held_figures *figures)
{
    struct lane *lane = context;
    device_memory_note(lane->lanes->device_memory, lanes_device_of(lane), figures,
                       &lane->held_bytes);
}

static void run_in_jail(struct lane *lane, struct store_blob *inputs, struct outcome *outcome)
{
    int ahead;
    if (atomic_load(&lane->cancel)) {
        outcome_fail(outcome, OUTCOME_CANCELLED, "cancelled before it started");
        return;
    }
    bool ended = false;
    const Bourse__V1__Manifest *manifest = lease_context_manifest(lane->context);
    const bool has_resident = tensor_names(manifest) || kernel_names(manifest) ||
                              plugin_names(manifest) || onnx_names(manifest);
    const uint32_t width = lease_context_grant(lane->context)->slots_per_subtask;
    struct program program = {
        .manifest = manifest,
        .config = lane->lanes->config.config,
        .index = outcome->work.index,
        .seed = outcome->dispatch.has_seed ? &outcome->dispatch.seed : NULL,
        .inputs = inputs,
        .dispatch = &outcome->dispatch,
        .has_checkpoints = lease_context_grant(lane->context)->has_checkpoints,
        .jail = lane->jail,
        /* A program may still have its output open. */
        .left = has_resident ? lane->left : NULL,
        .left_bytes = lane->limits.disk_bytes / LEFT_SHARE,
        .may_leave = may_leave_outputs,
        .take_terminal = take_terminal,
        .note_held = note_held,
        .context = lane,
        .store = lane->lanes->config.store,
        .limit_ms = lease_context_grant(lane->context)->limit_ms,
        .simulates = lane->offer->simulates,
        .tensor_threads = has_resident ? width : 0,
        .kernel_device = runs_on_device(lane, manifest) ? lane->offer->kernel_device : NULL,
        .kernel_memory_bytes = lane->offer->kernel_bytes * width,
        .kernel_held_bytes = lane->offer->held_bytes * width,
        .made = lane->made.items,
        .made_count = lane->made.count,
        .is_plugin = plugin_names(manifest),
        .is_model = onnx_names(manifest),
        .open_model = &lane->open_model,
        .wasm_engine = wasm_names(manifest) ? &lane->lanes->config.machine->wasm : NULL,
        .wasm_memory_bytes = lane->limits.memory_bytes,
    };
    struct attempt_energy energy;
    program.has_ahead = lane->ahead != NULL && program.kernel_device != NULL &&
                        copy_ahead_begin(lane->ahead, manifest, outcome->work.index, &ahead);
    program.ahead = program.has_ahead ? ahead : -1;
    lane->has_terminal = false;
    attempt_energy_begin(&lane->lanes->config.counters, lane->offer, clock_monotonic_ns(), &energy);
    note_isolation(lane, outcome);
    program_run(&program, outcome, &ended);
    outcome->has_terminal = lane->has_terminal;
    attempt_energy_end(&energy, width, clock_monotonic_ns(), outcome);
    if (program.has_ahead) {
        (void)close(ahead);
        copy_ahead_end(lane->ahead);
    }
    if (program.kernel_device != NULL) {
        last_outputs_note(&lane->made, outcome);
    }
    if (ended) {
        end_jail(lane);
    }
}

/* An input that was read in the broker's file did not have its hash. Fetching it tells the broker,
 * which hashes the file itself before the result arrives. */
static void report_damage(struct lane *lane, uint32_t index, const struct hash32 *hashes,
                          size_t count, struct outcome *outcome)
{
    const struct program_source source = source_of(lane, outcome);
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__ManifestInput *input =
            program_input(lease_context_manifest(lane->context), index, i);
        struct store_blob copy;
        if (!hash32_is_zero(&hashes[i]) &&
            program_take_input(&source, input, false, outcome, &copy)) {
            store_release(lane->lanes->config.store, &copy);
        }
    }
}

/* Runs the subtask with its inputs, and releases them. */
static void run_with(struct lane *lane, struct store_blob *inputs, size_t count,
                     struct outcome *outcome)
{
    const uint32_t index = outcome->work.index;
    const size_t named = program_input_count(lease_context_manifest(lane->context), index);
    struct hash32 *lent = calloc(named + 1, sizeof *lent); /* zero: a copy of our own */
    for (size_t i = 0; lent != NULL && i < named; i++) {
        lent[i] = inputs[i].is_lent ? inputs[i].hash : lent[i];
    }
    run_in_jail(lane, inputs, outcome);
    program_release_inputs(lane->lanes->config.store, inputs, count);
    if (lent != NULL && outcome->result == OUTCOME_INPUT_MISSING) {
        report_damage(lane, index, lent, named, outcome);
    }
    free(lent);
}

/* Inputs above the job's own limit are the job's fault. Above ours they are not: another device may
 * have room. */
static bool has_room(const struct lane *lane, const struct store_blob *inputs, size_t count,
                     struct outcome *outcome)
{
    const uint64_t ours_bytes =
        lane->offer->disk_bytes * lease_context_grant(lane->context)->slots_per_subtask;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes = inputs[i].size > UINT64_MAX - bytes ? UINT64_MAX : bytes + inputs[i].size;
    }
    if (bytes <= ours_bytes || lane->limits.disk_bytes < ours_bytes) {
        return true;
    }
    outcome_fail(outcome, OUTCOME_REFUSED,
                 "the inputs take %llu bytes, this device has room for %llu",
                 (unsigned long long)bytes, (unsigned long long)ours_bytes);
    return false;
}

static void refuse_index(struct outcome *outcome)
{
    outcome_fail(outcome, OUTCOME_REFUSED, "the manifest has no subtask %u", outcome->work.index);
}

static void run_work(struct lane *lane, struct outcome *outcome)
{
    struct problem problem = {""};
    enum result_outcome failure = OUTCOME_OK;
    struct store_blob *inputs = NULL;
    size_t count = 0;
    outcome->started_ms = clock_wall_ns() / 1000000;
    if (!lease_context_load(lane->context, &lane->cancel, &failure, &problem)) {
        outcome_fail(outcome, failure, "%s", problem.text);
        outcome->lacks_factor = outcome->dispatch.has_seed; /* the manifest is not judged */
        return;
    }
    if (outcome->work.index >= lease_context_manifest(lane->context)->subtask_count) {
        refuse_index(outcome);
        return;
    }
    if (noop_names(lease_context_manifest(lane->context))) {
        lane->is_noop = true;
        run_noops(lane, &outcome, 1);
        return;
    }
    if (!lane_fits(lane, outcome)) {
        return;
    }
    if (outcome->dispatch.has_seed &&
        !check_is_about(lease_context_manifest(lane->context), outcome->work.index,
                        outcome->dispatch.checked, &problem)) {
        outcome_fail(outcome, OUTCOME_PROGRAM_FAILED, "this check proves nothing: %s",
                     problem.text);
        return;
    }
    /* The jail opens while the inputs are on their way. */
    if (!begin_jail(lane, outcome->work.index, &problem)) {
        fail_jail(lane, outcome, &problem);
        return;
    }
    const struct program_source source = source_of(lane, outcome);
    if (!program_take_inputs(&source, outcome, &inputs, &count)) {
        return;
    }
    outcome->started_ms = clock_wall_ns() / 1000000;
    if (has_room(lane, inputs, count, outcome)) {
        run_with(lane, inputs, count, outcome);
    } else {
        program_release_inputs(lane->lanes->config.store, inputs, count);
    }
}

/* Takes the oldest work, or as many no-ops as go into one packet. The mutex is held. */
static size_t take(struct lane *lane, struct outcome *taken[JAIL_NOOPS_MAX])
{
    size_t most = lane->is_noop ? JAIL_NOOPS_MAX : 1;
    size_t count = 0;
    while (count < most && !list_empty(&lane->waiting)) {
        struct outcome *outcome = LIST_ELEMENT(lane->waiting.next, struct outcome, link);
        list_remove(&outcome->link);
        taken[count++] = outcome;
    }
    if (count == 1) {
        lane->running = taken[0]->work;
        lane->running_since_ns = clock_monotonic_ns();
        atomic_store(&lane->cancel, taken[0]->is_cancelled);
    }
    return count;
}

static void report(struct lane *lane, struct outcome *const *outcomes, size_t count)
{
    struct list_link done;
    list_init(&done);
    for (size_t i = 0; i < count; i++) {
        outcomes[i]->offer = lanes_device_of(lane);
        list_append(&done, &outcomes[i]->link);
    }
    lane->lanes->config.done(lane->lanes->config.context, &done);
}

/* The disk is full, or a folder is gone, if a result is CANCELLED without a cancel. Every
 * subtask may find this, so the log says it once a minute. */
static void say_given_back(struct lane *lane, const struct outcome *outcome)
{
    if (outcome->result != OUTCOME_CANCELLED || atomic_load(&lane->cancel)) {
        return;
    }
    long long now_ns = clock_monotonic_ns();
    long long said_ns = atomic_load(&lane->lanes->full_said_ns);
    if ((said_ns == 0 || now_ns - said_ns >= FULL_AGAIN_NS) &&
        atomic_compare_exchange_strong(&lane->lanes->full_said_ns, &said_ns, now_ns)) {
        log_warning("work is given back: %s", outcome->detail);
    }
}

/* The result of a work that took too much of a device's memory says so. */
static void name_excess(struct lane *lane, struct outcome *outcome)
{
    char detail[sizeof lane->excess_detail];
    pthread_mutex_lock(&lane->mutex);
    const enum result_outcome excess = lane->excess;
    memcpy(detail, lane->excess_detail, sizeof detail);
    pthread_mutex_unlock(&lane->mutex);
    const bool is_ended =
        outcome->result == OUTCOME_CANCELLED || outcome->result == OUTCOME_MEMORY_LIMIT;
    if (excess != OUTCOME_OK && is_ended) {
        outcome_fail(outcome, excess, "%s", detail);
    }
}

static void run_one(struct lane *lane, struct outcome *outcome)
{
    struct agent_work work = outcome->work;
    run_work(lane, outcome);
    name_excess(lane, outcome);
    lane_keep_ends(lane, &work);
    say_given_back(lane, outcome);
    if (!lane->is_noop) {
        lane->lanes->config.left(lane->lanes->config.context, &work);
    }
    report(lane, &outcome, 1);
}

static void run_many(struct lane *lane, struct outcome *const *outcomes, size_t count)
{
    struct outcome *wanted[JAIL_NOOPS_MAX];
    size_t wanted_count = 0;
    int64_t started_ms = clock_wall_ns() / 1000000;
    for (size_t i = 0; i < count; i++) {
        outcomes[i]->started_ms = started_ms;
        if (outcomes[i]->is_cancelled) {
            outcome_fail(outcomes[i], OUTCOME_CANCELLED, "cancelled before it started");
        } else if (outcomes[i]->work.index >=
                   lease_context_manifest(lane->context)->subtask_count) {
            refuse_index(outcomes[i]);
        } else {
            wanted[wanted_count++] = outcomes[i];
        }
    }
    if (wanted_count > 0) {
        run_noops(lane, wanted, wanted_count);
    }
    report(lane, outcomes, count);
}

void *lane_loop(void *argument)
{
    struct lane *lane = argument;
    process_name_thread("lane");
    for (;;) {
        struct outcome *taken[JAIL_NOOPS_MAX];
        pthread_mutex_lock(&lane->mutex);
        lane->running.attempt = 0;
        atomic_store(&lane->cancel, false);
        lane->excess = OUTCOME_OK;
        atomic_store(&lane->notice, false);
        while (list_empty(&lane->waiting) && !lane->stop) {
            pthread_cond_wait(&lane->woken, &lane->mutex);
        }
        size_t count = take(lane, taken);
        pthread_mutex_unlock(&lane->mutex);
        if (count == 0) {
            break;
        }
        if (count == 1) {
            run_one(lane, taken[0]);
        } else {
            run_many(lane, taken, count);
        }
    }
    end_jail(lane);
    copy_ahead_destroy(&lane->ahead);
    atomic_store(&lane->ended, true);
    return NULL;
}
