#include "tests/support/onnx_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS_MOST = 16, TEXT_SIZE = 256, IR_VERSION = 8 };

void onnx_bytes_fini(struct onnx_bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct onnx_bytes){NULL, 0, 0};
}

static void put(struct onnx_bytes *to, const void *bytes, size_t size)
{
    if (to->capacity - to->size < size) {
        to->capacity = 2 * (to->capacity + size) + 64;
        to->at = realloc(to->at, to->capacity);
        if (to->at == NULL) {
            abort();
        }
    }
    if (size > 0) {
        memcpy(to->at + to->size, bytes, size);
    }
    to->size += size;
}

void onnx_put_varint(struct onnx_bytes *to, uint64_t value)
{
    uint8_t byte = 0;
    do {
        byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(to, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

void onnx_put_number(struct onnx_bytes *to, uint32_t field, uint64_t value)
{
    onnx_put_varint(to, (uint64_t)field << 3);
    onnx_put_varint(to, value);
}

void onnx_put_bytes(struct onnx_bytes *to, uint32_t field, const void *bytes, size_t size)
{
    onnx_put_varint(to, (uint64_t)field << 3 | 2);
    onnx_put_varint(to, size);
    put(to, bytes, size);
}

void onnx_put_text(struct onnx_bytes *to, uint32_t field, const char *text)
{
    onnx_put_bytes(to, field, text, strlen(text));
}

void onnx_put_message(struct onnx_bytes *to, uint32_t field, struct onnx_bytes *message)
{
    onnx_put_bytes(to, field, message->at, message->size);
    onnx_bytes_fini(message);
}

/* Calls a function for each word of a list. */
static void each_word(const char *list, char mark,
                      void (*take)(struct onnx_bytes *to, const char *word), struct onnx_bytes *to)
{
    while (list != NULL && *list != '\0') {
        char word[TEXT_SIZE];
        const char *end = strchr(list, mark);
        const size_t size = end != NULL ? (size_t)(end - list) : strlen(list);
        (void)snprintf(word, sizeof word, "%.*s", (int)size, list);
        take(to, word);
        list += size + (end != NULL);
    }
}

/* ---------------------------------------------------------------- inputs, outputs, weights */

static void take_dim(struct onnx_bytes *shape, const char *word)
{
    struct onnx_bytes dim = {NULL, 0, 0};
    if (word[0] >= '0' && word[0] <= '9') {
        onnx_put_number(&dim, 1, strtoull(word, NULL, 10));
    } else if (strcmp(word, "?") != 0) {
        onnx_put_text(&dim, 2, word);
    }
    onnx_put_message(shape, 1, &dim);
}

static void write_port(struct onnx_writer *writer, uint32_t field, const char *name, int type,
                       const char *dims)
{
    struct onnx_bytes port = {NULL, 0, 0};
    struct onnx_bytes kind = {NULL, 0, 0};
    struct onnx_bytes tensor = {NULL, 0, 0};
    struct onnx_bytes shape = {NULL, 0, 0};
    each_word(dims, ',', take_dim, &shape);
    onnx_put_number(&tensor, 1, (uint64_t)type);
    if (dims != NULL) {
        onnx_put_message(&tensor, 2, &shape);
    }
    onnx_put_message(&kind, 1, &tensor);
    onnx_put_text(&port, 1, name);
    onnx_put_message(&port, 2, &kind);
    onnx_put_message(&writer->graph, field, &port);
}

void onnx_write_input(struct onnx_writer *writer, const char *name, int type, const char *dims)
{
    write_port(writer, 11, name, type, dims);
}

void onnx_write_output(struct onnx_writer *writer, const char *name, int type, const char *dims)
{
    write_port(writer, 12, name, type, dims);
}

static void take_size(struct onnx_bytes *tensor, const char *word)
{
    onnx_put_number(tensor, 1, strtoull(word, NULL, 10));
}

static uint64_t elements_of(const char *dims)
{
    uint64_t elements = 1;
    char *end = NULL;
    for (const char *at = dims; *at != '\0'; at = *end == ',' ? end + 1 : end) {
        elements *= strtoull(at, &end, 10);
    }
    return elements;
}

static void put_pair(struct onnx_bytes *tensor, const char *key, const char *value)
{
    struct onnx_bytes pair = {NULL, 0, 0};
    onnx_put_text(&pair, 1, key);
    onnx_put_text(&pair, 2, value);
    onnx_put_message(tensor, 13, &pair);
}

void onnx_write_weights(struct onnx_writer *writer, const char *name, const char *dims)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    char text[TEXT_SIZE];
    const uint64_t bytes = 4 * elements_of(dims);
    each_word(dims, ',', take_size, &tensor);
    onnx_put_number(&tensor, 2, WRITER_FLOAT);
    onnx_put_text(&tensor, 8, name);
    put_pair(&tensor, "location", "weights.bin");
    (void)snprintf(text, sizeof text, "%" PRIu64, writer->offset);
    put_pair(&tensor, "offset", text);
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    put_pair(&tensor, "length", text);
    onnx_put_number(&tensor, 14, 1);
    writer->offset += bytes;
    onnx_put_message(&writer->graph, 5, &tensor);
}

void onnx_write_integers(struct onnx_writer *writer, const char *name, size_t count,
                         const int64_t *values)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    onnx_put_number(&tensor, 1, count);
    onnx_put_number(&tensor, 2, WRITER_INT64);
    onnx_put_text(&tensor, 8, name);
    onnx_put_bytes(&tensor, WRITER_RAW_DATA, values, count * sizeof *values);
    onnx_put_message(&writer->graph, 5, &tensor);
}

void onnx_write_integer(struct onnx_writer *writer, const char *name, int64_t value)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    onnx_put_number(&tensor, 2, WRITER_INT64);
    onnx_put_text(&tensor, 8, name);
    onnx_put_bytes(&tensor, WRITER_RAW_DATA, &value, sizeof value);
    onnx_put_message(&writer->graph, 5, &tensor);
}

