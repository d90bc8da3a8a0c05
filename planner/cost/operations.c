#include "planner/cost/operations.h"

#include "planner/cost/operations_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BIT(dtype) (UINT32_C(1) << (dtype))
#define FLOATS (BIT(DTYPE_FP64) | BIT(DTYPE_FP32) | BIT(DTYPE_FP16) | BIT(DTYPE_BF16))
#define STORED                                                                                     \
    (FLOATS | BIT(DTYPE_FP8) | BIT(DTYPE_INT8) | BIT(DTYPE_INT4)) /* tf32 is never stored */
#define MULTIPLIED (STORED | BIT(DTYPE_TF32))
#define SPARSE_TYPES (MULTIPLIED & ~(BIT(DTYPE_FP64) | BIT(DTYPE_FP32)))

#define AT(of, member) offsetof(struct operation, shape.of.member)
#define SIZE(of, member)                                                                           \
    {                                                                                              \
#member, AT(of, member), false, 1, OPERATION_DIMENSION_MOST, 1                             \
    }
#define NAMED(name, of, member)                                                                    \
    {                                                                                              \
        name, AT(of, member), false, 1, OPERATION_DIMENSION_MOST, 1                                \
    }
#define FLAG(of, member)                                                                           \
    {                                                                                              \
#member, AT(of, member), true, 0, 1, 0                                                     \
    }
#define COUNT(of, member, least, usual)                                                            \
    {                                                                                              \
#member, AT(of, member), true, least, OPERATION_DIMENSION_MOST, usual                      \
    }

#define PRODUCT_SHAPE                                                                              \
    {                                                                                              \
        SIZE(product, m), SIZE(product, n), SIZE(product, k), COUNT(product, batch, 1, 1),         \
            FLAG(product, sparse)                                                                  \
    }
#define ROWS_SHAPE                                                                                 \
    {                                                                                              \
        SIZE(rows, rows), SIZE(rows, width)                                                        \
    }
#define ELEMENTS_SHAPE                                                                             \
    {                                                                                              \
        SIZE(elements, elements)                                                                   \
    }
#define IMAGE_SHAPE                                                                                \
    SIZE(image, batch), SIZE(image, height), SIZE(image, width), SIZE(image, channels)
#define FRAMES_SHAPE                                                                               \
    SIZE(frames, frames), SIZE(frames, height), SIZE(frames, width), SIZE(frames, bytes)
#define NEW_IMAGE_SHAPE                                                                            \
    {                                                                                              \
        IMAGE_SHAPE, NAMED("new-height", image, new_height), NAMED("new-width", image, new_width)  \
    }

