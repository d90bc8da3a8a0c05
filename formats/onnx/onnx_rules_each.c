/* This file has the rules of operators that go element by element. They take one tensor or several
 * that broadcast, normalise, or change types. Values of small integers are followed. */
#include "formats/onnx/onnx_rules.h"

#include "base/checked.h"

#include <string.h>

bool onnx_rule_same(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make_like(rule, 0, x, x->type);
}

bool onnx_rule_identity(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make_like(rule, 0, x, x->type) && onnx_rule_keep_same(rule, 0, x);
}

/* Neg, whose values are followed. */
bool onnx_rule_negate(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const int64_t *values = x != NULL ? onnx_rule_known(rule, x) : NULL;
    int64_t result[ONNX_VALUES_MOST];
    if (x == NULL || !onnx_rule_make_like(rule, 0, x, x->type)) {
        return false;
    }
    for (int64_t i = 0; values != NULL && i < x->elements; i++) {
        if (!checked_sub(0, values[i], &result[i])) {
            return true;
        }
    }
    return values == NULL || onnx_rule_keep(rule, 0, result);
}

/* IsNaN and IsInf. */
bool onnx_rule_truth(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make_like(rule, 0, x, ONNX_BOOL);
}

/* ---------------------------------------------------------------- values of integers */

enum arithmetic {
    ADD,
    SUB,
    MUL,
    DIV,
    MIN,
    MAX,
    EQUAL,
    LESS,
    GREATER,
    LESS_EQUAL,
    GREATER_EQUAL,
    AND,
    OR,
    NO_ARITHMETIC
};

static enum arithmetic arithmetic_of(const struct onnx_rule *rule)
{
    static const char *const names[NO_ARITHMETIC] = {"Add",
                                                     "Sub",
                                                     "Mul",
                                                     "Div",
                                                     "Min",
                                                     "Max",
                                                     "Equal",
                                                     "Less",
                                                     "Greater",
                                                     "LessOrEqual",
                                                     "GreaterOrEqual",
                                                     "And",
                                                     "Or"};
    for (int i = 0; i < NO_ARITHMETIC; i++) {
        if (onnx_span_is(rule->node->operator, names[i])) {
            return (enum arithmetic)i;
        }
    }
    return NO_ARITHMETIC;
}

/* Returns false where there is no value: it does not fit, or a divisor is 0. */
static bool compute(enum arithmetic what, int64_t a, int64_t b, int64_t *ret)
{
    switch (what) {
    case ADD:
        return checked_add(a, b, ret);
    case SUB:
        return checked_sub(a, b, ret);
    case MUL:
        return checked_mul(a, b, ret);
    case DIV:
        if (b == 0 || (a == INT64_MIN && b == -1)) {
            return false;
        }
        *ret = a / b;
        return true;
    case MIN:
        *ret = a < b ? a : b;
        return true;
    case MAX:
        *ret = a > b ? a : b;
        return true;
    case EQUAL:
        *ret = a == b;
        return true;
    case LESS:
        *ret = a < b;
        return true;
    case GREATER:
        *ret = a > b;
        return true;
    case LESS_EQUAL:
        *ret = a <= b;
        return true;
    case GREATER_EQUAL:
        *ret = a >= b;
        return true;
    case AND:
        *ret = a != 0 && b != 0;
        return true;
    case OR:
        *ret = a != 0 || b != 0;
        return true;
    case NO_ARITHMETIC:
        break;
    }
    return false;
}

/* Follows the values of a node of two inputs, where both are known. */
static bool follow(struct onnx_rule *rule, const struct onnx_fact *to)
{
    const enum arithmetic what = arithmetic_of(rule);
    int64_t result[ONNX_VALUES_MOST];
    if (rule->node->input_count != 2 || what == NO_ARITHMETIC || to->elements > ONNX_VALUES_MOST) {
        return true;
    }
    const struct onnx_fact *a = onnx_rule_input(rule, 0);
    const struct onnx_fact *b = onnx_rule_input(rule, 1);
    const int64_t *left = a != NULL ? onnx_rule_known(rule, a) : NULL;
    const int64_t *right = b != NULL ? onnx_rule_known(rule, b) : NULL;
    if (left == NULL || right == NULL) {
        return rule->status == ONNX_OK;
    }
    for (size_t i = 0; i < (size_t)to->elements; i++) {
        if (!compute(what, left[onnx_rule_broadcast_at(a, to, i)],
                     right[onnx_rule_broadcast_at(b, to, i)], &result[i])) {
            return true;
        }
    }
    return onnx_rule_keep(rule, 0, result);
}

static bool make_broadcast(struct onnx_rule *rule, enum onnx_type type)
{
    int64_t dims[ONNX_RANK_MOST];
    uint32_t rank = 0;
    struct onnx_fact to;
    return onnx_rule_broadcast(rule, 0, rule->node->input_count - 1, &rank, dims) &&
           onnx_rule_make(rule, 0, type, rank, dims) &&
           (onnx_shapes_set(&to, type, rank, dims) != ONNX_OK || follow(rule, &to));
}

/* Operators of several inputs that broadcast, such as Add and Max. */
bool onnx_rule_wide(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && make_broadcast(rule, x->type);
}

bool onnx_rule_compare(struct onnx_rule *rule)
{
    return make_broadcast(rule, ONNX_BOOL);
}

