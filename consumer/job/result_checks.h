/* consumer/job/result_checks.h adds cheap checks to a job that asks for them. Each subtask gets a
 * check, which is a subtask too. The header is not installed, and the code is pure.
 *
 * A job of N products becomes one of 2 N subtasks, and the checks are its last part. Number N + k
 * waits for subtask k alone. The check takes k's factors from the job and the product from k, and
 * compares them by random vectors (formats/tensor_op.h). The market draws the seed after k's signed
 * result has come, so nobody can prepare a wrong product that passes. A check leaves no file. */
#ifndef BOURSE_CONSUMER_JOB_RESULT_CHECKS_H
#define BOURSE_CONSUMER_JOB_RESULT_CHECKS_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct result_checks; /* owns the parts that the longer manifest points to */

/* Adds the checks to a manifest without terms and to the job's parts, graph and counts. Does
 * nothing when the job asks for no checks. `ret_checks` must live as long as the manifest; the
 * caller then calls result_checks_destroy. Returns false when a subtask cannot be checked or memory
 * is short; the job is then unusable. */
bool result_checks_add(struct bourse_job *job, Bourse__V1__Manifest *manifest,
                       struct result_checks **ret_checks, struct bourse_error *error);
void result_checks_destroy(struct result_checks **self);

/* Adds "and referee = 1", or "and not referee = 1". Returns false when the requirement is full. */
bool result_checks_need_referee(struct requirement *needs);
bool result_checks_need_no_referee(struct requirement *needs);

/* Returns how many of a manifest's last subtasks are checks; 0: none. */
uint32_t result_checks_count(const Bourse__V1__Manifest *manifest);
/* Takes the checks and their part out of a manifest that was read back, and fills *ret_part.
 * Returns false, and leaves the manifest, when it has no checks or contradicts itself. */
bool result_checks_remove(Bourse__V1__Manifest *manifest, struct order_part *ret_part);

#endif