static const struct operation_facts facts[OPERATION_KINDS] = {
    [OPERATION_MATMUL] = {"matmul", OPERATION_MATRIX, MULTIPLIED, PRODUCT_SHAPE},
    [OPERATION_GEMM] = {"gemm", OPERATION_MATRIX, MULTIPLIED, PRODUCT_SHAPE},
    [OPERATION_CONV] = {"conv",
                        OPERATION_CONVOLUTION,
                        MULTIPLIED,
                        {SIZE(conv, batch), SIZE(conv, height), SIZE(conv, width),
                         SIZE(conv, channels), SIZE(conv, filters),
                         NAMED("kernel-height", conv, kernel_height),
                         NAMED("kernel-width", conv, kernel_width), COUNT(conv, stride, 1, 1),
                         COUNT(conv, padding, 0, 0), COUNT(conv, dilation, 1, 1),
                         COUNT(conv, groups, 1, 1), FLAG(conv, sparse)}},
    [OPERATION_LAYERNORM] = {"layernorm", OPERATION_VECTOR, FLOATS, ROWS_SHAPE},
    [OPERATION_RMSNORM] = {"rmsnorm", OPERATION_VECTOR, FLOATS, ROWS_SHAPE},
    [OPERATION_BATCHNORM] = {"batchnorm",
                             OPERATION_VECTOR,
                             FLOATS,
                             {SIZE(batchnorm, batch), SIZE(batchnorm, channels),
                              SIZE(batchnorm, size), FLAG(batchnorm, training)}},
    [OPERATION_ATTENTION] = {"attention",
                             OPERATION_ATTENDING,
                             MULTIPLIED,
                             {SIZE(attention, batch), SIZE(attention, heads),
                              SIZE(attention, query), SIZE(attention, keys), SIZE(attention, size),
                              COUNT(attention, kv, 0, 0), FLAG(attention, causal),
                              FLAG(attention, backward)}},
    [OPERATION_RELU] = {"relu", OPERATION_VECTOR, STORED, ELEMENTS_SHAPE},
    [OPERATION_SIGMOID] = {"sigmoid", OPERATION_VECTOR, FLOATS, ELEMENTS_SHAPE},
    [OPERATION_TANH] = {"tanh", OPERATION_VECTOR, FLOATS, ELEMENTS_SHAPE},
    [OPERATION_SILU] = {"silu", OPERATION_VECTOR, FLOATS, ELEMENTS_SHAPE},
    [OPERATION_GELU] = {"gelu", OPERATION_VECTOR, FLOATS, ELEMENTS_SHAPE},
    [OPERATION_SWIGLU] = {"swiglu", OPERATION_VECTOR, FLOATS, ELEMENTS_SHAPE},
    [OPERATION_ADD] = {"add", OPERATION_VECTOR, STORED, ELEMENTS_SHAPE},
    [OPERATION_SOFTMAX] = {"softmax", OPERATION_VECTOR, FLOATS, ROWS_SHAPE},
    [OPERATION_REDUCE] = {"reduce", OPERATION_VECTOR, STORED, ROWS_SHAPE},
    [OPERATION_COPY] = {"copy", OPERATION_MOVING, STORED, ELEMENTS_SHAPE},
    [OPERATION_TRANSPOSE] = {"transpose",
                             OPERATION_MOVING,
                             STORED,
                             {SIZE(transpose, rows), SIZE(transpose, columns),
                              COUNT(transpose, batch, 1, 1)}},
    [OPERATION_CONCAT] = {"concat",
                          OPERATION_MOVING,
                          STORED,
                          {SIZE(concat, rows), SIZE(concat, first), SIZE(concat, second)}},
    [OPERATION_EMBEDDING] = {"embedding",
                             OPERATION_MOVING,
                             STORED,
                             {SIZE(embedding, tokens), SIZE(embedding, width),
                              SIZE(embedding, vocabulary)}},
    [OPERATION_ROTARY] = {"rotary",
                          OPERATION_VECTOR,
                          FLOATS,
                          {SIZE(rotary, tokens), SIZE(rotary, heads), SIZE(rotary, size)}},
    [OPERATION_KV_APPEND] = {"kv-append",
                             OPERATION_MOVING,
                             STORED,
                             {SIZE(cache, batch), SIZE(cache, kv), SIZE(cache, tokens),
                              SIZE(cache, size), COUNT(cache, capacity, 0, 0)}},
    [OPERATION_KV_READ] = {"kv-read",
                           OPERATION_MOVING,
                           STORED,
                           {SIZE(cache, batch), SIZE(cache, kv), SIZE(cache, tokens),
                            SIZE(cache, size)}},
    [OPERATION_TOPK] = {"topk",
                        OPERATION_VECTOR,
                        FLOATS,
                        {SIZE(topk, rows), SIZE(topk, width), SIZE(topk, k)}},
    [OPERATION_SAMPLE] = {"sample", OPERATION_VECTOR, FLOATS, ROWS_SHAPE},
    [OPERATION_LOAD] = {"load", OPERATION_STORING, 0, {SIZE(load, items), SIZE(load, bytes)}},
    [OPERATION_RESIZE] = {"resize", OPERATION_VECTOR, STORED, NEW_IMAGE_SHAPE},
    [OPERATION_NORMALISE] = {"normalise", OPERATION_VECTOR, FLOATS, {IMAGE_SHAPE}},
    [OPERATION_CROP] = {"crop", OPERATION_MOVING, STORED, NEW_IMAGE_SHAPE},
    [OPERATION_TOKENISE] = {"tokenise",
                            OPERATION_LOOKUP,
                            0,
                            {SIZE(tokenise, bytes),
                             COUNT(tokenise, piece, 1, 6),
                             {"per-token", AT(tokenise, per_token), true, 1,
                              OPERATION_DIMENSION_MOST, 4}}},
    [OPERATION_CROSS_ENTROPY] = {"cross-entropy",
                                 OPERATION_VECTOR,
                                 FLOATS,
                                 {SIZE(loss, rows), SIZE(loss, classes), FLAG(loss, gradient)}},
    [OPERATION_ALL_REDUCE] = {"all-reduce",
                              OPERATION_COLLECTIVE,
                              STORED,
                              {SIZE(all_reduce, elements), SIZE(all_reduce, devices)}},
    [OPERATION_SGD] = {"sgd",
                       OPERATION_VECTOR,
                       FLOATS,
                       {SIZE(optimiser, parameters), FLAG(optimiser, momentum)}},
    [OPERATION_ADAM] = {"adam",
                        OPERATION_VECTOR,
                        FLOATS,
                        {SIZE(optimiser, parameters), FLAG(optimiser, master)}},
    [OPERATION_CHECKPOINT] = {"checkpoint",
                              OPERATION_STORING,
                              STORED,
                              {SIZE(optimiser, parameters), COUNT(optimiser, states, 0, 2),
                               FLAG(optimiser, master), FLAG(optimiser, async)}},
    [OPERATION_DECODE_VIDEO] = {"decode-video", OPERATION_VECTOR, FLOATS, {FRAMES_SHAPE}},
    [OPERATION_ENCODE_VIDEO] = {"encode-video",
                                OPERATION_VECTOR,
                                FLOATS,
                                {FRAMES_SHAPE, COUNT(frames, candidates, 1, 64)}},
};

