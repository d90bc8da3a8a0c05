#include "planner/templates/llm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_BYTES = 4, TEXT_BYTES = 4 /* of a token, as text */ };

/* ---------------------------------------------------------------- making */

struct making {
    const struct llm_model *model;
    const struct llm_request *request;
    struct llm *llm;
    struct problem *problem;
    enum llm_status status; /* the first that is not OK stays */
};

static int64_t narrow(struct making *making, uint128 value, const char *what)
{
    if (value <= (uint128)INT64_MAX) {
        return (int64_t)value;
    }
    if (making->status == LLM_OK) {
        problem_set(making->problem, "%s is more than 2^63 - 1", what);
        making->status = LLM_OVERFLOW;
    }
    return 0;
}

/* Sticks at the most that there is; no figure comes near it but one that is refused. */
static uint128 times(uint128 a, int64_t b)
{
    uint128 product;
    assert(b >= 0);
    return __builtin_mul_overflow(a, (uint128)b, &product) ? ~(uint128)0 : product;
}

static struct llm_step *add_step(struct making *making, const char *name)
{
    assert(making->llm->step_count < LLM_STEPS);
    struct llm_step *step = &making->llm->steps[making->llm->step_count++];
    size_t length = strlen(name);
    assert(length < sizeof step->name);
    memcpy(step->name, name, length + 1);
    step->passes = 1;
    return step;
}

static void add_edge(struct making *making, const struct llm_step *from, const struct llm_step *to,
                     uint128 bytes)
{
    struct llm *llm = making->llm;
    assert(llm->edge_count < LLM_EDGES);
    llm->edges[llm->edge_count++] =
        (struct llm_edge){.from = (uint32_t)(from - llm->steps),
                          .to = (uint32_t)(to - llm->steps),
                          .bytes = narrow(making, bytes, "what flows between two steps")};
}

/* Done `count` times. `copies` of its weights are there, of which each time one is used; `cached` bytes of what it takes are the cache's. */
static void add_part(struct making *making, struct llm_step *step,
                     const struct operation *operation, int64_t count, int64_t copies,
                     uint128 cached)
{
    struct operation_size size;
    struct problem why = {""};
    if (count == 0 || making->status != LLM_OK) {
        return;
    }
    enum operation_status status = operation_measure(operation, &size, &why);
    if (status != OPERATION_OK) {
        problem_set(making->problem, "%s: %s", step->name, why.text);
        making->status =
            status == OPERATION_DTYPE || status == OPERATION_CONFLICT ? LLM_CONFLICT : LLM_OVERFLOW;
        return;
    }
    assert(step->part_count < LLM_PARTS);
    step->parts[step->part_count++] = (struct llm_part){.operation = *operation, .times = count};
    step->weight_bytes =
        narrow(making, (uint128)step->weight_bytes + times((uint128)size.weight_bytes, copies),
               "the weights");
    uint128 working = (uint128)(size.resident_bytes - size.weight_bytes);
    working = working > cached ? working - cached : 0;
    step->working_bytes =
        working > (uint128)step->working_bytes ? (int64_t)working : step->working_bytes;
}

/* ---------------------------------------------------------------- operations of the model */

static struct operation product(const struct making *making, int64_t m, int64_t n, int64_t k)
{
    struct operation operation = operation_of(OPERATION_MATMUL, making->model->dtype);
    operation.shape.product.m = m;
    operation.shape.product.n = n;
    operation.shape.product.k = k;
    return operation;
}

static struct operation along_rows(const struct making *making, enum operation_kind kind,
                                   int64_t rows, int64_t width)
{
    struct operation operation = operation_of(kind, making->model->dtype);
    operation.shape.rows.rows = rows;
    operation.shape.rows.width = width;
    return operation;
}

/* What no int64 holds is certainly more elements than any operation takes. */
static struct operation each(const struct making *making, enum operation_kind kind, int64_t rows,
                             int64_t width)
{
    struct operation operation = operation_of(kind, making->model->dtype);
    if (!checked_mul(rows, width, &operation.shape.elements.elements)) {
        operation.shape.elements.elements = INT64_MAX;
    }
    return operation;
}

static struct operation embedding(const struct making *making, int64_t tokens)
{
    struct operation operation = operation_of(OPERATION_EMBEDDING, making->model->dtype);
    operation.shape.embedding = (struct embedding_shape){
        .tokens = tokens, .width = making->model->width, .vocabulary = making->model->vocabulary};
    return operation;
}

