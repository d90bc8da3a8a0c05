/* provider/pjrt/pjrt_program.h compiles programs for the client's device and runs them. Arrays are
 * copied into buffers of the device, and from there back into the memory of this process. */
#ifndef BOURSE_PROVIDER_PJRT_PJRT_PROGRAM_H
#define BOURSE_PROVIDER_PJRT_PJRT_PROGRAM_H

#include "provider/pjrt/pjrt_client.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PJRT_DIMENSIONS = 8,
    PJRT_ARRAYS_MAX = 1024, /* inputs of a program; as many outputs */
};

/* An array of numbers in the memory of this process, the last index running fastest. */
struct pjrt_array {
    int type; /* enum pjrt_type, or a later type of the library */
    size_t dimension_count;
    int64_t shape[PJRT_DIMENSIONS];
    void *data;
    size_t size; /* bytes */
};

/* Returns the bytes of an element of this type, or 0 for a type that is not known here. */
size_t pjrt_program_item_bytes(int type);

struct pjrt_program {
    struct PJRT_LoadedExecutable *loaded; /* NULL: none */
    size_t output_count;
};

/* Compiles MLIR, as text or bytecode of the dialect StableHLO. A NUL follows the code, because the
 * parsers of libraries may rely on one. Returns false with the failure. The caller destroys the
 * program, which must not outlive the client. */
bool pjrt_program_compile(const struct pjrt_client *client, const char *code, size_t size,
                          struct pjrt_program *ret_program, struct pjrt_failure *ret_failure);
void pjrt_program_destroy(const struct pjrt_client *client, struct pjrt_program *program);

/* Buffers of the device; all NULL at first. */
struct pjrt_buffers {
    struct PJRT_Buffer *items[PJRT_ARRAYS_MAX];
    size_t count;
};
void pjrt_program_free(const struct pjrt_client *client, struct pjrt_buffers *buffers);

/* Copies the array to the device, and adds its buffer. Returns false with the failure. */
bool pjrt_program_put(const struct pjrt_client *client, const struct pjrt_array *array,
                      struct pjrt_buffers *buffers, struct pjrt_failure *ret_failure);
/* Runs the program on the inputs and waits for its end. `outputs` is empty before, and has the
 * program's outputs after. Returns false with the failure; then it is empty still. */
bool pjrt_program_execute(const struct pjrt_client *client, const struct pjrt_program *program,
                          const struct pjrt_buffers *inputs, struct pjrt_buffers *outputs,
                          struct pjrt_failure *ret_failure);
/* Copies a buffer from the device. The caller frees the array's data. Returns false with the
 * failure. */
bool pjrt_program_get(const struct pjrt_client *client, struct PJRT_Buffer *buffer,
                      struct pjrt_array *ret_array, struct pjrt_failure *ret_failure);

#endif
