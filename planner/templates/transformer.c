#include "planner/templates/transformer.h"

/* ---------------------------------------------------------------- figures */

/* Returns a device's part of a divided figure. */
static int64_t part_of(const struct transformer *model, int64_t whole)
{
    return model->ways > 1 ? whole / model->ways : whole;
}

static void check_part(struct making *making, const struct transformer *model, const char *what,
                       int64_t whole)
{
    if (whole % model->ways != 0) {
        making_refuse(making, STEPS_CONFLICT, "%s, %lld, is no multiple of %lld devices", what,
                      (long long)whole, (long long)model->ways);
    }
}

void transformer_check(struct making *making, const struct transformer *model)
{
    if (model->ways > 1) {
        check_part(making, model, "heads", model->heads);
        check_part(making, model, "kv", model->kv);
        check_part(making, model, "feed-forward", model->feed_forward);
    }
    making_check(making, "layers", model->layers, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "width", model->width, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "heads", model->heads, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "kv", model->kv, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "head-size", model->head_size, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "feed-forward", model->feed_forward, 1, TRANSFORMER_FIGURE_MOST);
    making_check(making, "vocabulary", model->vocabulary, 1, TRANSFORMER_FIGURE_MOST);
}

/* Each term is below 2^76. */
uint128 transformer_layer_parameters(const struct transformer *model)
{
    uint128 width = (uint128)model->width;
    int64_t heads = part_of(model, model->heads);
    uint128 inputs =
        making_times(making_times(width, heads + 2 * part_of(model, model->kv)), model->head_size);
    uint128 output = making_times(making_times(width, heads), model->head_size);
    uint128 forward = making_times(making_times(width, part_of(model, model->feed_forward)),
                                   model->is_gated ? 3 : 2);
    return inputs + output + forward + 2 * width;
}

int64_t transformer_vocabulary(const struct transformer *model)
{
    int64_t whole = part_of(model, model->vocabulary);
    return whole + (model->ways > 1 && model->vocabulary % model->ways != 0 ? 1 : 0);
}

uint128 transformer_table_parameters(const struct transformer *model)
{
    return making_times((uint128)transformer_vocabulary(model), model->width);
}

uint128 transformer_head_parameters(const struct transformer *model)
{
    return (uint128)model->width + (model->is_tied ? 0 : transformer_table_parameters(model));
}

uint128 transformer_parameters(const struct transformer *model)
{
    return making_times(transformer_layer_parameters(model), model->layers) +
           transformer_table_parameters(model) + transformer_head_parameters(model);
}

uint128 transformer_state(const struct transformer *model, int64_t positions)
{
    return making_bytes(making_times((uint128)model->width, positions), model->dtype);
}

uint128 transformer_cache(const struct transformer *model, int64_t positions)
{
    uint128 elements = making_times(making_times(2, part_of(model, model->kv)), model->head_size);
    return making_bytes(making_times(elements, positions), model->dtype);
}

/* Each position needs the following elements. The input and output of both norms are whole at each
 * device: 4 w. Queries, keys and values are (h + 2 k) d. The result of attention is h d, with a
 * float32 sum for each head. Input and output of the activation are 3 f or 2 f. */
uint128 transformer_activations(const struct transformer *model,
                                const struct transformer_span *span)
{
    uint128 rows = making_times((uint128)span->batch, span->positions);
    int64_t heads = part_of(model, model->heads);
    int64_t heads_wide = (2 * heads + 2 * part_of(model, model->kv)) * model->head_size;
    int64_t forward_wide = (model->is_gated ? 3 : 2) * part_of(model, model->feed_forward);
    uint128 sums = making_bytes(making_times(rows, heads), DTYPE_FP32);
    uint128 elements = making_times(rows, 4 * model->width + heads_wide + forward_wide);
    return making_bytes(elements, model->dtype) + sums;
}

int64_t transformer_layers_of(const struct transformer *model, int64_t parts, int64_t index)
{
    return model->layers / parts + (index < model->layers % parts ? 1 : 0);
}

/* ---------------------------------------------------------------- operations */

struct operation transformer_embedding(const struct transformer *model, int64_t tokens)
{
    struct operation operation = operation_of(OPERATION_EMBEDDING, model->dtype);
    operation.shape.embedding = (struct embedding_shape){
        .tokens = tokens, .width = model->width, .vocabulary = transformer_vocabulary(model)};
    return operation;
}

/* Returns a product with one of the model's matrices. */
static struct operation model_product(const struct transformer *model, int64_t m, int64_t n,
                                      int64_t k)
{
    struct operation operation = making_product(model->dtype, m, n, k);
    operation.shape.product.weights = model->narrow;
    return operation;
}

