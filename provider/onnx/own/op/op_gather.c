/* This file has what reads or writes elements at places that another tensor names. A place outside
 * is refused before anything is read or written there. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_walk.h"

#include <string.h>

/* Reads a place on an axis of `size` elements; a negative one counts from the end. */
static bool place_of(struct own_call *call, uint32_t input, int64_t at, int64_t size,
                     int64_t *ret_place)
{
    const int64_t said = own_integer_at(own_input(call, input), at);
    const int64_t place = said < 0 && said >= -size ? said + size : said;
    if (place < 0 || place >= size) {
        return own_fault(call, ONNX_SHAPE, input, "%lld is no place among %lld", (long long)said,
                         (long long)size);
    }
    *ret_place = place;
    return true;
}

static bool indices_are_integers(struct own_call *call, uint32_t input)
{
    const enum onnx_type type = own_input(call, input)->type;
    return type == ONNX_INT64 || type == ONNX_INT32
               ? true
               : own_fault(call, ONNX_SHAPE, input, "places are %s, not int32 or int64",
                           onnx_type_name(type));
}

static uint32_t axis_of(const struct own_call *call, uint32_t rank)
{
    const int64_t axis = own_integer(call, "axis", 0);
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

bool own_op_gather(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *indices = own_input(call, 1);
    const uint32_t axis = axis_of(call, x->rank);
    const size_t inner =
        (size_t)own_tensor_span(x, axis + 1, x->rank) * (size_t)onnx_type_bytes(x->type);
    const int64_t outer = own_tensor_span(x, 0, axis);
    uint8_t *to = own_output(call, 0)->to;
    if (!indices_are_integers(call, 1)) {
        return false;
    }
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t k = 0; k < indices->elements; k++) {
            int64_t place = 0;
            if (!place_of(call, 1, k, x->dims[axis], &place)) {
                return false;
            }
            if (inner > 0) {
                const size_t from = (size_t)(i * x->dims[axis] + place) * inner;
                memcpy(to, (const uint8_t *)x->at + from, inner);
            }
            to += inner;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- by elements */

/* Goes over `indices` and sets, for each element, the place in `data` that it names: its own place,
 * but on the axis the one that it has as its value. */
struct naming {
    const struct own_tensor *indices, *data;
    uint32_t axis;
    int64_t dense[ONNX_RANK_MOST];
};

static bool naming_begin(struct own_call *call, const struct own_tensor *data, uint32_t input,
                         struct naming *naming)
{
    naming->indices = own_input(call, input);
    naming->data = data;
    naming->axis = axis_of(call, data->rank);
    const int64_t said = own_integer(call, "axis", 0);
    if (said < -(int64_t)data->rank || said >= (int64_t)data->rank) {
        return own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT, "axis %lld does not exist",
                         (long long)said);
    }
    if (naming->indices->rank != data->rank || !indices_are_integers(call, input)) {
        return call->rule.status != ONNX_OK
                   ? false
                   : own_fault(call, ONNX_SHAPE, input, "it has not as many dims as input 0");
    }
    for (uint32_t i = 0; i < data->rank; i++) {
        if (i != naming->axis && naming->indices->dims[i] > data->dims[i]) {
            return own_fault(call, ONNX_SHAPE, input, "dim %u is larger than input 0's", i);
        }
    }
    own_walk_dense(data, naming->dense);
    return true;
}

static bool name(struct own_call *call, uint32_t input, const struct naming *naming, int64_t at,
                 int64_t *ret_place)
{
    int64_t place = 0;
    int64_t rest = at;
    if (!place_of(call, input, at, naming->data->dims[naming->axis], &place)) {
        return false;
    }
    int64_t sum = place * naming->dense[naming->axis];
    for (uint32_t i = naming->indices->rank; i > 0; i--) {
        const int64_t size = naming->indices->dims[i - 1];
        sum += i - 1 == naming->axis ? 0 : rest % size * naming->dense[i - 1];
        rest /= size;
    }
    *ret_place = sum;
    return true;
}

bool own_op_gather_elements(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const size_t size = (size_t)onnx_type_bytes(x->type);
    struct naming naming;
    if (!naming_begin(call, x, 1, &naming)) {
        return false;
    }
    for (int64_t i = 0; i < naming.indices->elements; i++) {
        int64_t place = 0;
        if (!name(call, 1, &naming, i, &place)) {
            return false;
        }
        memcpy((uint8_t *)y->to + (size_t)i * size, (const uint8_t *)x->at + (size_t)place * size,
               size);
    }
    return true;
}

enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL };

/* Reads how updates join what is there. Sums and products are those of float32. */
static bool read_reduction(struct own_call *call, enum reduction *ret_reduction)
{
    const struct onnx_span said = own_text(call, "reduction", "none");
    const enum onnx_type type = own_input(call, 0)->type;
    *ret_reduction = onnx_span_is(said, "add")   ? REDUCE_ADD
                     : onnx_span_is(said, "mul") ? REDUCE_MUL
                                                 : REDUCE_NONE;
    if ((*ret_reduction == REDUCE_NONE && !onnx_span_is(said, "none")) ||
        (*ret_reduction != REDUCE_NONE && type != ONNX_FLOAT)) {
        return own_fault(call, ONNX_OPERATOR, 0, "the reduction \"%s\" of %s is unknown here",
                         onnx_label(said).text, onnx_type_name(type));
    }
    return true;
}

