/* This file reads ModelProto and its graph. Everything is counted first, against the caps, and then
 * read into arrays of that size. */
#include "formats/onnx/onnx_internal.h"

#include <stdlib.h>

/* Numbers of fields in onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE = 15,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OPERATOR = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    PORT_NAME = 1,
    PORT_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_NAME = 2,
};

enum { NODE_ATTRIBUTES = 64 /* of one node */ };

struct opset {
    struct onnx_span domain;
    int64_t version;
};

struct whole { /* of the model, while its graph is read */
    struct onnx_span graph;
    bool has_graph;
    struct opset opsets[ONNX_OPSETS_MOST];
    size_t opset_count;
    struct onnx_span *input_names, *output_names; /* of uses and makes */
};

static bool is_own_domain(struct onnx_span domain)
{
    return domain.size == 0 || onnx_span_is(domain, "ai.onnx");
}

/* ---------------------------------------------------------------- inputs and outputs */

static bool read_dim(struct onnx_reading *reading, struct onnx_span message, struct onnx_port *port)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    struct onnx_dim dim = {.value = -1};
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == DIM_NAME && field.kind == ONNX_WIRE_BYTES) {
            dim.name = field.bytes;
        }
        if (field.number == DIM_VALUE && field.kind == ONNX_WIRE_NUMBER) {
            dim.value = (int64_t)field.value;
            if (dim.value < 0 || dim.value > ONNX_DIM_MOST) {
                return onnx_fault(reading, ONNX_OVERFLOW,
                                  "\"%s\" has a dim of %lld; a dim is 0 to 2^40",
                                  onnx_label(port->name).text, (long long)dim.value);
            }
        }
    }
    if (wire.is_bad) {
        return onnx_fault(reading, ONNX_MALFORMED, "a dim of \"%s\" is cut short",
                          onnx_label(port->name).text);
    }
    if (port->rank == ONNX_RANK_MOST) {
        return onnx_fault(reading, ONNX_TOO_LARGE, "\"%s\" has more than %d dims",
                          onnx_label(port->name).text, ONNX_RANK_MOST);
    }
    if (dim.value < 0 && dim.name.size > 0 &&
        !onnx_name_is_good(reading, dim.name, "a dim of an input or output")) {
        return false;
    }
    port->dims[port->rank++] = dim;
    return true;
}

static bool read_shape(struct onnx_reading *reading, struct onnx_span message,
                       struct onnx_port *port)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    port->has_shape = true;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == SHAPE_DIM && !read_dim(reading, field.bytes, port)) {
            return false;
        }
    }
    return !wire.is_bad;
}

static bool read_tensor_type(struct onnx_reading *reading, struct onnx_span message,
                             struct onnx_port *port)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    port->is_tensor = true;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == TENSOR_TYPE && field.value < ONNX_TYPES) {
            port->type = (enum onnx_type)field.value;
        }
        if (field.number == TENSOR_SHAPE && !read_shape(reading, field.bytes, port)) {
            return false;
        }
    }
    return !wire.is_bad;
}

static bool read_type(struct onnx_reading *reading, struct onnx_span message,
                      struct onnx_port *port)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == TYPE_TENSOR && !read_tensor_type(reading, field.bytes, port)) {
            return false;
        }
    }
    return !wire.is_bad;
}

bool onnx_port_read(struct onnx_reading *reading, struct onnx_span message, const char *what,
                    struct onnx_port *ret_port)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    struct onnx_span type = {NULL, 0};
    *ret_port = (struct onnx_port){.value = ONNX_NONE};
    while (onnx_wire_next(&wire, &field)) {
        if (field.kind == ONNX_WIRE_BYTES) {
            ret_port->name = field.number == PORT_NAME ? field.bytes : ret_port->name;
            type = field.number == PORT_TYPE ? field.bytes : type;
        }
    }
    if (!wire.is_bad && !onnx_name_is_good(reading, ret_port->name, what)) {
        return false;
    }
    if (wire.is_bad || !read_type(reading, type, ret_port)) {
        return onnx_fault(reading, ONNX_MALFORMED, "%s \"%s\" is cut short", what,
                          onnx_label(ret_port->name).text);
    }
    return true;
}

/* ---------------------------------------------------------------- nodes */

