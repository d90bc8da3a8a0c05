#include "consumer/model/model_steps.h"

#include "base/checked.h"
#include "planner/templates/making.h"

#include <stdlib.h>
#include <string.h>

/* A model on its way into steps. */
struct slicing {
    const struct onnx_model *model;
    const struct onnx_shapes *shapes;
    struct model_plan *plan;
    struct making making;
    uint32_t step_count;
    struct step **steps;               /* by number */
    uint32_t *seen_by;                 /* by value: 1 + the last step that uses it */
    uint128 *edge_bytes;               /* by earlier step, of the present one */
    uint128 weights, brought, fetched; /* of the present one */
    bool *is_output;                   /* by value: the model's result */
};

static bool count_nodes(struct slicing *slicing, struct problem *problem)
{
    struct model_plan *plan = slicing->plan;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        struct model_node *node = &plan->nodes[i];
        if (!model_node_count(slicing->model, slicing->shapes, i, node, problem)) {
            return false;
        }
        struct operation_size size = {.flops = 0};
        struct problem why = {""};
        if (node->source != MODEL_NOTHING &&
            operation_measure(&node->operation, &size, &why) != OPERATION_OK) {
            problem_set(problem, "node \"%s\" (%s): %.200s",
                        onnx_node_label(slicing->model, &slicing->model->nodes[i]).text,
                        onnx_label(slicing->model->nodes[i].operator).text, why.text);
            return false;
        }
        plan->counts[node->source]++;
        plan->operations[node->source] += (double)size.flops;
        plan->bytes[node->source] += (double)size.read_bytes + (double)size.written_bytes;
    }
    return true;
}

/* Numbers the steps: heavy nodes are dealt to them evenly, and each step begins with one. */
static void number_steps(struct slicing *slicing)
{
    struct model_plan *plan = slicing->plan;
    uint32_t heavy = 0;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        heavy += plan->nodes[i].is_heavy;
    }
    const uint32_t each = heavy == 0 ? 1 : (heavy - 1) / MODEL_STEPS_MOST + 1;
    uint32_t met = 0;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        met += plan->nodes[i].is_heavy;
        plan->step_of[i] = met <= 1 ? 0 : (met - 1) / each;
    }
    slicing->step_count = heavy == 0 ? 1 : (heavy - 1) / each + 1;
}

/* ---------------------------------------------------------------- what flows */

/* Small integers whose values follow from shapes are known to every device before a run. */
static bool is_known(const struct slicing *slicing, uint32_t value)
{
    return value == ONNX_NONE || model_is_constant(slicing->model, value) ||
           slicing->shapes->facts[value].first_value != ONNX_NONE;
}

/* Adds what a node takes: data of earlier steps, weights, and input of the model. Each value counts
 * once for a step. */
static void take_inputs(struct slicing *slicing, const struct onnx_node *node, uint32_t step)
{
    const struct onnx_model *model = slicing->model;
    for (uint32_t k = 0; k < node->input_count; k++) {
        const uint32_t value = model->uses[node->first_input + k];
        if (value == ONNX_NONE || slicing->seen_by[value] == step + 1) {
            continue;
        }
        slicing->seen_by[value] = step + 1;
        const uint128 bytes = (uint128)slicing->shapes->facts[value].bytes;
        const uint32_t maker = model->values[value].node;
        if (model_is_constant(model, value)) {
            slicing->weights += bytes;
        } else if (maker == ONNX_NONE) {
            slicing->brought += bytes;
        } else if (slicing->plan->step_of[maker] != step && !is_known(slicing, value)) {
            slicing->edge_bytes[slicing->plan->step_of[maker]] += bytes;
        }
    }
}

static void give_outputs(struct slicing *slicing, const struct onnx_node *node)
{
    for (uint32_t k = 0; k < node->output_count; k++) {
        const uint32_t value = slicing->model->makes[node->first_output + k];
        if (value != ONNX_NONE && slicing->is_output[value]) {
            const uint128 bytes = (uint128)slicing->shapes->facts[value].bytes;
            slicing->fetched += bytes;
        }
    }
}

/* Ends a step. An edge of 0 bytes still says what waits for what. */
static void end_step(struct slicing *slicing, uint32_t number, const bool *is_before)
{
    struct making *making = &slicing->making;
    struct step *step = slicing->steps[number];
    const uint32_t set = making_set(making, slicing->weights);
    making_need(making, step, set, 1);
    making_outside(making, step, slicing->brought, slicing->fetched);
    for (uint32_t i = 0; i < number; i++) {
        if (is_before[i]) {
            making_edge(making, slicing->steps[i], step, slicing->edge_bytes[i]);
        }
        slicing->edge_bytes[i] = 0;
    }
    slicing->weights = 0;
    slicing->brought = 0;
    slicing->fetched = 0;
}

static void note_before(const struct slicing *slicing, const struct onnx_node *node, uint32_t step,
                        bool *is_before)
{
    for (uint32_t k = 0; k < node->input_count; k++) {
        const uint32_t value = slicing->model->uses[node->first_input + k];
        const uint32_t maker =
            is_known(slicing, value) ? ONNX_NONE : slicing->model->values[value].node;
        if (maker != ONNX_NONE && slicing->plan->step_of[maker] != step) {
            is_before[slicing->plan->step_of[maker]] = true;
        }
    }
}

