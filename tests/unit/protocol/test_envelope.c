#include "protocol/envelope.h"

#include "protocol/identity.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t body[] = "a body of some bytes";
static const struct id128 cluster = {{0xc1, 0x05}};

static struct envelope example(void)
{
    return (struct envelope){.version = ENVELOPE_VERSION,
                             .type = 64,
                             .session = 0x1122334455667788,
                             .sequence = 7,
                             .id = {{1, 2, 3}},
                             .created_ms = 1700000000123,
                             .body = body,
                             .body_length = sizeof body};
}

static struct identity *signer(void)
{
    static const uint8_t seed[32] = {9, 8, 7};
    ck_assert_int_ge(sodium_init(), 0);
    return identity_create(seed);
}

START_TEST(what_is_written_is_read_again)
{
    struct envelope out = example();
    uint8_t message[256];
    envelope_write(&out, message, sizeof message);

    struct envelope in;
    ck_assert_int_eq(envelope_read(message, envelope_size(&out), sizeof body, &in), ENVELOPE_OK);
    ck_assert_uint_eq(in.version, out.version);
    ck_assert_uint_eq(in.type, out.type);
    ck_assert_uint_eq(in.session, out.session);
    ck_assert_uint_eq(in.sequence, out.sequence);
    ck_assert(id128_equal(&in.id, &out.id));
    ck_assert_int_eq(in.created_ms, out.created_ms);
    ck_assert(!in.is_signed);
    ck_assert_uint_eq(in.body_length, sizeof body);
    ck_assert_ptr_eq(in.body, message + ENVELOPE_HEAD_BYTES);
}
END_TEST

START_TEST(the_fields_stand_at_their_offsets)
{
    struct envelope out = example();
    uint8_t message[256];
    envelope_write(&out, message, sizeof message);

    ck_assert_mem_eq(message, "BRS1\x01\x00\x40\x00\x88\x77\x66\x55\x44\x33\x22\x11\x07\x00", 18);
    ck_assert_mem_eq(message + 24, out.id.bytes, 16);
    ck_assert_uint_eq(message[48], sizeof body);
    ck_assert_uint_eq(message[52], 0);
    ck_assert_mem_eq(message + 120, body, sizeof body);
}
END_TEST

START_TEST(every_cut_and_every_extra_byte_is_refused)
{
    struct envelope out = example();
    uint8_t message[256] = {0};
    envelope_write(&out, message, sizeof message);
    size_t length = envelope_size(&out);

    struct envelope in;
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *exact =
            malloc(cut == 0 ? 1 : cut); /* so that the sanitizer sees a read past the end */
        memcpy(exact, message, cut);
        ck_assert_int_eq(envelope_read(exact, cut, sizeof body, &in), ENVELOPE_SHORT);
        free(exact);
    }
    ck_assert_int_eq(envelope_read(message, length + 1, sizeof body, &in), ENVELOPE_LONG);
    ck_assert_int_eq(envelope_read(message, length, sizeof body - 1, &in), ENVELOPE_TOO_LARGE);
}
END_TEST

START_TEST(a_strange_head_is_refused_by_name)
{
    struct envelope out = example();
    uint8_t message[256];
    struct envelope in;

    envelope_write(&out, message, sizeof message);
    message[0] = 'X';
    ck_assert_int_eq(envelope_read(message, envelope_size(&out), 1000, &in), ENVELOPE_BAD_MAGIC);

    out.version = 2;
    envelope_write(&out, message, sizeof message);
    ck_assert_int_eq(envelope_read(message, envelope_size(&out), 1000, &in), ENVELOPE_BAD_VERSION);

    out.version = 1;
    envelope_write(&out, message, sizeof message);
    message[52] = 2;
    ck_assert_int_eq(envelope_read(message, envelope_size(&out), 1000, &in), ENVELOPE_BAD_FLAGS);

    envelope_write(&out, message, sizeof message);
    message[119] = 1; /* a signature, but not the flag */
    ck_assert_int_eq(envelope_read(message, envelope_size(&out), 1000, &in), ENVELOPE_BAD_FLAGS);
}
END_TEST

/* Session, sequence and flags are outside the signature; a flag changed makes the message
 * unreadable or unsigned. Every other byte counts. */
static bool is_signed_offset(size_t offset)
{
    return offset < 8 || offset >= 24;
}

START_TEST(changing_any_signed_byte_breaks_the_signature)
{
    struct identity *identity = signer();
    struct envelope out = example();
    ck_assert(identity_sign_envelope(identity, &cluster, &out));
    uint8_t message[256];
    envelope_write(&out, message, sizeof message);
    size_t length = envelope_size(&out);

    for (size_t offset = 0; offset < length; offset++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            message[offset] ^= (uint8_t)(1U << bit);
            struct envelope in;
            bool good = envelope_read(message, length, sizeof body, &in) == ENVELOPE_OK &&
                        identity_verify_envelope(identity_key(identity), &cluster, &in);
            ck_assert_msg(good == !is_signed_offset(offset), "offset %zu bit %u", offset, bit);
            message[offset] ^= (uint8_t)(1U << bit);
        }
    }
    identity_destroy(&identity);
}
END_TEST

START_TEST(a_signature_holds_for_one_cluster_and_one_key)
{
    struct identity *identity = signer();
    static const uint8_t other_seed[32] = {1};
    struct identity *other = identity_create(other_seed);
    struct envelope out = example();
    ck_assert(identity_sign_envelope(identity, &cluster, &out));

    ck_assert(identity_verify_envelope(identity_key(identity), &cluster, &out));
    ck_assert(!identity_verify_envelope(identity_key(other), &cluster, &out));
    static const struct id128 elsewhere = {{0xc1, 0x06}};
    ck_assert(!identity_verify_envelope(identity_key(identity), &elsewhere, &out));
    out.is_signed = false;
    ck_assert(!identity_verify_envelope(identity_key(identity), &cluster, &out));

    identity_destroy(&identity);
    identity_destroy(&other);
}
END_TEST

START_TEST(the_same_message_may_travel_in_another_session)
{
    struct identity *identity = signer();
    struct envelope out = example();
    ck_assert(identity_sign_envelope(identity, &cluster, &out));
    out.session = 99;
    out.sequence = 1;
    ck_assert(identity_verify_envelope(identity_key(identity), &cluster, &out));
    identity_destroy(&identity);
}
END_TEST

START_TEST(an_empty_body_can_be_signed)
{
    struct identity *identity = signer();
    struct envelope out = example();
    out.body = NULL;
    out.body_length = 0;
    ck_assert(identity_sign_envelope(identity, &cluster, &out));
    uint8_t message[ENVELOPE_HEAD_BYTES];
    envelope_write(&out, message, sizeof message);
    struct envelope in;
    ck_assert_int_eq(envelope_read(message, sizeof message, 0, &in), ENVELOPE_OK);
    ck_assert(identity_verify_envelope(identity_key(identity), &cluster, &in));
    identity_destroy(&identity);
}
END_TEST

SUITE("envelope", NULL, NULL, TEST(what_is_written_is_read_again),
      TEST(the_fields_stand_at_their_offsets), TEST(every_cut_and_every_extra_byte_is_refused),
      TEST(a_strange_head_is_refused_by_name), TEST(changing_any_signed_byte_breaks_the_signature),
      TEST(a_signature_holds_for_one_cluster_and_one_key),
      TEST(the_same_message_may_travel_in_another_session), TEST(an_empty_body_can_be_signed))
