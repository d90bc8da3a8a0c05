/* A flood of each type of message of the control port, from one session and from eight, by a
 * member who reads the answers or does not: what is left to an honest client (P24).
 *
 * The market is one with many orders, since a request may cost as much as there is to look at. CI
 * floods shortly, from eight sessions that read, and asks for the bounds of tests/support/honest.h
 * that a loaded machine with sanitizers keeps; BOURSE_LONG=yes floods in every way and asks for
 * those of P24. BOURSE_FLOOD names one type. The blob port's types: test_blob_floods.c. */
#include "tests/support/arena.h"
#include "tests/support/flooders.h"

#include "base/checked.h"
#include "matching/book.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CROWD_EACH = 500 }; /* devices of one provider, each of a kind of its own: below its limit */

/* The honest client sends more commands in the long form than an account may by default. Sanitizers
 * make a step many times as long, so fewer fit into a second. */
#define IDS "ids_per_account: 4194304"
#ifdef __SANITIZE_ADDRESS__
#define STEPS "limits: {steps: 600000, " IDS "}\n"
#else
#define STEPS "limits: {" IDS "}\n"
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

/* Sends it as soon as one of those before has its answer, and does not wait for its own. A session
 * sends four in a millisecond, below its rate. */
static void put_request(struct broker_client *client, enum message_type type,
                        const struct id128 *id, const ProtobufCMessage *body)
{
    while (dialogue_pending(client->dialogue) >= 32) {
        struct dialogue_event event = broker_client_hear(client);
        ck_assert_msg(event.type != DIALOGUE_REJECTED, "%s", event.text);
        codec_free(&event.body);
    }
    static unsigned sent;
    if (++sent % 4 == 0) {
        attack_pace();
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

static void add_reads_of_the_market(struct floods *floods)
{
    Bourse__V1__BookRequest book = BOURSE__V1__BOOK_REQUEST__INIT;
    flood_add(floods, "book", MESSAGE_BOOK_REQUEST, &book.base);
    book.needs = needs_of(0);
    flood_add(floods, "book, none fits", MESSAGE_BOOK_REQUEST, &book.base);
    Bourse__V1__DevicesRequest devices = BOURSE__V1__DEVICES_REQUEST__INIT;
    flood_add(floods, "devices", MESSAGE_DEVICES_REQUEST, &devices.base);
    devices.needs = needs_of(0);
    flood_add(floods, "devices, none fits", MESSAGE_DEVICES_REQUEST, &devices.base);
    Bourse__V1__ProvidersRequest providers = BOURSE__V1__PROVIDERS_REQUEST__INIT;
    flood_add(floods, "providers", MESSAGE_PROVIDERS_REQUEST, &providers.base);
    Bourse__V1__MarketRequest market = BOURSE__V1__MARKET_REQUEST__INIT;
    flood_add(floods, "market", MESSAGE_MARKET_REQUEST, &market.base);
    Bourse__V1__PricesRequest prices = BOURSE__V1__PRICES_REQUEST__INIT;
    flood_add(floods, "prices", MESSAGE_PRICES_REQUEST, &prices.base);
    Bourse__V1__TradesRequest trades = BOURSE__V1__TRADES_REQUEST__INIT;
    flood_add(floods, "trades", MESSAGE_TRADES_REQUEST, &trades.base);
    Bourse__V1__CheckpointRequest checkpoint = BOURSE__V1__CHECKPOINT_REQUEST__INIT;
    flood_add(floods, "checkpoint", MESSAGE_CHECKPOINT_REQUEST, &checkpoint.base);
    static uint8_t works[LIMIT_WORKS][32];
    ProtobufCBinaryData names[LIMIT_WORKS];
    for (size_t i = 0; i < LIMIT_WORKS; i++) {
        names[i] = arena_bytes(works[i], sizeof works[i]);
    }
    Bourse__V1__HistoryRequest history = BOURSE__V1__HISTORY_REQUEST__INIT;
    history.n_works = LIMIT_WORKS;
    history.works = names;
    flood_add(floods, "history", MESSAGE_HISTORY_REQUEST, &history.base);
}

static void add_reads_of_ones_own(struct floods *floods, const struct id128 *job)
{
    const ProtobufCBinaryData id = arena_bytes(job->bytes, 16);
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    flood_add(floods, "balance", MESSAGE_BALANCE_REQUEST, &balance.base);
    Bourse__V1__StatementRequest statement = BOURSE__V1__STATEMENT_REQUEST__INIT;
    flood_add(floods, "statement", MESSAGE_STATEMENT_REQUEST, &statement.base);
    statement.has_results = statement.results = true;
    flood_add(floods, "statement of results", MESSAGE_STATEMENT_REQUEST, &statement.base);
    Bourse__V1__OrdersRequest orders = BOURSE__V1__ORDERS_REQUEST__INIT;
    flood_add(floods, "orders", MESSAGE_ORDERS_REQUEST, &orders.base);
    Bourse__V1__DonationsRequest donations = BOURSE__V1__DONATIONS_REQUEST__INIT;
    flood_add(floods, "donations", MESSAGE_DONATIONS_REQUEST, &donations.base);
    Bourse__V1__WhyRequest why = BOURSE__V1__WHY_REQUEST__INIT;
    flood_add(floods, "why", MESSAGE_WHY_REQUEST, &why.base);
    Bourse__V1__OutputPost output = BOURSE__V1__OUTPUT_POST__INIT;
    flood_add(floods, "output post", MESSAGE_OUTPUT_POST, &output.base);
    Bourse__V1__FiguresPost figures = BOURSE__V1__FIGURES_POST__INIT;
    flood_add(floods, "figures post", MESSAGE_FIGURES_POST, &figures.base);
    Bourse__V1__ChallengeReady ready = BOURSE__V1__CHALLENGE_READY__INIT;
    flood_add(floods, "challenge ready", MESSAGE_CHALLENGE_READY, &ready.base);
    Bourse__V1__OutputRequest follow = BOURSE__V1__OUTPUT_REQUEST__INIT;
    follow.job = id;
    flood_add(floods, "output", MESSAGE_OUTPUT_REQUEST, &follow.base);
    Bourse__V1__TerminalSend typed = BOURSE__V1__TERMINAL_SEND__INIT;
    typed.has_job = true;
    typed.job = id;
    flood_add(floods, "terminal send", MESSAGE_TERMINAL_SEND, &typed.base);
    Bourse__V1__TerminalReceive printed = BOURSE__V1__TERMINAL_RECEIVE__INIT;
    printed.has_job = true;
    printed.job = id;
    flood_add(floods, "terminal receive", MESSAGE_TERMINAL_RECEIVE, &printed.base);
    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    flood_add(floods, "jobs", MESSAGE_JOBS_REQUEST, &jobs.base);
    jobs.has_watch = jobs.watch = jobs.has_job = jobs.has_subtasks = jobs.subtasks = true;
    jobs.job = id;
    flood_add(floods, "one job, watched", MESSAGE_JOBS_REQUEST, &jobs.base);
    Bourse__V1__ExplainRequest explain = BOURSE__V1__EXPLAIN_REQUEST__INIT;
    explain.job = id;
    flood_add(floods, "explain", MESSAGE_EXPLAIN_REQUEST, &explain.base);
    Bourse__V1__OutcomesRequest outcomes = BOURSE__V1__OUTCOMES_REQUEST__INIT;
    outcomes.job = id;
    outcomes.limit = LIMIT_ROWS;
    flood_add(floods, "outcomes", MESSAGE_OUTCOMES_REQUEST, &outcomes.base);
    Bourse__V1__DisputesRequest disputes = BOURSE__V1__DISPUTES_REQUEST__INIT;
    disputes.job = id;
    flood_add(floods, "disputes", MESSAGE_DISPUTES_REQUEST, &disputes.base);
    Bourse__V1__StorageRequest storage = BOURSE__V1__STORAGE_REQUEST__INIT;
    flood_add(floods, "storage", MESSAGE_STORAGE_REQUEST, &storage.base);
    ProtobufCBinaryData open_job = id;
    Bourse__V1__ForgetRequest forget = BOURSE__V1__FORGET_REQUEST__INIT;
    forget.n_jobs = 1;
    forget.jobs = &open_job;
    flood_add(floods, "forget", MESSAGE_FORGET_REQUEST, &forget.base);
    Bourse__V1__ReceiptRequest receipt = BOURSE__V1__RECEIPT_REQUEST__INIT;
    receipt.job = id;
    flood_add(floods, "receipt", MESSAGE_RECEIPT_REQUEST, &receipt.base)->refused =
        REJECT_NOT_FOUND;
    Bourse__V1__ReceiptsRequest receipts = BOURSE__V1__RECEIPTS_REQUEST__INIT;
    receipts.job = id;
    flood_add(floods, "receipts", MESSAGE_RECEIPTS_REQUEST, &receipts.base);
    Bourse__V1__QuoteRequest quote = BOURSE__V1__QUOTE_REQUEST__INIT;
    quote.needs = needs_of(0);
    quote.subtasks = quote.slots = 1;
    quote.limit_ms = quote.term_ms = 1000;
    quote.expect_ns = NS_PER_S;
    flood_add(floods, "quote", MESSAGE_QUOTE_REQUEST, &quote.base);
}

static void add_commands(struct floods *floods, const struct id128 *job)
{
    const ProtobufCBinaryData id = arena_bytes(job->bytes, 16);
    static const struct id128 nobody = {{9}};
    struct device_body device;
    fill_device(&device, 0);
    Bourse__V1__Heartbeat heartbeat = BOURSE__V1__HEARTBEAT__INIT;
    flood_add(floods, "heartbeat", MESSAGE_HEARTBEAT, &heartbeat.base);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    static const uint8_t key[32] = {1};
    join.account = arena_bytes(key, sizeof key);
    join.token = arena_bytes(nobody.bytes, 16);
    flood_add(floods, "join", MESSAGE_JOIN, &join.base)->refused = REJECT_BAD_SIGNATURE;
    Bourse__V1__OrderCancel cancel = BOURSE__V1__ORDER_CANCEL__INIT;
    cancel.order = arena_bytes(nobody.bytes, 16);
    flood_add(floods, "order-cancel", MESSAGE_ORDER_CANCEL, &cancel.base)->refused =
        REJECT_NOT_FOUND;
    Bourse__V1__JobCancel cancel_job = BOURSE__V1__JOB_CANCEL__INIT;
    cancel_job.job = arena_bytes(nobody.bytes, 16);
    flood_add(floods, "job-cancel", MESSAGE_JOB_CANCEL, &cancel_job.base)->refused =
        REJECT_NOT_FOUND;
    Bourse__V1__AskPlace ask = BOURSE__V1__ASK_PLACE__INIT;
    ask.device = device.wire.device;
    ask.slots = 4;
    struct flood *asks = flood_add(floods, "ask-place", MESSAGE_ASK_PLACE, &ask.base);
    ask.price_micro = 5;
    asks->bodies[1] = flood_encode(&ask.base);
    Bourse__V1__OrderReplace replace = BOURSE__V1__ORDER_REPLACE__INIT;
    replace.order = id;
    replace.has_price_micro = true;
    replace.price_micro = 2;
    struct flood *flood = flood_add(floods, "order-replace", MESSAGE_ORDER_REPLACE, &replace.base);
    replace.price_micro = 3;
    flood->bodies[1] = flood_encode(&replace.base);
    Bourse__V1__Statement held = BOURSE__V1__STATEMENT__INIT;
    flood_add(floods, "statement-held", MESSAGE_STATEMENT_HELD, &held.base);
    flood_add(floods, "advertise", MESSAGE_ADVERTISE, &advertisement(1)->base);
    flood_add(floods, "advertise of 1000 devices", MESSAGE_ADVERTISE, &advertisement(1000)->base)
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
    flood_add(floods, "results", MESSAGE_RESULTS, &results.base)->refused = REJECT_MALFORMED;
    flood_add(floods, "submit-job, immediate", MESSAGE_SUBMIT_JOB, &submission(0, ORDER_IOC)->base);
    flood_add(floods, "submit-job", MESSAGE_SUBMIT_JOB, &submission(1, ORDER_LIMIT)->base);
    /* The operator's request: the sender is none. */
    Bourse__V1__AccountsRequest accounts = BOURSE__V1__ACCOUNTS_REQUEST__INIT;
    flood_add(floods, "accounts", MESSAGE_ACCOUNTS_REQUEST, &accounts.base)->refused = REJECT_ROLE;
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = arena_bytes(key, sizeof key);
    mint.amount_micro = 1;
    flood_add(floods, "mint", MESSAGE_MINT, &mint.base)->refused = REJECT_ROLE;
    Bourse__V1__InviteCreate invite = BOURSE__V1__INVITE_CREATE__INIT;
    invite.token_hash = arena_bytes(key, sizeof key);
    flood_add(floods, "invite-create", MESSAGE_INVITE_CREATE, &invite.base)->refused = REJECT_ROLE;
    Bourse__V1__Freeze freeze = BOURSE__V1__FREEZE__INIT;
    freeze.account = arena_bytes(key, sizeof key);
    flood_add(floods, "freeze", MESSAGE_FREEZE, &freeze.base)->refused = REJECT_ROLE;
    Bourse__V1__Halt halt = BOURSE__V1__HALT__INIT;
    flood_add(floods, "halt", MESSAGE_HALT, &halt.base)->refused = REJECT_ROLE;
    Bourse__V1__SetBands bands = BOURSE__V1__SET_BANDS__INIT;
    flood_add(floods, "set-bands", MESSAGE_SET_BANDS, &bands.base)->refused = REJECT_ROLE;
    const ProtobufCBinaryData keys[] = {arena_bytes(key, sizeof key)};
    Bourse__V1__SetOwner owner = BOURSE__V1__SET_OWNER__INIT;
    owner.name = (char *)(uintptr_t) "flood";
    owner.n_accounts = 1;
    owner.accounts = (ProtobufCBinaryData *)(uintptr_t)keys;
    flood_add(floods, "set-owner", MESSAGE_SET_OWNER, &owner.base)->refused = REJECT_ROLE;
    Bourse__V1__JudgeResult judge = BOURSE__V1__JUDGE_RESULT__INIT;
    judge.job = id;
    judge.result = judge.seed = arena_bytes(key, sizeof key);
    judge.verdict = VERDICT_ACCEPT;
    flood_add(floods, "judge-result", MESSAGE_JUDGE_RESULT, &judge.base)->refused = REJECT_STATE;
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "flood";
    flood_add(floods, "hello", MESSAGE_HELLO, &hello.base);
    Bourse__V1__Goodbye goodbye = BOURSE__V1__GOODBYE__INIT;
    flood_add(floods, "goodbye", MESSAGE_GOODBYE, &goodbye.base);
}

static struct id128 fill_market(struct arena *arena, struct market_client *flooder)
{
    const struct crowd crowd = crowd_now();
    struct id128 last = {{0}};
    flooder->key = arena_identity();
    arena_join(arena, &flooder->client, flooder->key, "flooder", ROLE_CONSUMER | ROLE_PROVIDER);
    for (uint32_t stands = 0; stands < crowd.asks; stands += CROWD_EACH) {
        struct market_client other = {.key = arena_identity()};
        char name[32];
        (void)snprintf(name, sizeof name, "crowd-%u", stands);
        arena_join(arena, &other.client, other.key, name, ROLE_PROVIDER);
        const uint32_t rest = crowd.asks - stands;
        offer(&other.client, rest < CROWD_EACH ? rest : CROWD_EACH);
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

START_TEST(no_type_of_message_slows_the_others)
{
    static struct floods floods;
    struct arena arena;
    struct market_client flooder;
    arena_open(&arena, broker_yaml);
    const struct id128 job = fill_market(&arena, &flooder);
    add_reads_of_the_market(&floods);
    add_reads_of_ones_own(&floods, &job);
    add_commands(&floods, &job);
    floods_check_types(&floods, false);
    floods_check_answers(&floods, &arena, flooder.key);
    const struct flood_victim victim = flood_commands(&arena);
    floods_run(&floods, 0, floods.count, &victim, flooder.key);
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
    if (sodium_init() < 0 ||
        setenv("ASAN_OPTIONS", "quarantine_size_mb=8:handle_sigill=1", 1) != 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, no_type_of_message_slows_the_others);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
