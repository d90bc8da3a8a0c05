/* The llm template turns a language model's answer into steps, their operations, and the data that
 * flows between.
 *
 *     tokenise -> embed -> prefill 1 -> ... -> prefill n -> decode -> detokenise
 *                              |                              ^
 *                              +---- keys and values ---------+
 *
 * Prefill goes through all positions of the prompt at once. Its layers (transformer.h) are cut into
 * stages. Decoding goes through one position at a time, and so reads all weights again for each
 * token. The first token needs only the last product and the sampling. The context of the attention
 * grows by a token at a time. On average the attention costs what the mean length costs, since
 * operations and bytes are linear in the length. A mean of half a token is rounded up.
 *
 * The hidden state flows between the steps. Keys and values of each prefill layer flow to decoding;
 * a split over devices has to carry them. docs/templates.md has the arithmetic.
 *
 * For a divided model (transformer.h), the chain is the work of one of its devices. It has the keys
 * and values of its heads, and a part of the last product, whose figures all devices get. The
 * template does not cover continuous batching or speculation. */
#ifndef BOURSE_PLANNER_TEMPLATES_LLM_H
#define BOURSE_PLANNER_TEMPLATES_LLM_H

#include "planner/templates/transformer.h"

struct llm_request {
    int64_t batch;  /* prompts at once */
    int64_t prompt; /* tokens of each prompt */
    int64_t answer; /* tokens of each answer */
    /* Stages that the layers of prefill are cut into: at most TRANSFORMER_STAGES, and at most the
     * layers. */
    int64_t stages;
};

/* Creates the steps, which the caller owns. Any status but OK gives none, and says in `ret_problem`
 * (may be NULL) what is wrong. */
enum steps_status llm_create(const struct transformer *model, const struct llm_request *request,
                             struct steps **ret_steps, struct problem *ret_problem);

/* Adds embed to detokenise to a larger graph. `tokens` is a step whose tokens flow into embed.
 * Figures outside their ranges are refused. */
void llm_add(struct making *making, const struct transformer *model,
             const struct llm_request *request, const struct step *tokens);

/* Adds the same as a chain (steps.h). Columns are the embedding, the layers and everything after
 * them. There are at most TRANSFORMER_STAGES parts, whatever `stages` says. The prompt goes
 * forward, and each token in a round of decode. The first round stands for the first token, which
 * needs the last product alone. So all rounds together take what decoding takes. The steps before
 * embed belong to the first column, too. */
void llm_add_chain(struct making *making, const struct transformer *model,
                   const struct llm_request *request, struct step *tokens);

extern const struct template llm_template;

#endif