struct operation transformer_last(const struct transformer *model, int64_t rows)
{
    int64_t tokens = transformer_vocabulary(model);
    return model->is_tied ? making_product(model->dtype, rows, tokens, model->width)
                          : model_product(model, rows, tokens, model->width);
}

struct operation transformer_tokenising(int64_t tokens)
{
    struct operation operation = operation_of(OPERATION_TOKENISE, DTYPE_INT8);
    operation.shape.tokenise.bytes = tokens * TOKEN_TEXT_BYTES;
    operation.shape.tokenise.per_token = TOKEN_TEXT_BYTES;
    return operation;
}

/* The operations of one layer. */
struct layer {
    struct operation norm, inputs, rotary, append, attention, output, residual, up, bend, down;
};

static struct layer layer_of(const struct transformer *model, const struct transformer_span *span)
{
    enum dtype dtype = model->dtype;
    int64_t rows = span->batch * span->positions;
    int64_t heads = part_of(model, model->heads);
    int64_t kv = part_of(model, model->kv);
    int64_t heads_wide = heads * model->head_size;
    int64_t bent = part_of(model, model->feed_forward);
    int64_t up_wide = model->is_gated ? 2 * bent : bent;
    struct layer layer = {
        .norm = making_rows(OPERATION_RMSNORM, dtype, rows, model->width),
        .inputs = model_product(model, rows, heads_wide + 2 * kv * model->head_size, model->width),
        .rotary = operation_of(OPERATION_ROTARY, dtype),
        .append = operation_of(OPERATION_KV_APPEND, dtype),
        .attention = operation_of(OPERATION_ATTENTION, dtype),
        .output = model_product(model, rows, model->width, heads_wide),
        .residual = making_each(OPERATION_ADD, dtype, rows, model->width),
        .up = model_product(model, rows, up_wide, model->width),
        .bend = making_each(model->is_gated ? OPERATION_SWIGLU : OPERATION_GELU, dtype, rows, bent),
        .down = model_product(model, rows, model->width, bent),
    };
    layer.rotary.shape.rotary =
        (struct rotary_shape){.tokens = rows, .heads = heads + kv, .size = model->head_size};
    layer.append.shape.cache = (struct cache_shape){.batch = span->batch,
                                                    .kv = kv,
                                                    .tokens = span->positions,
                                                    .size = model->head_size,
                                                    .capacity = span->capacity};
    layer.attention.shape.attention = (struct attention_shape){.batch = span->batch,
                                                               .heads = heads,
                                                               .query = span->positions,
                                                               .keys = span->context,
                                                               .size = model->head_size,
                                                               .kv = kv,
                                                               .causal = span->is_causal ? 1 : 0};
    return layer;
}

void transformer_tell_states(struct making *making, struct step *step,
                             const struct transformer *model, int64_t rows, int64_t count)
{
    struct operation sum = operation_of(OPERATION_ALL_REDUCE, model->dtype);
    sum.shape.all_reduce = (struct all_reduce_shape){.elements = making_many(rows, model->width),
                                                     .devices = model->ways};
    making_told(making, step, &sum, model->ways > 1 ? count : 0);
}

void transformer_tell_last(struct making *making, struct step *step,
                           const struct transformer *model, int64_t rows, int64_t count)
{
    struct operation all = making_each(OPERATION_COPY, model->dtype, rows, model->vocabulary);
    making_told(making, step, &all, model->ways > 1 ? count : 0);
}

void transformer_forward(struct making *making, struct step *step, const struct transformer *model,
                         const struct transformer_span *span, int64_t layers, int64_t count)
{
    const struct layer layer = layer_of(model, span);
    bool is_cached = span->capacity > 0;
    uint128 cached = making_times((uint128)span->batch, span->capacity); /* positions: below 2^50 */
    uint128 context = making_times((uint128)span->batch, span->context);
    uint128 room = is_cached ? transformer_cache(model, (int64_t)cached) : 0;
    uint128 looked_at = is_cached ? transformer_cache(model, (int64_t)context) : 0;
    making_part(making, step, &layer.norm, 2 * count, 2 * layers, 0);
    making_part(making, step, &layer.inputs, count, layers, 0);
    making_part(making, step, &layer.rotary, count, layers, 0);
    making_part(making, step, &layer.append, is_cached ? count : 0, layers, room);
    making_part(making, step, &layer.attention, count, layers, looked_at);
    making_part(making, step, &layer.output, count, layers, 0);
    making_part(making, step, &layer.residual, 2 * count, layers, 0);
    making_part(making, step, &layer.up, count, layers, 0);
    making_part(making, step, &layer.bend, count, layers, 0);
    making_part(making, step, &layer.down, count, layers, 0);
    transformer_tell_states(making, step, model, span->batch * span->positions, 2 * count);
}

