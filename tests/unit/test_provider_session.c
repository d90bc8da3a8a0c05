#include "provider/session.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "protocol/envelope.h"
#include "protocol/reject.h"
#include "protocol/results.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A broker played by hand around the real session: real envelopes both ways, time as the test says. */
enum { HEARTBEAT_MS = 1000, SEEN_MAX = 16384 };

static const struct id128 cluster = {{0xc1}};
static const struct id128 device = {{0xd1}};
static const struct id128 job = {{0x10}};
static const struct hash32 manifest = {{0x3a}};

struct seen { /* a message of the agent's */
    struct id128 id;
    enum message_type type;
    bool is_signed;
    struct hash32 body;
    ProtobufCMessage *message;
};

struct play {
    bool is_simulated; /* the result that sent_outcome looked at */
    struct identity *identity;
    struct agent_session *session;
    int64_t now_ns;
    uint64_t number;   /* of the connection */
    uint64_t sequence; /* the broker's */
    struct seen seen[SEEN_MAX];
    size_t seen_count;
};

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)bytes};
}

static void play_start(struct play *play)
{
    static const uint8_t seed[32] = {5};
    ck_assert_int_ge(sodium_init(), 0);
    *play = (struct play){.identity = identity_create(seed), .now_ns = NS_PER_S};
    struct agent_session_config config = {
        .identity = play->identity, .program = "test 1", .cluster = cluster, .dice = {{9}}};
    play->session = agent_session_create(&config);
    static const struct attribute attributes[] = {{.name = "kind", .is_text = true, .text = "cpu"},
                                                  {.name = "memory", .number = 1 << 30}};
    struct agent_device offered = {.device = device,
                                   .instrument = "cpu.x86_64.avx2",
                                   .slots = 4,
                                   .attributes = attributes,
                                   .attribute_count = 2};
    struct agent_ask ask = {.device = device, .slots = 4, .price_micro = 100000};
    ck_assert_int_eq(agent_session_offer(play->session, play->now_ns, &offered, 1, &ask, 1),
                     AGENT_OK);
}

static void forget_seen(struct play *play)
{
    for (size_t i = 0; i < play->seen_count; i++) {
        codec_free(&play->seen[i].message);
    }
    play->seen_count = 0;
}

static void play_end(struct play *play)
{
    forget_seen(play);
    agent_session_destroy(&play->session);
    identity_destroy(&play->identity);
}

/* Collects what the agent sends; every body decodes, every command is signed by it. */
static void listen(struct play *play)
{
    const uint8_t *bytes;
    size_t length;
    while (agent_session_outgoing(play->session, &bytes, &length)) {
        struct envelope envelope;
        ck_assert_int_eq(envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope), ENVELOPE_OK);
        if (message_must_be_signed((enum message_type)envelope.type)) {
            ck_assert(identity_verify_envelope(identity_key(play->identity), &cluster, &envelope));
        }
        ck_assert_uint_lt(play->seen_count, SEEN_MAX);
        struct seen *seen = &play->seen[play->seen_count++];
        *seen = (struct seen){.id = envelope.id,
                              .type = (enum message_type)envelope.type,
                              .is_signed = envelope.is_signed,
                              .body = sha256_of(envelope.body, envelope.body_length)};
        ck_assert_int_eq(
            codec_decode(seen->type, envelope.body, envelope.body_length, &seen->message, NULL),
            CODEC_OK);
    }
}

static const struct seen *find_seen(struct play *play, enum message_type type)
{
    listen(play);
    for (size_t i = 0; i < play->seen_count; i++) {
        if (play->seen[i].type == type) {
            return &play->seen[i];
        }
    }
    return NULL;
}

static const struct seen *last_seen(struct play *play, enum message_type type)
{
    listen(play);
    for (size_t i = play->seen_count; i > 0; i--) {
        if (play->seen[i - 1].type == type) {
            return &play->seen[i - 1];
        }
    }
    return NULL;
}

static size_t count_seen(struct play *play, enum message_type type)
{
    size_t count = 0;
    listen(play);
    for (size_t i = 0; i < play->seen_count; i++) {
        count += play->seen[i].type == type;
    }
    return count;
}

static void say(struct play *play, enum message_type type, const struct id128 *id,
                const ProtobufCMessage *body)
{
    size_t body_length;
    uint8_t *encoded = codec_encode(body, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = play->number,
                                .sequence = ++play->sequence,
                                .id = *id,
                                .body = encoded,
                                .body_length = (uint32_t)body_length};
    size_t length = envelope_size(&envelope);
    uint8_t *message = malloc(length);
    envelope_write(&envelope, message, length);
    agent_session_incoming(play->session, play->now_ns, message, length);
    free(message);
    free(encoded);
}

static void accept(struct play *play, const struct seen *seen)
{
    struct id128 id = seen->id;
    Bourse__V1__Accepted body = BOURSE__V1__ACCEPTED__INIT;
    body.index = 1;
    say(play, MESSAGE_ACCEPTED, &id, &body.base);
}

static void reject(struct play *play, const struct seen *seen, enum reject_code code)
{
    struct id128 id = seen->id;
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = code;
    body.text = (char *)(uintptr_t) "no";
    say(play, MESSAGE_REJECT, &id, &body.base);
}

