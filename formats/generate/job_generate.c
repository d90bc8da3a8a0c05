/* The key `generate` of a job file is read here, beside `model`, and made into the words of
 * generate_words.h. The job's `run` holds these words. The consumer reads the model and the
 * tokenizer, and makes the words complete (consumer/model/model_generate.h). */
#include "formats/generate/generate_words.h"
#include "formats/job_internal.h"
#include "formats/job_keys.h"
#include "formats/limits.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_SIZE = 24 };

/* Adds an option of the run with its value. */
static bool add_option(struct yaml_value value, struct job_file *job, const char *option,
                       const char *word)
{
    return (job_strings_add(&job->run, GENERATE_WORDS_MOST, option) &&
            job_strings_add(&job->run, GENERATE_WORDS_MOST, word)) ||
           job_read_no_memory(value);
}

/* Adds an option that is written as the file has it; the job's check reads it. */
static bool add_text(struct yaml_value map, const char *key, const char *option,
                     struct job_file *job)
{
    struct yaml_value value = yaml_key(map, key);
    const char *text = yaml_text(value, FORMAT_ARGUMENT_BYTES, NULL);
    return !yaml_present(value) || (text != NULL && add_option(value, job, option, text));
}

static bool add_count(struct yaml_value map, const char *key, const char *option, int64_t least,
                      int64_t most, struct job_file *job)
{
    char text[NUMBER_SIZE];
    struct yaml_value value = yaml_key(map, key);
    const int64_t number = yaml_integer(value, least, most, -1);
    (void)snprintf(text, sizeof text, "%lld", (long long)number);
    return !yaml_present(value) || number < 0 || add_option(value, job, option, text);
}

static bool add_stops(struct yaml_value map, struct job_file *job)
{
    struct yaml_value list = yaml_key(map, "stop");
    bool good = !yaml_present(list) || yaml_is_list(list, GENERATE_STOPS_MOST);
    for (size_t i = 0; good && yaml_present(list) && i < yaml_count(list); i++) {
        char text[NUMBER_SIZE];
        const int64_t number = yaml_integer(yaml_item(list, i), 0, UINT32_MAX - 1, 0);
        (void)snprintf(text, sizeof text, "%lld", (long long)number);
        good = add_option(list, job, "-e", text);
    }
    return good;
}

/* A tokenizer without a name lies beside the model. */
static bool add_tokenizer(struct yaml_value map, struct job_file *job)
{
    char beside[FORMAT_PATH_BYTES + 1];
    struct yaml_value value = yaml_key(map, "tokenizer");
    if (!generate_words_beside(job->run.items[0], "tokenizer.json", beside, sizeof beside)) {
        yaml_refuse(map, "the path of the model is too long");
        return false;
    }
    const char *text = yaml_text(value, FORMAT_PATH_BYTES, beside);
    return text != NULL && add_option(map, job, "-g", text);
}

/* A list of prompts shares the steps of the model. */
static bool add_prompts(struct yaml_value list, struct job_file *job)
{
    bool good = yaml_is_list(list, GENERATE_PROMPTS_MOST);
    for (size_t i = 0; good && i < yaml_count(list); i++) {
        const char *text = yaml_text(yaml_item(list, i), FORMAT_ARGUMENT_BYTES, NULL);
        good = text != NULL && add_option(list, job, "-q", text);
    }
    return good;
}

static bool add_prompt(struct yaml_value map, struct job_file *job)
{
    struct yaml_value value = yaml_key(map, "prompt");
    if (yaml_kind(value) == YAML_KIND_LIST) {
        return add_prompts(value, job);
    }
    const char *text =
        yaml_text(value, FORMAT_ARGUMENT_BYTES, job->source == TEMPLATE_LINES ? "{line}" : NULL);
    if (text == NULL && !yaml_present(value)) {
        yaml_refuse(map, "has no prompt; give one, as in prompt: \"Once upon\", or a file with one "
                         "in each line (lines: FILE)");
    }
    return text != NULL && add_option(map, job, "-q", text);
}

void job_generate_read(struct yaml_value root, struct job_file *job)
{
    static const char *const keys[] = {"tokenizer", "prompt",  "max_tokens", "temperature", "top_k",
                                       "seed",      "context", "stop",       "batch"};
    static const char *const others[] = {"inputs", "outputs", "split", "parts", "stages"};
    struct yaml_value map = yaml_key(root, "generate");
    yaml_known_keys(map, keys, sizeof keys / sizeof keys[0]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (yaml_present(yaml_key(root, others[i]))) {
            yaml_refuse(yaml_key(root, others[i]),
                        "does not go with generate: a prompt makes all inputs of the model");
            return;
        }
    }
    (void)(add_tokenizer(map, job) && add_prompt(map, job) &&
           add_count(map, "max_tokens", "-n", 1, GENERATE_CONTEXT_MOST, job) &&
           add_text(map, "temperature", "-t", job) &&
           add_count(map, "top_k", "-k", 0, GENERATE_TOP_MOST, job) &&
           add_text(map, "seed", "-r", job) &&
           add_count(map, "batch", "-b", 1, GENERATE_ROWS_MOST, job) &&
           add_count(map, "context", "-c", 1, GENERATE_CONTEXT_MOST, job) && add_stops(map, job));
}

bool job_generate_check(const struct job_file *job, struct job_fault *fault)
{
    struct generate_words words;
    fault->field = "run";
    fault->item = SIZE_MAX;
    if (job->source == TEMPLATE_EACH || job->parts > 0) {
        problem_set(&fault->what, "a prompt is no file and has no rows; several prompts are the "
                                  "lines of a file (lines: FILE)");
        return false;
    }
    if (!generate_words_read((const char *const *)job->run.items, job->run.count, true, &words,
                             &fault->what)) {
        return false;
    }
    if (words.temperature_milli == 0 && (words.top > 0 || words.seed > 0)) {
        problem_set(&fault->what,
                    "top_k and seed go with a temperature above 0, as in 0.8; at 0 the likeliest "
                    "token is taken each time");
        return false;
    }
    return true;
}
