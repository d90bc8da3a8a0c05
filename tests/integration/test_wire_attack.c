/* Attacks on the ports of a real broker by crowds, and honest clients served meanwhile. Bytes that
 * are no ZMTP are in test_wire_noise.c, what a member may do wrong message by message is in
 * tests/unit/broker/gateway/test_hostile_peers.c, the tables of codes are in
 * test_wire_answers.c. Attackers share the machine with the broker and the honest client, which
 * no real attacker does. So they get the processor time that nobody else wants, and the honest
 * client asks at a steady pace, a quarter of what it reaches alone. What is compared is how much
 * of that pace is served, and the time that 99 of 100 of its requests stay below, from when each
 * was due, with and without the attack in the same run. CI asks for bounds that a loaded machine
 * keeps, BOURSE_LONG=yes for those of promise P24. What the attack costs the broker is printed
 * beside them. */
#include "tests/support/arena.h"
#include "tests/support/honest.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/blob/blob_client.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* Windows with the attack, and as many without, of one measure in the short form. */
enum { SHORT_WINDOWS = 1 };

static const char listen_yaml[] = "listen: tcp://127.0.0.1:*\nblob_listen: tcp://127.0.0.1:*\n";

/* ---------------------------------------------------------------- attackers */

static size_t write_get(const struct hash32 *hash, uint64_t offset, uint8_t *ret_bytes,
                        size_t capacity)
{
    Bourse__V1__BlobGet get = BOURSE__V1__BLOB_GET__INIT;
    get.hash = arena_bytes(hash->bytes, 32);
    get.offset = offset;
    get.length = LIMIT_BLOB_CHUNK_BYTES;
    size_t length;
    uint8_t *body = codec_encode(&get.base, &length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_BLOB_GET,
                                .id = entropy_id(),
                                .body = body,
                                .body_length = (uint32_t)length};
    size_t size = arena_write(&envelope, ret_bytes, capacity);
    free(body);
    return size;
}

/* A member's session: 20,000 reads a second, four times the rate. */
static void flood_of_requests(const struct attack_context *context)
{
    struct broker_client client;
    uint8_t bytes[256];
    broker_client_open(&client, &context->arena->broker, context->arena->enemy_key,
                       SESSION_CONSUMER);
    attack_begun(context);
    for (;;) {
        for (int i = 0; i < 20; i++) {
            struct said said = arena_saying(context->arena, MESSAGE_BALANCE_REQUEST);
            size_t length = arena_write_said(&said, &client, bytes, sizeof bytes);
            (void)link_send(client.link, bytes, length);
        }
        attack_read(client.link);
        attack_pace();
    }
}

static void flood_of_blob_requests(const struct attack_context *context)
{
    struct link *link =
        arena_connect(zmq_ctx_new(), context->arena->broker.market.blobs, context->arena,
                      context->arena->enemy_key, LIMIT_BLOB_MESSAGE_BYTES);
    uint8_t bytes[256];
    struct hash32 unknown = sha256_of("unknown", 7);
    attack_begun(context);
    for (;;) {
        for (int i = 0; i < 20; i++) {
            size_t length = write_get(&unknown, 0, bytes, sizeof bytes);
            (void)link_send(link, bytes, length);
        }
        attack_read(link);
        attack_pace();
    }
}

/* A connection of the enemy's to the blob port, with its own bounds: the largest message, and how
 * many wait unread. */
static void *rude_socket(const struct arena *arena, void *zmq, int64_t message_most, int queue_most)
{
    int ping_ms = 5;
    int at_once = 0;
    void *socket = zmq_socket(zmq, ZMQ_DEALER);
    const struct identity *key = arena->enemy_key;
    bool good =
        socket != NULL && zmq_setsockopt(socket, ZMQ_LINGER, &at_once, sizeof at_once) == 0 &&
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &message_most, sizeof message_most) == 0 &&
        zmq_setsockopt(socket, ZMQ_RCVHWM, &queue_most, sizeof queue_most) == 0 &&
        zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &ping_ms, sizeof ping_ms) == 0 &&
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, arena->broker.market.server.bytes, 32) == 0 &&
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, identity_transport(key)->bytes, 32) == 0 &&
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, identity_transport_secret(key), 32) == 0 &&
        zmq_connect(socket, arena->broker.market.blobs) == 0;
    ck_assert(good);
    return socket;
}

