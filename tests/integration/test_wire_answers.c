/* Every message type from every role, and each way to be wrong, with the code that it deserves from
 * a real broker, and no change of state. */
#include "tests/support/arena.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

/* The code of the Reject under `id`, REJECT_NONE when it was accepted or replied to. Other answers
 * are passed over. */
static enum reject_code answer_to(struct link *link, const struct id128 *id)
{
    for (;;) {
        const uint8_t *message;
        size_t length;
        struct envelope envelope;
        ck_assert_msg(link_receive(link, ARENA_WAIT_MS, &message, &length) == 1, "no answer");
        ck_assert_int_eq(envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope),
                         ENVELOPE_OK);
        if (!id128_equal(&envelope.id, id)) {
            continue;
        }
        return envelope.type == MESSAGE_REJECT ? arena_reject_code(&envelope) : REJECT_NONE;
    }
}

static void check_code(struct broker_client *client, const struct said *said,
                       enum reject_code expected, const char *what)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    static const struct id128 unknown; /* where an id stands is not known of another version */
    arena_put(client->link, bytes, arena_write_said(said, client, bytes, sizeof bytes));
    enum reject_code code =
        answer_to(client->link, said->version == ENVELOPE_VERSION ? &said->id : &unknown);
    ck_assert_msg(code == expected, "%s: %s, not %s", what,
                  code == REJECT_NONE ? "accepted" : reject_name(code),
                  expected == REJECT_NONE ? "accepted" : reject_name(expected));
}

/* ---------------------------------------------------------------- every type from every role */

/* Returns what the head alone decides for an unsigned message without a body. REJECT_NONE: nothing.
 * */
static enum reject_code expected_of_head(uint32_t type, unsigned roles)
{
    unsigned needed = message_roles((enum message_type)type);
    if (needed == 0 || message_is_of_blobs((enum message_type)type)) {
        return REJECT_TYPE;
    }
    if ((needed & ROLE_ANYONE) == 0 && (needed & roles) == 0) {
        return REJECT_ROLE;
    }
    return message_must_be_signed((enum message_type)type) ? REJECT_NOT_SIGNED : REJECT_NONE;
}

struct member { /* an account of one role alone; NULL: a stranger */
    const char *role;
    unsigned roles;
    struct identity *identity;
    struct broker_client client;
    struct link *blobs;
};

enum { MEMBERS = 7, BLOB_ACCOUNTS = 6 };

/* The roles that no invitation grants are in the genesis only: so all of them are. */
static void open_members(struct arena *arena, void *zmq, struct member members[MEMBERS])
{
    char path[256];
    broker_process_init(&arena->broker, "limits: {rate_anonymous: 1000}\n");
    (void)snprintf(path, sizeof path, "%s/broker.yaml", arena->broker.folder);
    FILE *config = fopen(path, "ae"); /* which ends with the accounts of the genesis */
    ck_assert_ptr_nonnull(config);
    for (size_t i = 0; i < MEMBERS; i++) {
        char key[65];
        members[i].identity = arena_identity();
        text_hex(identity_key(members[i].identity)->bytes, 32, key);
        if (members[i].role != NULL) {
            (void)fprintf(config, "    - {key: \"%s\", name: %s, roles: [%s]}\n", key,
                          members[i].role, members[i].role);
        }
    }
    ck_assert_int_eq(fclose(config), 0);
    broker_process_start(&arena->broker);
    for (size_t i = 0; i < MEMBERS; i++) {
        broker_client_open(&members[i].client, &arena->broker, members[i].identity,
                           SESSION_CONSUMER);
        members[i].blobs = arena_connect(zmq, arena->broker.market.blobs, arena,
                                         members[i].identity, LIMIT_BLOB_MESSAGE_BYTES);
    }
}

