/* This file has the operators that make tensors of numbers. They are Constant, ConstantOfShape,
 * Shape, Size, Range, EyeLike, OneHot and NonZero. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_weights.h"

#include <string.h>

/* Loads a tensor that an attribute has. The caller drops it. */
static bool load(struct own_call *call, const struct onnx_attribute *attribute,
                 struct own_tensor *ret_tensor)
{
    struct onnx_tensor head;
    struct problem problem = {""};
    enum onnx_status status = onnx_tensor_read(attribute->tensor, &head, &problem);
    if (status == ONNX_OK) {
        status = own_weights_load(&head, NULL, call->memory, ret_tensor, &problem);
    }
    return status == ONNX_OK ? true
                             : own_fault(call, status, ONNX_NO_INPUT, "%.200s", problem.text);
}

static const struct onnx_attribute *attribute_of(const struct own_call *call, const char *name)
{
    return onnx_attribute_of(call->rule.model, call->rule.node, name);
}

/* The rule takes the first of these kinds that it finds, and so does this. */
bool own_op_constant(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const struct onnx_attribute *tensor = attribute_of(call, "value");
    const struct onnx_attribute *one = attribute_of(call, "value_int");
    const struct onnx_attribute *list = attribute_of(call, "value_ints");
    size_t count = 0;
    if (tensor != NULL && tensor->has_tensor) {
        struct own_tensor loaded = {.type = ONNX_UNDEFINED};
        if (!load(call, tensor, &loaded)) {
            return false;
        }
        if (loaded.bytes > 0) {
            memcpy(y->to, loaded.at, (size_t)loaded.bytes);
        }
        own_tensor_drop(&loaded);
        return true;
    }
    if (one != NULL && one->has_integer) {
        memcpy(y->to, &one->integer, sizeof one->integer);
        return true;
    }
    if (list != NULL) {
        return onnx_attribute_integers(list, (size_t)y->elements, y->to, &count) &&
                       count == (size_t)y->elements
                   ? true
                   : own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT, "value_ints is wrong");
    }
    if (attribute_of(call, "value_floats") != NULL) {
        return own_reals(call, "value_floats", y->elements, y->to) == y->elements
                   ? true
                   : own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT, "value_floats is wrong");
    }
    const float real = own_real(call, "value_float", 0);
    memcpy(y->to, &real, sizeof real);
    return true;
}

bool own_op_constant_of_shape(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const struct onnx_attribute *said = attribute_of(call, "value");
    const size_t size = (size_t)onnx_type_bytes(y->type);
    uint64_t zero = 0;
    struct own_tensor value = {.at = &zero};
    if (said != NULL && !load(call, said, &value)) {
        return false;
    }
    for (int64_t i = 0; i < y->elements; i++) {
        memcpy((uint8_t *)y->to + (size_t)i * size, value.at, size);
    }
    own_tensor_drop(&value);
    return true;
}

bool own_op_shape(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const int64_t rank = x->rank;
    int64_t start = own_integer(call, "start", 0);
    start = start < 0 ? (start < -rank ? 0 : start + rank) : start > rank ? rank : start;
    if (y->elements > 0) {
        memcpy(y->to, &x->dims[start], (size_t)y->bytes);
    }
    return true;
}

bool own_op_size(struct own_call *call)
{
    *(int64_t *)own_output(call, 0)->to = own_input(call, 0)->elements;
    return true;
}

/* ---------------------------------------------------------------- Range */

