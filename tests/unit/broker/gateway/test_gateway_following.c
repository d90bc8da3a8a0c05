/* The gateway of a broker that follows, behind a port of the test's own making: who gets a session,
 * what its answers say of their state, and that everybody else is told who leads. */
#include "broker/gateway/gateway.h"

#include "base/checked.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "broker/gateway/following.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "runtime/clock.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    WAIT_MS = 60000,
    BYTES_MAX = 1 << 16,
    FLOOD = 6000,
    LOG_TIME_MS = 4711,
    INDEX = 40,
    MEMBER = 6,
    STRANGER = 7
};

struct router { /* a pair of sockets: what the gateway is sent, and what it sends */
    void *inside, *outside;
    uint8_t received[BYTES_MAX];
};

static struct router port;
static void *context;
static struct {
    struct following_note following;
    struct queue *worker, *releases;
    struct refusals *refusals;
    struct disk_reserve reserve;
    struct gateway *gateway;
    uint8_t sender; /* of the next message: the first byte of its connection's key */
} around;

void *router_socket(struct router *router)
{
    return router->inside;
}

/* The first byte of what comes is the sender. */
int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message)
{
    ck_assert_int_eq(timeout_ms, 0);
    const int length =
        zmq_recv(router->inside, router->received, sizeof router->received, ZMQ_DONTWAIT);
    if (length < 1) {
        return 0;
    }
    *ret_message = (struct router_message){.route = {{1, 2, 3, 4, router->received[0]}},
                                           .client = {{router->received[0]}},
                                           .bytes = router->received + 1,
                                           .length = (size_t)length - 1};
    return 1;
}

enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length)
{
    ck_assert_uint_eq(route->bytes[4], client->bytes[0]);
    return zmq_send(router->inside, bytes, length, 0) < 0 ? ROUTER_BROKEN : ROUTER_SENT;
}

int router_descriptor(struct router *router)
{
    (void)router;
    return -1; /* one pair of sockets is all connections */
}

void router_pause(int descriptor, bool is_paused)
{
    (void)descriptor;
    (void)is_paused;
}

static void setup(void)
{
    const struct directory_account member = {.number = MEMBER,
                                             .key = {{MEMBER}},
                                             .transport = {{MEMBER}},
                                             .roles = ROLE_CONSUMER | ROLE_PROVIDER,
                                             .name = "member"};
    struct directory *directory = directory_create();
    ck_assert(directory != NULL && directory_put(directory, &member));
    context = zmq_ctx_new();
    port.inside = zmq_socket(context, ZMQ_PAIR);
    port.outside = zmq_socket(context, ZMQ_PAIR);
    int no_bound = 0;
    (void)zmq_setsockopt(port.inside, ZMQ_SNDHWM, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.inside, ZMQ_RCVHWM, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.outside, ZMQ_SNDHWM, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.inside, ZMQ_LINGER, &no_bound, sizeof no_bound);
    (void)zmq_setsockopt(port.outside, ZMQ_LINGER, &no_bound, sizeof no_bound);
    ck_assert_int_eq(zmq_bind(port.inside, "inproc://port"), 0);
    ck_assert_int_eq(zmq_connect(port.outside, "inproc://port"), 0);
    following_note_init(&around.following);
    following_note_leader(&around.following, "tcp://b.example:4770");
    following_note_state(&around.following, INDEX, LOG_TIME_MS * NS_PER_MS);
    around.sender = MEMBER;
    around.worker = queue_create(16);
    around.releases = queue_create(64);
    around.refusals = refusals_create();
    const struct gateway_config config = {.router = &port,
                                          .directory = directory,
                                          .workers = {around.worker},
                                          .worker_count = 1,
                                          .releases = around.releases,
                                          .heartbeat_ms = 60000,
                                          .rate = 1000,
                                          .rate_anonymous = 1000,
                                          .origin = "test",
                                          .reserve = &around.reserve,
                                          .refusals = around.refusals,
                                          .following = &around.following};
    around.gateway = gateway_start(&config);
}

static void teardown(void)
{
    gateway_stop(&around.gateway);
    request_drain(around.worker);
    queue_destroy(&around.worker);
    outgoing_drain(around.releases);
    queue_destroy(&around.releases);
    refusals_destroy(&around.refusals);
    following_note_fini(&around.following);
    (void)zmq_close(port.inside);
    (void)zmq_close(port.outside);
    (void)zmq_ctx_term(context);
}

