/* The formulas of docs/operations.md are computed here, kind by kind, in its order and with its
 * names. */
#include "planner/cost/operations_internal.h"

#include <assert.h>

enum {
    BITS_INDEX = 32,     /* number of a row, a token */
    BITS_FP32 = 32,      /* data kept in full precision whatever the type */
    BITS_PIXEL = 8,      /* a sample of an image as it is read */
    BITS_SPARSE = 2,     /* place of a kept element among its four */
    LERP_OPERATIONS = 7, /* four products of a weight and a neighbour, three sums */
    TRANSFORM = 10, /* per sample: 16 rows and columns of 8, each 11 products and 29 sums, for 64 */
    PREDICTION = 4, /* per sample: the mean of four neighbours, three sums and a quotient */
    RECOVERY = TRANSFORM + PREDICTION + 2 /* scaled, and added to the prediction */
};

/* ---------------------------------------------------------------- saturating arithmetic */

static wide times(wide a, wide b)
{
    wide product;
    return __builtin_mul_overflow(a, b, &product) ? WIDE_MOST : product;
}

static wide plus(wide a, wide b)
{
    wide sum;
    return __builtin_add_overflow(a, b, &sum) ? WIDE_MOST : sum;
}

static wide product_of(size_t count, const int64_t *factors)
{
    wide product = 1;
    for (size_t i = 0; i < count; i++) {
        assert(factors[i] >= 0);
        product = times(product, (wide)factors[i]);
    }
    return product;
}
#define PRODUCT(...)                                                                               \
    product_of(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                           \
               (const int64_t[]){__VA_ARGS__})

static wide div_ceil(wide a, wide b)
{
    return a == WIDE_MOST ? a : a / b + (a % b != 0);
}

/* An array is packed, so its last byte may be partly used. */
static wide bytes_of(wide elements, uint32_t bits)
{
    return div_ceil(times(elements, bits), 8);
}

static wide ceil_log2(int64_t value)
{
    wide log = 0;
    while (((int64_t)1 << log) < value) {
        log++;
    }
    return log;
}

static void set_extents(struct wide_size *size, wide first, wide second, wide third)
{
    size->extents[0] = first;
    size->extents[1] = second;
    size->extents[2] = third;
}

/* ---------------------------------------------------------------- products */

/* F = 2 b M N K [LAWN 41]: a product and a sum for each of M N K. Scaling by alpha and beta is not
 * counted. */
static void count_product(const struct operation *operation, struct wide_size *size)
{
    const struct product_shape *s = &operation->shape.product;
    uint32_t own_bits = dtype_bits(operation->dtype);
    uint32_t bits = s->weights != 0 ? dtype_bits((enum dtype)(s->weights - 1)) : own_bits;
    size->flops = PRODUCT(2, s->batch, s->m, s->n, s->k);
    wide a = bytes_of(PRODUCT(s->batch, s->m, s->k), own_bits);
    wide c = bytes_of(PRODUCT(s->batch, s->m, s->n), dtype_sum_bits(operation->dtype));
    /* Half of a 2:4 sparse operand is kept, each element with its place [Mishra 2021]. */
    size->weights = s->sparse != 0 ? bytes_of(PRODUCT(s->batch, s->k / 2, s->n), bits + BITS_SPARSE)
                                   : bytes_of(PRODUCT(s->batch, s->k, s->n), bits);
    size->read = plus(a, size->weights);
    size->written = c;
    if (operation->kind == OPERATION_GEMM) {
        size->read = plus(size->read, c);
        size->repeated = c;
    }
    set_extents(size, (wide)s->m, (wide)s->n, (wide)s->k);
}

int64_t operation_conv_outputs(const struct conv_shape *shape, int64_t length, int64_t kernel)
{
    int128 room = (int128)length + 2 * (int128)shape->padding;
    int128 reach = (int128)shape->dilation * (kernel - 1) + 1;
    return reach > room ? 0 : (int64_t)((room - reach) / shape->stride + 1);
}

