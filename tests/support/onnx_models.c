#include "tests/support/onnx_models.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 192 };

const char *const onnx_model_names[ONNX_MODELS] = {"resnet50", "mobilenet", "bert", "gpt2"};

#define FORMAT(text, ...) format_text(text, sizeof(text), __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static void format_text(char *text, size_t capacity,
                                                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, capacity, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= capacity) {
        abort(); /* a name is longer than its room */
    }
}

/* ---------------------------------------------------------------- images */

struct conv {
    int in, out, kernel, stride, groups;
    bool is_linear; /* no Relu follows */
};

/* A convolution with its batch normalisation, and a Relu. The output is named after the layer. */
static void write_conv(struct onnx_writer *writer, const char *from, const char *layer,
                       const struct conv *conv)
{
    static const char *const parts[] = {"scale", "shift", "mean", "var"};
    char name[TEXT];
    char dims[TEXT];
    char inputs[TEXT];
    FORMAT(name, "%s.w", layer);
    FORMAT(dims, "%d,%d,%d,%d", conv->out, conv->in / conv->groups, conv->kernel, conv->kernel);
    onnx_write_weights(writer, name, dims);
    FORMAT(inputs, "%s %s.w", from, layer);
    FORMAT(name, "%s.conv", layer);
    onnx_begin_node(writer, "Conv", inputs, name);
    FORMAT(dims, "%d,%d", conv->kernel, conv->kernel);
    onnx_node_integers(writer, "kernel_shape", dims);
    FORMAT(dims, "%d,%d", conv->stride, conv->stride);
    onnx_node_integers(writer, "strides", dims);
    const int pad = conv->kernel / 2;
    FORMAT(dims, "%d,%d,%d,%d", pad, pad, pad, pad);
    onnx_node_integers(writer, "pads", dims);
    onnx_node_integer(writer, "group", conv->groups);
    onnx_end_node(writer);
    for (size_t i = 0; i < 4; i++) {
        FORMAT(name, "%s.%s", layer, parts[i]);
        FORMAT(dims, "%d", conv->out);
        onnx_write_weights(writer, name, dims);
    }
    FORMAT(inputs, "%.30s.conv %.30s.scale %.30s.shift %.30s.mean %.30s.var", layer, layer, layer,
           layer, layer);
    FORMAT(name, conv->is_linear ? "%s" : "%s.norm", layer);
    onnx_write_node(writer, "BatchNormalization", inputs, name);
    if (!conv->is_linear) {
        onnx_write_node(writer, "Relu", name, layer);
    }
}

static void write_classes(struct onnx_writer *writer, const char *from, int channels)
{
    char dims[TEXT];
    onnx_write_node(writer, "GlobalAveragePool", from, "pooled");
    onnx_write_node(writer, "Flatten", "pooled", "flat");
    FORMAT(dims, "1000,%d", channels);
    onnx_write_weights(writer, "fc.w", dims);
    onnx_write_weights(writer, "fc.b", "1000");
    onnx_begin_node(writer, "Gemm", "flat fc.w fc.b", "logits");
    onnx_node_integer(writer, "transB", 1);
    onnx_end_node(writer);
    onnx_write_output(writer, "logits", WRITER_FLOAT, "batch,1000");
}

/* One bottleneck of a ResNet [He 2015]. */
static void write_bottleneck(struct onnx_writer *writer, const char *from, const char *layer,
                             int in, int middle, int stride, bool has_shortcut)
{
    char a[TEXT];
    char b[TEXT];
    char c[TEXT];
    char inputs[2 * TEXT];
    FORMAT(a, "%s.a", layer);
    FORMAT(b, "%s.b", layer);
    FORMAT(c, "%s.c", layer);
    write_conv(writer, from, a, &(struct conv){in, middle, 1, 1, 1, false});
    write_conv(writer, a, b, &(struct conv){middle, middle, 3, stride, 1, false});
    write_conv(writer, b, c, &(struct conv){middle, 4 * middle, 1, 1, 1, true});
    FORMAT(inputs, "%s %s", c, from);
    if (has_shortcut) {
        FORMAT(a, "%s.s", layer);
        write_conv(writer, from, a, &(struct conv){in, 4 * middle, 1, stride, 1, true});
        FORMAT(inputs, "%s %s", c, a);
    }
    FORMAT(b, "%s.sum", layer);
    onnx_write_node(writer, "Add", inputs, b);
    onnx_write_node(writer, "Relu", b, layer);
}

