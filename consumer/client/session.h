/* consumer/client/session.h - the consumer's half of a conversation with the broker: requests by id
 * and their answers, and jobs that are watched.
 *
 * On top of protocol/dialogue.h it adds one idea: a *watch*. A watched job is asked for again after
 * every reconnect (JobsRequest with watch set), so its row keeps coming whatever happens to the
 * connection; rows older than the newest seen are dropped, and a watch ends by itself with the job.
 * Requests that were not answered are sent again by the dialogue, byte for byte: retry is always
 * safe (D7).
 *
 * Time, ids and dice are arguments, bytes are the result. Pure: the simulator runs this same
 * object. */
#ifndef BOURSE_CONSUMER_CLIENT_SESSION_H
#define BOURSE_CONSUMER_CLIENT_SESSION_H

#include "protocol/dialogue.h"

enum { CONSUMER_WATCH_MAX = 64 };

struct consumer_session;

enum consumer_status {
    CONSUMER_OK,
    CONSUMER_FULL,      /* too many requests or watches without an answer */
    CONSUMER_TOO_LARGE, /* the request does not fit in a message */
    CONSUMER_OUT_OF_MEMORY,
};

enum consumer_event_type {
    CONSUMER_NOTHING,
    CONSUMER_READY,  /* the session stands (again) */
    CONSUMER_ANSWER, /* to the request `id`: see `answer` */
    CONSUMER_JOB,    /* a watched job: `row` */
    CONSUMER_GONE,   /* the watch of `job` was refused (`reject`, `text`) and is over */
    CONSUMER_LOST,   /* silence: make a new connection after `wait_ns` */
    CONSUMER_BROKEN, /* the broker's bytes make no sense, or it speaks another version: `text` */
};

enum consumer_answer { CONSUMER_ACCEPTED, CONSUMER_REJECTED, CONSUMER_REPLY };

struct consumer_event {
    enum consumer_event_type type;
    struct id128 id;                /* ANSWER */
    enum consumer_answer answer;    /* ANSWER */
    enum message_type message_type; /* REPLY: the type of `body` */
    ProtobufCMessage *body;         /* REPLY, JOB: owned by the event, see consumer_event_clear */
    const Bourse__V1__JobRow *row;  /* JOB: inside `body` */
    struct id128 job;               /* JOB, GONE */
    uint64_t index;                 /* ACCEPTED: the journal index that made it durable */
    enum reject_code reject;        /* REJECTED, GONE */
    char field[64];                 /* REJECTED: what was refused, printable; or "" */
    int64_t value, limit;           /* REJECTED */
    char text[256];                 /* REJECTED, GONE, BROKEN: printable */
    int64_t wait_ns;                /* LOST */
};

/* Frees what the event owns and makes it NOTHING. */
void consumer_event_clear(struct consumer_event *event);

/* `identity` and `program` are borrowed and outlive the session. NULL when out of memory. */
struct consumer_session *consumer_session_create(const struct identity *identity,
                                                 const char *program);
void consumer_session_destroy(struct consumer_session **self);

/* A (new) connection stands; `dice`: 64 random bits. */
void consumer_session_connected(struct consumer_session *session, int64_t now_ns, uint64_t dice);
bool consumer_session_ready(const struct consumer_session *session);
/* The broker's last Welcome, or NULL. */
const Bourse__V1__Welcome *consumer_session_welcome(const struct consumer_session *session);
int64_t consumer_session_log_time_ms(const struct consumer_session *session, int64_t now_ns);

/* Sends a request under `id`, now or as soon as the session stands; its ANSWER carries the id. */
enum consumer_status consumer_session_request(struct consumer_session *session, int64_t now_ns,
                                              enum message_type type, const struct id128 *id,
                                              const ProtobufCMessage *body);
/* No longer interested in the answer. */
void consumer_session_forget(struct consumer_session *session, const struct id128 *id);

/* Watches `job`, asking under `id`. Watching the same job twice is one watch. */
enum consumer_status consumer_session_watch(struct consumer_session *session, int64_t now_ns,
                                            const struct id128 *id, const struct id128 *job);
void consumer_session_unwatch(struct consumer_session *session, const struct id128 *job);
size_t consumer_session_watches(const struct consumer_session *session);

/* Says goodbye, so that the broker need not wait for silence. */
void consumer_session_goodbye(struct consumer_session *session, int64_t now_ns);

/* The next message for the wire, borrowed until the next call on the session. */
bool consumer_session_outgoing(struct consumer_session *session, const uint8_t **ret_message,
                               size_t *ret_length);
/* The connection could not take that message: the next call gives it again. */
void consumer_session_unsent(struct consumer_session *session);
/* A message came; always writes *ret_event, which the caller clears. */
void consumer_session_incoming(struct consumer_session *session, int64_t now_ns,
                               const uint8_t *message, size_t length,
                               struct consumer_event *ret_event);
/* Time passed; the same. Due at consumer_session_deadline_ns. */
void consumer_session_tick(struct consumer_session *session, int64_t now_ns,
                           struct consumer_event *ret_event);
int64_t consumer_session_deadline_ns(const struct consumer_session *session);

#endif
