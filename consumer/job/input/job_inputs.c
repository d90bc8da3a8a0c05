#include "consumer/job/input/job_inputs.h"

#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/input/input_folder.h"
#include "consumer/job/program/own_program.h"
#include "consumer/model/model_stages.h"
#include "consumer/train/train_job.h"
#include "formats/limits.h"
#include "formats/tar.h"
#include "protocol/limits.h"
#include "runtime/files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The error names the place of a wrong input: "job.yaml:4: files: ...". `bourse run` has no
 * file. */
bool job_inputs_failed(const char *file_name, unsigned line, const char *key,
                       const struct problem *problem, struct bourse_error *error)
{
    if (file_name != NULL && line > 0) {
        return client_fail(error, BOURSE_USAGE, "%s:%u: %s: %s", file_name, line, key,
                           problem->text);
    }
    return client_fail(error, BOURSE_USAGE, "%s: %s", key, problem->text);
}

bool job_inputs_have_trees(const struct job_file *file)
{
    return !file->is_noop && !file->is_tensor && !file->is_kernel && !file->is_plugin &&
           !file->is_onnx;
}

static struct input_tree *tree_of(const struct bourse_job *job, struct input_tree *tree)
{
    return job_inputs_have_trees(job->file) ? tree : NULL;
}

void job_inputs_fini(struct bourse_job *job)
{
    for (size_t i = 0; job->own_trees != NULL && i < job->file->task_count; i++) {
        input_tree_fini(&job->own_trees[i]);
    }
    free(job->own_trees);
    input_tree_fini(&job->tree);
    input_list_fini(&job->own);
    input_list_fini(&job->shared);
    input_list_fini(&job->image);
    input_list_fini(&job->found);
    free(job->own_of);
}

static bool read_image(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const int *fd = context;
    return file_read_at(*fd, ret_bytes, length, offset);
}

/* An image that no provider would unpack is refused before anything is bought. Each provider bounds
 * the bytes of an image itself, so the job asks for as many (manifest.c). */
static bool check_image(const struct input_file *image, struct tar_limits *ret_has,
                        struct problem *ret_problem)
{
    const struct tar_limits limits = {.entries = LIMIT_IMAGE_FILES, .bytes = UINT64_MAX};
    struct tar_source source = {.read = read_image};
    struct problem why = {.text = ""};
    int fd = input_file_open(image, &source.size, ret_problem);
    if (fd < 0) {
        return false;
    }
    source.context = &fd;
    const enum tar_status status = tar_check(&source, &limits, ret_has, &why);
    (void)close(fd); /* read only: nothing to lose */
    if (status != TAR_OK) {
        problem_set(ret_problem, "%s is no image: %s", image->name, why.text);
    }
    return status == TAR_OK;
}

static bool expand_files(const char *folder, const struct job_strings *files, size_t most,
                         struct input_list *list, struct input_tree *tree,
                         struct problem *ret_problem)
{
    for (size_t i = 0; i < files->count; i++) {
        if (!input_folder_add(folder, files->items[i], most, list, tree, ret_problem)) {
            return false;
        }
    }
    return true;
}

static bool find_task_inputs(struct bourse_job *job, const char *folder, const char *file_name,
                             struct bourse_error *error)
{
    const struct job_file *file = job->file;
    struct problem problem = {.text = ""};
    job->own_of = calloc(file->task_count + 1, sizeof *job->own_of);
    job->own_trees = calloc(file->task_count, sizeof *job->own_trees);
    if (job->own_of == NULL || job->own_trees == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; i < file->task_count; i++) {
        job->own_of[i] = job->own.count;
        if (!expand_files(folder, &file->tasks[i].files, FORMAT_SHARED_FILES, &job->own,
                          tree_of(job, &job->own_trees[i]), &problem) ||
            !model_stages_add(job, i, &problem) || !train_job_add(job, i, &problem) ||
            !input_list_look(&job->own, job->own_of[i], &problem)) {
            return job_inputs_failed(file_name, file->tasks[i].line, "files", &problem, error);
        }
    }
    job->own_of[file->task_count] = job->own.count;
    return true;
}

static bool find_source(struct bourse_job *job, const char *folder, const char *file_name,
                        struct bourse_error *error)
{
    const struct job_file *file = job->file;
    struct problem problem = {.text = ""};
    if (file->source == TEMPLATE_LINES) {
        CLEANUP(input_list_fini) struct input_list lines = {.items = NULL};
        if (!input_list_add_file(folder, file->lines, &lines, &problem) ||
            !input_list_look(&lines, 0, &problem)) {
            return job_inputs_failed(file_name, file->source_line, "lines", &problem, error);
        }
    }
    if (file->source == TEMPLATE_EACH &&
        (!input_list_add_patterns(folder, file->each.items, file->each.count, &job->own,
                                  &problem) ||
         !input_list_look(&job->own, 0, &problem))) {
        return job_inputs_failed(file_name, file->source_line, "each", &problem, error);
    }
    return file->task_count == 0 || find_task_inputs(job, folder, file_name, error);
}

