/* The relay passes bytes between the owner of a job and the agent that runs it, in order and once,
 * and nobody else sends or receives any. */
#include "broker/answer/terminal_relay.h"

#include "base/checked.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { AGENT = 10, OWNER = 20 };

static struct terminal_relay *relay;
static struct id128 job;
static struct exchange_work work; /* what PROVIDER runs of the job */
static uint8_t last_id;

static void open_market(void)
{
    set_up();
    relay = terminal_relay_create();
    ck_assert_ptr_nonnull(relay);
    offer(PROVIDER, 2, price);
    job = submit(1, 100);
    ck_assert_ptr_nonnull(nth(EFFECT_DISPATCH, 0));
    work = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(work.index, 0);
}

static void close_market(void)
{
    terminal_relay_destroy(&relay);
    tear_down();
}

/* Gives the message to the relay. Returns the refusal, or NULL. */
static struct outgoing *take(uint64_t session, uint32_t account, enum message_type type,
                             ProtobufCMessage *body, int64_t now_ns)
{
    struct outgoing *former;
    struct request request = {.session = session, .account = account};
    request.envelope.type = (uint16_t)type;
    request.envelope.id.bytes[0] = ++last_id;
    request.translation.body = body;
    struct outgoing *refusal =
        terminal_relay_take(relay, market.exchange, &request, now_ns, &former);
    outgoing_destroy(&former);
    return refusal;
}

static ProtobufCBinaryData id_bytes(void)
{
    return (ProtobufCBinaryData){.len = sizeof job, .data = job.bytes};
}