/* F = 2 N Ho Wo Co (Ci / g) Kh Kw. Ho and Wo are as in ONNX Conv; nothing is copied, as in a
 * product [Chetlur 2014]. */
static void count_conv(const struct operation *operation, struct wide_size *size)
{
    const struct conv_shape *s = &operation->shape.conv;
    uint32_t bits = dtype_bits(operation->dtype);
    int64_t out_height = operation_conv_outputs(s, s->height, s->kernel_height);
    int64_t out_width = operation_conv_outputs(s, s->width, s->kernel_width);
    int64_t channels = s->channels / s->groups;
    wide places = PRODUCT(s->batch, out_height, out_width);
    wide inner = PRODUCT(channels, s->kernel_height, s->kernel_width);
    wide filters = times(inner, (wide)s->filters);
    size->flops = times(times(2, places), filters);
    size->weights =
        s->sparse != 0 ? bytes_of(filters / 2, bits + BITS_SPARSE) : bytes_of(filters, bits);
    size->read =
        plus(bytes_of(PRODUCT(s->batch, s->height, s->width, s->channels), bits), size->weights);
    size->written = bytes_of(times(places, (wide)s->filters), dtype_sum_bits(operation->dtype));
    set_extents(size, places, (wide)(s->filters / s->groups), inner);
}

/* F = 4 B H P d over P pairs of a query and a key: S T, or S T - S (S - 1) / 2 if causal [Dao
 * 2022]. Keys and values of shared heads are read once [Ainslie 2023]. A float32 sum is kept for
 * each row. The softmax is not counted: its five operations a pair are 5 / 4 d of the rest.
 *
 * The backward pass has five products instead of two: F = 10 B H P d. It computes the weights again
 * from queries, keys and the sums of the rows [Dao 2023, algorithm 2]. */
static void count_attention(const struct operation *operation, struct wide_size *size)
{
    const struct attention_shape *s = &operation->shape.attention;
    uint32_t bits = dtype_bits(operation->dtype);
    uint32_t sum_bits = dtype_sum_bits(operation->dtype);
    int64_t kv = s->kv == 0 ? s->heads : s->kv;
    wide pairs = PRODUCT(s->query, s->keys);
    if (s->causal != 0) {
        pairs -= PRODUCT(s->query, s->query - 1) / 2; /* below 2^80, so exact */
    }
    wide queries = PRODUCT(s->batch, s->heads, s->query);
    wide values = PRODUCT(2, s->batch, kv, s->keys, s->size); /* keys and values */
    wide products = s->backward != 0 ? 5 : 2;
    size->flops = times(times(2 * products, PRODUCT(s->batch, s->heads, s->size)), pairs);
    size->read = plus(bytes_of(times(queries, (wide)s->size), bits), bytes_of(values, bits));
    size->written = bytes_of(times(queries, (wide)s->size), sum_bits);
    size->working = bytes_of(queries, BITS_FP32);
    /* The result, its gradient and the sums are read, and three gradients are written. */
    if (s->backward != 0) {
        size->read = plus(size->read, times(2, size->written));
        size->read = plus(size->read, size->working);
        size->written = plus(size->written, bytes_of(values, sum_bits));
    }
    set_extents(size, queries, (wide)s->keys, (wide)s->size);
}

/* ---------------------------------------------------------------- along rows */

/* F = R (7 W + 2): mean W, centring W, variance 2 W, root 2, scaling, gamma and beta 3 W [Ba
 * 2016]. */
static void count_layernorm(const struct operation *operation, struct wide_size *size)
{
    const struct rows_shape *s = &operation->shape.rows;
    uint32_t bits = dtype_bits(operation->dtype);
    size->flops = times((wide)s->rows, plus(PRODUCT(7, s->width), 2));
    size->weights = bytes_of(PRODUCT(2, s->width), bits);
    size->written = bytes_of(PRODUCT(s->rows, s->width), bits);
    size->read = plus(size->written, size->weights);
    set_extents(size, PRODUCT(s->rows, s->width), 1, 1);
}

