/* Hostile peers of a real broker: rubbish, forgeries, replays, roles and blobs that are not theirs, crowds. Nothing
 * of it may change the state, end the broker, or make it grow. */
#include "tests/support/broker_process.h"

#include "base/sha256.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/blob_client.h"
#include "runtime/clock.h"

#include <check.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum { WAIT_MS = 10000, GROWTH_KIB = 96 << 10 };

static ProtobufCBinaryData bytes_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

struct arena { /* a broker, its owner, and a consumer who wishes it ill */
    struct broker_process broker;
    struct broker_client owner;
    struct broker_client
        loud; /* the owner's too: what is sent there is rubbish, its answers are read raw */
    struct identity *enemy_key;
    struct broker_client enemy;
};

static struct identity *new_identity(void)
{
    uint8_t seed[32];
    entropy_bytes(seed, sizeof seed);
    struct identity *identity = identity_create(seed);
    ck_assert_ptr_nonnull(identity);
    return identity;
}

static void setup(struct arena *arena)
{
    struct id128 token = entropy_id();
    struct hash32 hash = sha256_of(token.bytes, sizeof token.bytes);
    broker_process_init(&arena->broker, "");
    broker_process_start(&arena->broker);
    broker_client_open(&arena->owner, &arena->broker, arena->broker.owner, SESSION_CONSUMER);
    broker_client_open(&arena->loud, &arena->broker, arena->broker.owner, SESSION_CONSUMER);
    arena->enemy_key = new_identity();
    broker_client_open(&arena->enemy, &arena->broker, arena->enemy_key, SESSION_CONSUMER);

    Bourse__V1__InviteCreate invite = BOURSE__V1__INVITE_CREATE__INIT;
    invite.token_hash = bytes_of(hash.bytes, 32);
    invite.roles = ROLE_CONSUMER;
    invite.credits_micro = 1000000;
    invite.expires_ms = dialogue_log_time_ms(arena->owner.dialogue, clock_monotonic_ns()) + 60000;
    struct dialogue_event event =
        broker_client_ask(&arena->owner, MESSAGE_INVITE_CREATE, NULL, &invite.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = bytes_of(identity_key(arena->enemy_key)->bytes, 32);
    join.token = bytes_of(token.bytes, 16);
    join.name = (char *)(uintptr_t) "enemy";
    event = broker_client_ask(&arena->enemy, MESSAGE_JOIN, NULL, &join.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
}

/* What the owner has, and how long the log is: both stay as they were. */
struct state {
    int64_t available_micro;
    uint64_t tree_size;
};

static struct state state_of(struct arena *arena)
{
    struct state state;
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    struct dialogue_event event =
        broker_client_ask(&arena->owner, MESSAGE_BALANCE_REQUEST, NULL, &balance.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    state.available_micro = ((Bourse__V1__BalanceReply *)(void *)event.body)->available_micro;
    codec_free(&event.body);
    Bourse__V1__CheckpointRequest checkpoint = BOURSE__V1__CHECKPOINT_REQUEST__INIT;
    event = broker_client_ask(&arena->owner, MESSAGE_CHECKPOINT_REQUEST, NULL, &checkpoint.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    state.tree_size = ((Bourse__V1__CheckpointReply *)(void *)event.body)->tree_size;
    codec_free(&event.body);
    return state;
}

static void check_unchanged(struct arena *arena, struct state before)
{
    struct state after = state_of(arena);
    ck_assert_int_eq(after.available_micro, before.available_micro);
    ck_assert_uint_eq(after.tree_size, before.tree_size);
}

/* The broker is well, ends cleanly, and its journal replays to the same state. */
static void teardown(struct arena *arena)
{
    (void)state_of(arena);
    broker_client_close(&arena->enemy);
    broker_client_close(&arena->loud);
    broker_client_close(&arena->owner);
    int status = broker_process_stop(&arena->broker, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended with %d", status);
    const char *verify[] = {"bourse-broker", "replay", "--verify", arena->broker.folder, NULL};
    char output[1024];
    ck_assert_msg(broker_process_run(verify, output, sizeof output) == 0, "%s", output);
    broker_process_fini(&arena->broker);
    identity_destroy(&arena->enemy_key);
}

static long resident_kib(pid_t pid)
{
    char path[64];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static struct link *connect_to(void *context, const char *endpoint, const struct arena *arena,
                               const struct identity *identity, size_t max_bytes)
{
    struct link *link;
    struct problem problem;
    ck_assert_msg(link_open(context, endpoint, &arena->broker.market.server, identity, max_bytes,
                            &link, &problem),
                  "%s", problem.text);
    return link;
}

static void put_bytes(struct link *link, const void *bytes, size_t length)
{
    zmq_pollitem_t item = {.socket = link_socket(link), .events = ZMQ_POLLOUT};
    ck_assert_int_eq(zmq_poll(&item, 1, WAIT_MS), 1);
    ck_assert(link_send(link, bytes, length));
}

/* Reads what has come; true when one of the messages says Accepted. */
static bool drain(struct link *link, int wait_ms)
{
    bool accepted = false;
    const uint8_t *message;
    size_t length;
    while (link_receive(link, wait_ms, &message, &length) == 1) {
        struct envelope envelope;
        if (envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope) == ENVELOPE_OK) {
            accepted = accepted || envelope.type == MESSAGE_ACCEPTED;
        }
        wait_ms = 0;
    }
    return accepted;
}

static size_t write_message(const struct envelope *envelope, uint8_t *ret_bytes, size_t capacity)
{
    ck_assert_uint_le(envelope_size(envelope), capacity);
    envelope_write(envelope, ret_bytes, capacity);
    return envelope_size(envelope);
}

/* A Mint for the owner, signed by `signer`, for the session of `client`. */
static size_t write_mint(const struct arena *arena, const struct broker_client *client,
                         const struct identity *signer, int64_t micro, const struct id128 *cluster,
                         uint8_t *ret_bytes, size_t capacity)
{
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = bytes_of(identity_key(arena->broker.owner)->bytes, 32);
    mint.amount_micro = micro;
    size_t body_length;
    uint8_t *body = codec_encode(&mint.base, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_MINT,
                                .session = dialogue_welcome(client->dialogue)->session,
                                .sequence = 1000,
                                .id = entropy_id(),
                                .created_ms =
                                    dialogue_log_time_ms(client->dialogue, clock_monotonic_ns()),
                                .body = body,
                                .body_length = (uint32_t)body_length};
    ck_assert(identity_sign_envelope(signer, cluster, &envelope));
    size_t length = write_message(&envelope, ret_bytes, capacity);
    free(body);
    return length;
}

START_TEST(a_message_with_any_byte_changed_or_cut_changes_nothing)
{
    struct arena arena;
    uint8_t mint[512];
    uint8_t bent[512];
    setup(&arena);
    const struct id128 *cluster = &arena.broker.market.cluster;
    size_t length =
        write_mint(&arena, &arena.loud, arena.broker.owner, 5000000, cluster, mint, sizeof mint);
    put_bytes(arena.loud.link, mint, length);
    ck_assert(drain(arena.loud.link, WAIT_MS));
    struct state before = state_of(&arena);

    for (size_t at = 0; at < length; at++) {
        memcpy(bent, mint, length);
        bent[at] ^= 0x11;
        put_bytes(arena.loud.link, bent, length);
        put_bytes(arena.loud.link, mint, at); /* and cut there */
    }
    put_bytes(arena.loud.link, mint,
              length);                     /* once more: the first answer again, no second mint */
    (void)drain(arena.loud.link, WAIT_MS); /* accepted again, or its session is over by now */
    check_unchanged(&arena, before);
    teardown(&arena);
}
END_TEST

START_TEST(what_another_signed_or_for_another_market_is_refused)
{
    struct arena arena;
    uint8_t mint[512];
    struct id128 elsewhere = entropy_id();
    setup(&arena);
    const struct id128 *cluster = &arena.broker.market.cluster;
    struct state before = state_of(&arena);

    /* The owner's words on the enemy's session; the enemy's own; the enemy's in the owner's session number. */
    size_t length =
        write_mint(&arena, &arena.enemy, arena.broker.owner, 5000000, cluster, mint, sizeof mint);
    put_bytes(arena.enemy.link, mint, length);
    ck_assert(!drain(arena.enemy.link, WAIT_MS));
    length = write_mint(&arena, &arena.enemy, arena.enemy_key, 5000000, cluster, mint, sizeof mint);
    put_bytes(arena.enemy.link, mint, length);
    ck_assert(!drain(arena.enemy.link, WAIT_MS));
    length =
        write_mint(&arena, &arena.loud, arena.broker.owner, 5000000, cluster, mint, sizeof mint);
    put_bytes(arena.enemy.link, mint, length);
    ck_assert(!drain(arena.enemy.link, WAIT_MS));
    /* On the owner's session, but signed by the enemy, or for another market. */
    length = write_mint(&arena, &arena.loud, arena.enemy_key, 5000000, cluster, mint, sizeof mint);
    put_bytes(arena.loud.link, mint, length);
    ck_assert(!drain(arena.loud.link, WAIT_MS));
    length =
        write_mint(&arena, &arena.loud, arena.broker.owner, 5000000, &elsewhere, mint, sizeof mint);
    put_bytes(arena.loud.link, mint, length);
    ck_assert(!drain(arena.loud.link, WAIT_MS));

    check_unchanged(&arena, before);
    teardown(&arena);
}
END_TEST

/* Every number a type can have, signed and not, with bodies of nothing, of zeros and of noise. */
static void send_all_types(struct link *link, const struct arena *arena, uint64_t session,
                           const struct identity *signer)
{
    static uint8_t noise[300];
    static uint8_t bytes[512];
    static const uint32_t lengths[] = {0, 1, 40, 300};
    for (uint32_t type = 0; type <= 300; type++) {
        if (type == MESSAGE_HELLO || type == MESSAGE_GOODBYE) {
            continue; /* they would only end the session */
        }
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            entropy_bytes(noise, sizeof noise);
            memset(noise, 0, i % 2 == 0 ? 0 : sizeof noise / 2);
            struct envelope envelope = {
                .version = ENVELOPE_VERSION,
                .type = (uint16_t)type,
                .session = session,
                .sequence = type + 1,
                .id = entropy_id(),
                .created_ms = dialogue_log_time_ms(arena->owner.dialogue, clock_monotonic_ns()),
                .body = noise,
                .body_length = lengths[i]};
            if (i != 2) {
                ck_assert(identity_sign_envelope(signer, &arena->broker.market.cluster, &envelope));
            }
            put_bytes(link, bytes, write_message(&envelope, bytes, sizeof bytes));
        }
        ck_assert(!drain(link, 0));
    }
}

START_TEST(no_type_with_a_wrong_body_or_role_is_accepted)
{
    struct arena arena;
    setup(&arena);
    struct state before = state_of(&arena);
    void *context = zmq_ctx_new();
    struct link *blobs = connect_to(context, arena.broker.market.blobs, &arena, arena.enemy_key,
                                    LIMIT_BLOB_MESSAGE_BYTES);
    struct identity *nobody = new_identity();
    struct link *stranger =
        connect_to(context, arena.broker.market.control, &arena, nobody, LIMIT_MESSAGE_BYTES);
    struct link *stranger_blobs =
        connect_to(context, arena.broker.market.blobs, &arena, nobody, LIMIT_BLOB_MESSAGE_BYTES);

    send_all_types(arena.enemy.link, &arena, dialogue_welcome(arena.enemy.dialogue)->session,
                   arena.enemy_key);
    send_all_types(arena.loud.link, &arena, dialogue_welcome(arena.loud.dialogue)->session,
                   arena.broker.owner);
    send_all_types(blobs, &arena, 0, arena.enemy_key);
    send_all_types(stranger, &arena, 0, nobody);
    send_all_types(stranger, &arena, dialogue_welcome(arena.loud.dialogue)->session, nobody);
    send_all_types(stranger_blobs, &arena, 0, nobody);
    ck_assert(!drain(arena.loud.link, 0));

    check_unchanged(&arena, before);
    link_close(&blobs);
    link_close(&stranger);
    link_close(&stranger_blobs);
    (void)zmq_ctx_term(context);
    identity_destroy(&nobody);
    teardown(&arena);
}
END_TEST

static enum reject_code put_refused(struct link *link, const struct hash32 *hash, uint64_t size,
                                    uint64_t offset, const void *data, size_t length,
                                    const struct id128 *job)
{
    static uint8_t bytes[LIMIT_BLOB_MESSAGE_BYTES];
    Bourse__V1__BlobPut put = BOURSE__V1__BLOB_PUT__INIT;
    put.hash = bytes_of(hash->bytes, 32);
    put.size = size;
    put.offset = offset;
    put.data = bytes_of(data, length);
    put.has_job = job != NULL;
    put.job = bytes_of(job == NULL ? NULL : job->bytes, job == NULL ? 0 : 16);
    size_t body_length;
    uint8_t *body = codec_encode(&put.base, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_BLOB_PUT,
                                .id = entropy_id(),
                                .body = body,
                                .body_length = (uint32_t)body_length};
    put_bytes(link, bytes, write_message(&envelope, bytes, sizeof bytes));
    free(body);
    const uint8_t *message;
    size_t message_length;
    ck_assert_int_eq(link_receive(link, WAIT_MS, &message, &message_length), 1);
    struct envelope answer;
    ck_assert_int_eq(envelope_read(message, message_length, LIMIT_BLOB_MESSAGE_BYTES, &answer),
                     ENVELOPE_OK);
    if (answer.type != MESSAGE_REJECT) {
        return REJECT_NONE;
    }
    ProtobufCMessage *decoded = NULL;
    struct codec_error error;
    ck_assert_int_eq(
        codec_decode(MESSAGE_REJECT, answer.body, answer.body_length, &decoded, &error), CODEC_OK);
    enum reject_code code = (enum reject_code)((Bourse__V1__Reject *)(void *)decoded)->code;
    codec_free(&decoded);
    return code;
}

START_TEST(blobs_of_others_are_not_found_and_false_ones_not_stored)
{
    struct arena arena;
    struct problem problem;
    enum reject_code reject = REJECT_NONE;
    static const uint8_t secret[] = "the owner's input";
    struct hash32 hash = sha256_of(secret, sizeof secret);
    struct hash32 missing = sha256_of("nothing", 7);
    setup(&arena);
    void *context = zmq_ctx_new();
    struct blob_client *mine;
    struct blob_client *theirs;
    ck_assert(blob_client_open(context, arena.broker.market.blobs, &arena.broker.market.server,
                               arena.broker.owner, &mine, &problem));
    ck_assert(blob_client_open(context, arena.broker.market.blobs, &arena.broker.market.server,
                               arena.enemy_key, &theirs, &problem));
    struct blob_source source = {.hash = hash, .size = sizeof secret, .fd = -1, .bytes = secret};
    ck_assert(blob_client_put(mine, &source, 1, NULL, NULL, NULL, &reject, &problem));

    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem other_problem;
    ck_assert(
        !blob_client_get_bytes(theirs, &hash, NULL, 1000, &bytes, &length, &reject, &problem));
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);
    ck_assert(!blob_client_get_bytes(theirs, &missing, NULL, 1000, &bytes, &length, &reject,
                                     &other_problem));
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);
    struct id128 job = entropy_id();
    ck_assert(
        !blob_client_get_bytes(theirs, &hash, &job, 1000, &bytes, &length, &reject, &problem));
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);

    struct link *link = connect_to(context, arena.broker.market.blobs, &arena, arena.enemy_key,
                                   LIMIT_BLOB_MESSAGE_BYTES);
    static uint8_t chunk[1 << 20];
    ck_assert_int_eq(put_refused(link, &hash, 5, 0, "wrong", 5, NULL), REJECT_BLOB_HASH);
    ck_assert_int_eq(put_refused(link, &hash, 5, 0, "wrong", 5, &job), REJECT_NOT_FOUND);
    ck_assert_int_eq(put_refused(link, &missing, UINT64_MAX, 0, "x", 1, NULL), REJECT_MALFORMED);
    ck_assert_int_ne(put_refused(link, &missing, INT64_MAX, 0, "x", 1, NULL), REJECT_NONE);
    ck_assert_int_eq(put_refused(link, &missing, 7, UINT64_MAX, "x", 1, NULL), REJECT_MALFORMED);
    ck_assert_int_eq(put_refused(link, &missing, 7, 8, "x", 1, NULL), REJECT_MALFORMED);
    ck_assert_int_eq(put_refused(link, &missing, 7, 4, "ing", 3, NULL), REJECT_BLOB_OFFSET);
    ck_assert_int_eq(put_refused(link, &missing, 7, 0, "nothing!", 8, NULL), REJECT_MALFORMED);
    ck_assert_int_eq(put_refused(link, &missing, 7, 0, "", 0, NULL), REJECT_MALFORMED);
    /* To the end with the wrong bytes: nothing stays. */
    ck_assert_int_eq(put_refused(link, &missing, 2 * sizeof chunk, 0, chunk, sizeof chunk, NULL),
                     REJECT_NONE);
    ck_assert_int_eq(
        put_refused(link, &missing, 2 * sizeof chunk, sizeof chunk, chunk, sizeof chunk, NULL),
        REJECT_BLOB_HASH);
    ck_assert(!blob_client_get_bytes(theirs, &missing, NULL, 1 << 22, &bytes, &length, &reject,
                                     &other_problem));
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);

    ck_assert(blob_client_get_bytes(mine, &hash, NULL, 1000, &bytes, &length, &reject, &problem));
    ck_assert_uint_eq(length, sizeof secret);
    free(bytes);
    link_close(&link);
    blob_client_close(&mine);
    blob_client_close(&theirs);
    (void)zmq_ctx_term(context);
    teardown(&arena);
}
END_TEST

