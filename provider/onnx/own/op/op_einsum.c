/* This file has Einstein sums of letters without an ellipsis, of one input or more. Each letter is
 * a loop; those that the output lacks are summed over. */
#include "provider/onnx/own/own_ops.h"

#include "base/checked.h"
#include "provider/onnx/own/own_walk.h"

#include <string.h>

enum { LETTERS = 52, INPUTS_MOST = 4, LOOPS_MOST = ONNX_RANK_MOST };

struct loops {
    uint32_t count;
    int letters[LOOPS_MOST];
    int64_t dims[LOOPS_MOST];
    int64_t strides[INPUTS_MOST][LOOPS_MOST];
};

struct einsum {
    struct onnx_span equation;
    size_t at;
    int64_t dims[LETTERS], strides[INPUTS_MOST][LETTERS];
    uint32_t uses[LETTERS], inputs;
    struct loops out, sum;
};

static int letter_of(uint8_t byte)
{
    return byte >= 'a' && byte <= 'z'   ? byte - 'a'
           : byte >= 'A' && byte <= 'Z' ? byte - 'A' + 26
                                        : -1;
}

/* Reads the next letter of a term, or returns -1 at its end. */
static int next_letter(struct einsum *sum)
{
    while (sum->at < sum->equation.size && sum->equation.at[sum->at] == ' ') {
        sum->at++;
    }
    const int letter = sum->at < sum->equation.size ? letter_of(sum->equation.at[sum->at]) : -1;
    sum->at += letter >= 0;
    return letter;
}

/* A letter that stands twice in a term walks along the diagonal: its strides add up. */
static void read_term(struct einsum *sum, uint32_t input, const struct own_tensor *x)
{
    int64_t dense[ONNX_RANK_MOST] = {0};
    uint32_t rank = 0;
    own_walk_dense(x, dense);
    for (int letter = next_letter(sum); letter >= 0; letter = next_letter(sum)) {
        sum->dims[letter] = x->dims[rank];
        sum->strides[input][letter] += dense[rank++];
        sum->uses[letter]++;
    }
}

static bool add_loop(struct own_call *call, const struct einsum *sum, struct loops *loops,
                     int letter)
{
    if (loops->count == LOOPS_MOST) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "it has more than %d letters",
                         LOOPS_MOST);
    }
    loops->dims[loops->count] = sum->dims[letter];
    loops->letters[loops->count] = letter;
    for (uint32_t i = 0; i < sum->inputs; i++) {
        loops->strides[i][loops->count] = sum->strides[i][letter];
    }
    loops->count++;
    return true;
}

/* Sorts the letters into those of the output and those that are summed over. */
static bool sort_letters(struct own_call *call, struct einsum *sum)
{
    bool is_out[LETTERS] = {false};
    const bool has_arrow = sum->at < sum->equation.size;
    sum->at += has_arrow ? 2 : 0;
    for (int letter = has_arrow ? next_letter(sum) : -1; letter >= 0; letter = next_letter(sum)) {
        if (is_out[letter]) {
            return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "its output has a letter twice");
        }
        is_out[letter] = true;
        if (!add_loop(call, sum, &sum->out, letter)) {
            return false;
        }
    }
    for (int i = 0; i < LETTERS; i++) {
        const int letter = (i + 26) % LETTERS; /* capitals come first */
        const bool is_implicit = !has_arrow && sum->uses[letter] == 1;
        if (sum->uses[letter] == 0 || is_out[letter]) {
            continue;
        }
        if (!add_loop(call, sum, is_implicit ? &sum->out : &sum->sum, letter)) {
            return false;
        }
    }
    return true;
}

/* Returns the rounds of loops, or -1 where they are beyond any run. */
static int64_t size_of(const struct loops *loops)
{
    int64_t size = 1;
    for (uint32_t i = 0; i < loops->count; i++) {
        if (!checked_mul(size, loops->dims[i], &size)) {
            return -1;
        }
    }
    return size;
}

/* Adds to `at` where the elements of the inputs lie for one round of the loops. */
static void place(const struct loops *loops, uint32_t inputs, int64_t index, int64_t *at)
{
    for (uint32_t i = loops->count; i > 0; i--) {
        const int64_t here = index % loops->dims[i - 1];
        index /= loops->dims[i - 1];
        for (uint32_t k = 0; k < inputs; k++) {
            at[k] += here * loops->strides[k][i - 1];
        }
    }
}

/* Adds up the products of one element of the output. */
static double sum_products(const struct own_call *call, const struct einsum *sum, int64_t rounds,
                           const int64_t *base)
{
    double total = 0;
    for (int64_t in = 0; in < rounds; in++) {
        int64_t at[INPUTS_MOST];
        double product = 1;
        memcpy(at, base, sizeof at);
        place(&sum->sum, sum->inputs, in, at);
        for (uint32_t i = 0; i < sum->inputs; i++) {
            product *= own_real_at(own_input(call, i), at[i]);
        }
        total += product;
    }
    return total;
}

bool own_op_einsum(struct own_call *call)
{
    struct einsum sum = {.equation = own_text(call, "equation", ""), .inputs = call->input_count};
    struct own_tensor *y = own_output(call, 0);
    if (sum.inputs > INPUTS_MOST) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "it has more than %d inputs",
                         INPUTS_MOST);
    }
    for (uint32_t i = 0; i < sum.inputs; i++) {
        if (!own_input_is(call, i, y->type)) {
            return false;
        }
        read_term(&sum, i, own_input(call, i));
        sum.at += i + 1 < sum.inputs; /* the comma */
    }
    if (!sort_letters(call, &sum)) {
        return false;
    }
    const int64_t rounds = size_of(&sum.sum);
    if (!own_spend(call, y->elements, rounds)) {
        return false;
    }
    for (int64_t out = 0; out < y->elements; out++) {
        int64_t base[INPUTS_MOST] = {0};
        place(&sum.out, sum.inputs, out, base);
        const double total = sum_products(call, &sum, rounds, base);
        if (y->type == ONNX_FLOAT) {
            ((float *)y->to)[out] = (float)total;
        } else {
            ((double *)y->to)[out] = total;
        }
    }
    return true;
}
