/* The thread on the port of a broker that follows, behind a port of the test's own making. */
#include "broker/gateway/standby.h"

#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <zmq.h>

enum { WAIT_MS = 60000, BYTES_MAX = 1 << 16, FLOOD = 6000, LOG_TIME_MS = 4711 };

struct router { /* a pair of sockets: what the standby is sent, and what it sends */
    void *inside, *outside;
    uint8_t received[BYTES_MAX];
};

static struct router port;
static void *context;
static struct standby *standby;

int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message)
{
    zmq_pollitem_t item = {.socket = router->inside, .events = ZMQ_POLLIN};
    ck_assert_int_gt(timeout_ms, 0);
    if (zmq_poll(&item, 1, timeout_ms) <= 0) {
        return 0;
    }
    const int length = zmq_recv(router->inside, router->received, sizeof router->received, 0);
    *ret_message = (struct router_message){.route = {{1, 2, 3, 4, 5}},
                                           .client = {{6}},
                                           .bytes = router->received,
                                           .length = (size_t)length};
    return 1;
}

enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length)
{
    ck_assert_uint_eq(route->bytes[4], 5);
    ck_assert_uint_eq(client->bytes[0], 6);
    return zmq_send(router->inside, bytes, length, 0) < 0 ? ROUTER_BROKEN : ROUTER_SENT;
}

static void setup(void)
{
    context = zmq_ctx_new();
    port.inside = zmq_socket(context, ZMQ_PAIR);
    port.outside = zmq_socket(context, ZMQ_PAIR);
    int no_bound = 0;
    (void)zmq_setsockopt(port.inside, ZMQ_SNDHWM, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.outside, ZMQ_SNDHWM, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.inside, ZMQ_LINGER, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.outside, ZMQ_LINGER, &no_bound, sizeof no_bound);
    ck_assert_int_eq(zmq_bind(port.inside, "inproc://port"), 0);
    ck_assert_int_eq(zmq_connect(port.outside, "inproc://port"), 0);
    standby = standby_start(&port);
    standby_say(standby, "tcp://b.example:4770", LOG_TIME_MS);
}

static void teardown(void)
{
    standby_stop(&standby);
    (void)zmq_close(port.inside);
    (void)zmq_close(port.outside);
    (void)zmq_ctx_term(context);
}

static void say(enum message_type type, uint8_t id, uint64_t session)
{
    uint8_t bytes[1024];
    const struct envelope envelope = {.version = ENVELOPE_VERSION,
                                      .type = (uint16_t)type,
                                      .session = session,
                                      .id = {{id}},
                                      .created_ms = 1};
    envelope_write(&envelope, bytes, sizeof bytes);
    ck_assert_int_gt(zmq_send(port.outside, bytes, envelope_size(&envelope), 0), 0);
}

/* Returns false when nothing comes in time. */
static bool hear(int timeout_ms, struct envelope *ret_envelope)
{
    static uint8_t bytes[BYTES_MAX];
    (void)zmq_setsockopt(port.outside, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
    const int length = zmq_recv(port.outside, bytes, sizeof bytes, 0);
    if (length < 0) {
        return false;
    }
    ck_assert_int_eq(envelope_read(bytes, (size_t)length, LIMIT_MESSAGE_BYTES, ret_envelope),
                     ENVELOPE_OK);
    return true;
}

static void hear_refusal(uint8_t id, uint64_t session, const char *leader)
{
    struct envelope envelope;
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    ck_assert(hear(WAIT_MS, &envelope));
    ck_assert_uint_eq(envelope.type, MESSAGE_REJECT);
    ck_assert_uint_eq(envelope.id.bytes[0], id);
    ck_assert_uint_eq(envelope.session, session);
    ck_assert_uint_eq(envelope.sequence, 0);
    ck_assert_int_eq(envelope.created_ms, LOG_TIME_MS);
    ck_assert_int_eq(
        codec_decode(MESSAGE_REJECT, envelope.body, envelope.body_length, &body, &error), CODEC_OK);
    const Bourse__V1__Reject *reject = (const void *)body;
    ck_assert_uint_eq(reject->code, REJECT_NOT_LEADER);
    if (leader == NULL) {
        ck_assert_ptr_null(reject->leader_address);
    } else {
        ck_assert_str_eq(reject->leader_address, leader);
    }
    codec_free(&body);
}

START_TEST(every_message_is_answered_with_the_leader)
{
    static const enum message_type types[] = {MESSAGE_HELLO, MESSAGE_SUBMIT_JOB, MESSAGE_HEARTBEAT,
                                              MESSAGE_RESULTS};
    for (uint8_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        say(types[i], (uint8_t)(i + 1), 70U + i);
        hear_refusal((uint8_t)(i + 1), 70U + i, "tcp://b.example:4770");
    }
}
END_TEST

START_TEST(an_address_of_one_machine_is_left_out)
{
    standby_say(standby, "ipc:///var/lib/bourse/broker.sock", LOG_TIME_MS);
    say(MESSAGE_HELLO, 1, 0);
    hear_refusal(1, 0, NULL);
    standby_say(standby, "", LOG_TIME_MS);
    say(MESSAGE_HELLO, 2, 0);
    hear_refusal(2, 0, NULL);
}
END_TEST

START_TEST(goodbyes_and_bytes_that_are_no_message_get_no_answer)
{
    ck_assert_int_gt(zmq_send(port.outside, "nonsense", 8, 0), 0);
    say(MESSAGE_GOODBYE, 1, 7);
    say(MESSAGE_HELLO, 2, 0);
    hear_refusal(2, 0, "tcp://b.example:4770"); /* the first answer is the third one's */
}
END_TEST

START_TEST(a_flood_is_answered_in_part)
{
    struct envelope envelope;
    unsigned answers = 0;
    for (unsigned i = 0; i < FLOOD; i++) {
        say(MESSAGE_HELLO, 1, 0);
    }
    while (hear(500, &envelope)) {
        answers++;
    }
    ck_assert_uint_ge(answers, 1000);
    ck_assert_uint_lt(answers, FLOOD);
}
END_TEST

SUITE("standby", setup, teardown, TEST(every_message_is_answered_with_the_leader),
      TEST(an_address_of_one_machine_is_left_out),
      TEST(goodbyes_and_bytes_that_are_no_message_get_no_answer), TEST(a_flood_is_answered_in_part))
