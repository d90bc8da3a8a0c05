/* The gateway's thread behind a port of the test's own making: what reaches the worker in which
 * order, and what a client hears when its connection takes nothing for a while. */
#include "broker/gateway/gateway.h"

#include "base/checked.h"
#include "broker/core/logtime.h"
#include "broker/core/outgoing.h"
#include "broker/core/queue.h"
#include "broker/core/request.h"
#include "broker/gateway/sessions.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

enum { AGENT = 5, CLIENT = 6, WAIT_MS = 60000, WORKER_ROOM = 2, SLOW_MS = 600000, BRISK_MS = 200 };

/* ---------------------------------------------------------------- the port */

struct router { /* a pair of sockets: what the gateway is sent, and what it sends */
    void *inside, *outside;
    atomic_int takes_nothing_of; /* the number of a connection */
    uint8_t received[1 << 16];
};

static struct router port;

void *router_socket(struct router *router)
{
    return router->inside;
}

/* Route, key, message. */
int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message)
{
    ck_assert_int_eq(timeout_ms, 0);
    int length = zmq_recv(router->inside, router->received, sizeof router->received, ZMQ_DONTWAIT);
    if (length < 0) {
        return 0;
    }
    size_t head = sizeof(struct route) + sizeof(struct key32);
    memcpy(ret_message->route.bytes, router->received, sizeof(struct route));
    memcpy(ret_message->client.bytes, router->received + sizeof(struct route),
           sizeof(struct key32));
    ret_message->bytes = router->received + head;
    ret_message->length = (size_t)length - head;
    return 1;
}

enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length)
{
    (void)client;
    if (atomic_load(&router->takes_nothing_of) == route->bytes[1]) {
        return ROUTER_FULL;
    }
    uint8_t whole[1 << 16];
    memcpy(whole, route->bytes, sizeof *route);
    memcpy(whole + sizeof *route, bytes, length);
    return zmq_send(router->inside, whole, sizeof *route + length, 0) < 0 ? ROUTER_BROKEN
                                                                          : ROUTER_SENT;
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
    ck_abort_msg("nothing is to be paused here");
}

/* ---------------------------------------------------------------- a gateway, and who talks to it
 */

static struct {
    void *context;
    struct logtime *clock;
    struct refusals *refusals;
    struct queue *worker, *releases;
    struct disk_reserve reserve;
    struct quorum_note quorum;
    struct gateway *gateway;
} around;

static struct directory *make_directory(void)
{
    struct directory *directory = directory_create();
    ck_assert_ptr_nonnull(directory);
    const struct directory_account accounts[] = {
        {.number = AGENT,
         .key = {{AGENT}},
         .transport = {{AGENT}},
         .roles = ROLE_PROVIDER,
         .name = "agent"},
        {.number = CLIENT,
         .key = {{CLIENT}},
         .transport = {{CLIENT}},
         .roles = ROLE_CONSUMER,
         .name = "client"},
    };
    for (size_t i = 0; i < sizeof accounts / sizeof *accounts; i++) {
        ck_assert(directory_put(directory, &accounts[i]));
    }
    return directory;
}

/* `rate`: messages per second and session. */
static void start(int64_t heartbeat_ms, uint32_t rate)
{
    around.context = zmq_ctx_new();
    port.inside = zmq_socket(around.context, ZMQ_PAIR);
    port.outside = zmq_socket(around.context, ZMQ_PAIR);
    atomic_store(&port.takes_nothing_of, 0);
    ck_assert_int_eq(zmq_bind(port.inside, "inproc://port"), 0);
    ck_assert_int_eq(zmq_connect(port.outside, "inproc://port"), 0);
    around.clock = logtime_create(0);
    around.refusals = refusals_create();
    around.worker = queue_create(WORKER_ROOM);
    around.releases = queue_create(64);
    quorum_note_init(&around.quorum);
    const struct gateway_config config = {.router = &port,
                                          .directory = make_directory(),
                                          .clock = around.clock,
                                          .workers = {around.worker},
                                          .worker_count = 1,
                                          .releases = around.releases,
                                          .heartbeat_ms = heartbeat_ms,
                                          .rate = rate,
                                          .rate_anonymous = rate,
                                          .origin = "test",
                                          .reserve = &around.reserve,
                                          .quorum = &around.quorum,
                                          .refusals = around.refusals};
    around.gateway = gateway_start(&config);
}