/* Returns the version of the opset of a domain, or 0 when the model imports none. */
static int64_t opset_of(const struct whole *whole, struct onnx_span domain)
{
    for (size_t i = 0; i < whole->opset_count; i++) {
        const struct onnx_span known = whole->opsets[i].domain;
        if (onnx_span_equals(known, domain) || (is_own_domain(known) && is_own_domain(domain))) {
            return whole->opsets[i].version;
        }
    }
    return 0;
}

/* Reads what a node is called, so that the rest of it has a name in messages. */
static bool read_head(struct onnx_reading *reading, struct onnx_span message,
                      struct onnx_node *node)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    while (onnx_wire_next(&wire, &field)) {
        if (field.kind == ONNX_WIRE_BYTES) {
            node->name = field.number == NODE_NAME ? field.bytes : node->name;
            node->operator= field.number == NODE_OPERATOR ? field.bytes : node->operator;
            node->domain = field.number == NODE_DOMAIN ? field.bytes : node->domain;
        }
    }
    return onnx_name_is_good(reading, node->operator, "the operator of a node") &&
           (node->name.size == 0 || onnx_name_is_good(reading, node->name, "a node"));
}

static bool attributes_differ(struct onnx_reading *reading, const struct onnx_node *node)
{
    const struct onnx_attribute *list = &reading->model->attributes[node->first_attribute];
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (onnx_span_equals(list[i].name, list[k].name)) {
                return onnx_fault(reading, ONNX_TWICE, "node \"%s\" (%s) has \"%s\" twice",
                                  onnx_label(node->name).text, onnx_label(node->operator).text,
                                  onnx_label(list[i].name).text);
            }
        }
    }
    return true;
}

static bool read_node(struct onnx_reading *reading, struct whole *whole, struct onnx_span message)
{
    struct onnx_model *model = reading->model;
    struct onnx_node *node = &model->nodes[model->node_count++];
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    *node = (struct onnx_node){.first_input = model->use_count,
                               .first_output = model->make_count,
                               .first_attribute = model->attribute_count};
    if (!read_head(reading, message, node)) {
        return false;
    }
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == NODE_INPUT) {
            whole->input_names[model->use_count++] = field.bytes;
        } else if (field.number == NODE_OUTPUT) {
            whole->output_names[model->make_count++] = field.bytes;
        } else if (field.number == NODE_ATTRIBUTE &&
                   !onnx_attribute_read(reading, field.bytes, node,
                                        &model->attributes[model->attribute_count++])) {
            return false;
        }
    }
    node->input_count = model->use_count - node->first_input;
    node->output_count = model->make_count - node->first_output;
    node->attribute_count = model->attribute_count - node->first_attribute;
    node->opset = opset_of(whole, node->domain);
    if (node->attribute_count > NODE_ATTRIBUTES) {
        return onnx_fault(reading, ONNX_TOO_LARGE, "node \"%s\" has more than %d attributes",
                          onnx_label(node->name).text, NODE_ATTRIBUTES);
    }
    return attributes_differ(reading, node);
}

/* ---------------------------------------------------------------- the graph */

struct counts {
    size_t nodes, initializers, inputs, outputs, uses, makes, attributes;
};

static bool count_node(struct onnx_reading *reading, struct onnx_span message,
                       struct counts *counts)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    counts->nodes++;
    while (onnx_wire_next(&wire, &field)) {
        counts->uses += field.number == NODE_INPUT;
        counts->makes += field.number == NODE_OUTPUT;
        counts->attributes += field.number == NODE_ATTRIBUTE;
    }
    return wire.is_bad ? onnx_fault(reading, ONNX_MALFORMED, "node %zu of the graph is cut short",
                                    counts->nodes)
                       : true;
}

static bool count_graph(struct onnx_reading *reading, struct onnx_span message,
                        struct counts *counts)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    while (onnx_wire_next(&wire, &field)) {
        counts->initializers += field.number == GRAPH_INITIALIZER;
        counts->inputs += field.number == GRAPH_INPUT;
        counts->outputs += field.number == GRAPH_OUTPUT;
        if (field.number == GRAPH_SPARSE) {
            return onnx_fault(reading, ONNX_UNSUPPORTED, "the graph has sparse weights");
        }
        if (field.number == GRAPH_NODE && !count_node(reading, field.bytes, counts)) {
            return false;
        }
    }
    return wire.is_bad ? onnx_fault(reading, ONNX_MALFORMED, "the graph is cut short") : true;
}

