/* provider/device/model_device.h knows the devices that compute ONNX models by an execution
 * provider of ONNX Runtime, such as WebGPU or CUDA.
 *
 * The config names each provider, and a provider that it does not name computes nothing. The agent
 * never loads a provider itself. The program bourse-onnx tries it in a jail, at a start as for jobs
 * (provider/executors/onnx.h). This module keeps the owner's words, and reads what the trial said.
 */
#ifndef BOURSE_PROVIDER_DEVICE_MODEL_DEVICE_H
#define BOURSE_PROVIDER_DEVICE_MODEL_DEVICE_H

#include "base/problem.h"
#include "base/requirement.h"
#include "provider/device/model_engine.h"
#include "provider/device/plugin_device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_DEVICES_MAX = 16,
    MODEL_PROVIDER_SIZE = 40,
    MODEL_SETTINGS_SIZE = 1024,
};

/* A model_provider has what the config says about an execution provider. */
struct model_provider {
    char name[MODEL_PROVIDER_SIZE]; /* as ONNX Runtime spells it, "WebGPU"; "": none */
    /* The lines that bourse-onnx reads (provider/onnx/runtime/ort_provider.h). */
    char settings[MODEL_SETTINGS_SIZE];
    /* The device files that the provider needs. When the owner names none, the jail has those of
     * all graphics processors that there are. */
    char nodes[PLUGIN_NODES_MAX][PLUGIN_NODE_SIZE];
    size_t node_count;
    bool names_nodes;
};

struct model_device {
    char name[ATTRIBUTE_TEXT_SIZE]; /* the config's, which is the device's label */
    struct model_provider provider;
    char engine[MODEL_ENGINE_NAME_SIZE]; /* "onnxruntime-1.30.0-webgpu" */
    char kind[16];                       /* of base/device_kind.h */
    char vendor[24];                     /* of the hardware, as instruments write it */
    int64_t mflops;                      /* of the trial's product of float32 matrices */
    char unusable[512];                  /* why the device is not offered; "": it is */
};

struct model_device_list {
    struct model_device items[MODEL_DEVICES_MAX];
    size_t count;
    bool is_known; /* the devices were tried */
};

/* Returns the kind of device that a provider of this name is for: "webgpu", "gpu", "npu", "cpu" or
 * "custom". The suffix "ExecutionProvider" and the case of letters do not count. */
const char *model_device_kind(const char *provider);
/* Writes the name in lower case without the suffix "ExecutionProvider": "webgpu". */
void model_device_slug(const char *provider, char ret_slug[MODEL_PROVIDER_SIZE]);
/* Reads the lines that bourse-onnx prints of the trial: the engine's name, and then `KEY VALUE`
 * with the keys `type`, `vendor` and `mflops`. Returns false with the problem. */
bool model_device_read(const char *text, size_t length, struct model_device *device,
                       struct problem *ret_problem);
/* Writes the name under which the market trades the device, "webgpu.onnxruntime.webgpu". */
void model_device_instrument(const struct model_device *device,
                             char ret_instrument[ATTRIBUTE_TEXT_SIZE]);
/* Returns the device with the config's name, or NULL. */
const struct model_device *model_device_find(const struct model_device_list *list,
                                             const char *name);
bool model_provider_equal(const struct model_provider *a, const struct model_provider *b);

/* Fills the list of the jail's device files, which ends with NULL. The texts are the provider's, or
 * as long as the process. */
enum { MODEL_NODES_MAX = 40 };
void model_provider_nodes(const struct model_provider *provider,
                          const char *ret_nodes[MODEL_NODES_MAX + 1]);

/* Returns true when the jail has device files for the provider. */
bool model_provider_has_nodes(const struct model_provider *provider);

#endif
