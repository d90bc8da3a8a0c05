#include "consumer/job/tasks.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/job/result_checks.h"
#include "protocol/subtask.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct bourse_tasks {
    Bourse__V1__Manifest *manifest;
    bool is_array;
};

bool tasks_well_formed(const Bourse__V1__Manifest *manifest)
{
    bool has_tasks = subtask_task(manifest, 0) != NULL;
    uint32_t checks = result_checks_count(manifest);
    for (uint32_t i = 0; i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = subtask_task(manifest, i);
        bool is_check = i >= manifest->subtask_count - checks;
        if (!is_check && (task != NULL) != has_tasks) {
            return false;
        }
        for (size_t k = 0; task != NULL && k < task->n_from; k++) {
            if (task->from[k]->task >= i) {
                return false;
            }
        }
    }
    return true;
}

const char *tasks_name(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    return task == NULL ? NULL : task->name;
}

void tasks_label(const Bourse__V1__Manifest *manifest, uint32_t index,
                 char ret_text[TASKS_LABEL_SIZE])
{
    const char *name = manifest != NULL ? tasks_name(manifest, index) : NULL;
    if (name != NULL) {
        char printable[TASKS_LABEL_SIZE - sizeof "task"];
        bourse_printable(name, printable, sizeof printable);
        (void)snprintf(ret_text, TASKS_LABEL_SIZE, "task %s", printable);
        return;
    }
    const uint64_t number =
        manifest != NULL ? subtask_number(manifest, subtask_is_array(manifest), index) : index;
    (void)snprintf(ret_text, TASKS_LABEL_SIZE, "subtask %" PRIu64, number);
}

void tasks_label_of(struct bourse *client, const char *id, uint32_t index,
                    char ret_text[TASKS_LABEL_SIZE])
{
    struct bourse_error ignored; /* without the manifest, the index has to do */
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    (void)client_manifest(client, id, &manifest, &ignored);
    tasks_label(manifest, index, ret_text);
}

/* ---------------------------------------------------------------- for programs */

bool bourse_tasks(struct bourse *bourse, const char *id, struct bourse_tasks **ret_tasks,
                  struct bourse_error *ret_error)
{
    struct bourse_tasks *tasks = calloc(1, sizeof *tasks);
    if (tasks == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    if (!client_manifest(bourse, id, &tasks->manifest, ret_error)) {
        free(tasks);
        return false;
    }
    tasks->is_array = subtask_is_array(tasks->manifest);
    *ret_tasks = tasks;
    return true;
}

void bourse_tasks_destroy(struct bourse_tasks **self)
{
    if (*self != NULL) {
        codec_manifest_free(&(*self)->manifest);
        free(*self);
        *self = NULL;
    }
}

uint32_t bourse_tasks_count(const struct bourse_tasks *tasks)
{
    return tasks->manifest->subtask_count;
}

const char *bourse_task_name(const struct bourse_tasks *tasks, uint32_t index)
{
    return tasks_name(tasks->manifest, index);
}

uint64_t bourse_task_number(const struct bourse_tasks *tasks, uint32_t index)
{
    return subtask_number(tasks->manifest, tasks->is_array, index);
}

bool bourse_tasks_are_numbered(const struct bourse_tasks *tasks)
{
    const Bourse__V1__Manifest *manifest = tasks->manifest;
    const bool is_listed = manifest->n_subtasks > 0 && manifest->subtasks[0]->task == NULL &&
                           manifest->subtasks[0]->n_inputs == 0;
    return tasks->is_array ||
           (is_listed && manifest->subtasks[0]->value == NULL && manifest->subtasks[0]->has_number);
}

/* The text is a number as a range of an array writes it. */
static bool is_number_of(const struct bourse_tasks *tasks, uint32_t index, const char *text)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRIu64, bourse_task_number(tasks, index));
    return strcmp(number, text) == 0;
}

bool bourse_task_find(const struct bourse_tasks *tasks, const char *name, uint32_t *ret_index)
{
    const bool is_numbered = bourse_tasks_are_numbered(tasks);
    for (uint32_t i = 0; i < tasks->manifest->n_subtasks; i++) {
        const char *own = tasks_name(tasks->manifest, i);
        if (own != NULL ? strcmp(own, name) == 0 : is_numbered && is_number_of(tasks, i, name)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

size_t bourse_task_waits(const struct bourse_tasks *tasks, uint32_t index)
{
    const Bourse__V1__ManifestTask *task = subtask_task(tasks->manifest, index);
    return task == NULL ? 0 : task->n_from;
}

uint32_t bourse_task_wait(const struct bourse_tasks *tasks, uint32_t index, size_t position)
{
    assert(position < bourse_task_waits(tasks, index));
    return subtask_task(tasks->manifest, index)->from[position]->task;
}

uint32_t bourse_tasks_checks(const struct bourse_tasks *tasks)
{
    return result_checks_count(tasks->manifest);
}

bool bourse_tasks_continues(const struct bourse_tasks *tasks, char ret_id[BOURSE_ID_SIZE])
{
    if (tasks->manifest->has_continues) {
        text_hex(tasks->manifest->continues.data, tasks->manifest->continues.len, ret_id);
    }
    return tasks->manifest->has_continues;
}
