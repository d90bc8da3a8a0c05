#include "tests/support/flooders.h"

#include "tests/support/child.h"

#include "base/checked.h"
#include "protocol/codec_check.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <check.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum {
    SESSIONS_MOST = 8,
    EACH_MS = 5,           /* messages of a session in a millisecond, which is its rate */
    LARGE_BYTES = 1 << 16, /* of a message this large, only one is sent */
    OPEN_AGAIN_MS = 500,   /* a flooder who does not read is disconnected, and comes back */
    PAIRS_MOST = 5,
    SINK_NS = 4, /* each byte takes so long, as with the broker (broker/blob/port/blobs.h) */
    /* Large answers that flooders who read wait for, as many as bourse's own client does. */
    UNANSWERED_MOST = 12,
};

/* ---------------------------------------------------------------- what is sent */

struct flood_body flood_encode(const ProtobufCMessage *message)
{
    struct flood_body body;
    body.bytes = codec_encode(message, &body.length);
    ck_assert_ptr_nonnull(body.bytes);
    return body;
}

struct flood *flood_add(struct floods *floods, const char *name, enum message_type type,
                        const ProtobufCMessage *message)
{
    ck_assert_uint_lt(floods->count, FLOODS_MOST);
    struct flood *flood = &floods->items[floods->count++];
    *flood = (struct flood){.name = name, .type = type, .bodies = {flood_encode(message)}};
    return flood;
}

void floods_free(struct floods *floods)
{
    for (size_t i = 0; i < floods->count; i++) {
        free(floods->items[i].bodies[0].bytes);
        free(floods->items[i].bodies[1].bytes);
    }
    floods->count = 0;
}

void floods_check_types(const struct floods *floods, bool is_of_blobs)
{
    char missing[1024] = "";
    for (int number = 0; number < MESSAGE_TYPE_END; number++) {
        const enum message_type type = (enum message_type)number;
        bool has_flood = false;
        for (size_t i = 0; i < floods->count; i++) {
            has_flood = has_flood || floods->items[i].type == type;
        }
        if (message_roles(type) != 0 && message_is_of_blobs(type) == is_of_blobs && !has_flood) {
            const size_t length = strlen(missing);
            (void)snprintf(missing + length, sizeof missing - length, " %s", message_name(type));
        }
    }
    ck_assert_msg(missing[0] == '\0', "no flood is of these types:%s", missing);
}

/* ---------------------------------------------------------------- a sink, and flooders */

struct sink {
    char endpoint[256];
    struct key32 server;
    pid_t pid;
};

/* The orders say what the flooders do now. Both sides share them as long as the test lives. */
struct orders {
    const struct flood *flood;
    size_t sessions;
    bool reads;
    uint64_t number;   /* of these orders */
    uint64_t ready[2]; /* the number of the last ones that each process of flooders is ready for */
};

