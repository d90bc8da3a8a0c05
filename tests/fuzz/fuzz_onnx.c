/* ONNX models: what is read refers to itself alone; what is inferred has shapes whose figures fit;
 * what is counted becomes steps that flow forward and hold all weights; and stages are models. */
#include "consumer/model/model_cut.h"
#include "consumer/model/model_steps.h"
#include "formats/onnx/onnx_cut.h"
#include "formats/onnx/onnx_infer.h"
#include "formats/onnx/onnx_interface.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS_BOUND = 16, DIM = 3, STAGE_BOUND = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_model(const struct onnx_model *model)
{
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        assert(node->first_input + node->input_count <= model->use_count);
        assert(node->first_output + node->output_count <= model->make_count);
        assert(node->first_attribute + node->attribute_count <= model->attribute_count);
        for (uint32_t k = 0; k < node->input_count; k++) {
            const uint32_t value = model->uses[node->first_input + k];
            assert(value == ONNX_NONE || value < model->value_count);
            assert(value == ONNX_NONE || model->values[value].node == ONNX_NONE ||
                   model->values[value].node < i);
        }
    }
    for (uint32_t i = 0; i < model->initializer_count; i++) {
        assert(model->initializers[i].bytes >= 0 && model->initializers[i].rank <= ONNX_RANK_MOST);
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        assert(model->outputs[i].value < model->value_count);
    }
}

/* Binds each dim of the inputs that is a name, once. */
static size_t bind_dims(const struct onnx_model *model, struct onnx_binding *bindings)
{
    size_t count = 0;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct onnx_port *port = &model->inputs[i];
        for (uint32_t k = 0; k < port->rank && count < DIMS_BOUND; k++) {
            bool is_new = port->dims[k].value < 0 && port->dims[k].name.size > 0;
            for (size_t b = 0; is_new && b < count; b++) {
                is_new = !onnx_span_equals(bindings[b].name, port->dims[k].name);
            }
            if (is_new) {
                bindings[count++] = (struct onnx_binding){port->dims[k].name, DIM};
            }
        }
    }
    return count;
}

static void check_shapes(const struct onnx_model *model, const struct onnx_shapes *shapes)
{
    for (uint32_t i = 0; i < model->value_count; i++) {
        const struct onnx_fact *fact = &shapes->facts[i];
        int64_t elements = 1;
        if (!fact->is_known) {
            continue;
        }
        assert(fact->rank <= ONNX_RANK_MOST && fact->bytes >= 0 &&
               fact->bytes <= ONNX_TENSOR_BYTES);
        for (uint32_t k = 0; k < fact->rank; k++) {
            assert(fact->dims[k] >= 0 && fact->dims[k] <= ONNX_DIM_MOST);
            elements *= fact->dims[k];
        }
        assert(elements == fact->elements);
        assert(fact->first_value == ONNX_NONE ||
               fact->first_value + (size_t)fact->elements <= shapes->value_count);
    }
}

static void check_plan(const struct onnx_model *model, const struct onnx_shapes *shapes)
{
    struct model_plan *plan = NULL;
    struct problem problem = {""};
    if (model_plan_make(model, shapes, &plan, &problem) != STEPS_OK) {
        assert(problem.text[0] != '\0');
        return;
    }
    assert(plan->steps->step_count >= 1 && plan->steps->step_count <= MODEL_STEPS_MOST);
    for (size_t i = 0; i < plan->steps->edge_count; i++) {
        assert(plan->steps->edges[i].from < plan->steps->edges[i].to);
        assert(plan->steps->edges[i].to < plan->steps->step_count);
    }
    model_plan_destroy(&plan);
}

/* Weights in other files are zeros. */
static bool read_zeros(void *context, struct onnx_span path, uint64_t offset, size_t length,
                       uint8_t *ret_bytes)
{
    (void)context;
    (void)path;
    (void)offset;
    memset(ret_bytes, 0, length);
    return true;
}

/* A stage is a model that can be read, with the nodes that it was given. */
static void check_stage(const struct onnx_stage *stage)
{
    struct onnx_model *model = NULL;
    uint8_t *bytes = stage->size <= STAGE_BOUND ? malloc(stage->size + 1) : NULL;
    if (bytes == NULL) {
        return;
    }
    assert(onnx_cut_read(stage, 0, stage->size, read_zeros, NULL, bytes));
    assert(onnx_read(bytes, stage->size, &model, NULL) == ONNX_OK);
    assert(model->output_count >= 1);
    onnx_destroy(&model);
    free(bytes);
}

static void check_cut(const uint8_t *data, size_t size, const struct onnx_model *model,
                      const struct onnx_shapes *shapes, uint32_t stages)
{
    struct model_cut choice;
    struct onnx_cut *cut = NULL;
    struct problem problem = {""};
    if (!model_cut_choose(model, shapes, stages, &choice, &problem)) {
        assert(problem.text[0] != '\0');
        return;
    }
    const struct onnx_cut_input input = {.bytes = {data, size},
                                         .model = model,
                                         .shapes = shapes,
                                         .stage_of = choice.stage_of,
                                         .stage_count = stages};
    if (onnx_cut_make(&input, &cut, &problem) == ONNX_OK) {
        for (uint32_t i = 0; i < stages; i++) {
            check_stage(&cut->stages[i]);
        }
    } else {
        assert(problem.text[0] != '\0');
    }
    onnx_cut_destroy(&cut);
    model_cut_fini(&choice);
}

static bool is_within(struct onnx_span span, const uint8_t *data, size_t size)
{
    return span.size == 0 || (span.at >= data && span.size <= size - (size_t)(span.at - data));
}

/* The interface is read of every model that is read whole, and lies in the model's bytes. */
static void check_interface(const uint8_t *data, size_t size, const struct onnx_model *model)
{
    static struct onnx_interface interface;
    struct problem problem = {""};
    const enum onnx_status status = onnx_interface_read(data, size, &interface, &problem);
    assert((status == ONNX_OK) == (problem.text[0] == '\0'));
    for (size_t i = 0; status == ONNX_OK && i < interface.input_count; i++) {
        assert(is_within(interface.inputs[i].name, data, size));
        assert(interface.inputs[i].rank <= ONNX_RANK_MOST);
    }
    for (size_t i = 0; status == ONNX_OK && i < interface.file_count; i++) {
        assert(is_within(interface.files[i].path, data, size) && interface.files[i].end >= 0);
    }
    assert(model == NULL || status != ONNX_OK || interface.output_count == model->output_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onnx_model *model = NULL;
    struct onnx_shapes *shapes = NULL;
    struct onnx_binding bindings[DIMS_BOUND];
    struct problem problem = {""};
    if (onnx_read(data, size, &model, &problem) != ONNX_OK) {
        assert(model == NULL && problem.text[0] != '\0');
        check_interface(data, size, NULL);
        return 0;
    }
    check_interface(data, size, model);
    check_model(model);
    const struct onnx_infer_input input = {
        .model = model, .bindings = bindings, .binding_count = bind_dims(model, bindings)};
    if (onnx_infer(&input, &shapes, &problem) == ONNX_OK) {
        check_shapes(model, shapes);
        check_plan(model, shapes);
        check_cut(data, size, model, shapes, 1);
        check_cut(data, size, model, shapes, 3);
    } else {
        assert(problem.text[0] != '\0');
    }
    onnx_shapes_destroy(&shapes);
    onnx_destroy(&model);
    return 0;
}
