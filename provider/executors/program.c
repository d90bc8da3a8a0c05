#include "provider/executors/program.h"

#include "base/checked.h"
#include "formats/output/result_note.h"
#include "formats/tensor_op.h"
#include "provider/device/kernel_device.h"
#include "provider/device/simulation.h"
#include "provider/executors/program_internal.h"
#include "provider/work/free_space.h"
#include "runtime/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- the result */

static enum result_outcome keep(const struct run *run, const char *name,
                                const struct jail_output *output, struct kept *ret_kept,
                                struct problem *problem)
{
    if (output->fd < 0) {
        return OUTCOME_OK;
    }
    const struct program *program = run->program;
    if (program->left != NULL && output->size > OUTCOME_MEMORY_BYTES &&
        output->size <= program->left_bytes && program->may_leave(program->context)) {
        return outcome_leave(program->left, name, output->fd, output->size, ret_kept, problem);
    }
    if (output->size > OUTCOME_MEMORY_BYTES) { /* drops unused inputs for the output */
        (void)store_has_space(program->store, output->size + FREE_SPACE_LEAST);
    }
    return outcome_keep(program->config->spool, name, output->fd, output->size, ret_kept, problem);
}

/* Copies an entry of a folder that is an output out of the jail. */
static enum result_outcome take_entry(void *context, const struct jail_entry *entry,
                                      struct problem *ret_problem)
{
    struct run *run = context;
    struct folder_archive *folder = &run->folders[entry->output];
    const char *spool = run->program->config->spool;
    if (entry->is_folder) {
        return folder_archive_add_folder(folder, spool, entry->name, ret_problem);
    }
    if (entry->link[0] != '\0') {
        return folder_archive_add_link(folder, spool, entry->name, entry->link, ret_problem);
    }
    if (entry->size > OUTCOME_MEMORY_BYTES) { /* drops unused inputs for the output */
        (void)store_has_space(run->program->store, entry->size + FREE_SPACE_LEAST);
    }
    return folder_archive_add(folder, spool, entry->name, entry->fd, entry->size,
                              entry->is_executable, ret_problem);
}

static enum result_outcome keep_output(struct run *run, size_t i, const struct jail_output *output,
                                       struct kept *ret_kept, struct problem *problem)
{
    const char *name = run->outputs.items[i];
    if (program_is_archive(run, i)) {
        return folder_archive_keep(&run->folders[i], run->program->config->spool, name, ret_kept,
                                   problem);
    }
    const enum result_outcome kept = keep(run, name, output, ret_kept, problem);
    ret_kept->is_executable = kept == OUTCOME_OK && output->is_executable;
    return kept;
}

static enum result_outcome keep_all(struct run *run, const struct jail_reply *reply,
                                    struct outcome *outcome, struct problem *problem)
{
    enum result_outcome kept =
        keep(run, "stdout", &reply->standard_output, &outcome->standard_output, problem);
    if (kept == OUTCOME_OK) {
        kept = keep(run, "stderr", &reply->standard_error, &outcome->standard_error, problem);
    }
    if (kept != OUTCOME_OK || reply->outcome != OUTCOME_OK) {
        return kept;
    }
    if (!outcome_reserve(outcome, reply->output_count)) {
        problem_set(problem, "out of memory");
        return OUTCOME_JAIL_FAILED;
    }
    for (size_t i = 0; kept == OUTCOME_OK && i < reply->output_count; i++) {
        kept = keep_output(run, i, &reply->outputs[i], &outcome->outputs[i], problem);
        outcome->output_count = kept == OUTCOME_OK ? i + 1 : i;
    }
    return kept;
}

/* Returns a bound on the length of an encoded Saved with these files. */
static size_t checkpoint_bytes(const struct jail_reply *reply)
{
    enum { FILE_BYTES = 1 + 3 + 1 + 2 + 2 + 32 + 1 + 10 }; /* tags, lengths, hash, size */
    size_t bytes = 0;
    for (size_t i = 0; i < reply->saved_count; i++) {
        bytes += FILE_BYTES + strlen(reply->saved[i].name);
    }
    return bytes;
}

/* Keeps all files of a checkpoint, or fails. */
static enum result_outcome keep_checkpoint(const struct run *run, const struct jail_reply *reply,
                                           struct outcome *outcome, struct problem *problem)
{
    enum result_outcome kept = OUTCOME_OK;
    if (!outcome_reserve_checkpoint(outcome, reply->saved_count)) {
        problem_set(problem, "out of memory");
        return OUTCOME_JAIL_FAILED;
    }
    for (size_t i = 0; kept == OUTCOME_OK && i < reply->saved_count; i++) {
        const struct jail_output file = {.fd = reply->saved[i].fd, .size = reply->saved[i].size};
        kept = keep(run, reply->saved[i].name, &file, &outcome->checkpoint[i], problem);
        outcome->checkpoint_count += kept == OUTCOME_OK;
    }
    return kept;
}