static void welcome(struct play *play, const struct id128 *market)
{
    static const uint8_t log_key[32];
    agent_session_connected(play->session, play->now_ns, 7);
    forget_seen(play);
    const struct seen *hello = find_seen(play, MESSAGE_HELLO);
    ck_assert_ptr_nonnull(hello);
    play->number++;
    play->sequence = 0;
    Bourse__V1__Welcome body = BOURSE__V1__WELCOME__INIT;
    body.version = 1;
    body.cluster = view(market->bytes, 16);
    body.session = play->number;
    body.heartbeat_ms = HEARTBEAT_MS;
    body.log_time_ms = 5000000;
    body.log_origin = (char *)(uintptr_t) "example.test/log";
    body.log_key = view(log_key, 32);
    body.max_message_bytes = LIMIT_MESSAGE_BYTES;
    struct id128 id = hello->id;
    say(play, MESSAGE_WELCOME, &id, &body.base);
}

/* Connected, advertised, the ask standing, nothing left to read. */
static void settle(struct play *play)
{
    welcome(play, &cluster);
    accept(play, find_seen(play, MESSAGE_STATEMENT_HELD));
    accept(play, find_seen(play, MESSAGE_ADVERTISE));
    accept(play, find_seen(play, MESSAGE_ASK_PLACE));
    forget_seen(play);
}

static void grant(struct play *play, uint64_t lease, uint32_t slots, int64_t term_ms)
{
    static const uint8_t owner[32] = {1};
    static const struct id128 none;
    Bourse__V1__LeaseGrant body = BOURSE__V1__LEASE_GRANT__INIT;
    body.lease = lease;
    body.job = view(job.bytes, 16);
    body.owner = view(owner, 32);
    body.device = view(device.bytes, 16);
    body.slots = slots;
    body.slots_per_subtask = 1;
    body.price_micro = 100000;
    body.term_ms = term_ms;
    body.manifest = view(manifest.bytes, 32);
    body.limit_ms = 60000;
    say(play, MESSAGE_LEASE_GRANT, &none, &body.base);
}

static void dispatch_as(struct play *play, enum message_type type, uint64_t lease, uint32_t index,
                        uint32_t attempt, uint32_t lane, bool is_urgent)
{
    static const struct id128 none;
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    Bourse__V1__Work *works[] = {&work};
    work.index = index;
    work.attempt = attempt;
    work.lane = lane;
    work.has_urgent = is_urgent;
    work.urgent = is_urgent;
    if (type == MESSAGE_DISPATCH) {
        Bourse__V1__Dispatch body = BOURSE__V1__DISPATCH__INIT;
        body.lease = lease;
        body.n_work = 1;
        body.work = works;
        say(play, type, &none, &body.base);
    } else {
        Bourse__V1__Withdraw body = BOURSE__V1__WITHDRAW__INIT;
        body.lease = lease;
        body.n_work = 1;
        body.work = works;
        say(play, type, &none, &body.base);
    }
}

static void dispatch(struct play *play, uint64_t lease, uint32_t index, uint32_t lane)
{
    dispatch_as(play, MESSAGE_DISPATCH, lease, index, 1, lane, false);
}

/* Subtask `index` in lane 0, given one output named `output` of subtask `from`. */
static void dispatch_given(struct play *play, uint64_t lease, uint32_t index, uint32_t from,
                           const char *output)
{
    static const struct id128 none;
    static const uint8_t hash[32] = {0x77};
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files[] = {&file};
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    Bourse__V1__Given *all[] = {&given};
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    Bourse__V1__Work *works[] = {&work};
    Bourse__V1__Dispatch body = BOURSE__V1__DISPATCH__INIT;
    file.name = (char *)(uintptr_t)output;
    file.hash = view(hash, sizeof hash);
    file.size = 12;
    given.index = from;
    given.n_outputs = 1;
    given.outputs = files;
    work.index = index;
    work.attempt = 1;
    work.n_given = 1;
    work.given = all;
    body.lease = lease;
    body.n_work = 1;
    body.work = works;
    say(play, MESSAGE_DISPATCH, &none, &body.base);
}

static void withdraw(struct play *play, uint64_t lease, uint32_t index)
{
    dispatch_as(play, MESSAGE_WITHDRAW, lease, index, 1, 0, false);
}

static void end_lease(struct play *play, uint64_t lease, enum lease_end_reason reason)
{
    static const struct id128 none;
    Bourse__V1__LeaseEnd body = BOURSE__V1__LEASE_END__INIT;
    body.lease = lease;
    body.reason = reason;
    say(play, MESSAGE_LEASE_END, &none, &body.base);
}

static enum agent_status finish(struct play *play, uint64_t lease, uint32_t index,
                                enum result_outcome outcome)
{
    struct agent_work work = {.lease = lease, .index = index, .attempt = 1};
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = outcome;
    facts.started_ms = 1;
    facts.busy_ns = 1000;
    return agent_session_finished(play->session, play->now_ns, &work, &facts);
}

/* The actions that wait, as a line: "begin 1, start 1/0, prepare 1/1". Leases and work by number. */
static const char *actions(struct play *play)
{
    static char line[1024];
    struct agent_action action;
    line[0] = '\0';
    while (agent_session_action(play->session, &action)) {
        size_t at = strlen(line);
        const char *comma = at == 0 ? "" : ", ";
        unsigned long long lease = action.work.lease;
        static const char *const names[] = {
            [AGENT_PREPARE] = "prepare", [AGENT_START] = "start", [AGENT_CANCEL] = "cancel"};
        switch (action.type) {
        case AGENT_LEASE_BEGIN:
            (void)snprintf(line + at, sizeof line - at, "%sbegin %llu", comma,
                           (unsigned long long)action.grant.lease);
            break;
        case AGENT_LEASE_END:
            (void)snprintf(line + at, sizeof line - at, "%send %llu", comma, lease);
            break;
        case AGENT_PREPARE:
        case AGENT_START:
        case AGENT_CANCEL:
            (void)snprintf(line + at, sizeof line - at, "%s%s %llu/%u", comma, names[action.type],
                           lease, action.work.index);
            break;
        case AGENT_RECONNECT:
            (void)snprintf(line + at, sizeof line - at, "%sreconnect", comma);
            break;
        case AGENT_READY:
            (void)snprintf(line + at, sizeof line - at, "%sready", comma);
            break;
        case AGENT_NOTE:
            (void)snprintf(line + at, sizeof line - at, "%snote", comma);
            break;
        }
    }
    return line;
}