void onnx_write_floats(struct onnx_writer *writer, const char *name, const char *dims,
                       const float *values)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    each_word(dims, ',', take_size, &tensor);
    onnx_put_number(&tensor, 2, WRITER_FLOAT);
    onnx_put_text(&tensor, 8, name);
    onnx_put_bytes(&tensor, WRITER_RAW_DATA, values, elements_of(dims) * sizeof *values);
    onnx_put_message(&writer->graph, 5, &tensor);
}

void onnx_write_real(struct onnx_writer *writer, const char *name, float value)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    onnx_put_number(&tensor, 2, WRITER_FLOAT);
    onnx_put_text(&tensor, 8, name);
    onnx_put_bytes(&tensor, WRITER_RAW_DATA, &value, sizeof value);
    onnx_put_message(&writer->graph, 5, &tensor);
}

/* ---------------------------------------------------------------- nodes */

static void take_input(struct onnx_bytes *node, const char *word)
{
    onnx_put_text(node, 1, strcmp(word, "-") == 0 ? "" : word);
}

static void take_output(struct onnx_bytes *node, const char *word)
{
    onnx_put_text(node, 2, strcmp(word, "-") == 0 ? "" : word);
}

void onnx_begin_node(struct onnx_writer *writer, const char *operator, const char * inputs,
                     const char *outputs)
{
    char name[TEXT_SIZE];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(outputs, " "), outputs);
    each_word(inputs, ' ', take_input, &writer->node);
    each_word(outputs, ' ', take_output, &writer->node);
    onnx_put_text(&writer->node, 3, name);
    onnx_put_text(&writer->node, 4, operator);
}

void onnx_node_integer(struct onnx_writer *writer, const char *name, int64_t value)
{
    struct onnx_bytes attribute = {NULL, 0, 0};
    onnx_put_text(&attribute, 1, name);
    onnx_put_number(&attribute, 3, (uint64_t)value);
    onnx_put_number(&attribute, 20, 2);
    onnx_put_message(&writer->node, 5, &attribute);
}

static void take_integer(struct onnx_bytes *attribute, const char *word)
{
    onnx_put_number(attribute, 8, (uint64_t)strtoll(word, NULL, 10));
}

void onnx_node_integers(struct onnx_writer *writer, const char *name, const char *values)
{
    struct onnx_bytes attribute = {NULL, 0, 0};
    onnx_put_text(&attribute, 1, name);
    each_word(values, ',', take_integer, &attribute);
    onnx_put_number(&attribute, 20, 7);
    onnx_put_message(&writer->node, 5, &attribute);
}

void onnx_node_text(struct onnx_writer *writer, const char *name, const char *value)
{
    struct onnx_bytes attribute = {NULL, 0, 0};
    onnx_put_text(&attribute, 1, name);
    onnx_put_text(&attribute, 4, value);
    onnx_put_number(&attribute, 20, 3);
    onnx_put_message(&writer->node, 5, &attribute);
}

void onnx_end_node(struct onnx_writer *writer)
{
    onnx_put_message(&writer->graph, 1, &writer->node);
}

void onnx_write_node(struct onnx_writer *writer, const char *operator, const char * inputs,
                     const char *outputs)
{
    onnx_begin_node(writer, operator, inputs, outputs);
    onnx_end_node(writer);
}

struct onnx_bytes onnx_write_end(struct onnx_writer *writer)
{
    struct onnx_bytes model = {NULL, 0, 0};
    struct onnx_bytes opset = {NULL, 0, 0};
    onnx_put_number(&model, 1, IR_VERSION);
    onnx_put_text(&model, 2, "bourse-tests");
    onnx_put_text(&writer->graph, 2, "graph");
    onnx_put_message(&model, 7, &writer->graph);
    onnx_put_text(&opset, 1, "");
    onnx_put_number(&opset, 2, (uint64_t)writer->opset);
    onnx_put_message(&model, 8, &opset);
    return model;
}
