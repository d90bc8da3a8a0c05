/* Whole blocks of models, run by our own operators and by plain loops that know nothing of them: a
 * block of a residual network, and a block of a transformer. */
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers between -1 and 1 that are the same on each machine. */
static float next_number(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (float)(int32_t)*seed / 2147483648.0F;
}

/* Takes numbers for weights, and writes them into the model. The caller frees them. */
static float *weights(struct own_case *self, const char *name, const char *dims, size_t count,
                      uint32_t *seed)
{
    float *values = malloc(count * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = next_number(seed) / 2;
    }
    own_case_reals(self, name, dims, values, count);
    return values;
}

/* Adds an input of the graph that has some dims without a number. The array keeps the values. */
static void input(struct own_case *self, const char *name, enum onnx_type type, const char *said,
                  uint32_t rank, const int64_t *dims)
{
    struct problem problem = {""};
    ck_assert(onnx_array_make(type, rank, dims, &self->inputs[self->input_count++], &problem));
    onnx_write_input(&self->writer, name, (int)type, said);
}

static void assert_close(const float *found, const double *stated, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(fabs((double)found[i] - stated[i]) <= 1e-5 + 1e-4 * fabs(stated[i]),
                      "%s: element %zu is %.9g, not %.9g", what, i, (double)found[i], stated[i]);
    }
}

/* Runs the model with more and more memory, until it is enough. Wherever memory ends, the model is
 * refused for that reason, and nothing is lost. */
static void try_bounds(struct own_case *self)
{
    enum { STEP = 128, TRIES_LEAST = 10 };
    struct onnx_engine engine;
    unsigned tries = 0;
    enum onnx_engine_status status = ONNX_ENGINE_MEMORY;
    own_engine_make(&engine);
    for (self->memory_bytes = STEP; status == ONNX_ENGINE_MEMORY; self->memory_bytes += STEP) {
        onnx_array_release(&self->found[0]);
        engine.close(&self->session);
        status = own_case_run(self);
        tries++;
    }
    ck_assert_msg(status == ONNX_ENGINE_OK, "%s", self->problem.text);
    ck_assert_uint_ge(tries, TRIES_LEAST);
}

/* ---------------------------------------------------------------- a residual block */

enum { IMAGES = 2, CHANNELS = 3, FILTERS = 8, SIDE = 9, HALF = 5, CLASSES = 4, KERNEL = 3 };

/* Convolves with a border of 1 around each image. */
static void convolve(const double *x, int images, int channels, int side, const float *filters,
                     int count, int stride, double *y)
{
    const int out = (side - 1) / stride + 1;
    for (int at = 0; at < images * count * out * out; at++) {
        const int column = at % out;
        const int row = at / out % out;
        const int filter = at / out / out % count;
        const int image = at / out / out / count;
        double sum = 0;
        for (int c = 0; c < channels; c++) {
            for (int k = 0; k < KERNEL * KERNEL; k++) {
                const int i = row * stride - 1 + k / KERNEL;
                const int j = column * stride - 1 + k % KERNEL;
                if (i >= 0 && i < side && j >= 0 && j < side) {
                    sum += x[((image * channels + c) * side + i) * side + j] *
                           (double)filters[(filter * channels + c) * KERNEL * KERNEL + k];
                }
            }
        }
        y[at] = sum;
    }
}

/* Scales each channel by what a batch normalisation of the four lists says. */
static void normalise(double *x, int images, int channels, int space, float *const lists[4])
{
    for (int at = 0; at < images * channels * space; at++) {
        const int c = at / space % channels;
        x[at] = (x[at] - (double)lists[2][c]) / sqrt(fabs((double)lists[3][c]) + 1e-5) *
                    (double)lists[0][c] +
                (double)lists[1][c];
    }
}

static void rectify(double *x, int count)
{
    for (int i = 0; i < count; i++) {
        x[i] = x[i] > 0 ? x[i] : 0;
    }
}

