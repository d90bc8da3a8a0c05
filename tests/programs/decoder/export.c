#include "tests/programs/decoder/export.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { TEXT = 256, BOOL = 9, OPSET = 17 };

/* Texts of one node; each call of `named` takes the next, so that a node may name several. A text
 * lasts for 16 calls. */
static const char *named(const char *format, ...)
{
    static char texts[16][TEXT];
    static unsigned next;
    char *text = texts[next++ % 16];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, TEXT, format, arguments);
    va_end(arguments);
    return text;
}

static void put_ports(struct onnx_writer *writer)
{
    onnx_write_input(writer, "input_ids", WRITER_INT64, "batch_size,sequence_length");
    onnx_write_input(writer, "attention_mask", WRITER_INT64, "batch_size,total_sequence_length");
    onnx_write_input(writer, "position_ids", WRITER_INT64, "batch_size,sequence_length");
    onnx_write_output(writer, "logits", WRITER_FLOAT,
                      named("batch_size,sequence_length,%d", NETWORK_WORDS));
    for (int i = 0; i < NETWORK_LAYERS; i++) {
        const char *past =
            named("batch_size,%d,past_sequence_length,%d", NETWORK_HEADS, NETWORK_HEAD);
        const char *present =
            named("batch_size,%d,total_sequence_length,%d", NETWORK_HEADS, NETWORK_HEAD);
        onnx_write_input(writer, named("past_key_values.%d.key", i), WRITER_FLOAT, past);
        onnx_write_input(writer, named("past_key_values.%d.value", i), WRITER_FLOAT, past);
        onnx_write_output(writer, named("present.%d.key", i), WRITER_FLOAT, present);
        onnx_write_output(writer, named("present.%d.value", i), WRITER_FLOAT, present);
    }
}

static void put_constants(struct onnx_writer *writer)
{
    const int64_t split[] = {NETWORK_WIDTH, NETWORK_WIDTH, NETWORK_WIDTH};
    const int64_t heads[] = {0, 0, NETWORK_HEADS, NETWORK_HEAD};
    const int64_t flat[] = {0, 0, NETWORK_WIDTH};
    const int64_t middle[] = {1, 2};
    const int64_t one[] = {1};
    onnx_write_integers(writer, "split", 3, split);
    onnx_write_integers(writer, "heads", 4, heads);
    onnx_write_integers(writer, "flat", 3, flat);
    onnx_write_integers(writer, "middle", 2, middle);
    onnx_write_integers(writer, "one", 1, one);
    onnx_write_integer(writer, "first", 1);
    onnx_write_integer(writer, "step", 1);
    onnx_write_real(writer, "allowed", 0);
    onnx_write_real(writer, "barred", -1e9F);
    onnx_write_real(writer, "scale", 1 / sqrtf((float)NETWORK_HEAD));
    onnx_write_real(writer, "half", 0.5F);
    onnx_write_real(writer, "unit", 1);
    onnx_write_real(writer, "root", 0.70710678F);
}

static void put_vector(struct onnx_writer *writer, const char *name, const float *values,
                       size_t count)
{
    onnx_write_floats(writer, name, named("%zu", count), values);
}

static void put_matrix(struct onnx_writer *writer, const char *name, const float *values,
                       size_t rows, size_t columns)
{
    onnx_write_floats(writer, name, named("%zu,%zu", rows, columns), values);
}

/* A token sees the tokens up to itself, as far as the attention mask lets it. */
static void put_mask(struct onnx_writer *writer)
{
    onnx_write_node(writer, "Shape", "input_ids", "ids_shape");
    onnx_write_node(writer, "Shape", "attention_mask", "mask_shape");
    onnx_write_node(writer, "Gather", "ids_shape first", "count");
    onnx_write_node(writer, "Gather", "mask_shape first", "total");
    onnx_write_node(writer, "Sub", "total count", "past");
    onnx_write_integer(writer, "zero", 0);
    onnx_write_node(writer, "Range", "zero total step", "columns");
    onnx_write_node(writer, "Range", "past total step", "row_line");
    onnx_write_node(writer, "Unsqueeze", "row_line one", "rows");
    onnx_write_node(writer, "LessOrEqual", "columns rows", "is_before");
    onnx_begin_node(writer, "Cast", "attention_mask", "mask_bits");
    onnx_node_integer(writer, "to", BOOL);
    onnx_end_node(writer);
    onnx_write_node(writer, "Unsqueeze", "mask_bits middle", "is_open");
    onnx_write_node(writer, "And", "is_before is_open", "is_seen");
    onnx_write_node(writer, "Where", "is_seen allowed barred", "mask");
}

