/* tests/support/own_case.h runs small ONNX models by our own operators, for tests.
 *
 * A tensor is written as text: a letter for its type, its dims, a colon, and its elements, such as
 * "f2,3: 1 2 3 4 5 6". The letters are f float32, d double, h float16, i int64, j int32, s int16,
 * c int8, u uint8, and b bool. A scalar is "f: 5". Attributes are "axis=1 alpha=~0.5 perm=[1,0]
 * mode=edge". */
#ifndef BOURSE_TESTS_SUPPORT_OWN_CASE_H
#define BOURSE_TESTS_SUPPORT_OWN_CASE_H

#include "provider/onnx/own/own_engine.h"
#include "tests/support/onnx_writer.h"

enum { OWN_CASE_PORTS = 16 };

struct own_case { /* all zeros, but for the writer's opset */
    struct onnx_writer writer;
    uint64_t memory_bytes;
    struct onnx_array inputs[OWN_CASE_PORTS], found[OWN_CASE_PORTS];
    size_t input_count, output_count;
    struct onnx_bytes model;
    void *session;
    struct problem problem;
};

/* Reads a tensor that is written as text. The caller releases the array. */
void own_case_array(const char *text, struct onnx_array *ret_array);
/* Adds an input of the graph, with its value. NULL as dims leaves the port's dims unsaid. */
void own_case_input(struct own_case *self, const char *name, const char *value);
/* Adds weights whose bytes are in the model. */
void own_case_weights(struct own_case *self, const char *name, const char *value);
/* Adds float32 weights out of memory; dims are such as "4,2". */
void own_case_reals(struct own_case *self, const char *name, const char *dims, const float *values,
                    size_t count);
void own_case_node(struct own_case *self, const char *operator, const char * attributes,
                   const char *inputs, const char *outputs);
void own_case_output(struct own_case *self, const char *name, enum onnx_type type);
/* Opens the model, unless it is open, and runs it. `found` has the outputs then. */
enum onnx_engine_status own_case_run(struct own_case *self);
void own_case_fini(struct own_case *self);

/* Asserts that an array is the tensor of the text; reals may be 1e-5 away. */
void own_case_assert_array(const struct onnx_array *found, const char *stated, const char *what);

/* Asserts what one operator makes of its inputs, or that it is refused with these words. Lists end
 * with NULL; an empty text leaves an input or output out. */
void own_case_check(int64_t opset, const char *operator, const char * attributes,
                    const char *const *inputs, const char *const *outputs);
void own_case_refused(int64_t opset, const char *operator, const char * attributes,
                      const char *const *inputs, char output_type, enum onnx_engine_status status,
                      const char *words);
#define IN(...) ((const char *const[]){__VA_ARGS__, NULL})
#define OUT(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_INPUT ((const char *const[]){NULL})

#endif
