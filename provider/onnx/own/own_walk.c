#include "provider/onnx/own/own_walk.h"

#include <assert.h>
#include <string.h>

struct own_walk own_walk_over(uint32_t rank, const int64_t *dims)
{
    struct own_walk walk = {.rank = rank};
    memcpy(walk.dims, dims, rank * sizeof *dims);
    return walk;
}

void own_walk_dense(const struct own_tensor *tensor, int64_t *ret_strides)
{
    for (uint32_t i = 0; i < tensor->rank; i++) {
        ret_strides[i] = tensor->elements > 0 ? own_tensor_span(tensor, i + 1, tensor->rank) : 0;
    }
}

void own_walk_operand(struct own_walk *walk, uint32_t operand, const struct own_tensor *tensor)
{
    assert(tensor->rank <= walk->rank);
    int64_t own[ONNX_RANK_MOST] = {0};
    int64_t strides[ONNX_RANK_MOST] = {0};
    own_walk_dense(tensor, own);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        strides[walk->rank - tensor->rank + i] = tensor->dims[i] == 1 ? 0 : own[i];
    }
    own_walk_strides(walk, operand, strides);
}

void own_walk_strides(struct own_walk *walk, uint32_t operand, const int64_t *strides)
{
    assert(operand < OWN_OPERANDS_MOST);
    memcpy(walk->strides[operand], strides, walk->rank * sizeof *strides);
    walk->operands = walk->operands > operand ? walk->operands : operand + 1;
}

/* Returns true when a step of the outer dim is as far as all steps of the inner one. */
static bool is_mergeable(const struct own_walk *walk, uint32_t outer, uint32_t inner)
{
    for (uint32_t k = 0; k < walk->operands; k++) {
        if (walk->strides[k][outer] != walk->strides[k][inner] * walk->dims[inner]) {
            return false;
        }
    }
    return true;
}

static void merge(struct own_walk *walk)
{
    uint32_t rank = 0; /* of what is merged so far; its last dim is rank - 1 */
    for (uint32_t i = 0; i < walk->rank; i++) {
        if (walk->dims[i] == 1) {
            continue;
        }
        const bool joins = rank > 0 && is_mergeable(walk, rank - 1, i);
        const int64_t before = joins ? walk->dims[rank - 1] : 1;
        rank += !joins;
        walk->dims[rank - 1] = before * walk->dims[i];
        for (uint32_t k = 0; k < walk->operands; k++) {
            walk->strides[k][rank - 1] = walk->strides[k][i];
        }
    }
    walk->rank = rank;
}

void own_walk_ready(struct own_walk *walk)
{
    for (uint32_t i = 0; i < walk->rank; i++) {
        if (walk->dims[i] == 0) {
            walk->rows = 0;
            walk->length = 0;
            return;
        }
    }
    merge(walk);
    walk->length = walk->rank > 0 ? walk->dims[walk->rank - 1] : 1;
    walk->rows = 1;
    for (uint32_t i = 0; i + 1 < walk->rank; i++) {
        walk->rows *= walk->dims[i];
    }
    for (uint32_t k = 0; k < walk->operands; k++) {
        walk->step[k] = walk->rank > 0 ? walk->strides[k][walk->rank - 1] : 0;
    }
}

void own_walk_seek(struct own_walk *walk, int64_t row)
{
    memset(walk->at, 0, sizeof walk->at);
    for (uint32_t i = walk->rank > 0 ? walk->rank - 1 : 0; i > 0; i--) {
        const int64_t place = row % walk->dims[i - 1];
        row /= walk->dims[i - 1];
        for (uint32_t k = 0; k < walk->operands; k++) {
            walk->at[k] += place * walk->strides[k][i - 1];
        }
    }
}
