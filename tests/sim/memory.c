/* Memory of the processes: linked with --wrap for malloc, calloc, realloc and free, so that every
 * allocation of our own code goes through here. Each belongs to the process that made it.
 * process_end gives back all of them, and one can be told to fail. What libraries allocate for
 * themselves is not seen. */
#include "tests/sim/world.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *memory);

struct block { /* before every allocation; a multiple of 16 bytes */
    struct block *next, *previous;
    struct process *process;
    size_t size;
};
static_assert(sizeof(struct block) % 16 == 0, "what follows is aligned for anything");

static void join(struct block *block, struct process *process)
{
    block->process = process;
    block->previous = NULL;
    block->next = NULL;
    if (process != NULL) {
        block->next = process->blocks;
        if (block->next != NULL) {
            block->next->previous = block;
        }
        process->blocks = block;
    }
}

static void part(struct block *block)
{
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else if (block->process != NULL) {
        block->process->blocks = block->next;
    }
}

static bool fails(void)
{
    struct process *process = world.current;
    if (process == NULL || process->failing_in == 0 || --process->failing_in > 0) {
        return false;
    }
    process->failed++;
    fault_happened(FAULT_MEMORY);
    trace("an allocation fails");
    errno = ENOMEM;
    return true;
}

static void *take(size_t size, bool zeroed)
{
    if (fails()) {
        return NULL;
    }
    size_t whole = sizeof(struct block) + size;
    struct block *block = zeroed ? __real_calloc(1, whole) : __real_malloc(whole);
    if (block == NULL || whole < size) {
        (void)fputs("the simulator itself is out of memory\n", stderr);
        abort();
    }
    block->size = size;
    join(block, world.current);
    return block + 1;
}

void *__wrap_malloc(size_t size)
{
    return take(size, false);
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t whole;
    return __builtin_mul_overflow(count, size, &whole) ? NULL : take(whole, true);
}

void __wrap_free(void *memory)
{
    if (memory != NULL) {
        struct block *block = (struct block *)memory - 1;
        part(block);
        __real_free(block);
    }
}

void *__wrap_realloc(void *old, size_t size)
{
    void *grown = take(size, false);
    if (grown != NULL && old != NULL) {
        size_t had = ((struct block *)old - 1)->size;
        memcpy(grown, old, had < size ? had : size);
        __wrap_free(old);
    }
    return grown;
}

void process_end(struct process *process)
{
    process->runs = false;
    while (process->blocks != NULL) {
        __wrap_free(process->blocks + 1);
    }
}

void *sim_alloc(size_t size)
{
    void *memory = __real_calloc(1, size);
    assert(memory != NULL);
    return memory;
}

void *sim_grow(void *old, size_t size)
{
    void *memory = __real_realloc(old, size);
    assert(memory != NULL);
    return memory;
}

void sim_free(void *memory)
{
    __real_free(memory);
}
