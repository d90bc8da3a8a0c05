/* planner/templates/transformer.h - layers that attend: what models of language, and parts of
 * others, are made of.
 *
 * `layers` alike, each: norm, queries, keys and values, rotary, attention, output, sum, norm, a
 * feed-forward part of three matrices (gated) or two, sum. docs/templates.md has the table.
 *
 * Divided over g devices (M. Shoeybi et al., Megatron-LM, arXiv 1909.08053), each has h / g heads
 * with their k / g of keys and values, f / g columns of the first matrices of the feed-forward
 * part, as many rows of the last, and a g-th of the table:
 *
 *     norm | queries, keys, values of its heads -> attention -> rows of the output | sum over all | add, norm |
 *          | its columns of up -> bend -> its rows of down                         | sum over all | add
 *
 * so that each layer is two all-reduces of its state there, and two back. Norms, sums and the
 * states between are whole at each. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_TRANSFORMER_H
#define BOURSE_PLANNER_TEMPLATES_TRANSFORMER_H

#include "planner/templates/making.h"
#include "planner/templates/template.h"

enum { TRANSFORMER_STAGES = 128 };
#define TRANSFORMER_FIGURE_MOST (INT64_C(1) << 24)

struct transformer {
    int64_t layers, width, heads, kv, head_size, feed_forward, vocabulary;
    bool is_gated;    /* three matrices in the feed-forward part, SwiGLU; else two, GELU */
    bool is_tied;     /* the last product is with the table of the embedding */
    enum dtype dtype; /* of weights, cache and what flows */
    int64_t narrow;   /* of the layers' matrices, and of the last unless it is tied: 0: as `dtype`;
                         else 1 + the dtype   that they are stored in */
    int64_t
        ways; /* devices that hold each layer together, of which this is one; 0 or 1: one does */
};

/* New positions of each of `batch` sequences, over a context that ends with them. */
struct transformer_span {
    int64_t batch, positions, context;
    int64_t capacity; /* of the cache that their keys and values are put into, in positions; 0:
                         there is none */
    bool is_causal;
};

/* Refuses figures outside their ranges. */
void transformer_check(struct making *making, const struct transformer *model);

/* Of a layer; of the table of the embedding; of the last norm, and the last product unless it is
 * tied; of all of it. What of them is divided counts as what one device has of it. */
uint128 transformer_layer_parameters(const struct transformer *model);
/* Tokens of which a device has the rows of the table, and the last product gives it figures: of
 * those that are divided, its part rounded up. */
int64_t transformer_vocabulary(const struct transformer *model);
uint128 transformer_table_parameters(const struct transformer *model);
uint128 transformer_head_parameters(const struct transformer *model);
uint128 transformer_parameters(const struct transformer *model);

/* Bytes of the state of so many positions, and of their keys and values in one layer. */
uint128 transformer_state(const struct transformer *model, int64_t positions);
uint128 transformer_cache(const struct transformer *model, int64_t positions);
/* What the way back needs of a layer's way forth: operands of its products, norms and attention. */
uint128 transformer_activations(const struct transformer *model,
                                const struct transformer_span *span);

/* Of the layers, those in part `index` of `parts`: they differ by one at most, longer first. */
int64_t transformer_layers_of(const struct transformer *model, int64_t parts, int64_t index);

struct operation transformer_embedding(const struct transformer *model, int64_t tokens);
/* A product with one of the model's matrices; with the last, which gives a figure for each token
 * there is. */
struct operation transformer_product(const struct transformer *model, int64_t m, int64_t n,
                                     int64_t k);
struct operation transformer_last(const struct transformer *model, int64_t rows);
struct operation transformer_tokenising(int64_t tokens);

/* One layer's operations, each done `count` times with the weights of `layers` layers. */
void transformer_forward(struct making *making, struct step *step, const struct transformer *model,
                         const struct transformer_span *span, int64_t layers, int64_t count);
/* The gradients of these layers, of what came in and of the weights; weights and their gradients
 * are not this step's. */
void transformer_backward(struct making *making, struct step *step, const struct transformer *model,
                          const struct transformer_span *span, int64_t layers);
/* Where it is divided: the sum of `rows` states over all devices, `count` times; and figures for
 * each token there is, of `rows`, that each gets from all others. */
void transformer_tell_states(struct making *making, struct step *step,
                             const struct transformer *model, int64_t rows, int64_t count);
void transformer_tell_last(struct making *making, struct step *step,
                           const struct transformer *model, int64_t rows, int64_t count);
/* All of an encoder, once: embedding, layers, last norm. */
void transformer_encode(struct making *making, struct step *step, const struct transformer *model,
                        const struct transformer_span *span);
/* The gradients of a product: of its left side and of its weights. */
void transformer_product_backward(struct making *making, struct step *step,
                                  const struct operation *product, int64_t count);

/* ---------------------------------------------------------------- as parameters of a template
 * They are its first: */

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
