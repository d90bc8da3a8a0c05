#include "consumer/job/manifest_subtasks.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "runtime/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_BYTES_MAX = LIMIT_MANIFEST_BYTES, NUMBER_SIZE = 24 };

void manifest_subtasks_fini(struct manifest_subtasks *subtasks)
{
    free(subtasks->items);
    free(subtasks->pointers);
    free(subtasks->inputs);
    free(subtasks->input_pointers);
    free(subtasks->text);
    free(subtasks->tasks);
    free(subtasks->limits);
    free(subtasks->variables);
    free(subtasks->variable_pointers);
    free(subtasks->from);
    free(subtasks->from_pointers);
}

static bool subtasks_allocate(struct manifest_subtasks *subtasks, size_t count, size_t input_count)
{
    subtasks->items = calloc(count + 1, sizeof *subtasks->items);
    subtasks->pointers = calloc(count + 1, sizeof(void *));
    subtasks->inputs = calloc(input_count + 1, sizeof *subtasks->inputs);
    subtasks->input_pointers = calloc(input_count + 1, sizeof(void *));
    if (subtasks->items == NULL || subtasks->pointers == NULL || subtasks->inputs == NULL ||
        subtasks->input_pointers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bourse__v1__manifest_subtask__init(&subtasks->items[i]);
        subtasks->pointers[i] = &subtasks->items[i];
    }
    subtasks->count = count;
    return true;
}

void manifest_input_to_wire(struct input_file *file, Bourse__V1__ManifestInput *wire)
{
    bourse__v1__manifest_input__init(wire);
    wire->name = file->name;
    wire->hash = client_bytes(file->hash.bytes, sizeof file->hash.bytes);
    wire->size = file->size;
    wire->has_executable = file->is_executable;
    wire->executable = file->is_executable;
}

static bool subtasks_of_files(struct bourse_job *job, struct manifest_subtasks *subtasks,
                              struct bourse_error *error)
{
    if (!subtasks_allocate(subtasks, job->own.count, job->own.count)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; i < job->own.count; i++) {
        manifest_input_to_wire(&job->own.items[i], &subtasks->inputs[i]);
        subtasks->input_pointers[i] = &subtasks->inputs[i];
        subtasks->items[i].value = job->own.items[i].name;
        subtasks->items[i].n_inputs = 1;
        subtasks->items[i].inputs = &subtasks->input_pointers[i];
    }
    job->subtasks = job->own.count;
    return true;
}

static bool subtasks_of_range(struct bourse_job *job, struct manifest_subtasks *subtasks,
                              struct bourse_error *error)
{
    const struct range *range = &job->file->array;
    job->subtasks = (uint64_t)range_count(range);
    if ((range->first == 0 && range->step == 1) || job->file->is_noop) {
        return true; /* the index says everything, or nobody reads the value */
    }
    size_t count = (size_t)job->subtasks;
    subtasks->text = malloc(count * NUMBER_SIZE);
    if (subtasks->text == NULL || !subtasks_allocate(subtasks, count, 0)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        char *number = subtasks->text + i * NUMBER_SIZE;
        (void)snprintf(number, NUMBER_SIZE, "%" PRId64, range_at(range, (int64_t)i));
        subtasks->items[i].value = number;
    }
    return true;
}

/* Cuts `text` into lines in place and leaves out empty ones. */
static size_t cut_lines(char *text, size_t length, Bourse__V1__ManifestSubtask *ret_items)
{
    size_t count = 0;
    char *end = text + length;
    for (char *line = text; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop == NULL ? end : stop;
        char *next = stop + 1;
        if (stop > line && stop[-1] == '\r') {
            stop--;
        }
        if (stop > line) {
            if (ret_items != NULL) {
                *stop = '\0';
                ret_items[count].value = line;
            }
            count++;
        }
        line = next;
    }
    return count;
}

/* Returns the first control character in UTF-8 text but tabs and a final return, or 0. */
static uint32_t control_in(const char *text, size_t length)
{
    size_t size = 0;
    for (size_t at = 0; at < length; at += size) {
        uint32_t point = text_code_point(text + at, length - at, &size);
        if ((point < 0x20 && point != '\t' && point != '\r') || (point >= 0x7f && point < 0xa0)) {
            return point;
        }
    }
    return 0;
}