/* Whoever reads gets an answer to each message, in time. Others get none before its time. */
static void sink_answer(void *socket, zmq_msg_t *route, size_t bytes, bool waits, int64_t *due_ns)
{
    zmq_msg_t answer;
    int64_t now_ns = clock_monotonic_ns();
    while (waits && now_ns < *due_ns) {
        attack_pace();
        now_ns = clock_monotonic_ns();
    }
    if (now_ns < *due_ns || zmq_msg_send(route, socket, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        return;
    }
    *due_ns = now_ns + (int64_t)bytes * SINK_NS;
    ck_assert_int_eq(zmq_msg_init_size(&answer, bytes), 0);
    memset(zmq_msg_data(&answer), 1, bytes);
    if (zmq_msg_send(&answer, socket, ZMQ_DONTWAIT) < 0) {
        (void)zmq_msg_close(&answer);
    }
}

static void run_sink(void *socket, const volatile struct orders *orders)
{
    int64_t due_ns = 0;
    for (;;) {
        zmq_msg_t route;
        zmq_msg_t message;
        (void)zmq_msg_init(&route);
        (void)zmq_msg_init(&message);
        (void)zmq_msg_recv(&route, socket, 0);
        (void)zmq_msg_recv(&message, socket, 0);
        if (orders->flood->answer_bytes > 0) {
            sink_answer(socket, &route, orders->flood->answer_bytes, orders->reads, &due_ns);
        }
        (void)zmq_msg_close(&route);
        (void)zmq_msg_close(&message);
    }
}

static void sink_open(struct sink *sink, const struct arena *arena,
                      const volatile struct orders *orders)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    uint8_t secret[32];
    randombytes_buf(secret, sizeof secret);
    ck_assert_int_eq(crypto_scalarmult_base(sink->server.bytes, secret), 0);
    sink->pid = child_fork();
    ck_assert_int_ge(sink->pid, 0);
    if (sink->pid == 0) {
        const int is_server = 1;
        const int waiting_most = 4; /* large answers to one connection */
        size_t size = sizeof sink->endpoint;
        void *socket = zmq_socket(zmq_ctx_new(), ZMQ_ROUTER);
        const bool is_ipc = strncmp(arena->broker.market.control, "ipc:", 4) == 0;
        (void)snprintf(sink->endpoint, sizeof sink->endpoint, "ipc://%s/sink",
                       arena->broker.folder);
        const bool good =
            zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &is_server, sizeof is_server) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, 32) == 0 &&
            zmq_setsockopt(socket, ZMQ_SNDHWM, &waiting_most, sizeof waiting_most) == 0 &&
            zmq_bind(socket, is_ipc ? sink->endpoint : "tcp://127.0.0.1:*") == 0 &&
            zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, sink->endpoint, &size) == 0 &&
            write(ends[1], sink->endpoint, sizeof sink->endpoint) == (ssize_t)sizeof sink->endpoint;
        if (good) {
            run_sink(socket, orders);
        }
        _exit(1);
    }
    ck_assert_int_eq(read(ends[0], sink->endpoint, sizeof sink->endpoint),
                     (ssize_t)sizeof sink->endpoint);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void sink_close(struct sink *sink)
{
    int status;
    ck_assert_int_eq(kill(sink->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(sink->pid, &status, 0), sink->pid);
}

struct flooding {
    const struct sink *sink; /* NULL: messages go to the broker */
    bool is_of_blobs;        /* messages go to the blob port, which knows no sessions */
    const struct identity *key;
    volatile struct orders *orders;
    size_t place; /* the place in `ready` */
};

struct flooder { /* one session, or one connection to the blob port */
    struct broker_client client;
    struct link *link;
    uint64_t session;
    size_t unanswered;
};

/* A message that is sent before the connection stands is lost. */
static void await_connection(struct link *link)
{
    zmq_pollitem_t item = {.socket = link_socket(link), .events = ZMQ_POLLOUT};
    (void)zmq_poll(&item, 1, ARENA_WAIT_MS);
}

static void flooder_open(struct flooder *flooder, const struct flooding *flooding,
                         const struct arena *arena)
{
    flooder->unanswered = 0;
    const char *blobs = arena->broker.market.blobs;
    const size_t most = flooding->is_of_blobs ? LIMIT_BLOB_MESSAGE_BYTES : LIMIT_MESSAGE_BYTES;
    if (flooding->sink == NULL && !flooding->is_of_blobs) {
        broker_client_open(&flooder->client, &arena->broker, flooding->key, SESSION_CONSUMER);
        flooder->link = flooder->client.link;
        flooder->session = dialogue_welcome(flooder->client.dialogue)->session;
        return;
    }
    struct problem problem;
    const bool is_open =
        link_open(zmq_ctx_new(), flooding->sink == NULL ? blobs : flooding->sink->endpoint,
                  flooding->sink == NULL ? &arena->broker.market.server : &flooding->sink->server,
                  flooding->key, most, &flooder->link, &problem);
    ck_assert_msg(is_open, "%s", problem.text);
    await_connection(flooder->link);
    flooder->session = flooding->is_of_blobs ? 0 : 1;
}

static void flood_once(struct flooder *flooder, const struct flood *flood,
                       const struct identity *key, const struct arena *arena, uint64_t number)
{
    static uint8_t bytes[LIMIT_BLOB_MESSAGE_BYTES];
    struct flood_body body = flood->bodies[flood->bodies[1].bytes == NULL ? 0 : number % 2];
    if (flood->vary != NULL) {
        flood->vary(&body, number);
    }
    struct envelope envelope = {
        .version = ENVELOPE_VERSION,
        .type = (uint16_t)flood->type,
        .session = flooder->session,
        .sequence = 1000 + number,
        .created_ms = dialogue_log_time_ms(arena->owner.dialogue, clock_monotonic_ns()),
        .body = body.bytes,
        .body_length = (uint32_t)body.length};
    if (flood->type != MESSAGE_HEARTBEAT && flood->type != MESSAGE_GOODBYE) {
        envelope.id = entropy_id();
    }
    if (message_must_be_signed(flood->type)) {
        ck_assert(identity_sign_envelope(key, &arena->broker.market.cluster, &envelope));
    }
    (void)link_send(flooder->link, bytes, arena_write(&envelope, bytes, sizeof bytes));
    flooder->unanswered++;
}

static void say_goodbye(struct flooder *flooder, const struct identity *key,
                        const struct arena *arena)
{
    static const struct flood goodbye = {.name = "goodbye", .type = MESSAGE_GOODBYE};
    flood_once(flooder, &goodbye, key, arena, 0);
    for (int i = 0; i < 10; i++) {
        attack_pace(); /* the message leaves before the connection goes */
    }
}

/* Ends the flooder's session or connection, if one goes on, and begins another. */
static void come_back(struct flooder *flooder, const struct flooding *flooding,
                      const struct arena *arena)
{
    struct problem problem;
    flooder->unanswered = 0;
    if (flooding->is_of_blobs) {
        ck_assert_msg(link_reopen(flooder->link, &problem), "%s", problem.text);
        await_connection(flooder->link);
        return;
    }
    say_goodbye(flooder, flooding->key, arena);
    broker_client_reopen(&flooder->client);
    flooder->link = flooder->client.link;
    flooder->session = dialogue_welcome(flooder->client.dialogue)->session;
}

/* Reads what has come. Returns false when the session is over, whatever is sent to it. */
static bool read_on(struct flooder *flooder)
{
    const uint8_t *message;
    size_t length;
    bool goes_on = true;
    while (link_receive(flooder->link, 0, &message, &length) == 1) {
        struct envelope envelope;
        flooder->unanswered -= flooder->unanswered > 0 ? 1 : 0;
        goes_on =
            goes_on &&
            (envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope) != ENVELOPE_OK ||
             envelope.type != MESSAGE_REJECT || arena_reject_code(&envelope) != REJECT_SESSION);
    }
    return goes_on;
}

