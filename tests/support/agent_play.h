/* tests/support/agent_play.h plays a broker by hand around the session of an agent. The functions
 * are static, so that each test takes what it needs. */
#ifndef BOURSE_TESTS_AGENT_PLAY_H
#define BOURSE_TESTS_AGENT_PLAY_H

#include "provider/session/agent_session.h"

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

/* Envelopes are real in both directions; the test sets the time. */
enum { HEARTBEAT_MS = 1000, SEEN_MAX = 16384 };

static const struct id128 cluster = {{0xc1}};
static const struct id128 device = {{0xd1}};
static const struct id128 job = {{0x10}};
static const struct hash32 manifest = {{0x3a}};

/* A message that the agent sent. */
struct seen {
    struct id128 id;
    enum message_type type;
    bool is_signed;
    struct hash32 body;
    ProtobufCMessage *message;
};

struct play {
    bool is_simulated; /* of the result that sent_outcome looked at */
    struct identity *identity;
    struct agent_session *session;
    int64_t now_ns;
    uint64_t number;   /* the connection's number */
    uint64_t sequence; /* the broker's last sequence number */
    struct seen seen[SEEN_MAX];
    size_t seen_count;
};

static inline ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)bytes};
}

/* Starts with `count` addresses of brokers. `most` is results_per_signature of the session. */
static inline void play_start_among(struct play *play, uint32_t most,
                                    const struct contact *addresses, size_t count)
{
    static const uint8_t seed[32] = {5};
    ck_assert_int_ge(sodium_init(), 0);
    *play = (struct play){.identity = identity_create(seed), .now_ns = NS_PER_S};
    struct agent_session_config config = {.identity = play->identity,
                                          .program = "test 1",
                                          .cluster = cluster,
                                          .dice = {{9}},
                                          .can_store_again = true,
                                          .addresses = addresses,
                                          .address_count = count,
                                          .results_per_signature = most};
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

static inline void play_start_signing(struct play *play, uint32_t most)
{
    play_start_among(play, most, NULL, 0);
}

static inline void play_start(struct play *play)
{
    play_start_signing(play, 0);
}

static inline void forget_seen(struct play *play)
{
    for (size_t i = 0; i < play->seen_count; i++) {
        codec_free(&play->seen[i].message);
    }
    play->seen_count = 0;
}

static inline void play_end(struct play *play)
{
    forget_seen(play);
    agent_session_destroy(&play->session);
    identity_destroy(&play->identity);
}

/* Collects what the agent sends. Every body must decode, and every command must have the agent's
 * signature. */
static inline void listen(struct play *play)
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

static inline const struct seen *find_seen(struct play *play, enum message_type type)
{
    listen(play);
    for (size_t i = 0; i < play->seen_count; i++) {
        if (play->seen[i].type == type) {
            return &play->seen[i];
        }
    }
    return NULL;
}

static inline const struct seen *last_seen(struct play *play, enum message_type type)
{
    listen(play);
    for (size_t i = play->seen_count; i > 0; i--) {
        if (play->seen[i - 1].type == type) {
            return &play->seen[i - 1];
        }
    }
    return NULL;
}

static inline size_t count_seen(struct play *play, enum message_type type)
{
    size_t count = 0;
    listen(play);
    for (size_t i = 0; i < play->seen_count; i++) {
        count += play->seen[i].type == type;
    }
    return count;
}

static inline void say(struct play *play, enum message_type type, const struct id128 *id,
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

static inline void accept(struct play *play, const struct seen *seen)
{
    struct id128 id = seen->id;
    Bourse__V1__Accepted body = BOURSE__V1__ACCEPTED__INIT;
    body.index = 1;
    say(play, MESSAGE_ACCEPTED, &id, &body.base);
}

/* Refuses the message. `limit` is the limit that the refusal names; 0: none. */
static inline void reject_of(struct play *play, const struct seen *seen, enum reject_code code,
                             int64_t limit)
{
    struct id128 id = seen->id;
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = code;
    body.text = (char *)(uintptr_t) "no";
    body.has_limit = limit != 0;
    body.limit = limit;
    say(play, MESSAGE_REJECT, &id, &body.base);
}

static inline void reject(struct play *play, const struct seen *seen, enum reject_code code)
{
    reject_of(play, seen, code, 0);
}

static inline void welcome(struct play *play, const struct id128 *market)
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

/* Leaves the agent connected and advertised, with its ask in force and nothing left to read. */
static inline void settle(struct play *play)
{
    welcome(play, &cluster);
    accept(play, find_seen(play, MESSAGE_STATEMENT_HELD));
    accept(play, find_seen(play, MESSAGE_ADVERTISE));
    accept(play, find_seen(play, MESSAGE_ASK_PLACE));
    forget_seen(play);
}

static inline void grant(struct play *play, uint64_t lease, uint32_t slots, int64_t term_ms)
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

static inline void dispatch_as(struct play *play, enum message_type type, uint64_t lease,
                               uint32_t index, uint32_t attempt, uint32_t lane, bool is_urgent)
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

static inline void dispatch(struct play *play, uint64_t lease, uint32_t index, uint32_t lane)
{
    dispatch_as(play, MESSAGE_DISPATCH, lease, index, 1, lane, false);
}

/* Dispatches subtask `index` in lane 0, with one output of subtask `from`, named `output`, as its
 * input. */
static inline void dispatch_given(struct play *play, uint64_t lease, uint32_t index, uint32_t from,
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

static inline void withdraw(struct play *play, uint64_t lease, uint32_t index)
{
    dispatch_as(play, MESSAGE_WITHDRAW, lease, index, 1, 0, false);
}

static inline void end_lease(struct play *play, uint64_t lease, enum lease_end_reason reason)
{
    static const struct id128 none;
    Bourse__V1__LeaseEnd body = BOURSE__V1__LEASE_END__INIT;
    body.lease = lease;
    body.reason = reason;
    say(play, MESSAGE_LEASE_END, &none, &body.base);
}

static inline void notice_lease(struct play *play, uint64_t lease, int64_t notice_ms)
{
    static const struct id128 none;
    Bourse__V1__LeaseNotice body = BOURSE__V1__LEASE_NOTICE__INIT;
    body.lease = lease;
    body.notice_ms = notice_ms;
    say(play, MESSAGE_LEASE_NOTICE, &none, &body.base);
}

static inline enum agent_status finish(struct play *play, uint64_t lease, uint32_t index,
                                       enum result_outcome outcome)
{
    struct agent_work work = {.lease = lease, .index = index, .attempt = 1};
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = outcome;
    facts.started_ms = 1;
    facts.busy_ns = 1000;
    return agent_session_finished(play->session, play->now_ns, &work, &facts);
}

/* The same for a result that names a file. */
static inline enum agent_status finish_with_file(struct play *play, uint64_t lease, uint32_t index)
{
    static const uint8_t hash[32] = {0x99};
    struct agent_work work = {.lease = lease, .index = index, .attempt = 1};
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files[] = {&file};
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    file.name = (char *)(uintptr_t) "out";
    file.hash = view(hash, sizeof hash);
    file.size = 12;
    facts.outcome = OUTCOME_OK;
    facts.started_ms = 1;
    facts.busy_ns = 1000;
    facts.has_exit_code = true;
    facts.n_outputs = 1;
    facts.outputs = files;
    return agent_session_finished(play->session, play->now_ns, &work, &facts);
}

/* Returns the waiting actions as a line, such as "begin 1, start 1/0, prepare 1/1". Leases and work
 * have their numbers. */
static inline const char *actions(struct play *play)
{
    static char line[1024];
    struct agent_action action;
    line[0] = '\0';
    while (agent_session_action(play->session, &action)) {
        size_t at = strlen(line);
        const char *comma = at == 0 ? "" : ", ";
        unsigned long long lease = action.work.lease;
        static const char *const names[] = {
            [AGENT_PREPARE] = "prepare", [AGENT_START] = "start", [AGENT_CANCEL] = "cancel",
            [AGENT_NOTICE] = "notice",   [AGENT_STORE] = "store", [AGENT_SETTLED] = "settled"};
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
        case AGENT_NOTICE:
        case AGENT_STORE:
        case AGENT_SETTLED:
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
        case AGENT_CHALLENGE:
            (void)snprintf(line + at, sizeof line - at, "%schallenge", comma);
            break;
        case AGENT_TERMINAL:
            (void)snprintf(line + at, sizeof line - at, "%sterminal", comma);
            agent_session_drop_action(&action);
            break;
        }
    }
    return line;
}

enum { A_BATCH_MS = 6 }; /* longer than a result waits for others to share its signature */

static inline void pass_ms(struct play *play, int64_t ms)
{
    play->now_ns += ms * NS_PER_MS;
    agent_session_tick(play->session, play->now_ns);
}

/* Returns the outcome of the result sent for `index`, after the broker's checks; -1: none was
 * sent. */
static inline int sent_outcome(struct play *play, uint32_t index)
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

static inline void renew(struct play *play, uint64_t lease, int64_t term_ms)
{
    static const struct id128 none;
    Bourse__V1__LeaseRenew message = BOURSE__V1__LEASE_RENEW__INIT;
    message.lease = lease;
    message.term_ms = term_ms;
    say(play, MESSAGE_LEASE_RENEW, &none, &message.base);
}

static inline size_t devices_of(const struct seen *advertise)
{
    return ((const Bourse__V1__Advertise *)(const void *)advertise->message)->n_devices;
}

#endif
