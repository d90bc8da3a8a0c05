#include "matching/ladder.h"

#include "base/ahead.h"
#include "base/apart.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACE_BITS = 6,
    PLACES = 1 << PLACE_BITS,
    /* A reference is a node if bit 31 is set, else a block. Four bits from NODE_LEVEL on say which
     * bits of a key choose the child, so that a walk down waits for the child alone. */
    NODE_FLAG = 31,
    NODE_LEVEL = 26,
};
static_assert(LADDER_ORDERS_MAX < 1 << NODE_LEVEL, "a node's number ends where its level begins");

/* A block covers 64 neighbouring keys. Their lists are stored apart, so that the blocks of a whole
 * market stay in the cache. An access to a key loads the line of its list, and no other. */
struct ladder_block {
    uint64_t taken;
    uint64_t prefix; /* of its keys: key >> PLACE_BITS */
};

struct ladder_list {
    uint32_t first, last;
};

struct ladder_node {
    uint64_t taken;
    uint64_t prefix; /* of the keys below it: key >> (shift + PLACE_BITS) */
    uint32_t shift;  /* the bits that choose the child: key >> shift & 63 */
    uint32_t children[PLACES];
};

static uint32_t reference_of_node(uint32_t node, unsigned shift)
{
    return node | (uint32_t)(shift / PLACE_BITS) << NODE_LEVEL | UINT32_C(1) << NODE_FLAG;
}

static bool is_node(uint32_t reference)
{
    return reference >> NODE_FLAG != 0;
}

static uint32_t number_of(uint32_t node)
{
    return node & ((UINT32_C(1) << NODE_LEVEL) - 1);
}

static unsigned shift_of(uint32_t node)
{
    return (node >> NODE_LEVEL & 15) * PLACE_BITS;
}

static struct ladder_node *node_of(const struct ladder_pool *pool, uint32_t reference)
{
    return &pool->nodes[number_of(reference)];
}

static inline unsigned lowest(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

static inline uint64_t bit(unsigned place)
{
    return UINT64_C(1) << place;
}

static inline unsigned place_in_block(uint64_t key)
{
    return (unsigned)(key & (PLACES - 1));
}

/* ---------------------------------------------------------------- the pool */

void *ladder_lines(size_t count, size_t size, void **ret_memory)
{
    *ret_memory = calloc(count + (LADDER_LINE + size - 1) / size, size);
    return *ret_memory == NULL
               ? NULL
               : (void *)(((uintptr_t)*ret_memory + LADDER_LINE - 1) / LADDER_LINE * LADDER_LINE);
}

bool ladder_pool_init(struct ladder_pool *pool, uint32_t orders)
{
    /* Block 0 is never used: the place 0 means that an order is in no ladder. */
    *pool = (struct ladder_pool){
        .free_block = LADDER_NONE, .free_node = LADDER_NONE, .blocks_touched = 1};
    return ladder_pool_grow(pool, orders);
}

void ladder_pool_fini(struct ladder_pool *pool)
{
    free(pool->order_memory);
    free(pool->list_memory);
    free(pool->blocks);
    free(pool->nodes);
    *pool = (struct ladder_pool){0};
}

/* Allocates lines for `count` elements and copies the first `used`. Unused memory costs only
 * addresses. */
static void *more_lines(const void *lines, size_t used, size_t count, size_t size, void **memory)
{
    void *larger;
    void *more = ladder_lines(count, size, &larger);
    if (more == NULL) {
        return NULL;
    }
    if (lines != NULL) {
        memcpy(more, lines, used * size);
    }
    free(*memory);
    *memory = larger;
    return more;
}

bool ladder_pool_grow(struct ladder_pool *pool, uint32_t orders)
{
    assert(orders <= LADDER_ORDERS_MAX);
    if (orders <= pool->capacity) {
        return true;
    }
    void *more = realloc(pool->nodes, orders * sizeof *pool->nodes);
    if (more == NULL) {
        return false;
    }
    pool->nodes = more;
    more = realloc(pool->blocks, (orders + (size_t)1) * sizeof *pool->blocks);
    if (more == NULL) {
        return false;
    }
    pool->blocks = more;
    more = more_lines(pool->lists, (size_t)pool->blocks_touched * PLACES,
                      (orders + (size_t)1) * PLACES, sizeof *pool->lists, &pool->list_memory);
    if (more == NULL) {
        return false;
    }
    pool->lists = more;
    more =
        more_lines(pool->orders, pool->capacity, orders, sizeof *pool->orders, &pool->order_memory);
    if (more == NULL) {
        return false;
    }
    pool->orders = more;
    pool->capacity = orders;
    return true;
}

/* Free blocks form a list through `prefix`. Blocks that were never used are not in it, so that
 * their memory stays untouched. */
static uint32_t take_block(struct ladder_pool *pool, uint64_t prefix)
{
    uint32_t id = pool->free_block;
    if (id == LADDER_NONE) {
        assert(pool->blocks_touched <= pool->capacity); /* there is one block for each order */
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
        /* There are fewer nodes than blocks: each has at least two children. */
        assert(pool->nodes_touched < pool->capacity);
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
    uint32_t id = number_of(reference);
    pool->nodes[id].prefix = pool->free_node;
    pool->free_node = id;
    pool->nodes_used--;
}

/* ---------------------------------------------------------------- the tree */

/* Returns the shift of a reference. All keys below the reference share the bits from there up. */
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

/* Makes a node above `reference` and a new block for `key`, whose path leaves the path of
 * `reference` here. */
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
    return reference_of_node(id, shift);
}

/* Returns the block of a key, or NONE. The block's own prefix is compared alone, because it
 * contains the bits that the nodes skip. */
static inline uint32_t find_block(const struct ladder_pool *pool, uint32_t reference, uint64_t key)
{
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        unsigned place = (unsigned)(key >> shift_of(reference) & (PLACES - 1));
        if ((node->taken >> place & 1) == 0) {
            return LADDER_NONE;
        }
        reference = node->children[place];
    }
    return pool->blocks[reference].prefix == key >> PLACE_BITS ? reference : LADDER_NONE;
}