/* Returns how many messages the flooder sends in this round. */
static size_t messages_of(const struct flooder *flooder, size_t place, const struct orders *orders,
                          uint64_t round)
{
    if (orders->reads && orders->flood->answer_bytes > 0) {
        const size_t most = (UNANSWERED_MOST + place) / orders->sessions;
        return flooder->unanswered < most ? most - flooder->unanswered : 0;
    }
    if (orders->flood->bodies[0].length >= LARGE_BYTES) {
        return round % EACH_MS == 0 ? 1 : 0;
    }
    return EACH_MS;
}

static void run_flood(const struct attack_context *context)
{
    struct flooder flooders[SESSIONS_MOST];
    const struct flooding *flooding = context->what;
    for (size_t i = 0; i < SESSIONS_MOST; i++) {
        flooder_open(&flooders[i], flooding, context->arena);
    }
    attack_begun(context);
    uint64_t known = 0;
    for (uint64_t round = 1, number = 0;; round++) {
        const struct orders orders = *flooding->orders;
        const bool is_hung_up_on = !orders.reads || orders.flood->type == MESSAGE_GOODBYE;
        for (size_t i = 0; orders.number != known && flooding->sink == NULL && i < SESSIONS_MOST;
             i++) {
            come_back(&flooders[i], flooding, context->arena);
        }
        const bool is_new = orders.number != known;
        known = orders.number;
        flooding->orders->ready[flooding->place] = known;
        for (size_t i = 0; i < orders.sessions; i++) {
            if (is_new || round % OPEN_AGAIN_MS == 0) {
                flooders[i].unanswered = 0;
            }
            for (size_t k = messages_of(&flooders[i], i, &orders, round); k > 0; k--) {
                flood_once(&flooders[i], orders.flood, flooding->key, context->arena, number++);
            }
            if (orders.reads && !read_on(&flooders[i]) && flooding->sink == NULL) {
                come_back(&flooders[i], flooding, context->arena);
            }
        }
        if (is_hung_up_on && flooding->sink == NULL && round % OPEN_AGAIN_MS == 0) {
            come_back(&flooders[round / OPEN_AGAIN_MS % orders.sessions], flooding, context->arena);
        }
        attack_pace();
    }
}

