/* The keys `model`, `inputs`, `split`, `parts` and `stages` of a job file are read here, and made
 * into the words of onnx_words.h. The job's `run` holds these words. The consumer reads the model,
 * and adds its files and its outputs to those of the job (consumer/model/model_job.h). */
#include "formats/generate/generate_words.h"
#include "formats/job_internal.h"
#include "formats/job_keys.h"
#include "formats/limits.h"
#include "formats/onnx/onnx_words.h"
#include "formats/train/train_words.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_SIZE = ONNX_NAME_BYTES + FORMAT_PATH_BYTES + 128 };

/* Adds one word of the run. Returns false when something was refused. */
static bool add_word(struct yaml_value value, struct job_file *job, const char *word)
{
    return job_strings_add(&job->run, ONNX_WORDS_MOST, word) || job_read_no_memory(value);
}

/* Checks one input or output by the reader of all words. */
static bool check_word(struct yaml_value value, const char *option, const char *word)
{
    struct onnx_words words;
    const char *const all[] = {"m", option, word};
    struct problem problem;
    if (!onnx_words_read(all, sizeof all / sizeof all[0], true, &words, &problem)) {
        yaml_refuse(value, "%s", problem.text);
        return false;
    }
    return true;
}

/* Adds one entry of `inputs` or `outputs`. */
static bool add_file(struct yaml_value value, const char *name, bool is_input, struct job_file *job)
{
    char word[WORD_SIZE];
    const char *file = yaml_text(value, FORMAT_PATH_BYTES, NULL);
    if (file == NULL) {
        return false;
    }
    if (strlen(name) > ONNX_NAME_BYTES || strchr(name, '=') != NULL) {
        yaml_refuse(value, "the name of an input or output has at most %d bytes, and no \"=\"",
                    ONNX_NAME_BYTES);
        return false;
    }
    (void)snprintf(word, sizeof word, "%s=%s", name, file);
    const char *option = is_input ? "-i" : "-o";
    return check_word(value, option, word) && add_word(value, job, option) &&
           add_word(value, job, word);
}

static bool add_files(struct yaml_value map, bool is_input, struct job_file *job)
{
    bool good = !yaml_present(map) || yaml_is_map(map, ONNX_WORDS_FILES);
    for (size_t i = 0; good && yaml_present(map) && i < yaml_count(map); i++) {
        good = add_file(yaml_entry(map, i), yaml_entry_key(map, i), is_input, job);
    }
    return good;
}

static bool add_split(struct yaml_value root, struct job_file *job)
{
    struct job_strings names = {.items = NULL};
    struct yaml_value split = yaml_key(root, "split");
    struct yaml_value parts = yaml_key(root, "parts");
    if (yaml_present(split) != yaml_present(parts)) {
        yaml_refuse(yaml_present(split) ? split : parts,
                    "split and parts stand together, as in split: x, parts: 4");
        return false;
    }
    job_read_names(split, ONNX_WORDS_FILES, &names);
    bool good = true;
    for (size_t i = 0; good && i < names.count; i++) {
        good = add_word(split, job, "-s") && add_word(split, job, names.items[i]);
    }
    job_strings_fini(&names);
    job->parts = (uint32_t)yaml_integer(parts, 1, ONNX_WORDS_PARTS, 0);
    return good;
}

void job_onnx_read(struct yaml_value root, struct job_file *job)
{
    struct yaml_value model = yaml_key(root, "model");
    const char *name = yaml_text(model, FORMAT_PATH_BYTES, NULL);
    job->is_onnx = true;
    job->run_line = yaml_line(model);
    job->stages = (uint32_t)yaml_integer(yaml_key(root, "stages"), 1, FORMAT_STAGES, 0);
    if (name == NULL || !add_word(model, job, name)) {
        return;
    }
    if (yaml_present(yaml_key(root, "generate"))) {
        job_generate_read(root, job);
    } else if (yaml_present(yaml_key(root, "train"))) {
        (void)(job_train_read(root, job) && add_files(yaml_key(root, "inputs"), true, job));
    } else if (add_files(yaml_key(root, "inputs"), true, job) &&
               add_files(yaml_key(root, "outputs"), false, job)) {
        (void)add_split(root, job);
    }
}

#define FAULT(fault, key, index, ...)                                                              \
    ((fault)->field = (key), (fault)->item = (index), problem_set(&(fault)->what, __VA_ARGS__),    \
     false)

bool job_onnx_check(const struct job_file *job, struct job_fault *fault)
{
    struct onnx_words words;
    const char *other = job->image != NULL            ? "image"
                        : job->has_entrypoint         ? "entrypoint"
                        : job->directory != NULL      ? "directory"
                        : job->env_count > 0          ? "env"
                        : job->standard_input != NULL ? "stdin"
                        : job->checkpoint != NULL     ? "checkpoint"
                                                      : NULL;
    fault->field = "run";
    fault->item = SIZE_MAX; /* the key as a whole */
    if (other != NULL) {
        return FAULT(fault, other, SIZE_MAX, "does not go with a model, which takes only files");
    }
    if (generate_words_are((const char *const *)job->run.items, job->run.count)) {
        return job_generate_check(job, fault);
    }
    if (train_words_are((const char *const *)job->run.items, job->run.count)) {
        return job_train_check(job, fault);
    }
    if (job->parts > 0 && job->source != TEMPLATE_ONE) {
        return FAULT(fault, "parts", 0,
                     "a model whose inputs are split has no each, array and lines");
    }
    if (job->stages > 0 && job->source != TEMPLATE_ONE) {
        return FAULT(fault, "stages", 0, "a model in stages has no each, array and lines");
    }
    return onnx_words_read((const char *const *)job->run.items, job->run.count, true, &words,
                           &fault->what);
}
