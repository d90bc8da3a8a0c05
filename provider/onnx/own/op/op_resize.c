/* This file has Resize, and Upsample before it. Along each dim whose size changes, an element of
 * the output is a weighted sum of a few elements of the input, its taps; over several dims the
 * weights multiply. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_walk.h"

#include <math.h>
#include <string.h>

enum { TAPS_MOST = 4 };

enum mode { MODE_NEAREST, MODE_LINEAR, MODE_CUBIC };
enum coordinates {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
    TF_CROP_AND_RESIZE
};
enum rounding { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, ROUND_FLOOR, ROUND_CEIL };

/* One place of an output's dim is made of these. */
struct taps {
    int64_t index[TAPS_MOST];
    double weight[TAPS_MOST];
    bool is_outside;
};

struct resize {
    const struct own_tensor *x;
    struct own_tensor *y;
    enum mode mode;
    enum coordinates coordinates;
    enum rounding rounding;
    double cubic, extrapolation;
    bool excludes_outside;
    double scales[ONNX_RANK_MOST], starts[ONNX_RANK_MOST], ends[ONNX_RANK_MOST];
    uint32_t axes[ONNX_RANK_MOST], axis_count; /* whose size changes */
    const struct taps *taps[ONNX_RANK_MOST];   /* by place in `axes`, then by place in the dim */
};

/* ---------------------------------------------------------------- attributes */

/* Returns the place of a text in a list of names, or -1 after a fault. */
static int word_of(struct own_call *call, const char *name, const char *usual,
                   const char *const *words, int count)
{
    const struct onnx_span said = own_text(call, name, usual);
    for (int i = 0; i < count; i++) {
        if (onnx_span_is(said, words[i])) {
            return i;
        }
    }
    (void)own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "%s \"%s\" is unknown here", name,
                    onnx_label(said).text);
    return -1;
}

static bool read_words(struct own_call *call, struct resize *self)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel",           "pytorch_half_pixel",
                                              "align_corners",        "asymmetric",
                                              "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    const bool is_old = call->rule.node->opset < 11;
    const int mode = word_of(call, "mode", "nearest", modes, 3);
    const int coordinate = word_of(call, "coordinate_transformation_mode",
                                   is_old ? "asymmetric" : "half_pixel", coordinates, 6);
    const int rounding =
        word_of(call, "nearest_mode", is_old ? "floor" : "round_prefer_floor", roundings, 4);
    if (mode < 0 || coordinate < 0 || rounding < 0) {
        return false;
    }
    self->mode = (enum mode)mode;
    self->coordinates = (enum coordinates)coordinate;
    self->rounding = (enum rounding)rounding;
    self->cubic = (double)own_real(call, "cubic_coeff_a", -0.75F);
    self->extrapolation = (double)own_real(call, "extrapolation_value", 0);
    self->excludes_outside = own_integer(call, "exclude_outside", 0) != 0;
    return true;
}

/* Scales are stated, or follow from sizes. */
static bool read_scales(struct own_call *call, struct resize *self)
{
    const bool has_region = call->rule.node->opset >= 11;
    const struct own_tensor *scales = own_input(call, has_region ? 2 : 1);
    const struct own_tensor *region = has_region ? own_input(call, 1) : NULL;
    const bool has_sizes = has_region && own_input(call, 3) != NULL;
    const int64_t rank = self->x->rank;
    const bool crops = self->coordinates == TF_CROP_AND_RESIZE;
    if (!has_sizes && (scales == NULL || scales->type != ONNX_FLOAT || scales->elements != rank)) {
        return own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT, "its scales do not fit");
    }
    if (crops && (region == NULL || own_is_integer(region->type) || region->elements != 2 * rank)) {
        return own_fault(call, ONNX_SHAPE, 1, "the region does not fit");
    }
    for (uint32_t i = 0; i < rank; i++) {
        self->scales[i] = has_sizes ? (double)self->y->dims[i] / (double)self->x->dims[i]
                                    : own_real_at(scales, i);
        self->starts[i] = crops ? own_real_at(region, i) : 0;
        self->ends[i] = crops ? own_real_at(region, rank + i) : 1;
    }
    return true;
}

