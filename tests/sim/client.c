#include "tests/sim/client.h"

#include "protocol/codec.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/sim/oracle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void turn(struct client *client);

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

/* ---------------------------------------------------------------- requests */

static struct client_request *new_request(struct client *client, enum message_type type,
                                          uint64_t seed)
{
    if (client->request_count == CLIENT_REQUESTS) {
        return NULL;
    }
    struct client_request *request = &client->requests[client->request_count++];
    *request = (struct client_request){.type = type, .id = entropy_id(), .seed = seed};
    return request;
}

static struct client_request *find_request(struct client *client, const struct id128 *id)
{
    for (size_t i = client->request_count; i-- > 0;) {
        if (id128_equal(&client->requests[i].id, id)) {
            return &client->requests[i];
        }
    }
    return NULL;
}

static void send_request(struct client *client, struct client_request *request)
{
    if (!client->process.runs || request->is_pending) {
        return;
    }
    struct process *before = process_enter(&client->process);
    request->is_pending = client_sends(client, request) == CONSUMER_OK;
    trace("asks: %s %02x%02x%s", message_name(request->type), request->id.bytes[0],
          request->id.bytes[1], request->is_pending ? "" : ", but cannot");
    turn(client);
    process_leave(before);
}

/* Sends requests again that have no answer and are not on their way. */
static void ask_again(struct client *client)
{
    for (size_t i = 0; i < client->request_count; i++) {
        struct client_request *request = &client->requests[i];
        if (request->fate == FATE_OPEN && !request->is_pending) {
            request->is_pending = client_sends(client, request) == CONSUMER_OK;
        }
    }
}

static struct client_request *some_request(struct client *client, enum message_type type,
                                           bool settled)
{
    for (int tries = 0; tries < 8 && client->request_count > 0; tries++) {
        struct client_request *request = &client->requests[draw(DICE_WORK, client->request_count)];
        if (request->type == type && !request->is_pending &&
            (request->fate != FATE_OPEN) == settled) {
            return request;
        }
    }
    return NULL;
}

/* It does not wait for ever. */
static void may_expire(struct client *client, struct client_request *request)
{
    if (client->process.runs && draw(DICE_WORK, 8) == 0) {
        request->expires_ms = consumer_session_log_time_ms(client->session, clock_monotonic_ns()) +
                              1 + (int64_t)draw(DICE_WORK, 60000);
    }
}

void client_submits(struct client *client)
{
    struct client_request *request =
        new_request(client, MESSAGE_SUBMIT_JOB, random_u64(&world.dice[DICE_WORK]));
    if (request == NULL) {
        return;
    }
    request->is_by_value = draw(DICE_WORK, 5) == 0;
    may_expire(client, request);
    send_request(client, request);
    if (client->process.runs && chance(DICE_WORK, 5000)) {
        struct process *before = process_enter(&client->process);
        struct id128 id = entropy_id();
        (void)consumer_session_watch(client->session, clock_monotonic_ns(), &id, &request->id);
        turn(client);
        process_leave(before);
    }
}

void client_cancels(struct client *client)
{
    const struct client_request *job = some_request(client, MESSAGE_SUBMIT_JOB, true);
    struct client_request *request = job == NULL || job->fate != FATE_ACCEPTED
                                         ? NULL
                                         : new_request(client, MESSAGE_JOB_CANCEL, 0);
    if (request != NULL) {
        request->about = job->id;
        send_request(client, request);
    }
}

void client_replaces(struct client *client)
{
    const struct client_request *job = some_request(client, MESSAGE_SUBMIT_JOB, true);
    const uint64_t seed = random_u64(&world.dice[DICE_WORK]);
    struct client_request *request = job == NULL || job->fate != FATE_ACCEPTED
                                         ? NULL
                                         : new_request(client, MESSAGE_ORDER_REPLACE, seed);
    if (request != NULL) {
        request->about = job->id;
        request->is_by_value = job->is_by_value;
        send_request(client, request);
    }
}

