/* The wire's test vectors: messages with fixed keys, ids and times, as text and as bytes.
 *
 * `golden_wire --print` writes tests/golden/wire.txt; without an argument the program makes the
 * vectors anew, compares them with the file, byte for byte, and decodes and verifies each. A change
 * of the file is a change of the protocol. */
#include "base/sha256.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/reject.h"
#include "protocol/results.h"
#include "runtime/files.h"
#include "runtime/invitation.h"
#include "runtime/market.h"
#include "tests/golden/output_vectors.h"
#include "tests/golden/result_vector.h"
#include "tests/golden/wire_vector.h"
#include "tests/support/results_path.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_FILE BOURSE_SOURCE_DIR "/tests/golden/wire.txt"

static void put_session(struct text *text, struct cast *cast)
{
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = 1;
    hello.program = "golden 1";
    hello.has_role = 1;
    hello.role = SESSION_PROVIDER;
    put_vector(text, cast, MESSAGE_HELLO, NULL, &hello.base);
    hello.has_resume_session = hello.has_resume_sequence = 1;
    hello.resume_session = 0x0102030405060708;
    hello.resume_sequence = 300;
    put_vector(text, cast, MESSAGE_HELLO, NULL, &hello.base);

    Bourse__V1__Welcome welcome = BOURSE__V1__WELCOME__INIT;
    welcome.version = 1;
    welcome.cluster = binary(cast->cluster.bytes, 16);
    welcome.session = 0x0102030405060708;
    welcome.heartbeat_ms = 1000;
    welcome.log_time_ms = 1700000000000;
    welcome.log_index = 42;
    welcome.log_origin = "bourse.example/log";
    welcome.log_key = binary(identity_key(cast->provider)->bytes, 32);
    welcome.has_account = 1;
    welcome.account = binary(identity_key(cast->consumer)->bytes, 32);
    welcome.account_name = "ann";
    welcome.has_roles = 1;
    welcome.roles = ROLE_CONSUMER | ROLE_OPERATOR;
    welcome.max_message_bytes = LIMIT_MESSAGE_BYTES;
    welcome.has_as_of_ns = 1;
    welcome.as_of_ns = 1700000000123456789;
    put_vector(text, cast, MESSAGE_WELCOME, NULL, &welcome.base);
    welcome.has_resumed = welcome.has_missed = 1;
    welcome.resumed = 1;
    welcome.missed = 2;
    welcome.has_spread_ms = 1;
    welcome.spread_ms = 5000;
    put_vector(text, cast, MESSAGE_WELCOME, NULL, &welcome.base);
    welcome.has_resumed = welcome.has_missed = 0;
    welcome.has_gap = 1;
    welcome.gap = REJECT_GAP_TOO_OLD;
    put_vector(text, cast, MESSAGE_WELCOME, NULL, &welcome.base);

    Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
    accepted.index = UINT64_C(1) << 40;
    put_vector(text, cast, MESSAGE_ACCEPTED, NULL, &accepted.base);

    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = 24;
    reject.text = "INSUFFICIENT_FUNDS: need 5, have 3";
    reject.has_value = 1;
    reject.value = 5000000;
    reject.has_limit = 1;
    reject.limit = -3000000;
    put_vector(text, cast, MESSAGE_REJECT, NULL, &reject.base);

    reject = (Bourse__V1__Reject)BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_NOT_LEADER;
    reject.text = "another broker leads";
    put_vector(text, cast, MESSAGE_REJECT, NULL, &reject.base);
    reject.leader_address = "tcp://b.exchange.example:4770";
    put_vector(text, cast, MESSAGE_REJECT, NULL, &reject.base);
}

static void put_accounts(struct text *text, struct cast *cast)
{
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = binary(identity_key(cast->provider)->bytes, 32);
    join.token = binary(cast->token, 16);
    join.name = "b\xc3\xb6rse";
    put_vector(text, cast, MESSAGE_JOIN, cast->provider, &join.base);

    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = binary(identity_key(cast->provider)->bytes, 32);
    mint.amount_micro = INT64_C(12500000);
    put_vector(text, cast, MESSAGE_MINT, cast->consumer, &mint.base);
}

