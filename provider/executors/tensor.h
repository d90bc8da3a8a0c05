/* provider/executors/tensor.h runs subtasks that are operations on matrices (formats/tensor_op.h).
 *
 * executors/program.h runs these subtasks, too, and their files go in and out as for a program. The
 * program bourse-tensor computes them in the jail of its lane, and bourse-kernel does so on a
 * device for kernels. The agent never opens a matrix: the agent reads the arguments only. */
#ifndef BOURSE_PROVIDER_EXECUTORS_TENSOR_H
#define BOURSE_PROVIDER_EXECUTORS_TENSOR_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/device/probe.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>

/* Returns true when the manifest's subtasks are operations. */
bool tensor_names(const Bourse__V1__Manifest *manifest);
/* Returns true when an input of `size` bytes may go into the jail straight from the broker's file.
 * The input must be large enough to be worth it, and the executor reads it once per subtask. Other
 * inputs are copied first, because they may be a program or standard input, or needed often. */
bool tensor_reads_once(const Bourse__V1__Manifest *manifest, uint64_t size);
/* Checks the parts of a manifest of operations that a manifest of programs does not have. Returns
 * false with the reason when the manifest is refused. */
bool tensor_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* Runs bourse-tensor once in a jail of its own and lets it measure one thread. Returns false with
 * the reason when the program does not run here; then no matrices are offered. */
bool tensor_probe(struct launcher *launcher, const char *worker_path, const char *tensor_path,
                  struct cgroups *cgroups, struct profile_gemm *ret_gemm,
                  struct problem *ret_problem);

#endif