enum { A_BATCH_MS = 6 }; /* longer than results wait for company */

static void pass_ms(struct play *play, int64_t ms)
{
    play->now_ns += ms * NS_PER_MS;
    agent_session_tick(play->session, play->now_ns);
}

/* The outcome of the result for `index` that was sent, checked as the broker checks it; -1: none. */
static int sent_outcome(struct play *play, uint32_t index)
{
    int outcome = -1;
    listen(play);
    for (size_t i = 0; i < play->seen_count; i++) {
        if (play->seen[i].type != MESSAGE_RESULTS) {
            continue;
        }
        const Bourse__V1__Results *results =
            (const Bourse__V1__Results *)(const void *)play->seen[i].message;
        struct hash32 leaves[LIMIT_RESULTS];
        for (size_t k = 0; k < results->n_results; k++) {
            leaves[k] = results_leaf(results->results[k].data, results->results[k].len);
            Bourse__V1__Result *result;
            ck_assert_int_eq(codec_decode_result(results->results[k].data, results->results[k].len,
                                                 &result, NULL),
                             CODEC_OK);
            ck_assert_int_eq(memcmp(result->job.data, job.bytes, 16), 0);
            if (result->index == index) {
                outcome = (int)result->outcome;
                play->is_simulated = result->has_simulated && result->simulated;
            }
            codec_result_free(&result);
        }
        struct hash32 root = results_root(leaves, results->n_results);
        struct signature64 signature;
        memcpy(signature.bytes, results->signature.data, sizeof signature.bytes);
        ck_assert(results_verify(identity_key(play->identity), &cluster, &root, &signature));
    }
    return outcome;
}

/* ---------------------------------------------------------------- offers */

START_TEST(a_welcome_brings_statement_devices_and_then_the_ask)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);

    ck_assert_str_eq(actions(&play), "ready");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
}
END_TEST

START_TEST(another_market_is_offered_nothing)
{
    static const struct id128 other = {{0xee}};
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &other);

    ck_assert_str_eq(actions(&play), "note");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 0);
    grant(&play, 1, 1, 1000);
    ck_assert_str_eq(actions(&play), "");
}
END_TEST

START_TEST(a_reconnect_asks_anew_and_cancels_what_may_stand)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    struct id128 first = find_seen(&play, MESSAGE_ASK_PLACE)->id; /* its answer is lost */

    welcome(&play, &cluster);
    const struct seen *cancel = find_seen(&play, MESSAGE_ORDER_CANCEL);
    ck_assert_ptr_nonnull(cancel);
    const Bourse__V1__OrderCancel *body =
        (const Bourse__V1__OrderCancel *)(const void *)cancel->message;
    ck_assert_int_eq(memcmp(body->order.data, first.bytes, 16), 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    const struct seen *second = find_seen(&play, MESSAGE_ASK_PLACE);
    ck_assert_ptr_nonnull(second);
    ck_assert(!id128_equal(&second->id, &first));
}
END_TEST

START_TEST(at_rest_the_ask_is_withdrawn_and_nothing_is_started)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    ck_assert_str_eq(actions(&play), "ready, begin 1, start 1/0, prepare 1/1");
    ck_assert(!agent_session_withdrawn(play.session));

    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert_str_eq(actions(&play), ""); /* what runs goes on */
    ck_assert(!agent_session_withdrawn(play.session));
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    ck_assert(!agent_session_withdrawn(play.session)); /* by hand one could still be placed */
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert(agent_session_withdrawn(play.session));

    dispatch(&play, 1, 2, 0); /* was on its way: it goes back, too */
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert_int_eq(sent_outcome(&play, 2), OUTCOME_CANCELLED);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_str_eq(actions(&play), ""); /* the lease is the broker's to end */
    ck_assert_uint_eq(agent_session_counts(play.session).leases, 1);
    end_lease(&play, 1, LEASE_END_TERM);
    ck_assert_str_eq(actions(&play), "end 1");
}
END_TEST

START_TEST(at_rest_what_runs_is_cancelled_when_asked_for)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert_str_eq(actions(&play), "");
    agent_session_rest(play.session, play.now_ns, true, true); /* the owner thought better of it */
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

