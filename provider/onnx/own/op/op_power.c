/* This file has Pow, whose exponent may be of another type than its base, Mod, and BitShift. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_rows.h"
#include "provider/onnx/own/own_walk.h"

#include <math.h>

/* ---------------------------------------------------------------- Pow */

/* Returns an integer to the power of another one, which wraps. A negative power of all but 1 and
 * -1 is a fraction, which counts as 0. */
static int64_t whole_power(int64_t base, int64_t power)
{
    uint64_t result = 1;
    uint64_t square = (uint64_t)base;
    if (power < 0) {
        return base == 1 ? 1 : base == -1 ? (power % 2 == 0 ? 1 : -1) : 0;
    }
    for (; power > 0; power >>= 1) {
        result *= (power & 1) != 0 ? square : 1;
        square *= square;
    }
    return (int64_t)result;
}

/* Returns a real as an integer: cut off, and at the ends of the range where it is beyond. */
static int64_t cut(double value)
{
    return value != value    ? 0
           : value >= 0x1p63 ? INT64_MAX
           : value < -0x1p63 ? INT64_MIN
                             : (int64_t)value;
}

static void put_power(const struct own_tensor *x, int64_t x_at, const struct own_tensor *y,
                      int64_t y_at, struct own_tensor *to, int64_t at)
{
    const bool is_whole = own_is_integer(x->type) && own_is_integer(y->type);
    const double power = own_real_at(y, y_at);
    switch (x->type) {
    case ONNX_FLOAT:
        ((float *)to->to)[at] = powf(((const float *)x->at)[x_at], (float)power);
        return;
    case ONNX_DOUBLE:
        ((double *)to->to)[at] = pow(((const double *)x->at)[x_at], power);
        return;
    default:
        break;
    }
    const int64_t base = own_integer_at(x, x_at);
    const int64_t value =
        is_whole ? whole_power(base, own_integer_at(y, y_at)) : cut(pow((double)base, power));
    if (x->type == ONNX_INT32) {
        ((int32_t *)to->to)[at] = (int32_t)value;
    } else {
        ((int64_t *)to->to)[at] = value;
    }
}

static bool power_is_square(const struct own_tensor *x, const struct own_tensor *power)
{
    return x->type == ONNX_FLOAT && power->elements == 1 && own_real_at(power, 0) == 2;
}

bool own_op_pow(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *power = own_input(call, 1);
    struct own_tensor *y = own_output(call, 0);
    if (!own_is_integer(power->type) && power->type != ONNX_FLOAT && power->type != ONNX_DOUBLE) {
        return own_fault(call, ONNX_OPERATOR, 1, "%s is not computed here",
                         onnx_type_name(power->type));
    }
    if (power_is_square(x, power)) {
        const float *values = x->at;
        for (int64_t i = 0; i < x->elements; i++) {
            ((float *)y->to)[i] = values[i] * values[i];
        }
        return true;
    }
    struct own_walk walk = own_walk_over(y->rank, y->dims);
    own_walk_operand(&walk, 0, x);
    own_walk_operand(&walk, 1, power);
    own_walk_ready(&walk);
    for (int64_t row = 0, at = 0; row < walk.rows; row++) {
        own_walk_seek(&walk, row);
        for (int64_t i = 0; i < walk.length; i++) {
            put_power(x, walk.at[0] + i * walk.step[0], power, walk.at[1] + i * walk.step[1], y,
                      at++);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- Mod */

/* The sign is that of the divisor, unless fmod is asked for; then it is that of the dividend. */
#define SIGNED_MOD(end, element, wide)                                                             \
    OWN_ROW(fmod_##end, element, element, y == -1 ? 0 : x % y)                                     \
    OWN_ROW(mod_##end, element, element,                                                           \
            y == -1                                ? 0                                             \
            : x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y                                     \
                                                   : x % y)
#define UNSIGNED_MOD(end, element, wide)                                                           \
    OWN_ROW(fmod_##end, element, element, x % y)                                                   \
    OWN_ROW(mod_##end, element, element, x % y)
OWN_EACH_SIGNED(SIGNED_MOD)
OWN_EACH_UNSIGNED(UNSIGNED_MOD)
OWN_ROW(fmod_float, float, float, fmodf(x, y))
OWN_ROW(fmod_double, double, double, fmod(x, y))

static void (*const mods[2][ONNX_TYPES])(const struct own_row *row) = {
    {OWN_SIGNED(mod), OWN_UNSIGNED(mod)},
    {OWN_REALS(fmod), OWN_SIGNED(fmod), OWN_UNSIGNED(fmod)},
};

bool own_op_mod(struct own_call *call)
{
    const struct own_tensor *a = own_input(call, 0);
    const struct own_tensor *b = own_input(call, 1);
    const bool is_fmod = own_integer(call, "fmod", 0) != 0;
    if (mods[is_fmod][a->type] == NULL) {
        return own_fault(call, ONNX_OPERATOR, 0, "%s with fmod %d is not computed here",
                         onnx_type_name(a->type), is_fmod);
    }
    if (!own_input_is(call, 1, a->type)) {
        return false;
    }
    for (int64_t i = 0; own_is_integer(b->type) && i < b->elements; i++) {
        if (own_integer_at(b, i) == 0) {
            return own_fault(call, ONNX_SHAPE, 1, "an integer is divided by zero");
        }
    }
    own_rows(call, a, b, own_output(call, 0), mods[is_fmod][a->type]);
    return true;
}

/* ---------------------------------------------------------------- BitShift */

/* A shift by all bits or more leaves none. */
#define SHIFTS(end, element, wide)                                                                 \
    OWN_ROW(left_##end, element, element, y >= 8 * sizeof(element) ? 0 : (wide)x << y)             \
    OWN_ROW(right_##end, element, element, y >= 8 * sizeof(element) ? 0 : (wide)x >> y)
OWN_EACH_UNSIGNED(SHIFTS)

bool own_op_bit_shift(struct own_call *call)
{
    static void (*const shifts[2][ONNX_TYPES])(const struct own_row *row) = {
        {OWN_UNSIGNED(right)},
        {OWN_UNSIGNED(left)},
    };
    const struct own_tensor *a = own_input(call, 0);
    const struct onnx_span direction = own_text(call, "direction", "");
    const bool is_left = onnx_span_is(direction, "LEFT");
    if (!is_left && !onnx_span_is(direction, "RIGHT")) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT,
                         "the direction is neither LEFT nor RIGHT");
    }
    if (!own_input_is(call, 1, a->type)) {
        return false;
    }
    own_rows(call, a, own_input(call, 1), own_output(call, 0), shifts[is_left][a->type]);
    return true;
}
