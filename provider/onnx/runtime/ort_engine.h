/* provider/onnx/runtime/ort_engine.h is the end of onnx_engine.h that ONNX Runtime computes.
 *
 * It computes on processors, or by an execution provider (ort_provider.h). Runs of one session give
 * the same bytes for the same inputs, unless an operator draws random numbers. They use at most the
 * threads that the session was opened with. */
#ifndef BOURSE_PROVIDER_ONNX_RUNTIME_ORT_ENGINE_H
#define BOURSE_PROVIDER_ONNX_RUNTIME_ORT_ENGINE_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"

#include <stdbool.h>

/* Loads the library of this path and makes an engine of it, which is as long as the process. The
 * process has one such engine. `settings` is the path of an execution provider's settings; NULL:
 * the processor computes. Returns false with a line that says why there is none. */
bool ort_engine_open(const char *library, const char *settings, struct onnx_engine *ret_engine,
                     struct problem *ret_problem);
/* Frees what the engine holds but the library; for tests, which count what is left. */
void ort_engine_close(struct onnx_engine *engine);

#endif
