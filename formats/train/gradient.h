/* formats/train/gradient.h makes the gradient of a model's loss, as an ONNX model of its own.
 *
 *     model      x, W, b            ->  y
 *     gradient   w, x, labels       ->  g
 *
 *     w   the trained weights one after the other, float32[P]
 *     g   the gradient of the loss, summed over the rows, then the sum of the loss, then how many
 *         terms it has: float32[P + 2]
 *
 * The made model has the nodes of the first one, and behind these the nodes of their derivatives in
 * the opposite order. All of them are operators of ONNX, so that any engine computes them. Sums of
 * such vectors over parts of a batch are the vector of the batch. gradient_operators lists the
 * operators with a derivative; any other on the way from weights to the loss is refused by name.
 *
 * Every weight of float32 that has dims, and on which the loss depends, is trained. Scalars and
 * what nodes make are constants. Opsets 13 to 17. The reading of the weights' bytes is the
 * caller's. Pure. */
#ifndef BOURSE_FORMATS_TRAIN_GRADIENT_H
#define BOURSE_FORMATS_TRAIN_GRADIENT_H

#include "formats/onnx/onnx_shapes.h"
#include "formats/train/train_words.h"

enum { GRADIENT_OPSET_LEAST = 13 };
/* Trained elements, so that positions and counts are exact and a vector is a file of 2 GiB. */
#define GRADIENT_ELEMENTS_MOST (INT64_C(1) << 29)

/* Names of the made model's inputs and output, beside the inputs of the first one. */
#define GRADIENT_WEIGHTS "bourse/w"
#define GRADIENT_LABELS "bourse/labels"
#define GRADIENT_OUTPUT "bourse/g"

struct gradient_input {
    struct onnx_span bytes; /* of the model's file */
    const struct onnx_model *model;
    /* The shapes of a part with as many rows as any. The first dim of each input is the rows. */
    const struct onnx_shapes *shapes;
    enum train_loss loss;
};

/* A weight that is trained, and where its elements begin in the vector. */
struct gradient_weight {
    uint32_t initializer, value;
    int64_t first;
};

struct gradient {
    uint8_t *bytes;
    size_t size;
    struct gradient_weight *weights; /* in the order of the initializers */
    size_t weight_count;
    int64_t elements; /* P */
};

/* Type and dims of the labels: of the part that `shapes` describes. */
struct gradient_labels {
    enum onnx_type type; /* int64 for classes, float32 for numbers */
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST];
    int64_t classes; /* labels are 0 to classes - 1; 0: any number */
};

/* Says which labels the loss asks for. Any status but ONNX_OK says why the model has no loss. */
enum onnx_status gradient_labels_of(const struct gradient_input *input,
                                    struct gradient_labels *ret_labels,
                                    struct problem *ret_problem);

/* Makes the gradient, which the caller ends with gradient_fini. Any status but ONNX_OK makes none,
 * and the problem names the node and the operator. */
enum onnx_status gradient_make(const struct gradient_input *input, struct gradient *ret_gradient,
                               struct problem *ret_problem);
/* Lists the weights alone, without bytes. The caller ends the list likewise. */
enum onnx_status gradient_list(const struct onnx_model *model, struct gradient *ret_gradient,
                               struct problem *ret_problem);
void gradient_fini(struct gradient *gradient);

/* Returns the names of the operators with a derivative, sorted, with NULL at the end. */
const char *const *gradient_operators(void);

#endif
