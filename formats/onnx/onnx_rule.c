/* This file has the inputs, attributes and outputs that the rules of operators work with. */
#include "formats/onnx/onnx_rules.h"

#include <string.h>

bool onnx_rule_fault(struct onnx_rule *rule, enum onnx_status status, uint32_t input,
                     const char *format, ...)
{
    char text[256];
    char which[ONNX_LABEL_SIZE + 24] = "";
    if (rule->status != ONNX_OK) {
        return false;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (input < rule->node->input_count) {
        const uint32_t value = rule->model->uses[rule->node->first_input + input];
        (void)snprintf(which, sizeof which, ", input %u \"%s\"", input,
                       value == ONNX_NONE ? "" : onnx_label(rule->model->values[value].name).text);
    }
    rule->status = status;
    problem_set(rule->problem, "node \"%s\" (%s)%s: %s",
                onnx_node_label(rule->model, rule->node).text,
                onnx_label(rule->node->operator).text, which, text);
    return false;
}

/* ---------------------------------------------------------------- inputs and attributes */

bool onnx_rule_has(const struct onnx_rule *rule, uint32_t input)
{
    return input < rule->node->input_count &&
           rule->model->uses[rule->node->first_input + input] != ONNX_NONE;
}

const struct onnx_fact *onnx_rule_input(struct onnx_rule *rule, uint32_t input)
{
    if (!onnx_rule_has(rule, input)) {
        (void)onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "input %u is missing", input);
        return NULL;
    }
    const struct onnx_fact *fact =
        &rule->shapes->facts[rule->model->uses[rule->node->first_input + input]];
    if (!fact->is_known) {
        (void)onnx_rule_fault(rule, ONNX_UNSUPPORTED, input, "it is no tensor");
        return NULL;
    }
    return fact;
}

const int64_t *onnx_rule_known(const struct onnx_rule *rule, const struct onnx_fact *fact)
{
    return fact->first_value == ONNX_NONE ? NULL : &rule->shapes->values[fact->first_value];
}

const int64_t *onnx_rule_values(struct onnx_rule *rule, uint32_t input, size_t *ret_count)
{
    const struct onnx_fact *fact = onnx_rule_input(rule, input);
    if (fact == NULL) {
        return NULL;
    }
    const int64_t *values = onnx_rule_known(rule, fact);
    if (values == NULL) {
        (void)onnx_rule_fault(rule, ONNX_DYNAMIC, input,
                              "the dims depend on its values, which only a run would know");
        return NULL;
    }
    *ret_count = (size_t)fact->elements;
    return values;
}

int64_t onnx_rule_integer(const struct onnx_rule *rule, const char *name, int64_t usual)
{
    const struct onnx_attribute *attribute = onnx_attribute_of(rule->model, rule->node, name);
    return attribute != NULL && attribute->has_integer ? attribute->integer : usual;
}

bool onnx_rule_says(const struct onnx_rule *rule, const char *name, const char *text)
{
    const struct onnx_attribute *attribute = onnx_attribute_of(rule->model, rule->node, name);
    return attribute != NULL && attribute->has_text && onnx_span_is(attribute->text, text);
}

bool onnx_rule_list(struct onnx_rule *rule, const char *name, int64_t *ret_values,
                    size_t *ret_count, bool *ret_is_there)
{
    const struct onnx_attribute *attribute = onnx_attribute_of(rule->model, rule->node, name);
    size_t count = 0;
    const size_t most = 2 * ONNX_RANK_MOST;
    if (attribute != NULL && !onnx_attribute_integers(attribute, most, ret_values, &count)) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT,
                               "the list \"%s\" is wrong, or has more than %zu numbers", name,
                               most);
    }
    *ret_count = count;
    if (ret_is_there != NULL) {
        *ret_is_there = attribute != NULL;
    }
    return true;
}

bool onnx_rule_list_at(struct onnx_rule *rule, uint32_t input, const char *name, int64_t since,
                       int64_t *ret_values, size_t *ret_count, bool *ret_is_there)
{
    size_t count = 0;
    if (rule->node->opset < since) {
        return onnx_rule_list(rule, name, ret_values, ret_count, ret_is_there);
    }
    *ret_is_there = onnx_rule_has(rule, input);
    *ret_count = 0;
    if (!*ret_is_there) {
        return true;
    }
    const int64_t *values = onnx_rule_values(rule, input, &count);
    if (values == NULL) {
        return false;
    }
    if (count > 2 * (size_t)ONNX_RANK_MOST) {
        return onnx_rule_fault(rule, ONNX_SHAPE, input, "it has more than %d numbers",
                               2 * ONNX_RANK_MOST);
    }
    memcpy(ret_values, values, count * sizeof *values);
    *ret_count = count;
    return true;
}

bool onnx_rule_axis(struct onnx_rule *rule, int64_t axis, uint32_t rank, uint32_t *ret_axis)
{
    const int64_t whole = axis < 0 ? axis + (int64_t)rank : axis;
    if (axis < -(int64_t)ONNX_RANK_MOST || whole < 0 || whole >= (int64_t)rank) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT,
                               "axis %lld of a tensor with %u dims does not exist", (long long)axis,
                               rank);
    }
    *ret_axis = (uint32_t)whole;
    return true;
}

