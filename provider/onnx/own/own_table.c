/* This file is the table of the operators that are computed here. A row says of an operator which
 * types its first input may have, and which attributes are known. Whatever is not in a row is
 * refused by its name when a model is opened. */
#include "provider/onnx/own/own_table.h"

#include "provider/onnx/own/own_ops.h"

#include <string.h>

#define OF(type) (1U << ONNX_##type)
#define HALVES (OF(FLOAT16) | OF(BFLOAT16))
/* The halves are what OWN_BY_FLOAT adds. */
#define SHORT_FLOATS (OF(FLOAT) | HALVES)
#define FLOATS (SHORT_FLOATS | OF(DOUBLE))
#define BYTES (OF(INT8) | OF(UINT8))
#define UNSIGNED_ONES (OF(UINT8) | OF(UINT16) | OF(UINT32) | OF(UINT64))
#define SIGNED_ONES (FLOATS | OF(INT8) | OF(INT16) | OF(INT32) | OF(INT64))
#define NUMBERS (SIGNED_ONES | UNSIGNED_ONES)
#define CLIPPED (NUMBERS & ~(OF(INT64) | OF(UINT64)))
#define REDUCED (FLOATS | BYTES | OF(INT32) | OF(INT64))
#define HELD (NUMBERS | OF(BOOL))

