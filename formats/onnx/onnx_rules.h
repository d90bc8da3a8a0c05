/* formats/onnx/onnx_rules.h holds what the rules of operators share. A rule looks at the inputs of
 * one node and makes its outputs' types and dims.
 *
 *     static bool flatten(struct onnx_rule *rule)
 *     {
 *         const struct onnx_fact *x = onnx_rule_input(rule, 0);
 *         ... return x != NULL && onnx_rule_make(rule, 0, x->type, 2, dims);
 *     }
 *
 * A rule returns false after a fault, which names the node, its operator and the input. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_RULES_H
#define BOURSE_FORMATS_ONNX_ONNX_RULES_H

#include "formats/onnx/onnx_shapes.h"

/* No input in particular is the reason of a fault. */
#define ONNX_NO_INPUT UINT32_MAX

struct onnx_rule {
    const struct onnx_model *model;
    struct onnx_shapes *shapes;
    const struct onnx_node *node;
    struct problem *problem;
    enum onnx_status status;
};

struct onnx_operator {
    const char *name;
    bool (*infer)(struct onnx_rule *rule);
    uint8_t inputs_least, inputs_most; /* inputs_most 0: any number */
    uint8_t since; /* the first opset that has it; 0: before the first that is read */
    uint8_t until; /* the last opset that has it; 0: the newest has it, too */
};

/* Returns true when an operator of the domain ai.onnx is known here. */
bool onnx_operator_is_known(struct onnx_span name);
/* Returns the number of known operators. */
size_t onnx_operator_count(void);

/* Returns the operator of the domain ai.onnx with this name, or NULL. */
const struct onnx_operator *onnx_operator_named(struct onnx_span name);

/* Returns the operator at a place of the table, which is sorted by name. */
const struct onnx_operator *onnx_operator_at(size_t index);

