/* This file has the pools over windows, and those over all of space. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_parallel.h"
#include "provider/onnx/own/own_window.h"

#include <math.h>

struct pool {
    struct own_window window;
    int kind;
    bool counts_pads, is_column_major;
    double p; /* of LpPool */
    const struct own_tensor *x;
    struct own_tensor *y, *places;
};

/* The elements of one window amount to this. */
struct sum {
    double total;
    int64_t inside, padded; /* elements in the image, and in the image with its pads */
    int64_t at;             /* place of the largest */
};

static void add(const struct pool *pool, struct sum *sum, double value, int64_t at)
{
    switch ((enum own_pool)pool->kind) {
    case OWN_POOL_MAX:
        if (sum->inside == 0 || value > sum->total) {
            sum->total = value;
            sum->at = at;
        }
        break;
    case OWN_POOL_AVERAGE:
        sum->total += value;
        break;
    case OWN_POOL_LP:
        sum->total += pow(fabs(value), pool->p);
        break;
    }
    sum->inside++;
}

static double element_at(const struct pool *pool, int64_t at)
{
    return pool->x->type == ONNX_FLOAT ? (double)((const float *)pool->x->at)[at]
                                       : own_real_at(pool->x, at);
}

/* Moves on to the next place of the kernel. */
static void step(const struct own_window *window, int64_t *in_kernel)
{
    for (uint32_t i = window->dims; i > 0; i--) {
        in_kernel[i - 1]++;
        if (in_kernel[i - 1] < window->kernel[i - 1]) {
            return;
        }
        in_kernel[i - 1] = 0;
    }
}

/* Goes over the window whose first element, with pads, is at the output's place `out`. */
static struct sum sum_window(const struct pool *pool, int64_t plane, const int64_t *out)
{
    const struct own_window *window = &pool->window;
    struct sum sum = {.total = 0};
    int64_t in_kernel[OWN_SPACE_MOST] = {0};
    for (int64_t k = 0; k < window->kernel_size; k++) {
        int64_t at = 0;
        bool is_inside = true;
        bool is_padded = true;
        for (uint32_t i = 0; i < window->dims; i++) {
            const int64_t place = out[i] * window->strides[i] - window->before[i] +
                                  in_kernel[i] * window->dilations[i];
            is_inside = is_inside && place >= 0 && place < window->in[i];
            is_padded = is_padded && place < window->in[i] + window->behind[i];
            at = is_inside ? at * window->in[i] + place : 0;
        }
        sum.padded += is_padded;
        if (is_inside) {
            add(pool, &sum, element_at(pool, plane * window->in_size + at), at);
        }
        step(window, in_kernel);
    }
    return sum;
}

static double end(const struct pool *pool, const struct sum *sum)
{
    const int64_t count = pool->counts_pads ? sum->padded : sum->inside;
    switch ((enum own_pool)pool->kind) {
    case OWN_POOL_MAX:
        return sum->inside > 0 ? sum->total : -INFINITY;
    case OWN_POOL_AVERAGE:
        return count > 0 ? sum->total / (double)count : 0;
    case OWN_POOL_LP:
        break;
    }
    return pow(sum->total, 1 / pool->p);
}

/* Returns the place of an element as MaxPool's second output counts it. */
static int64_t place_of(const struct pool *pool, int64_t plane, int64_t at)
{
    const struct own_window *window = &pool->window;
    int64_t place[OWN_SPACE_MOST];
    int64_t result = 0;
    if (!pool->is_column_major) {
        return plane * window->in_size + at;
    }
    own_window_place(window, window->in, at, place);
    for (uint32_t i = window->dims; i > 0; i--) {
        result = result * window->in[i - 1] + place[i - 1];
    }
    return plane * window->in_size + result;
}

static void put(struct own_tensor *y, int64_t at, double value)
{
    switch (y->type) {
    case ONNX_FLOAT:
        ((float *)y->to)[at] = (float)value;
        break;
    case ONNX_DOUBLE:
        ((double *)y->to)[at] = value;
        break;
    case ONNX_INT8:
        ((int8_t *)y->to)[at] = value < INT8_MIN ? INT8_MIN : (int8_t)value;
        break;
    default: /* UINT8, by the table */
        ((uint8_t *)y->to)[at] = value < 0 ? 0 : (uint8_t)value;
        break;
    }
}

static void work(void *context, int64_t first, int64_t last)
{
    const struct pool *pool = context;
    for (int64_t at = first; at < last; at++) {
        const int64_t plane = at / pool->window.out_size;
        int64_t out[OWN_SPACE_MOST];
        own_window_place(&pool->window, pool->window.out, at % pool->window.out_size, out);
        const struct sum sum = sum_window(pool, plane, out);
        put(pool->y, at, end(pool, &sum));
        if (pool->places != NULL) {
            ((int64_t *)pool->places->to)[at] = place_of(pool, plane, sum.at);
        }
    }
}

bool own_op_pool(struct own_call *call)
{
    struct pool pool = {.kind = call->kind,
                        .counts_pads = own_integer(call, "count_include_pad", 0) != 0,
                        .is_column_major = own_integer(call, "storage_order", 0) != 0,
                        .p = (double)own_integer(call, "p", 2),
                        .x = own_input(call, 0),
                        .y = own_output(call, 0),
                        .places = own_output(call, 1)};
    if (pool.y == NULL || pool.p < 1) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "its form is not known here");
    }
    if (!own_window_read(call, pool.x, pool.y, NULL, &pool.window) ||
        !own_spend(call, pool.y->elements, pool.window.kernel_size)) {
        return false;
    }
    own_parallel(call->threads, pool.y->elements, own_parallel_least(pool.window.kernel_size * 8),
                 work, &pool);
    return true;
}

/* ---------------------------------------------------------------- over all of space */

bool own_op_global_pool(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const int64_t space = own_tensor_span(x, OWN_BESIDE, x->rank);
    const struct pool pool = {.kind = call->kind, .p = (double)own_integer(call, "p", 2)};
    if (pool.p < 1 || (space == 0 && y->elements > 0)) {
        return own_fault(call, ONNX_SHAPE, 0, "its space is empty, or its norm is unknown");
    }
    for (int64_t plane = 0; plane < y->elements; plane++) {
        struct sum sum = {.total = 0};
        for (int64_t i = 0; i < space; i++) {
            add(&pool, &sum, (double)((const float *)x->at)[plane * space + i], i);
        }
        ((float *)y->to)[plane] = (float)end(&pool, &sum);
    }
    return true;
}
