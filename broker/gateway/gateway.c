#include "broker/gateway/gateway.h"

#include "base/checked.h"
#include "broker/core/outgoing.h"
#include "broker/core/translate.h"
#include "broker/fatal.h"
#include "broker/gateway/gateway_internal.h"
#include "broker/gateway/presence.h"
#include "broker/gateway/sessions.h"
#include "broker/storage/etcd/succession.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <zmq.h>

enum {
    RECEIVE_BATCH = 256,
    SEND_BATCH = 1024,
    HELLO_SPREAD_RATE = 200, /* a second: the rate at which Welcome lets clients come back */
    ACCOUNT_RATES = 4,       /* the account's rate, in rates of one session */
    STRANGERS_RATES = 32,    /* the rate of all strangers, in rates of one */
    HELD_LOOK_MS = 1,        /* interval between looks at held commands */
    PAUSED_LEAST_BYTES = 16 << 10,
    PAUSED_MOST_MS = 100, /* pings and heartbeats of the connection wait as well */
};

/* ---------------------------------------------------------------- session messages */

static void goodbye(struct gateway *gateway, struct session *session)
{
    if (session->role == SESSION_PROVIDER && session->account != EXCHANGE_NO_ACCOUNT &&
        presence_session(gateway->sessions, session->account) == session->number) {
        presence_goodbye(gateway->sessions, session->account);
        gateway_tell_presence(gateway);
    }
    sessions_close(session);
}

static void heartbeat(struct gateway *gateway, struct session *session)
{
    static const struct id128 no_id;
    Bourse__V1__Heartbeat body = BOURSE__V1__HEARTBEAT__INIT;
    body.has_sequence = true;
    body.sequence = session->heard_sequence;
    body.has_spread_ms = true;
    body.spread_ms = gateway->spread_ms;
    gateway_send_body(gateway, session, MESSAGE_HEARTBEAT, &no_id, &body.base);
}

/* ---------------------------------------------------------------- checks of a head */

struct refusal {
    enum reject_code code;
    const char *field;
    int64_t value, limit;
};

/* Returns true when the message must not be passed on, because the journal takes no entry at
 * present, or took none for so long that another broker may lead. The core answers reads from the
 * state that the journal has. */
static bool lacks_quorum(const struct gateway *gateway, enum message_type type)
{
    const struct quorum_note *note = gateway->config.quorum;
    if (note == NULL) {
        return false;
    }
    if (atomic_load(&note->is_away)) {
        return translate_is_command(type);
    }
    return quorum_note_age_ms(note, clock_monotonic_ns()) > SUCCESSION_ALIVE_MS &&
           !disk_reserve_admits(DISK_RESERVE_STUCK, type);
}

/* Checks all that the head, the account and the clock can tell. */
static struct refusal check(struct gateway *gateway, const struct incoming *in)
{
    const struct envelope *envelope = &in->envelope;
    enum message_type type = (enum message_type)envelope->type;
    unsigned roles = message_roles(type);
    if (roles == 0 || message_is_of_blobs(type)) {
        return (struct refusal){REJECT_TYPE, "type", envelope->type, 0};
    }
    bool allowed =
        (roles & ROLE_ANYONE) != 0 || (in->account != NULL && (in->account->roles & roles) != 0);
    if (!allowed) {
        return (struct refusal){REJECT_ROLE, "type", in->account == NULL ? 0 : in->account->roles,
                                roles};
    }
    if (envelope->body_length > message_body_cap(type)) {
        return (struct refusal){REJECT_TOO_LARGE, "body", envelope->body_length,
                                message_body_cap(type)};
    }
    if (message_must_be_signed(type) && !envelope->is_signed) {
        return (struct refusal){REJECT_NOT_SIGNED, "signature", 0, 0};
    }
    if (id128_is_zero(&envelope->id)) {
        return (struct refusal){REJECT_MALFORMED, "id", 0, 0};
    }
    if (atomic_load(&gateway->is_draining)) {
        return (struct refusal){REJECT_UNAVAILABLE, "", 0, 0};
    }
    if (!disk_reserve_admits(disk_reserve_state(gateway->config.reserve), type)) {
        return (struct refusal){REJECT_STORAGE_FULL, "", 0, 0};
    }
    if (lacks_quorum(gateway, type)) {
        return (struct refusal){REJECT_NO_QUORUM, "journal", 0, 0};
    }
    if (!translate_is_command(type)) {
        return (struct refusal){.code = REJECT_NONE};
    }
    int64_t now_ms = gateway_log_time_ms(gateway);
    if (envelope->created_ms < now_ms - LIMIT_ID_AGE_MS) {
        return (struct refusal){REJECT_ID_EXPIRED, "created_ms", envelope->created_ms,
                                now_ms - LIMIT_ID_AGE_MS};
    }
    if (envelope->created_ms > now_ms + LIMIT_ID_AHEAD_MS) {
        return (struct refusal){REJECT_ID_EXPIRED, "created_ms", envelope->created_ms,
                                now_ms + LIMIT_ID_AHEAD_MS};
    }
    return (struct refusal){.code = REJECT_NONE};
}

