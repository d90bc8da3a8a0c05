/* This file runs a graph once. The shapes of a node are made by its rule just before the node runs,
 * with the values that the run has by then. */
#include "provider/onnx/own/own_graph.h"
#include "provider/onnx/own/own_half.h"
#include "provider/onnx/own/own_product.h"
#include "provider/onnx/own/own_weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a TensorProto that holds few reals, for the rules that read some. */
enum { REALS_MOST = 2 * ONNX_RANK_MOST, PROTO_BYTES = 128, PROTOS = 4 };

struct run {
    struct own_graph *graph;
    struct problem *problem;
    enum onnx_status status;
    struct own_tensor *tensors;       /* by value */
    uint32_t *left;                   /* uses to come, by value */
    struct onnx_shapes *shapes;       /* facts of what is made by now */
    const struct own_tensor **inputs; /* of the node at hand */
    struct own_tensor *widened, *outputs;
    uint8_t protos[PROTOS][PROTO_BYTES];
    int64_t work_left;
};

/* ---------------------------------------------------------------- begin and end */

static bool take_room(struct run *run)
{
    const struct own_graph *graph = run->graph;
    const size_t values = (size_t)graph->model->value_count + 1;
    run->tensors = calloc(values, sizeof *run->tensors);
    run->left = calloc(values, sizeof *run->left);
    run->shapes = calloc(1, sizeof *run->shapes);
    run->inputs = calloc((size_t)graph->inputs_most + 1, sizeof(struct own_tensor *));
    run->widened = calloc((size_t)graph->inputs_most + 1, sizeof *run->widened);
    run->outputs = calloc((size_t)graph->outputs_most + 1, sizeof *run->outputs);
    if (run->shapes != NULL) {
        run->shapes->facts = calloc(values, sizeof *run->shapes->facts);
        run->shapes->values = calloc(ONNX_VALUES_MOST, sizeof *run->shapes->values);
        run->shapes->value_capacity = ONNX_VALUES_MOST;
    }
    const bool has_room = run->tensors != NULL && run->left != NULL && run->shapes != NULL &&
                          run->shapes->facts != NULL && run->shapes->values != NULL &&
                          run->inputs != NULL && run->widened != NULL && run->outputs != NULL;
    if (!has_room) {
        problem_set(run->problem, "there is not enough memory");
        run->status = ONNX_NO_MEMORY;
    }
    return has_room;
}

static void give_back(struct run *run)
{
    for (uint32_t i = 0; run->tensors != NULL && i < run->graph->model->value_count; i++) {
        own_tensor_drop(&run->tensors[i]);
    }
    free(run->tensors);
    free(run->left);
    onnx_shapes_destroy(&run->shapes);
    free(run->inputs);
    free(run->widened);
    free(run->outputs);
}

/* Keeps a tensor as a value of the run, with the fact that the rules look at. */
static bool keep(struct run *run, uint32_t value, const struct own_tensor *tensor)
{
    struct onnx_fact *fact = &run->shapes->facts[value];
    if (onnx_shapes_set(fact, tensor->type, tensor->rank, tensor->dims) != ONNX_OK) {
        problem_set(run->problem, "\"%s\" is too large",
                    onnx_label(run->graph->model->values[value].name).text);
        run->status = ONNX_OVERFLOW;
        return false;
    }
    fact->first_value = ONNX_NONE;
    run->tensors[value] = *tensor;
    return true;
}

