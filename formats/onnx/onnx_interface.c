#include "formats/onnx/onnx_interface.h"

#include "formats/onnx/onnx_internal.h"
#include "formats/onnx/onnx_shapes.h"

#include <stdio.h>
#include <stdlib.h>

/* Numbers of fields in onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_GRAPH = 7,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
};

static bool add_port(struct onnx_reading *reading, struct onnx_span message, bool is_input,
                     struct onnx_interface *interface)
{
    struct onnx_port *ports = is_input ? interface->inputs : interface->outputs;
    size_t *count = is_input ? &interface->input_count : &interface->output_count;
    const char *what = is_input ? "input" : "output";
    if (*count == ONNX_INTERFACE_MOST) {
        return onnx_fault(reading, ONNX_TOO_LARGE, "the graph has more than %d %ss",
                          ONNX_INTERFACE_MOST, what);
    }
    if (!onnx_port_read(reading, message, what, &ports[*count])) {
        return false;
    }
    if (onnx_interface_find(ports, *count, ports[*count].name) < *count) {
        return onnx_fault(reading, ONNX_TWICE, "two %ss are called \"%s\"", what,
                          onnx_label(ports[*count].name).text);
    }
    (*count)++;
    return true;
}

/* Notes the file of weights. The end was checked not to wrap. */
static bool add_file(struct onnx_reading *reading, const struct onnx_tensor *tensor,
                     struct onnx_interface *interface)
{
    const int64_t end = tensor->offset + tensor->bytes;
    for (size_t i = 0; i < interface->file_count; i++) {
        struct onnx_interface_file *file = &interface->files[i];
        if (onnx_span_equals(file->path, tensor->path)) {
            file->end = end > file->end ? end : file->end;
            return true;
        }
    }
    if (interface->file_count == ONNX_INTERFACE_FILES) {
        return onnx_fault(reading, ONNX_TOO_LARGE, "the model needs more than %d other files",
                          ONNX_INTERFACE_FILES);
    }
    interface->files[interface->file_count++] =
        (struct onnx_interface_file){.path = tensor->path, .end = end};
    return true;
}

/* An input with weights has a default, and is left out. Inputs may stand before or behind the
 * weights, so that their names are looked up at the end. */
static bool add_weights(struct onnx_reading *reading, struct onnx_span message,
                        struct onnx_interface *interface)
{
    struct onnx_tensor tensor;
    if (!onnx_tensor_head(reading, message, "weights", &tensor)) {
        return false;
    }
    return !tensor.is_external || add_file(reading, &tensor, interface);
}

static bool read_ports(struct onnx_reading *reading, struct onnx_span graph,
                       struct onnx_interface *interface)
{
    struct onnx_wire wire = onnx_wire_over(graph);
    struct onnx_field field;
    bool good = true;
    while (good && onnx_wire_next(&wire, &field)) {
        if (field.kind != ONNX_WIRE_BYTES) {
            continue;
        }
        if (field.number == GRAPH_INPUT || field.number == GRAPH_OUTPUT) {
            good = add_port(reading, field.bytes, field.number == GRAPH_INPUT, interface);
        } else if (field.number == GRAPH_INITIALIZER) {
            good = add_weights(reading, field.bytes, interface);
        }
    }
    return good && wire.is_bad ? onnx_fault(reading, ONNX_MALFORMED, "the graph is cut short")
                               : good;
}

/* Takes the input with this name out of the list. */
static void drop_input(struct onnx_interface *interface, struct onnx_span name)
{
    const size_t index = onnx_interface_find(interface->inputs, interface->input_count, name);
    if (index == interface->input_count) {
        return;
    }
    for (size_t i = index; i + 1 < interface->input_count; i++) {
        interface->inputs[i] = interface->inputs[i + 1];
    }
    interface->input_count--;
}

static void drop_defaults(struct onnx_span graph, struct onnx_interface *interface)
{
    struct onnx_wire wire = onnx_wire_over(graph);
    struct onnx_field field;
    while (onnx_wire_next(&wire, &field)) {
        struct onnx_tensor tensor;
        struct onnx_reading reading = {.status = ONNX_OK};
        if (field.number == GRAPH_INITIALIZER && field.kind == ONNX_WIRE_BYTES &&
            onnx_tensor_head(&reading, field.bytes, "weights", &tensor)) {
            drop_input(interface, tensor.name);
        }
    }
}

enum onnx_status onnx_interface_read(const uint8_t *bytes, size_t length,
                                     struct onnx_interface *ret_interface,
                                     struct problem *ret_problem)
{
    struct onnx_reading reading = {.problem = ret_problem, .status = ONNX_OK};
    struct onnx_wire wire = onnx_wire_over((struct onnx_span){bytes, length});
    struct onnx_field field;
    struct onnx_span graph = {NULL, 0};
    *ret_interface = (struct onnx_interface){.ir_version = 0};
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == MODEL_IR_VERSION && field.kind == ONNX_WIRE_NUMBER) {
            ret_interface->ir_version = (int64_t)field.value;
        }
        graph = field.number == MODEL_GRAPH && field.kind == ONNX_WIRE_BYTES ? field.bytes : graph;
    }
    if (wire.is_bad || graph.size == 0 || ret_interface->ir_version < 1) {
        (void)onnx_fault(&reading, ONNX_MALFORMED, "the file is no ONNX model, or is cut short");
        return reading.status;
    }
    if (!read_ports(&reading, graph, ret_interface)) {
        return reading.status;
    }
    drop_defaults(graph, ret_interface);
    if (ret_interface->output_count == 0) {
        (void)onnx_fault(&reading, ONNX_MALFORMED, "the graph has no outputs");
    }
    return reading.status;
}

size_t onnx_interface_find(const struct onnx_port *ports, size_t count, struct onnx_span name)
{
    size_t found = 0;
    while (found < count && !onnx_span_equals(ports[found].name, name)) {
        found++;
    }
    return found;
}

/* Writes "float32[1,batch,?]". */
static void write_port(const struct onnx_port *port, char *ret_text, size_t capacity)
{
    size_t used = (size_t)snprintf(ret_text, capacity, "%s[", onnx_type_name(port->type));
    for (uint32_t i = 0; i < port->rank && used < capacity; i++) {
        const struct onnx_dim *dim = &port->dims[i];
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)dim->value);
        const struct onnx_label label = onnx_label(dim->name);
        used += (size_t)snprintf(ret_text + used, capacity - used, "%s%.20s", i > 0 ? "," : "",
                                 dim->value >= 0       ? number
                                 : dim->name.size == 0 ? "?"
                                                       : label.text);
    }
    if (used < capacity) {
        (void)snprintf(ret_text + used, capacity - used, "]%s",
                       port->has_shape ? "" : " of any shape");
    }
}

bool onnx_interface_fits(const struct onnx_port *port, enum onnx_type type, uint32_t rank,
                         const int64_t *dims, struct problem *ret_problem)
{
    bool good = port->type == type && (!port->has_shape || port->rank == rank);
    for (uint32_t i = 0; good && port->has_shape && i < rank; i++) {
        good = port->dims[i].value < 0 || port->dims[i].value == dims[i];
    }
    if (!good) {
        char asked[220];
        struct onnx_fact given = {.is_known = true, .type = type, .rank = rank};
        for (uint32_t i = 0; i < rank; i++) {
            given.dims[i] = dims[i];
        }
        write_port(port, asked, sizeof asked);
        problem_set(ret_problem, "the array is %s, and the model's input \"%s\" is %.200s",
                    onnx_shape_text(&given).text, onnx_label(port->name).text, asked);
    }
    return good;
}
