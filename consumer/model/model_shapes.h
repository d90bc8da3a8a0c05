/* consumer/model/model_shapes.h works out the shapes of a model for the arrays of its inputs. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_SHAPES_H
#define BOURSE_CONSUMER_MODEL_MODEL_SHAPES_H

#include "base/problem.h"
#include "consumer/model/model_check.h"
#include "formats/onnx/onnx_infer.h"

#include <stdbool.h>

/* Works out the shapes, which the caller owns. `arrays` has one array for each input of `words`.
 * With `parts`, the inputs that are split have the rows of part `part`. Returns false with the
 * problem. */
bool model_shapes_find(const struct onnx_model *model, const struct onnx_words *words,
                       const struct model_array *arrays, uint32_t part, uint32_t parts,
                       struct onnx_shapes **ret_shapes, struct problem *ret_problem);

#endif