static bool subtasks_of_lines(struct bourse_job *job, const char *folder,
                              struct manifest_subtasks *subtasks, struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    CLEANUP(input_list_fini) struct input_list found = {.items = NULL};
    size_t length = 0;
    if (!input_list_add_file(folder, job->file->lines, &found, &problem) ||
        !file_read(found.items[0].path, LINES_BYTES_MAX, (uint8_t **)&subtasks->text, &length,
                   &problem)) {
        return client_fail(error, BOURSE_LOCAL, "lines: %s", problem.text);
    }
    if (memchr(subtasks->text, '\0', length) != NULL) {
        return client_fail(error, BOURSE_USAGE, "lines: '%s' holds a NUL; it must be text",
                           job->file->lines);
    }
    static const char byte_order_mark[] = {'\xef', '\xbb', '\xbf'};
    if (length >= sizeof byte_order_mark &&
        memcmp(subtasks->text, byte_order_mark, sizeof byte_order_mark) == 0) {
        /* Some editors begin a text with this mark, which is not part of the first line. */
        length -= sizeof byte_order_mark;
        memmove(subtasks->text, subtasks->text + sizeof byte_order_mark, length);
    }
    unsigned number = 1;
    for (const char *line = subtasks->text, *end = line + length; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop == NULL ? end : stop;
        if (!text_is_utf8(line, (size_t)(stop - line))) {
            return client_fail(error, BOURSE_USAGE,
                               "%s:%u: not UTF-8, as arguments of a job are; `iconv -t utf-8` "
                               "makes it so",
                               job->file->lines, number);
        }
        uint32_t control = control_in(line, (size_t)(stop - line));
        if (control != 0) {
            return client_fail(error, BOURSE_USAGE,
                               "%s:%u: the control character %#" PRIx32
                               "; arguments of a job are text, in which only tabs are taken",
                               job->file->lines, number, control);
        }
        if (stop - line > LIMIT_ARGUMENT_BYTES) {
            return client_fail(error, BOURSE_USAGE,
                               "%s:%u: %td bytes; an argument of a job has at most %d",
                               job->file->lines, number, stop - line, LIMIT_ARGUMENT_BYTES);
        }
        line = stop + 1;
    }
    size_t count = cut_lines(subtasks->text, length, NULL);
    if (count == 0) {
        return client_fail(error, BOURSE_USAGE, "lines: '%s' has no line", job->file->lines);
    }
    if (!subtasks_allocate(subtasks, count, 0)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    (void)cut_lines(subtasks->text, length, subtasks->items);
    job->subtasks = count;
    return true;
}

/* ---------------------------------------------------------------- tasks */

void manifest_limits_to_wire(int64_t limit_ms, const struct job_limits *asked,
                             Bourse__V1__ManifestLimits *limits)
{
    bourse__v1__manifest_limits__init(limits);
    limits->has_wall_ms = 1;
    limits->wall_ms = limit_ms;
    limits->has_cpu_ms = asked->cpu_ms > 0;
    limits->cpu_ms = asked->cpu_ms;
    limits->has_memory_bytes = asked->memory_bytes > 0;
    limits->memory_bytes = asked->memory_bytes;
    limits->has_disk_bytes = asked->disk_bytes > 0;
    limits->disk_bytes = asked->disk_bytes;
    limits->has_output_bytes = asked->output_bytes > 0;
    limits->output_bytes = asked->output_bytes;
    limits->has_processes = asked->processes > 0;
    limits->processes = asked->processes;
}

static bool allocate_tasks(const struct job_file *file, struct manifest_subtasks *subtasks)
{
    size_t count = file->task_count;
    size_t variables = 0;
    size_t waits = 0;
    for (size_t i = 0; i < count; i++) {
        variables += file->tasks[i].env_count;
        waits += file->tasks[i].wait_count;
    }
    subtasks->tasks = calloc(count, sizeof *subtasks->tasks);
    subtasks->limits = calloc(count, sizeof *subtasks->limits);
    subtasks->variables = calloc(variables + 1, sizeof *subtasks->variables);
    subtasks->variable_pointers = calloc(variables + 1, sizeof(void *));
    subtasks->from = calloc(waits + 1, sizeof *subtasks->from);
    subtasks->from_pointers = calloc(waits + 1, sizeof(void *));
    return subtasks->tasks != NULL && subtasks->limits != NULL && subtasks->variables != NULL &&
           subtasks->variable_pointers != NULL && subtasks->from != NULL &&
           subtasks->from_pointers != NULL;
}

void manifest_variables_to_wire(const struct job_variable *env, size_t count,
                                Bourse__V1__ManifestVariable *variables,
                                Bourse__V1__ManifestVariable **pointers)
{
    for (size_t i = 0; i < count; i++) {
        bourse__v1__manifest_variable__init(&variables[i]);
        variables[i].name = env[i].name;
        variables[i].value = env[i].value;
        pointers[i] = &variables[i];
    }
}

/* `place_of` gives the place of each task of the file. */
static void from_to_wire(const struct job_task *task, const uint32_t *place_of,
                         Bourse__V1__ManifestFrom *from, Bourse__V1__ManifestFrom **pointers)
{
    for (size_t i = 0; i < task->wait_count; i++) {
        bourse__v1__manifest_from__init(&from[i]);
        from[i].task = place_of[task->waits[i].task];
        from[i].name = task->waits[i].name;
        from[i].output = task->waits[i].output;
        pointers[i] = &from[i];
    }
}

static bool same_limits(const struct job_file *file, const struct job_task *task)
{
    const struct job_limits *a = &file->limits;
    const struct job_limits *b = &task->limits;
    return file->limit_ms == task->limit_ms && a->cpu_ms == b->cpu_ms &&
           a->memory_bytes == b->memory_bytes && a->disk_bytes == b->disk_bytes &&
           a->output_bytes == b->output_bytes && a->processes == b->processes;
}

/* Writes the task's own terms; the manifest has the job's. Outputs are written in full, because an
 * empty list means none. */
static void task_to_wire(const struct job_file *file, const struct job_task *task,
                         Bourse__V1__ManifestLimits *limits, Bourse__V1__ManifestTask *wire)
{
    const struct job_strings *outputs = job_task_outputs(file, task);
    bourse__v1__manifest_task__init(wire);
    wire->name = task->name;
    wire->n_arguments = task->run.count;
    wire->arguments = task->run.items;
    wire->standard_input = task->standard_input;
    wire->n_outputs = outputs->count;
    wire->outputs = outputs->items;
    wire->n_environment = task->env_count;
    wire->n_from = task->wait_count;
    wire->checkpoint = task->checkpoint;
    if (!same_limits(file, task)) {
        manifest_limits_to_wire(task->limit_ms, &task->limits, limits);
        wire->limits = limits;
    }
}

static void fill_tasks(struct bourse_job *job, const uint32_t *place_of,
                       struct manifest_subtasks *subtasks)
{
    const struct job_file *file = job->file;
    size_t variables = 0;
    size_t waits = 0;
    for (size_t i = 0; i < file->task_count; i++) {
        const struct job_task *task = &file->tasks[job->order[i]];
        size_t first = job->own_of[job->order[i]];
        Bourse__V1__ManifestSubtask *subtask = &subtasks->items[i];
        Bourse__V1__ManifestTask *wire = &subtasks->tasks[i];
        task_to_wire(file, task, &subtasks->limits[i], wire);
        manifest_variables_to_wire(task->env, task->env_count, subtasks->variables + variables,
                                   subtasks->variable_pointers + variables);
        wire->environment = subtasks->variable_pointers + variables;
        from_to_wire(task, place_of, subtasks->from + waits, subtasks->from_pointers + waits);
        wire->from = subtasks->from_pointers + waits;
        subtask->task = wire;
        subtask->n_inputs = job->own_of[job->order[i] + 1] - first;
        subtask->inputs = &subtasks->input_pointers[first];
        variables += task->env_count;
        waits += task->wait_count;
    }
}

static bool subtasks_of_tasks(struct bourse_job *job, struct manifest_subtasks *subtasks,
                              struct bourse_error *error)
{
    const struct job_file *file = job->file;
    uint32_t *place_of = calloc(file->task_count, sizeof *place_of);
    bool good = place_of != NULL && subtasks_allocate(subtasks, file->task_count, job->own.count) &&
                allocate_tasks(file, subtasks);
    if (good) {
        for (size_t i = 0; i < job->own.count; i++) {
            manifest_input_to_wire(&job->own.items[i], &subtasks->inputs[i]);
            subtasks->input_pointers[i] = &subtasks->inputs[i];
        }
        for (size_t i = 0; i < file->task_count; i++) {
            place_of[job->order[i]] = (uint32_t)i;
        }
        fill_tasks(job, place_of, subtasks);
    }
    free(place_of);
    return good || client_fail(error, BOURSE_LOCAL, "out of memory");
}

bool manifest_subtasks_make(struct bourse_job *job, const char *folder,
                            struct manifest_subtasks *subtasks, struct bourse_error *error)
{
    if (job->file->task_count > 0) {
        return subtasks_of_tasks(job, subtasks, error);
    }
    switch (job->file->source) {
    case TEMPLATE_EACH:
        return subtasks_of_files(job, subtasks, error);
    case TEMPLATE_ARRAY:
        return subtasks_of_range(job, subtasks, error);
    case TEMPLATE_LINES:
        return subtasks_of_lines(job, folder, subtasks, error);
    case TEMPLATE_ONE:
    case TEMPLATE_ANY:
        break;
    }
    job->subtasks = 1;
    return true;
}
