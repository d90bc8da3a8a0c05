/* ONNX models run by our own operators, with little memory and few operations. A model is refused
 * with a problem, or its outputs are what its ports say; and all memory is given back. */
#include "provider/onnx/own/own_graph.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 64, PORTS_MOST = 16, OPEN_DIM = 2, INPUT_BYTES_MOST = 1 << 16 };
#define MEMORY_BYTES (INT64_C(1) << 20)
#define WORK_MOST (INT64_C(1) << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes a value for an input of the graph, whose bytes the caller frees. Dims without a number are
 * OPEN_DIM. Returns false where it would be too large, or is no tensor. */
static bool make_input(const struct onnx_port *port, struct own_tensor *ret_tensor)
{
    struct own_tensor tensor = {.type = port->type, .rank = port->rank, .elements = 1};
    if (!port->is_tensor || onnx_type_bytes(port->type) == 0) {
        return false;
    }
    for (uint32_t i = 0; i < port->rank; i++) {
        tensor.dims[i] = port->dims[i].value < 0 ? OPEN_DIM : port->dims[i].value;
        if (tensor.dims[i] > INPUT_BYTES_MOST ||
            tensor.elements * tensor.dims[i] > INPUT_BYTES_MOST) {
            return false;
        }
        tensor.elements *= tensor.dims[i];
    }
    tensor.bytes = tensor.elements * onnx_type_bytes(tensor.type);
    uint8_t *bytes = calloc(1, (size_t)tensor.bytes + 1);
    for (int64_t i = 0; bytes != NULL && i < tensor.bytes; i++) {
        bytes[i] = (uint8_t)(tensor.type == ONNX_BOOL ? i % 2 : i % 5);
    }
    tensor.at = bytes;
    *ret_tensor = tensor;
    return bytes != NULL;
}

static void check_output(const struct onnx_port *port, const struct own_tensor *tensor)
{
    int64_t elements = 1;
    assert(tensor->type == port->type || port->type == ONNX_UNDEFINED);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        assert(tensor->dims[i] >= 0);
        elements *= tensor->dims[i];
    }
    assert(elements == tensor->elements);
    assert(tensor->bytes == elements * onnx_type_bytes(tensor->type));
    assert(tensor->block != NULL);
}

static void run(struct own_graph *graph)
{
    const struct onnx_model *model = graph->model;
    struct own_tensor inputs[PORTS_MOST + 1] = {{.type = ONNX_UNDEFINED}};
    struct own_tensor outputs[PORTS_MOST + 1] = {{.type = ONNX_UNDEFINED}};
    struct problem problem = {""};
    const int64_t used = graph->memory.used;
    bool is_ready = model->node_count <= NODES_MOST && model->input_count <= PORTS_MOST &&
                    model->output_count <= PORTS_MOST;
    uint32_t made = 0;
    for (; is_ready && made < model->input_count; made++) {
        is_ready = make_input(&model->inputs[made], &inputs[made]);
    }
    if (is_ready) {
        const enum onnx_status status = own_graph_run(graph, inputs, outputs, &problem);
        assert(status == ONNX_OK || problem.text[0] != '\0');
        for (uint32_t i = 0; i < model->output_count && status == ONNX_OK; i++) {
            check_output(&model->outputs[i], &outputs[i]);
            own_tensor_drop(&outputs[i]);
        }
        assert(graph->memory.used == used);
        assert(graph->memory.peak <= graph->memory.limit);
    }
    for (uint32_t i = 0; i < made; i++) {
        free((void *)(uintptr_t)inputs[i].at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct own_graph *graph = NULL;
    struct problem problem = {""};
    const struct own_graph_input input = {.bytes = data,
                                          .size = size,
                                          .threads = 1,
                                          .memory_bytes = MEMORY_BYTES,
                                          .work_most = WORK_MOST};
    if (own_graph_open(&input, &graph, &problem) != ONNX_OK) {
        assert(graph == NULL && problem.text[0] != '\0');
        return 0;
    }
    run(graph);
    own_graph_close(&graph);
    return 0;
}