static void heard(struct gateway *gateway, struct session *session, const struct envelope *envelope,
                  int64_t now_ns)
{
    session->heard_ns = now_ns;
    if (envelope->sequence > session->heard_sequence) {
        session->heard_sequence = envelope->sequence;
    }
    if (session->role == SESSION_PROVIDER &&
        presence_session(gateway->sessions, session->account) == session->number) {
        presence_heard(gateway->sessions, session->account, now_ns);
    }
}

/* One refusal a second goes out, and the rest of a flood gets no answer. */
static void over_rate(struct gateway *gateway, const struct incoming *in, struct session *session,
                      const char *field, uint32_t rate)
{
    if (allowance_tell(&session->allowance, session->heard_ns)) {
        gateway_refuse(gateway, in, session, REJECT_RATE, field, (int64_t)rate + 1, rate);
    } else {
        gateway->counts.dropped++;
        gateway_note_refused(gateway, in, REJECT_RATE);
    }
}

uint32_t gateway_account_rate(const struct gateway *gateway)
{
    return (uint32_t)atomic_load(&gateway->rate) * ACCOUNT_RATES;
}

static bool within_rates(struct gateway *gateway, const struct incoming *in,
                         struct session *session, int64_t now_ns)
{
    bool is_known = in->account != NULL;
    uint32_t rate = (uint32_t)atomic_load(is_known ? &gateway->rate : &gateway->rate_anonymous);
    if (!allowance_take(&session->allowance, rate, now_ns)) {
        over_rate(gateway, in, session, "messages_per_second", rate);
        return false;
    }
    struct allowance *whole =
        is_known ? allowance_list_of(&gateway->accounts, in->account->number) : &gateway->strangers;
    uint32_t whole_rate = is_known ? gateway_account_rate(gateway) : rate * STRANGERS_RATES;
    if (whole != NULL && !allowance_take(whole, whole_rate, now_ns)) {
        over_rate(gateway, in, session, "account_messages_per_second", whole_rate);
        return false;
    }
    return true;
}

/* A client's heartbeat says what it has seen; those messages are dropped. */
static void acknowledge(struct gateway *gateway, struct session *session,
                        const struct envelope *envelope)
{
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    if (codec_decode(MESSAGE_HEARTBEAT, envelope->body, envelope->body_length, &body, &error) ==
        CODEC_OK) {
        const Bourse__V1__Heartbeat *said = (const void *)body;
        if (said->has_sequence) {
            sessions_seen(gateway->sessions, session, said->sequence);
        }
        codec_free(&body);
    }
}

/* A large message costs its way through the cipher, answered or not. The sender of a dropped one
 * has to wait with the next until it has earned as much. */
static void pause_sender(struct gateway *gateway, const struct incoming *in, int64_t steps,
                         int64_t now_ns)
{
    if (in->message.length < PAUSED_LEAST_BYTES || steps <= 0) {
        return;
    }
    const int64_t cost = (int64_t)in->message.length / BUDGET_STORED_PER_STEP;
    const int64_t wait_ms = cost * 1000 / steps;
    const int64_t most_ms = wait_ms < PAUSED_MOST_MS ? wait_ms : PAUSED_MOST_MS;
    pauses_begin(&gateway->pauses, gateway->config.router, now_ns + most_ms * NS_PER_MS);
}

static void over_budget(struct gateway *gateway, const struct incoming *in, struct session *session,
                        const struct budget_asker *asker, int64_t now_ns)
{
    const struct budget_refusal refusal = budget_refuse(gateway->config.budget, asker, now_ns);
    pause_sender(gateway, in, refusal.limit, now_ns);
    if (refusal.is_told) {
        gateway_refuse(gateway, in, session, REJECT_RATE, refusal.field, refusal.value,
                       refusal.limit);
    } else {
        gateway->counts.dropped++;
        gateway_note_refused(gateway, in, REJECT_RATE);
    }
}

