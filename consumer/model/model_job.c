#include "consumer/model/model_job.h"

#include "base/cleanup.h"
#include "consumer/job/input_list.h"
#include "consumer/model/model_check.h"
#include "consumer/model/model_file.h"
#include "consumer/model/model_npz.h"
#include "consumer/model/model_stages.h"
#include "formats/generate/generate_words.h"
#include "formats/limits.h"
#include "formats/onnx/onnx_words.h"
#include "formats/train/train_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD_SIZE = ONNX_NAME_BYTES + FORMAT_PATH_BYTES + 256 };

/* One job while it is settled. */
struct settling {
    struct job_file *file;
    struct input_list *shared; /* arrays of .npz files go here; NULL: there can be none */
    const char *folder;
    struct onnx_words words; /* of the file's `run` as it was */
    struct job_strings run;  /* the new words */
    struct problem *problem;
};

static bool has_holes(const char *text)
{
    return strpbrk(text, "{}") != NULL;
}

static bool fail(struct settling *settling, const char *what)
{
    problem_set(settling->problem, "%s", what);
    return false;
}

static bool add_word(struct settling *settling, const char *word)
{
    return job_strings_add(&settling->run, FORMAT_ARGUMENTS, word) ||
           fail(settling, "out of memory, or too many words");
}

/* Adds a text to a list once. */
static bool add_once(struct settling *settling, struct job_strings *list, size_t most,
                     const char *text)
{
    return job_strings_add_once(list, most, text) ||
           fail(settling, "out of memory, or the job has too many files");
}

/* Adds a file of this machine to the job's, by the path as it is written. */
static bool add_file(struct settling *settling, const char *path)
{
    return has_holes(path) || add_once(settling, &settling->file->files, FORMAT_SHARED_FILES, path);
}

/* ---------------------------------------------------------------- the model's own files */

