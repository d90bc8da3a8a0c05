#include "provider/onnx/generate/generate.h"

#include "base/text.h"
#include "formats/generate/decoder_ports.h"
#include "formats/generate/word_split.h"
#include "provider/onnx/generate/generate_internal.h"
#include "provider/onnx/generate/sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GROWTH = 4096,
    LINE_BYTES = 72, /* a labelled line without a newline is shown when it is so long */
    LABEL_SIZE = 32
};

/* Text that nobody has seen waits so long at most while tokens come faster: the agent looks every
 * 100 ms, and a small model's step takes less than a write. */
#define LIVE_EVERY_NS (10 * INT64_C(1000000))

void generate_result_fini(struct generate_result *result)
{
    free(result->prompt);
    free(result->tokens);
    free(result->text);
    *result = (struct generate_result){.prompt = NULL};
}

int64_t generate_now_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum onnx_engine_status out_of_memory(const struct making *making)
{
    problem_set(making->problem, "there is not enough memory");
    return ONNX_ENGINE_MEMORY;
}

/* ---------------------------------------------------------------- the text as it comes */

/* Returns how many bytes of the text are whole characters, or can be none. */
static size_t whole_bytes(const uint8_t *text, size_t size)
{
    const size_t most = size < 3 ? size : 3;
    for (size_t back = 1; back <= most; back++) {
        const uint8_t byte = text[size - back];
        if (byte >= 0xC0) { /* begins a character of 2, 3 or 4 bytes */
            const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
            return length > back ? size - back : size;
        }
        if (byte < 0x80) {
            return size;
        }
    }
    return size;
}