static void put_provider(struct text *text, struct cast *cast)
{
    Bourse__V1__Attribute memory = BOURSE__V1__ATTRIBUTE__INIT;
    memory.name = "memory";
    memory.has_number = 1;
    memory.number = INT64_C(8) << 30;
    Bourse__V1__Attribute program = BOURSE__V1__ATTRIBUTE__INIT;
    program.name = "program";
    program.text = "xz";
    Bourse__V1__Attribute *attributes[] = {&memory, &program};
    Bourse__V1__Device device = BOURSE__V1__DEVICE__INIT;
    device.device = binary(cast->device.bytes, 16);
    device.instrument = "cpu.x86_64.avx2";
    device.slots = 4;
    device.n_attributes = 2;
    device.attributes = attributes;
    device.label = "desktop";
    Bourse__V1__Device *devices[] = {&device};
    Bourse__V1__Advertise advertise = BOURSE__V1__ADVERTISE__INIT;
    advertise.n_devices = 1;
    advertise.devices = devices;
    put_vector(text, cast, MESSAGE_ADVERTISE, cast->provider, &advertise.base);

    Bourse__V1__AskPlace ask = BOURSE__V1__ASK_PLACE__INIT;
    ask.device = binary(cast->device.bytes, 16);
    ask.slots = 4;
    ask.price_micro = 100000;
    ask.has_max_term_ms = 1;
    ask.max_term_ms = 600000;
    put_vector(text, cast, MESSAGE_ASK_PLACE, cast->provider, &ask.base);

    Bourse__V1__HeldWork work = BOURSE__V1__HELD_WORK__INIT;
    work.index = 17;
    work.attempt = 1;
    Bourse__V1__HeldWork *works[] = {&work};
    Bourse__V1__HeldLease lease = BOURSE__V1__HELD_LEASE__INIT;
    lease.lease = 3;
    lease.n_work = 1;
    lease.work = works;
    Bourse__V1__HeldLease *leases[] = {&lease};
    Bourse__V1__Statement statement = BOURSE__V1__STATEMENT__INIT;
    statement.n_leases = 1;
    statement.leases = leases;
    statement.has_as_of_ns = 1;
    statement.as_of_ns = 1700000000123456789;
    put_vector(text, cast, MESSAGE_STATEMENT_HELD, cast->provider, &statement.base);

    Bourse__V1__Work item = BOURSE__V1__WORK__INIT;
    item.index = 18;
    item.attempt = 1;
    item.lane = 2;
    Bourse__V1__Work urgent = item;
    urgent.index = 19;
    urgent.has_urgent = 1;
    urgent.urgent = 1;
    Bourse__V1__Work *items[] = {&item, &urgent};
    Bourse__V1__Dispatch dispatch = BOURSE__V1__DISPATCH__INIT;
    dispatch.lease = 3;
    dispatch.n_work = 2;
    dispatch.work = items;
    put_vector(text, cast, MESSAGE_DISPATCH, NULL, &dispatch.base);

    Bourse__V1__Output output = BOURSE__V1__OUTPUT__INIT;
    output.name = "part.npy";
    output.hash = binary(cast->hash, 32);
    output.size = 4096;
    Bourse__V1__Output *outputs[] = {&output};
    Bourse__V1__Given left = BOURSE__V1__GIVEN__INIT;
    left.index = 4;
    left.n_outputs = 1;
    left.outputs = outputs;
    Bourse__V1__Given nothing = BOURSE__V1__GIVEN__INIT;
    nothing.index = 11;
    Bourse__V1__Given *given[] = {&left, &nothing};
    item.n_given = 2;
    item.given = given;
    dispatch.n_work = 1;
    put_vector(text, cast, MESSAGE_DISPATCH, NULL, &dispatch.base);

    Bourse__V1__Output files[] = {BOURSE__V1__OUTPUT__INIT, BOURSE__V1__OUTPUT__INIT};
    Bourse__V1__Output *all_files[] = {&files[0], &files[1]};
    Bourse__V1__Saved saved =
        BOURSE__V1__SAVED__INIT; /* as a result leaves it, but for the attempt */
    files[0].name = "log";
    files[1].name = "state/epoch-7";
    for (uint32_t i = 0; i < 2; i++) {
        files[i].hash = binary(cast->hash, 32);
        files[i].size = 1000 + i;
    }
    saved.n_files = 2;
    saved.files = all_files;
    saved.has_attempt = 1;
    saved.attempt = 3;
    item.attempt = 4;
    item.n_given = 0;
    item.saved = &saved;
    put_vector(text, cast, MESSAGE_DISPATCH, NULL, &dispatch.base);
}

