/* This file makes the manifest of a prepared job. */
#include "consumer/job/manifest.h"

#include "consumer/job/supply.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/job/manifest_refusal.h"
#include "consumer/job/result_checks.h"
#include "protocol/codec.h"
#include "runtime/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_BYTES_MAX = LIMIT_MANIFEST_BYTES, NUMBER_SIZE = 24 };

/* ---------------------------------------------------------------- subtasks */

/* These are the values of a job's subtasks before encoding; they point into one block of text. */
struct subtasks {
    Bourse__V1__ManifestSubtask *items;
    Bourse__V1__ManifestSubtask **pointers;
    Bourse__V1__ManifestInput *inputs;
    Bourse__V1__ManifestInput **input_pointers;
    char *text;
    Bourse__V1__ManifestTask *tasks; /* the following fields are for tasks */
    Bourse__V1__ManifestLimits *limits;
    Bourse__V1__ManifestVariable *variables;
    Bourse__V1__ManifestVariable **variable_pointers;
    Bourse__V1__ManifestFrom *from;
    Bourse__V1__ManifestFrom **from_pointers;
    size_t count; /* 0: the index says everything, as in a single subtask or an array from 0 by 1 */
};

static void subtasks_fini(struct subtasks *subtasks)
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

static bool subtasks_allocate(struct subtasks *subtasks, size_t count, size_t input_count)
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

static void input_to_wire(struct input_file *file, Bourse__V1__ManifestInput *wire)
{
    bourse__v1__manifest_input__init(wire);
    wire->name = file->name;
    wire->hash = client_bytes(file->hash.bytes, sizeof file->hash.bytes);
    wire->size = file->size;
}

static bool subtasks_of_files(struct bourse_job *job, struct subtasks *subtasks,
                              struct bourse_error *error)
{
    if (!subtasks_allocate(subtasks, job->own.count, job->own.count)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; i < job->own.count; i++) {
        input_to_wire(&job->own.items[i], &subtasks->inputs[i]);
        subtasks->input_pointers[i] = &subtasks->inputs[i];
        subtasks->items[i].value = job->own.items[i].name;
        subtasks->items[i].n_inputs = 1;
        subtasks->items[i].inputs = &subtasks->input_pointers[i];
    }
    job->subtasks = job->own.count;
    return true;
}

