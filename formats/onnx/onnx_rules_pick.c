/* This file has the rules of operators that make tensors of numbers, pick elements out of others,
 * or bring them down to fewer. */
#include "formats/onnx/onnx_rules.h"

#include "base/checked.h"

#include <string.h>

enum { LIST_MOST = 2 * ONNX_RANK_MOST };

/* ---------------------------------------------------------------- constants */

static bool make_list(struct onnx_rule *rule, const struct onnx_attribute *attribute)
{
    int64_t values[ONNX_VALUES_MOST];
    size_t count = 0;
    if (!onnx_attribute_integers(attribute, ONNX_VALUES_MOST, values, &count)) {
        return onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                               "value_ints with more than %d numbers are not known here",
                               ONNX_VALUES_MOST);
    }
    const int64_t dim = (int64_t)count;
    return onnx_rule_make(rule, 0, ONNX_INT64, 1, &dim) && onnx_rule_keep(rule, 0, values);
}

/* Makes a tensor that stands in an attribute. Its bytes stay there, for who needs them. */
static bool make_tensor(struct onnx_rule *rule, struct onnx_span message)
{
    struct onnx_tensor tensor;
    struct problem problem = {""};
    int64_t values[ONNX_VALUES_MOST];
    const enum onnx_status status = onnx_tensor_read(message, &tensor, &problem);
    if (status != ONNX_OK) {
        return onnx_rule_fault(rule, status, ONNX_NO_INPUT, "%.200s", problem.text);
    }
    if (!onnx_rule_make(rule, 0, tensor.type, tensor.rank, tensor.dims)) {
        return false;
    }
    const uint32_t value =
        rule->node->output_count > 0 ? rule->model->makes[rule->node->first_output] : ONNX_NONE;
    if (value != ONNX_NONE) {
        rule->shapes->facts[value].tensor = message;
    }
    return !onnx_type_is_integer(tensor.type) ||
           !onnx_tensor_integers(&tensor, ONNX_VALUES_MOST, values) ||
           onnx_rule_keep(rule, 0, values);
}

bool onnx_rule_constant(struct onnx_rule *rule)
{
    const struct onnx_attribute *list = onnx_attribute_of(rule->model, rule->node, "value_ints");
    const struct onnx_attribute *reals = onnx_attribute_of(rule->model, rule->node, "value_floats");
    const struct onnx_attribute *one = onnx_attribute_of(rule->model, rule->node, "value_int");
    const struct onnx_attribute *tensor = onnx_attribute_of(rule->model, rule->node, "value");
    if (tensor != NULL && tensor->has_tensor) {
        return make_tensor(rule, tensor->tensor);
    }
    if (one != NULL && one->has_integer) {
        return onnx_rule_make(rule, 0, ONNX_INT64, 0, NULL) &&
               onnx_rule_keep(rule, 0, &one->integer);
    }
    if (list != NULL) {
        return make_list(rule, list);
    }
    if (reals != NULL) {
        const size_t count = onnx_attribute_reals(reals);
        const int64_t dim = count > (size_t)ONNX_DIM_MOST ? -1 : (int64_t)count;
        return onnx_rule_make(rule, 0, ONNX_FLOAT, 1, &dim);
    }
    if (onnx_attribute_of(rule->model, rule->node, "value_float") != NULL) {
        return onnx_rule_make(rule, 0, ONNX_FLOAT, 0, NULL);
    }
    if (onnx_attribute_of(rule->model, rule->node, "value_string") != NULL) {
        return onnx_rule_make(rule, 0, ONNX_STRING, 0, NULL);
    }
    return onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                           "it has no value, or one of a kind that is not known here");
}

