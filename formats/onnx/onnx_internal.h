/* formats/onnx/onnx_internal.h holds what the files of onnx.h share. They read a model in
 * parts, and keep the first fault. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_INTERNAL_H
#define BOURSE_FORMATS_ONNX_ONNX_INTERNAL_H

#include "formats/onnx/onnx.h"

/* Reading ends at the first fault, which stays here. */
struct onnx_reading {
    struct onnx_model *model;
    struct problem *problem;
    enum onnx_status status;
};

/* Notes the first fault. Returns false, so that a caller can end with it. */
bool onnx_fault(struct onnx_reading *reading, enum onnx_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns true when a name is not empty, not too long and plain text; notes a fault else. */
bool onnx_name_is_good(struct onnx_reading *reading, struct onnx_span name, const char *what);

/* Reads a TensorProto into its header. `what` says in messages what it is. */
bool onnx_tensor_head(struct onnx_reading *reading, struct onnx_span message, const char *what,
                      struct onnx_tensor *ret_tensor);
/* Reads an AttributeProto without its lists. */
bool onnx_attribute_read(struct onnx_reading *reading, struct onnx_span message,
                         const struct onnx_node *node, struct onnx_attribute *ret_attribute);
/* Reads a ValueInfoProto. */
bool onnx_port_read(struct onnx_reading *reading, struct onnx_span message, const char *what,
                    struct onnx_port *ret_port);

/* Gives every name one value, and the nodes' inputs their values. Names stand in `input_names` and
 * `output_names`, as the nodes' inputs and outputs do in uses and makes. Refuses names that stand
 * twice, that nobody makes, and circles. */
bool onnx_names_resolve(struct onnx_reading *reading, const struct onnx_span *input_names,
                        const struct onnx_span *output_names);

#endif