/* Bytes of the keys and values of `tokens` positions in one layer. */
static uint128 cache_of(const struct making *making, int64_t tokens)
{
    const struct llm_model *model = making->model;
    uint128 elements = times(times(2, making->request->batch), model->kv);
    elements = times(times(elements, model->head_size), tokens);
    return (times(elements, dtype_bits(model->dtype)) + 7) / 8;
}

/* New positions of each prompt, over a context that ends with them, in a cache that has room for `capacity`. */
struct span {
    int64_t positions, context, capacity;
};

/* One layer's operations, each done `count` times with the weights of `layers` layers. */
static void add_layers(struct making *making, struct llm_step *step, const struct span *span,
                       int64_t layers, int64_t count)
{
    const struct llm_model *model = making->model;
    int64_t batch = making->request->batch;
    int64_t rows = batch * span->positions;
    struct operation norm = along_rows(making, OPERATION_RMSNORM, rows, model->width);
    struct operation inputs =
        product(making, rows, (model->heads + 2 * model->kv) * model->head_size, model->width);
    struct operation rotary = operation_of(OPERATION_ROTARY, model->dtype);
    rotary.shape.rotary = (struct rotary_shape){
        .tokens = rows, .heads = model->heads + model->kv, .size = model->head_size};
    struct operation append = operation_of(OPERATION_KV_APPEND, model->dtype);
    append.shape.cache = (struct cache_shape){.batch = batch,
                                              .kv = model->kv,
                                              .tokens = span->positions,
                                              .size = model->head_size,
                                              .capacity = span->capacity};
    struct operation attention = operation_of(OPERATION_ATTENTION, model->dtype);
    attention.shape.attention = (struct attention_shape){.batch = batch,
                                                         .heads = model->heads,
                                                         .query = span->positions,
                                                         .keys = span->context,
                                                         .size = model->head_size,
                                                         .kv = model->kv,
                                                         .causal = 1};
    struct operation output = product(making, rows, model->width, model->heads * model->head_size);
    struct operation residual = each(making, OPERATION_ADD, rows, model->width);
    struct operation up =
        product(making, rows, model->is_gated ? 2 * model->feed_forward : model->feed_forward,
                model->width);
    struct operation bend = each(making, model->is_gated ? OPERATION_SWIGLU : OPERATION_GELU, rows,
                                 model->feed_forward);
    struct operation down = product(making, rows, model->width, model->feed_forward);
    add_part(making, step, &norm, 2 * count, 2 * layers, 0);
    add_part(making, step, &inputs, count, layers, 0);
    add_part(making, step, &rotary, count, layers, 0);
    add_part(making, step, &append, count, layers, cache_of(making, span->capacity));
    add_part(making, step, &attention, count, layers, cache_of(making, span->context));
    add_part(making, step, &output, count, layers, 0);
    add_part(making, step, &residual, 2 * count, layers, 0);
    add_part(making, step, &up, count, layers, 0);
    add_part(making, step, &bend, count, layers, 0);
    add_part(making, step, &down, count, layers, 0);
}

/* ---------------------------------------------------------------- steps */

/* The layers of stage `index`: stages differ by one at most, longer first. */
static int64_t layers_of(const struct making *making, int64_t index)
{
    int64_t stages = making->request->stages;
    return making->model->layers / stages + (index < making->model->layers % stages ? 1 : 0);
}

static void add_prefill(struct making *making, int64_t index)
{
    const struct llm_request *request = making->request;
    char name[32];
    (void)snprintf(name, sizeof name, "prefill %d", (int)index + 1);
    struct llm_step *step = add_step(making, name);
    const struct span span = {
        .positions = request->prompt, .context = request->prompt, .capacity = request->prompt};
    int64_t layers = layers_of(making, index);
    add_layers(making, step, &span, layers, layers);
    step->cache_bytes =
        narrow(making, times(cache_of(making, request->prompt), layers), "the cache");
}

/* Every token of the answer has its last product and its dice; each but the last is fed in again. */
static void add_decode(struct making *making)
{
    const struct llm_model *model = making->model;
    const struct llm_request *request = making->request;
    struct llm_step *step = add_step(making, "decode");
    int64_t again = request->answer - 1;
    const struct span span = {.positions = 1,
                              .context = request->prompt + again / 2 + 1, /* of 1 .. again: up */
                              .capacity = request->prompt + again};
    struct operation norm = along_rows(making, OPERATION_RMSNORM, request->batch, model->width);
    struct operation last = product(making, request->batch, model->vocabulary, model->width);
    struct operation sample =
        along_rows(making, OPERATION_SAMPLE, request->batch, model->vocabulary);
    struct operation embed = embedding(making, request->batch);
    add_part(making, step, &norm, request->answer, 1, 0);
    add_part(making, step, &last, request->answer, 1, 0);
    add_part(making, step, &sample, request->answer, 0, 0);
    add_part(making, step, &embed, again, model->is_tied ? 0 : 1, 0);
    add_layers(making, step, &span, model->layers, model->layers * again);
    step->passes = request->answer;
    step->cache_bytes =
        narrow(making, again == 0 ? 0 : times(cache_of(making, span.capacity), model->layers),
               "the cache");
}

