#include "protocol/subtask.h"

#include <string.h>

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

/* ---------------------------------------------------------------- numbers of an array */

/* A number of an array has no sign and no zero before it, and fits in 63 bits. */
static bool read_number(const char *text, uint64_t *ret_number)
{
    enum { DIGITS_MAX = 18 };
    const size_t length = strlen(text);
    if (length == 0 || length > DIGITS_MAX || (text[0] == '0' && length > 1) ||
        strspn(text, "0123456789") != length) {
        return false;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_number = number;
    return true;
}

static bool uses_lines(const Bourse__V1__Manifest *manifest)
{
    static const char line[] = "{line}";
    bool uses = manifest->standard_input != NULL && strstr(manifest->standard_input, line) != NULL;
    for (size_t i = 0; i < manifest->n_arguments; i++) {
        uses = uses || strstr(manifest->arguments[i], line) != NULL;
    }
    for (size_t i = 0; i < manifest->n_environment; i++) {
        uses = uses || strstr(manifest->environment[i]->value, line) != NULL;
    }
    for (size_t i = 0; i < manifest->n_outputs; i++) {
        uses = uses || strstr(manifest->outputs[i], line) != NULL;
    }
    return uses;
}

bool subtask_is_array(const Bourse__V1__Manifest *manifest)
{
    uint64_t before = 0;
    size_t count = 0;
    for (; count < manifest->n_subtasks && manifest->subtasks[count]->task == NULL; count++) {
        const Bourse__V1__ManifestSubtask *subtask = manifest->subtasks[count];
        uint64_t number = 0;
        if (subtask->value == NULL || subtask->n_inputs > 0 ||
            !read_number(subtask->value, &number) || (count > 0 && number <= before)) {
            return false;
        }
        before = number;
    }
    return count > 0 && !uses_lines(manifest);
}

uint64_t subtask_number(const Bourse__V1__Manifest *manifest, bool is_array, uint32_t index)
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    uint64_t number = index;
    if (subtask == NULL || subtask->task != NULL || subtask->n_inputs > 0) {
        return number;
    }
    if (is_array && subtask->value != NULL) {
        (void)read_number(subtask->value, &number); /* an array has nothing but numbers */
    } else if (subtask->value == NULL && subtask->has_number) {
        number = subtask->number; /* the rest of an array that counts from 0 */
    }
    return number;
}