START_TEST(after_a_rest_asks_are_placed_and_leases_work_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    (void)actions(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    forget_seen(&play);

    agent_session_pause(play.session, play.now_ns, true); /* a full disk comes and goes meanwhile */
    agent_session_pause(play.session, play.now_ns, false);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    agent_session_rest(play.session, play.now_ns, false, false);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    struct agent_ask_row row;
    ck_assert(agent_session_ask(play.session, 0, &row));
    ck_assert(row.is_standing);
    ck_assert_str_eq(row.instrument, "cpu.x86_64.avx2");
    ck_assert(!agent_session_ask(play.session, 1, &row));
    dispatch(&play, 1, 0, 0);
    ck_assert_str_eq(actions(&play), "start 1/0");
    struct agent_lease_row leases[2];
    ck_assert_uint_eq(agent_session_leases(play.session, leases, 2), 1);
    ck_assert_uint_eq(leases[0].running, 1);
    ck_assert_uint_eq(agent_session_leases(play.session, leases, 0), 0);
}
END_TEST

/* Withdrawn is what the broker has said, not what was sent. */
START_TEST(a_cancel_that_the_broker_could_not_take_is_sent_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    agent_session_rest(play.session, play.now_ns, true, false);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    reject(&play, find_seen(&play, MESSAGE_ORDER_CANCEL), REJECT_BUSY);
    forget_seen(&play);
    ck_assert(!agent_session_withdrawn(play.session));
    pass_ms(&play, 2000);
    reject(&play, find_seen(&play, MESSAGE_ORDER_CANCEL), REJECT_NOT_FOUND);
    ck_assert(agent_session_withdrawn(play.session));
}
END_TEST

START_TEST(a_rest_without_a_broker_holds_at_the_next_welcome)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    agent_session_connected(play.session, play.now_ns, 8); /* no Welcome yet */
    agent_session_rest(play.session, play.now_ns, true, false);
    ck_assert(!agent_session_withdrawn(play.session));
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ORDER_CANCEL));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    ck_assert(agent_session_withdrawn(play.session));
}
END_TEST

START_TEST(a_refused_ask_is_tried_again_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    struct id128 first = find_seen(&play, MESSAGE_ASK_PLACE)->id;
    reject(&play, find_seen(&play, MESSAGE_ASK_PLACE), REJECT_HALTED);
    forget_seen(&play);

    pass_ms(&play, 500);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
    pass_ms(&play, 1500);
    const struct seen *again = find_seen(&play, MESSAGE_ASK_PLACE);
    ck_assert_ptr_nonnull(again);
    ck_assert(!id128_equal(&again->id, &first));
}
END_TEST

START_TEST(a_refused_statement_is_made_anew_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    struct id128 first = find_seen(&play, MESSAGE_STATEMENT_HELD)->id;
    reject(&play, find_seen(&play, MESSAGE_STATEMENT_HELD), REJECT_BUSY);
    forget_seen(&play);

    pass_ms(&play, 500);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 0);
    pass_ms(&play, 1500);
    const struct seen *again = find_seen(&play, MESSAGE_STATEMENT_HELD);
    ck_assert_ptr_nonnull(again);
    ck_assert(!id128_equal(&again->id, &first));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0); /* the one that stands goes on */
    accept(&play, again);
    forget_seen(&play);
    pass_ms(&play, 120000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 0);
}
END_TEST

START_TEST(a_refused_statement_is_made_anew_though_the_ask_went_out_again_meanwhile)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    reject(&play, find_seen(&play, MESSAGE_STATEMENT_HELD), REJECT_BUSY);
    agent_session_pause(play.session, play.now_ns, true);
    agent_session_pause(play.session, play.now_ns, false);
    forget_seen(&play);

    pass_ms(&play, 2000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);
}
END_TEST

/* As many cancels as the session keeps without an answer. */
static void fill_requests(struct play *play)
{
    for (size_t i = 0; i < SEEN_MAX / 4; i++) {
        agent_session_pause(play->session, play->now_ns, true);
        agent_session_pause(play->session, play->now_ns, false);
        accept(play, last_seen(play, MESSAGE_ADVERTISE));
    }
}

START_TEST(a_statement_that_finds_no_place_among_the_requests_is_made_later)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    reject(&play, find_seen(&play, MESSAGE_STATEMENT_HELD), REJECT_BUSY);
    forget_seen(&play);
    fill_requests(&play);
    pass_ms(&play, 2000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 0);

    ck_assert_uint_gt(count_seen(&play, MESSAGE_ORDER_CANCEL), 10);
    play.now_ns += 60 * NS_PER_S; /* no refusal waits longer */
    for (size_t i = 0; i < play.seen_count; i++) {
        if (play.seen[i].type == MESSAGE_ORDER_CANCEL) {
            accept(&play, &play.seen[i]);
        }
    }
    pass_ms(&play, 0);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_STATEMENT_HELD), 1);
}
END_TEST

START_TEST(pause_cancels_the_ask_and_resume_places_it_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);

    agent_session_pause(play.session, play.now_ns, true);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 0);
    agent_session_pause(play.session, play.now_ns, false);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

static size_t devices_of(const struct seen *advertise)
{
    return ((const Bourse__V1__Advertise *)(const void *)advertise->message)->n_devices;
}

