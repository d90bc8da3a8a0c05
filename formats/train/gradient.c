#include "formats/train/gradient.h"

#include "formats/train/gradient_internal.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of fields in onnx.proto. */
enum { MODEL_GRAPH = 7, GRAPH_NODE = 1, GRAPH_INITIALIZER = 5 };

struct derivative {
    const char *operator;
    gradient_rule *rule;
};

/* Sorted by name. */
static const struct derivative derivatives[] = {
    {"Abs", gradient_of_abs},
    {"Add", gradient_of_add},
    {"Conv", gradient_of_conv},
    {"Div", gradient_of_div},
    {"Erf", gradient_of_erf},
    {"Exp", gradient_of_exp},
    {"Flatten", gradient_of_view},
    {"Gather", gradient_of_gather},
    {"Gemm", gradient_of_gemm},
    {"GlobalAveragePool", gradient_of_global_average},
    {"Identity", gradient_of_view},
    {"LayerNormalization", gradient_of_layer_norm},
    {"LeakyRelu", gradient_of_leaky_relu},
    {"Log", gradient_of_log},
    {"LogSoftmax", gradient_of_log_softmax},
    {"MatMul", gradient_of_matmul},
    {"Mul", gradient_of_mul},
    {"Neg", gradient_of_neg},
    {"Pow", gradient_of_pow},
    {"Reciprocal", gradient_of_reciprocal},
    {"ReduceMean", gradient_of_reduce_mean},
    {"ReduceSum", gradient_of_reduce_sum},
    {"Relu", gradient_of_relu},
    {"Reshape", gradient_of_view},
    {"Sigmoid", gradient_of_sigmoid},
    {"Softmax", gradient_of_softmax},
    {"Softplus", gradient_of_softplus},
    {"Sqrt", gradient_of_sqrt},
    {"Squeeze", gradient_of_view},
    {"Sub", gradient_of_sub},
    {"Sum", gradient_of_sum},
    {"Tanh", gradient_of_tanh},
    {"Transpose", gradient_of_transpose},
    {"Unsqueeze", gradient_of_view},
};
enum { DERIVATIVES = sizeof derivatives / sizeof derivatives[0] };

static const struct derivative *derivative_of(struct onnx_span operator)
{
    for (size_t i = 0; i < DERIVATIVES; i++) {
        if (onnx_span_is(operator, derivatives[i].operator)) {
            return &derivatives[i];
        }
    }
    return NULL;
}

const char *const *gradient_operators(void)
{
    static const char *names[DERIVATIVES + 1];
    for (size_t i = 0; i < DERIVATIVES; i++) {
        names[i] = derivatives[i].operator;
    }
    return names;
}

/* ---------------------------------------------------------------- which weights */

/* Marks the values on which the loss depends, from the output back. */
static bool *mark_used(const struct onnx_model *model, uint32_t output)
{
    bool *is_used = calloc((size_t)model->value_count + 1, sizeof *is_used);
    if (is_used == NULL) {
        return NULL;
    }
    is_used[output] = true;
    for (uint32_t i = model->node_count; i-- > 0;) {
        const struct onnx_node *node = &model->nodes[i];
        bool has_used = false;
        for (uint32_t k = 0; k < node->output_count; k++) {
            const uint32_t value = model->makes[node->first_output + k];
            has_used = has_used || (value != ONNX_NONE && is_used[value]);
        }
        for (uint32_t k = 0; has_used && k < node->input_count; k++) {
            const uint32_t value = model->uses[node->first_input + k];
            if (value != ONNX_NONE) {
                is_used[value] = true;
            }
        }
    }
    return is_used;
}

/* Returns the value of each initializer; the caller frees it. */
static uint32_t *values_of_weights(const struct onnx_model *model)
{
    uint32_t *value_of = calloc((size_t)model->initializer_count + 1, sizeof *value_of);
    for (uint32_t i = 0; value_of != NULL && i < model->value_count; i++) {
        if (model->values[i].initializer != ONNX_NONE) {
            value_of[model->values[i].initializer] = i;
        }
    }
    return value_of;
}

/* A gradient is there for real numbers alone. */
static bool is_real(const struct deriving *deriving, uint32_t value)
{
    const struct onnx_fact *fact = &deriving->input->shapes->facts[value];
    return fact->is_known && fact->type == ONNX_FLOAT;
}

