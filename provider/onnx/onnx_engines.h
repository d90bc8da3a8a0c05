/* provider/onnx/onnx_engines.h chooses what computes models in a jail. */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_ENGINES_H
#define BOURSE_PROVIDER_ONNX_ONNX_ENGINES_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"

#include <stdbool.h>

/* Opens ONNX Runtime from the library of this path. Where there is no such file, the engine is our
 * own. `settings` is the path of an execution provider's settings; NULL, or a file that is not
 * there: the processor computes. Returns false with the problem when the library is there and
 * cannot be used. */
bool onnx_engines_open(const char *library, const char *settings, struct onnx_engine *ret_engine,
                       struct problem *ret_problem);

#endif
