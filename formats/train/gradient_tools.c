/* This file has what the derivatives of operators share. */
#include "formats/train/gradient_internal.h"

#include <stdarg.h>
#include <stdio.h>

bool gradient_fault(struct deriving *deriving, const struct onnx_node *node, const char *format,
                    ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    problem_set(deriving->problem, "node \"%s\": %s %s",
                onnx_node_label(deriving->input->model, node).text, onnx_label(node->operator).text,
                what);
    deriving->status = ONNX_OPERATOR;
    return false;
}

bool gradient_fail(struct deriving *deriving, enum onnx_status status, const char *format,
                   const char *name)
{
    problem_set(deriving->problem, format, name);
    deriving->status = status;
    return false;
}

/* ---------------------------------------------------------------- what derivatives share */

uint32_t gradient_value(const struct deriving *deriving, const struct onnx_node *node,
                        uint32_t input)
{
    return input < node->input_count ? deriving->input->model->uses[node->first_input + input]
                                     : ONNX_NONE;
}

struct onnx_ref gradient_ref_of(const struct deriving *deriving, uint32_t value)
{
    return (struct onnx_ref){.name = deriving->input->model->values[value].name};
}

struct onnx_ref gradient_in(const struct deriving *deriving, const struct onnx_node *node,
                            uint32_t input)
{
    return gradient_ref_of(deriving, gradient_value(deriving, node, input));
}

static uint32_t value_out(const struct deriving *deriving, const struct onnx_node *node)
{
    return deriving->input->model->makes[node->first_output];
}

struct onnx_ref gradient_out(const struct deriving *deriving, const struct onnx_node *node)
{
    return gradient_ref_of(deriving, value_out(deriving, node));
}

const struct onnx_fact *gradient_fact(const struct deriving *deriving, const struct onnx_node *node,
                                      uint32_t input)
{
    return &deriving->input->shapes->facts[gradient_value(deriving, node, input)];
}

const struct onnx_fact *gradient_fact_out(const struct deriving *deriving,
                                          const struct onnx_node *node)
{
    return &deriving->input->shapes->facts[value_out(deriving, node)];
}

bool gradient_asked(const struct deriving *deriving, const struct onnx_node *node, uint32_t input)
{
    const uint32_t value = gradient_value(deriving, node, input);
    return value != ONNX_NONE && deriving->is_asked[value];
}

struct onnx_ref gradient_one(struct deriving *deriving, const char *operator, struct onnx_ref a)
{
    return onnx_build_node(&deriving->build, operator, 1, &a);
}

struct onnx_ref gradient_two(struct deriving *deriving, const char *operator, struct onnx_ref a,
                             struct onnx_ref b)
{
    const struct onnx_ref inputs[] = {a, b};
    return onnx_build_node(&deriving->build, operator, 2, inputs);
}

void gradient_add(struct deriving *deriving, const struct onnx_node *node, uint32_t input,
                  struct onnx_ref gradient)
{
    if (!gradient_asked(deriving, node, input)) {
        return;
    }
    struct onnx_ref *sum = &deriving->gradients[gradient_value(deriving, node, input)];
    *sum = onnx_build_has(*sum) ? gradient_two(deriving, "Add", *sum, gradient) : gradient;
}

struct onnx_ref gradient_dims_of(struct deriving *deriving, const struct onnx_node *node,
                                 uint32_t input)
{
    const uint32_t value = gradient_value(deriving, node, input);
    struct onnx_ref *dims = &deriving->shapes[value];
    if (!onnx_build_has(*dims)) {
        *dims = gradient_one(deriving, "Shape", gradient_ref_of(deriving, value));
    }
    return *dims;
}

struct onnx_ref gradient_sum(struct deriving *deriving, struct onnx_ref from, size_t count,
                             const int64_t *axes)
{
    const struct onnx_ref inputs[] = {from, onnx_build_list(&deriving->build, count, axes)};
    const struct onnx_ref output = onnx_build_begin(&deriving->build, "ReduceSum", 2, inputs);
    onnx_build_integer(&deriving->build, "keepdims", 1);
    onnx_build_end_node(&deriving->build);
    return output;
}

void gradient_add_summed(struct deriving *deriving, const struct onnx_node *node, uint32_t input,
                         struct onnx_ref gradient)
{
    int64_t axes[ONNX_RANK_MOST];
    size_t count = 0;
    if (!gradient_asked(deriving, node, input)) {
        return;
    }
    const struct onnx_fact *fact = gradient_fact(deriving, node, input);
    const struct onnx_fact *out = gradient_fact_out(deriving, node);
    const uint32_t padding = out->rank - fact->rank;
    for (uint32_t i = 0; i < out->rank; i++) {
        if (i < padding || (fact->dims[i - padding] == 1 && out->dims[i] != 1)) {
            axes[count++] = i;
        }
    }
    if (count > 0) {
        gradient = gradient_sum(deriving, gradient, count, axes);
    }
    if (padding > 0) {
        gradient =
            gradient_two(deriving, "Reshape", gradient, gradient_dims_of(deriving, node, input));
    }
    gradient_add(deriving, node, input, gradient);
}

struct onnx_ref gradient_turned(struct deriving *deriving, struct onnx_ref from, uint32_t rank,
                                const int64_t *order)
{
    const struct onnx_ref output = onnx_build_begin(&deriving->build, "Transpose", 1, &from);
    onnx_build_integers(&deriving->build, "perm", rank, order);
    onnx_build_end_node(&deriving->build);
    return output;
}

struct onnx_ref gradient_cast(struct deriving *deriving, struct onnx_ref from, enum onnx_type type)
{
    const struct onnx_ref output = onnx_build_begin(&deriving->build, "Cast", 1, &from);
    onnx_build_integer(&deriving->build, "to", type);
    onnx_build_end_node(&deriving->build);
    return output;
}

struct onnx_ref gradient_size_of(struct deriving *deriving, struct onnx_ref value)
{
    return gradient_cast(deriving, gradient_one(deriving, "Size", value), ONNX_FLOAT);
}

struct onnx_ref gradient_ratio(struct deriving *deriving, struct onnx_ref large,
                               struct onnx_ref small)
{
    return gradient_two(deriving, "Div", gradient_size_of(deriving, large),
                        gradient_size_of(deriving, small));
}

int64_t gradient_integer(const struct deriving *deriving, const struct onnx_node *node,
                         const char *name, int64_t usual)
{
    const struct onnx_attribute *found = onnx_attribute_of(deriving->input->model, node, name);
    return found != NULL && found->has_integer ? found->integer : usual;
}

float gradient_real(const struct deriving *deriving, const struct onnx_node *node, const char *name,
                    float usual)
{
    const struct onnx_attribute *found = onnx_attribute_of(deriving->input->model, node, name);
    return found != NULL && found->has_real ? found->real : usual;
}

bool gradient_integers(const struct deriving *deriving, const struct onnx_node *node,
                       const char *name, int64_t *ret_values, size_t *ret_count)
{
    const struct onnx_attribute *found = onnx_attribute_of(deriving->input->model, node, name);
    return found != NULL && onnx_attribute_integers(found, ONNX_RANK_MOST, ret_values, ret_count);
}

struct onnx_ref gradient_as_list(struct deriving *deriving, struct onnx_ref from)
{
    const int64_t any[] = {-1};
    return gradient_two(deriving, "Reshape", from, onnx_build_list(&deriving->build, 1, any));
}
