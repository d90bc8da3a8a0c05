#include "protocol/results.h"

#include "base/energy.h"
#include "base/sha256.h"
#include "protocol/codec.h"
#include "tests/support/results_path.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const struct id128 cluster = {{1}};

static void fill_leaves(struct hash32 *ret_leaves, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t result[2] = {(uint8_t)i, (uint8_t)(i >> 8)};
        ret_leaves[i] = results_leaf(result, sizeof result);
    }
}

START_TEST(every_leaf_of_every_tree_leads_to_the_root)
{
    struct hash32 leaves[LIMIT_RESULTS];
    fill_leaves(leaves, LIMIT_RESULTS);
    for (size_t count = 1; count <= LIMIT_RESULTS; count++) {
        struct hash32 root = results_root(leaves, count);
        for (size_t index = 0; index < count; index++) {
            struct hash32 path[RESULTS_PATH_MAX];
            size_t length = results_path(leaves, count, index, path);
            ck_assert_uint_le(length, RESULTS_PATH_MAX);
            struct hash32 found;
            ck_assert(results_root_from_path(&leaves[index], count, index, path, length, &found));
            ck_assert(hash32_equal(&found, &root));
        }
    }
}
END_TEST

START_TEST(a_wrong_leaf_index_path_or_length_does_not)
{
    struct hash32 leaves[LIMIT_RESULTS];
    fill_leaves(leaves, LIMIT_RESULTS);
    const size_t counts[] = {2, 3, 5, 8, 13, 255, 256};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t count = counts[i];
        struct hash32 root = results_root(leaves, count);
        struct hash32 path[RESULTS_PATH_MAX + 1] = {0};
        size_t index = count / 2;
        size_t length = results_path(leaves, count, index, path);
        struct hash32 found;

        ck_assert(results_root_from_path(&leaves[0], count, index, path, length, &found));
        ck_assert(!hash32_equal(&found, &root));
        for (size_t level = 0; level < length; level++) {
            path[level].bytes[31] ^= 1;
            ck_assert(results_root_from_path(&leaves[index], count, index, path, length, &found));
            ck_assert(!hash32_equal(&found, &root));
            path[level].bytes[31] ^= 1;
        }
        ck_assert(!results_root_from_path(&leaves[index], count, index, path, length + 1, &found));
        ck_assert(!results_root_from_path(&leaves[index], count, index, path, length - 1, &found));
        ck_assert(!results_root_from_path(&leaves[index], count, count, path, length, &found));
    }
    struct hash32 found;
    ck_assert(!results_root_from_path(&leaves[0], 0, 0, NULL, 0, &found));
    ck_assert(!results_root_from_path(&leaves[0], LIMIT_RESULTS + 1, 0, leaves, 9, &found));
}
END_TEST

START_TEST(the_root_is_rfc_6962)
{
    struct hash32 leaves[3];
    fill_leaves(leaves, 3);
    uint8_t left[65] = {1};
    memcpy(left + 1, leaves[0].bytes, 32);
    memcpy(left + 33, leaves[1].bytes, 32);
    struct hash32 left_hash = sha256_of(left, sizeof left);
    uint8_t top[65] = {1};
    memcpy(top + 1, left_hash.bytes, 32);
    memcpy(top + 33, leaves[2].bytes, 32);
    struct hash32 expected = sha256_of(top, sizeof top);
    struct hash32 root = results_root(leaves, 3);
    ck_assert(hash32_equal(&root, &expected));

    uint8_t leaf[3] = {0, 0, 0};
    struct hash32 first = sha256_of(leaf, sizeof leaf);
    ck_assert(hash32_equal(&leaves[0], &first));
}
END_TEST

