/* tests/support/onnx_models.h writes models that people know, as graphs without the bytes of their
 * weights: a ResNet-50, a MobileNet, a BERT and a GPT-2. Their sizes are the published ones. */
#ifndef BOURSE_TESTS_SUPPORT_ONNX_MODELS_H
#define BOURSE_TESTS_SUPPORT_ONNX_MODELS_H

#include "tests/support/onnx_writer.h"

enum { ONNX_MODELS = 4 };
extern const char *const onnx_model_names[ONNX_MODELS]; /* "resnet50", ... */

/* Writes a model by its index. The caller frees the bytes. */
struct onnx_bytes onnx_model_write(size_t index);

#endif