/* F = R (4 W + 2): mean of squares 2 W, root 2, scaling and gamma 2 W [Zhang 2019]. */
static void count_rmsnorm(const struct operation *operation, struct wide_size *size)
{
    const struct rows_shape *s = &operation->shape.rows;
    uint32_t bits = dtype_bits(operation->dtype);
    size->flops = times((wide)s->rows, plus(PRODUCT(4, s->width), 2));
    size->weights = bytes_of((wide)s->width, bits);
    size->written = bytes_of(PRODUCT(s->rows, s->width), bits);
    size->read = plus(size->written, size->weights);
    set_extents(size, PRODUCT(s->rows, s->width), 1, 1);
}

/* F = 2 N C S: a factor and a summand for each channel. Training takes C (7 N S + 8): as along a
 * row, and the two running means. A batch does not stay on the chip, so training reads it twice
 * [Ioffe 2015]. */
static void count_batchnorm(const struct operation *operation, struct wide_size *size)
{
    const struct batchnorm_shape *s = &operation->shape.batchnorm;
    uint32_t bits = dtype_bits(operation->dtype);
    wide elements = PRODUCT(s->batch, s->channels, s->size);
    wide data = bytes_of(elements, bits);
    wide pair = bytes_of(PRODUCT(2, s->channels), bits);
    set_extents(size, elements, 1, 1);
    size->written = data;
    if (s->training == 0) {
        size->flops = times(2, elements);
        size->weights = pair;
        size->read = plus(data, pair);
        return;
    }
    size->flops = plus(times(7, elements), PRODUCT(8, s->channels));
    size->read = plus(times(2, data), times(2, pair));
    size->written = plus(data, pair);
    size->repeated = plus(data, pair);
}

/* F = R (5 W - 2): maximum W - 1, subtraction W, exponential W, sum W - 1, quotient W. */
static void count_softmax(const struct operation *operation, struct wide_size *size)
{
    const struct rows_shape *s = &operation->shape.rows;
    size->flops = times((wide)s->rows, PRODUCT(5, s->width) - 2);
    size->read = bytes_of(PRODUCT(s->rows, s->width), dtype_bits(operation->dtype));
    size->written = size->read;
    set_extents(size, PRODUCT(s->rows, s->width), 1, 1);
}

/* F = R (W - 1) for a sum, a product or a maximum. */
static void count_reduce(const struct operation *operation, struct wide_size *size)
{
    const struct rows_shape *s = &operation->shape.rows;
    size->flops = PRODUCT(s->rows, s->width - 1);
    size->read = bytes_of(PRODUCT(s->rows, s->width), dtype_bits(operation->dtype));
    size->written = bytes_of((wide)s->rows, dtype_sum_bits(operation->dtype));
    set_extents(size, PRODUCT(s->rows, s->width), 1, 1);
}

/* F = R (W + k log2 k): each element is compared once, and the kept ones are sorted [Knuth,
 * 5.3.3]. */
static void count_topk(const struct operation *operation, struct wide_size *size)
{
    const struct topk_shape *s = &operation->shape.topk;
    uint32_t bits = dtype_bits(operation->dtype);
    size->flops = times((wide)s->rows, plus((wide)s->width, times((wide)s->k, ceil_log2(s->k))));
    size->read = bytes_of(PRODUCT(s->rows, s->width), bits);
    size->written =
        plus(bytes_of(PRODUCT(s->rows, s->k), bits), bytes_of(PRODUCT(s->rows, s->k), BITS_INDEX));
    set_extents(size, PRODUCT(s->rows, s->width), 1, 1);
}

/* F = R (8 W - 3): temperature W, softmax 5 W - 2, running sum W - 1, comparison with the random
 * number W [Devroye, III.2]. */
