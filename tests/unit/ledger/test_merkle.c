#include "ledger/merkle.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tests/support/suite.h"

/* The eight leaves that Certificate Transparency implementations test with, and the root of the
 * first n. */
static const char *const leaves[] = {
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
};
static const char *const roots[] = {
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
};

static struct hash32 leaf_of(size_t index)
{
    uint8_t bytes[16];
    size_t length = strlen(leaves[index]) / 2;
    ck_assert(text_unhex(leaves[index], bytes, length));
    return merkle_leaf_hash(bytes, length);
}

START_TEST(roots_are_those_of_certificate_transparency)
{
    struct merkle tree = {0};
    for (size_t size = 0; size <= 8; size++) {
        char text[65];
        struct hash32 root = merkle_root(&tree);
        text_hex(root.bytes, sizeof root.bytes, text);
        ck_assert_str_eq(text, roots[size]);
        if (size < 8) {
            struct hash32 leaf = leaf_of(size);
            merkle_append(&tree, &leaf, NULL, NULL);
        }
    }
}
END_TEST

struct told {
    unsigned count;
    unsigned level[8];
    uint64_t index[8];
};

static void note_node(void *context, unsigned level, uint64_t index, const struct hash32 *hash)
{
    struct told *told = context;
    (void)hash; /* the roots above speak for the hashes */
    told->level[told->count] = level;
    told->index[told->count] = index;
    told->count++;
}

START_TEST(appending_tells_of_each_subtree_that_it_completes)
{
    struct merkle tree = {0};
    struct told told = {0};
    for (size_t i = 0; i < 7; i++) {
        struct hash32 leaf = leaf_of(i);
        merkle_append(&tree, &leaf, NULL, NULL);
    }
    struct hash32 last = leaf_of(7);
    merkle_append(&tree, &last, note_node, &told);
    ck_assert_uint_eq(told.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(told.level[i], i);
        ck_assert_uint_eq(told.index[i], 7u >> i);
    }
}
END_TEST

START_TEST(a_leaf_outside_the_tree_is_not_included)
{
    struct hash32 leaf = leaf_of(0);
    ck_assert(merkle_verify_inclusion(1, 0, &leaf, NULL, 0, &leaf));
    ck_assert(!merkle_verify_inclusion(1, 1, &leaf, NULL, 0, &leaf));
    ck_assert(!merkle_verify_inclusion(0, 0, &leaf, NULL, 0, &leaf));
    ck_assert(!merkle_verify_inclusion(1, 0, &leaf, &leaf, 1, &leaf));
    ck_assert(!merkle_verify_inclusion(2, 0, &leaf, NULL, 0, &leaf));
}
END_TEST

SUITE("merkle", NULL, NULL, TEST(roots_are_those_of_certificate_transparency),
      TEST(appending_tells_of_each_subtree_that_it_completes),
      TEST(a_leaf_outside_the_tree_is_not_included))
