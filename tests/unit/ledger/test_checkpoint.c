#include "ledger/checkpoint.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"
#include "tests/support/suite.h"

/* Made with OpenSSL from the seed 00 01 02 .. 1f, by the words of the C2SP signed-note and
 * tlog-checkpoint specifications. */
static const char golden_note[] =
    "bourse.example/log\n"
    "123456789\n"
    "SBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=\n"
    "\n"
    "\xe2\x80\x94 bourse.example/log QcvTpto7lQxO00Ct+VNte4tJifVJgXRCvB69vDxbWnqEpIppS0S+"
    "IE7rS4PlwCTZWvuCDgy9oWZ8ohmVXzgaX1TZ4A8=\n";
static const char golden_verifier[] =
    "bourse.example/log+41cbd3a6+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";

struct signer {
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
    struct key32 key;
};

static struct signer golden_signer(void)
{
    struct signer signer;
    unsigned char seed[crypto_sign_SEEDBYTES];
    for (size_t i = 0; i < sizeof seed; i++) {
        seed[i] = (unsigned char)i;
    }
    ck_assert_int_eq(crypto_sign_seed_keypair(signer.key.bytes, signer.secret, seed), 0);
    return signer;
}

static struct signature64 sign(void *context, const void *text, size_t length)
{
    const struct signer *signer = context;
    struct signature64 signature;
    ck_assert_int_eq(crypto_sign_detached(signature.bytes, NULL, text, length, signer->secret), 0);
    return signature;
}

static struct checkpoint golden_checkpoint(void)
{
    return (struct checkpoint){
        .origin = "bourse.example/log", .size = 123456789, .root = sha256_of("root", 4)};
}

START_TEST(a_note_is_written_as_the_specification_says)
{
    struct signer signer = golden_signer();
    struct checkpoint checkpoint = golden_checkpoint();
    char text[CHECKPOINT_TEXT_SIZE];
    size_t length = checkpoint_write(&checkpoint, &signer.key, sign, &signer, text);
    ck_assert_uint_eq(length, strlen(golden_note));
    ck_assert_str_eq(text, golden_note);
}
END_TEST

START_TEST(what_was_written_is_read)
{
    struct signer signer = golden_signer();
    struct checkpoint expected = golden_checkpoint();
    struct checkpoint checkpoint;
    ck_assert(checkpoint_read(golden_note, strlen(golden_note), &signer.key, &checkpoint));
    ck_assert_str_eq(checkpoint.origin, expected.origin);
    ck_assert_uint_eq(checkpoint.size, expected.size);
    ck_assert(hash32_equal(&checkpoint.root, &expected.root));
}
END_TEST

START_TEST(any_changed_byte_is_refused)
{
    struct signer signer = golden_signer();
    struct checkpoint checkpoint;
    size_t length = strlen(golden_note);
    for (size_t i = 0; i < length; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            char text[CHECKPOINT_TEXT_SIZE];
            memcpy(text, golden_note, length);
            text[i] = (char)(text[i] ^ (1 << bit));
            ck_assert(!checkpoint_read(text, length, &signer.key, &checkpoint));
        }
    }
}
END_TEST

START_TEST(missing_and_added_bytes_are_refused)
{
    struct signer signer = golden_signer();
    struct checkpoint checkpoint;
    char text[CHECKPOINT_TEXT_SIZE * 2] = {0};
    size_t length = strlen(golden_note);
    for (size_t i = 0; i < length; i++) {
        ck_assert(!checkpoint_read(golden_note, i, &signer.key, &checkpoint));
    }
    memcpy(text, golden_note, length);
    memcpy(text + length, strchr(golden_note, '\xe2'), strlen(strchr(golden_note, '\xe2')));
    ck_assert(!checkpoint_read(text, strlen(text), &signer.key, &checkpoint));
    ck_assert(!checkpoint_read(text, length + 1, &signer.key, &checkpoint));
}
END_TEST