/* An attempt that was told to end and saved nothing is free. Such an attempt leaves nothing that
 * anybody would have to pay for. */
static void take_checkpoint(const struct run *run, const struct jail_reply *reply,
                            struct outcome *outcome)
{
    const bool ended_early =
        reply->outcome == OUTCOME_PROGRAM_FAILED || reply->outcome == OUTCOME_SIGNALLED ||
        reply->outcome == OUTCOME_OUTPUT_MISSING || reply->outcome == OUTCOME_CANCELLED;
    struct problem problem = {""};
    if (run->request.checkpoint == NULL || !reply->was_noticed || !ended_early) {
        return;
    }
    if (checkpoint_bytes(reply) > LIMIT_CHECKPOINT_BYTES) {
        outcome_fail(outcome, outcome->result,
                     "nothing was saved: the names of the files in %.64s are too long together",
                     run->request.checkpoint);
    } else if (reply->saved_count == 0) {
        char why[LIMIT_TEXT_BYTES];
        (void)snprintf(why, sizeof why, "%s", outcome->detail);
        outcome_fail(outcome, outcome->result, "%s", why);
    } else if (keep_checkpoint(run, reply, outcome, &problem) != OUTCOME_OK) {
        outcome_fail(outcome, outcome->result, "nothing was saved: %s", problem.text);
    }
}

/* Notes which streams have more bytes than the result keeps. The jail has counted them, unless it
 * has ended or could not write them all. */
static void note_cut(struct jail *jail, const struct jail_reply *reply, struct outcome *outcome)
{
    const bool are_cut[] = {reply->stdout_cut, reply->stderr_cut};
    const uint64_t kept[] = {reply->standard_output.size, reply->standard_error.size};
    for (unsigned i = 0; i < 2; i++) {
        struct jail_live live = {.total = 0};
        if (are_cut[i]) {
            (void)jail_read_live(jail, i, true, 0, NULL, 0, &live); /* else the total stays 0 */
            result_note_add_cut(outcome->detail, sizeof outcome->detail, i == 1, live.total,
                                kept[i]);
        }
    }
}

/* Returns what is wrong with the device or with its jail. Code of the job runs inside the program
 * that opens a model or launches kernels of a processor. So a failure there tells nothing. */
static enum device_fault fault_of(const struct program *program, const struct jail_reply *reply)
{
    const bool is_processor =
        program->kernel_device != NULL && strcmp(program->kernel_device->kind, "cpu") == 0;
    const bool hangs = reply->outcome == OUTCOME_TIME_LIMIT && reply->fault == DEVICE_FAULT_HANG;
    if (program->is_model || is_processor || (reply->outcome != OUTCOME_JAIL_FAILED && !hangs)) {
        return DEVICE_FAULT_NONE;
    }
    return reply->fault != DEVICE_FAULT_NONE ? reply->fault : DEVICE_FAULT_OTHER;
}

static void read_reply(struct run *run, const struct jail_reply *reply, struct outcome *outcome)
{
    struct problem problem = {""};
    outcome->result = reply->outcome;
    outcome->fault = fault_of(run->program, reply);
    outcome->ran = reply->outcome != OUTCOME_REFUSED && reply->outcome != OUTCOME_JAIL_FAILED &&
                   reply->outcome != OUTCOME_PROGRAM_MISSING;
    outcome->exit_code = reply->exit_code;
    outcome->signal = reply->signal;
    outcome->verdict =
        run->is_check && reply->outcome == OUTCOME_OK ? reply->verdict : VERDICT_NONE;
    outcome->cpu_ns = reply->cpu_ns;
    outcome->peak_memory_bytes = reply->peak_memory_bytes;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", reply->detail);
    program_explain_wasm(run, reply, outcome);
    if (reply->outcome == OUTCOME_PROGRAM_MISSING && run->program->manifest->has_image) {
        /* The job brought its image, so a program that is not in it is the job's own fault. */
        outcome->result = OUTCOME_PROGRAM_FAILED;
    }
    enum result_outcome kept = keep_all(run, reply, outcome, &problem);
    if (kept != OUTCOME_OK) {
        outcome_fail(outcome, kept, "%s", problem.text);
    } else {
        take_checkpoint(run, reply, outcome);
    }
    note_cut(run->program->jail, reply, outcome);
}

