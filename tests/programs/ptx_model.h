/* tests/programs/ptx_model.h carries out a kernel from its text in PTX, thread by thread, for
 * tests.
 *
 * The model knows the instructions that the kernels of products and folds have, and no others. All
 * threads of a block run one after another up to the next barrier. Memory outside the buffers of
 * the launch is an error, and so is a text with an instruction or operand that the model does not
 * know. */
#ifndef BOURSE_TESTS_PROGRAMS_PTX_MODEL_H
#define BOURSE_TESTS_PROGRAMS_PTX_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_launch {
    unsigned grid[2], block; /* blocks in two dimensions, threads of a block in one */
    void **parameters;       /* in the order of the text */
    /* Returns true when the bytes belong to a buffer. */
    bool (*is_memory)(uint64_t address, size_t size);
};

/* Runs the entry of the text. Returns NULL, or what is wrong in a line. */
const char *ptx_model_run(const char *text, const char *entry, const struct ptx_launch *launch);

#endif
