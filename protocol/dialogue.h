/* protocol/dialogue.h is the client's half of a session. The module handles the handshake, requests
 * and their answers, resends and heartbeats. The agent's session and the consumer's session both
 * build on it.
 *
 * The dialogue keeps every request until its answer arrives. After a reconnect it sends the
 * unanswered ones again. Signature, id and body are the same bytes, session and sequence are new: a
 * retry is always safe (D7). The client also resends a second after a RATE, which the broker
 * reports once for all dropped messages. Time and ids are arguments; outgoing messages are returned
 * as bytes.
 *
 * Flow: dialogue_connected -> (Hello goes out) -> Welcome -> READY event -> requests flow. Three
 * heartbeats without any message from the broker give a LOST event. The caller makes a new
 * connection after the wait in the event, and calls dialogue_connected again. The wait is
 * exponential from 100 ms to 5 s, with jitter from the caller's dice. Of a market with several
 * brokers, the new connection goes to dialogue_address (protocol/route/contacts.h). NOT_LEADER is
 * no answer to a request: it ends the session, and the request is sent again to the next broker.
 * NO_QUORUM is none either: the request is sent again after a second or two, or to the next broker.
 *
 * On the new connection the dialogue asks to resume its session after the last message received. If
 * the broker can (Welcome says `resumed`), the missed messages come first, as if the connection had
 * never been lost, and requests wait for them. If it cannot (`gap`), callers that follow a state
 * must ask for it again. */
#ifndef BOURSE_PROTOCOL_DIALOGUE_H
#define BOURSE_PROTOCOL_DIALOGUE_H

#include "base/id.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "protocol/route/contacts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dialogue;

struct dialogue_config {
    const struct identity *identity; /* borrowed, must outlive the dialogue */
    enum session_role role;
    const char *program; /* e.g. "bourse 0.1.0", borrowed */
    size_t pending_max;  /* most requests without an answer */
    size_t pending_bytes_max;
    /* The brokers of the market, which are copied; none: the caller has one address itself. */
    const struct contact *addresses;
    size_t address_count;
};

enum dialogue_status {
    DIALOGUE_OK,
    DIALOGUE_FULL,
    DIALOGUE_TOO_LARGE,
    DIALOGUE_NOT_READY,
    DIALOGUE_OUT_OF_MEMORY
};

enum dialogue_event_type {
    /* Understood, and without effect for the caller (a heartbeat). With `reject` NO_QUORUM and
     * `text`, the broker cannot do the request `id` now; the dialogue sends it again. */
    DIALOGUE_NOTHING,
    DIALOGUE_READY,    /* Welcome arrived: `welcome` */
    DIALOGUE_ACCEPTED, /* a request was accepted: `id`, `request_type`, `index` */
    DIALOGUE_REJECTED, /* refused: `id`, `request_type`, `reject` */
    DIALOGUE_REPLY,    /* a reply with a body: `id`, `type`, `body` */
    DIALOGUE_PUSH,     /* an unrequested message from the broker: `type`, `body` */
    DIALOGUE_LOST,     /* the broker is silent, or ended the session: reconnect after `wait_ns` */
    /* The broker sent a malformed message or one of another version: `text`. The connection is
     * useless; the caller may try a new one after `wait_ns`. */
    DIALOGUE_BROKEN,
};

struct dialogue_event {
    enum dialogue_event_type type;
    struct id128 id;
    enum message_type request_type;
    enum message_type message_type;
    ProtobufCMessage *body;             /* REPLY, PUSH: decoded; the caller frees with codec_free */
    const Bourse__V1__Welcome *welcome; /* READY: valid until the next call */
    uint64_t index;
    enum reject_code reject;
    char text[256];       /* REJECTED, BROKEN, LOST: printable */
    char field[64];       /* REJECTED: the refused field, printable; "" when none is named */
    int64_t value, limit; /* REJECTED */
    int64_t wait_ns;      /* LOST, BROKEN */
    enum contact_end end; /* LOST, BROKEN: how the attempt or the session ended */
    /* LOST, BROKEN: the address that was tried; "" when the dialogue knows none. */
    char address[LIMIT_ENDPOINT_BYTES + 1];
};