static void close_members(struct arena *arena, struct member members[MEMBERS])
{
    for (size_t i = 0; i < MEMBERS; i++) {
        link_close(&members[i].blobs);
        broker_client_close(&members[i].client);
        identity_destroy(&members[i].identity);
    }
    int status = broker_process_stop(&arena->broker, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended with %d", status);
    broker_process_fini(&arena->broker);
}

static bool is_of_session(uint32_t type)
{
    return type == MESSAGE_HELLO || type == MESSAGE_HEARTBEAT || type == MESSAGE_GOODBYE;
}

/* All that the head refuses; returns how many are refused for the role. */
static size_t check_refused_types(const struct arena *arena, struct member *member)
{
    size_t out_of_role = 0;
    for (uint32_t type = 0; type <= UINT8_MAX; type++) {
        enum reject_code expected = expected_of_head(type, member->roles);
        if (expected != REJECT_NONE && !is_of_session(type)) {
            struct said said = arena_saying(arena, (uint16_t)type);
            check_code(&member->client, &said, expected, message_name((enum message_type)type));
            out_of_role += expected == REJECT_ROLE;
        }
    }
    return out_of_role;
}

/* An empty message that the role may send is wrong for another reason, or not at all. */
static size_t check_allowed_types(const struct arena *arena, struct member *member)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    size_t allowed = 0;
    for (uint32_t type = 0; type <= UINT8_MAX; type++) {
        unsigned needed = message_roles((enum message_type)type);
        if (message_is_of_blobs((enum message_type)type) ||
            (needed & (member->roles | ROLE_ANYONE)) == 0 || is_of_session(type)) {
            continue;
        }
        struct said said = arena_saying(arena, (uint16_t)type);
        said.is_signed = true;
        said.signer = member->identity;
        arena_put(member->client.link, bytes,
                  arena_write_said(&said, &member->client, bytes, sizeof bytes));
        enum reject_code code = answer_to(member->client.link, &said.id);
        ck_assert_msg(code != REJECT_ROLE && code != REJECT_TYPE && code != REJECT_BAD_SIGNATURE,
                      "%s of %s: %s", message_name((enum message_type)type),
                      member->role == NULL ? "a stranger" : member->role, reject_name(code));
        allowed++;
    }
    return allowed;
}

static enum reject_code answer_on_blob_port(struct member *member, uint16_t type)
{
    uint8_t bytes[256];
    struct envelope envelope = {.version = ENVELOPE_VERSION, .type = type, .id = entropy_id()};
    arena_put(member->blobs, bytes, arena_write(&envelope, bytes, sizeof bytes));
    return answer_to(member->blobs, &envelope.id);
}

static void check_blob_types(struct member *member)
{
    for (uint16_t type = 0; type <= UINT8_MAX; type++) {
        const bool is_ours = message_is_of_blobs((enum message_type)type);
        unsigned needed = is_ours ? message_roles((enum message_type)type) : 0;
        enum reject_code code = answer_on_blob_port(member, type);
        bool is_right = needed == 0 ? code == REJECT_TYPE
                        : (needed & member->roles) == 0
                            ? code == REJECT_ROLE
                            : code != REJECT_TYPE && code != REJECT_ROLE;
        ck_assert_msg(is_right, "blob port, type %u of %s: %s", type, member->role,
                      code == REJECT_NONE ? "accepted" : reject_name(code));
    }
}

/* Every type from every role, and from none. What message_roles says is compared with a table of
 * its own in tests/unit/protocol/test_codec.c, and with the document's in test_protocol_document.c.
 */
START_TEST(every_type_out_of_role_has_its_code_and_changes_nothing)
{
    struct arena arena = {0};
    struct member members[MEMBERS] = {
        {.role = "consumer", .roles = ROLE_CONSUMER},
        {.role = "provider", .roles = ROLE_PROVIDER},
        {.role = "auditor", .roles = ROLE_AUDITOR},
        {.role = "replica", .roles = ROLE_REPLICA},
        {.role = "risk", .roles = ROLE_RISK},
        {.role = "operator", .roles = ROLE_OPERATOR},
        {.role = NULL},
    };
    /* The counts are of the 43 types on the control port that need a role; join and checkpoint are
     * anyone's. */
    static const size_t may[MEMBERS] = {27, 23, 7, 7, 10, 14, 0};
    void *zmq = zmq_ctx_new();
    open_members(&arena, zmq, members);
    struct hash32 before = arena_hash(&arena);
    for (size_t i = 0; i < MEMBERS; i++) {
        ck_assert_uint_eq(check_refused_types(&arena, &members[i]), 43 - may[i]);
    }
    for (size_t i = 0; i < BLOB_ACCOUNTS; i++) { /* strangers hear nothing there */
        check_blob_types(&members[i]);
    }
    struct hash32 after = arena_hash(&arena);
    ck_assert(hash32_equal(&before, &after));
    for (size_t i = 0; i < MEMBERS; i++) {
        ck_assert_uint_eq(check_allowed_types(&arena, &members[i]), may[i] + 2);
    }
    close_members(&arena, members);
    (void)zmq_ctx_term(zmq);
}
END_TEST

/* ---------------------------------------------------------------- ways to be wrong */

