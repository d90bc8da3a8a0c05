/* The transformer is the stack of attention layers of language models and of parts of other models.
 *
 * There are `layers` equal layers. Each has norm, queries, keys and values, rotary, attention,
 * output, sum, norm, feed-forward part and sum. The feed-forward part has three matrices (gated) or
 * two. docs/templates.md has the table.
 *
 * A model may be divided over g devices (M. Shoeybi et al., Megatron-LM, arXiv 1909.08053). Each
 * device has h / g heads with their k / g of keys and values. It has f / g columns of the first
 * matrices of the feed-forward part. It has as many rows of the last matrix, and a g-th of the
 * table:
 *
 *  norm      | queries, keys, values of its heads -> attention -> rows of output | sum all
 *  add, norm | its columns of up -> activation -> its rows of down               | sum all, add
 *
 * So each layer needs two all-reduces of its state forward, and two backward. Norms, sums and the
 * states between are complete at each device. */
#ifndef BOURSE_PLANNER_TEMPLATES_TRANSFORMER_H
#define BOURSE_PLANNER_TEMPLATES_TRANSFORMER_H

#include "planner/templates/making.h"
#include "planner/templates/template.h"

enum { TRANSFORMER_STAGES = 128 };
#define TRANSFORMER_FIGURE_MOST (INT64_C(1) << 24)

struct transformer {
    int64_t layers, width, heads, kv, head_size, feed_forward, vocabulary;
    bool is_gated;    /* three matrices in the feed-forward part, SwiGLU; else two, GELU */
    bool is_tied;     /* the last product uses the table of the embedding */
    enum dtype dtype; /* type of weights, cache and data between steps */
    /* Type that the matrices of the layers are stored in, and the last one unless it is tied. 0
     * means as `dtype`, else 1 + the dtype. */
    int64_t narrow;
    /* Number of devices that hold each layer together; the model is the share of one. 0 or 1 means
     * undivided. */
    int64_t ways;
};

/* New positions of each of `batch` sequences, over a context that ends with them. */
struct transformer_span {
    int64_t batch, positions, context;
    /* Positions that the cache of keys and values has room for; 0 means no cache. */
    int64_t capacity;
    bool is_causal;
};

/* Refuses figures outside their ranges. */
void transformer_check(struct making *making, const struct transformer *model);

/* Parameters of a layer, of the table, of the head, and of the whole model. The head is the last
 * norm, and the last product unless tied. A divided matrix counts with the share of one device. */
uint128 transformer_layer_parameters(const struct transformer *model);
/* Returns the tokens for which a device has rows of the table and results of the last product. In a
 * divided model it is the device's share, rounded up. */
int64_t transformer_vocabulary(const struct transformer *model);
uint128 transformer_table_parameters(const struct transformer *model);
uint128 transformer_head_parameters(const struct transformer *model);
uint128 transformer_parameters(const struct transformer *model);

/* Bytes of the state of so many positions, and of their keys and values in one layer. */
uint128 transformer_state(const struct transformer *model, int64_t positions);
uint128 transformer_cache(const struct transformer *model, int64_t positions);
/* Returns the bytes that the backward pass of a layer needs from the forward pass: operands of its
 * products, norms and attention. */
uint128 transformer_activations(const struct transformer *model,
                                const struct transformer_span *span);

/* Returns the number of layers in part `index` of `parts`. Parts differ by one layer at most,
 * longer first. */
int64_t transformer_layers_of(const struct transformer *model, int64_t parts, int64_t index);

struct operation transformer_embedding(const struct transformer *model, int64_t tokens);
/* Returns the last product, which gives a figure for each token of the vocabulary. */
struct operation transformer_last(const struct transformer *model, int64_t rows);
struct operation transformer_tokenising(int64_t tokens);

/* Adds one layer's operations, each repeated `count` times with the weights of `layers` layers. */
void transformer_forward(struct making *making, struct step *step, const struct transformer *model,
                         const struct transformer_span *span, int64_t layers, int64_t count);
/* Adds the gradients of these layers, for their inputs and their weights. Weights and their
 * gradients do not belong to this step. */
void transformer_backward(struct making *making, struct step *step, const struct transformer *model,
                          const struct transformer_span *span, int64_t layers);
/* Exchanges in a divided model. The first is the sum of `rows` states over all devices, `count`
 * times. The second gathers at each device the figures of all tokens of the vocabulary, for
 * `rows`. */
void transformer_tell_states(struct making *making, struct step *step,
                             const struct transformer *model, int64_t rows, int64_t count);
void transformer_tell_last(struct making *making, struct step *step,
                           const struct transformer *model, int64_t rows, int64_t count);
/* Adds a whole encoder, once: embedding, layers, last norm. */
void transformer_encode(struct making *making, struct step *step, const struct transformer *model,
                        const struct transformer_span *span);
/* Adds the gradients of a product, for its left side and for its weights. */
void transformer_product_backward(struct making *making, struct step *step,
                                  const struct operation *product, int64_t count);

/* ---------------------------------------------------------------- as parameters of a template
 *
 * These are the first parameters of a template with such a model. */

enum {
    TRANSFORMER_LAYERS,
    TRANSFORMER_WIDTH,
    TRANSFORMER_HEADS,
    TRANSFORMER_KV,
    TRANSFORMER_HEAD_SIZE,
    TRANSFORMER_FEED_FORWARD,
    TRANSFORMER_VOCABULARY,
    TRANSFORMER_GATED,
    TRANSFORMER_TIED,
    TRANSFORMER_DTYPE,
    TRANSFORMER_PARAMETERS,
};

#define TRANSFORMER_FIGURE(name, meaning, usual)                                                   \
    MAKING_NUMBER(name, meaning, usual, 1, TRANSFORMER_FIGURE_MOST)
#define TRANSFORMER_TABLE                                                                          \
    [TRANSFORMER_LAYERS] = TRANSFORMER_FIGURE("layers", "layers of the model", 32),                \
    [TRANSFORMER_WIDTH] = TRANSFORMER_FIGURE("width", "elements of the hidden state", 4096),       \
    [TRANSFORMER_HEADS] = TRANSFORMER_FIGURE("heads", "attention heads", 32),                      \
    [TRANSFORMER_KV] =                                                                             \
        TRANSFORMER_FIGURE("kv", "heads of keys and values; heads is a multiple of it", 8),        \
    [TRANSFORMER_HEAD_SIZE] = TRANSFORMER_FIGURE("head-size", "elements of a head; even", 128),    \
    [TRANSFORMER_FEED_FORWARD] =                                                                   \
        TRANSFORMER_FIGURE("feed-forward", "width of the feed-forward part", 14336),               \
    [TRANSFORMER_VOCABULARY] = TRANSFORMER_FIGURE("vocabulary", "tokens that there are", 128256),  \
    [TRANSFORMER_GATED] = MAKING_CHOICE(                                                           \
        "gated", "three matrices in the feed-forward part, not two", MAKING_YES, making_answers),  \
    [TRANSFORMER_TIED] = MAKING_CHOICE(                                                            \
        "tied", "the last product is with the table of the embedding", 0, making_answers),         \
    [TRANSFORMER_DTYPE] =                                                                          \
        MAKING_CHOICE("dtype", "type of weights and of what flows", MAKING_BF16, making_floats)

extern const struct template_preset transformer_presets[];
struct transformer transformer_of(const int64_t *values);

#endif
