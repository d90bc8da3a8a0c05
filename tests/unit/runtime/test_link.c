#include "runtime/link.h"
#include "runtime/link_explain.h"

#include "runtime/clock.h"
#include "runtime/hangups.h"
#include "runtime/process.h"
#include "runtime/router.h"
#include "runtime/zap.h"
#include "tests/support/suite.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { WAIT_MS = 60000, MESSAGE_CAP = 4096, KEY_BYTES = 1 << 20 };

struct market { /* a broker's port, and what clients need to know of it */
    void *context;
    struct zap *zap;
    struct router *router;
    struct identity *server;
    struct identity *client;
    char folder[64];
    char ipc[128];
    char tcp[128];
};

static struct market setup(void)
{
    static const uint8_t server_seed[32] = {1};
    static const uint8_t client_seed[32] = {2};
    struct market market = {0};
    struct problem problem;
    ck_assert(process_start(&problem));
    market.context = zmq_ctx_new();
    market.server = identity_create(server_seed);
    market.client = identity_create(client_seed);
    strcpy(market.folder, "/tmp/bourse-link-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(market.folder));
    ck_assert_msg(zap_start(market.context, &market.zap, &problem), "%s", problem.text);

    uid_t me = geteuid();
    struct router_config config = {.identity = market.server,
                                   .max_message_bytes = MESSAGE_CAP,
                                   .send_bytes = 3 * KEY_BYTES,
                                   .send_key_bytes = KEY_BYTES,
                                   .uids = &me,
                                   .uid_count = 1};
    ck_assert_msg(router_open(market.context, &config, &market.router, &problem), "%s",
                  problem.text);
    char endpoint[128];
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s/a socket", market.folder);
    ck_assert_msg(
        router_bind(market.router, endpoint, false, market.ipc, sizeof market.ipc, &problem), "%s",
        problem.text);
    ck_assert_msg(router_bind(market.router, "tcp://127.0.0.1:*", false, market.tcp,
                              sizeof market.tcp, &problem),
                  "%s", problem.text);
    return market;
}

static void teardown(struct market *market)
{
    router_close(&market->router);
    zap_stop(&market->zap);
    ck_assert_int_eq(zmq_ctx_term(market->context), 0);
    identity_destroy(&market->server);
    identity_destroy(&market->client);
    char path[sizeof market->folder + 16];
    (void)snprintf(path, sizeof path, "%s/a socket", market->folder);
    (void)unlink(path); /* libzmq leaves it behind when the context ends soon after the close */
    ck_assert_int_eq(rmdir(market->folder), 0);
}

static struct link *connect_as(const struct market *market, const char *endpoint,
                               const struct identity *identity)
{
    struct link *link;
    struct problem problem;
    ck_assert_msg(link_open(market->context, endpoint, identity_transport(market->server), identity,
                            MESSAGE_CAP, &link, &problem),
                  "%s", problem.text);
    return link;
}

/* Sends as soon as the connection stands. */
static void send_when_ready(struct link *link, const void *bytes, size_t length)
{
    zmq_pollitem_t item = {.socket = link_socket(link), .events = ZMQ_POLLOUT};
    ck_assert_int_eq(zmq_poll(&item, 1, WAIT_MS), 1);
    ck_assert(link_send(link, bytes, length));
}

/* A client that may send only once the connection stands must not sleep beside it. */
START_TEST(a_wait_after_a_refused_message_ends_when_there_is_room)
{
    struct market market = setup();
    struct link *link = connect_as(&market, market.ipc, market.client);
    ck_assert(!link_send(link, "question", 8)); /* no connection stands yet */
    const uint8_t *bytes;
    size_t length;
    ck_assert_int_eq(link_receive(link, -1, &bytes, &length), 0); /* for ever, as nobody answers */
    ck_assert(link_send(link, "question", 8));
    struct router_message message;
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    ck_assert_int_eq(link_receive(link, 10, &bytes, &length), 0);
    link_close(&link);
    teardown(&market);
}
END_TEST

static void check_conversation_of(struct market *market, const char *endpoint,
                                  const struct identity *client)
{
    struct link *link = connect_as(market, endpoint, client);
    send_when_ready(link, "question", 8);

    struct router_message message;
    ck_assert_int_eq(router_receive(market->router, WAIT_MS, &message), 1);
    ck_assert_uint_eq(message.length, 8);
    ck_assert_mem_eq(message.bytes, "question", 8);
    ck_assert(key32_equal(&message.client, identity_transport(client)));

    ck_assert_int_eq(router_send(market->router, &message.route, &message.client, "answer", 6),
                     ROUTER_SENT);
    const uint8_t *bytes;
    size_t length;
    ck_assert_int_eq(link_receive(link, WAIT_MS, &bytes, &length), 1);
    ck_assert_uint_eq(length, 6);
    ck_assert_mem_eq(bytes, "answer", 6);
    ck_assert_int_eq(link_receive(link, 0, &bytes, &length), 0);
    link_close(&link);
    ck_assert_ptr_null(link);
}

static void check_conversation(struct market *market, const char *endpoint)
{
    check_conversation_of(market, endpoint, market->client);
}

START_TEST(question_and_answer_over_ipc)
{
    struct market market = setup();
    check_conversation(&market, market.ipc);
    struct stat status;
    ck_assert_int_eq(stat(market.ipc + strlen("ipc://"), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    teardown(&market);
}
END_TEST

START_TEST(question_and_answer_over_tcp)
{
    struct market market = setup();
    check_conversation(&market, market.tcp);
    ck_assert_uint_eq(zap_counts(market.zap).admitted, 1);
    ck_assert_uint_eq(zap_counts(market.zap).refused, 0);
    teardown(&market);
}
END_TEST

START_TEST(each_message_tells_which_key_sent_it)
{
    static const uint8_t other_seed[32] = {3};
    struct market market = setup();
    struct identity *other = identity_create(other_seed);
    struct link *first = connect_as(&market, market.ipc, market.client);
    struct link *second = connect_as(&market, market.tcp, other);
    send_when_ready(first, "1", 1);
    send_when_ready(second, "2", 1);
    for (int i = 0; i < 2; i++) {
        struct router_message message;
        ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
        const struct identity *expected = message.bytes[0] == '1' ? market.client : other;
        ck_assert(key32_equal(&message.client, identity_transport(expected)));
    }
    link_close(&first);
    link_close(&second);
    identity_destroy(&other);
    teardown(&market);
}
END_TEST

/* A socket on which libzmq tells of `events` of `watched`. Made before connecting, it misses none.
 */
static void *monitor_of(void *context, void *watched, int events)
{
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "inproc://monitor.%p", watched);
    ck_assert_int_eq(zmq_socket_monitor(watched, endpoint, events), 0);
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    ck_assert_int_eq(zmq_connect(monitor, endpoint), 0);
    return monitor;
}

static void wait_for_event(void *watched, void *monitor)
{
    zmq_pollitem_t item = {.socket = monitor, .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, WAIT_MS), 1);
    (void)zmq_socket_monitor(watched, NULL, 0);
    ck_assert_int_eq(zmq_close(monitor), 0);
}

enum {
    HANDSHAKE_FAILED = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED
};

START_TEST(a_client_without_curve_gets_nothing)
{
    struct market market = setup();
    const char *endpoints[] = {market.ipc, market.tcp};
    for (int i = 0; i < 2; i++) {
        void *plain = zmq_socket(market.context, ZMQ_DEALER);
        int linger = 0;
        (void)zmq_setsockopt(plain, ZMQ_LINGER, &linger, sizeof linger);
        void *monitor = monitor_of(market.context, plain, HANDSHAKE_FAILED);
        ck_assert_int_eq(zmq_connect(plain, endpoints[i]), 0);
        ck_assert_int_ge(zmq_send(plain, "hello", 5, ZMQ_DONTWAIT),
                         0); /* queued here, never there */
        wait_for_event(plain, monitor);
        struct router_message message;
        ck_assert_int_eq(router_receive(market.router, 0, &message), 0);
        ck_assert_int_eq(zmq_close(plain), 0);
    }
    teardown(&market);
}
END_TEST

START_TEST(a_client_with_the_wrong_server_key_gets_nothing)
{
    struct market market = setup();
    struct link *link;
    struct problem problem;
    ck_assert(link_open(market.context, market.tcp, identity_transport(market.client),
                        market.client, MESSAGE_CAP, &link, &problem));
    /* It tries again and again, and fails each time. */
    wait_for_event(link_socket(link),
                   monitor_of(market.context, link_socket(link), HANDSHAKE_FAILED));
    ck_assert(!link_send(link, "hello", 5));
    struct router_message message;
    ck_assert_int_eq(router_receive(market.router, 0, &message), 0);
    ck_assert_uint_eq(zap_counts(market.zap).admitted, 0);
    link_close(&link);
    teardown(&market);
}
END_TEST

/* A CURVE client without our manners. */
static void *rude_dealer(const struct market *market, const char *routing_id)
{
    void *socket = zmq_socket(market->context, ZMQ_DEALER);
    int linger = 0;
    (void)zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if (routing_id != NULL) {
        (void)zmq_setsockopt(socket, ZMQ_ROUTING_ID, routing_id, strlen(routing_id));
    }
    (void)zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, identity_transport(market->server)->bytes,
                         32);
    (void)zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, identity_transport(market->client)->bytes,
                         32);
    (void)zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, identity_transport_secret(market->client),
                         32);
    ck_assert_int_eq(zmq_connect(socket, market->ipc), 0);
    return socket;
}

