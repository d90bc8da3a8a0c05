/* provider/kernel/interface.h says what an interface to devices, such as OpenCL, does for the
 * engine. engine.h keeps the programs. engine_launch.c reads and writes the files, and makes the
 * calls in order. Each interface has one table of its functions. */
#ifndef BOURSE_PROVIDER_KERNEL_INTERFACE_H
#define BOURSE_PROVIDER_KERNEL_INTERFACE_H

#include "base/problem.h"
#include "formats/kernel/kernel_op.h"
#include "formats/tensor_op.h"
#include "provider/tensor/operation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

enum { KERNEL_WANTED_SIZE = 32 };

/* A buffer in the device's memory. OpenCL uses `handle`, and CUDA uses `address`. */
struct kernel_buffer {
    void *handle;
    uint64_t address;
};

/* This structure says how an interface computes products.
 *
 * The kernel has the parameters uint rows, uint inner, uint columns, float alpha, float beta, and
 * the buffers A, B, C. It computes C = alpha A B + beta C, and does not read C when beta is 0. The
 * matrices lie row by row in memory. A work-group computes one block of C. In row_dimension, the
 * number of the group counts blocks down the rows; in the other dimension, along the columns. */
struct kernel_product {
    const char *source, *entry, *options;
    uint32_t rows, columns;   /* of a block */
    uint32_t group[2];        /* work-items of a work-group, by dimension */
    uint32_t row_dimension;   /* 0 or 1 */
    uint32_t row_blocks_most; /* of one launch; 0: any number. More go in bands of rows. */
};

/* A product of matrices that are on the device, row by row: C = alpha A B + beta C. C is not read
 * when beta is 0. */
struct kernel_multiplication {
    uint64_t rows, inner, columns;
    float alpha, beta;
    enum tensor_compute compute;
    struct kernel_buffer a, b, c;
};

enum { KERNEL_LIBRARY_NAME_SIZE = 64 };

/* A function that returns a status sets the problem for any status but OK. `what` begins the
 * problem: it names what could not be done. */
struct kernel_interface {
    enum kernel_api api;
    /* True: each {local: ...} of a launch is a parameter of the kernel. False: it is a setting of
     * the launch. */
    bool local_is_parameter;
    /* A program with the kernels bourse_rate(out, a, b, steps), bourse_copy(from, to) and
     * bourse_fold(values). In each step, a work-item of bourse_rate does 32 float32 multiplications
     * and 32 additions. A work-item of bourse_copy copies 16 bytes. A work-item of bourse_fold
     * replaces one whole number by challenge_chain_fold of it. */
    const char *measure_source;
    /* Says how the open device computes products. */
    void (*product)(const struct engine *engine, struct kernel_product *ret_product);

    /* The next two are NULL where the interface knows no library of products by a device's maker.
     * Opens the library of this name, or path, for the open device; NULL: it is in the program
     * itself. The library takes engine->library_bytes of the device's memory, and `memory_bytes` is
     * all that there is. Writes the library's name. Returns false with the problem when there is
     * none that can be used; then nothing is open. */
    bool (*open_library)(struct engine *engine, const char *library, uint64_t memory_bytes,
                         char ret_name[KERNEL_LIBRARY_NAME_SIZE], struct problem *ret_problem);
    /* Computes one product by the open library, and waits for its end. *ret_is_refused is true when
     * the library does not compute this product. Then nothing was begun, and the status is OK. */
    enum operation_status (*multiply)(struct engine *engine,
                                      const struct kernel_multiplication *product,
                                      bool *ret_is_refused, struct problem *ret_problem);

    /* Opens engine->device, and keeps what the other functions need in engine->state. Returns false
     * with the problem; nothing is left then. */
    bool (*open)(struct engine *engine, struct problem *ret_problem);
    void (*close)(struct engine *engine);

    /* Compiles the source, which is a file with this name. */
    enum operation_status (*build)(struct engine *engine, const char *name, const char *source,
                                   size_t source_bytes, const char *options, void **ret_program,
                                   struct problem *ret_problem);
    void (*drop_program)(struct engine *engine, void *program);
    /* Finds a kernel of a program that was built from the source `name`. */
    enum operation_status (*find)(struct engine *engine, void *program, const char *name,
                                  const char *entry, void **ret_kernel,
                                  struct problem *ret_problem);
    void (*drop_kernel)(struct engine *engine, void *kernel);

    /* Returns false when the interface does not tell how many parameters the kernel has. */
    bool (*count)(struct engine *engine, void *kernel, size_t *ret_count);
    /* Returns NULL when an argument of this kind fits the parameter, as far as the interface tells.
     * Otherwise returns a phrase for what the kernel takes there. */
    const char *(*wanted)(struct engine *engine, void *kernel, size_t parameter,
                          enum kernel_argument_kind kind, char ret_text[KERNEL_WANTED_SIZE]);
    /* Returns true when the kernel only reads the buffer of this parameter, by the type of the
     * parameter. Returns false when nobody knows. */
    bool (*only_reads)(struct engine *engine, void *kernel, size_t parameter);
    /* Returns the most work-items of one work-group of the kernel, or 0 when nobody knows. */
    uint64_t (*group_most)(struct engine *engine, void *kernel);

    /* Makes a buffer with a copy of `bytes`, or with zeros when `bytes` is NULL. */
    enum operation_status (*make)(struct engine *engine, uint64_t size, const void *bytes,
                                  const char *what, struct kernel_buffer *ret_buffer,
                                  struct problem *ret_problem);
    /* Makes a buffer with a copy of the first `size` bytes of another buffer of the device. */
    enum operation_status (*copy)(struct engine *engine, struct kernel_buffer from, uint64_t size,
                                  const char *what, struct kernel_buffer *ret_buffer,
                                  struct problem *ret_problem);
    void (*drop_buffer)(struct engine *engine, struct kernel_buffer buffer);
    enum operation_status (*read)(struct engine *engine, struct kernel_buffer buffer, uint64_t at,
                                  size_t size, void *ret_bytes, const char *what,
                                  struct problem *ret_problem);

    /* The next four copy inputs of the next subtask while this one computes (engine_ahead.c). They
     * run in a thread of their own, and none of them changes the engine. The copies do not wait for
     * the launch. Opens what makes the copies, such as a second queue; NULL: this device has none.
     */
    void *(*open_copier)(const struct engine *engine);
    void (*close_copier)(const struct engine *engine, void *copier);
    /* Makes a buffer of any content. Returns false without memory. */
    bool (*reserve)(const struct engine *engine, uint64_t size, struct kernel_buffer *ret_buffer);
    /* Copies bytes into the buffer, from `at` on, and waits for the end. Returns false when the
     * copy failed. */
    bool (*write)(const struct engine *engine, void *copier, struct kernel_buffer buffer,
                  uint64_t at, const void *bytes, size_t size);

    /* Sets a parameter to the bytes of a number. When `value` is NULL, sets `size` bytes of local
     * memory. */
    enum operation_status (*set)(struct engine *engine, void *kernel, size_t parameter,
                                 const void *value, size_t size, const char *what,
                                 struct problem *ret_problem);
    enum operation_status (*set_buffer)(struct engine *engine, void *kernel, size_t parameter,
                                        struct kernel_buffer buffer, const char *what,
                                        struct problem *ret_problem);
    /* Runs the kernel over the ranges of the launch, and waits for its end. */
    enum operation_status (*run)(struct engine *engine, void *kernel, const struct kernel_op *op,
                                 struct problem *ret_problem);
};

#endif