/* ---------------------------------------------------------------- taps */

/* Returns where a place of the output lies in the input. */
static double place_of(const struct resize *self, uint32_t axis, int64_t at)
{
    const double scale = self->scales[axis];
    const double in = (double)self->x->dims[axis];
    const double out = scale * in; /* not rounded, as the reference has it */
    const double start = self->starts[axis];
    const double end = self->ends[axis];
    switch (self->coordinates) {
    case HALF_PIXEL:
        break;
    case PYTORCH_HALF_PIXEL:
        return out > 1 ? ((double)at + 0.5) / scale - 0.5 : 0;
    case ALIGN_CORNERS:
        return out == 1 ? 0 : (double)at * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return (double)at / scale;
    case TF_HALF_PIXEL_FOR_NN:
        return ((double)at + 0.5) / scale;
    case TF_CROP_AND_RESIZE:
        return out > 1 ? start * (in - 1) + (double)at * (end - start) * (in - 1) / (out - 1)
                       : 0.5 * (start + end) * (in - 1);
    }
    return ((double)at + 0.5) / scale - 0.5;
}

static double nearest(enum rounding rounding, double place)
{
    switch (rounding) {
    case ROUND_PREFER_FLOOR:
        return ceil(place - 0.5);
    case ROUND_PREFER_CEIL:
        return floor(place + 0.5);
    case ROUND_FLOOR:
        return floor(place);
    case ROUND_CEIL:
        break;
    }
    return ceil(place);
}

static int64_t clamp(double place, int64_t size)
{
    return !(place > 0) ? 0 : place >= (double)(size - 1) ? size - 1 : (int64_t)place;
}

