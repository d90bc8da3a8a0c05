/* This file runs `run model`, which runs an ONNX model on the market as a job like any other. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/offer.h"
#include "consumer/command/job/run_end.h"
#include "consumer/command/show.h"
#include "consumer/job/job_build.h"
#include "formats/limits.h"
#include "formats/onnx/onnx_words.h"

#include "base/cleanup.h"

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

/* Makes the job's file. Returns NULL after a message. */
static struct job_file *make_file(struct invocation *invocation)
{
    struct model_words words = {.count = 0};
    int64_t stages = 0;
    if (invocation->word_count != 1) {
        (void)complain(invocation, BOURSE_USAGE,
                       "run model needs MODEL.onnx --input NAME=FILE; see `bourse help run model`");
        return NULL;
    }
    if (option_given(invocation, "split") != option_given(invocation, "parts")) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--split and --parts stand together, as in --split x --parts 4");
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
    int status = 0;
    int64_t ignored = 0;
    char id[BOURSE_ID_SIZE];
    struct bourse_error error;
    if (!option_money(invocation, "budget", &ignored) ||
        !option_duration_ms(invocation, "wait-at-most", &ignored)) {
        return BOURSE_USAGE;
    }
    struct job_file *file = make_file(invocation);
    if (file == NULL) {
        return BOURSE_USAGE;
    }
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    if (!job_build(file, ".", NULL, &job, &error)) {
        return complain_with(invocation, &error);
    }
    if (!command_connect(invocation, &status) || !offer_and_place(invocation, job, id, &status)) {
        return status;
    }
    return run_end_wait(invocation, job, id, true);
}
