/* consumer/model/model_steps.h makes a model into steps that the planner puts on devices.
 *
 *     nodes   Conv  Relu  MaxPool | Conv  Relu | Conv | Add  Relu ...
 *     steps   "Conv 1"              "Conv 2"     "Conv 3"
 *
 * A step is a run of nodes in the file's order. Each product and each convolution begins one, and
 * the nodes that follow belong to it; a model with more of them than MODEL_STEPS_MOST has several
 * in each step. The order of a file is topological, so that data only flows to later steps. Weights
 * that several steps use count in each of them. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_STEPS_H
#define BOURSE_CONSUMER_MODEL_MODEL_STEPS_H

#include "consumer/model/model_work.h"
#include "planner/templates/steps.h"

enum { MODEL_STEPS_MOST = 256 };

struct model_plan {
    struct steps *steps;
    struct model_node *nodes; /* by node of the model */
    uint32_t *step_of;        /* by node of the model */
    uint32_t node_count;
    /* Sums over the nodes of each source. */
    uint32_t counts[MODEL_SOURCES];
    double operations[MODEL_SOURCES], bytes[MODEL_SOURCES];
    int64_t parameters, weight_bytes; /* of all weights of the model */
};

/* Makes the steps, which the caller owns. Any status but OK gives none, and says in `ret_problem`
 * what is wrong: BAD_VALUE is an operator whose work is not known. */
enum steps_status model_plan_make(const struct onnx_model *model, const struct onnx_shapes *shapes,
                                  struct model_plan **ret_plan, struct problem *ret_problem);
void model_plan_destroy(struct model_plan **self);

/* Hands the steps over to the caller. */
struct steps *model_plan_take_steps(struct model_plan *plan);

#endif