bool own_op_range(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *start = own_input(call, 0);
    const struct own_tensor *step = own_input(call, 2);
    if (!own_input_is(call, 1, start->type) || !own_input_is(call, 2, start->type)) {
        return false;
    }
    for (int64_t i = 0; i < y->elements; i++) {
        switch (y->type) {
        case ONNX_FLOAT:
            ((float *)y->to)[i] = (float)(own_real_at(start, 0) + (double)i * own_real_at(step, 0));
            break;
        case ONNX_INT64:
            ((int64_t *)y->to)[i] = own_integer_at(start, 0) + i * own_integer_at(step, 0);
            break;
        case ONNX_INT32:
            ((int32_t *)y->to)[i] =
                (int32_t)(own_integer_at(start, 0) + i * own_integer_at(step, 0));
            break;
        default:
            ((int16_t *)y->to)[i] =
                (int16_t)(own_integer_at(start, 0) + i * own_integer_at(step, 0));
            break;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- EyeLike, OneHot */

/* Puts a small number of any type. */
static bool put_one(struct own_call *call, struct own_tensor *y, int64_t at)
{
    switch (y->type) {
    case ONNX_FLOAT:
        ((float *)y->to)[at] = 1;
        return true;
    case ONNX_DOUBLE:
        ((double *)y->to)[at] = 1;
        return true;
    case ONNX_INT32:
    case ONNX_UINT32:
        ((uint32_t *)y->to)[at] = 1;
        return true;
    case ONNX_INT64:
    case ONNX_UINT64:
        ((uint64_t *)y->to)[at] = 1;
        return true;
    case ONNX_INT8:
    case ONNX_UINT8:
    case ONNX_BOOL:
        ((uint8_t *)y->to)[at] = 1;
        return true;
    default:
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "%s is not made here",
                         onnx_type_name(y->type));
    }
}

bool own_op_eye(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const int64_t k = own_integer(call, "k", 0);
    if (y->rank != 2) {
        return own_fault(call, ONNX_SHAPE, 0, "it is no matrix");
    }
    memset(y->to, 0, (size_t)y->bytes);
    for (int64_t row = 0; row < y->dims[0]; row++) {
        const bool is_inside = k >= -row && k < y->dims[1] - row;
        if (is_inside && !put_one(call, y, row * y->dims[1] + row + k)) {
            return false;
        }
    }
    return true;
}

bool own_op_one_hot(struct own_call *call)
{
    const struct own_tensor *indices = own_input(call, 0);
    const struct own_tensor *values = own_input(call, 2);
    struct own_tensor *y = own_output(call, 0);
    const int64_t said = own_integer(call, "axis", -1);
    const uint32_t axis = (uint32_t)(said < 0 ? said + y->rank : said);
    const size_t size = (size_t)onnx_type_bytes(values->type);
    const int64_t depth = y->dims[axis];
    const int64_t inner = own_tensor_span(y, axis + 1, y->rank);
    if (values->rank != 1 || values->elements != 2) {
        return own_fault(call, ONNX_SHAPE, 2, "it has not two elements");
    }
    for (int64_t i = 0; i < y->elements; i++) {
        const int64_t place = i / inner % depth;
        const int64_t from = i / inner / depth * inner + i % inner;
        const double index = own_real_at(indices, from);
        const double wanted = index < 0 ? index + (double)depth : index;
        const bool is_on = wanted == (double)place;
        memcpy((uint8_t *)y->to + (size_t)i * size,
               (const uint8_t *)values->at + (is_on ? size : 0), size);
    }
    return true;
}

/* ---------------------------------------------------------------- NonZero */

static int64_t count_non_zero(const struct own_tensor *x)
{
    int64_t count = 0;
    for (int64_t i = 0; i < x->elements; i++) {
        count += own_real_at(x, i) != 0;
    }
    return count;
}

/* The count of elements that are not 0 is known in a run alone. */
bool own_op_non_zero_shape(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const int64_t dims[2] = {x->rank, count_non_zero(x)};
    return onnx_rule_make(&call->rule, 0, ONNX_INT64, 2, dims);
}

bool own_op_non_zero(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const int64_t count = y->dims[1];
    for (int64_t i = 0, found = 0; i < x->elements; i++) {
        int64_t rest = i;
        if (own_real_at(x, i) == 0) {
            continue;
        }
        for (uint32_t k = x->rank; k > 0; k--) {
            ((int64_t *)y->to)[(k - 1) * count + found] = rest % x->dims[k - 1];
            rest /= x->dims[k - 1];
        }
        found++;
    }
    return true;
}
