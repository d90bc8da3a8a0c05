#include "provider/onnx/own/own_engine.h"

#include "provider/onnx/own/own_graph.h"
#include "provider/onnx/own/own_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ports {
    struct onnx_engine_port *items;
    uint32_t *places; /* of each port among the model's inputs or outputs */
    size_t count;
};

struct session {
    struct own_graph *graph;
    struct ports inputs, outputs;
};

/* ---------------------------------------------------------------- statuses */

static enum onnx_engine_status status_of(enum onnx_status status, bool opens)
{
    switch (status) {
    case ONNX_OK:
        return ONNX_ENGINE_OK;
    case ONNX_NO_MEMORY:
        return ONNX_ENGINE_MEMORY;
    case ONNX_VERSION:
    case ONNX_UNSUPPORTED:
    case ONNX_OPERATOR:
    case ONNX_DYNAMIC:
        return ONNX_ENGINE_UNSUPPORTED;
    default:
        return opens ? ONNX_ENGINE_MODEL : ONNX_ENGINE_FAILED;
    }
}

/* ---------------------------------------------------------------- ports */

static void ports_fini(struct ports *ports)
{
    for (size_t i = 0; i < ports->count; i++) {
        free((char *)ports->items[i].name);
    }
    free(ports->items);
    free(ports->places);
    *ports = (struct ports){NULL, NULL, 0};
}

static enum onnx_engine_status add_port(struct ports *ports, const struct onnx_port *from,
                                        uint32_t place, const char *kind, struct problem *problem)
{
    struct onnx_engine_port *port = &ports->items[ports->count];
    if (!from->is_tensor || !own_type_is_held(from->type)) {
        problem_set(problem, "%s \"%s\" is no tensor of numbers", kind,
                    onnx_label(from->name).text);
        return ONNX_ENGINE_UNSUPPORTED;
    }
    char *name = calloc(from->name.size + 1, 1);
    if (name == NULL) {
        problem_set(problem, "there is not enough memory");
        return ONNX_ENGINE_MEMORY;
    }
    memcpy(name, from->name.at, from->name.size);
    *port = (struct onnx_engine_port){
        .name = name, .type = from->type, .has_shape = from->has_shape, .rank = from->rank};
    for (uint32_t i = 0; i < from->rank; i++) {
        port->dims[i] = from->dims[i].value;
    }
    ports->places[ports->count++] = place;
    return ONNX_ENGINE_OK;
}

/* Lists ports of the model. Inputs that are weights as well have a default, and are left out. */
static enum onnx_engine_status list_ports(const struct onnx_model *model,
                                          const struct onnx_port *list, uint32_t count,
                                          const char *kind, struct ports *ports,
                                          struct problem *problem)
{
    ports->items = calloc((size_t)count + 1, sizeof *ports->items);
    ports->places = calloc((size_t)count + 1, sizeof *ports->places);
    if (ports->items == NULL || ports->places == NULL) {
        problem_set(problem, "there is not enough memory");
        return ONNX_ENGINE_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool is_input = list == model->inputs;
        if (is_input && model->values[list[i].value].initializer != ONNX_NONE) {
            continue;
        }
        const enum onnx_engine_status status = add_port(ports, &list[i], i, kind, problem);
        if (status != ONNX_ENGINE_OK) {
            return status;
        }
    }
    if (ports->count > ONNX_ENGINE_PORTS_MOST) {
        problem_set(problem, "the model has %zu of \"%s\", and at most %d are known here",
                    ports->count, kind, ONNX_ENGINE_PORTS_MOST);
        return ONNX_ENGINE_UNSUPPORTED;
    }
    return ONNX_ENGINE_OK;
}

/* ---------------------------------------------------------------- the session */

static void engine_close(void **session)
{
    struct session *self = *session;
    if (self != NULL) {
        ports_fini(&self->inputs);
        ports_fini(&self->outputs);
        own_graph_close(&self->graph);
        free(self);
        *session = NULL;
    }
}

