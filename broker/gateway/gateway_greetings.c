/* This part of the gateway answers Hello. It opens sessions, resumes them, and says Welcome. */
#include "broker/gateway/gateway_internal.h"

#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "broker/gateway/presence.h"
#include "exchange/exchange.h"
#include "protocol/limits.h"
#include "runtime/clock.h"

/* These rates are per second. Strangers and each account have rates of their own. So neither
 * strangers nor one member can keep the other members from coming back. */
enum {
    HELLO_RATE = 2000,       /* of all accounts */
    BEHIND_LEAST_MS = 1000,  /* log time that is behind by less is not worth a word */
    HELLO_RATE_ACCOUNT = 32, /* a burst is SESSIONS_PER_KEY: all sessions come back at once */
    HELLO_RATE_STRANGERS = 200,
};

/* ---------------------------------------------------------------- Welcome */

/* Fills a Welcome. The body borrows from `account` unless the session is a stranger's. */
static void fill_welcome(struct gateway *gateway, const struct session *session,
                         struct directory_account *account, Bourse__V1__Welcome *body)
{
    body->version = ENVELOPE_VERSION;
    body->cluster = (ProtobufCBinaryData){.data = gateway->config.cluster.bytes, .len = 16};
    body->session = session->number;
    body->heartbeat_ms = (uint32_t)gateway->config.heartbeat_ms;
    body->log_time_ms = gateway_log_time_ms(gateway);
    body->log_index = gateway->config.index;
    body->log_origin = gateway->config.origin;
    body->log_key = (ProtobufCBinaryData){.data = gateway->config.log_key.bytes, .len = 32};
    /* The cast drops const, which protobuf-c does not know. */
    body->blob_endpoint = (char *)(uintptr_t)gateway->config.blob_endpoint;
    body->max_message_bytes = LIMIT_MESSAGE_BYTES;
    body->has_as_of_ns = true;
    body->as_of_ns = gateway->config.index_log_ns;
    body->has_spread_ms = true;
    body->spread_ms = gateway->spread_ms;
    const int64_t behind_ms = clock_wall_ns() / NS_PER_MS - body->log_time_ms;
    body->has_behind_ms = behind_ms >= BEHIND_LEAST_MS;
    body->behind_ms = behind_ms;
    const struct quorum_note *note = gateway->config.quorum;
    body->has_stale_ms = note != NULL && atomic_load(&note->is_away);
    body->stale_ms = body->has_stale_ms ? quorum_note_age_ms(note, clock_monotonic_ns()) : 0;
    gateway_fill_following(gateway, body);
    if (account->number != EXCHANGE_NO_ACCOUNT) {
        body->has_account = true;
        body->account = (ProtobufCBinaryData){.data = account->key.bytes, .len = 32};
        body->account_name = account->name;
        body->has_roles = true;
        body->roles = account->roles;
    }
}

/* Welcomes a new session with its message 1. `was_asked`: the client wanted to resume a session,
 * which cannot go on. */
static void welcome_anew(struct gateway *gateway, const struct incoming *in,
                         struct session *session, bool was_asked)
{
    Bourse__V1__Welcome body = BOURSE__V1__WELCOME__INIT;
    struct directory_account account = {.number = EXCHANGE_NO_ACCOUNT};
    account = in->account != NULL ? *in->account : account;
    fill_welcome(gateway, session, &account, &body);
    body.has_gap = was_asked;
    body.gap = REJECT_GAP_TOO_OLD;
    gateway_send_body(gateway, session, MESSAGE_WELCOME, &in->envelope.id, &body.base);
}

bool gateway_welcome_back(struct gateway *gateway, struct session *session)
{
    Bourse__V1__Welcome body = BOURSE__V1__WELCOME__INIT;
    struct directory_account account =
        *directory_number(gateway->config.directory, session->account);
    fill_welcome(gateway, session, &account, &body);
    body.has_resumed = body.has_missed = body.resumed = true;
    /* The number is at most RESEND_BUFFER_MESSAGES. */
    body.missed = (uint32_t)(session->resend.last - session->wire_sequence);
    struct outgoing *outgoing = outgoing_message(OUTGOING_REPLY, MESSAGE_WELCOME, &body.base);
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    outgoing->id = session->hello;
    session->is_welcome_due =
        !gateway_put_on_wire(gateway, session, session->wire_sequence, outgoing);
    outgoing_destroy(&outgoing);
    return !session->is_welcome_due;
}

/* ---------------------------------------------------------------- Hello */

static void refuse_session(struct gateway *gateway, const struct incoming *in,
                           enum sessions_status status)
{
    int64_t most = status == SESSIONS_FULL_FOR_KEY     ? SESSIONS_PER_KEY
                   : status == SESSIONS_FULL_ANONYMOUS ? SESSIONS_ANONYMOUS
                                                       : SESSIONS_MAX;
    gateway_refuse(gateway, in, NULL, REJECT_LIMIT, "sessions", most + 1, most);
}

/* The struct holds the content of a Hello. */
struct hello {
    enum session_role role;
    uint32_t version;
    bool has_resume;
    bool waits;
    uint64_t session, sequence;
};

static enum sessions_status open_anew(struct gateway *gateway, const struct incoming *in,
                                      enum session_role role, int64_t now_ns, struct session **ret)
{
    uint32_t number = in->account == NULL ? EXCHANGE_NO_ACCOUNT : in->account->number;
    enum sessions_status status = sessions_open(gateway->sessions, &in->message.route,
                                                &in->message.client, number, role, now_ns, ret);
    if (status == SESSIONS_FULL) { /* ended sessions may hold places */
        gateway_let_all_go(gateway);
        status = sessions_open(gateway->sessions, &in->message.route, &in->message.client, number,
                               role, now_ns, ret);
    }
    return status;
}

