/* This file has the derivatives of products, shapes, sums and layers. */
#include "formats/train/gradient_internal.h"

#include <string.h>

#define MUL(a, b) gradient_two(deriving, "Mul", (a), (b))
#define SUB(a, b) gradient_two(deriving, "Sub", (a), (b))
#define IN(i) gradient_in(deriving, node, (i))
#define OUT gradient_out(deriving, node)
#define ADD(i, gradient) gradient_add(deriving, node, (i), (gradient))
#define ASKED(i) gradient_asked(deriving, node, (i))

/* ---------------------------------------------------------------- products */

static struct onnx_ref with_ends_turned(struct deriving *deriving, struct onnx_ref from,
                                        uint32_t rank)
{
    int64_t order[ONNX_RANK_MOST];
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = i;
    }
    order[rank - 1] = rank - 2;
    order[rank - 2] = rank - 1;
    return gradient_turned(deriving, from, rank, order);
}

static struct onnx_ref as_matrix(struct deriving *deriving, struct onnx_ref from, int64_t columns)
{
    const int64_t dims[] = {-1, columns};
    return gradient_two(deriving, "Reshape", from, onnx_build_list(&deriving->build, 2, dims));
}

/* Sums the gradient of a factor over the dims of the stack to which the factor was broadcast. */
static void add_stacked(struct deriving *deriving, const struct onnx_node *node, uint32_t input,
                        struct onnx_ref gradient)
{
    const struct onnx_fact *fact = gradient_fact(deriving, node, input);
    const struct onnx_fact *out = gradient_fact_out(deriving, node);
    int64_t axes[ONNX_RANK_MOST];
    size_t count = 0;
    for (uint32_t i = 0; i + 2 < out->rank; i++) {
        const uint32_t padding = out->rank - fact->rank;
        if (i < padding || (fact->dims[i - padding] == 1 && out->dims[i] != 1)) {
            axes[count++] = i;
        }
    }
    if (count > 0) {
        gradient = gradient_sum(deriving, gradient, count, axes);
        gradient =
            gradient_two(deriving, "Reshape", gradient, gradient_dims_of(deriving, node, input));
    }
    ADD(input, gradient);
}

bool gradient_of_matmul(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    const struct onnx_fact *a = gradient_fact(deriving, node, 0);
    const struct onnx_fact *b = gradient_fact(deriving, node, 1);
    if (a->rank < 2 || b->rank < 2) {
        return gradient_fault(deriving, node,
                              "of a vector has no derivative here; use a matrix "
                              "of one row or column");
    }
    if (ASKED(0)) {
        const struct onnx_ref turned = with_ends_turned(deriving, IN(1), b->rank);
        add_stacked(deriving, node, 0, gradient_two(deriving, "MatMul", dy, turned));
    }
    if (ASKED(1) && b->rank == 2) { /* one product, and no sum over a stack */
        const struct onnx_ref rows = as_matrix(deriving, IN(0), b->dims[0]);
        const struct onnx_ref turned = with_ends_turned(deriving, rows, 2);
        ADD(1, gradient_two(deriving, "MatMul", turned, as_matrix(deriving, dy, b->dims[1])));
    } else if (ASKED(1)) {
        const struct onnx_ref turned = with_ends_turned(deriving, IN(0), a->rank);
        add_stacked(deriving, node, 1, gradient_two(deriving, "MatMul", turned, dy));
    }
    return true;
}

/* Computes alpha A B, with each factor turned where it says so. */
static struct onnx_ref product(struct deriving *deriving, float alpha, struct onnx_ref a,
                               bool turns_a, struct onnx_ref b, bool turns_b)
{
    const struct onnx_ref inputs[] = {a, b};
    const struct onnx_ref output = onnx_build_begin(&deriving->build, "Gemm", 2, inputs);
    onnx_build_real(&deriving->build, "alpha", alpha);
    onnx_build_integer(&deriving->build, "transA", turns_a);
    onnx_build_integer(&deriving->build, "transB", turns_b);
    onnx_build_end_node(&deriving->build);
    return output;
}

