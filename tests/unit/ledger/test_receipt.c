#include "ledger/receipt.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "tests/support/suite.h"

#define CORPUS BOURSE_SOURCE_DIR "/tests/fuzz/corpus/"

/* Three results of one batch in a log of five leaves; the receipt is for the second result, leaf
 * 3. What is fuzzed begins with such receipts and their leaves: when their form changes,
 *
 *     BOURSE_WRITE_CORPUS=1 test_receipt
 *
 * writes that corpus anew. */
struct world {
    unsigned char provider_secret[crypto_sign_SECRETKEYBYTES];
    unsigned char log_secret[crypto_sign_SECRETKEYBYTES];
    struct key32 log_key;
    struct receipt receipt;
    char note[CHECKPOINT_TEXT_SIZE];
    char text[RECEIPT_TEXT_MAX];
    size_t length;
};

static uint8_t scratch[RECEIPT_TEXT_MAX];
static const uint8_t result_bytes[] = "the encoded result, as the provider sent it";

static struct signature64 sign_note(void *context, const void *text, size_t length)
{
    struct world *world = context;
    struct signature64 signature;
    ck_assert_int_eq(crypto_sign_detached(signature.bytes, NULL, text, length, world->log_secret),
                     0);
    return signature;
}

static void sign_batch(struct world *world)
{
    struct receipt *receipt = &world->receipt;
    struct hash32 first = merkle_leaf_hash("first", 5);
    struct hash32 second = merkle_leaf_hash(receipt->result, receipt->result_length);
    struct hash32 third = merkle_leaf_hash("third", 5);
    struct hash32 pair = merkle_node_hash(&first, &second);
    struct hash32 root = merkle_node_hash(&pair, &third);
    receipt->batch_path_length = 2;
    receipt->batch_sides = 1; /* first is to the left, third to the right */
    receipt->batch_path[0] = first;
    receipt->batch_path[1] = third;
    uint8_t message[18 + 16 + 32];
    memcpy(message, "bourse/results/v1", 18);
    memcpy(message + 18, receipt->cluster.bytes, 16);
    memcpy(message + 34, root.bytes, 32);
    ck_assert_int_eq(crypto_sign_detached(receipt->signature.bytes, NULL, message, sizeof message,
                                          world->provider_secret),
                     0);
}

static void log_leaf(struct world *world)
{
    struct receipt *receipt = &world->receipt;
    uint8_t leaf[RECORD_LEAF_MAX];
    size_t leaf_length = record_leaf(&receipt->leaf, leaf);
    struct hash32 hashes[5];
    for (size_t i = 0; i < 5; i++) {
        hashes[i] = merkle_leaf_hash(&i, 1);
    }
    hashes[3] = merkle_leaf_hash(leaf, leaf_length);
    struct hash32 left = merkle_node_hash(&hashes[0], &hashes[1]);
    struct hash32 right = merkle_node_hash(&hashes[2], &hashes[3]);
    struct hash32 four = merkle_node_hash(&left, &right);
    struct checkpoint checkpoint = {
        .origin = "bourse.example/log", .size = 5, .root = merkle_node_hash(&four, &hashes[4])};
    receipt->leaf_index = 3;
    receipt->path_length = 3;
    receipt->path[0] = hashes[2];
    receipt->path[1] = left;
    receipt->path[2] = hashes[4];
    checkpoint_write(&checkpoint, &world->log_key, sign_note, world, world->note);
    receipt->checkpoint = world->note;
}

