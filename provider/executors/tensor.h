/* provider/executors/tensor.h - subtasks that are operations on matrices (formats/tensor_op.h).
 *
 * Files go in and out as for a program (executors/command.h runs both); what computes is
 * bourse-tensor, which stays in the jail of its lane. The agent never opens a matrix: it reads the
 * arguments only. */
#ifndef BOURSE_PROVIDER_EXECUTORS_TENSOR_H
#define BOURSE_PROVIDER_EXECUTORS_TENSOR_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/device/probe.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>

/* Whether the manifest's subtasks are operations. */
bool tensor_names(const Bourse__V1__Manifest *manifest);
/* Whether an input of `size` bytes, which the executor reads once for a subtask, may go into the
 * jail straight from the broker's file: worth it where it is large. Others are copied first,
 * because they may be a program or standard input, or needed often. */
bool tensor_reads_once(const Bourse__V1__Manifest *manifest, uint64_t size);
/* Checks what such a manifest has beside that of a program. False: it is refused, with the
 * reason. */
bool tensor_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* Runs the program once in a jail of its own and lets it measure one thread. False: it does not run
 * here, with the reason; nothing is offered then. */
bool tensor_probe(struct launcher *launcher, const char *worker_path, const char *tensor_path,
                  struct cgroups *cgroups, struct profile_gemm *ret_gemm,
                  struct problem *ret_problem);

#endif
