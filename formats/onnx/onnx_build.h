/* formats/onnx/onnx_build.h writes an ONNX model, node by node, as the bytes of a file.
 *
 *     struct onnx_build build = {.opset = 13};
 *     struct onnx_ref x = onnx_build_named("x");
 *     struct onnx_ref y = onnx_build_node(&build, "Mul", 2, (struct onnx_ref[]){x, x});
 *     onnx_build_port(&build, true, x, ONNX_FLOAT, 1, (int64_t[]){-1});
 *     onnx_build_port(&build, false, y, ONNX_FLOAT, 1, (int64_t[]){-1});
 *     if (!onnx_build_end(&build, &bytes, &size)) { memory is short }
 *
 * A value is a reference: a name of the caller's, or a number whose name is made here. Made names
 * begin with ONNX_BUILD_PREFIX, and the caller's other names do not. Shortage of memory is noted
 * once and found at the end. Pure. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_BUILD_H
#define BOURSE_FORMATS_ONNX_ONNX_BUILD_H

#include "formats/onnx/onnx.h"

#define ONNX_BUILD_PREFIX "bourse/"

/* A value of the model. No name and no number: there is no value. */
struct onnx_ref {
    struct onnx_span name; /* borrowed until the model is built */
    uint32_t made;         /* number of a made name, from 1; 0: `name` counts */
};

struct onnx_build_bytes {
    uint8_t *at;
    size_t size, capacity;
};

struct onnx_build { /* all zeros, but for the opset */
    int64_t opset;  /* of the domain ai.onnx */
    struct onnx_build_bytes graph, node;
    struct onnx_build_bytes model; /* fields of another file; none: the model gets its own */
    uint32_t made;
    bool is_short; /* of memory */
};

struct onnx_ref onnx_build_named(const char *name);
bool onnx_build_has(struct onnx_ref ref);

/* Begins a node with its inputs, and returns its one output. Attributes follow, then the end. */
struct onnx_ref onnx_build_begin(struct onnx_build *build, const char *operator, size_t count,
                                 const struct onnx_ref *inputs);
/* The same for a node whose output gets a name of the caller's. */
void onnx_build_begin_named(struct onnx_build *build, const char *operator, size_t count,
                            const struct onnx_ref *inputs, struct onnx_ref output);
void onnx_build_integer(struct onnx_build *build, const char *name, int64_t value);
void onnx_build_real(struct onnx_build *build, const char *name, float value);
void onnx_build_integers(struct onnx_build *build, const char *name, size_t count,
                         const int64_t *values);
void onnx_build_end_node(struct onnx_build *build);
/* Adds a node without attributes, and returns its output. */
struct onnx_ref onnx_build_node(struct onnx_build *build, const char *operator, size_t count,
                                const struct onnx_ref *inputs);

/* Adds constants. Scalars have no dims, and a list has one. */
struct onnx_ref onnx_build_scalar(struct onnx_build *build, float value);
struct onnx_ref onnx_build_double(struct onnx_build *build, double value);
struct onnx_ref onnx_build_list(struct onnx_build *build, size_t count, const int64_t *values);
/* Adds a constant of float32 under a name of the caller's. `values` has one for each element. */
void onnx_build_weights(struct onnx_build *build, struct onnx_span name, uint32_t rank,
                        const int64_t *dims, const float *values);
/* Adds an input or an output. A dim of -1 takes any number. */
void onnx_build_port(struct onnx_build *build, bool is_input, struct onnx_ref ref,
                     enum onnx_type type, uint32_t rank, const int64_t *dims);
/* Adds a field of a graph as another file has it, key and length included. */
void onnx_build_field(struct onnx_build *build, struct onnx_span field);
/* Adds a field of a model, likewise. Then the versions and the names are those of such fields. */
void onnx_build_model_field(struct onnx_build *build, struct onnx_span field);

/* Writes the model. The caller frees the bytes. Returns false when memory was short; either way the
 * build is empty afterwards. */
bool onnx_build_end(struct onnx_build *build, uint8_t **ret_bytes, size_t *ret_size);
/* Gives up a model that is not ended. */
void onnx_build_fini(struct onnx_build *build);

#endif