static void count_sample(const struct operation *operation, struct wide_size *size)
{
    const struct rows_shape *s = &operation->shape.rows;
    size->flops = times((wide)s->rows, PRODUCT(8, s->width) - 3);
    size->read = bytes_of(PRODUCT(s->rows, s->width), dtype_bits(operation->dtype));
    size->written = bytes_of((wide)s->rows, BITS_INDEX);
    size->working = bytes_of(PRODUCT(s->rows, s->width), BITS_FP32);
    set_extents(size, PRODUCT(s->rows, s->width), 1, 1);
}

/* F = 4 R W + R: maximum, subtraction, exponential and sum 4 W - 2, logarithm and target 2, mean R.
 * The gradient (softmax - target) / R adds R (2 W + 1). */
static void count_loss(const struct operation *operation, struct wide_size *size)
{
    const struct loss_shape *s = &operation->shape.loss;
    wide logits = bytes_of(PRODUCT(s->rows, s->classes), dtype_bits(operation->dtype));
    size->flops = plus(PRODUCT(4, s->rows, s->classes), (wide)s->rows);
    size->read = plus(logits, bytes_of((wide)s->rows, BITS_INDEX));
    size->written = bytes_of(1, BITS_FP32);
    if (s->gradient != 0) {
        size->flops = plus(size->flops, plus(PRODUCT(2, s->rows, s->classes), (wide)s->rows));
        size->written = plus(size->written, logits);
    }
    set_extents(size, PRODUCT(s->rows, s->classes), 1, 1);
}

/* ---------------------------------------------------------------- element by element */

/* Operations per element: relu 1; sigmoid 4: sign, exponential, 1 +, quotient; tanh 1; silu 5: x
 * sigmoid(x) [Elfwing 2018]; gelu 5: x / sqrt 2, erf, 1 +, times x, times 1/2 [Hendrycks 2016];
 * swiglu 6: silu(x) y [Shazeer 2020]; add 1. */
static void count_elements(const struct operation *operation, struct wide_size *size)
{
    static const struct {
        int64_t flops, operands;
    } facts[OPERATION_KINDS] = {
        [OPERATION_RELU] = {1, 1}, [OPERATION_SIGMOID] = {4, 1}, [OPERATION_TANH] = {1, 1},
        [OPERATION_SILU] = {5, 1}, [OPERATION_GELU] = {5, 1},    [OPERATION_SWIGLU] = {6, 2},
        [OPERATION_ADD] = {1, 2},  [OPERATION_COPY] = {0, 1},
    };
    const struct elements_shape *s = &operation->shape.elements;
    assert(facts[operation->kind].operands > 0);
    size->flops = PRODUCT(facts[operation->kind].flops, s->elements);
    size->written = bytes_of((wide)s->elements, dtype_bits(operation->dtype));
    size->read = times((wide)facts[operation->kind].operands, size->written);
    set_extents(size, (wide)s->elements, 1, 1);
}

/* F = 3 T H d: a rotation of two elements is four products and two sums [Su 2021]. The result
 * replaces its input. A cosine and a sine in float32 are read for each pair of a position. */
static void count_rotary(const struct operation *operation, struct wide_size *size)
{
    const struct rotary_shape *s = &operation->shape.rotary;
    wide elements = PRODUCT(s->tokens, s->heads, s->size);
    size->flops = times(3, elements);
    size->written = bytes_of(elements, dtype_bits(operation->dtype));
    size->read = plus(size->written, bytes_of(PRODUCT(s->tokens, s->size), BITS_FP32));
    size->repeated = size->written;
    set_extents(size, elements, 1, 1);
}

/* F = 7 B Ho Wo C: four neighbours with weights (bilinear). The weights are equal for all rows and
 * not counted. */