/* The core looks at a read again, because a read is not charged yet. A command is charged here, or
 * waits here. */
static void pass_within_budget(struct gateway *gateway, const struct incoming *in,
                               struct session *session, int64_t now_ns)
{
    struct budget *budget = gateway->config.budget;
    const enum message_type type = (enum message_type)in->envelope.type;
    const bool is_command = translate_is_command(type);
    const struct budget_asker asker = {session->account, session->number,
                                       is_command ? BUDGET_COMMANDS : BUDGET_READS};
    const bool admits = budget == NULL || budget_admits(budget, &asker, now_ns);
    const bool waits = is_command && (!admits || held_of(&gateway->held, session->account) != NULL);
    if (!admits && !is_command) {
        over_budget(gateway, in, session, &asker, now_ns);
    } else if (gateway_pass_on(gateway, in, session, waits)) {
        if (is_command && !waits && budget != NULL) {
            budget_charge(budget, &asker, gateway_cost_of(type, in->message.length), now_ns);
        }
    } else if (waits) {
        over_budget(gateway, in, session, &asker, now_ns);
    } else { /* a queue inside or its bytes are full */
        gateway_refuse(gateway, in, session, REJECT_BUSY, "", 0, 0);
    }
}

static void in_session(struct gateway *gateway, const struct incoming *in, struct session *session)
{
    int64_t now_ns = clock_monotonic_ns();
    heard(gateway, session, &in->envelope, now_ns);
    if (!within_rates(gateway, in, session, now_ns)) {
        return;
    }
    if (in->envelope.type == MESSAGE_HEARTBEAT) {
        acknowledge(gateway, session, &in->envelope);
        if (now_ns - session->sent_ns >= gateway->config.heartbeat_ms * NS_PER_MS / 2) {
            heartbeat(gateway, session);
        }
        return;
    }
    if (in->envelope.type == MESSAGE_GOODBYE) {
        goodbye(gateway, session);
        return;
    }
    struct refusal refusal = check(gateway, in);
    if (refusal.code == REJECT_NO_QUORUM) {
        gateway_refuse_quorum(gateway, in, session);
    } else if (refusal.code != REJECT_NONE) {
        gateway_refuse(gateway, in, session, refusal.code, refusal.field, refusal.value,
                       refusal.limit);
    } else {
        pass_within_budget(gateway, in, session, now_ns);
    }
}

static void receive(struct gateway *gateway, const struct router_message *message)
{
    struct incoming in = {.message = *message,
                          .account =
                              directory_transport(gateway->config.directory, &message->client)};
    switch (envelope_read(message->bytes, message->length, LIMIT_MESSAGE_BYTES, &in.envelope)) {
    case ENVELOPE_OK:
        break;
    case ENVELOPE_BAD_VERSION:
        gateway_refuse(gateway, &in, NULL, REJECT_VERSION, "version", 0, ENVELOPE_VERSION);
        return;
    case ENVELOPE_TOO_LARGE:
        gateway_refuse(gateway, &in, NULL, REJECT_TOO_LARGE, "body", 0, LIMIT_MESSAGE_BYTES);
        return;
    case ENVELOPE_SHORT:
    case ENVELOPE_LONG:
    case ENVELOPE_BAD_MAGIC:
    case ENVELOPE_BAD_FLAGS:
        gateway_refuse(gateway, &in, NULL, REJECT_MALFORMED, "envelope", 0, 0);
        return;
    }
    if (gateway_redirects(gateway, &in)) {
        return;
    }
    if (in.envelope.type == MESSAGE_HELLO) {
        gateway_hello(gateway, &in);
        return;
    }
    struct session *session =
        sessions_of(gateway->sessions, in.envelope.session, &message->route, &message->client);
    if (session == NULL) {
        gateway_refuse(gateway, &in, NULL, REJECT_SESSION, "session", 0, 0);
    } else {
        in_session(gateway, &in, session);
    }
}

/* ---------------------------------------------------------------- releases */