START_TEST(messages_of_several_parts_and_home_made_routes_are_dropped)
{
    struct market market = setup();
    void *several = rude_dealer(&market, NULL);
    ck_assert_int_ge(zmq_send(several, "a", 1, ZMQ_SNDMORE), 0);
    ck_assert_int_ge(zmq_send(several, "b", 1, 0), 0);
    ck_assert_int_ge(zmq_send(several, "good", 4, 0), 0);
    struct router_message message;
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    ck_assert_mem_eq(message.bytes, "good", 4);
    ck_assert_uint_eq(router_counts(market.router).dropped_parts, 1);

    void *named = rude_dealer(&market, "admin");
    ck_assert_int_ge(zmq_send(named, "bad", 3, 0), 0);
    zmq_pollitem_t item = {.socket = router_socket(market.router), .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, WAIT_MS), 1);
    ck_assert_int_eq(router_receive(market.router, 0, &message), 0);
    ck_assert_uint_eq(router_counts(market.router).dropped_routes, 1);

    ck_assert_int_eq(zmq_close(several), 0);
    ck_assert_int_eq(zmq_close(named), 0);
    teardown(&market);
}
END_TEST

START_TEST(a_message_above_the_cap_ends_the_connection)
{
    struct market market = setup();
    void *rude = rude_dealer(&market, NULL);
    void *monitor = monitor_of(market.context, rude, ZMQ_EVENT_DISCONNECTED);
    static uint8_t large[MESSAGE_CAP + 65]; /* the seal of CURVE has some room */
    ck_assert_int_ge(zmq_send(rude, large, sizeof large, 0), 0);
    wait_for_event(rude, monitor);
    struct router_message message;
    ck_assert_int_eq(router_receive(market.router, 0, &message), 0);
    ck_assert_int_eq(zmq_close(rude), 0);
    teardown(&market);
}
END_TEST

