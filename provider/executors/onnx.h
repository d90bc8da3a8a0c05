/* provider/executors/onnx.h runs subtasks that are runs of ONNX models (formats/onnx/onnx_words.h).
 *
 * executors/program.h runs these subtasks, too, and their files go in and out as for a program. The
 * program bourse-onnx computes them in the jail of their lane, and keeps a model open for the next
 * subtask. The agent reads the arguments only. */
#ifndef BOURSE_PROVIDER_EXECUTORS_ONNX_H
#define BOURSE_PROVIDER_EXECUTORS_ONNX_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/device/model_device.h"
#include "provider/device/model_engine.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>

/* Returns true when the manifest's subtasks are runs of models. */
bool onnx_names(const Bourse__V1__Manifest *manifest);
/* Checks the parts of such a manifest that a manifest of programs does not have. Returns false with
 * the reason when the manifest is refused. */
bool onnx_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* The jail's parts for models, with the list that they point to. */
struct onnx_parts {
    struct jail_model jail;
    const char *nodes[MODEL_NODES_MAX + 1];
};
/* Fills the parts, which point into themselves, the engine and the provider. `provider` is that of
 * the device; NULL: processor cores compute. */
void onnx_fill(const struct model_engine *engine, const struct model_provider *provider,
               struct onnx_parts *ret_parts);

/* A trial jail is made of these. */
struct onnx_trial {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *const *visible; /* as in struct jail_spec */
};
/* Lets the engine compute a model of our own in a trial jail, and notes its name, or why no models
 * run. Library and program are set. */
void onnx_look(const struct onnx_trial *trial, struct model_engine *engine);
/* Lets an execution provider compute a model of our own in a trial jail, which compares the result
 * with that of our own operators. Notes what the device is, or why it is unusable. The name and the
 * provider are set, and the engine was looked at. */
void onnx_look_at_device(const struct onnx_trial *trial, const struct model_engine *engine,
                         struct model_device *device);
/* Says in the log what computes models here, or why nothing does. The latter is a warning when the
 * config names the library. */
void onnx_say(const struct model_engine *engine, bool is_named);

#endif