/* Takes the largest of windows of 3, two apart, with a border of 1. */
static void pool(const double *x, int planes, int side, double *y)
{
    const int out = (side - 1) / 2 + 1;
    for (int at = 0; at < planes * out * out; at++) {
        double most = -INFINITY;
        for (int k = 0; k < 9; k++) {
            const int i = at / out % out * 2 - 1 + k / 3;
            const int j = at % out * 2 - 1 + k % 3;
            if (i >= 0 && i < side && j >= 0 && j < side) {
                most = fmax(most, x[(at / out / out * side + i) * side + j]);
            }
        }
        y[at] = most;
    }
}

static void soften(double *x, int rows, int columns)
{
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = 0; i < columns; i++) {
            sum += exp(x[row * columns + i]);
        }
        for (int i = 0; i < columns; i++) {
            x[row * columns + i] = exp(x[row * columns + i]) / sum;
        }
    }
}

static void write_residual(struct own_case *self)
{
    own_case_node(self, "Conv", "kernel_shape=[3,3] pads=[1,1,1,1]", "x stem", "a");
    own_case_node(self, "BatchNormalization", "", "a scale shift mean variance", "b");
    own_case_node(self, "Relu", "", "b", "c");
    own_case_node(self, "MaxPool", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", "c", "d");
    own_case_node(self, "Conv", "pads=[1,1,1,1]", "d inner", "e");
    own_case_node(self, "Add", "", "e d", "f");
    own_case_node(self, "Relu", "", "f", "g");
    own_case_node(self, "GlobalAveragePool", "", "g", "h");
    own_case_node(self, "Flatten", "", "h", "i");
    own_case_node(self, "Gemm", "transB=1", "i dense bias", "j");
    own_case_node(self, "Softmax", "axis=1", "j", "y");
    own_case_output(self, "y", ONNX_FLOAT);
}

START_TEST(a_residual_block_is_what_plain_loops_make)
{
    struct own_case self = {.writer.opset = 13};
    uint32_t seed = 7;
    const int64_t dims[] = {IMAGES, CHANNELS, SIDE, SIDE};
    input(&self, "x", ONNX_FLOAT, "batch,3,9,9", 4, dims);
    float *stem = weights(&self, "stem", "8,3,3,3", FILTERS * CHANNELS * 9, &seed);
    float *lists[4] = {weights(&self, "scale", "8", FILTERS, &seed),
                       weights(&self, "shift", "8", FILTERS, &seed),
                       weights(&self, "mean", "8", FILTERS, &seed), NULL};
    lists[3] = malloc(FILTERS * sizeof(float));
    ck_assert_ptr_nonnull(lists[3]);
    for (int i = 0; i < FILTERS; i++) {
        lists[3][i] = 1 + next_number(&seed) / 2;
    }
    own_case_reals(&self, "variance", "8", lists[3], FILTERS);
    float *inner = weights(&self, "inner", "8,8,3,3", FILTERS * FILTERS * 9, &seed);
    float *dense = weights(&self, "dense", "4,8", CLASSES * FILTERS, &seed);
    float *bias = weights(&self, "bias", "4", CLASSES, &seed);
    write_residual(&self);

    static double x[IMAGES * CHANNELS * SIDE * SIDE];
    static double a[IMAGES * FILTERS * SIDE * SIDE];
    static double d[IMAGES * FILTERS * HALF * HALF];
    static double e[IMAGES * FILTERS * HALF * HALF];
    double y[IMAGES * CLASSES] = {0};
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
        const float value = next_number(&seed);
        ((float *)self.inputs[0].bytes)[i] = value;
        x[i] = (double)value;
    }
    convolve(x, IMAGES, CHANNELS, SIDE, stem, FILTERS, 1, a);
    normalise(a, IMAGES, FILTERS, SIDE * SIDE, lists);
    rectify(a, IMAGES * FILTERS * SIDE * SIDE);
    pool(a, IMAGES * FILTERS, SIDE, d);
    convolve(d, IMAGES, FILTERS, HALF, inner, FILTERS, 1, e);
    for (int i = 0; i < IMAGES * FILTERS * HALF * HALF; i++) {
        e[i] += d[i];
    }
    rectify(e, IMAGES * FILTERS * HALF * HALF);
    for (int image = 0; image < IMAGES; image++) {
        for (int k = 0; k < CLASSES; k++) {
            double sum = (double)bias[k];
            for (int i = 0; i < FILTERS * HALF * HALF; i++) {
                sum += e[image * FILTERS * HALF * HALF + i] / (HALF * HALF) *
                       (double)dense[k * FILTERS + i / (HALF * HALF)];
            }
            y[image * CLASSES + k] = sum;
        }
    }
    soften(y, IMAGES, CLASSES);
    ck_assert_msg(own_case_run(&self) == ONNX_ENGINE_OK, "%s", self.problem.text);
    ck_assert_int_eq(self.found[0].elements, IMAGES * CLASSES);
    assert_close(self.found[0].bytes, y, IMAGES * CLASSES, "the classes");
    try_bounds(&self);
    assert_close(self.found[0].bytes, y, IMAGES * CLASSES, "the classes with little memory");
    own_case_fini(&self);
    free(stem);
    free(inner);
    free(dense);
    free(bias);
    for (int i = 0; i < 4; i++) {
        free(lists[i]);
    }
}
END_TEST

