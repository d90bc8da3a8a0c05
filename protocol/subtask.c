#include "protocol/subtask.h"

#include <stdbool.h>

const Bourse__V1__ManifestSubtask *subtask_at(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    return index < manifest->n_subtasks ? manifest->subtasks[index] : NULL;
}

const Bourse__V1__ManifestTask *subtask_task(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    return subtask == NULL ? NULL : subtask->task;
}

struct subtask_terms subtask_terms(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    static const Bourse__V1__ManifestSubtask bare = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    static const Bourse__V1__ManifestTask silent = BOURSE__V1__MANIFEST_TASK__INIT;
    const Bourse__V1__ManifestSubtask *listed = subtask_at(manifest, index);
    const Bourse__V1__ManifestSubtask *subtask = listed == NULL ? &bare : listed;
    const Bourse__V1__ManifestTask *task = subtask->task == NULL ? &silent : subtask->task;
    bool has_arguments = task->n_arguments > 0;
    bool has_outputs = task->n_outputs > 0;
    bool has_input = task->name == NULL && subtask->n_inputs > 0;
    return (struct subtask_terms){
        .number = subtask->has_number ? subtask->number : index,
        .value = task->name != NULL ? task->name : subtask->value, /* {out} is out/NAME */
        .input = has_input ? subtask->inputs[0]->name : NULL,
        .arguments = has_arguments ? task->arguments : manifest->arguments,
        .argument_count = has_arguments ? task->n_arguments : manifest->n_arguments,
        .outputs = has_outputs ? task->outputs : manifest->outputs,
        .output_count = has_outputs ? task->n_outputs : manifest->n_outputs,
        .standard_input =
            task->standard_input != NULL ? task->standard_input : manifest->standard_input,
        .checkpoint = task->checkpoint != NULL ? task->checkpoint : manifest->checkpoint,
        .limits = task->limits != NULL ? task->limits : manifest->limits,
    };
}
