/* protocol/dialogue.h - the client's half of a session: handshake, requests and their answers,
 * resends, heartbeats. The agent's session and the consumer's session are both built on it.
 *
 * It keeps every request until it is answered, and after a reconnect sends the unanswered ones
 * again, byte for byte in signature, id and body (session and sequence are fresh): retry is always
 * safe (D7). It does so too a second after a RATE, which the broker says once for all that it dropped. Time and ids come as arguments; what to send comes back as bytes. Pure.
 *
 * Flow: dialogue_connected -> (Hello goes out) -> Welcome -> READY event -> requests flow. When
 * nothing has come from the broker for three heartbeats, a LOST event: the caller makes a new
 * connection after the wait the event names (exponential from 100 ms to 5 s, with jitter from the
 * caller's dice) and calls dialogue_connected again.
 *
 * On the new connection it asks to go on with its session after the last message it saw. When the broker
 * can (Welcome says `resumed`), what was missed comes first, as if the connection had never been lost, and
 * requests wait until it has; when it cannot (`gap`), whoever watches asks anew. */
#ifndef BOURSE_PROTOCOL_DIALOGUE_H
#define BOURSE_PROTOCOL_DIALOGUE_H

#include "base/id.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/message.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dialogue;

struct dialogue_config {
    const struct identity *identity; /* borrowed, must outlive the dialogue */
    enum session_role role;
    const char *program; /* "bourse 0.1.0", borrowed */
    size_t pending_max;  /* requests without an answer */
    size_t pending_bytes_max;
};

enum dialogue_status {
    DIALOGUE_OK,
    DIALOGUE_FULL,
    DIALOGUE_TOO_LARGE,
    DIALOGUE_NOT_READY,
    DIALOGUE_OUT_OF_MEMORY
};

enum dialogue_event_type {
    DIALOGUE_NOTHING,  /* understood, nothing for the caller (a heartbeat) */
    DIALOGUE_READY,    /* Welcome came: `welcome` */
    DIALOGUE_ACCEPTED, /* a request was accepted: `id`, `request_type`, `index` */
    DIALOGUE_REJECTED, /* refused: `id`, `request_type`, `reject` */
    DIALOGUE_REPLY,    /* a reply with a body: `id`, `type`, `body` */
    DIALOGUE_PUSH,     /* from the broker, unasked: `type`, `body` */
    DIALOGUE_LOST,     /* the broker is silent, or ended the session: reconnect after `wait_ns` */
    DIALOGUE_BROKEN, /* it sent something malformed or of another version: `text`; the connection is
                        of no more use; a new one may be tried after `wait_ns` */
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
    char text[256];       /* REJECTED, BROKEN, LOST: made printable */
    char field[64];       /* REJECTED: what was refused, printable; "" when none is named */
    int64_t value, limit; /* REJECTED */
    int64_t wait_ns;
};

struct dialogue *dialogue_create(const struct dialogue_config *config);
void dialogue_destroy(struct dialogue **self);

/* A (new) connection stands. `dice`: 64 random bits for jitter. */
void dialogue_connected(struct dialogue *dialogue, int64_t now_ns, uint64_t dice);
bool dialogue_ready(const struct dialogue *dialogue);
/* True from a Welcome that resumes until the last message that was missed has come. */
bool dialogue_catching_up(const struct dialogue *dialogue);
/* The last Welcome, or NULL. */
const Bourse__V1__Welcome *dialogue_welcome(const struct dialogue *dialogue);
/* The broker's log time as far as it is known here, in ms: what its last message said plus the time
 * since. */
int64_t dialogue_log_time_ms(const struct dialogue *dialogue, int64_t now_ns);

/* Queues a request under `id`, which is not pending already (signed when its type must be). Before
 * READY it waits for it. The type is one that is answered (message_answer). */
enum dialogue_status dialogue_request(struct dialogue *dialogue, int64_t now_ns,
                                      enum message_type type, const struct id128 *id,
                                      const ProtobufCMessage *body);
/* Says that this client ends; after it nothing more goes out on this connection. NOT_READY before
 * READY. */
enum dialogue_status dialogue_goodbye(struct dialogue *dialogue, int64_t now_ns,
                                      const char *reason);
/* Forgets a request; a late answer is then ignored. */
void dialogue_forget(struct dialogue *dialogue, const struct id128 *id);
size_t dialogue_pending(const struct dialogue *dialogue);

/* The next message to put on the wire; borrowed until the next call on the dialogue. False: none.
 */
bool dialogue_outgoing(struct dialogue *dialogue, const uint8_t **ret_message, size_t *ret_length);
/* The connection could not take the message that dialogue_outgoing gave last: the next call gives
 * it again, the same bytes (sequences have no gaps). A new connection forgets it. */
void dialogue_unsent(struct dialogue *dialogue);
/* A message came. Always writes *ret_event. */
void dialogue_incoming(struct dialogue *dialogue, int64_t now_ns, const uint8_t *message,
                       size_t length, struct dialogue_event *ret_event);
/* Time passed: queues heartbeats, finds silence. Call at dialogue_next_deadline_ns or later, once
 * what has come is handed in. */
void dialogue_tick(struct dialogue *dialogue, int64_t now_ns, struct dialogue_event *ret_event);
int64_t dialogue_next_deadline_ns(const struct dialogue *dialogue);

#endif
