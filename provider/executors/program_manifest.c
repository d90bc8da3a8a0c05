/* This file reads from a manifest which inputs a subtask has, and checks the manifest once. */
#include "base/checked.h"
#include "formats/template.h"
#include "protocol/subtask.h"
#include "provider/executors/program.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
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

bool program_is_taken(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        for (size_t k = 0; task != NULL && k < task->n_from; k++) {
            if (task->from[k]->output != NULL && task->from[k]->task == index) {
                return true;
            }
        }
    }
    return false;
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

/* A no-op is no program, and has a check of its own. */
static bool is_executor(const char *name)
{
    static const char *const names[] = {"command", "tensor", "kernel", "plugin", "wasm", "onnx"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = found || strcmp(name, names[i]) == 0;
    }
    return found;
}

bool program_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    if (manifest->version != 1 || !is_executor(manifest->executor)) {
        problem_set(ret_problem,
                    "this agent runs manifests of version 1 for the executors \"command\", "
                    "\"noop\", \"tensor\", \"kernel\", \"plugin\", \"wasm\" and \"onnx\"");
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
    if (manifest->terminal != NULL &&
        (strcmp(manifest->executor, "command") != 0 || manifest->standard_input != NULL)) {
        problem_set(ret_problem, "a terminal is for a program without a standard input of its own");
        return false;
    }
    return templates_good(manifest, ret_problem);
}
