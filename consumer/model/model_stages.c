#include "consumer/model/model_stages.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "consumer/job/input_list.h"
#include "consumer/model/model_check.h"
#include "consumer/model/model_cut.h"
#include "consumer/model/model_file.h"
#include "consumer/model/model_shapes.h"
#include "consumer/model/model_stage_tasks.h"
#include "runtime/files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HASH_BYTES = 1 << 18 };

void model_stages_destroy(struct model_stages **self)
{
    struct model_stages *stages = *self;
    if (stages != NULL) {
        onnx_cut_destroy(&stages->cut);
        onnx_shapes_destroy(&stages->shapes);
        onnx_shapes_destroy(&stages->other);
        onnx_destroy(&stages->model);
        model_file_close(&stages->file);
        model_cut_fini(&stages->choice);
        free(stages->folder);
        if (stages->weights_fd >= 0) {
            (void)close(stages->weights_fd);
        }
        free(stages);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- bytes of stages */

/* Opens a file of weights, unless it is the one that is open. */
static bool open_weights(struct model_stages *stages, struct onnx_span path)
{
    char name[ONNX_NAME_BYTES + 1];
    char whole[MODEL_FILE_PATH_SIZE];
    struct problem ignored; /* the caller says that the weights cannot be read */
    uint64_t size = 0;
    if (stages->weights_fd >= 0 && onnx_span_equals(stages->weights, path)) {
        return true;
    }
    if (stages->weights_fd >= 0) {
        (void)close(stages->weights_fd);
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)path.size, (const char *)path.at);
    stages->weights_fd =
        model_file_path(stages->folder, name, whole) ? input_open(whole, &size, &ignored) : -1;
    stages->weights = path;
    return stages->weights_fd >= 0;
}

static bool read_weights(void *context, struct onnx_span path, uint64_t offset, size_t length,
                         uint8_t *ret_bytes)
{
    struct model_stages *stages = context;
    return open_weights(stages, path) &&
           file_read_at(stages->weights_fd, ret_bytes, length, offset);
}

static bool read_stage(void *context, size_t index, uint64_t offset, size_t length,
                       uint8_t *ret_bytes, struct problem *ret_problem)
{
    struct model_stages *stages = context;
    if (!onnx_cut_read(&stages->cut->stages[index], offset, length, read_weights, stages,
                       ret_bytes)) {
        problem_set(ret_problem, "weights of the model in %.200s cannot be read any more: \"%s\"",
                    stages->folder, onnx_label(stages->weights).text);
        return false;
    }
    return true;
}

static bool hash_stage(struct model_stages *stages, uint32_t number, struct made_blob *ret_blob,
                       struct problem *problem)
{
    const struct onnx_stage *stage = &stages->cut->stages[number];
    struct sha256 hash;
    uint8_t *bytes = malloc(HASH_BYTES);
    bool good = bytes != NULL;
    if (!good) {
        problem_set(problem, "out of memory");
    }
    sha256_start(&hash);
    for (uint64_t at = 0; good && at < stage->size;) {
        const size_t size =
            stage->size - at < HASH_BYTES ? (size_t)(stage->size - at) : (size_t)HASH_BYTES;
        good = read_stage(stages, number, at, size, bytes, problem);
        if (good) {
            sha256_add(&hash, bytes, size);
        }
        at += size;
    }
    free(bytes);
    *ret_blob = (struct made_blob){.hash = sha256_end(&hash), .size = stage->size};
    return good;
}

static bool make_blobs(struct bourse_job *job, struct problem *problem)
{
    const uint32_t count = job->stages->cut->stage_count;
    job->made = (struct made_blobs){.items = calloc(count, sizeof *job->made.items),
                                    .count = count,
                                    .read = read_stage,
                                    .context = job->stages};
    if (job->made.items == NULL) {
        job->made.count = 0;
        problem_set(problem, "out of memory");
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        good = hash_stage(job->stages, i, &job->made.items[i], problem);
    }
    return good;
}

/* ---------------------------------------------------------------- shapes */

static bool read_arrays(const struct onnx_words *words, const struct input_list *files,
                        struct model_array *ret_arrays, struct problem *problem)
{
    bool good = true;
    for (size_t i = 0; good && i < words->input_count; i++) {
        const struct onnx_words_file *input = &words->inputs[i];
        good =
            model_check_array(input, model_check_find(files, input->file), &ret_arrays[i], problem);
    }
    return good;
}

/* Works out the shapes of the last part, which has the most rows, and of the first one, which has
 * the fewest. */
static bool find_shapes(struct model_stages *stages, const struct onnx_words *words,
                        const struct input_list *files, uint32_t parts, struct problem *problem)
{
    struct model_array arrays[ONNX_WORDS_FILES];
    struct problem why = {""};
    if (!read_arrays(words, files, arrays, problem)) {
        return false;
    }
    if (!model_shapes_find(stages->model, words, arrays, parts > 0 ? parts - 1 : 0, parts,
                           &stages->shapes, &why) ||
        (parts > 1 &&
         !model_shapes_find(stages->model, words, arrays, 0, parts, &stages->other, &why))) {
        problem_set(problem, "the model cannot be cut into stages: %.400s", why.text);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- the cut */

static bool check_files(const struct model_stages *stages, struct problem *problem)
{
    for (uint32_t i = 0; i < stages->cut->stage_count; i++) {
        const struct onnx_stage *stage = &stages->cut->stages[i];
        if (stage->input_count > ONNX_WORDS_FILES || stage->output_count > ONNX_WORDS_FILES) {
            problem_set(problem,
                        "the model cannot be cut into stages: stage %u of %u would take %u arrays "
                        "and leave %u, and a run has at most %d of each",
                        i + 1, stages->cut->stage_count, stage->input_count, stage->output_count,
                        ONNX_WORDS_FILES);
            return false;
        }
    }
    return true;
}

static bool cut_model(struct model_stages *stages, uint32_t count, struct problem *problem)
{
    struct problem why = {""};
    if (!model_cut_choose(stages->model, stages->shapes, count, &stages->choice, &why)) {
        problem_set(problem, "the model cannot be cut into stages: %.400s", why.text);
        return false;
    }
    const struct onnx_cut_input input = {.bytes = {stages->file->bytes, stages->file->size},
                                         .model = stages->model,
                                         .shapes = stages->shapes,
                                         .other = stages->other,
                                         .stage_of = stages->choice.stage_of,
                                         .stage_count = count};
    if (onnx_cut_make(&input, &stages->cut, &why) != ONNX_OK) {
        problem_set(problem, "the model cannot be cut into stages: %.400s", why.text);
        return false;
    }
    return check_files(stages, problem);
}

/* ---------------------------------------------------------------- the job */

/* Finds the files that the job names so far, and compares the inputs with the model. */
static bool check_job(const struct bourse_job *job, const char *folder, struct input_list *files,
                      struct problem *problem)
{
    struct bourse_job view = {.file = job->file};
    const struct job_strings *names = &job->file->files;
    if (!input_list_add_patterns(folder, names->items, names->count, files, problem)) {
        return false;
    }
    view.shared = *files;
    return model_check_job(&view, problem);
}

static bool open_model(struct model_stages *stages, const char *path, struct problem *problem)
{
    struct problem why = {""};
    const char *slash = strrchr(path, '/');
    stages->folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup(".");
    stages->file = model_file_open(path, problem);
    if (stages->file == NULL || stages->folder == NULL) {
        return false;
    }
    if (onnx_read(stages->file->bytes, stages->file->size, &stages->model, &why) != ONNX_OK) {
        problem_set(problem, "the model cannot be cut into stages: %.400s", why.text);
        return false;
    }
    return true;
}

static bool settle(struct bourse_job *job, const char *folder, const struct onnx_words *words,
                   struct problem *problem)
{
    CLEANUP(input_list_fini) struct input_list files = {.items = NULL};
    struct onnx_words now; /* with names of the work folder */
    const struct job_strings *run = &job->file->run;
    struct model_stages *stages = job->stages;
    if (!check_job(job, folder, &files, problem) ||
        !onnx_words_read((const char *const *)run->items, run->count, true, &now, problem)) {
        return false;
    }
    const struct onnx_span model = {(const uint8_t *)now.model, strlen(now.model)};
    const struct input_file *file = model_check_find(&files, model);
    assert(file != NULL); /* model_job_settle has opened it */
    return open_model(stages, file->path, problem) &&
           find_shapes(stages, &now, &files, job->file->parts, problem) &&
           cut_model(stages, job->file->stages, problem) && make_blobs(job, problem) &&
           model_stage_tasks_make(job, words, &now, problem);
}

bool model_stages_settle(struct bourse_job *job, const char *folder, const struct onnx_words *words,
                         struct problem *ret_problem)
{
    assert(job->stages == NULL);
    if (strpbrk(words->model, "{}") != NULL) {
        problem_set(ret_problem, "a model that a placeholder names is not cut into stages");
        return false;
    }
    job->stages = calloc(1, sizeof *job->stages);
    if (job->stages == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    job->stages->weights_fd = -1;
    return settle(job, folder, words, ret_problem);
}

bool model_stages_add(struct bourse_job *job, size_t task, struct problem *ret_problem)
{
    const uint32_t stage = job->file->tasks[task].stage;
    char name[MODEL_STAGE_NAME_SIZE];
    if (job->stages == NULL || stage == 0) {
        return true;
    }
    const struct made_blob *blob = &job->made.items[stage - 1];
    model_stage_tasks_file_name(stage, name);
    return input_list_add_made(&job->own, name, name, &blob->hash, blob->size, ret_problem);
}

/* ---------------------------------------------------------------- what was planned */

uint32_t model_stages_count(const struct bourse_job *job)
{
    return job->stages != NULL && job->stages->cut != NULL ? job->stages->cut->stage_count : 0;
}

struct model_stage model_stages_at(const struct bourse_job *job, uint32_t stage)
{
    const struct model_stages *stages = job->stages;
    const struct onnx_stage *cut = &stages->cut->stages[stage];
    struct model_stage planned = {.weight_bytes = cut->weight_bytes,
                                  .time_s = stages->choice.time_s[stage]};
    for (uint32_t i = 0; i < stages->model->node_count; i++) {
        planned.nodes += stages->choice.stage_of[i] == stage;
    }
    for (uint32_t i = 0; i < cut->input_count; i++) {
        if (cut->inputs[i].from != ONNX_NONE) {
            planned.taken_bytes += (uint64_t)stages->shapes->facts[cut->inputs[i].value].bytes;
        }
    }
    for (uint32_t i = 0; i < cut->output_count; i++) {
        if (model_stage_tasks_is_taken(stages->cut, cut->outputs[i].value)) {
            planned.left_bytes += (uint64_t)stages->shapes->facts[cut->outputs[i].value].bytes;
        }
    }
    return planned;
}
