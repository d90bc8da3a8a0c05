/* This file has Cast and CastLike. A real becomes an integer by cutting its fraction off. What does
 * not fit wraps for integers, and is the nearest end of the range for reals. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_half.h"
#include "provider/onnx/own/own_parallel.h"
#include "provider/onnx/own/own_weights.h"

#include <string.h>

struct cast {
    const struct own_tensor *x;
    struct own_tensor *y;
};

static int64_t whole_of(double value)
{
    if (value != value) {
        return 0;
    }
    return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

static void put_real(struct own_tensor *y, int64_t at, double value)
{
    switch (y->type) {
    case ONNX_FLOAT:
        ((float *)y->to)[at] = (float)value;
        break;
    case ONNX_DOUBLE:
        ((double *)y->to)[at] = value;
        break;
    case ONNX_FLOAT16:
        ((uint16_t *)y->to)[at] = own_half_narrow((float)value);
        break;
    default: /* BFLOAT16 */
        ((uint16_t *)y->to)[at] = own_brain_narrow((float)value);
        break;
    }
}

static void put_whole(struct own_tensor *y, int64_t at, uint64_t value)
{
    switch (onnx_type_bytes(y->type)) {
    case 1:
        ((uint8_t *)y->to)[at] = (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)y->to)[at] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)y->to)[at] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)y->to)[at] = value;
        break;
    }
}

static void cast_one(const struct own_tensor *x, struct own_tensor *y, int64_t at)
{
    if (y->type == ONNX_BOOL) {
        const bool is_set =
            own_is_integer(x->type) ? own_integer_at(x, at) != 0 : own_real_at(x, at) != 0;
        ((uint8_t *)y->to)[at] = is_set;
    } else if (!own_is_integer(y->type)) {
        put_real(y, at, own_real_at(x, at));
    } else if (own_is_integer(x->type)) {
        put_whole(y, at, (uint64_t)own_integer_at(x, at));
    } else if (y->type == ONNX_UINT64 && own_real_at(x, at) >= 0x1p63) {
        const double real = own_real_at(x, at);
        put_whole(y, at, real >= 0x1p64 ? UINT64_MAX : (uint64_t)real);
    } else {
        put_whole(y, at, (uint64_t)whole_of(own_real_at(x, at)));
    }
}

static void work(void *context, int64_t first, int64_t last)
{
    const struct cast *cast = context;
    for (int64_t i = first; i < last; i++) {
        cast_one(cast->x, cast->y, i);
    }
}

bool own_op_cast(struct own_call *call)
{
    enum { OPERATIONS = 8 };
    struct cast cast = {own_input(call, 0), own_output(call, 0)};
    if (!own_type_is_held(cast.y->type)) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "%s is not made here",
                         onnx_type_name(cast.y->type));
    }
    if (cast.x->type == cast.y->type) {
        if (cast.x->bytes > 0) {
            memcpy(cast.y->to, cast.x->at, (size_t)cast.x->bytes);
        }
        return true;
    }
    own_parallel(call->threads, cast.x->elements, own_parallel_least(OPERATIONS), work, &cast);
    return true;
}