static void count_resize(const struct operation *operation, struct wide_size *size)
{
    const struct image_shape *s = &operation->shape.image;
    wide results = PRODUCT(s->batch, s->new_height, s->new_width, s->channels);
    size->flops = times(LERP_OPERATIONS, results);
    size->read =
        bytes_of(PRODUCT(s->batch, s->height, s->width, s->channels), dtype_bits(operation->dtype));
    size->written = bytes_of(results, dtype_bits(operation->dtype));
    set_extents(size, results, 1, 1);
}

/* F = 2 B H W C: subtract the channel's mean, divide by its deviation. Input is bytes, output the
 * type. */
static void count_normalise(const struct operation *operation, struct wide_size *size)
{
    const struct image_shape *s = &operation->shape.image;
    wide elements = PRODUCT(s->batch, s->height, s->width, s->channels);
    size->flops = times(2, elements);
    size->weights = bytes_of(PRODUCT(2, s->channels), BITS_FP32);
    size->read = plus(bytes_of(elements, BITS_PIXEL), size->weights);
    size->written = bytes_of(elements, dtype_bits(operation->dtype));
    set_extents(size, elements, 1, 1);
}

/* F = 2 P for w -= a g. With momentum, v = m v + g and w -= a v: F = 4 P, with v in float32. */
static void count_sgd(const struct operation *operation, struct wide_size *size)
{
    const struct optimiser_shape *s = &operation->shape.optimiser;
    wide weights = bytes_of((wide)s->parameters, dtype_bits(operation->dtype));
    wide states = s->momentum != 0 ? bytes_of((wide)s->parameters, BITS_FP32) : 0;
    size->flops = PRODUCT(s->momentum != 0 ? 4 : 2, s->parameters);
    size->read = plus(times(2, weights), states);
    size->written = plus(weights, states);
    size->repeated = size->written;
    set_extents(size, (wide)s->parameters, 1, 1);
}

/* F = 14 P: first moment 3, second moment 4, corrections 2, root, epsilon, quotient, rate and
 * subtraction 5 [Kingma 2015, algorithm 1]. The moments are in float32. With `master` the weights
 * are, too, and are read instead of their copies. */
static void count_adam(const struct operation *operation, struct wide_size *size)
{
    const struct optimiser_shape *s = &operation->shape.optimiser;
    wide weights = bytes_of((wide)s->parameters, dtype_bits(operation->dtype));
    wide single = bytes_of((wide)s->parameters, BITS_FP32);
    wide kept = plus(times(2, single), s->master != 0 ? single : weights);
    size->flops = PRODUCT(14, s->parameters);
    size->read = plus(weights, kept);
    size->written = s->master != 0 ? plus(kept, weights) : kept;
    size->repeated = kept;
    set_extents(size, (wide)s->parameters, 1, 1);
}

/* ---------------------------------------------------------------- bytes that move */

static void count_transpose(const struct operation *operation, struct wide_size *size)
{
    const struct transpose_shape *s = &operation->shape.transpose;
    wide elements = PRODUCT(s->batch, s->rows, s->columns);
    size->read = bytes_of(elements, dtype_bits(operation->dtype));
    size->written = size->read;
    set_extents(size, elements, 1, 1);
}

static void count_concat(const struct operation *operation, struct wide_size *size)
{
    const struct concat_shape *s = &operation->shape.concat;
    wide elements = PRODUCT(s->rows, s->first + s->second);
    size->read = bytes_of(elements, dtype_bits(operation->dtype));
    size->written = size->read;
    set_extents(size, elements, 1, 1);
}

/* A row of the table is read for each token; the whole table is in memory. */
static void count_embedding(const struct operation *operation, struct wide_size *size)
{
    const struct embedding_shape *s = &operation->shape.embedding;
    uint32_t bits = dtype_bits(operation->dtype);
    size->written = bytes_of(PRODUCT(s->tokens, s->width), bits);
    size->read = plus(size->written, bytes_of((wide)s->tokens, BITS_INDEX));
    size->repeated = size->written; /* the rows are part of the table */
    size->weights = bytes_of(PRODUCT(s->vocabulary, s->width), bits);
    size->idle = size->weights;
    set_extents(size, PRODUCT(s->tokens, s->width), 1, 1);
}

