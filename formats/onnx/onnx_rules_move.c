/* This file has the rules of operators that move elements and compute nothing. Values of small
 * integers move along, since models cut shapes and put them together. */
#include "formats/onnx/onnx_rules.h"

#include "base/checked.h"

#include <string.h>

enum { LIST_MOST = 2 * ONNX_RANK_MOST };
#define ONNX_ALWAYS_ATTRIBUTE INT64_MAX /* an opset that no model has */

/* Works out the one dim that is -1: it takes what is over. */
static bool fill_dim(struct onnx_rule *rule, const struct onnx_fact *x, uint32_t rank,
                     uint32_t open, int64_t *dims)
{
    int64_t others = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (i != open && !checked_mul(others, dims[i], &others)) {
            return onnx_rule_fault(rule, ONNX_OVERFLOW, 1, "its dims do not fit");
        }
    }
    if (open < rank) {
        const bool fits = others != 0 && x->elements % others == 0;
        dims[open] = fits ? x->elements / others : 0;
        others = fits ? x->elements : -1;
    }
    return others == x->elements
               ? true
               : onnx_rule_fault(rule, ONNX_SHAPE, 1, "%s has %lld elements, other than its dims",
                                 onnx_shape_text(x).text, (long long)x->elements);
}

bool onnx_rule_reshape(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    size_t count = 0;
    int64_t dims[ONNX_RANK_MOST];
    uint32_t open = ONNX_RANK_MOST;
    const bool keeps_zero = onnx_rule_integer(rule, "allowzero", 0) != 0;
    const int64_t *values = x != NULL ? onnx_rule_values(rule, 1, &count) : NULL;
    if (values == NULL) {
        return false;
    }
    if (count > ONNX_RANK_MOST) {
        return onnx_rule_fault(rule, ONNX_TOO_LARGE, 1, "it has more than %d dims", ONNX_RANK_MOST);
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool is_same = values[i] == 0 && !keeps_zero;
        if (values[i] < -1 || (values[i] == -1 && open < ONNX_RANK_MOST) ||
            (is_same && i >= x->rank)) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 1, "its dim %u, %lld, is wrong", i,
                                   (long long)values[i]);
        }
        dims[i] = is_same ? x->dims[i] : values[i];
        open = values[i] == -1 ? i : open;
    }
    return fill_dim(rule, x, (uint32_t)count, open, dims) &&
           onnx_rule_make(rule, 0, x->type, (uint32_t)count, dims) &&
           onnx_rule_keep_same(rule, 0, x);
}

bool onnx_rule_flatten(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const int64_t said = onnx_rule_integer(rule, "axis", 1);
    int64_t dims[2] = {1, 1};
    if (x == NULL) {
        return false;
    }
    const int64_t axis = said < 0 ? said + (int64_t)x->rank : said;
    if (said < -ONNX_RANK_MOST || axis < 0 || axis > (int64_t)x->rank) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "axis %lld of %s does not exist",
                               (long long)said, onnx_shape_text(x).text);
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t *dim = &dims[(int64_t)i < axis ? 0 : 1];
        if (!checked_mul(*dim, x->dims[i], dim)) {
            return onnx_rule_fault(rule, ONNX_OVERFLOW, 0, "its dims do not fit");
        }
    }
    return onnx_rule_make(rule, 0, x->type, 2, dims) && onnx_rule_keep_same(rule, 0, x);
}

/* An operator moves the dims of its input by a list of integers. */
struct move {
    const struct onnx_fact *x;
    int64_t list[LIST_MOST];
    size_t count;
    bool is_there;                /* the list; else its count is 0 */
    int64_t dims[ONNX_RANK_MOST]; /* of the output */
};

/* Reads the input and the list, which is the second input from opset `since` on. */
static bool open_move(struct onnx_rule *rule, const char *name, int64_t since,
                      struct move *ret_move)
{
    *ret_move = (struct move){.x = onnx_rule_input(rule, 0)};
    return ret_move->x != NULL && onnx_rule_list_at(rule, 1, name, since, ret_move->list,
                                                    &ret_move->count, &ret_move->is_there);
}

