#include "consumer/job/job_build.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/job/image/image_use.h"
#include "consumer/job/input/job_inputs.h"
#include "consumer/job/input_check.h"
#include "consumer/job/manifest.h"
#include "consumer/job/program/own_program.h"
#include "consumer/model/model_generate.h"
#include "consumer/model/model_job.h"
#include "consumer/model/model_stages.h"
#include "consumer/train/train_job.h"
#include "formats/kernel/kernel_op.h"
#include "formats/limits.h"
#include "formats/tar.h"
#include "formats/template.h"
#include "planner/cost/measured_times.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/entropy.h"
#include "runtime/files.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB_FILE_BYTES_MAX = FORMAT_FILE_BYTES };

void bourse_job_destroy(struct bourse_job **self)
{
    struct bourse_job *job = *self;
    if (job != NULL) {
        job_inputs_fini(job);
        job_file_destroy(&job->file);
        free(job->made.items);
        model_stages_destroy(&job->stages);
        train_job_destroy(&job->training);
        order_graph_fini(&job->graph);
        free(job->expect_ns);
        measured_times_destroy(&job->learned.times);
        free(job->learned.works);
        free(job->parts);
        free(job->order);
        free(job->manifest);
        free(job->file_name);
        free(job->start.directory);
        free(job);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- parts */

struct bourse_job *job_build_begin(struct job_file *file)
{
    struct bourse_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        job_file_destroy(&file);
        return NULL;
    }
    job->file = file;
    job->id = entropy_id();
    job->parts = calloc(ORDER_PARTS_MAX, sizeof *job->parts);
    if (job->parts == NULL) {
        bourse_job_destroy(&job);
    }
    return job;
}

/* A host program is part of the needs, because the provider must offer it. */
bool job_build_part(struct bourse_job *job, struct bourse_error *error)
{
    const struct job_file *file = job->file;
    struct order_part *part = &job->parts[0];
    const char *program = order_program(file, &file->run);
    if (program != NULL && strlen(program) >= ATTRIBUTE_TEXT_SIZE) {
        return client_fail(error, BOURSE_USAGE, "run: a host program's name has at most %d bytes",
                           ATTRIBUTE_TEXT_SIZE - 1);
    }
    *part = (struct order_part){.subtasks = (uint32_t)job->subtasks,
                                .needs = file->needs,
                                .slots = file->slots,
                                .at_most = file->at_most,
                                .limit_ms = file->limit_ms,
                                .term_ms = file->term_ms,
                                .expect_ns = order_expect_ns(file->expect_ms, file->limit_ms)};
    job->part_count = 1;
    const char *executor = order_executor(file);
    const char *field = file->is_plugin ? "operation" : "program";
    if ((executor == NULL || order_add_need(&part->needs, "executor", executor)) &&
        (program == NULL || order_add_need(&part->needs, field, program)) &&
        (!file->is_kernel ||
         order_add_need(&part->needs, "api",
                        kernel_op_api_word(kernel_op_api(file->run.items[0]))))) {
        return true;
    }
    return client_fail(error, BOURSE_USAGE, "needs: at most %d terms besides those of the %s",
                       REQUIREMENT_NODES_MAX - 2, executor != NULL ? executor : "program");
}

/* A device must run the machine code, start programs as a container image says, and have a terminal
 * for a program that needs one. */
static bool add_start_needs(struct bourse_job *job, struct bourse_error *error)
{
    const char *arch = job->program.arch != NULL ? job->program.arch : job->start.arch;
    const bool has_config = job->start.directory != NULL || job->start.has_user;
    bool good = true;
    for (size_t i = 0; good && i < job->part_count; i++) {
        struct requirement *needs = &job->parts[i].needs;
        /* A job of unknown machine code stays off devices that run no programs. */
        good = (arch != NULL
                    ? order_add_need(needs, "arch", arch)
                    : job->file->image == NULL || (order_add_other(needs, "executor", "kernel") &&
                                                   order_add_other(needs, "executor", "plugin"))) &&
               (!has_config || order_add_least(needs, "image_config", 1)) &&
               (job->file->terminal.columns == 0 || order_add_least(needs, "terminal", 1)) &&
               (!job_rounds_to(job->file, TENSOR_TF32) || order_add_least(needs, "tf32", 1)) &&
               (!job_rounds_to(job->file, TENSOR_BF16) || order_add_least(needs, "bf16", 1));
    }
    return good || client_fail(error, BOURSE_USAGE,
                               "needs: too many terms; at most %d may stand beside the machine "
                               "code of the program, and how it starts",
                               REQUIREMENT_NODES_MAX - 3);
}

static bool make_tasks(struct bourse_job *job, struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    struct order *order = order_tasks(job->file, &problem);
    if (order == NULL) {
        return client_fail(error, BOURSE_USAGE, "%s", problem.text);
    }
    job->order = order->task;
    order->task = NULL;
    job->graph = order->graph;
    order->graph = (struct order_graph){.rank = NULL};
    memcpy(job->parts, order->parts, order->part_count * sizeof *order->parts);
    job->part_count = order->part_count;
    job->subtasks = job->file->task_count;
    order_destroy(&order);
    return true;
}

/* ---------------------------------------------------------------- whole */

static int name_order(const void *key, const void *item)
{
    return strcmp(key, ((const struct input_file *)item)->name);
}

static bool is_own(const struct bourse_job *job, const char *name)
{
    return job->own_of == NULL && job->own.count > 0 &&
           bsearch(name, job->own.items, job->own.count, sizeof *job->own.items, name_order) !=
               NULL;
}

static bool is_named(const struct input_list *list, size_t from, size_t to, const char *name)
{
    for (size_t i = from; i < to; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool check_task_names(const struct bourse_job *job, size_t index, struct bourse_error *error)
{
    const struct job_task *task = &job->file->tasks[index];
    size_t from = job->own_of[index];
    size_t to = job->own_of[index + 1];
    const char *twice = NULL;
    for (size_t i = from; twice == NULL && i < to; i++) {
        const char *name = job->own.items[i].name;
        bool again = is_named(&job->own, from, i, name) ||
                     is_named(&job->shared, 0, job->shared.count, name);
        twice = again ? name : NULL;
    }
    for (size_t i = 0; twice == NULL && i < task->wait_count; i++) {
        const char *name = task->waits[i].name;
        bool again = name != NULL && (is_named(&job->own, from, to, name) ||
                                      is_named(&job->shared, 0, job->shared.count, name));
        twice = again ? name : NULL;
    }
    return twice == NULL || client_fail(error, BOURSE_USAGE,
                                        "tasks: two files of %s would be '%s' in its work folder",
                                        task->name, twice);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds a name that two shared files or links have, or one of them and a file of `each:`. The names
 * are sorted, because a folder may have many. Returns false when memory is short. */
static bool find_shared_twice(const struct bourse_job *job, const char **ret_name)
{
    size_t count = job->shared.count;
    const char **names = calloc(count + job->tree.links + 1, sizeof *names);
    if (names == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = job->shared.items[i].name;
    }
    for (size_t i = 0; i < job->tree.count; i++) {
        if (job->tree.items[i].kind == WORK_TREE_LINK) {
            names[count++] = job->tree.items[i].name;
        }
    }
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i < count && *ret_name == NULL; i++) {
        if (is_own(job, names[i]) || (i > 0 && strcmp(names[i - 1], names[i]) == 0)) {
            *ret_name = names[i];
        }
    }
    free(names);
    return true;
}

/* A subtask's own files, the outputs that it takes and the shared files lie side by side in its
 * work folder. */
static bool check_shared(const struct bourse_job *job, struct bourse_error *error)
{
    const char *twice = NULL;
    if (!find_shared_twice(job, &twice)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (twice != NULL) {
        return client_fail(error, BOURSE_USAGE, "files: '%s' is given twice", twice);
    }
    for (size_t i = 0; job->own_of != NULL && i < job->file->task_count; i++) {
        if (!check_task_names(job, i, error)) {
            return false;
        }
    }
    return true;
}

static bool check_named(const struct bourse_job *job, const char *folder,
                        struct bourse_error *error)
{
    unsigned line = 0;
    struct problem problem = {.text = ""};
    return input_check_job(job, folder, &line, &problem) ||
           job_inputs_failed(job->file_name, line, "run", &problem, error);
}

/* Returns the least size of the message part that hands on a task's outputs. A task without one of
 * its outputs fails, so all are counted. */
static size_t least_given(const struct job_file *file, const struct job_task *task)
{
    enum { INDEX_BYTES = 2, OUTPUT_BYTES = 40 }; /* bytes of an output without its name */
    const struct job_strings *outputs = job_task_outputs(file, task);
    size_t bytes = INDEX_BYTES;
    for (size_t i = 0; i < outputs->count; i++) {
        bytes += OUTPUT_BYTES - 1 +
                 template_size(outputs->items[i], &(struct template_values){.value = task->name});
    }
    return bytes;
}

/* Outputs that can never be handed on are refused before anything is paid. */
static bool check_given(const struct bourse_job *job, struct bourse_error *error)
{
    enum { HEAD_BYTES = 4 }; /* the market counts them for each task */
    const struct job_file *file = job->file;
    const struct order_graph *graph = &job->graph;
    struct problem problem = {.text = ""};
    const uint32_t *after = graph->after;
    for (size_t i = 0; graph->after_count != NULL && i < graph->count; i++) {
        const struct job_task *task = &file->tasks[job->order[i]];
        size_t bytes = 0;
        for (const uint32_t *end = after + graph->after_count[i]; after < end; after++) {
            const struct job_task *from = &file->tasks[job->order[*after]];
            const size_t given = least_given(file, from);
            if (given > LIMIT_GIVEN_BYTES) {
                problem_set(&problem,
                            "names and hashes of what %s leaves to others take %zu bytes, at most "
                            "%d can be handed on; fewer files, or shorter names",
                            from->name, given, LIMIT_GIVEN_BYTES);
                return job_inputs_failed(job->file_name, from->line, "outputs", &problem, error);
            }
            bytes += given + HEAD_BYTES;
        }
        if (bytes > LIMIT_GIVEN_WORK_BYTES) {
            problem_set(&problem,
                        "names and hashes of what the %" PRIu32 " tasks leave that %s waits for "
                        "take %zu bytes, at most %d can be handed on to one; let tasks between "
                        "gather them",
                        graph->after_count[i], task->name, bytes, LIMIT_GIVEN_WORK_BYTES);
            return job_inputs_failed(job->file_name, task->line, "after", &problem, error);
        }
    }
    return true;
}

/* The piped bytes are the subtask's own file, and `each:` without patterns has no others. */
static bool add_piped(struct bourse_job *job, int piped_fd, struct problem *ret_problem)
{
    struct job_file *file = job->file;
    if (!input_list_add_held(&job->own, piped_fd, "standard input", JOB_BUILD_PIPED_NAME,
                             ret_problem)) {
        return false;
    }
    assert(file->source == TEMPLATE_ONE);
    file->source = TEMPLATE_EACH;
    if (!job_file_set(&file->standard_input, "{in}")) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    return true;
}

static bool build(struct job_file *file, const char *folder, const char *file_name, int piped_fd,
                  struct bourse_job **ret_job, struct bourse_error *error)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = job_build_begin(file);
    if (job == NULL && piped_fd >= 0) {
        (void)close(piped_fd); /* the file has no name and ends here */
    }
    if (job == NULL || (file_name != NULL && (job->file_name = strdup(file_name)) == NULL)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    struct problem problem = {.text = ""};
    if (!own_program_add(job, folder, &problem)) {
        if (piped_fd >= 0) {
            (void)close(piped_fd); /* the file has no name and ends here */
        }
        return job_inputs_failed(file_name, file->run_line, "run", &problem, error);
    }
    if (!model_job_settle(job, folder, &problem) ||
        !model_generate_settle(job->file, folder, &problem) ||
        !train_job_settle(job, folder, &problem)) {
        if (piped_fd >= 0) {
            (void)close(piped_fd); /* the file has no name and ends here */
        }
        return job_inputs_failed(file_name, file->run_line, file_name != NULL ? "model" : "run",
                                 &problem, error);
    }
    if (piped_fd >= 0 && !add_piped(job, piped_fd, &problem)) {
        return job_inputs_failed(file_name, 0, "stdin", &problem, error);
    }
    if (!image_use(job, folder, &problem)) {
        return job_inputs_failed(file_name, file->image_line, "image", &problem, error);
    }
    bool parted = file->task_count > 0 ? make_tasks(job, error) : job_build_part(job, error);
    if (!parted || !add_start_needs(job, error) || !check_given(job, error) ||
        !job_inputs_find(job, folder, file_name, error) || !check_shared(job, error) ||
        !check_named(job, folder, error) || !job_inputs_hash(job, file_name, error) ||
        !manifest_make(job, folder, error)) {
        return false;
    }
    *ret_job = job;
    job = NULL;
    return true;
}

struct editing {
    job_file_edit *edit; /* NULL: the file is taken as it is */
    void *context;
};

bool job_build(struct job_file *file, const char *folder, const char *file_name,
               struct bourse_job **ret_job, struct bourse_error *error)
{
    return build(file, folder, file_name, -1, ret_job, error);
}

bool job_build_piped(struct job_file *file, const char *folder, int piped_fd,
                     struct bourse_job **ret_job, struct bourse_error *error)
{
    return build(file, folder, NULL, piped_fd, ret_job, error);
}

static bool parse(const char *text, size_t length, const char *file_name, const char *folder,
                  const struct editing *editing, struct bourse_job **ret_job,
                  struct bourse_error *error)
{
    if (sodium_init() < 0) {
        return client_fail(error, BOURSE_LOCAL, "libsodium cannot be initialised on this machine");
    }
    struct problem problem = {.text = ""};
    struct job_file *file = job_file_parse(text, length, file_name, &problem);
    if (file == NULL) {
        return client_fail(error, BOURSE_USAGE, "%s", problem.text);
    }
    if (editing->edit != NULL && !editing->edit(editing->context, file, &problem)) {
        job_file_destroy(&file);
        return client_fail(error, BOURSE_USAGE, "%s", problem.text);
    }
    return job_build(file, folder, file_name, ret_job, error);
}

bool bourse_job_parse(const char *text, size_t length, const char *folder,
                      struct bourse_job **ret_job, struct bourse_error *ret_error)
{
    const struct editing none = {.edit = NULL};
    return parse(text, length, "job", folder, &none, ret_job, ret_error);
}

bool bourse_job_load(const char *path, struct bourse_job **ret_job, struct bourse_error *ret_error)
{
    return job_build_load(path, NULL, NULL, ret_job, ret_error);
}

bool job_build_load(const char *path, job_file_edit *edit, void *context,
                    struct bourse_job **ret_job, struct bourse_error *ret_error)
{
    const struct editing editing = {.edit = edit, .context = context};
    struct problem problem = {.text = ""};
    uint8_t *text = NULL;
    size_t length = 0;
    if (!file_read(path, JOB_FILE_BYTES_MAX, &text, &length, &problem)) {
        return client_fail(ret_error, BOURSE_LOCAL, "%s", problem.text);
    }
    char *copy = strdup(path);
    bool ok = copy != NULL &&
              parse((const char *)text, length, path, dirname(copy), &editing, ret_job, ret_error);
    if (copy == NULL) {
        (void)client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    free(copy);
    free(text);
    return ok;
}