static struct world *world_of(enum check_level level)
{
    struct world *world = calloc(1, sizeof *world);
    unsigned char seed[32];
    struct receipt *receipt = &world->receipt;
    memset(seed, 1, sizeof seed); /* as tests/fuzz/fuzz_receipt.c knows it */
    crypto_sign_seed_keypair(world->log_key.bytes, world->log_secret, seed);
    seed[0] = 2;
    crypto_sign_seed_keypair(receipt->leaf.provider.bytes, world->provider_secret, seed);
    memset(receipt->cluster.bytes, 0xc1, 16);
    receipt->result = result_bytes;
    receipt->result_length = sizeof result_bytes - 1;
    receipt->leaf.kind = LEDGER_RESULT;
    receipt->leaf.log_index = 17;
    receipt->leaf.log_time_ns = 1700000000000000000;
    memset(receipt->leaf.job.bytes, 0x0b, 16);
    receipt->leaf.index = 41;
    receipt->leaf.attempt = 1;
    receipt->leaf.lease = 9;
    memset(receipt->leaf.owner.bytes, 0x0c, 32);
    receipt->leaf.hash = sha256_of(receipt->result, receipt->result_length);
    receipt->leaf.price_micro = 120000;
    receipt->leaf.paid_ns = 1500000000;
    receipt->leaf.charge_micro = 50;
    receipt->leaf.batch_index = 17;
    if (level == CHECK_CHEAP) {
        receipt->leaf.batch_index = 12; /* held until it was checked */
        receipt->leaf.level = CHECK_CHEAP;
        memset(receipt->leaf.check.bytes, 0x5e, 32);
    }
    sign_batch(world);
    log_leaf(world);
    world->length = receipt_write(receipt, world->text, sizeof world->text);
    ck_assert_uint_gt(world->length, 0);
    return world;
}

static struct world *world_create(void)
{
    return world_of(CHECK_CHEAP);
}

static enum receipt_status verify(const struct world *world, const char *origin)
{
    struct receipt receipt;
    return receipt_verify(world->text, world->length, origin, &world->log_key, scratch,
                          sizeof scratch, &receipt);
}

START_TEST(a_receipt_verifies_with_nothing_but_the_log_key)
{
    struct world *world = world_create();
    struct receipt receipt;
    ck_assert_int_eq(receipt_verify(world->text, world->length, "bourse.example/log",
                                    &world->log_key, scratch, sizeof scratch, &receipt),
                     RECEIPT_OK);
    ck_assert_uint_eq(receipt.leaf.index, 41);
    ck_assert_uint_eq(receipt.leaf_index, 3);
    ck_assert_int_eq(receipt.leaf.charge_micro, 50);
    ck_assert_uint_eq(receipt.leaf.batch_index, 12);
    ck_assert_uint_eq(receipt.leaf.level, CHECK_CHEAP);
    ck_assert_uint_eq(receipt.leaf.check.bytes[31], 0x5e);
    ck_assert_uint_eq(receipt.result_length, sizeof result_bytes - 1);
    ck_assert_mem_eq(receipt.result, result_bytes, receipt.result_length);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_OK);
    free(world);
}
END_TEST

START_TEST(any_changed_byte_is_refused)
{
    struct world *world = world_create();
    for (size_t i = 0; i < world->length; i++) {
        char kept = world->text[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            world->text[i] = (char)(kept ^ (1 << bit));
            ck_assert_msg(verify(world, NULL) != RECEIPT_OK, "byte %zu, bit %u", i, bit);
        }
        world->text[i] = kept;
    }
    ck_assert_int_eq(verify(world, NULL), RECEIPT_OK);
    free(world);
}
END_TEST

START_TEST(missing_and_added_bytes_are_refused)
{
    struct world *world = world_create();
    size_t whole = world->length;
    for (size_t i = 0; i < whole; i++) {
        world->length = i;
        ck_assert_int_ne(verify(world, NULL), RECEIPT_OK);
    }
    world->length = whole + 1;
    ck_assert_int_ne(verify(world, NULL), RECEIPT_OK);
    free(world);
}
END_TEST

START_TEST(another_origin_or_log_key_is_a_bad_checkpoint)
{
    struct world *world = world_create();
    ck_assert_int_eq(verify(world, "other.example/log"), RECEIPT_BAD_CHECKPOINT);
    world->log_key.bytes[0] ^= 1;
    ck_assert_int_eq(verify(world, NULL), RECEIPT_BAD_CHECKPOINT);
    free(world);
}
END_TEST

START_TEST(a_leaf_that_is_elsewhere_is_not_included)
{
    struct world *world = world_create();
    world->receipt.leaf.charge_micro++;
    world->length = receipt_write(&world->receipt, world->text, sizeof world->text);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_NOT_INCLUDED);
    free(world);
}
END_TEST

