#include "consumer/model/model_generate.h"

#include "base/cleanup.h"
#include "consumer/job/input_list.h"
#include "consumer/model/model_file.h"
#include "consumer/model/model_job.h"
#include "formats/generate/decoder_ports.h"
#include "formats/generate/generate_words.h"
#include "formats/generate/model_config.h"
#include "formats/generate/tokenizer.h"
#include "formats/limits.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBER_SIZE = 24, LINES_BYTES_MOST = 256 << 20 };

/* One job while it is settled. */
struct settling {
    struct job_file *file;
    const char *folder;
    struct generate_words words;
    const struct tokenizer *tokenizer;
    uint32_t context;
    bool is_file;           /* all lines of a file are prompts of one subtask */
    struct job_strings run; /* the new words */
    struct problem *problem;
};

static void free_bytes(uint8_t **bytes)
{
    free(*bytes);
}

static void free_text(char **text)
{
    free(*text);
}

static bool fail(struct settling *settling, const char *what)
{
    problem_set(settling->problem, "%s", what);
    return false;
}

static bool path_of(struct settling *settling, const char *name, char path[MODEL_FILE_PATH_SIZE])
{
    if (strpbrk(name, "{}") != NULL) {
        return fail(settling, "the files of a model have no placeholders and no braces");
    }
    return model_file_path(settling->folder, name, path) ||
           fail(settling, "the path of a file of the model is too long");
}

/* ---------------------------------------------------------------- words */

static bool add_word(struct settling *settling, const char *option, const char *word)
{
    return (job_strings_add(&settling->run, GENERATE_WORDS_MOST, option) &&
            job_strings_add(&settling->run, GENERATE_WORDS_MOST, word)) ||
           fail(settling, "out of memory, or too many words");
}

static bool add_number(struct settling *settling, const char *option, uint32_t number)
{
    char text[NUMBER_SIZE];
    (void)snprintf(text, sizeof text, "%u", number);
    return add_word(settling, option, text);
}

/* Adds the template of all lines as one that stands for itself: the computing program fills it. */
static bool add_line_template(struct settling *settling, const char *template)
{
    char *literal = generate_words_literal(template);
    const bool good =
        literal != NULL ? add_word(settling, "-q", literal) : fail(settling, "out of memory");
    free(literal);
    return good;
}

/* Copies the words, with the names that files have in the work folder. */
static bool copy_words(struct settling *settling)
{
    const struct job_strings *old = &settling->file->run;
    const char *model = input_list_name(settling->words.model);
    bool good = job_strings_add(&settling->run, GENERATE_WORDS_MOST, model) ||
                fail(settling, "out of memory");
    for (size_t i = 1; good && i + 1 < old->count; i += 2) {
        const bool is_tokenizer = strcmp(old->items[i], "-g") == 0;
        if (settling->is_file && strcmp(old->items[i], "-q") == 0) {
            good = add_line_template(settling, old->items[i + 1]);
            continue;
        }
        good = add_word(settling, old->items[i],
                        is_tokenizer ? input_list_name(old->items[i + 1]) : old->items[i + 1]);
    }
    return good &&
           (!settling->is_file || add_word(settling, "-f", input_list_name(settling->file->lines)));
}

static bool is_stop(const struct generate_words *words, uint32_t token)
{
    for (size_t i = 0; i < words->stop_count; i++) {
        if (words->stops[i] == token) {
            return true;
        }
    }
    return false;
}

/* Adds what a file beside the model says, unless the words or an earlier file said it. A file that
 * is not there says nothing. */
static bool add_config(struct settling *settling, const char *name)
{
    char beside[FORMAT_PATH_BYTES + 1];
    char path[MODEL_FILE_PATH_SIZE];
    CLEANUP(free_bytes) uint8_t *bytes = NULL;
    size_t size = 0;
    struct model_config config;
    struct problem why = {""};
    struct generate_words *words = &settling->words;
    if (!generate_words_beside(words->model, name, beside, sizeof beside) ||
        !path_of(settling, beside, path)) {
        return fail(settling, "the path of the model is too long");
    }
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_read(path, MODEL_CONFIG_BYTES, &bytes, &size, &why) ||
        !model_config_read(bytes, size, &config, &why)) {
        problem_set(settling->problem, "%.150s: %.330s", beside, why.text);
        return false;
    }
    bool good = true;
    if (words->has_context && config.context > 0 && words->context > config.context) {
        problem_set(settling->problem,
                    "context: %u places, but the model has %u (%.150s); say no more than that",
                    words->context, config.context, beside);
        return false;
    }
    if (!words->has_context && config.context > 0) {
        words->has_context = true;
        words->context = config.context;
        good = add_number(settling, "-c", config.context);
    }
    for (size_t i = 0; good && i < config.end_count; i++) {
        if (!is_stop(words, config.ends[i]) && words->stop_count < GENERATE_STOPS_MOST) {
            words->stops[words->stop_count++] = config.ends[i];
            good = add_number(settling, "-e", config.ends[i]);
        }
    }
    return good;
}