/* The state of the market that the last answer was made from. */
struct dialogue_state {
    bool follows;     /* the broker follows another one, which may have a later state */
    uint64_t index;   /* the state has this command at least ... */
    int64_t log_ns;   /* ... of this log time; of a leader: when the session began */
    int64_t stale_ms; /* the state may be so old; 0: the broker knew of nothing newer */
    uint64_t newest;  /* the newest command that the dialogue was told of */
};

struct dialogue *dialogue_create(const struct dialogue_config *config);
void dialogue_destroy(struct dialogue **self);
/* Lets a broker that follows answer reads, before the first connection. Its state has command
 * `least_index` at least, and each command that the dialogue was told of; 0: any state will do. */
void dialogue_read_anywhere(struct dialogue *dialogue, uint64_t least_index);

/* Lets only the broker that leads answer from now on. The event is LOST when the session is with
 * another one, else NOTHING. */
void dialogue_require_leader(struct dialogue *dialogue, struct dialogue_event *ret_event);

/* Starts the dialogue on a (new) connection. `dice` is 64 random bits for jitter. */
void dialogue_connected(struct dialogue *dialogue, int64_t now_ns, uint64_t dice);
/* Returns the address of the present connection, or after LOST and BROKEN of the next one. Returns
 * NULL when the dialogue knows none. */
const struct contact *dialogue_address(const struct dialogue *dialogue);
const struct contacts *dialogue_contacts(const struct dialogue *dialogue);
/* Notes that no connection to dialogue_address can be made, or that it has ended. The event is
 * LOST, or NOTHING when the dialogue knows already. */
void dialogue_unreachable(struct dialogue *dialogue, struct dialogue_event *ret_event);
bool dialogue_ready(const struct dialogue *dialogue);
/* Returns true after a Welcome that resumes, until the last missed message has arrived. */
bool dialogue_catching_up(const struct dialogue *dialogue);
/* Returns the last Welcome, or NULL. */
const Bourse__V1__Welcome *dialogue_welcome(const struct dialogue *dialogue);
/* Returns the state of the last answer, or of the Welcome. Both may be of an earlier connection. A
 * leader's state has every command that the dialogue was told of. */
struct dialogue_state dialogue_state(const struct dialogue *dialogue);
/* Returns an estimate of the broker's log time in ms: the time in its last message, plus the time
 * since. */
int64_t dialogue_log_time_ms(const struct dialogue *dialogue, int64_t now_ns);

/* Queues a request under `id`, which is not pending yet. The request is signed when its type must
 * be, and waits for READY. Its type is one that is answered (message_answer). */
enum dialogue_status dialogue_request(struct dialogue *dialogue, int64_t now_ns,
                                      enum message_type type, const struct id128 *id,
                                      const ProtobufCMessage *body);
/* Ends the session; nothing more goes out on this connection after the Goodbye. Returns
 * DIALOGUE_NOT_READY before READY. */
enum dialogue_status dialogue_goodbye(struct dialogue *dialogue, int64_t now_ns,
                                      const char *reason);
/* Forgets a request; a late answer is then ignored. */
void dialogue_forget(struct dialogue *dialogue, const struct id128 *id);
size_t dialogue_pending(const struct dialogue *dialogue);

/* Returns true with the next message to send, borrowed until the next call on the dialogue. Returns
 * false when there is none. */
bool dialogue_outgoing(struct dialogue *dialogue, const uint8_t **ret_message, size_t *ret_length);
/* Takes back the message of the last dialogue_outgoing, which the connection could not take. The
 * next call gives the same bytes again, because sequences have no gaps. A new connection drops the
 * message. */
void dialogue_unsent(struct dialogue *dialogue);
/* Handles a message from the broker. The call always writes *ret_event. */
void dialogue_incoming(struct dialogue *dialogue, int64_t now_ns, const uint8_t *message,
                       size_t length, struct dialogue_event *ret_event);
/* Handles the passing of time: queues heartbeats and detects silence. Call it at
 * dialogue_next_deadline_ns or later, after all received messages are handed in. */
void dialogue_tick(struct dialogue *dialogue, int64_t now_ns, struct dialogue_event *ret_event);
int64_t dialogue_next_deadline_ns(const struct dialogue *dialogue);

#endif