/* Puts one slice of updates into the output. */
static void put_slice(enum reduction reduction, enum onnx_type type, void *to, const void *from,
                      int64_t count)
{
    if (reduction == REDUCE_NONE) {
        memcpy(to, from, (size_t)(count * onnx_type_bytes(type)));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const float value = ((const float *)from)[i];
        float *at = (float *)to + i;
        *at = reduction == REDUCE_ADD ? *at + value : *at * value;
    }
}

/* ScatterElements, and Scatter before it. */
bool own_op_scatter_elements(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *updates = own_input(call, 2);
    const size_t size = (size_t)onnx_type_bytes(x->type);
    struct naming naming;
    enum reduction reduction = REDUCE_NONE;
    if (!read_reduction(call, &reduction)) {
        return false;
    }
    if (!naming_begin(call, x, 1, &naming) || !own_input_is(call, 2, x->type) ||
        !own_input_fits(call, 2, naming.indices->rank, naming.indices->dims)) {
        return false;
    }
    if (x->bytes > 0) {
        memcpy(y->to, x->at, (size_t)x->bytes);
    }
    for (int64_t i = 0; i < updates->elements; i++) {
        int64_t place = 0;
        if (!name(call, 1, &naming, i, &place)) {
            return false;
        }
        put_slice(reduction, x->type, (uint8_t *)y->to + (size_t)place * size,
                  (const uint8_t *)updates->at + (size_t)i * size, 1);
    }
    return true;
}

/* ---------------------------------------------------------------- by coordinates */

/* Returns in `ret_place` the slice that `depth` coordinates name, in elements, from dim `first`. */
static bool slice_of(struct own_call *call, const struct own_tensor *x, uint32_t first,
                     int64_t depth, int64_t at, int64_t *ret_place)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < depth; i++) {
        int64_t place = 0;
        if (!place_of(call, 1, at + i, x->dims[first + i], &place)) {
            return false;
        }
        sum += place * own_tensor_span(x, first + i + 1, x->rank);
    }
    *ret_place = sum;
    return true;
}

bool own_op_gather_nd(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *indices = own_input(call, 1);
    const uint32_t batch = (uint32_t)own_integer(call, "batch_dims", 0);
    const size_t size = (size_t)onnx_type_bytes(x->type);
    uint8_t *to = own_output(call, 0)->to;
    const int64_t depth = indices->dims[indices->rank - 1];
    for (uint32_t i = 0; i < batch; i++) {
        if (indices->dims[i] != x->dims[i]) {
            return own_fault(call, ONNX_SHAPE, 1, "batch dim %u is not input 0's", i);
        }
    }
    if (!indices_are_integers(call, 1)) {
        return false;
    }
    const int64_t batches = own_tensor_span(indices, 0, batch);
    const int64_t each = own_tensor_span(indices, batch, indices->rank - 1);
    const int64_t whole = own_tensor_span(x, batch, x->rank);
    const size_t inner = (size_t)own_tensor_span(x, batch + (uint32_t)depth, x->rank) * size;
    for (int64_t i = 0; i < batches * each; i++) {
        int64_t place = 0;
        if (!slice_of(call, x, batch, depth, i * depth, &place)) {
            return false;
        }
        const size_t from = (size_t)(i / each * whole + place) * size;
        if (inner > 0) {
            memcpy(to, (const uint8_t *)x->at + from, inner);
        }
        to += inner;
    }
    return true;
}

static bool updates_fit(struct own_call *call, const struct own_tensor *x,
                        const struct own_tensor *indices, uint32_t depth)
{
    int64_t dims[2 * ONNX_RANK_MOST];
    uint32_t rank = 0;
    for (uint32_t i = 0; i + 1 < indices->rank; i++) {
        dims[rank++] = indices->dims[i];
    }
    for (uint32_t i = depth; i < x->rank; i++) {
        dims[rank++] = x->dims[i];
    }
    return own_input_is(call, 2, x->type) && own_input_fits(call, 2, rank, dims);
}

bool own_op_scatter_nd(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *indices = own_input(call, 1);
    const struct own_tensor *updates = own_input(call, 2);
    struct own_tensor *y = own_output(call, 0);
    enum reduction reduction = REDUCE_NONE;
    const int64_t depth = indices->rank > 0 ? indices->dims[indices->rank - 1] : 0;
    if (indices->rank == 0 || depth > (int64_t)x->rank || !indices_are_integers(call, 1)) {
        return own_fault(call, ONNX_SHAPE, 1, "it does not name places in input 0");
    }
    if (!read_reduction(call, &reduction) || !updates_fit(call, x, indices, (uint32_t)depth)) {
        return false;
    }
    const int64_t inner = own_tensor_span(x, (uint32_t)depth, x->rank);
    const int64_t size = onnx_type_bytes(x->type);
    if (x->bytes > 0) {
        memcpy(y->to, x->at, (size_t)x->bytes);
    }
    for (int64_t i = 0; inner > 0 && i < updates->elements / inner; i++) {
        int64_t place = 0;
        if (!slice_of(call, x, 0, depth, i * depth, &place)) {
            return false;
        }
        put_slice(reduction, x->type, (uint8_t *)y->to + place * size,
                  (const uint8_t *)updates->at + i * inner * size, inner);
    }
    return true;
}
