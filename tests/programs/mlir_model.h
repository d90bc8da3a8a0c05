/* A model of a compiler for tests: it reads a little of StableHLO's text, and computes it.
 *
 * A program is one function. Its arguments are tensors; each of its lines is one operation on
 * values of one type: add, subtract, multiply, dot_general of two matrices, reshape, convert to
 * bf16. A custom_call of @fake_hang never ends, and by one of @fake_lost the device is lost. The
 * last line returns values. */
#ifndef BOURSE_TESTS_PROGRAMS_MLIR_MODEL_H
#define BOURSE_TESTS_PROGRAMS_MLIR_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { MLIR_DIMENSIONS = 9, MLIR_VALUES = 16, MLIR_LINES = 16, MLIR_NAME_SIZE = 32 };

struct mlir_tensor {
    int type; /* of enum pjrt_type */
    size_t dimension_count;
    int64_t shape[MLIR_DIMENSIONS];
    void *data; /* the last index runs fastest; NULL: none yet */
    size_t size;
};

struct mlir_line {
    char operation[MLIR_NAME_SIZE];
    size_t operands[2], operand_count, result; /* places in `values` */
};

struct mlir_program {
    char names[MLIR_VALUES][MLIR_NAME_SIZE];
    struct mlir_tensor values[MLIR_VALUES]; /* the inputs first, with the shapes they must have */
    size_t value_count, input_count;
    struct mlir_line lines[MLIR_LINES];
    size_t line_count;
    size_t outputs[MLIR_VALUES], output_count; /* places in `values` */
};

enum mlir_status { MLIR_OK, MLIR_WRONG, MLIR_LOST };

/* Returns the bytes of an element. */
size_t mlir_model_item_bytes(int type);

/* Reads the text. Returns MLIR_WRONG with what is wrong. */
enum mlir_status mlir_model_read(const char *code, size_t size, struct mlir_program *ret_program,
                                 char *ret_why, size_t why_size);
/* Computes the outputs, whose data the caller frees. Returns another status than MLIR_OK with what
 * is wrong; then there are no outputs. */
enum mlir_status mlir_model_run(const struct mlir_program *program,
                                const struct mlir_tensor *inputs, size_t input_count,
                                struct mlir_tensor *ret_outputs, char *ret_why, size_t why_size);

/* Reads XLA's CompileOptionsProto. Returns true, and the device's id, when the options are those of
 * a program that runs once at a time on one device. */
int mlir_model_device(const char *options, size_t size, uint64_t *ret_id);

#endif
