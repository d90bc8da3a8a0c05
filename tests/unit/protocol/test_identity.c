#include "protocol/identity.h"

#include "base/text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* RFC 8032 section 7.1, tests 1, 2, 3 and "SHA(abc)". */
struct vector {
    const char *seed;
    const char *key;
    const char *message;
    const char *signature;
};

static const struct vector vectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
     "46b"
     "d25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
     "d8c"
     "387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
     "659"
     "4a7c15e9716ed28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3fee"
     "bbd"
     "454d4423643ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e"
     "030"
     "3dca179c138ac17ad9bef1177331a704"},
};
enum { VECTOR_COUNT = sizeof vectors / sizeof vectors[0] };

static size_t unhex(const char *text, uint8_t *ret_bytes)
{
    size_t length = strlen(text) / 2;
    ck_assert(text_unhex(text, ret_bytes, length));
    return length;
}

static struct key32 key_of(const char *text)
{
    struct key32 key;
    ck_assert(text_unhex(text, key.bytes, sizeof key.bytes));
    return key;
}

static struct identity *identity_of(const char *seed_text)
{
    uint8_t seed[32];
    unhex(seed_text, seed);
    return identity_create(seed);
}

START_TEST(rfc_8032_vectors_hold)
{
    const struct vector *vector = &vectors[_i];
    uint8_t message[128];
    size_t length = unhex(vector->message, message);
    struct signature64 expected;
    unhex(vector->signature, expected.bytes);
    struct key32 key = key_of(vector->key);

    struct identity *identity = identity_of(vector->seed);
    ck_assert(key32_equal(identity_key(identity), &key));
    struct signature64 signature = identity_sign(identity, message, length);
    ck_assert_mem_eq(signature.bytes, expected.bytes, 64);
    ck_assert(identity_verify(&key, message, length, &expected));
    ck_assert(identity_key_valid(&key));
    identity_destroy(&identity);
    ck_assert_ptr_null(identity);
}
END_TEST

START_TEST(any_changed_bit_of_a_signature_is_refused)
{
    const struct vector *vector = &vectors[2];
    uint8_t message[128];
    size_t length = unhex(vector->message, message);
    struct signature64 signature;
    unhex(vector->signature, signature.bytes);
    struct key32 key = key_of(vector->key);
    for (size_t bit = 0; bit < 512; bit++) {
        signature.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert(!identity_verify(&key, message, length, &signature));
        signature.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    ck_assert(identity_verify(&key, message, length, &signature));
}
END_TEST

START_TEST(a_signature_has_one_form)
{
    /* S + L verifies in careless libraries; it would be a second signature of the same bytes. */
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                      0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                      0,    0,    0,    0,    0,    0,    0,    0,
                                      0,    0,    0,    0,    0,    0,    0,    0x10};
    const struct vector *vector = &vectors[1];
    uint8_t message[128];
    size_t length = unhex(vector->message, message);
    struct signature64 signature;
    unhex(vector->signature, signature.bytes);
    sodium_add(signature.bytes + 32, order, sizeof order);
    struct key32 key = key_of(vector->key);
    ck_assert(!identity_verify(&key, message, length, &signature));
}
END_TEST

START_TEST(the_transport_key_is_the_same_from_secret_and_public_half)
{
    struct identity *identity = identity_of(vectors[0].seed);
    struct key32 transport;
    ck_assert(identity_transport_of(identity_key(identity), &transport));
    ck_assert(key32_equal(&transport, identity_transport(identity)));

    struct key32 again;
    ck_assert_int_eq(crypto_scalarmult_base(again.bytes, identity_transport_secret(identity)), 0);
    ck_assert(key32_equal(&again, &transport));
    identity_destroy(&identity);
}
END_TEST

/* Points that are not keys: all eight of small order, not canonical, not on the curve. */
static const char *const wrong_keys[] = {
    "0100000000000000000000000000000000000000000000000000000000000000", /* order 1 */
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* order 2 */
    "0000000000000000000000000000000000000000000000000000000000000000", /* order 4 */
    "0000000000000000000000000000000000000000000000000000000000000080", /* order 4 */
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", /* order 8 */
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85", /* order 8 */
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", /* order 8 */
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", /* order 8 */
    "0100000000000000000000000000000000000000000000000000000000000080", /* x = 0 with a sign */
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* y = p */
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* y = p + 1 */
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", /* y = 2^255 - 1 */
    "0200000000000000000000000000000000000000000000000000000000000000", /* not on the curve */
};
enum { WRONG_KEY_COUNT = sizeof wrong_keys / sizeof wrong_keys[0] };

START_TEST(a_point_of_no_use_is_no_key)
{
    struct key32 key = key_of(wrong_keys[_i]);
    struct key32 transport = {{42}};
    ck_assert(!identity_key_valid(&key));
    ck_assert(!identity_transport_of(&key, &transport));
    ck_assert_uint_eq(transport.bytes[0], 42);
}
END_TEST

START_TEST(a_point_outside_the_main_subgroup_is_no_key)
{
    /* A good key plus each point of small order but the first: orders 2L, 4L and 8L. */
    struct key32 good = key_of(vectors[_i % VECTOR_COUNT].key);
    for (size_t i = 1; i < 8; i++) {
        struct key32 torsion = key_of(wrong_keys[i]);
        struct key32 mixed;
        ck_assert_int_eq(crypto_core_ed25519_add(mixed.bytes, good.bytes, torsion.bytes), 0);
        ck_assert(!key32_equal(&mixed, &good));
        ck_assert_msg(!identity_key_valid(&mixed), "torsion point %zu", i);
    }
}
END_TEST

START_TEST(fresh_keys_are_valid)
{
    for (uint8_t i = 0; i < 32; i++) {
        uint8_t seed[32] = {i, 0xaa};
        struct identity *identity = identity_create(seed);
        ck_assert(identity_key_valid(identity_key(identity)));
        identity_destroy(&identity);
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("identity");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, rfc_8032_vectors_hold, 0, VECTOR_COUNT);
    tcase_add_test(tests, any_changed_bit_of_a_signature_is_refused);
    tcase_add_test(tests, a_signature_has_one_form);
    tcase_add_test(tests, the_transport_key_is_the_same_from_secret_and_public_half);
    tcase_add_loop_test(tests, a_point_of_no_use_is_no_key, 0, WRONG_KEY_COUNT);
    tcase_add_loop_test(tests, a_point_outside_the_main_subgroup_is_no_key, 0, VECTOR_COUNT);
    tcase_add_test(tests, fresh_keys_are_valid);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
