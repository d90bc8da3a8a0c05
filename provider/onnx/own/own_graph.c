#include "provider/onnx/own/own_graph.h"

#include "formats/onnx/onnx_infer.h"
#include "provider/onnx/own/own_weights.h"

#include <stdlib.h>

struct opening {
    const struct own_graph_input *input;
    struct own_graph *graph;
    struct problem *problem;
    enum onnx_status status;
};

#define refuse(opening, why, ...)                                                                  \
    (problem_set((opening)->problem, __VA_ARGS__), (opening)->status = (why), false)

/* ---------------------------------------------------------------- operators */

static bool is_own_domain(struct onnx_span domain)
{
    return domain.size == 0 || onnx_span_is(domain, "ai.onnx");
}

/* Returns true when the operator has this form in the node's opset. */
static bool form_is_known(struct opening *opening, const struct onnx_node *node)
{
    const struct onnx_operator *known = onnx_operator_named(node->operator);
    const struct onnx_label label = onnx_node_label(opening->graph->model, node);
    const bool is_in_time = known != NULL && node->opset >= known->since &&
                            (known->until == 0 || node->opset <= known->until);
    if (!is_in_time) {
        return refuse(opening, ONNX_OPERATOR, "node \"%s\": opset %lld does not have %s",
                      label.text, (long long)node->opset, onnx_label(node->operator).text);
    }
    if (node->input_count < known->inputs_least ||
        (known->inputs_most > 0 && node->input_count > known->inputs_most)) {
        return refuse(opening, ONNX_OPERATOR,
                      "node \"%s\" (%s) has %u inputs, which is not its form", label.text,
                      onnx_label(node->operator).text, node->input_count);
    }
    for (uint32_t i = 0; i < known->inputs_least; i++) {
        if (opening->graph->model->uses[node->first_input + i] == ONNX_NONE) {
            return refuse(opening, ONNX_OPERATOR, "node \"%s\" (%s) lacks input %u", label.text,
                          onnx_label(node->operator).text, i);
        }
    }
    const bool has_first =
        node->output_count > 0 && opening->graph->model->makes[node->first_output] != ONNX_NONE;
    if (!has_first && (own_operator_named(node->operator)->flags & OWN_LACKS_FIRST) == 0) {
        return refuse(opening, ONNX_OPERATOR, "node \"%s\" (%s) has no first output", label.text,
                      onnx_label(node->operator).text);
    }
    return true;
}

static bool attributes_are_known(struct opening *opening, const struct onnx_node *node,
                                 const struct own_operator *known)
{
    const struct onnx_model *model = opening->graph->model;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const struct onnx_attribute *attribute = &model->attributes[node->first_attribute + i];
        if (attribute->has_graph || !own_operator_knows(known, attribute->name)) {
            return refuse(
                opening, ONNX_OPERATOR, "node \"%s\" (%s): the attribute \"%s\" is not known here",
                onnx_node_label(model, node).text, known->name, onnx_label(attribute->name).text);
        }
    }
    return true;
}

static bool find_operators(struct opening *opening)
{
    struct own_graph *graph = opening->graph;
    for (uint32_t i = 0; i < graph->model->node_count; i++) {
        const struct onnx_node *node = &graph->model->nodes[i];
        const bool is_own = is_own_domain(node->domain);
        const struct own_operator *known = is_own ? own_operator_named(node->operator) : NULL;
        if (known == NULL) {
            return refuse(opening, ONNX_OPERATOR,
                          "node \"%s\": the operator %s%s%s is not computed here",
                          onnx_node_label(graph->model, node).text,
                          is_own ? "" : onnx_label(node->domain).text, is_own ? "" : ":",
                          onnx_label(node->operator).text);
        }
        if (!form_is_known(opening, node) || !attributes_are_known(opening, node, known)) {
            return false;
        }
        graph->operators[i] = known;
        graph->inputs_most =
            node->input_count > graph->inputs_most ? node->input_count : graph->inputs_most;
        graph->outputs_most =
            node->output_count > graph->outputs_most ? node->output_count : graph->outputs_most;
    }
    return true;
}

/* Looks at the types that follow from the file alone. Where dims have no numbers yet, a run looks
 * at them, before it computes a node. */