static const struct own_operator operators[] = {
    {"Abs", own_op_unary, OWN_ABS, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Acos", own_op_unary, OWN_ACOS, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Acosh", own_op_unary, OWN_ACOSH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Add", own_op_binary, OWN_ADD, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"And", own_op_logic, OWN_AND, OF(BOOL), "", 0, NULL},
    {"ArgMax", own_op_arg, OWN_ARG_MAX, NUMBERS, "axis keepdims select_last_index", OWN_BY_FLOAT,
     NULL},
    {"ArgMin", own_op_arg, OWN_ARG_MIN, NUMBERS, "axis keepdims select_last_index", OWN_BY_FLOAT,
     NULL},
    {"Asin", own_op_unary, OWN_ASIN, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Asinh", own_op_unary, OWN_ASINH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Atan", own_op_unary, OWN_ATAN, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Atanh", own_op_unary, OWN_ATANH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"AveragePool", own_op_pool, OWN_POOL_AVERAGE, FLOATS,
     "auto_pad ceil_mode count_include_pad kernel_shape pads strides", OWN_BY_FLOAT, NULL},
    {"BatchNormalization", own_op_batch_norm, 0, SHORT_FLOATS, "epsilon momentum training_mode",
     OWN_BY_FLOAT, NULL},
    {"BitShift", own_op_bit_shift, 0, UNSIGNED_ONES, "direction", 0, NULL},
    {"Cast", own_op_cast, 0, HELD, "to", 0, NULL},
    {"CastLike", own_op_cast, 0, HELD, "", 0, NULL},
    {"Ceil", own_op_unary, OWN_CEIL, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Celu", own_op_activation, OWN_CELU, FLOATS, "alpha", OWN_BY_FLOAT, NULL},
    {"Clip", own_op_clip, 0, CLIPPED, "min max", OWN_BY_FLOAT, NULL},
    {"Concat", own_op_concat, 0, HELD, "axis", 0, NULL},
    {"Constant", own_op_constant, 0, 0, "value value_float value_floats value_int value_ints", 0,
     NULL},
    {"ConstantOfShape", own_op_constant_of_shape, 0, OF(INT64), "value", 0, NULL},
    {"Conv", own_op_conv, 0, SHORT_FLOATS, "auto_pad dilations group kernel_shape pads strides",
     OWN_BY_FLOAT, NULL},
    {"ConvInteger", own_op_conv_integer, 0, BYTES,
     "auto_pad dilations group kernel_shape pads strides", 0, NULL},
    {"ConvTranspose", own_op_conv_transpose, 0, SHORT_FLOATS,
     "auto_pad dilations group kernel_shape pads strides output_padding output_shape", OWN_BY_FLOAT,
     NULL},
    {"Cos", own_op_unary, OWN_COS, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Cosh", own_op_unary, OWN_COSH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"CumSum", own_op_cum_sum, 0, FLOATS | OF(INT32) | OF(INT64), "exclusive reverse", OWN_BY_FLOAT,
     NULL},
    {"DepthToSpace", own_op_depth_to_space, 0, HELD, "blocksize mode", 0, NULL},
    {"DequantizeLinear", own_op_dequantize, 0, BYTES | OF(INT32), "axis", 0, NULL},
    {"Div", own_op_binary, OWN_DIV, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Dropout", own_op_dropout, 0, FLOATS, "ratio seed", OWN_IS_VIEW | OWN_LACKS_FIRST, NULL},
    {"DynamicQuantizeLinear", own_op_quantize_anew, 0, OF(FLOAT), "", OWN_LACKS_FIRST, NULL},
    {"Einsum", own_op_einsum, 0, FLOATS, "equation", OWN_BY_FLOAT, NULL},
    {"Elu", own_op_activation, OWN_ELU, FLOATS, "alpha", OWN_BY_FLOAT, NULL},
    {"Equal", own_op_compare, OWN_EQUAL, NUMBERS | OF(BOOL), "", OWN_BY_FLOAT, NULL},
    {"Erf", own_op_unary, OWN_ERF, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Exp", own_op_unary, OWN_EXP, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Expand", own_op_expand, 0, HELD, "", 0, NULL},
    {"EyeLike", own_op_eye, 0, HELD, "dtype k", 0, NULL},
    {"Flatten", own_op_view, 0, HELD, "axis", OWN_IS_VIEW, NULL},
    {"Floor", own_op_unary, OWN_FLOOR, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"GRU", own_op_recurrent, OWN_GRU, SHORT_FLOATS,
     "activations direction hidden_size layout linear_before_reset", OWN_BY_FLOAT | OWN_LACKS_FIRST,
     NULL},
    {"Gather", own_op_gather, 0, HELD, "axis", 0, NULL},
    {"GatherElements", own_op_gather_elements, 0, HELD, "axis", 0, NULL},
    {"GatherND", own_op_gather_nd, 0, HELD, "batch_dims", 0, NULL},
    {"Gemm", own_op_gemm, 0, SHORT_FLOATS, "alpha beta transA transB", OWN_BY_FLOAT, NULL},
    {"GlobalAveragePool", own_op_global_pool, OWN_POOL_AVERAGE, SHORT_FLOATS, "", OWN_BY_FLOAT,
     NULL},
    {"GlobalLpPool", own_op_global_pool, OWN_POOL_LP, SHORT_FLOATS, "p", OWN_BY_FLOAT, NULL},
    {"GlobalMaxPool", own_op_global_pool, OWN_POOL_MAX, SHORT_FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Greater", own_op_compare, OWN_GREATER, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"GreaterOrEqual", own_op_compare, OWN_GREATER_EQUAL, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"HardSigmoid", own_op_activation, OWN_HARD_SIGMOID, FLOATS, "alpha beta", OWN_BY_FLOAT, NULL},
    {"HardSwish", own_op_activation, OWN_HARD_SWISH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Hardmax", own_op_softmax, OWN_HARDMAX, SHORT_FLOATS, "axis", OWN_BY_FLOAT, NULL},
    {"Identity", own_op_view, 0, HELD, "", OWN_IS_VIEW, NULL},
    {"InstanceNormalization", own_op_instance_norm, 0, SHORT_FLOATS, "epsilon", OWN_BY_FLOAT, NULL},
    {"IsInf", own_op_truth, OWN_IS_INF, FLOATS, "detect_negative detect_positive", 0, NULL},
    {"IsNaN", own_op_truth, OWN_IS_NAN, FLOATS, "", 0, NULL},
    {"LRN", own_op_lrn, 0, SHORT_FLOATS, "alpha beta bias size", OWN_BY_FLOAT, NULL},
    {"LSTM", own_op_recurrent, OWN_LSTM, SHORT_FLOATS, "activations direction hidden_size layout",
     OWN_BY_FLOAT | OWN_LACKS_FIRST, NULL},
    {"LayerNormalization", own_op_layer_norm, 0, SHORT_FLOATS, "axis epsilon stash_type",
     OWN_BY_FLOAT, NULL},
    {"LeakyRelu", own_op_activation, OWN_LEAKY_RELU, FLOATS, "alpha", OWN_BY_FLOAT, NULL},
    {"Less", own_op_compare, OWN_LESS, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"LessOrEqual", own_op_compare, OWN_LESS_EQUAL, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Log", own_op_unary, OWN_LOG, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"LogSoftmax", own_op_softmax, OWN_LOG_SOFTMAX, SHORT_FLOATS, "axis", OWN_BY_FLOAT, NULL},
    {"LpNormalization", own_op_lp_norm, 0, SHORT_FLOATS, "axis p", OWN_BY_FLOAT, NULL},
    {"LpPool", own_op_pool, OWN_POOL_LP, FLOATS, "auto_pad kernel_shape p pads strides",
     OWN_BY_FLOAT, NULL},
    {"MatMul", own_op_matmul, 0, SHORT_FLOATS, "", OWN_BY_FLOAT, NULL},
    {"MatMulInteger", own_op_matmul_integer, 0, BYTES, "", 0, NULL},
    {"Max", own_op_many, OWN_MAX, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"MaxPool", own_op_pool, OWN_POOL_MAX, FLOATS | BYTES,
     "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", OWN_BY_FLOAT, NULL},
    {"Mean", own_op_many, OWN_MEAN, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"MeanVarianceNormalization", own_op_mean_variance_norm, 0, SHORT_FLOATS, "axes", OWN_BY_FLOAT,
     NULL},
    {"Min", own_op_many, OWN_MIN, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Mod", own_op_mod, 0, NUMBERS, "fmod", OWN_BY_FLOAT, NULL},
    {"Mul", own_op_binary, OWN_MUL, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Neg", own_op_unary, OWN_NEG, SIGNED_ONES, "", OWN_BY_FLOAT, NULL},
    {"NegativeLogLikelihoodLoss", own_op_loss, OWN_NLL, SHORT_FLOATS, "ignore_index reduction",
     OWN_BY_FLOAT, NULL},
    {"NonZero", own_op_non_zero, 0, HELD, "", 0, own_op_non_zero_shape},
    {"Not", own_op_not, 0, OF(BOOL), "", 0, NULL},
    {"OneHot", own_op_one_hot, 0, NUMBERS, "axis", OWN_READS_REALS, NULL},
    {"Or", own_op_logic, OWN_OR, OF(BOOL), "", 0, NULL},
    {"PRelu", own_op_prelu, 0, SHORT_FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Pad", own_op_pad, 0, HELD, "mode pads value", 0, NULL},
    {"Pow", own_op_pow, 0, FLOATS | OF(INT32) | OF(INT64), "", OWN_BY_FLOAT, NULL},
    {"QLinearConv", own_op_conv_quantized, 0, BYTES,
     "auto_pad dilations group kernel_shape pads strides", 0, NULL},
    {"QLinearMatMul", own_op_matmul_quantized, 0, BYTES, "", 0, NULL},
    {"QuantizeLinear", own_op_quantize, 0, OF(FLOAT) | OF(INT32), "axis", 0, NULL},
    {"RNN", own_op_recurrent, OWN_RNN, SHORT_FLOATS, "activations direction hidden_size layout",
     OWN_BY_FLOAT | OWN_LACKS_FIRST, NULL},
    {"Range", own_op_range, 0, OF(FLOAT) | OF(INT16) | OF(INT32) | OF(INT64), "", OWN_READS_REALS,
     NULL},
    {"Reciprocal", own_op_unary, OWN_RECIPROCAL, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"ReduceL1", own_op_reduce, OWN_REDUCE_L1, REDUCED, "axes keepdims", OWN_BY_FLOAT, NULL},
    {"ReduceL2", own_op_reduce, OWN_REDUCE_L2, FLOATS, "axes keepdims", OWN_BY_FLOAT, NULL},
    {"ReduceLogSum", own_op_reduce, OWN_REDUCE_LOG_SUM, FLOATS, "axes keepdims", OWN_BY_FLOAT,
     NULL},
    {"ReduceLogSumExp", own_op_reduce, OWN_REDUCE_LOG_SUM_EXP, FLOATS, "axes keepdims",
     OWN_BY_FLOAT, NULL},
    {"ReduceMax", own_op_reduce, OWN_REDUCE_MAX, REDUCED, "axes keepdims", OWN_BY_FLOAT, NULL},
    {"ReduceMean", own_op_reduce, OWN_REDUCE_MEAN, REDUCED, "axes keepdims", OWN_BY_FLOAT, NULL},
    {"ReduceMin", own_op_reduce, OWN_REDUCE_MIN, REDUCED, "axes keepdims", OWN_BY_FLOAT, NULL},
    {"ReduceProd", own_op_reduce, OWN_REDUCE_PROD, REDUCED, "axes keepdims", OWN_BY_FLOAT, NULL},
    {"ReduceSum", own_op_reduce, OWN_REDUCE_SUM, REDUCED, "axes keepdims noop_with_empty_axes",
     OWN_BY_FLOAT, NULL},
    {"ReduceSumSquare", own_op_reduce, OWN_REDUCE_SUM_SQUARE, REDUCED, "axes keepdims",
     OWN_BY_FLOAT, NULL},
    {"Relu", own_op_activation, OWN_RELU, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Reshape", own_op_view, 0, HELD, "allowzero", OWN_IS_VIEW, NULL},
    {"Resize", own_op_resize, 0, FLOATS | BYTES | OF(INT32),
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
     "nearest_mode",
     OWN_BY_FLOAT | OWN_READS_REALS, NULL},
    {"ReverseSequence", own_op_reverse_sequence, 0, HELD, "batch_axis time_axis", 0, NULL},
    {"Round", own_op_unary, OWN_ROUND, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Scatter", own_op_scatter_elements, 0, HELD, "axis", 0, NULL},
    {"ScatterElements", own_op_scatter_elements, 0, HELD, "axis reduction", 0, NULL},
    {"ScatterND", own_op_scatter_nd, 0, HELD, "reduction", 0, NULL},
    {"Selu", own_op_activation, OWN_SELU, FLOATS, "alpha gamma", OWN_BY_FLOAT, NULL},
    {"Shape", own_op_shape, 0, HELD, "start end", 0, NULL},
    {"Shrink", own_op_activation, OWN_SHRINK, FLOATS, "lambd bias", OWN_BY_FLOAT, NULL},
    {"Sigmoid", own_op_activation, OWN_SIGMOID, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Sign", own_op_unary, OWN_SIGN, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Sin", own_op_unary, OWN_SIN, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Sinh", own_op_unary, OWN_SINH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Size", own_op_size, 0, HELD, "", 0, NULL},
    {"Slice", own_op_slice, 0, HELD, "axes starts ends", 0, NULL},
    {"Softmax", own_op_softmax, OWN_SOFTMAX, SHORT_FLOATS, "axis", OWN_BY_FLOAT, NULL},
    {"SoftmaxCrossEntropyLoss", own_op_loss, OWN_CROSS_ENTROPY, SHORT_FLOATS,
     "ignore_index reduction", OWN_BY_FLOAT, NULL},
    {"Softplus", own_op_activation, OWN_SOFTPLUS, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Softsign", own_op_activation, OWN_SOFTSIGN, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"SpaceToDepth", own_op_space_to_depth, 0, HELD, "blocksize", 0, NULL},
    {"Split", own_op_split, 0, HELD, "axis split", 0, NULL},
    {"Sqrt", own_op_unary, OWN_SQRT, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Squeeze", own_op_view, 0, HELD, "axes", OWN_IS_VIEW, NULL},
    {"Sub", own_op_binary, OWN_SUB, NUMBERS, "", OWN_BY_FLOAT, NULL},
    {"Sum", own_op_many, OWN_SUM, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Tan", own_op_unary, OWN_TAN, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"Tanh", own_op_unary, OWN_TANH, FLOATS, "", OWN_BY_FLOAT, NULL},
    {"ThresholdedRelu", own_op_activation, OWN_THRESHOLDED_RELU, FLOATS, "alpha", OWN_BY_FLOAT,
     NULL},
    {"Tile", own_op_tile, 0, HELD, "", 0, NULL},
    {"TopK", own_op_top_k, 0, NUMBERS, "axis k largest sorted", OWN_LACKS_FIRST, NULL},
    {"Transpose", own_op_transpose, 0, HELD, "perm", 0, NULL},
    {"Trilu", own_op_trilu, 0, HELD, "upper", 0, NULL},
    {"Unsqueeze", own_op_view, 0, HELD, "axes", OWN_IS_VIEW, NULL},
    {"Upsample", own_op_resize, 0, FLOATS | BYTES | OF(INT32), "mode",
     OWN_BY_FLOAT | OWN_READS_REALS, NULL},
    {"Where", own_op_where, 0, OF(BOOL), "", 0, NULL},
    {"Xor", own_op_logic, OWN_XOR, OF(BOOL), "", 0, NULL},
};

enum { OPERATORS = sizeof operators / sizeof operators[0] };

const struct own_operator *own_operator_named(struct onnx_span name)
{
    size_t low = 0;
    size_t high = name.size == 0 ? 0 : OPERATORS;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = onnx_span_compare(name, operators[middle].name);
        if (order == 0) {
            return &operators[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return NULL;
}

size_t own_operator_count(void)
{
    return OPERATORS;
}

const struct own_operator *own_operator_at(size_t index)
{
    return &operators[index];
}

bool own_operator_knows(const struct own_operator *known, struct onnx_span attribute)
{
    for (const char *at = known->attributes; *at != '\0';) {
        const size_t size = strcspn(at, " ");
        if (size == attribute.size && memcmp(at, attribute.at, size) == 0) {
            return true;
        }
        at += size;
        at += *at == ' ';
    }
    return false;
}
