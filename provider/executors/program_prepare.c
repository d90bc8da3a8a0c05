/* This file makes the request to the jail from a subtask of the manifest. */
#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "formats/kernel/kernel_op.h"
#include "formats/template.h"
#include "formats/tensor_op.h"
#include "protocol/subtask.h"
#include "provider/device/kernel_device.h"
#include "provider/executors/program.h"
#include "provider/executors/program_internal.h"
#include "provider/executors/tensor.h"
#include "provider/tensor/ask.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_VARIABLES = 2, /* besides the job's variables */
};

void program_texts_clear(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
    *texts = (struct texts){.items = NULL};
}

bool program_texts_reserve(struct texts *texts, size_t count)
{
    texts->items = calloc(count + 1, sizeof *texts->items);
    return texts->items != NULL;
}

void program_run_clear(struct run *run)
{
    program_texts_clear(&run->arguments);
    program_texts_clear(&run->environment);
    program_texts_clear(&run->saved);
    program_texts_clear(&run->placed);
    program_outputs_clear(run);
    free(run->inputs);
    free(run->standard_input);
}

bool program_refuse(struct outcome *outcome, const char *what)
{
    outcome_fail(outcome, OUTCOME_REFUSED, "%s", what);
    return false;
}

bool program_refuse_one(struct outcome *outcome, const char *kind, size_t index, const char *what)
{
    outcome_fail(outcome, OUTCOME_REFUSED, "%s %zu of the manifest %s", kind, index + 1, what);
    return false;
}

/* Puts in the seed that came with the dispatch. */
static bool settle_seed(struct run *run, struct outcome *outcome)
{
    const struct hash32 *seed = run->program->seed;
    if (seed == NULL) {
        return program_refuse(outcome,
                              "the check's seed is drawn at its dispatch, and none came; only "
                              "checks of the job itself (verify: cheap) have one");
    }
    char *text = malloc(2 * sizeof seed->bytes + 1);
    if (text == NULL) {
        return program_refuse(outcome, "out of memory");
    }
    text_hex(seed->bytes, sizeof seed->bytes, text);
    free(run->arguments.items[TENSOR_SEED_WORD]);
    run->arguments.items[TENSOR_SEED_WORD] = text;
    run->is_check = true;
    return true;
}

static bool settle_operation(struct run *run, struct outcome *outcome)
{
    struct tensor_op operation;
    struct problem problem = {""};
    if (!tensor_op_read((const char *const *)run->arguments.items, run->arguments.count, false,
                        &operation, &problem)) {
        return program_refuse(outcome, problem.text);
    }
    return !operation.is_drawn || settle_seed(run, outcome);
}

static bool prepend(struct run *run, const char *word, struct outcome *outcome)
{
    struct texts *arguments = &run->arguments;
    char *copy = strdup(word);
    if (copy == NULL) {
        return program_refuse(outcome, "out of memory");
    }
    memmove(arguments->items + 1, arguments->items, arguments->count * sizeof *arguments->items);
    arguments->items[0] = copy;
    arguments->count++;
    return true;
}

static bool settle_launch(struct run *run, struct outcome *outcome)
{
    struct kernel_op op;
    struct problem problem = {""};
    return kernel_op_read((const char *const *)run->arguments.items, run->arguments.count, false,
                          &op, &problem) ||
           program_refuse(outcome, problem.text);
}

/* Puts the device before the words of a launch or an operation. */
static bool prepend_device(struct run *run, struct outcome *outcome)
{
    const struct kernel_device *device = run->program->kernel_device;
    char memory[24];
    char held[24];
    (void)snprintf(memory, sizeof memory, "%llu",
                   (unsigned long long)run->program->kernel_memory_bytes);
    (void)snprintf(held, sizeof held, "%llu", (unsigned long long)run->program->kernel_held_bytes);
    const bool keeps = program_is_taken(run->program->manifest, run->program->index);
    const bool by_library = device->library[0] != '\0';
    return prepend(run, by_library ? KERNEL_LIBRARY : "-", outcome) &&
           prepend(run, keeps ? KERNEL_KEEP : "-", outcome) && prepend(run, held, outcome) &&
           prepend(run, memory, outcome) && prepend(run, device->name, outcome) &&
           prepend(run, device->id, outcome) &&
           prepend(run, kernel_op_api_word(device->api), outcome);
}

