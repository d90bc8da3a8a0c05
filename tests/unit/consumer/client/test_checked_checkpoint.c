/* libbourse takes a checkpoint only when the market's log key signed exactly that one. */
#include "consumer/client/client.h"
#include "ledger/checkpoint.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { TREE_SIZE = 7 };

static struct market market;
static uint8_t secret[crypto_sign_SECRETKEYBYTES];
static char note[CHECKPOINT_TEXT_SIZE];
static Bourse__V1__CheckpointReply reply;

static struct signature64 sign(void *context, const void *text, size_t length)
{
    struct signature64 signature;
    (void)context;
    ck_assert_int_eq(crypto_sign_detached(signature.bytes, NULL, text, length, secret), 0);
    return signature;
}

static void set_up(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    market = (struct market){.origin = "the-log"};
    ck_assert_int_eq(crypto_sign_keypair(market.log_key.bytes, secret), 0);
    const struct checkpoint checkpoint = {.origin = "the-log", .size = TREE_SIZE};
    const size_t length = checkpoint_write(&checkpoint, &market.log_key, sign, NULL, note);
    bourse__v1__checkpoint_reply__init(&reply);
    reply.note = (ProtobufCBinaryData){length, (uint8_t *)note};
    reply.tree_size = TREE_SIZE;
}

static void assert_refused(void)
{
    struct bourse_error error;
    ck_assert(!client_check_checkpoint(&market, &reply, &error));
    ck_assert_int_eq(error.status, BOURSE_UNVERIFIED);
    ck_assert_msg(strstr(error.text, "log key signed") != NULL, "%s", error.text);
}

START_TEST(the_markets_own_is_taken)
{
    struct bourse_error error;
    ck_assert(client_check_checkpoint(&market, &reply, &error));
}
END_TEST

START_TEST(another_keys_is_refused)
{
    uint8_t other[crypto_sign_SECRETKEYBYTES];
    ck_assert_int_eq(crypto_sign_keypair(market.log_key.bytes, other), 0);
    assert_refused();
}
END_TEST

START_TEST(another_logs_is_refused)
{
    (void)snprintf(market.origin, sizeof market.origin, "another-log");
    assert_refused();
}
END_TEST

START_TEST(another_size_is_refused)
{
    reply.tree_size++;
    assert_refused();
}
END_TEST

START_TEST(a_changed_or_cut_note_is_refused)
{
    note[strcspn(note, "\n") + 1] = '8'; /* the size, which is signed */
    reply.tree_size = 8;
    assert_refused();
    set_up();
    reply.note.len--;
    assert_refused();
    reply.note.len = 0;
    assert_refused();
}
END_TEST

SUITE("checked checkpoint", set_up, NULL, TEST(the_markets_own_is_taken),
      TEST(another_keys_is_refused), TEST(another_logs_is_refused), TEST(another_size_is_refused),
      TEST(a_changed_or_cut_note_is_refused))