/* Eight connections of one key ask for all they can get and read nothing. */
static void readers_of_nothing(const struct attack_context *context)
{
    enum { SOCKETS = 8 };
    void *sockets[SOCKETS];
    uint8_t bytes[256];
    void *zmq = zmq_ctx_new();
    for (size_t i = 0; i < SOCKETS; i++) {
        sockets[i] = rude_socket(context->arena, zmq, -1, 1);
    }
    attack_begun(context);
    for (;;) {
        for (size_t i = 0; i < SOCKETS; i++) {
            size_t length = write_get(&context->large, 0, bytes, sizeof bytes);
            (void)zmq_send(sockets[i], bytes, length, ZMQ_DONTWAIT);
        }
        attack_pace();
    }
}

/* Connections that take no message above 200 bytes and ask for 4 MiB: each answer ends one, with
 * more on its way. */
static void askers_that_hang_up(const struct attack_context *context)
{
    enum { SOCKETS = 24, REQUESTS = 200 };
    void *zmq = zmq_ctx_new();
    uint8_t bytes[256];
    attack_begun(context);
    for (;;) {
        void *sockets[SOCKETS];
        for (size_t i = 0; i < SOCKETS; i++) {
            sockets[i] = rude_socket(context->arena, zmq, 200, 1000);
        }
        for (size_t k = 0; k < REQUESTS; k++) {
            for (size_t i = 0; i < SOCKETS; i++) {
                size_t length = write_get(&context->large, 0, bytes, sizeof bytes);
                (void)zmq_send(sockets[i], bytes, length, ZMQ_DONTWAIT);
            }
            attack_pace();
        }
        for (size_t i = 0; i < SOCKETS; i++) {
            (void)zmq_close(sockets[i]);
        }
    }
}

static size_t write_hello(uint8_t *ret_bytes, size_t capacity)
{
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    size_t length;
    uint8_t *body = codec_encode(&hello.base, &length);
    ck_assert_ptr_nonnull(body);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_HELLO,
                                .id = entropy_id(),
                                .body = body,
                                .body_length = (uint32_t)length};
    size_t written = arena_write(&envelope, ret_bytes, capacity);
    free(body);
    return written;
}

static void greet(const struct attack_context *context, const struct identity *identity, void *zmq)
{
    uint8_t bytes[256];
    struct link *link = arena_connect(zmq, context->arena->broker.market.control, context->arena,
                                      identity, LIMIT_MESSAGE_BYTES);
    zmq_pollitem_t item = {.socket = link_socket(link), .events = ZMQ_POLLOUT};
    if (zmq_poll(&item, 1, 1000) == 1) {
        (void)link_send(link, bytes, write_hello(bytes, sizeof bytes));
    }
    link_close(&link);
}

/* A member who connects, greets and leaves, over and over. */
static void storm_of_greetings(const struct attack_context *context)
{
    void *zmq = zmq_ctx_new();
    attack_begun(context);
    for (;;) {
        greet(context, context->arena->enemy_key, zmq);
        attack_pace();
    }
}

/* A member says Hello over and over on one connection, more often than all accounts together
 * may. */
static void storm_of_hellos(const struct attack_context *context)
{
    struct link *link =
        arena_connect(zmq_ctx_new(), context->arena->broker.market.control, context->arena,
                      context->arena->enemy_key, LIMIT_MESSAGE_BYTES);
    uint8_t bytes[256];
    attack_begun(context);
    for (;;) {
        for (int i = 0; i < 60; i++) {
            (void)link_send(link, bytes, write_hello(bytes, sizeof bytes));
        }
        attack_read(link);
        attack_pace();
    }
}

/* A stranger sends 20,000 messages a second that belong to no session. */
static void flood_of_a_stranger(const struct attack_context *context)
{
    struct identity *nobody = arena_identity();
    struct link *link = arena_connect(zmq_ctx_new(), context->arena->broker.market.control,
                                      context->arena, nobody, LIMIT_MESSAGE_BYTES);
    static uint8_t rubbish[400];
    attack_begun(context);
    for (;;) {
        for (int i = 0; i < 20; i++) {
            (void)link_send(link, rubbish, sizeof rubbish);
        }
        attack_pace();
    }
}