static void stop(void)
{
    gateway_stop(&around.gateway);
    request_drain(around.worker);
    queue_destroy(&around.worker);
    queue_destroy(&around.releases);
    refusals_destroy(&around.refusals);
    quorum_note_fini(&around.quorum);
    logtime_destroy(&around.clock);
    int at_once = 0;
    (void)zmq_setsockopt(port.inside, ZMQ_LINGER, &at_once, sizeof at_once);
    (void)zmq_setsockopt(port.outside, ZMQ_LINGER, &at_once, sizeof at_once);
    (void)zmq_close(port.inside);
    (void)zmq_close(port.outside);
    (void)zmq_ctx_term(around.context);
}

struct connection {
    uint8_t account, number;
    uint64_t session; /* by its Welcome */
    uint64_t heard;   /* the last number of it */
};

static struct id128 say(const struct connection *from, enum message_type type,
                        const ProtobufCMessage *body)
{
    static uint32_t ids;
    uint8_t bytes[4096] = {0};
    size_t head = sizeof(struct route) + sizeof(struct key32);
    size_t length = 0;
    uint8_t *encoded = body == NULL ? NULL : codec_encode(body, &length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = from->session,
                                .is_signed = message_must_be_signed(type),
                                .created_ms = logtime_now(around.clock) / NS_PER_MS,
                                .body = encoded,
                                .body_length = (uint32_t)length};
    ids++;
    memcpy(envelope.id.bytes, &ids, sizeof ids);
    bytes[0] = 0;
    bytes[1] = from->number;
    bytes[sizeof(struct route)] = from->account;
    envelope_write(&envelope, bytes + head, sizeof bytes - head);
    ck_assert_int_gt(zmq_send(port.outside, bytes, head + envelope_size(&envelope), 0), 0);
    free(encoded);
    return envelope.id;
}

/* The next message, and the number of the connection that it goes to. It borrows from one
 * buffer. */
static struct envelope hear_any(uint8_t *ret_number)
{
    static uint8_t bytes[1 << 16];
    struct envelope envelope;
    size_t head = sizeof(struct route);
    zmq_pollitem_t item = {.socket = port.outside, .events = ZMQ_POLLIN};
    ck_assert_msg(zmq_poll(&item, 1, WAIT_MS) == 1, "nothing comes");
    int length = zmq_recv(port.outside, bytes, sizeof bytes, 0);
    ck_assert_int_gt(length, (int)head);
    ck_assert_int_eq(
        envelope_read(bytes + head, (size_t)length - head, LIMIT_MESSAGE_BYTES, &envelope),
        ENVELOPE_OK);
    *ret_number = bytes[1];
    return envelope;
}

/* The next message to `to` but for heartbeats; what goes to others is passed over. Numbers have no
 * gap. */
static struct envelope hear(struct connection *to)
{
    for (;;) {
        uint8_t number;
        struct envelope envelope = hear_any(&number);
        if (number != to->number) {
            continue;
        }
        bool is_numbered = envelope.session == to->session && envelope.sequence != 0;
        if (is_numbered && envelope.type != MESSAGE_WELCOME) {
            ck_assert_uint_eq(envelope.sequence, to->heard + 1);
            to->heard++;
        }
        if (envelope.type != MESSAGE_HEARTBEAT) {
            return envelope;
        }
    }
}

/* A Hello; with `seen` the client wants to go on with the session that it had after that
 * message. */
