/* formats/train/update.h makes the models that add gradients and change weights.
 *
 *     sum      g1 ... gn                        ->  g
 *     update   weights, state, losses, g1 ... gn  ->  weights, state, losses
 *
 * A gradient is the vector of gradient.h, float32[P + 2]. All sums and steps are computed in
 * float64, in the order of the inputs, and rounded once. So the same parts give the same bytes,
 * wherever they were computed.
 *
 *     sgd     state  v[P]           v = momentum v + g + decay w;  w = w - rate v
 *     adamw   state  m[P] v[P] t    m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *                                   w = (1 - rate decay) w - rate m' / (sqrt(v') + epsilon)
 *                                   m' = m / (1 - beta1^t), v' = v / (1 - beta2^t)
 *
 * Here g is the sum of the gradients over the count of the loss. The mean loss of the batch is put
 * behind `losses`. I. Loshchilov and F. Hutter, arXiv 1711.05101, has adamw. Pure. */
#ifndef BOURSE_FORMATS_TRAIN_UPDATE_H
#define BOURSE_FORMATS_TRAIN_UPDATE_H

#include "formats/train/train_words.h"

/* Gradients that one run adds; more are summed by a tree of such runs. */
enum { UPDATE_GRADIENTS_MOST = 8 };

/* Returns how many elements the state has for so many weights. */
int64_t update_state_elements(enum train_method method, int64_t weights);

/* Write the models, whose bytes the caller frees. Names of inputs: "weights", "state", "losses",
 * and "g0", "g1" and so on; of outputs: "new-weights", "new-state", "new-losses", and "g". Return
 * false when memory is short. */
bool update_make(const struct train_optimizer *optimizer, int64_t weights, uint32_t gradients,
                 uint8_t **ret_bytes, size_t *ret_size);
bool update_make_sum(int64_t weights, uint32_t gradients, uint8_t **ret_bytes, size_t *ret_size);

#endif
