/* provider/executors/check.h decides whether a check judges exactly what its subtask had to
 * compute.
 *
 * The author of a job writes its checks too, and a check decides whether a provider is paid. So a
 * referee runs a check only when it is a check of exactly that product. The check must name the
 * same two factors by their hashes. The check must also name the one result file that the held
 * subtask had to leave. Any other check is the job's own fault and proves nothing about the
 * provider. */
#ifndef BOURSE_PROVIDER_EXECUTORS_CHECK_H
#define BOURSE_PROVIDER_EXECUTORS_CHECK_H

#include "base/problem.h"
#include "protocol/codec.h"

/* Returns true when check `index` is about subtask `checked`; the broker sent both numbers. The
 * manifest is well formed (program_check). Returns false with the mismatch as the problem, or when
 * memory is short. */
bool check_is_about(const Bourse__V1__Manifest *manifest, uint32_t index, uint32_t checked,
                    struct problem *ret_problem);

#endif
