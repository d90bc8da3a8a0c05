#include "provider/onnx/onnx_serve.h"

#include "provider/onnx/generate/generate.h"
#include "provider/onnx/generate/prompts.h"
#include "provider/onnx/onnx_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The bytes name what a subtask opens: the model's name, and the hash and the name of each file. */
struct key {
    uint8_t *bytes; /* NULL: there is none, and nothing equals it */
    size_t size;
};

struct onnx_serve {
    const struct onnx_engine *engine;
    uint32_t threads;
    void *session; /* NULL: no model is open */
    uint64_t memory_bytes;
    struct onnx_file model; /* mapped while the engine needs it */
    /* The tokenizer of the last prompt and its file's name, as long as the model is open; NULL:
     * there is none. */
    struct tokenizer *tokenizer;
    char *tokenizer_name;
    struct key key;
    uint64_t opened;
};

struct onnx_serve *onnx_serve_create(const struct onnx_engine *engine, uint32_t threads)
{
    struct onnx_serve *serve = calloc(1, sizeof *serve);
    if (serve != NULL) {
        serve->engine = engine;
        serve->threads = threads;
    }
    return serve;
}

static void forget_tokenizer(struct onnx_serve *serve)
{
    tokenizer_destroy(&serve->tokenizer);
    free(serve->tokenizer_name);
    serve->tokenizer_name = NULL;
}

static void forget(struct onnx_serve *serve)
{
    serve->engine->close(&serve->session);
    onnx_file_unmap(&serve->model);
    forget_tokenizer(serve);
    free(serve->key.bytes);
    serve->key = (struct key){.bytes = NULL};
}

void onnx_serve_destroy(struct onnx_serve **self)
{
    if (*self != NULL) {
        forget(*self);
        free(*self);
        *self = NULL;
    }
}

uint64_t onnx_serve_opened(const struct onnx_serve *serve)
{
    return serve->opened;
}

static enum operation_status status_of(enum onnx_engine_status status)
{
    return status == ONNX_ENGINE_OK       ? OPERATION_OK
           : status == ONNX_ENGINE_MEMORY ? OPERATION_MEMORY
                                          : OPERATION_FAILED;
}

/* ---------------------------------------------------------------- the open model */

/* Writes down the contents. Without that of the model there is no key. */
static struct key key_of(const struct onnx_serve_run *run, const char *model)
{
    size_t size = strlen(model) + 1;
    bool has_model = false;
    for (size_t i = 0; i < run->content_count; i++) {
        size += sizeof(struct hash32) + strlen(run->contents[i].name) + 1;
        has_model = has_model || strcmp(run->contents[i].name, model) == 0;
    }
    struct key key = {has_model ? malloc(size) : NULL, size};
    uint8_t *at = key.bytes;
    if (at != NULL) {
        memcpy(at, model, strlen(model) + 1);
        at += strlen(model) + 1;
    }
    for (size_t i = 0; at != NULL && i < run->content_count; i++) {
        const size_t length = strlen(run->contents[i].name) + 1;
        memcpy(at, run->contents[i].hash.bytes, sizeof(struct hash32));
        memcpy(at + sizeof(struct hash32), run->contents[i].name, length);
        at += sizeof(struct hash32) + length;
    }
    return key;
}

static bool is_open(const struct onnx_serve *serve, const struct onnx_serve_run *run,
                    const struct key *key)
{
    return serve->session != NULL && key->bytes != NULL && serve->key.bytes != NULL &&
           serve->memory_bytes == run->memory_bytes && key->size == serve->key.size &&
           memcmp(key->bytes, serve->key.bytes, key->size) == 0;
}