bool onnx_rule_where(struct onnx_rule *rule)
{
    int64_t dims[ONNX_RANK_MOST];
    int64_t result[ONNX_VALUES_MOST];
    uint32_t rank = 0;
    struct onnx_fact to;
    const struct onnx_fact *facts[3] = {onnx_rule_input(rule, 0), onnx_rule_input(rule, 1),
                                        onnx_rule_input(rule, 2)};
    if (facts[0] == NULL || facts[1] == NULL || facts[2] == NULL ||
        !onnx_rule_broadcast(rule, 0, 2, &rank, dims) ||
        !onnx_rule_make(rule, 0, facts[1]->type, rank, dims) ||
        onnx_shapes_set(&to, facts[1]->type, rank, dims) != ONNX_OK) {
        return false;
    }
    const int64_t *condition = onnx_rule_known(rule, facts[0]);
    const int64_t *yes = onnx_rule_known(rule, facts[1]);
    const int64_t *no = onnx_rule_known(rule, facts[2]);
    if (condition == NULL || yes == NULL || no == NULL || to.elements > ONNX_VALUES_MOST) {
        return true;
    }
    for (size_t i = 0; i < (size_t)to.elements; i++) {
        result[i] = condition[onnx_rule_broadcast_at(facts[0], &to, i)] != 0
                        ? yes[onnx_rule_broadcast_at(facts[1], &to, i)]
                        : no[onnx_rule_broadcast_at(facts[2], &to, i)];
    }
    return onnx_rule_keep(rule, 0, result);
}

/* ---------------------------------------------------------------- types */

/* A value that the new type cannot hold is not followed. */
static bool keep_cast(struct onnx_rule *rule, const struct onnx_fact *x, enum onnx_type to)
{
    const bool is_wider = to == ONNX_INT64 || to == x->type;
    const int64_t *values = onnx_rule_known(rule, x);
    int64_t result[ONNX_VALUES_MOST];
    if (values == NULL || x->elements > ONNX_VALUES_MOST) {
        return true;
    }
    for (size_t i = 0; i < (size_t)x->elements; i++) {
        const bool fits = to == ONNX_INT32 && values[i] >= INT32_MIN && values[i] <= INT32_MAX;
        if (!is_wider && !fits && to != ONNX_BOOL) {
            return true;
        }
        result[i] = to == ONNX_BOOL ? values[i] != 0 : values[i];
    }
    return onnx_rule_keep(rule, 0, result);
}

bool onnx_rule_cast(struct onnx_rule *rule)
{
    enum onnx_type type = ONNX_UNDEFINED;
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    if (x == NULL || !onnx_rule_type(rule, "to", &type)) {
        return false;
    }
    if (type == ONNX_UNDEFINED) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "\"to\" is missing");
    }
    return onnx_rule_make_like(rule, 0, x, type) && keep_cast(rule, x, type);
}

bool onnx_rule_cast_like(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *like = onnx_rule_input(rule, 1);
    return x != NULL && like != NULL && onnx_rule_make_like(rule, 0, x, like->type) &&
           keep_cast(rule, x, like->type);
}

/* Operators that draw numbers for a tensor of the same shape. */
bool onnx_rule_random_like(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    enum onnx_type type = x != NULL ? x->type : ONNX_UNDEFINED;
    return x != NULL && onnx_rule_type(rule, "dtype", &type) &&
           onnx_rule_make_like(rule, 0, x, type);
}

/* ---------------------------------------------------------------- normalisations */

bool onnx_rule_dropout(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make_like(rule, 0, x, x->type) &&
           onnx_rule_make_like(rule, 1, x, rule->node->opset < 10 ? x->type : ONNX_BOOL);
}

bool onnx_rule_batch_norm(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *mean = onnx_rule_input(rule, 3);
    if (x == NULL || mean == NULL) {
        return false;
    }
    for (uint32_t i = 1; i < 5; i++) {
        const struct onnx_fact *each = onnx_rule_input(rule, i);
        if (each == NULL) {
            return false;
        }
        if (each->rank != 1 || each->dims[0] != (x->rank > 1 ? x->dims[1] : 1)) {
            return onnx_rule_fault(rule, ONNX_SHAPE, i, "it is %s, and input 0 is %s",
                                   onnx_shape_text(each).text, onnx_shape_text(x).text);
        }
        if (!onnx_rule_make_like(rule, i, mean, mean->type)) {
            return false;
        }
    }
    return onnx_rule_make_like(rule, 0, x, x->type);
}

bool onnx_rule_layer_norm(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    int64_t dims[ONNX_RANK_MOST];
    uint32_t axis = 0;
    enum onnx_type type = ONNX_FLOAT;
    if (x == NULL || !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", -1), x->rank, &axis) ||
        !onnx_rule_type(rule, "stash_type", &type)) {
        return false;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        dims[i] = i < axis ? x->dims[i] : 1;
    }
    return onnx_rule_make_like(rule, 0, x, x->type) &&
           onnx_rule_make(rule, 1, type, x->rank, dims) &&
           onnx_rule_make(rule, 2, type, x->rank, dims);
}

/* ---------------------------------------------------------------- quantised */

bool onnx_rule_quantize(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *zero = onnx_rule_has(rule, 2) ? onnx_rule_input(rule, 2) : NULL;
    return x != NULL && rule->status == ONNX_OK &&
           onnx_rule_make_like(rule, 0, x, zero != NULL ? zero->type : ONNX_UINT8);
}

bool onnx_rule_dequantize(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make_like(rule, 0, x, ONNX_FLOAT);
}

bool onnx_rule_quantize_anew(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && onnx_rule_make_like(rule, 0, x, ONNX_UINT8) &&
           onnx_rule_make(rule, 1, ONNX_FLOAT, 0, NULL) &&
           onnx_rule_make(rule, 2, ONNX_UINT8, 0, NULL);
}
