/* formats/kernel/kernel_op.h reads one launch of a kernel from the words of a subtask of the
 * executor "kernel".
 *
 *     SOURCE ENTRY --global N[,N[,N]] [--group N[,N[,N]]] [--options TEXT] ARGUMENT...
 *
 * SOURCE is a file of the work folder, ENTRY the name of a kernel in it. A name that ends in .ptx
 * or .cubin is a source of CUDA; any other one is OpenCL C. A source of CUDA has no options.
 * ARGUMENT stands for one argument of the kernel, in the kernel's own order:
 *
 *     --input FILE          a buffer with the file's bytes
 *     --output FILE BYTES   a buffer of zeros, whose bytes become the file
 *     --inout FILE RESULT   a buffer with the file's bytes, whose bytes become the file RESULT
 *     --local BYTES         local memory of each work-group; in CUDA, the one dynamic shared memory
 *                           of each block, which is no parameter
 *     --int N  --uint N  --long N  --ulong N  --float X  --double X    one number
 *
 * formats/kernel/job_kernel.c makes these words from the key `kernel` of a job file. The consumer,
 * the agent and the computing program share this one reader. Pure. */
#ifndef BOURSE_FORMATS_KERNEL_KERNEL_OP_H
#define BOURSE_FORMATS_KERNEL_KERNEL_OP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KERNEL_DIMENSIONS = 3,
    KERNEL_ARGUMENTS = 64,       /* of one kernel */
    KERNEL_ENTRY_BYTES = 128,    /* the name of a kernel */
    KERNEL_OPTIONS_BYTES = 1024, /* the compiler's options, as one text */
    KERNEL_NUMBER_BYTES = 32,    /* a number as text */
    /* SOURCE, ENTRY, three options with their values, and three words for each argument. */
    KERNEL_WORDS = 2 + 3 * 2 + 3 * KERNEL_ARGUMENTS,
};

/* The most bytes of one buffer, and the most items of one side of a range: 2^40. */
#define KERNEL_SIZE_MOST (UINT64_C(1) << 40)

/* The interfaces by which kernels reach devices. */
enum kernel_api { KERNEL_OPENCL, KERNEL_CUDA, KERNEL_APIS };

enum kernel_argument_kind {
    KERNEL_INPUT,
    KERNEL_OUTPUT,
    KERNEL_INOUT,
    KERNEL_LOCAL,
    KERNEL_INT,
    KERNEL_UINT,
    KERNEL_LONG,
    KERNEL_ULONG,
    KERNEL_FLOAT,
    KERNEL_DOUBLE,
    KERNEL_KINDS
};

struct kernel_argument {
    enum kernel_argument_kind kind;
    const char *file;    /* input and inout: the file to read; else NULL */
    const char *result;  /* output and inout: the file to leave; else NULL */
    uint64_t size_bytes; /* output and local */
    int64_t integer;     /* int and long */
    uint64_t natural;    /* uint and ulong */
    const char *number;  /* float and double: a decimal number, such as -1.5e-3 */
};

struct kernel_op { /* points into the words */
    const char *source, *entry;
    enum kernel_api api; /* of the source */
    const char *options; /* "" without the option */
    uint32_t dimensions; /* of `global`, and of `group` where there is one */
    uint64_t global[KERNEL_DIMENSIONS];
    bool has_group; /* without a group the device chooses */
    uint64_t group[KERNEL_DIMENSIONS];
    struct kernel_argument arguments[KERNEL_ARGUMENTS];
    size_t argument_count;
};

/* Reads a launch. Returns false with a problem that says what to do. `has_holes` says that the
 * words are templates; a word with a placeholder is not checked, and its value is 0. */
bool kernel_op_read(const char *const *words, size_t count, bool has_holes,
                    struct kernel_op *ret_op, struct problem *ret_problem);

/* Returns the interface that takes this source, by the end of its name. */
enum kernel_api kernel_op_api(const char *source);
/* Returns the word for an interface, as the attribute `api` has it: "opencl" or "cuda". */
const char *kernel_op_api_word(enum kernel_api api);
/* Returns the interface's name for people: "OpenCL" or "CUDA". */
const char *kernel_op_api_name(enum kernel_api api);

/* Returns the word of an argument without its dashes, such as "input". */
const char *kernel_op_word(enum kernel_argument_kind kind);

#endif
