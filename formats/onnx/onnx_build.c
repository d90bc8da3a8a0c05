#include "formats/onnx/onnx_build.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of fields in onnx.proto, and of kinds of attributes. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_OPERATOR = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_REAL = 2,
    ATTRIBUTE_INTEGER = 3,
    ATTRIBUTE_INTEGERS = 8,
    ATTRIBUTE_KIND = 20,
    KIND_REAL = 1,
    KIND_INTEGER = 2,
    KIND_INTEGERS = 7,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    PORT_NAME = 1,
    PORT_TYPE = 2,
    TYPE_TENSOR = 1,
    PORT_ELEMENT = 1,
    PORT_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
};
enum { NUMBER_BYTES = 10, NAME_SIZE = 32, BYTES_LEAST = 256 };

/* ---------------------------------------------------------------- bytes */

static void put(struct onnx_build *build, struct onnx_build_bytes *to, const void *bytes,
                size_t size)
{
    if (to->capacity - to->size < size) {
        const size_t capacity = 2 * (to->capacity + size) + BYTES_LEAST;
        uint8_t *moved = realloc(to->at, capacity);
        if (moved == NULL) {
            build->is_short = true;
            return;
        }
        to->at = moved;
        to->capacity = capacity;
    }
    if (size > 0) {
        memcpy(to->at + to->size, bytes, size);
        to->size += size;
    }
}

static void put_number(struct onnx_build *build, struct onnx_build_bytes *to, uint64_t value)
{
    uint8_t bytes[NUMBER_BYTES];
    put(build, to, bytes, onnx_wire_put_number(bytes, value));
}

static void put_field(struct onnx_build *build, struct onnx_build_bytes *to, uint32_t field,
                      uint64_t value)
{
    put_number(build, to, (uint64_t)field << 3 | ONNX_WIRE_NUMBER);
    put_number(build, to, value);
}

static void put_bytes(struct onnx_build *build, struct onnx_build_bytes *to, uint32_t field,
                      const void *bytes, size_t size)
{
    put_number(build, to, (uint64_t)field << 3 | ONNX_WIRE_BYTES);
    put_number(build, to, size);
    put(build, to, bytes, size);
}

static void put_text(struct onnx_build *build, struct onnx_build_bytes *to, uint32_t field,
                     const char *text)
{
    put_bytes(build, to, field, text, strlen(text));
}

/* Puts a message into another one, and empties it. */
static void put_message(struct onnx_build *build, struct onnx_build_bytes *to, uint32_t field,
                        struct onnx_build_bytes *message)
{
    put_bytes(build, to, field, message->at, message->size);
    free(message->at);
    *message = (struct onnx_build_bytes){.at = NULL};
}

static void put_ref(struct onnx_build *build, struct onnx_build_bytes *to, uint32_t field,
                    struct onnx_ref ref)
{
    char name[NAME_SIZE];
    if (ref.made == 0) {
        put_bytes(build, to, field, ref.name.at, ref.name.size);
        return;
    }
    (void)snprintf(name, sizeof name, ONNX_BUILD_PREFIX "%u", ref.made);
    put_text(build, to, field, name);
}

/* ---------------------------------------------------------------- values and nodes */

struct onnx_ref onnx_build_named(const char *name)
{
    return (struct onnx_ref){.name = {(const uint8_t *)name, strlen(name)}};
}

bool onnx_build_has(struct onnx_ref ref)
{
    return ref.made > 0 || ref.name.size > 0;
}

static struct onnx_ref make_ref(struct onnx_build *build)
{
    return (struct onnx_ref){.made = ++build->made};
}

void onnx_build_begin_named(struct onnx_build *build, const char *operator, size_t count,
                            const struct onnx_ref *inputs, struct onnx_ref output)
{
    assert(build->node.size == 0);
    for (size_t i = 0; i < count; i++) {
        put_ref(build, &build->node, NODE_INPUT, inputs[i]);
    }
    put_ref(build, &build->node, NODE_OUTPUT, output);
    put_text(build, &build->node, NODE_OPERATOR, operator);
}

struct onnx_ref onnx_build_begin(struct onnx_build *build, const char *operator, size_t count,
                                 const struct onnx_ref *inputs)
{
    const struct onnx_ref output = make_ref(build);
    onnx_build_begin_named(build, operator, count, inputs, output);
    return output;
}

void onnx_build_integer(struct onnx_build *build, const char *name, int64_t value)
{
    struct onnx_build_bytes attribute = {.at = NULL};
    put_text(build, &attribute, ATTRIBUTE_NAME, name);
    put_field(build, &attribute, ATTRIBUTE_INTEGER, (uint64_t)value);
    put_field(build, &attribute, ATTRIBUTE_KIND, KIND_INTEGER);
    put_message(build, &build->node, NODE_ATTRIBUTE, &attribute);
}

void onnx_build_real(struct onnx_build *build, const char *name, float value)
{
    struct onnx_build_bytes attribute = {.at = NULL};
    uint32_t bits = 0;
    uint8_t bytes[sizeof bits];
    memcpy(&bits, &value, sizeof bits);
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(bits >> (8 * i));
    }
    put_text(build, &attribute, ATTRIBUTE_NAME, name);
    put_number(build, &attribute, (uint64_t)ATTRIBUTE_REAL << 3 | ONNX_WIRE_32);
    put(build, &attribute, bytes, sizeof bytes);
    put_field(build, &attribute, ATTRIBUTE_KIND, KIND_REAL);
    put_message(build, &build->node, NODE_ATTRIBUTE, &attribute);
}