/* 500 connections that say one byte of a greeting, and begin again when they are closed. */
static void slow_handshakes(const struct attack_context *context)
{
    enum { SLOW = 500 };
    static int descriptors[SLOW];
    const char *endpoint = context->arena->broker.market.control;
    for (size_t i = 0; i < SLOW; i++) {
        descriptors[i] = arena_connect_raw(endpoint);
        (void)send(descriptors[i], "\xff", 1, MSG_NOSIGNAL);
    }
    attack_begun(context);
    for (size_t i = 0;; i = (i + 1) % SLOW) {
        char byte;
        if (recv(descriptors[i], &byte, 1, MSG_DONTWAIT) == 0) {
            (void)close(descriptors[i]);
            descriptors[i] = arena_connect_raw(endpoint);
            (void)send(descriptors[i], "\xff", 1, MSG_NOSIGNAL);
        }
        if (i % 20 == 0) {
            attack_pace();
        }
    }
}

static struct hash32 store_large(const struct arena *arena)
{
    static uint8_t bytes[LIMIT_BLOB_CHUNK_BYTES];
    struct blob_client *client;
    struct problem problem;
    enum reject_code reject;
    void *zmq = zmq_ctx_new();
    struct blob_source source = {
        .hash = sha256_of(bytes, sizeof bytes), .size = sizeof bytes, .fd = -1, .bytes = bytes};
    ck_assert(blob_client_open(zmq, arena->broker.market.blobs, &arena->broker.market.server,
                               arena->enemy_key, &client, &problem));
    ck_assert(blob_client_put(client, &source, 1, NULL, NULL, NULL, &reject, NULL, &problem));
    blob_client_close(&client);
    (void)zmq_ctx_term(zmq);
    return source.hash;
}

static const struct {
    const char *name;
    attack *run;
} attacks[] = {
    {"a flood of requests from a member", flood_of_requests},
    {"a flood on the blob port", flood_of_blob_requests},
    {"members that never read", readers_of_nothing},
    {"askers that hang up", askers_that_hang_up},
    {"a storm of greetings", storm_of_greetings},
    {"a flood from a stranger", flood_of_a_stranger},
    {"500 slow handshakes", slow_handshakes},
};

/* No attack: as busy as an attacker may be, and leaves the broker in peace. It runs in the windows
 * without attack, so that the machine is as busy in all of them. */
static void work_of_others(const struct attack_context *context)
{
    static uint8_t bytes[2][LIMIT_BLOB_CHUNK_BYTES];
    attack_begun(context);
    for (;;) {
        memcpy(bytes[1], bytes[0], sizeof bytes[0]);
        bytes[0][bytes[1][1]]++;
    }
}