static double cubic_weight(double a, double distance)
{
    const double d = fabs(distance);
    if (d <= 1) {
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    }
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static uint32_t tap_count(const struct resize *self)
{
    return self->mode == MODE_NEAREST ? 1 : self->mode == MODE_LINEAR ? 2 : 4;
}

static struct taps taps_at(const struct resize *self, uint32_t axis, int64_t at)
{
    const int64_t size = self->x->dims[axis];
    const double place = place_of(self, axis, at);
    const double whole = floor(place);
    const uint32_t count = tap_count(self);
    struct taps taps = {.is_outside = self->coordinates == TF_CROP_AND_RESIZE &&
                                      !(place >= 0 && place <= (double)(size - 1))};
    double sum = 0;
    if (self->mode == MODE_NEAREST) {
        taps.index[0] = clamp(nearest(self->rounding, place), size);
        taps.weight[0] = 1;
        return taps;
    }
    for (uint32_t i = 0; i < count; i++) {
        const double tap = whole + (double)i - (self->mode == MODE_CUBIC ? 1 : 0);
        const double distance = place - tap;
        const bool is_there = tap >= 0 && tap <= (double)(size - 1);
        taps.index[i] = clamp(tap, size);
        taps.weight[i] =
            self->mode == MODE_LINEAR ? 1 - fabs(distance) : cubic_weight(self->cubic, distance);
        taps.weight[i] = self->excludes_outside && !is_there ? 0 : taps.weight[i];
        sum += taps.weight[i];
    }
    for (uint32_t i = 0; self->excludes_outside && i < count; i++) {
        taps.weight[i] /= sum;
    }
    return taps;
}

/* ---------------------------------------------------------------- elements */

static double element(const struct resize *self, const int64_t *dense, int64_t base,
                      const int64_t *place)
{
    const uint32_t count = tap_count(self);
    uint32_t digits[ONNX_RANK_MOST] = {0};
    double sum = 0;
    for (;;) {
        double weight = 1;
        int64_t at = base;
        for (uint32_t i = 0; i < self->axis_count; i++) {
            const struct taps *taps = &self->taps[i][place[self->axes[i]]];
            if (taps->is_outside) {
                return self->extrapolation;
            }
            weight *= taps->weight[digits[i]];
            at += taps->index[digits[i]] * dense[self->axes[i]];
        }
        sum += weight * own_real_at(self->x, at);
        uint32_t i = 0;
        while (i < self->axis_count && ++digits[i] == count) {
            digits[i++] = 0;
        }
        if (i == self->axis_count) {
            return sum;
        }
    }
}

static void put(struct own_tensor *y, int64_t at, double value)
{
    if (y->type == ONNX_FLOAT) {
        ((float *)y->to)[at] = (float)value;
    } else if (y->type == ONNX_DOUBLE) {
        ((double *)y->to)[at] = value;
    } else if (y->type == ONNX_INT8) {
        ((int8_t *)y->to)[at] = (int8_t)value;
    } else if (y->type == ONNX_UINT8) {
        ((uint8_t *)y->to)[at] = (uint8_t)value;
    } else {
        ((int32_t *)y->to)[at] = (int32_t)value;
    }
}

static void resize_all(const struct resize *self)
{
    int64_t dense[ONNX_RANK_MOST] = {0};
    own_walk_dense(self->x, dense);
    for (int64_t i = 0; i < self->y->elements; i++) {
        int64_t place[ONNX_RANK_MOST] = {0};
        int64_t rest = i;
        int64_t base = 0;
        for (uint32_t k = self->y->rank; k > 0; k--) {
            place[k - 1] = rest % self->y->dims[k - 1];
            rest /= self->y->dims[k - 1];
            base += place[k - 1] * dense[k - 1];
        }
        for (uint32_t k = 0; k < self->axis_count; k++) {
            base -= place[self->axes[k]] * dense[self->axes[k]];
        }
        put(self->y, i, element(self, dense, base, place));
    }
}

/* Makes the taps of all places of the dims whose size changes. */
static struct own_block *make_taps(struct own_call *call, struct resize *self)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < self->x->rank; i++) {
        const bool is_same = self->scales[i] == 1 && self->coordinates != TF_CROP_AND_RESIZE;
        if (!is_same) {
            self->axes[self->axis_count++] = i;
            count += self->y->dims[i];
        }
    }
    struct own_block *block = own_scratch(call, count, sizeof(struct taps));
    struct taps *next = block != NULL ? own_block_bytes(block) : NULL;
    for (uint32_t i = 0; next != NULL && i < self->axis_count; i++) {
        const int64_t size = self->y->dims[self->axes[i]];
        self->taps[i] = next;
        for (int64_t at = 0; at < size; at++) {
            next[at] = taps_at(self, self->axes[i], at);
        }
        next += size;
    }
    return block;
}

bool own_op_resize(struct own_call *call)
{
    struct resize self = {.x = own_input(call, 0), .y = own_output(call, 0)};
    if (!read_words(call, &self)) {
        return false;
    }
    if (self.y->elements == 0) {
        return true;
    }
    if (self.x->elements == 0) {
        return own_fault(call, ONNX_SHAPE, 0, "nothing cannot be made larger");
    }
    if (self.mode != MODE_NEAREST && own_is_integer(self.x->type)) {
        return own_fault(call, ONNX_OPERATOR, 0, "%s is resized to the nearest alone here",
                         onnx_type_name(self.x->type));
    }
    if (!read_scales(call, &self)) {
        return false;
    }
    struct own_block *block = make_taps(call, &self);
    if (block == NULL) {
        return false;
    }
    const bool is_done = own_spend(call, self.y->elements, (int64_t)1 << 2 * self.axis_count);
    if (is_done) {
        resize_all(&self);
    }
    own_block_release(block);
    return is_done;
}
