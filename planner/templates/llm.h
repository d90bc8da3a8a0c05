/* planner/templates/llm.h - what a language model's answer is made of: steps, their operations, what flows between.
 *
 * A decoder of `layers` alike, each: norm, queries, keys and values, rotary, cache, attention, output, norm, and a
 * feed-forward part of three matrices (gated) or two.
 *
 *     tokenise -> embed -> prefill 1 -> ... -> prefill n -> decode -> detokenise
 *                              |                              ^
 *                              +---- keys and values ---------+
 *
 * A step is a list of operations (operations.h), each done so many times. Prefill goes through all positions of the
 * prompt at once, its layers cut into stages; decoding goes through one position at a time and so reads all weights
 * again for each token, but for the first, which needs only the last product and the dice. Attention over a context
 * that grows by a token costs on the average what its mean length costs, as its operations and bytes are linear in the
 * length; a mean of half a token is rounded up. Between the steps flows the hidden state, and from prefill to
 * decoding the keys and values of its layers: what splitting the two over devices has to carry. docs/templates.md has
 * the arithmetic.
 *
 * Not for: batches that form while they run, speculation, several devices on one layer. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_LLM_H
#define BOURSE_PLANNER_TEMPLATES_LLM_H

#include "planner/cost.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LLM_STAGES = 64,
    LLM_STEPS = LLM_STAGES + 4,
    LLM_PARTS = 20, /* of a step */
    LLM_EDGES = 2 * LLM_STEPS,
    LLM_NAME_SIZE = 16,
};
#define LLM_FIGURE_MOST (INT64_C(1) << 24)

struct llm_model {
    int64_t layers, width, heads, kv, head_size, feed_forward, vocabulary;
    bool is_gated;    /* three matrices in the feed-forward part, SwiGLU; else two, GELU */
    bool is_tied;     /* the last product is with the table of the embedding */
    enum dtype dtype; /* of weights, cache and what flows */
};

struct llm_request {
    int64_t batch;  /* prompts at once */
    int64_t prompt; /* tokens of each */
    int64_t answer; /* tokens of each */
    int64_t stages; /* that the layers of prefill are cut into: at most LLM_STAGES and layers */
};

struct llm_part {
    struct operation operation;
    int64_t times;
};

struct llm_step {
    char name[LLM_NAME_SIZE]; /* "prefill 2" */
    struct llm_part parts[LLM_PARTS];
    size_t part_count;
    int64_t weight_bytes;  /* of all its operations: what must be there */
    int64_t cache_bytes;   /* keys and values that it holds at its end */
    int64_t working_bytes; /* the most that any of its operations takes besides weights and cache */
    int64_t passes;        /* times that it goes through its weights */
};

struct llm_edge {
    uint32_t from, to; /* steps */
    int64_t bytes;
};

struct llm {
    struct llm_step steps[LLM_STEPS]; /* in the order of the drawing */
    size_t step_count;
    struct llm_edge edges[LLM_EDGES];
    size_t edge_count;
    int64_t parameters; /* of the model */
};

enum llm_status {
    LLM_OK,
    LLM_BAD_FIGURE, /* zero, negative, above LLM_FIGURE_MOST, or more stages than there may be */
    LLM_CONFLICT,   /* heads and kv, an odd head, a type that the layers are not done in */
    LLM_OVERFLOW,
    LLM_NO_MEMORY,
};

/* The caller owns it. Any status but OK gives none, and says in `ret_problem` (may be NULL) what is wrong. */
enum llm_status llm_create(const struct llm_model *model, const struct llm_request *request,
                           struct llm **ret_llm, struct problem *ret_problem);
void llm_destroy(struct llm **self);

struct llm_cost {
    double operations, bytes; /* read and written in the device's memory */
    struct figure bound_s, time_s;
    double p90_s;           /* if all of its operations take theirs; 0: unknown */
    struct figure energy_j; /* unknown when the power is */
    bool is_streamed;       /* its weights do not fit */
};

/* What a step takes on a device, one operation after the other. NO_MEMORY: weights, cache and working memory together
 * are more than the device has, whether or not each operation by itself would fit; with `device->stream` known, and if all but the
 * weights fits, all of them come over it at each pass. Any other refusal is that of part `ret_part` (may be NULL); it and NO_MEMORY
 * leave `ret_cost` alone. */
enum cost_status llm_step_cost(const struct cost_device *device, const struct llm_step *step,
                               struct llm_cost *ret_cost, size_t *ret_part);

#endif