START_TEST(while_it_is_paused_no_device_is_on_offer)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    agent_session_pause(play.session, play.now_ns, true);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0);
    reject(&play, last_seen(&play, MESSAGE_ADVERTISE), REJECT_BUSY);
    forget_seen(&play);
    pass_ms(&play, 2000);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0); /* until it is known */

    welcome(&play, &cluster);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0);
    agent_session_pause(play.session, play.now_ns, false);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 1);
    accept(&play, last_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

/* ---------------------------------------------------------------- asks that somebody places by hand */

static const struct id128 by_hand = {{0xb4}};

static void note_ask(struct play *play, const struct id128 *order, bool stands)
{
    static const struct id128 none;
    Bourse__V1__AskEvent body = BOURSE__V1__ASK_EVENT__INIT;
    body.device = view(device.bytes, 16);
    body.order = view(order->bytes, 16);
    body.stands = stands;
    body.slots = 2;
    body.price_micro = 7;
    say(play, MESSAGE_ASK_EVENT, &none, &body.base);
}

static struct agent_ask_row ask_row(const struct play *play)
{
    struct agent_ask_row row;
    ck_assert(agent_session_ask(play->session, 0, &row));
    return row;
}

START_TEST(an_ask_by_hand_stands_in_the_place_of_the_agents_until_it_ends)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    note_ask(&play, &by_hand, true);
    ck_assert(ask_row(&play).is_by_hand);
    ck_assert_uint_eq(ask_row(&play).terms.slots, 2);
    ck_assert_int_eq(ask_row(&play).terms.price_micro, 7);
    ck_assert_uint_eq(agent_session_counts(play.session).asks_standing, 1);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    note_ask(&play, &by_hand, false);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    struct id128 own = last_seen(&play, MESSAGE_ASK_PLACE)->id;
    note_ask(&play, &own, true); /* the agent's own is news to nobody */
    accept(&play, last_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert(!ask_row(&play).is_by_hand);
    ck_assert(ask_row(&play).is_standing);
    ck_assert_int_eq(ask_row(&play).terms.price_micro, 100000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

START_TEST(an_ask_by_hand_is_withdrawn_like_the_agents_own)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    note_ask(&play, &by_hand, true);
    agent_session_rest(play.session, play.now_ns, true, false);
    const struct seen *cancel = last_seen(&play, MESSAGE_ORDER_CANCEL);
    ck_assert_ptr_nonnull(cancel);
    const Bourse__V1__OrderCancel *body = (const void *)cancel->message;
    ck_assert_mem_eq(body->order.data, by_hand.bytes, 16);
    ck_assert_uint_eq(devices_of(last_seen(&play, MESSAGE_ADVERTISE)), 0);
    note_ask(&play, &by_hand, false); /* at rest nothing takes its place */
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);
}
END_TEST

START_TEST(an_ask_that_its_owner_cancels_stays_away_until_the_next_offer)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    struct id128 own = find_seen(&play, MESSAGE_ASK_PLACE)->id;
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    forget_seen(&play);
    note_ask(&play, &own, false);
    ck_assert(ask_row(&play).is_taken_back);
    ck_assert(!ask_row(&play).is_standing);
    pass_ms(&play, 2000);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 0);

    note_ask(&play, &by_hand, true); /* an ask by hand may still come, and go */
    ck_assert(ask_row(&play).is_by_hand);
    note_ask(&play, &own, false); /* of one that is long gone */
    ck_assert(ask_row(&play).is_by_hand);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
    own = find_seen(&play, MESSAGE_ASK_PLACE)->id;
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    forget_seen(&play);

    note_ask(&play, &own, false);
    agent_session_rest(play.session, play.now_ns, false, false); /* the owner has it offer again */
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ASK_PLACE), 1);
}
END_TEST

START_TEST(what_the_agent_has_just_asked_comes_after_an_ask_by_hand)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    welcome(&play, &cluster);
    accept(&play, find_seen(&play, MESSAGE_ADVERTISE));
    note_ask(&play, &by_hand, true);
    ck_assert(!ask_row(&play).is_by_hand);
    accept(&play, find_seen(&play, MESSAGE_ASK_PLACE));
    ck_assert(ask_row(&play).is_standing);
    ck_assert(!ask_row(&play).is_by_hand);
}
END_TEST

/* ---------------------------------------------------------------- work */

START_TEST(a_lane_runs_one_at_a_time_and_hears_of_the_next)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);

    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    dispatch(&play, 1, 2, 1);
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0, prepare 1/1, start 1/2");

    struct agent_work first = {.lease = 1, .index = 0, .attempt = 1};
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &first), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/1");
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &first), AGENT_UNKNOWN);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    ck_assert_str_eq(actions(&play), "");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_UNKNOWN);
}
END_TEST

START_TEST(what_a_subtask_is_given_is_kept_until_its_result_is_accepted)
{
    CLEANUP(play_end) struct play play;
    const struct agent_work bare = {.lease = 1, .index = 7, .attempt = 1};
    const struct agent_work given = {.lease = 1, .index = 9, .attempt = 1};
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 7, 0);
    dispatch_given(&play, 1, 9, 4, "part.npy");
    ck_assert_str_eq(actions(&play), "begin 1, start 1/7, prepare 1/9");
    ck_assert_ptr_null(agent_session_given(play.session, &bare));
    const Bourse__V1__Work *kept = agent_session_given(play.session, &given);
    ck_assert_ptr_nonnull(kept);
    ck_assert_uint_eq(kept->n_given, 1);
    ck_assert_uint_eq(kept->given[0]->index, 4);
    ck_assert_str_eq(kept->given[0]->outputs[0]->name, "part.npy");
    ck_assert_uint_eq(codec_hash(kept->given[0]->outputs[0]->hash).bytes[0], 0x77);

    ck_assert_int_eq(finish(&play, 1, 7, OUTCOME_OK), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/9");
    ck_assert_int_eq(finish(&play, 1, 9, OUTCOME_OK), AGENT_OK);
    ck_assert_ptr_eq(agent_session_given(play.session, &given), kept);
    pass_ms(&play, A_BATCH_MS);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_ptr_null(agent_session_given(play.session, &given));
}
END_TEST