/* ---------------------------------------------------------------- files */

static bool add_once(struct settling *settling, struct job_strings *list, size_t most,
                     const char *text)
{
    return job_strings_add_once(list, most, text) ||
           fail(settling, "out of memory, or the job has too many files");
}

static bool add_files(struct settling *settling, const struct model_file *model)
{
    static const char *const of_one[] = {GENERATE_TEXT_FILE, GENERATE_ANSWER_FILE,
                                         GENERATE_SPEED_FILE};
    static const char *const of_many[] = {GENERATE_ANSWERS_FILE, GENERATE_SPEED_FILE};
    const bool is_many = settling->is_file || settling->words.prompt_count > 1;
    const char *const *outputs = is_many ? of_many : of_one;
    const size_t output_count =
        is_many ? sizeof of_many / sizeof of_many[0] : sizeof of_one / sizeof of_one[0];
    struct job_file *file = settling->file;
    bool good =
        model_job_add_files(file, settling->folder, settling->words.model, model->interface,
                            settling->problem) &&
        add_once(settling, &file->files, FORMAT_SHARED_FILES, settling->words.tokenizer) &&
        (!settling->is_file || add_once(settling, &file->files, FORMAT_SHARED_FILES, file->lines));
    for (size_t i = 0; good && i < output_count; i++) {
        good = add_once(settling, &file->outputs, FORMAT_OUTPUTS, outputs[i]);
    }
    return good;
}

static struct tokenizer *open_tokenizer(struct settling *settling)
{
    const char *name = settling->words.tokenizer;
    char path[MODEL_FILE_PATH_SIZE];
    CLEANUP(free_bytes) uint8_t *bytes = NULL;
    size_t size = 0;
    struct problem why = {""};
    struct tokenizer *tokenizer = NULL;
    if (!path_of(settling, name, path)) {
        return NULL;
    }
    if (file_read(path, TOKENIZER_BYTES, &bytes, &size, &why)) {
        tokenizer = tokenizer_read(bytes, size, &why);
    }
    if (tokenizer == NULL) {
        problem_set(settling->problem, "%.150s: %.330s", name, why.text);
    }
    return tokenizer;
}

