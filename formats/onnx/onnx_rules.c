/* This file has the table of the operators that are known here: those of the domain ai.onnx whose
 * shapes follow from shapes, in the opsets of onnx.h. */
#include "formats/onnx/onnx_rules.h"

#include <string.h>

#define SAME(name)                                                                                 \
    {                                                                                              \
        name, onnx_rule_same, 1, 1, 0, 0                                                           \
    }
#define WIDE(name)                                                                                 \
    {                                                                                              \
        name, onnx_rule_wide, 2, 2, 0, 0                                                           \
    }
#define MANY(name)                                                                                 \
    {                                                                                              \
        name, onnx_rule_wide, 1, 0, 0, 0                                                           \
    }
#define REDUCE(name)                                                                               \
    {                                                                                              \
        name, onnx_rule_reduce, 1, 2, 0, 0                                                         \
    }

/* Sorted by name. */
static const struct onnx_operator operators[] = {
    SAME("Abs"),
    SAME("Acos"),
    {"Acosh", onnx_rule_same, 1, 1, 9, 0},
    WIDE("Add"),
    {"And", onnx_rule_compare, 2, 2, 0, 0},
    {"ArgMax", onnx_rule_arg, 1, 1, 0, 0},
    {"ArgMin", onnx_rule_arg, 1, 1, 0, 0},
    SAME("Asin"),
    {"Asinh", onnx_rule_same, 1, 1, 9, 0},
    SAME("Atan"),
    {"Atanh", onnx_rule_same, 1, 1, 9, 0},
    {"AveragePool", onnx_rule_pool, 1, 1, 0, 0},
    {"BatchNormalization", onnx_rule_batch_norm, 5, 5, 0, 0},
    {"Bernoulli", onnx_rule_random_like, 1, 1, 15, 0},
    {"BitShift", onnx_rule_wide, 2, 2, 11, 0},
    {"Cast", onnx_rule_cast, 1, 1, 0, 0},
    {"CastLike", onnx_rule_cast_like, 2, 2, 15, 0},
    SAME("Ceil"),
    {"Celu", onnx_rule_same, 1, 1, 12, 0},
    {"Clip", onnx_rule_same, 1, 3, 0, 0},
    {"Concat", onnx_rule_concat, 1, 0, 0, 0},
    {"Constant", onnx_rule_constant, 0, 0, 0, 0},
    {"ConstantOfShape", onnx_rule_constant_of_shape, 1, 1, 9, 0},
    {"Conv", onnx_rule_conv, 2, 3, 0, 0},
    {"ConvInteger", onnx_rule_conv_integer, 2, 4, 10, 0},
    {"ConvTranspose", onnx_rule_conv_transpose, 2, 3, 0, 0},
    SAME("Cos"),
    {"Cosh", onnx_rule_same, 1, 1, 9, 0},
    {"CumSum", onnx_rule_same, 2, 2, 11, 0},
    {"DepthToSpace", onnx_rule_depth_to_space, 1, 1, 0, 0},
    {"DequantizeLinear", onnx_rule_dequantize, 2, 3, 10, 0},
    WIDE("Div"),
    {"Dropout", onnx_rule_dropout, 1, 3, 0, 0},
    {"DynamicQuantizeLinear", onnx_rule_quantize_anew, 1, 1, 11, 0},
    {"Einsum", onnx_rule_einsum, 1, 0, 12, 0},
    SAME("Elu"),
    {"Equal", onnx_rule_compare, 2, 2, 0, 0},
    {"Erf", onnx_rule_same, 1, 1, 9, 0},
    SAME("Exp"),
    {"Expand", onnx_rule_expand, 2, 2, 8, 0},
    {"EyeLike", onnx_rule_eye, 1, 1, 9, 0},
    {"Flatten", onnx_rule_flatten, 1, 1, 0, 0},
    SAME("Floor"),
    {"GRU", onnx_rule_recurrent, 3, 6, 0, 0},
    {"Gather", onnx_rule_gather, 2, 2, 0, 0},
    {"GatherElements", onnx_rule_gather_elements, 2, 2, 11, 0},
    {"GatherND", onnx_rule_gather_nd, 2, 2, 11, 0},
    {"Gemm", onnx_rule_gemm, 2, 3, 0, 0},
    {"GlobalAveragePool", onnx_rule_global_pool, 1, 1, 0, 0},
    {"GlobalLpPool", onnx_rule_global_pool, 1, 1, 0, 0},
    {"GlobalMaxPool", onnx_rule_global_pool, 1, 1, 0, 0},
    {"Greater", onnx_rule_compare, 2, 2, 0, 0},
    {"GreaterOrEqual", onnx_rule_compare, 2, 2, 12, 0},
    SAME("HardSigmoid"),
    {"HardSwish", onnx_rule_same, 1, 1, 14, 0},
    SAME("Hardmax"),
    {"Identity", onnx_rule_identity, 1, 1, 0, 0},
    {"InstanceNormalization", onnx_rule_same, 3, 3, 0, 0},
    {"IsInf", onnx_rule_truth, 1, 1, 10, 0},
    {"IsNaN", onnx_rule_truth, 1, 1, 9, 0},
    SAME("LRN"),
    {"LSTM", onnx_rule_recurrent, 3, 8, 0, 0},
    {"LayerNormalization", onnx_rule_layer_norm, 2, 3, 17, 0},
    SAME("LeakyRelu"),
    {"Less", onnx_rule_compare, 2, 2, 0, 0},
    {"LessOrEqual", onnx_rule_compare, 2, 2, 12, 0},
    SAME("Log"),
    SAME("LogSoftmax"),
    SAME("LpNormalization"),
    {"LpPool", onnx_rule_pool, 1, 1, 0, 0},
    {"MatMul", onnx_rule_matmul, 2, 2, 0, 0},
    {"MatMulInteger", onnx_rule_matmul_integer, 2, 4, 10, 0},
    MANY("Max"),
    {"MaxPool", onnx_rule_pool, 1, 1, 0, 0},
    MANY("Mean"),
    {"MeanVarianceNormalization", onnx_rule_same, 1, 1, 9, 0},
    MANY("Min"),
    {"Mod", onnx_rule_wide, 2, 2, 10, 0},
    WIDE("Mul"),
    {"Neg", onnx_rule_negate, 1, 1, 0, 0},
    {"NegativeLogLikelihoodLoss", onnx_rule_loss, 2, 3, 12, 0},
    {"NonZero", onnx_rule_non_zero, 1, 1, 9, 0},
    SAME("Not"),
    {"OneHot", onnx_rule_one_hot, 3, 3, 9, 0},
    {"Or", onnx_rule_compare, 2, 2, 0, 0},
    {"PRelu", onnx_rule_same, 2, 2, 0, 0},
    {"Pad", onnx_rule_pad, 1, 3, 0, 0},
    WIDE("Pow"),
    {"QLinearConv", onnx_rule_conv_quantized, 8, 9, 10, 0},
    {"QLinearMatMul", onnx_rule_matmul_quantized, 8, 8, 10, 0},
    {"QuantizeLinear", onnx_rule_quantize, 2, 3, 10, 0},
    {"RNN", onnx_rule_recurrent, 3, 6, 0, 0},
    {"RandomNormalLike", onnx_rule_random_like, 1, 1, 0, 0},
    {"RandomUniformLike", onnx_rule_random_like, 1, 1, 0, 0},
    {"Range", onnx_rule_range, 3, 3, 11, 0},
    SAME("Reciprocal"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceSum"),
    REDUCE("ReduceSumSquare"),
    SAME("Relu"),
    {"Reshape", onnx_rule_reshape, 2, 2, 0, 0},
    {"Resize", onnx_rule_resize, 1, 4, 10, 0},
    {"ReverseSequence", onnx_rule_same, 2, 2, 10, 0},
    {"Round", onnx_rule_same, 1, 1, 11, 0},
    {"Scatter", onnx_rule_same, 3, 3, 9, 10},
    {"ScatterElements", onnx_rule_same, 3, 3, 11, 0},
    {"ScatterND", onnx_rule_same, 3, 3, 11, 0},
    SAME("Selu"),
    {"Shape", onnx_rule_shape, 1, 1, 0, 0},
    {"Shrink", onnx_rule_same, 1, 1, 9, 0},
    SAME("Sigmoid"),
    {"Sign", onnx_rule_same, 1, 1, 9, 0},
    SAME("Sin"),
    {"Sinh", onnx_rule_same, 1, 1, 9, 0},
    {"Size", onnx_rule_size, 1, 1, 0, 0},
    {"Slice", onnx_rule_slice, 1, 5, 0, 0},
    SAME("Softmax"),
    {"SoftmaxCrossEntropyLoss", onnx_rule_loss, 2, 3, 12, 0},
    SAME("Softplus"),
    SAME("Softsign"),
    {"SpaceToDepth", onnx_rule_space_to_depth, 1, 1, 0, 0},
    {"Split", onnx_rule_split, 1, 2, 0, 0},
    SAME("Sqrt"),
    {"Squeeze", onnx_rule_squeeze, 1, 2, 0, 0},
    WIDE("Sub"),
    MANY("Sum"),
    SAME("Tan"),
    SAME("Tanh"),
    {"ThresholdedRelu", onnx_rule_same, 1, 1, 10, 0},
    {"Tile", onnx_rule_tile, 2, 2, 0, 0},
    {"TopK", onnx_rule_top_k, 1, 2, 0, 0},
    {"Transpose", onnx_rule_transpose, 1, 1, 0, 0},
    {"Trilu", onnx_rule_same, 1, 2, 14, 0},
    {"Unsqueeze", onnx_rule_unsqueeze, 1, 2, 0, 0},
    {"Upsample", onnx_rule_resize, 1, 2, 0, 9},
    {"Where", onnx_rule_where, 3, 3, 9, 0},
    {"Xor", onnx_rule_compare, 2, 2, 0, 0},
};

enum { OPERATORS = sizeof operators / sizeof operators[0] };

const struct onnx_operator *onnx_operator_named(struct onnx_span name)
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

bool onnx_operator_is_known(struct onnx_span name)
{
    return onnx_operator_named(name) != NULL;
}

size_t onnx_operator_count(void)
{
    return OPERATORS;
}

const struct onnx_operator *onnx_operator_at(size_t index)
{
    return &operators[index];
}