static Bourse__V1__TerminalSend sending(bool is_owner, uint64_t offset, const char *text)
{
    Bourse__V1__TerminalSend body = BOURSE__V1__TERMINAL_SEND__INIT;
    body.has_job = is_owner;
    body.job = id_bytes();
    body.has_lease = body.has_attempt = !is_owner;
    body.lease = work.lease;
    body.attempt = is_owner ? 0 : work.attempt;
    body.offset = offset;
    body.has_bytes = text[0] != '\0';
    body.bytes = (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
    return body;
}

static void send(bool is_owner, uint64_t offset, const char *text, int64_t now_ns)
{
    Bourse__V1__TerminalSend body = sending(is_owner, offset, text);
    ck_assert_ptr_null(take(is_owner ? OWNER : AGENT, is_owner ? CONSUMER : PROVIDER,
                            MESSAGE_TERMINAL_SEND, &body.base, now_ns));
}

static struct outgoing *ask(bool is_owner, uint32_t account, uint64_t taken, int64_t now_ns)
{
    Bourse__V1__TerminalReceive body = BOURSE__V1__TERMINAL_RECEIVE__INIT;
    body.has_job = is_owner;
    body.job = id_bytes();
    body.has_lease = body.has_attempt = !is_owner;
    body.lease = work.lease;
    body.attempt = is_owner ? 0 : work.attempt;
    body.taken = taken;
    body.wait_ms = 1000;
    return take(is_owner ? OWNER : AGENT, account, MESSAGE_TERMINAL_RECEIVE, &body.base, now_ns);
}

static void receive(bool is_owner, uint64_t taken, int64_t now_ns)
{
    ck_assert_ptr_null(ask(is_owner, is_owner ? CONSUMER : PROVIDER, taken, now_ns));
}

/* An answer of the relay. */
struct got {
    uint64_t session;
    enum message_type type; /* 0: nothing */
    uint64_t through, taken, offset;
    char text[64];
    uint32_t columns, rows, attempt;
    bool end, gone;
};

static struct got next(int64_t now_ns)
{
    struct outgoing *outgoing = terminal_relay_next(relay, now_ns);
    struct got got = {.type = 0};
    ProtobufCMessage *decoded = NULL;
    struct codec_error error = {0};
    if (outgoing == NULL) {
        return got;
    }
    got.session = outgoing->session;
    got.type = outgoing->type;
    ck_assert_int_eq(
        codec_decode(outgoing->type, outgoing->body, outgoing->length, &decoded, &error), CODEC_OK);
    if (got.type == MESSAGE_TERMINAL_TAKEN) {
        const Bourse__V1__TerminalTaken *body = (const void *)decoded;
        got.through = body->through;
        got.taken = body->taken;
        got.attempt = body->attempt;
    } else {
        const Bourse__V1__TerminalBytes *body = (const void *)decoded;
        ck_assert_int_eq(got.type, MESSAGE_TERMINAL_BYTES);
        got.offset = body->offset;
        (void)snprintf(got.text, sizeof got.text, "%.*s", (int)body->bytes.len,
                       body->has_bytes ? (const char *)body->bytes.data : "");
        got.columns = body->columns;
        got.rows = body->rows;
        got.end = body->end;
        got.gone = body->gone;
        got.attempt = body->attempt;
    }
    codec_free(&decoded);
    outgoing_destroy(&outgoing);
    return got;
}

START_TEST(what_the_owner_types_reaches_the_agent_at_once)
{
    receive(false, 0, 1);
    ck_assert_int_eq(next(1).type, 0); /* it waits */
    send(true, 0, "ls\r", 2);
    struct got got = next(2);
    ck_assert_int_eq(got.type, MESSAGE_TERMINAL_TAKEN);
    ck_assert_uint_eq(got.session, OWNER);
    ck_assert_uint_eq(got.through, 3);
    ck_assert_uint_eq(got.taken, 0);
    ck_assert_uint_eq(got.attempt, work.attempt);
    got = next(2);
    ck_assert_uint_eq(got.session, AGENT);
    ck_assert_str_eq(got.text, "ls\r");
    ck_assert_uint_eq(got.offset, 0);
    ck_assert_int_eq(next(2).type, 0);
}
END_TEST

START_TEST(what_the_program_prints_reaches_the_owner_once)
{
    receive(true, 0, 1);
    send(false, 0, "$ ", 2);
    ck_assert_uint_eq(next(2).through, 2);
    struct got got = next(2);
    ck_assert_uint_eq(got.session, OWNER);
    ck_assert_str_eq(got.text, "$ ");
    ck_assert_uint_eq(got.attempt, work.attempt);
    /* An answer that was lost comes again, until the owner says that it has it. */
    receive(true, 0, 3);
    ck_assert_str_eq(next(3).text, "$ ");
    receive(true, 2, 4);
    ck_assert_int_eq(next(4).type, 0);
    send(false, 0, "$ ", 5); /* sent again: the answer says where to go on */
    got = next(5);
    ck_assert_uint_eq(got.through, 2);
    ck_assert_uint_eq(got.taken, 2);
    ck_assert_int_eq(next(5).type, 0);
}
END_TEST

START_TEST(nothing_is_taken_before_the_other_end_has_come)
{
    send(true, 0, "early", 1);
    ck_assert_int_eq(next(1).type, 0);
    receive(false, 0, 2);
    ck_assert_uint_eq(next(2).through, 0); /* the owner sends again */
    send(true, 0, "early", 3);
    ck_assert_uint_eq(next(3).through, 5);
    ck_assert_str_eq(next(3).text, "early");
}
END_TEST

START_TEST(a_new_broker_goes_on_where_the_receiver_is)
{
    send(true, 100, "x", 1); /* of 100 bytes the agent has taken 90 */
    receive(false, 90, 2);
    ck_assert_uint_eq(next(2).through, 90);
    send(true, 90, "0123456789x", 3);
    ck_assert_uint_eq(next(3).through, 101);
    struct got got = next(3);
    ck_assert_uint_eq(got.offset, 90);
    ck_assert_str_eq(got.text, "0123456789x");
}
END_TEST

START_TEST(nobody_else_types_or_reads)
{
    Bourse__V1__TerminalSend typed = sending(true, 0, "rm -r");
    receive(false, 0, 1);
    const uint32_t others[] = {OTHER_PROVIDER, PROVIDER, OPERATOR, EXCHANGE_NO_ACCOUNT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct outgoing *refusal = take(30, others[i], MESSAGE_TERMINAL_SEND, &typed.base, 2);
        ck_assert_ptr_nonnull(refusal);
        ck_assert_int_eq(refusal->refused, REJECT_NOT_FOUND);
        outgoing_destroy(&refusal);
        refusal = ask(true, others[i], 0, 2);
        ck_assert_ptr_nonnull(refusal);
        outgoing_destroy(&refusal);
    }
    ck_assert_int_eq(next(3).type, 0);
}
END_TEST

START_TEST(an_agent_speaks_for_what_it_runs)
{
    Bourse__V1__TerminalSend printed = sending(false, 0, "lie");
    struct outgoing *refusal = take(30, OTHER_PROVIDER, MESSAGE_TERMINAL_SEND, &printed.base, 1);
    ck_assert_ptr_nonnull(refusal);
    outgoing_destroy(&refusal);
    printed.attempt++;
    refusal = take(AGENT, PROVIDER, MESSAGE_TERMINAL_SEND, &printed.base, 1);
    ck_assert_ptr_nonnull(refusal);
    outgoing_destroy(&refusal);
    printed.attempt--;
    printed.lease += 1000;
    refusal = take(AGENT, PROVIDER, MESSAGE_TERMINAL_SEND, &printed.base, 1);
    ck_assert_ptr_nonnull(refusal);
    outgoing_destroy(&refusal);
    ck_assert_int_eq(next(2).type, 0);
}
END_TEST

START_TEST(a_full_window_makes_the_sender_wait)
{
    static char much[LIMIT_TERMINAL_BYTES + 1];
    memset(much, 'x', sizeof much - 1);
    receive(true, 0, 1);
    uint64_t sent = 0;
    for (; sent < LIMIT_TERMINAL_WINDOW; sent += LIMIT_TERMINAL_BYTES) {
        send(false, sent, much, 2);
        ck_assert_uint_eq(next(2).through, sent + LIMIT_TERMINAL_BYTES);
        (void)next(2); /* the owner's answer, once */
    }
    send(false, sent, "more", 3);
    ck_assert_int_eq(next(3).type, 0);
    receive(true, 10, 4);
    struct got got = next(4);
    while (got.type == MESSAGE_TERMINAL_BYTES) {
        got = next(4);
    }
    ck_assert_int_eq(got.type, MESSAGE_TERMINAL_TAKEN);
    ck_assert_uint_eq(got.taken, 10);
    ck_assert_uint_eq(got.through, sent);
    send(false, sent, "more", 5);
    ck_assert_uint_eq(next(5).through, sent + 4);
}
END_TEST

START_TEST(typing_has_a_rate)
{
    static char much[LIMIT_TERMINAL_BYTES + 1];
    memset(much, 'x', sizeof much - 1);
    uint64_t through = 0;
    receive(false, 0, 1);
    for (unsigned i = 0; i < 2 * TERMINAL_RELAY_IN_RATE / LIMIT_TERMINAL_BYTES; i++) {
        send(true, through, much, 2);
        for (struct got got = next(2); got.type != 0; got = next(2)) {
            through = got.type == MESSAGE_TERMINAL_TAKEN ? got.through : through;
        }
        receive(false, through, 2);
        (void)next(2);
    }
    ck_assert_uint_eq(through, TERMINAL_RELAY_IN_RATE);
    send(true, through, "x", 2);
    ck_assert_int_eq(next(3).type, 0);
    ck_assert_uint_eq(next(2 + TERMINAL_RELAY_RATE_NS).through, through);
    send(true, through, "x", 2 + TERMINAL_RELAY_RATE_NS);
    ck_assert_uint_eq(next(2 + TERMINAL_RELAY_RATE_NS).through, through + 1);
}
END_TEST

START_TEST(the_size_goes_to_the_agent_once)
{
    Bourse__V1__TerminalSend body = sending(true, 0, "");
    body.has_columns = body.has_rows = true;
    body.columns = 120;
    body.rows = 40;
    ck_assert_ptr_null(take(OWNER, CONSUMER, MESSAGE_TERMINAL_SEND, &body.base, 1));
    ck_assert_int_eq(next(1).type, MESSAGE_TERMINAL_TAKEN);
    receive(false, 0, 2);
    struct got got = next(2);
    ck_assert_uint_eq(got.columns, 120);
    ck_assert_uint_eq(got.rows, 40);
    receive(false, 0, 3);
    ck_assert_int_eq(next(3).type, 0);
}
END_TEST

START_TEST(the_end_comes_behind_the_last_byte_and_after_the_job)
{
    receive(true, 0, 1);
    send(false, 0, "bye", 1);
    (void)next(1);
    ck_assert(!next(1).end);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S / 2);
    Bourse__V1__TerminalSend last = sending(false, 3, "!");
    last.has_end = last.end = true;
    ck_assert_ptr_null(take(AGENT, PROVIDER, MESSAGE_TERMINAL_SEND, &last.base, 2));
    ck_assert_uint_eq(next(2).through, 4);
    receive(true, 3, 3);
    struct got got = next(3);
    ck_assert_str_eq(got.text, "!");
    ck_assert(got.end);
    receive(true, 4, 4);
    got = next(4);
    while (got.type == MESSAGE_TERMINAL_TAKEN) {
        got = next(4);
    }
    ck_assert(got.end);
    ck_assert_str_eq(got.text, "");
}
END_TEST

