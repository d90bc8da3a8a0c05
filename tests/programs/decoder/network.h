/* tests/programs/decoder/network.h is a small decoder of the GPT-2 kind, with its gradient by hand:
 * what train-decoder trains. It is plain C, for one thread. */
#ifndef BOURSE_TESTS_PROGRAMS_DECODER_NETWORK_H
#define BOURSE_TESTS_PROGRAMS_DECODER_NETWORK_H

#include <stddef.h>
#include <stdint.h>

enum {
    NETWORK_LAYERS = 2,
    NETWORK_WIDTH = 64,
    NETWORK_HEADS = 4,
    NETWORK_HEAD = NETWORK_WIDTH / NETWORK_HEADS,
    NETWORK_HIDDEN = 4 * NETWORK_WIDTH,
    NETWORK_CONTEXT = 128,
    NETWORK_WORDS = 512, /* of the vocabulary */
};

/* Weights of one layer; matrices are [inputs][outputs]. */
struct network_layer {
    float norm1[NETWORK_WIDTH], shift1[NETWORK_WIDTH];
    float qkv[NETWORK_WIDTH][3 * NETWORK_WIDTH], qkv_bias[3 * NETWORK_WIDTH];
    float joined[NETWORK_WIDTH][NETWORK_WIDTH], joined_bias[NETWORK_WIDTH];
    float norm2[NETWORK_WIDTH], shift2[NETWORK_WIDTH];
    float up[NETWORK_WIDTH][NETWORK_HIDDEN], up_bias[NETWORK_HIDDEN];
    float down[NETWORK_HIDDEN][NETWORK_WIDTH], down_bias[NETWORK_WIDTH];
};

/* All weights: floats and nothing else, so that the optimiser takes them as one array. */
struct network {
    float words[NETWORK_WORDS][NETWORK_WIDTH]; /* the first layer and, transposed, the last */
    float places[NETWORK_CONTEXT][NETWORK_WIDTH];
    struct network_layer layers[NETWORK_LAYERS];
    float norm[NETWORK_WIDTH], shift[NETWORK_WIDTH];
};
enum { NETWORK_WEIGHTS = sizeof(struct network) / sizeof(float) };

/* Sets the weights that training begins with. */
void network_begin(struct network *network, uint64_t seed);

/* Returns the mean loss, in nats a token, of `count` tokens and the one behind each: tokens[i + 1]
 * is to follow tokens[i]. `count` is at most NETWORK_CONTEXT. Adds the gradient of the loss times
 * `scale` to `gradient`, unless that is NULL. */
double network_loss(const struct network *network, const uint16_t *tokens, size_t count,
                    struct network *gradient, float scale);

#endif
