/* provider/onnx/own/own_ops.h names the operators' functions. Each function computes one operator,
 * or a family of operators that the call's kind tells apart. own_table.c says which is which. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_OPS_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_OPS_H

#include "provider/onnx/own/own_call.h"

/* op/op_unary.c */
enum own_unary {
    OWN_ABS,
    OWN_NEG,
    OWN_SIGN,
    OWN_CEIL,
    OWN_FLOOR,
    OWN_ROUND,
    OWN_SQRT,
    OWN_RECIPROCAL,
    OWN_EXP,
    OWN_LOG,
    OWN_SIN,
    OWN_COS,
    OWN_TAN,
    OWN_ASIN,
    OWN_ACOS,
    OWN_ATAN,
    OWN_SINH,
    OWN_COSH,
    OWN_TANH,
    OWN_ASINH,
    OWN_ACOSH,
    OWN_ATANH,
    OWN_ERF,
    OWN_UNARIES
};
bool own_op_unary(struct own_call *call);

/* op/op_activation.c */
enum own_activation {
    OWN_RELU,
    OWN_LEAKY_RELU,
    OWN_THRESHOLDED_RELU,
    OWN_ELU,
    OWN_CELU,
    OWN_SELU,
    OWN_SIGMOID,
    OWN_HARD_SIGMOID,
    OWN_HARD_SWISH,
    OWN_SOFTPLUS,
    OWN_SOFTSIGN,
    OWN_SHRINK,
    OWN_ACTIVATIONS
};
bool own_op_activation(struct own_call *call);
bool own_op_clip(struct own_call *call);
bool own_op_prelu(struct own_call *call);
bool own_op_dropout(struct own_call *call);

/* op/op_binary.c; Max, Min, Mean and Sum take any number of inputs. */
enum own_binary {
    OWN_ADD,
    OWN_SUB,
    OWN_MUL,
    OWN_DIV,
    OWN_MAX,
    OWN_MIN,
    OWN_SUM,
    OWN_MEAN,
    OWN_BINARIES
};
bool own_op_binary(struct own_call *call);
bool own_op_many(struct own_call *call);

/* op/op_power.c */
bool own_op_pow(struct own_call *call);
bool own_op_mod(struct own_call *call);
bool own_op_bit_shift(struct own_call *call);

/* op/op_logic.c */
enum own_comparison { OWN_EQUAL, OWN_GREATER, OWN_LESS, OWN_GREATER_EQUAL, OWN_LESS_EQUAL };
bool own_op_compare(struct own_call *call);
enum own_logic { OWN_AND, OWN_OR, OWN_XOR };
bool own_op_logic(struct own_call *call);
bool own_op_not(struct own_call *call);
bool own_op_where(struct own_call *call);
enum own_truth { OWN_IS_NAN, OWN_IS_INF };
bool own_op_truth(struct own_call *call);

/* op/op_reduce.c */
enum own_reduce {
    OWN_REDUCE_SUM,
    OWN_REDUCE_MEAN,
    OWN_REDUCE_MAX,
    OWN_REDUCE_MIN,
    OWN_REDUCE_PROD,
    OWN_REDUCE_L1,
    OWN_REDUCE_L2,
    OWN_REDUCE_LOG_SUM,
    OWN_REDUCE_LOG_SUM_EXP,
    OWN_REDUCE_SUM_SQUARE
};
bool own_op_reduce(struct own_call *call);

/* op/op_pick.c */
enum own_arg { OWN_ARG_MAX, OWN_ARG_MIN };
bool own_op_arg(struct own_call *call);
bool own_op_top_k(struct own_call *call);
bool own_op_cum_sum(struct own_call *call);

/* op/op_view.c: the output has the bytes of the input. */
bool own_op_view(struct own_call *call);

/* op/op_move.c */
bool own_op_transpose(struct own_call *call);
bool own_op_concat(struct own_call *call);
bool own_op_split(struct own_call *call);
bool own_op_slice(struct own_call *call);
bool own_op_expand(struct own_call *call);
bool own_op_tile(struct own_call *call);

/* op/op_place.c */
bool own_op_pad(struct own_call *call);
bool own_op_trilu(struct own_call *call);
bool own_op_reverse_sequence(struct own_call *call);
bool own_op_depth_to_space(struct own_call *call);
bool own_op_space_to_depth(struct own_call *call);

/* op/op_gather.c */
bool own_op_gather(struct own_call *call);
bool own_op_gather_elements(struct own_call *call);
bool own_op_gather_nd(struct own_call *call);
bool own_op_scatter_elements(struct own_call *call);
bool own_op_scatter_nd(struct own_call *call);

/* op/op_make.c */
bool own_op_constant(struct own_call *call);
bool own_op_constant_of_shape(struct own_call *call);
bool own_op_shape(struct own_call *call);
bool own_op_size(struct own_call *call);
bool own_op_range(struct own_call *call);
bool own_op_eye(struct own_call *call);
bool own_op_one_hot(struct own_call *call);
bool own_op_non_zero(struct own_call *call);
bool own_op_non_zero_shape(struct own_call *call);

/* op/op_cast.c */
bool own_op_cast(struct own_call *call);

/* op/op_matmul.c */
bool own_op_matmul(struct own_call *call);
bool own_op_gemm(struct own_call *call);
bool own_op_matmul_integer(struct own_call *call);
bool own_op_matmul_quantized(struct own_call *call);

/* op/op_einsum.c */
bool own_op_einsum(struct own_call *call);

/* op/op_conv.c */
bool own_op_conv(struct own_call *call);
bool own_op_conv_transpose(struct own_call *call);
bool own_op_conv_integer(struct own_call *call);
bool own_op_conv_quantized(struct own_call *call);

/* op/op_pool.c */
enum own_pool { OWN_POOL_MAX, OWN_POOL_AVERAGE, OWN_POOL_LP };
bool own_op_pool(struct own_call *call);
bool own_op_global_pool(struct own_call *call);

/* op/op_norm.c */
bool own_op_batch_norm(struct own_call *call);
bool own_op_instance_norm(struct own_call *call);
bool own_op_layer_norm(struct own_call *call);
bool own_op_lrn(struct own_call *call);
bool own_op_lp_norm(struct own_call *call);
bool own_op_mean_variance_norm(struct own_call *call);

/* op/op_softmax.c */
enum own_softmax { OWN_SOFTMAX, OWN_LOG_SOFTMAX, OWN_HARDMAX };
bool own_op_softmax(struct own_call *call);

/* op/op_quantize.c */
bool own_op_quantize(struct own_call *call);
bool own_op_dequantize(struct own_call *call);
bool own_op_quantize_anew(struct own_call *call);

/* op/op_resize.c; Upsample is a resize, too. */
bool own_op_resize(struct own_call *call);

/* op/op_recurrent.c */
enum own_recurrent { OWN_RNN, OWN_GRU, OWN_LSTM };
bool own_op_recurrent(struct own_call *call);

/* op/op_loss.c */
enum own_loss { OWN_NLL, OWN_CROSS_ENTROPY };
bool own_op_loss(struct own_call *call);

#endif
