#include "provider/executors/noop.h"

#include "runtime/clock.h"

#include <assert.h>
#include <string.h>

bool noop_names(const Bourse__V1__Manifest *manifest)
{
    return strcmp(manifest->executor, "noop") == 0;
}

/* A task of a graph has a name and waits for others; a no-op can do nothing else. */
static bool is_bare(const Bourse__V1__ManifestSubtask *subtask)
{
    const Bourse__V1__ManifestTask *task = subtask->task;
    if (task == NULL || subtask->n_inputs != 0 || task->n_arguments != 0 ||
        task->n_environment != 0 || task->n_outputs != 0 || task->standard_input != NULL) {
        return false;
    }
    for (size_t i = 0; i < task->n_from; i++) {
        if (task->from[i]->output != NULL) {
            return false;
        }
    }
    return true;
}

bool noop_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    if (manifest->version != 1) {
        problem_set(ret_problem, "this agent runs manifests of version 1");
        return false;
    }
    if (manifest->n_arguments != 0 || manifest->n_environment != 0 || manifest->n_outputs != 0 ||
        manifest->n_shared != 0 || manifest->has_image || manifest->standard_input != NULL) {
        problem_set(ret_problem, "a no-op has no program and no files");
        return false;
    }
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        if (!is_bare(manifest->subtasks[i])) {
            problem_set(ret_problem, "a no-op has no program and no files");
            return false;
        }
    }
    return true;
}

void noop_run(struct jail *jail, struct outcome *const *outcomes, size_t count,
              bool *ret_jail_ended)
{
    assert(count > 0 && count <= JAIL_NOOPS_MAX);
    uint32_t subtasks[JAIL_NOOPS_MAX];
    for (size_t i = 0; i < count; i++) {
        subtasks[i] = outcomes[i]->work.index;
    }
    int64_t before_ns = clock_monotonic_ns();
    bool answered = jail_noops(jail, subtasks, count);
    int64_t each_ns = (clock_monotonic_ns() - before_ns) / (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        if (answered) {
            outcomes[i]->result = OUTCOME_OK;
            outcomes[i]->ran = true;
            outcomes[i]->pipeline = JAIL_NOOPS_MAX;
            outcomes[i]->busy_ns = each_ns;
        } else {
            outcome_fail(outcomes[i], OUTCOME_JAIL_FAILED, "the jail has ended");
            outcomes[i]->fault = DEVICE_FAULT_OTHER;
        }
    }
    *ret_jail_ended = !answered;
}