START_TEST(an_answer_to_nobody_says_so)
{
    struct market market = setup();
    struct route route = {{0, 9, 9, 9, 9}};
    struct key32 nobody = {{1}};
    ck_assert_int_eq(router_send(market.router, &route, &nobody, "x", 1), ROUTER_GONE);
    teardown(&market);
}
END_TEST

/* Sends until the router takes no more; how many bytes wait then. */
static size_t fill(struct market *market, const struct router_message *message)
{
    static uint8_t filler[MESSAGE_CAP];
    const struct route route = message->route;
    const struct key32 client = message->client;
    enum router_sent sent = ROUTER_SENT;
    for (int i = 0; i < 100000 && sent == ROUTER_SENT; i++) {
        sent = router_send(market->router, &route, &client, filler, sizeof filler);
    }
    ck_assert_int_eq(sent, ROUTER_FULL);
    return router_waiting_key(market->router, &client);
}

START_TEST(a_key_that_does_not_read_is_full_by_bytes_and_others_are_not)
{
    static const uint8_t other_seed[32] = {3};
    struct market market = setup();
    struct identity *other = identity_create(other_seed);
    const struct key32 client = *identity_transport(market.client);
    struct link *links[2];
    struct router_message message;
    for (int i = 0; i < 2; i++) { /* a second connection brings nothing */
        links[i] = connect_as(&market, i == 0 ? market.tcp : market.ipc, market.client);
        send_when_ready(links[i], "q", 1);
        ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
        ck_assert_uint_le(fill(&market, &message), KEY_BYTES);
    }
    check_conversation_of(&market, market.ipc, other);
    link_close(&links[0]);
    link_close(&links[1]);
    int64_t deadline = clock_monotonic_ns() + WAIT_MS * INT64_C(1000000);
    /* Bytes that nobody will read count no longer. */
    while (router_waiting_key(market.router, &client) > 0) {
        ck_assert_int_lt(clock_monotonic_ns(), deadline);
        ck_assert_int_eq(router_receive(market.router, 10, &message), 0);
    }
    check_conversation(&market, market.ipc);
    identity_destroy(&other);
    teardown(&market);
}
END_TEST