/* Marks axes of a tensor of `rank` dims. */
static bool mark_axes(struct onnx_rule *rule, const int64_t *axes, size_t count, uint32_t rank,
                      bool *ret_marked)
{
    memset(ret_marked, 0, LIST_MOST * sizeof *ret_marked);
    for (size_t i = 0; i < count; i++) {
        uint32_t axis = 0;
        if (!onnx_rule_axis(rule, axes[i], rank, &axis)) {
            return false;
        }
        if (ret_marked[axis]) {
            return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "axis %u stands twice", axis);
        }
        ret_marked[axis] = true;
    }
    return true;
}

bool onnx_rule_squeeze(struct onnx_rule *rule)
{
    struct move move;
    bool marked[LIST_MOST];
    uint32_t rank = 0;
    if (!open_move(rule, "axes", 13, &move) ||
        !mark_axes(rule, move.list, move.count, move.x->rank, marked)) {
        return false;
    }
    for (uint32_t i = 0; i < move.x->rank; i++) {
        if (marked[i] && move.x->dims[i] != 1) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 0, "dim %u of %s is not 1", i,
                                   onnx_shape_text(move.x).text);
        }
        if (move.is_there ? !marked[i] : move.x->dims[i] != 1) {
            move.dims[rank++] = move.x->dims[i];
        }
    }
    return onnx_rule_make(rule, 0, move.x->type, rank, move.dims) &&
           onnx_rule_keep_same(rule, 0, move.x);
}

bool onnx_rule_unsqueeze(struct onnx_rule *rule)
{
    struct move move;
    bool marked[LIST_MOST];
    if (!open_move(rule, "axes", 13, &move)) {
        return false;
    }
    const uint32_t rank = move.x->rank + (uint32_t)move.count;
    if (rank > ONNX_RANK_MOST) {
        return onnx_rule_fault(rule, ONNX_TOO_LARGE, ONNX_NO_INPUT, "it would have %u dims", rank);
    }
    if (!mark_axes(rule, move.list, move.count, rank, marked)) {
        return false;
    }
    for (uint32_t i = 0, from = 0; i < rank; i++) {
        move.dims[i] = marked[i] ? 1 : move.x->dims[from++];
    }
    return onnx_rule_make(rule, 0, move.x->type, rank, move.dims) &&
           onnx_rule_keep_same(rule, 0, move.x);
}

bool onnx_rule_transpose(struct onnx_rule *rule)
{
    struct move move;
    bool marked[LIST_MOST];
    if (!open_move(rule, "perm", ONNX_ALWAYS_ATTRIBUTE, &move)) {
        return false;
    }
    const uint32_t rank = move.x->rank;
    for (uint32_t i = 0; !move.is_there && i < rank; i++) {
        move.list[i] = rank - 1 - i;
    }
    if (move.is_there && move.count != rank) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 0, "perm has %zu axes for %s", move.count,
                               onnx_shape_text(move.x).text);
    }
    if (!mark_axes(rule, move.list, rank, rank, marked)) {
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        move.dims[i] = move.x->dims[move.list[i] < 0 ? move.list[i] + rank : move.list[i]];
    }
    return onnx_rule_make(rule, 0, move.x->type, rank, move.dims) &&
           (rank > 1 || onnx_rule_keep_same(rule, 0, move.x));
}

/* ---------------------------------------------------------------- together and apart */

/* Follows the values of lists that are put one behind the other. */
static bool keep_concat(struct onnx_rule *rule)
{
    int64_t result[ONNX_VALUES_MOST];
    size_t count = 0;
    for (uint32_t i = 0; i < rule->node->input_count; i++) {
        const struct onnx_fact *x = onnx_rule_input(rule, i);
        const int64_t *values = x != NULL && x->rank == 1 ? onnx_rule_known(rule, x) : NULL;
        if (values == NULL || (size_t)x->elements > ONNX_VALUES_MOST - count) {
            return rule->status == ONNX_OK;
        }
        memcpy(&result[count], values, (size_t)x->elements * sizeof *values);
        count += (size_t)x->elements;
    }
    return onnx_rule_keep(rule, 0, result);
}

