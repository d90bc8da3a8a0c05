/* provider/onnx/own/own_call.h has what an operator gets. That is one node with
 * its inputs and outputs.
 *
 * The shapes of the outputs are made by the rules of formats/onnx before the operator runs, with
 * the dims and the small values that the run has by then. So an operator finds outputs of the right
 * dims, and checks only what the rules do not look at: values, and inputs beside the first. An
 * operator returns false after own_fault. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_CALL_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_CALL_H

#include "formats/onnx/onnx_rules.h"
#include "provider/onnx/own/own_tensor.h"

struct own_call {
    struct onnx_rule rule; /* the node, and how its shapes are made; notes the first fault */
    int kind;              /* which of its family the operator is */
    const struct own_tensor *const *inputs; /* NULL: left out */
    uint32_t input_count;
    struct own_tensor *outputs; /* of the type UNDEFINED: left out */
    uint32_t output_count;
    struct own_memory *memory;
    unsigned threads;
    int64_t *work_left; /* operations that the run may still spend on products and windows */
};

/* Notes why a node cannot be computed. `input` may be ONNX_NO_INPUT. Returns false. */
#define own_fault(call, status, input, ...)                                                        \
    onnx_rule_fault(&(call)->rule, (status), (input), __VA_ARGS__)

/* Returns an input, or NULL when it is left out. */
const struct own_tensor *own_input(const struct own_call *call, uint32_t input);
/* Returns an output, or NULL when nobody wants it. */
struct own_tensor *own_output(struct own_call *call, uint32_t output);

/* Returns true when an optional input is left out or has this type; notes a fault else. */
bool own_input_is(struct own_call *call, uint32_t input, enum onnx_type type);
/* Returns true when an optional input has these dims; notes a fault else. */
bool own_input_fits(struct own_call *call, uint32_t input, uint32_t rank, const int64_t *dims);
/* Returns true when an input broadcasts to these dims; notes a fault else. */
bool own_input_broadcasts(struct own_call *call, uint32_t input, uint32_t rank,
                          const int64_t *dims);

int64_t own_integer(const struct own_call *call, const char *name, int64_t usual);
float own_real(const struct own_call *call, const char *name, float usual);
/* Returns the text of an attribute, or `usual`. */
struct onnx_span own_text(const struct own_call *call, const char *name, const char *usual);
/* Reads at most `most` reals of a list. Returns how many there are, or -1 when the list is wrong
 * or too long. */
int64_t own_reals(const struct own_call *call, const char *name, int64_t most, float *ret_values);

/* Returns element `at` of a tensor of integers or booleans. */
int64_t own_integer_at(const struct own_tensor *tensor, int64_t at);
/* Returns element `at` of any tensor of numbers as a double. */
double own_real_at(const struct own_tensor *tensor, int64_t at);
bool own_is_integer(enum onnx_type type); /* and BOOL */

/* Takes memory for an operator's own use. The caller releases the block. Returns NULL after a
 * fault. */
struct own_block *own_scratch(struct own_call *call, int64_t elements, int64_t element_bytes);
/* Spends `count` times `each` operations of the run's bound; an `each` below 0 is beyond any
 * bound. Returns false after a fault. */
bool own_spend(struct own_call *call, int64_t count, int64_t each);
/* Notes that a block of so many bytes could not be had. Returns false. */
bool own_no_memory(struct own_call *call, int64_t bytes);

#endif
