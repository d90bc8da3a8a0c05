#include "planner/templates/rag.h"

#include "planner/templates/llm.h"

#include <inttypes.h>

enum {
    EMBED_LAYERS = TRANSFORMER_PARAMETERS,
    EMBED_WIDTH,
    EMBED_HEADS,
    EMBED_FEED_FORWARD,
    EMBED_VOCABULARY,
    RERANK_LAYERS,
    RERANK_WIDTH,
    RERANK_HEADS,
    RERANK_FEED_FORWARD,
    RERANK_VOCABULARY,
    BATCH,
    QUERY,
    VECTORS,
    CANDIDATES,
    PASSAGES,
    PASSAGE,
    ANSWER,
    STAGES,
};

#define VECTORS_MOST (INT64_C(1) << 36)

static const struct template_parameter parameters[] = {
    TRANSFORMER_TABLE,
    [EMBED_LAYERS] = TRANSFORMER_FIGURE("embed-layers", "layers of the query's encoder", 12),
    [EMBED_WIDTH] =
        TRANSFORMER_FIGURE("embed-width", "elements of a vector; a multiple of its heads", 768),
    [EMBED_HEADS] = TRANSFORMER_FIGURE("embed-heads", "its attention heads", 12),
    [EMBED_FEED_FORWARD] =
        TRANSFORMER_FIGURE("embed-feed-forward", "width of its feed-forward part", 3072),
    [EMBED_VOCABULARY] = TRANSFORMER_FIGURE("embed-vocabulary", "its tokens", 30522),
    [RERANK_LAYERS] = TRANSFORMER_FIGURE("rerank-layers", "layers of the one that ranks", 24),
    [RERANK_WIDTH] =
        TRANSFORMER_FIGURE("rerank-width", "its hidden state; a multiple of its heads", 1024),
    [RERANK_HEADS] = TRANSFORMER_FIGURE("rerank-heads", "its attention heads", 16),
    [RERANK_FEED_FORWARD] =
        TRANSFORMER_FIGURE("rerank-feed-forward", "width of its feed-forward part", 4096),
    [RERANK_VOCABULARY] = TRANSFORMER_FIGURE("rerank-vocabulary", "its tokens", 30522),
    [BATCH] = MAKING_BATCH("batch", "queries at once", 1, TRANSFORMER_FIGURE_MOST),
    [QUERY] = TRANSFORMER_FIGURE("query", "tokens of each query", 32),
    [VECTORS] = MAKING_NUMBER("vectors", "passages that there are", 10000000, 1, VECTORS_MOST),
    [CANDIDATES] = TRANSFORMER_FIGURE("candidates", "nearest, that are ranked", 50),
    [PASSAGES] = TRANSFORMER_FIGURE("passages", "of these, best, that are put before the query", 5),
    [PASSAGE] = TRANSFORMER_FIGURE("passage", "tokens of each passage", 200),
    [ANSWER] = TRANSFORMER_FIGURE("answer", "tokens of each answer", 256),
    [STAGES] = MAKING_NUMBER("stages", "parts that prefill is cut into; at most the layers", 1, 1,
                             TRANSFORMER_STAGES),
    MAKING_END,
};

struct rag {
    struct making *making;
    const int64_t *values;
    enum dtype dtype;
    int64_t queries; /* tokens of all queries */
    int64_t pairs;   /* pairs of a query and a candidate */
};

/* Returns an encoder whose figures begin at `first`: layers, width, heads, feed-forward part,
 * vocabulary. */
static struct transformer encoder_of(const struct rag *rag, int first)
{
    const int64_t *values = rag->values + first;
    return (struct transformer){.layers = values[0],
                                .width = values[1],
                                .heads = values[2],
                                .kv = values[2],
                                .head_size = values[1] / values[2],
                                .feed_forward = values[3],
                                .vocabulary = values[4],
                                .is_tied = true,
                                .dtype = rag->dtype};
}

/* Puts all weights of the step into a set of its own. */
static void own(const struct rag *rag, struct step *step)
{
    making_own(rag->making, step, (uint32_t)rag->making->steps->set_count, 0);
}

static struct operation nearest(const struct rag *rag, int64_t rows, int64_t width, int64_t k)
{
    struct operation operation = operation_of(OPERATION_TOPK, rag->dtype);
    operation.shape.topk = (struct topk_shape){.rows = rows, .width = width, .k = k};
    return operation;
}

