#include "provider/onnx/onnx_engines.h"

#include "provider/onnx/own/own_engine.h"
#include "provider/onnx/runtime/ort_engine.h"

#include <unistd.h>

bool onnx_engines_open(const char *library, struct onnx_engine *ret_engine,
                       struct problem *ret_problem)
{
    if (access(library, F_OK) == 0) {
        return ort_engine_open(library, ret_engine, ret_problem);
    }
    own_engine_make(ret_engine);
    return true;
}