bool gradient_of_gemm(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    const float alpha = gradient_real(deriving, node, "alpha", 1);
    const float beta = gradient_real(deriving, node, "beta", 1);
    const bool turns_a = gradient_integer(deriving, node, "transA", 0) != 0;
    const bool turns_b = gradient_integer(deriving, node, "transB", 0) != 0;
    if (ASKED(0)) {
        ADD(0, turns_a ? product(deriving, alpha, IN(1), turns_b, dy, true)
                       : product(deriving, alpha, dy, false, IN(1), !turns_b));
    }
    if (ASKED(1)) {
        ADD(1, turns_b ? product(deriving, alpha, dy, true, IN(0), turns_a)
                       : product(deriving, alpha, IN(0), !turns_a, dy, false));
    }
    if (ASKED(2)) {
        const struct onnx_ref scaled =
            beta == 1 ? dy : MUL(dy, onnx_build_scalar(&deriving->build, beta));
        gradient_add_summed(deriving, node, 2, scaled);
    }
    return true;
}

/* ---------------------------------------------------------------- convolution */

/* Windows of a convolution, with every attribute written out. */
struct windows {
    uint32_t axes; /* of space */
    int64_t strides[ONNX_RANK_MOST], dilations[ONNX_RANK_MOST], pads[2 * ONNX_RANK_MOST];
};

static bool read_windows(struct deriving *deriving, const struct onnx_node *node,
                         struct windows *ret_windows)
{
    const struct onnx_attribute *automatic =
        onnx_attribute_of(deriving->input->model, node, "auto_pad");
    const struct onnx_attribute *pads = onnx_attribute_of(deriving->input->model, node, "pads");
    const uint32_t axes = gradient_fact(deriving, node, 0)->rank - 2;
    size_t count = 0;
    if (gradient_integer(deriving, node, "group", 1) != 1) {
        return gradient_fault(deriving, node, "in groups has no derivative here");
    }
    if (automatic != NULL && !onnx_span_is(automatic->text, "NOTSET")) {
        return gradient_fault(deriving, node, "with auto_pad has no derivative here; write pads");
    }
    *ret_windows = (struct windows){.axes = axes};
    for (uint32_t i = 0; i < axes; i++) {
        ret_windows->strides[i] = 1;
        ret_windows->dilations[i] = 1;
    }
    (void)gradient_integers(deriving, node, "strides", ret_windows->strides, &count);
    (void)gradient_integers(deriving, node, "dilations", ret_windows->dilations, &count);
    return pads == NULL ||
           onnx_attribute_integers(pads, 2 * ONNX_RANK_MOST, ret_windows->pads, &count) ||
           gradient_fault(deriving, node, "has pads that cannot be read");
}

/* Adds a node of windows. The spare rows are those of ConvTranspose alone. */
static struct onnx_ref windowed(struct deriving *deriving, const char *operator, struct onnx_ref a,
                                struct onnx_ref b, const struct windows *windows,
                                const int64_t *spare)
{
    const struct onnx_ref inputs[] = {a, b};
    struct onnx_build *build = &deriving->build;
    const struct onnx_ref output = onnx_build_begin(build, operator, 2, inputs);
    onnx_build_integers(build, "strides", windows->axes, windows->strides);
    onnx_build_integers(build, "dilations", windows->axes, windows->dilations);
    onnx_build_integers(build, "pads", 2 * (size_t)windows->axes, windows->pads);
    if (spare != NULL) {
        onnx_build_integers(build, "output_padding", windows->axes, spare);
    }
    onnx_build_end_node(build);
    return output;
}

