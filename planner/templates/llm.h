/* planner/templates/llm.h - what a language model's answer is made of: steps, their operations,
 * what flows between.
 *
 *     tokenise -> embed -> prefill 1 -> ... -> prefill n -> decode -> detokenise
 *                              |                              ^
 *                              +---- keys and values ---------+
 *
 * Prefill goes through all positions of the prompt at once, its layers (transformer.h) cut into
 * stages; decoding goes through one position at a time and so reads all weights again for each
 * token, but for the first, which needs only the last product and the dice. Attention over a
 * context that grows by a token costs on the average what its mean length costs, as its operations
 * and bytes are linear in the length; a mean of half a token is rounded up. Between the steps flows
 * the hidden state, and from prefill to decoding the keys and values of its layers: what splitting
 * the two over devices has to carry. docs/templates.md has the arithmetic.
 *
 * Of a model that is divided (transformer.h) the line is what one of its devices does: keys and
 * values of its heads, and a part of the last product, whose figures all of them get. Not for:
 * batches that form while they run, speculation. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_LLM_H
#define BOURSE_PLANNER_TEMPLATES_LLM_H

#include "planner/templates/transformer.h"

struct llm_request {
    int64_t batch;  /* prompts at once */
    int64_t prompt; /* tokens of each */
    int64_t answer; /* tokens of each */
    int64_t
        stages; /* that the layers of prefill are cut into: at most TRANSFORMER_STAGES and layers */
};

/* The caller owns the steps. Any status but OK gives none, and says in `ret_problem` (may be NULL)
 * what is wrong. */
enum steps_status llm_create(const struct transformer *model, const struct llm_request *request,
                             struct steps **ret_steps, struct problem *ret_problem);

/* The same as a line (steps.h): columns are the embedding, the layers and what comes after them, in
 * at most TRANSFORMER_STAGES parts whatever `stages` says; there the prompt goes, around each
 * token. The first round stands for the first token, which needs the last product alone: what all
 * rounds take is what decoding does. */
enum steps_status llm_create_line(const struct transformer *model,
                                  const struct llm_request *request, struct steps **ret_steps,
                                  struct problem *ret_problem);

/* As part of a larger graph: embed to detokenise, with `tokens` (a step; its tokens flow into
 * embed). Refuses figures outside their ranges. */
void llm_add(struct making *making, const struct transformer *model,
             const struct llm_request *request, const struct step *tokens);

/* The same of a line, where what comes before embed is of the first column, too. */
void llm_add_line(struct making *making, const struct transformer *model,
                  const struct llm_request *request, struct step *tokens);

extern const struct template llm_template;

#endif