/* Returns the type of the answer to a message of the flood. */
static enum message_type answer_to(const struct arena *arena, const struct flood *flood,
                                   const struct identity *key, enum reject_code *ret_code)
{
    const struct flooding flooding = {.key = key, .is_of_blobs = message_is_of_blobs(flood->type)};
    struct flooder flooder;
    struct envelope envelope = {.type = 0};
    const uint8_t *message;
    size_t length;
    *ret_code = REJECT_NONE;
    flooder_open(&flooder, &flooding, arena);
    flood_once(&flooder, flood, key, arena, 0);
    if (link_receive(flooder.link, ARENA_WAIT_MS, &message, &length) == 1) {
        ck_assert_int_eq(envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope),
                         ENVELOPE_OK);
        if (envelope.type == MESSAGE_REJECT) {
            *ret_code = arena_reject_code(&envelope);
        }
    }
    if (flooding.is_of_blobs) {
        link_close(&flooder.link);
    } else {
        say_goodbye(&flooder, key, arena);
        broker_client_close(&flooder.client);
    }
    return (enum message_type)envelope.type;
}

void floods_check_answers(struct floods *floods, const struct arena *arena,
                          const struct identity *key)
{
    for (size_t i = 0; i < floods->count; i++) {
        const struct flood *flood = &floods->items[i];
        enum reject_code code;
        if (flood->type == MESSAGE_HEARTBEAT || flood->type == MESSAGE_GOODBYE) {
            continue;
        }
        const enum message_type type = answer_to(arena, flood, key, &code);
        ck_assert_msg(type != MESSAGE_REJECT || code == flood->refused, "%s: %s", flood->name,
                      reject_name(code));
    }
}

/* ---------------------------------------------------------------- the measure */

static unsigned command(void *context, int64_t window_ms, int64_t interval_ns,
                        struct honest_times *times)
{
    struct arena *arena = context;
    return honest_window(&arena->owner, arena, window_ms, interval_ns, times);
}

struct flood_victim flood_commands(struct arena *arena)
{
    return (struct flood_victim){.arena = arena,
                                 .work = command,
                                 .context = arena,
                                 .window_ms = HONEST_WINDOW_MS,
                                 .interval_ns = honest_interval_ns(arena)};
}

void flood_pace_alone(struct flood_victim *victim)
{
    static struct honest_times unused;
    double counts[HONEST_WINDOWS];
    for (size_t i = 0; i < HONEST_WINDOWS; i++) {
        unused.count = 0;
        counts[i] = victim->work(victim->context, HONEST_WINDOW_MS, HONEST_FASTEST_NS, &unused);
    }
    victim->interval_ns =
        (int64_t)(8 * HONEST_WINDOW_MS * NS_PER_MS / honest_median(counts, HONEST_WINDOWS));
}

/* Waits until the flood's messages have left the broker's queues, so that they do not count for the
 * sink. The next window begins when the victim is served at once again, or the broker has had its
 * time. Served at once means within 10 ms, or within half of the victim's interval. With sanitizers
 * an upload of half a MiB takes more than 10 ms on an idle machine. */
static void wait_for_quiet(const struct flood_victim *victim)
{
    enum { ANSWERS = 5, ANSWERS_MOST = 100, QUICK_MS = 10 };
    static struct honest_times times;
    const double half_ms = (double)victim->interval_ns / (2.0 * (double)NS_PER_MS);
    const double quick_ms = half_ms > QUICK_MS ? half_ms : QUICK_MS;
    int quick = 0;
    for (int i = 0; quick < ANSWERS && i < ANSWERS_MOST; i++) {
        times.count = 0;
        (void)victim->work(victim->context, 1, NS_PER_S, &times);
        /* The window may be over before anything was sent in it. */
        quick = times.count > 0 && honest_p99_ms(&times) < quick_ms ? quick + 1 : 0;
    }
}

/* The flooders of the broker, and those of the sink. */
struct flooders {
    struct sink sink;
    struct orders *orders; /* shared memory */
    struct flooding at[2]; /* at the sink and at the broker */
    pid_t pids[2];
};

static void flooders_open(struct flooders *flooders, const struct arena *arena,
                          const struct identity *key, const struct flood *first)
{
    flooders->orders = mmap(NULL, sizeof *flooders->orders, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(flooders->orders, MAP_FAILED);
    *flooders->orders = (struct orders){.flood = first};
    sink_open(&flooders->sink, arena, flooders->orders);
    for (size_t i = 0; i < 2; i++) {
        flooders->at[i] = (struct flooding){.sink = i == 0 ? &flooders->sink : NULL,
                                            .is_of_blobs = message_is_of_blobs(first->type),
                                            .key = key,
                                            .orders = flooders->orders,
                                            .place = i};
        struct attack_context context = {
            .arena = arena, .what = &flooders->at[i], .is_pressing = true};
        flooders->pids[i] = attack_start(run_flood, &context);
        ck_assert_int_eq(kill(flooders->pids[i], SIGSTOP), 0);
    }
}

/* Gives new orders. The flooders begin sessions for them, and stand still then. */
static void flooders_prepare(const struct flooders *flooders)
{
    volatile struct orders *orders = flooders->orders;
    orders->number++;
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(kill(flooders->pids[i], SIGCONT), 0);
        while (orders->ready[i] != orders->number) {
            ck_assert_int_eq(waitpid(flooders->pids[i], NULL, WNOHANG), 0);
            attack_pace();
        }
        ck_assert_int_eq(kill(flooders->pids[i], SIGSTOP), 0);
    }
}

