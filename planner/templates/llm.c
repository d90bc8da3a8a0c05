#include "planner/templates/llm.h"

struct llm {
    struct making *making;
    const struct transformer *model;
    const struct llm_request *request;
};

/* ---------------------------------------------------------------- steps */

static struct step *add_prefill(const struct llm *llm, int64_t index)
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
    making_own(llm->making, step, (uint32_t)llm->making->steps->set_count, 0);
    step->held_bytes = making_narrow(llm->making, making_times(cache, layers), "the cache");
    return step;
}

/* Sets of weights are those of the stages, the table of the embedding, and the rest that only
 * decoding needs. */
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

/* Returns the span of a decoded sequence; its context is the mean over all tokens, rounded up. */
static struct transformer_span decode_span(const struct llm_request *request)
{
    int64_t again = request->answer - 1;
    return (struct transformer_span){.batch = request->batch,
                                     .positions = 1,
                                     .context = request->prompt + again / 2 + 1,
                                     .capacity = request->prompt + again,
                                     .is_causal = true};
}

/* Each token of the answer takes a last product and a sample. */
static void add_last(const struct llm *llm, struct step *step)
{
    const struct transformer *model = llm->model;
    const struct llm_request *request = llm->request;
    struct operation norm =
        making_rows(OPERATION_RMSNORM, model->dtype, request->batch, model->width);
    struct operation last = transformer_last(model, request->batch);
    struct operation sample =
        making_rows(OPERATION_SAMPLE, model->dtype, request->batch, model->vocabulary);
    making_part(llm->making, step, &norm, request->answer, 1, 0);
    making_part(llm->making, step, &last, request->answer, 1, 0);
    making_part(llm->making, step, &sample, request->answer, 0, 0);
    transformer_tell_last(llm->making, step, model, request->batch, request->answer);
    step->passes = request->answer;
}

/* Each token but the last goes through the layers again. */
static void add_rounds(const struct llm *llm, struct step *step, int64_t layers)
{
    const struct transformer_span span = decode_span(llm->request);
    int64_t again = llm->request->answer - 1;
    uint128 cache = transformer_cache(llm->model, llm->request->batch * span.capacity);
    transformer_forward(llm->making, step, llm->model, &span, layers, layers * again);
    step->passes = llm->request->answer;
    step->held_bytes =
        making_narrow(llm->making, again == 0 ? 0 : making_times(cache, layers), "the cache");
}

static struct step *add_decode(const struct llm *llm)
{
    const struct transformer *model = llm->model;
    struct step *step = making_step(llm->making, "decode");
    uint128 table = making_bytes(transformer_table_parameters(model), model->dtype);
    struct operation embed = transformer_embedding(model, llm->request->batch);
    add_last(llm, step);
    making_part(llm->making, step, &embed, llm->request->answer - 1, model->is_tied ? 0 : 1,
                model->is_tied ? table : 0);
    add_rounds(llm, step, model->layers);
    return step;
}

/* Adds the prefill steps, one after the other. Each passes its cache to decode, which is added
 * here. */