void client_offers(struct client *client, const struct id128 *device)
{
    struct client_request *request =
        new_request(client, MESSAGE_ASK_PLACE, random_u64(&world.dice[DICE_WORK]));
    if (request != NULL) {
        request->about = *device;
        may_expire(client, request);
        send_request(client, request);
    }
}

void client_reprices(struct client *client, const struct id128 *order)
{
    struct client_request *request =
        new_request(client, MESSAGE_ORDER_REPLACE, random_u64(&world.dice[DICE_WORK]));
    if (request != NULL) {
        request->about = *order;
        send_request(client, request);
    }
}

void client_withdraws(struct client *client, const struct id128 *order)
{
    struct client_request *request = new_request(client, MESSAGE_ORDER_CANCEL, 0);
    if (request != NULL) {
        request->about = *order;
        send_request(client, request);
    }
}

void client_mints(struct client *client, const struct key32 *account)
{
    struct client_request *request =
        new_request(client, MESSAGE_MINT, random_u64(&world.dice[DICE_WORK]));
    if (request != NULL) {
        request->account = *account;
        send_request(client, request);
    }
}

void client_freezes(struct client *client, const struct key32 *account, bool frozen)
{
    struct client_request *request = new_request(client, MESSAGE_FREEZE, frozen ? 1 : 2);
    if (request != NULL) {
        request->account = *account;
        send_request(client, request);
    }
}

void client_halts(struct client *client, bool halted)
{
    struct client_request *request = new_request(client, MESSAGE_HALT, halted ? 1 : 2);
    if (request != NULL) {
        send_request(client, request);
    }
}

static bool is_wrong(const struct exchange_dispute *dispute)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(dispute->bytes, dispute->length, &result, NULL) != CODEC_OK) {
        sim_fail("a result that is held cannot be read");
    }
    const bool wrong = result->n_outputs == 1 && result->outputs[0]->hash.data[3] != 0;
    codec_result_free(&result);
    return wrong;
}

void client_judges(struct client *client)
{
    const struct client_request *job = NULL;
    struct exchange_dispute dispute;
    for (size_t i = 0; job == NULL && i < client->request_count; i++) {
        const struct client_request *request = &client->requests[i];
        if (request->type == MESSAGE_SUBMIT_JOB &&
            exchange_disputes(oracle_exchange(), &request->id, 0, &dispute, 1, NULL) == 1) {
            job = request;
        }
    }
    if (job == NULL) {
        return;
    }
    const struct exchange_judge judge = {.job = job->id,
                                         .index = dispute.index,
                                         .attempt = dispute.attempt,
                                         .result = dispute.result,
                                         .seed = dispute.seed,
                                         .verdict =
                                             is_wrong(&dispute) ? VERDICT_REJECT : VERDICT_ACCEPT};
    struct client_request *request = new_request(client, MESSAGE_JUDGE_RESULT, 0);
    if (request != NULL) {
        request->judge = judge;
        send_request(client, request);
    }
}

void client_sets_bands(struct client *client, bool wide)
{
    struct client_request *request =
        new_request(client, MESSAGE_SET_BANDS, wide ? 0 : random_u64(&world.dice[DICE_WORK]) | 1);
    if (request != NULL) {
        send_request(client, request);
    }
}

void client_invites(struct client *client, const struct id128 *token, int64_t expires_ms)
{
    struct client_request *request =
        new_request(client, MESSAGE_INVITE_CREATE, random_u64(&world.dice[DICE_WORK]));
    if (request != NULL) {
        request->token = *token;
        request->expires_ms = expires_ms;
        send_request(client, request);
    }
}

void client_joins(struct client *client, const struct id128 *token)
{
    struct client_request *request = new_request(client, MESSAGE_JOIN, 0);
    if (request != NULL) {
        request->token = *token;
        request->is_early = !oracle_invited(token);
        send_request(client, request);
    }
}

