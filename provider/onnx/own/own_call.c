#include "provider/onnx/own/own_call.h"

#include "base/checked.h"
#include "provider/onnx/own/own_half.h"

#include <string.h>

const struct own_tensor *own_input(const struct own_call *call, uint32_t input)
{
    return input < call->input_count ? call->inputs[input] : NULL;
}

struct own_tensor *own_output(struct own_call *call, uint32_t output)
{
    const bool is_wanted =
        output < call->output_count && call->outputs[output].type != ONNX_UNDEFINED;
    return is_wanted ? &call->outputs[output] : NULL;
}

bool own_input_is(struct own_call *call, uint32_t input, enum onnx_type type)
{
    const struct own_tensor *tensor = own_input(call, input);
    return tensor == NULL || tensor->type == type
               ? true
               : own_fault(call, ONNX_OPERATOR, input, "it is %s, and %s is computed here",
                           onnx_type_name(tensor->type), onnx_type_name(type));
}

bool own_input_fits(struct own_call *call, uint32_t input, uint32_t rank, const int64_t *dims)
{
    const struct own_tensor *tensor = own_input(call, input);
    bool fits = tensor == NULL || tensor->rank == rank;
    for (uint32_t i = 0; fits && tensor != NULL && i < rank; i++) {
        fits = tensor->dims[i] == dims[i];
    }
    return fits ? true : own_fault(call, ONNX_SHAPE, input, "its dims do not fit input 0");
}

bool own_input_broadcasts(struct own_call *call, uint32_t input, uint32_t rank, const int64_t *dims)
{
    const struct own_tensor *tensor = own_input(call, input);
    bool fits = tensor == NULL || tensor->rank <= rank;
    for (uint32_t i = 0; fits && tensor != NULL && i < tensor->rank; i++) {
        fits = tensor->dims[i] == 1 || tensor->dims[i] == dims[rank - tensor->rank + i];
    }
    return fits ? true
                : own_fault(call, ONNX_SHAPE, input, "its dims do not broadcast to the output's");
}

/* ---------------------------------------------------------------- attributes */

int64_t own_integer(const struct own_call *call, const char *name, int64_t usual)
{
    return onnx_rule_integer(&call->rule, name, usual);
}

float own_real(const struct own_call *call, const char *name, float usual)
{
    const struct onnx_attribute *attribute =
        onnx_attribute_of(call->rule.model, call->rule.node, name);
    return attribute != NULL && attribute->has_real ? attribute->real : usual;
}

struct onnx_span own_text(const struct own_call *call, const char *name, const char *usual)
{
    const struct onnx_attribute *attribute =
        onnx_attribute_of(call->rule.model, call->rule.node, name);
    return attribute != NULL && attribute->has_text
               ? attribute->text
               : (struct onnx_span){(const uint8_t *)usual, strlen(usual)};
}

static bool put_real(int64_t most, float *values, int64_t *count, const uint8_t *at)
{
    if (*count == most) {
        return false;
    }
    memcpy(&values[(*count)++], at, sizeof *values);
    return true;
}

int64_t own_reals(const struct own_call *call, const char *name, int64_t most, float *ret_values)
{
    enum { REALS = 7 }; /* AttributeProto.floats */
    const struct onnx_attribute *attribute =
        onnx_attribute_of(call->rule.model, call->rule.node, name);
    int64_t count = 0;
    struct onnx_field field;
    if (attribute == NULL) {
        return 0;
    }
    struct onnx_wire wire = onnx_wire_over(attribute->message);
    while (onnx_wire_next(&wire, &field)) {
        const uint32_t low = (uint32_t)field.value;
        bool fits = true;
        if (field.number == REALS && field.kind == ONNX_WIRE_32) {
            fits = put_real(most, ret_values, &count, (const uint8_t *)&low);
        } else if (field.number == REALS) {
            fits = field.bytes.size % sizeof(float) == 0;
            for (size_t i = 0; fits && i < field.bytes.size; i += sizeof(float)) {
                fits = put_real(most, ret_values, &count, field.bytes.at + i);
            }
        }
        if (!fits) {
            return -1;
        }
    }
    return count;
}

/* ---------------------------------------------------------------- elements */

bool own_is_integer(enum onnx_type type)
{
    return (type >= ONNX_UINT8 && type <= ONNX_INT64) || type == ONNX_BOOL || type == ONNX_UINT32 ||
           type == ONNX_UINT64;
}

int64_t own_integer_at(const struct own_tensor *tensor, int64_t at)
{
    switch (tensor->type) {
    case ONNX_INT64:
        return ((const int64_t *)tensor->at)[at];
    case ONNX_INT32:
        return ((const int32_t *)tensor->at)[at];
    case ONNX_INT16:
        return ((const int16_t *)tensor->at)[at];
    case ONNX_INT8:
        return ((const int8_t *)tensor->at)[at];
    case ONNX_UINT8:
    case ONNX_BOOL:
        return ((const uint8_t *)tensor->at)[at];
    case ONNX_UINT16:
        return ((const uint16_t *)tensor->at)[at];
    case ONNX_UINT32:
        return ((const uint32_t *)tensor->at)[at];
    case ONNX_UINT64:
        return (int64_t)((const uint64_t *)tensor->at)[at];
    default:
        return 0;
    }
}

double own_real_at(const struct own_tensor *tensor, int64_t at)
{
    switch (tensor->type) {
    case ONNX_FLOAT:
        return (double)((const float *)tensor->at)[at];
    case ONNX_DOUBLE:
        return ((const double *)tensor->at)[at];
    case ONNX_FLOAT16:
        return (double)own_half_widen(((const uint16_t *)tensor->at)[at]);
    case ONNX_BFLOAT16:
        return (double)own_brain_widen(((const uint16_t *)tensor->at)[at]);
    case ONNX_UINT64:
        return (double)((const uint64_t *)tensor->at)[at];
    default:
        return (double)own_integer_at(tensor, at);
    }
}

/* ---------------------------------------------------------------- memory */

bool own_no_memory(struct own_call *call, int64_t bytes)
{
    return own_fault(call, ONNX_NO_MEMORY, ONNX_NO_INPUT,
                     "it needs %lld bytes more than the %lld in use, and the bound is %lld",
                     (long long)bytes, (long long)call->memory->used,
                     (long long)call->memory->limit);
}

struct own_block *own_scratch(struct own_call *call, int64_t elements, int64_t element_bytes)
{
    int64_t bytes = 0;
    if (!checked_mul(elements, element_bytes, &bytes) || bytes < 0) {
        (void)own_fault(call, ONNX_OVERFLOW, ONNX_NO_INPUT, "the memory that it needs overflows");
        return NULL;
    }
    struct own_block *block = own_block_make(call->memory, bytes);
    if (block == NULL) {
        (void)own_no_memory(call, bytes);
    }
    return block;
}

bool own_spend(struct own_call *call, int64_t count, int64_t each)
{
    int64_t operations = 0;
    if (each < 0 || !checked_mul(count, each, &operations) || operations > *call->work_left) {
        return own_fault(call, ONNX_TOO_LARGE, ONNX_NO_INPUT,
                         "it would need more operations than a run may spend");
    }
    *call->work_left -= operations;
    return true;
}
