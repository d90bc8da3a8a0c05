/* This file has the rules of products, which are matrices, Einstein sums, recurrent layers and
 * losses. */
#include "formats/onnx/onnx_rules.h"

#include <string.h>

/* Makes the output of a product of matrices of two inputs. A vector counts as a row on the left and
 * as a column on the right, and its dim goes. */
static bool make_product(struct onnx_rule *rule, uint32_t left, uint32_t right, enum onnx_type type)
{
    const struct onnx_fact *a = onnx_rule_input(rule, left);
    const struct onnx_fact *b = onnx_rule_input(rule, right);
    int64_t dims[ONNX_RANK_MOST + 1];
    uint32_t rank = 0;
    if (a == NULL || b == NULL) {
        return false;
    }
    if (a->rank == 0 || b->rank == 0) {
        return onnx_rule_fault(rule, ONNX_SHAPE, a->rank == 0 ? left : right, "it has no dims");
    }
    const int64_t inner = b->dims[b->rank == 1 ? 0 : b->rank - 2];
    if (a->dims[a->rank - 1] != inner) {
        return onnx_rule_fault(rule, ONNX_SHAPE, right, "%s times %s: %lld columns meet %lld rows",
                               onnx_shape_text(a).text, onnx_shape_text(b).text,
                               (long long)a->dims[a->rank - 1], (long long)inner);
    }
    const uint32_t left_batch = a->rank > 2 ? a->rank - 2 : 0;
    const uint32_t right_batch = b->rank > 2 ? b->rank - 2 : 0;
    const uint32_t batch = left_batch > right_batch ? left_batch : right_batch;
    for (uint32_t i = 0; i < batch; i++) {
        const uint32_t from_end = batch - i;
        const int64_t x = from_end <= left_batch ? a->dims[left_batch - from_end] : 1;
        const int64_t y = from_end <= right_batch ? b->dims[right_batch - from_end] : 1;
        if (x != y && x != 1 && y != 1) {
            return onnx_rule_fault(rule, ONNX_SHAPE, right, "%s times %s: the batches differ",
                                   onnx_shape_text(a).text, onnx_shape_text(b).text);
        }
        dims[rank++] = x == 1 ? y : x;
    }
    if (a->rank > 1) {
        dims[rank++] = a->dims[a->rank - 2];
    }
    if (b->rank > 1) {
        dims[rank++] = b->dims[b->rank - 1];
    }
    return onnx_rule_make(rule, 0, type, rank, dims);
}

bool onnx_rule_matmul(struct onnx_rule *rule)
{
    const struct onnx_fact *a = onnx_rule_input(rule, 0);
    return a != NULL && make_product(rule, 0, 1, a->type);
}

bool onnx_rule_matmul_integer(struct onnx_rule *rule)
{
    return make_product(rule, 0, 1, ONNX_INT32);
}

bool onnx_rule_matmul_quantized(struct onnx_rule *rule)
{
    const struct onnx_fact *zero = onnx_rule_input(rule, 7);
    return zero != NULL && make_product(rule, 0, 3, zero->type);
}

bool onnx_rule_gemm(struct onnx_rule *rule)
{
    const struct onnx_fact *a = onnx_rule_input(rule, 0);
    const struct onnx_fact *b = onnx_rule_input(rule, 1);
    if (a == NULL || b == NULL) {
        return false;
    }
    if (a->rank != 2 || b->rank != 2) {
        return onnx_rule_fault(rule, ONNX_SHAPE, a->rank != 2 ? 0 : 1, "it is no matrix: %s",
                               onnx_shape_text(a->rank != 2 ? a : b).text);
    }
    const bool turns_a = onnx_rule_integer(rule, "transA", 0) != 0;
    const bool turns_b = onnx_rule_integer(rule, "transB", 0) != 0;
    const int64_t dims[2] = {a->dims[turns_a ? 1 : 0], b->dims[turns_b ? 0 : 1]};
    if (a->dims[turns_a ? 0 : 1] != b->dims[turns_b ? 1 : 0]) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 1, "%s times %s%s: columns and rows differ",
                               onnx_shape_text(a).text, onnx_shape_text(b).text,
                               turns_a || turns_b ? ", transposed" : "");
    }
    return onnx_rule_make(rule, 0, a->type, 2, dims);
}

/* ---------------------------------------------------------------- Einstein sums */

enum { LETTERS = 52 };

struct einsum {
    int64_t dims[LETTERS]; /* -1: not seen */
    uint32_t uses[LETTERS];
    struct onnx_span equation;
    size_t at;
};

static int letter_of(uint8_t byte)
{
    return byte >= 'a' && byte <= 'z'   ? byte - 'a'
           : byte >= 'A' && byte <= 'Z' ? byte - 'A' + 26
                                        : -1;
}

static void skip_blanks(struct einsum *sum)
{
    while (sum->at < sum->equation.size && sum->equation.at[sum->at] == ' ') {
        sum->at++;
    }
}

