/* ledger/merkle.h defines the append-only tree of RFC 6962 section 2.1 (SHA-256).
 *
 * The leaf hash is SHA-256(0x00 || data), the node hash SHA-256(0x01 || left || right). The tree
 * itself keeps its right edge alone: one hash per set bit of its size. Proofs read older hashes
 * through a function of the caller, so that the code works with memory and SQLite alike. */
#ifndef BOURSE_LEDGER_MERKLE_H
#define BOURSE_LEDGER_MERKLE_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MERKLE_LEVELS_MAX = 63 };

struct merkle {
    uint64_t size;
    /* edge[k] is the complete subtree of 2^k leaves, where bit k of size is set. */
    struct hash32 edge[MERKLE_LEVELS_MAX];
};

struct hash32 merkle_leaf_hash(const void *data, size_t length);
struct hash32 merkle_node_hash(const struct hash32 *left, const struct hash32 *right);
/* Returns the root; for the empty tree it is SHA-256 of nothing. */
struct hash32 merkle_root(const struct merkle *tree);
/* merkle_append() adds a leaf. The function calls `on_node`, unless NULL, for each subtree that the
 * leaf completes. Level 0 is the leaf, and `index` counts subtrees of the level from the left. */
typedef void merkle_on_node(void *context, unsigned level, uint64_t index,
                            const struct hash32 *hash);
void merkle_append(struct merkle *tree, const struct hash32 *leaf, merkle_on_node *on_node,
                   void *context);

/* A merkle_read_node reads the hash of the complete subtree (level, index). The callback returns
 * false when it cannot. */
typedef bool merkle_read_node(void *context, unsigned level, uint64_t index,
                              struct hash32 *ret_hash);
/* Makes the inclusion proof of `leaf` in the tree of `size` leaves, from the leaf's sibling up.
 * Returns false when a node cannot be read. */
bool merkle_inclusion(uint64_t size, uint64_t leaf, merkle_read_node *read, void *context,
                      struct hash32 ret_path[MERKLE_LEVELS_MAX], size_t *ret_length);

bool merkle_verify_inclusion(uint64_t size, uint64_t leaf, const struct hash32 *leaf_hash,
                             const struct hash32 *path, size_t length, const struct hash32 *root);

#endif
