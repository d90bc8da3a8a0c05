/* broker/core/arena.h - memory that is given back all at once: the parts of one translated command.
 */
#ifndef BOURSE_BROKER_CORE_ARENA_H
#define BOURSE_BROKER_CORE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena { /* starts as all zeros */
    struct arena_block *blocks;
};

/* `count` elements of `size` bytes, zeroed and aligned for anything; NULL when memory is short. A
 * count of 0 gives a pointer that may not be read. */
void *arena_take(struct arena *arena, size_t count, size_t size);
/* Gives everything back; the arena is empty and can be used again. */
void arena_fini(struct arena *arena);

#endif
