/* This file has the memory, the copies and the streams of fake_cuda.c. Two threads may call it. */
#include "tests/programs/fake_cuda_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMORY_BYTES = FAKE_CUDA_MEMORY_BYTES, BUFFERS = 2048, ALIGNED = 256 };

struct CUstream_st {
    int none;
};

static atomic_int copies, aheads;
static atomic_uint us_per_kib;                            /* a copy to the device takes so long */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER; /* guards the table of buffers */
static size_t memory_most = MEMORY_BYTES;

/* The device's memory. Nobody clears it: what a buffer had stays when the buffer is gone. At the
 * start, it is full of what programs before this one have left. */
static _Alignas(ALIGNED) unsigned char memory[MEMORY_BYTES];
static const char left[] = FAKE_CUDA_LEFT;

int fake_cuda_copies(void)
{
    return copies;
}

int fake_cuda_aheads(void)
{
    return aheads;
}

void fake_cuda_memory(size_t most)
{
    memory_most = most;
}

void fake_cuda_slow(unsigned us)
{
    us_per_kib = us;
}

void fake_cuda_soil(void)
{
    for (size_t i = 0; i < MEMORY_BYTES; i++) {
        memory[i] = (unsigned char)left[i % (sizeof left - 1)];
    }
}

bool fake_cuda_is_soiled(void)
{
    const unsigned char *at = memory;
    const unsigned char *end = memory + MEMORY_BYTES - sizeof left;
    while ((at = memchr(at, left[0], (size_t)(end - at))) != NULL) {
        if (memcmp(at, left, sizeof left - 1) == 0) {
            return true;
        }
        at++;
    }
    return false;
}

unsigned char *fake_cuda_at(cuda_address address)
{
    unsigned char *place;
    memcpy(&place, &address, sizeof place);
    return place;
}

/* The live buffers. A free entry has the address 0. */
static struct {
    cuda_address address;
    size_t size;
} buffers[BUFFERS];

bool fake_cuda_is_memory(uint64_t address, size_t size)
{
    bool found = false;
    pthread_mutex_lock(&table);
    for (size_t i = 0; i < BUFFERS && !found; i++) {
        found = address >= buffers[i].address && size <= buffers[i].size &&
                address - buffers[i].address <= buffers[i].size - size;
    }
    pthread_mutex_unlock(&table);
    return found;
}

/* Changes the entry of the buffer at `from`; 0 is a free entry. The table is locked. */
static void note(cuda_address from, cuda_address to, size_t size)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        if (buffers[i].address == from) {
            buffers[i].address = to;
            buffers[i].size = size;
            return;
        }
    }
}

static size_t used_memory(void)
{
    size_t used = 0;
    for (size_t i = 0; i < BUFFERS; i++) {
        used += buffers[i].size;
    }
    return used;
}

static bool is_own(const unsigned char *at)
{
    return (uintptr_t)at >= (uintptr_t)memory && (uintptr_t)at < (uintptr_t)memory + MEMORY_BYTES;
}

/* Returns the end of a buffer that is in the way of one of so many bytes at `from`; 0: none is. */
static size_t end_of_obstacle(size_t from, size_t size)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        const unsigned char *at = fake_cuda_at(buffers[i].address);
        const size_t begin = is_own(at) ? (size_t)(at - memory) : 0;
        if (is_own(at) && from < begin + buffers[i].size && begin < from + size) {
            return begin + buffers[i].size;
        }
    }
    return 0;
}

/* Returns the first place where so many bytes are free, or NULL. The table is locked. */
static unsigned char *find_place(size_t size)
{
    size_t from = 0;
    size_t end;
    while (size <= MEMORY_BYTES && from <= MEMORY_BYTES - size &&
           (end = end_of_obstacle(from, size)) > 0) {
        from = (end + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    return size <= MEMORY_BYTES && from <= MEMORY_BYTES - size ? memory + from : NULL;
}

cuda_result cuMemAlloc_v2(cuda_address *ret_address, size_t size)
{
    CALL()
    pthread_mutex_lock(&table);
    const size_t used = used_memory();
    unsigned char *made =
        size > 0 && used <= memory_most && size <= memory_most - used ? find_place(size) : NULL;
    if (made == NULL && memory_most > MEMORY_BYTES) {
        made = malloc(size); /* a test wants a larger device */
    }
    if (made != NULL) {
        *ret_address = (uintptr_t)made;
        note(0, *ret_address, size);
        fake_cuda_objects++;
    }
    pthread_mutex_unlock(&table);
    return made != NULL ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

cuda_result cuMemFree_v2(cuda_address address)
{
    pthread_mutex_lock(&table);
    note(address, 0, 0);
    pthread_mutex_unlock(&table);
    if (!is_own(fake_cuda_at(address))) {
        free(fake_cuda_at(address));
    }
    fake_cuda_objects--;
    return CUDA_OK;
}

static void take_time(size_t size)
{
    const uint64_t ns = (uint64_t)size * us_per_kib * 1000 / 1024;
    if (ns > 0) {
        const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000),
                                       .tv_nsec = (long)(ns % 1000000000)};
        (void)nanosleep(&pause, NULL);
    }
}

cuda_result cuMemcpyHtoD_v2(cuda_address to, const void *from, size_t size)
{
    CALL()
    take_time(size);
    memcpy(fake_cuda_at(to), from, size);
    copies++;
    return CUDA_OK;
}

/* Launches are in the default stream, and no stream of another kind is beside them. */
cuda_result cuStreamCreate(cuda_stream *ret_stream, unsigned flags)
{
    CALL()
    cuda_stream made = flags == CUDA_STREAM_NON_BLOCKING ? calloc(1, sizeof *made) : NULL;
    if (made == NULL) {
        return CUDA_INVALID_VALUE;
    }
    fake_cuda_objects++;
    *ret_stream = made;
    return CUDA_OK;
}

cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    free(stream);
    fake_cuda_objects--;
    return CUDA_OK;
}

cuda_result cuStreamSynchronize(cuda_stream stream)
{
    CALL()
    return stream != NULL ? CUDA_OK : CUDA_INVALID_VALUE;
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t size, cuda_stream stream)
{
    CALL()
    if (stream == NULL || !fake_cuda_is_memory(to, size)) {
        return CUDA_INVALID_VALUE;
    }
    take_time(size);
    memcpy(fake_cuda_at(to), from, size);
    copies++;
    aheads++;
    return CUDA_OK;
}

cuda_result cuMemcpyDtoD_v2(cuda_address to, cuda_address from, size_t size)
{
    CALL()
    memcpy(fake_cuda_at(to), fake_cuda_at(from), size);
    return CUDA_OK;
}

cuda_result cuMemcpyDtoH_v2(void *to, cuda_address from, size_t size)
{
    CALL()
    memcpy(to, fake_cuda_at(from), size);
    return CUDA_OK;
}

cuda_result cuMemsetD8_v2(cuda_address to, unsigned char byte, size_t size)
{
    CALL()
    memset(fake_cuda_at(to), byte, size);
    return CUDA_OK;
}