/* Keys and values make twice B KV t d elements. */
static void count_cache(const struct operation *operation, struct wide_size *size)
{
    const struct cache_shape *s = &operation->shape.cache;
    wide elements = PRODUCT(2, s->batch, s->kv, s->tokens, s->size);
    size->read = bytes_of(elements, dtype_bits(operation->dtype));
    if (operation->kind == OPERATION_KV_APPEND) {
        int64_t room = s->capacity == 0 ? 0 : s->capacity - s->tokens;
        size->written = size->read;
        size->idle =
            bytes_of(PRODUCT(2, s->batch, s->kv, room, s->size), dtype_bits(operation->dtype));
    }
    set_extents(size, elements, 1, 1);
}

static void count_crop(const struct operation *operation, struct wide_size *size)
{
    const struct image_shape *s = &operation->shape.image;
    uint32_t bits = dtype_bits(operation->dtype);
    wide results = PRODUCT(s->batch, s->new_height, s->new_width, s->channels);
    size->read = bytes_of(results, bits);
    size->written = size->read;
    size->repeated = size->read; /* the window is part of the image */
    size->idle = bytes_of(PRODUCT(s->batch, s->height, s->width, s->channels), bits);
    set_extents(size, results, 1, 1);
}

static void count_load(const struct operation *operation, struct wide_size *size)
{
    const struct load_shape *s = &operation->shape.load;
    size->storage = PRODUCT(s->items, s->bytes);
    size->written = size->storage;
    set_extents(size, size->storage, 1, 1);
}

/* F = bytes (p - 1) / 2 look-ups: a word of p bytes has at most p - 1 merges, each over one pair
 * less [Sennrich 2016]. */
static void count_tokenise(const struct operation *operation, struct wide_size *size)
{
    const struct tokenise_shape *s = &operation->shape.tokenise;
    size->flops = div_ceil(PRODUCT(s->bytes, s->piece - 1), 2);
    size->read = (wide)s->bytes;
    size->written = bytes_of(div_ceil((wide)s->bytes, (wide)s->per_token), BITS_INDEX);
    set_extents(size, (wide)s->bytes, 1, 1);
}

/* Each device of a ring sends all but one of n parts twice, and receives as much: 2 E (n - 1) / n
 * each way [Patarasuk 2009]. The first pass sums the parts, F = E (n - 1) / n; the second
 * distributes the sums. Parts may differ by an element, so the count is rounded up. */
static void count_all_reduce(const struct operation *operation, struct wide_size *size)
{
    const struct all_reduce_shape *s = &operation->shape.all_reduce;
    uint32_t bits = dtype_bits(operation->dtype);
    wide others = (wide)(s->elements - s->elements / s->devices);
    wide once = bytes_of(others, bits);
    size->flops = others;
    size->read = times(3, once);
    size->written = times(2, once);
    size->repeated = plus(size->read, size->written);
    size->idle = bytes_of((wide)s->elements, bits);
    size->link = times(4, once);
    if (s->devices > 1) {
        size->working = bytes_of(div_ceil((wide)s->elements, (wide)s->devices), bits);
    }
    set_extents(size, (wide)s->elements, 1, 1);
}

/* A checkpoint holds all that training needs to go on. With `async` it is copied first, and the
 * copy is written. */
static void count_checkpoint(const struct operation *operation, struct wide_size *size)
{
    const struct optimiser_shape *s = &operation->shape.optimiser;
    wide all = plus(bytes_of((wide)s->parameters, dtype_bits(operation->dtype)),
                    bytes_of(PRODUCT(s->states + s->master, s->parameters), BITS_FP32));
    size->storage = all;
    size->read = all;
    if (s->async != 0) {
        size->read = times(2, all);
        size->written = all;
        size->working = all;
        size->repeated = times(2, all);
    }
    set_extents(size, all, 1, 1);
}