void transformer_encode(struct making *making, struct step *step, const struct transformer *model,
                        const struct transformer_span *span)
{
    int64_t rows = span->batch * span->positions;
    struct operation row = transformer_embedding(model, rows);
    struct operation norm = making_rows(OPERATION_RMSNORM, model->dtype, rows, model->width);
    making_part(making, step, &row, 1, 1, 0);
    transformer_forward(making, step, model, span, model->layers, model->layers);
    making_part(making, step, &norm, 1, 1, 0);
}

/* C = A B gives dA = dC B^T and dB = A^T dC, which take as much as C each. */
void transformer_product_backward(struct making *making, struct step *step,
                                  const struct operation *product, int64_t count)
{
    const struct product_shape *s = &product->shape.product;
    uint128 weights = making_bytes(making_times((uint128)s->k, s->n), product->dtype);
    struct operation left = making_product(product->dtype, s->m, s->k, s->n);
    struct operation right = making_product(product->dtype, s->k, s->n, s->m);
    making_part(making, step, &left, count, 0, weights);
    making_part(making, step, &right, count, 0, weights);
}

/* The backward pass of an element-wise operation takes its forward pass twice: it reads the input
 * and the gradient of the output. The inverse rotation takes one forward pass. So does the sum of
 * two gradients at each residual. */
void transformer_backward(struct making *making, struct step *step, const struct transformer *model,
                          const struct transformer_span *span, int64_t layers)
{
    struct layer layer = layer_of(model, span);
    layer.attention.shape.attention.backward = 1;
    transformer_product_backward(making, step, &layer.down, layers);
    making_part(making, step, &layer.bend, 2 * layers, 0, 0);
    transformer_product_backward(making, step, &layer.up, layers);
    transformer_product_backward(making, step, &layer.output, layers);
    making_part(making, step, &layer.attention, layers, 0, 0);
    making_part(making, step, &layer.rotary, layers, 0, 0);
    transformer_product_backward(making, step, &layer.inputs, layers);
    making_part(making, step, &layer.norm, 4 * layers, 0, 0);
    making_part(making, step, &layer.residual, 2 * layers, 0, 0);
    transformer_tell_states(making, step, model, span->batch * span->positions, 2 * layers);
}

/* ---------------------------------------------------------------- as parameters of a template */

#define SHAPE(layers, width, heads, kv, head_size, feed_forward, vocabulary, gated, tied)          \
    (const struct template_setting[])                                                              \
    {                                                                                              \
        {"layers", layers}, {"width", width}, {"heads", heads}, {"kv", kv},                        \
            {"head-size", head_size}, {"feed-forward", feed_forward}, {"vocabulary", vocabulary},  \
            {"gated", gated}, {"tied", tied},                                                      \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

/* docs/templates.md has the source of each figure. */
const struct template_preset transformer_presets[] = {
    {"llama-3-8b", SHAPE(32, 4096, 32, 8, 128, 14336, 128256, 1, 0)},
    {"llama-3-70b", SHAPE(80, 8192, 64, 8, 128, 28672, 128256, 1, 0)},
    {"llama-3.1-405b", SHAPE(126, 16384, 128, 8, 128, 53248, 128256, 1, 0)},
    {"llama-2-7b", SHAPE(32, 4096, 32, 32, 128, 11008, 32000, 1, 0)},
    {"llama-2-70b", SHAPE(80, 8192, 64, 8, 128, 28672, 32000, 1, 0)},
    {"mistral-7b", SHAPE(32, 4096, 32, 8, 128, 14336, 32000, 1, 0)},
    {"gpt-3-175b", SHAPE(96, 12288, 96, 96, 128, 49152, 50257, 0, 1)},
    {"gpt-2-xl", SHAPE(48, 1600, 25, 25, 64, 6400, 50257, 0, 1)},
    {NULL, NULL},
};

struct transformer transformer_of(const int64_t *values)
{
    return (struct transformer){.layers = values[TRANSFORMER_LAYERS],
                                .width = values[TRANSFORMER_WIDTH],
                                .heads = values[TRANSFORMER_HEADS],
                                .kv = values[TRANSFORMER_KV],
                                .head_size = values[TRANSFORMER_HEAD_SIZE],
                                .feed_forward = values[TRANSFORMER_FEED_FORWARD],
                                .vocabulary = values[TRANSFORMER_VOCABULARY],
                                .is_gated = values[TRANSFORMER_GATED] == 1,
                                .is_tied = values[TRANSFORMER_TIED] == 1,
                                .dtype = making_float(values[TRANSFORMER_DTYPE])};
}
