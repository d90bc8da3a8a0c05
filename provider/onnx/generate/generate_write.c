/* The files of a text that was made are written here. */
#include "provider/onnx/generate/generate.h"

#include "formats/generate/word_split.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool write_all(int file, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        const ssize_t written = write(file, at, size);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static enum operation_status write_file(int folder, const char *name, const void *bytes,
                                        size_t size, struct problem *problem)
{
    const int file =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    bool good = file >= 0 && write_all(file, bytes, size);
    int error = errno;
    if (file >= 0 && close(file) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good) {
        return OPERATION_OK;
    }
    if (file >= 0) {
        (void)unlinkat(folder, name, 0);
    }
    problem_set(problem, "%s: %s", name, strerror(error));
    return error == ENOSPC || error == EFBIG || error == EDQUOT ? OPERATION_DISK : OPERATION_FAILED;
}

static enum operation_status write_json(int folder, const char *name, json_t *value,
                                        struct problem *problem)
{
    char *text = value != NULL ? json_dumps(value, JSON_REAL_PRECISION(6)) : NULL;
    json_decref(value);
    if (text == NULL) {
        problem_set(problem, "there is not enough memory");
        return OPERATION_MEMORY;
    }
    const size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the NUL: a file of one line */
    const enum operation_status status = write_file(folder, name, text, length + 1, problem);
    free(text);
    return status;
}

/* JSON has only whole characters: each byte that is none becomes U+FFFD. The text may have NULs. */
static json_t *text_value(const uint8_t *text, size_t size)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    char *shown = malloc(3 * size + 1);
    size_t length = 0;
    while (shown != NULL && size > 0) {
        uint32_t character = 0;
        const size_t bytes = word_split_character(text, size, &character);
        const bool is_good = character != UINT32_MAX;
        const size_t taken = is_good ? bytes : sizeof replacement - 1;
        memcpy(shown + length, is_good ? (const char *)text : replacement, taken);
        length += taken;
        text += bytes;
        size -= bytes;
    }
    json_t *value = shown != NULL ? json_stringn(shown, length) : NULL;
    free(shown);
    return value;
}

static json_t *token_values(const uint32_t *tokens, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_integer(tokens[i]));
    }
    return list;
}

static json_t *answer_value(const char *prompt, const struct generate_result *result)
{
    static const char *const ends[GENERATE_ENDS] = {"token", "most", "context"};
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:s}", "version", 1, "prompt",
                     text_value((const uint8_t *)prompt, strlen(prompt)), "text",
                     text_value(result->text, result->text_size), "prompt_tokens",
                     token_values(result->prompt, result->prompt_count), "tokens",
                     token_values(result->tokens, result->token_count), "prompt_count",
                     (json_int_t)result->prompt_count, "count", (json_int_t)result->token_count,
                     "end", ends[result->end]);
}

static double rate(size_t count, int64_t ns)
{
    return ns > 0 ? (double)count * 1e9 / (double)ns : 0;
}

static json_t *part_value(size_t count, int64_t ns, int64_t cpu_ns)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "tokens", (json_int_t)count, "seconds",
                     (double)ns / 1e9, "cpu_seconds", (double)cpu_ns / 1e9, "tokens_per_s",
                     rate(count, ns));
}

static json_t *speed_value(const struct generate_run *run, const struct generate_result *result)
{
    return json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "engine", run->engine->name, "prefill",
                     part_value(result->prompt_count, result->prefill_ns, result->prefill_cpu_ns),
                     "decode",
                     part_value(result->decode_steps, result->decode_ns, result->decode_cpu_ns));
}

enum operation_status generate_write(int folder, const struct generate_run *run,
                                     const struct generate_result *result,
                                     struct problem *ret_problem)
{
    static const char *const names[] = {GENERATE_TEXT_FILE, GENERATE_ANSWER_FILE,
                                        GENERATE_SPEED_FILE};
    size_t written = 0;
    enum operation_status status =
        write_file(folder, names[written], result->text, result->text_size, ret_problem);
    if (status == OPERATION_OK) {
        status = write_json(folder, names[++written], answer_value(run->words->prompts[0], result),
                            ret_problem);
    }
    if (status == OPERATION_OK) {
        status = write_json(folder, names[++written], speed_value(run, result), ret_problem);
    }
    for (size_t i = 0; status != OPERATION_OK && i < written; i++) {
        (void)unlinkat(folder, names[i], 0);
    }
    return status;
}

/* ---------------------------------------------------------------- several texts */

/* Lines of JSON that grow. */
struct lines {
    char *text;
    size_t size, capacity;
};

/* Adds a value as one line, and takes it over. */
static bool add_line(struct lines *lines, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_REAL_PRECISION(6)) : NULL;
    json_decref(value);
    const size_t length = text != NULL ? strlen(text) : 0;
    if (text != NULL && lines->size + length + 1 > lines->capacity) {
        const size_t capacity = 2 * (lines->size + length + 1);
        char *grown = realloc(lines->text, capacity);
        if (grown != NULL) {
            lines->text = grown;
            lines->capacity = capacity;
        }
    }
    const bool fits = text != NULL && lines->size + length + 1 <= lines->capacity;
    if (fits) {
        memcpy(lines->text + lines->size, text, length);
        lines->text[lines->size + length] = '\n';
        lines->size += length + 1;
    }
    free(text);
    return fits;
}

static json_t *many_speed_value(const struct generate_run *run, const struct generate_many *texts,
                                const struct generate_speed *speed)
{
    return json_pack(
        "{s:i, s:s, s:I, s:I, s:o, s:o}", "version", 1, "engine", run->engine->name, "prompts",
        (json_int_t)texts->count, "at_a_time", (json_int_t)speed->rows, "prefill",
        part_value(speed->prompt_tokens, speed->prefill_ns, speed->prefill_cpu_ns), "decode",
        part_value(speed->decode_tokens, speed->decode_ns, speed->decode_cpu_ns));
}

enum operation_status generate_write_many(int folder, const struct generate_run *run,
                                          const struct generate_many *texts,
                                          const struct generate_result *results,
                                          const struct generate_speed *speed,
                                          struct problem *ret_problem)
{
    struct lines lines = {.text = NULL};
    bool good = true;
    for (size_t i = 0; good && i < texts->count; i++) {
        json_t *value = answer_value(texts->prompts[i], &results[i]);
        (void)json_object_set_new(value, "index", json_integer((json_int_t)i));
        good = add_line(&lines, value);
    }
    if (!good) {
        problem_set(ret_problem, "there is not enough memory");
        free(lines.text);
        return OPERATION_MEMORY;
    }
    enum operation_status status =
        write_file(folder, GENERATE_ANSWERS_FILE, lines.text, lines.size, ret_problem);
    free(lines.text);
    if (status == OPERATION_OK) {
        status = write_json(folder, GENERATE_SPEED_FILE, many_speed_value(run, texts, speed),
                            ret_problem);
        if (status != OPERATION_OK) {
            (void)unlinkat(folder, GENERATE_ANSWERS_FILE, 0);
        }
    }
    return status;
}