static Bourse__V1__Result result_of(const struct cast *cast, uint32_t index)
{
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = binary(cast->cluster.bytes, 16);
    result.job = binary(cast->job.bytes, 16);
    result.index = index;
    result.attempt = 1;
    result.lease = 3;
    result.provider = binary(identity_key(cast->provider)->bytes, 32);
    result.device = binary(cast->device.bytes, 16);
    result.manifest = binary(cast->hash, 32);
    result.outcome = OUTCOME_OK;
    result.started_ms = 1700000001000;
    result.busy_ns = 250000000;
    result.has_exit_code = 1;
    return result;
}

static void put_results(struct text *text, struct cast *cast)
{
    enum { COUNT = 3 };
    uint8_t *bytes[COUNT];
    size_t lengths[COUNT];
    struct hash32 leaves[COUNT];
    ProtobufCBinaryData encoded[COUNT];
    Bourse__V1__Output output = BOURSE__V1__OUTPUT__INIT;
    output.name = "a.xz";
    output.hash = binary(cast->hash, 32);
    output.size = 1000;
    Bourse__V1__Output *outputs[] = {&output};
    for (uint32_t i = 0; i < COUNT; i++) {
        Bourse__V1__Result result = result_of(cast, 17 + i);
        result.n_outputs = 1;
        result.outputs = outputs;
        char title[16];
        (void)snprintf(title, sizeof title, "result %" PRIu32, i);
        expect(cast, result_vector(text, title, &result, &bytes[i], &lengths[i], &leaves[i]),
               "result");
        encoded[i] = binary(bytes[i], lengths[i]);
    }
    struct hash32 root = results_root(leaves, COUNT);
    struct hash32 path[RESULTS_PATH_MAX];
    size_t path_length = results_path(leaves, COUNT, 1, path);
    put(text, "[results tree]\n");
    put_hex(text, "root", root.bytes, 32);
    for (size_t i = 0; i < path_length; i++) {
        put_hex(text, "path of result 1", path[i].bytes, 32);
    }
    put(text, "\n");
    struct signature64 signature = results_sign(cast->provider, &cast->cluster, &root);
    expect(cast, results_verify(identity_key(cast->provider), &cast->cluster, &root, &signature),
           "results");
    Bourse__V1__Results results = BOURSE__V1__RESULTS__INIT;
    results.signature = binary(signature.bytes, 64);
    results.n_results = COUNT;
    results.results = encoded;
    put_vector(text, cast, MESSAGE_RESULTS, NULL, &results.base);
    for (uint32_t i = 0; i < COUNT; i++) {
        free(bytes[i]);
    }
}

static struct requirement needs_example(void)
{
    struct requirement needs = {.count = 3};
    needs.nodes[0] = (struct requirement_node){
        .op = REQUIREMENT_GE, .attribute = {.name = "memory", .number = INT64_C(2) << 30}};
    needs.nodes[1] = (struct requirement_node){
        .op = REQUIREMENT_EQ, .attribute = {.name = "kind", .is_text = true, .text = "cpu"}};
    needs.nodes[2] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    return needs;
}