static enum operation_status open_model(struct onnx_serve *serve, const struct onnx_serve_run *run,
                                        const char *name, struct problem *ret_problem)
{
    struct problem why = {""};
    char folder[ONNX_NAME_BYTES + 1] = ".";
    const char *slash = strrchr(name, '/');
    if (slash != NULL && (size_t)(slash - name) < sizeof folder) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
    }
    if (!onnx_file_map(run->folder, name, &serve->model, ret_problem)) {
        return OPERATION_FAILED;
    }
    const struct onnx_engine_model model = {.bytes = serve->model.bytes,
                                            .size = serve->model.size,
                                            .folder = folder,
                                            .threads = serve->threads,
                                            .memory_bytes = run->memory_bytes};
    const enum onnx_engine_status status =
        model.size > 0 ? serve->engine->open(serve->engine->context, &model, &serve->session, &why)
                       : ONNX_ENGINE_MODEL;
    serve->opened += status == ONNX_ENGINE_OK;
    if (status == ONNX_ENGINE_OK && serve->engine->share != NULL) {
        const char *share = serve->engine->share(serve->session);
        (void)fprintf(stderr, "%s%s", share, share[0] != '\0' ? "\n" : "");
    }
    if (status != ONNX_ENGINE_OK) {
        problem_set(ret_problem, "%.100s: %.380s", name,
                    model.size > 0 ? why.text : "the file is empty");
    }
    if (status != ONNX_ENGINE_OK || serve->engine->copies_bytes) {
        onnx_file_unmap(&serve->model);
    }
    return status_of(status);
}

/* Opens the model unless it is open already. */
static enum operation_status settle_model(struct onnx_serve *serve,
                                          const struct onnx_serve_run *run, const char *name,
                                          struct problem *ret_problem)
{
    struct key key = key_of(run, name);
    if (is_open(serve, run, &key)) {
        free(key.bytes);
        return OPERATION_OK;
    }
    forget(serve);
    const enum operation_status status = open_model(serve, run, name, ret_problem);
    if (status != OPERATION_OK) {
        free(key.bytes);
        return status;
    }
    serve->key = key;
    serve->memory_bytes = run->memory_bytes;
    return OPERATION_OK;
}

/* ---------------------------------------------------------------- one run */

/* The arrays of a run, one for each input and output of the model. */
struct arrays {
    struct onnx_array *inputs, *outputs;
    size_t input_count, output_count;
};

static void release_all(struct onnx_array *arrays, size_t count)
{
    for (size_t i = 0; arrays != NULL && i < count; i++) {
        onnx_array_release(&arrays[i]);
    }
    free(arrays);
}

static const struct onnx_words_file *file_of(const struct onnx_words_file *files, size_t count,
                                             const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (onnx_span_is(files[i].name, name)) {
            return &files[i];
        }
    }
    return NULL;
}

/* Names in the words that the model does not have are mistakes. */
static bool are_known(struct onnx_engine_ports ports, const struct onnx_words_file *files,
                      size_t count, const char *what, struct problem *problem)
{
    for (size_t i = 0; i < count; i++) {
        size_t port = 0;
        while (port < ports.count && !onnx_span_is(files[i].name, ports.items[port].name)) {
            port++;
        }
        if (port == ports.count) {
            problem_set(problem, "the model has no %s \"%s\"", what,
                        onnx_label(files[i].name).text);
            return false;
        }
    }
    return true;
}

/* Returns the open file of an input, or -1 when the input is in the folder. */
static int given_file(const struct onnx_serve_run *run, struct onnx_span name)
{
    for (size_t i = 0; i < run->given_count; i++) {
        if (onnx_span_is(name, run->given[i].name)) {
            return run->given[i].file;
        }
    }
    return -1;
}

static bool read_inputs(const struct onnx_serve_run *run, const struct onnx_words *words,
                        struct onnx_engine_ports ports, struct onnx_array *inputs,
                        struct problem *problem)
{
    for (size_t i = 0; i < ports.count; i++) {
        const struct onnx_engine_port *port = &ports.items[i];
        const struct onnx_words_file *file = file_of(words->inputs, words->input_count, port->name);
        if (file == NULL) {
            problem_set(problem,
                        "the model's input \"%.200s\" is not given; give it with -i NAME=FILE",
                        port->name);
            return false;
        }
        const struct onnx_file_place place = {run->folder, given_file(run, file->file)};
        if (!onnx_file_read(&place, file, words, &inputs[i], problem) ||
            !onnx_engine_fit(port, &inputs[i], problem)) {
            return false;
        }
    }
    return true;
}

