/* Hostile peers of a real broker: rubbish, forgeries, replays, roles and blobs that are not theirs,
 * crowds. Nothing of it may change the state, end the broker, or make it grow. */
#include "tests/support/arena.h"

#include "base/sha256.h"
#include "broker/blob/port/blob_ticket.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/blob/blob_client.h"
#include "runtime/clock.h"
#include "runtime/descriptor.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#ifdef __SANITIZE_THREAD__
enum { SHADOW = 4 }; /* of each byte of ours, resident too */
#else
enum { SHADOW = 0 };
#endif
enum { GROWTH_KIB = (1 + SHADOW) * (96 << 10) };

/* A Mint for the owner, signed by `signer`, for the session of `client`. */
static size_t write_mint(const struct arena *arena, const struct broker_client *client,
                         const struct identity *signer, int64_t micro, const struct id128 *cluster,
                         uint8_t *ret_bytes, size_t capacity)
{
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = arena_bytes(identity_key(arena->broker.owner)->bytes, 32);
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
    size_t length = arena_write(&envelope, ret_bytes, capacity);
    free(body);
    return length;
}

START_TEST(a_message_with_any_byte_changed_or_cut_changes_nothing)
{
    struct arena arena;
    uint8_t mint[512];
    uint8_t bent[512];
    arena_open(&arena, "");
    const struct id128 *cluster = &arena.broker.market.cluster;
    size_t length =
        write_mint(&arena, &arena.loud, arena.broker.owner, 5000000, cluster, mint, sizeof mint);
    arena_put(arena.loud.link, mint, length);
    ck_assert(arena_drain(arena.loud.link, ARENA_WAIT_MS));
    struct arena_state before = arena_state_of(&arena);

    for (size_t at = 0; at < length; at++) {
        memcpy(bent, mint, length);
        bent[at] ^= 0x11;
        arena_put(arena.loud.link, bent, length);
        arena_put(arena.loud.link, mint, at); /* and cut there */
    }
    arena_put(arena.loud.link, mint,
              length); /* once more: the first answer again, no second mint */
    (void)arena_drain(arena.loud.link,
                      ARENA_WAIT_MS); /* accepted again, or its session is over by now */
    arena_check_unchanged(&arena, before);
    arena_close(&arena);
}
END_TEST

START_TEST(what_another_signed_or_for_another_market_is_refused)
{
    struct arena arena;
    uint8_t mint[512];
    struct id128 elsewhere = entropy_id();
    arena_open(&arena, "");
    const struct id128 *cluster = &arena.broker.market.cluster;
    struct arena_state before = arena_state_of(&arena);

    /* The owner's words on the enemy's session; the enemy's own; the enemy's in the owner's session
     * number. */
    size_t length =
        write_mint(&arena, &arena.enemy, arena.broker.owner, 5000000, cluster, mint, sizeof mint);
    arena_put(arena.enemy.link, mint, length);
    ck_assert(!arena_drain(arena.enemy.link, ARENA_WAIT_MS));
    length = write_mint(&arena, &arena.enemy, arena.enemy_key, 5000000, cluster, mint, sizeof mint);
    arena_put(arena.enemy.link, mint, length);
    ck_assert(!arena_drain(arena.enemy.link, ARENA_WAIT_MS));
    length =
        write_mint(&arena, &arena.loud, arena.broker.owner, 5000000, cluster, mint, sizeof mint);
    arena_put(arena.enemy.link, mint, length);
    ck_assert(!arena_drain(arena.enemy.link, ARENA_WAIT_MS));
    /* The message comes on the owner's session, but is signed by the enemy, or for another market.
     * */
    length = write_mint(&arena, &arena.loud, arena.enemy_key, 5000000, cluster, mint, sizeof mint);
    arena_put(arena.loud.link, mint, length);
    ck_assert(!arena_drain(arena.loud.link, ARENA_WAIT_MS));
    length =
        write_mint(&arena, &arena.loud, arena.broker.owner, 5000000, &elsewhere, mint, sizeof mint);
    arena_put(arena.loud.link, mint, length);
    ck_assert(!arena_drain(arena.loud.link, ARENA_WAIT_MS));

    arena_check_unchanged(&arena, before);
    arena_close(&arena);
    ck_assert_uint_gt(arena.refused[REJECT_BAD_SIGNATURE], 0);
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
            arena_put(link, bytes, arena_write(&envelope, bytes, sizeof bytes));
        }
        ck_assert(!arena_drain(link, 0));
    }
}