/* The input's gradient: the output's, spread by the same windows. */
static void add_convolved(struct deriving *deriving, const struct onnx_node *node,
                          struct onnx_ref dy, const struct windows *windows)
{
    const struct onnx_fact *x = gradient_fact(deriving, node, 0);
    const struct onnx_fact *w = gradient_fact(deriving, node, 1);
    const struct onnx_fact *y = gradient_fact_out(deriving, node);
    int64_t spare[ONNX_RANK_MOST];
    for (uint32_t i = 0; i < windows->axes; i++) {
        const int64_t covered = (y->dims[i + 2] - 1) * windows->strides[i] +
                                (w->dims[i + 2] - 1) * windows->dilations[i] + 1 -
                                windows->pads[i] - windows->pads[i + windows->axes];
        spare[i] = x->dims[i + 2] - covered;
    }
    ADD(0, windowed(deriving, "ConvTranspose", dy, IN(1), windows, spare));
}

/* The kernel's gradient: the input convolved with the output's gradient, channels and rows in each
 * other's place. Strides and dilations change places, too. Windows that do not reach the end of
 * the input leave more than the kernel has, which is cut off. */
static void add_kernel(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy,
                       const struct windows *windows)
{
    const struct onnx_fact *w = gradient_fact(deriving, node, 1);
    struct onnx_build *build = &deriving->build;
    struct windows turned = *windows;
    int64_t order[ONNX_RANK_MOST] = {0};
    int64_t starts[ONNX_RANK_MOST] = {0};
    int64_t axes[ONNX_RANK_MOST] = {0};
    memcpy(turned.strides, windows->dilations, sizeof turned.strides);
    memcpy(turned.dilations, windows->strides, sizeof turned.dilations);
    for (uint32_t i = 0; i < w->rank; i++) {
        order[i] = i == 0 ? 1 : i == 1 ? 0 : i;
        axes[i] = i;
    }
    const struct onnx_ref x = gradient_turned(deriving, IN(0), w->rank, order);
    const struct onnx_ref kernel = gradient_turned(deriving, dy, w->rank, order);
    const struct onnx_ref all = windowed(deriving, "Conv", x, kernel, &turned, NULL);
    const struct onnx_ref inputs[] = {all, onnx_build_list(build, windows->axes, starts),
                                      onnx_build_list(build, windows->axes, w->dims + 2),
                                      onnx_build_list(build, windows->axes, axes + 2)};
    const struct onnx_ref part = onnx_build_node(build, "Slice", 4, inputs);
    ADD(1, gradient_turned(deriving, part, w->rank, order));
}

bool gradient_of_conv(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    struct windows windows = {.axes = 0};
    if (!read_windows(deriving, node, &windows)) {
        return false;
    }
    if (ASKED(0)) {
        add_convolved(deriving, node, dy, &windows);
    }
    if (ASKED(1)) {
        add_kernel(deriving, node, dy, &windows);
    }
    if (ASKED(2)) { /* every axis but the channels */
        int64_t axes[ONNX_RANK_MOST] = {0};
        for (uint32_t i = 0; i < windows.axes; i++) {
            axes[i + 1] = i + 2;
        }
        const struct onnx_ref sum = gradient_sum(deriving, dy, (size_t)windows.axes + 1, axes);
        ADD(2, gradient_two(deriving, "Reshape", sum, gradient_dims_of(deriving, node, 2)));
    }
    return true;
}

/* ---------------------------------------------------------------- shapes and sums */

bool gradient_of_view(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, gradient_two(deriving, "Reshape", dy, gradient_dims_of(deriving, node, 0)));
    return true;
}

bool gradient_of_transpose(struct deriving *deriving, const struct onnx_node *node,
                           struct onnx_ref dy)
{
    const uint32_t rank = gradient_fact(deriving, node, 0)->rank;
    int64_t order[ONNX_RANK_MOST];
    int64_t back[ONNX_RANK_MOST];
    size_t count = 0;
    if (!gradient_integers(deriving, node, "perm", order, &count)) {
        for (uint32_t i = 0; i < rank; i++) {
            order[i] = rank - 1 - i;
        }
    }
    for (uint32_t i = 0; i < rank; i++) { /* a rule of onnx_infer has taken the order */
        back[order[i]] = i;
    }
    ADD(0, gradient_turned(deriving, dy, rank, back));
    return true;
}