/* Gives the relay the end of a direction, as its sender does before its receiver has come. */
static void send_end(bool is_owner, uint64_t offset, int64_t now_ns)
{
    Bourse__V1__TerminalSend body = sending(is_owner, offset, "");
    body.has_end = body.end = true;
    ck_assert_ptr_null(take(is_owner ? OWNER : AGENT, is_owner ? CONSUMER : PROVIDER,
                            MESSAGE_TERMINAL_SEND, &body.base, now_ns));
}

/* Returns true when one of the answers that are due says the end to the session. */
static bool is_end_told(uint64_t session, int64_t now_ns)
{
    bool is_told = false;
    for (struct got got = next(now_ns); got.type != 0; got = next(now_ns)) {
        is_told = is_told || (got.session == session && got.end);
    }
    return is_told;
}

START_TEST(an_end_that_comes_before_the_receiver_waits_for_it)
{
    const bool is_owner = _i == 0;
    const uint64_t receiver = is_owner ? AGENT : OWNER;
    receive(is_owner, 0, 1); /* of the other direction, so that the relay knows the sender */
    send_end(is_owner, 0, 1);
    ck_assert(!is_end_told(receiver, 1));
    /* The answer says that byte 0 comes next, so the sender takes its end for known. */
    ck_assert(!is_end_told(receiver, 1 + TERMINAL_RELAY_WAIT_NS));
    receive(!is_owner, 0, 2 + TERMINAL_RELAY_WAIT_NS);
    ck_assert(is_end_told(receiver, 2 + TERMINAL_RELAY_WAIT_NS));
}
END_TEST