bool job_inputs_find(struct bourse_job *job, const char *folder, const char *file_name,
                     struct bourse_error *error)
{
    const struct job_file *file = job->file;
    struct problem problem = {.text = ""};
    struct input_tree *tree = tree_of(job, &job->tree);
    if (!find_source(job, folder, file_name, error)) {
        return false;
    }
    if (!expand_files(folder, &file->files, FORMAT_FOLDER_FILES, &job->shared, tree, &problem) ||
        !input_list_look(&job->shared, 0, &problem)) {
        return job_inputs_failed(file_name, file->files_line, "files", &problem, error);
    }
    if (file->workdir != NULL &&
        !input_folder_add_work(file->workdir, &job->shared, tree, &problem)) {
        return job_inputs_failed(file_name, 0, "workdir", &problem, error);
    }
    own_program_drop_again(job);
    if (job->shared.count > FORMAT_FOLDER_FILES) {
        problem_set(&problem, "%zu files are given; a job takes %d at most for all its subtasks",
                    job->shared.count, FORMAT_FOLDER_FILES);
        return job_inputs_failed(file_name, file->files_line, "files", &problem, error);
    }
    /* An image of libraries is there already. */
    if (file->image != NULL &&
        ((job->image.count == 0 &&
          !input_list_add_file(folder, file->image, &job->image, &problem)) ||
         !check_image(&job->image.items[0], &job->image_has, &problem))) {
        return job_inputs_failed(file_name, file->image_line, "image", &problem, error);
    }
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(struct input_file *const *)a)->path, (*(struct input_file *const *)b)->path);
}

/* Each file is hashed once, because many tasks may name it. */
static bool hash_task_files(struct bourse_job *job, struct problem *ret_problem)
{
    struct input_file **files = calloc(job->own.count + 1, sizeof *files);
    struct input_list one = {.count = 1};
    bool good = files != NULL;
    if (files == NULL) {
        problem_set(ret_problem, "out of memory");
    }
    for (size_t i = 0; good && i < job->own.count; i++) {
        files[i] = &job->own.items[i];
    }
    if (good) {
        qsort(files, job->own.count, sizeof *files, by_path);
    }
    for (size_t i = 0; good && i < job->own.count; i++) {
        if (i > 0 && !files[i]->is_made && strcmp(files[i - 1]->path, files[i]->path) == 0) {
            files[i]->hash = files[i - 1]->hash;
            files[i]->size = files[i - 1]->size;
            files[i]->is_executable = files[i - 1]->is_executable;
        } else {
            one.items = files[i];
            good = input_list_hash(&one, 0, ret_problem);
        }
    }
    free(files);
    return good;
}

/* Puts the listing of each task's folders behind the task's files, and hashes the listing. After a
 * failure the list has all files, and no use. */
static bool list_task_trees(struct bourse_job *job, struct problem *ret_problem)
{
    const size_t tasks = job->file->task_count;
    const size_t capacity = job->own.count + tasks + 1;
    struct input_list own = {.items = calloc(capacity, sizeof *own.items), .capacity = capacity};
    bool good = own.items != NULL;
    size_t next = 0;
    if (!good) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    own.skipped = job->own.skipped;
    for (size_t i = 0; i < tasks; i++) {
        const size_t end = job->own_of[i + 1];
        job->own_of[i] = own.count;
        while (next < end) {
            own.items[own.count++] = job->own.items[next++];
        }
        const size_t before = own.count;
        good = good && input_tree_list(&job->own_trees[i], &own, ret_problem) &&
               input_list_hash(&own, before, ret_problem);
        job->listings += own.count - before;
    }
    job->own_of[tasks] = own.count;
    free(job->own.items); /* the files have moved */
    job->own = own;
    return good;
}

static bool list_tree(struct bourse_job *job, struct problem *ret_problem)
{
    const size_t before = job->shared.count;
    const bool good = input_tree_list(&job->tree, &job->shared, ret_problem);
    job->listings += job->shared.count - before;
    return good;
}

/* Hashing comes last, because it may take minutes. Faults of names and headers show before. */
bool job_inputs_hash(struct bourse_job *job, const char *file_name, struct bourse_error *error)
{
    const struct job_file *file = job->file;
    struct problem problem = {.text = ""};
    if (file->task_count > 0 &&
        (!hash_task_files(job, &problem) || !list_task_trees(job, &problem))) {
        return job_inputs_failed(file_name, file->tasks[0].line, "files", &problem, error);
    }
    if (file->task_count == 0 && !input_list_hash(&job->own, 0, &problem)) {
        return job_inputs_failed(file_name, file->source_line, "each", &problem, error);
    }
    if (!list_tree(job, &problem) || !input_pack(&job->shared, &job->packed, &problem) ||
        !input_list_hash(&job->shared, 0, &problem)) {
        return job_inputs_failed(file_name, file->files_line, "files", &problem, error);
    }
    return input_list_hash(&job->image, 0, &problem) ||
           job_inputs_failed(file_name, file->image_line, "image", &problem, error);
}
