/* A flood of each type of message of the control port, from one session and from eight, by a
 * member who reads the answers or does not: what is left to an honest client (P24).
 *
 * Each flood is compared with the same flooders sending to a sink, a process beside the broker
 * that reads and forgets. So what the two processors of the machine are kept busy with is the
 * same in both. The market is one with many orders, since a request may cost as much as there is
 * to look at. CI floods shortly, from eight sessions that read, and asks for the bounds of
 * tests/support/honest.h that a loaded machine with sanitizers keeps; BOURSE_LONG=yes floods in
 * every way and asks for those of P24. BOURSE_FLOOD names one type. */
#include "tests/support/arena.h"
#include "tests/support/honest.h"

#include "base/checked.h"
#include "matching/book.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"

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
    EACH_MS = 5,           /* messages of a session in a millisecond: its rate */
    LARGE_BYTES = 1 << 16, /* of such a message one is sent */
    OPEN_AGAIN_MS = 500,   /* who does not read is hung up on, and comes back */
    PAIRS_MOST = 5,
    TRIES = 3,
};

/* With sanitizers a step takes many times as long, so that there are fewer in a second. */
#ifdef __SANITIZE_ADDRESS__
#define STEPS "limits: {steps: 600000}\n"
#else
#define STEPS ""
#endif
static const char broker_yaml[] =
    "listen: tcp://127.0.0.1:*\nblob_listen: tcp://127.0.0.1:*\n" STEPS;

/* ---------------------------------------------------------------- the market */

struct crowd { /* so much stands in the market */
    uint32_t asks, jobs, own_asks;
};

struct market_client {
    struct identity *key;
    struct broker_client client;
};

static struct crowd crowd_now(void)
{
    return honest_is_long() ? (struct crowd){5000, 1000, 500} : (struct crowd){300, 60, 20};
}

/* Sends it as soon as one of those before has its answer, and does not wait for its own. */
static void put_request(struct broker_client *client, enum message_type type,
                        const struct id128 *id, const ProtobufCMessage *body)
{
    while (dialogue_pending(client->dialogue) >= 32) {
        struct dialogue_event event = broker_client_hear(client);
        ck_assert_msg(event.type != DIALOGUE_REJECTED, "%s", event.text);
        codec_free(&event.body);
    }
    const struct id128 own = id == NULL ? entropy_id() : *id;
    ck_assert_int_eq(dialogue_request(client->dialogue, clock_monotonic_ns(), type, &own, body),
                     DIALOGUE_OK);
}

static void hear_all(struct broker_client *client)
{
    while (dialogue_pending(client->dialogue) > 0) {
        struct dialogue_event event = broker_client_hear(client);
        ck_assert_msg(event.type != DIALOGUE_REJECTED, "%s", event.text);
        codec_free(&event.body);
    }
}

struct device_body { /* what one device of an advertisement borrows */
    Bourse__V1__Device wire;
    Bourse__V1__Attribute attributes[4];
    Bourse__V1__Attribute *pointers[4];
    uint32_t number;
    uint8_t id[16];
};

static void fill_device(struct device_body *device, uint32_t number)
{
    static const char *const names[] = {"memory", "cores", "fp32", "bandwidth"};
    memset(device, 0, sizeof *device);
    bourse__v1__device__init(&device->wire);
    memcpy(device->id, &number, sizeof number);
    device->id[15] = 1;
    device->wire.device = arena_bytes(device->id, sizeof device->id);
    device->wire.instrument = (char *)(uintptr_t) "cpu.x86_64.avx512";
    device->wire.slots = 4;
    for (size_t i = 0; i < 4; i++) {
        bourse__v1__attribute__init(&device->attributes[i]);
        device->attributes[i].name = (char *)(uintptr_t)names[i];
        device->attributes[i].has_number = true;
        device->attributes[i].number = 1 + number % (100 + (int64_t)i);
        device->pointers[i] = &device->attributes[i];
    }
    device->wire.n_attributes = 4;
    device->wire.attributes = device->pointers;
}

