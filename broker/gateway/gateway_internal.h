/* broker/gateway/gateway_internal.h - the gateway inside: what its files share, which is its thread's
 * alone.
 *
 * Nothing outside of broker/gateway*.c includes this. */
#ifndef BOURSE_BROKER_GATEWAY_GATEWAY_INTERNAL_H
#define BOURSE_BROKER_GATEWAY_GATEWAY_INTERNAL_H

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
    atomic_size_t pending_bytes; /* of requests that are somewhere inside */
    /* What has no session yet, or none any more; all strangers together; and each account over all
     * its sessions. */
    struct allowance hellos, stranger_hellos, strays, strangers;
    struct allowances accounts;
    struct allowances greeters; /* by account: Hellos */
    struct held held;           /* commands above their account's budget */
    struct pauses pauses;       /* connections whose large messages are above it */
    int64_t next_round_ns;
    uint32_t spread_ms; /* over which clients are asked to come back after a loss */
    uint8_t *buffer;    /* LIMIT_MESSAGE_BYTES, for what is sent */
    struct counts counts;
};

struct incoming { /* one message with its sender */
    struct router_message message;
    struct envelope envelope;
    const struct directory_account *account; /* NULL: anonymous */
};

/* ---- gateway.c */
uint32_t gateway_account_rate(const struct gateway *gateway); /* of all sessions of one account */
/* Tells the exchange who came, went or fell silent, as far as the queues inside have room. */
void gateway_tell_presence(struct gateway *gateway);
/* Gives back the places of sessions that are over, as far as the core can be told. */
void gateway_let_all_go(struct gateway *gateway);

/* ---- gateway_greetings.c */
void gateway_hello(struct gateway *gateway, const struct incoming *in);
/* The Welcome of a session that goes on. It carries the last number that its client has seen, and
 * what was missed by now follows it. False: it has not gone. */
bool gateway_welcome_back(struct gateway *gateway, struct session *session);

/* ---- gateway_sending.c */
int64_t gateway_log_time_ms(const struct gateway *gateway);
/* Puts one numbered message on the session's connection. False: it has not gone. */
bool gateway_put_on_wire(struct gateway *gateway, struct session *session, uint64_t sequence,
                         const struct outgoing *outgoing);
/* Sends what its connection has not taken yet, oldest first, as far as that goes. */
void gateway_catch_up(struct gateway *gateway, struct session *session);
/* The next message of the session: sent or kept. Takes the body. */
void gateway_send(struct gateway *gateway, struct session *session, struct outgoing *outgoing);
void gateway_send_body(struct gateway *gateway, struct session *session, enum message_type type,
                       const struct id128 *id, const ProtobufCMessage *body);
/* For the audit log; strangers have no account, and no place in it. */
void gateway_note_refused(struct gateway *gateway, const struct incoming *in,
                          enum reject_code code);
/* Says no, on the session if there is one. Unknown keys get no answer at all, only a counter, and
 * so does a flood of messages outside of any session. */
void gateway_refuse(struct gateway *gateway, const struct incoming *in, struct session *session,
                    enum reject_code code, const char *field, int64_t value, int64_t limit);

#endif