static enum onnx_engine_status open_parts(const struct onnx_engine_model *model,
                                          struct session *self, struct problem *problem)
{
    const struct own_graph_input input = {
        .bytes = model->bytes,
        .size = model->size,
        .folder = model->folder,
        .threads = model->threads,
        .memory_bytes = model->memory_bytes > INT64_MAX ? INT64_MAX : (int64_t)model->memory_bytes};
    const enum onnx_status status = own_graph_open(&input, &self->graph, problem);
    if (status != ONNX_OK) {
        return status_of(status, true);
    }
    const struct onnx_model *read = self->graph->model;
    const enum onnx_engine_status listed =
        list_ports(read, read->inputs, read->input_count, "input", &self->inputs, problem);
    return listed != ONNX_ENGINE_OK ? listed
                                    : list_ports(read, read->outputs, read->output_count, "output",
                                                 &self->outputs, problem);
}

static enum onnx_engine_status engine_open(void *context, const struct onnx_engine_model *model,
                                           void **ret_session, struct problem *ret_problem)
{
    void *session = calloc(1, sizeof(struct session));
    (void)context; /* this engine has none */
    if (session == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        return ONNX_ENGINE_MEMORY;
    }
    const enum onnx_engine_status status = open_parts(model, session, ret_problem);
    if (status != ONNX_ENGINE_OK) {
        engine_close(&session);
        return status;
    }
    *ret_session = session;
    return ONNX_ENGINE_OK;
}

static struct onnx_engine_ports engine_inputs(const void *session)
{
    const struct session *self = session;
    return (struct onnx_engine_ports){self->inputs.items, self->inputs.count};
}

static struct onnx_engine_ports engine_outputs(const void *session)
{
    const struct session *self = session;
    return (struct onnx_engine_ports){self->outputs.items, self->outputs.count};
}

/* ---------------------------------------------------------------- runs */

static struct own_tensor tensor_of(const struct onnx_array *array)
{
    struct own_tensor tensor = {.type = array->type,
                                .rank = array->rank,
                                .elements = array->elements,
                                .bytes = (int64_t)array->size,
                                .at = array->bytes};
    memcpy(tensor.dims, array->dims, sizeof tensor.dims);
    return tensor;
}

static void release(void *block)
{
    own_block_release(block);
}

/* The array takes over the tensor's block. */
static struct onnx_array array_of(const struct own_tensor *tensor)
{
    struct onnx_array array = {.type = tensor->type,
                               .rank = tensor->rank,
                               .elements = tensor->elements,
                               .size = (uint64_t)tensor->bytes,
                               .bytes = own_block_bytes(tensor->block),
                               .release = release,
                               .owner = tensor->block};
    memcpy(array.dims, tensor->dims, sizeof array.dims);
    return array;
}

static enum onnx_engine_status run_with(struct session *self, const struct onnx_array *inputs,
                                        struct own_tensor *tensors, struct own_tensor *made,
                                        struct onnx_array *ret_outputs, struct problem *problem)
{
    for (size_t i = 0; i < self->inputs.count; i++) {
        if (!onnx_engine_fit(&self->inputs.items[i], &inputs[i], problem)) {
            return ONNX_ENGINE_INPUT;
        }
        tensors[self->inputs.places[i]] = tensor_of(&inputs[i]);
    }
    const enum onnx_status status = own_graph_run(self->graph, tensors, made, problem);
    for (size_t i = 0; status == ONNX_OK && i < self->outputs.count; i++) {
        ret_outputs[i] = array_of(&made[i]);
    }
    return status_of(status, false);
}

static enum onnx_engine_status engine_run(void *session, const struct onnx_array *inputs,
                                          struct onnx_array *ret_outputs,
                                          struct problem *ret_problem)
{
    struct session *self = session;
    const struct onnx_model *model = self->graph->model;
    struct own_tensor *tensors = calloc((size_t)model->input_count + 1, sizeof *tensors);
    struct own_tensor *made = calloc((size_t)model->output_count + 1, sizeof *made);
    enum onnx_engine_status status = ONNX_ENGINE_MEMORY;
    if (tensors != NULL && made != NULL) {
        status = run_with(self, inputs, tensors, made, ret_outputs, ret_problem);
    } else {
        problem_set(ret_problem, "there is not enough memory");
    }
    free(tensors);
    free(made);
    return status;
}

void own_engine_make(struct onnx_engine *ret_engine)
{
    *ret_engine = (struct onnx_engine){.open = engine_open,
                                       .inputs = engine_inputs,
                                       .outputs = engine_outputs,
                                       .run = engine_run,
                                       .close = engine_close};
    (void)snprintf(ret_engine->name, sizeof ret_engine->name, "%s", OWN_ENGINE_NAME);
}
