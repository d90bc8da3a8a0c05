#include "provider/executors/program.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/template.h"
#include "formats/tensor_op.h"
#include "protocol/subtask.h"
#include "provider/device/simulation.h"
#include "provider/work/free_space.h"
#include "runtime/clock.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- inputs */

size_t program_input_count(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    return manifest->n_shared + (subtask == NULL ? 0 : subtask->n_inputs);
}

const Bourse__V1__ManifestInput *program_input(const Bourse__V1__Manifest *manifest, uint32_t index,
                                               size_t position)
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    size_t own = subtask == NULL ? 0 : subtask->n_inputs;
    assert(position < own + manifest->n_shared);
    return position < own ? subtask->inputs[position] : manifest->shared[position - own];
}

static bool lists(const Bourse__V1__ManifestSubtask *subtask, const ProtobufCBinaryData *hash)
{
    bool found = false;
    for (size_t i = 0; i < subtask->n_inputs && !found; i++) {
        const ProtobufCBinaryData *other = &subtask->inputs[i]->hash;
        found = other->len == hash->len && memcmp(other->data, hash->data, hash->len) == 0;
    }
    return found;
}

bool program_reads_last(const Bourse__V1__Manifest *manifest, uint32_t index, size_t position)
{
    if (position >= program_input_count(manifest, index) - manifest->n_shared) {
        return index + 1 == manifest->subtask_count; /* every subtask has it */
    }
    const ProtobufCBinaryData *hash = &program_input(manifest, index, position)->hash;
    bool found = false;
    for (size_t i = (size_t)index + 1; i < manifest->n_subtasks && !found; i++) {
        found = lists(manifest->subtasks[i], hash);
    }
    return !found;
}

void program_subtask_name(const Bourse__V1__Manifest *manifest, uint32_t index,
                          char ret_name[PROGRAM_SUBTASK_NAME_SIZE])
{
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    if (task != NULL && task->name != NULL) {
        (void)snprintf(ret_name, PROGRAM_SUBTASK_NAME_SIZE, "task %s", task->name);
    } else {
        (void)snprintf(ret_name, PROGRAM_SUBTASK_NAME_SIZE, "subtask %u",
                       subtask_terms(manifest, index).number);
    }
}

size_t program_taken_count(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    size_t count = 0;
    for (size_t i = 0; task != NULL && i < task->n_from; i++) {
        count += task->from[i]->output != NULL;
    }
    return count;
}

const Bourse__V1__ManifestFrom *program_taken(const Bourse__V1__Manifest *manifest, uint32_t index,
                                              size_t position)
{
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    for (size_t i = 0; task != NULL && i < task->n_from; i++) {
        if (task->from[i]->output != NULL && position-- == 0) {
            return task->from[i];
        }
    }
    assert(false); /* position < program_taken_count */
    return NULL;
}

/* ---------------------------------------------------------------- the manifest as a whole */

static bool variable_name(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') {
        return false;
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_') {
            return false;
        }
    }
    return true;
}

static bool all_good(char *const *templates, size_t count, struct problem *problem)
{
    for (size_t i = 0; i < count; i++) {
        if (!template_check(templates[i], TEMPLATE_ANY, problem)) {
            return false;
        }
    }
    return true;
}

static bool variables_good(Bourse__V1__ManifestVariable *const *variables, size_t count,
                           struct problem *problem)
{
    for (size_t i = 0; i < count; i++) {
        if (!variable_name(variables[i]->name)) {
            problem_set(problem, "a variable's name is not letters, digits and underscores");
            return false;
        }
        if (!template_check(variables[i]->value, TEMPLATE_ANY, problem)) {
            return false;
        }
    }
    return true;
}

static bool stdin_good(const char *standard_input, struct problem *problem)
{
    return standard_input == NULL || template_check(standard_input, TEMPLATE_ANY, problem);
}

static bool templates_good(const Bourse__V1__Manifest *manifest, struct problem *problem)
{
    return all_good(manifest->arguments, manifest->n_arguments, problem) &&
           all_good(manifest->outputs, manifest->n_outputs, problem) &&
           variables_good(manifest->environment, manifest->n_environment, problem) &&
           stdin_good(manifest->standard_input, problem);
}