static struct id128 greet(const struct connection *from, enum session_role role, uint64_t seen)
{
    const struct connection anew = {.account = from->account, .number = from->number};
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "test";
    hello.has_role = true;
    hello.role = role;
    hello.has_resume_session = hello.has_resume_sequence = seen > 0;
    hello.resume_session = from->session;
    hello.resume_sequence = seen;
    return say(&anew, MESSAGE_HELLO, &hello.base);
}

static struct connection connect_as(uint8_t account, uint8_t number, enum session_role role)
{
    struct connection made = {.account = account, .number = number};
    (void)greet(&made, role, 0);
    struct envelope answer = hear(&made);
    ck_assert_int_eq(answer.type, MESSAGE_WELCOME);
    ck_assert_uint_eq(answer.sequence, 1);
    made.session = answer.session;
    made.heard = 1;
    return made;
}

struct told { /* a Reject */
    enum reject_code code;
    char text[256];
};

static struct told told_by(const struct envelope *answer)
{
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    ck_assert_int_eq(answer->type, MESSAGE_REJECT);
    ck_assert_int_eq(codec_decode(MESSAGE_REJECT, answer->body, answer->body_length, &body, &error),
                     CODEC_OK);
    const Bourse__V1__Reject *said = (const void *)body;
    struct told told = {.code = (enum reject_code)said->code};
    strncpy(told.text, said->text, sizeof told.text - 1);
    codec_free(&body);
    return told;
}

static void check_refused(struct connection *from, enum message_type type, enum reject_code code)
{
    struct id128 id = say(from, type, NULL);
    struct envelope answer = hear(from);
    ck_assert(id128_equal(&answer.id, &id));
    struct told told = told_by(&answer);
    ck_assert_str_eq(reject_name(told.code), reject_name(code));
}

static struct request *next_request(void)
{
    struct queue_link *link = queue_pop(around.worker, WAIT_MS * NS_PER_MS);
    ck_assert_ptr_nonnull(link);
    return QUEUE_ELEMENT(link, struct request, link);
}

static void check_next(enum request_kind kind, enum message_type type)
{
    struct request *request = next_request();
    ck_assert_int_eq(request->kind, kind);
    if (kind == REQUEST_MESSAGE) {
        ck_assert_int_eq(request->envelope.type, type);
    }
    request_destroy(&request);
}

/* Once the answer to this is there, all that was said before has been read. */
static void be_sure_that_it_was_read(struct connection *from)
{
    check_refused(from, MESSAGE_WELCOME, REJECT_TYPE);
}

/* Something that the broker has for the session: the next of its numbered messages. */
static void release_to(const struct connection *to)
{
    struct outgoing *outgoing = outgoing_create(OUTGOING_EVENT);
    ck_assert_ptr_nonnull(outgoing);
    outgoing->session = to->session;
    outgoing->type = MESSAGE_JOB_EVENT;
    outgoing->length = 8 << 10;
    outgoing->body = calloc(1, outgoing->length);
    ck_assert(queue_push(around.releases, &outgoing->link));
}

/* ---------------------------------------------------------------- order */

START_TEST(nothing_that_an_account_says_overtakes_its_goodbye)
{
    start(SLOW_MS, 1000);
    struct connection agent = connect_as(AGENT, 1, SESSION_PROVIDER);
    struct connection client = connect_as(CLIENT, 2, SESSION_CONSUMER);
    for (int i = 0; i < WORKER_ROOM; i++) { /* the worker's queue is full */
        (void)say(&client, MESSAGE_BALANCE_REQUEST, NULL);
    }
    (void)say(&agent, MESSAGE_GOODBYE, NULL);
    agent = connect_as(AGENT, 1, SESSION_PROVIDER); /* back at once, with fresh asks */
    check_refused(&agent, MESSAGE_ADVERTISE, REJECT_BUSY);

    check_next(REQUEST_MESSAGE, MESSAGE_BALANCE_REQUEST);
    check_refused(&agent, MESSAGE_ADVERTISE, REJECT_BUSY); /* there is room for one: the goodbye */
    check_next(REQUEST_MESSAGE, MESSAGE_BALANCE_REQUEST);
    (void)say(&agent, MESSAGE_ADVERTISE, NULL);
    be_sure_that_it_was_read(&agent);
    struct request *request = next_request();
    ck_assert_int_eq(request->kind, REQUEST_PRESENCE);
    ck_assert_int_eq(request->presence, ENTRY_GOODBYE);
    ck_assert_uint_eq(request->account, AGENT);
    request_destroy(&request);
    check_next(REQUEST_MESSAGE, MESSAGE_ADVERTISE);
    stop();
}
END_TEST

