/* provider/executors/model_devices.h tries, at a start, the execution providers of ONNX Runtime
 * that the config names. An agent goes on without a device whose provider cannot be used. */
#ifndef BOURSE_PROVIDER_EXECUTORS_MODEL_DEVICES_H
#define BOURSE_PROVIDER_EXECUTORS_MODEL_DEVICES_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/executors/onnx.h"

#include <stdbool.h>

/* Returns true when the config has a device with an execution provider. */
bool model_devices_wanted(const struct config *config);
/* Fills machine->model_devices. machine->models is known. */
void model_devices_learn(const struct config *config, const struct onnx_trial *trial,
                         struct machine *machine);
/* Logs one line for each such device: how it was tried, or why it is not offered. */
void model_devices_say(const struct machine *machine);

#endif