/* ---------------------------------------------------------------- a transformer block */

enum { WORDS = 11, WIDTH = 8, HEADS = 2, HEAD = 4, BATCH = 2, STEPS = 5, WIDE = 16 };

/* LayerNormalization in the operators that models before opset 17 have. */
static void write_norm(struct own_case *self, const char *from, const char *to)
{
    static const char *const nodes[][3] = {
        {"ReduceMean", "%s", "%s_mean"},           {"Sub", "%s %s_mean", "%s_off"},
        {"Pow", "%s_off two", "%s_square"},        {"ReduceMean", "%s_square", "%s_variance"},
        {"Add", "%s_variance epsilon", "%s_more"}, {"Sqrt", "%s_more", "%s_root"},
        {"Div", "%s_off %s_root", "%s_unit"},      {"Mul", "%s_unit norm", "%s_scaled"}};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        char inputs[96] = "";
        char output[64] = "";
        const char *rest = nodes[i][1];
        for (const char *at = strstr(rest, "%s"); at != NULL; at = strstr(rest, "%s")) {
            const size_t used = strlen(inputs);
            (void)snprintf(inputs + used, sizeof inputs - used, "%.*s%s", (int)(at - rest), rest,
                           from);
            rest = at + 2;
        }
        const size_t used = strlen(inputs);
        (void)snprintf(inputs + used, sizeof inputs - used, "%s", rest);
        (void)snprintf(output, sizeof output, "%s%s", from, nodes[i][2] + 2);
        own_case_node(self, nodes[i][0], strcmp(nodes[i][0], "ReduceMean") == 0 ? "axes=[-1]" : "",
                      inputs, output);
    }
    char last[64];
    (void)snprintf(last, sizeof last, "%s_scaled", from);
    own_case_node(self, "Identity", "", last, to);
}

/* Makes heads out of a product: batch, head, step, and the head's own width. */
static void write_heads(struct own_case *self, const char *factor, const char *to)
{
    char product[32];
    char shaped[32];
    (void)snprintf(product, sizeof product, "%s_product", to);
    (void)snprintf(shaped, sizeof shaped, "%s_shaped", to);
    char inputs[64];
    (void)snprintf(inputs, sizeof inputs, "normal %s", factor);
    own_case_node(self, "MatMul", "", inputs, product);
    (void)snprintf(inputs, sizeof inputs, "%s head_shape", product);
    own_case_node(self, "Reshape", "", inputs, shaped);
    own_case_node(self, "Transpose", "perm=[0,2,1,3]", shaped, to);
}