static void connect(struct making *making)
{
    const struct llm_model *model = making->model;
    const struct llm_request *request = making->request;
    struct llm_step *steps = making->llm->steps;
    struct llm_step *decode = &steps[making->llm->step_count - 2];
    uint128 prompts = times((uint128)request->batch, request->prompt);
    uint128 state = times((uint128)model->width, dtype_bits(model->dtype)) / 8; /* of a position */
    add_edge(making, &steps[0], &steps[1], times(prompts, TOKEN_BYTES));
    for (int64_t i = 0; i < request->stages; i++) {
        struct llm_step *stage = &steps[2 + i];
        bool is_last = i + 1 == request->stages;
        uint128 cache = request->answer > 1 ? (uint128)stage->cache_bytes : 0;
        uint128 hidden = is_last ? times(state, request->batch) : 0; /* of the last position */
        add_edge(making, stage - 1, stage, times(times(state, request->batch), request->prompt));
        if (cache + hidden > 0) {
            add_edge(making, stage, decode, cache + hidden);
        }
    }
    add_edge(making, decode, decode + 1,
             times(times((uint128)request->batch, request->answer), TOKEN_BYTES));
}

static void count_parameters(struct making *making)
{
    const struct llm_model *model = making->model;
    uint128 width = (uint128)model->width;
    uint128 inputs = times(times(width, model->heads + 2 * model->kv), model->head_size);
    uint128 output = times(times(width, model->heads), model->head_size);
    uint128 forward = times(times(width, model->feed_forward), model->is_gated ? 3 : 2);
    uint128 tables = times(times(width, model->vocabulary), model->is_tied ? 1 : 2);
    uint128 layer = inputs + output + forward + 2 * width; /* each below 2^80 */
    making->llm->parameters =
        narrow(making, times(layer, model->layers) + tables + width, "the number of parameters");
}

static void make(struct making *making)
{
    const struct llm_request *request = making->request;
    struct llm_step *tokenise = add_step(making, "tokenise");
    struct operation text = operation_of(OPERATION_TOKENISE, making->model->dtype);
    text.shape.tokenise.bytes = request->batch * request->prompt * TEXT_BYTES;
    text.shape.tokenise.per_token = TEXT_BYTES;
    add_part(making, tokenise, &text, 1, 0, 0);
    struct operation embed = embedding(making, request->batch * request->prompt);
    add_part(making, add_step(making, "embed"), &embed, 1, 1, 0);
    for (int64_t i = 0; i < request->stages; i++) {
        add_prefill(making, i);
    }
    add_decode(making);
    struct operation back = operation_of(OPERATION_COPY, DTYPE_INT8);
    back.shape.elements.elements = request->batch * request->answer * TEXT_BYTES;
    add_part(making, add_step(making, "detokenise"), &back, 1, 0, 0);
    connect(making);
    count_parameters(making);
}

static enum llm_status check(const struct llm_model *model, const struct llm_request *request,
                             struct problem *problem)
{
    const struct {
        const char *name;
        int64_t value, most;
    } figures[] = {
        {"layers", model->layers, LLM_FIGURE_MOST},
        {"width", model->width, LLM_FIGURE_MOST},
        {"heads", model->heads, LLM_FIGURE_MOST},
        {"kv", model->kv, LLM_FIGURE_MOST},
        {"head_size", model->head_size, LLM_FIGURE_MOST},
        {"feed_forward", model->feed_forward, LLM_FIGURE_MOST},
        {"vocabulary", model->vocabulary, LLM_FIGURE_MOST},
        {"batch", request->batch, LLM_FIGURE_MOST},
        {"prompt", request->prompt, LLM_FIGURE_MOST},
        {"answer", request->answer, LLM_FIGURE_MOST},
        {"stages", request->stages, model->layers < LLM_STAGES ? model->layers : LLM_STAGES},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (figures[i].value < 1 || figures[i].value > figures[i].most) {
            problem_set(problem, "%s is %lld; it may be 1 to %lld", figures[i].name,
                        (long long)figures[i].value, (long long)figures[i].most);
            return LLM_BAD_FIGURE;
        }
    }
    return LLM_OK;
}