static void put_consumer(struct text *text, struct cast *cast)
{
    struct requirement needs = needs_example();
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(&needs);
    Bourse__V1__SubmitJob job = BOURSE__V1__SUBMIT_JOB__INIT;
    job.name = "thumbnails";
    job.manifest = binary(cast->hash, 32);
    job.subtasks = 200;
    job.budget_micro = 2000000;
    job.has_cap_micro = 1;
    job.cap_micro = 120000;
    job.needs = wire;
    job.slots = 1;
    job.at_most = 64;
    job.limit_ms = 600000;
    job.term_ms = 300000;
    job.verify = "none";
    put_vector(text, cast, MESSAGE_SUBMIT_JOB, cast->consumer, &job.base);

    Bourse__V1__Part part = BOURSE__V1__PART__INIT;
    part.subtasks = 2;
    part.needs = wire;
    part.slots = 4;
    part.at_most = 8;
    part.limit_ms = 60000;
    part.term_ms = 300000;
    part.has_cap_micro = 1;
    part.cap_micro = 900000;
    Bourse__V1__Part *parts[] = {&part};
    uint32_t ranks[] = {300, 200, 1};
    uint32_t expect_ms[] = {100, 0, 8000};
    uint32_t after_counts[] = {0, 1, 2};
    uint32_t after[] = {0, 0, 1};
    Bourse__V1__Graph graph = BOURSE__V1__GRAPH__INIT;
    graph.n_rank = graph.n_expect_ms = graph.n_after_count = graph.n_after = 3;
    graph.rank = ranks;
    graph.expect_ms = expect_ms;
    graph.after_count = after_counts;
    graph.after = after;
    job.subtasks = 3;
    job.n_parts = 1;
    job.parts = parts;
    job.graph = &graph;
    job.has_crash_limit = 1;
    job.crash_limit = 5;
    put_vector(text, cast, MESSAGE_SUBMIT_JOB, cast->consumer, &job.base);
    codec_requirement_free(&wire);

    Bourse__V1__JobCancel cancel = BOURSE__V1__JOB_CANCEL__INIT;
    cancel.job = binary(cast->job.bytes, 16);
    put_vector(text, cast, MESSAGE_JOB_CANCEL, cast->consumer, &cancel.base);

    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    put_vector(text, cast, MESSAGE_BALANCE_REQUEST, NULL, &balance.base);

    Bourse__V1__StatementRow row = BOURSE__V1__STATEMENT_ROW__INIT;
    row.entry = 9;
    row.log_index = 43;
    row.time_ms = 1700000002000;
    row.kind = 3;
    row.amount_micro = -250;
    row.held_micro = INT64_MIN;
    row.has_job = 1;
    row.job = binary(cast->job.bytes, 16);
    Bourse__V1__StatementRow given = row; /* a result, of a program that failed */
    given.kind = 13;
    given.amount_micro = 0;
    given.held_micro = 0;
    given.has_given_ns = 1;
    given.given_ns = 5400000000000;
    given.has_failed = 1;
    given.failed = 1;
    Bourse__V1__StatementRow *rows[] = {&row, &given};
    Bourse__V1__StatementReply statement = BOURSE__V1__STATEMENT_REPLY__INIT;
    statement.n_rows = 2;
    statement.rows = rows;
    put_vector(text, cast, MESSAGE_STATEMENT_REPLY, NULL, &statement.base);

    Bourse__V1__DonationsReply donations = BOURSE__V1__DONATIONS_REPLY__INIT;
    donations.index = 44;
    donations.used_ns = 7000000000;
    donations.promised_ns = 20000000000;
    donations.waiting = 3;
    donations.has_place = 1;
    donations.place = 2;
    donations.has_given_ns = 1;
    donations.given_ns = 5400000000000;
    put_vector(text, cast, MESSAGE_DONATIONS_REPLY, NULL, &donations.base);
}

/* An ask for anybody, and one with conditions. */
static void put_book(struct text *text, struct cast *cast)
{
    Bourse__V1__BookAsk asks[] = {BOURSE__V1__BOOK_ASK__INIT, BOURSE__V1__BOOK_ASK__INIT};
    Bourse__V1__BookAsk *all_asks[] = {&asks[0], &asks[1]};
    Bourse__V1__AskHours night = BOURSE__V1__ASK_HOURS__INIT;
    Bourse__V1__AskHours *hours[] = {&night};
    for (uint32_t i = 0; i < 2; i++) {
        asks[i].provider = 3 + i;
        asks[i].instrument = "gpu.nvidia.h100-sxm5";
        asks[i].price_micro = 2500000;
        asks[i].slots = 8;
        asks[i].free = 5;
    }
    asks[1].has_to = asks[1].has_for_you = 1;
    asks[1].to = 2;
    asks[1].for_you = 1;
    night.days = 0x1f;
    night.from_min = 22 * 60;
    night.till_min = 7 * 60;
    asks[1].n_hours = 1;
    asks[1].hours = hours;
    asks[1].has_offset_min = asks[1].has_daily_ms = asks[1].has_left_ms = 1;
    asks[1].offset_min = -210;
    asks[1].daily_ms = 28800000;
    asks[1].left_ms = 3600000;
    Bourse__V1__BookReply reply = BOURSE__V1__BOOK_REPLY__INIT;
    reply.n_asks = 2;
    reply.asks = all_asks;
    reply.index = 1234;
    put_vector(text, cast, MESSAGE_BOOK_REPLY, NULL, &reply.base);
}

