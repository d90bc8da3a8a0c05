/* This file runs `run model`, which runs an ONNX model on the market as a job like any other. The
 * model gets arrays or prompts. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/model/model_command.h"
#include "consumer/command/show.h"
#include "consumer/model/model_parts.h"
#include "formats/generate/generate_words.h"
#include "formats/limits.h"
#include "formats/onnx/onnx_words.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The words of the run, as a job has them. */
struct model_words {
    char *items[ONNX_WORDS_MOST];
    int count;
};

/* Adds the values of one option, each behind `word`. Returns false when there are too many. */
static bool add_given(const struct invocation *invocation, const char *option, char *word,
                      struct model_words *words)
{
    for (size_t i = 0; i < invocation->given_count; i++) {
        const struct given *given = &invocation->given[i];
        if (strcmp(given->name, option) != 0) {
            continue;
        }
        if (words->count + 2 > ONNX_WORDS_MOST) {
            return false;
        }
        words->items[words->count++] = word;
        words->items[words->count++] = (char *)given->value;
    }
    return true;
}

static bool make_words(const struct invocation *invocation, struct model_words *words)
{
    static char input[] = "-i";
    static char output[] = "-o";
    static char split[] = "-s";
    words->items[words->count++] = invocation->words[0];
    return add_given(invocation, "input", input, words) &&
           add_given(invocation, "save", output, words) &&
           add_given(invocation, "split", split, words);
}

/* Says one part for "auto", until the market is asked. */
static void set_one_part(struct invocation *invocation)
{
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, "parts") == 0) {
            invocation->given[i].value = "1";
        }
    }
}