/* Weights lie beside the model, here and in the work folder. */
static bool add_weights(struct settling *settling, const struct onnx_interface *interface)
{
    const char *model = settling->words.model;
    const char *slash = strrchr(model, '/');
    const size_t before = slash != NULL ? (size_t)(slash - model) + 1 : 0;
    for (size_t i = 0; i < interface->file_count; i++) {
        const struct onnx_interface_file *file = &interface->files[i];
        char path[FORMAT_PATH_BYTES + 1];
        char whole[MODEL_FILE_PATH_SIZE];
        uint64_t size = 0;
        const int length = snprintf(path, sizeof path, "%.*s%.*s", (int)before, model,
                                    (int)file->path.size, (const char *)file->path.at);
        if (length < 0 || (size_t)length >= sizeof path ||
            !model_file_path(settling->folder, path, whole)) {
            return fail(settling, "the path of a file of weights is too long");
        }
        const int fd = input_open(whole, &size, settling->problem);
        if (fd < 0) {
            return false;
        }
        (void)close(fd);
        if (size < (uint64_t)file->end) {
            problem_set(settling->problem,
                        "%.200s has %llu bytes, and the model has weights in it up to byte %lld",
                        path, (unsigned long long)size, (long long)file->end);
            return false;
        }
        if (!add_file(settling, path)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- words */

/* Unpacks an array of a .npz file, and adds it to the job's files. The array is that of the name
 * behind ":", else that of the input's name, else the only one. `path` becomes its name in the work
 * folder. */
static bool add_array(struct settling *settling, const struct onnx_words_file *input,
                      unsigned length, char path[FORMAT_PATH_BYTES + 1])
{
    char whole[MODEL_FILE_PATH_SIZE];
    char name[FORMAT_PATH_BYTES + 1];
    char shown[FORMAT_PATH_BYTES + 1];
    char label[ONNX_NAME_BYTES + 1];
    const bool is_named = path[length] == ':';
    (void)snprintf(shown, sizeof shown, "%s", path);
    (void)snprintf(label, sizeof label, "%.*s",
                   is_named ? (int)strlen(path + length + 1) : (int)input->name.size,
                   is_named ? path + length + 1 : (const char *)input->name.at);
    path[length] = '\0';
    if (has_holes(shown) || settling->file->stages > 1 || settling->shared == NULL) {
        return fail(settling, "a .npz file goes with no placeholder and no stages; name a .npy "
                              "file");
    }
    const int written = snprintf(name, sizeof name, "%s.%s.npy", input_list_name(path), label);
    if (written < 0 || (size_t)written >= sizeof name ||
        !model_file_path(settling->folder, path, whole)) {
        return fail(settling, "the name of an array in a .npz file is too long");
    }
    const bool is_only = !is_named && !model_npz_has(whole, label);
    const struct onnx_span wanted = {(const uint8_t *)name, strlen(name)};
    (void)snprintf(path, FORMAT_PATH_BYTES + 1, "%s", name);
    if (model_check_find(settling->shared, wanted) != NULL) {
        return true; /* another input takes the same array */
    }
    const int fd = model_npz_unpack(whole, is_only ? NULL : label, settling->problem);
    return fd >= 0 && input_list_add_held(settling->shared, fd, shown, name, settling->problem);
}

/* Writes "NAME=FILE" with the rest of the word behind FILE, and FILE as in the work folder. */
static bool add_input(struct settling *settling, const char *word,
                      const struct onnx_words_file *input)
{
    char path[FORMAT_PATH_BYTES + 1];
    char text[WORD_SIZE];
    if (input->file.size >= sizeof path || strlen(word) >= sizeof text) {
        return fail(settling, "the name of an input's file is too long");
    }
    (void)snprintf(path, sizeof path, "%.*s", (int)input->file.size, (const char *)input->file.at);
    const char *rest = (const char *)input->file.at + input->file.size;
    const unsigned archive = input->is_raw ? 0 : model_npz_path(path);
    if (archive > 0 && !add_array(settling, input, archive, path)) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s=%s%s", (int)input->name.size,
                   (const char *)input->name.at, input_list_name(path), rest);
    return add_word(settling, "-i") && add_word(settling, text) &&
           (archive > 0 || add_file(settling, path));
}

static bool add_output(struct settling *settling, struct onnx_span name, const char *file)
{
    char text[WORD_SIZE];
    (void)snprintf(text, sizeof text, "%.*s=%s", (int)name.size, (const char *)name.at, file);
    return add_word(settling, "-o") && add_word(settling, text) &&
           add_once(settling, &settling->file->outputs, FORMAT_OUTPUTS, file);
}

/* Copies the words but the model's, with the names that files have in the work folder. */
static bool copy_words(struct settling *settling)
{
    const struct job_strings *old = &settling->file->run;
    size_t input = 0;
    bool good = add_word(settling, input_list_name(settling->words.model));
    for (size_t i = 1; good && i + 1 < old->count; i += 2) {
        const char *word = old->items[i + 1];
        if (strcmp(old->items[i], "-i") == 0) {
            good = add_input(settling, word, &settling->words.inputs[input++]);
        } else {
            good = add_word(settling, old->items[i]) && add_word(settling, word);
        }
        if (good && strcmp(old->items[i], "-o") == 0) {
            good =
                add_once(settling, &settling->file->outputs, FORMAT_OUTPUTS, strchr(word, '=') + 1);
        }
    }
    return good;
}

/* Several subtasks of `each` would have outputs of one name. */
static bool add_outputs(struct settling *settling, const struct onnx_interface *interface)
{
    const bool is_many = settling->file->source == TEMPLATE_EACH;
    if (interface->output_count > ONNX_WORDS_FILES) {
        problem_set(settling->problem,
                    "the model has %zu outputs; name those that you want, at most %d",
                    interface->output_count, ONNX_WORDS_FILES);
        return false;
    }
    for (size_t i = 0; i < interface->output_count; i++) {
        const struct onnx_port *output = &interface->outputs[i];
        char name[ONNX_WORDS_FILE_SIZE];
        char file[ONNX_WORDS_FILE_SIZE + 8];
        onnx_words_file_name(output->name, name);
        (void)snprintf(file, sizeof file, "%s%s", is_many ? "{out}." : "", name);
        if (memchr(output->name.at, '=', output->name.size) != NULL) {
            problem_set(settling->problem, "output \"%s\" of the model has a \"=\" in its name",
                        onnx_label(output->name).text);
            return false;
        }
        for (size_t k = 0; k < settling->file->outputs.count; k++) {
            if (strcmp(settling->file->outputs.items[k], file) == 0) {
                problem_set(settling->problem,
                            "the file %.100s would be that of two outputs; name the outputs", file);
                return false;
            }
        }
        if (!add_output(settling, output->name, file)) {
            return false;
        }
    }
    return true;
}

/* One subtask for each part, whose number is the array's. */
static bool add_parts(struct settling *settling)
{
    struct job_file *file = settling->file;
    char text[32];
    if (file->parts == 0) {
        return true;
    }
    (void)snprintf(text, sizeof text, "{index}/%u", file->parts);
    file->source = TEMPLATE_ARRAY;
    file->array = (struct range){.first = 0, .last = (int64_t)file->parts - 1, .step = 1};
    return add_word(settling, "-p") && add_word(settling, text);
}

static bool settle_with(struct settling *settling, const struct model_file *model)
{
    return copy_words(settling) && (model == NULL || add_weights(settling, model->interface)) &&
           (model == NULL || settling->words.output_count > 0 ||
            add_outputs(settling, model->interface)) &&
           add_parts(settling);
}

static bool settle(struct settling *settling)
{
    CLEANUP(model_file_close) struct model_file *model = NULL;
    const char *name = settling->words.model;
    char path[MODEL_FILE_PATH_SIZE];
    if (has_holes(name)) {
        return settling->words.output_count > 0
                   ? settle_with(settling, NULL)
                   : fail(settling, "a model that a placeholder names needs `outputs`");
    }
    if (!model_file_path(settling->folder, name, path)) {
        return fail(settling, "the path of the model is too long");
    }
    model = model_file_open(path, settling->problem);
    return model != NULL && add_file(settling, name) && settle_with(settling, model);
}

bool model_job_add_files(struct job_file *file, const char *folder, const char *model,
                         const struct onnx_interface *interface, struct problem *ret_problem)
{
    struct settling settling = {
        .file = file, .folder = folder, .words = {.model = model}, .problem = ret_problem};
    return add_file(&settling, model) && add_weights(&settling, interface);
}

bool model_job_settle(struct bourse_job *job, const char *folder, struct problem *ret_problem)
{
    struct settling settling = {
        .file = job->file, .shared = &job->shared, .folder = folder, .problem = ret_problem};
    struct job_file *file = job->file;
    if (file == NULL || !file->is_onnx || file->task_count > 0) {
        return true;
    }
    if (generate_words_are((const char *const *)file->run.items, file->run.count) ||
        train_words_are((const char *const *)file->run.items, file->run.count)) {
        return true; /* model_generate_settle and train_job_settle settle these */
    }
    if (!onnx_words_read((const char *const *)file->run.items, file->run.count, true,
                         &settling.words, ret_problem)) {
        return false;
    }
    const bool good = settle(&settling);
    if (good) { /* the old words are used up to here */
        const struct job_strings old = file->run;
        file->run = settling.run;
        settling.run = old;
    }
    const bool is_staged =
        good &&
        (file->stages <= 1 || model_stages_settle(job, folder, &settling.words, settling.problem));
    job_strings_fini(&settling.run);
    return is_staged;
}