/* A client that sends more than the router's queue takes, with ZMTP pings in between, and is gone
 * before the router reads: libzmq 4.3.4 ends the whole process over that when nobody stands before
 * it. */
static void flood_and_vanish(const struct market *market, const char *endpoint)
{
    enum { MESSAGES = 1500 }; /* more than the queue, less than queue and kernel together */
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_DEALER);
    int ping_ms = 1;
    int unlimited = 0;
    ck_assert_int_eq(zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &ping_ms, sizeof ping_ms), 0);
    ck_assert_int_eq(zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited), 0);
    ck_assert_int_eq(
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, identity_transport(market->server)->bytes, 32),
        0);
    ck_assert_int_eq(
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, identity_transport(market->client)->bytes, 32),
        0);
    ck_assert_int_eq(
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, identity_transport_secret(market->client), 32),
        0);
    ck_assert_int_eq(zmq_connect(socket, endpoint), 0);
    for (int i = 0; i < MESSAGES; i++) {
        ck_assert_int_eq(zmq_send(socket, "x", 1, 0), 1);
    }
    ck_assert_int_eq(zmq_close(socket), 0);
    ck_assert_int_eq(zmq_ctx_term(context), 0); /* all is sent, and the connection closed */
}

START_TEST(a_peer_that_floods_and_vanishes_does_not_end_the_process)
{
    struct market market = setup();
    struct router_message message;
    ck_assert(hangups_are_held());
    for (int round = 0; round < 24; round++) {
        flood_and_vanish(&market, round % 2 == 0 ? market.ipc : market.tcp);
        size_t count = 0;
        while (router_receive(market.router, 20, &message) == 1) {
            count++;
        }
        ck_assert_uint_gt(count, 0);
    }
    check_conversation(&market, market.ipc);
    teardown(&market);
}
END_TEST

