/* matching/ladder.h - orders by key, then sequence: one side of one book, thousands of them over
 * one pool.
 *
 * A ladder holds the orders of one side. Its key is the price, or for bids its complement, so that
 * the least key is always the best. Orders of one key form a list, by sequence. Lists stand by 64
 * neighbouring keys in blocks, blocks in a radix tree of six bits a level whose paths are
 * compressed (Morrison 1968: PATRICIA), so that keys a few thousand apart are two steps deep and
 * nothing is as long as the range of prices. Each block and node says in one word which of its 64
 * places are taken. The block used last and the best one are remembered, and each order knows its
 * own: what comes near the best price, and what goes, walks no tree.
 *
 * Orders are named by dense handles of the caller's. All ladders of a pool share its memory, which
 * is taken when the pool is made or grown, and at no other time: an order takes at most one block
 * and one node, so there is always one left. Pure. */
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
    uint32_t first; /* the best order; NONE: the ladder is empty, and the best key any */
    uint32_t best;  /* its block, or NONE */
    uint32_t near;  /* a block of this ladder, or NONE: where a key was put last */
    uint32_t root;  /* block or node */
};

enum {
    LADDER_LINE = 64, /* bytes of a line of the cache */
    LADDER_ORDERS_MAX = (1 << 26) - 2,
    LADDER_SHELVES_MAX = 1 << 30,
};

/* One order, on a line of its own with all that a match asks of it. The first four are the
 * ladder's; of these, its user sets the sequence. */
struct order {
    alignas(LADDER_LINE) uint64_t sequence;
    uint32_t previous, next; /* in the list of its key */
    uint32_t place;          /* of that list: its block and which there; 0: in no ladder */
    uint32_t slots;
    uint32_t owner;
    uint32_t shelf : 30; /* its cell or class */
    uint32_t is_bid : 1;
    uint32_t width;  /* of a bid; 1: an ask */
    int64_t term_ns; /* of a bid; of an ask the longest, 0: any */
};
static_assert(sizeof(struct order) == LADDER_LINE, "one line");

struct ladder_block;
struct ladder_list;
struct ladder_node;
struct ladder_pool { /* its users touch nothing but the orders, of which those that were never used
                        are zeros */
    struct order *orders;
    struct ladder_list *lists; /* by place */
    struct ladder_block *blocks;
    struct ladder_node *nodes;
    void *order_memory, *list_memory; /* as calloc gave it: lines begin a little further on */
    uint64_t
        latest; /* the highest sequence ever: it goes behind all others, and they need no look */
    uint32_t capacity; /* orders */
    uint32_t blocks_used, nodes_used;
    uint32_t blocks_touched, nodes_touched; /* above them lies what was never used */
    uint32_t free_block, free_node;
};

/* Zeros that begin a line; NULL: out of memory. `ret_memory` is for free(). */
void *ladder_lines(size_t count, size_t size, void **ret_memory);
/* False when out of memory; ladder_pool_fini is due even so. */
bool ladder_pool_init(struct ladder_pool *pool, uint32_t orders);
void ladder_pool_fini(struct ladder_pool *pool);
/* Room for handles below `orders`, never fewer than before. False when out of memory: all is as it
 * was. */
bool ladder_pool_grow(struct ladder_pool *pool, uint32_t orders);

#define LADDER_EMPTY                                                                               \
    {                                                                                              \
        .first = LADDER_NONE, .best = LADDER_NONE, .near = LADDER_NONE, .root = LADDER_NONE        \
    }

static inline bool ladder_is_empty(const struct ladder *ladder)
{
    return ladder->first == LADDER_NONE;
}

/* Puts an order that is in no ladder, behind all of its key with a lower sequence, or an equal one.
 * True: the best key is another than before. */
bool ladder_insert(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle, uint64_t key);
/* Takes it out of the ladder that it is in; the same answer. */
bool ladder_remove(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle);
/* Under which key an order is in. */
uint64_t ladder_key(const struct ladder_pool *pool, uint32_t handle);
/* What comes after one that is in, and what before; NONE: there is none. The best one is
 * ladder->first. */
uint32_t ladder_next(const struct ladder_pool *pool, const struct ladder *ladder, uint32_t handle);
uint32_t ladder_previous(const struct ladder_pool *pool, const struct ladder *ladder,
                         uint32_t handle);

/* For tests: every invariant of a ladder, by a full walk. */
bool ladder_is_sound(const struct ladder_pool *pool, const struct ladder *ladder);
/* Blocks and nodes in use, over all ladders, and bytes of one each. */
struct ladder_use {
    uint32_t blocks, nodes;
    size_t block_bytes, node_bytes;
};
struct ladder_use ladder_pool_use(const struct ladder_pool *pool);

#endif
