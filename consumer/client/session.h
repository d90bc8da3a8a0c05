/* consumer/client/session.h holds the consumer's half of a dialogue with the broker. A session
 * keeps requests by id, their answers, and watched jobs.
 *
 * The session adds one idea to protocol/dialogue.h: a *watch*. The session asks for a watched job
 * again after every reconnect (JobsRequest with watch set), so its row keeps coming. Rows older
 * than the newest seen are dropped, and a watch ends with its job. The dialogue repeats an
 * unanswered request byte for byte, because a retry is always safe (D7).
 *
 * Time, ids and random numbers are arguments, and bytes are the result. The code is pure: the
 * simulator runs this same object. */
#ifndef BOURSE_CONSUMER_CLIENT_SESSION_H
#define BOURSE_CONSUMER_CLIENT_SESSION_H

#include "protocol/dialogue.h"

enum { CONSUMER_WATCH_MAX = 64 };

struct consumer_session;

enum consumer_status {
    CONSUMER_OK,
    CONSUMER_FULL,      /* too many unanswered requests or watches */
    CONSUMER_TOO_LARGE, /* the request does not fit in a message */
    CONSUMER_OUT_OF_MEMORY,
};

enum consumer_event_type {
    /* Nothing to do. With `reject` NO_QUORUM and `text`, a request waits and is sent again. */
    CONSUMER_NOTHING,
    CONSUMER_READY,  /* the session is ready, for the first time or again */
    CONSUMER_ANSWER, /* answer to the request `id`, see `answer` */
    CONSUMER_JOB,    /* row of a watched job, in `row` */
    CONSUMER_GONE,   /* the watch of `job` was refused (`reject`, `text`) and is over */
    CONSUMER_LOST,   /* the broker is silent: connect anew after `wait_ns` */
    CONSUMER_BROKEN, /* the broker's bytes or version are unknown, see `text` */
};

enum consumer_answer { CONSUMER_ACCEPTED, CONSUMER_REJECTED, CONSUMER_REPLY };

struct consumer_event {
    enum consumer_event_type type;
    struct id128 id;                /* ANSWER */
    enum consumer_answer answer;    /* ANSWER */
    enum message_type message_type; /* REPLY: type of `body` */
    ProtobufCMessage *body;         /* REPLY, JOB: owned by the event, see consumer_event_clear */
    const Bourse__V1__JobRow *row;  /* JOB: inside `body` */
    struct id128 job;               /* JOB, GONE */
    uint64_t index;                 /* ACCEPTED: journal index of the command */
    enum reject_code reject;        /* REJECTED, GONE, NOTHING */
    char field[64];                 /* REJECTED: the refused field, printable, or "" */
    int64_t value, limit;           /* REJECTED */
    char text[256];                 /* REJECTED, GONE, LOST, BROKEN, NOTHING: printable */
    int64_t wait_ns;                /* LOST */
    enum contact_end end;           /* LOST: how it ended */
    /* LOST, BROKEN: the address that was tried; "" when the session knows none. */
    char address[LIMIT_ENDPOINT_BYTES + 1];
};

/* Frees what the event owns and sets its type to NOTHING. */
void consumer_event_clear(struct consumer_event *event);

/* Returns a session, or NULL when memory is short. The session borrows `identity` and `program`,
 * which must outlive it. */
struct consumer_session *consumer_session_create(const struct identity *identity,
                                                 const char *program);
/* Returns a session of a market with several brokers, whose addresses are copied. */
struct consumer_session *consumer_session_create_at(const struct identity *identity,
                                                    const char *program,
                                                    const struct contact *addresses, size_t count);
void consumer_session_destroy(struct consumer_session **self);

/* Lets brokers that follow answer reads, as dialogue_read_anywhere does. */
void consumer_session_read_anywhere(struct consumer_session *session, uint64_t least_index);
/* Lets only the leader answer from now on; the event is LOST when another broker did. */
void consumer_session_require_leader(struct consumer_session *session,
                                     struct consumer_event *ret_event);
/* Returns the state of the last answer, as dialogue_state does. */
struct dialogue_state consumer_session_state(const struct consumer_session *session);

/* Tells the session that a new connection stands; `dice` is 64 random bits. */
void consumer_session_connected(struct consumer_session *session, int64_t now_ns, uint64_t dice);
/* Returns the broker's addresses to connect to now, or NULL when the session knows none. */
const struct contact *consumer_session_address(const struct consumer_session *session);
const struct contacts *consumer_session_contacts(const struct consumer_session *session);
/* Notes that no connection to that address can be made at all; the event is LOST. */
void consumer_session_unreachable(struct consumer_session *session,
                                  struct consumer_event *ret_event);
bool consumer_session_ready(const struct consumer_session *session);
/* Returns the broker's last Welcome, or NULL. */
const Bourse__V1__Welcome *consumer_session_welcome(const struct consumer_session *session);
int64_t consumer_session_log_time_ms(const struct consumer_session *session, int64_t now_ns);

/* Sends a request under `id`, now or as soon as the session is ready. Its ANSWER event carries the
 * id. */
enum consumer_status consumer_session_request(struct consumer_session *session, int64_t now_ns,
                                              enum message_type type, const struct id128 *id,
                                              const ProtobufCMessage *body);
/* Drops the request: its answer will be ignored. */
void consumer_session_forget(struct consumer_session *session, const struct id128 *id);

/* Watches `job` with a request under `id`. A second watch of one job changes nothing. */
enum consumer_status consumer_session_watch(struct consumer_session *session, int64_t now_ns,
                                            const struct id128 *id, const struct id128 *job);
void consumer_session_unwatch(struct consumer_session *session, const struct id128 *job);

/* Tells the broker that the session ends, so that the broker need not wait for silence. */
void consumer_session_goodbye(struct consumer_session *session, int64_t now_ns);

/* Returns true and the next message for the wire, which is valid until the next call on the
 * session. */
bool consumer_session_outgoing(struct consumer_session *session, const uint8_t **ret_message,
                               size_t *ret_length);
/* Puts the last message back after a failed send; consumer_session_outgoing gives it again. */
void consumer_session_unsent(struct consumer_session *session);
/* Takes a message from the broker. The call always writes *ret_event, which the caller clears. */
void consumer_session_incoming(struct consumer_session *session, int64_t now_ns,
                               const uint8_t *message, size_t length,
                               struct consumer_event *ret_event);
/* Takes the passing of time and writes *ret_event. The call is due at
 * consumer_session_deadline_ns. */
void consumer_session_tick(struct consumer_session *session, int64_t now_ns,
                           struct consumer_event *ret_event);
int64_t consumer_session_deadline_ns(const struct consumer_session *session);

#endif