static void write_attention(struct own_case *self)
{
    own_case_node(self, "Gather", "", "words ids", "embedded");
    own_case_node(self, "Shape", "", "ids", "shape");
    own_case_node(self, "Gather", "", "shape zero", "batch");
    own_case_node(self, "Gather", "", "shape one", "steps");
    own_case_node(self, "Concat", "axis=0", "batch steps heads_and_width", "head_shape");
    own_case_node(self, "Concat", "axis=0", "batch steps width", "flat_shape");
    write_norm(self, "embedded", "normal");
    write_heads(self, "wq", "q");
    write_heads(self, "wk", "k");
    write_heads(self, "wv", "v");
    own_case_node(self, "Transpose", "perm=[0,1,3,2]", "k", "k_turned");
    own_case_node(self, "MatMul", "", "q k_turned", "raw_scores");
    own_case_node(self, "Mul", "", "raw_scores half", "scores");
    /* A step sees itself and those before. */
    own_case_node(self, "Squeeze", "", "steps", "step_count");
    own_case_node(self, "Range", "", "zero_scalar step_count one_scalar", "places");
    own_case_node(self, "Unsqueeze", "", "places one", "rows");
    own_case_node(self, "LessOrEqual", "", "places rows", "sees");
    own_case_node(self, "Where", "", "sees scores never", "masked");
    own_case_node(self, "Softmax", "", "masked", "chances");
    own_case_node(self, "MatMul", "", "chances v", "mixed");
    own_case_node(self, "Transpose", "perm=[0,2,1,3]", "mixed", "mixed_turned");
    own_case_node(self, "Reshape", "", "mixed_turned flat_shape", "flat");
    own_case_node(self, "MatMul", "", "flat wo", "attended");
    own_case_node(self, "Add", "", "attended embedded", "joined");
}

static void write_transformer(struct own_case *self)
{
    own_case_weights(self, "two", "f: 2");
    own_case_weights(self, "epsilon", "f: 0.00001");
    own_case_weights(self, "half", "f: 0.5");
    own_case_weights(self, "never", "f: -1e9");
    own_case_weights(self, "zero", "i1: 0");
    own_case_weights(self, "one", "i1: 1");
    own_case_weights(self, "zero_scalar", "i: 0");
    own_case_weights(self, "one_scalar", "i: 1");
    own_case_weights(self, "heads_and_width", "i2: 2 4");
    own_case_weights(self, "width", "i1: 8");
    own_case_weights(self, "root_two", "f: 1.4142135");
    write_attention(self);
    /* GELU of a wider layer, by the error function. */
    own_case_node(self, "MatMul", "", "joined w1", "wide");
    own_case_node(self, "Div", "", "wide root_two", "wide_over");
    own_case_node(self, "Erf", "", "wide_over", "erf");
    own_case_node(self, "Add", "", "erf one_real", "erf_more");
    own_case_node(self, "Mul", "", "wide erf_more", "gelu_twice");
    own_case_node(self, "Mul", "", "gelu_twice half", "gelu");
    own_case_node(self, "MatMul", "", "gelu w2", "narrow");
    own_case_node(self, "Add", "", "narrow joined", "y");
    own_case_output(self, "y", ONNX_FLOAT);
}

/* Computes rows of x times a matrix. */
static void multiply(const double *x, int rows, int inner, const float *matrix, int columns,
                     double *y)
{
    for (int at = 0; at < rows * columns; at++) {
        y[at] = 0;
        for (int i = 0; i < inner; i++) {
            y[at] += x[at / columns * inner + i] * (double)matrix[i * columns + at % columns];
        }
    }
}

static void attend(const double *q, const double *k, const double *v, double *y)
{
    for (int at = 0; at < BATCH * STEPS * HEADS; at++) {
        const int head = at % HEADS;
        const int step = at / HEADS % STEPS;
        const int first = at / HEADS / STEPS * STEPS;
        double chances[STEPS] = {0};
        for (int other = 0; other <= step; other++) {
            for (int i = head * HEAD; i < (head + 1) * HEAD; i++) {
                chances[other] +=
                    q[(first + step) * WIDTH + i] * k[(first + other) * WIDTH + i] / 2;
            }
        }
        soften(chances, 1, step + 1);
        for (int i = head * HEAD; i < (head + 1) * HEAD; i++) {
            double sum = 0;
            for (int other = 0; other <= step; other++) {
                sum += chances[other] * v[(first + other) * WIDTH + i];
            }
            y[(first + step) * WIDTH + i] = sum;
        }
    }
}

