/* broker/gateway/gateway_internal.h has the state that the gateway's files share; only the
 * gateway's thread uses it.
 *
 * No file outside of broker/gateway/gateway*.c includes this header. */
#ifndef BOURSE_BROKER_GATEWAY_GATEWAY_INTERNAL_H
#define BOURSE_BROKER_GATEWAY_GATEWAY_INTERNAL_H

#include "broker/core/outgoing.h"
#include "broker/gateway/allowance.h"
#include "broker/gateway/gateway.h"
#include "broker/gateway/held.h"
#include "broker/gateway/pauses.h"
#include "broker/gateway/sessions.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct counts {
    uint64_t refused, dropped, lost_sends, sessions, resumed;
};

struct gateway {
    struct gateway_config config;
    pthread_t thread;
    struct sessions *sessions;
    atomic_bool is_draining;
    atomic_uint_fast32_t rate, rate_anonymous; /* the config's, until the operator sets others */
    atomic_uint_fast64_t turns;
    atomic_size_t pending_bytes; /* size of all requests that are inside the broker */
    /* These allowances bound messages without a session, all strangers together, and each account
     * over all its sessions. */
    struct allowance hellos, stranger_hellos, strays, strangers;
    struct allowance_list accounts;
    struct allowance_list greeters; /* Hellos, by account */
    struct held held;               /* commands above their account's budget */
    /* Connections whose large messages are above their account's budget. */
    struct pauses pauses;
    int64_t next_round_ns;
    /* After a loss, clients are asked to come back within this time. */
    uint32_t spread_ms;
    uint8_t *buffer; /* LIMIT_MESSAGE_BYTES, for outgoing messages */
    struct counts counts;
};

/* An incoming message stands here with its sender. */
struct incoming {
    struct router_message message;
    struct envelope envelope;
    const struct directory_account *account; /* NULL: anonymous */
};

/* ---- gateway.c */
/* Returns the rate of all sessions of one account together. */
uint32_t gateway_account_rate(const struct gateway *gateway);

/* ---- gateway_workers.c */
/* Tells the exchange about providers that came, went or fell silent, as far as the queues have
 * room. */
void gateway_tell_presence(struct gateway *gateway);
/* Treats the provider like one that fell silent: its asks go, and its agent greets again. The asks
 * that it places then are looked at anew. Does nothing when a queue inside is full. */
void gateway_doubt(struct gateway *gateway, uint32_t account);
/* Frees the places of ended sessions, as far as the core can be told. */
void gateway_let_all_go(struct gateway *gateway);
/* Frees the place of one ended session, once the core is told. */
void gateway_let_go(struct gateway *gateway, struct session *session);
/* Passes a message to its worker. Returns false when a queue inside is full and nothing was passed
 * on. With `waits` the command is held until its account has earned it. */
bool gateway_pass_on(struct gateway *gateway, const struct incoming *in,
                     const struct session *session, bool waits);
/* Passes held commands on, as far as their accounts have earned them and the workers have room. */
void gateway_pass_held(struct gateway *gateway, int64_t now_ns);
/* Returns the steps that a command costs before its work is known. */
int64_t gateway_cost_of(enum message_type type, size_t bytes);

/* ---- gateway_greetings.c */
void gateway_hello(struct gateway *gateway, const struct incoming *in);
/* Sends the Welcome of a session that goes on, with the last number that its client has seen.
 * Missed messages follow it. Returns false when the Welcome is not sent. */
bool gateway_welcome_back(struct gateway *gateway, struct session *session);

/* ---- gateway_following.c */
/* Answers a message that a broker that follows does not take, with the leader's address. Returns
 * false when the message is to be taken like a leader's. */
bool gateway_redirects(struct gateway *gateway, const struct incoming *in);
/* Tells the session, before an answer of a broker that follows, of which state the answer is. */
void gateway_tell_state(struct gateway *gateway, struct session *session,
                        const struct outgoing *answer);
/* Says in a Welcome that this broker follows, and which state it has. Does nothing for a leader. */
void gateway_fill_following(const struct gateway *gateway, Bourse__V1__Welcome *body);

/* ---- gateway_sending.c */
int64_t gateway_log_time_ms(const struct gateway *gateway);
/* Puts one numbered message on the session's connection. Returns false when it is not sent. */
bool gateway_put_on_wire(struct gateway *gateway, struct session *session, uint64_t sequence,
                         const struct outgoing *outgoing);
/* Sends messages that the connection has not taken yet, oldest first, until the connection is
 * full. */
void gateway_catch_up(struct gateway *gateway, struct session *session);
/* Sends the next message of the session, or keeps it for later. Takes the body over. */
void gateway_send(struct gateway *gateway, struct session *session, struct outgoing *outgoing);
/* Sends an answer outside of any session. It may get lost without harm. */
void gateway_send_stray(struct gateway *gateway, const struct incoming *in,
                        const struct outgoing *outgoing);
void gateway_send_body(struct gateway *gateway, struct session *session, enum message_type type,
                       const struct id128 *id, const ProtobufCMessage *body);
/* Notes a refusal for the audit log; strangers have no account and are left out. */
void gateway_note_refused(struct gateway *gateway, const struct incoming *in,
                          enum reject_code code);
/* Refuses a message because the journal takes no entry. */
void gateway_refuse_quorum(struct gateway *gateway, const struct incoming *in,
                           struct session *session);
/* Says the refusal NO_QUORUM to a client that does not know it, where that is true: a command that
 * may be done later stays without an answer, and the client asks. */
void gateway_say_unavailable(struct gateway *gateway, struct session *session,
                             const struct outgoing *refusal);
/* Sends a refusal, on the session if there is one. Unknown keys get no answer and only a counter,
 * and so does a flood of messages outside of any session. */
void gateway_refuse(struct gateway *gateway, const struct incoming *in, struct session *session,
                    enum reject_code code, const char *field, int64_t value, int64_t limit);

#endif
