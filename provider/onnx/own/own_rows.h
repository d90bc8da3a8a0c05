/* provider/onnx/own/own_rows.h has the loop of operators that take two tensors which broadcast, and
 * the macros that write its rows for each type of elements. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_ROWS_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_ROWS_H

#include "provider/onnx/own/own_call.h"

/* One row of two operands; steps are in elements, and 0 repeats one element. */
struct own_row {
    const void *a, *b;
    int64_t a_step, b_step;
    void *to;
    int64_t count;
};

/* Computes a tensor out of two, row by row, on the call's threads. `b` may be `a`. */
void own_rows(struct own_call *call, const struct own_tensor *a, const struct own_tensor *b,
              struct own_tensor *to, void (*compute)(const struct own_row *row));

/* Writes a function that computes a row: `expression` is of x and y. The three usual forms are
 * loops of their own, which a compiler can widen. */
#define OWN_ROW_LOOP(x_at, y_at, expression)                                                       \
    for (int64_t i = 0; i < row->count; i++) {                                                     \
        const own_row_element x = a[x_at];                                                         \
        const own_row_element y = b[y_at];                                                         \
        to[i] = (own_row_result)(expression);                                                      \
    }
#define OWN_ROW(name, element, result, expression)                                                 \
    static void name(const struct own_row *row)                                                    \
    {                                                                                              \
        typedef element own_row_element;                                                           \
        typedef result own_row_result;                                                             \
        const element *a = row->a;                                                                 \
        const element *b = row->b;                                                                 \
        result *to = row->to;                                                                      \
        if (row->a_step == 1 && row->b_step == 1) {                                                \
            OWN_ROW_LOOP(i, i, expression)                                                         \
        } else if (row->a_step == 1 && row->b_step == 0) {                                         \
            OWN_ROW_LOOP(i, 0, expression)                                                         \
        } else if (row->a_step == 0 && row->b_step == 1) {                                         \
            OWN_ROW_LOOP(0, i, expression)                                                         \
        } else {                                                                                   \
            OWN_ROW_LOOP(i * row->a_step, i * row->b_step, expression)                             \
        }                                                                                          \
    }

/* Entries of a table by type, for functions whose names end in the type. */
#define OWN_REALS(name) [ONNX_FLOAT] = name##_float, [ONNX_DOUBLE] = name##_double
#define OWN_SIGNED(name)                                                                           \
    [ONNX_INT8] = name##_int8, [ONNX_INT16] = name##_int16, [ONNX_INT32] = name##_int32,           \
    [ONNX_INT64] = name##_int64
#define OWN_UNSIGNED(name)                                                                         \
    [ONNX_UINT8] = name##_uint8, [ONNX_UINT16] = name##_uint16, [ONNX_UINT32] = name##_uint32,     \
    [ONNX_UINT64] = name##_uint64

/* Calls a macro for each type: with the end of a name, the type in C, and a type of 64 bits in
 * which sums and products of elements wrap without a fault. */
#define OWN_EACH_SIGNED(MACRO)                                                                     \
    MACRO(int8, int8_t, uint64_t)                                                                  \
    MACRO(int16, int16_t, uint64_t)                                                                \
    MACRO(int32, int32_t, uint64_t)                                                                \
    MACRO(int64, int64_t, uint64_t)
#define OWN_EACH_UNSIGNED(MACRO)                                                                   \
    MACRO(uint8, uint8_t, uint64_t)                                                                \
    MACRO(uint16, uint16_t, uint64_t)                                                              \
    MACRO(uint32, uint32_t, uint64_t)                                                              \
    MACRO(uint64, uint64_t, uint64_t)
#define OWN_EACH_REAL(MACRO) MACRO(float, float, float) MACRO(double, double, double)

#endif