/* Finds the axes of a reduction: an attribute, or the values of the second input; none are all. */
static bool read_axes(struct deriving *deriving, const struct onnx_node *node, int64_t *ret_axes,
                      size_t *ret_count)
{
    const struct onnx_fact *x = gradient_fact(deriving, node, 0);
    const bool has_input = gradient_value(deriving, node, 1) != ONNX_NONE;
    *ret_count = 0;
    if (has_input) {
        const struct onnx_fact *axes = gradient_fact(deriving, node, 1);
        if (axes->first_value == ONNX_NONE || axes->elements > ONNX_RANK_MOST) {
            return gradient_fault(deriving, node, "has axes that only a run would tell");
        }
        *ret_count = (size_t)axes->elements;
        for (size_t i = 0; i < *ret_count; i++) {
            ret_axes[i] = deriving->input->shapes->values[axes->first_value + i];
        }
    } else {
        (void)gradient_integers(deriving, node, "axes", ret_axes, ret_count);
    }
    for (uint32_t i = 0; *ret_count == 0 && i < x->rank; i++) {
        ret_axes[i] = i;
    }
    *ret_count = *ret_count == 0 ? x->rank : *ret_count;
    return true;
}

static bool add_spread(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    int64_t axes[ONNX_RANK_MOST];
    size_t count = 0;
    if (gradient_integer(deriving, node, "noop_with_empty_axes", 0) != 0) {
        return gradient_fault(deriving, node, "with noop_with_empty_axes has no derivative here");
    }
    if (!read_axes(deriving, node, axes, &count)) {
        return false;
    }
    if (gradient_integer(deriving, node, "keepdims", 1) == 0) {
        dy =
            gradient_two(deriving, "Unsqueeze", dy, onnx_build_list(&deriving->build, count, axes));
    }
    ADD(0, gradient_two(deriving, "Expand", dy, gradient_dims_of(deriving, node, 0)));
    return true;
}

bool gradient_of_reduce_sum(struct deriving *deriving, const struct onnx_node *node,
                            struct onnx_ref dy)
{
    return add_spread(deriving, node, dy);
}

bool gradient_of_reduce_mean(struct deriving *deriving, const struct onnx_node *node,
                             struct onnx_ref dy)
{
    const struct onnx_ref ratio = gradient_ratio(deriving, IN(0), OUT);
    return add_spread(deriving, node, gradient_two(deriving, "Div", dy, ratio));
}

bool gradient_of_global_average(struct deriving *deriving, const struct onnx_node *node,
                                struct onnx_ref dy)
{
    const struct onnx_ref each =
        gradient_two(deriving, "Div", dy, gradient_ratio(deriving, IN(0), OUT));
    ADD(0, gradient_two(deriving, "Expand", each, gradient_dims_of(deriving, node, 0)));
    return true;
}

/* ---------------------------------------------------------------- layers */

bool gradient_of_softmax(struct deriving *deriving, const struct onnx_node *node,
                         struct onnx_ref dy)
{
    const int64_t axis[] = {gradient_integer(deriving, node, "axis", -1)};
    const struct onnx_ref sum = gradient_sum(deriving, MUL(dy, OUT), 1, axis);
    ADD(0, MUL(OUT, SUB(dy, sum)));
    return true;
}

bool gradient_of_log_softmax(struct deriving *deriving, const struct onnx_node *node,
                             struct onnx_ref dy)
{
    const int64_t axis[] = {gradient_integer(deriving, node, "axis", -1)};
    const struct onnx_ref sum = gradient_sum(deriving, dy, 1, axis);
    ADD(0, SUB(dy, MUL(gradient_one(deriving, "Exp", OUT), sum)));
    return true;
}

