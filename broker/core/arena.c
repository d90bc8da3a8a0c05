#include "broker/core/arena.h"

#include <stdint.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    max_align_t bytes[];
};

void *arena_take(struct arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - sizeof(struct arena_block)) / size) {
        return NULL;
    }
    struct arena_block *block = calloc(1, sizeof *block + count * size);
    if (block == NULL) {
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

void arena_fini(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