START_TEST(urgent_work_goes_before_what_is_queued_in_its_lane)
{
    struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);
    dispatch_as(&play, MESSAGE_DISPATCH, 1, 7, 2, 0, true);
    dispatch_as(&play, MESSAGE_DISPATCH, 1, 8, 2, 0, true);
    ck_assert_str_eq(actions(&play), "prepare 1/7");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK); /* what ran is not disturbed */
    ck_assert_str_eq(actions(&play), "start 1/7, prepare 1/8");
    struct agent_work urgent = {.lease = 1, .index = 7, .attempt = 2};
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &urgent), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/8");
    urgent.index = 8;
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &urgent), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/1");
    play_end(&play);
}
END_TEST

START_TEST(results_leave_together_and_are_owed_until_accepted)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    dispatch(&play, 1, 2, 1); /* goes on */
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_PROGRAM_FAILED), AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);

    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_PROGRAM_FAILED);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 2);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 0);
    ck_assert_uint_eq(agent_session_counts(play.session).accepted, 2);
}
END_TEST

START_TEST(every_result_of_a_simulated_device_says_so)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    static const struct attribute simulated = {.name = "simulated", .number = 1};
    struct agent_device offered = {.device = device,
                                   .instrument = "sim.lpu.groq.v1",
                                   .slots = 4,
                                   .attributes = &simulated,
                                   .attribute_count = 1};
    struct agent_ask ask = {.device = device, .slots = 4, .price_micro = 100000};
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, &offered, 1, &ask, 1),
                     AGENT_OK);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    agent_session_drain(play.session, play.now_ns, true);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_CANCELLED), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert(play.is_simulated);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert(play.is_simulated);

    CLEANUP(play_end) struct play real;
    play_start(&real);
    settle(&real);
    grant(&real, 1, 1, 60000);
    dispatch(&real, 1, 0, 0);
    ck_assert_int_eq(finish(&real, 1, 0, OUTCOME_OK), AGENT_OK);
    pass_ms(&real, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&real, 0), OUTCOME_OK);
    ck_assert(!real.is_simulated);
}
END_TEST

START_TEST(results_do_not_wait_for_company_that_cannot_come)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_OK), AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
}
END_TEST

START_TEST(a_lane_takes_several_once_its_executor_does)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 2, 60000);
    for (uint32_t i = 0; i < 5; i++) {
        dispatch(&play, 1, i, i % 2);
    }
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0, start 1/1, prepare 1/2, prepare 1/3");
    ck_assert_int_eq(agent_session_pipeline(play.session, 1, 2), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/2, prepare 1/4, start 1/3");
    ck_assert_int_eq(agent_session_pipeline(play.session, 1, 1), AGENT_OK);
    ck_assert_int_eq(finish(&play, 1, 2, OUTCOME_OK), AGENT_OK); /* in any order */
    ck_assert_str_eq(actions(&play), "start 1/4");
    ck_assert_uint_eq(agent_session_counts(play.session).running, 4);
    ck_assert_uint_eq(agent_session_counts(play.session).leases, 1);
    withdraw(&play, 1, 3);
    ck_assert_str_eq(actions(&play), "cancel 1/3");
    ck_assert_int_eq(agent_session_pipeline(play.session, 77, 2), AGENT_UNKNOWN);
}
END_TEST

START_TEST(a_full_batch_does_not_wait)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    for (uint32_t i = 0; i < AGENT_BATCH_MAX; i++) {
        dispatch(&play, 1, i, 0);
    }
    for (uint32_t i = 0; i < AGENT_BATCH_MAX; i++) {
        ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
        ck_assert_int_eq(finish(&play, 1, i, OUTCOME_OK), AGENT_OK);
    }
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
}
END_TEST

START_TEST(a_dispatch_that_comes_twice_runs_once)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 0, 0); /* runs */
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0");
    (void)finish(&play, 1, 0, OUTCOME_OK);
    dispatch(&play, 1, 0, 0); /* done, owed */
    pass_ms(&play, A_BATCH_MS);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    dispatch(&play, 1, 0, 0); /* done, accepted */
    pass_ms(&play, A_BATCH_MS);

    ck_assert_str_eq(actions(&play), "");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    ck_assert_uint_eq(agent_session_counts(play.session).duplicates, 4);

    dispatch_as(&play, MESSAGE_DISPATCH, 1, 0, 2, 0, false); /* another attempt is other work */
    ck_assert_str_eq(actions(&play), "start 1/0");
}
END_TEST

START_TEST(work_of_an_unknown_lease_is_counted_and_not_run)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    dispatch(&play, 77, 0, 0);
    withdraw(&play, 77, 0);
    end_lease(&play, 77, LEASE_END_RETURNED);
    ck_assert_str_eq(actions(&play), "");
    ck_assert_uint_eq(agent_session_counts(play.session).ignored, 3);
}
END_TEST

START_TEST(a_lane_or_device_that_is_not_ours_is_refused)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 5);
    grant(&play, 2, 40, 60000); /* more slots than the device has */
    dispatch(&play, 2, 1, 0);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_str_eq(actions(&play), "begin 1, note");
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_REFUSED);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_REFUSED);
}
END_TEST

START_TEST(withdrawn_work_is_answered_by_where_it_is)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    dispatch(&play, 1, 2, 0);
    (void)actions(&play);

    withdraw(&play, 1, 1); /* queued: answered at once */
    withdraw(&play, 1, 0); /* runs: to be ended */
    withdraw(&play, 1, 0); /* once */
    ck_assert_str_eq(actions(&play), "cancel 1/0");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert_int_eq(sent_outcome(&play, 0), -1);

    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK); /* it won the race */
    ck_assert_str_eq(actions(&play), "start 1/2");
    withdraw(&play, 1, 0); /* too late */
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_str_eq(actions(&play), "");
}
END_TEST