/* Takes the inputs of the graph and its weights. They are borrowed: nothing of them is freed. */
static bool begin(struct run *run, const struct own_tensor *inputs)
{
    const struct onnx_model *model = run->graph->model;
    memcpy(run->left, run->graph->uses, model->value_count * sizeof *run->left);
    for (uint32_t i = 0; i < model->value_count; i++) {
        const struct onnx_value *value = &model->values[i];
        const struct own_tensor *from = NULL;
        run->shapes->facts[i].first_value = ONNX_NONE;
        if (value->input != ONNX_NONE && inputs[value->input].type != ONNX_UNDEFINED) {
            from = &inputs[value->input];
        } else if (value->initializer != ONNX_NONE) {
            from = &run->graph->weights[value->initializer];
        }
        if (from == NULL || from->type == ONNX_UNDEFINED) {
            continue; /* a node makes it, or nobody uses it */
        }
        struct own_tensor borrowed = *from;
        borrowed.block = NULL;
        borrowed.to = NULL;
        if (!keep(run, i, &borrowed)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- what a rule may look at */

static void put(uint8_t *proto, size_t *size, const void *bytes, size_t count)
{
    assert(*size + count <= PROTO_BYTES);
    memcpy(proto + *size, bytes, count);
    *size += count;
}

/* Writes a small tensor of float32 as the TensorProto that rules read. */
static struct onnx_span proto_of(const struct own_tensor *tensor, uint8_t *proto)
{
    enum { DIMS = 0x08, DATA_TYPE = 0x10, RAW_DATA = 0x4a };
    size_t size = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const uint8_t dim[] = {DIMS, (uint8_t)tensor->dims[i]};
        put(proto, &size, dim, sizeof dim);
    }
    const uint8_t type[] = {DATA_TYPE, ONNX_FLOAT};
    const uint8_t raw[] = {RAW_DATA, (uint8_t)tensor->bytes};
    put(proto, &size, type, sizeof type);
    put(proto, &size, raw, sizeof raw);
    put(proto, &size, tensor->at, (size_t)tensor->bytes);
    return (struct onnx_span){proto, size};
}

/* Shows a rule the values of one input, if they are few. */
static bool show(struct run *run, const struct own_operator *known, uint32_t input, uint32_t value)
{
    const struct own_tensor *tensor = &run->tensors[value];
    struct onnx_fact *fact = &run->shapes->facts[value];
    int64_t values[ONNX_VALUES_MOST];
    fact->first_value = ONNX_NONE;
    fact->tensor = (struct onnx_span){NULL, 0};
    if (onnx_type_is_integer(tensor->type) && tensor->elements <= ONNX_VALUES_MOST) {
        for (int64_t i = 0; i < tensor->elements; i++) {
            values[i] = own_integer_at(tensor, i);
        }
        return onnx_shapes_keep(run->shapes, fact, values);
    }
    const bool is_real = (known->flags & OWN_READS_REALS) != 0 && tensor->type == ONNX_FLOAT &&
                         tensor->elements <= REALS_MOST && tensor->rank <= 1;
    if (is_real && input < PROTOS) {
        fact->tensor = proto_of(tensor, run->protos[input]);
    }
    return true;
}

/* Shows a rule all inputs of a node, or hides them again. */
static bool show_inputs(struct run *run, const struct onnx_node *node,
                        const struct own_operator *known, bool shows)
{
    run->shapes->value_count = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = run->graph->model->uses[node->first_input + i];
        if (value == ONNX_NONE) {
            continue;
        }
        struct onnx_fact *fact = &run->shapes->facts[value];
        if (!shows) {
            fact->first_value = ONNX_NONE;
            fact->tensor = (struct onnx_span){NULL, 0};
        } else if (run->tensors[value].type != ONNX_UNDEFINED && !show(run, known, i, value)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- inputs and outputs of a node */

/* Sets the call's inputs. Halves are widened where the operator computes in float32. */
static bool take_inputs(struct run *run, struct own_call *call, const struct own_operator *known)
{
    const struct onnx_node *node = call->rule.node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = run->graph->model->uses[node->first_input + i];
        const struct own_tensor *from = value != ONNX_NONE ? &run->tensors[value] : NULL;
        run->inputs[i] = from;
        if (from == NULL || !own_type_is_half(from->type) || (known->flags & OWN_BY_FLOAT) == 0) {
            continue;
        }
        struct own_tensor *wide = &run->widened[i];
        *wide = *from;
        wide->block = NULL;
        wide->type = ONNX_FLOAT;
        wide->bytes = from->elements * (int64_t)sizeof(float);
        if (!own_tensor_take(&run->graph->memory, wide)) {
            wide->type = ONNX_UNDEFINED;
            return own_no_memory(call, wide->bytes);
        }
        own_halves_widen(from->type, from->elements, from->at, wide->to);
        run->inputs[i] = wide;
    }
    return true;
}

/* Makes one output by its fact, with memory unless it is a view. */
static bool make_output(struct run *run, struct own_call *call, const struct own_operator *known,
                        uint32_t output, uint32_t value)
{
    const struct onnx_fact *fact = &run->shapes->facts[value];
    struct own_tensor *tensor = &run->outputs[output];
    if (!fact->is_known || !own_type_is_held(fact->type)) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "output %u is not made here", output);
    }
    const bool is_wide = own_type_is_half(fact->type) && (known->flags & OWN_BY_FLOAT) != 0;
    *tensor = (struct own_tensor){
        .type = is_wide ? ONNX_FLOAT : fact->type, .rank = fact->rank, .elements = fact->elements};
    tensor->bytes = fact->elements * onnx_type_bytes(tensor->type);
    memcpy(tensor->dims, fact->dims, sizeof tensor->dims);
    if (output == 0 && (known->flags & OWN_IS_VIEW) != 0) {
        return true;
    }
    return own_tensor_take(&run->graph->memory, tensor) ? true : own_no_memory(call, tensor->bytes);
}

static bool make_outputs(struct run *run, struct own_call *call, const struct own_operator *known)
{
    const struct onnx_node *node = call->rule.node;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = run->graph->model->makes[node->first_output + i];
        if (value != ONNX_NONE && !make_output(run, call, known, i, value)) {
            return false;
        }
    }
    return true;
}

