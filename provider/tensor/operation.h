/* provider/tensor/operation.h - carries out one operation on the files of a folder, and on some
 * that were given to it open.
 *
 * Everything about the operands is checked before anything is made: that they are float32 matrices,
 * whole, and fit one another. Inputs are mapped, not read; the result gets its room first and is
 * written in place. */
#ifndef BOURSE_PROVIDER_TENSOR_OPERATION_H
#define BOURSE_PROVIDER_TENSOR_OPERATION_H

#include "base/problem.h"
#include "protocol/message.h"

#include <stddef.h>
#include <stdint.h>

enum operation_status {
    OPERATION_OK,
    OPERATION_FAILED, /* the operands or the arguments are wrong */
    OPERATION_MEMORY, /* more memory needed than there may be */
    OPERATION_DISK,   /* no room for the result */
    OPERATION_STATUSES
};

enum {
    OPERATION_LINE_SIZE = 512,
    OPERATION_GIVEN_MOST = 3, /* no operation has more inputs */
};

struct operation_files {
    int folder;
    /* Inputs that do not lie there. They count as if they did, and are closed before a byte of them
     * is looked at. */
    struct operation_given {
        const char *name;
        int file;
    } given[OPERATION_GIVEN_MOST];
    size_t given_count;
};

struct operation_answer {
    enum result_verdict verdict;    /* of a check; of all else VERDICT_NONE */
    char line[OPERATION_LINE_SIZE]; /* of a check: how it came to that, one line of JSON with a
                                       newline; else "" */
};

/* `arguments` as in formats/tensor_op.h, the seed put in; `memory_bytes` is what the check may
 * allocate. OK: the result is in the folder, or the answer has the verdict. A C that is no matrix
 * of the product's shape is rejected like any other wrong product: whoever made it is to blame, not
 * who asks. Any other status: the problem says why in a line for the job's owner, and no result is
 * left. */
enum operation_status operation_run(const struct operation_files *files,
                                    const char *const *arguments, size_t count,
                                    uint64_t memory_bytes, struct operation_answer *ret_answer,
                                    struct problem *ret_problem);

#endif