START_TEST(a_result_that_was_not_logged_is_wrong)
{
    struct world *world = world_create();
    world->receipt.result = (const uint8_t *)"The encoded result, as the provider sent it";
    sign_batch(world);
    world->length = receipt_write(&world->receipt, world->text, sizeof world->text);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_WRONG_RESULT);
    free(world);
}
END_TEST

START_TEST(a_result_that_another_key_signed_is_refused)
{
    struct world *world = world_create();
    unsigned char seed[32] = {3};
    struct key32 other;
    crypto_sign_seed_keypair(other.bytes, world->provider_secret, seed);
    sign_batch(world);
    world->length = receipt_write(&world->receipt, world->text, sizeof world->text);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_BAD_SIGNATURE);
    free(world);
}
END_TEST

START_TEST(another_cluster_is_refused)
{
    struct world *world = world_create();
    world->receipt.cluster.bytes[0] ^= 1;
    world->length = receipt_write(&world->receipt, world->text, sizeof world->text);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_BAD_SIGNATURE);
    free(world);
}
END_TEST

/* Knowledge of other receipts spares a signature, and never lets a changed receipt pass. */
START_TEST(what_is_known_of_other_receipts_lets_no_changed_one_pass)
{
    struct world *world = world_create();
    struct receipt_known *known = calloc(1, sizeof *known);
    struct receipt *receipt = &world->receipt;
    const struct receipt whole = *receipt;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(receipt_check(receipt, "bourse.example/log", &world->log_key, known),
                         RECEIPT_OK);
    }
    ck_assert(known->has_checkpoint);
    ck_assert(known->has_batch);

    receipt->signature.bytes[0] ^= 1;
    ck_assert_int_eq(receipt_check(receipt, NULL, &world->log_key, known), RECEIPT_BAD_SIGNATURE);
    *receipt = whole;
    receipt->batch_path[0].bytes[0] ^= 1;
    ck_assert_int_eq(receipt_check(receipt, NULL, &world->log_key, known), RECEIPT_BAD_SIGNATURE);
    *receipt = whole;
    receipt->cluster.bytes[0] ^= 1;
    ck_assert_int_eq(receipt_check(receipt, NULL, &world->log_key, known), RECEIPT_BAD_SIGNATURE);
    *receipt = whole;
    receipt->leaf.charge_micro++;
    ck_assert_int_eq(receipt_check(receipt, NULL, &world->log_key, known), RECEIPT_NOT_INCLUDED);
    *receipt = whole;
    world->note[strlen(world->note) - 2] ^= 1;
    ck_assert_int_eq(receipt_check(receipt, NULL, &world->log_key, known), RECEIPT_BAD_CHECKPOINT);

    /* Another provider in the leaf: the log has the leaf, and the batch is not the provider's. */
    receipt->leaf.provider.bytes[5] ^= 1;
    log_leaf(world);
    ck_assert_int_eq(receipt_check(receipt, NULL, &world->log_key, known), RECEIPT_BAD_SIGNATURE);
    free(known);
    free(world);
}
END_TEST

START_TEST(paths_share_what_is_next_to_the_root)
{
    const struct hash32 a = {{1}};
    const struct hash32 b = {{2}};
    const struct hash32 c = {{3}};
    const struct hash32 path[] = {a, b, c};
    const struct hash32 other[] = {c, b, c};
    const struct hash32 shorter[] = {b, c};
    ck_assert_uint_eq(receipt_shared_path(path, 3, other, 3), 2);
    ck_assert_uint_eq(receipt_shared_path(path, 3, shorter, 2), 2);
    ck_assert_uint_eq(receipt_shared_path(path, 3, path, 3), 3);
    ck_assert_uint_eq(receipt_shared_path(path, 2, path, 3), 0);
    ck_assert_uint_eq(receipt_shared_path(path, 3, NULL, 0), 0);
}
END_TEST

START_TEST(a_receipt_that_does_not_fit_is_not_written)
{
    struct world *world = world_create();
    size_t needed = world->length + 1;
    ck_assert_uint_eq(receipt_write(&world->receipt, world->text, needed), world->length);
    for (size_t capacity = 1; capacity < needed; capacity += 7) {
        ck_assert_uint_eq(receipt_write(&world->receipt, world->text, capacity), 0);
    }
    ck_assert_uint_eq(receipt_write(&world->receipt, world->text, needed - 1), 0);
    free(world);
}
END_TEST

