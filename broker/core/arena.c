#include "broker/core/arena.h"

#include <stdint.h>
#include <stdlib.h>

/* A block is twice as large as the one before, so that a command takes little and an answer of many
 * rows takes few blocks. */
enum { BLOCK_LEAST = 512, BLOCK_MOST = 64 << 10 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    max_align_t bytes[];
};

static struct arena_block *add_block(struct arena *arena, size_t least)
{
    const struct arena_block *last = arena->blocks;
    size_t size = last == NULL ? BLOCK_LEAST : 2 * last->size;
    size = size < BLOCK_MOST ? size : BLOCK_MOST;
    size = size > least ? size : least;
    struct arena_block *block = calloc(1, sizeof *block + size);
    if (block != NULL) {
        block->next = arena->blocks;
        block->size = size;
        arena->blocks = block;
    }
    return block;
}

void *arena_take(struct arena *arena, size_t count, size_t size)
{
    const size_t step = _Alignof(max_align_t);
    if (size != 0 && count > (SIZE_MAX / 2 - sizeof(struct arena_block)) / size) {
        return NULL;
    }
    const size_t bytes = (count * size + step - 1) / step * step;
    struct arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < bytes) {
        block = add_block(arena, bytes);
    }
    if (block == NULL) {
        return NULL;
    }
    void *taken = (char *)block->bytes + block->used;
    block->used += bytes;
    return taken;
}

void arena_fini(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
