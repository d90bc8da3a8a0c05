/* planner/templates/train.h - an iteration of training a language model, of one replica.
 *
 *     load -> preprocess -> tokenise -> embed -> forward 1 -> ... -> forward n -> loss
 *                                         |          |                   |         |
 *               backward embed <--- backward 1 <--- ... <--------- backward n <----+
 *                     |                  |                               |
 *               all-reduce embed   all-reduce 1                    all-reduce n     all-reduce head
 *                     |                  |                               |                |
 *               optimiser embed    optimiser 1                     optimiser n      optimiser head
 *
 *     snapshot 1 -> checkpoint 1         (and alike for embed, 2 ... n, head)
 *          +------> optimiser 1
 *
 * Weights, their gradients and what the optimiser keeps are sets of each stage, of the table of the
 * embedding and of the head, which is the last norm and product; where these are tied there is one
 * of both, "embed". The forward and the backward pass of a stage may be on two devices: then the
 * weights flow, too.
 *
 * All of it can be done again and again: where a step that begins with weights and the optimiser
 * that changes them are on two devices, what was changed goes back.
 *
 * A checkpoint is written while training goes on: what the iteration before left is copied before
 * the optimiser changes it, and nothing waits for what stores the copy (Mohan et al., "CheckFreq",
 * FAST 2021).
 *
 * Not for: layers divided over devices, micro-batches, which would each have an optimiser,
 * gradients that are reduced while the next are computed. docs/templates.md has the arithmetic.
 * Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_TRAIN_H
#define BOURSE_PLANNER_TEMPLATES_TRAIN_H

#include "planner/templates/template.h"

extern const struct template train_template;

#endif