static void layer_norm(const double *x, const float *scale, double *y)
{
    for (int row = 0; row < BATCH * STEPS; row++) {
        double mean = 0;
        double variance = 0;
        for (int i = 0; i < WIDTH; i++) {
            mean += x[row * WIDTH + i] / WIDTH;
        }
        for (int i = 0; i < WIDTH; i++) {
            variance += (x[row * WIDTH + i] - mean) * (x[row * WIDTH + i] - mean) / WIDTH;
        }
        for (int i = 0; i < WIDTH; i++) {
            y[row * WIDTH + i] =
                (x[row * WIDTH + i] - mean) / sqrt(variance + 1e-5) * (double)scale[i];
        }
    }
}

/* Computes by plain loops what the block makes of ids. */
static void transform(const int64_t *ids, float *const *w, double *y)
{
    enum { ROWS = BATCH * STEPS };
    static double x[ROWS * WIDTH], normal[ROWS * WIDTH], mixed[ROWS * WIDTH], joined[ROWS * WIDTH];
    static double heads[3][ROWS * WIDTH], wide[ROWS * WIDE];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (double)w[0][ids[i / WIDTH] * WIDTH + i % WIDTH];
    }
    layer_norm(x, w[1], normal);
    for (int i = 0; i < 3; i++) {
        multiply(normal, ROWS, WIDTH, w[2 + i], WIDTH, heads[i]);
    }
    attend(heads[0], heads[1], heads[2], mixed);
    multiply(mixed, ROWS, WIDTH, w[5], WIDTH, joined);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        joined[i] += x[i];
    }
    multiply(joined, ROWS, WIDTH, w[6], WIDE, wide);
    for (int i = 0; i < ROWS * WIDE; i++) {
        wide[i] *= 0.5 * (1 + erf(wide[i] / sqrt(2)));
    }
    multiply(wide, ROWS, WIDE, w[7], WIDTH, y);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        y[i] += joined[i];
    }
}

START_TEST(a_transformer_block_is_what_plain_loops_make)
{
    struct own_case self = {.writer.opset = 13};
    uint32_t seed = 11;
    const int64_t dims[] = {BATCH, STEPS};
    double y[BATCH * STEPS * WIDTH];
    input(&self, "ids", ONNX_INT64, "batch,steps", 2, dims);
    for (int i = 0; i < BATCH * STEPS; i++) {
        ((int64_t *)self.inputs[0].bytes)[i] = i * 7 % WORDS;
    }
    float *w[8] = {weights(&self, "words", "11,8", WORDS * WIDTH, &seed),
                   weights(&self, "norm", "8", WIDTH, &seed),
                   weights(&self, "wq", "8,8", WIDTH * WIDTH, &seed),
                   weights(&self, "wk", "8,8", WIDTH * WIDTH, &seed),
                   weights(&self, "wv", "8,8", WIDTH * WIDTH, &seed),
                   weights(&self, "wo", "8,8", WIDTH * WIDTH, &seed),
                   weights(&self, "w1", "8,16", WIDTH * WIDE, &seed),
                   weights(&self, "w2", "16,8", WIDE * WIDTH, &seed)};
    own_case_weights(&self, "one_real", "f: 1");
    write_transformer(&self);
    transform(self.inputs[0].bytes, w, y);
    ck_assert_msg(own_case_run(&self) == ONNX_ENGINE_OK, "%s", self.problem.text);
    ck_assert_int_eq(self.found[0].elements, BATCH * STEPS * WIDTH);
    assert_close(self.found[0].bytes, y, BATCH * STEPS * WIDTH, "the words");
    try_bounds(&self);
    assert_close(self.found[0].bytes, y, BATCH * STEPS * WIDTH, "the words with little memory");
    ((int64_t *)self.inputs[0].bytes)[3] = WORDS;
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_FAILED);
    ck_assert_ptr_nonnull(strstr(self.problem.text, "11 is no place among 11"));
    own_case_fini(&self);
    for (int i = 0; i < 8; i++) {
        free(w[i]);
    }
}
END_TEST

SUITE("own_blocks", NULL, NULL, TEST(a_residual_block_is_what_plain_loops_make),
      TEST(a_transformer_block_is_what_plain_loops_make))