/* A sound request that another role may make: nothing but the role stands against it. */
START_TEST(what_another_role_may_read_is_refused)
{
    struct arena arena;
    arena_open(&arena, "");
    Bourse__V1__AccountsRequest accounts = BOURSE__V1__ACCOUNTS_REQUEST__INIT;
    struct dialogue_event event =
        broker_client_ask(&arena.owner, MESSAGE_ACCOUNTS_REQUEST, NULL, &accounts.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    codec_free(&event.body);
    event = broker_client_ask(&arena.enemy, MESSAGE_ACCOUNTS_REQUEST, NULL, &accounts.base);
    ck_assert_int_eq(event.type, DIALOGUE_REJECTED);
    ck_assert_int_eq(event.reject, REJECT_ROLE);
    arena_close(&arena);
}
END_TEST

START_TEST(no_type_with_a_wrong_body_or_role_is_accepted)
{
    struct arena arena;
    arena_open(&arena, "");
    struct arena_state before = arena_state_of(&arena);
    void *context = zmq_ctx_new();
    struct link *blobs = arena_connect(context, arena.broker.market.blobs, &arena, arena.enemy_key,
                                       LIMIT_BLOB_MESSAGE_BYTES);
    struct identity *nobody = arena_identity();
    struct link *stranger =
        arena_connect(context, arena.broker.market.control, &arena, nobody, LIMIT_MESSAGE_BYTES);
    struct link *stranger_blobs =
        arena_connect(context, arena.broker.market.blobs, &arena, nobody, LIMIT_BLOB_MESSAGE_BYTES);

    send_all_types(arena.enemy.link, &arena, dialogue_welcome(arena.enemy.dialogue)->session,
                   arena.enemy_key);
    send_all_types(arena.loud.link, &arena, dialogue_welcome(arena.loud.dialogue)->session,
                   arena.broker.owner);
    send_all_types(blobs, &arena, 0, arena.enemy_key);
    send_all_types(stranger, &arena, 0, nobody);
    send_all_types(stranger, &arena, dialogue_welcome(arena.loud.dialogue)->session, nobody);
    send_all_types(stranger_blobs, &arena, 0, nobody);
    ck_assert(!arena_drain(arena.loud.link, 0));

    arena_check_unchanged(&arena, before);
    link_close(&blobs);
    link_close(&stranger);
    link_close(&stranger_blobs);
    (void)zmq_ctx_term(context);
    identity_destroy(&nobody);
    arena_close(&arena);
    ck_assert_uint_gt(arena.refused[REJECT_ROLE], 0);
    ck_assert_uint_gt(arena.refused[REJECT_MALFORMED], 0);
}
END_TEST

static enum reject_code put_refused(struct link *link, const struct hash32 *hash, uint64_t size,
                                    uint64_t offset, const void *data, size_t length,
                                    const struct id128 *job)
{
    static uint8_t bytes[LIMIT_BLOB_MESSAGE_BYTES];
    Bourse__V1__BlobPut put = BOURSE__V1__BLOB_PUT__INIT;
    put.hash = arena_bytes(hash->bytes, 32);
    put.size = size;
    put.offset = offset;
    put.data = arena_bytes(data, length);
    put.has_job = job != NULL;
    put.job = arena_bytes(job == NULL ? NULL : job->bytes, job == NULL ? 0 : 16);
    size_t body_length;
    uint8_t *body = codec_encode(&put.base, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_BLOB_PUT,
                                .id = entropy_id(),
                                .body = body,
                                .body_length = (uint32_t)body_length};
    arena_put(link, bytes, arena_write(&envelope, bytes, sizeof bytes));
    free(body);
    const uint8_t *message;
    size_t message_length;
    ck_assert_int_eq(link_receive(link, ARENA_WAIT_MS, &message, &message_length), 1);
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
    arena_open(&arena, "");
    void *context = zmq_ctx_new();
    struct blob_client *mine;
    struct blob_client *theirs;
    ck_assert(blob_client_open(context, arena.broker.market.blobs, &arena.broker.market.server,
                               arena.broker.owner, &mine, &problem));
    ck_assert(blob_client_open(context, arena.broker.market.blobs, &arena.broker.market.server,
                               arena.enemy_key, &theirs, &problem));
    struct blob_source source = {.hash = hash, .size = sizeof secret, .fd = -1, .bytes = secret};
    ck_assert(blob_client_put(mine, &source, 1, NULL, NULL, NULL, &reject, NULL, &problem));

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

    struct link *link = arena_connect(context, arena.broker.market.blobs, &arena, arena.enemy_key,
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
    /* The blob is sent to the end with the wrong bytes: nothing stays. */
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
    arena_close(&arena);
    ck_assert_uint_gt(arena.refused[REJECT_NOT_FOUND], 0);
    ck_assert_uint_gt(arena.refused[REJECT_BLOB_HASH], 0);
}
END_TEST

/* Asks for the first bytes of a blob; *ret_data is decoded, the caller frees. */
static enum reject_code asked_by_file(struct link *link, const struct hash32 *hash,
                                      const struct id128 *job, uint64_t offset, uint32_t length,
                                      Bourse__V1__BlobData **ret_data)
{
    Bourse__V1__BlobGet get = BOURSE__V1__BLOB_GET__INIT;
    get.hash = arena_bytes(hash->bytes, 32);
    get.offset = offset;
    get.length = length;
    get.has_job = job != NULL;
    get.job = job == NULL ? get.job : arena_bytes(job->bytes, 16);
    get.has_by_file = 1;
    get.by_file = 1;
    size_t body_length;
    uint8_t *body = codec_encode(&get.base, &body_length);
    uint8_t bytes[512];
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_BLOB_GET,
                                .id = entropy_id(),
                                .body = body,
                                .body_length = (uint32_t)body_length};
    arena_put(link, bytes, arena_write(&envelope, bytes, sizeof bytes));
    free(body);
    const uint8_t *message;
    size_t message_length;
    ck_assert_int_eq(link_receive(link, ARENA_WAIT_MS, &message, &message_length), 1);
    struct envelope answer;
    ck_assert_int_eq(envelope_read(message, message_length, LIMIT_BLOB_MESSAGE_BYTES, &answer),
                     ENVELOPE_OK);
    *ret_data = NULL;
    if (answer.type == MESSAGE_REJECT) {
        return arena_reject_code(&answer);
    }
    ProtobufCMessage *decoded = NULL;
    struct codec_error error;
    ck_assert_int_eq(
        codec_decode(MESSAGE_BLOB_DATA, answer.body, answer.body_length, &decoded, &error),
        CODEC_OK);
    *ret_data = (Bourse__V1__BlobData *)(void *)decoded;
    return REJECT_NONE;
}

static void check_bytes_came(struct link *link, const struct hash32 *hash, uint64_t offset,
                             uint32_t length, size_t expected)
{
    Bourse__V1__BlobData *data;
    ck_assert_int_eq(asked_by_file(link, hash, NULL, offset, length, &data), REJECT_NONE);
    ck_assert(!data->has_ticket);
    ck_assert_uint_eq(data->data.len, expected);
    codec_free((ProtobufCMessage **)(void *)&data);
}

static void put_blob(void *context, const struct arena *arena, const uint8_t *bytes, size_t length)
{
    struct blob_client *client;
    struct problem problem;
    enum reject_code reject;
    struct blob_source source = {
        .hash = sha256_of(bytes, length), .size = length, .fd = -1, .bytes = bytes};
    ck_assert(blob_client_open(context, arena->broker.market.blobs, &arena->broker.market.server,
                               arena->broker.owner, &client, &problem));
    ck_assert(blob_client_put(client, &source, 1, NULL, NULL, NULL, &reject, NULL, &problem));
    blob_client_close(&client);
}

START_TEST(a_ticket_is_given_to_who_may_read_and_brings_the_file_once)
{
    enum { SIZE = 3 << 20 };
    struct arena arena;
    Bourse__V1__BlobData *data;
    uint8_t *bytes = calloc(SIZE, 1);
    ck_assert_ptr_nonnull(bytes);
    struct hash32 hash = sha256_of(bytes, SIZE);
    arena_open(&arena, "");
    void *context = zmq_ctx_new();
    put_blob(context, &arena, bytes, SIZE);
    put_blob(context, &arena, bytes, 1000);
    struct link *mine = arena_connect(context, arena.broker.market.blobs, &arena,
                                      arena.broker.owner, LIMIT_BLOB_MESSAGE_BYTES);
    struct link *theirs = arena_connect(context, arena.broker.market.blobs, &arena, arena.enemy_key,
                                        LIMIT_BLOB_MESSAGE_BYTES);
    struct id128 job = entropy_id();
    ck_assert_int_eq(asked_by_file(theirs, &hash, NULL, 0, 1 << 20, &data), REJECT_NOT_FOUND);
    ck_assert_int_eq(asked_by_file(theirs, &hash, &job, 0, 1 << 20, &data), REJECT_NOT_FOUND);

    ck_assert_int_eq(asked_by_file(mine, &hash, NULL, 0, 1 << 20, &data), REJECT_NONE);
    ck_assert(data->has_ticket);
    ck_assert_uint_eq(data->data.len, 0);
    ck_assert_uint_eq(data->total, SIZE);
    char path[128];
    struct id128 ticket = codec_id(data->ticket);
    codec_free((ProtobufCMessage **)(void *)&data);
    ck_assert(descriptor_path(arena.broker.market.blobs, path, sizeof path));
    struct id128 guess = entropy_id();
    struct descriptor_answer answer;
    ck_assert(descriptor_ask(path, &guess, ARENA_WAIT_MS, &answer));
    ck_assert_int_eq(answer.fd, -1);
    ck_assert(!answer.has_hash);
    ck_assert(descriptor_ask(path, &ticket, ARENA_WAIT_MS, &answer));
    ck_assert_int_ge(answer.fd, 0);
    ck_assert(answer.has_hash && hash32_equal(&answer.hash, &hash));
    uint8_t *found = malloc(SIZE);
    ck_assert_int_eq(pread(answer.fd, found, SIZE, 0), SIZE);
    ck_assert_mem_eq(found, bytes, SIZE);
    (void)close(answer.fd);
    ck_assert(descriptor_ask(path, &ticket, ARENA_WAIT_MS, &answer));
    ck_assert_int_eq(answer.fd, -1);

    struct hash32 small = sha256_of(bytes, 1000);
    check_bytes_came(mine, &small, 0, 1 << 20, 1000);   /* all of it fits one answer */
    check_bytes_came(mine, &hash, 1 << 20, 1000, 1000); /* not from the start */
    for (size_t i = 0; i < BLOB_TICKETS_PER_ACCOUNT; i++) {
        ck_assert_int_eq(asked_by_file(mine, &hash, NULL, 0, 1 << 20, &data), REJECT_NONE);
        ck_assert(data->has_ticket);
        codec_free((ProtobufCMessage **)(void *)&data);
    }
    check_bytes_came(mine, &hash, 0, 1 << 20, 1 << 20);
    free(found);
    free(bytes);
    link_close(&mine);
    link_close(&theirs);
    (void)zmq_ctx_term(context);
    arena_close(&arena);
}
END_TEST

START_TEST(who_comes_by_tcp_gets_bytes_and_no_ticket)
{
    enum { SIZE = 2 << 20 };
    struct arena arena;
    uint8_t *bytes = calloc(SIZE, 1);
    ck_assert_ptr_nonnull(bytes);
    struct hash32 hash = sha256_of(bytes, SIZE);
    arena_open(&arena, "listen: tcp://127.0.0.1:*\nblob_listen: tcp://127.0.0.1:*\n");
    ck_assert_int_eq(strncmp(arena.broker.market.blobs, "tcp://", 6), 0);
    void *context = zmq_ctx_new();
    put_blob(context, &arena, bytes, SIZE);
    struct link *link = arena_connect(context, arena.broker.market.blobs, &arena,
                                      arena.broker.owner, LIMIT_BLOB_MESSAGE_BYTES);
    check_bytes_came(link, &hash, 0, 1 << 20, 1 << 20);
    link_close(&link);
    char endpoint[200];
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s/%s", arena.broker.folder,
                   MARKET_BLOB_SOCKET);
    link = arena_connect(context, endpoint, &arena, arena.broker.owner, LIMIT_BLOB_MESSAGE_BYTES);
    Bourse__V1__BlobData *data;
    ck_assert_int_eq(asked_by_file(link, &hash, NULL, 0, 1 << 20, &data), REJECT_NONE);
    ck_assert(data->has_ticket); /* of the same broker */
    codec_free((ProtobufCMessage **)(void *)&data);
    free(bytes);
    link_close(&link);
    (void)zmq_ctx_term(context);
    arena_close(&arena);
}
END_TEST

