#include "planner/templates/llm.h"

struct llm {
    struct making *making;
    const struct transformer *model;
    const struct llm_request *request;
};

/* ---------------------------------------------------------------- steps */

static struct step *add_prefill(const struct llm *llm, uint32_t first_set, int64_t index)
{
    const struct llm_request *request = llm->request;
    struct step *step = making_numbered_step(llm->making, "prefill", index + 1);
    const struct transformer_span span = {.batch = request->batch,
                                          .positions = request->prompt,
                                          .context = request->prompt,
                                          .capacity = request->prompt,
                                          .is_causal = true};
    int64_t layers = transformer_layers_of(llm->model, request->stages, index);
    uint128 cache = transformer_cache(llm->model, request->batch * request->prompt);
    transformer_forward(llm->making, step, llm->model, &span, layers, layers);
    making_own(llm->making, step, first_set + (uint32_t)index, 0);
    step->held_bytes = making_narrow(llm->making, making_times(cache, layers), "the cache");
    return step;
}

/* Sets of weights: the stages', the table of the embedding, and what only decoding needs. */
static void own_weights(const struct llm *llm, uint32_t first_set, struct step *embed,
                        struct step *decode)
{
    uint32_t table = first_set + (uint32_t)llm->request->stages;
    bool is_fed_in_again = llm->request->answer > 1;
    bool needs_table = is_fed_in_again || llm->model->is_tied;
    uint32_t first = is_fed_in_again ? first_set : table + (needs_table ? 0 : 1);
    making_own(llm->making, embed, table, 0);
    making_own(llm->making, decode, first, table + 1 - first);
}

/* Every token of the answer has its last product and its dice; each but the last is fed in again. */
static struct step *add_decode(const struct llm *llm)
{
    const struct transformer *model = llm->model;
    const struct llm_request *request = llm->request;
    struct making *making = llm->making;
    struct step *step = making_step(making, "decode");
    int64_t again = request->answer - 1;
    const struct transformer_span span = {.batch = request->batch,
                                          .positions = 1,
                                          .context = request->prompt + again / 2 +
                                                     1, /* of 1 .. again: up */
                                          .capacity = request->prompt + again,
                                          .is_causal = true};
    uint128 table = making_bytes(transformer_table_parameters(model), model->dtype);
    uint128 cache = transformer_cache(model, request->batch * span.capacity);
    struct operation norm =
        making_rows(OPERATION_RMSNORM, model->dtype, request->batch, model->width);
    struct operation last =
        making_product(model->dtype, request->batch, model->vocabulary, model->width);
    struct operation sample =
        making_rows(OPERATION_SAMPLE, model->dtype, request->batch, model->vocabulary);
    struct operation embed = transformer_embedding(model, request->batch);
    making_part(making, step, &norm, request->answer, 1, 0);
    making_part(making, step, &last, request->answer, 1, 0);
    making_part(making, step, &sample, request->answer, 0, 0);
    making_part(making, step, &embed, again, model->is_tied ? 0 : 1, model->is_tied ? table : 0);
    transformer_forward(making, step, model, &span, model->layers, model->layers * again);
    step->passes = request->answer;
    step->held_bytes =
        making_narrow(making, again == 0 ? 0 : making_times(cache, model->layers), "the cache");
    return step;
}

/* The steps of prefill, one after the other, from what is embedded; each hands its cache to decode, which is made here. */
static struct step *add_stages(const struct llm *llm, uint32_t first_set, struct step *embed)
{
    const struct llm_request *request = llm->request;
    struct making *making = llm->making;
    struct step *stages[TRANSFORMER_STAGES];
    const struct step *before = embed;
    for (int64_t i = 0; i < request->stages; i++) {
        stages[i] = add_prefill(llm, first_set, i);
        making_edge(making, before, stages[i],
                    transformer_state(llm->model, request->batch * request->prompt));
        before = stages[i];
    }
    struct step *decode = add_decode(llm);
    for (int64_t i = 0; i < request->stages; i++) {
        bool is_last = i + 1 == request->stages;
        uint128 cache = request->answer > 1 ? (uint128)stages[i]->held_bytes : 0;
        uint128 hidden = is_last ? transformer_state(llm->model, request->batch) : 0;
        if (cache + hidden > 0) {
            making_edge(making, stages[i], decode, cache + hidden);
        }
    }
    return decode;
}