static void remove_written(const struct onnx_serve_run *run, const struct onnx_words *words,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[ONNX_NAME_BYTES + 1];
        const struct onnx_span file = words->outputs[i].file;
        memcpy(name, file.at, file.size); /* onnx_file_write has taken it */
        name[file.size] = '\0';
        (void)unlinkat(run->folder, name, 0);
    }
}

static enum operation_status write_outputs(const struct onnx_serve_run *run,
                                           const struct onnx_words *words,
                                           struct onnx_engine_ports ports,
                                           const struct onnx_array *outputs,
                                           struct problem *ret_problem)
{
    enum onnx_file_status status = ONNX_FILE_OK;
    size_t written = 0;
    for (; written < words->output_count; written++) {
        const struct onnx_words_file *file = &words->outputs[written];
        size_t port = 0;
        while (!onnx_span_is(file->name, ports.items[port].name)) {
            port++; /* are_known */
        }
        status = onnx_file_write(run->folder, file, &outputs[port], ret_problem);
        if (status != ONNX_FILE_OK) {
            remove_written(run, words, written);
            break;
        }
    }
    return status == ONNX_FILE_OK     ? OPERATION_OK
           : status == ONNX_FILE_DISK ? OPERATION_DISK
                                      : OPERATION_FAILED;
}

static enum operation_status run_open(struct onnx_serve *serve, const struct onnx_serve_run *run,
                                      const struct onnx_words *words, struct arrays *arrays,
                                      struct problem *ret_problem)
{
    const struct onnx_engine *engine = serve->engine;
    const struct onnx_engine_ports inputs = engine->inputs(serve->session);
    const struct onnx_engine_ports outputs = engine->outputs(serve->session);
    arrays->inputs = calloc(inputs.count + 1, sizeof *arrays->inputs);
    arrays->outputs = calloc(outputs.count + 1, sizeof *arrays->outputs);
    if (arrays->inputs == NULL || arrays->outputs == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        return OPERATION_MEMORY;
    }
    arrays->input_count = inputs.count;
    arrays->output_count = outputs.count;
    if (!are_known(inputs, words->inputs, words->input_count, "input", ret_problem) ||
        !are_known(outputs, words->outputs, words->output_count, "output", ret_problem) ||
        !read_inputs(run, words, inputs, arrays->inputs, ret_problem)) {
        return OPERATION_FAILED;
    }
    const enum onnx_engine_status status =
        engine->run(serve->session, arrays->inputs, arrays->outputs, ret_problem);
    return status != ONNX_ENGINE_OK
               ? status_of(status)
               : write_outputs(run, words, outputs, arrays->outputs, ret_problem);
}

/* ---------------------------------------------------------------- a prompt */

/* Reads the tokenizer, unless the last prompt of the open model had it. The model's key names the
 * content of all files, the tokenizer's among them. */
static bool settle_tokenizer(struct onnx_serve *serve, const struct onnx_serve_run *run,
                             const char *name, struct problem *ret_problem)
{
    struct onnx_file file;
    struct problem why = {""};
    if (serve->tokenizer != NULL && strcmp(serve->tokenizer_name, name) == 0) {
        return true;
    }
    forget_tokenizer(serve);
    if (!onnx_file_map(run->folder, name, &file, ret_problem)) {
        return false;
    }
    const void *bytes = file.bytes != NULL ? (const void *)file.bytes : "";
    serve->tokenizer = tokenizer_read(bytes, file.size, &why);
    onnx_file_unmap(&file);
    if (serve->tokenizer == NULL) {
        problem_set(ret_problem, "%.100s: %.380s", name, why.text);
        return false;
    }
    serve->tokenizer_name = strdup(name);
    if (serve->tokenizer_name == NULL) {
        forget_tokenizer(serve);
        problem_set(ret_problem, "there is not enough memory");
    }
    return serve->tokenizer != NULL;
}

