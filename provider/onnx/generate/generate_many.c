/* Several texts are made here, all running ones in one step of the model. A text that has ended
 * makes place for the next prompt. */
#include "provider/onnx/generate/generate_internal.h"

#include <stdlib.h>

/* All texts of a run. */
struct many {
    const struct generate_many *texts;
    struct making *makings; /* one for each prompt */
    struct decoder *decoder;
    size_t rows[GENERATE_ROWS_MOST]; /* the text in each row of the decoder */
    size_t row_count;
    size_t next; /* prompt */
    struct generate_speed *speed;
    struct problem *problem;
};

/* Rows that stay and rows that join, between two steps. */
struct change {
    size_t stay[GENERATE_ROWS_MOST];
    size_t stay_count;
    struct decoder *join[GENERATE_ROWS_MOST];
    size_t join_count;
};

/* Begins the next text: its prompt is a step of its own, as if the text were alone. A text that
 * goes on joins the others. */
static enum onnx_engine_status begin_next(struct many *many, struct change *change)
{
    struct making *making = &many->makings[many->next];
    const struct generate_run *run = making->run;
    const float *logits = NULL;
    size_t count = 0;
    bool is_over = true;
    struct decoder *decoder = decoder_create(run->engine, run->session, many->problem);
    if (decoder == NULL) {
        return ONNX_ENGINE_MODEL;
    }
    enum onnx_engine_status status = generate_making_begin(making);
    if (status == ONNX_ENGINE_OK) {
        status = generate_making_prefill(making, decoder, &logits, &count);
    }
    if (status == ONNX_ENGINE_OK) {
        many->speed->prompt_tokens += making->result->prompt_count;
        many->speed->prefill_ns += making->result->prefill_ns;
        many->speed->prefill_cpu_ns += making->result->prefill_cpu_ns;
        status = generate_making_take(making, logits, count, &is_over);
    }
    if (status != ONNX_ENGINE_OK || is_over) {
        generate_making_end(making);
        decoder_destroy(&decoder);
    } else {
        many->rows[many->row_count++] = many->next;
        change->join[change->join_count++] = decoder;
    }
    many->next++;
    return status;
}

/* Fills the free rows, and brings the decoder's rows up to date. */
static enum onnx_engine_status fill_rows(struct many *many, struct change *change)
{
    const bool has_left = change->stay_count < many->row_count;
    enum onnx_engine_status status = ONNX_ENGINE_OK;
    for (size_t i = 0; i < change->stay_count; i++) {
        many->rows[i] = many->rows[change->stay[i]];
    }
    many->row_count = change->stay_count;
    while (status == ONNX_ENGINE_OK && many->row_count < many->texts->rows &&
           many->next < many->texts->count) {
        status = begin_next(many, change);
    }
    const struct decoder_rows rows = {.stay = change->stay,
                                      .stay_count = change->stay_count,
                                      .join = (const struct decoder *const *)change->join,
                                      .join_count = change->join_count};
    if (status == ONNX_ENGINE_OK && many->row_count > 0 && (has_left || change->join_count > 0) &&
        !decoder_regroup(many->decoder, &rows, many->problem)) {
        status = ONNX_ENGINE_MEMORY;
    }
    for (size_t i = 0; i < change->join_count; i++) {
        decoder_destroy(&change->join[i]);
    }
    return status;
}

/* Makes one token of every running text. The rows of those that go on are set to stay. */
static enum onnx_engine_status step_rows(struct many *many, struct change *ret_change)
{
    uint32_t tokens[GENERATE_ROWS_MOST];
    const float *logits = NULL;
    size_t count = 0;
    for (size_t row = 0; row < many->row_count; row++) {
        const struct generate_result *result = many->makings[many->rows[row]].result;
        tokens[row] = result->tokens[result->token_count - 1];
    }
    enum onnx_engine_status status =
        decoder_step(many->decoder, tokens, 1, &logits, &count, many->problem);
    *ret_change = (struct change){.stay_count = 0};
    for (size_t row = 0; status == ONNX_ENGINE_OK && row < many->row_count; row++) {
        struct making *making = &many->makings[many->rows[row]];
        bool is_over = true;
        making->result->decode_steps++;
        many->speed->decode_tokens++;
        status = generate_making_take(making, logits + row * count, count, &is_over);
        if (is_over) {
            generate_making_end(making);
        } else {
            ret_change->stay[ret_change->stay_count++] = row;
        }
    }
    return status;
}

static enum onnx_engine_status make_all(struct many *many)
{
    struct change change = {.stay_count = 0};
    enum onnx_engine_status status = fill_rows(many, &change);
    while (status == ONNX_ENGINE_OK && many->row_count > 0) {
        const int64_t begin_ns = generate_now_ns(CLOCK_MONOTONIC);
        const int64_t begin_cpu_ns = generate_now_ns(CLOCK_PROCESS_CPUTIME_ID);
        status = step_rows(many, &change);
        many->speed->decode_ns += generate_now_ns(CLOCK_MONOTONIC) - begin_ns;
        many->speed->decode_cpu_ns += generate_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
        if (status == ONNX_ENGINE_OK) {
            status = fill_rows(many, &change);
        }
    }
    return status;
}

static void begin_makings(struct many *many, const struct generate_run *run,
                          struct generate_result *results)
{
    for (size_t i = 0; i < many->texts->count; i++) {
        many->makings[i] = (struct making){.run = run,
                                           .prompt = many->texts->prompts[i],
                                           .result = &results[i],
                                           .random = random_seeded(run->words->seed),
                                           .is_labelled = true,
                                           .number = i,
                                           .problem = many->problem};
    }
}

enum onnx_engine_status generate_texts(const struct generate_run *run,
                                       const struct generate_many *texts,
                                       struct generate_result *ret_results,
                                       struct generate_speed *ret_speed,
                                       struct problem *ret_problem)
{
    struct generate_many settled = *texts;
    struct many many = {.texts = &settled, .speed = ret_speed, .problem = ret_problem};
    *ret_speed = (struct generate_speed){.rows = 1};
    for (size_t i = 0; i < texts->count; i++) {
        ret_results[i] = (struct generate_result){.prompt = NULL};
    }
    many.decoder = decoder_create(run->engine, run->session, ret_problem);
    if (many.decoder == NULL) {
        return ONNX_ENGINE_MODEL;
    }
    ret_speed->lacks = decoder_lacks_rows(many.decoder);
    settled.rows = ret_speed->lacks != NULL           ? 1
                   : texts->rows < GENERATE_ROWS_MOST ? texts->rows
                                                      : GENERATE_ROWS_MOST;
    ret_speed->rows = settled.rows < texts->count ? settled.rows : texts->count;
    many.makings = calloc(texts->count + 1, sizeof *many.makings);
    enum onnx_engine_status status = ONNX_ENGINE_MEMORY;
    if (many.makings == NULL) {
        problem_set(ret_problem, "there is not enough memory");
    } else {
        begin_makings(&many, run, ret_results);
        status = make_all(&many);
    }
    free(many.makings);
    decoder_destroy(&many.decoder);
    return status;
}
