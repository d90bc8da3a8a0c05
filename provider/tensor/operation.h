/* provider/tensor/operation.h carries out one operation on the files of a folder, and on files that
 * were given to it open.
 *
 * All operands are checked before anything is made: they must be complete float32 matrices that fit
 * one another. Inputs are mapped, not read. The result gets its disk space first and is written in
 * place. */
#ifndef BOURSE_PROVIDER_TENSOR_OPERATION_H
#define BOURSE_PROVIDER_TENSOR_OPERATION_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/message.h"
#include "provider/tensor/gemm.h"

#include <stddef.h>
#include <stdint.h>

enum operation_status {
    OPERATION_OK,
    OPERATION_FAILED, /* the operands or the arguments are wrong */
    OPERATION_MEMORY, /* more memory needed than allowed */
    OPERATION_DISK,   /* no room for the result */
    OPERATION_DEVICE, /* the device of the jail cannot be used, which is not the job's fault */
    OPERATION_STATUSES
};

enum {
    OPERATION_LINE_SIZE = 512,
    OPERATION_GIVEN_MOST = 3,  /* no operation has more inputs */
    OPERATION_NAME_SIZE = 256, /* a result with a longer name does not stay on a device */
};

/* An input that comes as an open file. */
struct operation_given {
    const char *name;
    int file;
};

/* The hash of an input's bytes, which the agent has verified. */
struct operation_content {
    const char *name;
    struct hash32 hash;
};

struct operation_contents {
    const struct operation_content *items;
    size_t count;
};

/* Returns the hash of the input with this name, or NULL when nobody knows the hash. `contents` may
 * be NULL. */
const struct hash32 *operation_contents_find(const struct operation_contents *contents,
                                             const char *name);

struct operation_files {
    int folder;
    /* These inputs are not in the folder, but count as if they were. Each is closed before a byte
     * of it is read. */
    const struct operation_given *given;
    size_t given_count;
};

/* The file of a matrix, and the place of the matrix's values in it. */
struct operation_place {
    const char *name;
    uint64_t file_bytes, at;
};
struct operation_places {
    struct operation_place a, b, result;
};

/* Computes the products of operations: on the machine's cores, or on a device. */
struct operation_multiplier {
    /* Computes the product. For any status but OK, the problem says why, without a name. */
    enum operation_status (*multiply)(void *context, const struct gemm *gemm,
                                      const struct operation_places *places,
                                      struct problem *ret_problem);
    void *context;
};

struct operation_answer {
    enum result_verdict verdict; /* verdict of a check; otherwise VERDICT_NONE */
    /* A check's reasons, as one line of JSON with a newline; otherwise "". */
    char line[OPERATION_LINE_SIZE];
};

/* Runs one operation. The multiplier computes its product; the cores always compute a check.
 * `arguments` are as in formats/tensor_op.h, with the seed put in;
 * `memory_bytes` is what the check may allocate. OK means that the result is in the folder, or that
 * the answer has the verdict. A C that is no matrix of the product's shape is rejected like any
 * other wrong product. Its maker is to blame, not the account that asks. For any other status the
 * problem is a line for the job's owner, and no result is left. */
enum operation_status operation_run(const struct operation_files *files,
                                    const struct operation_multiplier *multiplier,
                                    const char *const *arguments, size_t count,
                                    uint64_t memory_bytes, struct operation_answer *ret_answer,
                                    struct problem *ret_problem);

#endif