/* The text and this line come on one terminal, so the line begins a new one. */
static void say_speed(const struct generate_result *result)
{
    const bool is_open = result->text_size > 0 && result->text[result->text_size - 1] != '\n';
    (void)fputs(is_open ? "\n" : "", stderr);
    (void)fprintf(stderr, "%zu tokens of the prompt in %.3f s, then %zu tokens in %.3f s\n",
                  result->prompt_count, (double)result->prefill_ns / 1e9, result->token_count,
                  (double)result->decode_ns / 1e9);
}

static void say_speed_of_all(const struct generate_speed *speed, size_t count)
{
    if (speed->lacks != NULL) {
        (void)fprintf(stderr,
                      "the prompts run one after another: the model takes one at a time, "
                      "because %s\n",
                      speed->lacks);
    }
    (void)fprintf(stderr,
                  "%zu prompts, at most %zu at a time: %zu of their tokens in %.3f s, then %zu "
                  "tokens in %.3f s\n",
                  count, speed->rows, speed->prompt_tokens, (double)speed->prefill_ns / 1e9,
                  speed->decode_tokens, (double)speed->decode_ns / 1e9);
}

static bool list_prompts(const struct onnx_serve_run *run, const struct generate_words *words,
                         struct prompts *ret_prompts, struct problem *ret_problem)
{
    struct onnx_file file = {.bytes = NULL};
    if (words->file != NULL && !onnx_file_map(run->folder, words->file, &file, ret_problem)) {
        return false;
    }
    bool good = file.size <= GENERATE_FILE_BYTES;
    if (!good) {
        problem_set(ret_problem, "%.200s has more than %d bytes", words->file,
                    (int)GENERATE_FILE_BYTES);
    }
    const char *text = file.bytes != NULL ? (const char *)file.bytes : "";
    good = good && prompts_list(words, text, file.size, ret_prompts, ret_problem);
    onnx_file_unmap(&file);
    return good;
}

/* Makes the texts of several prompts. */
static enum operation_status run_texts(const struct onnx_serve_run *run,
                                       const struct generate_run *text, struct problem *ret_problem)
{
    struct prompts prompts;
    struct generate_speed speed;
    if (!list_prompts(run, text->words, &prompts, ret_problem)) {
        return OPERATION_FAILED;
    }
    const struct generate_many many = {(const char *const *)prompts.items, prompts.count,
                                       text->words->rows};
    struct generate_result *results = calloc(prompts.count, sizeof *results);
    enum operation_status status = OPERATION_MEMORY;
    if (results == NULL) {
        problem_set(ret_problem, "there is not enough memory");
    } else {
        status = status_of(generate_texts(text, &many, results, &speed, ret_problem));
    }
    if (status == OPERATION_OK) {
        status = generate_write_many(run->folder, text, &many, results, &speed, ret_problem);
        say_speed_of_all(&speed, prompts.count);
    }
    for (size_t i = 0; results != NULL && i < prompts.count; i++) {
        generate_result_fini(&results[i]);
    }
    free(results);
    prompts_fini(&prompts);
    return status;
}

