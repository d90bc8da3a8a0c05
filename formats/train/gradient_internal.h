/* formats/train/gradient_internal.h declares what the derivatives of operators share. The header is
 * for gradient*.c only.
 *
 * A derivative gets its node and the gradient of the node's first output. It adds the gradients of
 * those inputs that ask for one. */
#ifndef BOURSE_FORMATS_TRAIN_GRADIENT_INTERNAL_H
#define BOURSE_FORMATS_TRAIN_GRADIENT_INTERNAL_H

#include "formats/onnx/onnx_build.h"
#include "formats/train/gradient.h"

struct deriving {
    const struct gradient_input *input;
    struct onnx_build build;
    bool *is_asked;             /* by value: weights depend on it, or it is a weight */
    struct onnx_ref *gradients; /* by value, as far as they are summed */
    struct onnx_ref *shapes;    /* by value: its dims as a tensor, once somebody asked */
    enum onnx_status status;
    struct problem *problem;
};

/* Notes why a node has no derivative. Returns false. */
bool gradient_fault(struct deriving *deriving, const struct onnx_node *node, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* Notes another fault. `format` has one %s, for the name. Returns false. */
bool gradient_fail(struct deriving *deriving, enum onnx_status status, const char *format,
                   const char *name);

struct onnx_ref gradient_ref_of(const struct deriving *deriving, uint32_t value);
/* Returns the value of an input; ONNX_NONE: it is left out. */
uint32_t gradient_value(const struct deriving *deriving, const struct onnx_node *node,
                        uint32_t input);
struct onnx_ref gradient_in(const struct deriving *deriving, const struct onnx_node *node,
                            uint32_t input);
struct onnx_ref gradient_out(const struct deriving *deriving, const struct onnx_node *node);
/* Returns what is known of an input, which is there, and of the first output. */
const struct onnx_fact *gradient_fact(const struct deriving *deriving, const struct onnx_node *node,
                                      uint32_t input);
const struct onnx_fact *gradient_fact_out(const struct deriving *deriving,
                                          const struct onnx_node *node);
/* Returns true when an input is there and asks for a gradient. */
bool gradient_asked(const struct deriving *deriving, const struct onnx_node *node, uint32_t input);
/* Adds to the gradient of an input, unless the input asks for none. */
void gradient_add(struct deriving *deriving, const struct onnx_node *node, uint32_t input,
                  struct onnx_ref gradient);
/* The same for a gradient with the dims of the output, to which the input was broadcast. */
void gradient_add_summed(struct deriving *deriving, const struct onnx_node *node, uint32_t input,
                         struct onnx_ref gradient);

/* Returns the dims of an input as a tensor, as they are in a run. */
struct onnx_ref gradient_dims_of(struct deriving *deriving, const struct onnx_node *node,
                                 uint32_t input);
struct onnx_ref gradient_one(struct deriving *deriving, const char *operator, struct onnx_ref a);
struct onnx_ref gradient_two(struct deriving *deriving, const char *operator, struct onnx_ref a,
                             struct onnx_ref b);
struct onnx_ref gradient_cast(struct deriving *deriving, struct onnx_ref from, enum onnx_type type);
/* Returns how many elements a value has, as float32. */
struct onnx_ref gradient_size_of(struct deriving *deriving, struct onnx_ref value);
/* Returns the elements with one dim. */
struct onnx_ref gradient_as_list(struct deriving *deriving, struct onnx_ref from);
struct onnx_ref gradient_sum(struct deriving *deriving, struct onnx_ref from, size_t count,
                             const int64_t *axes);
struct onnx_ref gradient_turned(struct deriving *deriving, struct onnx_ref from, uint32_t rank,
                                const int64_t *order);
/* Returns the quotient of two tensors' elements as float32: how many an element of `small` stands
 * for. */
struct onnx_ref gradient_ratio(struct deriving *deriving, struct onnx_ref large,
                               struct onnx_ref small);

int64_t gradient_integer(const struct deriving *deriving, const struct onnx_node *node,
                         const char *name, int64_t usual);
float gradient_real(const struct deriving *deriving, const struct onnx_node *node, const char *name,
                    float usual);
/* Reads a list of integers into room for ONNX_RANK_MOST. Returns false when it is absent. */
bool gradient_integers(const struct deriving *deriving, const struct onnx_node *node,
                       const char *name, int64_t *ret_values, size_t *ret_count);

/* Finds the value that the loss looks at, which is the model's one output. A softmax at the end is
 * part of the cross entropy, which is then exact where a probability rounds to 0, too. */
enum onnx_status gradient_find_output(const struct gradient_input *input, uint32_t *ret_value,
                                      struct problem *ret_problem);
/* Adds the loss, and begins the way back with the gradient of the model's output. Both results have
 * one element. */
struct gradient_loss {
    struct onnx_ref sum, count, gradient;
};
struct gradient_loss gradient_add_loss(struct deriving *deriving, uint32_t output,
                                       const struct gradient_labels *labels);

typedef bool gradient_rule(struct deriving *deriving, const struct onnx_node *node,
                           struct onnx_ref dy);

/* gradient_each.c: element by element. */
gradient_rule gradient_of_add, gradient_of_sub, gradient_of_mul, gradient_of_div, gradient_of_sum,
    gradient_of_neg, gradient_of_relu, gradient_of_leaky_relu, gradient_of_sigmoid,
    gradient_of_tanh, gradient_of_erf, gradient_of_exp, gradient_of_log, gradient_of_sqrt,
    gradient_of_abs, gradient_of_softplus, gradient_of_reciprocal, gradient_of_pow;

/* gradient_layer.c: products, shapes, sums and layers. */
gradient_rule gradient_of_matmul, gradient_of_gemm, gradient_of_conv, gradient_of_view,
    gradient_of_transpose, gradient_of_reduce_sum, gradient_of_reduce_mean,
    gradient_of_global_average, gradient_of_softmax, gradient_of_log_softmax,
    gradient_of_layer_norm, gradient_of_gather;

#endif
