/* formats/tensor_op.h reads the operation of a subtask of the executor "tensor" from its arguments.
 *
 *     matmul [--compute TYPE] A B C           C = A B
 *     gemm [--alpha X] [--beta Y] [--compute TYPE] A B C0 C
 *                                             C = X A B + Y C0; without the options 1 and 1
 *     freivalds A B C SEED ROUNDS             whether C is A B, by random vectors: a verdict
 *
 * TYPE is fp32, tf32 or bf16. With tf32 or bf16, the device may round the factors to that type
 * before it multiplies them; it adds in float32. Without the option it must not.
 *
 * SEED is 64 hexadecimal digits, or `drawn`. For a drawn seed the market draws one after the result
 * to check has arrived, and inserts it before the operation runs.
 *
 * A, B, C and C0 are names of .npy files in the work folder; the last name of matmul and gemm is
 * the output. The job file, the agent and the computing program share this one reader. */
#ifndef BOURSE_FORMATS_TENSOR_OP_H
#define BOURSE_FORMATS_TENSOR_OP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TENSOR_SEED_BYTES = 32,
    TENSOR_ROUNDS_MOST = 64,
    /* A check that decides has so many rounds: a wrong row passes one time in a million. */
    TENSOR_CHECK_ROUNDS = 20,
    TENSOR_NUMBER_BYTES = 32, /* a factor as text */
};

#define TENSOR_DRAWN "drawn"
enum { TENSOR_SEED_WORD = 3 + 1 }; /* index of the seed in the arguments of freivalds */

/* The type that factors may be rounded to. */
enum tensor_compute { TENSOR_FP32, TENSOR_TF32, TENSOR_BF16 };
enum { TENSOR_COMPUTES = TENSOR_BF16 + 1 };

enum tensor_verb { TENSOR_MATMUL, TENSOR_GEMM, TENSOR_FREIVALDS };

struct tensor_op { /* points into the arguments */
    enum tensor_verb verb;
    const char *a, *b;
    const char *c;      /* gemm: the added matrix C0; freivalds: the product to check; else NULL */
    const char *result; /* NULL: a verdict, no file */
    const char *alpha, *beta; /* decimal numbers, such as -1.5e-3 */
    enum tensor_compute compute;
    bool is_drawn; /* the seed comes with the subtask's dispatch */
    uint8_t seed[TENSOR_SEED_BYTES];
    uint32_t rounds;
};

/* Reads an operation. Returns false with a problem, which shows the right form. `has_holes` says
 * that the arguments are templates; arguments with a placeholder are not checked. */
bool tensor_op_read(const char *const *arguments, size_t count, bool has_holes,
                    struct tensor_op *ret_op, struct problem *ret_problem);

/* Returns the word of a type, as in "tf32". */
const char *tensor_op_compute_word(enum tensor_compute compute);

/* Returns true when the operation computes A B in float32 and nothing else, so that freivalds can
 * check it. Rounded factors are what freivalds finds. The operation has no placeholders. */
bool tensor_op_is_product(const struct tensor_op *op);

#endif