bool onnx_rule_concat(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    int64_t dims[ONNX_RANK_MOST];
    uint32_t axis = 0;
    if (x == NULL || !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", 1), x->rank, &axis)) {
        return false;
    }
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t i = 1; i < rule->node->input_count; i++) {
        const struct onnx_fact *other = onnx_rule_input(rule, i);
        bool fits = other != NULL && other->rank == x->rank;
        for (uint32_t k = 0; fits && k < x->rank; k++) {
            fits = k == axis ? checked_add(dims[k], other->dims[k], &dims[k])
                             : other->dims[k] == dims[k];
        }
        if (!fits && rule->status == ONNX_OK) {
            return onnx_rule_fault(rule, ONNX_SHAPE, i, "%s does not go behind %s on axis %u",
                                   onnx_shape_text(other).text, onnx_shape_text(x).text, axis);
        }
        if (!fits) {
            return false;
        }
    }
    return onnx_rule_make(rule, 0, x->type, x->rank, dims) && keep_concat(rule);
}

bool onnx_rule_split(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    int64_t parts[LIST_MOST];
    int64_t dims[ONNX_RANK_MOST];
    size_t count = 0;
    bool is_there = false;
    uint32_t axis = 0;
    const uint32_t outputs = rule->node->output_count;
    int64_t from = 0;
    if (x == NULL || !onnx_rule_axis(rule, onnx_rule_integer(rule, "axis", 0), x->rank, &axis) ||
        !onnx_rule_list_at(rule, 1, "split", 13, parts, &count, &is_there)) {
        return false;
    }
    if (is_there ? count != outputs : outputs == 0 || x->dims[axis] % (int64_t)outputs != 0) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 0, "axis %u of %s has no %u such parts", axis,
                               onnx_shape_text(x).text, outputs);
    }
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t i = 0; i < outputs; i++) {
        dims[axis] = is_there ? parts[i] : x->dims[axis] / (int64_t)outputs;
        if (dims[axis] < 0 || dims[axis] > x->dims[axis] - from) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 0, "part %u of axis %u of %s is too large", i,
                                   axis, onnx_shape_text(x).text);
        }
        const int64_t *values = x->rank == 1 ? onnx_rule_known(rule, x) : NULL;
        int64_t copy[ONNX_VALUES_MOST];
        if (values != NULL) {
            memcpy(copy, values + from, (size_t)dims[axis] * sizeof *copy);
        }
        from += dims[axis];
        if (!onnx_rule_make(rule, i, x->type, x->rank, dims) ||
            (values != NULL && !onnx_rule_keep(rule, i, copy))) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- slices */

struct slice {
    int64_t starts[LIST_MOST], ends[LIST_MOST], axes[LIST_MOST], steps[LIST_MOST];
    size_t count, axis_count, step_count;
    bool has_axes, has_steps;
};

static bool read_slice(struct onnx_rule *rule, struct slice *slice)
{
    size_t ends = 0;
    bool has_ends = false;
    bool has_starts = false;
    if (!onnx_rule_list_at(rule, 1, "starts", 10, slice->starts, &slice->count, &has_starts) ||
        !onnx_rule_list_at(rule, 2, "ends", 10, slice->ends, &ends, &has_ends) ||
        !onnx_rule_list_at(rule, 3, "axes", 10, slice->axes, &slice->axis_count,
                           &slice->has_axes) ||
        !onnx_rule_list_at(rule, 4, "steps", 10, slice->steps, &slice->step_count,
                           &slice->has_steps)) {
        return false;
    }
    if (ends != slice->count || (slice->has_axes && slice->axis_count != ends) ||
        (slice->has_steps && slice->step_count != ends)) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT,
                               "starts, ends, axes and steps differ in number");
    }
    return true;
}

/* Moves a place into a dim, as NumPy does. */
static int64_t place_in(int64_t place, int64_t size, int64_t least, int64_t most)
{
    const int64_t whole = place < 0 && place >= -size ? place + size : place;
    return whole < least ? least : whole > most ? most : whole;
}

/* Returns how many elements of a dim a slice has. Sets the first of them. */
static int64_t slice_count(int64_t start, int64_t end, int64_t step, int64_t size,
                           int64_t *ret_first)
{
    const bool is_forward = step > 0;
    const int64_t first = place_in(start, size, 0, is_forward ? size : size - 1);
    const int64_t last = place_in(end, size, is_forward ? 0 : -1, is_forward ? size : size - 1);
    const int64_t distance = is_forward ? last - first : first - last;
    /* A step beyond the dim is like one of its size. */
    const int64_t most = size + 1;
    const int64_t stride = is_forward ? (step > most ? most : step) : (step < -most ? most : -step);
    *ret_first = first;
    return size == 0 || distance <= 0 ? 0 : (distance - 1) / stride + 1;
}

