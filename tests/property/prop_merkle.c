/* The tree against RFC 6962 section 2.1 written down as it stands there: recursive, over all
 * leaves. Every inclusion proof of every tree up to MAX_SIZE leaves is the RFC's
 * and verifies; changed ones do not. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/sha256.h"
#include "ledger/merkle.h"
#include "tests/support/suite.h"

enum { MAX_SIZE = 300, LEVELS = 10, PATH_MAX_LENGTH = 2 * MERKLE_LEVELS_MAX };

static struct hash32 leaves[MAX_SIZE];
static struct hash32 nodes[LEVELS][MAX_SIZE];

static void keep_node(void *context, unsigned level, uint64_t index, const struct hash32 *hash)
{
    (void)context;
    ck_assert_uint_lt(level, LEVELS);
    nodes[level][index] = *hash;
}

static bool read_node(void *context, unsigned level, uint64_t index, struct hash32 *ret_hash)
{
    const struct merkle *tree = context;
    ck_assert_uint_le((index + 1) << level, tree->size); /* only complete subtrees are asked for */
    *ret_hash = nodes[level][index];
    return true;
}

static size_t largest_power_below(size_t count)
{
    size_t power = 1;
    while (power * 2 < count) {
        power *= 2;
    }
    return power;
}

static struct hash32 naive_root(const struct hash32 *first, size_t count)
{
    if (count == 0) {
        return sha256_of("", 0);
    }
    if (count == 1) {
        return *first;
    }
    size_t split = largest_power_below(count);
    struct hash32 left = naive_root(first, split);
    struct hash32 right = naive_root(first + split, count - split);
    return merkle_node_hash(&left, &right);
}

static size_t naive_path(size_t leaf, const struct hash32 *first, size_t count, struct hash32 *path)
{
    if (count == 1) {
        return 0;
    }
    size_t split = largest_power_below(count);
    size_t length;
    if (leaf < split) {
        length = naive_path(leaf, first, split, path);
        path[length] = naive_root(first + split, count - split);
    } else {
        length = naive_path(leaf - split, first + split, count - split, path);
        path[length] = naive_root(first, split);
    }
    return length + 1;
}

static void assert_same_path(const struct hash32 *a, size_t a_length, const struct hash32 *b,
                             size_t b_length)
{
    ck_assert_uint_eq(a_length, b_length);
    for (size_t i = 0; i < a_length; i++) {
        ck_assert(hash32_equal(&a[i], &b[i]));
    }
}

static struct merkle tree_of(size_t size)
{
    struct merkle tree = {0};
    for (size_t i = 0; i < size; i++) {
        uint8_t data[2] = {(uint8_t)i, (uint8_t)(i >> 8)};
        leaves[i] = merkle_leaf_hash(data, sizeof data);
        merkle_append(&tree, &leaves[i], keep_node, NULL);
    }
    return tree;
}

START_TEST(roots_are_the_rfcs)
{
    for (size_t size = 0; size <= MAX_SIZE; size++) {
        struct merkle tree = tree_of(size);
        struct hash32 root = merkle_root(&tree);
        struct hash32 expected = naive_root(leaves, size);
        ck_assert(hash32_equal(&root, &expected));
    }
}
END_TEST

static void check_inclusion(struct merkle *tree, size_t leaf, struct random *dice)
{
    struct hash32 path[PATH_MAX_LENGTH + 1];
    struct hash32 expected[PATH_MAX_LENGTH];
    size_t length;
    struct hash32 root = merkle_root(tree);
    ck_assert(merkle_inclusion(tree->size, leaf, read_node, tree, path, &length));
    assert_same_path(path, length, expected, naive_path(leaf, leaves, tree->size, expected));
    ck_assert(merkle_verify_inclusion(tree->size, leaf, &leaves[leaf], path, length, &root));

    size_t other = (size_t)random_below(dice, tree->size);
    if (other != leaf) {
        ck_assert(!merkle_verify_inclusion(tree->size, other, &leaves[leaf], path, length, &root));
        ck_assert(!merkle_verify_inclusion(tree->size, leaf, &leaves[other], path, length, &root));
    }
    path[length] = root;
    ck_assert(!merkle_verify_inclusion(tree->size, leaf, &leaves[leaf], path, length + 1, &root));
    if (length > 0) {
        ck_assert(
            !merkle_verify_inclusion(tree->size, leaf, &leaves[leaf], path, length - 1, &root));
        path[random_below(dice, length)].bytes[random_below(dice, 32)] ^=
            (uint8_t)(1 + random_below(dice, 255));
        ck_assert(!merkle_verify_inclusion(tree->size, leaf, &leaves[leaf], path, length, &root));
    }
}

START_TEST(inclusion_proofs_are_the_rfcs)
{
    struct random dice = random_seeded(6962);
    for (size_t size = 1; size <= MAX_SIZE; size = size < 70 ? size + 1 : size + 23) {
        struct merkle tree = tree_of(size);
        for (size_t leaf = 0; leaf < size; leaf++) {
            check_inclusion(&tree, leaf, &dice);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merkle");
    TCase *tests = tcase_create("rfc 6962");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, roots_are_the_rfcs);
    tcase_add_test(tests, inclusion_proofs_are_the_rfcs);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