/* ---------------------------------------------------------------- a simulated device */

static uint64_t input_bytes(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->input_count; i++) {
        if (strcmp(run->inputs[i].name, name) == 0) {
            return run->inputs[i].size;
        }
    }
    return 0; /* computing it reports the missing file */
}

static uint64_t output_bytes(const struct outcome *outcome, const char *name)
{
    for (size_t i = 0; i < outcome->output_count; i++) {
        if (outcome->outputs[i].name != NULL && strcmp(outcome->outputs[i].name, name) == 0) {
            return outcome->outputs[i].size;
        }
    }
    return 0;
}

static bool begin_simulation(const struct run *run, struct tensor_op *operation,
                             struct simulation_files *ret_files, struct outcome *outcome)
{
    struct problem problem = {""};
    if (!tensor_op_read((const char *const *)run->arguments.items, run->arguments.count, false,
                        operation, &problem)) {
        return program_refuse(outcome, problem.text);
    }
    *ret_files = (struct simulation_files){.a = input_bytes(run, operation->a),
                                           .b = input_bytes(run, operation->b)};
    if (!simulation_begin(run->program->simulates, operation, ret_files, &problem)) {
        return program_refuse(outcome, problem.text);
    }
    assert(operation->result != NULL); /* true for every product */
    /* The result's length is part of the shape. */
    return program_brings_back(run, operation->result) ||
           program_refuse(outcome, "on a simulated device the result must be among the outputs");
}

/* Time and energy are the simulated device's; this machine's own do not count. */
static void end_simulation(const struct run *run, const struct tensor_op *operation,
                           struct simulation_files *files, struct outcome *outcome)
{
    struct problem problem = {""};
    struct simulation simulation;
    assert(operation->result != NULL); /* begin_simulation */
    outcome->busy_ns = SIMULATION_LEAST_NS;
    outcome->cpu_ns = 0;
    outcome->peak_memory_bytes = 0;
    if (outcome->result != OUTCOME_OK) {
        return;
    }
    files->result = output_bytes(outcome, operation->result);
    if (!simulation_end(run->program->simulates, operation, files, &simulation, &problem)) {
        (void)program_refuse(outcome, problem.text);
        return;
    }
    outcome->busy_ns = simulation.busy_ns;
    outcome->has_energy = simulation.energy_uj >= 0;
    outcome->energy_uj = outcome->has_energy ? simulation.energy_uj : 0;
    outcome->energy_source = ENERGY_BY_CATALOGUE;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", simulation.detail);
}

/* The jail tells any number; a message takes numbers up to INT64_MAX. */
static uint64_t as_count(uint64_t number)
{
    return number < INT64_MAX ? number : INT64_MAX;
}

void program_run(const struct program *program, struct outcome *outcome, bool *ret_jail_ended)
{
    struct tensor_op operation = {.verb = TENSOR_MATMUL};
    struct simulation_files files = {.a = 0};
    struct run run = {.program = program};
    *ret_jail_ended = false;
    if (program_prepare(&run, outcome) &&
        (program->simulates == NULL || begin_simulation(&run, &operation, &files, outcome))) {
        static _Thread_local struct jail_reply reply; /* large; one per lane's thread */
        memset(&reply, 0, sizeof reply);
        int64_t before_ns = clock_monotonic_ns();
        run.request.take_entry = take_entry;
        run.request.keeps_trees = program_keeps_trees(program->manifest);
        run.request.take_context = &run;
        jail_run(program->jail, &run.request, &reply);
        if (program->kernel_device != NULL) {
            program->note_held(program->context, &reply.held);
            outcome->held_bytes = as_count(reply.held.saved_bytes);
            outcome->copied_bytes = as_count(reply.held.copied_bytes);
        }
        const int64_t frozen_ns = reply.frozen_ns; /* the program did nothing, and is not paid */
        read_reply(&run, &reply, outcome);
        if (program->is_model) {
            *program->open_model = outcome->result == OUTCOME_OK ? run.opens : (struct hash32){{0}};
        }
        *ret_jail_ended = reply.jail_ended;
        jail_reply_fini(&reply); /* the next run needs the space */
        outcome->busy_ns = clock_monotonic_ns() - before_ns - frozen_ns;
        if (program->simulates != NULL) {
            end_simulation(&run, &operation, &files, outcome);
        }
    }
    program_run_clear(&run);
}