START_TEST(an_early_end_behind_bytes_to_come_waits_for_them)
{
    send_end(false, 2, 1); /* a broker that starts anew: two bytes were with the former one */
    receive(true, 1, 1);
    ck_assert(!is_end_told(OWNER, 1)); /* the agent sends the second byte again */
    send(false, 1, "!", 2);
    receive(true, 1, 2);
    ck_assert(!is_end_told(OWNER, 2));
    send_end(false, 2, 3);
    receive(true, 2, 3);
    ck_assert(is_end_told(OWNER, 3));
}
END_TEST

START_TEST(an_owner_who_is_gone_is_told_to_the_agent)
{
    int64_t now_ns = 1;
    receive(true, 0, now_ns);
    ck_assert_int_eq(next(now_ns).type, 0);
    terminal_relay_forget(relay, OWNER);
    for (; now_ns < TERMINAL_RELAY_GONE_NS; now_ns += NS_PER_S) {
        receive(false, 0, now_ns);
        ck_assert(!next(now_ns).gone);
    }
    receive(false, 0, now_ns + NS_PER_S);
    bool is_told = false;
    for (unsigned i = 0; i < 8; i++) {
        is_told = is_told || next(now_ns + NS_PER_S).gone;
    }
    ck_assert(is_told);
}
END_TEST

START_TEST(a_terminal_that_nobody_asks_for_is_forgotten)
{
    receive(true, 0, 1);
    (void)next(1);
    ck_assert_int_eq(next(1 + NS_PER_S).type, MESSAGE_TERMINAL_BYTES); /* the wait is over */
    ck_assert_int_eq(next(1 + NS_PER_S).type, 0);
    ck_assert(terminal_relay_due_ns(relay) != INT64_MAX);
    ck_assert_int_eq(next(2 + NS_PER_S + TERMINAL_RELAY_TERM_NS).type, 0);
    ck_assert(terminal_relay_due_ns(relay) == INT64_MAX);
}
END_TEST

START_TEST(an_owner_has_so_many_terminals)
{
    struct outgoing *refusal = NULL;
    for (unsigned i = 0; i <= TERMINAL_RELAY_OF_ACCOUNT && refusal == NULL; i++) {
        job = submit(1, 1);
        refusal = ask(true, CONSUMER, 0, 1);
        ck_assert_int_eq(refusal != NULL, i == TERMINAL_RELAY_OF_ACCOUNT);
    }
    ck_assert_int_eq(refusal->refused, REJECT_BUSY);
    outgoing_destroy(&refusal);
}
END_TEST

SUITE("terminal_relay", open_market, close_market,
      TEST(what_the_owner_types_reaches_the_agent_at_once),
      TEST(what_the_program_prints_reaches_the_owner_once),
      TEST(nothing_is_taken_before_the_other_end_has_come),
      TEST(a_new_broker_goes_on_where_the_receiver_is), TEST(nobody_else_types_or_reads),
      TEST(an_agent_speaks_for_what_it_runs), TEST(a_full_window_makes_the_sender_wait),
      TEST(typing_has_a_rate), TEST(the_size_goes_to_the_agent_once),
      TEST(the_end_comes_behind_the_last_byte_and_after_the_job),
      LOOP(an_end_that_comes_before_the_receiver_waits_for_it, 0, 2),
      TEST(an_early_end_behind_bytes_to_come_waits_for_them),
      TEST(an_owner_who_is_gone_is_told_to_the_agent),
      TEST(a_terminal_that_nobody_asks_for_is_forgotten), TEST(an_owner_has_so_many_terminals))
