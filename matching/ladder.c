#include "matching/ladder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACE_BITS = 6,
    PLACES = 1 << PLACE_BITS,
    NODE_FLAG = 31, /* of a reference: bit 31 says that it is a node, not a block */
};

struct ladder_block { /* 64 neighbouring keys */
    uint64_t taken;
    uint64_t prefix; /* of its keys: key >> PLACE_BITS */
    struct {
        uint32_t first, last;
    } lists[PLACES];
};

struct ladder_node {
    uint64_t taken;
    uint64_t prefix; /* of the keys below it: key >> (shift + PLACE_BITS) */
    uint32_t shift;  /* of the bits that choose the child: key >> shift & 63 */
    uint32_t children[PLACES];
};

static uint32_t reference_of_node(uint32_t node)
{
    return node | (UINT32_C(1) << NODE_FLAG);
}

static bool is_node(uint32_t reference)
{
    return reference >> NODE_FLAG != 0;
}

static struct ladder_node *node_of(const struct ladder_pool *pool, uint32_t reference)
{
    return &pool->nodes[reference & ~(UINT32_C(1) << NODE_FLAG)];
}

static unsigned lowest(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

static uint64_t bit(unsigned place)
{
    return UINT64_C(1) << place;
}

static unsigned place_in_block(uint64_t key)
{
    return (unsigned)(key & (PLACES - 1));
}

/* ---------------------------------------------------------------- the pool */

bool ladder_pool_init(struct ladder_pool *pool, uint32_t orders)
{
    *pool = (struct ladder_pool){.free_block = LADDER_NONE, .free_node = LADDER_NONE};
    return ladder_pool_grow(pool, orders);
}

void ladder_pool_fini(struct ladder_pool *pool)
{
    free(pool->orders);
    free(pool->blocks);
    free(pool->nodes);
    *pool = (struct ladder_pool){0};
}

/* What nobody has used yet costs no memory, only addresses. */
static bool grow_orders(struct ladder_pool *pool, uint32_t orders)
{
    struct order *more = calloc(orders, sizeof *more);
    if (more == NULL) {
        return false;
    }
    if (pool->capacity > 0) {
        memcpy(more, pool->orders, pool->capacity * sizeof *more);
    }
    free(pool->orders);
    pool->orders = more;
    return true;
}

bool ladder_pool_grow(struct ladder_pool *pool, uint32_t orders)
{
    assert(orders < UINT32_C(1) << NODE_FLAG);
    if (orders <= pool->capacity) {
        return true;
    }
    void *more = realloc(pool->blocks, orders * sizeof *pool->blocks);
    if (more == NULL) {
        return false;
    }
    pool->blocks = more;
    more = realloc(pool->nodes, orders * sizeof *pool->nodes);
    if (more == NULL) {
        return false;
    }
    pool->nodes = more;
    if (!grow_orders(pool, orders)) {
        return false;
    }
    pool->capacity = orders;
    return true;
}

/* What is free forms a list through `prefix`; what was never used is not in it, so that its memory is not touched. */
static uint32_t take_block(struct ladder_pool *pool, uint64_t prefix)
{
    uint32_t id = pool->free_block;
    if (id == LADDER_NONE) {
        assert(pool->blocks_touched < pool->capacity); /* one for each order */
        id = pool->blocks_touched++;
    } else {
        pool->free_block = (uint32_t)pool->blocks[id].prefix;
    }
    pool->blocks_used++;
    pool->blocks[id].taken = 0;
    pool->blocks[id].prefix = prefix;
    return id;
}

static void give_block(struct ladder_pool *pool, uint32_t id)
{
    pool->blocks[id].prefix = pool->free_block;
    pool->free_block = id;
    pool->blocks_used--;
}

static uint32_t take_node(struct ladder_pool *pool)
{
    uint32_t id = pool->free_node;
    if (id == LADDER_NONE) {
        assert(pool->nodes_touched <
               pool->capacity); /* fewer than blocks: each has two children at least */
        id = pool->nodes_touched++;
    } else {
        pool->free_node = (uint32_t)pool->nodes[id].prefix;
    }
    pool->nodes_used++;
    pool->nodes[id].taken = 0;
    return id;
}

static void give_node(struct ladder_pool *pool, uint32_t reference)
{
    uint32_t id = reference & ~(UINT32_C(1) << NODE_FLAG);
    pool->nodes[id].prefix = pool->free_node;
    pool->free_node = id;
    pool->nodes_used--;
}

/* ---------------------------------------------------------------- the tree */

/* Bits from `shift` upwards are what all keys below a reference share. */
static unsigned shared_shift(const struct ladder_pool *pool, uint32_t reference)
{
    return is_node(reference) ? node_of(pool, reference)->shift + PLACE_BITS : PLACE_BITS;
}

static uint64_t shared_prefix(const struct ladder_pool *pool, uint32_t reference)
{
    return is_node(reference) ? node_of(pool, reference)->prefix : pool->blocks[reference].prefix;
}

static uint64_t shifted(uint64_t key, unsigned shift)
{
    return shift < 64 ? key >> shift : 0;
}

/* A node above `reference` and a new block for `key`, whose path leaves that of `reference` here. */
static uint32_t fork_at(struct ladder_pool *pool, uint32_t reference, uint64_t key,
                        uint32_t *ret_block)
{
    unsigned shift = shared_shift(pool, reference);
    uint64_t there = shared_prefix(pool, reference);
    uint64_t here = key >> shift;
    while (here >> PLACE_BITS != there >> PLACE_BITS) {
        here >>= PLACE_BITS;
        there >>= PLACE_BITS;
        shift += PLACE_BITS;
    }
    uint32_t id = take_node(pool);
    *ret_block = take_block(pool, key >> PLACE_BITS);
    struct ladder_node *node = &pool->nodes[id];
    node->shift = shift;
    node->prefix = here >> PLACE_BITS;
    node->taken = bit(here & (PLACES - 1)) | bit(there & (PLACES - 1));
    node->children[here & (PLACES - 1)] = *ret_block;
    node->children[there & (PLACES - 1)] = reference;
    return reference_of_node(id);
}

/* The block of a key, made where there is none. */
static uint32_t block_for(struct ladder_pool *pool, struct ladder *ladder, uint64_t key)
{
    uint64_t prefix = key >> PLACE_BITS;
    if (ladder->root == LADDER_NONE) {
        return ladder->root = take_block(pool, prefix);
    }
    uint32_t *link = &ladder->root;
    for (;;) {
        uint32_t reference = *link;
        if (!is_node(reference) && pool->blocks[reference].prefix == prefix) {
            return reference;
        }
        uint32_t block = LADDER_NONE;
        if (!is_node(reference) ||
            shifted(key, shared_shift(pool, reference)) != node_of(pool, reference)->prefix) {
            *link = fork_at(pool, reference, key, &block);
            return block;
        }
        struct ladder_node *node = node_of(pool, reference);
        unsigned place = (unsigned)(key >> node->shift & (PLACES - 1));
        if ((node->taken & bit(place)) == 0) {
            block = take_block(pool, prefix);
            node->taken |= bit(place);
            node->children[place] = block;
            return block;
        }
        link = &node->children[place];
    }
}

/* Takes an empty block out of the tree. A node that is left with one child gives way to it. */
static void prune(struct ladder_pool *pool, struct ladder *ladder, uint64_t key, uint32_t block)
{
    uint32_t *link = &ladder->root;
    uint32_t *above = NULL; /* to the node that `link` is in */
    while (*link != block) {
        struct ladder_node *node = node_of(pool, *link);
        above = link;
        link = &node->children[key >> node->shift & (PLACES - 1)];
    }
    give_block(pool, block);
    if (ladder->near == block) {
        ladder->near = LADDER_NONE;
    }
    if (above == NULL) {
        ladder->root = LADDER_NONE;
        return;
    }
    uint32_t reference = *above;
    struct ladder_node *node = node_of(pool, reference);
    node->taken &= ~bit((unsigned)(key >> node->shift & (PLACES - 1)));
    if ((node->taken & (node->taken - 1)) == 0) {
        *above = node->children[lowest(node->taken)];
        give_node(pool, reference);
    }
}

static unsigned highest(uint64_t word)
{
    return 63 - (unsigned)__builtin_clzll(word);
}

static uint32_t last_block(const struct ladder_pool *pool, uint32_t reference)
{
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        reference = node->children[highest(node->taken)];
    }
    return reference;
}