const struct operation_facts *operation_facts(enum operation_kind kind)
{
    assert(kind < OPERATION_KINDS);
    assert(facts[kind].dimensions[DIMENSIONS_MOST - 1].name == NULL);
    return &facts[kind];
}

const char *operation_name(enum operation_kind kind)
{
    return operation_facts(kind)->name;
}

enum operation_class operation_class_of(enum operation_kind kind)
{
    return operation_facts(kind)->class;
}

const char *operation_class_name(enum operation_class of)
{
    static const char *const names[OPERATION_CLASSES] = {
        [OPERATION_MATRIX] = "matrix",         [OPERATION_CONVOLUTION] = "convolution",
        [OPERATION_ATTENDING] = "attention",   [OPERATION_VECTOR] = "vector",
        [OPERATION_MOVING] = "move",           [OPERATION_LOOKUP] = "look-up",
        [OPERATION_COLLECTIVE] = "collective", [OPERATION_STORING] = "storage",
    };
    assert(of < OPERATION_CLASSES);
    return names[of];
}

bool operation_has_dtype(enum operation_kind kind)
{
    return operation_facts(kind)->dtypes != 0;
}

bool operation_takes(enum operation_kind kind, enum dtype dtype)
{
    return dtype < DTYPES && (operation_facts(kind)->dtypes & BIT(dtype)) != 0;
}

const char *operation_status_name(enum operation_status status)
{
    switch (status) {
    case OPERATION_OK:
        return "OK";
    case OPERATION_UNKNOWN:
        return "UNKNOWN";
    case OPERATION_SHAPE:
        return "SHAPE";
    case OPERATION_DIMENSION:
        return "DIMENSION";
    case OPERATION_CONFLICT:
        return "CONFLICT";
    case OPERATION_DTYPE:
        return "DTYPE";
    case OPERATION_OVERFLOW:
        return "OVERFLOW";
    }
    return "";
}

struct operation operation_of(enum operation_kind kind, enum dtype dtype)
{
    struct operation operation = {.kind = kind, .dtype = dtype};
    const struct dimension *dimension = operation_facts(kind)->dimensions;
    for (; dimension->name != NULL; dimension++) {
        *(int64_t *)((char *)&operation + dimension->offset) = dimension->usual;
    }
    return operation;
}

/* ---------------------------------------------------------------- refusals */