/* The processor time that the broker has used. */
static double broker_cpu_s(const struct arena *arena)
{
    char path[64];
    char line[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)arena->broker.pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    (void)fclose(file);
    const char *field = strrchr(line, ')'); /* the name may hold anything */
    ck_assert_ptr_nonnull(field);
    for (int i = 2; i < 14; i++) {
        field = strchr(field + 1, ' ');
        ck_assert_ptr_nonnull(field);
    }
    char *end;
    unsigned long user = strtoul(field, &end, 10);
    unsigned long system = strtoul(end, NULL, 10);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Measures what is left of the honest client's pace, in turns, so that other work of the machine
 * meets both. */
static struct honest_ratios measure_under(const char *name, attack *run,
                                          struct attack_context *context, struct arena *arena,
                                          int64_t interval_ns)
{
    static struct honest_times times;
    const size_t windows = honest_is_long() ? HONEST_WINDOWS : SHORT_WINDOWS;
    double waits_ms[2][HONEST_WINDOWS]; /* alone, under attack */
    unsigned served[2] = {0};
    double cpu_s[2] = {0};
    const pid_t busy[2] = {attack_start(work_of_others, context), attack_start(run, context)};
    for (size_t i = 0; i < 2 * windows; i++) {
        size_t with = i % 2;
        ck_assert_int_eq(kill(busy[1 - with], SIGSTOP), 0);
        ck_assert_int_eq(kill(busy[with], SIGCONT), 0);
        double before_s = broker_cpu_s(arena);
        times.count = 0;
        served[with] += honest_window(&arena->owner, arena, HONEST_WINDOW_MS, interval_ns, &times);
        waits_ms[with][i / 2] = honest_p99_ms(&times);
        cpu_s[with] += broker_cpu_s(arena) - before_s;
    }
    attack_stop(busy[0]);
    attack_stop(busy[1]);
    double seconds = (double)windows * HONEST_WINDOW_MS / 1000.0;
    double wait_alone_ms = honest_median(waits_ms[0], windows);
    double wait_during_ms = honest_median(waits_ms[1], windows);
    (void)printf("%s: %.0f commands/s alone, %.0f under attack: %.2f; p99 %.1f ms alone, %.1f ms "
                 "under attack: %.2f; broker's processors %.2f alone, %.2f under attack\n",
                 name, served[0] / seconds, served[1] / seconds, (double)served[1] / served[0],
                 wait_alone_ms, wait_during_ms, wait_during_ms / wait_alone_ms, cpu_s[0] / seconds,
                 cpu_s[1] / seconds);
    (void)fflush(stdout);
    return (struct honest_ratios){(double)served[1] / served[0], wait_during_ms / wait_alone_ms};
}

struct measuring {
    int attack;
    struct attack_context *context;
    struct arena *arena;
    int64_t interval_ns; /* of the honest client */
};

static struct honest_ratios measure_once(void *context)
{
    const struct measuring *measuring = context;
    return measure_under(attacks[measuring->attack].name, attacks[measuring->attack].run,
                         measuring->context, measuring->arena, measuring->interval_ns);
}

/* Sealing 4 MiB at once takes longer than what others wait for, so an answer has less. */
START_TEST(a_large_blob_comes_in_several_answers)
{
    struct arena arena;
    arena_open(&arena, listen_yaml);
    const struct hash32 large = store_large(&arena);
    struct link *link = arena_connect(zmq_ctx_new(), arena.broker.market.blobs, &arena,
                                      arena.enemy_key, LIMIT_BLOB_MESSAGE_BYTES);
    uint64_t offset = 0;
    for (; offset < LIMIT_BLOB_CHUNK_BYTES; offset += LIMIT_BLOB_ANSWER_BYTES) {
        uint8_t bytes[256];
        const uint8_t *message;
        size_t length = write_get(&large, offset, bytes, sizeof bytes);
        struct envelope envelope;
        while (!link_send(link, bytes, length)) { /* until the connection stands */
            attack_pace();
        }
        ck_assert_int_eq(link_receive(link, ARENA_WAIT_MS, &message, &length), 1);
        ck_assert_int_eq(envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope),
                         ENVELOPE_OK);
        ck_assert_int_eq(envelope.type, MESSAGE_BLOB_DATA);
        ProtobufCMessage *body;
        struct codec_error error;
        ck_assert_int_eq(
            codec_decode(MESSAGE_BLOB_DATA, envelope.body, envelope.body_length, &body, &error),
            CODEC_OK);
        const Bourse__V1__BlobData *data = (const void *)body;
        ck_assert_uint_eq(data->offset, offset);
        ck_assert_uint_eq(data->total, LIMIT_BLOB_CHUNK_BYTES);
        ck_assert_uint_eq(data->data.len, LIMIT_BLOB_ANSWER_BYTES);
        codec_free(&body);
    }
    link_close(&link);
    arena_close(&arena);
}
END_TEST

START_TEST(honest_clients_are_served_under_attack)
{
    enum {
        GROWTH_KIB = 640 << 10
    }; /* what waits for one key, its copies under way, and the sanitizers' share */
    struct arena arena;
    arena_open(&arena, listen_yaml);
    struct attack_context context = {.arena = &arena, .large = store_large(&arena)};
    long resident = arena_resident_kib(&arena);
    static struct honest_times warm;
    (void)honest_window(&arena.owner, &arena, HONEST_WINDOW_MS, HONEST_FASTEST_NS, &warm);

    struct honest_ratios found;
    struct measuring measuring = {_i, &context, &arena, honest_interval_ns(&arena)};
    ck_assert_msg(honest_holds(measure_once, &measuring, &found),
                  "%s: %.2f of the pace, %.2f times the p99", attacks[_i].name, found.pace,
                  found.wait);
    long growth = arena_resident_kib(&arena) - resident;
    ck_assert_msg(growth < GROWTH_KIB, "%s: the broker grew by %ld KiB", attacks[_i].name, growth);
    arena_close(&arena); /* ends cleanly, and replays to the same state */
}
END_TEST

