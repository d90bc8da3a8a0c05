#include "ledger/store/tree_cache.h"

#include <assert.h>

static_assert((int)MERKLE_BLOCK_LEVELS == (int)TREE_LEVEL_STEP, "a block reaches the next level");

/* Returns the block, which is read over the older one unless it is there; NULL: it cannot be
 * read. */
static const struct merkle_block *block_of(struct tree_cache *cache, unsigned step, uint64_t number)
{
    struct tree_cached *blocks = cache->levels[step];
    for (uint8_t i = 0; i < 2; i++) {
        if (blocks[i].is_read && blocks[i].number == number) {
            cache->newest[step] = i;
            return &blocks[i].block;
        }
    }
    const uint8_t older = 1 - cache->newest[step];
    blocks[older].is_read =
        tree_read_block(cache->reader, step * TREE_LEVEL_STEP, number, &blocks[older].block);
    blocks[older].number = number;
    cache->newest[step] = older;
    return blocks[older].is_read ? &blocks[older].block : NULL;
}

bool tree_cache_read(void *tree_cache, unsigned level, uint64_t index, struct hash32 *ret_hash)
{
    struct tree_cache *cache = tree_cache;
    const unsigned above = level % TREE_LEVEL_STEP;
    /* A subtree of fewer than 256 leaves lies in one block. */
    const uint64_t number = index >> (MERKLE_BLOCK_LEVELS - above);
    const struct merkle_block *block = block_of(cache, level / TREE_LEVEL_STEP, number);
    if (block == NULL) {
        return false;
    }
    const struct hash32 *node =
        merkle_block_node(block, above, index - (number << (MERKLE_BLOCK_LEVELS - above)));
    if (node == NULL) {
        cache->reader->error = SQLITE_CORRUPT;
        return false;
    }
    *ret_hash = *node;
    return true;
}
