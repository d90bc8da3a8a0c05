/* matching/ladder.h keeps the orders of one side of one book by key, then sequence. Thousands of
 * ladders share one pool.
 *
 * A ladder holds the orders of one side. Its key is the price, or for bids its complement, so that
 * the least key is always the best. Orders of one key form a list, by sequence. Lists of 64
 * neighbouring keys form a block. Blocks stand in a radix tree of six bits a level whose paths are
 * compressed (Morrison 1968: PATRICIA). Keys a few thousand apart are two steps deep, and no
 * structure is as long as the range of prices. Each block and node marks its taken places in one
 * word of 64 bits. The ladder remembers the block used last and the best one, and each order knows
 * its own. Inserts near the best price, and removals, therefore walk no tree.
 *
 * The caller names orders by dense handles. All ladders of a pool share its memory, which is
 * allocated only when the pool is made or grown. An order takes at most one block and one node, so
 * there is always one left. */
#ifndef BOURSE_MATCHING_LADDER_H
#define BOURSE_MATCHING_LADDER_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LADDER_NONE UINT32_MAX

struct ladder {
    uint64_t best_key;
    /* The first is the best order. With NONE the ladder is empty, and the best key undefined. */
    uint32_t first;
    uint32_t best; /* block of the best order, or NONE */
    uint32_t near; /* the block of this ladder used last, or NONE */
    uint32_t root; /* a block or a node */
};

enum {
    LADDER_LINE = 64, /* bytes of a cache line */
    LADDER_ORDERS_MAX = (1 << 26) - 2,
    LADDER_SHELVES_MAX = 1 << 30,
};

/* An order has everything that a match needs, on a cache line of its own. The first four fields are
 * the ladder's; of these the user sets the sequence. */
struct order {
    alignas(LADDER_LINE) uint64_t sequence;
    uint32_t previous, next; /* in the list of its key */
    /* The place of the list: its block, and the position there. 0: the order is in no ladder. */
    uint32_t place;
    uint32_t slots;
    uint32_t owner;
    uint32_t shelf : 30; /* cell of an ask, class of a bid */
    uint32_t is_bid : 1;
    uint32_t width;  /* of a bid; 1 for an ask */
    int64_t term_ns; /* of a bid; for an ask the longest term, 0: any */
};
static_assert(sizeof(struct order) == LADDER_LINE, "one line");

struct ladder_block;
struct ladder_list;
struct ladder_node;
/* Users of a pool touch the orders only. Orders that were never used are zeros. */
struct ladder_pool {
    struct order *orders;
    struct ladder_list *lists; /* by place */
    struct ladder_block *blocks;
    struct ladder_node *nodes;
    /* The pointers are those from calloc; the lines begin a little further on. */
    void *order_memory, *list_memory;
    /* The latest is the highest sequence so far. An order with a higher one goes behind all others
     * without a search. */
    uint64_t latest;
    uint32_t capacity; /* orders */
    uint32_t blocks_used, nodes_used;
    uint32_t blocks_touched, nodes_touched; /* all above was never used */
    uint32_t free_block, free_node;
};

/* Returns zeroed memory that begins on a cache line, or NULL when memory is short. `ret_memory` is
 * for free(). */
void *ladder_lines(size_t count, size_t size, void **ret_memory);
/* Returns false when memory is short; the caller calls ladder_pool_fini even then. */
bool ladder_pool_init(struct ladder_pool *pool, uint32_t orders);
void ladder_pool_fini(struct ladder_pool *pool);
/* Makes room for handles below `orders`, never for fewer than before. Returns false when memory is
 * short; the pool is then unchanged. */
bool ladder_pool_grow(struct ladder_pool *pool, uint32_t orders);

#define LADDER_EMPTY                                                                               \
    {                                                                                              \
        .first = LADDER_NONE, .best = LADDER_NONE, .near = LADDER_NONE, .root = LADDER_NONE        \
    }

static inline bool ladder_is_empty(const struct ladder *ladder)
{
    return ladder->first == LADDER_NONE;
}

/* Inserts an order that is in no ladder, behind all orders of its key with a lower or equal
 * sequence. Returns true when the best key has changed. */
bool ladder_insert(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle, uint64_t key);
/* Removes an order from its ladder. Returns true when the best key has changed. */
bool ladder_remove(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle);
/* Returns the key of an order in a ladder. */
uint64_t ladder_key(const struct ladder_pool *pool, uint32_t handle);
/* The two functions return the order after or before one in the ladder, or NONE. The best order is
 * ladder->first. */
uint32_t ladder_next(const struct ladder_pool *pool, const struct ladder *ladder, uint32_t handle);
uint32_t ladder_previous(const struct ladder_pool *pool, const struct ladder *ladder,
                         uint32_t handle);

/* Checks every invariant of a ladder by a full walk, for tests. */
bool ladder_is_sound(const struct ladder_pool *pool, const struct ladder *ladder);

#endif
