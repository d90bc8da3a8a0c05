/* This file works out the shapes of a model. It takes those of inputs and weights, and goes node by
 * node by the rules of onnx_rules.h. At the end it compares the outputs with what the file says. */
#include "formats/onnx/onnx_infer.h"

#include "base/text.h"
#include "formats/onnx/onnx_rules.h"

#include <stdlib.h>
#include <string.h>

struct inferring {
    const struct onnx_infer_input *input;
    struct onnx_shapes *shapes;
    struct problem *problem;
    enum onnx_status status;
};

static bool refuse(struct inferring *inferring, enum onnx_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(struct inferring *inferring, enum onnx_status status, const char *format, ...)
{
    char text[sizeof inferring->problem->text];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    problem_set(inferring->problem, "%s", text);
    inferring->status = status;
    return false;
}

/* ---------------------------------------------------------------- inputs and weights */

/* Takes a tensor whose bytes are in the file, and its values where they are few and whole. */
static bool take_tensor(struct inferring *inferring, uint32_t value,
                        const struct onnx_tensor *tensor)
{
    struct onnx_fact *fact = &inferring->shapes->facts[value];
    int64_t values[ONNX_VALUES_MOST];
    if (onnx_shapes_set(fact, tensor->type, tensor->rank, tensor->dims) != ONNX_OK) {
        return refuse(inferring, ONNX_OVERFLOW, "weights \"%s\" are too large",
                      onnx_label(inferring->input->model->values[value].name).text);
    }
    fact->tensor = tensor->message;
    return !onnx_type_is_integer(tensor->type) ||
                   !onnx_tensor_integers(tensor, ONNX_VALUES_MOST, values) ||
                   onnx_shapes_keep(inferring->shapes, fact, values)
               ? true
               : refuse(inferring, ONNX_NO_MEMORY, "there is not enough memory");
}

static const struct onnx_binding *binding_of(const struct inferring *inferring,
                                             const struct onnx_port *port, uint32_t axis)
{
    char name[ONNX_NAME_BYTES + 16];
    const struct onnx_infer_input *input = inferring->input;
    (void)snprintf(name, sizeof name, "%.*s.%u", (int)port->name.size, (const char *)port->name.at,
                   axis);
    for (size_t i = 0; i < input->binding_count; i++) {
        const struct onnx_binding *binding = &input->bindings[i];
        if (onnx_span_is(binding->name, name) ||
            (port->dims[axis].name.size > 0 &&
             onnx_span_equals(binding->name, port->dims[axis].name))) {
            return binding;
        }
    }
    return NULL;
}

static bool bind_dim(struct inferring *inferring, const struct onnx_port *port, uint32_t axis,
                     int64_t *ret_dim)
{
    const struct onnx_dim *dim = &port->dims[axis];
    const struct onnx_binding *binding = dim->value >= 0 ? NULL : binding_of(inferring, port, axis);
    if (dim->value < 0 && binding == NULL && dim->name.size > 0) {
        const char *name = onnx_label(dim->name).text;
        return refuse(inferring, ONNX_DIM,
                      "dim %u of input \"%s\" is \"%s\", which has no number; --dim %s=N gives it "
                      "one",
                      axis, onnx_label(port->name).text, name, onnx_label(dim->name).text);
    }
    if (dim->value < 0 && binding == NULL) {
        return refuse(
            inferring, ONNX_DIM,
            "dim %u of input \"%s\" has no number and no name; --dim %s.%u=N gives it one", axis,
            onnx_label(port->name).text, onnx_label(port->name).text, axis);
    }
    *ret_dim = binding != NULL ? binding->value : dim->value;
    return true;
}

static bool take_input(struct inferring *inferring, const struct onnx_port *port)
{
    int64_t dims[ONNX_RANK_MOST];
    if (!port->is_tensor) {
        return true; /* it stays unknown, and whoever uses it is refused */
    }
    if (port->type == ONNX_UNDEFINED || !port->has_shape) {
        return refuse(inferring, ONNX_DIM, "the file does not say the %s of input \"%s\"",
                      port->has_shape ? "type" : "dims", onnx_label(port->name).text);
    }
    for (uint32_t i = 0; i < port->rank; i++) {
        if (!bind_dim(inferring, port, i, &dims[i])) {
            return false;
        }
    }
    return onnx_shapes_set(&inferring->shapes->facts[port->value], port->type, port->rank, dims) ==
                   ONNX_OK
               ? true
               : refuse(inferring, ONNX_OVERFLOW, "input \"%s\" is larger than 2^46 bytes",
                        onnx_label(port->name).text);
}

static const struct onnx_tensor *given_for(const struct inferring *inferring, uint32_t input)
{
    for (size_t i = 0; i < inferring->input->given_count; i++) {
        if (inferring->input->given[i].input == input) {
            return &inferring->input->given[i].tensor;
        }
    }
    return NULL;
}

static bool take_known(struct inferring *inferring)
{
    const struct onnx_model *model = inferring->input->model;
    for (uint32_t i = 0; i < model->value_count; i++) {
        const struct onnx_value *value = &model->values[i];
        const struct onnx_tensor *given =
            value->input != ONNX_NONE ? given_for(inferring, value->input) : NULL;
        inferring->shapes->facts[i].first_value = ONNX_NONE;
        bool ok = true;
        if (given != NULL) {
            ok = take_tensor(inferring, i, given);
        } else if (value->initializer != ONNX_NONE) {
            ok = take_tensor(inferring, i, &model->initializers[value->initializer]);
        } else if (value->input != ONNX_NONE) {
            ok = take_input(inferring, &model->inputs[value->input]);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* A --dim that no input has is a mistake, which would be silent otherwise. */
static bool check_bindings(struct inferring *inferring)
{
    const struct onnx_model *model = inferring->input->model;
    for (size_t i = 0; i < inferring->input->binding_count; i++) {
        const struct onnx_binding *binding = &inferring->input->bindings[i];
        bool is_used = false;
        for (uint32_t k = 0; !is_used && k < model->input_count; k++) {
            const struct onnx_port *port = &model->inputs[k];
            for (uint32_t axis = 0; !is_used && axis < port->rank; axis++) {
                is_used =
                    port->dims[axis].value < 0 && binding_of(inferring, port, axis) == binding;
            }
        }
        if (!is_used) {
            return refuse(inferring, ONNX_DIM,
                          "--dim %s: no input has a dim of that name without a number",
                          onnx_label(binding->name).text);
        }
        if (binding->value < 1 || binding->value > ONNX_DIM_MOST) {
            return refuse(inferring, ONNX_DIM, "--dim %s is %lld; it may be 1 to 2^40",
                          onnx_label(binding->name).text, (long long)binding->value);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- nodes and outputs */

/* Refuses operators that are not in the table, and forms of them that an opset does not have. */
static const struct onnx_operator *operator_of(struct onnx_rule *rule)
{
    const struct onnx_node *node = rule->node;
    const struct onnx_operator *known = onnx_operator_named(node->operator);
    const bool is_own = node->domain.size == 0 || onnx_span_is(node->domain, "ai.onnx");
    if (!is_own || known == NULL) {
        (void)onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                              "the operator %s%s%s is not known here",
                              is_own ? "" : onnx_label(node->domain).text, is_own ? "" : ":",
                              onnx_label(node->operator).text);
        return NULL;
    }
    if (node->opset < known->since || (known->until != 0 && node->opset > known->until)) {
        (void)onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT, "opset %lld does not have it",
                              (long long)node->opset);
        return NULL;
    }
    if (node->input_count < known->inputs_least ||
        (known->inputs_most > 0 && node->input_count > known->inputs_most)) {
        (void)onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                              "it has %u inputs, which is not its form", node->input_count);
        return NULL;
    }
    return known;
}

static bool infer_nodes(struct inferring *inferring)
{
    const struct onnx_model *model = inferring->input->model;
    for (uint32_t i = 0; i < model->node_count; i++) {
        struct onnx_rule rule = {.model = model,
                                 .shapes = inferring->shapes,
                                 .node = &model->nodes[i],
                                 .problem = inferring->problem};
        const struct onnx_operator *known = operator_of(&rule);
        if (known == NULL || !known->infer(&rule)) {
            inferring->status = rule.status;
            return false;
        }
    }
    return true;
}

/* Compares an output with the file. Dims that are names stand for any number. */
static bool output_is_right(const struct onnx_port *port, const struct onnx_fact *fact)
{
    bool is_right = !port->has_shape || port->rank == fact->rank;
    for (uint32_t i = 0; is_right && port->has_shape && i < fact->rank; i++) {
        is_right = port->dims[i].value < 0 || port->dims[i].value == fact->dims[i];
    }
    return is_right && (port->type == ONNX_UNDEFINED || port->type == fact->type);
}

static bool check_outputs(struct inferring *inferring)
{
    const struct onnx_model *model = inferring->input->model;
    for (uint32_t i = 0; i < model->output_count; i++) {
        const struct onnx_port *port = &model->outputs[i];
        const struct onnx_fact *fact = &inferring->shapes->facts[port->value];
        if (!fact->is_known || !port->is_tensor) {
            return refuse(inferring, ONNX_UNSUPPORTED, "output \"%s\" is no tensor",
                          onnx_label(port->name).text);
        }
        if (output_is_right(port, fact)) {
            continue;
        }
        struct onnx_fact said = {.type = port->type, .rank = port->rank};
        for (uint32_t k = 0; k < port->rank; k++) {
            said.dims[k] = port->dims[k].value;
        }
        return refuse(
            inferring, ONNX_SHAPE, "the file says that output \"%s\" is %s, and its nodes make %s",
            onnx_label(port->name).text, onnx_shape_text(&said).text, onnx_shape_text(fact).text);
    }
    return true;
}

enum onnx_status onnx_infer(const struct onnx_infer_input *input, struct onnx_shapes **ret_shapes,
                            struct problem *ret_problem)
{
    struct inferring inferring = {.input = input, .problem = ret_problem};
    inferring.shapes = calloc(1, sizeof *inferring.shapes);
    if (inferring.shapes != NULL) {
        inferring.shapes->facts =
            calloc((size_t)input->model->value_count + 1, sizeof *inferring.shapes->facts);
        inferring.shapes->values = calloc(ONNX_VALUES_MOST, sizeof *inferring.shapes->values);
        inferring.shapes->value_capacity = ONNX_VALUES_MOST;
    }
    if (inferring.shapes == NULL || inferring.shapes->facts == NULL ||
        inferring.shapes->values == NULL) {
        (void)refuse(&inferring, ONNX_NO_MEMORY, "there is not enough memory");
    } else {
        (void)(check_bindings(&inferring) && take_known(&inferring) && infer_nodes(&inferring) &&
               check_outputs(&inferring));
    }
    if (inferring.status != ONNX_OK) {
        onnx_shapes_destroy(&inferring.shapes);
        return inferring.status;
    }
    *ret_shapes = inferring.shapes;
    return ONNX_OK;
}