bool onnx_rule_fault(struct onnx_rule *rule, enum onnx_status status, uint32_t input,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---------------------------------------------------------------- inputs and attributes */

/* Returns true when the node has this input and does not leave it out. */
bool onnx_rule_has(const struct onnx_rule *rule, uint32_t input);
/* Returns an input that has to be there, or NULL after a fault. */
const struct onnx_fact *onnx_rule_input(struct onnx_rule *rule, uint32_t input);
/* Returns the values of an input of integers, or NULL after a fault. */
const int64_t *onnx_rule_values(struct onnx_rule *rule, uint32_t input, size_t *ret_count);
/* Returns the values of a fact, or NULL when they are not known. */
const int64_t *onnx_rule_known(const struct onnx_rule *rule, const struct onnx_fact *fact);

int64_t onnx_rule_integer(const struct onnx_rule *rule, const char *name, int64_t usual);
/* Returns true when a text attribute is there and equal to `text`. */
bool onnx_rule_says(const struct onnx_rule *rule, const char *name, const char *text);
/* Reads a list of at most 2 * ONNX_RANK_MOST integers. A missing list has the count 0. Returns
 * false after a fault. */
bool onnx_rule_list(struct onnx_rule *rule, const char *name, int64_t *ret_values,
                    size_t *ret_count, bool *ret_is_there);
/* Takes a list from an input, or from the attribute in opsets before `since`. */
bool onnx_rule_list_at(struct onnx_rule *rule, uint32_t input, const char *name, int64_t since,
                       int64_t *ret_values, size_t *ret_count, bool *ret_is_there);
/* Turns an axis of -rank to rank - 1 into one of 0 to rank - 1. */
bool onnx_rule_axis(struct onnx_rule *rule, int64_t axis, uint32_t rank, uint32_t *ret_axis);
/* Reads the type of elements that an attribute says, if it is there. */
bool onnx_rule_type(struct onnx_rule *rule, const char *name, enum onnx_type *type);

/* ---------------------------------------------------------------- outputs */

bool onnx_rule_make(struct onnx_rule *rule, uint32_t output, enum onnx_type type, uint32_t rank,
                    const int64_t *dims);
bool onnx_rule_make_like(struct onnx_rule *rule, uint32_t output, const struct onnx_fact *like,
                         enum onnx_type type);
/* Keeps the values of an output of integers that was made. Too many are not kept. Returns false
 * when memory is short. */
bool onnx_rule_keep(struct onnx_rule *rule, uint32_t output, const int64_t *values);
/* Keeps the values of an input for an output with as many elements, if they are known. */
bool onnx_rule_keep_same(struct onnx_rule *rule, uint32_t output, const struct onnx_fact *from);

/* Broadcasts the dims of inputs `first` to `last` by ONNX's rules. */
bool onnx_rule_broadcast(struct onnx_rule *rule, uint32_t first, uint32_t last, uint32_t *ret_rank,
                         int64_t *ret_dims);
/* Returns the element of an input that broadcasting puts at place `at` of the output. */
size_t onnx_rule_broadcast_at(const struct onnx_fact *from, const struct onnx_fact *to, size_t at);

/* ---------------------------------------------------------------- the rules */

bool onnx_rule_same(struct onnx_rule *rule);
bool onnx_rule_identity(struct onnx_rule *rule);
bool onnx_rule_negate(struct onnx_rule *rule);
bool onnx_rule_truth(struct onnx_rule *rule);
bool onnx_rule_wide(struct onnx_rule *rule);
bool onnx_rule_compare(struct onnx_rule *rule);
bool onnx_rule_where(struct onnx_rule *rule);
bool onnx_rule_cast(struct onnx_rule *rule);
bool onnx_rule_cast_like(struct onnx_rule *rule);
bool onnx_rule_random_like(struct onnx_rule *rule);
bool onnx_rule_dropout(struct onnx_rule *rule);
bool onnx_rule_batch_norm(struct onnx_rule *rule);
bool onnx_rule_layer_norm(struct onnx_rule *rule);
bool onnx_rule_quantize(struct onnx_rule *rule);
bool onnx_rule_dequantize(struct onnx_rule *rule);
bool onnx_rule_quantize_anew(struct onnx_rule *rule);

bool onnx_rule_matmul(struct onnx_rule *rule);
bool onnx_rule_matmul_integer(struct onnx_rule *rule);
bool onnx_rule_matmul_quantized(struct onnx_rule *rule);
bool onnx_rule_gemm(struct onnx_rule *rule);
bool onnx_rule_einsum(struct onnx_rule *rule);
bool onnx_rule_recurrent(struct onnx_rule *rule);
bool onnx_rule_loss(struct onnx_rule *rule);

bool onnx_rule_conv(struct onnx_rule *rule);
bool onnx_rule_conv_integer(struct onnx_rule *rule);
bool onnx_rule_conv_quantized(struct onnx_rule *rule);
bool onnx_rule_conv_transpose(struct onnx_rule *rule);
bool onnx_rule_pool(struct onnx_rule *rule);
bool onnx_rule_global_pool(struct onnx_rule *rule);
bool onnx_rule_resize(struct onnx_rule *rule);
bool onnx_rule_depth_to_space(struct onnx_rule *rule);
bool onnx_rule_space_to_depth(struct onnx_rule *rule);

bool onnx_rule_reshape(struct onnx_rule *rule);
bool onnx_rule_flatten(struct onnx_rule *rule);
bool onnx_rule_squeeze(struct onnx_rule *rule);
bool onnx_rule_unsqueeze(struct onnx_rule *rule);
bool onnx_rule_transpose(struct onnx_rule *rule);
bool onnx_rule_concat(struct onnx_rule *rule);
bool onnx_rule_split(struct onnx_rule *rule);
bool onnx_rule_slice(struct onnx_rule *rule);
bool onnx_rule_expand(struct onnx_rule *rule);
bool onnx_rule_tile(struct onnx_rule *rule);
bool onnx_rule_pad(struct onnx_rule *rule);

bool onnx_rule_constant(struct onnx_rule *rule);
bool onnx_rule_constant_of_shape(struct onnx_rule *rule);
bool onnx_rule_shape(struct onnx_rule *rule);
bool onnx_rule_size(struct onnx_rule *rule);
bool onnx_rule_range(struct onnx_rule *rule);
bool onnx_rule_eye(struct onnx_rule *rule);
bool onnx_rule_one_hot(struct onnx_rule *rule);
bool onnx_rule_non_zero(struct onnx_rule *rule);
bool onnx_rule_gather(struct onnx_rule *rule);
bool onnx_rule_gather_elements(struct onnx_rule *rule);
bool onnx_rule_gather_nd(struct onnx_rule *rule);
bool onnx_rule_top_k(struct onnx_rule *rule);
bool onnx_rule_reduce(struct onnx_rule *rule);
bool onnx_rule_arg(struct onnx_rule *rule);

#endif