static void put_norm(struct onnx_writer *writer, const char *inputs, const char *output)
{
    onnx_begin_node(writer, "LayerNormalization", inputs, output);
    onnx_node_integer(writer, "axis", -1);
    onnx_end_node(writer);
}

static void put_turned(struct onnx_writer *writer, const char *input, const char *output,
                       const char *order)
{
    onnx_begin_node(writer, "Transpose", input, output);
    onnx_node_integers(writer, "perm", order);
    onnx_end_node(writer);
}

/* MatMul and Add. */
static void put_product(struct onnx_writer *writer, int layer, const char *input,
                        const char *weights, const char *output)
{
    onnx_write_node(writer, "MatMul", named("%s %s%d", input, weights, layer),
                    named("%s_product", output));
    onnx_write_node(writer, "Add", named("%s_product %s_bias%d", output, weights, layer), output);
}

/* Cuts q, k or v into heads. */
static void put_heads(struct onnx_writer *writer, const char *part, int layer)
{
    onnx_write_node(writer, "Reshape", named("%s%d heads", part, layer),
                    named("%s%d_rows", part, layer));
    put_turned(writer, named("%s%d_rows", part, layer), named("%s%d_heads", part, layer),
               "0,2,1,3");
}

static void put_past(struct onnx_writer *writer, const char *part, const char *name, int layer)
{
    onnx_begin_node(writer, "Concat",
                    named("past_key_values.%d.%s %s%d_heads", layer, name, part, layer),
                    named("present.%d.%s", layer, name));
    onnx_node_integer(writer, "axis", 2);
    onnx_end_node(writer);
}

static void put_attention(struct onnx_writer *writer, int layer, const char *in)
{
    put_norm(writer, named("%s norm_a%d shift_a%d", in, layer, layer), named("in_a%d", layer));
    put_product(writer, layer, named("in_a%d", layer), "w_qkv", named("qkv%d", layer));
    onnx_begin_node(writer, "Split", named("qkv%d split", layer),
                    named("q%d k%d v%d", layer, layer, layer));
    onnx_node_integer(writer, "axis", -1);
    onnx_end_node(writer);
    put_heads(writer, "q", layer);
    put_heads(writer, "k", layer);
    put_heads(writer, "v", layer);
    put_past(writer, "k", "key", layer);
    put_past(writer, "v", "value", layer);
    put_turned(writer, named("present.%d.key", layer), named("turned%d", layer), "0,1,3,2");
    onnx_write_node(writer, "MatMul", named("q%d_heads turned%d", layer, layer),
                    named("raw%d", layer));
    onnx_write_node(writer, "Mul", named("raw%d scale", layer), named("scores%d", layer));
    onnx_write_node(writer, "Add", named("scores%d mask", layer), named("masked%d", layer));
    onnx_begin_node(writer, "Softmax", named("masked%d", layer), named("weights%d", layer));
    onnx_node_integer(writer, "axis", -1);
    onnx_end_node(writer);
    onnx_write_node(writer, "MatMul", named("weights%d present.%d.value", layer, layer),
                    named("mixed%d_heads", layer));
    put_turned(writer, named("mixed%d_heads", layer), named("mixed%d_rows", layer), "0,2,1,3");
    onnx_write_node(writer, "Reshape", named("mixed%d_rows flat", layer), named("mixed%d", layer));
    put_product(writer, layer, named("mixed%d", layer), "w_joined", named("joined%d", layer));
    onnx_write_node(writer, "Add", named("%s joined%d", in, layer), named("middle%d", layer));
}