/* Puts the market from the beginning, then what came after. */
static void put_market(struct text *text, struct cast *cast)
{
    Bourse__V1__MarketRequest request = BOURSE__V1__MARKET_REQUEST__INIT;
    put_vector(text, cast, MESSAGE_MARKET_REQUEST, NULL, &request.base);
    Bourse__V1__MarketAsks asks = BOURSE__V1__MARKET_ASKS__INIT;
    Bourse__V1__MarketAsks *all_asks[] = {&asks};
    asks.instrument = "gpu.nvidia.h100-sxm5";
    asks.price_micro = 2500000;
    asks.orders = 2;
    asks.slots = 16;
    asks.free = 9;
    asks.has_limited = asks.has_timed = asks.has_daily = 1;
    asks.limited = 2;
    asks.timed = asks.daily = 1;
    Bourse__V1__MarketReply reply = BOURSE__V1__MARKET_REPLY__INIT;
    reply.feed = 0x0102030405060708;
    reply.after = reply.through = 70;
    reply.has_anew = reply.anew = reply.has_next = 1;
    reply.next = 400;
    reply.index = 1234;
    reply.log_time_ms = 1700000000000;
    reply.n_asks = 1;
    reply.asks = all_asks;
    put_vector(text, cast, MESSAGE_MARKET_REPLY, NULL, &reply.base);

    request.has_feed = request.has_after = request.has_wait_ms = 1;
    request.feed = reply.feed;
    request.after = 70;
    request.wait_ms = LIMIT_WAIT_MS;
    put_vector(text, cast, MESSAGE_MARKET_REQUEST, NULL, &request.base);
    Bourse__V1__Requirement needs_gpu = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__RequirementNode kind = BOURSE__V1__REQUIREMENT_NODE__INIT;
    Bourse__V1__RequirementNode *nodes[] = {&kind};
    kind.op = 4;
    kind.name = "kind";
    kind.text = "gpu";
    needs_gpu.n_nodes = 1;
    needs_gpu.nodes = nodes;
    Bourse__V1__BookNeeds needs = BOURSE__V1__BOOK_NEEDS__INIT;
    Bourse__V1__BookNeeds *all_needs[] = {&needs};
    needs.number = 3;
    needs.needs = &needs_gpu;
    Bourse__V1__MarketBids bids = BOURSE__V1__MARKET_BIDS__INIT;
    Bourse__V1__MarketBids gone = BOURSE__V1__MARKET_BIDS__INIT;
    Bourse__V1__MarketBids *all_bids[] = {&gone, &bids};
    gone.needs = 2;
    gone.limit_micro = 2500000;
    bids.needs = 3;
    bids.limit_micro = 2400000;
    bids.orders = 1;
    bids.slots = 8;
    Bourse__V1__MarketTrade trade = BOURSE__V1__MARKET_TRADE__INIT;
    Bourse__V1__MarketTrade *trades[] = {&trade};
    trade.index = 1240;
    trade.has_entry = 1;
    trade.entry = 977;
    trade.time_ms = 1700000004000;
    trade.instrument = asks.instrument;
    trade.slots = 4;
    trade.price_micro = 2500000;
    Bourse__V1__MarketBar bar = BOURSE__V1__MARKET_BAR__INIT;
    Bourse__V1__MarketBar *bars[] = {&bar};
    bar.instrument = asks.instrument;
    bar.start_ms = 1699999980000;
    bar.open_micro = bar.low_micro = 2400000;
    bar.high_micro = bar.close_micro = 2500000;
    bar.slots = 6;
    bar.trades = 2;
    asks.orders = 1;
    asks.slots = 8;
    asks.free = 1;
    reply.through = 75;
    reply.has_anew = reply.has_next = 0;
    reply.has_more = reply.more = 1;
    reply.index = 1240;
    reply.log_time_ms = 1700000004000;
    reply.n_needs = 1;
    reply.needs = all_needs;
    reply.n_bids = 2;
    reply.bids = all_bids;
    reply.n_trades = 1;
    reply.trades = trades;
    reply.n_bars = 1;
    reply.bars = bars;
    put_vector(text, cast, MESSAGE_MARKET_REPLY, NULL, &reply.base);

    Bourse__V1__PricesRequest asked = BOURSE__V1__PRICES_REQUEST__INIT;
    asked.instrument = asks.instrument;
    asked.has_since_ms = 1;
    asked.since_ms = 1699900000000;
    put_vector(text, cast, MESSAGE_PRICES_REQUEST, NULL, &asked.base);
    Bourse__V1__PricesReply prices = BOURSE__V1__PRICES_REPLY__INIT;
    prices.n_bars = 1;
    prices.bars = bars;
    prices.index = 1240;
    prices.log_time_ms = 1700000004000;
    put_vector(text, cast, MESSAGE_PRICES_REPLY, NULL, &prices.base);
}

