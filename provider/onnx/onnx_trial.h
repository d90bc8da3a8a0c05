/* provider/onnx/onnx_trial.h lets an execution provider prove at a start that it computes.
 *
 * The trial's model is y = Sigmoid(x * x) for x of float32[256, 256], and then of float32[2048,
 * 2048] where the device is fast. The provider must compute all of it, so that the processor cannot
 * answer in its place. Places of y are compared with sums in float64. The agent reads what the
 * trial prints (provider/device/model_device.h). */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_TRIAL_H
#define BOURSE_PROVIDER_ONNX_ONNX_TRIAL_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"

#include <stdbool.h>
#include <stdint.h>

/* A value between 0 and 1 may differ by so much. Devices that multiply in bfloat16 come near it. */
#define ONNX_TRIAL_TOLERANCE 5e-3

/* Runs the model four times and compares each result. Sets the Mflop/s of the fastest of the last
 * three runs, with the way of the arrays to the device and back. Returns false with the problem
 * when the provider does not compute, or not rightly. */
bool onnx_trial_run(const struct onnx_engine *engine, int64_t *ret_mflops,
                    struct problem *ret_problem);

#endif