static void put_hidden(struct onnx_writer *writer, int layer, const char *out)
{
    put_norm(writer, named("middle%d norm_b%d shift_b%d", layer, layer, layer),
             named("in_b%d", layer));
    put_product(writer, layer, named("in_b%d", layer), "w_up", named("up%d", layer));
    onnx_write_node(writer, "Mul", named("up%d root", layer), named("small%d", layer));
    onnx_write_node(writer, "Erf", named("small%d", layer), named("erf%d", layer));
    onnx_write_node(writer, "Add", named("erf%d unit", layer), named("gate%d", layer));
    onnx_write_node(writer, "Mul", named("up%d gate%d", layer, layer), named("twice%d", layer));
    onnx_write_node(writer, "Mul", named("twice%d half", layer), named("active%d", layer));
    put_product(writer, layer, named("active%d", layer), "w_down", named("down%d", layer));
    onnx_write_node(writer, "Add", named("middle%d down%d", layer, layer), out);
}

static void put_layer_weights(struct onnx_writer *writer, const struct network_layer *layer, int i)
{
    put_vector(writer, named("norm_a%d", i), layer->norm1, NETWORK_WIDTH);
    put_vector(writer, named("shift_a%d", i), layer->shift1, NETWORK_WIDTH);
    put_vector(writer, named("norm_b%d", i), layer->norm2, NETWORK_WIDTH);
    put_vector(writer, named("shift_b%d", i), layer->shift2, NETWORK_WIDTH);
    put_matrix(writer, named("w_qkv%d", i), layer->qkv[0], NETWORK_WIDTH,
               (size_t)3 * NETWORK_WIDTH);
    put_vector(writer, named("w_qkv_bias%d", i), layer->qkv_bias, (size_t)3 * NETWORK_WIDTH);
    put_matrix(writer, named("w_joined%d", i), layer->joined[0], NETWORK_WIDTH, NETWORK_WIDTH);
    put_vector(writer, named("w_joined_bias%d", i), layer->joined_bias, NETWORK_WIDTH);
    put_matrix(writer, named("w_up%d", i), layer->up[0], NETWORK_WIDTH, NETWORK_HIDDEN);
    put_vector(writer, named("w_up_bias%d", i), layer->up_bias, NETWORK_HIDDEN);
    put_matrix(writer, named("w_down%d", i), layer->down[0], NETWORK_HIDDEN, NETWORK_WIDTH);
    put_vector(writer, named("w_down_bias%d", i), layer->down_bias, NETWORK_WIDTH);
}

struct onnx_bytes export_network(const struct network *network)
{
    struct onnx_writer writer = {.opset = OPSET};
    put_ports(&writer);
    put_constants(&writer);
    put_matrix(&writer, "words", network->words[0], NETWORK_WORDS, NETWORK_WIDTH);
    put_matrix(&writer, "places", network->places[0], NETWORK_CONTEXT, NETWORK_WIDTH);
    put_vector(&writer, "norm_last", network->norm, NETWORK_WIDTH);
    put_vector(&writer, "shift_last", network->shift, NETWORK_WIDTH);
    put_mask(&writer);
    onnx_write_node(&writer, "Gather", "words input_ids", "word");
    onnx_write_node(&writer, "Gather", "places position_ids", "place");
    onnx_write_node(&writer, "Add", "word place", "x0");
    for (int i = 0; i < NETWORK_LAYERS; i++) {
        char in[TEXT];
        char out[TEXT];
        (void)snprintf(in, sizeof in, "x%d", i);
        (void)snprintf(out, sizeof out, "x%d", i + 1);
        put_layer_weights(&writer, &network->layers[i], i);
        put_attention(&writer, i, in);
        put_hidden(&writer, i, out);
    }
    put_norm(&writer, named("x%d norm_last shift_last", NETWORK_LAYERS), "last");
    put_turned(&writer, "words", "words_turned", "1,0");
    onnx_write_node(&writer, "MatMul", "last words_turned", "logits");
    return onnx_write_end(&writer);
}