START_TEST(each_way_to_be_wrong_has_its_code)
{
    static const uint8_t rubbish[] = {0xff, 0xff, 0xff, 0xff, 0x07};
    static const uint8_t zeros[LIMIT_SMALL_BODY_BYTES + 1];
    const struct id128 elsewhere = entropy_id();
    struct arena arena;
    arena_open(&arena, "");
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = arena_bytes(identity_key(arena.broker.owner)->bytes, 32);
    mint.amount_micro = 5;
    size_t length;
    uint8_t *body = codec_encode(&mint.base, &length);
    struct said good = arena_saying(&arena, MESSAGE_MINT);
    good.is_signed = true;
    good.body = body;
    good.length = length;
    check_code(&arena.loud, &good, REJECT_NONE, "as it should be");
    check_code(&arena.loud, &good, REJECT_NONE, "the same again");
    struct arena_state before = arena_state_of(&arena);
    struct hash32 hash = arena_hash(&arena);

    struct said bad;
#define CASE(what, code, change)                                                                   \
    bad = good;                                                                                    \
    bad.id = entropy_id();                                                                         \
    bad.change;                                                                                    \
    check_code(&arena.loud, &bad, code, what)
    CASE("signed by another", REJECT_BAD_SIGNATURE, signer = arena.enemy_key);
    CASE("for another market", REJECT_BAD_SIGNATURE, cluster = &elsewhere);
    CASE("a day and an hour old", REJECT_ID_EXPIRED, made_ms = -25 * INT64_C(3600000));
    CASE("eleven minutes ahead", REJECT_ID_EXPIRED, made_ms = 11 * INT64_C(60000));
    CASE("half a body", REJECT_MALFORMED, length = length / 2);
    CASE("no body", REJECT_MALFORMED, length = 0);
    CASE("of a later version", REJECT_VERSION, version = ENVELOPE_VERSION + 1);
    CASE("a message of the broker's", REJECT_TYPE, type = MESSAGE_ACCEPTED);
    CASE("a blob on the wrong port", REJECT_TYPE, type = MESSAGE_BLOB_PUT);
    good.body = zeros;
    CASE("too large for its type", REJECT_TOO_LARGE, length = sizeof zeros);
    good.body = rubbish;
    CASE("no protobuf", REJECT_MALFORMED, length = sizeof rubbish);
#undef CASE
    struct hash32 after = arena_hash(&arena);
    ck_assert(hash32_equal(&hash, &after));

    mint.amount_micro = 6; /* the same id with another body gets as far as the table of ids */
    free(body);
    body = codec_encode(&mint.base, &length);
    good.body = body;
    good.length = length;
    check_code(&arena.loud, &good, REJECT_ID_REUSED, "the same id, another body");
    arena_check_unchanged(&arena, before);
    free(body);
    arena_close(&arena);
}
END_TEST

/* ---------------------------------------------------------------- above the rate */

START_TEST(who_sends_above_the_rate_is_told_once_a_second)
{
    enum { RATE = 50, MESSAGES = 2000 };
    struct arena arena;
    uint8_t bytes[256];
    arena_open(&arena, "limits: {rate: 50}\n");
    int64_t began_ns = clock_monotonic_ns();
    for (int i = 0; i < MESSAGES; i++) {
        struct said said = arena_saying(&arena, MESSAGE_BALANCE_REQUEST);
        arena_put(arena.enemy.link, bytes,
                  arena_write_said(&said, &arena.enemy, bytes, sizeof bytes));
    }
    struct said last = arena_saying(&arena, MESSAGE_BALANCE_REQUEST);
    unsigned told = 0;
    unsigned answered = 0;
    bool is_served = false;
    while (!is_served) { /* asked again until there is room for it: the session stands */
        const uint8_t *message;
        size_t length;
        ck_assert_int_lt(clock_monotonic_ns(), began_ns + 2 * ARENA_WAIT_MS * NS_PER_MS);
        arena_put(arena.enemy.link, bytes,
                  arena_write_said(&last, &arena.enemy, bytes, sizeof bytes));
        while (link_receive(arena.enemy.link, 50, &message, &length) == 1) {
            struct envelope envelope;
            ck_assert_int_eq(envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope),
                             ENVELOPE_OK);
            told += envelope.type == MESSAGE_REJECT ? 1 : 0;
            answered += envelope.type == MESSAGE_BALANCE_REPLY ? 1 : 0;
            is_served = is_served || (envelope.type == MESSAGE_BALANCE_REPLY &&
                                      id128_equal(&envelope.id, &last.id));
        }
    }
    int64_t passed_s = (clock_monotonic_ns() - began_ns) / NS_PER_S;
    ck_assert_uint_ge(told, 1);
    ck_assert_int_le(told, passed_s + 2);
    ck_assert_int_le(answered, 2 * RATE + (passed_s + 1) * RATE);
    arena_close(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire answers");
    TCase *tests = tcase_create("answers");
    tcase_set_timeout(tests, 240);
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, every_type_out_of_role_has_its_code_and_changes_nothing);
    tcase_add_test(tests, each_way_to_be_wrong_has_its_code);
    tcase_add_test(tests, who_sends_above_the_rate_is_told_once_a_second);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
