/* formats/onnx/onnx_interface.h reads what a model takes and leaves, and which other files it
 * needs, without its nodes.
 *
 * Models of any version have this part in common, so that a model for an engine that knows newer
 * operators can be read, too. What onnx_read refuses in weights and paths is refused here as well.
 * Pure. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_INTERFACE_H
#define BOURSE_FORMATS_ONNX_ONNX_INTERFACE_H

#include "base/problem.h"
#include "formats/onnx/onnx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ONNX_INTERFACE_FILES = 200, /* other files of one model */
};

/* Another file of the model. */
struct onnx_interface_file {
    struct onnx_span path; /* relative to the model's folder, without ".." */
    int64_t end;           /* the least size of the file: where the last of its weights ends */
};

/* The struct is large. Its texts are spans of the model's bytes, which outlive it. */
struct onnx_interface {
    struct onnx_port inputs[ONNX_INTERFACE_MOST]; /* without those that have weights */
    size_t input_count;
    struct onnx_port outputs[ONNX_INTERFACE_MOST];
    size_t output_count;
    struct onnx_interface_file files[ONNX_INTERFACE_FILES]; /* each once */
    size_t file_count;
    int64_t ir_version;
};

/* Reads the interface. Any status but OK says in `ret_problem` what is wrong; the struct is then
 * of no use. */
enum onnx_status onnx_interface_read(const uint8_t *bytes, size_t length,
                                     struct onnx_interface *ret_interface,
                                     struct problem *ret_problem);

/* Returns the index of the port with this name, or `count` when there is none. */
size_t onnx_interface_find(const struct onnx_port *ports, size_t count, struct onnx_span name);

/* Returns true when an array of this type and these dims may go into the port: each dim of the port
 * that is a number agrees, and dims with one name are not compared. Otherwise the problem has both
 * types with their dims. */
bool onnx_interface_fits(const struct onnx_port *port, enum onnx_type type, uint32_t rank,
                         const int64_t *dims, struct problem *ret_problem);

#endif