bool onnx_rule_constant_of_shape(struct onnx_rule *rule)
{
    size_t count = 0;
    int64_t dims[ONNX_RANK_MOST];
    int64_t filled[ONNX_VALUES_MOST];
    int64_t value = 0;
    struct onnx_tensor tensor = {.type = ONNX_FLOAT};
    const struct onnx_attribute *said = onnx_attribute_of(rule->model, rule->node, "value");
    const int64_t *values = onnx_rule_values(rule, 0, &count);
    if (values == NULL) {
        return false;
    }
    if (count > ONNX_RANK_MOST) {
        return onnx_rule_fault(rule, ONNX_TOO_LARGE, 0, "it has more than %d dims", ONNX_RANK_MOST);
    }
    if (said != NULL &&
        (!said->has_tensor || onnx_tensor_read(said->tensor, &tensor, NULL) != ONNX_OK ||
         tensor.elements != 1)) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "\"value\" is no tensor of one");
    }
    memcpy(dims, values, count * sizeof *dims);
    if (!onnx_rule_make(rule, 0, tensor.type, (uint32_t)count, dims)) {
        return false;
    }
    if (!onnx_type_is_integer(tensor.type) || !onnx_tensor_integers(&tensor, 1, &value)) {
        return true;
    }
    for (size_t i = 0; i < ONNX_VALUES_MOST; i++) {
        filled[i] = value;
    }
    return onnx_rule_keep(rule, 0, filled);
}

/* Shape, or a part of it from opset 15 on. */
bool onnx_rule_shape(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    if (x == NULL) {
        return false;
    }
    const int64_t rank = x->rank;
    int64_t start = onnx_rule_integer(rule, "start", 0);
    int64_t end = onnx_rule_integer(rule, "end", rank);
    start = start < 0 ? (start < -rank ? 0 : start + rank) : start > rank ? rank : start;
    end = end < 0 ? (end < -rank ? 0 : end + rank) : end > rank ? rank : end;
    const int64_t count = end > start ? end - start : 0;
    int64_t dims[ONNX_RANK_MOST];
    memcpy(dims, &x->dims[start < ONNX_RANK_MOST ? start : 0], (size_t)count * sizeof *dims);
    return onnx_rule_make(rule, 0, ONNX_INT64, 1, &count) && onnx_rule_keep(rule, 0, dims);
}

bool onnx_rule_size(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make(rule, 0, ONNX_INT64, 0, NULL) &&
           onnx_rule_keep(rule, 0, &x->elements);
}

/* ---------------------------------------------------------------- ranges */

static bool range_of_integers(struct onnx_rule *rule, enum onnx_type type, const int64_t *three)
{
    int64_t distance = 0;
    int64_t kept[ONNX_VALUES_MOST];
    if (three[2] == 0 || three[2] == INT64_MIN || !checked_sub(three[1], three[0], &distance) ||
        distance == INT64_MIN) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "the range has no end");
    }
    distance = three[2] < 0 ? -distance : distance;
    const int64_t step = three[2] < 0 ? -three[2] : three[2];
    const int64_t count = distance <= 0 ? 0 : (distance - 1) / step + 1;
    for (int64_t i = 0; i < count && i < ONNX_VALUES_MOST; i++) {
        kept[i] = three[0] + i * three[2];
    }
    return onnx_rule_make(rule, 0, type, 1, &count) &&
           (count > ONNX_VALUES_MOST || onnx_rule_keep(rule, 0, kept));
}

bool onnx_rule_range(struct onnx_rule *rule)
{
    const struct onnx_fact *start = onnx_rule_input(rule, 0);
    int64_t three[3] = {0};
    float reals[3] = {0};
    bool has_reals = start != NULL && start->type == ONNX_FLOAT;
    for (uint32_t i = 0; i < 3 && start != NULL; i++) {
        const struct onnx_fact *x = onnx_rule_input(rule, i);
        struct onnx_tensor tensor;
        if (x == NULL) {
            return false;
        }
        if (x->elements != 1) {
            return onnx_rule_fault(rule, ONNX_SHAPE, i, "it is no single number");
        }
        if (has_reals) {
            has_reals = x->tensor.size > 0 &&
                        onnx_tensor_read(x->tensor, &tensor, NULL) == ONNX_OK &&
                        onnx_tensor_reals(&tensor, 1, &reals[i]);
        }
        size_t count = 0;
        const int64_t *value = has_reals ? &three[i] : onnx_rule_values(rule, i, &count);
        if (value == NULL) {
            return false;
        }
        three[i] = *value;
    }
    if (start == NULL || !has_reals) {
        return start != NULL && range_of_integers(rule, start->type, three);
    }
    const double count = ((double)reals[1] - (double)reals[0]) / (double)reals[2];
    if (!(count < (double)ONNX_DIM_MOST) || !(count > -(double)ONNX_DIM_MOST)) {
        return onnx_rule_fault(rule, ONNX_OVERFLOW, ONNX_NO_INPUT, "the range has no end");
    }
    const int64_t down = (int64_t)count;
    const int64_t dim = count <= 0 ? 0 : down + ((double)down < count);
    return onnx_rule_make(rule, 0, ONNX_FLOAT, 1, &dim);
}