static bool task_good(const Bourse__V1__Manifest *manifest, uint32_t index, struct problem *problem)
{
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    if (manifest->n_arguments == 0 && (task == NULL || task->n_arguments == 0)) {
        problem_set(problem, "the job names no program");
        return false;
    }
    if (task == NULL) {
        return true;
    }
    if (manifest->n_environment + task->n_environment > LIMIT_VARIABLES) {
        problem_set(problem, "more than %d variables", LIMIT_VARIABLES);
        return false;
    }
    for (size_t i = 0; i < task->n_from; i++) {
        if (task->from[i]->task >= index) {
            problem_set(problem, "subtask %u waits for one that does not come before it", index);
            return false;
        }
    }
    return all_good(task->arguments, task->n_arguments, problem) &&
           all_good(task->outputs, task->n_outputs, problem) &&
           variables_good(task->environment, task->n_environment, problem) &&
           stdin_good(task->standard_input, problem);
}

bool program_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    if (manifest->version != 1 ||
        (strcmp(manifest->executor, "command") != 0 && strcmp(manifest->executor, "tensor") != 0)) {
        problem_set(ret_problem, "this agent runs manifests of version 1 for the executors "
                                 "\"command\", \"noop\" and \"tensor\"");
        return false;
    }
    if (manifest->n_arguments == 0 && manifest->n_subtasks == 0) {
        problem_set(ret_problem, "the job names no program");
        return false;
    }
    if (manifest->n_subtasks != 0 && manifest->n_subtasks != manifest->subtask_count) {
        problem_set(ret_problem, "the manifest lists %zu subtasks and counts %u",
                    manifest->n_subtasks, manifest->subtask_count);
        return false;
    }
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        if (!task_good(manifest, (uint32_t)i, ret_problem)) {
            return false;
        }
    }
    return templates_good(manifest, ret_problem);
}

/* ---------------------------------------------------------------- one subtask */

enum { OWN_VARIABLES = 2 }; /* besides the job's variables */

/* Texts that a request points to, freed together. */
struct texts {
    char **items; /* NULL-terminated */
    size_t count;
};

static void texts_clear(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
    *texts = (struct texts){NULL, 0};
}

static bool texts_reserve(struct texts *texts, size_t count)
{
    texts->items = calloc(count + 1, sizeof *texts->items);
    return texts->items != NULL;
}

struct run {
    const struct program *program;
    const struct dispatch_inputs *dispatch; /* data from the dispatch; may be empty */
    struct subtask_terms terms;
    struct template_values values;
    struct texts arguments, environment, outputs, saved;
    struct jail_input *inputs;
    size_t input_count;
    char *standard_input;
    /* A check uses the market's seed: its verdict counts, and it leaves no files. */
    bool is_check;
    struct jail_request request;
};

static void run_clear(struct run *run)
{
    texts_clear(&run->arguments);
    texts_clear(&run->environment);
    texts_clear(&run->outputs);
    texts_clear(&run->saved);
    free(run->inputs);
    free(run->standard_input);
}

static bool refuse(struct outcome *outcome, const char *what)
{
    outcome_fail(outcome, OUTCOME_REFUSED, "%s", what);
    return false;
}

/* Puts in the seed that came with the dispatch. */
static bool settle_seed(struct run *run, struct outcome *outcome)
{
    const struct hash32 *seed = run->program->seed;
    if (seed == NULL) {
        return refuse(outcome, "the check's seed is drawn at its dispatch, and none came; only "
                               "checks of the job itself (verify: cheap) have one");
    }
    char *text = malloc(2 * sizeof seed->bytes + 1);
    if (text == NULL) {
        return refuse(outcome, "out of memory");
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
        return refuse(outcome, problem.text);
    }
    return !operation.is_drawn || settle_seed(run, outcome);
}

static bool settle_program(struct run *run, struct outcome *outcome)
{
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
        return refuse(outcome, "out of memory");
    }
    free(name);
    run->arguments.items[0] = path;
    return true;
}

