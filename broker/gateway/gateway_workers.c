/* The gateway passes requests and notices to the workers here, in the order of each account. */
#include "broker/gateway/gateway_internal.h"

#include "base/checked.h"
#include "broker/core/outgoing.h"
#include "broker/core/translate.h"
#include "broker/gateway/presence.h"
#include "broker/gateway/sessions.h"
#include "exchange/exchange.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_BEHIND = 1024 }; /* with so many requests before it, a held command waits on */

/* One worker handles all messages of one account, so the messages keep their order. */
static struct queue *worker_of(const struct gateway *gateway, uint32_t account, uint64_t session)
{
    uint64_t key = account == EXCHANGE_NO_ACCOUNT ? session : account;
    return gateway->config.workers[key % gateway->config.worker_count];
}

static bool notice(struct gateway *gateway, enum request_kind kind, uint32_t account,
                   uint64_t session, enum entry_command_kind presence)
{
    struct request *request = request_create();
    if (request == NULL) {
        return false; /* the next round tries again */
    }
    request->kind = kind;
    request->account = account;
    request->session = session;
    request->presence = presence;
    bool pushed = queue_try_push(worker_of(gateway, account, session), &request->link);
    if (!pushed) {
        request_destroy(&request);
    }
    return pushed;
}

static bool pass_to_worker(struct gateway *gateway, struct request *request)
{
    return queue_try_push(worker_of(gateway, request->account, request->session), &request->link);
}

/* An agent's commands go before the notice that the agent left or fell silent. Returns false when
 * the worker has no room. */
static bool pass_before_notice(struct gateway *gateway, uint32_t account)
{
    struct request *request;
    while ((request = held_of(&gateway->held, account)) != NULL) {
        held_take(&gateway->held, account);
        if (!pass_to_worker(gateway, request)) {
            held_put_back(&gateway->held, request);
            return false;
        }
    }
    return true;
}

static bool tell(struct gateway *gateway, uint32_t account, enum entry_command_kind kind)
{
    if (!pass_before_notice(gateway, account)) {
        return false;
    }
    if (!notice(gateway, REQUEST_PRESENCE, account, 0, kind)) {
        return false;
    }
    log_debug("provider %" PRIu32 ": presence %d", account, (int)kind);
    presence_told(gateway->sessions, account, kind);
    return true;
}

/* While the journal takes no entry, log time stands still, and agents that come and go would only
 * fill groups. What is true afterwards is told then. */
static bool may_tell(const struct gateway *gateway)
{
    const struct quorum_note *quorum = gateway->config.quorum;
    return !atomic_load(&gateway->is_draining) &&
           disk_reserve_state(gateway->config.reserve) < DISK_RESERVE_LAST &&
           (quorum == NULL || !atomic_load(&quorum->is_away));
}

void gateway_tell_presence(struct gateway *gateway)
{
    if (!may_tell(gateway)) {
        return; /* the next round tells it */
    }
    int64_t now_ns = clock_monotonic_ns();
    uint32_t position = 0;
    uint32_t account;
    enum entry_command_kind kind;
    while (presence_next_notice(gateway->sessions, now_ns, gateway->config.heartbeat_ms * NS_PER_MS,
                                &position, &account, &kind)) {
        /* The next round tells the core when the worker is busy. */
        (void)tell(gateway, account, kind);
    }
}

void gateway_doubt(struct gateway *gateway, uint32_t account)
{
    if (may_tell(gateway) && presence_session(gateway->sessions, account) != 0) {
        (void)tell(gateway, account, ENTRY_SUSPECT);
    }
}

/* An agent's commands must not overtake its earlier goodbye, which would cancel the asks of its
 * return. */
static bool goodbye_went_first(struct gateway *gateway, uint32_t account)
{
    return !presence_owes_goodbye(gateway->sessions, account) ||
           (may_tell(gateway) && tell(gateway, account, ENTRY_GOODBYE));
}

void gateway_let_go(struct gateway *gateway, struct session *session)
{
    if (notice(gateway, REQUEST_CLOSED, session->account, session->number, ENTRY_TICK)) {
        sessions_forget(gateway->sessions, session);
    }
}

void gateway_let_all_go(struct gateway *gateway)
{
    size_t position = 0;
    for (struct session *session;
         (session = sessions_next(gateway->sessions, &position)) != NULL;) {
        if (session->is_closing) {
            gateway_let_go(gateway, session);
        }
    }
}

bool gateway_pass_on(struct gateway *gateway, const struct incoming *in,
                     const struct session *session, bool waits)
{
    size_t length = in->message.length;
    if (translate_is_command((enum message_type)in->envelope.type) &&
        !goodbye_went_first(gateway, session->account)) {
        return false;
    }
    if (atomic_fetch_add(&gateway->pending_bytes, length) + length > GATEWAY_PENDING_BYTES) {
        (void)atomic_fetch_sub(&gateway->pending_bytes, length);
        return false;
    }
    struct request *request = request_create();
    if (request == NULL) {
        (void)atomic_fetch_sub(&gateway->pending_bytes, length);
        return false;
    }
    request->budget = &gateway->pending_bytes; /* request_destroy subtracts `length` from here on */
    request->length = length;
    request->message = malloc(length);
    if (request->message == NULL) {
        request_destroy(&request);
        return false;
    }
    memcpy(request->message, in->message.bytes, length);
    request->kind = REQUEST_MESSAGE;
    request->arrived_ns = clock_monotonic_ns();
    request->session = session->number;
    request->account = session->account;
    if (in->account != NULL) {
        request->roles = in->account->roles;
        request->key = in->account->key;
    }
    request->transport = in->message.client;
    request->envelope = in->envelope;
    request->envelope.body = request->message + ENVELOPE_HEAD_BYTES;
    if (!(waits ? held_put(&gateway->held, request) : pass_to_worker(gateway, request))) {
        request_destroy(&request);
        return false;
    }
    return true;
}

static struct budget_asker commander(const struct request *request)
{
    return (struct budget_asker){request->account, request->session, BUDGET_COMMANDS};
}

int64_t gateway_cost_of(enum message_type type, size_t bytes)
{
    return type == MESSAGE_RESULTS ? budget_of_results(bytes) : budget_of_command(bytes);
}

void gateway_pass_held(struct gateway *gateway, int64_t now_ns)
{
    for (size_t i = 0; i < gateway->held.count;) {
        struct request *request = held_first(&gateway->held, i);
        const struct budget_asker asker = commander(request);
        const int64_t cost =
            gateway_cost_of((enum message_type)request->envelope.type, request->length);
        if (!budget_admits(gateway->config.budget, &asker, now_ns) ||
            queue_count(worker_of(gateway, request->account, request->session)) >= HELD_BEHIND) {
            i++;
            continue;
        }
        held_take(&gateway->held, request->account);
        if (!pass_to_worker(gateway, request)) {
            held_put_back(&gateway->held, request);
            return;
        }
        budget_charge(gateway->config.budget, &asker, cost, now_ns);
    }
}