enum onnx_status gradient_list(const struct onnx_model *model, struct gradient *ret_gradient,
                               struct problem *ret_problem)
{
    struct gradient list = {.weights =
                                calloc((size_t)model->initializer_count + 1, sizeof *list.weights)};
    uint32_t *value_of = values_of_weights(model);
    bool *is_used = model->output_count == 1 ? mark_used(model, model->outputs[0].value) : NULL;
    enum onnx_status status = ONNX_OK;
    if (model->output_count != 1) {
        problem_set(ret_problem, "the model has %u outputs, and a model that is trained has one",
                    model->output_count);
        status = ONNX_UNSUPPORTED;
    } else if (list.weights == NULL || value_of == NULL || is_used == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        status = ONNX_NO_MEMORY;
    }
    for (uint32_t i = 0; status == ONNX_OK && i < model->initializer_count; i++) {
        const struct onnx_tensor *tensor = &model->initializers[i];
        if (!is_used[value_of[i]] || tensor->type != ONNX_FLOAT || tensor->rank == 0) {
            continue;
        }
        list.weights[list.weight_count++] = (struct gradient_weight){
            .initializer = i, .value = value_of[i], .first = list.elements};
        list.elements += tensor->elements; /* each is below 2^46, so that the sum fits */
        if (list.elements > GRADIENT_ELEMENTS_MOST) {
            problem_set(ret_problem, "the model has more than 2^29 weights to train");
            status = ONNX_TOO_LARGE;
        }
    }
    if (status == ONNX_OK && list.elements == 0) {
        problem_set(ret_problem, "the model has no weights of float32 on which its output depends");
        status = ONNX_UNSUPPORTED;
    }
    free(value_of);
    free(is_used);
    if (status != ONNX_OK) {
        gradient_fini(&list);
        return status;
    }
    *ret_gradient = list;
    return ONNX_OK;
}

/* Marks the weights, and what depends on them. */
static void mark_asked(struct deriving *deriving, const struct gradient *gradient)
{
    const struct onnx_model *model = deriving->input->model;
    for (size_t i = 0; i < gradient->weight_count; i++) {
        deriving->is_asked[gradient->weights[i].value] = true;
    }
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        bool is_asked = false;
        for (uint32_t k = 0; k < node->input_count; k++) {
            is_asked = is_asked || gradient_asked(deriving, node, k);
        }
        for (uint32_t k = 0; is_asked && k < node->output_count; k++) {
            const uint32_t value = model->makes[node->first_output + k];
            if (value != ONNX_NONE && is_real(deriving, value)) {
                deriving->is_asked[value] = true;
            }
        }
    }
}

/* ---------------------------------------------------------------- the way there */

/* The trained weights come out of the vector, under their own names. */
static void add_weights(struct deriving *deriving, const struct gradient *gradient)
{
    struct onnx_build *build = &deriving->build;
    const int64_t axis[] = {0};
    for (size_t i = 0; i < gradient->weight_count; i++) {
        const struct onnx_tensor *tensor =
            &deriving->input->model->initializers[gradient->weights[i].initializer];
        const int64_t first[] = {gradient->weights[i].first};
        const int64_t end[] = {gradient->weights[i].first + tensor->elements};
        const struct onnx_ref inputs[] = {
            onnx_build_named(GRADIENT_WEIGHTS), onnx_build_list(build, 1, first),
            onnx_build_list(build, 1, end), onnx_build_list(build, 1, axis)};
        const struct onnx_ref pair[] = {onnx_build_node(build, "Slice", 4, inputs),
                                        onnx_build_list(build, tensor->rank, tensor->dims)};
        onnx_build_begin_named(build, "Reshape", 2, pair, (struct onnx_ref){.name = tensor->name});
        onnx_build_end_node(build);
    }
}

