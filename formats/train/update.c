#include "formats/train/update.h"

#include "formats/onnx/onnx_build.h"

#include <assert.h>
#include <stdio.h>

enum { OPSET = 13, NAME_SIZE = 16 };

struct updating {
    struct onnx_build build;
    char names[UPDATE_GRADIENTS_MOST][NAME_SIZE];
};

int64_t update_state_elements(enum train_method method, int64_t weights)
{
    return method == TRAIN_ADAMW ? 2 * weights + 1 : weights;
}

static struct onnx_ref cast(struct onnx_build *build, struct onnx_ref from, enum onnx_type type)
{
    const struct onnx_ref output = onnx_build_begin(build, "Cast", 1, &from);
    onnx_build_integer(build, "to", type);
    onnx_build_end_node(build);
    return output;
}

static struct onnx_ref two(struct onnx_build *build, const char *operator, struct onnx_ref a,
                           struct onnx_ref b)
{
    const struct onnx_ref inputs[] = {a, b};
    return onnx_build_node(build, operator, 2, inputs);
}

static struct onnx_ref scaled(struct onnx_build *build, struct onnx_ref a, double factor)
{
    return two(build, "Mul", a, onnx_build_double(build, factor));
}

static struct onnx_ref slice(struct onnx_build *build, struct onnx_ref from, int64_t first,
                             int64_t end)
{
    const int64_t axis[] = {0};
    const struct onnx_ref inputs[] = {from, onnx_build_list(build, 1, &first),
                                      onnx_build_list(build, 1, &end),
                                      onnx_build_list(build, 1, axis)};
    return onnx_build_node(build, "Slice", 4, inputs);
}

/* Adds an input of float32 with one dim, and returns it. */
static struct onnx_ref input(struct onnx_build *build, const char *name, int64_t elements)
{
    const struct onnx_ref ref = onnx_build_named(name);
    onnx_build_port(build, true, ref, ONNX_FLOAT, 1, &elements);
    return ref;
}

/* Adds an output of float32, which is rounded from float64. */
static void output(struct onnx_build *build, const char *name, int64_t elements,
                   struct onnx_ref from)
{
    const struct onnx_ref ref = onnx_build_named(name);
    onnx_build_begin_named(build, "Cast", 1, &from, ref);
    onnx_build_integer(build, "to", ONNX_FLOAT);
    onnx_build_end_node(build);
    onnx_build_port(build, false, ref, ONNX_FLOAT, 1, &elements);
}

static struct onnx_ref joined(struct onnx_build *build, size_t count, const struct onnx_ref *parts)
{
    const struct onnx_ref all = onnx_build_begin(build, "Concat", count, parts);
    onnx_build_integer(build, "axis", 0);
    onnx_build_end_node(build);
    return all;
}

/* Adds the gradients in their order, in float64. */
static struct onnx_ref total(struct updating *updating, int64_t weights, uint32_t gradients)
{
    struct onnx_ref wide[UPDATE_GRADIENTS_MOST];
    assert(gradients > 0);
    assert(gradients <= UPDATE_GRADIENTS_MOST);
    for (uint32_t i = 0; i < gradients; i++) {
        (void)snprintf(updating->names[i], NAME_SIZE, "g%u", i);
        wide[i] = cast(&updating->build, input(&updating->build, updating->names[i], weights + 2),
                       ONNX_DOUBLE);
    }
    return onnx_build_node(&updating->build, "Sum", gradients, wide);
}

bool update_make_sum(int64_t weights, uint32_t gradients, uint8_t **ret_bytes, size_t *ret_size)
{
    struct updating updating = {.build = {.opset = OPSET}};
    output(&updating.build, "g", weights + 2, total(&updating, weights, gradients));
    return onnx_build_end(&updating.build, ret_bytes, ret_size);
}

/* The update takes these, in float64. */
struct given {
    struct onnx_ref weights, state, gradient;
    int64_t count; /* of weights */
};