static enum operation_status check_dimensions(const struct operation *operation,
                                              struct problem *problem)
{
    const struct dimension *dimension = operation_facts(operation->kind)->dimensions;
    for (; dimension->name != NULL; dimension++) {
        int64_t value = dimension_value(operation, dimension);
        if (value < dimension->least || value > dimension->most) {
            problem_set(problem, "%s: %s is %lld; it may be %lld to %lld",
                        operation_name(operation->kind), dimension->name, (long long)value,
                        (long long)dimension->least, (long long)dimension->most);
            return OPERATION_DIMENSION;
        }
    }
    return OPERATION_OK;
}

static enum operation_status check_dtype(const struct operation *operation, bool is_sparse,
                                         struct problem *problem)
{
    if (!operation_has_dtype(operation->kind)) {
        return OPERATION_OK;
    }
    if (operation->dtype >= DTYPES) {
        problem_set(problem, "%s: there is no type %d", operation_name(operation->kind),
                    (int)operation->dtype);
        return OPERATION_DTYPE;
    }
    if (!operation_takes(operation->kind, operation->dtype)) {
        problem_set(problem, "%s is not done in %s; `bourse devices --operations` lists its types",
                    operation_name(operation->kind), dtype_name(operation->dtype));
        return OPERATION_DTYPE;
    }
    if (is_sparse && (BIT(operation->dtype) & SPARSE_TYPES) == 0) {
        problem_set(problem, "%s: sparse operands are of tf32 or a type below 32 bits, not %s",
                    operation_name(operation->kind), dtype_name(operation->dtype));
        return OPERATION_DTYPE;
    }
    return OPERATION_OK;
}

__attribute__((format(printf, 3, 4))) static enum operation_status
conflict(const struct operation *operation, struct problem *problem, const char *format, ...)
{
    char what[sizeof problem->text - 64];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    problem_set(problem, "%s: %s", operation_name(operation->kind), what);
    return OPERATION_CONFLICT;
}

static enum operation_status check_conv(const struct operation *operation, struct problem *problem)
{
    const struct conv_shape *s = &operation->shape.conv;
    if (s->channels % s->groups != 0 || s->filters % s->groups != 0) {
        return conflict(operation, problem,
                        "channels, %" PRId64 ", and filters, %" PRId64
                        ", must be multiples of groups, %" PRId64,
                        s->channels, s->filters, s->groups);
    }
    if (operation_conv_outputs(s, s->height, s->kernel_height) == 0 ||
        operation_conv_outputs(s, s->width, s->kernel_width) == 0) {
        return conflict(operation, problem,
                        "the kernel, with its dilation, is larger than the image with its padding");
    }
    int64_t fours =
        s->channels / s->groups % 4 * (s->kernel_height % 4) % 4 * (s->kernel_width % 4) % 4;
    if (s->sparse != 0 && fours != 0) {
        return conflict(operation, problem,
                        "channels x kernel-height x kernel-width of a sparse filter must be a "
                        "multiple of 4");
    }
    return OPERATION_OK;
}

/* Checks that the dimensions, which are in range, are consistent. */
static enum operation_status check_together(const struct operation *operation,
                                            struct problem *problem)
{
    const struct attention_shape *attention = &operation->shape.attention;
    const struct cache_shape *cache = &operation->shape.cache;
    const struct image_shape *image = &operation->shape.image;
    switch (operation->kind) {
    case OPERATION_MATMUL:
    case OPERATION_GEMM:
        if (operation->shape.product.sparse != 0 && operation->shape.product.k % 4 != 0) {
            return conflict(operation, problem,
                            "k of a sparse product, %" PRId64 ", must be a multiple of 4",
                            operation->shape.product.k);
        }
        break;
    case OPERATION_CONV:
        return check_conv(operation, problem);
    case OPERATION_ATTENTION:
        if (attention->kv != 0 && attention->heads % attention->kv != 0) {
            return conflict(operation, problem,
                            "heads, %" PRId64 ", must be a multiple of kv, %" PRId64,
                            attention->heads, attention->kv);
        }
        if (attention->causal != 0 && attention->query > attention->keys) {
            return conflict(operation, problem,
                            "query of a causal attention, %" PRId64
                            ", must be at most keys, %" PRId64,
                            attention->query, attention->keys);
        }
        break;
    case OPERATION_ROTARY:
        if (operation->shape.rotary.size % 2 != 0) {
            return conflict(operation, problem, "size, %" PRId64 ", must be even",
                            operation->shape.rotary.size);
        }
        break;
    case OPERATION_KV_APPEND:
        if (cache->capacity != 0 && cache->capacity < cache->tokens) {
            return conflict(operation, problem,
                            "capacity, %" PRId64 ", must be at least tokens, %" PRId64,
                            cache->capacity, cache->tokens);
        }
        break;
    case OPERATION_TOPK:
        if (operation->shape.topk.k > operation->shape.topk.width) {
            return conflict(operation, problem, "k, %" PRId64 ", must be at most width, %" PRId64,
                            operation->shape.topk.k, operation->shape.topk.width);
        }
        break;
    case OPERATION_CROP:
        if (image->new_height > image->height || image->new_width > image->width) {
            return conflict(operation, problem,
                            "new-height x new-width, %" PRId64 " x %" PRId64
                            ", must be at most the image, %" PRId64 " x %" PRId64,
                            image->new_height, image->new_width, image->height, image->width);
        }
        break;
    default: /* no dimensions depend on each other */
        break;
    }
    return OPERATION_OK;
}