static Bourse__V1__Advertise *advertisement(uint32_t count)
{
    static struct device_body devices[LIMIT_DEVICES];
    static Bourse__V1__Device *pointers[LIMIT_DEVICES];
    static Bourse__V1__Advertise body;
    bourse__v1__advertise__init(&body);
    for (uint32_t i = 0; i < count; i++) {
        fill_device(&devices[i], i);
        pointers[i] = &devices[i].wire;
    }
    body.n_devices = count;
    body.devices = pointers;
    return &body;
}

/* Devices, and an ask for each. */
static void offer(struct broker_client *client, uint32_t count)
{
    put_request(client, MESSAGE_ADVERTISE, NULL, &advertisement(count)->base);
    for (uint32_t i = 0; i < count; i++) {
        struct device_body device;
        fill_device(&device, i);
        Bourse__V1__AskPlace ask = BOURSE__V1__ASK_PLACE__INIT;
        ask.device = device.wire.device;
        ask.slots = 4;
        ask.price_micro = 1000000 + i;
        put_request(client, MESSAGE_ASK_PLACE, NULL, &ask.base);
    }
    hear_all(client);
}

/* A requirement that no device satisfies, worded in one of a few ways. */
static Bourse__V1__Requirement *needs_of(uint32_t number)
{
    static Bourse__V1__RequirementNode nodes[3];
    static Bourse__V1__RequirementNode *pointers[3];
    static Bourse__V1__Requirement needs;
    static const char *const names[] = {"memory", "cores"};
    bourse__v1__requirement__init(&needs);
    for (size_t i = 0; i < 3; i++) {
        bourse__v1__requirement_node__init(&nodes[i]);
        pointers[i] = &nodes[i];
        nodes[i].op = i < 2 ? REQUIREMENT_GE : REQUIREMENT_AND;
        if (i < 2) {
            nodes[i].name = (char *)(uintptr_t)names[i];
            nodes[i].has_number = true;
            nodes[i].number = 200 + number % 50;
        }
    }
    nodes[2].has_arity = true;
    nodes[2].arity = 2;
    needs.n_nodes = 3;
    needs.nodes = pointers;
    return &needs;
}

static Bourse__V1__SubmitJob *submission(uint32_t number, uint32_t order_type)
{
    static const uint8_t manifest[32] = {1};
    static Bourse__V1__SubmitJob job;
    bourse__v1__submit_job__init(&job);
    job.name = (char *)(uintptr_t) "flood";
    job.manifest = arena_bytes(manifest, sizeof manifest);
    job.subtasks = 1;
    job.budget_micro = 1;
    job.has_cap_micro = true;
    job.cap_micro = 1;
    job.needs = needs_of(number);
    job.slots = 1;
    job.limit_ms = 1000;
    job.term_ms = 1000;
    job.verify = (char *)(uintptr_t) "none";
    job.has_order_type = order_type != ORDER_LIMIT;
    job.order_type = order_type;
    return &job;
}

/* ---------------------------------------------------------------- what is sent */

struct body {
    uint8_t *bytes;
    size_t length;
};

struct flood {
    const char *name;
    enum message_type type;
    struct body bodies[2];    /* in turns; the second may be missing */
    enum reject_code refused; /* what its sender is told */
};

enum { FLOODS_MOST = 64 };
struct floods {
    struct flood items[FLOODS_MOST];
    size_t count;
};

static struct body encode(const ProtobufCMessage *message)
{
    struct body body;
    body.bytes = codec_encode(message, &body.length);
    ck_assert_ptr_nonnull(body.bytes);
    return body;
}

static struct flood *add(struct floods *floods, const char *name, enum message_type type,
                         const ProtobufCMessage *message)
{
    ck_assert_uint_lt(floods->count, FLOODS_MOST);
    struct flood *flood = &floods->items[floods->count++];
    *flood = (struct flood){.name = name, .type = type, .bodies = {encode(message)}};
    return flood;
}