static void greet(struct gateway *gateway, const struct incoming *in, const struct hello *said)
{
    int64_t now_ns = clock_monotonic_ns();
    uint32_t number = in->account == NULL ? EXCHANGE_NO_ACCOUNT : in->account->number;
    struct session *session = NULL;
    if (said->has_resume) {
        session =
            sessions_resume(gateway->sessions, said->session, said->sequence, &in->message.route,
                            &in->message.client, number, said->role, now_ns);
    }
    bool is_resumed = session != NULL;
    if (!is_resumed) {
        enum sessions_status status = open_anew(gateway, in, said->role, now_ns, &session);
        if (status != SESSIONS_OK) {
            refuse_session(gateway, in, status);
            return;
        }
    }
    session->waits = said->waits;
    gateway->counts.sessions++;
    gateway->counts.resumed += is_resumed;
    bool may_provide = in->account != NULL && (in->account->roles & ROLE_PROVIDER) != 0;
    if (said->role == SESSION_PROVIDER && may_provide) {
        /* Leases go on: the agent states which it holds, and both sides settle the difference. */
        (void)presence_hello(gateway->sessions, session->account, session->number, now_ns);
        gateway_tell_presence(gateway);
    }
    if (is_resumed) {
        session->is_welcome_due = true;
        session->hello = in->envelope.id;
        gateway_catch_up(gateway, session);
    } else {
        welcome_anew(gateway, in, session, said->has_resume);
    }
}

/* Refuses a Hello above a rate; `greeter` allows one refusal a second. */
static void refuse_greeting(struct gateway *gateway, const struct incoming *in,
                            struct allowance *greeter, const char *field, uint32_t rate,
                            int64_t now_ns)
{
    if (allowance_tell(greeter, now_ns)) {
        gateway_refuse(gateway, in, NULL, REJECT_RATE, field, (int64_t)rate + 1, rate);
    } else {
        gateway->counts.dropped++;
        gateway_note_refused(gateway, in, REJECT_RATE);
    }
}

/* The account's own rate comes first: a Hello above it takes nothing from the others' rate. */
static bool may_greet(struct gateway *gateway, const struct incoming *in, int64_t now_ns)
{
    if (in->account == NULL) {
        bool may = allowance_take(&gateway->stranger_hellos, HELLO_RATE_STRANGERS, now_ns);
        gateway->counts.dropped += !may;
        return may;
    }
    struct allowance *greeter = allowance_list_of(&gateway->greeters, in->account->number);
    if (greeter == NULL) {
        gateway->counts.dropped++;
        return false;
    }
    if (!allowance_take(greeter, HELLO_RATE_ACCOUNT, now_ns)) {
        refuse_greeting(gateway, in, greeter, "hellos_per_second", HELLO_RATE_ACCOUNT, now_ns);
        return false;
    }
    if (!allowance_take(&gateway->hellos, HELLO_RATE, now_ns)) {
        refuse_greeting(gateway, in, greeter, "all_hellos_per_second", HELLO_RATE, now_ns);
        return false;
    }
    return true;
}

/* Messages sent again after a small Hello count as messages of the account, one for each KiB. */
static bool may_resume(struct gateway *gateway, const struct incoming *in, uint64_t number,
                       int64_t now_ns)
{
    const struct session *session = sessions_number(gateway->sessions, number);
    if (in->account == NULL || session == NULL || session->account != in->account->number) {
        return true; /* the session will not go on */
    }
    uint32_t rate = gateway_account_rate(gateway);
    uint32_t count = (uint32_t)(session->resend.bytes >> 10);
    struct allowance *whole = allowance_list_of(&gateway->accounts, in->account->number);
    if (whole != NULL && allowance_take_many(whole, rate, count < rate ? count : rate, now_ns)) {
        return true;
    }
    struct allowance *greeter = allowance_list_of(&gateway->greeters, in->account->number);
    if (greeter != NULL) { /* may_greet has made it */
        refuse_greeting(gateway, in, greeter, "account_messages_per_second", rate, now_ns);
    }
    return false;
}

void gateway_hello(struct gateway *gateway, const struct incoming *in)
{
    int64_t now_ns = clock_monotonic_ns();
    if (!may_greet(gateway, in, now_ns)) {
        return;
    }
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    if (codec_decode(MESSAGE_HELLO, in->envelope.body, in->envelope.body_length, &body, &error) !=
        CODEC_OK) {
        gateway_refuse(gateway, in, NULL, REJECT_MALFORMED, error.field, error.value, error.limit);
        return;
    }
    const Bourse__V1__Hello *wire = (const void *)body;
    const struct hello said = {
        .role =
            wire->has_role && wire->role == SESSION_PROVIDER ? SESSION_PROVIDER : SESSION_CONSUMER,
        .version = wire->version,
        .waits = wire->has_waits && wire->waits,
        .has_resume = wire->has_resume_session && wire->has_resume_sequence,
        .session = wire->resume_session,
        .sequence = wire->resume_sequence,
    };
    codec_free(&body);
    if (said.version < ENVELOPE_VERSION) {
        gateway_refuse(gateway, in, NULL, REJECT_VERSION, "version", said.version,
                       ENVELOPE_VERSION);
        return;
    }
    if (!said.has_resume || may_resume(gateway, in, said.session, now_ns)) {
        greet(gateway, in, &said);
    }
}
