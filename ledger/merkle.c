#include "ledger/merkle.h"

#include <assert.h>

#include "base/sha256.h"

/* The first hashed byte tells leaves from nodes (RFC 6962 section 2.1). Without it a node could
 * pass as a leaf. */
static const uint8_t leaf_prefix = 0x00;
static const uint8_t node_prefix = 0x01;

struct hash32 merkle_leaf_hash(const void *data, size_t length)
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, &leaf_prefix, 1);
    sha256_add(&hash, data, length);
    return sha256_end(&hash);
}

struct hash32 merkle_node_hash(const struct hash32 *left, const struct hash32 *right)
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, &node_prefix, 1);
    sha256_add(&hash, left->bytes, sizeof left->bytes);
    sha256_add(&hash, right->bytes, sizeof right->bytes);
    return sha256_end(&hash);
}

static bool has_bit(uint64_t number, unsigned bit)
{
    return (number >> bit & 1) != 0;
}

struct hash32 merkle_root(const struct merkle *tree)
{
    if (tree->size == 0) {
        return sha256_of("", 0);
    }
    struct hash32 root = {{0}};
    bool begun = false;
    for (unsigned level = 0; level < MERKLE_LEVELS_MAX; level++) {
        if (has_bit(tree->size, level)) {
            root = begun ? merkle_node_hash(&tree->edge[level], &root) : tree->edge[level];
            begun = true;
        }
    }
    return root;
}

void merkle_append(struct merkle *tree, const struct hash32 *leaf, merkle_on_node *on_node,
                   void *context)
{
    assert(tree->size < (UINT64_C(1) << MERKLE_LEVELS_MAX) - 1);
    struct hash32 hash = *leaf;
    unsigned level = 0;
    if (on_node != NULL) {
        on_node(context, 0, tree->size, &hash);
    }
    for (; has_bit(tree->size, level); level++) {
        hash = merkle_node_hash(&tree->edge[level], &hash);
        if (on_node != NULL) {
            on_node(context, level + 1, tree->size >> (level + 1), &hash);
        }
    }
    tree->edge[level] = hash;
    tree->size++;
}

/* Computes the root of the leaves first .. first + count - 1. `first` is a multiple of the smallest
 * power of two that is not below `count`, as in all subtrees of RFC 6962. The root is folded from
 * complete subtrees, one per bit of `count`, from the right. */
static bool range_root(uint64_t first, uint64_t count, merkle_read_node *read, void *context,
                       struct hash32 *ret_root)
{
    assert(count > 0);
    bool begun = false;
    for (unsigned level = 0; level < MERKLE_LEVELS_MAX; level++) {
        if (!has_bit(count, level)) {
            continue;
        }
        uint64_t before = first + (count >> level >> 1 << level << 1);
        struct hash32 subtree;
        if (!read(context, level, before >> level, &subtree)) {
            return false;
        }
        *ret_root = begun ? merkle_node_hash(&subtree, ret_root) : subtree;
        begun = true;
    }
    return true;
}

/* Returns the largest power of two below `count` (> 1): RFC 6962 splits there. */
static uint64_t split_of(uint64_t count)
{
    uint64_t split = 1;
    while (split < count - split) {
        split *= 2;
    }
    return split;
}

/* The proofs are computed from the root down, but listed from the leaf up. */
static void reverse(struct hash32 *path, size_t length)
{
    for (size_t i = 0; i < length / 2; i++) {
        struct hash32 other = path[length - 1 - i];
        path[length - 1 - i] = path[i];
        path[i] = other;
    }
}

bool merkle_inclusion(uint64_t size, uint64_t leaf, merkle_read_node *read, void *context,
                      struct hash32 ret_path[MERKLE_LEVELS_MAX], size_t *ret_length)
{
    assert(leaf < size);
    assert(size < UINT64_C(1) << MERKLE_LEVELS_MAX);
    uint64_t first = 0;
    uint64_t count = size;
    size_t length = 0;
    while (count > 1) {
        uint64_t split = split_of(count);
        bool is_left = leaf - first < split;
        bool found =
            is_left ? range_root(first + split, count - split, read, context, &ret_path[length])
                    : range_root(first, split, read, context, &ret_path[length]);
        if (!found) {
            return false;
        }
        length++;
        first = is_left ? first : first + split;
        count = is_left ? split : count - split;
    }
    reverse(ret_path, length);
    *ret_length = length;
    return true;
}

/* A position on the walk from a leaf to the root: the number of the node on its level, and of the
 * level's last node. A last node without a right sibling rises until it is one (RFC 9162 section
 * 2.1.3.2). */
struct climb {
    uint64_t node;
    uint64_t last;
};

static bool sibling_is_left(const struct climb *climb)
{
    return has_bit(climb->node, 0) || climb->node == climb->last;
}

static void climb_up(struct climb *climb)
{
    if (climb->node == climb->last) {
        while (!has_bit(climb->node, 0) && climb->node != 0) {
            climb->node >>= 1;
            climb->last >>= 1;
        }
    }
    climb->node >>= 1;
    climb->last >>= 1;
}

bool merkle_verify_inclusion(uint64_t size, uint64_t leaf, const struct hash32 *leaf_hash,
                             const struct hash32 *path, size_t length, const struct hash32 *root)
{
    if (leaf >= size) {
        return false;
    }
    struct climb climb = {.node = leaf, .last = size - 1};
    struct hash32 hash = *leaf_hash;
    for (size_t i = 0; i < length; i++) {
        if (climb.last == 0) {
            return false; /* the path is longer than the tree is high */
        }
        hash = sibling_is_left(&climb) ? merkle_node_hash(&path[i], &hash)
                                       : merkle_node_hash(&hash, &path[i]);
        climb_up(&climb);
    }
    return climb.last == 0 && hash32_equal(&hash, root);
}