static struct step *add_embedding(const struct rag *rag, const struct step *tokenise)
{
    struct making *making = rag->making;
    const struct transformer encoder = encoder_of(rag, EMBED_LAYERS);
    const struct transformer_span span = {.batch = rag->values[BATCH],
                                          .positions = rag->values[QUERY],
                                          .context = rag->values[QUERY]};
    struct step *step = making_step(making, "embed query");
    transformer_encode(making, step, &encoder, &span);
    own(rag, step);
    making_edge(making, tokenise, step, making_times((uint128)rag->queries, TOKEN_BYTES));
    making_count(making, transformer_parameters(&encoder));
    return step;
}

static struct step *add_search(const struct rag *rag, const struct step *query)
{
    struct making *making = rag->making;
    int64_t batch = rag->values[BATCH];
    int64_t width = rag->values[EMBED_WIDTH];
    struct operation near = making_product(rag->dtype, batch, rag->values[VECTORS], width);
    struct operation best = nearest(rag, batch, rag->values[VECTORS], rag->values[CANDIDATES]);
    struct step *step = making_step(making, "search");
    making_part(making, step, &near, 1, 1, 0);
    making_part(making, step, &best, 1, 0, 0);
    own(rag, step);
    making_edge(making, query, step, making_bytes(making_times((uint128)batch, width), rag->dtype));
    return step;
}

static struct step *add_fetch(const struct rag *rag, const struct step *search)
{
    struct making *making = rag->making;
    struct operation load = operation_of(OPERATION_LOAD, DTYPE_INT8);
    load.shape.load =
        (struct load_shape){.items = rag->pairs, .bytes = rag->values[PASSAGE] * TOKEN_TEXT_BYTES};
    struct step *step = making_step(making, "fetch");
    making_part(making, step, &load, 1, 0, 0);
    making_edge(making, search, step, making_times((uint128)rag->pairs, TOKEN_BYTES));
    return step;
}

/* The encoder reads a query and a passage together; one product turns its output into a score. */
static struct step *add_rerank(const struct rag *rag, const struct step *queries,
                               const struct step *passages)
{
    struct making *making = rag->making;
    const int64_t *values = rag->values;
    const struct transformer encoder = encoder_of(rag, RERANK_LAYERS);
    const struct transformer_span span = {.batch = rag->pairs,
                                          .positions = values[QUERY] + values[PASSAGE],
                                          .context = values[QUERY] + values[PASSAGE]};
    struct operation score = making_product(rag->dtype, rag->pairs, 1, encoder.width);
    struct operation best = nearest(rag, values[BATCH], values[CANDIDATES], values[PASSAGES]);
    struct step *step = making_step(making, "rerank");
    transformer_encode(making, step, &encoder, &span);
    making_part(making, step, &score, 1, 1, 0);
    making_part(making, step, &best, 1, 0, 0);
    own(rag, step);
    making_edge(making, queries, step, making_times((uint128)rag->queries, TOKEN_BYTES));
    making_edge(making, passages, step,
                making_times(making_times((uint128)rag->pairs, values[PASSAGE]), TOKEN_BYTES));
    making_count(making, transformer_parameters(&encoder));
    making_count(making, (uint128)encoder.width);
    return step;
}

/* The language model alone is divided: each device retrieves and ranks everything. In a chain, all
 * retrieval belongs to the first column. Little data flows between its steps, and it is much less
 * work than the model. */