static struct step *add_stages(const struct llm *llm, struct step *embed)
{
    const struct llm_request *request = llm->request;
    struct making *making = llm->making;
    struct step *stages[TRANSFORMER_STAGES];
    const struct step *before = embed;
    for (int64_t i = 0; i < request->stages; i++) {
        stages[i] = add_prefill(llm, i);
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

static struct step *add_embed(const struct llm *llm, const struct step *tokens)
{
    int64_t prompts = llm->request->batch * llm->request->prompt; /* tokens */
    struct operation row = transformer_embedding(llm->model, prompts);
    struct step *embed = making_step(llm->making, "embed");
    making_part(llm->making, embed, &row, 1, 1, 0);
    transformer_tell_states(llm->making, embed, llm->model, prompts, 1);
    making_edge(llm->making, tokens, embed, making_times((uint128)prompts, TOKEN_BYTES));
    return embed;
}

static struct step *add_detokenise(const struct llm *llm, const struct step *last)
{
    int64_t answers = llm->request->batch * llm->request->answer; /* tokens */
    struct operation back =
        making_each(OPERATION_COPY, DTYPE_INT8, answers, (int64_t)TOKEN_TEXT_BYTES);
    struct step *detokenise = making_step(llm->making, "detokenise");
    making_part(llm->making, detokenise, &back, 1, 0, 0);
    making_edge(llm->making, last, detokenise, making_times((uint128)answers, TOKEN_BYTES));
    making_outside(llm->making, detokenise, 0, making_times((uint128)answers, TOKEN_TEXT_BYTES));
    making_count(llm->making, transformer_parameters(llm->model));
    return detokenise;
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
    struct step *embed = add_embed(&llm, tokens);
    struct step *decode = add_stages(&llm, embed);
    own_weights(&llm, first_set, embed, decode);
    (void)add_detokenise(&llm, decode);
}

static struct step *add_tokenise(struct making *making, const struct llm_request *request)
{
    struct step *tokenise = making_step(making, "tokenise");
    if (making->status == STEPS_OK) {
        struct operation text = transformer_tokenising(request->batch * request->prompt);
        making_part(making, tokenise, &text, 1, 0, 0);
        making_outside(making, tokenise, (uint128)text.shape.tokenise.bytes, 0);
    }
    return tokenise;
}

enum steps_status llm_create(const struct transformer *model, const struct llm_request *request,
                             struct steps **ret_steps, struct problem *ret_problem)
{
    struct making making;
    if (making_begin(&making, ret_problem)) {
        check(&making, model, request);
        struct step *tokenise = add_tokenise(&making, request);
        llm_add(&making, model, request, tokenise);
    }
    return making_end(&making, ret_steps);
}

/* ---------------------------------------------------------------- as a chain
 *
 * Columns are the table of the embedding, the layers, and the work after the last layer. */

static void add_chain_prefill(const struct llm *llm, struct step *before, struct step **ret_parts)
{
    uint128 state = transformer_state(llm->model, llm->request->batch * llm->request->prompt);
    for (int64_t i = 0; i < llm->request->stages; i++) {
        ret_parts[i] = add_prefill(llm, i);
        making_place(llm->making, ret_parts[i], i + 1, STEP_FORWARD);
        making_edge(llm->making, before, ret_parts[i], state);
        before = ret_parts[i];
    }
}

/* Adds the layers that each token goes through again, from its row of the table on. */
static const struct step *add_chain_decode(const struct llm *llm, uint32_t table,
                                           struct step *const *parts)
{
    struct making *making = llm->making;
    const struct llm_request *request = llm->request;
    int64_t again = request->answer - 1;
    uint128 state = making_times(transformer_state(llm->model, request->batch), again);
    struct operation row = transformer_embedding(llm->model, request->batch);
    struct step *step = making_step(making, "embed again");
    making_part(making, step, &row, again, 1, 0);
    transformer_tell_states(making, step, llm->model, request->batch, again);
    making_place(making, step, 0, STEP_DECODE);
    making_need(making, step, table, 1);
    making_edge(making, parts[request->stages - 1], step,
                making_times((uint128)request->batch, TOKEN_BYTES));
    const struct step *before = step;
    for (int64_t i = 0; i < request->stages; i++) {
        step = making_numbered_step(making, "decode", i + 1);
        add_rounds(llm, step, transformer_layers_of(llm->model, request->stages, i));
        making_place(making, step, i + 1, STEP_DECODE);
        making_need(making, step, parts[i]->first_set, 1);
        making_edge(making, parts[i], step, (uint128)parts[i]->held_bytes);
        making_edge(making, before, step, state);
        before = step;
    }
    return before;
}

static void add_chain(const struct llm *llm, struct step *tokenise)
{
    struct making *making = llm->making;
    const struct llm_request *request = llm->request;
    int64_t last = request->stages + 1;
    uint128 answers = making_times((uint128)request->batch, request->answer);
    uint128 state = transformer_state(llm->model, request->batch);
    struct step *parts[TRANSFORMER_STAGES];
    struct step *embed = add_embed(llm, tokenise);
    add_chain_prefill(llm, embed, parts);
    uint32_t table = (uint32_t)making->steps->set_count;
    making_own(making, embed, table, 0);
    const struct step *decoded = request->answer > 1 ? add_chain_decode(llm, table, parts) : NULL;
    struct step *head = making_step(making, "head");
    making_edge(making, parts[request->stages - 1], head, state);
    if (decoded != NULL) {
        making_edge(making, decoded, head, making_times(state, request->answer - 1));
    }
    add_last(llm, head);
    making_own(making, head, llm->model->is_tied ? table : table + 1, llm->model->is_tied ? 1 : 0);
    making_place(making, tokenise, 0, STEP_FORWARD);
    making_place(making, embed, 0, STEP_FORWARD);
    making_place(making, head, last, STEP_DECODE);
    making_place(making, add_detokenise(llm, head), last, STEP_DECODE);
    making->steps->rounds = request->answer;
    making->steps->round_bytes =
        making_narrow(making, making_times(answers, TOKEN_BYTES), "tokens") / request->answer;
}

void llm_add_chain(struct making *making, const struct transformer *model,
                   const struct llm_request *request, struct step *tokens)
{
    struct llm_request finest = *request;
    finest.stages = model->layers < TRANSFORMER_STAGES ? model->layers : TRANSFORMER_STAGES;
    const struct llm llm = {.making = making, .model = model, .request = &finest};
    check(making, model, request);
    if (making->status == STEPS_OK) {
        add_chain(&llm, tokens);
    }
}

static enum steps_status create_as_chain(const struct transformer *model,
                                         const struct llm_request *request,
                                         struct steps **ret_steps, struct problem *ret_problem)
{
    struct making making;
    if (making_begin(&making, ret_problem)) {
        check(&making, model, request);
        struct step *tokenise = add_tokenise(&making, request);
        llm_add_chain(&making, model, request, tokenise);
    }
    return making_end(&making, ret_steps);
}

/* ---------------------------------------------------------------- as a template */

enum { BATCH = TRANSFORMER_PARAMETERS, PROMPT, ANSWER, STAGES, WEIGHTS };

static const char *const weights[] = {"dtype", "fp16", "bf16", "fp8", "int8", "int4"};

static const struct template_parameter parameters[] = {
    TRANSFORMER_TABLE,
    [BATCH] = MAKING_BATCH("batch", "prompts at once", 1, TRANSFORMER_FIGURE_MOST),
    [PROMPT] = TRANSFORMER_FIGURE("prompt", "tokens of each prompt", 1024),
    [ANSWER] = TRANSFORMER_FIGURE("answer", "tokens of each answer", 256),
    [STAGES] = MAKING_NUMBER("stages", "parts that prefill is cut into; at most the layers", 1, 1,
                             TRANSFORMER_STAGES),
    [WEIGHTS] =
        MAKING_CHOICE("weights", "type that the matrices of the layers are stored in", 0, weights),
    MAKING_END,
};

static void read(const int64_t *values, struct transformer *ret_model,
                 struct llm_request *ret_request)
{
    static const int64_t narrow[] = {
        0, DTYPE_FP16 + 1, DTYPE_BF16 + 1, DTYPE_FP8 + 1, DTYPE_INT8 + 1, DTYPE_INT4 + 1};
    *ret_model = transformer_of(values);
    ret_model->narrow = narrow[values[WEIGHTS]];
    *ret_request = (struct llm_request){.batch = values[BATCH],
                                        .prompt = values[PROMPT],
                                        .answer = values[ANSWER],
                                        .stages = values[STAGES]};
}

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    struct transformer model;
    struct llm_request request;
    read(values, &model, &request);
    return llm_create(&model, &request, ret_steps, ret_problem);
}

static enum steps_status create_chain(const int64_t *values, struct steps **ret_steps,
                                      struct problem *ret_problem)
{
    struct transformer model;
    struct llm_request request;
    read(values, &model, &request);
    return create_as_chain(&model, &request, ret_steps, ret_problem);
}

static enum steps_status create_divided(const int64_t *values, int64_t ways, bool is_chain,
                                        struct steps **ret_steps, struct problem *ret_problem)
{
    struct transformer model;
    struct llm_request request;
    read(values, &model, &request);
    model.ways = ways;
    return is_chain ? create_as_chain(&model, &request, ret_steps, ret_problem)
                    : llm_create(&model, &request, ret_steps, ret_problem);
}

const struct template llm_template = {
    .name = "llm",
    .meaning = "a language model's answer",
    .parameters = parameters,
    .presets = transformer_presets,
    .make = create,
    .make_chain = create_chain,
    .make_divided = create_divided,
};