/* Copies the nodes, and the constants that are not trained. */
static bool add_graph(struct deriving *deriving, const struct gradient *gradient)
{
    const struct onnx_model *model = deriving->input->model;
    struct onnx_wire wire = onnx_wire_over(deriving->input->bytes);
    struct onnx_field field;
    struct onnx_span graph = {NULL, 0};
    uint32_t initializer = 0;
    size_t next = 0;
    while (onnx_wire_next(&wire, &field)) {
        graph = field.number == MODEL_GRAPH ? field.bytes : graph;
    }
    wire = onnx_wire_over(graph);
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        const struct onnx_span whole = {at, (size_t)(wire.at - at)};
        if (field.number == GRAPH_NODE) {
            onnx_build_field(&deriving->build, whole);
        } else if (field.number == GRAPH_INITIALIZER) {
            const bool is_trained =
                next < gradient->weight_count && gradient->weights[next].initializer == initializer;
            const struct onnx_tensor *tensor = &model->initializers[initializer++];
            next += is_trained;
            if (!is_trained && tensor->is_external) {
                return gradient_fail(
                    deriving, ONNX_UNSUPPORTED,
                    "\"%s\" lies in another file and is not trained; such constants have "
                    "to be in the model itself",
                    onnx_label(tensor->name).text);
            }
            if (!is_trained) {
                onnx_build_field(&deriving->build, whole);
            }
        }
    }
    return true;
}

static void add_ports(struct deriving *deriving, const struct gradient *gradient,
                      const struct gradient_labels *labels)
{
    const struct onnx_model *model = deriving->input->model;
    struct onnx_build *build = &deriving->build;
    const int64_t elements[] = {gradient->elements};
    const int64_t all[] = {gradient->elements + 2};
    int64_t dims[ONNX_RANK_MOST];
    onnx_build_port(build, true, onnx_build_named(GRADIENT_WEIGHTS), ONNX_FLOAT, 1, elements);
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uint32_t value = model->inputs[i].value;
        const struct onnx_fact *fact = &deriving->input->shapes->facts[value];
        if (model->values[value].initializer == ONNX_NONE) {
            memcpy(dims, fact->dims, sizeof dims);
            dims[0] = -1; /* the rows of a part */
            onnx_build_port(build, true, gradient_ref_of(deriving, value), fact->type, fact->rank,
                            dims);
        }
    }
    memcpy(dims, labels->dims, sizeof dims);
    dims[0] = -1;
    onnx_build_port(build, true, onnx_build_named(GRADIENT_LABELS), labels->type, labels->rank,
                    dims);
    onnx_build_port(build, false, onnx_build_named(GRADIENT_OUTPUT), ONNX_FLOAT, 1, all);
}

/* ---------------------------------------------------------------- the way back */

static bool derive_node(struct deriving *deriving, const struct onnx_node *node)
{
    const struct onnx_model *model = deriving->input->model;
    const struct derivative *derivative = derivative_of(node->operator);
    uint32_t with_gradient = 0;
    bool is_asked = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        is_asked = is_asked || gradient_asked(deriving, node, i);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = model->makes[node->first_output + i];
        if (value != ONNX_NONE && onnx_build_has(deriving->gradients[value])) {
            with_gradient |= 1U << (i < 2 ? i : 2);
        }
    }
    if (with_gradient == 0 || !is_asked) {
        return true; /* the loss does not depend on it, or nothing before it is trained */
    }
    if (derivative == NULL || node->domain.size > 0) {
        return gradient_fault(deriving, node,
                              "has no derivative here, and weights before it would be trained "
                              "through it; docs/train.md lists the operators that have one");
    }
    if (with_gradient != 1) {
        return gradient_fault(deriving, node, "has a derivative for its first output alone");
    }
    return derivative->rule(deriving, node, deriving->gradients[model->makes[node->first_output]]);
}

static bool derive(struct deriving *deriving)
{
    const struct onnx_model *model = deriving->input->model;
    for (uint32_t i = model->node_count; i-- > 0;) {
        if (!derive_node(deriving, &model->nodes[i])) {
            return false;
        }
    }
    return true;
}

/* Puts all gradients, the loss and its count one after the other. */
static bool add_output(struct deriving *deriving, const struct gradient *gradient,
                       const struct gradient_loss *loss)
{
    struct onnx_ref *parts = calloc(gradient->weight_count + 2, sizeof *parts);
    if (parts == NULL) {
        return gradient_fail(deriving, ONNX_NO_MEMORY, "%s", "there is not enough memory");
    }
    bool good = true;
    for (size_t i = 0; good && i < gradient->weight_count; i++) {
        const struct onnx_ref found = deriving->gradients[gradient->weights[i].value];
        const struct onnx_span name =
            deriving->input->model->initializers[gradient->weights[i].initializer].name;
        good = onnx_build_has(found) ||
               gradient_fail(
                   deriving, ONNX_UNSUPPORTED,
                   "the loss depends on \"%s\" only through whole numbers or truth values, so "
                   "that it cannot be trained",
                   onnx_label(name).text);
        parts[i] = good ? gradient_as_list(deriving, found) : found;
    }
    parts[gradient->weight_count] = loss->sum;
    parts[gradient->weight_count + 1] = loss->count;
    if (good) {
        onnx_build_begin_named(&deriving->build, "Concat", gradient->weight_count + 2, parts,
                               onnx_build_named(GRADIENT_OUTPUT));
        onnx_build_integer(&deriving->build, "axis", 0);
        onnx_build_end_node(&deriving->build);
    }
    free(parts);
    return good;
}