static uint32_t first_block(const struct ladder_pool *pool, uint32_t reference)
{
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        reference = node->children[lowest(node->taken)];
    }
    return reference;
}

/* The first block whose keys are above `key`, which is in the ladder. */
static uint32_t block_after(const struct ladder_pool *pool, const struct ladder *ladder,
                            uint64_t key)
{
    uint32_t reference = ladder->root;
    uint32_t after = LADDER_NONE;
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        unsigned place = (unsigned)(key >> node->shift & (PLACES - 1));
        uint64_t above = place == PLACES - 1 ? 0 : node->taken >> (place + 1) << (place + 1);
        if (above != 0) {
            after = node->children[lowest(above)];
        }
        reference = node->children[place];
    }
    return after == LADDER_NONE ? LADDER_NONE : first_block(pool, after);
}

/* The last block whose keys are below `key`, which is in the ladder. */
static uint32_t block_before(const struct ladder_pool *pool, const struct ladder *ladder,
                             uint64_t key)
{
    uint32_t reference = ladder->root;
    uint32_t before = LADDER_NONE;
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        unsigned place = (unsigned)(key >> node->shift & (PLACES - 1));
        uint64_t below = node->taken & (bit(place) - 1);
        if (below != 0) {
            before = node->children[highest(below)];
        }
        reference = node->children[place];
    }
    return before == LADDER_NONE ? LADDER_NONE : last_block(pool, before);
}

