#include "broker/answer/terminal_relay.h"

#include "base/checked.h"
#include "broker/fatal.h"
#include "protocol/limits.h"
#include "protocol/terminal_buffer.h"

#include <stdlib.h>

/* An asking is a request that waits for its answer. */
struct asking {
    bool is_waiting, is_due;
    uint64_t session;
    uint32_t account;
    struct id128 id;
    int64_t until_ns;
    uint64_t offset; /* of a TerminalSend: where its first byte stands in the flow */
};

/* A flow carries bytes in one direction. */
struct flow {
    struct terminal_buffer buffer;
    bool has_receiver; /* the receiver has said what it has taken; nothing is accepted before */
    bool has_ended;
    bool has_early_end; /* the sender said its end, at `early_end`, before the receiver came */
    uint64_t early_end;
    uint64_t told; /* bytes that the sender was told the receiver has taken */
    struct asking send, receive;
    int64_t rate;      /* bytes a second */
    int64_t allowed;   /* bytes that might come at `filled_ns` */
    int64_t filled_ns; /* when `allowed` was computed */
};

struct terminal {
    struct id128 job;
    uint32_t owner;
    uint32_t agent, attempt; /* attempt 0: no agent has asked yet */
    uint64_t lease;
    struct flow in, out; /* from the owner, to the owner */
    uint32_t columns, rows;
    bool is_size_told; /* the agent knows the size */
    bool is_gone;      /* the owner has left */
    int64_t owner_ns, agent_ns;
};

struct terminal_relay {
    struct terminal *terminals[TERMINAL_RELAY_TERMINALS];
    size_t count;
    int64_t due_ns;
};

struct terminal_relay *terminal_relay_create(void)
{
    struct terminal_relay *relay = calloc(1, sizeof *relay);
    if (relay != NULL) {
        relay->due_ns = INT64_MAX;
    }
    return relay;
}

void terminal_relay_destroy(struct terminal_relay **self)
{
    struct terminal_relay *relay = *self;
    if (relay != NULL) {
        for (size_t i = 0; i < relay->count; i++) {
            free(relay->terminals[i]);
        }
        free(relay);
        *self = NULL;
    }
}

static void be_due(struct terminal_relay *relay, int64_t at_ns)
{
    relay->due_ns = at_ns < relay->due_ns ? at_ns : relay->due_ns;
}

/* ---------------------------------------------------------------- which terminal */

static struct terminal *find(const struct terminal_relay *relay, const struct id128 *job)
{
    for (size_t i = 0; i < relay->count; i++) {
        if (id128_equal(&relay->terminals[i]->job, job)) {
            return relay->terminals[i];
        }
    }
    return NULL;
}

/* Returns a new terminal of an open job, or NULL and the limit that is reached. */
static struct terminal *begin(struct terminal_relay *relay, const struct id128 *job, uint32_t owner,
                              int64_t now_ns, int64_t *ret_limit)
{
    size_t of_owner = 0;
    for (size_t i = 0; i < relay->count; i++) {
        of_owner += relay->terminals[i]->owner == owner;
    }
    const bool is_full = relay->count == TERMINAL_RELAY_TERMINALS;
    if (is_full || of_owner == TERMINAL_RELAY_OF_ACCOUNT) {
        *ret_limit = is_full ? TERMINAL_RELAY_TERMINALS : TERMINAL_RELAY_OF_ACCOUNT;
        return NULL;
    }
    struct terminal *terminal = calloc(1, sizeof *terminal);
    if (terminal == NULL) {
        fatal("out of memory");
    }
    terminal->job = *job;
    terminal->owner = owner;
    terminal->owner_ns = terminal->agent_ns = now_ns;
    terminal->in.rate = terminal->in.allowed = TERMINAL_RELAY_IN_RATE;
    terminal->out.rate = terminal->out.allowed = TERMINAL_RELAY_OUT_RATE;
    terminal->in.filled_ns = terminal->out.filled_ns = now_ns;
    relay->terminals[relay->count++] = terminal;
    be_due(relay, now_ns + TERMINAL_RELAY_TERM_NS);
    return terminal;
}