/* Returns the block of a key, and makes one where there is none. */
static APART uint32_t block_for(struct ladder_pool *pool, struct ladder *ladder, uint64_t key)
{
    uint64_t prefix = key >> PLACE_BITS;
    if (ladder->root == LADDER_NONE) {
        return ladder->root = take_block(pool, prefix);
    }
    uint32_t found = find_block(pool, ladder->root, key);
    if (found != LADDER_NONE) {
        return found;
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

/* Removes an empty block from the tree. A node with one child left is replaced by the child. */
static void prune(struct ladder_pool *pool, struct ladder *ladder, uint64_t key, uint32_t block)
{
    uint32_t *link = &ladder->root;
    uint32_t *above = NULL; /* points to the node that holds `link` */
    while (*link != block) {
        above = link;
        link = &node_of(pool, *link)->children[key >> shift_of(*link) & (PLACES - 1)];
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

/* Returns the first block whose keys are above `key`, which is in the ladder. */
static uint32_t block_after(const struct ladder_pool *pool, const struct ladder *ladder,
                            uint64_t key)
{
    uint32_t reference = ladder->root;
    uint32_t after = LADDER_NONE;
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        unsigned place = (unsigned)(key >> shift_of(reference) & (PLACES - 1));
        uint64_t above = place == PLACES - 1 ? 0 : node->taken >> (place + 1) << (place + 1);
        if (above != 0) {
            after = node->children[lowest(above)];
        }
        reference = node->children[place];
    }
    return after == LADDER_NONE ? LADDER_NONE : first_block(pool, after);
}

/* Returns the last block whose keys are below `key`, which is in the ladder. */
static uint32_t block_before(const struct ladder_pool *pool, const struct ladder *ladder,
                             uint64_t key)
{
    uint32_t reference = ladder->root;
    uint32_t before = LADDER_NONE;
    while (is_node(reference)) {
        const struct ladder_node *node = node_of(pool, reference);
        unsigned place = (unsigned)(key >> shift_of(reference) & (PLACES - 1));
        uint64_t below = node->taken & (bit(place) - 1);
        if (below != 0) {
            before = node->children[highest(below)];
        }
        reference = node->children[place];
    }
    return before == LADDER_NONE ? LADDER_NONE : last_block(pool, before);
}

/* ---------------------------------------------------------------- orders */

static inline void set_best(const struct ladder_pool *pool, struct ladder *ladder, uint32_t id)
{
    ladder->best = id;
    ladder->first = LADDER_NONE;
    if (id != LADDER_NONE) {
        unsigned place = lowest(pool->blocks[id].taken);
        ladder->best_key = pool->blocks[id].prefix << PLACE_BITS | place;
        ladder->first = pool->lists[id << PLACE_BITS | place].first;
        line_ahead(&pool->orders[ladder->first]); /* the next order to be filled */
    }
}

/* Returns the first order of a list with a higher sequence; there is one. An order that returns
 * with its old sequence mostly belongs at the beginning, others at the end. The search goes from
 * both ends in steps. */
static uint32_t find_behind(const struct ladder_pool *pool, uint32_t first, uint32_t last,
                            uint64_t sequence)
{
    for (;;) {
        if (pool->orders[last].sequence <= sequence) {
            return pool->orders[last].next;
        }
        if (pool->orders[first].sequence > sequence) {
            return first;
        }
        last = pool->orders[last].previous;
        first = pool->orders[first].next;
    }
}

/* Returns the block for a new order. The best block and the last other block used are tried first,
 * without a walk of the tree. */
static inline uint32_t block_to_use(struct ladder_pool *pool, struct ladder *ladder, uint64_t key)
{
    uint64_t prefix = key >> PLACE_BITS;
    /* The code reads both blocks, so that the processor has no branch to guess. */
    uint32_t best = ladder->best;
    uint32_t near = ladder->near;
    uint32_t id = ladder->best_key >> PLACE_BITS == prefix ? best : near;
    if (id == LADDER_NONE || pool->blocks[id].prefix != prefix) {
        id = ladder->near = block_for(pool, ladder, key);
    }
    return id;
}

static inline uint64_t key_at(const struct ladder_pool *pool, uint32_t place)
{
    return pool->blocks[place >> PLACE_BITS].prefix << PLACE_BITS | (place & (PLACES - 1));
}

uint64_t ladder_key(const struct ladder_pool *pool, uint32_t handle)
{
    return key_at(pool, pool->orders[handle].place);
}

/* Inserts into a list that has other orders, but not at its end. */
static APART void insert_before(const struct ladder_pool *pool, struct ladder *ladder,
                                uint32_t handle, struct ladder_list *list)
{
    struct order *order = &pool->orders[handle];
    uint32_t behind = find_behind(pool, list->first, list->last, order->sequence);
    order->next = behind;
    order->previous = pool->orders[behind].previous;
    pool->orders[behind].previous = handle;
    if (order->previous != LADDER_NONE) {
        pool->orders[order->previous].next = handle;
        return;
    }
    ladder->first = ladder->first == list->first ? handle : ladder->first;
    list->first = handle;
}

bool ladder_insert(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle, uint64_t key)
{
    assert(handle < pool->capacity);
    struct order *order = &pool->orders[handle];
    uint32_t id = block_to_use(pool, ladder, key);
    uint32_t place = id << PLACE_BITS | place_in_block(key);
    struct ladder_block *block = &pool->blocks[id];
    struct ladder_list *list = &pool->lists[place];
    uint64_t latest = pool->latest;
    order->place = place;
    order->next = LADDER_NONE;
    if ((block->taken >> place_in_block(key) & 1) == 0) {
        block->taken |= bit(place_in_block(key));
        order->previous = LADDER_NONE;
        *list = (struct ladder_list){handle, handle};
        pool->latest = order->sequence > latest ? order->sequence : latest;
        if (ladder->first != LADDER_NONE && key > ladder->best_key) {
            return false;
        }
        ladder->best = id;
        ladder->best_key = key;
        ladder->first = handle;
        return true;
    }
    uint32_t last = list->last;
    if (order->sequence < latest) {
        if (order->sequence < pool->orders[last].sequence) {
            insert_before(pool, ladder, handle, list);
            return false;
        }
    } else {
        pool->latest = order->sequence;
    }
    order->previous = last;
    pool->orders[last].next = handle;
    list->last = handle;
    return false;
}

/* Handles a block whose last order is gone. */
static APART void leave_block(struct ladder_pool *pool, struct ladder *ladder, uint64_t key,
                              uint32_t block)
{
    bool was_best = key == ladder->best_key;
    uint32_t next = was_best ? block_after(pool, ladder, key) : LADDER_NONE;
    prune(pool, ladder, key, block);
    if (was_best) {
        set_best(pool, ladder, next);
    }
}

/* Handles a key whose last order is gone. */
static inline bool empty_place(struct ladder_pool *pool, struct ladder *ladder, uint32_t place)
{
    uint32_t id = place >> PLACE_BITS;
    struct ladder_block *block = &pool->blocks[id];
    uint64_t key = key_at(pool, place);
    bool was_best = key == ladder->best_key;
    block->taken &= ~bit(place & (PLACES - 1));
    if (block->taken == 0) {
        leave_block(pool, ladder, key, id);
    } else if (was_best) {
        set_best(pool, ladder, id);
    }
    return was_best;
}

bool ladder_remove(struct ladder_pool *pool, struct ladder *ladder, uint32_t handle)
{
    struct order *order = &pool->orders[handle];
    struct ladder_list *list = &pool->lists[order->place];
    uint32_t before = order->previous;
    uint32_t behind = order->next;
    uint32_t place = order->place;
    order->place = 0;
    if ((before & behind) == LADDER_NONE) {
        return empty_place(pool, ladder, place);
    }
    uint32_t *to_behind = before == LADDER_NONE ? &list->first : &pool->orders[before].next;
    uint32_t *to_before = behind == LADDER_NONE ? &list->last : &pool->orders[behind].previous;
    *to_behind = behind;
    *to_before = before;
    ladder->first = handle == ladder->first ? behind : ladder->first;
    return false;
}

APART uint32_t ladder_next(const struct ladder_pool *pool, const struct ladder *ladder,
                           uint32_t handle)
{
    const struct order *order = &pool->orders[handle];
    if (order->next != LADDER_NONE) {
        return order->next;
    }
    uint32_t id = order->place >> PLACE_BITS;
    unsigned place = order->place & (PLACES - 1);
    uint64_t taken = pool->blocks[id].taken;
    uint64_t above = place == PLACES - 1 ? 0 : taken >> (place + 1) << (place + 1);
    if (above == 0) {
        id = block_after(pool, ladder, key_at(pool, order->place));
        if (id == LADDER_NONE) {
            return LADDER_NONE;
        }
        above = pool->blocks[id].taken;
    }
    return pool->lists[id << PLACE_BITS | lowest(above)].first;
}

uint32_t ladder_previous(const struct ladder_pool *pool, const struct ladder *ladder,
                         uint32_t handle)
{
    const struct order *order = &pool->orders[handle];
    if (order->previous != LADDER_NONE) {
        return order->previous;
    }
    uint64_t key = key_at(pool, order->place);
    if (key == ladder->best_key) {
        return LADDER_NONE;
    }
    uint32_t id = order->place >> PLACE_BITS;
    uint64_t below = pool->blocks[id].taken & (bit(order->place & (PLACES - 1)) - 1);
    if (below == 0) { /* a block before exists, because the order is not the best */
        id = block_before(pool, ladder, key);
        below = pool->blocks[id].taken;
    }
    return pool->lists[id << PLACE_BITS | highest(below)].last;
}

/* ---------------------------------------------------------------- for tests */

static bool list_is_sound(const struct ladder_pool *pool, uint32_t place)
{
    uint32_t before = LADDER_NONE;
    for (uint32_t at = pool->lists[place].first; at != LADDER_NONE; at = pool->orders[at].next) {
        const struct order *order = &pool->orders[at];
        if (order->place != place || order->previous != before || order->sequence > pool->latest ||
            (before != LADDER_NONE && pool->orders[before].sequence > order->sequence)) {
            return false;
        }
        before = at;
    }
    return before != LADDER_NONE && before == pool->lists[place].last;
}

static bool tree_is_sound(const struct ladder_pool *pool, uint32_t reference)
{
    if (!is_node(reference)) {
        uint64_t taken = pool->blocks[reference].taken;
        for (unsigned place = 0; place < PLACES; place++) {
            if ((taken & bit(place)) != 0 &&
                !list_is_sound(pool, reference << PLACE_BITS | place)) {
                return false;
            }
        }
        return taken != 0;
    }
    const struct ladder_node *node = node_of(pool, reference);
    if ((node->taken & (node->taken - 1)) == 0 || node->shift != shift_of(reference)) {
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