/* Decoding S = 3 H W / 2 samples takes F = 16 S. Each is scaled, transformed back in blocks of 8 x
 * 8 [Loeffler 1989], predicted between samples of the frame before, and added [ISO/IEC 13818-2].
 *
 * Encoding also decodes the frame before, takes the difference, transforms it and scales it: 28 S.
 * It compares each block with `candidates` places: a difference, its absolute value and a sum for
 * each pixel. Reading and writing codes bit by bit is not counted. */
static void count_video(const struct operation *operation, struct wide_size *size)
{
    const struct frames_shape *s = &operation->shape.frames;
    bool encodes = operation->kind == OPERATION_ENCODE_VIDEO;
    wide pixels = PRODUCT(s->height, s->width);
    wide samples = div_ceil(times(3, pixels), 2);
    wide decoded = times((wide)s->frames, samples);
    wide coded = PRODUCT(s->frames, s->bytes);
    size->flops = times(RECOVERY + (encodes ? TRANSFORM + 2 : 0), decoded);
    size->read = plus(decoded, encodes ? decoded : coded); /* the frame before, and the frame */
    size->written = plus(decoded, encodes ? coded : 0);
    if (encodes) {
        size->flops = plus(size->flops, times(PRODUCT(3, s->frames, s->candidates), pixels));
    }
    set_extents(size, times((wide)s->frames, pixels), 1, 1);
}

void operation_count(const struct operation *operation, struct wide_size *ret_size)
{
    static void (*const counts[OPERATION_KINDS])(const struct operation *, struct wide_size *) = {
        [OPERATION_MATMUL] = count_product,
        [OPERATION_GEMM] = count_product,
        [OPERATION_CONV] = count_conv,
        [OPERATION_LAYERNORM] = count_layernorm,
        [OPERATION_RMSNORM] = count_rmsnorm,
        [OPERATION_BATCHNORM] = count_batchnorm,
        [OPERATION_ATTENTION] = count_attention,
        [OPERATION_RELU] = count_elements,
        [OPERATION_SIGMOID] = count_elements,
        [OPERATION_TANH] = count_elements,
        [OPERATION_SILU] = count_elements,
        [OPERATION_GELU] = count_elements,
        [OPERATION_SWIGLU] = count_elements,
        [OPERATION_ADD] = count_elements,
        [OPERATION_SOFTMAX] = count_softmax,
        [OPERATION_REDUCE] = count_reduce,
        [OPERATION_COPY] = count_elements,
        [OPERATION_TRANSPOSE] = count_transpose,
        [OPERATION_CONCAT] = count_concat,
        [OPERATION_EMBEDDING] = count_embedding,
        [OPERATION_ROTARY] = count_rotary,
        [OPERATION_KV_APPEND] = count_cache,
        [OPERATION_KV_READ] = count_cache,
        [OPERATION_TOPK] = count_topk,
        [OPERATION_SAMPLE] = count_sample,
        [OPERATION_LOAD] = count_load,
        [OPERATION_RESIZE] = count_resize,
        [OPERATION_NORMALISE] = count_normalise,
        [OPERATION_CROP] = count_crop,
        [OPERATION_TOKENISE] = count_tokenise,
        [OPERATION_CROSS_ENTROPY] = count_loss,
        [OPERATION_ALL_REDUCE] = count_all_reduce,
        [OPERATION_SGD] = count_sgd,
        [OPERATION_ADAM] = count_adam,
        [OPERATION_CHECKPOINT] = count_checkpoint,
        [OPERATION_DECODE_VIDEO] = count_video,
        [OPERATION_ENCODE_VIDEO] = count_video,
    };
    *ret_size = (struct wide_size){.extents = {1, 1, 1}};
    counts[operation->kind](operation, ret_size);
}