static void restart(struct flow *flow)
{
    terminal_buffer_restart(&flow->buffer, 0);
    flow->has_receiver = flow->has_ended = flow->has_early_end = false;
    flow->told = 0;
    flow->send.is_due = flow->receive.is_due = true;
}

/* Gives the terminal to an attempt. A later attempt runs another program, so both flows start
 * anew. */
static void attach(struct terminal *terminal, uint32_t agent, uint64_t lease, uint32_t attempt)
{
    if (terminal->attempt != 0) {
        restart(&terminal->in);
        restart(&terminal->out);
    }
    terminal->agent = agent;
    terminal->lease = lease;
    terminal->attempt = attempt;
    terminal->is_size_told = false;
}

/* An end is one side of a terminal, the one that sent the request. */
struct end {
    bool is_owner;
    bool is_past; /* the owner means an attempt that is over */
    struct terminal *terminal;
    struct outgoing *refusal;
};

static struct end busy(const struct request *request, int64_t limit)
{
    return (struct end){.refusal =
                            outgoing_refuse(request, REJECT_BUSY, "terminals", limit, limit)};
}

static struct end find_owner(struct terminal_relay *relay, const struct exchange *exchange,
                             const struct request *request, const struct id128 *job,
                             uint32_t attempt, int64_t now_ns)
{
    struct terminal *terminal = find(relay, job); /* its job may have ended */
    const uint32_t owner = terminal != NULL ? terminal->owner : exchange_job_owner(exchange, job);
    int64_t limit = 0;
    if (owner == EXCHANGE_NO_ACCOUNT || owner != request->account ||
        (terminal == NULL && !exchange_job_is_open(exchange, job))) {
        return (struct end){.refusal = outgoing_refuse(request, REJECT_NOT_FOUND, "job", 0, 0)};
    }
    if (terminal == NULL && (terminal = begin(relay, job, owner, now_ns, &limit)) == NULL) {
        return busy(request, limit);
    }
    terminal->owner_ns = now_ns;
    return (struct end){.is_owner = true,
                        .is_past =
                            attempt != 0 && terminal->attempt != 0 && attempt != terminal->attempt,
                        .terminal = terminal};
}

/* Finds the terminal of an agent's request. An attempt may print its last bytes after its end, so
 * the terminals come first, and then what runs. */
static struct end find_agent(struct terminal_relay *relay, const struct exchange *exchange,
                             const struct request *request, uint64_t lease, uint32_t attempt,
                             int64_t now_ns)
{
    struct terminal *terminal = NULL;
    struct id128 job;
    int64_t limit = 0;
    for (size_t i = 0; i < relay->count && terminal == NULL; i++) {
        struct terminal *other = relay->terminals[i];
        if (other->agent == request->account && other->lease == lease &&
            other->attempt == attempt) {
            terminal = other;
        }
    }
    if (terminal == NULL) {
        if (!exchange_runs(exchange, request->account, lease, 0, attempt, &job)) {
            return (struct end){.refusal =
                                    outgoing_refuse(request, REJECT_NOT_FOUND, "lease", 0, 0)};
        }
        terminal = find(relay, &job);
        if (terminal == NULL && (terminal = begin(relay, &job, exchange_job_owner(exchange, &job),
                                                  now_ns, &limit)) == NULL) {
            return busy(request, limit);
        }
        attach(terminal, request->account, lease, attempt);
    }
    terminal->agent_ns = now_ns;
    return (struct end){.terminal = terminal};
}

/* ---------------------------------------------------------------- answers */

/* Names the account whose budget pays for the answer, and ends the wait. */
static struct outgoing *answered(struct asking *asking, enum message_type type,
                                 const ProtobufCMessage *body)
{
    struct outgoing *outgoing = outgoing_address(outgoing_message(OUTGOING_REPLY, type, body),
                                                 asking->session, &asking->id);
    outgoing->account = asking->account;
    asking->is_waiting = false;
    return outgoing;
}