struct output_place {
    struct text *text;
    struct cast *cast;
};

static void put_output(void *context, enum message_type type, const ProtobufCMessage *body)
{
    const struct output_place *place = context;
    put_vector(place->text, place->cast, type, NULL, body);
}

static void put_history(struct text *text, struct cast *cast)
{
    struct hash32 name = sha256_of("work", strlen("work"));
    ProtobufCBinaryData works[] = {binary(name.bytes, 32)};
    Bourse__V1__HistoryRequest asked = BOURSE__V1__HISTORY_REQUEST__INIT;
    asked.n_works = 1;
    asked.works = works;
    asked.has_skip = 1;
    asked.skip = 1000;
    put_vector(text, cast, MESSAGE_HISTORY_REQUEST, NULL, &asked.base);
    static char device_class[] = "gpu.nvidia.h100-sxm5";
    Bourse__V1__HistoryRow row = BOURSE__V1__HISTORY_ROW__INIT;
    row.work = works[0];
    row.size = 83; /* 1.5 to 1.75 times 2^20 bytes */
    row.device_class = device_class;
    row.samples = 31;
    row.outliers = 1;
    row.median_ns = 1500000000;
    row.has_p90_ns = 1;
    row.p90_ns = 1700000000;
    row.at_ms = 1700000004000;
    Bourse__V1__HistoryRow of_device = row;
    of_device.has_provider = of_device.has_device = 1;
    of_device.provider = binary(identity_key(cast->provider)->bytes, 32);
    of_device.device = binary(cast->device.bytes, 16);
    Bourse__V1__HistoryRow pace = BOURSE__V1__HISTORY_ROW__INIT;
    pace.work = works[0];
    pace.device_class = device_class;
    pace.has_provider = pace.has_device = pace.has_pace = 1;
    pace.provider = of_device.provider;
    pace.device = of_device.device;
    pace.pace = 2950;
    Bourse__V1__HistoryRow *rows[] = {&pace, &row, &of_device};
    Bourse__V1__HistoryReply reply = BOURSE__V1__HISTORY_REPLY__INIT;
    reply.n_rows = 3;
    reply.rows = rows;
    put_vector(text, cast, MESSAGE_HISTORY_REPLY, NULL, &reply.base);
}

static void put_blobs(struct text *text, struct cast *cast)
{
    static const char content[] = "hello, market\n";
    struct hash32 hash = sha256_of(content, strlen(content));
    Bourse__V1__BlobPut blob = BOURSE__V1__BLOB_PUT__INIT;
    blob.hash = binary(hash.bytes, 32);
    blob.size = strlen(content);
    blob.data = binary(content, strlen(content));
    put_vector(text, cast, MESSAGE_BLOB_PUT, NULL, &blob.base);

    Bourse__V1__BlobGet get = BOURSE__V1__BLOB_GET__INIT;
    get.hash = binary(hash.bytes, 32);
    get.length = LIMIT_BLOB_CHUNK_BYTES;
    get.has_job = 1;
    get.job = binary(cast->job.bytes, 16);
    put_vector(text, cast, MESSAGE_BLOB_GET, NULL, &get.base);
}