static bool expand_arguments(struct run *run, struct outcome *outcome)
{
    const struct subtask_terms *terms = &run->terms;
    if (!texts_reserve(&run->arguments, terms->argument_count)) {
        return refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < terms->argument_count; i++) {
        char *text = template_filled(terms->arguments[i], &run->values, LIMIT_ARGUMENT_BYTES, NULL);
        if (text == NULL) {
            return refuse(outcome,
                          "an argument cannot be expanded for this subtask, or is too long");
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
           refuse(outcome, "a variable cannot be expanded for this subtask, or is too long");
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
        return refuse(outcome, "out of memory");
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
    if (!texts_reserve(&run->environment, manifest->n_environment + own + OWN_VARIABLES)) {
        return refuse(outcome, "out of memory");
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
        return refuse(outcome, "the job says that its programs save their state, and not where");
    }
    if (run->program->tensor_threads > 0) {
        return refuse(outcome, "a tensor subtask saves no state");
    }
    if (!template_path_safe(run->terms.checkpoint)) {
        return refuse(outcome, "the checkpoint's folder leads out of the work folder");
    }
    run->request.checkpoint = run->terms.checkpoint;
    return true;
}

static bool expand_outputs(struct run *run, struct outcome *outcome)
{
    size_t count = run->is_check ? 0 : run->terms.output_count;
    if (!texts_reserve(&run->outputs, count)) {
        return refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        char *text = template_filled(run->terms.outputs[i], &run->values, LIMIT_PATH_BYTES, NULL);
        if (text == NULL) {
            return refuse(outcome, "an output's name cannot be expanded for this subtask");
        }
        run->outputs.items[run->outputs.count++] = text;
        if (!template_path_safe(text)) {
            return refuse(outcome,
                          "an output's name leads out of the work folder or is no plain text");
        }
        if (run->request.checkpoint != NULL && template_paths_meet(run->request.checkpoint, text)) {
            return refuse(outcome, "an output lies where the job saves its state");
        }
    }
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

static bool gather_input(struct run *run, const char *name, struct outcome *outcome)
{
    struct store_blob *blob = &run->program->inputs[run->input_count];
    if (!template_path_safe(name)) {
        return refuse(outcome, "an input's name leads out of the work folder or is no plain text");
    }
    if (run->request.checkpoint != NULL && run->saved.count == 0 &&
        template_paths_meet(run->request.checkpoint, name)) {
        return refuse(outcome, "an input lies where the job saves its state");
    }
    run->inputs[run->input_count++] =
        (struct jail_input){.name = name,
                            .fd = blob->fd,
                            .size = blob->size,
                            .hash = blob->is_lent ? &blob->hash : NULL,
                            .hashed = blob->is_lent ? &blob->hashed : NULL,
                            .executable = is_program(run, name)};
    return true;
}

/* Adds the files of the checkpoint to resume from, at their place. */
static bool gather_checkpoint(struct run *run, struct outcome *outcome)
{
    const struct dispatch_inputs *from = run->dispatch;
    if (run->request.checkpoint == NULL || from->checkpoint_count == 0) {
        return true;
    }
    if (!texts_reserve(&run->saved, from->checkpoint_count)) {
        return refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < from->checkpoint_count; i++) {
        const size_t size = strlen(run->request.checkpoint) + strlen(from->checkpoint[i].name) + 2;
        char *name = malloc(size);
        if (name == NULL) {
            return refuse(outcome, "out of memory");
        }
        (void)snprintf(name, size, "%s/%s", run->request.checkpoint, from->checkpoint[i].name);
        run->saved.items[run->saved.count++] = name;
        if (!gather_input(run, name, outcome)) {
            return false;
        }
        run->inputs[run->input_count - 1].is_state = true;
    }
    return true;
}

static bool gather_inputs(struct run *run, struct outcome *outcome)
{
    const struct program *program = run->program;
    size_t count = program_input_count(program->manifest, program->index);
    size_t taken = program_taken_count(program->manifest, program->index);
    run->inputs = calloc(count + taken + run->dispatch->checkpoint_count + 1, sizeof *run->inputs);
    if (run->inputs == NULL) {
        return refuse(outcome, "out of memory");
    }
    if (count + taken > LIMIT_INPUTS) {
        outcome_fail(outcome, OUTCOME_REFUSED, "%zu inputs; at most %d are taken", count + taken,
                     LIMIT_INPUTS);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!gather_input(run, program_input(program->manifest, program->index, i)->name,
                          outcome)) {
            return false;
        }
        run->inputs[i].is_last =
            program->inputs[i].is_lent && program_reads_last(program->manifest, program->index, i);
    }
    for (size_t i = 0; i < taken; i++) {
        if (!gather_input(run, program_taken(program->manifest, program->index, i)->name,
                          outcome)) {
            return false;
        }
    }
    return gather_checkpoint(run, outcome);
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
            return refuse(outcome, "standard input is {in}, and this subtask has no input");
        }
        run->request.stdin_fd = run->inputs[0].fd;
        run->request.stdin_size = run->inputs[0].size;
        return true;
    }
    size_t length = 0;
    run->standard_input = template_filled(text, &run->values, LIMIT_ARGUMENT_BYTES, &length);
    if (run->standard_input == NULL) {
        return refuse(outcome, "the standard input cannot be expanded for this subtask");
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

static bool brings_back(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->outputs.count; i++) {
        if (strcmp(run->outputs.items[i], name) == 0) {
            return true;
        }
    }
    return false;
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
        input->is_mapped = input->hash != NULL && count < JAIL_MAPPED_MAX &&
                           is_argument(run, input->name) && !brings_back(run, input->name) &&
                           jail_may_map(run->program->jail, input->fd);
        count += input->is_mapped;
        if (!input->is_mapped && input->hashed != NULL) {
            input->hashed->is_known = false; /* copied now, so the store fetches its own */
        }
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

static bool prepare(struct run *run, struct outcome *outcome)
{
    static const struct dispatch_inputs nothing = {.files = NULL};
    const struct program *program = run->program;
    run->dispatch = program->dispatch == NULL ? &nothing : program->dispatch;
    run->terms = subtask_terms(program->manifest, program->index);
    run->values = (struct template_values){
        .in = run->terms.input, .value = run->terms.value, .index = run->terms.number};
    if (!settle_checkpoint(run, outcome) || !expand_arguments(run, outcome) ||
        !expand_environment(run, outcome) || !expand_outputs(run, outcome) ||
        !gather_inputs(run, outcome) || !settle_standard_input(run, outcome)) {
        return false;
    }
    settle_mapped(run);
    settle_limits(run);
    run->request.tensor_threads = program->tensor_threads;
    run->request.argv = (const char *const *)run->arguments.items;
    run->request.env = (const char *const *)run->environment.items;
    run->request.inputs = run->inputs;
    run->request.input_count = run->input_count;
    run->request.outputs = (const char *const *)run->outputs.items;
    run->request.output_count = run->outputs.count;
    return true;
}

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

static enum result_outcome keep_all(const struct run *run, const struct jail_reply *reply,
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
        kept = keep(run, run->outputs.items[i], &reply->outputs[i], &outcome->outputs[i], problem);
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

static void note_cut(const struct jail_reply *reply, struct outcome *outcome)
{
    if (outcome->detail[0] == '\0' && (reply->stdout_cut || reply->stderr_cut)) {
        (void)snprintf(outcome->detail, sizeof outcome->detail,
                       "more was written to %s than is kept",
                       reply->stdout_cut ? "standard output" : "standard error");
    }
}

static void read_reply(const struct run *run, const struct jail_reply *reply,
                       struct outcome *outcome)
{
    struct problem problem = {""};
    outcome->result = reply->outcome;
    outcome->ran = reply->outcome != OUTCOME_REFUSED && reply->outcome != OUTCOME_JAIL_FAILED &&
                   reply->outcome != OUTCOME_PROGRAM_MISSING;
    outcome->exit_code = reply->exit_code;
    outcome->signal = reply->signal;
    outcome->verdict =
        run->is_check && reply->outcome == OUTCOME_OK ? reply->verdict : VERDICT_NONE;
    outcome->cpu_ns = reply->cpu_ns;
    outcome->peak_memory_bytes = reply->peak_memory_bytes;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", reply->detail);
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
    note_cut(reply, outcome);
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
        return refuse(outcome, problem.text);
    }
    *ret_files = (struct simulation_files){.a = input_bytes(run, operation->a),
                                           .b = input_bytes(run, operation->b)};
    if (!simulation_begin(run->program->simulates, operation, ret_files, &problem)) {
        return refuse(outcome, problem.text);
    }
    assert(operation->result != NULL); /* true for every product */
    /* The result's length is part of the shape. */
    return brings_back(run, operation->result) ||
           refuse(outcome, "on a simulated device the result must be among the outputs");
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
        (void)refuse(outcome, problem.text);
        return;
    }
    outcome->busy_ns = simulation.busy_ns;
    outcome->has_energy = simulation.energy_uj >= 0;
    outcome->energy_uj = outcome->has_energy ? simulation.energy_uj : 0;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", simulation.detail);
}

void program_run(const struct program *program, struct outcome *outcome, bool *ret_jail_ended)
{
    struct tensor_op operation = {.verb = TENSOR_MATMUL};
    struct simulation_files files = {.a = 0};
    struct run run = {.program = program};
    *ret_jail_ended = false;
    if (prepare(&run, outcome) &&
        (program->simulates == NULL || begin_simulation(&run, &operation, &files, outcome))) {
        static _Thread_local struct jail_reply reply; /* large; one per lane's thread */
        memset(&reply, 0, sizeof reply);
        int64_t before_ns = clock_monotonic_ns();
        jail_run(program->jail, &run.request, &reply);
        read_reply(&run, &reply, outcome);
        *ret_jail_ended = reply.jail_ended;
        jail_reply_fini(&reply); /* the next run needs the space */
        outcome->busy_ns = clock_monotonic_ns() - before_ns;
        if (program->simulates != NULL) {
            end_simulation(&run, &operation, &files, outcome);
        }
    }
    run_clear(&run);
}