static struct outgoing *answer_send(struct terminal *terminal, struct flow *flow)
{
    Bourse__V1__TerminalTaken reply = BOURSE__V1__TERMINAL_TAKEN__INIT;
    /* Nothing is accepted before the receiver has asked; the sender then sends again. */
    reply.through = flow->has_receiver ? terminal_buffer_end(&flow->buffer) : flow->send.offset;
    reply.taken = flow->has_receiver ? flow->buffer.first : 0;
    reply.has_attempt = flow == &terminal->in && terminal->attempt != 0;
    reply.attempt = terminal->attempt;
    flow->told = flow->buffer.first;
    return answered(&flow->send, MESSAGE_TERMINAL_TAKEN, &reply.base);
}

static struct outgoing *answer_receive(struct terminal *terminal, struct flow *flow)
{
    Bourse__V1__TerminalBytes reply = BOURSE__V1__TERMINAL_BYTES__INIT;
    const bool is_agent = flow == &terminal->in;
    size_t size = 0;
    const uint8_t *bytes = terminal_buffer_piece(&flow->buffer, flow->buffer.first, &size);
    reply.offset = flow->buffer.first;
    reply.has_bytes = size > 0;
    reply.bytes = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)(uintptr_t)bytes};
    reply.has_end = reply.end = flow->has_ended && size == flow->buffer.count;
    reply.has_gone = reply.gone = is_agent && terminal->is_gone;
    reply.has_columns = reply.has_rows =
        is_agent && terminal->columns != 0 && !terminal->is_size_told;
    reply.columns = terminal->columns;
    reply.rows = terminal->rows;
    terminal->is_size_told = terminal->is_size_told || is_agent;
    reply.has_attempt = !is_agent && terminal->attempt != 0;
    reply.attempt = terminal->attempt;
    return answered(&flow->receive, MESSAGE_TERMINAL_BYTES, &reply.base);
}

/* Answers an owner who means a former attempt. The answer only names the present attempt. */
static struct outgoing *answer_past(const struct terminal *terminal, const struct request *request)
{
    Bourse__V1__TerminalTaken taken = BOURSE__V1__TERMINAL_TAKEN__INIT;
    Bourse__V1__TerminalBytes bytes = BOURSE__V1__TERMINAL_BYTES__INIT;
    taken.has_attempt = bytes.has_attempt = true;
    taken.attempt = bytes.attempt = terminal->attempt;
    return request->envelope.type == MESSAGE_TERMINAL_SEND
               ? outgoing_reply(request, MESSAGE_TERMINAL_TAKEN, &taken.base)
               : outgoing_reply(request, MESSAGE_TERMINAL_BYTES, &bytes.base);
}

/* ---------------------------------------------------------------- messages */

/* Notes the request. Returns the answer to the request that it replaces, or NULL when it replaces
 * none. */
static struct outgoing *wait_for(struct terminal *terminal, struct flow *flow, bool is_send,
                                 const struct request *request, int64_t until_ns)
{
    struct asking *asking = is_send ? &flow->send : &flow->receive;
    struct outgoing *former = NULL;
    /* The same message may come again, over another connection. */
    if (asking->is_waiting && !id128_equal(&asking->id, &request->envelope.id)) {
        former = is_send ? answer_send(terminal, flow) : answer_receive(terminal, flow);
    }
    *asking = (struct asking){.is_waiting = true,
                              .session = request->session,
                              .account = request->account,
                              .id = request->envelope.id,
                              .until_ns = until_ns};
    return former;
}

static size_t allowed(struct flow *flow, int64_t now_ns)
{
    const int64_t passed_ms = (now_ns - flow->filled_ns) / NS_PER_MS;
    if (passed_ms > 0) {
        const int64_t more = passed_ms >= 1000 ? flow->rate : flow->rate * passed_ms / 1000;
        flow->allowed = flow->allowed + more < flow->rate ? flow->allowed + more : flow->rate;
        flow->filled_ns = now_ns;
    }
    return (size_t)flow->allowed;
}

