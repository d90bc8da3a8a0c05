#include "ledger/merkle_block.h"

#include "ledger/merkle.h"

#include <assert.h>

/* Returns the place of a level's first node: all levels below come before. */
static size_t place_of(unsigned level)
{
    return 2 * MERKLE_BLOCK_LEAVES - ((size_t)(2 * MERKLE_BLOCK_LEAVES) >> level);
}

void merkle_block_fill(struct merkle_block *block)
{
    assert(block->count <= MERKLE_BLOCK_LEAVES);
    for (unsigned level = 1; level <= MERKLE_BLOCK_LEVELS; level++) {
        const struct hash32 *below = &block->nodes[place_of(level - 1)];
        struct hash32 *nodes = &block->nodes[place_of(level)];
        for (size_t i = 0; i < block->count >> level; i++) {
            nodes[i] = merkle_node_hash(&below[2 * i], &below[2 * i + 1]);
        }
    }
}

const struct hash32 *merkle_block_node(const struct merkle_block *block, unsigned level,
                                       uint64_t index)
{
    if (level > MERKLE_BLOCK_LEVELS || index >= block->count >> level) {
        return NULL;
    }
    return &block->nodes[place_of(level) + index];
}

bool merkle_block_read(void *block, unsigned level, uint64_t index, struct hash32 *ret_hash)
{
    const struct hash32 *node = merkle_block_node(block, level, index);
    if (node != NULL) {
        *ret_hash = *node;
    }
    return node != NULL;
}
