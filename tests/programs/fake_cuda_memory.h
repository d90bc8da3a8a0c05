/* tests/programs/fake_cuda_memory.h declares what the files of the driver's stand-in share
 * (fake_cuda.c). */
#ifndef BOURSE_TESTS_PROGRAMS_FAKE_CUDA_MEMORY_H
#define BOURSE_TESTS_PROGRAMS_FAKE_CUDA_MEMORY_H

#include "provider/kernel/cuda_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_PROTOTYPE(name, arguments) cuda_result name arguments;
CUDA_CALLS(FAKE_CUDA_PROTOTYPE)
CUDA_NEWER_CALLS(FAKE_CUDA_PROTOTYPE)

enum { FAKE_CUDA_MEMORY_BYTES = 1 << 24 };

/* The tests call these three. */
int fake_cuda_copies(void);
int fake_cuda_aheads(void);
void fake_cuda_memory(size_t most);

/* Counts the objects that nobody has released. */
extern atomic_int fake_cuda_objects;
/* Returns what a call of this function gives, unless it succeeds. */
cuda_result fake_cuda_result_of(const char *function);
/* Ends a call that is to fail. */
#define CALL()                                                                                     \
    if (fake_cuda_result_of(__func__) != CUDA_OK) {                                                \
        return fake_cuda_result_of(__func__);                                                      \
    }

/* The device's memory is full of this text at the start, again and again. */
#define FAKE_CUDA_LEFT "left by another "
/* Fills the device's memory with the text. */
void fake_cuda_soil(void);
/* Returns true when the text is somewhere in the device's memory, used or free. */
bool fake_cuda_is_soiled(void);

/* Makes each copy to the device take so many microseconds for each KiB. */
void fake_cuda_slow(unsigned us);
/* Returns the bytes at an address, which is theirs, and far from that of other buffers. */
unsigned char *fake_cuda_at(cuda_address address);
/* Returns true when so many bytes of one buffer are at the address. */
bool fake_cuda_is_memory(uint64_t address, size_t size);

#endif