/* Accepts what there is room for. Returns true when the sender should hear of it at once. */
static bool accept(struct flow *flow, const Bourse__V1__TerminalSend *body, int64_t now_ns)
{
    const size_t size = body->has_bytes ? body->bytes.len : 0;
    if (!flow->has_receiver) {
        /* The answer makes the sender send its bytes again, but an end without bytes has no place
         * in the answer. So the sender takes the end for known, and the relay remembers it. */
        flow->has_early_end = flow->has_early_end || (size == 0 && body->has_end && body->end);
        flow->early_end = body->offset;
        return false;
    }
    if (body->offset != terminal_buffer_end(&flow->buffer)) {
        return true; /* the answer says where to go on */
    }
    if (flow->has_ended) {
        return flow->told != flow->buffer.first;
    }
    const size_t most = allowed(flow, now_ns);
    const size_t added =
        terminal_buffer_add(&flow->buffer, body->bytes.data, size < most ? size : most);
    flow->allowed -= (int64_t)added;
    flow->has_ended = body->has_end && body->end && added == size;
    flow->receive.is_due = flow->receive.is_due || added > 0 || flow->has_ended;
    if (added == 0 && size > 0 && terminal_buffer_room(&flow->buffer) > 0) {
        flow->send.until_ns = now_ns + TERMINAL_RELAY_RATE_NS;
    }
    return added > 0 || flow->has_ended || flow->told != flow->buffer.first;
}

static void take_send(struct terminal *terminal, bool is_owner,
                      const Bourse__V1__TerminalSend *body, int64_t now_ns)
{
    struct flow *flow = is_owner ? &terminal->in : &terminal->out;
    flow->send.offset = body->offset;
    flow->send.is_due = accept(flow, body, now_ns);
    if (is_owner && body->has_columns &&
        (body->columns != terminal->columns || body->rows != terminal->rows)) {
        terminal->columns = body->columns;
        terminal->rows = body->rows;
        terminal->is_size_told = false;
        terminal->in.receive.is_due = true;
    }
    flow->send.is_due = flow->send.is_due || body->has_columns;
}

static void take_receive(struct terminal *terminal, bool is_owner,
                         const Bourse__V1__TerminalReceive *body)
{
    struct flow *flow = is_owner ? &terminal->out : &terminal->in;
    if (!flow->has_receiver || !terminal_buffer_drop(&flow->buffer, body->taken)) {
        terminal_buffer_restart(&flow->buffer, body->taken);
        flow->has_receiver = true;
        flow->has_ended =
            flow->has_ended || (flow->has_early_end && flow->early_end == body->taken);
        flow->has_early_end = false;
        flow->send.is_due = true;
    }
    flow->send.is_due = flow->send.is_due || flow->told != flow->buffer.first;
    flow->receive.is_due =
        flow->buffer.count > 0 || flow->has_ended ||
        (!is_owner && (terminal->is_gone || (!terminal->is_size_told && terminal->columns != 0)));
}

struct outgoing *terminal_relay_take(struct terminal_relay *relay, const struct exchange *exchange,
                                     const struct request *request, int64_t now_ns,
                                     struct outgoing **ret_former)
{
    const bool is_send = request->envelope.type == MESSAGE_TERMINAL_SEND;
    const Bourse__V1__TerminalSend *send = (const void *)request->translation.body;
    const Bourse__V1__TerminalReceive *receive = (const void *)request->translation.body;
    const bool has_job = is_send ? send->has_job : receive->has_job;
    const uint64_t lease = is_send ? send->lease : receive->lease;
    const uint32_t attempt = is_send ? send->attempt : receive->attempt;
    *ret_former = NULL;
    struct end end;
    if (has_job) {
        const struct id128 job = codec_id(is_send ? send->job : receive->job);
        end = find_owner(relay, exchange, request, &job, attempt, now_ns);
    } else {
        end = find_agent(relay, exchange, request, lease, attempt, now_ns);
    }
    if (end.refusal != NULL) {
        return end.refusal;
    }
    if (end.is_past) {
        return answer_past(end.terminal, request);
    }
    struct terminal *terminal = end.terminal;
    struct flow *flow = is_send == end.is_owner ? &terminal->in : &terminal->out;
    const int64_t wait_ns = is_send ? TERMINAL_RELAY_WAIT_NS : receive->wait_ms * NS_PER_MS;
    *ret_former = wait_for(terminal, flow, is_send, request, now_ns + wait_ns);
    if (is_send) {
        take_send(terminal, end.is_owner, send, now_ns);
    } else {
        take_receive(terminal, end.is_owner, receive);
    }
    relay->due_ns = 0;
    return NULL;
}