static void read_something(struct client *client, enum message_type type,
                           const ProtobufCMessage *body)
{
    struct id128 id = entropy_id();
    if (consumer_session_request(client->session, clock_monotonic_ns(), type, &id, body) ==
        CONSUMER_OK) {
        client_notes_read(client, &id);
        client->reads_unanswered++;
    }
}

static void take_event(struct client *client, struct consumer_event *event);

/* Ends the connection now and then, so that the next broker in the list answers the read. */
static void change_broker(struct client *client)
{
    enum { READS_OF_ONE = 3 };
    struct consumer_event event;
    if (client->reads_anywhere && client->read_count % READS_OF_ONE == 0 &&
        contacts_has_choice(consumer_session_contacts(client->session))) {
        consumer_session_unreachable(client->session, &event);
        take_event(client, &event);
    }
}

void client_asks(struct client *client)
{
    if (!client->process.runs) {
        return;
    }
    struct process *before = process_enter(&client->process);
    change_broker(client);
    if (draw(DICE_WORK, 2) == 0) {
        Bourse__V1__BalanceRequest body = BOURSE__V1__BALANCE_REQUEST__INIT;
        read_something(client, MESSAGE_BALANCE_REQUEST, &body.base);
    } else {
        Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
        body.has_limit = true;
        body.limit = 5;
        read_something(client, MESSAGE_JOBS_REQUEST, &body.base);
    }
    turn(client);
    process_leave(before);
}

void client_repeats(struct client *client)
{
    static const enum message_type types[] = {MESSAGE_SUBMIT_JOB, MESSAGE_SUBMIT_JOB,
                                              MESSAGE_JOB_CANCEL, MESSAGE_ORDER_REPLACE,
                                              MESSAGE_ASK_PLACE};
    struct client_request *request =
        some_request(client, types[draw(DICE_WORK, sizeof types / sizeof *types)], true);
    if (request == NULL || !client->process.runs) {
        return;
    }
    struct client_request other = *request;
    other.seed += request->type == MESSAGE_JOB_CANCEL ? 0 : draw(DICE_WORK, 2);
    struct process *before = process_enter(&client->process);
    fault_happened(FAULT_REPEATED);
    request->is_pending = client_sends(client, &other) == CONSUMER_OK;
    turn(client);
    process_leave(before);
}

/* ---------------------------------------------------------------- answers */

/* The exchange remembers the last 256 refusals of an account, and not each is heard. */
enum { REFUSALS_REMEMBERED = 128 };

/* Returns true when no other copy of the refused request may be accepted: the exchange judged the
 * request, and remembers. Codes before NOT_FOUND come from the gateway: they concern the bytes of
 * one copy, or the sender and the moment. */
static bool is_final(const struct client *client, const struct client_request *request)
{
    return request->reject >= REJECT_NOT_FOUND && request->type != MESSAGE_JOIN &&
           client->refusals - request->refused_before < REFUSALS_REMEMBERED;
}

static void on_accepted(struct client *client, const struct consumer_event *event)
{
    struct client_request *request = find_request(client, &event->id);
    uint64_t index;
    if (client->account == 0) { /* what came after a Join may be answered before the Join is */
        (void)oracle_joined(identity_key(client->identity), &client->account);
    }
    if (request != NULL && request->type == MESSAGE_JOIN) {
        client->wants_new_session = !client->wants_new_session && client->account != 0;
    }
    if (!oracle_accepted(client->account, &event->id, &index)) {
        sim_fail("an acceptance reached its client and is not in the log");
    }
    client_knows(event->index);
    client->accepted = event->index > client->accepted ? event->index : client->accepted;
    if (index != event->index) {
        sim_fail("accepted as command %llu, but the log has it as %llu",
                 (unsigned long long)event->index, (unsigned long long)index);
    }
    if (request == NULL) {
        return;
    }
    if (request->fate == FATE_REJECTED && is_final(client, request)) {
        sim_fail("%s was told that %s is refused (%s), and it is accepted", client->process.name,
                 message_name(request->type), reject_name(request->reject));
    }
    request->is_pending = false;
    request->fate = FATE_ACCEPTED;
    request->index = event->index;
}