bool onnx_rule_eye(struct onnx_rule *rule)
{
    return onnx_rule_random_like(rule);
}

bool onnx_rule_one_hot(struct onnx_rule *rule)
{
    const struct onnx_fact *indices = onnx_rule_input(rule, 0);
    const struct onnx_fact *values = onnx_rule_input(rule, 2);
    const struct onnx_fact *depth_fact = onnx_rule_input(rule, 1);
    int64_t dims[ONNX_RANK_MOST + 1];
    int64_t depth = 0;
    struct onnx_tensor tensor;
    uint32_t axis = 0;
    if (indices == NULL || values == NULL || depth_fact == NULL ||
        !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", -1), indices->rank + 1, &axis)) {
        return false;
    }
    const int64_t *known = onnx_rule_known(rule, depth_fact);
    const bool has_real = known == NULL && depth_fact->tensor.size > 0 &&
                          depth_fact->elements == 1 &&
                          onnx_tensor_read(depth_fact->tensor, &tensor, NULL) == ONNX_OK &&
                          onnx_tensor_integers(&tensor, 1, &depth);
    if ((known == NULL && !has_real) || depth_fact->elements != 1) {
        return onnx_rule_fault(rule, ONNX_DYNAMIC, 1,
                               "the dims depend on its value, which only a run would know");
    }
    for (uint32_t i = 0, from = 0; i <= indices->rank; i++) {
        dims[i] = i == axis ? (known != NULL ? *known : depth) : indices->dims[from++];
    }
    return onnx_rule_make(rule, 0, values->type, indices->rank + 1, dims);
}

bool onnx_rule_non_zero(struct onnx_rule *rule)
{
    size_t elements = 0;
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const int64_t *values = x != NULL ? onnx_rule_values(rule, 0, &elements) : NULL;
    int64_t dims[2] = {0, 0};
    if (values == NULL) {
        return false;
    }
    for (size_t i = 0; i < elements; i++) {
        dims[1] += values[i] != 0;
    }
    dims[0] = x->rank;
    return onnx_rule_make(rule, 0, ONNX_INT64, 2, dims);
}

/* ---------------------------------------------------------------- picking */

/* Follows numbers that are picked out of a list. */
static bool keep_gather(struct onnx_rule *rule, const struct onnx_fact *x,
                        const struct onnx_fact *indices)
{
    int64_t result[ONNX_VALUES_MOST];
    const int64_t *values = x->rank == 1 ? onnx_rule_known(rule, x) : NULL;
    const int64_t *places = onnx_rule_known(rule, indices);
    if (values == NULL || places == NULL) {
        return true;
    }
    for (int64_t i = 0; i < indices->elements; i++) {
        const int64_t place = places[i] < 0 ? places[i] + x->elements : places[i];
        if (place < 0 || place >= x->elements) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 1, "%lld is no place in %s",
                                   (long long)places[i], onnx_shape_text(x).text);
        }
        result[i] = values[place];
    }
    return onnx_rule_keep(rule, 0, result);
}

bool onnx_rule_gather(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *indices = onnx_rule_input(rule, 1);
    int64_t dims[2 * ONNX_RANK_MOST];
    uint32_t axis = 0;
    uint32_t rank = 0;
    if (x == NULL || indices == NULL ||
        !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", 0), x->rank, &axis)) {
        return false;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        for (uint32_t k = 0; i == axis && k < indices->rank; k++) {
            dims[rank++] = indices->dims[k];
        }
        if (i != axis) {
            dims[rank++] = x->dims[i];
        }
    }
    return onnx_rule_make(rule, 0, x->type, rank, dims) && keep_gather(rule, x, indices);
}

bool onnx_rule_gather_elements(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *indices = onnx_rule_input(rule, 1);
    return x != NULL && indices != NULL && onnx_rule_make_like(rule, 0, indices, x->type);
}