static void check(struct making *making, const struct transformer *model,
                  const struct llm_request *request)
{
    transformer_check(making, model);
    making_check(making, "batch", request->batch, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "prompt", request->prompt, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "answer", request->answer, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "stages", request->stages, 1,
                 model->layers < TRANSFORMER_STAGES ? model->layers : TRANSFORMER_STAGES);
}

void llm_add(struct making *making, const struct transformer *model,
             const struct llm_request *request, const struct step *tokens)
{
    const struct llm llm = {.making = making, .model = model, .request = request};
    uint32_t first_set = (uint32_t)making->steps->set_count;
    check(making, model, request);
    if (making->status != STEPS_OK) {
        return;
    }
    int64_t prompts = request->batch * request->prompt; /* tokens */
    int64_t answers = request->batch * request->answer;
    struct operation row = transformer_embedding(model, prompts);
    struct operation back =
        making_each(OPERATION_COPY, DTYPE_INT8, answers, (int64_t)TOKEN_TEXT_BYTES);
    struct step *embed = making_step(making, "embed");
    making_part(making, embed, &row, 1, 1, 0);
    making_edge(making, tokens, embed, making_times((uint128)prompts, TOKEN_BYTES));
    struct step *decode = add_stages(&llm, first_set, embed);
    own_weights(&llm, first_set, embed, decode);
    struct step *detokenise = making_step(making, "detokenise");
    making_part(making, detokenise, &back, 1, 0, 0);
    making_edge(making, decode, detokenise, making_times((uint128)answers, TOKEN_BYTES));
    making_outside(making, detokenise, 0, making_times((uint128)answers, TOKEN_TEXT_BYTES));
    making_count(making, transformer_parameters(model));
}

enum steps_status llm_create(const struct transformer *model, const struct llm_request *request,
                             struct steps **ret_steps, struct problem *ret_problem)
{
    struct making making;
    if (making_begin(&making, ret_problem)) {
        check(&making, model, request);
        struct step *tokenise = making_step(&making, "tokenise");
        if (making.status == STEPS_OK) {
            struct operation text = transformer_tokenising(request->batch * request->prompt);
            making_part(&making, tokenise, &text, 1, 0, 0);
            making_outside(&making, tokenise, (uint128)text.shape.tokenise.bytes, 0);
        }
        llm_add(&making, model, request, tokenise);
    }
    return making_end(&making, ret_steps);
}

/* ---------------------------------------------------------------- as a template */

enum { BATCH = TRANSFORMER_PARAMETERS, PROMPT, ANSWER, STAGES };

static const struct template_parameter parameters[] = {
    TRANSFORMER_TABLE,
    [BATCH] = MAKING_BATCH("batch", "prompts at once", 1, TRANSFORMER_FIGURE_MOST),
    [PROMPT] = TRANSFORMER_FIGURE("prompt", "tokens of each prompt", 1024),
    [ANSWER] = TRANSFORMER_FIGURE("answer", "tokens of each answer", 256),
    [STAGES] = MAKING_NUMBER("stages", "parts that prefill is cut into; at most the layers", 1, 1,
                             TRANSFORMER_STAGES),
    MAKING_END,
};

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    const struct transformer model = transformer_of(values);
    const struct llm_request request = {.batch = values[BATCH],
                                        .prompt = values[PROMPT],
                                        .answer = values[ANSWER],
                                        .stages = values[STAGES]};
    return llm_create(&model, &request, ret_steps, ret_problem);
}

const struct template llm_template = {
    .name = "llm",
    .meaning = "a language model's answer",
    .parameters = parameters,
    .presets = transformer_presets,
    .make = create,
};