START_TEST(a_goodbye_waits_until_the_journal_takes_entries)
{
    start(SLOW_MS, 1000);
    struct connection agent = connect_as(AGENT, 1, SESSION_PROVIDER);
    atomic_store(&around.quorum.is_away, true);
    (void)say(&agent, MESSAGE_GOODBYE, NULL);
    agent = connect_as(AGENT, 1, SESSION_PROVIDER);
    check_refused(&agent, MESSAGE_ADVERTISE, REJECT_UNAVAILABLE);
    ck_assert_uint_eq(queue_count(around.worker), 0);
    atomic_store(&around.quorum.is_away, false);
    (void)say(&agent, MESSAGE_ADVERTISE, NULL);
    check_next(REQUEST_PRESENCE, MESSAGE_GOODBYE);
    check_next(REQUEST_MESSAGE, MESSAGE_ADVERTISE);
    stop();
}
END_TEST

START_TEST(others_do_not_wait_for_a_goodbye)
{
    start(SLOW_MS, 1000);
    struct connection agent = connect_as(AGENT, 1, SESSION_PROVIDER);
    struct connection client = connect_as(CLIENT, 2, SESSION_CONSUMER);
    for (int i = 0; i < WORKER_ROOM; i++) {
        (void)say(&client, MESSAGE_BALANCE_REQUEST, NULL);
    }
    (void)say(&agent, MESSAGE_GOODBYE, NULL);
    be_sure_that_it_was_read(&client);
    check_next(REQUEST_MESSAGE, MESSAGE_BALANCE_REQUEST);
    (void)say(&client, MESSAGE_JOB_CANCEL, NULL);
    be_sure_that_it_was_read(&client);
    check_next(REQUEST_MESSAGE, MESSAGE_BALANCE_REQUEST);
    check_next(REQUEST_MESSAGE, MESSAGE_JOB_CANCEL);
    stop();
}
END_TEST

/* ---------------------------------------------------------------- a Welcome that did not get
 * through */

static void go_on(struct connection *client, uint8_t number, uint64_t seen)
{
    client->number = number;
    client->heard = seen;
    (void)greet(client, SESSION_CONSUMER, seen);
}

static void check_hears(struct connection *to, enum message_type type)
{
    struct envelope heard = hear(to);
    ck_assert_str_eq(message_name((enum message_type)heard.type), message_name(type));
    ck_assert_uint_eq(heard.session, to->session);
}

START_TEST(nothing_goes_before_the_welcome_of_a_session_that_goes_on)
{
    start(BRISK_MS, 1000);
    struct connection client = connect_as(CLIENT, 1, SESSION_CONSUMER);
    struct connection other = connect_as(CLIENT, 2, SESSION_CONSUMER);
    release_to(&client);
    check_hears(&client, MESSAGE_JOB_EVENT);
    atomic_store(&port.takes_nothing_of, 3);
    go_on(&client, 3, client.heard); /* it has seen all, but its new connection has no room */
    be_sure_that_it_was_read(&other);
    release_to(&client);
    release_to(&other);
    check_hears(&other, MESSAGE_JOB_EVENT);
    atomic_store(&port.takes_nothing_of, 0);
    release_to(&client); /* now there would be room for it */
    struct envelope welcome = hear(&client);
    ck_assert_int_eq(welcome.type, MESSAGE_WELCOME);
    ck_assert_uint_eq(welcome.session, client.session);
    ck_assert_uint_eq(welcome.sequence, client.heard);
    check_hears(&client, MESSAGE_JOB_EVENT);
    check_hears(&client, MESSAGE_JOB_EVENT);
    stop();
}
END_TEST

