/* ledger/merkle_block.h holds up to 256 leaves in a row and the hashes of their complete subtrees.
 *
 * Many proofs from the same leaves hash every subtree once. The block may also begin at a higher
 * level of a tree: its "leaves" are then hashes of that level. */
#ifndef BOURSE_LEDGER_MERKLE_BLOCK_H
#define BOURSE_LEDGER_MERKLE_BLOCK_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MERKLE_BLOCK_LEVELS = 8, MERKLE_BLOCK_LEAVES = 1 << MERKLE_BLOCK_LEVELS };

struct merkle_block {
    size_t count; /* leaves; the caller fills the first nodes with them */
    struct hash32 nodes[2 * MERKLE_BLOCK_LEAVES - 1]; /* level by level, the leaves first */
};

/* Computes every complete subtree over the first `count` leaves (<= MERKLE_BLOCK_LEAVES). */
void merkle_block_fill(struct merkle_block *block);
/* Returns the subtree `index` of a level, or NULL when the block does not hold all its leaves. */
const struct hash32 *merkle_block_node(const struct merkle_block *block, unsigned level,
                                       uint64_t index);
/* The function is a merkle_read_node; the context is a const struct merkle_block. */
bool merkle_block_read(void *block, unsigned level, uint64_t index, struct hash32 *ret_hash);

#endif
