/* provider/onnx/own/own_graph.h runs a model node by node, with operators of our own.
 *
 * `open` refuses by name what is not in the table: operators, attributes, and types where the file
 * says them. It loads the weights that a node uses. A run goes through the nodes in their order,
 * makes each node's outputs, and gives up an input after its last use. Everything that a run takes
 * is counted against the graph's memory before it is allocated. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_GRAPH_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_GRAPH_H

#include "base/problem.h"
#include "provider/onnx/own/own_table.h"
#include "provider/onnx/own/own_tensor.h"

/* The bound of a graph whose owner states none. */
#define OWN_MEMORY_MOST ONNX_TENSOR_BYTES

struct own_graph_input {
    const uint8_t *bytes; /* of the model; they outlive the graph */
    size_t size;
    const char *folder; /* of weights in other files; NULL: there are none */
    unsigned threads;
    int64_t memory_bytes; /* 0: OWN_MEMORY_MOST */
    int64_t work_most;    /* operations that products and windows of a run may cost; 0: no bound */
};

struct own_graph {
    struct onnx_model *model;
    const struct own_operator **operators; /* by node */
    struct own_tensor *weights;            /* by initializer; none where nobody uses it */
    uint32_t *uses;                        /* by value: of nodes, and of outputs of the graph */
    uint32_t inputs_most, outputs_most;    /* of one node */
    struct own_memory memory;
    unsigned threads;
    int64_t work_most;
};

/* Opens a model. The caller owns the graph. Any status but ONNX_OK gives none, and says why. */
enum onnx_status own_graph_open(const struct own_graph_input *input, struct own_graph **ret_graph,
                                struct problem *ret_problem);
void own_graph_close(struct own_graph **self);

/* Runs the model once. `inputs` has one tensor for each input of the model; one without a type
 * stands for the weights of the same name. `ret_outputs` has one for each output, in blocks that
 * the caller drops before it closes the graph. Any status but ONNX_OK makes none. */
enum onnx_status own_graph_run(struct own_graph *graph, const struct own_tensor *inputs,
                               struct own_tensor *ret_outputs, struct problem *ret_problem);

#endif