static void update_sgd(struct onnx_build *build, const struct train_optimizer *optimizer,
                       const struct given *given)
{
    struct onnx_ref step = given->gradient;
    if (optimizer->decay > 0) {
        step = two(build, "Add", step, scaled(build, given->weights, optimizer->decay));
    }
    step = two(build, "Add", scaled(build, given->state, optimizer->momentum), step);
    output(build, "new-state", given->count, step);
    output(build, "new-weights", given->count,
           two(build, "Sub", given->weights, scaled(build, step, optimizer->rate)));
}

/* Mixes an average of earlier values with a new one. */
static struct onnx_ref mixed(struct onnx_build *build, struct onnx_ref old, struct onnx_ref new,
                             double beta)
{
    return two(build, "Add", scaled(build, old, beta), scaled(build, new, 1 - beta));
}

/* Divides an average by what its first values lack. */
static struct onnx_ref corrected(struct onnx_build *build, struct onnx_ref average,
                                 struct onnx_ref step, double beta)
{
    const struct onnx_ref power = two(build, "Pow", onnx_build_double(build, beta), step);
    return two(build, "Div", average, two(build, "Sub", onnx_build_double(build, 1), power));
}

static void update_adamw(struct onnx_build *build, const struct train_optimizer *optimizer,
                         const struct given *given)
{
    const int64_t n = given->count;
    const struct onnx_ref square = two(build, "Mul", given->gradient, given->gradient);
    const struct onnx_ref first =
        mixed(build, slice(build, given->state, 0, n), given->gradient, optimizer->beta1);
    const struct onnx_ref second =
        mixed(build, slice(build, given->state, n, 2 * n), square, optimizer->beta2);
    const struct onnx_ref step = two(build, "Add", slice(build, given->state, 2 * n, 2 * n + 1),
                                     onnx_build_double(build, 1));
    const struct onnx_ref corrected_second = corrected(build, second, step, optimizer->beta2);
    const struct onnx_ref root = onnx_build_node(build, "Sqrt", 1, &corrected_second);
    const struct onnx_ref below =
        two(build, "Add", root, onnx_build_double(build, optimizer->epsilon));
    const struct onnx_ref change =
        two(build, "Div", corrected(build, first, step, optimizer->beta1), below);
    const struct onnx_ref decayed =
        scaled(build, given->weights, 1 - optimizer->rate * optimizer->decay);
    const struct onnx_ref parts[] = {first, second, step};
    output(build, "new-state", 2 * n + 1, joined(build, 3, parts));
    output(build, "new-weights", n,
           two(build, "Sub", decayed, scaled(build, change, optimizer->rate)));
}

bool update_make(const struct train_optimizer *optimizer, int64_t weights, uint32_t gradients,
                 uint8_t **ret_bytes, size_t *ret_size)
{
    struct updating updating = {.build = {.opset = OPSET}};
    struct onnx_build *build = &updating.build;
    const int64_t any = -1;
    const struct onnx_ref old_weights = input(build, "weights", weights);
    const struct onnx_ref old_state =
        input(build, "state", update_state_elements(optimizer->method, weights));
    const struct onnx_ref old_losses = input(build, "losses", any);
    const struct onnx_ref all = total(&updating, weights, gradients);
    const struct onnx_ref count = slice(build, all, weights + 1, weights + 2);
    const struct onnx_ref loss = two(build, "Div", slice(build, all, weights, weights + 1), count);
    const struct given given = {.weights = cast(build, old_weights, ONNX_DOUBLE),
                                .state = cast(build, old_state, ONNX_DOUBLE),
                                .gradient = two(build, "Div", slice(build, all, 0, weights), count),
                                .count = weights};
    const struct onnx_ref losses[] = {cast(build, old_losses, ONNX_DOUBLE), loss};
    output(build, "new-losses", any, joined(build, 2, losses));
    if (optimizer->method == TRAIN_ADAMW) {
        update_adamw(build, optimizer, &given);
    } else {
        update_sgd(build, optimizer, &given);
    }
    return onnx_build_end(build, ret_bytes, ret_size);
}