static void learn_account(struct gateway *gateway, const struct directory_account *account)
{
    if (!directory_put(gateway->config.directory, account)) {
        fatal("out of memory");
    }
    size_t position = 0;
    for (struct session *session;
         (session = sessions_next(gateway->sessions, &position)) != NULL;) {
        if (key32_equal(&session->transport, &account->transport)) {
            if (!sessions_know(gateway->sessions, session, account->number)) {
                fatal("out of memory"); /* the account has just redeemed an invitation */
            }
            if (account->frozen && session->role == SESSION_PROVIDER) {
                /* Its asks are gone: the agent greets again until it may provide. */
                sessions_close(session);
            }
        }
    }
}

static void release(struct gateway *gateway, struct outgoing *outgoing)
{
    struct session *session = NULL;
    if (outgoing->refused != REJECT_NONE && outgoing->account != EXCHANGE_NO_ACCOUNT) {
        gateway->counts.refused++;
        refusals_note(gateway->config.refusals, outgoing->account, outgoing->refused,
                      outgoing->refused_type);
    }
    switch (outgoing->kind) {
    case OUTGOING_REPLY:
    case OUTGOING_EVENT:
        session = sessions_number(gateway->sessions, outgoing->session);
        break;
    case OUTGOING_PUSH:
        session = sessions_number(gateway->sessions,
                                  presence_session(gateway->sessions, outgoing->account));
        break;
    case OUTGOING_ACCOUNT:
        learn_account(gateway, &outgoing->opened);
        return;
    case OUTGOING_INDEX:
        gateway->config.index = outgoing->index;
        gateway->config.index_log_ns = outgoing->log_time_ns;
        return;
    case OUTGOING_DOUBT:
        gateway_doubt(gateway, outgoing->account);
        return;
    case OUTGOING_SERVE:
    case OUTGOING_UNSERVE:
    case OUTGOING_GIVEN:
    case OUTGOING_NAMED:
    case OUTGOING_FORGET:
        return;
    }
    if (session != NULL && outgoing->refused == REJECT_NO_QUORUM && !session->waits) {
        gateway_say_unavailable(gateway, session, outgoing);
    } else if (session != NULL) { /* a client that left asks again */
        gateway_tell_state(gateway, session, outgoing);
        gateway_send(gateway, session, outgoing);
    }
}

static void release_batch(struct gateway *gateway)
{
    for (int i = 0; i < SEND_BATCH; i++) {
        struct queue_link *link = queue_pop(gateway->config.releases, 0);
        if (link == NULL) {
            return;
        }
        struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
        release(gateway, outgoing);
        outgoing_destroy(&outgoing);
    }
}

/* ---------------------------------------------------------------- the loop */

static void notice_silence(struct sessions *sessions, struct session *session, int64_t silent_ns,
                           int64_t beat_ns)
{
    if (session->is_closing) {
        return;
    }
    if (silent_ns > SESSIONS_RESUME_HEARTBEATS * beat_ns) {
        sessions_close(session);
    } else if (silent_ns > SESSIONS_SILENT_HEARTBEATS * beat_ns && !session->is_detached) {
        sessions_detach(session);
        presence_lost(sessions, session);
    }
}

/* Clients of a small market come back at once, those of a large one over some seconds. */
static uint32_t spread_ms(uint32_t sessions)
{
    uint64_t ms = (uint64_t)sessions * 1000 / HELLO_SPREAD_RATE;
    return ms < LIMIT_SPREAD_MS ? (uint32_t)ms : LIMIT_SPREAD_MS;
}

/* Sends heartbeats, notices silence, frees places. */
static void make_round(struct gateway *gateway, int64_t now_ns)
{
    int64_t beat_ns = gateway->config.heartbeat_ms * NS_PER_MS;
    /* A broker that was stopped has not heard its clients: it reads their messages first. */
    bool was_away = now_ns - gateway->next_round_ns > beat_ns;
    size_t position = 0;
    for (struct session *session;
         (session = sessions_next(gateway->sessions, &position)) != NULL;) {
        if (!was_away) {
            notice_silence(gateway->sessions, session, now_ns - session->heard_ns, beat_ns);
        }
        if (session->is_closing) {
            gateway_let_go(gateway, session);
            continue;
        }
        gateway_catch_up(gateway, session);
        /* A client that beats in time has its answer already, and needs no second one. */
        if (!session->is_detached && now_ns - session->sent_ns >= beat_ns + beat_ns / 4) {
            heartbeat(gateway, session);
        }
    }
    if (!was_away) {
        gateway_tell_presence(gateway);
    }
    gateway->spread_ms = spread_ms(sessions_count(gateway->sessions));
    gateway->next_round_ns = now_ns + beat_ns / 4;
}