/* ---------------------------------------------------------------- figures */

struct fit {
    const struct operation *operation;
    struct problem *problem;
    bool fits;
};

static int64_t fitted(struct fit *fit, const char *name, wide value)
{
    if (value <= (wide)INT64_MAX) {
        return (int64_t)value;
    }
    if (fit->fits) {
        problem_set(fit->problem,
                    "%s: %s is above 2^63 - 1 bytes; cut the operation into smaller ones",
                    operation_name(fit->operation->kind), name);
    }
    fit->fits = false;
    return 0;
}

static enum operation_status narrow(const struct operation *operation,
                                    const struct wide_size *counted,
                                    struct operation_size *ret_size, struct problem *problem)
{
    struct fit fit = {operation, problem, true};
    if (counted->flops == WIDE_MOST) {
        problem_set(problem, "%s: there are more than 2^128 - 2 operations in it",
                    operation_name(operation->kind));
        return OPERATION_OVERFLOW;
    }
    struct operation_size size = {
        .flops = counted->flops,
        .read_bytes = fitted(&fit, "what is read", counted->read),
        .written_bytes = fitted(&fit, "what is written", counted->written),
        .working_bytes = fitted(&fit, "its working memory", counted->working),
        .weight_bytes = fitted(&fit, "its weights", counted->weights),
        .link_bytes = fitted(&fit, "what goes over links", counted->link),
        .storage_bytes = fitted(&fit, "what is stored", counted->storage),
    };
    (void)fitted(&fit, "its memory", counted->idle);
    if (fit.fits) {
        assert(counted->repeated <= counted->read + counted->written);
        size.resident_bytes = fitted(&fit, "its memory",
                                     counted->read + counted->written - counted->repeated +
                                         counted->idle + counted->working);
    }
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        wide extent = counted->extents[i];
        size.extents[i] = extent <= (wide)INT64_MAX ? (int64_t)extent : INT64_MAX;
    }
    if (!fit.fits) {
        return OPERATION_OVERFLOW;
    }
    *ret_size = size;
    return OPERATION_OK;
}

static bool is_sparse(const struct operation *operation)
{
    switch (operation->kind) {
    case OPERATION_MATMUL:
    case OPERATION_GEMM:
        return operation->shape.product.sparse != 0;
    case OPERATION_CONV:
        return operation->shape.conv.sparse != 0;
    default:
        return false;
    }
}

enum operation_status operation_measure(const struct operation *operation,
                                        struct operation_size *ret_size,
                                        struct problem *ret_problem)
{
    if (operation->kind >= OPERATION_KINDS) {
        problem_set(ret_problem, "there is no operation %d", (int)operation->kind);
        return OPERATION_UNKNOWN;
    }
    enum operation_status status = check_dimensions(operation, ret_problem);
    if (status == OPERATION_OK) {
        status = check_dtype(operation, is_sparse(operation), ret_problem);
    }
    if (status == OPERATION_OK) {
        status = check_together(operation, ret_problem);
    }
    if (status != OPERATION_OK) {
        return status;
    }
    struct wide_size counted;
    operation_count(operation, &counted);
    return narrow(operation, &counted, ret_size, ret_problem);
}