bool onnx_rule_slice(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    struct slice slice = {.count = 0};
    int64_t dims[ONNX_RANK_MOST];
    int64_t result[ONNX_VALUES_MOST];
    int64_t first = 0;
    int64_t step = 1;
    if (x == NULL || !read_slice(rule, &slice)) {
        return false;
    }
    memcpy(dims, x->dims, sizeof dims);
    for (size_t i = 0; i < slice.count; i++) {
        uint32_t axis = 0;
        step = slice.has_steps ? slice.steps[i] : 1;
        if (!onnx_rule_axis(rule, slice.has_axes ? slice.axes[i] : (int64_t)i, x->rank, &axis)) {
            return false;
        }
        if (step == 0) {
            return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "a step is 0");
        }
        dims[axis] = slice_count(slice.starts[i], slice.ends[i], step, x->dims[axis], &first);
    }
    if (!onnx_rule_make(rule, 0, x->type, x->rank, dims)) {
        return false;
    }
    const int64_t *values = x->rank == 1 && slice.count == 1 ? onnx_rule_known(rule, x) : NULL;
    for (int64_t i = 0; values != NULL && i < dims[0]; i++) {
        result[i] = values[first + i * step];
    }
    return values == NULL || onnx_rule_keep(rule, 0, result);
}

/* ---------------------------------------------------------------- larger */

bool onnx_rule_expand(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    size_t count = 0;
    const int64_t *values = x != NULL ? onnx_rule_values(rule, 1, &count) : NULL;
    int64_t dims[ONNX_RANK_MOST];
    int64_t result[ONNX_VALUES_MOST];
    struct onnx_fact to;
    if (values == NULL) {
        return false;
    }
    const uint32_t rank = count > x->rank ? (uint32_t)count : x->rank;
    for (uint32_t i = 0; i < rank && rank <= ONNX_RANK_MOST; i++) {
        const uint32_t from_end = rank - i;
        const int64_t own = from_end <= x->rank ? x->dims[x->rank - from_end] : 1;
        const int64_t said = from_end <= count ? values[count - from_end] : 1;
        if (own != said && own != 1 && said != 1) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 1, "%s does not broadcast to it",
                                   onnx_shape_text(x).text);
        }
        dims[i] = own == 1 ? said : own;
    }
    if (!onnx_rule_make(rule, 0, x->type, rank, dims) ||
        onnx_shapes_set(&to, x->type, rank, dims) != ONNX_OK) {
        return false;
    }
    const int64_t *known = to.elements <= ONNX_VALUES_MOST ? onnx_rule_known(rule, x) : NULL;
    for (size_t i = 0; known != NULL && i < (size_t)to.elements; i++) {
        result[i] = known[onnx_rule_broadcast_at(x, &to, i)];
    }
    return known == NULL || onnx_rule_keep(rule, 0, result);
}

bool onnx_rule_tile(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    size_t count = 0;
    const int64_t *values = x != NULL ? onnx_rule_values(rule, 1, &count) : NULL;
    int64_t dims[ONNX_RANK_MOST];
    if (values == NULL) {
        return false;
    }
    if (count != x->rank) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 1, "it has %zu numbers for %u dims", count,
                               x->rank);
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (values[i] < 0 || !checked_mul(x->dims[i], values[i], &dims[i])) {
            return onnx_rule_fault(rule, ONNX_OVERFLOW, 1, "%lld of dim %u do not fit",
                                   (long long)values[i], i);
        }
    }
    return onnx_rule_make(rule, 0, x->type, x->rank, dims);
}

bool onnx_rule_pad(struct onnx_rule *rule)
{
    struct move move;
    if (!open_move(rule, "pads", 11, &move)) {
        return false;
    }
    const uint32_t rank = move.x->rank;
    if (move.count != 2 * (size_t)rank) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "there are %zu pads for %u dims",
                               move.count, rank);
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (!checked_add(move.x->dims[i], move.list[i], &move.dims[i]) ||
            !checked_add(move.dims[i], move.list[rank + i], &move.dims[i])) {
            return onnx_rule_fault(rule, ONNX_OVERFLOW, ONNX_NO_INPUT,
                                   "the pads of dim %u do not fit", i);
        }
    }
    return onnx_rule_make(rule, 0, move.x->type, rank, move.dims);
}