static void flooders_close(struct flooders *flooders)
{
    attack_stop(flooders->pids[0]);
    attack_stop(flooders->pids[1]);
    sink_close(&flooders->sink);
    (void)munmap(flooders->orders, sizeof *flooders->orders);
}

/* Windows with the flood alternate with windows of its sink. */
static struct honest_ratios measure(const struct flood_victim *victim,
                                    const struct flooders *flooders)
{
    static struct honest_times times;
    const size_t pairs = honest_is_long() ? PAIRS_MOST : 1;
    const int64_t window_ms = honest_is_long() ? victim->window_ms : victim->window_ms / 2;
    double waits_ms[2][PAIRS_MOST];
    unsigned served[2] = {0};
    for (size_t i = 0; i < 2 * pairs; i++) {
        const size_t with = i % 2;
        if (with == 0) {
            wait_for_quiet(victim);
        }
        ck_assert_int_eq(kill(flooders->pids[with], SIGCONT), 0);
        times.count = 0;
        served[with] += victim->work(victim->context, window_ms, victim->interval_ns, &times);
        waits_ms[with][i / 2] = honest_p99_ms(&times);
        ck_assert_int_eq(kill(flooders->pids[with], SIGSTOP), 0);
    }
    const double aside_ms = honest_median(waits_ms[0], pairs);
    const double there_ms = honest_median(waits_ms[1], pairs);
    const struct honest_ratios found = {(double)served[1] / served[0], there_ms / aside_ms};
    const struct orders *orders = flooders->orders;
    (void)printf("%-26s %zu session%s, %s: pace %.2f, p99 %.1f ms to %.1f ms: %.2f\n",
                 orders->flood->name, orders->sessions, orders->sessions == 1 ? " " : "s",
                 orders->reads ? "read" : "unread", found.pace, aside_ms, there_ms, found.wait);
    (void)fflush(stdout);
    return found;
}

struct measuring {
    const struct flood_victim *victim;
    const struct flooders *flooders;
};

static struct honest_ratios measure_once(void *context)
{
    const struct measuring *measuring = context;
    flooders_prepare(measuring->flooders);
    return measure(measuring->victim, measuring->flooders);
}

static bool is_borne(const struct flood_victim *victim, const struct flooders *flooders)
{
    struct honest_ratios last;
    return honest_holds(measure_once, &(struct measuring){victim, flooders}, &last);
}

static bool is_chosen(const struct flood *flood)
{
    const char *chosen = getenv("BOURSE_FLOOD");
    return chosen == NULL || strcmp(chosen, flood->name) == 0;
}

/* Measures one way: from one session or eight, who read or not. */
static void flood_in_way(const struct flood_victim *victim, const struct flooders *flooders,
                         unsigned way, char *slowed, size_t capacity)
{
    struct orders *orders = flooders->orders;
    orders->sessions = way % 2 == 0 ? 1 : SESSIONS_MOST;
    orders->reads = way / 2 == 1;
    if (!is_borne(victim, flooders)) {
        const size_t used = strlen(slowed);
        (void)snprintf(slowed + used, capacity - used, " %s (%zu, %s);", orders->flood->name,
                       orders->sessions, orders->reads ? "read" : "unread");
    }
}

void floods_run(struct floods *floods, size_t first, size_t count,
                const struct flood_victim *victim, const struct identity *key)
{
    struct flooders flooders;
    char slowed[1024] = "";
    flooders_open(&flooders, victim->arena, key, &floods->items[first]);
    for (size_t i = first; i < floods->count && i - first < count; i++) {
        flooders.orders->flood = &floods->items[i];
        /* Measures the short form: from eight sessions that read. */
        for (unsigned way = honest_is_long() ? 0 : 3; way < 4 && is_chosen(&floods->items[i]);
             way++) {
            flood_in_way(victim, &flooders, way, slowed, sizeof slowed);
        }
    }
    flooders_close(&flooders);
    ck_assert_msg(slowed[0] == '\0', "honest work is slowed by floods of:%s", slowed);
}
