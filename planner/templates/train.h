/* The train template is an iteration of training a language model, for one replica.
 *
 *     load -> preprocess -> tokenise -> embed -> forward 1 -> ... -> forward n -> loss
 *                                         |          |                   |         |
 *               backward embed <--- backward 1 <--- ... <--------- backward n <----+
 *                     |                  |                               |
 *               all-reduce embed   all-reduce 1                    all-reduce n     all-reduce head
 *                     |                  |                               |                |
 *               optimiser embed    optimiser 1                     optimiser n      optimiser head
 *
 * Each stage has sets for its weights, their gradients and the optimiser's state. So have the table
 * of the embedding and the head, which is the last norm and product. If these two are tied, they
 * share the set "embed". The forward and the backward pass of a stage may run on two devices; then
 * the weights flow, too.
 *
 * The iteration can be repeated. If a step that begins with weights and the optimiser that changes
 * them are on two devices, the changed weights go back.
 *
 * A checkpoint is written while training goes on. The state of the iteration before is copied
 * before the optimiser changes it, and nothing waits for storing the copy (Mohan et al.,
 * "CheckFreq", FAST 2021).
 *
 * The template does not cover layers divided over devices, or gradients that are reduced while the
 * next are computed. Nor does it cover micro-batches, which would each have an optimiser.
 * docs/templates.md has the arithmetic. */
#ifndef BOURSE_PLANNER_TEMPLATES_TRAIN_H
#define BOURSE_PLANNER_TEMPLATES_TRAIN_H

#include "planner/templates/template.h"

extern const struct template train_template;

#endif