START_TEST(a_crowd_of_connections_meets_the_caps_and_leaves_no_trace)
{
    enum { CROWD = 400 };
    struct arena arena;
    static struct link *links[CROWD];
    setup(&arena);
    struct state before = state_of(&arena);
    long resident = resident_kib(arena.broker.pid);
    void *context = zmq_ctx_new();
    ck_assert_int_eq(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, CROWD + 16), 0);
    struct identity *nobody = new_identity();

    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "crowd";
    size_t body_length;
    uint8_t *body = codec_encode(&hello.base, &body_length);
    uint8_t bytes[512];
    for (size_t i = 0; i < CROWD; i++) {
        const struct identity *identity = i % 2 == 0 ? nobody : arena.enemy_key;
        links[i] =
            connect_to(context, arena.broker.market.control, &arena, identity, LIMIT_MESSAGE_BYTES);
        struct envelope envelope = {.version = ENVELOPE_VERSION,
                                    .type = MESSAGE_HELLO,
                                    .id = entropy_id(),
                                    .body = body,
                                    .body_length = (uint32_t)body_length};
        put_bytes(links[i], bytes, write_message(&envelope, bytes, sizeof bytes));
    }
    free(body);
    check_unchanged(&arena, before); /* answered while all of them stand */
    for (size_t i = 0; i < CROWD; i++) {
        link_close(&links[i]);
    }
    check_unchanged(&arena, before);
    long growth = resident_kib(arena.broker.pid) - resident;
    ck_assert_msg(growth < GROWTH_KIB, "the broker grew by %ld KiB", growth);
    (void)zmq_ctx_term(context);
    identity_destroy(&nobody);
    teardown(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile peers");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, a_message_with_any_byte_changed_or_cut_changes_nothing);
    tcase_add_test(tests, what_another_signed_or_for_another_market_is_refused);
    tcase_add_test(tests, no_type_with_a_wrong_body_or_role_is_accepted);
    tcase_add_test(tests, blobs_of_others_are_not_found_and_false_ones_not_stored);
    tcase_add_test(tests, a_crowd_of_connections_meets_the_caps_and_leaves_no_trace);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