static bool check_counts(struct onnx_reading *reading, const struct counts *counts)
{
    const struct {
        const char *what;
        size_t count, most;
    } caps[] = {{"nodes", counts->nodes, ONNX_NODES_MOST},
                {"weights", counts->initializers, ONNX_INITIALIZERS_MOST},
                {"inputs", counts->inputs, ONNX_INTERFACE_MOST},
                {"outputs", counts->outputs, ONNX_INTERFACE_MOST},
                {"inputs of nodes", counts->uses, ONNX_USES_MOST},
                {"outputs of nodes", counts->makes, ONNX_USES_MOST},
                {"attributes", counts->attributes, ONNX_ATTRIBUTES_MOST}};
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        if (caps[i].count > caps[i].most) {
            return onnx_fault(reading, ONNX_TOO_LARGE, "the graph has %zu %s; at most %zu are read",
                              caps[i].count, caps[i].what, caps[i].most);
        }
    }
    return counts->outputs > 0 ? true
                               : onnx_fault(reading, ONNX_MALFORMED, "the graph has no outputs");
}

static bool take_room(struct onnx_reading *reading, const struct counts *counts,
                      struct whole *whole)
{
    struct onnx_model *model = reading->model;
    model->nodes = calloc(counts->nodes + 1, sizeof *model->nodes);
    model->initializers = calloc(counts->initializers + 1, sizeof *model->initializers);
    model->inputs = calloc(counts->inputs + 1, sizeof *model->inputs);
    model->outputs = calloc(counts->outputs + 1, sizeof *model->outputs);
    model->uses = calloc(counts->uses + 1, sizeof *model->uses);
    model->makes = calloc(counts->makes + 1, sizeof *model->makes);
    model->attributes = calloc(counts->attributes + 1, sizeof *model->attributes);
    whole->input_names = calloc(counts->uses + 1, sizeof *whole->input_names);
    whole->output_names = calloc(counts->makes + 1, sizeof *whole->output_names);
    const bool has_room = model->nodes != NULL && model->initializers != NULL &&
                          model->inputs != NULL && model->outputs != NULL && model->uses != NULL &&
                          model->makes != NULL && model->attributes != NULL &&
                          whole->input_names != NULL && whole->output_names != NULL;
    return has_room ? true : onnx_fault(reading, ONNX_NO_MEMORY, "there is not enough memory");
}

static bool read_graph(struct onnx_reading *reading, struct whole *whole)
{
    struct onnx_model *model = reading->model;
    struct onnx_wire wire = onnx_wire_over(whole->graph);
    struct onnx_field field;
    bool ok = true;
    while (ok && onnx_wire_next(&wire, &field)) {
        if (field.number == GRAPH_NODE) {
            ok = read_node(reading, whole, field.bytes);
        } else if (field.number == GRAPH_INITIALIZER) {
            struct onnx_tensor *tensor = &model->initializers[model->initializer_count++];
            ok = onnx_tensor_head(reading, field.bytes, "weights", tensor) &&
                 onnx_name_is_good(reading, tensor->name, "a tensor of weights");
        } else if (field.number == GRAPH_INPUT) {
            ok = onnx_port_read(reading, field.bytes, "input", &model->inputs[model->input_count]);
            model->input_count += ok;
        } else if (field.number == GRAPH_OUTPUT) {
            ok = onnx_port_read(reading, field.bytes, "output",
                                &model->outputs[model->output_count]);
            model->output_count += ok;
        }
    }
    return ok;
}

/* ---------------------------------------------------------------- the model */