/* Chooses the parts by the devices on the market, and says what was chosen. */
static bool choose_parts(struct invocation *invocation, struct job_file *file, int *ret_status)
{
    struct parts parts;
    struct bourse_error error;
    if (!command_connect(invocation, ret_status)) {
        return false;
    }
    if (!model_parts_choose(invocation->bourse, option_text(invocation, "needs", NULL), ".", file,
                            &parts, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    if (!invocation->quiet && parts.device_count > 0) {
        (void)fprintf(stderr, "parts: %" PRIu32 " on %zu device%s, about %s", parts.parts,
                      parts.device_count, text_plural((uint32_t)parts.device_count),
                      cell_duration_ns((int64_t)(parts.finish_s * (double)NS_PER_S)));
        if (parts.parts > 1) {
            (void)fprintf(stderr, ", and in one part %s",
                          cell_duration_ns((int64_t)(parts.single_s * (double)NS_PER_S)));
        }
        (void)fputc('\n', stderr);
    }
    return true;
}

/* ---------------------------------------------------------------- prompts */

static bool has_prompt(const struct invocation *invocation)
{
    return option_given(invocation, "prompt") || option_given(invocation, "prompts");
}

/* Prompts and arrays are two kinds of runs. Returns false after a message. */
static bool check_kind(struct invocation *invocation)
{
    static const char *const of_arrays[] = {"input", "save", "split", "parts", "stages", "each"};
    static const char *const of_prompts[] = {"tokenizer", "max-tokens", "temperature", "top-k",
                                             "seed",      "context",    "batch"};
    const bool is_prompt = has_prompt(invocation);
    const char *const *others = is_prompt ? of_arrays : of_prompts;
    const size_t count = is_prompt ? sizeof of_arrays / sizeof of_arrays[0]
                                   : sizeof of_prompts / sizeof of_prompts[0];
    if (option_given(invocation, "prompt") && option_given(invocation, "prompts")) {
        (void)complain(invocation, BOURSE_USAGE, "give one of --prompt and --prompts");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (option_given(invocation, others[i])) {
            (void)complain(invocation, BOURSE_USAGE,
                           is_prompt ? "--%s does not go with a prompt, which makes all inputs"
                                     : "--%s needs a prompt: --prompt TEXT, or --prompts FILE",
                           others[i]);
            return false;
        }
    }
    return true;
}

static char prompt_option[] = "-q";

static void add_pair(struct model_words *words, char *option, const char *value)
{
    words->items[words->count++] = option;
    words->items[words->count++] = (char *)value;
}

/* Adds each --prompt as a template that stands for itself. Returns false after a message; the
 * texts that were made are in the list in either case. */
static bool add_prompts(struct invocation *invocation, struct job_strings *texts,
                        struct model_words *words)
{
    for (size_t i = 0; i < invocation->given_count; i++) {
        const struct given *given = &invocation->given[i];
        if (strcmp(given->name, "prompt") != 0) {
            continue;
        }
        char *literal = generate_words_literal(given->value);
        const bool good = literal != NULL && texts->count < GENERATE_PROMPTS_MOST &&
                          job_strings_add(texts, GENERATE_PROMPTS_MOST, literal);
        free(literal);
        if (!good) {
            (void)complain(invocation, BOURSE_USAGE,
                           "at most %d --prompt; more go into a file: --prompts FILE --batch N",
                           GENERATE_PROMPTS_MOST);
            return false;
        }
        add_pair(words, prompt_option, texts->items[texts->count - 1]);
    }
    return true;
}

/* Makes the job's file of prompts. Each line of a file is one, and a subtask, unless the lines
 * share steps of the model. */
static struct job_file *make_prompts(struct invocation *invocation)
{
    static char options[][3] = {"-n", "-t", "-k", "-r", "-c", "-b"};
    static const char *const names[] = {"max-tokens", "temperature", "top-k",
                                        "seed",       "context",     "batch"};
    struct model_words words = {.count = 0};
    char beside[FORMAT_PATH_BYTES + 1];
    CLEANUP(job_strings_fini) struct job_strings texts = {.items = NULL};
    if (!generate_words_beside(invocation->words[0], "tokenizer.json", beside, sizeof beside)) {
        (void)complain(invocation, BOURSE_USAGE, "the path of the model is too long");
        return NULL;
    }
    words.items[words.count++] = invocation->words[0];
    add_pair(&words, (char[]){"-g"}, option_text(invocation, "tokenizer", beside));
    if (option_given(invocation, "prompts")) {
        add_pair(&words, prompt_option, "{line}");
    } else if (!add_prompts(invocation, &texts, &words)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (option_given(invocation, names[i])) {
            add_pair(&words, options[i], option_text(invocation, names[i], ""));
        }
    }
    invocation->words = words.items;
    invocation->word_count = words.count;
    struct job_file *file = job_from_arguments(invocation);
    invocation->word_count = 0; /* the words end with this function */
    return file;
}

/* ---------------------------------------------------------------- the job */

/* Makes the job's file. Returns NULL after a message. */
static struct job_file *make_file(struct invocation *invocation)
{
    struct model_words words = {.count = 0};
    int64_t stages = 0;
    if (invocation->word_count != 1) {
        (void)complain(invocation, BOURSE_USAGE,
                       "run model needs MODEL.onnx with --input NAME=FILE, or with --prompt TEXT; "
                       "see `bourse help run model`");
        return NULL;
    }
    if (!check_kind(invocation)) {
        return NULL;
    }
    if (has_prompt(invocation)) {
        return make_prompts(invocation);
    }
    if (option_given(invocation, "split") != option_given(invocation, "parts")) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--split and --parts stand together, as in --split x --parts 4");
        return NULL;
    }
    if (model_parts_are_auto(invocation) && option_given(invocation, "stages")) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--parts auto is for models without stages: give a number");
        return NULL;
    }
    if (option_given(invocation, "stages") && option_given(invocation, "each")) {
        (void)complain(invocation, BOURSE_USAGE, "--stages and --each do not go together");
        return NULL;
    }
    if (!option_count(invocation, "stages", 1, FORMAT_STAGES, &stages)) {
        return NULL;
    }
    if (!make_words(invocation, &words)) {
        (void)complain(invocation, BOURSE_USAGE, "--input, --save and --split: at most %d of each",
                       ONNX_WORDS_FILES);
        return NULL;
    }
    if (model_parts_are_auto(invocation)) {
        set_one_part(invocation);
    }
    invocation->words = words.items;
    invocation->word_count = words.count;
    struct job_file *file = job_from_arguments(invocation);
    invocation->word_count = 0; /* the words end with this function */
    if (file != NULL) {
        file->stages = (uint32_t)stages;
    }
    return file;
}

int command_model(struct invocation *invocation)
{
    return model_command(invocation, make_file, choose_parts);
}
