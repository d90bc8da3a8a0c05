/* consumer/job/cheap.h - `verify: cheap`: each subtask gets a check, as a subtask of its own. Not
 * installed. Pure.
 *
 * A job of N products becomes one of 2 N subtasks. Its last part is the checks: number N + k waits
 * for subtask k alone, takes k's factors from the job and the product from k, and says by random
 * vectors whether they fit (formats/tensor_op.h). The seed is drawn by the market once k's signed
 * result has come; so nobody can make a wrong product that passes. A check leaves no file. */
#ifndef BOURSE_CONSUMER_JOB_CHEAP_H
#define BOURSE_CONSUMER_JOB_CHEAP_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct cheap_checks; /* what the longer manifest points to */

/* Adds the checks to a manifest without terms and to the job's parts, graph and counts, and does
 * nothing where the job is not verified by them. `ret_checks` is to live as long as the manifest,
 * then cheap_destroy. False: a subtask cannot be checked, or out of memory; the job is of no use
 * then. */
bool cheap_add(struct bourse_job *job, Bourse__V1__Manifest *manifest,
               struct cheap_checks **ret_checks, struct bourse_error *error);
void cheap_destroy(struct cheap_checks **self);

/* Adds "and referee = 1", or "and not referee = 1". False when the requirement is full. */
bool cheap_need_referee(struct requirement *needs);
bool cheap_need_no_referee(struct requirement *needs);

/* How many of a manifest's subtasks are checks, the last ones; 0: none. */
uint32_t cheap_count(const Bourse__V1__Manifest *manifest);
/* Takes the checks out of a manifest that was read back, with their part, which is filled in.
 * False: there are none, or it contradicts itself; the manifest is as before. */
bool cheap_remove(Bourse__V1__Manifest *manifest, struct order_part *ret_part);

#endif