static bool read_opset(struct onnx_reading *reading, struct onnx_span message, struct whole *whole)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    struct opset opset = {.version = 0};
    while (onnx_wire_next(&wire, &field)) {
        opset.domain = field.number == OPSET_DOMAIN ? field.bytes : opset.domain;
        opset.version = field.number == OPSET_VERSION ? (int64_t)field.value : opset.version;
    }
    if (wire.is_bad) {
        return onnx_fault(reading, ONNX_MALFORMED, "an opset is cut short");
    }
    if (whole->opset_count == ONNX_OPSETS_MOST) {
        return onnx_fault(reading, ONNX_TOO_LARGE, "the model imports more than %d opsets",
                          ONNX_OPSETS_MOST);
    }
    if (opset_of(whole, opset.domain) != 0) {
        return onnx_fault(reading, ONNX_TWICE, "the model imports the opset of \"%s\" twice",
                          onnx_label(opset.domain).text);
    }
    whole->opsets[whole->opset_count++] = opset;
    return true;
}

static bool check_versions(struct onnx_reading *reading, const struct whole *whole)
{
    struct onnx_model *model = reading->model;
    static const struct onnx_span own = {(const uint8_t *)"", 0};
    model->opset = opset_of(whole, own);
    if (model->ir_version < ONNX_IR_LEAST || model->ir_version > ONNX_IR_NEWEST) {
        return onnx_fault(reading, ONNX_VERSION,
                          "the file has IR version %lld; versions %d to %d are read",
                          (long long)model->ir_version, ONNX_IR_LEAST, ONNX_IR_NEWEST);
    }
    if (model->opset < ONNX_OPSET_LEAST || model->opset > ONNX_OPSET_NEWEST) {
        return onnx_fault(reading, ONNX_VERSION,
                          "the model imports opset %lld of ai.onnx; opsets %d to %d are known",
                          (long long)model->opset, ONNX_OPSET_LEAST, ONNX_OPSET_NEWEST);
    }
    return whole->has_graph ? true : onnx_fault(reading, ONNX_MALFORMED, "there is no graph");
}

static bool read_model(struct onnx_reading *reading, struct onnx_span message, struct whole *whole)
{
    struct onnx_model *model = reading->model;
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == MODEL_IR_VERSION) {
            model->ir_version = (int64_t)field.value;
        } else if (field.number == MODEL_PRODUCER) {
            model->producer = field.bytes;
        } else if (field.number == MODEL_GRAPH && whole->has_graph) {
            return onnx_fault(reading, ONNX_TWICE, "the model has two graphs");
        } else if (field.number == MODEL_GRAPH) {
            whole->graph = field.bytes;
            whole->has_graph = true;
        } else if (field.number == MODEL_OPSET && !read_opset(reading, field.bytes, whole)) {
            return false;
        }
    }
    return wire.is_bad ? onnx_fault(reading, ONNX_MALFORMED,
                                    "the file is no ONNX model, or it is cut short")
                       : check_versions(reading, whole);
}

enum onnx_status onnx_read(const uint8_t *bytes, size_t length, struct onnx_model **ret_model,
                           struct problem *ret_problem)
{
    struct onnx_reading reading = {.model = calloc(1, sizeof *reading.model),
                                   .problem = ret_problem};
    struct whole *whole = calloc(1, sizeof *whole);
    struct counts counts = {.nodes = 0};
    if (reading.model == NULL || whole == NULL) {
        (void)onnx_fault(&reading, ONNX_NO_MEMORY, "there is not enough memory");
    } else if (length > (size_t)ONNX_FILE_BYTES) {
        (void)onnx_fault(&reading, ONNX_TOO_LARGE, "the file has more than 2 GiB");
    } else {
        (void)(read_model(&reading, (struct onnx_span){bytes, length}, whole) &&
               count_graph(&reading, whole->graph, &counts) && check_counts(&reading, &counts) &&
               take_room(&reading, &counts, whole) && read_graph(&reading, whole) &&
               onnx_names_resolve(&reading, whole->input_names, whole->output_names));
    }
    if (whole != NULL) {
        free(whole->input_names);
        free(whole->output_names);
        free(whole);
    }
    if (reading.status != ONNX_OK) {
        onnx_destroy(&reading.model);
        return reading.status;
    }
    *ret_model = reading.model;
    return ONNX_OK;
}

void onnx_destroy(struct onnx_model **self)
{
    struct onnx_model *model = *self;
    if (model != NULL) {
        free(model->nodes);
        free(model->initializers);
        free(model->inputs);
        free(model->outputs);
        free(model->values);
        free(model->uses);
        free(model->makes);
        free(model->attributes);
        free(model);
        *self = NULL;
    }
}
