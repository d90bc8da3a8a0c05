/* This file has the products of matrices. They are MatMul, Gemm, and those of quantised numbers. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_product.h"
#include "provider/onnx/own/own_walk.h"
#include "provider/onnx/own/own_widen.h"

#include <string.h>

/* The batches of a product: how many there are, and which matrices of A and B meet in each. */
struct batches {
    struct own_sides sides;
    struct own_walk walk; /* over the dims of the batch; offsets are in matrices */
    int64_t count;
    bool is_one; /* all rows of A meet the same B, so that one product does them all */
};

/* Sets the strides of one side's matrices along the dims of the batch. */
static void set_strides(struct batches *batches, uint32_t operand, const struct own_tensor *x,
                        uint32_t rank)
{
    int64_t strides[ONNX_RANK_MOST] = {0};
    const uint32_t own = x->rank > 2 ? x->rank - 2 : 0;
    int64_t step = 1;
    for (uint32_t i = own; i > 0; i--) {
        strides[rank - own + i - 1] = x->dims[i - 1] == 1 ? 0 : step;
        step *= x->dims[i - 1];
    }
    own_walk_strides(&batches->walk, operand, strides);
}

/* A vector is one row on the left, and one column on the right. The rule has checked the dims. */
static struct batches batches_of(const struct own_tensor *a, const struct own_tensor *b,
                                 const struct own_tensor *y)
{
    struct batches batches = {.count = 1};
    const uint32_t left = a->rank > 2 ? a->rank - 2 : 0;
    const uint32_t right = b->rank > 2 ? b->rank - 2 : 0;
    const uint32_t rank = left > right ? left : right;
    batches.sides.rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    batches.sides.inner = a->dims[a->rank - 1];
    batches.sides.columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    batches.walk = own_walk_over(rank, y->dims);
    set_strides(&batches, 0, a, rank);
    set_strides(&batches, 1, b, rank);
    own_walk_ready(&batches.walk);
    batches.count = batches.walk.rows * batches.walk.length;
    const int64_t one = b->rank > 1 ? own_tensor_span(b, 0, b->rank - 2) : 1;
    batches.is_one = one == 1 && left >= right;
    return batches;
}