/* Rounds an output that was computed as float32 to the type that it should have. */
static bool narrow(struct run *run, struct own_call *call, enum onnx_type type,
                   struct own_tensor *tensor)
{
    struct own_tensor half = *tensor;
    half.block = NULL;
    half.type = type;
    half.bytes = half.elements * onnx_type_bytes(type);
    if (!own_tensor_take(&run->graph->memory, &half)) {
        return own_no_memory(call, half.bytes);
    }
    own_halves_narrow(type, half.elements, tensor->at, half.to);
    own_tensor_drop(tensor);
    *tensor = half;
    return true;
}

/* Keeps the outputs that somebody wants as values of the run. */
static bool keep_outputs(struct run *run, struct own_call *call)
{
    const struct onnx_node *node = call->rule.node;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = run->graph->model->makes[node->first_output + i];
        struct own_tensor *tensor = &run->outputs[i];
        if (value == ONNX_NONE) {
            continue;
        }
        const enum onnx_type type = run->shapes->facts[value].type;
        if (tensor->type != type && !narrow(run, call, type, tensor)) {
            return false;
        }
        tensor->to = NULL;
        if (run->left[value] == 0) {
            own_tensor_drop(tensor);
            continue;
        }
        struct own_tensor kept = *tensor;
        *tensor = (struct own_tensor){.type = ONNX_UNDEFINED};
        if (!keep(run, value, &kept)) {
            own_tensor_drop(&kept);
            return false;
        }
    }
    return true;
}

/* Gives up the inputs that nobody uses any more. */
static void drop_inputs(struct run *run, const struct onnx_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = run->graph->model->uses[node->first_input + i];
        if (value == ONNX_NONE) {
            continue;
        }
        assert(run->left[value] > 0);
        run->left[value]--;
        if (run->left[value] == 0) {
            own_tensor_drop(&run->tensors[value]);
        }
    }
}

/* ---------------------------------------------------------------- nodes */

static bool type_is_known(struct own_call *call, const struct own_operator *known)
{
    const struct own_tensor *x = own_input(call, 0);
    if (known->types == 0 || (x != NULL && (known->types >> x->type & 1U) != 0)) {
        return true;
    }
    return own_fault(call, ONNX_OPERATOR, x != NULL ? 0 : ONNX_NO_INPUT,
                     "%s of %s is not computed here", known->name,
                     x != NULL ? onnx_type_name(x->type) : "nothing");
}

/* A rule has looked for an input that it needs. One without a value is no tensor, or was never
 * given. */
static bool inputs_are_there(struct run *run, struct own_call *call)
{
    for (uint32_t i = 0; i < call->rule.node->input_count; i++) {
        const uint32_t value = run->graph->model->uses[call->rule.node->first_input + i];
        if (value != ONNX_NONE && run->tensors[value].type == ONNX_UNDEFINED) {
            return own_fault(call, ONNX_UNSUPPORTED, ONNX_NO_INPUT, "input %u has no value", i);
        }
    }
    return true;
}

/* Nothing has to be computed for outputs without elements. */
static bool is_empty(const struct own_call *call, const struct own_operator *known)
{
    bool is_empty = (known->flags & OWN_IS_VIEW) == 0;
    for (uint32_t i = 0; is_empty && i < call->output_count; i++) {
        is_empty = call->outputs[i].type == ONNX_UNDEFINED || call->outputs[i].elements == 0;
    }
    return is_empty;
}

static bool compute(struct run *run, struct own_call *call, const struct own_operator *known)
{
    const struct onnx_operator *rule = onnx_operator_named(call->rule.node->operator);
    return inputs_are_there(run, call) && take_inputs(run, call, known) &&
           type_is_known(call, known) &&
           (known->shape != NULL ? known->shape(call) : rule->infer(&call->rule)) &&
           make_outputs(run, call, known) && (is_empty(call, known) || known->run(call)) &&
           keep_outputs(run, call);
}