START_TEST(one_signature_covers_the_root_for_one_cluster)
{
    ck_assert_int_ge(sodium_init(), 0);
    static const uint8_t seed[32] = {3};
    struct identity *identity = identity_create(seed);
    struct hash32 leaves[5];
    fill_leaves(leaves, 5);
    struct hash32 root = results_root(leaves, 5);
    struct signature64 signature = results_sign(identity, &cluster, &root);
    ck_assert(results_verify(identity_key(identity), &cluster, &root, &signature));

    struct id128 other = {{2}};
    ck_assert(!results_verify(identity_key(identity), &other, &root, &signature));
    root.bytes[0] ^= 1;
    ck_assert(!results_verify(identity_key(identity), &cluster, &root, &signature));
    identity_destroy(&identity);
}
END_TEST

/* Makes a result with every required field. `zeros` has 32 bytes. */
static Bourse__V1__Result result_of(uint8_t *zeros)
{
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = result.job = result.device = (ProtobufCBinaryData){.len = 16, .data = zeros};
    result.provider = result.manifest = (ProtobufCBinaryData){.len = 32, .data = zeros};
    result.attempt = 1;
    result.lease = 1;
    return result;
}

START_TEST(a_level_of_isolation_that_is_none_is_malformed)
{
    uint8_t zeros[32] = {0};
    for (uint32_t level = 0; level <= 4; level++) {
        Bourse__V1__Result result = result_of(zeros);
        result.has_isolation = true;
        result.isolation = level;
        size_t length = 0;
        uint8_t *bytes = codec_encode(&result.base, &length);
        Bourse__V1__Result *decoded = NULL;
        struct codec_error error = {.field = ""};
        ck_assert_ptr_nonnull(bytes);
        const bool is_good = codec_decode_result(bytes, length, &decoded, &error) == CODEC_OK;
        ck_assert_msg(is_good == (level <= 3), "level %u: %s", level, error.field);
        ck_assert(!is_good || (decoded->has_isolation && decoded->isolation == level));
        codec_result_free(&decoded);
        free(bytes);
    }
}
END_TEST

/* Results of older agents have no source, and any energy. */
START_TEST(an_energy_with_a_source_has_a_bound)
{
    static const struct {
        bool has_energy, has_source, is_good;
        int64_t energy_uj;
        uint32_t source;
    } ways[] = {{false, false, true, 0, 0},
                {true, false, true, INT64_MAX, 0},
                {true, true, true, 0, ENERGY_MEASURED},
                {true, true, true, LIMIT_ENERGY_UJ, ENERGY_BY_CATALOGUE},
                {true, true, false, LIMIT_ENERGY_UJ + 1, ENERGY_BY_OWNER},
                {true, true, false, -1, ENERGY_MEASURED},
                {true, true, false, 5, ENERGY_UNSTATED},
                {true, true, false, 5, ENERGY_SOURCES},
                {false, true, false, 0, ENERGY_MEASURED}};
    uint8_t zeros[32] = {0};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        Bourse__V1__Result result = result_of(zeros);
        result.has_energy_uj = ways[i].has_energy;
        result.energy_uj = ways[i].energy_uj;
        result.has_energy_source = ways[i].has_source;
        result.energy_source = ways[i].source;
        size_t length = 0;
        uint8_t *bytes = codec_encode(&result.base, &length);
        Bourse__V1__Result *decoded = NULL;
        struct codec_error error = {.field = ""};
        ck_assert_ptr_nonnull(bytes);
        ck_assert_msg((codec_decode_result(bytes, length, &decoded, &error) == CODEC_OK) ==
                          ways[i].is_good,
                      "way %zu: %s", i, error.field);
        codec_result_free(&decoded);
        free(bytes);
    }
}
END_TEST

SUITE("results", NULL, NULL, TEST(every_leaf_of_every_tree_leads_to_the_root),
      TEST(a_wrong_leaf_index_path_or_length_does_not), TEST(the_root_is_rfc_6962),
      TEST(one_signature_covers_the_root_for_one_cluster),
      TEST(an_energy_with_a_source_has_a_bound),
      TEST(a_level_of_isolation_that_is_none_is_malformed))
