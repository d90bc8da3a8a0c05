/* tests/support/onnx_writer.h writes small .onnx files for tests: protocol buffers, field by field.
 *
 * Weights are said to lie in another file. So a model of 100 MB is a file of some kilobytes. */
#ifndef BOURSE_TESTS_SUPPORT_ONNX_WRITER_H
#define BOURSE_TESTS_SUPPORT_ONNX_WRITER_H

#include <stddef.h>
#include <stdint.h>

enum { WRITER_FLOAT = 1, WRITER_INT64 = 7, WRITER_RAW_DATA = 9 };

struct onnx_bytes { /* all zeros: empty */
    uint8_t *at;
    size_t size, capacity;
};
void onnx_bytes_fini(struct onnx_bytes *bytes);
void onnx_put_varint(struct onnx_bytes *to, uint64_t value);
void onnx_put_number(struct onnx_bytes *to, uint32_t field, uint64_t value);
void onnx_put_bytes(struct onnx_bytes *to, uint32_t field, const void *bytes, size_t size);
void onnx_put_text(struct onnx_bytes *to, uint32_t field, const char *text);
/* Puts a message into another, and empties it. */
void onnx_put_message(struct onnx_bytes *to, uint32_t field, struct onnx_bytes *message);

struct onnx_writer { /* all zeros, but for the opset */
    struct onnx_bytes graph, node;
    int64_t opset;
    uint64_t offset; /* of the next weights in their file */
};

/* Adds an input or an output. `dims` is such as "batch,3,224,224", and NULL says none. */
void onnx_write_input(struct onnx_writer *writer, const char *name, int type, const char *dims);
void onnx_write_output(struct onnx_writer *writer, const char *name, int type, const char *dims);
/* Adds weights of float32 that lie in "weights.bin". `dims` is such as "64,3,7,7". */
void onnx_write_weights(struct onnx_writer *writer, const char *name, const char *dims);
/* Adds a list of integers whose bytes are in the file. */
void onnx_write_integers(struct onnx_writer *writer, const char *name, size_t count,
                         const int64_t *values);
/* Adds one integer, without dims. */
void onnx_write_integer(struct onnx_writer *writer, const char *name, int64_t value);
/* Adds weights of float32 whose bytes are in the file. `dims` is such as "64,3". */
void onnx_write_floats(struct onnx_writer *writer, const char *name, const char *dims,
                       const float *values);
/* Adds one number of float32. */
void onnx_write_real(struct onnx_writer *writer, const char *name, float value);

/* A node is begun, gets its attributes, and is ended. `inputs` and `outputs` are names with blanks
 * between; "-" leaves one out. The node has the name of its first output. */
void onnx_begin_node(struct onnx_writer *writer, const char *operator, const char * inputs,
                     const char *outputs);
void onnx_node_integer(struct onnx_writer *writer, const char *name, int64_t value);
/* `values` is such as "1,1". */
void onnx_node_integers(struct onnx_writer *writer, const char *name, const char *values);
void onnx_node_text(struct onnx_writer *writer, const char *name, const char *value);
void onnx_end_node(struct onnx_writer *writer);
/* Begins and ends a node without attributes. */
void onnx_write_node(struct onnx_writer *writer, const char *operator, const char * inputs,
                     const char *outputs);

/* Ends the model. The caller frees the bytes; the writer is empty then. */
struct onnx_bytes onnx_write_end(struct onnx_writer *writer);

#endif