/* ---------------------------------------------------------------- orders */

static void set_best(const struct ladder_pool *pool, struct ladder *ladder, uint32_t id)
{
    ladder->best = id;
    ladder->first = LADDER_NONE;
    if (id != LADDER_NONE) {
        const struct ladder_block *block = &pool->blocks[id];
        unsigned place = lowest(block->taken);
        ladder->best_key = block->prefix << PLACE_BITS | place;
        ladder->first = block->lists[place].first;
    }
}

/* Between which two of a list a sequence belongs. A new order belongs at the end, and what comes back with the sequence that
 * it had mostly at the beginning: looked for from both, in steps. */
static void find_place(const struct ladder_pool *pool, uint32_t first, uint32_t last,
                       uint64_t sequence, uint32_t *ret_before, uint32_t *ret_behind)
{
    for (;;) {
        if (pool->orders[last].sequence <= sequence) {
            *ret_before = last;
            *ret_behind = pool->orders[last].next;
            return;
        }
        if (pool->orders[first].sequence > sequence) {
            *ret_before = pool->orders[first].previous;
            *ret_behind = first;
            return;
        }
        last = pool->orders[last].previous;
        first = pool->orders[first].next;
    }
}

void ladder_insert(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle)
{
    assert(handle < pool->capacity);
    struct order *order = &pool->orders[handle];
    uint64_t key = order->key;
    uint64_t prefix = key >> PLACE_BITS;
    uint32_t id = ladder->near;
    if (id == LADDER_NONE || pool->blocks[id].prefix != prefix) {
        id = ladder->first != LADDER_NONE && pool->blocks[ladder->best].prefix == prefix
                 ? ladder->best
                 : block_for(pool, ladder, key);
        ladder->near = id;
    }
    struct ladder_block *block = &pool->blocks[id];
    unsigned place = place_in_block(key);
    if ((block->taken & bit(place)) == 0) {
        block->taken |= bit(place);
        block->lists[place].first = handle;
        block->lists[place].last = handle;
        order->previous = LADDER_NONE;
        order->next = LADDER_NONE;
        if (ladder->first == LADDER_NONE || key < ladder->best_key) {
            ladder->best = id;
            ladder->best_key = key;
            ladder->first = handle;
        }
        return;
    }
    uint32_t before = LADDER_NONE;
    uint32_t behind = LADDER_NONE;
    find_place(pool, block->lists[place].first, block->lists[place].last, order->sequence, &before,
               &behind);
    order->previous = before;
    order->next = behind;
    if (before == LADDER_NONE) {
        block->lists[place].first = handle;
        ladder->first = key == ladder->best_key ? handle : ladder->first;
    } else {
        pool->orders[before].next = handle;
    }
    *(behind == LADDER_NONE ? &block->lists[place].last : &pool->orders[behind].previous) = handle;
}

static uint32_t find_block(const struct ladder_pool *pool, const struct ladder *ladder,
                           uint64_t key)
{
    uint64_t prefix = key >> PLACE_BITS;
    if (pool->blocks[ladder->best].prefix == prefix) {
        return ladder->best;
    }
    if (ladder->near != LADDER_NONE && pool->blocks[ladder->near].prefix == prefix) {
        return ladder->near;
    }
    uint32_t reference = ladder->root;
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        reference = node->children[key >> node->shift & (PLACES - 1)];
    }
    return reference;
}

/* The last order of its key has gone. */
static void empty_place(struct ladder_pool *pool, struct ladder *ladder, uint64_t key)
{
    uint32_t id = find_block(pool, ladder, key);
    struct ladder_block *block = &pool->blocks[id];
    block->taken &= ~bit(place_in_block(key));
    bool was_best = key == ladder->best_key;
    if (block->taken != 0) {
        if (was_best) {
            set_best(pool, ladder, id);
        }
        return;
    }
    uint32_t next = was_best ? block_after(pool, ladder, key) : ladder->best;
    prune(pool, ladder, key, id);
    if (was_best) {
        set_best(pool, ladder, next);
    }
}