static void *run(void *argument)
{
    struct gateway *gateway = argument;
    process_name_thread("gateway");
    zmq_pollitem_t items[] = {
        {.socket = router_socket(gateway->config.router), .events = ZMQ_POLLIN},
        {.fd = queue_descriptor(gateway->config.releases), .events = ZMQ_POLLIN},
    };
    while (!queue_finished(gateway->config.releases)) {
        int64_t now_ns = clock_monotonic_ns();
        atomic_fetch_add(&gateway->turns, 1);
        if (now_ns >= gateway->next_round_ns) {
            make_round(gateway, now_ns);
        }
        int64_t wait_ms = (gateway->next_round_ns - now_ns) / NS_PER_MS + 1;
        if (gateway->held.count > 0) {
            gateway_pass_held(gateway, now_ns);
            wait_ms = wait_ms < HELD_LOOK_MS ? wait_ms : HELD_LOOK_MS;
        }
        pauses_end(&gateway->pauses, now_ns);
        if (gateway->pauses.count > 0) {
            wait_ms = wait_ms < HELD_LOOK_MS ? wait_ms : HELD_LOOK_MS;
        }
        int ready = zmq_poll(items, 2, (long)(wait_ms > 0 ? wait_ms : 0));
        if (ready < 0 && errno != EINTR) {
            fatal("the control port cannot be polled: %s", zmq_strerror(errno));
        }
        /* Releases come first: the next message may need an account that they bring. */
        release_batch(gateway);
        struct router_message message;
        for (int i = 0;
             i < RECEIVE_BATCH && router_receive(gateway->config.router, 0, &message) == 1; i++) {
            receive(gateway, &message);
        }
    }
    return NULL;
}

static void expect_providers(struct gateway *gateway)
{
    int64_t now_ns = clock_monotonic_ns();
    for (uint32_t number = 0; number < directory_count(gateway->config.directory); number++) {
        const struct directory_account *account =
            directory_number(gateway->config.directory, number);
        if (account != NULL && (account->roles & ROLE_PROVIDER) != 0 &&
            !presence_expect(gateway->sessions, number, now_ns)) {
            fatal("out of memory");
        }
    }
}

struct gateway *gateway_start(const struct gateway_config *config)
{
    assert(config->worker_count > 0 && config->worker_count <= GATEWAY_WORKERS_MAX);
    struct gateway *gateway = calloc(1, sizeof *gateway);
    if (gateway == NULL) {
        fatal("the gateway cannot start: out of memory");
    }
    gateway->config = *config;
    gateway_set_rates(gateway, config->rate, config->rate_anonymous);
    gateway->sessions = sessions_create(entropy_u64());
    gateway->buffer = malloc(LIMIT_MESSAGE_BYTES);
    if (gateway->sessions == NULL || gateway->buffer == NULL) {
        fatal("the gateway cannot start: out of memory");
    }
    if (config->following == NULL) { /* else the leader hears them */
        expect_providers(gateway);
    }
    if (pthread_create(&gateway->thread, NULL, run, gateway) != 0) {
        fatal("the gateway cannot start: no thread");
    }
    return gateway;
}

void gateway_set_rates(struct gateway *gateway, uint32_t rate, uint32_t rate_anonymous)
{
    atomic_store(&gateway->rate, rate);
    atomic_store(&gateway->rate_anonymous, rate_anonymous);
}

uint64_t gateway_turns(const struct gateway *gateway)
{
    return atomic_load(&gateway->turns);
}

void gateway_drain(struct gateway *gateway)
{
    atomic_store(&gateway->is_draining, true);
}

void gateway_stop(struct gateway **self)
{
    struct gateway *gateway = *self;
    if (gateway != NULL) {
        queue_close(gateway->config.releases);
        pthread_join(gateway->thread, NULL);
        log_info("sessions %" PRIu64 ", resumed %" PRIu64 ", refused %" PRIu64 ", dropped %" PRIu64
                 ", unsent %" PRIu64,
                 gateway->counts.sessions, gateway->counts.resumed, gateway->counts.refused,
                 gateway->counts.dropped, gateway->counts.lost_sends);
        held_fini(&gateway->held);
        sessions_destroy(&gateway->sessions);
        allowance_list_fini(&gateway->accounts);
        allowance_list_fini(&gateway->greeters);
        directory_destroy(&gateway->config.directory);
        free(gateway->buffer);
        free(gateway);
        *self = NULL;
    }
}