static bool settle_program(struct run *run, struct outcome *outcome)
{
    if (run->program->kernel_device != NULL) {
        return tensor_names(run->program->manifest)
                   ? settle_operation(run, outcome) && prepend(run, KERNEL_TENSOR, outcome) &&
                         prepend_device(run, outcome)
                   : settle_launch(run, outcome) && prepend_device(run, outcome);
    }
    if (run->program->is_model) {
        return program_settle_model(run, outcome);
    }
    if (run->program->is_plugin || run->program->wasm_engine != NULL) {
        return true; /* the plug-in knows its operations; program_wasm.c looks at modules */
    }
    if (run->program->tensor_threads > 0) {
        return settle_operation(run, outcome);
    }
    char *name = run->arguments.items[0];
    if (run->program->manifest->has_image) {
        return true; /* an image job may run any program of the image */
    }
    const struct config_program *program = config_program(run->program->config, name);
    if (program == NULL) {
        outcome_fail(outcome, OUTCOME_PROGRAM_MISSING,
                     "this provider does not offer the program %.100s", name);
        return false;
    }
    char *path = strdup(program->path);
    if (path == NULL) {
        return program_refuse(outcome, "out of memory");
    }
    free(name);
    run->arguments.items[0] = path;
    return true;
}

static bool expand_arguments(struct run *run, struct outcome *outcome)
{
    const struct subtask_terms *terms = &run->terms;
    if (!program_texts_reserve(&run->arguments, terms->argument_count + KERNEL_DEVICE_WORDS + 1)) {
        return program_refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < terms->argument_count; i++) {
        char *text = template_filled(terms->arguments[i], &run->values, LIMIT_ARGUMENT_BYTES, NULL);
        if (text == NULL) {
            return program_refuse_one(outcome, "argument", i,
                                      "cannot be expanded for this subtask, or is too long");
        }
        run->arguments.items[run->arguments.count++] = text;
    }
    return settle_program(run, outcome);
}

static bool add_variable(struct run *run, const Bourse__V1__ManifestVariable *variable,
                         struct outcome *outcome)
{
    char *value = template_filled(variable->value, &run->values, LIMIT_ARGUMENT_BYTES, NULL);
    size_t size = value == NULL ? 0 : strlen(variable->name) + strlen(value) + 2;
    char *text = value == NULL ? NULL : malloc(size);
    if (text != NULL) {
        (void)snprintf(text, size, "%s=%s", variable->name, value);
        run->environment.items[run->environment.count++] = text;
    }
    free(value);
    return text != NULL ||
           program_refuse(outcome,
                          "a variable cannot be expanded for this subtask, or is too long");
}