static struct onnx_ref mean(struct deriving *deriving, struct onnx_ref from, size_t count,
                            const int64_t *axes)
{
    const struct onnx_ref output = onnx_build_begin(&deriving->build, "ReduceMean", 1, &from);
    onnx_build_integers(&deriving->build, "axes", count, axes);
    onnx_build_integer(&deriving->build, "keepdims", 1);
    onnx_build_end_node(&deriving->build);
    return output;
}

bool gradient_of_layer_norm(struct deriving *deriving, const struct onnx_node *node,
                            struct onnx_ref dy)
{
    const struct onnx_fact *x = gradient_fact(deriving, node, 0);
    const int64_t axis = gradient_integer(deriving, node, "axis", -1);
    const float epsilon = gradient_real(deriving, node, "epsilon", 1e-5F);
    int64_t axes[ONNX_RANK_MOST];
    size_t count = 0;
    for (int64_t i = axis < 0 ? axis + x->rank : axis; i < x->rank; i++) {
        axes[count++] = i;
    }
    const struct onnx_ref apart = SUB(IN(0), mean(deriving, IN(0), count, axes));
    const struct onnx_ref variance = mean(deriving, MUL(apart, apart), count, axes);
    const struct onnx_ref above =
        gradient_two(deriving, "Add", variance, onnx_build_scalar(&deriving->build, epsilon));
    const struct onnx_ref deviation = gradient_one(deriving, "Sqrt", above);
    const struct onnx_ref normal = gradient_two(deriving, "Div", apart, deviation);
    if (ASKED(1)) {
        gradient_add_summed(deriving, node, 1, MUL(dy, normal));
    }
    gradient_add_summed(deriving, node, 2, dy);
    if (ASKED(0)) {
        const struct onnx_ref scaled = MUL(dy, IN(1));
        const struct onnx_ref drift = mean(deriving, scaled, count, axes);
        const struct onnx_ref along = mean(deriving, MUL(scaled, normal), count, axes);
        const struct onnx_ref rest = SUB(SUB(scaled, drift), MUL(normal, along));
        ADD(0, gradient_two(deriving, "Div", rest, deviation));
    }
    return true;
}

/* Rows of a table that are looked up: each place adds to the row that it names. */
bool gradient_of_gather(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    const struct onnx_fact *table = gradient_fact(deriving, node, 0);
    struct onnx_build *build = &deriving->build;
    const int64_t any[] = {-1};
    const int64_t depth[] = {table->rank > 0 ? table->dims[0] : 0};
    if (gradient_integer(deriving, node, "axis", 0) != 0 || table->elements == 0) {
        return gradient_fault(deriving, node, "along another axis than 0 has no derivative here");
    }
    const struct onnx_ref places =
        gradient_two(deriving, "Reshape", IN(1), onnx_build_list(build, 1, any));
    const struct onnx_ref pair[] = {onnx_build_scalar(build, 0), onnx_build_scalar(build, 1)};
    struct onnx_ref values[2];
    for (size_t i = 0; i < 2; i++) {
        const int64_t one[] = {1};
        values[i] = gradient_two(deriving, "Reshape", pair[i], onnx_build_list(build, 1, one));
    }
    const struct onnx_ref both = onnx_build_begin(build, "Concat", 2, values);
    onnx_build_integer(build, "axis", 0);
    onnx_build_end_node(build);
    const struct onnx_ref inputs[] = {places, onnx_build_list(build, 1, depth), both};
    const struct onnx_ref marks = onnx_build_node(build, "OneHot", 3, inputs);
    const struct onnx_ref rows = as_matrix(deriving, dy, table->elements / table->dims[0]);
    const struct onnx_ref sum =
        gradient_two(deriving, "MatMul", with_ends_turned(deriving, marks, 2), rows);
    ADD(0, gradient_two(deriving, "Reshape", sum, gradient_dims_of(deriving, node, 0)));
    return true;
}