static bool run_node(struct run *run, uint32_t index)
{
    const struct onnx_node *node = &run->graph->model->nodes[index];
    const struct own_operator *known = run->graph->operators[index];
    struct own_call call = {.rule = {.model = run->graph->model,
                                     .shapes = run->shapes,
                                     .node = node,
                                     .problem = run->problem},
                            .kind = known->kind,
                            .inputs = run->inputs,
                            .input_count = node->input_count,
                            .outputs = run->outputs,
                            .output_count = node->output_count,
                            .memory = &run->graph->memory,
                            .threads = run->graph->threads,
                            .work_left = &run->work_left};
    bool is_done = show_inputs(run, node, known, true);
    if (!is_done) {
        (void)own_fault(&call, ONNX_NO_MEMORY, ONNX_NO_INPUT, "there is not enough memory");
    }
    is_done = is_done && compute(run, &call, known);
    (void)show_inputs(run, node, known, false); /* hiding does not fail */
    for (uint32_t i = 0; i < node->input_count; i++) {
        own_tensor_drop(&run->widened[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        own_tensor_drop(&run->outputs[i]); /* none is left after success */
    }
    run->status = is_done ? run->status : call.rule.status;
    if (is_done) {
        drop_inputs(run, node);
    }
    return is_done;
}

/* ---------------------------------------------------------------- outputs of the graph */

/* Compares an output with what the file says of it. */
static bool port_is_right(const struct onnx_port *port, const struct own_tensor *tensor)
{
    bool is_right = (port->type == ONNX_UNDEFINED || port->type == tensor->type) &&
                    (!port->has_shape || port->rank == tensor->rank);
    for (uint32_t i = 0; is_right && port->has_shape && i < port->rank; i++) {
        is_right = port->dims[i].value < 0 || port->dims[i].value == tensor->dims[i];
    }
    return is_right;
}

/* Gives an output to the caller, as a copy where its bytes are not in a block of the run. */
static bool hand_out(struct run *run, const struct onnx_port *port, struct own_tensor *ret_tensor)
{
    const struct own_tensor *from = &run->tensors[port->value];
    struct own_tensor tensor = *from;
    if (from->type == ONNX_UNDEFINED || !port_is_right(port, from)) {
        problem_set(run->problem, "output \"%s\" is not what the file says: the nodes make %s",
                    onnx_label(port->name).text,
                    onnx_shape_text(&run->shapes->facts[port->value]).text);
        run->status = ONNX_SHAPE;
        return false;
    }
    tensor.block = NULL;
    if (from->block != NULL) {
        own_tensor_share(&tensor, from);
    } else if (!own_tensor_take(&run->graph->memory, &tensor)) {
        problem_set(run->problem, "output \"%s\" needs %lld bytes, and the bound is %lld",
                    onnx_label(port->name).text, (long long)from->bytes,
                    (long long)run->graph->memory.limit);
        run->status = ONNX_NO_MEMORY;
        return false;
    } else if (from->bytes > 0) {
        memcpy(tensor.to, from->at, (size_t)from->bytes);
    }
    tensor.to = NULL;
    *ret_tensor = tensor;
    return true;
}

static bool hand_out_all(struct run *run, struct own_tensor *ret_outputs)
{
    const struct onnx_model *model = run->graph->model;
    uint32_t made = 0;
    while (made < model->output_count && hand_out(run, &model->outputs[made], &ret_outputs[made])) {
        made++;
    }
    const bool is_done = made == model->output_count;
    while (!is_done && made > 0) {
        own_tensor_drop(&ret_outputs[--made]);
    }
    return is_done;
}

enum onnx_status own_graph_run(struct own_graph *graph, const struct own_tensor *inputs,
                               struct own_tensor *ret_outputs, struct problem *ret_problem)
{
    struct run run = {.graph = graph, .problem = ret_problem, .work_left = graph->work_most};
    own_product_threads(graph->threads);
    bool is_done = take_room(&run) && begin(&run, inputs);
    for (uint32_t i = 0; is_done && i < graph->model->node_count; i++) {
        is_done = run_node(&run, i);
    }
    is_done = is_done && hand_out_all(&run, ret_outputs);
    give_back(&run);
    assert(is_done == (run.status == ONNX_OK));
    return run.status;
}