static void write_resnet(struct onnx_writer *writer)
{
    static const int depths[] = {3, 4, 6, 3};
    char from[TEXT] = "pool";
    int in = 64;
    writer->opset = 13;
    onnx_write_input(writer, "data", WRITER_FLOAT, "batch,3,224,224");
    write_conv(writer, "data", "stem", &(struct conv){3, 64, 7, 2, 1, false});
    onnx_begin_node(writer, "MaxPool", "stem", "pool");
    onnx_node_integers(writer, "kernel_shape", "3,3");
    onnx_node_integers(writer, "strides", "2,2");
    onnx_node_integers(writer, "pads", "1,1,1,1");
    onnx_end_node(writer);
    for (int stage = 0; stage < 4; stage++) {
        const int middle = 64 << stage;
        for (int block = 0; block < depths[stage]; block++) {
            char layer[TEXT];
            FORMAT(layer, "s%d.%d", stage + 1, block + 1);
            write_bottleneck(writer, from, layer, in, middle, block == 0 && stage > 0 ? 2 : 1,
                             block == 0);
            memcpy(from, layer, sizeof from);
            in = 4 * middle;
        }
    }
    write_classes(writer, from, in);
}

/* A MobileNet of the first version [Howard 2017]. */
static void write_mobilenet(struct onnx_writer *writer)
{
    static const int outs[] = {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024};
    static const int strides[] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    char from[TEXT] = "stem";
    int in = 32;
    writer->opset = 12;
    onnx_write_input(writer, "data", WRITER_FLOAT, "batch,3,224,224");
    write_conv(writer, "data", "stem", &(struct conv){3, 32, 3, 2, 1, false});
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++) {
        char depthwise[TEXT];
        char pointwise[TEXT];
        FORMAT(depthwise, "d%zu", i + 1);
        FORMAT(pointwise, "p%zu", i + 1);
        write_conv(writer, from, depthwise, &(struct conv){in, in, 3, strides[i], in, false});
        write_conv(writer, depthwise, pointwise, &(struct conv){in, outs[i], 1, 1, 1, false});
        memcpy(from, pointwise, sizeof from);
        in = outs[i];
    }
    write_classes(writer, from, in);
}

/* ---------------------------------------------------------------- text */

enum { HIDDEN = 768, HEADS = 12, SIZE = 64, LAYERS = 12 };

struct text_model {
    struct onnx_writer *writer;
    char layer[32];
};

/* Returns a name of the layer, in a ring of names. */
static const char *named(const struct text_model *model, const char *word)
{
    static char names[64][96];
    static size_t at;
    at = (at + 1) % 64;
    FORMAT(names[at], "%s.%s", model->layer, word);
    return names[at];
}

static void join(struct text_model *model, const char *operator, const char * a, const char *b,
                 const char *to)
{
    char inputs[TEXT + 64];
    FORMAT(inputs, "%s %s", a, b);
    onnx_write_node(model->writer, operator, inputs, to);
}

/* A product with weights, and a bias. */
static void write_linear(struct text_model *model, const char *from, const char *word, int in,
                         int out, const char *to)
{
    char weights[96];
    char bias[96];
    char product[96];
    char dims[64];
    FORMAT(weights, "%s.%s.w", model->layer, word);
    FORMAT(bias, "%s.%s.b", model->layer, word);
    FORMAT(product, "%s.%s.x", model->layer, word);
    FORMAT(dims, "%d,%d", in, out);
    onnx_write_weights(model->writer, weights, dims);
    FORMAT(dims, "%d", out);
    onnx_write_weights(model->writer, bias, dims);
    join(model, "MatMul", from, weights, product);
    join(model, "Add", product, bias, to);
}