static void add_reads_of_the_market(struct floods *floods)
{
    Bourse__V1__BookRequest book = BOURSE__V1__BOOK_REQUEST__INIT;
    add(floods, "book", MESSAGE_BOOK_REQUEST, &book.base);
    book.needs = needs_of(0);
    add(floods, "book, none fits", MESSAGE_BOOK_REQUEST, &book.base);
    Bourse__V1__DevicesRequest devices = BOURSE__V1__DEVICES_REQUEST__INIT;
    add(floods, "devices", MESSAGE_DEVICES_REQUEST, &devices.base);
    devices.needs = needs_of(0);
    add(floods, "devices, none fits", MESSAGE_DEVICES_REQUEST, &devices.base);
    Bourse__V1__ProvidersRequest providers = BOURSE__V1__PROVIDERS_REQUEST__INIT;
    add(floods, "providers", MESSAGE_PROVIDERS_REQUEST, &providers.base);
    Bourse__V1__MarketRequest market = BOURSE__V1__MARKET_REQUEST__INIT;
    add(floods, "market", MESSAGE_MARKET_REQUEST, &market.base);
    Bourse__V1__PricesRequest prices = BOURSE__V1__PRICES_REQUEST__INIT;
    add(floods, "prices", MESSAGE_PRICES_REQUEST, &prices.base);
    Bourse__V1__TradesRequest trades = BOURSE__V1__TRADES_REQUEST__INIT;
    add(floods, "trades", MESSAGE_TRADES_REQUEST, &trades.base);
    Bourse__V1__CheckpointRequest checkpoint = BOURSE__V1__CHECKPOINT_REQUEST__INIT;
    add(floods, "checkpoint", MESSAGE_CHECKPOINT_REQUEST, &checkpoint.base);
    static uint8_t works[LIMIT_WORKS][32];
    ProtobufCBinaryData names[LIMIT_WORKS];
    for (size_t i = 0; i < LIMIT_WORKS; i++) {
        names[i] = arena_bytes(works[i], sizeof works[i]);
    }
    Bourse__V1__HistoryRequest history = BOURSE__V1__HISTORY_REQUEST__INIT;
    history.n_works = LIMIT_WORKS;
    history.works = names;
    add(floods, "history", MESSAGE_HISTORY_REQUEST, &history.base);
}

static void add_reads_of_ones_own(struct floods *floods, const struct id128 *job)
{
    const ProtobufCBinaryData id = arena_bytes(job->bytes, 16);
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    add(floods, "balance", MESSAGE_BALANCE_REQUEST, &balance.base);
    Bourse__V1__StatementRequest statement = BOURSE__V1__STATEMENT_REQUEST__INIT;
    add(floods, "statement", MESSAGE_STATEMENT_REQUEST, &statement.base);
    statement.has_results = statement.results = true;
    add(floods, "statement of results", MESSAGE_STATEMENT_REQUEST, &statement.base);
    Bourse__V1__OrdersRequest orders = BOURSE__V1__ORDERS_REQUEST__INIT;
    add(floods, "orders", MESSAGE_ORDERS_REQUEST, &orders.base);
    Bourse__V1__DonationsRequest donations = BOURSE__V1__DONATIONS_REQUEST__INIT;
    add(floods, "donations", MESSAGE_DONATIONS_REQUEST, &donations.base);
    Bourse__V1__WhyRequest why = BOURSE__V1__WHY_REQUEST__INIT;
    add(floods, "why", MESSAGE_WHY_REQUEST, &why.base);
    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    add(floods, "jobs", MESSAGE_JOBS_REQUEST, &jobs.base);
    jobs.has_watch = jobs.watch = jobs.has_job = jobs.has_subtasks = jobs.subtasks = true;
    jobs.job = id;
    add(floods, "one job, watched", MESSAGE_JOBS_REQUEST, &jobs.base);
    Bourse__V1__ExplainRequest explain = BOURSE__V1__EXPLAIN_REQUEST__INIT;
    explain.job = id;
    add(floods, "explain", MESSAGE_EXPLAIN_REQUEST, &explain.base);
    Bourse__V1__OutcomesRequest outcomes = BOURSE__V1__OUTCOMES_REQUEST__INIT;
    outcomes.job = id;
    outcomes.limit = LIMIT_ROWS;
    add(floods, "outcomes", MESSAGE_OUTCOMES_REQUEST, &outcomes.base);
    Bourse__V1__ReceiptRequest receipt = BOURSE__V1__RECEIPT_REQUEST__INIT;
    receipt.job = id;
    add(floods, "receipt", MESSAGE_RECEIPT_REQUEST, &receipt.base)->refused = REJECT_NOT_FOUND;
    Bourse__V1__QuoteRequest quote = BOURSE__V1__QUOTE_REQUEST__INIT;
    quote.needs = needs_of(0);
    quote.subtasks = quote.slots = 1;
    quote.limit_ms = quote.term_ms = 1000;
    quote.expect_ns = NS_PER_S;
    add(floods, "quote", MESSAGE_QUOTE_REQUEST, &quote.base);
}

