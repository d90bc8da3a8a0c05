/* ledger/store/tree_cache.h reads the Merkle tree for many proofs. For each stored
 * level, the cache keeps the two blocks of 256 hashes that were read last, with the subtrees in
 * them. Each proof needs hashes beside its leaf, and some at the right edge of the tree.
 *
 * The cache is right within one transaction of its reader, because the tree grows. */
#ifndef BOURSE_LEDGER_STORE_TREE_CACHE_H
#define BOURSE_LEDGER_STORE_TREE_CACHE_H

#include "ledger/merkle_block.h"
#include "ledger/store/tree.h"

#include <stdbool.h>
#include <stdint.h>

enum { TREE_CACHE_BLOCKS = MERKLE_LEVELS_MAX / TREE_LEVEL_STEP + 1 };

struct tree_cache {
    struct tree_reader *reader;
    struct tree_cached {
        bool is_read;
        uint64_t number; /* of the block, on its level */
        struct merkle_block block;
    } levels[TREE_CACHE_BLOCKS][2]; /* of the levels 0, 8, 16 ... */
    uint8_t newest[TREE_CACHE_BLOCKS];
};

/* The function is a merkle_read_node. A failed read leaves its code in the reader. */
bool tree_cache_read(void *tree_cache, unsigned level, uint64_t index, struct hash32 *ret_hash);

#endif