/* A normalisation of rows, as exporters write it before opset 17. */
static void write_norm(struct text_model *model, const char *from, const char *word, const char *to)
{
    struct onnx_writer *writer = model->writer;
    char names[8][96];
    static const char *const parts[] = {"mean", "less", "square", "var",
                                        "safe", "root", "unit",   "scaled"};
    char inputs[TEXT];
    for (size_t i = 0; i < 8; i++) {
        FORMAT(names[i], "%s.%s.%s", model->layer, word, parts[i]);
    }
    onnx_begin_node(writer, "ReduceMean", from, names[0]);
    onnx_node_integers(writer, "axes", "-1");
    onnx_end_node(writer);
    join(model, "Sub", from, names[0], names[1]);
    join(model, "Pow", names[1], "two", names[2]);
    onnx_begin_node(writer, "ReduceMean", names[2], names[3]);
    onnx_node_integers(writer, "axes", "-1");
    onnx_end_node(writer);
    join(model, "Add", names[3], "epsilon", names[4]);
    onnx_write_node(writer, "Sqrt", names[4], names[5]);
    join(model, "Div", names[1], names[5], names[6]);
    FORMAT(inputs, "%s.%s.g", model->layer, word);
    onnx_write_weights(writer, inputs, "768");
    join(model, "Mul", names[6], inputs, names[7]);
    FORMAT(inputs, "%s.%s.h", model->layer, word);
    onnx_write_weights(writer, inputs, "768");
    join(model, "Add", names[7], inputs, to);
}

/* Splits the hidden state into heads: reshaped by a computed shape, and transposed. */
static void write_heads(struct text_model *model, const char *from, const char *order,
                        const char *to)
{
    struct onnx_writer *writer = model->writer;
    char shape[96];
    char part[96];
    char dims[96];
    char parts[TEXT];
    FORMAT(shape, "%s.shape", to);
    FORMAT(dims, "%s.dims", to);
    FORMAT(part, "%s.part", to);
    onnx_write_node(writer, "Shape", from, shape);
    FORMAT(parts, "%s zero two_list", shape);
    onnx_write_node(writer, "Slice", parts, part);
    FORMAT(parts, "%s heads", part);
    onnx_begin_node(writer, "Concat", parts, dims);
    onnx_node_integer(writer, "axis", 0);
    onnx_end_node(writer);
    FORMAT(shape, "%s.split", to);
    join(model, "Reshape", from, dims, shape);
    onnx_begin_node(writer, "Transpose", shape, to);
    onnx_node_integers(writer, "perm", order);
    onnx_end_node(writer);
}

static void write_gelu(struct text_model *model, const char *from, const char *to)
{
    join(model, "Div", from, "root_two", named(model, "ff.div"));
    onnx_write_node(model->writer, "Erf", named(model, "ff.div"), named(model, "ff.erf"));
    join(model, "Add", named(model, "ff.erf"), "one", named(model, "ff.one"));
    join(model, "Mul", from, named(model, "ff.one"), named(model, "ff.mul"));
    join(model, "Mul", named(model, "ff.mul"), "half", to);
}

static void write_attention(struct text_model *model, const char *from, const char *to)
{
    struct onnx_writer *writer = model->writer;
    write_linear(model, from, "query", HIDDEN, HIDDEN, named(model, "q"));
    write_linear(model, from, "key", HIDDEN, HIDDEN, named(model, "k"));
    write_linear(model, from, "value", HIDDEN, HIDDEN, named(model, "v"));
    write_heads(model, named(model, "q"), "0,2,1,3", named(model, "qh"));
    write_heads(model, named(model, "k"), "0,2,3,1", named(model, "kh"));
    write_heads(model, named(model, "v"), "0,2,1,3", named(model, "vh"));
    join(model, "MatMul", named(model, "qh"), named(model, "kh"), named(model, "pairs"));
    join(model, "Div", named(model, "pairs"), "root_size", named(model, "scores"));
    onnx_begin_node(writer, "Softmax", named(model, "scores"), named(model, "odds"));
    onnx_node_integer(writer, "axis", -1);
    onnx_end_node(writer);
    join(model, "MatMul", named(model, "odds"), named(model, "vh"), named(model, "mixed"));
    onnx_begin_node(writer, "Transpose", named(model, "mixed"), named(model, "rows"));
    onnx_node_integers(writer, "perm", "0,2,1,3");
    onnx_end_node(writer);
    join(model, "Reshape", named(model, "rows"), "joined", named(model, "whole"));
    write_linear(model, named(model, "whole"), "out", HIDDEN, HIDDEN, to);
}

static void write_forward(struct text_model *model, const char *from, const char *to)
{
    write_linear(model, from, "up", HIDDEN, 4 * HIDDEN, named(model, "wide"));
    write_gelu(model, named(model, "wide"), named(model, "bent"));
    write_linear(model, named(model, "bent"), "down", 4 * HIDDEN, HIDDEN, to);
}

