#include "provider/onnx/onnx_engines.h"

#include "provider/onnx/runtime/ort_engine.h"

bool onnx_engines_open(const char *library, struct onnx_engine *ret_engine,
                       struct problem *ret_problem)
{
    return ort_engine_open(library, ret_engine, ret_problem);
}