static void add_commands(struct floods *floods, const struct id128 *job)
{
    const ProtobufCBinaryData id = arena_bytes(job->bytes, 16);
    static const struct id128 nobody = {{9}};
    struct device_body device;
    fill_device(&device, 0);
    Bourse__V1__Heartbeat heartbeat = BOURSE__V1__HEARTBEAT__INIT;
    add(floods, "heartbeat", MESSAGE_HEARTBEAT, &heartbeat.base);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    static const uint8_t key[32] = {1};
    join.account = arena_bytes(key, sizeof key);
    join.token = arena_bytes(nobody.bytes, 16);
    add(floods, "join", MESSAGE_JOIN, &join.base)->refused = REJECT_BAD_SIGNATURE;
    Bourse__V1__OrderCancel cancel = BOURSE__V1__ORDER_CANCEL__INIT;
    cancel.order = arena_bytes(nobody.bytes, 16);
    add(floods, "order-cancel", MESSAGE_ORDER_CANCEL, &cancel.base)->refused = REJECT_NOT_FOUND;
    Bourse__V1__JobCancel cancel_job = BOURSE__V1__JOB_CANCEL__INIT;
    cancel_job.job = arena_bytes(nobody.bytes, 16);
    add(floods, "job-cancel", MESSAGE_JOB_CANCEL, &cancel_job.base)->refused = REJECT_NOT_FOUND;
    Bourse__V1__AskPlace ask = BOURSE__V1__ASK_PLACE__INIT;
    ask.device = device.wire.device;
    ask.slots = 4;
    struct flood *asks = add(floods, "ask-place", MESSAGE_ASK_PLACE, &ask.base);
    ask.price_micro = 5;
    asks->bodies[1] = encode(&ask.base);
    Bourse__V1__OrderReplace replace = BOURSE__V1__ORDER_REPLACE__INIT;
    replace.order = id;
    replace.has_price_micro = true;
    replace.price_micro = 2;
    struct flood *flood = add(floods, "order-replace", MESSAGE_ORDER_REPLACE, &replace.base);
    replace.price_micro = 3;
    flood->bodies[1] = encode(&replace.base);
    Bourse__V1__Statement held = BOURSE__V1__STATEMENT__INIT;
    add(floods, "statement-held", MESSAGE_STATEMENT_HELD, &held.base);
    add(floods, "advertise", MESSAGE_ADVERTISE, &advertisement(1)->base);
    add(floods, "advertise of 1000 devices", MESSAGE_ADVERTISE, &advertisement(1000)->base)
        ->refused = REJECT_LIMIT;
    static uint8_t result[4000];
    static ProtobufCBinaryData encoded[LIMIT_RESULTS];
    for (size_t i = 0; i < LIMIT_RESULTS; i++) {
        encoded[i] = arena_bytes(result, sizeof result);
    }
    static const uint8_t signature[64] = {1};
    Bourse__V1__Results results = BOURSE__V1__RESULTS__INIT;
    results.signature = arena_bytes(signature, sizeof signature);
    results.n_results = LIMIT_RESULTS;
    results.results = encoded;
    add(floods, "results", MESSAGE_RESULTS, &results.base)->refused = REJECT_MALFORMED;
    add(floods, "submit-job, immediate", MESSAGE_SUBMIT_JOB, &submission(0, ORDER_IOC)->base);
    add(floods, "submit-job", MESSAGE_SUBMIT_JOB, &submission(1, ORDER_LIMIT)->base);
    /* Of the operator's: the sender is none. */
    Bourse__V1__AccountsRequest accounts = BOURSE__V1__ACCOUNTS_REQUEST__INIT;
    add(floods, "accounts", MESSAGE_ACCOUNTS_REQUEST, &accounts.base)->refused = REJECT_ROLE;
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = arena_bytes(key, sizeof key);
    mint.amount_micro = 1;
    add(floods, "mint", MESSAGE_MINT, &mint.base)->refused = REJECT_ROLE;
    Bourse__V1__InviteCreate invite = BOURSE__V1__INVITE_CREATE__INIT;
    invite.token_hash = arena_bytes(key, sizeof key);
    add(floods, "invite-create", MESSAGE_INVITE_CREATE, &invite.base)->refused = REJECT_ROLE;
    Bourse__V1__Freeze freeze = BOURSE__V1__FREEZE__INIT;
    freeze.account = arena_bytes(key, sizeof key);
    add(floods, "freeze", MESSAGE_FREEZE, &freeze.base)->refused = REJECT_ROLE;
    Bourse__V1__Halt halt = BOURSE__V1__HALT__INIT;
    add(floods, "halt", MESSAGE_HALT, &halt.base)->refused = REJECT_ROLE;
    Bourse__V1__SetBands bands = BOURSE__V1__SET_BANDS__INIT;
    add(floods, "set-bands", MESSAGE_SET_BANDS, &bands.base)->refused = REJECT_ROLE;
    Bourse__V1__Goodbye goodbye = BOURSE__V1__GOODBYE__INIT;
    add(floods, "goodbye", MESSAGE_GOODBYE, &goodbye.base);
}