static void make(const struct rag *rag, bool is_chain, int64_t ways)
{
    struct making *making = rag->making;
    const int64_t *values = rag->values;
    struct transformer model = transformer_of(values);
    model.ways = ways;
    int64_t chosen = values[PASSAGES] * values[PASSAGE]; /* tokens for each query */
    const struct llm_request request = {.batch = values[BATCH],
                                        .prompt = values[QUERY] + chosen,
                                        .answer = values[ANSWER],
                                        .stages = values[STAGES]};
    struct operation query = transformer_tokenising(rag->queries);
    struct operation passages = transformer_tokenising(rag->pairs * values[PASSAGE]);
    struct operation words = transformer_tokenising(request.batch * request.prompt);
    struct step *tokenise = making_step(making, "tokenise");
    making_part(making, tokenise, &query, 1, 0, 0);
    making_outside(making, tokenise, (uint128)query.shape.tokenise.bytes, 0);
    const struct step *embed = add_embedding(rag, tokenise);
    const struct step *search = add_search(rag, embed);
    const struct step *fetch = add_fetch(rag, search);
    struct step *split = making_step(making, "tokenise passages");
    making_part(making, split, &passages, 1, 0, 0);
    making_edge(making, fetch, split,
                making_times(making_times((uint128)rag->pairs, values[PASSAGE]), TOKEN_TEXT_BYTES));
    const struct step *rerank = add_rerank(rag, tokenise, split);
    struct step *prompt = making_step(making, "prompt");
    making_part(making, prompt, &words, 1, 0, 0);
    making_edge(making, fetch, prompt,
                making_times(making_times((uint128)values[BATCH], chosen), TOKEN_TEXT_BYTES));
    making_edge(making, rerank, prompt,
                making_times(making_times((uint128)values[BATCH], values[PASSAGES]), TOKEN_BYTES));
    if (!is_chain) {
        llm_add(making, &model, &request, prompt);
        return;
    }
    for (size_t i = 0; making->status == STEPS_OK && i < making->steps->step_count; i++) {
        making_place(making, &making->steps->steps[i], 0, STEP_FORWARD);
    }
    making->steps->first_column = "retrieval";
    llm_add_chain(making, &model, &request, prompt);
}

static void check(struct making *making, const int64_t *values)
{
    making_check(making, "candidates", values[CANDIDATES], 1, values[VECTORS]);
    making_check(making, "passages", values[PASSAGES], 1, values[CANDIDATES]);
    if (values[EMBED_WIDTH] % values[EMBED_HEADS] != 0) {
        making_refuse(making, STEPS_CONFLICT,
                      "embed-width, %" PRId64 ", must be a multiple of embed-heads, %" PRId64,
                      values[EMBED_WIDTH], values[EMBED_HEADS]);
    }
    if (values[RERANK_WIDTH] % values[RERANK_HEADS] != 0) {
        making_refuse(making, STEPS_CONFLICT,
                      "rerank-width, %" PRId64 ", must be a multiple of rerank-heads, %" PRId64,
                      values[RERANK_WIDTH], values[RERANK_HEADS]);
    }
    if (values[PASSAGES] > TRANSFORMER_FIGURE_MOST / values[PASSAGE] - 1 ||
        values[QUERY] > TRANSFORMER_FIGURE_MOST - values[PASSAGES] * values[PASSAGE]) {
        making_refuse(making, STEPS_BAD_VALUE,
                      "query and passages are more than %lld tokens together",
                      (long long)TRANSFORMER_FIGURE_MOST);
    }
}

static enum steps_status make_either(const int64_t *values, bool is_chain, int64_t ways,
                                     struct steps **ret_steps, struct problem *ret_problem)
{
    struct making making;
    const struct rag rag = {.making = &making,
                            .values = values,
                            .dtype = making_float(values[TRANSFORMER_DTYPE]),
                            .queries = values[BATCH] * values[QUERY],
                            .pairs = values[BATCH] * values[CANDIDATES]};
    if (making_begin(&making, ret_problem)) {
        check(&making, values);
        if (values[QUERY] + values[PASSAGE] > OPERATION_DIMENSION_MOST / rag.pairs) {
            making_refuse(&making, STEPS_OVERFLOW,
                          "queries and passages have more than 2^40 tokens");
        }
        if (making.status == STEPS_OK) {
            make(&rag, is_chain, ways);
        }
    }
    return making_end(&making, ret_steps);
}

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    return make_either(values, false, 1, ret_steps, ret_problem);
}

static enum steps_status create_chain(const int64_t *values, struct steps **ret_steps,
                                      struct problem *ret_problem)
{
    return make_either(values, true, 1, ret_steps, ret_problem);
}

static enum steps_status create_divided(const int64_t *values, int64_t ways, bool is_chain,
                                        struct steps **ret_steps, struct problem *ret_problem)
{
    return make_either(values, is_chain, ways, ret_steps, ret_problem);
}

const struct template rag_template = {
    .name = "rag",
    .meaning = "a language model's answer from passages that are looked up",
    .parameters = parameters,
    .presets = transformer_presets,
    .make = create,
    .make_chain = create_chain,
    .make_divided = create_divided,
};
