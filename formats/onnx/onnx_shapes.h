/* formats/onnx/onnx_shapes.h holds what is known of the values of a model. A value has a type and
 * dims; a small tensor of integers has its elements, too. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_SHAPES_H
#define BOURSE_FORMATS_ONNX_ONNX_SHAPES_H

#include "formats/onnx/onnx.h"

enum {
    ONNX_VALUES_MOST = 64, /* elements of a tensor whose values are followed */
};

/* The type, dims and values of one value of the model, as far as they are known. */
struct onnx_fact {
    bool is_known; /* false: it is no tensor */
    enum onnx_type type;
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST];
    int64_t elements, bytes;
    uint32_t first_value;    /* in `values`; ONNX_NONE: not known before a run */
    struct onnx_span tensor; /* TensorProto of a constant; of size 0: none */
};

struct onnx_shapes {
    struct onnx_fact *facts; /* by value of the model */
    int64_t *values;
    size_t value_count, value_capacity;
};

void onnx_shapes_destroy(struct onnx_shapes **self);

/* Sets a fact. Returns the status; any but OK leaves the fact unknown. */
enum onnx_status onnx_shapes_set(struct onnx_fact *fact, enum onnx_type type, uint32_t rank,
                                 const int64_t *dims);
/* Keeps the values of a fact, if it is of integers and has few. Returns false when memory is
 * short. */
bool onnx_shapes_keep(struct onnx_shapes *shapes, struct onnx_fact *fact, const int64_t *values);
bool onnx_type_is_integer(enum onnx_type type);

/* Writes a shape as people read it: "float32[1,3,224,224]". */
struct onnx_shape_text {
    char text[200];
};
struct onnx_shape_text onnx_shape_text(const struct onnx_fact *fact);

#endif