START_TEST(a_late_welcome_says_what_was_missed_by_then)
{
    start(BRISK_MS, 1000);
    struct connection client = connect_as(CLIENT, 1, SESSION_CONSUMER);
    struct connection other = connect_as(CLIENT, 2, SESSION_CONSUMER);
    release_to(&client);
    check_hears(&client, MESSAGE_JOB_EVENT);
    uint64_t seen = client.heard;
    release_to(&client);
    check_hears(&client, MESSAGE_JOB_EVENT);
    atomic_store(&port.takes_nothing_of, 3);
    go_on(&client, 3, seen);
    be_sure_that_it_was_read(&other);
    release_to(&client);
    release_to(&other);
    check_hears(&other, MESSAGE_JOB_EVENT);
    atomic_store(&port.takes_nothing_of, 0);
    struct envelope heard = hear(&client);
    ck_assert_int_eq(heard.type, MESSAGE_WELCOME);
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    ck_assert_int_eq(codec_decode(MESSAGE_WELCOME, heard.body, heard.body_length, &body, &error),
                     CODEC_OK);
    const Bourse__V1__Welcome *welcome = (const void *)body;
    ck_assert(welcome->has_resumed && welcome->resumed && !welcome->has_gap);
    ck_assert_uint_ge(welcome->missed, 2); /* heartbeats are numbered, too */
    ck_assert_uint_eq(welcome->roles, ROLE_CONSUMER);
    uint64_t last = seen + welcome->missed;
    codec_free(&body);
    check_hears(&client, MESSAGE_JOB_EVENT);
    check_hears(&client, MESSAGE_JOB_EVENT);
    ck_assert_uint_le(client.heard, last);
    stop();
}
END_TEST

/* ---------------------------------------------------------------- what a Hello costs, and places
 */

START_TEST(what_is_sent_again_counts_as_messages_of_the_account)
{
    enum { RATE = 10, TIMES = 12, EVENTS = 10 };
    start(SLOW_MS, RATE);
    struct connection client = connect_as(CLIENT, 1, SESSION_CONSUMER);
    const struct connection other = {.account = CLIENT, .number = 2};
    for (int i = 0; i < EVENTS; i++) { /* 80 KiB: the most that one Hello can cost */
        release_to(&client);
        check_hears(&client, MESSAGE_JOB_EVENT);
    }
    int64_t began_ns = clock_monotonic_ns();
    unsigned resumed = 0;
    unsigned refused = 0;
    for (int i = 0; i < TIMES; i++) {
        struct id128 again = greet(&client, SESSION_CONSUMER, 1);
        struct id128 anew = greet(&other, SESSION_CONSUMER, 0); /* costs nothing but itself */
        struct envelope answer;
        uint8_t number;
        do {
            answer = hear_any(&number);
            bool is_it = id128_equal(&answer.id, &again);
            resumed += is_it && answer.type == MESSAGE_WELCOME;
            if (is_it && answer.type == MESSAGE_REJECT) {
                struct told told = told_by(&answer);
                ck_assert_int_eq(told.code, REJECT_RATE);
                ck_assert_ptr_nonnull(strstr(told.text, "account_messages_per_second"));
                refused++;
            }
        } while (!id128_equal(&answer.id, &anew));
        ck_assert_int_eq(answer.type, MESSAGE_WELCOME);
    }
    int64_t passed_s = (clock_monotonic_ns() - began_ns) / NS_PER_S;
    ck_assert_uint_ge(resumed, 2); /* twice the rate at once ... */
    ck_assert_int_le(resumed, 2 + passed_s + 1);
    ck_assert_uint_ge(refused, 1); /* ... and what is above it is told once a second */
    ck_assert_int_le(refused, passed_s + 1);
    stop();
}
END_TEST

