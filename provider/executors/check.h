/* provider/executors/check.h - whether a check is about what its subtask was asked to compute.
 *
 * Who wrote the job wrote its checks, and a check decides whether a provider is paid. So a referee
 * runs it only when it is a check of the very product: the same two factors by their hashes, and
 * the result of the subtask whose result is held, which had to leave that one file. Any other is
 * the job's own fault, and proves nothing about the provider. Pure. */
#ifndef BOURSE_PROVIDER_EXECUTORS_CHECK_H
#define BOURSE_PROVIDER_EXECUTORS_CHECK_H

#include "base/problem.h"
#include "protocol/codec.h"

/* `index` is the check's, `checked` the subtask's, both as the broker said; the manifest is well
 * formed (command_check). False with what does not fit, or without memory. */
bool check_is_about(const Bourse__V1__Manifest *manifest, uint32_t index, uint32_t checked,
                    struct problem *ret_problem);

#endif