static void put_manifest(struct text *text, struct cast *cast)
{
    char *arguments[] = {"xz", "-9", "-k", "{in}"};
    char *outputs[] = {"{in}.xz"};
    Bourse__V1__ManifestInput input = BOURSE__V1__MANIFEST_INPUT__INIT;
    input.name = "a.txt";
    input.hash = binary(cast->hash, 32);
    input.size = 14;
    Bourse__V1__ManifestInput *inputs[] = {&input};
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    subtask.value = "a.txt";
    subtask.n_inputs = 1;
    subtask.inputs = inputs;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "compress";
    manifest.n_arguments = 4;
    manifest.arguments = arguments;
    manifest.n_outputs = 1;
    manifest.outputs = outputs;
    manifest.n_subtasks = 1;
    manifest.subtasks = subtasks;
    manifest.subtask_count = 1;
    Bourse__V1__ManifestTerms terms = BOURSE__V1__MANIFEST_TERMS__INIT;
    terms.verify = "none";
    terms.retries = 2;
    terms.has_error_limit = 1;
    terms.error_limit = 10;
    terms.has_crash_limit = 1;
    terms.crash_limit = 5;
    manifest.terms = &terms;
    size_t length;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    struct hash32 hash = sha256_of(bytes, length);
    Bourse__V1__Manifest *decoded = NULL;
    expect(cast, codec_decode_manifest(bytes, length, &decoded, NULL) == CODEC_OK, "manifest");
    codec_manifest_free(&decoded);
    put(text, "[manifest]\nfields:\n");
    put_message(text, "", &manifest.base);
    put_hex(text, "bytes", bytes, length);
    put_hex(text, "hash", hash.bytes, 32);
    put(text, "\n");
    free(bytes);
}

static void put_invitation(struct text *text, struct cast *cast)
{
    struct invitation invitation = {.expires_ms = 1800000000000};
    (void)snprintf(invitation.market.control, sizeof invitation.market.control,
                   "tcp://192.0.2.1:7001");
    (void)snprintf(invitation.market.blobs, sizeof invitation.market.blobs, "tcp://192.0.2.1:7002");
    (void)snprintf(invitation.market.origin, sizeof invitation.market.origin, "bourse.example/log");
    invitation.market.server = *identity_transport(cast->provider);
    invitation.market.log_key = *identity_key(cast->provider);
    invitation.market.cluster = cast->cluster;
    memcpy(invitation.token.bytes, cast->token, 16);
    char word[1024];
    struct invitation again;
    expect(cast, invitation_write(&invitation, word, sizeof word), "invitation");
    expect(cast, invitation_read(word, &again, NULL), "invitation");
    put(text, "[invitation]\nserver key: transport key of the provider above\nlog key: account key "
              "of the provider\n");
    put(text, "control: \"%s\"\nblobs: \"%s\"\norigin: \"%s\"\nexpires_ms: %lld\n",
        again.market.control, again.market.blobs, again.market.origin, again.expires_ms);
    put_hex(text, "cluster", again.market.cluster.bytes, 16);
    put_hex(text, "token", again.token.bytes, 16);
    put(text, "text: %s\n", word);
}

static void make_vectors(struct text *text, struct cast *cast)
{
    put(text, "# Test vectors of the bourse protocol, version 1 (docs/protocol.md). Bytes are hex. "
              "Made by\n"
              "# golden_wire --print; the schema is protocol/bourse.proto. Optional fields that "
              "are absent are\n"
              "# not listed. `message` is what travels.\n\n");
    put_identity(text, "consumer", 0x00, cast->consumer);
    put_identity(text, "provider", 0x40, cast->provider);
    put(text, "[cluster]\n");
    put_hex(text, "id", cast->cluster.bytes, 16);
    put(text, "\n");
    put_session(text, cast);
    put_accounts(text, cast);
    put_provider(text, cast);
    put_results(text, cast);
    put_consumer(text, cast);
    put_book(text, cast);
    put_market(text, cast);
    put_history(text, cast);
    put_blobs(text, cast);
    put_manifest(text, cast);
    put_invitation(text, cast);
    output_vectors(put_output, &(struct output_place){text, cast});
    const Bourse__V1__Result result = result_of(cast, 23);
    expect(cast, result_vector_energy(text, &result), "energy");
}

int main(int argc, char **argv)
{
    static struct text text;
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    struct cast cast = make_cast();
    make_vectors(&text, &cast);
    identity_destroy(&cast.consumer);
    identity_destroy(&cast.provider);
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        (void)fputs(text.bytes, stdout);
        return cast.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    uint8_t *file;
    size_t length;
    struct problem problem;
    if (!file_read(GOLDEN_FILE, GOLDEN_BYTES_MAX, &file, &length, &problem)) {
        (void)fprintf(stderr, "%s\n", problem.text);
        return EXIT_FAILURE;
    }
    bool is_same = length == text.length && memcmp(file, text.bytes, length) == 0;
    if (!is_same) {
        wire_show_difference(GOLDEN_FILE, (const char *)file, text.bytes);
    }
    free(file);
    (void)printf("%s: %s\n", GOLDEN_FILE, is_same && cast.failures == 0 ? "ok" : "FAILED");
    return is_same && cast.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