START_TEST(the_largest_receipt_fits)
{
    struct world *world = world_create();
    uint8_t *result = calloc(1, RECEIPT_RESULT_MAX);
    struct receipt *receipt = &world->receipt;
    receipt->result = result;
    receipt->result_length = RECEIPT_RESULT_MAX;
    receipt->batch_path_length = RECEIPT_BATCH_PATH_MAX;
    receipt->path_length = MERKLE_LEVELS_MAX;
    receipt->leaf_index = UINT64_MAX;
    world->length = receipt_write(receipt, world->text, sizeof world->text);
    ck_assert_uint_gt(world->length, RECEIPT_RESULT_MAX);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_NOT_INCLUDED);
    free(result);
    free(world);
}
END_TEST

/* ---------------------------------------------------------------- what is fuzzed */

static const struct {
    enum check_level level;
    const char *name;
} corpus[] = {{CHECK_NONE, "unchecked"}, {CHECK_CHEAP, "checked"}};
enum { CORPUS_COUNT = sizeof corpus / sizeof corpus[0] };

static void corpus_path(char ret_path[512], const char *subject, const char *name)
{
    (void)snprintf(ret_path, 512, CORPUS "%s/%s", subject, name);
}

static void write_corpus(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wbe");
    ck_assert_msg(file != NULL && fwrite(bytes, 1, length, file) == length, "%s", path);
    ck_assert_int_eq(fclose(file), 0);
}

static void assert_holds(const char *subject, const char *name, const void *bytes, size_t length)
{
    static uint8_t held[RECEIPT_TEXT_MAX];
    char path[512];
    corpus_path(path, subject, name);
    if (getenv("BOURSE_WRITE_CORPUS") != NULL) {
        write_corpus(path, bytes, length);
    }
    FILE *file = fopen(path, "rbe");
    ck_assert_msg(file != NULL, "%s is missing", path);
    size_t size = fread(held, 1, sizeof held, file);
    (void)fclose(file); /* read only */
    ck_assert_msg(size == length && memcmp(held, bytes, length) == 0,
                  "%s is of another form: BOURSE_WRITE_CORPUS=1 writes it anew", path);
}

START_TEST(the_fuzzed_corpus_is_of_the_present_form)
{
    uint8_t leaf[RECORD_LEAF_MAX];
    struct ledger_record record;
    struct world *world = world_of(corpus[_i].level);
    size_t length = record_leaf(&world->receipt.leaf, leaf);
    ck_assert_int_eq(verify(world, NULL), RECEIPT_OK);
    ck_assert(record_read_result(leaf, length, &record));
    ck_assert_uint_eq(record.level, corpus[_i].level);
    assert_holds("receipt", corpus[_i].name, world->text, world->length);
    assert_holds("leaf", corpus[_i].name, leaf, length);
    free(world);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("receipt");
    TCase *tests = tcase_create("receipt");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, a_receipt_verifies_with_nothing_but_the_log_key);
    tcase_add_test(tests, any_changed_byte_is_refused);
    tcase_add_test(tests, missing_and_added_bytes_are_refused);
    tcase_add_test(tests, another_origin_or_log_key_is_a_bad_checkpoint);
    tcase_add_test(tests, a_leaf_that_is_elsewhere_is_not_included);
    tcase_add_test(tests, a_result_that_was_not_logged_is_wrong);
    tcase_add_test(tests, a_result_that_another_key_signed_is_refused);
    tcase_add_test(tests, another_cluster_is_refused);
    tcase_add_test(tests, what_is_known_of_other_receipts_lets_no_changed_one_pass);
    tcase_add_test(tests, paths_share_what_is_next_to_the_root);
    tcase_add_test(tests, a_receipt_that_does_not_fit_is_not_written);
    tcase_add_test(tests, the_largest_receipt_fits);
    tcase_add_loop_test(tests, the_fuzzed_corpus_is_of_the_present_form, 0, CORPUS_COUNT);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