/* Reads the letters of one input. */
static bool read_term(struct onnx_rule *rule, struct einsum *sum, uint32_t input)
{
    const struct onnx_fact *fact = onnx_rule_input(rule, input);
    uint32_t rank = 0;
    if (fact == NULL) {
        return false;
    }
    for (skip_blanks(sum); sum->at < sum->equation.size; skip_blanks(sum)) {
        const int letter = letter_of(sum->equation.at[sum->at]);
        if (letter < 0) {
            break;
        }
        if (rank == fact->rank ||
            (sum->dims[letter] >= 0 && sum->dims[letter] != fact->dims[rank])) {
            return onnx_rule_fault(rule, ONNX_SHAPE, input, "%s does not go with \"%s\"",
                                   onnx_shape_text(fact).text, onnx_label(sum->equation).text);
        }
        sum->dims[letter] = fact->dims[rank++];
        sum->uses[letter]++;
        sum->at++;
    }
    return rank == fact->rank
               ? true
               : onnx_rule_fault(rule, ONNX_OPERATOR, input, "\"%s\" does not name its %u dims",
                                 onnx_label(sum->equation).text, fact->rank);
}

/* The letters that stand once are the output, in the alphabet's order, when there is no arrow. */
static uint32_t implicit_dims(const struct einsum *sum, int64_t *ret_dims)
{
    uint32_t rank = 0;
    for (int i = 0; i < LETTERS; i++) {
        const int letter = (i + 26) % LETTERS; /* capitals come first */
        if (sum->uses[letter] == 1 && rank < ONNX_RANK_MOST) {
            ret_dims[rank++] = sum->dims[letter];
        }
    }
    return rank;
}

static bool read_output(struct onnx_rule *rule, struct einsum *sum, uint32_t *ret_rank,
                        int64_t *ret_dims)
{
    uint32_t rank = 0;
    for (skip_blanks(sum); sum->at < sum->equation.size; skip_blanks(sum)) {
        const int letter = letter_of(sum->equation.at[sum->at++]);
        if (letter < 0 || sum->dims[letter] < 0 || rank == ONNX_RANK_MOST) {
            return onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                                   "the sum \"%s\" is not known here",
                                   onnx_label(sum->equation).text);
        }
        ret_dims[rank++] = sum->dims[letter];
    }
    *ret_rank = rank;
    return true;
}

bool onnx_rule_einsum(struct onnx_rule *rule)
{
    const struct onnx_attribute *equation = onnx_attribute_of(rule->model, rule->node, "equation");
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    struct einsum sum = {.at = 0};
    int64_t dims[ONNX_RANK_MOST];
    uint32_t rank = 0;
    if (x == NULL) {
        return false;
    }
    if (equation == NULL || !equation->has_text) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "\"equation\" is missing");
    }
    sum.equation = equation->text;
    memset(sum.dims, -1, sizeof sum.dims);
    for (uint32_t i = 0; i < rule->node->input_count; i++) {
        if (!read_term(rule, &sum, i)) {
            return false;
        }
        const bool is_last = i + 1 == rule->node->input_count;
        const bool has_comma = sum.at < sum.equation.size && sum.equation.at[sum.at] == ',';
        if (has_comma == is_last) {
            return onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                                   "the sum \"%s\" of %u inputs is not known here",
                                   onnx_label(sum.equation).text, rule->node->input_count);
        }
        sum.at += has_comma;
    }
    if (sum.at == sum.equation.size) {
        rank = implicit_dims(&sum, dims);
        return onnx_rule_make(rule, 0, x->type, rank, dims);
    }
    const bool has_arrow = sum.equation.size - sum.at >= 2 && sum.equation.at[sum.at] == '-' &&
                           sum.equation.at[sum.at + 1] == '>';
    sum.at += has_arrow ? 2 : 0;
    return read_output(rule, &sum, &rank, dims) && onnx_rule_make(rule, 0, x->type, rank, dims);
}

/* ---------------------------------------------------------------- recurrent layers, losses */

/* RNN, GRU and LSTM. With layout 1 the batch comes first. */
bool onnx_rule_recurrent(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *weights = onnx_rule_input(rule, 1);
    const struct onnx_fact *again = onnx_rule_input(rule, 2);
    const bool batch_first = onnx_rule_integer(rule, "layout", 0) == 1;
    if (x == NULL || weights == NULL || again == NULL) {
        return false;
    }
    if (x->rank != 3 || weights->rank != 3 || again->rank != 3) {
        return onnx_rule_fault(rule, ONNX_SHAPE,
                               x->rank != 3         ? 0
                               : weights->rank != 3 ? 1
                                                    : 2,
                               "it does not have 3 dims");
    }
    const int64_t hidden = onnx_rule_integer(rule, "hidden_size", again->dims[2]);
    if (hidden != again->dims[2]) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 2, "it is %s, and hidden_size is %lld",
                               onnx_shape_text(again).text, (long long)hidden);
    }
    const int64_t ways = weights->dims[0];
    const int64_t length = x->dims[batch_first ? 1 : 0];
    const int64_t batch = x->dims[batch_first ? 0 : 1];
    const int64_t all[4] = {length, ways, batch, hidden};
    const int64_t all_batch_first[4] = {batch, length, ways, hidden};
    const int64_t last[3] = {batch_first ? batch : ways, batch_first ? ways : batch, hidden};
    return onnx_rule_make(rule, 0, x->type, 4, batch_first ? all_batch_first : all) &&
           onnx_rule_make(rule, 1, x->type, 3, last) && onnx_rule_make(rule, 2, x->type, 3, last);
}

/* The output is one number, or one for each label. */
bool onnx_rule_loss(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const struct onnx_fact *labels = onnx_rule_input(rule, 1);
    if (x == NULL || labels == NULL) {
        return false;
    }
    const bool is_each = onnx_rule_says(rule, "reduction", "none");
    return onnx_rule_make(rule, 0, x->type, is_each ? labels->rank : 0, labels->dims) &&
           onnx_rule_make_like(rule, 1, x, x->type);
}