/* Nothing is read from it, and nobody else has to wait; what it sent comes when it goes on. */
START_TEST(a_paused_connection_waits_and_others_do_not)
{
    enum { SENT = 500 }; /* more than the queues of both ends */
    static const uint8_t other_seed[32] = {3};
    static uint8_t bytes[4000];
    struct market market = setup();
    struct identity *other = identity_create(other_seed);
    struct link *link = connect_as(&market, market.tcp, market.client);
    struct router_message message;
    send_when_ready(link, "1", 1);
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    const int descriptor = router_descriptor(market.router);
    ck_assert_int_ge(descriptor, 0);
    struct router_kept *kept = router_keep(market.router, &message);
    ck_assert_ptr_nonnull(kept);
    router_pause(descriptor, true);
    send_when_ready(link, bytes, sizeof bytes);
    check_conversation_of(&market, market.tcp, other);
    check_conversation_of(&market, market.ipc, other);
    ck_assert_int_eq(router_receive(market.router, 100, &message), 0);
    router_pause(descriptor, false);
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    ck_assert_uint_eq(message.length, sizeof bytes);
    router_pause(descriptor, true);
    for (int i = 0; i < SENT; i++) {
        send_when_ready(link, bytes, 100);
    }
    router_pause(descriptor, false);
    for (int i = 0; i < SENT; i++) {
        ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    }
    router_kept_free(&kept);
    link_close(&link);
    identity_destroy(&other);
    teardown(&market);
}
END_TEST

/* Its number is free for others then, who are read from. */
START_TEST(a_pause_ends_with_its_connection)
{
    struct market market = setup();
    struct router_message message;
    for (int i = 0; i < 20; i++) {
        struct link *link = connect_as(&market, market.tcp, market.client);
        send_when_ready(link, "1", 1);
        ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
        router_pause(router_descriptor(market.router), true);
        link_close(&link);
    }
    check_conversation(&market, market.tcp);
    teardown(&market);
}
END_TEST

START_TEST(a_kept_message_outlives_the_next)
{
    struct market market = setup();
    struct link *link = connect_as(&market, market.ipc, market.client);
    struct router_message messages[2];
    struct router_kept *kept[2];
    send_when_ready(link, "first", 5); /* so short that libzmq has it inside its own record */
    send_when_ready(link, "second", 6);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(router_receive(market.router, WAIT_MS, &messages[i]), 1);
        kept[i] = router_keep(market.router, &messages[i]);
        ck_assert_ptr_nonnull(kept[i]);
    }
    ck_assert_mem_eq(messages[0].bytes, "first", 5);
    ck_assert_mem_eq(messages[1].bytes, "second", 6);
    router_kept_free(&kept[0]);
    router_kept_free(&kept[1]);
    ck_assert_ptr_null(kept[0]);
    link_close(&link);
    teardown(&market);
}
END_TEST

START_TEST(a_reopened_link_is_a_new_route)
{
    struct market market = setup();
    struct link *link = connect_as(&market, market.tcp, market.client);
    struct router_message message;
    send_when_ready(link, "1", 1);
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    struct route before = message.route;
    struct problem problem;
    ck_assert(link_reopen(link, &problem));
    send_when_ready(link, "2", 1);
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    ck_assert_mem_eq(message.bytes, "2", 1);
    ck_assert(memcmp(before.bytes, message.route.bytes, ROUTE_BYTES) != 0);
    link_close(&link);
    teardown(&market);
}
END_TEST

static void await_end(struct link *link)
{
    const uint8_t *bytes;
    size_t length;
    for (int i = 0; !link_has_ended(link); i++) {
        ck_assert_int_lt(i, 10);
        ck_assert_int_eq(link_receive(link, WAIT_MS, &bytes, &length), 0);
    }
}

