#include "consumer/model/model_shapes.h"

#include <stdlib.h>
#include <string.h>

static bool give(const struct onnx_model *model, const struct onnx_words_file *input,
                 const struct model_array *array, struct onnx_given *ret_given,
                 struct problem *problem)
{
    uint32_t number = 0;
    while (number < model->input_count &&
           !onnx_span_equals(model->inputs[number].name, input->name)) {
        number++;
    }
    if (number == model->input_count) {
        problem_set(problem, "the model has no input \"%s\"", onnx_label(input->name).text);
        return false;
    }
    /* Its elements are elsewhere, so that no dims are worked out of them. */
    *ret_given = (struct onnx_given){
        .input = number, .tensor = {.type = array->type, .rank = array->rank, .is_external = true}};
    memcpy(ret_given->tensor.dims, array->dims, sizeof array->dims);
    return true;
}

bool model_shapes_find(const struct onnx_model *model, const struct onnx_words *words,
                       const struct model_array *arrays, uint32_t part, uint32_t parts,
                       struct onnx_shapes **ret_shapes, struct problem *ret_problem)
{
    struct onnx_given given[ONNX_WORDS_FILES];
    for (size_t i = 0; i < words->input_count; i++) {
        struct model_array array = arrays[i];
        int64_t first = 0;
        if (words->inputs[i].is_split && parts > 0) {
            onnx_words_rows(array.dims[0], part, parts, &first, &array.dims[0]);
        }
        if (!give(model, &words->inputs[i], &array, &given[i], ret_problem)) {
            return false;
        }
    }
    const struct onnx_infer_input input = {
        .model = model, .given = given, .given_count = words->input_count};
    return onnx_infer(&input, ret_shapes, ret_problem) == ONNX_OK;
}