/* ---------------------------------------------------------------- terms and ends */

START_TEST(a_term_ends_on_our_clock_even_without_the_broker)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 5000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);

    int64_t end_ns = play.now_ns + 5000 * NS_PER_MS;
    bool lost = false;
    while (play.now_ns < end_ns) { /* the broker says nothing: only the connection suffers */
        pass_ms(&play, 250);
        const char *line = actions(&play);
        lost = lost || strcmp(line, "reconnect") == 0;
        if (play.now_ns < end_ns) {
            ck_assert(strcmp(line, "") == 0 || strcmp(line, "reconnect") == 0);
        } else {
            ck_assert_str_eq(line, "cancel 1/0");
        }
    }
    ck_assert(lost);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_CANCELLED), AGENT_OK);
    ck_assert_str_eq(actions(&play), "end 1");

    welcome(&play, &cluster);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_TERM_OVER);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_TERM_OVER);
}
END_TEST

START_TEST(a_renewal_runs_from_its_receipt)
{
    static const struct id128 none;
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 2000);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    pass_ms(&play, 1000);
    Bourse__V1__LeaseRenew renew = BOURSE__V1__LEASE_RENEW__INIT;
    renew.lease = 1;
    renew.term_ms = 2000;
    say(&play, MESSAGE_LEASE_RENEW, &none, &renew.base);
    pass_ms(&play, 1500);
    ck_assert_str_eq(actions(&play), "");
    pass_ms(&play, 500);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

START_TEST(the_broker_ends_a_lease)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);
    end_lease(&play, 1, LEASE_END_CANCELLED);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_CANCELLED), AGENT_OK);
    ck_assert_str_eq(actions(&play), "end 1");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_CANCELLED);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_uint_eq(agent_session_counts(play.session).leases, 0);

    grant(&play, 2, 1, 60000); /* an idle one ends at once */
    end_lease(&play, 2, LEASE_END_RETURNED);
    ck_assert_str_eq(actions(&play), "begin 2, end 2");
}
END_TEST

/* ---------------------------------------------------------------- reconnects */

START_TEST(a_reconnect_states_what_is_held_and_sends_results_as_they_were)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    dispatch(&play, 1, 2, 1);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    struct seen before = *find_seen(&play, MESSAGE_RESULTS); /* the answer never comes */
    (void)actions(&play);

    welcome(&play, &cluster);
    ck_assert_str_eq(actions(&play), "ready");
    const struct seen *after = find_seen(&play, MESSAGE_RESULTS);
    ck_assert_ptr_nonnull(after);
    ck_assert(id128_equal(&after->id, &before.id));
    ck_assert(hash32_equal(&after->body, &before.body));

    const Bourse__V1__Statement *held =
        (const Bourse__V1__Statement *)(const void *)find_seen(&play, MESSAGE_STATEMENT_HELD)
            ->message;
    ck_assert_uint_eq(held->n_leases, 1);
    ck_assert_uint_eq(held->leases[0]->lease, 1);
    ck_assert_uint_eq(held->leases[0]->n_work, 3);

    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 0);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_OK), AGENT_OK); /* it ran on meanwhile */
}
END_TEST

START_TEST(a_statement_waits_until_what_was_missed_has_come)
{
    struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    uint64_t seen = play.sequence;
    static const uint8_t log_key[32];
    agent_session_connected(play.session, play.now_ns, 7);
    forget_seen(&play);
    struct id128 id = find_seen(&play, MESSAGE_HELLO)->id;
    Bourse__V1__Welcome body = BOURSE__V1__WELCOME__INIT;
    body.version = 1;
    body.cluster = view(cluster.bytes, 16);
    body.session = play.number;
    body.heartbeat_ms = HEARTBEAT_MS;
    body.log_time_ms = 5000000;
    body.log_origin = (char *)(uintptr_t) "example.test/log";
    body.log_key = view(log_key, 32);
    body.max_message_bytes = LIMIT_MESSAGE_BYTES;
    body.has_resumed = body.has_missed = body.has_as_of_ns = 1;
    body.resumed = 1;
    body.missed = 1;
    body.as_of_ns = 123;
    play.sequence = seen - 1; /* Welcome carries the number after which it goes on */
    say(&play, MESSAGE_WELCOME, &id, &body.base);
    ck_assert_ptr_null(find_seen(&play, MESSAGE_STATEMENT_HELD));
    dispatch(&play, 1, 1, 1); /* the one that was missed */
    const struct seen *stated = find_seen(&play, MESSAGE_STATEMENT_HELD);
    ck_assert_ptr_nonnull(stated);
    const Bourse__V1__Statement *statement = (const void *)stated->message;
    ck_assert_uint_eq(statement->n_leases, 1);
    ck_assert_uint_eq(statement->leases[0]->n_work, 2);
    ck_assert_int_eq(statement->as_of_ns, 123);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ADVERTISE), 1);
    play_end(&play);
}
END_TEST

START_TEST(work_that_finishes_while_the_broker_is_away_is_sent_when_it_is_back)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 600000);
    dispatch(&play, 1, 0, 0);
    for (int i = 0; i < 10; i++) {
        pass_ms(&play, 1000);
    }
    (void)actions(&play);
    ck_assert(!agent_session_counts(play.session).ready);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    pass_ms(&play, 10);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
    welcome(&play, &cluster);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
}
END_TEST

START_TEST(a_busy_broker_gets_the_results_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_BUSY);
    forget_seen(&play);
    pass_ms(&play, 10);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
    pass_ms(&play, 100);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 1);
}
END_TEST