START_TEST(a_watched_link_tells_of_a_refusal_and_moves_to_another_address)
{
    struct market market = setup();
    struct link *link = connect_as(&market, "tcp://127.0.0.1:1", market.client);
    struct router_message message;
    struct problem problem;
    ck_assert(!link_has_ended(link) && link_watch_socket(link) == NULL);
    ck_assert_msg(link_watch(link, &problem), "%s", problem.text);
    await_end(link); /* nobody listens at port 1 */
    ck_assert(!link_reopen_at(link, "udp://127.0.0.1:1", &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "tcp://HOST:PORT"));
    ck_assert_msg(link_reopen_at(link, market.tcp, &problem), "%s", problem.text);
    send_when_ready(link, "1", 1);
    ck_assert_int_eq(router_receive(market.router, WAIT_MS, &message), 1);
    ck_assert(!link_has_ended(link));
    router_close(&market.router);
    await_end(link);
    link_close(&link);
    teardown(&market);
}
END_TEST

START_TEST(why_nobody_answers_is_found_out)
{
    struct market market = setup();
    char text[512];
    link_explain(market.ipc, text, sizeof text);
    ck_assert_str_eq(text, ""); /* somebody listens */
    link_explain(market.tcp, text, sizeof text);
    ck_assert_str_eq(text, "");
    link_explain("ipc:///nobody/is/here", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "nobody listens at /nobody/is/here"));
    router_close(&market.router);
    for (int i = 0; text[0] == '\0' || strstr(text, "/nobody/is/here") != NULL; i++) {
        ck_assert_int_lt(i, WAIT_MS); /* the library closes a port a little later */
        link_explain(market.tcp, text, sizeof text);
        (void)poll(NULL, 0, 1);
    }
    ck_assert_msg(strstr(text, "127.0.0.1 refuses connections to port ") != NULL, "%s", text);
    link_explain("tcp://[::1", text, sizeof text);
    link_explain("tcp://a b:1", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "the name of the host a b cannot be resolved"));
    link_explain("nonsense", text, sizeof text);
    ck_assert_str_eq(text, "");
    teardown(&market);
}
END_TEST

START_TEST(wrong_endpoints_are_explained)
{
    struct market market = setup();
    struct link *link = NULL;
    struct problem problem;
    const struct key32 *server = identity_transport(market.server);
    ck_assert(
        !link_open(market.context, "inproc://x", server, market.client, 100, &link, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "ipc://PATH"));
    char longest[400] = "ipc:///";
    memset(longest + 7, 'x', 200);
    ck_assert(!router_bind(market.router, longest, false, NULL, 0, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "shorter folder"));
    memset(longest + 7, 'x', 300);
    ck_assert(!link_open(market.context, longest, server, market.client, 100, &link, &problem));
    ck_assert_ptr_null(link);
    teardown(&market);
}
END_TEST

SUITE("link", NULL, NULL, TEST(question_and_answer_over_ipc), TEST(question_and_answer_over_tcp),
      TEST(each_message_tells_which_key_sent_it), TEST(a_client_without_curve_gets_nothing),
      TEST(a_client_with_the_wrong_server_key_gets_nothing),
      TEST(messages_of_several_parts_and_home_made_routes_are_dropped),
      TEST(a_message_above_the_cap_ends_the_connection), TEST(an_answer_to_nobody_says_so),
      TEST(a_key_that_does_not_read_is_full_by_bytes_and_others_are_not),
      TEST(a_peer_that_floods_and_vanishes_does_not_end_the_process),
      TEST(a_paused_connection_waits_and_others_do_not), TEST(a_pause_ends_with_its_connection),
      TEST(a_wait_after_a_refused_message_ends_when_there_is_room),
      TEST(a_kept_message_outlives_the_next), TEST(a_reopened_link_is_a_new_route),
      TEST(a_watched_link_tells_of_a_refusal_and_moves_to_another_address),
      TEST(why_nobody_answers_is_found_out), TEST(wrong_endpoints_are_explained))