/* Names a step after the node that it begins with, such as "Conv 12". */
static struct step *begin_step(struct slicing *slicing, uint32_t number, uint32_t first)
{
    const struct model_plan *plan = slicing->plan;
    char name[STEP_NAME_SIZE];
    uint32_t named = first;
    while (named + 1 < plan->node_count && plan->step_of[named + 1] == number &&
           !plan->nodes[named].is_heavy) {
        named++;
    }
    named = plan->nodes[named].is_heavy ? named : first;
    (void)snprintf(name, sizeof name, "%.16s %u",
                   onnx_label(slicing->model->nodes[named].operator).text, number + 1);
    return making_step(&slicing->making, name);
}

static void make_steps(struct slicing *slicing)
{
    const struct onnx_model *model = slicing->model;
    const struct model_plan *plan = slicing->plan;
    bool is_before[MODEL_STEPS_MOST] = {false};
    for (uint32_t i = 0; i < plan->node_count && slicing->making.status == STEPS_OK; i++) {
        const uint32_t number = plan->step_of[i];
        const struct model_node *node = &plan->nodes[i];
        if (slicing->steps[number] == NULL) {
            slicing->steps[number] = begin_step(slicing, number, i);
        }
        take_inputs(slicing, &model->nodes[i], number);
        note_before(slicing, &model->nodes[i], number, is_before);
        give_outputs(slicing, &model->nodes[i]);
        if (node->source != MODEL_NOTHING) {
            making_part(&slicing->making, slicing->steps[number], &node->operation, 1,
                        node->has_weights ? 1 : 0, 0);
        }
        if (i + 1 == plan->node_count || plan->step_of[i + 1] != number) {
            end_step(slicing, number, is_before);
            memset(is_before, 0, sizeof is_before);
        }
    }
}

/* ---------------------------------------------------------------- all of it */

static bool take_room(struct slicing *slicing)
{
    const size_t values = (size_t)slicing->model->value_count + 1;
    slicing->steps = calloc(MODEL_STEPS_MOST, sizeof(struct step *));
    slicing->seen_by = calloc(values, sizeof *slicing->seen_by);
    slicing->is_output = calloc(values, sizeof *slicing->is_output);
    slicing->edge_bytes = calloc(MODEL_STEPS_MOST, sizeof *slicing->edge_bytes);
    bool has_room = slicing->steps != NULL && slicing->seen_by != NULL &&
                    slicing->is_output != NULL && slicing->edge_bytes != NULL;
    for (uint32_t i = 0; has_room && i < slicing->model->output_count; i++) {
        slicing->is_output[slicing->model->outputs[i].value] = true;
    }
    return has_room;
}

static void give_room(struct slicing *slicing)
{
    free((void *)slicing->steps);
    free(slicing->seen_by);
    free(slicing->is_output);
    free(slicing->edge_bytes);
}

/* Sums up the weights, each once. Returns false when the sum does not fit. */
static bool sum_weights(struct model_plan *plan, const struct onnx_model *model)
{
    for (uint32_t i = 0; i < model->initializer_count; i++) {
        const struct onnx_tensor *tensor = &model->initializers[i];
        if (!checked_add(plan->parameters, tensor->elements, &plan->parameters) ||
            !checked_add(plan->weight_bytes, tensor->bytes, &plan->weight_bytes)) {
            return false;
        }
    }
    return true;
}

static enum steps_status fill_plan(struct slicing *slicing, struct problem *problem)
{
    struct model_plan *plan = slicing->plan;
    if (!count_nodes(slicing, problem)) {
        return STEPS_BAD_VALUE;
    }
    if (plan->counts[MODEL_EXACT] + plan->counts[MODEL_LEAST] == 0) {
        problem_set(problem, "no node of the model computes or moves anything");
        return STEPS_BAD_VALUE;
    }
    if (!sum_weights(plan, slicing->model)) {
        problem_set(problem, "all weights together have more than 2^63 - 1 bytes");
        return STEPS_OVERFLOW;
    }
    number_steps(slicing);
    if (!take_room(slicing) || !making_begin(&slicing->making, problem)) {
        problem_set(problem, "there is not enough memory");
        return STEPS_NO_MEMORY;
    }
    make_steps(slicing);
    making_count(&slicing->making, (uint128)plan->parameters);
    return making_end(&slicing->making, &plan->steps);
}

enum steps_status model_plan_make(const struct onnx_model *model, const struct onnx_shapes *shapes,
                                  struct model_plan **ret_plan, struct problem *ret_problem)
{
    struct slicing slicing = {
        .model = model, .shapes = shapes, .plan = calloc(1, sizeof **ret_plan)};
    enum steps_status status = STEPS_NO_MEMORY;
    if (slicing.plan != NULL) {
        slicing.plan->node_count = model->node_count;
        slicing.plan->nodes = calloc((size_t)model->node_count + 1, sizeof *slicing.plan->nodes);
        slicing.plan->step_of = calloc((size_t)model->node_count + 1, sizeof(uint32_t));
    }
    if (slicing.plan == NULL || slicing.plan->nodes == NULL || slicing.plan->step_of == NULL) {
        problem_set(ret_problem, "there is not enough memory");
    } else {
        status = fill_plan(&slicing, ret_problem);
    }
    give_room(&slicing);
    if (status != STEPS_OK) {
        model_plan_destroy(&slicing.plan);
        return status;
    }
    *ret_plan = slicing.plan;
    return STEPS_OK;
}

struct steps *model_plan_take_steps(struct model_plan *plan)
{
    struct steps *steps = plan->steps;
    plan->steps = NULL;
    return steps;
}

void model_plan_destroy(struct model_plan **self)
{
    struct model_plan *plan = *self;
    if (plan != NULL) {
        if (plan->steps != NULL) {
            steps_destroy(&plan->steps);
        }
        free(plan->nodes);
        free(plan->step_of);
        free(plan);
        *self = NULL;
    }
}
