/* provider/onnx/onnx_engines.h chooses what computes models in a jail. */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_ENGINES_H
#define BOURSE_PROVIDER_ONNX_ONNX_ENGINES_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"

#include <stdbool.h>

/* Opens ONNX Runtime from the library of this path. Returns false with the problem when there is no
 * such library, or it cannot be used. */
bool onnx_engines_open(const char *library, struct onnx_engine *ret_engine,
                       struct problem *ret_problem);

#endif