enum llm_status llm_create(const struct llm_model *model, const struct llm_request *request,
                           struct llm **ret_llm, struct problem *ret_problem)
{
    enum llm_status status = check(model, request, ret_problem);
    if (status != LLM_OK) {
        return status;
    }
    struct llm *llm = calloc(1, sizeof *llm);
    if (llm == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        return LLM_NO_MEMORY;
    }
    struct making making = {.model = model, .request = request, .llm = llm, .problem = ret_problem};
    make(&making);
    if (making.status != LLM_OK) {
        llm_destroy(&llm);
        return making.status;
    }
    *ret_llm = llm;
    return LLM_OK;
}

void llm_destroy(struct llm **self)
{
    free(*self);
    *self = NULL;
}

/* ---------------------------------------------------------------- what a step takes */

/* A sum is as good as the worst of its terms. */
static void add_figure(struct figure *sum, const struct figure *term, double count)
{
    if (sum->source == FIGURE_UNKNOWN || term->source == FIGURE_UNKNOWN) {
        *sum = (struct figure){.source = FIGURE_UNKNOWN};
        return;
    }
    sum->value += count * term->value;
    sum->source = term->source < sum->source ? term->source : sum->source;
    sum->unverified |= term->unverified;
}

/* Whether all of the step is there at once, or its weights come at each pass. */
static enum cost_status fit(const struct cost_device *device, const struct llm_step *step,
                            bool *ret_is_streamed)
{
    const struct figure *memory = &device->profile->figures[FIGURE_MEMORY];
    double others = (double)step->cache_bytes + (double)step->working_bytes;
    *ret_is_streamed = false;
    if (memory->source == FIGURE_UNKNOWN || others + (double)step->weight_bytes <= memory->value) {
        return COST_OK;
    }
    *ret_is_streamed = others <= memory->value && device->stream.source != FIGURE_UNKNOWN;
    return *ret_is_streamed ? COST_OK : COST_NO_MEMORY;
}

static struct figure longer(const struct figure *a, const struct figure *b)
{
    return (struct figure){.value = a->value > b->value ? a->value : b->value,
                           .source = a->source < b->source ? a->source : b->source,
                           .unverified = a->unverified || b->unverified};
}

/* The weights come while what is there is computed on: the longer of the two counts, at full load. */
static void add_stream(const struct cost_device *device, const struct llm_step *step,
                       struct llm_cost *cost)
{
    struct figure stream_s = device->stream;
    stream_s.value = (double)step->weight_bytes * (double)step->passes / device->stream.value;
    double before = cost->time_s.value;
    cost->bound_s = longer(&cost->bound_s, &stream_s);
    cost->time_s = longer(&cost->time_s, &stream_s);
    cost->energy_j.value *= before > 0 ? cost->time_s.value / before : 1;
    if (cost->p90_s > 0 && cost->p90_s < cost->time_s.value) {
        cost->p90_s = cost->time_s.value;
    }
    cost->is_streamed = true;
}

enum cost_status llm_step_cost(const struct cost_device *device, const struct llm_step *step,
                               struct llm_cost *ret_cost, size_t *ret_part)
{
    const struct figure nothing = {.source = FIGURE_MEASURED};
    struct llm_cost sum = {.bound_s = nothing, .time_s = nothing, .energy_j = nothing};
    bool has_p90 = true;
    bool is_streamed = false;
    struct cost_device here = *device;
    enum cost_status status = fit(device, step, &is_streamed);
    here.stream.source = FIGURE_UNKNOWN; /* an operation of its own would not know the others */
    for (size_t i = 0; i < step->part_count && status == COST_OK; i++) {
        struct cost cost;
        double count = (double)step->parts[i].times;
        status = cost_predict(&here, &step->parts[i].operation, &cost);
        if (status != COST_OK) {
            if (ret_part != NULL) {
                *ret_part = i;
            }
            return status;
        }
        sum.operations += count * cost.operations;
        sum.bytes += count * cost.bytes;
        add_figure(&sum.bound_s, &cost.bound_s, count);
        add_figure(&sum.time_s, &cost.time_s, count);
        add_figure(&sum.energy_j, &cost.energy_j, count);
        sum.p90_s += count * cost.p90_s;
        has_p90 = has_p90 && cost.p90_s > 0;
    }
    if (status != COST_OK) {
        return status;
    }
    sum.p90_s = has_p90 ? sum.p90_s : 0;
    if (is_streamed) {
        add_stream(device, step, &sum);
    }
    *ret_cost = sum;
    return COST_OK;
}