void onnx_build_integers(struct onnx_build *build, const char *name, size_t count,
                         const int64_t *values)
{
    struct onnx_build_bytes attribute = {.at = NULL};
    put_text(build, &attribute, ATTRIBUTE_NAME, name);
    for (size_t i = 0; i < count; i++) {
        put_field(build, &attribute, ATTRIBUTE_INTEGERS, (uint64_t)values[i]);
    }
    put_field(build, &attribute, ATTRIBUTE_KIND, KIND_INTEGERS);
    put_message(build, &build->node, NODE_ATTRIBUTE, &attribute);
}

void onnx_build_end_node(struct onnx_build *build)
{
    put_message(build, &build->graph, GRAPH_NODE, &build->node);
}

struct onnx_ref onnx_build_node(struct onnx_build *build, const char *operator, size_t count,
                                const struct onnx_ref *inputs)
{
    const struct onnx_ref output = onnx_build_begin(build, operator, count, inputs);
    onnx_build_end_node(build);
    return output;
}

/* ---------------------------------------------------------------- constants and ports */

/* Adds a tensor whose elements lie in memory as they lie in a file: low byte first. */
static void add_tensor(struct onnx_build *build, struct onnx_ref ref, enum onnx_type type,
                       uint32_t rank, const int64_t *dims, const void *values, size_t size)
{
    struct onnx_build_bytes tensor = {.at = NULL};
    for (uint32_t i = 0; i < rank; i++) {
        put_field(build, &tensor, TENSOR_DIMS, (uint64_t)dims[i]);
    }
    put_field(build, &tensor, TENSOR_TYPE, type);
    put_ref(build, &tensor, TENSOR_NAME, ref);
    put_bytes(build, &tensor, TENSOR_RAW, values, size);
    put_message(build, &build->graph, GRAPH_INITIALIZER, &tensor);
}

struct onnx_ref onnx_build_scalar(struct onnx_build *build, float value)
{
    const struct onnx_ref ref = make_ref(build);
    add_tensor(build, ref, ONNX_FLOAT, 0, NULL, &value, sizeof value);
    return ref;
}

struct onnx_ref onnx_build_double(struct onnx_build *build, double value)
{
    const struct onnx_ref ref = make_ref(build);
    add_tensor(build, ref, ONNX_DOUBLE, 0, NULL, &value, sizeof value);
    return ref;
}

struct onnx_ref onnx_build_list(struct onnx_build *build, size_t count, const int64_t *values)
{
    const struct onnx_ref ref = make_ref(build);
    const int64_t dims[] = {(int64_t)count};
    add_tensor(build, ref, ONNX_INT64, 1, dims, values, count * sizeof *values);
    return ref;
}

void onnx_build_weights(struct onnx_build *build, struct onnx_span name, uint32_t rank,
                        const int64_t *dims, const float *values)
{
    size_t size = sizeof *values;
    for (uint32_t i = 0; i < rank; i++) {
        size *= (size_t)dims[i];
    }
    add_tensor(build, (struct onnx_ref){.name = name}, ONNX_FLOAT, rank, dims, values, size);
}

void onnx_build_port(struct onnx_build *build, bool is_input, struct onnx_ref ref,
                     enum onnx_type type, uint32_t rank, const int64_t *dims)
{
    struct onnx_build_bytes shape = {.at = NULL};
    struct onnx_build_bytes tensor = {.at = NULL};
    struct onnx_build_bytes kind = {.at = NULL};
    struct onnx_build_bytes port = {.at = NULL};
    for (uint32_t i = 0; i < rank; i++) {
        struct onnx_build_bytes dim = {.at = NULL};
        if (dims[i] >= 0) {
            put_field(build, &dim, DIM_VALUE, (uint64_t)dims[i]);
        }
        put_message(build, &shape, SHAPE_DIM, &dim);
    }
    put_field(build, &tensor, PORT_ELEMENT, type);
    put_message(build, &tensor, PORT_SHAPE, &shape);
    put_message(build, &kind, TYPE_TENSOR, &tensor);
    put_ref(build, &port, PORT_NAME, ref);
    put_message(build, &port, PORT_TYPE, &kind);
    put_message(build, &build->graph, is_input ? GRAPH_INPUT : GRAPH_OUTPUT, &port);
}

void onnx_build_field(struct onnx_build *build, struct onnx_span field)
{
    put(build, &build->graph, field.at, field.size);
}

void onnx_build_model_field(struct onnx_build *build, struct onnx_span field)
{
    put(build, &build->model, field.at, field.size);
}

/* ---------------------------------------------------------------- the model */

/* A model that is no copy of another one gets its versions and names. */
static void put_versions(struct onnx_build *build)
{
    struct onnx_build_bytes opset = {.at = NULL};
    put_text(build, &build->graph, GRAPH_NAME, "bourse");
    put_field(build, &build->model, MODEL_IR, ONNX_IR_NEWEST);
    put_text(build, &build->model, MODEL_PRODUCER, "bourse");
    put_field(build, &opset, OPSET_VERSION, (uint64_t)build->opset);
    put_message(build, &build->model, MODEL_OPSET, &opset);
}

bool onnx_build_end(struct onnx_build *build, uint8_t **ret_bytes, size_t *ret_size)
{
    assert(build->node.size == 0);
    if (build->model.size == 0) {
        put_versions(build);
    }
    put_message(build, &build->model, MODEL_GRAPH, &build->graph);
    const bool good = !build->is_short && build->model.size <= (size_t)ONNX_FILE_BYTES;
    if (good) {
        *ret_bytes = build->model.at;
        *ret_size = build->model.size;
        build->model.at = NULL;
    }
    onnx_build_fini(build);
    return good;
}

void onnx_build_fini(struct onnx_build *build)
{
    free(build->graph.at);
    free(build->node.at);
    free(build->model.at);
    *build = (struct onnx_build){.opset = build->opset};
}