bool own_op_matmul(struct own_call *call)
{
    const struct own_tensor *a = own_input(call, 0);
    const struct own_tensor *b = own_input(call, 1);
    struct own_tensor *y = own_output(call, 0);
    if (!own_input_is(call, 1, ONNX_FLOAT)) {
        return false;
    }
    struct batches batches = batches_of(a, b, y);
    const struct own_sides sides = batches.sides;
    if (batches.is_one) {
        const struct own_sides all = {sides.rows * batches.count, sides.inner, sides.columns};
        return own_product(call, all, 1, a->at, b->at, 0, y->to);
    }
    float *to = y->to;
    for (int64_t row = 0; row < batches.walk.rows; row++) {
        own_walk_seek(&batches.walk, row);
        for (int64_t i = 0; i < batches.walk.length; i++) {
            const int64_t left = batches.walk.at[0] + i * batches.walk.step[0];
            const int64_t right = batches.walk.at[1] + i * batches.walk.step[1];
            if (!own_product(call, sides, 1, (const float *)a->at + left * sides.rows * sides.inner,
                             (const float *)b->at + right * sides.inner * sides.columns, 0, to)) {
                return false;
            }
            to += sides.rows * sides.columns;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- Gemm */

/* Returns a matrix as it is, or turned in a block that the caller releases; NULL after a fault. */
static const float *turned(struct own_call *call, const struct own_tensor *x, bool turns,
                           struct own_block **ret_block)
{
    if (!turns) {
        return x->at;
    }
    *ret_block = own_scratch(call, x->elements, sizeof(float));
    if (*ret_block == NULL) {
        return NULL;
    }
    own_turn(x->at, x->dims[0], x->dims[1], own_block_bytes(*ret_block));
    return own_block_bytes(*ret_block);
}

/* Fills the output with C, which broadcasts. */
static void fill(const struct own_tensor *c, struct own_tensor *y)
{
    struct own_walk walk = own_walk_over(y->rank, y->dims);
    float *to = y->to;
    own_walk_operand(&walk, 0, c);
    own_walk_ready(&walk);
    for (int64_t row = 0; row < walk.rows; row++) {
        own_walk_seek(&walk, row);
        const float *from = (const float *)c->at + walk.at[0];
        for (int64_t i = 0; i < walk.length; i++) {
            *to++ = from[i * walk.step[0]];
        }
    }
}

bool own_op_gemm(struct own_call *call)
{
    const struct own_tensor *a = own_input(call, 0);
    const struct own_tensor *b = own_input(call, 1);
    const struct own_tensor *c = own_input(call, 2);
    struct own_tensor *y = own_output(call, 0);
    struct own_block *blocks[2] = {NULL, NULL};
    const bool turns_a = own_integer(call, "transA", 0) != 0;
    const bool turns_b = own_integer(call, "transB", 0) != 0;
    if (!own_input_is(call, 1, ONNX_FLOAT) || !own_input_is(call, 2, ONNX_FLOAT) ||
        !own_input_broadcasts(call, 2, y->rank, y->dims)) {
        return false;
    }
    const float beta = c != NULL ? own_real(call, "beta", 1) : 0;
    const struct own_sides sides = {y->dims[0], a->dims[turns_a ? 0 : 1], y->dims[1]};
    const float *left = turned(call, a, turns_a, &blocks[0]);
    const float *right = left != NULL ? turned(call, b, turns_b, &blocks[1]) : NULL;
    if (c != NULL && beta != 0 && right != NULL) {
        fill(c, y);
    }
    const bool is_done =
        call->rule.status == ONNX_OK &&
        own_product(call, sides, own_real(call, "alpha", 1), left, right, beta, y->to);
    own_block_release(blocks[0]);
    own_block_release(blocks[1]);
    return is_done;
}

/* ---------------------------------------------------------------- quantised */

/* Computes all batches of a product of two quantised inputs into int32. */
static bool product_of_bytes(struct own_call *call, uint32_t left, uint32_t left_zero,
                             uint32_t right, uint32_t right_zero, const struct own_tensor *y,
                             int32_t *to)
{
    const struct own_tensor *a = own_input(call, left);
    const struct own_tensor *b = own_input(call, right);
    struct own_block *wide_a = own_widen(call, left, left_zero, a->rank > 1 ? a->rank - 2 : 1);
    struct own_block *wide_b =
        wide_a != NULL ? own_widen(call, right, right_zero, b->rank > 1 ? b->rank - 1 : 1) : NULL;
    bool is_done = wide_b != NULL;
    if (is_done) {
        struct batches batches = batches_of(a, b, y);
        const struct own_sides sides = batches.sides;
        const int32_t *from_a = own_block_bytes(wide_a);
        const int32_t *from_b = own_block_bytes(wide_b);
        for (int64_t at = 0; is_done && at < batches.count; at++) {
            own_walk_seek(&batches.walk, at / batches.walk.length);
            const int64_t i = at % batches.walk.length;
            const int64_t in_a = batches.walk.at[0] + i * batches.walk.step[0];
            const int64_t in_b = batches.walk.at[1] + i * batches.walk.step[1];
            is_done = own_product_whole(call, sides, from_a + in_a * sides.rows * sides.inner,
                                        from_b + in_b * sides.inner * sides.columns,
                                        to + at * sides.rows * sides.columns);
        }
    }
    own_block_release(wide_a);
    own_block_release(wide_b);
    return is_done;
}

bool own_op_matmul_integer(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    return product_of_bytes(call, 0, 2, 1, 3, y, y->to);
}

bool own_op_matmul_quantized(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *zero = own_input(call, 7);
    float scales[3] = {0};
    if (!own_scale(call, 1, &scales[0]) || !own_scale(call, 4, &scales[1]) ||
        !own_scale(call, 6, &scales[2])) {
        return false;
    }
    if ((zero->type != ONNX_INT8 && zero->type != ONNX_UINT8) || zero->elements != 1) {
        return own_fault(call, ONNX_OPERATOR, 7, "it is not one int8 or uint8");
    }
    struct own_block *block = own_scratch(call, y->elements, sizeof(int32_t));
    if (block == NULL) {
        return false;
    }
    int32_t *sums = own_block_bytes(block);
    const bool is_done = product_of_bytes(call, 0, 2, 3, 5, y, sums);
    const double scale = (double)scales[0] * (double)scales[1] / (double)scales[2];
    for (int64_t i = 0; is_done && i < y->elements; i++) {
        own_put_quantised(y, i,
                          own_quantised((double)sums[i] * scale, own_integer_at(zero, 0), y->type));
    }
    own_block_release(block);
    return is_done;
}