bool onnx_rule_gather_nd(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *indices = onnx_rule_input(rule, 1);
    const int64_t batch = onnx_rule_integer(rule, "batch_dims", 0);
    int64_t dims[2 * ONNX_RANK_MOST];
    uint32_t rank = 0;
    if (x == NULL || indices == NULL) {
        return false;
    }
    const int64_t depth = indices->rank > 0 ? indices->dims[indices->rank - 1] : 0;
    if (batch < 0 || batch >= (int64_t)indices->rank || depth < 1 ||
        depth > (int64_t)x->rank - batch) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 1, "%s does not name places in %s",
                               onnx_shape_text(indices).text, onnx_shape_text(x).text);
    }
    for (uint32_t i = 0; i + 1 < indices->rank; i++) {
        dims[rank++] = indices->dims[i];
    }
    for (uint32_t i = (uint32_t)(batch + depth); i < x->rank; i++) {
        dims[rank++] = x->dims[i];
    }
    return onnx_rule_make(rule, 0, x->type, rank, dims);
}

bool onnx_rule_top_k(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    int64_t dims[ONNX_RANK_MOST];
    int64_t most = onnx_rule_integer(rule, "k", -1);
    uint32_t axis = 0;
    size_t count = 0;
    if (x == NULL || !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", -1), x->rank, &axis)) {
        return false;
    }
    if (rule->node->opset >= 10) {
        const int64_t *values = onnx_rule_values(rule, 1, &count);
        if (values == NULL) {
            return false;
        }
        most = count == 1 ? values[0] : -1;
    }
    if (most < 0 || most > x->dims[axis]) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 0, "axis %u of %s has no %lld elements", axis,
                               onnx_shape_text(x).text, (long long)most);
    }
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = most;
    return onnx_rule_make(rule, 0, x->type, x->rank, dims) &&
           onnx_rule_make(rule, 1, ONNX_INT64, x->rank, dims);
}

/* ---------------------------------------------------------------- fewer dims */

/* Makes the output without the marked axes, or with 1 in their places. */
static bool make_reduced(struct onnx_rule *rule, const struct onnx_fact *x, const bool *marked,
                         bool keeps, enum onnx_type type)
{
    int64_t dims[ONNX_RANK_MOST];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!marked[i] || keeps) {
            dims[rank++] = marked[i] ? 1 : x->dims[i];
        }
    }
    return onnx_rule_make(rule, 0, type, rank, dims);
}

/* A product of all dims is often computed so. */
static bool keep_product(struct onnx_rule *rule, const struct onnx_fact *x)
{
    const int64_t *values = x->rank == 1 ? onnx_rule_known(rule, x) : NULL;
    int64_t product = 1;
    if (values == NULL || !onnx_span_is(rule->node->operator, "ReduceProd")) {
        return true;
    }
    for (int64_t i = 0; i < x->elements; i++) {
        if (!checked_mul(product, values[i], &product)) {
            return true;
        }
    }
    return onnx_rule_keep(rule, 0, &product);
}

bool onnx_rule_reduce(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const bool is_sum = onnx_span_is(rule->node->operator, "ReduceSum");
    int64_t axes[LIST_MOST];
    bool marked[ONNX_RANK_MOST] = {false};
    size_t count = 0;
    bool is_there = false;
    /* Sums alone take their axes from an input, in the opsets that are known here. */
    if (x == NULL || !onnx_rule_list_at(rule, 1, "axes", is_sum ? 13 : ONNX_OPSET_NEWEST + 1, axes,
                                        &count, &is_there)) {
        return false;
    }
    const bool does_nothing = onnx_rule_integer(rule, "noop_with_empty_axes", 0) != 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t axis = 0;
        if (!onnx_rule_axis(rule, axes[i], x->rank, &axis)) {
            return false;
        }
        marked[axis] = true;
    }
    for (uint32_t i = 0; count == 0 && !does_nothing && i < x->rank; i++) {
        marked[i] = true;
    }
    return make_reduced(rule, x, marked, onnx_rule_integer(rule, "keepdims", 1) != 0, x->type) &&
           (count > 0 && x->rank != 1 ? true : keep_product(rule, x));
}

bool onnx_rule_arg(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    bool marked[ONNX_RANK_MOST] = {false};
    uint32_t axis = 0;
    if (x == NULL || !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", 0), x->rank, &axis)) {
        return false;
    }
    marked[axis] = true;
    return make_reduced(rule, x, marked, onnx_rule_integer(rule, "keepdims", 1) != 0, ONNX_INT64);
}