START_TEST(a_crowd_of_connections_meets_the_caps_and_leaves_no_trace)
{
    enum { CROWD = 400 };
    struct arena arena;
    static struct link *links[CROWD];
    arena_open(&arena, "");
    struct arena_state before = arena_state_of(&arena);
    long resident = arena_resident_kib(&arena);
    void *context = zmq_ctx_new();
    ck_assert_int_eq(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, CROWD + 16), 0);
    struct identity *nobody = arena_identity();

    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "crowd";
    size_t body_length;
    uint8_t *body = codec_encode(&hello.base, &body_length);
    uint8_t bytes[512];
    for (size_t i = 0; i < CROWD; i++) {
        const struct identity *identity = i % 2 == 0 ? nobody : arena.enemy_key;
        links[i] = arena_connect(context, arena.broker.market.control, &arena, identity,
                                 LIMIT_MESSAGE_BYTES);
        struct envelope envelope = {.version = ENVELOPE_VERSION,
                                    .type = MESSAGE_HELLO,
                                    .id = entropy_id(),
                                    .body = body,
                                    .body_length = (uint32_t)body_length};
        arena_put(links[i], bytes, arena_write(&envelope, bytes, sizeof bytes));
    }
    free(body);
    arena_check_unchanged(&arena, before); /* answered while all of them stand */
    for (size_t i = 0; i < CROWD; i++) {
        link_close(&links[i]);
    }
    arena_check_unchanged(&arena, before);
    long growth = arena_resident_kib(&arena) - resident;
    ck_assert_msg(growth < GROWTH_KIB, "the broker grew by %ld KiB", growth);
    (void)zmq_ctx_term(context);
    identity_destroy(&nobody);
    arena_close(&arena);
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
    tcase_add_test(tests, what_another_role_may_read_is_refused);
    tcase_add_test(tests, no_type_with_a_wrong_body_or_role_is_accepted);
    tcase_add_test(tests, blobs_of_others_are_not_found_and_false_ones_not_stored);
    tcase_add_test(tests, a_ticket_is_given_to_who_may_read_and_brings_the_file_once);
    tcase_add_test(tests, who_comes_by_tcp_gets_bytes_and_no_ticket);
    tcase_add_test(tests, a_crowd_of_connections_meets_the_caps_and_leaves_no_trace);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