static bool may_try_again(enum reject_code code)
{
    return code == REJECT_BUSY || code == REJECT_RATE || code == REJECT_UNAVAILABLE ||
           code == REJECT_STORAGE_FULL;
}

static void on_rejected(struct client *client, const struct consumer_event *event)
{
    struct client_request *request = find_request(client, &event->id);
    trace("refused: %d, %s", (int)event->reject, event->text);
    client->refusals++;
    if (request == NULL) {
        return;
    }
    request->is_pending = false;
    uint64_t index;
    /* A copy of an early request may have been refused, which nobody remembers, before another was
     * accepted. */
    if (request->type == MESSAGE_JOIN && !request->is_early && request->fate == FATE_OPEN &&
        !may_try_again(event->reject) &&
        oracle_joined(identity_key(client->identity), &client->account) &&
        oracle_accepted(client->account, &event->id, &index)) {
        sim_fail("%s joined, and is told that it did not: %s", client->process.name, event->text);
    }
    if (request->fate == FATE_OPEN && !may_try_again(event->reject)) {
        request->fate = FATE_REJECTED;
        request->reject = event->reject;
        request->refused_before = client->refusals;
    }
}

static void on_jobs(struct client *client, const struct consumer_event *event)
{
    const Bourse__V1__JobsReply *reply = (const void *)event->body;
    client_checks_read(client, &event->id, reply->index);
    for (size_t i = 0; i < reply->n_jobs; i++) {
        struct id128 id = codec_id(reply->jobs[i]->job);
        struct client_request *request = find_request(client, &id);
        if (request != NULL) {
            request->is_seen = true;
        }
    }
}

static void take_event(struct client *client, struct consumer_event *event)
{
    switch (event->type) {
    case CONSUMER_NOTHING:
        break;
    case CONSUMER_READY:
        trace("is ready");
        ask_again(client);
        break;
    case CONSUMER_ANSWER:
        if (event->answer == CONSUMER_ACCEPTED) {
            on_accepted(client, event);
        } else if (event->answer == CONSUMER_REJECTED) {
            on_rejected(client, event);
        } else {
            client->reads_unanswered -= client->reads_unanswered > 0;
            if (event->message_type == MESSAGE_JOBS_REPLY) {
                on_jobs(client, event);
            }
        }
        break;
    case CONSUMER_JOB:
    case CONSUMER_GONE:
        break;
    case CONSUMER_LOST:
    case CONSUMER_BROKEN:
        trace("lost the broker: %s; again in %.3f s", event->text,
              (double)event->wait_ns / (double)SIM_S);
        client->reconnect_ns = clock_monotonic_ns() + event->wait_ns;
        break;
    }
    consumer_event_clear(event);
}

/* ----------------------------------------------------- the loop, as in consumer/client/client.c */

static void wake(void *context, uint64_t due, uint64_t unused)
{
    struct client *client = context;
    (void)unused;
    if ((int64_t)due == client->due_ns) {
        client->due_ns = INT64_MAX;
        turn(client);
    }
}

static void wake_in(struct client *client, int64_t delay_ns)
{
    int64_t due_ns = world.now_ns + delay_ns;
    if (due_ns < client->due_ns) {
        client->due_ns = due_ns;
        event_in(delay_ns, &client->process, wake, client, (uint64_t)due_ns, 0);
    }
}