static void write_constants(struct onnx_writer *writer)
{
    static const int64_t heads[] = {HEADS, SIZE};
    static const int64_t joined[] = {0, 0, HIDDEN};
    static const int64_t zero[] = {0};
    static const int64_t two[] = {2};
    onnx_write_integers(writer, "heads", 2, heads);
    onnx_write_integers(writer, "joined", 3, joined);
    onnx_write_integers(writer, "zero", 1, zero);
    onnx_write_integers(writer, "two_list", 1, two);
    onnx_write_real(writer, "two", 2.0F);
    onnx_write_real(writer, "one", 1.0F);
    onnx_write_real(writer, "half", 0.5F);
    onnx_write_real(writer, "epsilon", 1e-5F);
    onnx_write_real(writer, "root_two", 1.41421356F);
    onnx_write_real(writer, "root_size", 8.0F);
}

static void write_embedding(struct onnx_writer *writer, const char *words, const char *to)
{
    onnx_write_input(writer, "ids", WRITER_INT64, "batch,sequence");
    onnx_write_input(writer, "places", WRITER_INT64, "batch,sequence");
    onnx_write_weights(writer, "words.w", words);
    onnx_write_weights(writer, "places.w", "1024,768");
    onnx_write_node(writer, "Gather", "words.w ids", "words");
    onnx_write_node(writer, "Gather", "places.w places", "places.x");
    onnx_write_node(writer, "Add", "words places.x", to);
}

/* Normalises after each half of a layer [Devlin 2018]. */
static void write_bert(struct onnx_writer *writer)
{
    struct text_model model = {.writer = writer, .layer = "embed"};
    char from[TEXT] = "state";
    writer->opset = 13;
    write_constants(writer);
    write_embedding(writer, "30522,768", "state.x");
    write_norm(&model, "state.x", "norm", "state");
    for (int i = 0; i < LAYERS; i++) {
        char to[TEXT];
        FORMAT(model.layer, "l%d", i + 1);
        FORMAT(to, "l%d", i + 1);
        write_attention(&model, from, named(&model, "att"));
        join(&model, "Add", named(&model, "att"), from, named(&model, "sum1"));
        write_norm(&model, named(&model, "sum1"), "n1", named(&model, "mid"));
        write_forward(&model, named(&model, "mid"), named(&model, "ff"));
        join(&model, "Add", named(&model, "ff"), named(&model, "mid"), named(&model, "sum2"));
        write_norm(&model, named(&model, "sum2"), "n2", to);
        memcpy(from, to, sizeof from);
    }
    onnx_write_output(writer, from, WRITER_FLOAT, "batch,sequence,768");
}

/* Normalises before each half of a layer, and rates all words at the end [Radford 2019]. */
static void write_gpt(struct onnx_writer *writer)
{
    struct text_model model = {.writer = writer, .layer = "embed"};
    char from[TEXT] = "state";
    writer->opset = 13;
    write_constants(writer);
    write_embedding(writer, "50257,768", "state");
    for (int i = 0; i < LAYERS; i++) {
        char to[TEXT];
        FORMAT(model.layer, "h%d", i + 1);
        FORMAT(to, "h%d", i + 1);
        write_norm(&model, from, "n1", named(&model, "in"));
        write_attention(&model, named(&model, "in"), named(&model, "att"));
        join(&model, "Add", named(&model, "att"), from, named(&model, "mid"));
        write_norm(&model, named(&model, "mid"), "n2", named(&model, "ready"));
        write_forward(&model, named(&model, "ready"), named(&model, "ff"));
        join(&model, "Add", named(&model, "ff"), named(&model, "mid"), to);
        memcpy(from, to, sizeof from);
    }
    FORMAT(model.layer, "head");
    write_norm(&model, from, "norm", "last");
    onnx_write_weights(writer, "head.w", "768,50257");
    onnx_write_node(writer, "MatMul", "last head.w", "logits");
    onnx_write_output(writer, "logits", WRITER_FLOAT, "batch,sequence,50257");
}

struct onnx_bytes onnx_model_write(size_t index)
{
    static void (*const writers[ONNX_MODELS])(struct onnx_writer *) = {
        write_resnet, write_mobilenet, write_bert, write_gpt};
    struct onnx_writer writer = {.opset = 13};
    writers[index](&writer);
    return onnx_write_end(&writer);
}