static enum operation_status run_prompt(struct onnx_serve *serve, const struct onnx_serve_run *run,
                                        struct problem *ret_problem)
{
    struct generate_words words;
    struct generate_result result;
    if (!generate_words_read(run->words, run->count, false, &words, ret_problem)) {
        return OPERATION_FAILED;
    }
    enum operation_status status = settle_model(serve, run, words.model, ret_problem);
    if (status != OPERATION_OK) {
        return status;
    }
    if (!settle_tokenizer(serve, run, words.tokenizer, ret_problem)) {
        return OPERATION_FAILED;
    }
    const struct generate_run text = {.engine = serve->engine,
                                      .session = serve->session,
                                      .tokenizer = serve->tokenizer,
                                      .words = &words,
                                      .live = run->live};
    if (generate_words_are_many(&words)) {
        return run_texts(run, &text, ret_problem);
    }
    status = status_of(generate_text(&text, &result, ret_problem));
    if (status == OPERATION_OK) {
        status = generate_write(run->folder, &text, &result, ret_problem);
        say_speed(&result);
    }
    generate_result_fini(&result);
    return status;
}

enum operation_status onnx_serve_run(struct onnx_serve *serve, const struct onnx_serve_run *run,
                                     struct problem *ret_problem)
{
    if (generate_words_are(run->words, run->count)) {
        return run_prompt(serve, run, ret_problem);
    }
    struct onnx_words words;
    struct arrays arrays = {.inputs = NULL};
    if (!onnx_words_read(run->words, run->count, false, &words, ret_problem)) {
        return OPERATION_FAILED;
    }
    enum operation_status status = settle_model(serve, run, words.model, ret_problem);
    if (status == OPERATION_OK) {
        status = run_open(serve, run, &words, &arrays, ret_problem);
    }
    release_all(arrays.inputs, arrays.input_count);
    release_all(arrays.outputs, arrays.output_count);
    return status;
}

/* ---------------------------------------------------------------- a model of our own */

/* y = x + x for x of float32[2]: onnx.proto, IR version 8, opset 13. */
static const uint8_t trial_model[] = {
    0x08, 0x08,                                                               /* ir_version */
    0x3A, 0x35,                                                               /* graph */
    0x0A, 0x0E, 0x0A, 1,    'x', 0x0A, 1,    'x',  0x12, 1,    'y',  0x22, 3, /* node */
    'A',  'd',  'd',  0x12, 1,   'g', /* name of the graph */
    0x5A, 0x0F, 0x0A, 1,    'x', 0x12, 0x0A, 0x0A, 0x08, 0x08, 0x01, 0x12, 0x04,
    0x0A, 0x02, 0x08, 0x02, /* input */
    0x62, 0x0F, 0x0A, 1,    'y', 0x12, 0x0A, 0x0A, 0x08, 0x08, 0x01, 0x12, 0x04,
    0x0A, 0x02, 0x08, 0x02, /* output */
    0x42, 0x02, 0x10, 0x0D, /* opset */
};

static bool try_session(const struct onnx_engine *engine, void *session,
                        struct problem *ret_problem)
{
    float values[2] = {1.5F, -2};
    const int64_t dims[1] = {2};
    struct onnx_array input;
    struct onnx_array output = {.type = ONNX_UNDEFINED};
    if (!onnx_array_describe(ONNX_FLOAT, 1, dims, &input, ret_problem)) {
        return false;
    }
    input.bytes = values;
    if (engine->run(session, &input, &output, ret_problem) != ONNX_ENGINE_OK) {
        return false;
    }
    float sums[2] = {0, 0};
    const bool has_size = output.type == ONNX_FLOAT && output.size == sizeof sums;
    if (has_size) {
        memcpy(sums, output.bytes, sizeof sums);
    }
    onnx_array_release(&output);
    if (sums[0] != 3 || sums[1] != -4) {
        problem_set(ret_problem, "%s computes a sum wrongly", engine->name);
        return false;
    }
    return true;
}

bool onnx_serve_try(const struct onnx_engine *engine, struct problem *ret_problem)
{
    void *session = NULL;
    const struct onnx_engine_model model = {
        .bytes = trial_model, .size = sizeof trial_model, .threads = 1};
    if (engine->open(engine->context, &model, &session, ret_problem) != ONNX_ENGINE_OK) {
        return false;
    }
    const bool good = try_session(engine, session, ret_problem);
    engine->close(&session);
    return good;
}