static bool types_are_known(struct opening *opening)
{
    const struct onnx_model *model = opening->graph->model;
    struct onnx_shapes *shapes = NULL;
    const struct onnx_infer_input input = {.model = model};
    bool is_known = true;
    if (onnx_infer(&input, &shapes, NULL) != ONNX_OK) {
        return true;
    }
    for (uint32_t i = 0; is_known && i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        const struct own_operator *known = opening->graph->operators[i];
        const uint32_t value = node->input_count > 0 ? model->uses[node->first_input] : ONNX_NONE;
        const enum onnx_type type = value != ONNX_NONE ? shapes->facts[value].type : ONNX_UNDEFINED;
        if (value != ONNX_NONE && (known->types >> type & 1U) == 0) {
            is_known = refuse(opening, ONNX_OPERATOR, "node \"%s\": %s of %s is not computed here",
                              onnx_node_label(model, node).text, known->name, onnx_type_name(type));
        }
    }
    onnx_shapes_destroy(&shapes);
    return is_known;
}

/* ---------------------------------------------------------------- weights */

static void count_uses(struct own_graph *graph)
{
    for (uint32_t i = 0; i < graph->model->use_count; i++) {
        const uint32_t value = graph->model->uses[i];
        if (value != ONNX_NONE) {
            graph->uses[value]++;
        }
    }
    for (uint32_t i = 0; i < graph->model->output_count; i++) {
        graph->uses[graph->model->outputs[i].value]++;
    }
}

static bool load_weights(struct opening *opening)
{
    struct own_graph *graph = opening->graph;
    for (uint32_t i = 0; i < graph->model->value_count; i++) {
        const uint32_t initializer = graph->model->values[i].initializer;
        if (initializer == ONNX_NONE || graph->uses[i] == 0) {
            continue;
        }
        opening->status =
            own_weights_load(&graph->model->initializers[initializer], opening->input->folder,
                             &graph->memory, &graph->weights[initializer], opening->problem);
        if (opening->status != ONNX_OK) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- both */

static bool take_room(struct opening *opening)
{
    struct own_graph *graph = opening->graph;
    const struct onnx_model *model = graph->model;
    graph->operators = calloc((size_t)model->node_count + 1, sizeof(struct own_operator *));
    graph->weights = calloc((size_t)model->initializer_count + 1, sizeof *graph->weights);
    graph->uses = calloc((size_t)model->value_count + 1, sizeof *graph->uses);
    return graph->operators != NULL && graph->weights != NULL && graph->uses != NULL
               ? true
               : refuse(opening, ONNX_NO_MEMORY, "there is not enough memory");
}

static bool open_all(struct opening *opening)
{
    const struct own_graph_input *input = opening->input;
    struct own_graph *graph = opening->graph;
    graph->threads = input->threads;
    graph->work_most = input->work_most > 0 ? input->work_most : INT64_MAX;
    graph->memory.limit = input->memory_bytes > 0 ? input->memory_bytes : OWN_MEMORY_MOST;
    opening->status = onnx_read(input->bytes, input->size, &graph->model, opening->problem);
    if (opening->status != ONNX_OK || !take_room(opening) || !find_operators(opening) ||
        !types_are_known(opening)) {
        return false;
    }
    count_uses(graph);
    return load_weights(opening);
}

enum onnx_status own_graph_open(const struct own_graph_input *input, struct own_graph **ret_graph,
                                struct problem *ret_problem)
{
    struct opening opening = {
        .input = input, .graph = calloc(1, sizeof(struct own_graph)), .problem = ret_problem};
    if (opening.graph == NULL) {
        (void)refuse(&opening, ONNX_NO_MEMORY, "there is not enough memory");
        return opening.status;
    }
    if (!open_all(&opening)) {
        own_graph_close(&opening.graph);
        return opening.status;
    }
    *ret_graph = opening.graph;
    return ONNX_OK;
}

void own_graph_close(struct own_graph **self)
{
    struct own_graph *graph = *self;
    if (graph == NULL) {
        return;
    }
    for (uint32_t i = 0; graph->weights != NULL && i < graph->model->initializer_count; i++) {
        own_tensor_drop(&graph->weights[i]);
    }
    free(graph->operators);
    free(graph->weights);
    free(graph->uses);
    onnx_destroy(&graph->model);
    free(graph);
    *self = NULL;
}
