/* ledger/merkle.h - the append-only tree of RFC 6962 section 2.1 (SHA-256).
 *
 * Leaf hash SHA-256(0x00 || data), node hash SHA-256(0x01 || left || right). The tree itself
 * keeps only its right edge: one hash per set bit of its size. Proofs read older hashes through
 * a function of the caller's, so the pure part serves memory and SQLite alike. Pure. */
#ifndef BOURSE_LEDGER_MERKLE_H
#define BOURSE_LEDGER_MERKLE_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MERKLE_LEVELS_MAX = 63 };

struct merkle {
    uint64_t size;
    /* edge[k]: the complete subtree of 2^k leaves, where bit k of size is set. */
    struct hash32 edge[MERKLE_LEVELS_MAX];
};

struct hash32 merkle_leaf_hash(const void *data, size_t length);
struct hash32 merkle_node_hash(const struct hash32 *left, const struct hash32 *right);
/* Root of the empty tree is SHA-256 of nothing. */
struct hash32 merkle_root(const struct merkle *tree);
/* Appends a leaf. `on_node`, when not NULL, is told of each subtree this completes: level 0 is the
 * leaf, and `index` counts subtrees of that level from the left. */
typedef void merkle_on_node(void *context, unsigned level, uint64_t index,
                            const struct hash32 *hash);
void merkle_append(struct merkle *tree, const struct hash32 *leaf, merkle_on_node *on_node,
                   void *context);

/* Hash of the complete subtree (level, index); false when it cannot be read. */
typedef bool merkle_read_node(void *context, unsigned level, uint64_t index,
                              struct hash32 *ret_hash);
/* Inclusion proof of `leaf` in the tree of `size` leaves, from the leaf's sibling up. Returns
 * false when a node cannot be read. */
bool merkle_inclusion(uint64_t size, uint64_t leaf, merkle_read_node *read, void *context,
                      struct hash32 ret_path[MERKLE_LEVELS_MAX], size_t *ret_length);
/* Consistency proof between sizes first <= second (first > 0). */
bool merkle_consistency(uint64_t first, uint64_t second, merkle_read_node *read, void *context,
                        struct hash32 ret_path[2 * MERKLE_LEVELS_MAX], size_t *ret_length);

bool merkle_verify_inclusion(uint64_t size, uint64_t leaf, const struct hash32 *leaf_hash,
                             const struct hash32 *path, size_t length, const struct hash32 *root);
bool merkle_verify_consistency(uint64_t first, uint64_t second, const struct hash32 *first_root,
                               const struct hash32 *second_root, const struct hash32 *path,
                               size_t length);

#endif