static bool check_model(struct settling *settling, const struct model_file *model)
{
    const struct onnx_interface *interface = model->interface;
    struct decoder_ports ports;
    struct problem why = {""};
    if (!decoder_ports_read(interface->inputs, interface->input_count, interface->outputs,
                            interface->output_count, &ports, &why) ||
        (ports.vocabulary >= 0 &&
         !decoder_ports_fit(ports.vocabulary, tokenizer_size(settling->tokenizer), &why))) {
        problem_set(settling->problem, "%.150s: %.330s", settling->words.model, why.text);
        return false;
    }
    for (size_t i = 0; i < settling->words.stop_count; i++) {
        if (settling->words.stops[i] >= tokenizer_size(settling->tokenizer) &&
            ports.vocabulary >= 0 && settling->words.stops[i] >= ports.vocabulary) {
            problem_set(settling->problem,
                        "the token %u, which is to end the text, is above the "
                        "vocabulary",
                        settling->words.stops[i]);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- prompts */

/* Compares one prompt with the model's context. `line` is 0 where there is no file. */
static bool check_template(struct settling *settling, const char *template, const char *value,
                           unsigned line)
{
    const struct template_values values = {.value = value};
    size_t size = 0;
    size_t count = 0;
    char *prompt = template_filled(template, &values, FORMAT_ARGUMENT_BYTES, &size);
    uint32_t *tokens =
        prompt != NULL ? tokenizer_encode(settling->tokenizer, prompt, size, &count) : NULL;
    const bool has_memory = tokens != NULL;
    free(prompt);
    free(tokens);
    if (!has_memory) {
        problem_set(settling->problem, "the prompt has more than %d bytes, or memory is short",
                    FORMAT_ARGUMENT_BYTES);
        return false;
    }
    if (count == 0 || count > settling->words.context) {
        char where[NUMBER_SIZE + 16] = "";
        if (line > 0) {
            (void)snprintf(where, sizeof where, " in line %u", line);
        }
        problem_set(settling->problem,
                    "the prompt%s has %zu tokens; the model takes 1 to %u (config.json, or "
                    "--context)",
                    where, count, settling->words.context);
        return false;
    }
    return true;
}

static bool check_prompt(struct settling *settling, const char *value, unsigned line)
{
    bool good = true;
    for (size_t i = 0; good && i < settling->words.prompt_count; i++) {
        good = check_template(settling, settling->words.prompts[i], value, line);
    }
    return good;
}

/* Looks at the lines that are not empty, as the manifest's subtasks do. */
static bool check_lines(struct settling *settling)
{
    char path[MODEL_FILE_PATH_SIZE];
    CLEANUP(free_bytes) uint8_t *bytes = NULL;
    size_t size = 0;
    if (!model_file_path(settling->folder, settling->file->lines, path) ||
        !file_read(path, LINES_BYTES_MOST, &bytes, &size, settling->problem)) {
        return false;
    }
    const char *text = (const char *)bytes;
    const char *line = NULL;
    size_t length = 0;
    size_t count = 0;
    unsigned number = 0;
    if (settling->is_file && size > GENERATE_FILE_BYTES) {
        problem_set(settling->problem, "%.200s has %zu bytes; with --batch at most %d",
                    settling->file->lines, size, (int)GENERATE_FILE_BYTES);
        return false;
    }
    while (generate_words_line(&text, &size, &line, &length, &number)) {
        CLEANUP(free_text) char *value = strndup(line, length);
        if (value == NULL) {
            return fail(settling, "out of memory");
        }
        if (strlen(value) < length) {
            problem_set(settling->problem, "%.200s: line %u has a NUL", settling->file->lines,
                        number);
            return false;
        }
        if (!check_prompt(settling, value, number)) {
            return false;
        }
        count++;
    }
    if (settling->is_file && (count == 0 || count > GENERATE_LINES_MOST)) {
        problem_set(settling->problem, "%.200s has %zu prompts; with --batch there are 1 to %d",
                    settling->file->lines, count, GENERATE_LINES_MOST);
        return false;
    }
    return true;
}

static bool check_prompts(struct settling *settling)
{
    char first[NUMBER_SIZE];
    switch (settling->file->source) {
    case TEMPLATE_LINES:
        return check_lines(settling);
    case TEMPLATE_ARRAY:
        (void)snprintf(first, sizeof first, "%lld", (long long)settling->file->array.first);
        return check_prompt(settling, first, 0);
    default:
        return check_prompt(settling, NULL, 0);
    }
}

/* ---------------------------------------------------------------- all */

static bool settle(struct settling *settling)
{
    CLEANUP(model_file_close) struct model_file *model = NULL;
    CLEANUP(tokenizer_destroy) struct tokenizer *tokenizer = NULL;
    char path[MODEL_FILE_PATH_SIZE];
    if (!path_of(settling, settling->words.model, path)) {
        return false;
    }
    model = model_file_open(path, settling->problem);
    tokenizer = model != NULL ? open_tokenizer(settling) : NULL;
    settling->tokenizer = tokenizer;
    return tokenizer != NULL && copy_words(settling) &&
           add_config(settling, "generation_config.json") && add_config(settling, "config.json") &&
           check_model(settling, model) && check_prompts(settling) && add_files(settling, model);
}

bool model_generate_settle(struct job_file *file, const char *folder, struct problem *ret_problem)
{
    struct settling settling = {.file = file, .folder = folder, .problem = ret_problem};
    if (file == NULL || !file->is_onnx || file->task_count > 0 ||
        !generate_words_are((const char *const *)file->run.items, file->run.count)) {
        return true;
    }
    if (!generate_words_read((const char *const *)file->run.items, file->run.count, true,
                             &settling.words, ret_problem)) {
        return false;
    }
    settling.is_file = settling.words.has_rows && file->source == TEMPLATE_LINES;
    const bool good = settle(&settling);
    if (good) { /* the old words are used up to here */
        const struct job_strings old = file->run;
        file->run = settling.run;
        settling.run = old;
        file->source = settling.is_file ? TEMPLATE_ONE : file->source;
    }
    job_strings_fini(&settling.run);
    return good;
}