/* Returns the answer to the owner's Hello on a connection of its own. */
static uint16_t answer_to_hello(const struct arena *arena)
{
    void *zmq = zmq_ctx_new();
    struct link *link = arena_connect(zmq, arena->broker.market.control, arena, arena->broker.owner,
                                      LIMIT_MESSAGE_BYTES);
    uint8_t bytes[256];
    arena_put(link, bytes, write_hello(bytes, sizeof bytes));
    const uint8_t *message;
    size_t length;
    struct envelope envelope = {.type = 0};
    if (link_receive(link, ARENA_WAIT_MS, &message, &length) == 1) {
        ck_assert_int_eq(envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope),
                         ENVELOPE_OK);
    }
    link_close(&link);
    (void)zmq_ctx_term(zmq);
    return envelope.type;
}

static enum reject_code next_reject(struct link *link)
{
    for (;;) {
        const uint8_t *message;
        size_t length;
        struct envelope envelope;
        ck_assert_msg(link_receive(link, ARENA_WAIT_MS, &message, &length) == 1, "no answer");
        ck_assert_int_eq(envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope),
                         ENVELOPE_OK);
        if (envelope.type == MESSAGE_REJECT) {
            return arena_reject_code(&envelope);
        }
    }
}

START_TEST(who_greets_above_the_rate_is_told_so)
{
    struct arena arena;
    arena_open(&arena, listen_yaml);
    void *zmq = zmq_ctx_new();
    struct link *link = arena_connect(zmq, arena.broker.market.control, &arena, arena.enemy_key,
                                      LIMIT_MESSAGE_BYTES);
    uint8_t bytes[256];
    for (int i = 0; i < 400; i++) {
        arena_put(link, bytes, write_hello(bytes, sizeof bytes));
    }
    ck_assert_int_eq(next_reject(link), REJECT_RATE);
    ck_assert_int_eq(answer_to_hello(&arena), MESSAGE_WELCOME);
    link_close(&link);
    (void)zmq_ctx_term(zmq);
    arena_close(&arena);
}
END_TEST

START_TEST(members_come_back_while_one_of_them_storms)
{
    enum { TIMES = 12 };
    struct arena arena;
    arena_open(&arena, listen_yaml);
    struct attack_context context = {.arena = &arena};
    pid_t attacker = attack_start(storm_of_hellos, &context);
    for (int i = 0; i < TIMES; i++) {
        static struct honest_times unused;
        (void)honest_window(&arena.owner, &arena, HONEST_WINDOW_MS, HONEST_FASTEST_NS,
                            &unused); /* the storm goes on meanwhile */
        ck_assert_msg(answer_to_hello(&arena) == MESSAGE_WELCOME, "the %dth was not welcomed",
                      i + 1);
    }
    attack_stop(attacker);
    arena_close(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire attack");
    TCase *answers = tcase_create("answers"), *tests = tcase_create("pace");
    tcase_set_timeout(answers, 240);
    tcase_set_timeout(tests, 240);
    /* Freed memory that the broker's sanitizer keeps back is no growth of the broker. */
    const int set = setenv("ASAN_OPTIONS", "quarantine_size_mb=8:handle_sigill=1", 1);
    if (sodium_init() < 0 || set != 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(answers, a_large_blob_comes_in_several_answers);
    tcase_add_loop_test(tests, honest_clients_are_served_under_attack, 0,
                        (int)(sizeof attacks / sizeof attacks[0]));
    suite_add_tcase(suite, answers);
    suite_add_tcase(suite, tests);
    TCase *greetings = tcase_create("greetings");
    tcase_set_timeout(greetings, 120);
    tcase_add_test(greetings, who_greets_above_the_rate_is_told_so);
    tcase_add_test(greetings, members_come_back_while_one_of_them_storms);
    suite_add_tcase(suite, greetings);
    return suite_run(suite);
}
