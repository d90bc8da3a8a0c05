/* An arena gives back all its memory at once; it holds the parts of one translated command. */
#ifndef BOURSE_BROKER_CORE_ARENA_H
#define BOURSE_BROKER_CORE_ARENA_H

#include <stddef.h>

struct arena_block;
/* An arena starts as all zeros. */
struct arena {
    struct arena_block *blocks;
};

/* Returns `count` elements of `size` bytes, zeroed and aligned for anything, or NULL when memory is
 * short. A count of 0 returns a pointer that the caller may not read. */
void *arena_take(struct arena *arena, size_t count, size_t size);
/* Frees all memory; the arena is empty and can be used again. */
void arena_fini(struct arena *arena);

#endif