bool onnx_rule_type(struct onnx_rule *rule, const char *name, enum onnx_type *type)
{
    const struct onnx_attribute *attribute = onnx_attribute_of(rule->model, rule->node, name);
    if (attribute == NULL) {
        return true;
    }
    if (!attribute->has_integer || attribute->integer <= ONNX_UNDEFINED ||
        attribute->integer >= ONNX_TYPES) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "\"%s\" is no type of elements",
                               name);
    }
    *type = (enum onnx_type)attribute->integer;
    return true;
}

/* ---------------------------------------------------------------- outputs */

/* Returns the fact of an output, or NULL when the node leaves the output out. */
static struct onnx_fact *output_of(const struct onnx_rule *rule, uint32_t output)
{
    if (output >= rule->node->output_count) {
        return NULL;
    }
    const uint32_t value = rule->model->makes[rule->node->first_output + output];
    return value == ONNX_NONE ? NULL : &rule->shapes->facts[value];
}

bool onnx_rule_make(struct onnx_rule *rule, uint32_t output, enum onnx_type type, uint32_t rank,
                    const int64_t *dims)
{
    struct onnx_fact *fact = output_of(rule, output);
    if (fact == NULL) {
        return true;
    }
    switch (onnx_shapes_set(fact, type, rank, dims)) {
    case ONNX_OK:
        return true;
    case ONNX_TOO_LARGE:
        return onnx_rule_fault(rule, ONNX_TOO_LARGE, ONNX_NO_INPUT,
                               "output %u has %u dims; %d are "
                               "the most",
                               output, rank, ONNX_RANK_MOST);
    default:
        return onnx_rule_fault(rule, ONNX_OVERFLOW, ONNX_NO_INPUT,
                               "output %u is larger than 2^46 bytes, or a dim of it is not 0 to "
                               "2^40",
                               output);
    }
}

bool onnx_rule_make_like(struct onnx_rule *rule, uint32_t output, const struct onnx_fact *like,
                         enum onnx_type type)
{
    return onnx_rule_make(rule, output, type, like->rank, like->dims);
}

bool onnx_rule_keep(struct onnx_rule *rule, uint32_t output, const int64_t *values)
{
    struct onnx_fact *fact = output_of(rule, output);
    if (fact == NULL || !fact->is_known || onnx_shapes_keep(rule->shapes, fact, values)) {
        return true;
    }
    return onnx_rule_fault(rule, ONNX_NO_MEMORY, ONNX_NO_INPUT, "there is not enough memory");
}

bool onnx_rule_keep_same(struct onnx_rule *rule, uint32_t output, const struct onnx_fact *from)
{
    int64_t copy[ONNX_VALUES_MOST];
    const struct onnx_fact *to = output_of(rule, output);
    const int64_t *values = onnx_rule_known(rule, from);
    if (values == NULL || to == NULL || to->elements != from->elements) {
        return true;
    }
    /* The pool may move while it grows. */
    memcpy(copy, values, (size_t)from->elements * sizeof *copy);
    return onnx_rule_keep(rule, output, copy);
}

/* ---------------------------------------------------------------- broadcasting */

static int64_t dim_from_end(const struct onnx_fact *fact, uint32_t from_end)
{
    return from_end < fact->rank ? fact->dims[fact->rank - 1 - from_end] : 1;
}

bool onnx_rule_broadcast(struct onnx_rule *rule, uint32_t first, uint32_t last, uint32_t *ret_rank,
                         int64_t *ret_dims)
{
    uint32_t rank = 0;
    int64_t from_end[ONNX_RANK_MOST] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (uint32_t i = first; i <= last; i++) {
        const struct onnx_fact *fact = onnx_rule_input(rule, i);
        if (fact == NULL) {
            return false;
        }
        rank = fact->rank > rank ? fact->rank : rank;
        for (uint32_t k = 0; k < fact->rank; k++) {
            const int64_t dim = dim_from_end(fact, k);
            if (from_end[k] != dim && from_end[k] != 1 && dim != 1) {
                return onnx_rule_fault(
                    rule, ONNX_SHAPE, i, "its dims %s do not broadcast: %lld stands against %lld",
                    onnx_shape_text(fact).text, (long long)dim, (long long)from_end[k]);
            }
            from_end[k] = from_end[k] == 1 ? dim : from_end[k];
        }
    }
    for (uint32_t k = 0; k < rank; k++) {
        ret_dims[rank - 1 - k] = from_end[k];
    }
    *ret_rank = rank;
    return true;
}

size_t onnx_rule_broadcast_at(const struct onnx_fact *from, const struct onnx_fact *to, size_t at)
{
    size_t place = 0;
    size_t stride = 1;
    for (uint32_t k = 0; k < to->rank; k++) {
        const size_t size = (size_t)dim_from_end(to, k);
        const size_t own = (size_t)dim_from_end(from, k);
        place += own == 1 ? 0 : (at % size) * stride;
        stride *= own;
        at /= size;
    }
    return place;
}