START_TEST(another_key_is_refused)
{
    struct signer signer = golden_signer();
    struct checkpoint checkpoint;
    signer.key.bytes[3] ^= 1;
    ck_assert(!checkpoint_read(golden_note, strlen(golden_note), &signer.key, &checkpoint));
}
END_TEST

/* A text that says the same in other bytes must not pass, even when it is signed. */
START_TEST(a_size_has_one_spelling)
{
    struct signer signer = golden_signer();
    static const char *const sizes[] = {"0123456789", "+123456789", "", "123456789 ",
                                        "18446744073709551616"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[CHECKPOINT_TEXT_SIZE];
        int body = snprintf(text, sizeof text, "bourse.example/log\n%s\n%s\n", sizes[i],
                            "SBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=");
        struct signature64 signature = sign(&signer, text, (size_t)body);
        uint8_t bytes[68] = {0x41, 0xcb, 0xd3, 0xa6};
        char encoded[93];
        memcpy(bytes + 4, signature.bytes, 64);
        text_base64(bytes, sizeof bytes, encoded);
        int length = body + snprintf(text + body, sizeof text - (size_t)body,
                                     "\n\xe2\x80\x94 bourse.example/log %s\n", encoded);
        struct checkpoint checkpoint;
        ck_assert(!checkpoint_read(text, (size_t)length, &signer.key, &checkpoint));
    }
}
END_TEST

START_TEST(origins_have_no_spaces_and_no_plus)
{
    ck_assert(checkpoint_origin_valid("bourse.example/log"));
    ck_assert(!checkpoint_origin_valid(""));
    ck_assert(!checkpoint_origin_valid("a b"));
    ck_assert(!checkpoint_origin_valid("a+b"));
    ck_assert(!checkpoint_origin_valid("a\nb"));
    ck_assert(!checkpoint_origin_valid("caf\xc3\xa9"));
    ck_assert(!checkpoint_origin_valid(
        "0123456789012345678901234567890123456789012345678901234567890123"));
    ck_assert(
        checkpoint_origin_valid("012345678901234567890123456789012345678901234567890123456789012"));
}
END_TEST

START_TEST(verifier_keys_round_trip)
{
    struct signer signer = golden_signer();
    char text[CHECKPOINT_TEXT_SIZE];
    char origin[CHECKPOINT_ORIGIN_SIZE];
    struct key32 key;
    checkpoint_verifier("bourse.example/log", &signer.key, text);
    ck_assert_str_eq(text, golden_verifier);
    ck_assert(checkpoint_verifier_read(text, origin, &key));
    ck_assert_str_eq(origin, "bourse.example/log");
    ck_assert(key32_equal(&key, &signer.key));
}
END_TEST

/* Public verifier keys of two well-known signers: their key ids are as ours would be. */
START_TEST(others_verifier_keys_are_read)
{
    char origin[CHECKPOINT_ORIGIN_SIZE];
    struct key32 key;
    ck_assert(checkpoint_verifier_read(
        "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8", origin, &key));
    ck_assert_str_eq(origin, "sum.golang.org");
    ck_assert(checkpoint_verifier_read(
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", origin, &key));
    ck_assert(!checkpoint_verifier_read(
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", origin, &key));
    ck_assert(!checkpoint_verifier_read("PeterNeumann+c74f20a3+", origin, &key));
    ck_assert(!checkpoint_verifier_read("PeterNeumann+c7", origin, &key));
    ck_assert(!checkpoint_verifier_read("", origin, &key));
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("checkpoint");
    tcase_add_test(tests, a_note_is_written_as_the_specification_says);
    tcase_add_test(tests, what_was_written_is_read);
    tcase_add_test(tests, any_changed_byte_is_refused);
    tcase_add_test(tests, missing_and_added_bytes_are_refused);
    tcase_add_test(tests, another_key_is_refused);
    tcase_add_test(tests, a_size_has_one_spelling);
    tcase_add_test(tests, origins_have_no_spaces_and_no_plus);
    tcase_add_test(tests, verifier_keys_round_trip);
    tcase_add_test(tests, others_verifier_keys_are_read);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
