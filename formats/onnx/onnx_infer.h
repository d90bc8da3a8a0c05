/* formats/onnx/onnx_infer.h works out the type and the dims of every value of a model.
 *
 * Dims of inputs that are names get their numbers from the caller (`batch=16`). Every dim is a
 * number then, or the model is refused: with the node, its operator and the input. Small tensors of
 * integers are followed as well (weights, constants, shapes, and what is computed of them), since
 * models compute dims out of dims. Arithmetic is checked; a figure that does not fit is refused.
 * What onnx.proto's operators do to shapes is in the table of onnx_rules.c. An operator that
 * is not in the table is refused by name and never guessed. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_INFER_H
#define BOURSE_FORMATS_ONNX_ONNX_INFER_H

#include "formats/onnx/onnx_shapes.h"

/* A number for a dim: for its name, or for "INPUT.AXIS" when it has none. */
struct onnx_binding {
    struct onnx_span name;
    int64_t value;
};

/* A tensor for an input of the graph, whose dims and values are taken from it. */
struct onnx_given {
    uint32_t input;
    struct onnx_tensor tensor;
};

struct onnx_infer_input {
    const struct onnx_model *model;
    const struct onnx_binding *bindings;
    size_t binding_count;
    const struct onnx_given *given;
    size_t given_count;
};

/* Works out all shapes, which the caller owns. Any status but OK gives none, and says in
 * `ret_problem` (may be NULL) which node, operator and input is the reason. */
enum onnx_status onnx_infer(const struct onnx_infer_input *input, struct onnx_shapes **ret_shapes,
                            struct problem *ret_problem);

#endif
