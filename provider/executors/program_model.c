/* This file prepares a subtask that is a run of an ONNX model (formats/onnx/onnx_words.h), or the
 * answer of one to a prompt (formats/generate/generate_words.h). */
#include "base/sha256.h"
#include "formats/generate/generate_words.h"
#include "formats/onnx/onnx_words.h"
#include "provider/executors/program_internal.h"

#include <string.h>

bool program_settle_model(const struct run *run, struct outcome *outcome)
{
    struct onnx_words words;
    struct generate_words text;
    struct problem problem = {""};
    const char *const *items = (const char *const *)run->arguments.items;
    const size_t count = run->arguments.count;
    if (!(generate_words_are(items, count)
              ? generate_words_read(items, count, false, &text, &problem)
              : onnx_words_read(items, count, false, &words, &problem))) {
        outcome_fail(outcome, OUTCOME_PROGRAM_FAILED, "%s", problem.text);
        return false;
    }
    return true;
}

static bool is_prompt(const struct run *run)
{
    return generate_words_are((const char *const *)run->arguments.items, run->arguments.count);
}

/* Returns true when a word gives the file to an input of a model: "x=FILE" or "x=FILE:TYPE[]". */
static bool is_given(const struct run *run, const char *name)
{
    const size_t length = strlen(name);
    bool found = false;
    for (size_t i = 1; i < run->arguments.count && !found; i++) {
        const char *equals = strchr(run->arguments.items[i], '=');
        found = equals != NULL && strncmp(equals + 1, name, length) == 0 &&
                (equals[1 + length] == '\0' || equals[1 + length] == ':');
    }
    return found;
}

/* Returns true for the file whose lines are prompts: each run reads it. */
static bool has_prompts(const struct run *run, const char *name)
{
    bool found = false;
    for (size_t i = 1; i + 1 < run->arguments.count && !found; i += 2) {
        found = strcmp(run->arguments.items[i], "-f") == 0 &&
                strcmp(run->arguments.items[i + 1], name) == 0;
    }
    return found;
}

bool program_keeps_model(const struct run *run, const char *name)
{
    return is_prompt(run) ? !has_prompts(run, name) : !is_given(run, name);
}

/* Maps the arrays that the run reads in place. A mapped file costs the same whatever its size, and
 * a run of a part of the rows reads only these. A file within an archive is copied: a map has no
 * offset. */
static void map_arrays(struct run *run)
{
    if (is_prompt(run)) {
        return;
    }
    for (size_t count = 0; count < JAIL_MAPPED_MAX; count++) {
        struct jail_input *largest = NULL;
        for (size_t i = 0; i < run->input_count; i++) {
            struct jail_input *input = &run->inputs[i];
            if (!input->is_mapped && input->link == NULL && !input->is_folder &&
                input->offset == 0 && is_given(run, input->name) &&
                strcmp(input->name, run->arguments.items[0]) != 0 &&
                !program_brings_back(run, input->name) &&
                (largest == NULL || input->size > largest->size) &&
                jail_may_map(run->program->jail, input->fd)) {
                largest = input;
            }
        }
        if (largest == NULL) {
            return;
        }
        largest->is_mapped = true;
    }
}

/* Hashes what the resident opens for the run: which file is the model, which one the tokenizer, and
 * the name and the bytes of all files that it may keep. Returns zero when it is told of none. */
static struct hash32 hash_opened(const struct run *run)
{
    static const char nothing[] = "";
    const char *const words[] = {run->arguments.items[0],
                                 is_prompt(run) ? run->arguments.items[2] : nothing};
    struct sha256 sum;
    size_t told = 0;
    sha256_start(&sum);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        sha256_add(&sum, words[i], strlen(words[i]) + 1);
    }
    for (size_t i = 0; i < run->input_count; i++) {
        const struct jail_input *input = &run->inputs[i];
        if (input->content != NULL) {
            sha256_add(&sum, input->content->bytes, sizeof input->content->bytes);
            sha256_add(&sum, input->name, strlen(input->name) + 1);
            told++;
        }
    }
    const struct hash32 hash = sha256_end(&sum);
    return told > 0 ? hash : (struct hash32){{0}};
}

static bool has_input(const struct run *run, const char *name, size_t length)
{
    bool found = false;
    for (size_t i = 0; i < run->input_count && !found; i++) {
        found = strlen(run->inputs[i].name) == length &&
                strncmp(run->inputs[i].name, name, length) == 0;
    }
    return found;
}

/* Returns true when the words spell every file as the inputs do. A file "./a.npy" is the input
 * "a.npy" under a name that the comparisons of this file do not know. */
static bool are_spelled_alike(const struct run *run)
{
    bool are_alike = has_input(run, run->arguments.items[0], strlen(run->arguments.items[0]));
    for (size_t i = 1; i + 1 < run->arguments.count && are_alike; i += 2) {
        const char *option = run->arguments.items[i], *word = run->arguments.items[i + 1];
        if (strcmp(option, "-g") == 0 || strcmp(option, "-f") == 0) {
            are_alike = has_input(run, word, strlen(word));
        } else if (strcmp(option, "-i") == 0) {
            const char *equals = strchr(word, '=');
            const char *file = equals != NULL ? equals + 1 : word;
            are_alike =
                has_input(run, file, strlen(file)) || has_input(run, file, strcspn(file, ":"));
        }
    }
    return are_alike;
}

/* A model stays open only when the content of every file that it may have read is known. */
static void settle_known(struct run *run)
{
    bool are_known = are_spelled_alike(run);
    for (size_t i = 0; i < run->input_count; i++) {
        const struct jail_input *input = &run->inputs[i];
        are_known = are_known && (input->content != NULL || input->link != NULL ||
                                  input->is_folder || !program_keeps_model(run, input->name));
    }
    for (size_t i = 0; !are_known && i < run->input_count; i++) {
        run->inputs[i].content = NULL;
    }
}

void program_place_model(struct run *run)
{
    if (!run->program->is_model) {
        return;
    }
    map_arrays(run);
    settle_known(run);
    run->opens = hash_opened(run);
    const bool is_open =
        !hash32_is_zero(&run->opens) && hash32_equal(&run->opens, run->program->open_model);
    for (size_t i = 0; is_open && i < run->input_count; i++) {
        struct jail_input *input = &run->inputs[i];
        input->is_held = input->content != NULL && !program_brings_back(run, input->name);
    }
}