void terminal_relay_forget(struct terminal_relay *relay, uint64_t session)
{
    for (size_t i = 0; i < relay->count; i++) {
        struct terminal *terminal = relay->terminals[i];
        struct asking *const askings[] = {&terminal->in.send, &terminal->in.receive,
                                          &terminal->out.send, &terminal->out.receive};
        for (size_t k = 0; k < 4; k++) {
            askings[k]->is_waiting = askings[k]->is_waiting && askings[k]->session != session;
        }
    }
}

/* ---------------------------------------------------------------- what is due */

int64_t terminal_relay_due_ns(const struct terminal_relay *relay)
{
    return relay->due_ns;
}

static bool is_due(const struct asking *asking, int64_t now_ns)
{
    return asking->is_waiting && (asking->is_due || asking->until_ns <= now_ns);
}

/* Forgets the terminals that nobody asks about any more, and finds out when the relay must act
 * again. */
static void make_round(struct terminal_relay *relay, int64_t now_ns)
{
    relay->due_ns = INT64_MAX;
    for (size_t i = relay->count; i-- > 0;) {
        struct terminal *terminal = relay->terminals[i];
        const struct asking *const askings[] = {&terminal->in.send, &terminal->out.receive,
                                                &terminal->in.receive, &terminal->out.send};
        bool is_asked[2] = {false, false}; /* by the owner, by the agent */
        for (size_t k = 0; k < 4; k++) {
            is_asked[k / 2] = is_asked[k / 2] || askings[k]->is_waiting;
            if (askings[k]->is_waiting) {
                be_due(relay, askings[k]->until_ns);
            }
        }
        const int64_t gone_ns = terminal->owner_ns + TERMINAL_RELAY_GONE_NS;
        const int64_t seen_ns =
            terminal->owner_ns > terminal->agent_ns ? terminal->owner_ns : terminal->agent_ns;
        if (!is_asked[0] && !is_asked[1] && seen_ns + TERMINAL_RELAY_TERM_NS <= now_ns) {
            free(terminal);
            relay->terminals[i] = relay->terminals[--relay->count];
            continue;
        }
        be_due(relay, seen_ns + TERMINAL_RELAY_TERM_NS > now_ns ? seen_ns + TERMINAL_RELAY_TERM_NS
                                                                : INT64_MAX);
        if (!is_asked[0] && !terminal->is_gone && gone_ns <= now_ns) {
            terminal->is_gone = true;
            terminal->in.receive.is_due = true;
            relay->due_ns = 0;
        } else if (!is_asked[0] && !terminal->is_gone) {
            be_due(relay, gone_ns);
        }
    }
}

struct outgoing *terminal_relay_next(struct terminal_relay *relay, int64_t now_ns)
{
    if (now_ns < relay->due_ns) {
        return NULL;
    }
    for (size_t i = 0; i < relay->count; i++) {
        struct terminal *terminal = relay->terminals[i];
        struct flow *const flows[] = {&terminal->in, &terminal->out};
        for (size_t k = 0; k < 2; k++) {
            struct flow *flow = flows[k];
            int64_t *seen_ns = k == 0 ? &terminal->owner_ns : &terminal->agent_ns;
            if (is_due(&flow->send, now_ns)) {
                *seen_ns = now_ns;
                return answer_send(terminal, flow);
            }
            seen_ns = k == 0 ? &terminal->agent_ns : &terminal->owner_ns;
            if (is_due(&flow->receive, now_ns)) {
                *seen_ns = now_ns;
                return answer_receive(terminal, flow);
            }
        }
    }
    make_round(relay, now_ns);
    return NULL;
}