START_TEST(a_session_that_ended_gives_its_place_and_nothing_else_to_the_next)
{
    start(BRISK_MS, 1000);
    struct connection first = connect_as(CLIENT, 1, SESSION_CONSUMER);
    release_to(&first);
    check_hears(&first, MESSAGE_JOB_EVENT);
    (void)say(&first, MESSAGE_GOODBYE, NULL);
    struct request *request = next_request(); /* the core hears of it: the place is free */
    ck_assert_int_eq(request->kind, REQUEST_CLOSED);
    ck_assert_uint_eq(request->session, first.session);
    request_destroy(&request);
    struct connection second = connect_as(CLIENT, 2, SESSION_CONSUMER);
    ck_assert_uint_eq(second.session % SESSIONS_MAX, first.session % SESSIONS_MAX);
    ck_assert_uint_ne(second.session, first.session);
    release_to(&first); /* late: for nobody */
    release_to(&second);
    check_hears(&second, MESSAGE_JOB_EVENT);
    check_refused(&first, MESSAGE_BALANCE_REQUEST, REJECT_SESSION);
    go_on(&first, 3, first.heard);
    struct envelope answer = hear(&first);
    ck_assert_int_eq(answer.type, MESSAGE_WELCOME);
    ck_assert_uint_eq(answer.sequence, 1); /* a new one */
    ck_assert_uint_ne(answer.session, second.session);
    stop();
}
END_TEST

/* Greets until the first refusal, at most `most` times. Returns the number of Welcomes. */
static int greet_until_refused(const struct connection *client, int most, struct told *ret_told)
{
    for (int welcomes = 0; welcomes < most; welcomes++) {
        struct id128 id = greet(client, SESSION_CONSUMER, 0);
        struct envelope answer;
        uint8_t number;
        do {
            answer = hear_any(&number);
        } while (!id128_equal(&answer.id, &id));
        if (answer.type == MESSAGE_REJECT) {
            *ret_told = told_by(&answer);
            return welcomes;
        }
    }
    return most;
}

START_TEST(an_operator_may_change_the_rates_of_a_gateway_that_runs)
{
    enum { RATE = 1000, LESS = 1, MANY = 40 };
    struct told told = {.code = REJECT_NONE};
    start(SLOW_MS, RATE);
    const struct connection client = connect_as(CLIENT, 1, SESSION_CONSUMER);
    ck_assert_int_eq(greet_until_refused(&client, MANY, &told), MANY);
    gateway_set_rates(around.gateway, LESS, LESS);
    ck_assert_int_lt(greet_until_refused(&client, MANY, &told), MANY);
    ck_assert_int_eq(told.code, REJECT_RATE);
    stop();
}
END_TEST

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

START_TEST(a_gateway_that_lives_turns_without_messages)
{
    start(100, 1000);
    const uint64_t before = gateway_turns(around.gateway);
    for (int i = 0; i < 1000 && gateway_turns(around.gateway) < before + 8; i++) {
        sleep_ms(10); /* turns are no event for others */
    }
    ck_assert_uint_ge(gateway_turns(around.gateway), before + 8);
    stop();
}
END_TEST

SUITE("gateway", NULL, NULL, TEST(nothing_that_an_account_says_overtakes_its_goodbye),
      TEST(a_goodbye_waits_until_the_journal_takes_entries), TEST(others_do_not_wait_for_a_goodbye),
      TEST(nothing_goes_before_the_welcome_of_a_session_that_goes_on),
      TEST(a_late_welcome_says_what_was_missed_by_then),
      TEST(what_is_sent_again_counts_as_messages_of_the_account),
      TEST(an_operator_may_change_the_rates_of_a_gateway_that_runs),
      TEST(a_gateway_that_lives_turns_without_messages),
      TEST(a_session_that_ended_gives_its_place_and_nothing_else_to_the_next))