static void send_all(struct client *client)
{
    const uint8_t *message;
    size_t length;
    while (client->reconnect_ns == INT64_MAX &&
           consumer_session_outgoing(client->session, &message, &length)) {
        if (!net_send(&client->peer, message, length)) {
            consumer_session_unsent(client->session);
            wake_in(client, draw_time(DICE_NETWORK, SIM_MS, 100 * SIM_MS));
            return;
        }
    }
}

/* Does as consumer/client/join.c: a session that began without an account stays without one. */
static bool renew_session(struct client *client)
{
    consumer_session_destroy(&client->session);
    client->session = client_new_session(client);
    client->wants_new_session = false;
    client->reconnect_ns = 0;
    for (size_t i = 0; i < client->request_count; i++) {
        client->requests[i].is_pending = false;
    }
    return client->session != NULL;
}

static void turn(struct client *client)
{
    int64_t now_ns = clock_monotonic_ns();
    if (client->wants_new_session && !renew_session(client)) {
        client_crash(client);
        return;
    }
    if (now_ns >= client->reconnect_ns) {
        client->reconnect_ns = INT64_MAX;
        client->peer.target = net_host_at(consumer_session_address(client->session));
        net_connect(&client->peer);
        consumer_session_connected(client->session, now_ns, entropy_u64());
    }
    if (client->reconnect_ns == INT64_MAX &&
        now_ns >= consumer_session_deadline_ns(client->session)) {
        struct consumer_event event;
        consumer_session_tick(client->session, now_ns, &event);
        take_event(client, &event);
    }
    send_all(client);
    int64_t until_ns = consumer_session_deadline_ns(client->session);
    until_ns = client->reconnect_ns < until_ns ? client->reconnect_ns : until_ns;
    int64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    wake_in(client, wait_ns < SIM_S ? wait_ns : SIM_S);
}

static void hears(struct peer *peer, const uint8_t *bytes, size_t length)
{
    struct client *client = peer->owner;
    if (client->reconnect_ns != INT64_MAX) {
        return;
    }
    struct consumer_event event;
    consumer_session_incoming(client->session, clock_monotonic_ns(), bytes, length, &event);
    take_event(client, &event);
    turn(client);
}

static void begin_again(void *context, uint64_t a, uint64_t b)
{
    struct client *client = context;
    (void)a;
    (void)b;
    if (!client->process.runs) {
        client_start(client);
    }
}

void client_crash(struct client *client)
{
    trace("%s ends", client->process.name);
    client->session = NULL;
    for (size_t i = 0; i < client->request_count; i++) {
        client->requests[i].is_pending = false;
    }
    process_end(&client->process);
    event_in(draw_time(DICE_FAULTS, 10 * SIM_MS, 5 * SIM_S), NULL, begin_again, client, 0, 0);
}

void client_start(struct client *client)
{
    process_begin(&client->process);
    struct process *before = process_enter(&client->process);
    client->started++;
    client->peer.process = &client->process;
    client->peer.transport = *identity_transport(client->identity);
    client->peer.deliver = hears;
    client->peer.owner = client;
    client->due_ns = INT64_MAX;
    client->reconnect_ns = 0;
    client->reads_unanswered = 0;
    client->wants_new_session = false;
    client->session = client_new_session(client);
    trace("starts");
    if (client->session == NULL) {
        client_crash(client);
    } else {
        turn(client);
    }
    process_leave(before);
}

/* ---------------------------------------------------------------- afterwards */

void client_asks_for_all(struct client *client)
{
    if (!client_is_ready(client)) {
        return;
    }
    struct process *before = process_enter(&client->process);
    ask_again(client);
    for (size_t i = 0; i < client->request_count; i++) {
        const struct client_request *request = &client->requests[i];
        if (request->type == MESSAGE_SUBMIT_JOB && request->fate == FATE_ACCEPTED &&
            !request->is_seen) {
            Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
            body.has_job = true;
            body.job = view(&request->id, sizeof request->id);
            read_something(client, MESSAGE_JOBS_REQUEST, &body.base);
        }
    }
    turn(client);
    process_leave(before);
}
