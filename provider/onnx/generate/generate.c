#include "provider/onnx/generate/generate.h"

#include "base/text.h"
#include "formats/generate/decoder_ports.h"
#include "formats/generate/word_split.h"
#include "provider/onnx/generate/decoder.h"
#include "provider/onnx/generate/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GROWTH = 4096 };

/* Text that nobody has seen waits so long at most while tokens come faster: the agent looks every
 * 100 ms, and a small model's step takes less than a write. */
#define LIVE_EVERY_NS (10 * INT64_C(1000000))

/* One text while it is made. */
struct making {
    const struct generate_run *run;
    struct generate_result *result;
    struct decoder *decoder;
    struct random random;
    size_t text_capacity;
    size_t shown; /* bytes of the text that went to `live` */
    int64_t shown_ns;
    struct problem *problem;
};

void generate_result_fini(struct generate_result *result)
{
    free(result->prompt);
    free(result->tokens);
    free(result->text);
    *result = (struct generate_result){.prompt = NULL};
}

static int64_t now_ns(clockid_t clock)
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
static void show(struct making *making, size_t until)
{
    while (making->run->live >= 0 && making->shown < until) {
        const ssize_t written =
            write(making->run->live, making->result->text + making->shown, until - making->shown);
        if (written < 0 && errno != EINTR) {
            return;
        }
        making->shown += written > 0 ? (size_t)written : 0;
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
    const int64_t at_ns = now_ns(CLOCK_MONOTONIC);
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

/* Chooses tokens until the text ends. The logits are those behind the prompt. */
static enum onnx_engine_status make_tokens(struct making *making, const float *logits, size_t count)
{
    const struct generate_words *words = making->run->words;
    struct generate_result *result = making->result;
    for (;;) {
        uint32_t token = 0;
        enum onnx_engine_status status = choose(making, logits, count, &token);
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
        status = decoder_step(making->decoder, &token, 1, &logits, &count, making->problem);
        if (status != ONNX_ENGINE_OK) {
            return status;
        }
        result->decode_steps++;
    }
}

static enum onnx_engine_status read_prompt(struct making *making)
{
    const struct generate_words *words = making->run->words;
    struct generate_result *result = making->result;
    result->prompt = tokenizer_encode(making->run->tokenizer, words->prompt, strlen(words->prompt),
                                      &result->prompt_count);
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

static enum onnx_engine_status make_text(struct making *making)
{
    struct generate_result *result = making->result;
    const float *logits = NULL;
    size_t count = 0;
    enum onnx_engine_status status = read_prompt(making);
    if (status != ONNX_ENGINE_OK) {
        return status;
    }
    const int64_t begin_ns = now_ns(CLOCK_MONOTONIC);
    const int64_t begin_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    status = decoder_step(making->decoder, result->prompt, result->prompt_count, &logits, &count,
                          making->problem);
    const int64_t middle_ns = now_ns(CLOCK_MONOTONIC);
    const int64_t middle_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    result->prefill_ns = middle_ns - begin_ns;
    result->prefill_cpu_ns = middle_cpu_ns - begin_cpu_ns;
    if (status == ONNX_ENGINE_OK) {
        status = make_tokens(making, logits, count);
    }
    result->decode_ns = now_ns(CLOCK_MONOTONIC) - middle_ns;
    result->decode_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - middle_cpu_ns;
    show(making, result->text_size);
    return status;
}

enum onnx_engine_status generate_text(const struct generate_run *run,
                                      struct generate_result *ret_result,
                                      struct problem *ret_problem)
{
    struct making making = {.run = run,
                            .result = ret_result,
                            .random = random_seeded(run->words->seed),
                            .problem = ret_problem};
    *ret_result = (struct generate_result){.prompt = NULL};
    making.decoder = decoder_create(run->engine, run->session, ret_problem);
    if (making.decoder == NULL) {
        return ONNX_ENGINE_MODEL;
    }
    const enum onnx_engine_status status = make_text(&making);
    decoder_destroy(&making.decoder);
    return status;
}