/* ---------------------------------------------------------------- all of it */

static bool check_model(struct deriving *deriving)
{
    const struct onnx_model *model = deriving->input->model;
    if (model->opset < GRADIENT_OPSET_LEAST) {
        problem_set(deriving->problem,
                    "the model has opset %lld, and models of opset %d or newer are trained; "
                    "convert it",
                    (long long)model->opset, GRADIENT_OPSET_LEAST);
        deriving->status = ONNX_VERSION;
        return false;
    }
    for (uint32_t i = 0; i < model->value_count; i++) {
        const struct onnx_span name = model->values[i].name;
        const size_t size = sizeof ONNX_BUILD_PREFIX - 1;
        if (name.size >= size && memcmp(name.at, ONNX_BUILD_PREFIX, size) == 0) {
            return gradient_fail(deriving, ONNX_NAME,
                                 "\"%s\": names that begin with " ONNX_BUILD_PREFIX
                                 " are those of the gradient",
                                 onnx_label(name).text);
        }
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uint32_t value = model->inputs[i].value;
        if (model->values[value].initializer == ONNX_NONE &&
            (!deriving->input->shapes->facts[value].is_known ||
             deriving->input->shapes->facts[value].rank == 0)) {
            return gradient_fail(
                deriving, ONNX_SHAPE,
                "the model's input \"%s\" has no rows; its first dim would be that",
                onnx_label(model->inputs[i].name).text);
        }
    }
    return true;
}

static bool make(struct deriving *deriving, struct gradient *gradient)
{
    uint32_t output = 0;
    struct gradient_labels labels;
    deriving->status = gradient_find_output(deriving->input, &output, deriving->problem);
    if (deriving->status != ONNX_OK || !check_model(deriving) ||
        gradient_labels_of(deriving->input, &labels, deriving->problem) != ONNX_OK) {
        return false;
    }
    deriving->status = gradient_list(deriving->input->model, gradient, deriving->problem);
    if (deriving->status != ONNX_OK) {
        return false;
    }
    mark_asked(deriving, gradient);
    add_weights(deriving, gradient);
    if (!add_graph(deriving, gradient)) {
        return false;
    }
    add_ports(deriving, gradient, &labels);
    const struct gradient_loss loss = gradient_add_loss(deriving, output, &labels);
    return derive(deriving) && add_output(deriving, gradient, &loss);
}

enum onnx_status gradient_make(const struct gradient_input *input, struct gradient *ret_gradient,
                               struct problem *ret_problem)
{
    const size_t values = (size_t)input->model->value_count + 1;
    struct gradient gradient = {.bytes = NULL};
    struct deriving deriving = {.input = input,
                                .build = {.opset = input->model->opset},
                                .is_asked = calloc(values, sizeof(bool)),
                                .gradients = calloc(values, sizeof(struct onnx_ref)),
                                .shapes = calloc(values, sizeof(struct onnx_ref)),
                                .problem = ret_problem};
    bool good = deriving.is_asked != NULL && deriving.gradients != NULL &&
                deriving.shapes != NULL && make(&deriving, &gradient) &&
                onnx_build_end(&deriving.build, &gradient.bytes, &gradient.size);
    onnx_build_fini(&deriving.build);
    free(deriving.is_asked);
    free(deriving.gradients);
    free(deriving.shapes);
    if (good) {
        *ret_gradient = gradient;
        return ONNX_OK;
    }
    gradient_fini(&gradient);
    if (deriving.status == ONNX_OK) {
        problem_set(ret_problem, "there is not enough memory");
        deriving.status = ONNX_NO_MEMORY;
    }
    return deriving.status;
}

void gradient_fini(struct gradient *gradient)
{
    free(gradient->bytes);
    free(gradient->weights);
    *gradient = (struct gradient){.bytes = NULL};
}