static void floods_free(struct floods *floods)
{
    for (size_t i = 0; i < floods->count; i++) {
        free(floods->items[i].bodies[0].bytes);
        free(floods->items[i].bodies[1].bytes);
    }
}

/* ---------------------------------------------------------------- a sink, and flooders */

struct sink {
    char endpoint[256];
    struct key32 server;
    pid_t pid;
};

static void run_sink(void *socket)
{
    zmq_msg_t message;
    for (;;) {
        (void)zmq_msg_init(&message);
        (void)zmq_msg_recv(&message, socket, 0);
        (void)zmq_msg_close(&message);
    }
}

static void sink_open(struct sink *sink, const struct arena *arena)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    uint8_t secret[32];
    randombytes_buf(secret, sizeof secret);
    ck_assert_int_eq(crypto_scalarmult_base(sink->server.bytes, secret), 0);
    sink->pid = fork();
    ck_assert_int_ge(sink->pid, 0);
    if (sink->pid == 0) {
        const int is_server = 1;
        size_t size = sizeof sink->endpoint;
        void *socket = zmq_socket(zmq_ctx_new(), ZMQ_ROUTER);
        const bool is_ipc = strncmp(arena->broker.market.control, "ipc:", 4) == 0;
        (void)snprintf(sink->endpoint, sizeof sink->endpoint, "ipc://%s/sink",
                       arena->broker.folder);
        const bool good =
            zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &is_server, sizeof is_server) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, 32) == 0 &&
            zmq_bind(socket, is_ipc ? sink->endpoint : "tcp://127.0.0.1:*") == 0 &&
            zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, sink->endpoint, &size) == 0 &&
            write(ends[1], sink->endpoint, sizeof sink->endpoint) == (ssize_t)sizeof sink->endpoint;
        if (good) {
            run_sink(socket);
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

/* What the flooders do now: shared with them, who live as long as the test. */
struct orders {
    const struct flood *flood;
    size_t sessions;
    bool reads;
    uint64_t number;   /* of these orders */
    uint64_t ready[2]; /* the number of the last ones that each process of flooders is ready for */
};

struct flooding {
    const struct sink *sink; /* NULL: to the broker */
    const struct identity *key;
    volatile struct orders *orders;
    size_t place; /* in `ready` */
};

struct flooder { /* one session */
    struct broker_client client;
    struct link *link;
    uint64_t session;
};

static void flooder_open(struct flooder *flooder, const struct flooding *flooding,
                         const struct arena *arena)
{
    struct problem problem;
    if (flooding->sink == NULL) {
        broker_client_open(&flooder->client, &arena->broker, flooding->key, SESSION_CONSUMER);
        flooder->link = flooder->client.link;
        flooder->session = dialogue_welcome(flooder->client.dialogue)->session;
    } else {
        flooder->session = 1;
        ck_assert_msg(link_open(zmq_ctx_new(), flooding->sink->endpoint, &flooding->sink->server,
                                flooding->key, LIMIT_MESSAGE_BYTES, &flooder->link, &problem),
                      "%s", problem.text);
    }
}

static void flood_once(const struct flooder *flooder, const struct flood *flood,
                       const struct identity *key, const struct arena *arena, uint64_t number)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    const struct body *body = &flood->bodies[flood->bodies[1].bytes == NULL ? 0 : number % 2];
    struct envelope envelope = {
        .version = ENVELOPE_VERSION,
        .type = (uint16_t)flood->type,
        .session = flooder->session,
        .sequence = 1000 + number,
        .created_ms = dialogue_log_time_ms(arena->owner.dialogue, clock_monotonic_ns()),
        .body = body->bytes,
        .body_length = (uint32_t)body->length};
    if (flood->type != MESSAGE_HEARTBEAT && flood->type != MESSAGE_GOODBYE) {
        envelope.id = entropy_id();
    }
    if (message_must_be_signed(flood->type)) {
        ck_assert(identity_sign_envelope(key, &arena->broker.market.cluster, &envelope));
    }
    (void)link_send(flooder->link, bytes, arena_write(&envelope, bytes, sizeof bytes));
}

