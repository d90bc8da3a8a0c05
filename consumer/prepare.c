#include "consumer/prepare.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "consumer/client.h"
#include "protocol/codec.h"
#include "runtime/clock.h"
#include "runtime/files.h"

#include <assert.h>
#include <inttypes.h>
#include <libgen.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB_FILE_BYTES_MAX = 1 << 20, LINES_BYTES_MAX = LIMIT_MANIFEST_BYTES, NUMBER_SIZE = 24 };

void bourse_job_destroy(struct bourse_job **self)
{
    struct bourse_job *job = *self;
    if (job != NULL) {
        job_file_destroy(&job->file);
        input_list_fini(&job->own);
        input_list_fini(&job->shared);
        input_list_fini(&job->image);
        free(job->made.items);
        free(job->manifest);
        free(job);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- subtasks */

/* The values of a job's subtasks, before they are encoded: pointers into one block of text. */
struct subtasks {
    Bourse__V1__ManifestSubtask *items;
    Bourse__V1__ManifestSubtask **pointers;
    Bourse__V1__ManifestInput *inputs;
    Bourse__V1__ManifestInput **input_pointers;
    char *text;
    size_t count; /* 0: an array from 0 in steps of 1, or a single subtask: the index says it all */
};

static void subtasks_fini(struct subtasks *subtasks)
{
    free(subtasks->items);
    free(subtasks->pointers);
    free(subtasks->inputs);
    free(subtasks->input_pointers);
    free(subtasks->text);
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
        return true; /* the index says it all, or nobody reads it */
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

/* Cuts `text` into lines in place; empty ones are left out. */
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

static bool subtasks_of_lines(struct bourse_job *job, const char *folder, struct subtasks *subtasks,
                              struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    CLEANUP(input_list_fini) struct input_list found = {.items = NULL};
    size_t length = 0;
    if (!expand_file(folder, job->file->lines, &found, &problem) ||
        !file_read(found.items[0].path, LINES_BYTES_MAX, (uint8_t **)&subtasks->text, &length,
                   &problem)) {
        return client_fail(error, BOURSE_LOCAL, "lines: %s", problem.text);
    }
    if (memchr(subtasks->text, '\0', length) != NULL) {
        return client_fail(error, BOURSE_USAGE, "lines: '%s' holds a NUL; it must be text",
                           job->file->lines);
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

static bool make_subtasks(struct bourse_job *job, const char *folder, struct subtasks *subtasks,
                          struct bourse_error *error)
{
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

/* ---------------------------------------------------------------- the manifest */

static bool encode(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                   struct bourse_error *error)
{
    /* Sized before anything is allocated: a job can be far larger than a manifest may be. */
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

/* What the agents will check when they read it, checked before anything is paid for. */
static bool check_manifest(const struct bourse_job *job, struct bourse_error *error)
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
    return client_fail(error, BOURSE_USAGE,
                       "the job cannot be sent: %s is out of its range (%" PRId64 ", limit %" PRId64
                       "), or holds control characters or bytes that are not UTF-8",
                       refused.field[0] != '\0' ? refused.field : "a field", refused.value,
                       refused.limit);
}

static void limits_to_wire(const struct job_file *file, Bourse__V1__ManifestLimits *limits)
{
    bourse__v1__manifest_limits__init(limits);
    limits->has_wall_ms = 1;
    limits->wall_ms = file->limit_ms;
    limits->has_cpu_ms = file->limits.cpu_ms > 0;
    limits->cpu_ms = file->limits.cpu_ms;
    limits->has_memory_bytes = file->limits.memory_bytes > 0;
    limits->memory_bytes = file->limits.memory_bytes;
    limits->has_disk_bytes = file->limits.disk_bytes > 0;
    limits->disk_bytes = file->limits.disk_bytes;
    limits->has_output_bytes = file->limits.output_bytes > 0;
    limits->output_bytes = file->limits.output_bytes;
    limits->has_processes = file->limits.processes > 0;
    limits->processes = file->limits.processes;
}

/* The lists of a manifest whose lengths are small. */
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
    for (size_t i = 0; i < file->env_count; i++) {
        bourse__v1__manifest_variable__init(&lists->variables[i]);
        lists->variables[i].name = file->env[i].name;
        lists->variables[i].value = file->env[i].value;
        lists->variable_pointers[i] = &lists->variables[i];
    }
    for (size_t i = 0; i < job->shared.count; i++) {
        input_to_wire(&job->shared.items[i], &lists->shared[i]);
        lists->shared_pointers[i] = &lists->shared[i];
    }
    limits_to_wire(file, &lists->limits);
    manifest->n_environment = file->env_count;
    manifest->environment = lists->variable_pointers;
    manifest->n_shared = job->shared.count;
    manifest->shared = lists->shared_pointers;
    manifest->limits = &lists->limits;
    return true;
}

bool prepare_manifest(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                      struct bourse_error *error)
{
    return encode(job, manifest, error) && check_manifest(job, error);
}

static bool make_manifest(struct bourse_job *job, const char *folder, struct bourse_error *error)
{
    static char command_executor[] = "command";
    static char noop_executor[] = "noop";
    static char tensor_executor[] = "tensor";
    struct job_file *file = job->file;
    CLEANUP(subtasks_fini) struct subtasks subtasks = {.items = NULL};
    if (!make_subtasks(job, folder, &subtasks, error)) {
        return false;
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
    manifest.n_outputs = file->outputs.count;
    manifest.outputs = file->outputs.items;
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
    manifest.has_expect_ms = file->expect_ms != JOB_ABSENT;
    manifest.expect_ms = manifest.has_expect_ms ? job->expect_ms : 0;
    bool ok = fill_lists(job, lists, &manifest, error) && prepare_manifest(job, &manifest, error);
    free(lists);
    return ok;
}

/* ---------------------------------------------------------------- needs */

bool prepare_need(struct bourse_job *job, const char *name, const char *text,
                  struct bourse_error *error)
{
    struct requirement_node node = {.op = REQUIREMENT_EQ, .attribute = {.is_text = true}};
    client_copy(node.attribute.name, sizeof node.attribute.name, name);
    client_copy(node.attribute.text, sizeof node.attribute.text, text);
    bool alone = job->needs.count == 0;
    if (job->needs.count + (alone ? 1 : 2) > REQUIREMENT_NODES_MAX) {
        return client_fail(error, BOURSE_USAGE, "needs: at most %d terms besides the %s",
                           REQUIREMENT_NODES_MAX - 2, name);
    }
    job->needs.nodes[job->needs.count++] = node;
    if (!alone) {
        job->needs.nodes[job->needs.count++] =
            (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    }
    return true;
}

/* A host program must be one that the provider offers: that is part of what the job needs. */
static bool add_program(struct bourse_job *job, struct bourse_error *error)
{
    const struct job_file *file = job->file;
    job->needs = file->needs;
    if (file->is_noop) {
        return prepare_need(job, "executor", "noop", error); /* older agents do not have it */
    }
    if (file->is_tensor) {
        return prepare_need(job, "executor", "tensor", error); /* not every device has it */
    }
    const char *program = file->run.items[0];
    if (file->image != NULL || program[0] == '{') {
        return true; /* the image brings it, or the subtask's own file is the program */
    }
    if (strlen(program) >= ATTRIBUTE_TEXT_SIZE) {
        return client_fail(error, BOURSE_USAGE, "run: a host program's name has at most %d bytes",
                           ATTRIBUTE_TEXT_SIZE - 1);
    }
    return prepare_need(job, "program", program, error);
}

/* ---------------------------------------------------------------- whole */

/* Where the trouble with an input was said: "job.yaml:4: files: ..."; `bourse run` has no file. */
static bool input_failed(const char *file_name, unsigned line, const char *key,
                         const struct problem *problem, struct bourse_error *error)
{
    if (file_name != NULL && line > 0) {
        return client_fail(error, BOURSE_USAGE, "%s:%u: %s: %s", file_name, line, key,
                           problem->text);
    }
    return client_fail(error, BOURSE_USAGE, "%s: %s", key, problem->text);
}

enum { TAR_MAGIC_OFFSET = 257, TAR_HEADER_BYTES = 512 };

/* An image is a plain tar: compressed ones are the commonest mistake, and would fail far away. */
static bool check_image(const struct input_file *image, struct problem *ret_problem)
{
    uint8_t header[TAR_HEADER_BYTES];
    uint64_t size = 0;
    int fd = input_open(image->path, &size, ret_problem);
    if (fd < 0) {
        return false;
    }
    ssize_t got = pread(fd, header, sizeof header, 0);
    (void)close(fd); /* read only: nothing to lose */
    if (got == (ssize_t)sizeof header && memcmp(header + TAR_MAGIC_OFFSET, "ustar", 5) == 0) {
        return true;
    }
    problem_set(ret_problem,
                "%s is not a plain tar archive; make one with `tar -cf` (no compression)",
                image->name);
    return false;
}

static bool find_inputs(struct bourse_job *job, const char *folder, const char *file_name,
                        struct bourse_error *error)
{
    const struct job_file *file = job->file;
    struct problem problem = {.text = ""};
    if (file->source == TEMPLATE_LINES) {
        CLEANUP(input_list_fini) struct input_list lines = {.items = NULL};
        if (!expand_file(folder, file->lines, &lines, &problem) ||
            !input_list_hash(&lines, 0, &problem)) {
            return input_failed(file_name, file->source_line, "lines", &problem, error);
        }
    }
    if (file->source == TEMPLATE_EACH &&
        (!expand_patterns(folder, file->each.items, file->each.count, &job->own, &problem) ||
         !input_list_hash(&job->own, 0, &problem))) {
        return input_failed(file_name, file->source_line, "each", &problem, error);
    }
    bool ok = true;
    for (size_t i = 0; ok && i < file->files.count; i++) {
        ok = expand_file(folder, file->files.items[i], &job->shared, &problem);
    }
    if (!ok || !input_list_hash(&job->shared, 0, &problem)) {
        return input_failed(file_name, file->files_line, "files", &problem, error);
    }
    if (file->image != NULL && (!expand_file(folder, file->image, &job->image, &problem) ||
                                !input_list_hash(&job->image, 0, &problem) ||
                                !check_image(&job->image.items[0], &problem))) {
        return input_failed(file_name, file->image_line, "image", &problem, error);
    }
    return true;
}

static int name_order(const void *key, const void *item)
{
    return strcmp(key, ((const struct input_file *)item)->name);
}

/* In the work folder of a subtask, its own file and the shared ones lie side by side. */
static bool check_shared(const struct bourse_job *job, struct bourse_error *error)
{
    for (size_t i = 0; i < job->shared.count; i++) {
        const char *name = job->shared.items[i].name;
        bool twice = job->own.count > 0 && bsearch(name, job->own.items, job->own.count,
                                                   sizeof *job->own.items, name_order) != NULL;
        for (size_t k = 0; k < i; k++) {
            twice = twice || strcmp(job->shared.items[k].name, name) == 0;
        }
        if (twice) {
            return client_fail(error, BOURSE_USAGE, "files: '%s' is given twice", name);
        }
    }
    return true;
}

bool prepare_job(struct job_file *file, const char *folder, const char *file_name,
                 struct bourse_job **ret_job, struct bourse_error *error)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        job_file_destroy(&file);
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    job->file = file;
    job->id = entropy_id();
    job->expect_ms = file->expect_ms != JOB_ABSENT ? file->expect_ms : PREPARE_EXPECT_MS_DEFAULT;
    if (job->expect_ms > file->limit_ms) {
        job->expect_ms = file->limit_ms;
    }
    if (!find_inputs(job, folder, file_name, error) || !check_shared(job, error) ||
        !make_manifest(job, folder, error) || !add_program(job, error)) {
        return false;
    }
    *ret_job = job;
    job = NULL;
    return true;
}

static bool parse(const char *text, size_t length, const char *file_name, const char *folder,
                  struct bourse_job **ret_job, struct bourse_error *error)
{
    if (sodium_init() < 0) {
        return client_fail(error, BOURSE_LOCAL, "libsodium does not start");
    }
    struct problem problem = {.text = ""};
    struct job_file *file = job_file_parse(text, length, file_name, &problem);
    if (file == NULL) {
        return client_fail(error, BOURSE_USAGE, "%s", problem.text);
    }
    return prepare_job(file, folder, file_name, ret_job, error);
}

bool bourse_job_parse(const char *text, size_t length, const char *folder,
                      struct bourse_job **ret_job, struct bourse_error *ret_error)
{
    return parse(text, length, "job", folder, ret_job, ret_error);
}

bool bourse_job_load(const char *path, struct bourse_job **ret_job, struct bourse_error *ret_error)
{
    struct problem problem = {.text = ""};
    uint8_t *text = NULL;
    size_t length = 0;
    if (!file_read(path, JOB_FILE_BYTES_MAX, &text, &length, &problem)) {
        return client_fail(ret_error, BOURSE_LOCAL, "%s", problem.text);
    }
    char *copy = strdup(path);
    bool ok =
        copy != NULL && parse((const char *)text, length, path, dirname(copy), ret_job, ret_error);
    if (copy == NULL) {
        (void)client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    free(copy);
    free(text);
    return ok;
}

void bourse_job_summary(const struct bourse_job *job, struct bourse_job_summary *ret_summary)
{
    *ret_summary = (struct bourse_job_summary){
        .name = job->file->name,
        .program = job->file->is_noop ? "noop" : job->file->run.items[0],
        .subtasks = job->subtasks,
        .inputs = job->own.count + job->shared.count + job->image.count,
        .skipped = job->own.skipped,
        .slots = job->file->slots,
        .at_most = job->file->at_most,
        .budget_micro = job->file->budget_micro,
        .cap_micro = job->file->cap_micro,
        .limit_ms = job->file->limit_ms,
        .term_ms = job->file->term_ms,
        .expect_ms = job->expect_ms,
        .expect_is_guess = job->file->expect_ms == JOB_ABSENT,
    };
    const struct input_list *lists[] = {&job->own, &job->shared, &job->image};
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            ret_summary->input_bytes += lists[l]->items[i].size;
        }
    }
    ret_summary->inputs += job->made.count;
    for (size_t i = 0; i < job->made.count; i++) {
        ret_summary->input_bytes += job->made.items[i].size;
    }
    text_hex(job->manifest_hash.bytes, sizeof job->manifest_hash.bytes, ret_summary->manifest);
}
