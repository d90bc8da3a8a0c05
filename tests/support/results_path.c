#include "tests/support/results_path.h"

#include "base/sha256.h"

#include <assert.h>

static_assert(LIMIT_RESULTS <= 1 << RESULTS_PATH_MAX, "a path is as long as the tree is deep");

static struct hash32 parent_of(const struct hash32 *left, const struct hash32 *right)
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, "\x01", 1);
    sha256_add(&hash, left->bytes, sizeof left->bytes);
    sha256_add(&hash, right->bytes, sizeof right->bytes);
    return sha256_end(&hash);
}

/* Returns the largest power of two below `count` (>= 2): RFC 6962 splits there. */
static size_t split_of(size_t count)
{
    size_t split = 1;
    while (split * 2 < count) {
        split *= 2;
    }
    return split;
}

size_t results_path(const struct hash32 *leaves, size_t count, size_t index,
                    struct hash32 ret_path[RESULTS_PATH_MAX])
{
    assert(count >= 1 && count <= LIMIT_RESULTS);
    assert(index < count);
    if (count == 1) {
        return 0;
    }
    size_t split = split_of(count);
    size_t length;
    if (index < split) {
        length = results_path(leaves, split, index, ret_path);
        ret_path[length] = results_root(leaves + split, count - split);
    } else {
        length = results_path(leaves + split, count - split, index - split, ret_path);
        ret_path[length] = results_root(leaves, split);
    }
    return length + 1;
}

bool results_root_from_path(const struct hash32 *leaf, size_t count, size_t index,
                            const struct hash32 *path, size_t path_length, struct hash32 *ret_root)
{
    if (count < 1 || count > LIMIT_RESULTS || index >= count || path_length > RESULTS_PATH_MAX) {
        return false;
    }
    /* The first loop goes down from the root and notes at each split whether the leaf is on the
     * right. The second loop goes up again. */
    bool on_right[RESULTS_PATH_MAX];
    size_t depth = 0;
    while (count > 1) {
        size_t split = split_of(count);
        on_right[depth] = index >= split;
        index -= on_right[depth] ? split : 0;
        count = on_right[depth] ? count - split : split;
        depth++;
    }
    if (depth != path_length) {
        return false;
    }
    struct hash32 hash = *leaf;
    for (size_t level = 0; level < depth; level++) {
        const struct hash32 *sibling = &path[level];
        hash = on_right[depth - 1 - level] ? parent_of(sibling, &hash) : parent_of(&hash, sibling);
    }
    *ret_root = hash;
    return true;
}