/* Ends its session, if that goes on, and begins another. */
static void come_back(struct flooder *flooder, const struct flooding *flooding,
                      const struct arena *arena)
{
    static const struct flood goodbye = {.name = "goodbye", .type = MESSAGE_GOODBYE};
    flood_once(flooder, &goodbye, flooding->key, arena, 0);
    for (int i = 0; i < 10; i++) {
        attack_pace(); /* it is on its way before the connection goes */
    }
    broker_client_reopen(&flooder->client);
    flooder->session = dialogue_welcome(flooder->client.dialogue)->session;
}

/* Reads what has come. False: the session is over, whatever is sent to it. */
static bool read_on(const struct flooder *flooder)
{
    const uint8_t *message;
    size_t length;
    bool goes_on = true;
    while (link_receive(flooder->link, 0, &message, &length) == 1) {
        struct envelope envelope;
        goes_on =
            goes_on &&
            (envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope) != ENVELOPE_OK ||
             envelope.type != MESSAGE_REJECT || arena_reject_code(&envelope) != REJECT_SESSION);
    }
    return goes_on;
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
        known = orders.number;
        flooding->orders->ready[flooding->place] = known;
        const bool is_large = orders.flood->bodies[0].length >= LARGE_BYTES;
        for (size_t i = 0; i < orders.sessions; i++) {
            for (int k = 0; k < EACH_MS && (!is_large || (k == 0 && round % EACH_MS == 0)); k++) {
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

/* ---------------------------------------------------------------- the measure */

/* What the flood left in the broker's queues is none of the sink's: the next window begins when the
 * broker answers at once again, or has had its time for that. */
static void wait_for_quiet(struct arena *arena)
{
    enum { ANSWERS = 5, ANSWERS_MOST = 100 };
    int quick = 0;
    for (int i = 0; quick < ANSWERS && i < ANSWERS_MOST; i++) {
        const int64_t before_ns = clock_monotonic_ns();
        (void)arena_state_of(arena);
        quick = clock_monotonic_ns() - before_ns < 10 * NS_PER_MS ? quick + 1 : 0;
    }
}

/* The flooders of the broker, and those of the sink. */
struct flooders {
    struct sink sink;
    struct orders *orders; /* shared */
    struct flooding at[2]; /* the sink, the broker */
    pid_t pids[2];
};

static void flooders_open(struct flooders *flooders, struct arena *arena,
                          const struct identity *key, const struct flood *first)
{
    sink_open(&flooders->sink, arena);
    flooders->orders = mmap(NULL, sizeof *flooders->orders, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(flooders->orders, MAP_FAILED);
    *flooders->orders = (struct orders){.flood = first};
    for (size_t i = 0; i < 2; i++) {
        flooders->at[i] = (struct flooding){.sink = i == 0 ? &flooders->sink : NULL,
                                            .key = key,
                                            .orders = flooders->orders,
                                            .place = i};
        struct attack_context context = {
            .arena = arena, .what = &flooders->at[i], .is_pressing = true};
        flooders->pids[i] = attack_start(run_flood, &context);
        ck_assert_int_eq(kill(flooders->pids[i], SIGSTOP), 0);
    }
}

/* New orders: the flooders begin sessions for them, and stand still then. */
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

/* With the flood against with its sink, in turns. */
static struct honest_ratios measure(struct arena *arena, const struct flooders *flooders,
                                    int64_t interval_ns)
{
    static struct honest_times times;
    const size_t pairs = honest_is_long() ? PAIRS_MOST : 2;
    const int64_t window_ms = honest_is_long() ? HONEST_WINDOW_MS : HONEST_WINDOW_MS / 2;
    double waits_ms[2][PAIRS_MOST];
    unsigned served[2] = {0};
    for (size_t i = 0; i < 2 * pairs; i++) {
        const size_t with = i % 2;
        if (with == 0) {
            wait_for_quiet(arena);
        }
        ck_assert_int_eq(kill(flooders->pids[with], SIGCONT), 0);
        times.count = 0;
        served[with] += honest_window(&arena->owner, arena, window_ms, interval_ns, &times);
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

static bool is_borne(struct arena *arena, const struct flooders *flooders, int64_t interval_ns)
{
    struct honest_ratios found = {0};
    for (int i = 0; i < TRIES && !honest_is_within(found, honest_bounds()); i++) {
        flooders_prepare(flooders);
        found = measure(arena, flooders, interval_ns);
    }
    return honest_is_within(found, honest_bounds());
}

static struct id128 fill_market(struct arena *arena, struct market_client *flooder)
{
    const struct crowd crowd = crowd_now();
    struct id128 last = {{0}};
    flooder->key = arena_identity();
    arena_join(arena, &flooder->client, flooder->key, "flooder", ROLE_CONSUMER | ROLE_PROVIDER);
    for (uint32_t stands = 0; stands < crowd.asks; stands += LIMIT_DEVICES) {
        struct market_client other = {.key = arena_identity()};
        char name[32];
        (void)snprintf(name, sizeof name, "crowd-%u", stands);
        arena_join(arena, &other.client, other.key, name, ROLE_PROVIDER);
        const uint32_t rest = crowd.asks - stands;
        offer(&other.client, rest < LIMIT_DEVICES ? rest : LIMIT_DEVICES);
        broker_client_close(&other.client);
        identity_destroy(&other.key);
    }
    offer(&flooder->client, crowd.own_asks);
    for (uint32_t i = 0; i < crowd.jobs; i++) {
        last = entropy_id();
        put_request(&flooder->client, MESSAGE_SUBMIT_JOB, &last, &submission(i, ORDER_LIMIT)->base);
    }
    hear_all(&flooder->client);
    return last;
}

/* What one of them is answered, so that no flood is of messages that are thrown away at the door. */
static enum message_type answer_to(const struct arena *arena, const struct flood *flood,
                                   const struct identity *key, enum reject_code *ret_code)
{
    const struct flooding flooding = {.key = key};
    struct flooder flooder;
    struct envelope envelope = {.type = 0};
    const uint8_t *message;
    size_t length;
    *ret_code = REJECT_NONE;
    flooder_open(&flooder, &flooding, arena);
    flood_once(&flooder, flood, key, arena, 0);
    if (link_receive(flooder.link, ARENA_WAIT_MS, &message, &length) == 1) {
        ck_assert_int_eq(envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope),
                         ENVELOPE_OK);
        if (envelope.type == MESSAGE_REJECT) {
            *ret_code = arena_reject_code(&envelope);
        }
    }
    static const struct flood goodbye = {.name = "goodbye", .type = MESSAGE_GOODBYE};
    flood_once(&flooder, &goodbye, key, arena, 0);
    attack_pace(); /* it is on its way before the connection goes */
    broker_client_close(&flooder.client);
    return (enum message_type)envelope.type;
}

static void check_answers(const struct arena *arena, const struct floods *floods,
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

static bool is_chosen(const struct flood *flood)
{
    const char *chosen = getenv("BOURSE_FLOOD");
    return chosen == NULL || strcmp(chosen, flood->name) == 0;
}

/* One way: from one session or eight, who read or not. */
static void flood_in_way(struct arena *arena, const struct flooders *flooders, unsigned way,
                         int64_t interval_ns, char *slowed, size_t capacity)
{
    struct orders *orders = flooders->orders;
    orders->sessions = way % 2 == 0 ? 1 : SESSIONS_MOST;
    orders->reads = way / 2 == 1;
    if (!is_borne(arena, flooders, interval_ns)) {
        const size_t used = strlen(slowed);
        (void)snprintf(slowed + used, capacity - used, " %s (%zu, %s);", orders->flood->name,
                       orders->sessions, orders->reads ? "read" : "unread");
    }
}

START_TEST(no_type_of_message_slows_the_others)
{
    static struct floods floods;
    struct arena arena;
    struct market_client flooder;
    struct flooders flooders;
    char slowed[1024] = "";
    arena_open(&arena, broker_yaml);
    const struct id128 job = fill_market(&arena, &flooder);
    add_reads_of_the_market(&floods);
    add_reads_of_ones_own(&floods, &job);
    add_commands(&floods, &job);
    check_answers(&arena, &floods, flooder.key);
    const int64_t interval_ns = honest_interval_ns(&arena);
    flooders_open(&flooders, &arena, flooder.key, &floods.items[0]);
    for (size_t i = 0; i < floods.count; i++) {
        flooders.orders->flood = &floods.items[i];
        /* Shortly: from eight sessions that read. */
        for (unsigned way = honest_is_long() ? 0 : 3; way < 4 && is_chosen(&floods.items[i]);
             way++) {
            flood_in_way(&arena, &flooders, way, interval_ns, slowed, sizeof slowed);
        }
    }
    flooders_close(&flooders);
    ck_assert_msg(slowed[0] == '\0', "honest clients are slowed by floods of:%s", slowed);
    floods_free(&floods);
    broker_client_close(&flooder.client);
    arena_close(&arena);
    identity_destroy(&flooder.key);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire floods");
    TCase *tests = tcase_create("floods");
    tcase_set_timeout(tests, 1800);
    if (sodium_init() < 0 || setenv("ASAN_OPTIONS", "quarantine_size_mb=8", 1) != 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, no_type_of_message_slows_the_others);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