/* A reader that is gone is no reason to end the work. */
static void write_live(const struct making *making, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (making->run->live >= 0 && size > 0) {
        const ssize_t written = write(making->run->live, at, size);
        if (written < 0 && errno != EINTR) {
            return;
        }
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
}

static void show(struct making *making, size_t until)
{
    write_live(making, making->result->text + making->shown, until - making->shown);
    making->shown = until;
}

/* Shows lines that begin with the text's number. They depend on the tokens and not on the time, so
 * that equal runs print equal bytes. */
static void show_lines(struct making *making, bool is_over)
{
    char label[LABEL_SIZE];
    const uint8_t *text = making->result->text;
    const size_t size = making->result->text_size;
    const size_t until = is_over || size == 0 ? size : whole_bytes(text, size);
    const int length = snprintf(label, sizeof label, "[%zu] ", making->number);
    while (making->shown < until) {
        const uint8_t *from = text + making->shown;
        const size_t left = until - making->shown;
        const uint8_t *newline = memchr(from, '\n', left);
        if (newline == NULL && left < LINE_BYTES && !is_over) {
            return;
        }
        write_live(making, label, (size_t)length);
        show(making, newline != NULL ? making->shown + (size_t)(newline + 1 - from) : until);
        write_live(making, "\n", newline == NULL);
    }
}

static bool add_text(struct making *making, uint32_t token)
{
    struct generate_result *result = making->result;
    size_t size = 0;
    const uint8_t *text = tokenizer_text(making->run->tokenizer, token, &size);
    if (result->text_size + size > making->text_capacity) {
        const size_t capacity = 2 * (result->text_size + size) + GROWTH;
        uint8_t *grown = realloc(result->text, capacity);
        if (grown == NULL) {
            return false;
        }
        result->text = grown;
        making->text_capacity = capacity;
    }
    if (size > 0) {
        memcpy(result->text + result->text_size, text, size);
    }
    result->text_size += size;
    if (making->is_labelled) {
        show_lines(making, false);
        return true;
    }
    const int64_t at_ns = generate_now_ns(CLOCK_MONOTONIC);
    if (at_ns - making->shown_ns >= LIVE_EVERY_NS) {
        making->shown_ns = at_ns;
        show(making, whole_bytes(result->text, result->text_size));
    }
    return true;
}

/* ---------------------------------------------------------------- tokens */

static bool is_end(const struct generate_run *run, uint32_t token)
{
    bool found = tokenizer_is_special(run->tokenizer, token);
    for (size_t i = 0; i < run->words->stop_count; i++) {
        found = found || run->words->stops[i] == token;
    }
    return found;
}

/* Chooses the next token. Rows of the model that no token has are not looked at. */
static enum onnx_engine_status choose(struct making *making, const float *logits, size_t count,
                                      uint32_t *ret_token)
{
    const struct generate_words *words = making->run->words;
    const struct sample_rule rule = {words->temperature_milli, words->top};
    const uint32_t size = tokenizer_size(making->run->tokenizer);
    if (!decoder_ports_fit((int64_t)count, size, making->problem)) {
        return ONNX_ENGINE_MODEL;
    }
    if (!sample_next(logits, size, &rule, &making->random, ret_token)) {
        problem_set(making->problem, "the model's logits are no numbers");
        return ONNX_ENGINE_FAILED;
    }
    return ONNX_ENGINE_OK;
}

enum onnx_engine_status generate_making_take(struct making *making, const float *logits,
                                             size_t count, bool *ret_is_over)
{
    const struct generate_words *words = making->run->words;
    struct generate_result *result = making->result;
    uint32_t token = 0;
    const enum onnx_engine_status status = choose(making, logits, count, &token);
    *ret_is_over = true;
    if (status != ONNX_ENGINE_OK) {
        return status;
    }
    if (is_end(making->run, token)) {
        result->end = GENERATE_END_TOKEN;
        return ONNX_ENGINE_OK;
    }
    result->tokens[result->token_count++] = token;
    if (!add_text(making, token)) {
        return out_of_memory(making);
    }
    if (result->token_count == words->tokens_most) {
        result->end = GENERATE_END_MOST;
        return ONNX_ENGINE_OK;
    }
    if (result->prompt_count + result->token_count > words->context) {
        result->end = GENERATE_END_CONTEXT;
        return ONNX_ENGINE_OK;
    }
    *ret_is_over = false;
    return ONNX_ENGINE_OK;
}

void generate_making_end(struct making *making)
{
    if (making->is_labelled) {
        show_lines(making, true);
    } else {
        show(making, making->result->text_size);
    }
}

enum onnx_engine_status generate_making_begin(struct making *making)
{
    const struct generate_words *words = making->run->words;
    struct generate_result *result = making->result;
    result->prompt = tokenizer_encode(making->run->tokenizer, making->prompt,
                                      strlen(making->prompt), &result->prompt_count);
    result->tokens = calloc(words->tokens_most, sizeof *result->tokens);
    if (result->prompt == NULL || result->tokens == NULL) {
        return out_of_memory(making);
    }
    if (result->prompt_count == 0 || result->prompt_count > words->context) {
        problem_set(making->problem, "the prompt has %zu tokens; the model takes 1 to %u",
                    result->prompt_count, words->context);
        return ONNX_ENGINE_INPUT;
    }
    return ONNX_ENGINE_OK;
}

enum onnx_engine_status generate_making_prefill(struct making *making, struct decoder *decoder,
                                                const float **ret_logits, size_t *ret_count)
{
    struct generate_result *result = making->result;
    const int64_t begin_ns = generate_now_ns(CLOCK_MONOTONIC);
    const int64_t begin_cpu_ns = generate_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    const enum onnx_engine_status status = decoder_step(
        decoder, result->prompt, result->prompt_count, ret_logits, ret_count, making->problem);
    result->prefill_ns = generate_now_ns(CLOCK_MONOTONIC) - begin_ns;
    result->prefill_cpu_ns = generate_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    return status;
}

/* ---------------------------------------------------------------- one text */

/* Chooses tokens until the text ends. The logits are those behind the prompt. */
static enum onnx_engine_status make_tokens(struct making *making, struct decoder *decoder,
                                           const float *logits, size_t count)
{
    struct generate_result *result = making->result;
    for (;;) {
        bool is_over = false;
        enum onnx_engine_status status = generate_making_take(making, logits, count, &is_over);
        if (status != ONNX_ENGINE_OK || is_over) {
            return status;
        }
        status = decoder_step(decoder, &result->tokens[result->token_count - 1], 1, &logits, &count,
                              making->problem);
        if (status != ONNX_ENGINE_OK) {
            return status;
        }
        result->decode_steps++;
    }
}

static enum onnx_engine_status make_text(struct making *making, struct decoder *decoder)
{
    struct generate_result *result = making->result;
    const float *logits = NULL;
    size_t count = 0;
    enum onnx_engine_status status = generate_making_begin(making);
    if (status != ONNX_ENGINE_OK) {
        return status;
    }
    status = generate_making_prefill(making, decoder, &logits, &count);
    const int64_t begin_ns = generate_now_ns(CLOCK_MONOTONIC);
    const int64_t begin_cpu_ns = generate_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (status == ONNX_ENGINE_OK) {
        status = make_tokens(making, decoder, logits, count);
    }
    result->decode_ns = generate_now_ns(CLOCK_MONOTONIC) - begin_ns;
    result->decode_cpu_ns = generate_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    generate_making_end(making);
    return status;
}

enum onnx_engine_status generate_text(const struct generate_run *run,
                                      struct generate_result *ret_result,
                                      struct problem *ret_problem)
{
    struct making making = {.run = run,
                            .prompt = run->words->prompts[0],
                            .result = ret_result,
                            .random = random_seeded(run->words->seed),
                            .problem = ret_problem};
    *ret_result = (struct generate_result){.prompt = NULL};
    struct decoder *decoder = decoder_create(run->engine, run->session, ret_problem);
    if (decoder == NULL) {
        return ONNX_ENGINE_MODEL;
    }
    const enum onnx_engine_status status = make_text(&making, decoder);
    decoder_destroy(&decoder);
    return status;
}
