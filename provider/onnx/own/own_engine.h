/* provider/onnx/own/own_engine.h is the end of onnx_engine.h that computes with operators of our
 * own. It is always there, and serves where no ONNX Runtime is found. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_ENGINE_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_ENGINE_H

#include "provider/onnx/onnx_engine.h"

/* The version changes when results may change. */
#define OWN_ENGINE_NAME "bourse-1"

/* Fills in the engine, which needs no context and cannot fail. */
void own_engine_make(struct onnx_engine *ret_engine);

#endif