static void say_body(enum message_type type, uint8_t id, uint64_t session,
                     const ProtobufCMessage *body)
{
    uint8_t bytes[1024] = {around.sender};
    size_t length = 0;
    uint8_t *encoded = body == NULL ? NULL : codec_encode(body, &length);
    const struct envelope envelope = {.version = ENVELOPE_VERSION,
                                      .type = (uint16_t)type,
                                      .session = session,
                                      .id = {{id}},
                                      .created_ms = 1,
                                      .body = encoded,
                                      .body_length = (uint32_t)length};
    envelope_write(&envelope, bytes + 1, sizeof bytes - 1);
    ck_assert_int_gt(zmq_send(port.outside, bytes, envelope_size(&envelope) + 1, 0), 0);
    free(encoded);
}

static void say(enum message_type type, uint8_t id, uint64_t session)
{
    say_body(type, id, session, NULL);
}

/* A client that only reads, and knows of command `least`. */
static void say_hello(uint8_t id, bool reads, enum session_role role, uint64_t least)
{
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "test 1";
    hello.has_role = true;
    hello.role = role;
    hello.has_reads = hello.reads = reads;
    hello.has_least_index = least > 0;
    hello.least_index = least;
    say_body(MESSAGE_HELLO, id, 0, &hello.base);
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
    ck_assert_int_ge(envelope.created_ms, LOG_TIME_MS);
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

/* Whoever has only an invitation is answered, too: the key of the port is enough. */
START_TEST(every_message_is_answered_with_the_leader)
{
    around.sender = STRANGER;
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
    following_note_leader(&around.following, "ipc:///var/lib/bourse/broker.sock");
    say(MESSAGE_HELLO, 1, 0);
    hear_refusal(1, 0, NULL);
    following_note_leader(&around.following, "");
    say(MESSAGE_HELLO, 2, 0);
    hear_refusal(2, 0, NULL);
}
END_TEST

START_TEST(goodbyes_and_bytes_that_are_no_message_get_no_answer)
{
    ck_assert_int_gt(zmq_send(port.outside, "\7nonsense", 9, 0), 0);
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

/* Returns the Welcome under `id`, which the caller frees. */
static const Bourse__V1__Welcome *hear_welcome(uint8_t id, ProtobufCMessage **ret_body)
{
    struct envelope envelope;
    struct codec_error error;
    ck_assert(hear(WAIT_MS, &envelope));
    ck_assert_uint_eq(envelope.type, MESSAGE_WELCOME);
    ck_assert_uint_eq(envelope.id.bytes[0], id);
    ck_assert_int_eq(
        codec_decode(MESSAGE_WELCOME, envelope.body, envelope.body_length, ret_body, &error),
        CODEC_OK);
    return (const void *)*ret_body;
}

/* Opens a session, and returns its number. */
static uint64_t greet(uint8_t id)
{
    ProtobufCMessage *body = NULL;
    say_hello(id, true, SESSION_CONSUMER, 0);
    const uint64_t session = hear_welcome(id, &body)->session;
    codec_free(&body);
    return session;
}

static void be_fresh(int64_t ago_ms)
{
    following_note_fresh(&around.following, clock_monotonic_ns() - ago_ms * NS_PER_MS);
}

START_TEST(who_only_reads_gets_a_session)
{
    ProtobufCMessage *body = NULL;
    be_fresh(0);
    say_hello(1, true, SESSION_CONSUMER, INDEX);
    const Bourse__V1__Welcome *welcome = hear_welcome(1, &body);
    ck_assert(welcome->has_follows && welcome->follows);
    ck_assert_uint_eq(welcome->log_index, INDEX);
    ck_assert_int_eq(welcome->as_of_ns, LOG_TIME_MS * NS_PER_MS);
    ck_assert(!welcome->has_stale_ms);
    ck_assert(welcome->has_account && welcome->account.data[0] == MEMBER);
    codec_free(&body);
}
END_TEST

START_TEST(nobody_else_gets_one)
{
    be_fresh(0);
    say_hello(1, false, SESSION_CONSUMER, 0);
    hear_refusal(1, 0, "tcp://b.example:4770");
    say_hello(2, true, SESSION_PROVIDER, 0);
    hear_refusal(2, 0, "tcp://b.example:4770");
    say_hello(3, true, SESSION_CONSUMER, INDEX + 1); /* it knows of more than this broker */
    hear_refusal(3, 0, "tcp://b.example:4770");
}
END_TEST

/* Before that, nobody knows how old the state is. */
START_TEST(a_broker_that_was_never_at_the_end_of_the_journal_answers_nobody)
{
    say_hello(1, true, SESSION_CONSUMER, 0);
    hear_refusal(1, 0, "tcp://b.example:4770");
}
END_TEST

START_TEST(a_state_that_is_old_is_marked)
{
    ProtobufCMessage *body = NULL;
    be_fresh(FOLLOWING_FRESH_MS + 8500);
    say_hello(1, true, SESSION_CONSUMER, 0);
    const Bourse__V1__Welcome *welcome = hear_welcome(1, &body);
    ck_assert(welcome->has_stale_ms);
    ck_assert_int_ge(welcome->stale_ms, FOLLOWING_FRESH_MS + 8500);
    codec_free(&body);
}
END_TEST

START_TEST(a_read_goes_inside_and_its_answer_says_of_which_state_it_is)
{
    struct envelope envelope;
    struct codec_error error;
    ProtobufCMessage *body = NULL;
    be_fresh(0);
    const uint64_t session = greet(1);
    say(MESSAGE_BALANCE_REQUEST, 2, session);
    struct queue_link *link = queue_pop(around.worker, (int64_t)WAIT_MS * NS_PER_MS);
    ck_assert_ptr_nonnull(link);
    struct request *request = QUEUE_ELEMENT(link, struct request, link);
    ck_assert_uint_eq(request->account, MEMBER);
    struct outgoing *answer = outgoing_create(OUTGOING_REPLY);
    answer->type = MESSAGE_BALANCE_REPLY;
    answer->session = session;
    answer->id = request->envelope.id;
    answer->index = INDEX - 1;
    answer->log_time_ns = 5 * NS_PER_MS;
    ck_assert(queue_push(around.releases, &answer->link));
    request_destroy(&request);
    ck_assert(hear(WAIT_MS, &envelope));
    ck_assert_uint_eq(envelope.type, MESSAGE_HEARTBEAT);
    ck_assert_uint_eq(envelope.sequence, 2);
    ck_assert_int_eq(
        codec_decode(MESSAGE_HEARTBEAT, envelope.body, envelope.body_length, &body, &error),
        CODEC_OK);
    const Bourse__V1__Heartbeat *mark = (const void *)body;
    ck_assert(mark->has_state_index && mark->state_index == INDEX - 1);
    ck_assert_int_eq(mark->state_ns, 5 * NS_PER_MS);
    ck_assert(!mark->has_stale_ms);
    codec_free(&body);
    ck_assert(hear(WAIT_MS, &envelope));
    ck_assert_uint_eq(envelope.type, MESSAGE_BALANCE_REPLY);
    ck_assert_uint_eq(envelope.sequence, 3);
}
END_TEST

START_TEST(a_command_in_a_session_ends_it)
{
    be_fresh(0);
    const uint64_t session = greet(1);
    say(MESSAGE_SUBMIT_JOB, 2, session);
    hear_refusal(2, session, "tcp://b.example:4770");
    say(MESSAGE_BALANCE_REQUEST, 3, session);
    hear_refusal(3, session, "tcp://b.example:4770");
    struct queue_link *link = queue_pop(around.worker, 0);
    while (link != NULL) { /* that the session is over, and nothing else, goes inside */
        struct request *request = QUEUE_ELEMENT(link, struct request, link);
        ck_assert_int_eq(request->kind, REQUEST_CLOSED);
        request_destroy(&request);
        link = queue_pop(around.worker, 0);
    }
}
END_TEST

START_TEST(an_earlier_time_does_not_make_a_state_older)
{
    const int64_t now_ns = 100 * NS_PER_S;
    following_note_fresh(&around.following, now_ns - 2 * NS_PER_S);
    following_note_fresh(&around.following, now_ns - 3 * NS_PER_S);
    following_note_fresh(&around.following, 0);
    const struct following now = following_now(&around.following, now_ns);
    ck_assert_int_eq(now.age_ms, 2000);
    ck_assert_int_eq(now.stale_ms, 2000);
    ck_assert_int_eq(following_now(&around.following, now_ns - NS_PER_S).stale_ms, 0);
}
END_TEST

SUITE("gateway_following", setup, teardown, TEST(every_message_is_answered_with_the_leader),
      TEST(an_address_of_one_machine_is_left_out),
      TEST(goodbyes_and_bytes_that_are_no_message_get_no_answer), TEST(a_flood_is_answered_in_part),
      TEST(who_only_reads_gets_a_session), TEST(nobody_else_gets_one),
      TEST(a_broker_that_was_never_at_the_end_of_the_journal_answers_nobody),
      TEST(a_state_that_is_old_is_marked),
      TEST(a_read_goes_inside_and_its_answer_says_of_which_state_it_is),
      TEST(a_command_in_a_session_ends_it), TEST(an_earlier_time_does_not_make_a_state_older))