static bool is_replaced(const Bourse__V1__ManifestTask *task, const char *name)
{
    for (size_t i = 0; task != NULL && i < task->n_environment; i++) {
        if (strcmp(task->environment[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_said(const struct run *run, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < run->environment.count; i++) {
        if (strncmp(run->environment.items[i], name, length) == 0 &&
            run->environment.items[i][length] == '=') {
            return true;
        }
    }
    return false;
}

/* Adds a variable of ours, unless the job sets it itself. */
static bool add_own_variable(struct run *run, const char *name, const char *value,
                             struct outcome *outcome)
{
    if (is_said(run, name)) {
        return true;
    }
    const size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);
    if (text == NULL) {
        return program_refuse(outcome, "out of memory");
    }
    (void)snprintf(text, size, "%s=%s", name, value);
    run->environment.items[run->environment.count++] = text;
    return true;
}

static bool tell_of_checkpoint(struct run *run, struct outcome *outcome)
{
    char attempt[16];
    const uint32_t restored = run->dispatch->restored;
    (void)snprintf(attempt, sizeof attempt, "%u", (unsigned)restored);
    return run->request.checkpoint == NULL ||
           (add_own_variable(run, "BOURSE_CHECKPOINT", run->request.checkpoint, outcome) &&
            (restored == 0 || add_own_variable(run, "BOURSE_RESTORED", attempt, outcome)));
}

static bool expand_environment(struct run *run, struct outcome *outcome)
{
    const Bourse__V1__Manifest *manifest = run->program->manifest;
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, run->program->index);
    size_t own = task == NULL ? 0 : task->n_environment;
    if (!program_texts_reserve(&run->environment, manifest->n_environment + own + OWN_VARIABLES)) {
        return program_refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < manifest->n_environment; i++) {
        if (!is_replaced(task, manifest->environment[i]->name) &&
            !add_variable(run, manifest->environment[i], outcome)) {
            return false;
        }
    }
    for (size_t i = 0; i < own; i++) {
        if (!add_variable(run, task->environment[i], outcome)) {
            return false;
        }
    }
    return tell_of_checkpoint(run, outcome);
}

/* An attempt that is free when it saves nothing must know where to save. A job that says one
 * without the other is not run. */
static bool settle_checkpoint(struct run *run, struct outcome *outcome)
{
    if (!run->program->has_checkpoints) {
        return true;
    }
    if (run->terms.checkpoint == NULL) {
        return program_refuse(outcome, "the job has checkpoints and names no folder for them");
    }
    if (run->program->tensor_threads > 0) {
        return program_refuse(outcome, "a tensor subtask saves no state");
    }
    if (!template_path_safe(run->terms.checkpoint)) {
        return program_refuse(outcome, "the checkpoint's folder leads out of the work folder");
    }
    run->request.checkpoint = run->terms.checkpoint;
    return true;
}

/* Returns true for the input that an image job runs as its program: "./tool" or "tool". */
static bool is_program(const struct run *run, const char *name)
{
    const char *program = run->arguments.items[0];
    assert(program != NULL); /* program_check */
    if (strncmp(program, "./", 2) == 0) {
        program += 2;
    } else if (strncmp(program, "/work/", 6) == 0) {
        program += 6;
    }
    return run->program->manifest->has_image && strcmp(program, name) == 0;
}

bool program_gather(struct run *run, const char *name, struct store_blob *blob, bool is_executable,
                    struct outcome *outcome)
{
    struct jail_input *inputs =
        array_with_room(run->inputs, run->input_count, &run->input_capacity, sizeof *run->inputs);
    if (inputs == NULL) {
        return program_refuse(outcome, "out of memory");
    }
    run->inputs = inputs;
    if (!template_path_safe(name)) {
        return program_refuse(outcome,
                              "an input's name leads out of the work folder or is no plain text");
    }
    if (run->request.checkpoint != NULL && run->saved.count == 0 &&
        template_paths_meet(run->request.checkpoint, name)) {
        return program_refuse(outcome, "an input lies where the job saves its state");
    }
    run->inputs[run->input_count++] =
        (struct jail_input){.name = name,
                            .fd = blob->fd,
                            .size = blob->size,
                            .hash = blob->is_lent ? &blob->hash : NULL,
                            .content = &blob->hash,
                            .hashed = blob->is_lent ? &blob->hashed : NULL,
                            .executable = is_executable || is_program(run, name)};
    return true;
}

/* Adds an input of the manifest, which may be a folder with many files. */
static bool gather_input(struct run *run, const char *name, size_t position, bool is_executable,
                         struct outcome *outcome)
{
    struct store_blob *blob = &run->program->inputs[position];
    return template_is_folder(name) ? program_gather_folder(run, name, NULL, blob, outcome)
                                    : program_gather(run, name, blob, is_executable, outcome);
}

/* Adds what another subtask has left. */
static bool gather_taken(struct run *run, const Bourse__V1__ManifestFrom *from, size_t position,
                         struct outcome *outcome)
{
    const struct dispatch_file *file =
        dispatch_inputs_find(run->dispatch, from->task, from->output);
    const char *pattern = program_taken_pattern(run->program->manifest, from);
    return pattern != NULL && template_is_folder(from->name)
               ? program_gather_folder(run, from->name, pattern, &run->program->inputs[position],
                                       outcome)
               : gather_input(run, from->name, position, file != NULL && file->is_executable,
                              outcome);
}

/* Adds the files of the checkpoint to resume from, at their place. */
static bool gather_checkpoint(struct run *run, size_t position, struct outcome *outcome)
{
    const struct dispatch_inputs *from = run->dispatch;
    if (run->request.checkpoint == NULL || from->checkpoint_count == 0) {
        return true;
    }
    if (!program_texts_reserve(&run->saved, from->checkpoint_count)) {
        return program_refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < from->checkpoint_count; i++) {
        const size_t size = strlen(run->request.checkpoint) + strlen(from->checkpoint[i].name) + 2;
        char *name = malloc(size);
        if (name == NULL) {
            return program_refuse(outcome, "out of memory");
        }
        (void)snprintf(name, size, "%s/%s", run->request.checkpoint, from->checkpoint[i].name);
        run->saved.items[run->saved.count++] = name;
        if (!program_gather(run, name, &run->program->inputs[position + i], false, outcome)) {
            return false;
        }
        run->inputs[run->input_count - 1].is_state = true;
    }
    return true;
}

static bool is_listing(const struct program *program, size_t position)
{
    return strcmp(program_input(program->manifest, program->index, position)->name,
                  PROGRAM_LISTING) == 0;
}

/* Reads the listings when all files are gathered. A job has at most two, its own and a task's. */
static bool gather_trees(struct run *run, size_t count, struct outcome *outcome)
{
    const struct program *program = run->program;
    for (size_t i = 0; i < count; i++) {
        if (is_listing(program, i) && !program_gather_tree(run, &program->inputs[i], outcome)) {
            return false;
        }
    }
    return true;
}

static size_t count_listings(const struct program *program, size_t count)
{
    size_t listings = 0;
    for (size_t i = 0; i < count; i++) {
        listings += is_listing(program, i);
    }
    return listings;
}

static bool gather_inputs(struct run *run, struct outcome *outcome)
{
    const struct program *program = run->program;
    size_t count = program_input_count(program->manifest, program->index);
    size_t taken = program_taken_count(program->manifest, program->index);
    if (count + taken - count_listings(program, count) > LIMIT_INPUTS) {
        outcome_fail(outcome, OUTCOME_REFUSED, "%zu inputs; at most %d are taken", count + taken,
                     LIMIT_INPUTS);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__ManifestInput *input =
            program_input(program->manifest, program->index, i);
        if (is_listing(program, i)) {
            continue;
        }
        if (!gather_input(run, input->name, i, input->has_executable && input->executable,
                          outcome)) {
            return false;
        }
        if (program->inputs[i].is_lent) { /* a folder is never lent */
            run->inputs[run->input_count - 1].is_last =
                program_reads_last(program->manifest, program->index, i);
        }
    }
    for (size_t i = 0; i < taken; i++) {
        if (!gather_taken(run, program_taken(program->manifest, program->index, i), count + i,
                          outcome)) {
            return false;
        }
    }
    return gather_trees(run, count, outcome) && gather_checkpoint(run, count + taken, outcome);
}

static bool settle_standard_input(struct run *run, struct outcome *outcome)
{
    const char *text = run->terms.standard_input;
    run->request.stdin_fd = -1;
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    if (strcmp(text, "{in}") == 0) { /* exactly {in}: the file's content */
        if (run->values.in == NULL) {
            return program_refuse(outcome, "standard input is {in}, and this subtask has no input");
        }
        run->request.stdin_fd = run->program->inputs[0].fd;
        run->request.stdin_size = run->program->inputs[0].size;
        return true;
    }
    size_t length = 0;
    run->standard_input = template_filled(text, &run->values, LIMIT_ARGUMENT_BYTES, &length);
    if (run->standard_input == NULL) {
        return program_refuse(outcome, "the standard input cannot be expanded for this subtask");
    }
    run->request.stdin_bytes = run->standard_input;
    run->request.stdin_size = length;
    return true;
}

static uint64_t least_ns(int64_t a_ms, int64_t b_ms)
{
    int64_t least_ms = a_ms <= 0 ? b_ms : b_ms <= 0 ? a_ms : a_ms < b_ms ? a_ms : b_ms;
    int64_t ns;
    return least_ms > 0 && checked_mul(least_ms, NS_PER_MS, &ns) ? (uint64_t)ns : 0;
}

static uint64_t asked(protobuf_c_boolean has, int64_t value)
{
    return has && value > 0 ? (uint64_t)value : 0;
}

static bool is_argument(const struct run *run, const char *name)
{
    bool found = false;
    for (size_t i = 1; i < run->arguments.count && !found; i++) {
        found = strcmp(run->arguments.items[i], name) == 0;
    }
    return found;
}

/* Inputs that a tensor operation reads in place are not copied. */
static void settle_mapped(struct run *run)
{
    size_t count = 0;
    for (size_t i = 0; run->program->tensor_threads > 0 && i < run->input_count; i++) {
        struct jail_input *input = &run->inputs[i];
        input->is_mapped =
            input->hash != NULL && count < JAIL_MAPPED_MAX && is_argument(run, input->name) &&
            !program_brings_back(run, input->name) && jail_may_map(run->program->jail, input->fd);
        count += input->is_mapped;
        if (!input->is_mapped && input->hashed != NULL) {
            input->hashed->is_known = false; /* copied now, so the store fetches its own */
        }
    }
}

/* Returns true for a file that a resident may hold for its next run: a factor on a device for
 * kernels, or what a model keeps. */
static bool may_stay(const struct run *run, const char *name)
{
    return run->program->is_model ? program_keeps_model(run, name)
                                  : run->program->kernel_device != NULL && is_argument(run, name);
}

/* Tells the hashes of the inputs that the resident may hold. */
static void settle_contents(struct run *run)
{
    size_t count = 0;
    for (size_t i = 0; i < run->input_count; i++) {
        struct jail_input *input = &run->inputs[i];
        const bool is_told =
            input->content != NULL && count < JAIL_CONTENTS_MAX && may_stay(run, input->name);
        input->content = is_told ? input->content : NULL;
        count += is_told;
    }
}

static void settle_limits(struct run *run)
{
    const Bourse__V1__ManifestLimits *limits = run->terms.limits;
    int64_t wall_ms = limits != NULL && limits->has_wall_ms ? limits->wall_ms : 0;
    run->request.wall_ns = least_ns(wall_ms, run->program->limit_ms);
    if (limits != NULL) {
        run->request.cpu_ns = limits->has_cpu_ms ? least_ns(limits->cpu_ms, 0) : 0;
        run->request.output_bytes = asked(limits->has_output_bytes, limits->output_bytes);
    }
}

static void settle_terminal(struct run *run)
{
    const Bourse__V1__ManifestTerminal *wire = run->program->manifest->terminal;
    if (wire != NULL) {
        run->terminal = (struct jail_terminal){.columns = (uint16_t)wire->columns,
                                               .rows = (uint16_t)wire->rows,
                                               .is_plain = wire->has_plain && wire->plain,
                                               .take = run->program->take_terminal,
                                               .context = run->program->context};
        run->request.terminal = &run->terminal;
    }
}

bool program_prepare(struct run *run, struct outcome *outcome)
{
    static const struct dispatch_inputs nothing = {.files = NULL};
    const struct program *program = run->program;
    run->dispatch = program->dispatch == NULL ? &nothing : program->dispatch;
    run->terms = subtask_terms(program->manifest, program->index);
    run->values = (struct template_values){
        .in = run->terms.input, .value = run->terms.value, .index = run->terms.number};
    if (!settle_checkpoint(run, outcome) || !expand_arguments(run, outcome) ||
        !expand_environment(run, outcome) || !program_expand_outputs(run, outcome) ||
        !gather_inputs(run, outcome) || !settle_standard_input(run, outcome) ||
        !program_settle_wasm(run, outcome)) {
        return false;
    }
    settle_mapped(run);
    settle_contents(run);
    program_place_model(run);
    settle_limits(run);
    settle_terminal(run);
    run->request.tensor_threads = program->tensor_threads;
    run->request.argv = (const char *const *)run->arguments.items;
    run->request.env = (const char *const *)run->environment.items;
    run->request.inputs = run->inputs;
    run->request.input_count = run->input_count;
    run->request.made = program->made;
    run->request.made_count = program->made_count;
    /* The copies take processor time of the jail, which such a limit is about. */
    run->request.has_ahead = program->has_ahead && run->request.cpu_ns == 0;
    run->request.ahead = program->ahead;
    return true;
}
