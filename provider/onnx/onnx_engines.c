#include "provider/onnx/onnx_engines.h"

#include "provider/onnx/own/own_engine.h"
#include "provider/onnx/runtime/ort_engine.h"

#include <unistd.h>

bool onnx_engines_open(const char *library, const char *settings, struct onnx_engine *ret_engine,
                       struct problem *ret_problem)
{
    const bool has_provider = settings != NULL && access(settings, F_OK) == 0;
    if (access(library, F_OK) == 0) {
        return ort_engine_open(library, has_provider ? settings : NULL, ret_engine, ret_problem);
    }
    if (has_provider) {
        problem_set(ret_problem, "an execution provider needs ONNX Runtime's library");
        return false;
    }
    own_engine_make(ret_engine);
    return true;
}
