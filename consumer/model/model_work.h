/* consumer/model/model_work.h says what a node of a model computes and moves. A count is an
 * operation of the cost model (planner/cost/operations.h).
 *
 * Each count has a source. EXACT: the operation's formula has the node's own shape. LEAST: no
 * formula is the node's own, so that what is counted is the least that a device must do: each
 * element of an operand once in, each of the result once out, and one operation for it. NOTHING:
 * the node renames data or is a constant. A node whose work is not known here is refused and never
 * guessed. Nodes count one by one; a device that fuses some of them moves fewer bytes. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_WORK_H
#define BOURSE_CONSUMER_MODEL_MODEL_WORK_H

#include "formats/onnx/onnx_infer.h"
#include "planner/cost/operations.h"

enum model_source { MODEL_NOTHING, MODEL_EXACT, MODEL_LEAST, MODEL_SOURCES };
const char *model_source_name(enum model_source source); /* "exact" */

struct model_node {
    enum model_source source;
    struct operation operation; /* unless the source is NOTHING */
    bool is_heavy;              /* a product or a convolution, with which a step begins */
    /* An operand of the operation is a constant, so that it is weights. */
    bool has_weights;
};

/* Counts a node. Returns false, and says in `ret_problem` why, when its work is not known here. */
bool model_node_count(const struct onnx_model *model, const struct onnx_shapes *shapes,
                      uint32_t number, struct model_node *ret_node, struct problem *ret_problem);

/* Returns true when a value is weights, or made by a Constant: it is there before a run. */
bool model_is_constant(const struct onnx_model *model, uint32_t value);

#endif