START_TEST(one_bad_result_does_not_take_its_neighbour_along)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    (void)finish(&play, 1, 1, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_NOT_FOUND);
    forget_seen(&play);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 2);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_NOT_FOUND);
    ck_assert_uint_eq(agent_session_counts(play.session).refused, 1);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 1);
}
END_TEST

/* ---------------------------------------------------------------- leaving */

START_TEST(draining_finishes_what_runs_and_says_goodbye)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);

    agent_session_drain(play.session, play.now_ns, false);
    ck_assert_str_eq(actions(&play), "");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    dispatch(&play, 1, 2, 0);
    ck_assert_int_eq(sent_outcome(&play, 2), OUTCOME_CANCELLED);
    agent_session_drain(play.session, play.now_ns, true);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
    ck_assert(!agent_session_drained(play.session));

    (void)finish(&play, 1, 0, OUTCOME_CANCELLED);
    ck_assert_str_eq(actions(&play), "end 1");
    for (size_t i = 0; i < play.seen_count; i++) {
        listen(&play);
        if (play.seen[i].type == MESSAGE_RESULTS) {
            accept(&play, &play.seen[i]);
        }
    }
    ck_assert(agent_session_drained(play.session));
    agent_session_goodbye(play.session, play.now_ns, "done");
    agent_session_goodbye(play.session, play.now_ns, "done");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_GOODBYE), 1);
}
END_TEST

START_TEST(an_offer_over_its_caps_is_refused)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    struct agent_device none = {.device = device, .instrument = "cpu", .slots = 0};
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, &none, 1, NULL, 0), AGENT_BAD);
    none.slots = LIMIT_SLOTS + 1;
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, &none, 1, NULL, 0), AGENT_BAD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("provider session");
    TCase *tcase = tcase_create("session");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_welcome_brings_statement_devices_and_then_the_ask);
    tcase_add_test(tcase, another_market_is_offered_nothing);
    tcase_add_test(tcase, a_reconnect_asks_anew_and_cancels_what_may_stand);
    tcase_add_test(tcase, at_rest_the_ask_is_withdrawn_and_nothing_is_started);
    tcase_add_test(tcase, at_rest_what_runs_is_cancelled_when_asked_for);
    tcase_add_test(tcase, after_a_rest_asks_are_placed_and_leases_work_again);
    tcase_add_test(tcase, a_cancel_that_the_broker_could_not_take_is_sent_again);
    tcase_add_test(tcase, a_rest_without_a_broker_holds_at_the_next_welcome);
    tcase_add_test(tcase, a_refused_ask_is_tried_again_later);
    tcase_add_test(tcase, a_refused_statement_is_made_anew_later);
    tcase_add_test(tcase, a_refused_statement_is_made_anew_though_the_ask_went_out_again_meanwhile);
    tcase_add_test(tcase, a_statement_that_finds_no_place_among_the_requests_is_made_later);
    tcase_add_test(tcase, pause_cancels_the_ask_and_resume_places_it_again);
    tcase_add_test(tcase, while_it_is_paused_no_device_is_on_offer);
    tcase_add_test(tcase, an_ask_by_hand_stands_in_the_place_of_the_agents_until_it_ends);
    tcase_add_test(tcase, an_ask_by_hand_is_withdrawn_like_the_agents_own);
    tcase_add_test(tcase, an_ask_that_its_owner_cancels_stays_away_until_the_next_offer);
    tcase_add_test(tcase, what_the_agent_has_just_asked_comes_after_an_ask_by_hand);
    tcase_add_test(tcase, a_lane_runs_one_at_a_time_and_hears_of_the_next);
    tcase_add_test(tcase, what_a_subtask_is_given_is_kept_until_its_result_is_accepted);
    tcase_add_test(tcase, urgent_work_goes_before_what_is_queued_in_its_lane);
    tcase_add_test(tcase, results_leave_together_and_are_owed_until_accepted);
    tcase_add_test(tcase, every_result_of_a_simulated_device_says_so);
    tcase_add_test(tcase, results_do_not_wait_for_company_that_cannot_come);
    tcase_add_test(tcase, a_lane_takes_several_once_its_executor_does);
    tcase_add_test(tcase, a_full_batch_does_not_wait);
    tcase_add_test(tcase, a_dispatch_that_comes_twice_runs_once);
    tcase_add_test(tcase, work_of_an_unknown_lease_is_counted_and_not_run);
    tcase_add_test(tcase, a_lane_or_device_that_is_not_ours_is_refused);
    tcase_add_test(tcase, withdrawn_work_is_answered_by_where_it_is);
    tcase_add_test(tcase, a_term_ends_on_our_clock_even_without_the_broker);
    tcase_add_test(tcase, a_renewal_runs_from_its_receipt);
    tcase_add_test(tcase, the_broker_ends_a_lease);
    tcase_add_test(tcase, a_reconnect_states_what_is_held_and_sends_results_as_they_were);
    tcase_add_test(tcase, a_statement_waits_until_what_was_missed_has_come);
    tcase_add_test(tcase, work_that_finishes_while_the_broker_is_away_is_sent_when_it_is_back);
    tcase_add_test(tcase, a_busy_broker_gets_the_results_again);
    tcase_add_test(tcase, one_bad_result_does_not_take_its_neighbour_along);
    tcase_add_test(tcase, draining_finishes_what_runs_and_says_goodbye);
    tcase_add_test(tcase, an_offer_over_its_caps_is_refused);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
