/* tests/support/dialogue_play.h plays the broker of a dialogue by hand: one client, and answers as
 * the test says. */
#ifndef BOURSE_TESTS_SUPPORT_DIALOGUE_PLAY_H
#define BOURSE_TESTS_SUPPORT_DIALOGUE_PLAY_H

#include "base/checked.h"
#include "protocol/dialogue.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_MS = 1000, PENDING_MAX = 4, PENDING_BYTES_MAX = 2000 };

static const struct id128 cluster = {{0xc1}};
static const struct id128 first_id = {{1}};
static const struct id128 second_id = {{2}};

struct play {
    struct identity *identity;
    struct dialogue *dialogue;
    int64_t now_ns;
    uint64_t session;      /* the broker's session number */
    uint64_t sequence_out; /* the broker's last sequence number */
    int64_t log_time_ms;   /* the time in the heads of the broker's messages; 0: not said */
};

/* A copy of a message that the client sent. */
struct heard {
    uint8_t bytes[8192];
    size_t length;
    struct envelope envelope;
};

static inline struct play setup(void)
{
    static const uint8_t seed[32] = {5};
    ck_assert_int_ge(sodium_init(), 0);
    struct play play = {.identity = identity_create(seed), .now_ns = NS_PER_S, .session = 100};
    struct dialogue_config config = {.identity = play.identity,
                                     .role = SESSION_CONSUMER,
                                     .program = "test 1",
                                     .pending_max = PENDING_MAX,
                                     .pending_bytes_max = PENDING_BYTES_MAX};
    play.dialogue = dialogue_create(&config);
    return play;
}

static inline void teardown(struct play *play)
{
    dialogue_destroy(&play->dialogue);
    identity_destroy(&play->identity);
}

static inline bool hear(struct play *play, struct heard *ret_heard)
{
    const uint8_t *message;
    size_t length;
    if (!dialogue_outgoing(play->dialogue, &message, &length)) {
        return false;
    }
    ck_assert_uint_le(length, sizeof ret_heard->bytes);
    memcpy(ret_heard->bytes, message, length);
    ret_heard->length = length;
    ck_assert_int_eq(
        envelope_read(ret_heard->bytes, length, LIMIT_LARGE_BODY_BYTES, &ret_heard->envelope),
        ENVELOPE_OK);
    return true;
}

static inline struct dialogue_event say_raw(struct play *play, uint64_t session, uint64_t sequence,
                                            enum message_type type, const struct id128 *id,
                                            const ProtobufCMessage *body)
{
    size_t body_length;
    uint8_t *bytes = codec_encode(body, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = session,
                                .sequence = sequence,
                                .id = *id,
                                .created_ms = play->log_time_ms,
                                .body = bytes,
                                .body_length = (uint32_t)body_length};
    size_t length = envelope_size(&envelope);
    uint8_t *message = malloc(length);
    envelope_write(&envelope, message, length);
    struct dialogue_event event;
    dialogue_incoming(play->dialogue, play->now_ns, message, length, &event);
    free(message);
    free(bytes);
    return event;
}

static inline struct dialogue_event say(struct play *play, enum message_type type,
                                        const struct id128 *id, const ProtobufCMessage *body)
{
    return say_raw(play, play->session, ++play->sequence_out, type, id, body);
}

static inline Bourse__V1__Welcome welcome_example(const struct play *play)
{
    static uint8_t log_key[32];
    Bourse__V1__Welcome welcome = BOURSE__V1__WELCOME__INIT;
    welcome.version = 1;
    welcome.cluster = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)cluster.bytes};
    welcome.session = play->session;
    welcome.heartbeat_ms = HEARTBEAT_MS;
    welcome.log_time_ms = play->log_time_ms != 0 ? play->log_time_ms : 5000000;
    welcome.log_origin = "example.test/log";
    welcome.log_key = (ProtobufCBinaryData){32, log_key};
    welcome.max_message_bytes = LIMIT_MESSAGE_BYTES;
    return welcome;
}

/* Connects and shakes hands. *ret_hello gets the client's Hello. */
static inline struct dialogue_event connect_as_session(struct play *play, uint64_t session,
                                                       struct heard *ret_hello)
{
    dialogue_connected(play->dialogue, play->now_ns, session);
    ck_assert(!dialogue_ready(play->dialogue));
    ck_assert(hear(play, ret_hello));
    play->session = session;
    play->sequence_out = 0;
    Bourse__V1__Welcome welcome = welcome_example(play);
    return say(play, MESSAGE_WELCOME, &ret_hello->envelope.id, &welcome.base);
}

static inline void connect(struct play *play, uint64_t session)
{
    struct heard hello;
    struct dialogue_event event = connect_as_session(play, session, &hello);
    ck_assert_int_eq(event.type, DIALOGUE_READY);
}

static inline void ask_cancel(struct play *play, const struct id128 *id)
{
    uint8_t job[16] = {7};
    Bourse__V1__JobCancel cancel = BOURSE__V1__JOB_CANCEL__INIT;
    cancel.job = (ProtobufCBinaryData){sizeof job, job};
    ck_assert_int_eq(
        dialogue_request(play->dialogue, play->now_ns, MESSAGE_JOB_CANCEL, id, &cancel.base),
        DIALOGUE_OK);
}

static inline void ask_balance(struct play *play, const struct id128 *id)
{
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    ck_assert_int_eq(
        dialogue_request(play->dialogue, play->now_ns, MESSAGE_BALANCE_REQUEST, id, &balance.base),
        DIALOGUE_OK);
}

#endif