static bool subtasks_of_range(struct bourse_job *job, struct subtasks *subtasks,
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

static bool subtasks_of_lines(struct bourse_job *job, const char *folder, struct subtasks *subtasks,
                              struct bourse_error *error)
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

static void limits_to_wire(int64_t limit_ms, const struct job_limits *asked,
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

static bool allocate_tasks(const struct job_file *file, struct subtasks *subtasks)
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

static void variables_to_wire(const struct job_variable *env, size_t count,
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
        limits_to_wire(task->limit_ms, &task->limits, limits);
        wire->limits = limits;
    }
}

static void fill_tasks(struct bourse_job *job, const uint32_t *place_of, struct subtasks *subtasks)
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
        variables_to_wire(task->env, task->env_count, subtasks->variables + variables,
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

static bool subtasks_of_tasks(struct bourse_job *job, struct subtasks *subtasks,
                              struct bourse_error *error)
{
    const struct job_file *file = job->file;
    uint32_t *place_of = calloc(file->task_count, sizeof *place_of);
    bool good = place_of != NULL && subtasks_allocate(subtasks, file->task_count, job->own.count) &&
                allocate_tasks(file, subtasks);
    if (good) {
        for (size_t i = 0; i < job->own.count; i++) {
            input_to_wire(&job->own.items[i], &subtasks->inputs[i]);
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

static bool make_subtasks(struct bourse_job *job, const char *folder, struct subtasks *subtasks,
                          struct bourse_error *error)
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

/* ---------------------------------------------------------------- terms */

/* A job that continues this one needs these terms: SubmitJob's fields without prices. */
struct terms {
    Bourse__V1__ManifestTerms wire;
    Bourse__V1__ManifestPart parts[ORDER_PARTS_MAX];
    Bourse__V1__ManifestPart *part_pointers[ORDER_PARTS_MAX];
};

static void terms_fini(struct terms *terms)
{
    for (size_t i = 0; i < terms->wire.n_parts; i++) {
        codec_requirement_free(&terms->parts[i].needs);
    }
}

static bool terms_make(const struct bourse_job *job, struct terms *terms)
{
    bourse__v1__manifest_terms__init(&terms->wire);
    terms->wire.verify = job->file->verify;
    terms->wire.retries = job->file->retries;
    terms->wire.has_error_limit = job->file->error_limit != JOB_ABSENT;
    terms->wire.error_limit = terms->wire.has_error_limit ? (uint32_t)job->file->error_limit : 0;
    terms->wire.has_crash_limit = job->file->crash_limit != JOB_ABSENT;
    terms->wire.crash_limit = terms->wire.has_crash_limit ? (uint32_t)job->file->crash_limit : 0;
    terms->wire.has_interruptions = job->file->interruptions != JOB_ABSENT;
    terms->wire.interruptions =
        terms->wire.has_interruptions ? (uint32_t)job->file->interruptions : 0;
    terms->wire.has_good_till_ms = job->file->good_till_at_ms > 0;
    terms->wire.good_till_ms = job->file->good_till_at_ms;
    terms->wire.has_good_for_ms = job->file->good_till_ms > 0;
    terms->wire.good_for_ms = job->file->good_till_ms;
    terms->wire.capped = limit_is_set(job->file->cap_micro) || job->file->value.rate != RATE_NONE;
    terms->wire.parts = terms->part_pointers;
    for (size_t i = 0; i < job->part_count; i++) {
        const struct order_part *part = &job->parts[i];
        Bourse__V1__ManifestPart *wire = &terms->parts[i];
        bourse__v1__manifest_part__init(wire);
        wire->subtasks = part->subtasks;
        wire->slots = part->slots;
        wire->at_most = part->at_most;
        wire->limit_ms = part->limit_ms;
        wire->term_ms = part->term_ms;
        wire->expect_ns = part->expect_ns;
        wire->needs = codec_requirement_to_wire(&part->needs);
        if (wire->needs == NULL) {
            return false;
        }
        terms->part_pointers[terms->wire.n_parts++] = wire;
    }
    return true;
}

/* ---------------------------------------------------------------- what goes in */

static int64_t added_bytes(int64_t sum, uint64_t more)
{
    int64_t result;
    const int64_t bounded = more > INT64_MAX ? INT64_MAX : (int64_t)more;
    return checked_add(sum, bounded, &result) ? result : INT64_MAX;
}

static int64_t files_bytes(const Bourse__V1__Manifest *manifest)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < manifest->n_shared; i++) {
        bytes = added_bytes(bytes, manifest->shared[i]->size);
    }
    return bytes;
}

int64_t manifest_shared_bytes(const Bourse__V1__Manifest *manifest)
{
    return added_bytes(files_bytes(manifest), manifest->has_image_size ? manifest->image_size : 0);
}

int64_t manifest_own_bytes(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    int64_t bytes = 0;
    for (size_t i = 0; index < manifest->n_subtasks && i < manifest->subtasks[index]->n_inputs;
         i++) {
        bytes = added_bytes(bytes, manifest->subtasks[index]->inputs[i]->size);
    }
    return bytes;
}

/* ---------------------------------------------------------------- encoding */

static bool encode(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                   struct bourse_error *error)
{
    /* The size comes before any allocation, because a job can far exceed a manifest's limit. */
    size_t size = protobuf_c_message_get_packed_size(&manifest->base);
    if (size > LIMIT_MANIFEST_BYTES) {
        return client_fail(
            error, BOURSE_USAGE,
            "the list of subtasks takes %zu bytes, a manifest at most %d; split the job", size,
            LIMIT_MANIFEST_BYTES);
    }
    job->manifest = codec_encode(&manifest->base, &job->manifest_length);
    if (job->manifest == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    job->manifest_hash = sha256_of(job->manifest, job->manifest_length);
    return true;
}

/* The agents will do this check too; here it comes before anything is paid. */
static bool check_manifest(const struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                           struct bourse_error *error)
{
    Bourse__V1__Manifest *decoded = NULL;
    struct codec_error refused = {.field = ""};
    enum codec_status status =
        codec_decode_manifest(job->manifest, job->manifest_length, &decoded, &refused);
    if (status == CODEC_OK) {
        ProtobufCMessage *message = &decoded->base;
        codec_free(&message);
        return true;
    }
    if (status == CODEC_OUT_OF_MEMORY) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    char text[BOURSE_TEXT_SIZE];
    manifest_refusal_text(manifest, &refused, text, sizeof text);
    return client_fail(error, BOURSE_USAGE, "%s", text);
}

/* Every slot has at least this much disk (provider/config.h). Needs are stated in multiples of
 * it. */
#define ROOM_STEP_BYTES (INT64_C(1) << 20)

/* A continued job already has such a need. */
static bool has_least(const struct requirement *needs, const char *name, int64_t least)
{
    for (uint32_t i = needs->count;
         i >= 2 && needs->nodes[i - 1].op == REQUIREMENT_AND && needs->nodes[i - 1].arity == 2 &&
         needs->nodes[i - 2].op == REQUIREMENT_GE;
         i -= 2) {
        const struct attribute *of = &needs->nodes[i - 2].attribute;
        if (strcmp(of->name, name) == 0 && of->number >= least) {
            return true;
        }
    }
    return false;
}

/* A device must have room for the inputs. The size of files between tasks is not known yet. */
static bool need_room(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                      struct bourse_error *error)
{
    const int64_t shared_bytes = files_bytes(manifest);
    uint32_t index = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        struct order_part *part = &job->parts[i];
        int64_t most_bytes = 0;
        for (uint32_t end = index + part->subtasks; index < end; index++) {
            const int64_t own_bytes = manifest_own_bytes(manifest, index);
            most_bytes = own_bytes > most_bytes ? own_bytes : most_bytes;
        }
        const int64_t step_bytes = ROOM_STEP_BYTES * part->slots;
        const int64_t bytes = added_bytes(shared_bytes, (uint64_t)most_bytes);
        const int64_t steps = bytes / step_bytes + (bytes % step_bytes > 0);
        const int64_t least_bytes = steps > 1 ? steps * ROOM_STEP_BYTES : 0;
        if (least_bytes > 0 && !has_least(&part->needs, "disk", least_bytes) &&
            !order_add_least(&part->needs, "disk", least_bytes)) {
            return client_fail(error, BOURSE_USAGE,
                               "needs: at most %d terms besides the room for its files",
                               REQUIREMENT_NODES_MAX - 2);
        }
    }
    return true;
}

/* A device must be able to unpack the image. */
static bool need_image(struct bourse_job *job, struct bourse_error *error)
{
    bool good = true;
    for (size_t i = 0; i < job->part_count && good; i++) {
        good = order_add_image(&job->parts[i].needs, job->image_has.entries, job->image_has.bytes);
    }
    return good || client_fail(error, BOURSE_USAGE,
                               "needs: at most %d terms besides the room for its image",
                               REQUIREMENT_NODES_MAX - 6);
}

bool manifest_finish(struct bourse_job *job, Bourse__V1__Manifest *manifest,
                     struct bourse_error *error)
{
    CLEANUP(result_checks_destroy) struct result_checks *checks = NULL;
    if (!result_checks_add(job, manifest, &checks, error) || !need_image(job, error) ||
        !need_room(job, manifest, error)) {
        return false;
    }
    struct terms *terms = calloc(1, sizeof *terms);
    if (terms == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    bool good = terms_make(job, terms) || client_fail(error, BOURSE_LOCAL, "out of memory");
    manifest->terms = &terms->wire;
    good = good && encode(job, manifest, error) && check_manifest(job, manifest, error);
    manifest->terms = NULL;
    terms_fini(terms);
    free(terms);
    return good;
}

/* A job that fits nowhere has no plan. */
static void write_plan(Bourse__V1__ManifestTerms *terms, const struct bourse_quote *quote)
{
    const bool is_planned = quote->makespan_ns > 0 && quote->expected_micro >= 0;
    terms->has_planned_ns = terms->has_planned_micro = is_planned;
    terms->planned_ns = is_planned ? quote->makespan_ns : 0;
    terms->planned_micro = is_planned ? quote->expected_micro : 0;
    terms->has_planned_slots = is_planned && quote->slots_now > 0;
    terms->planned_slots = terms->has_planned_slots ? quote->slots_now : 0;
}

/* The terms point to these values while they are encoded. */
struct planned {
    Bourse__V1__ManifestPlace *items;
    Bourse__V1__ManifestPlace **pointers;
    Bourse__V1__ManifestClass classes[LIST_SCHEDULE_CLASSES];
    Bourse__V1__ManifestClass *class_pointers[LIST_SCHEDULE_CLASSES];
    Bourse__V1__ManifestTime *times; /* times of all classes */
    Bourse__V1__ManifestTime **time_pointers;
};
static_assert((int)LIST_SCHEDULE_CLASSES <= (int)LIMIT_CLASSES, "a manifest keeps all of them");

static void planned_fini(struct planned *planned)
{
    free(planned->items);
    free(planned->pointers);
    free(planned->times);
    free(planned->time_pointers);
}

/* Writes the time of each unit of the job on each class, when places have unlike speeds. */
static bool write_classes(const struct bourse_job *job, const struct supply *supply,
                          Bourse__V1__ManifestTerms *terms, struct planned *planned)
{
    const size_t units = history_units(job);
    const size_t count = supply->class_count * units;
    if (terms->n_planned == 0 || supply->figures == NULL) {
        return true;
    }
    planned->times = calloc(count, sizeof *planned->times);
    planned->time_pointers = calloc(count, sizeof(void *));
    if (planned->times == NULL || planned->time_pointers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bourse__v1__manifest_time__init(&planned->times[i]);
        planned->times[i].takes_ns = supply->figures[i].takes_ns;
        planned->time_pointers[i] = &planned->times[i];
    }
    for (size_t i = 0; i < supply->class_count; i++) {
        bourse__v1__manifest_class__init(&planned->classes[i]);
        planned->classes[i].n_times = units;
        planned->classes[i].times = &planned->time_pointers[i * units];
        planned->class_pointers[i] = &planned->classes[i];
    }
    terms->n_classes = supply->class_count;
    terms->classes = planned->class_pointers;
    return true;
}

static bool write_places(Bourse__V1__ManifestTerms *terms, const struct supply *supply,
                         struct planned *planned)
{
    planned->items = calloc(supply->count + 1, sizeof *planned->items);
    planned->pointers = calloc(supply->count + 1, sizeof(void *));
    if (planned->items == NULL || planned->pointers == NULL) {
        return false;
    }
    for (size_t i = 0; i < supply->count; i++) {
        bourse__v1__manifest_place__init(&planned->items[i]);
        planned->items[i].slots = supply->places[i].slots.slots;
        planned->items[i].parts = supply->places[i].slots.parts;
        planned->items[i].has_slot_uw = supply->places[i].slot_uw > 0;
        planned->items[i].slot_uw = (uint64_t)supply->places[i].slot_uw;
        planned->items[i].has_device_slots = supply->places[i].widest > 0;
        planned->items[i].device_slots = supply->places[i].widest;
        planned->items[i].has_of_class = supply->places[i].slots.of_class > 0;
        planned->items[i].of_class = supply->places[i].slots.of_class;
        planned->pointers[i] = &planned->items[i];
    }
    terms->n_planned = terms->has_planned_ns ? supply->count : 0;
    terms->planned = planned->pointers;
    return true;
}

/* Writes the time of each subtask that differs from its part's: tasks with their own times, and
 * work on inputs of unlike size. */
static void write_subtasks(const struct bourse_job *job, Bourse__V1__Manifest *manifest)
{
    uint32_t index = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        for (uint32_t k = 0; k < job->parts[i].subtasks; k++, index++) {
            const int64_t takes_ns = supply_takes_ns(job, i, index);
            const bool is_own = takes_ns != job->parts[i].expect_ns;
            if (index >= manifest->n_subtasks) {
                return; /* all are alike */
            }
            manifest->subtasks[index]->has_expect_ns = is_own;
            manifest->subtasks[index]->expect_ns = is_own ? takes_ns : 0;
        }
    }
}

bool manifest_expect(struct bourse_job *job, const struct bourse_quote *quote,
                     const struct supply *supply, struct bourse_error *error)
{
    struct planned planned = {.items = NULL};
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (job->learned.is_written) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    Bourse__V1__ManifestTerms *terms = manifest->terms;
    for (size_t i = 0; terms != NULL && i < terms->n_parts && i < job->part_count; i++) {
        terms->parts[i]->expect_ns = job->parts[i].expect_ns;
    }
    write_subtasks(job, manifest);
    if (terms != NULL) {
        write_plan(terms, quote);
    }
    uint8_t *before = job->manifest;
    const size_t length = job->manifest_length;
    const bool has_room = terms == NULL || (write_places(terms, supply, &planned) &&
                                            write_classes(job, supply, terms, &planned));
    const bool good =
        has_room ? encode(job, manifest, error) : client_fail(error, BOURSE_LOCAL, "out of memory");
    if (terms != NULL) { /* the manifest does not own these */
        terms->n_planned = 0;
        terms->planned = NULL;
        terms->n_classes = 0;
        terms->classes = NULL;
    }
    planned_fini(&planned);
    if (good) {
        free(before);
        job->learned.is_written = true;
    } else {
        job->manifest = before;
        job->manifest_length = length;
    }
    return good;
}

/* ---------------------------------------------------------------- what tasks take */

bool manifest_takes_files(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestTask *task =
        index < manifest->n_subtasks ? manifest->subtasks[index]->task : NULL;
    for (size_t i = 0; task != NULL && i < task->n_from; i++) {
        if (task->from[i]->output != NULL) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- all */

/* The lists of a manifest that have a small bound are here. */
struct lists {
    Bourse__V1__ManifestVariable variables[LIMIT_VARIABLES];
    Bourse__V1__ManifestVariable *variable_pointers[LIMIT_VARIABLES];
    Bourse__V1__ManifestInput shared[LIMIT_INPUTS];
    Bourse__V1__ManifestInput *shared_pointers[LIMIT_INPUTS];
    Bourse__V1__ManifestLimits limits;
};

static bool fill_lists(struct bourse_job *job, struct lists *lists, Bourse__V1__Manifest *manifest,
                       struct bourse_error *error)
{
    const struct job_file *file = job->file;
    if (file->env_count > LIMIT_VARIABLES || job->shared.count >= LIMIT_INPUTS) {
        return client_fail(error, BOURSE_USAGE, "at most %d variables and %d shared files",
                           LIMIT_VARIABLES, LIMIT_INPUTS - 1);
    }
    variables_to_wire(file->env, file->env_count, lists->variables, lists->variable_pointers);
    for (size_t i = 0; i < job->shared.count; i++) {
        input_to_wire(&job->shared.items[i], &lists->shared[i]);
        lists->shared_pointers[i] = &lists->shared[i];
    }
    limits_to_wire(file->limit_ms, &file->limits, &lists->limits);
    manifest->n_environment = file->env_count;
    manifest->environment = lists->variable_pointers;
    manifest->n_shared = job->shared.count;
    manifest->shared = lists->shared_pointers;
    manifest->limits = &lists->limits;
    return true;
}

bool manifest_make(struct bourse_job *job, const char *folder, struct bourse_error *error)
{
    static char command_executor[] = "command";
    static char noop_executor[] = "noop";
    static char tensor_executor[] = "tensor";
    struct job_file *file = job->file;
    CLEANUP(subtasks_fini) struct subtasks subtasks = {.items = NULL};
    if (!make_subtasks(job, folder, &subtasks, error)) {
        return false;
    }
    if (job_file_has_checkpoints(file) && job->subtasks > LIMIT_GRAPH_SUBTASKS) {
        return client_fail(error, BOURSE_USAGE,
                           "checkpoint: %" PRIu64 " subtasks; at most %d of a job save their state",
                           job->subtasks, LIMIT_GRAPH_SUBTASKS);
    }
    if (file->task_count == 0) {
        job->parts[0].subtasks = (uint32_t)job->subtasks;
    }
    struct lists *lists = calloc(1, sizeof *lists);
    if (lists == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = file->is_noop     ? noop_executor
                        : file->is_tensor ? tensor_executor
                                          : command_executor;
    manifest.name = file->name;
    manifest.n_arguments = file->run.count;
    manifest.arguments = file->run.items;
    manifest.standard_input = file->standard_input;
    manifest.checkpoint = file->checkpoint;
    if (file->task_count == 0) { /* a task has its own outputs */
        manifest.n_outputs = file->outputs.count;
        manifest.outputs = file->outputs.items;
    }
    if (job->image.count == 1) {
        struct input_file *image = &job->image.items[0];
        manifest.has_image = 1;
        manifest.image = client_bytes(image->hash.bytes, sizeof image->hash.bytes);
        manifest.has_image_size = 1;
        manifest.image_size = image->size;
    }
    manifest.n_subtasks = subtasks.count;
    manifest.subtasks = subtasks.pointers;
    manifest.subtask_count = (uint32_t)job->subtasks;
    manifest.has_expect_ns = file->expect_ms != JOB_ABSENT;
    manifest.expect_ns =
        manifest.has_expect_ns ? order_expect_ns(file->expect_ms, file->limit_ms) : 0;
    bool ok = fill_lists(job, lists, &manifest, error) && manifest_finish(job, &manifest, error);
    free(lists);
    return ok;
}
