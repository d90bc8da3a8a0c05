/* This file has the losses, and which labels they ask for. */
#include "formats/train/gradient_internal.h"

#include <string.h>

enum onnx_status gradient_find_output(const struct gradient_input *input, uint32_t *ret_value,
                                      struct problem *problem)
{
    const struct onnx_model *model = input->model;
    if (model->output_count != 1) {
        problem_set(problem, "the model has %u outputs, and a model that is trained has one",
                    model->output_count);
        return ONNX_UNSUPPORTED;
    }
    uint32_t value = model->outputs[0].value;
    const uint32_t last = model->values[value].node;
    const struct onnx_fact *fact = &input->shapes->facts[value];
    if (last != ONNX_NONE && input->loss == TRAIN_CROSS_ENTROPY &&
        onnx_span_is(model->nodes[last].operator, "Softmax")) {
        const struct onnx_attribute *axis = onnx_attribute_of(model, &model->nodes[last], "axis");
        const bool is_last =
            axis == NULL || axis->integer == -1 || axis->integer == (int64_t)fact->rank - 1;
        value = is_last ? model->uses[model->nodes[last].first_input] : value;
    }
    if (!fact->is_known || fact->type != ONNX_FLOAT) {
        problem_set(problem, "the model's output \"%s\" is no tensor of float32",
                    onnx_label(model->outputs[0].name).text);
        return ONNX_UNSUPPORTED;
    }
    if (fact->rank < (input->loss == TRAIN_CROSS_ENTROPY ? 2 : 1)) {
        problem_set(problem, "the model's output \"%s\" is %s; its first dim is the rows%s",
                    onnx_label(model->outputs[0].name).text, onnx_shape_text(fact).text,
                    input->loss == TRAIN_CROSS_ENTROPY ? ", and its last dim the classes" : "");
        return ONNX_SHAPE;
    }
    *ret_value = value;
    return ONNX_OK;
}

enum onnx_status gradient_labels_of(const struct gradient_input *input,
                                    struct gradient_labels *ret_labels, struct problem *ret_problem)
{
    uint32_t value = 0;
    const enum onnx_status status = gradient_find_output(input, &value, ret_problem);
    if (status != ONNX_OK) {
        return status;
    }
    const struct onnx_fact *fact = &input->shapes->facts[value];
    *ret_labels = (struct gradient_labels){.type = ONNX_FLOAT, .rank = fact->rank};
    memcpy(ret_labels->dims, fact->dims, sizeof ret_labels->dims);
    if (input->loss == TRAIN_CROSS_ENTROPY) {
        ret_labels->rank--;
        ret_labels->type = ONNX_INT64;
        ret_labels->classes = fact->dims[fact->rank - 1];
    }
    return ONNX_OK;
}

/* Makes the marks of the labels: 1 at each label's class, and 0 elsewhere. */
static struct onnx_ref mark_labels(struct deriving *deriving, struct onnx_ref labels,
                                   int64_t classes)
{
    struct onnx_build *build = &deriving->build;
    const int64_t depth[] = {classes};
    const int64_t bits[] = {0, 1};
    const struct onnx_ref values =
        gradient_cast(deriving, onnx_build_list(build, 2, bits), ONNX_FLOAT);
    const struct onnx_ref inputs[] = {labels, onnx_build_list(build, 1, depth), values};
    return onnx_build_node(build, "OneHot", 3, inputs);
}

static struct gradient_loss cross_entropy(struct deriving *deriving, struct onnx_ref y,
                                          struct onnx_ref labels, int64_t classes)
{
    struct onnx_build *build = &deriving->build;
    const struct onnx_ref marks = mark_labels(deriving, labels, classes);
    struct onnx_ref each[2];
    static const char *const operators[] = {"LogSoftmax", "Softmax"};
    for (size_t i = 0; i < 2; i++) {
        each[i] = onnx_build_begin(build, operators[i], 1, &y);
        onnx_build_integer(build, "axis", -1);
        onnx_build_end_node(build);
    }
    const struct onnx_ref chosen = gradient_two(deriving, "Mul", marks, each[0]);
    return (struct gradient_loss){.sum = gradient_one(deriving, "Neg", chosen),
                                  .count = gradient_size_of(deriving, labels),
                                  .gradient = gradient_two(deriving, "Sub", each[1], marks)};
}

static struct gradient_loss squared_error(struct deriving *deriving, struct onnx_ref y,
                                          struct onnx_ref labels)
{
    const struct onnx_ref apart = gradient_two(deriving, "Sub", y, labels);
    return (struct gradient_loss){.sum = gradient_two(deriving, "Mul", apart, apart),
                                  .count = gradient_size_of(deriving, y),
                                  .gradient = gradient_two(deriving, "Add", apart, apart)};
}

struct gradient_loss gradient_add_loss(struct deriving *deriving, uint32_t output,
                                       const struct gradient_labels *labels)
{
    const struct onnx_ref y = gradient_ref_of(deriving, output);
    const struct onnx_ref given = onnx_build_named(GRADIENT_LABELS);
    const struct gradient_loss loss = deriving->input->loss == TRAIN_CROSS_ENTROPY
                                          ? cross_entropy(deriving, y, given, labels->classes)
                                          : squared_error(deriving, y, given);
    const int64_t first[] = {0};
    deriving->gradients[output] = loss.gradient;
    /* One dim, so that the sum over it is that over all elements. */
    return (struct gradient_loss){
        .sum = gradient_sum(deriving, gradient_as_list(deriving, loss.sum), 1, first),
        .count = gradient_as_list(deriving, loss.count)};
}
