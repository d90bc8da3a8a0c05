/* provider/onnx/own/own_walk.h goes through tensors that broadcast against one another, row by row.
 *
 *     struct own_walk walk = own_walk_over(output->rank, output->dims);
 *     own_walk_operand(&walk, 0, a);
 *     own_walk_operand(&walk, 1, b);
 *     own_walk_ready(&walk);
 *     for (int64_t row = 0; row < walk.rows; row++) {
 *         own_walk_seek(&walk, row);
 *         ... walk.length elements, from walk.at[0] in steps of walk.step[0] in `a` ...
 *     }
 *
 * Offsets and steps are in elements. The output's row begins at row * walk.length. Dims that lie
 * one after another in all operands are walked as one. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_WALK_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_WALK_H

#include "provider/onnx/own/own_tensor.h"

enum { OWN_OPERANDS_MOST = 3 };

struct own_walk {
    uint32_t rank, operands;
    int64_t dims[ONNX_RANK_MOST];
    int64_t strides[OWN_OPERANDS_MOST][ONNX_RANK_MOST];
    int64_t rows, length; /* the last dim is a row */
    int64_t step[OWN_OPERANDS_MOST], at[OWN_OPERANDS_MOST];
};

struct own_walk own_walk_over(uint32_t rank, const int64_t *dims);
/* Adds a tensor whose dims broadcast to those of the walk. */
void own_walk_operand(struct own_walk *walk, uint32_t operand, const struct own_tensor *tensor);
/* Adds an operand by its strides, one for each dim of the walk. */
void own_walk_strides(struct own_walk *walk, uint32_t operand, const int64_t *strides);
/* Merges dims, and sets rows, length and step. */
void own_walk_ready(struct own_walk *walk);
/* Sets `at` to the first elements of a row. */
void own_walk_seek(struct own_walk *walk, int64_t row);

/* Sets the strides of a tensor's own dims, in elements. */
void own_walk_dense(const struct own_tensor *tensor, int64_t *ret_strides);

#endif