void ladder_remove(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle)
{
    const struct order *order = &pool->orders[handle];
    uint32_t before = order->previous;
    uint32_t behind = order->next;
    if (before != LADDER_NONE && behind != LADDER_NONE) {
        pool->orders[before].next = behind;
        pool->orders[behind].previous = before;
        return;
    }
    if (before == LADDER_NONE && behind == LADDER_NONE) {
        empty_place(pool, ladder, order->key);
        return;
    }
    struct ladder_block *block = &pool->blocks[find_block(pool, ladder, order->key)];
    unsigned place = place_in_block(order->key);
    if (before == LADDER_NONE) {
        block->lists[place].first = behind;
        pool->orders[behind].previous = LADDER_NONE;
        ladder->first = handle == ladder->first ? behind : ladder->first;
    } else {
        block->lists[place].last = before;
        pool->orders[before].next = LADDER_NONE;
    }
}

uint32_t ladder_next(const struct ladder_pool *pool, const struct ladder *ladder, uint32_t handle)
{
    const struct order *order = &pool->orders[handle];
    if (order->next != LADDER_NONE) {
        return order->next;
    }
    uint32_t id = find_block(pool, ladder, order->key);
    const struct ladder_block *block = &pool->blocks[id];
    unsigned place = place_in_block(order->key);
    uint64_t above = place == PLACES - 1 ? 0 : block->taken >> (place + 1) << (place + 1);
    if (above == 0) {
        id = block_after(pool, ladder, order->key);
        if (id == LADDER_NONE) {
            return LADDER_NONE;
        }
        block = &pool->blocks[id];
        above = block->taken;
    }
    return block->lists[lowest(above)].first;
}

uint32_t ladder_previous(const struct ladder_pool *pool, const struct ladder *ladder,
                         uint32_t handle)
{
    const struct order *order = &pool->orders[handle];
    if (order->previous != LADDER_NONE) {
        return order->previous;
    }
    if (order->key == ladder->best_key) {
        return LADDER_NONE;
    }
    const struct ladder_block *block = &pool->blocks[find_block(pool, ladder, order->key)];
    uint64_t below = block->taken & (bit(place_in_block(order->key)) - 1);
    if (below == 0) { /* there is one before it: it is not the best */
        block = &pool->blocks[block_before(pool, ladder, order->key)];
        below = block->taken;
    }
    return block->lists[highest(below)].last;
}

/* ---------------------------------------------------------------- for tests */

static bool list_is_sound(const struct ladder_pool *pool, const struct ladder_block *block,
                          unsigned place)
{
    uint64_t key = block->prefix << PLACE_BITS | place;
    uint32_t before = LADDER_NONE;
    for (uint32_t at = block->lists[place].first; at != LADDER_NONE; at = pool->orders[at].next) {
        const struct order *order = &pool->orders[at];
        if (order->key != key || order->previous != before ||
            (before != LADDER_NONE && pool->orders[before].sequence > order->sequence)) {
            return false;
        }
        before = at;
    }
    return before != LADDER_NONE && before == block->lists[place].last;
}

static bool tree_is_sound(const struct ladder_pool *pool, uint32_t reference)
{
    if (!is_node(reference)) {
        const struct ladder_block *block = &pool->blocks[reference];
        for (unsigned place = 0; place < PLACES; place++) {
            if ((block->taken & bit(place)) != 0 && !list_is_sound(pool, block, place)) {
                return false;
            }
        }
        return block->taken != 0;
    }
    const struct ladder_node *node = node_of(pool, reference);
    if ((node->taken & (node->taken - 1)) == 0) {
        return false; /* one child or none */
    }
    for (unsigned place = 0; place < PLACES; place++) {
        if ((node->taken & bit(place)) == 0) {
            continue;
        }
        uint32_t child = node->children[place];
        unsigned shift = shared_shift(pool, child);
        if (shift > node->shift ||
            shared_prefix(pool, child) >> (node->shift - shift) !=
                (node->prefix << PLACE_BITS | place) ||
            !tree_is_sound(pool, child)) { /* as deep as a key has groups of six bits */
            return false;
        }
    }
    return true;
}

bool ladder_is_sound(const struct ladder_pool *pool, const struct ladder *ladder)
{
    if (ladder->root == LADDER_NONE) {
        return ladder->first == LADDER_NONE && ladder->near == LADDER_NONE;
    }
    struct ladder again = *ladder;
    set_best(pool, &again, first_block(pool, ladder->root));
    return again.first == ladder->first && again.best == ladder->best &&
           again.best_key == ladder->best_key && tree_is_sound(pool, ladder->root);
}

struct ladder_use ladder_pool_use(const struct ladder_pool *pool)
{
    return (struct ladder_use){.blocks = pool->blocks_used,
                               .nodes = pool->nodes_used,
                               .block_bytes = sizeof(struct ladder_block),
                               .node_bytes = sizeof(struct ladder_node)};
}
