/* Sessions say which clients are connected and when each was last heard; there are no sockets or
 * clocks.
 *
 * A session begins with Hello and belongs to one route and one connection key. It ends by Goodbye,
 * silence, or a new Hello on its route. broker/gateway/presence.h says which providers are heard
 * of. Time is an argument. */
#ifndef BOURSE_BROKER_GATEWAY_SESSIONS_H
#define BOURSE_BROKER_GATEWAY_SESSIONS_H

#include "base/id.h"
#include "broker/gateway/allowance.h"
#include "broker/gateway/resend_buffer.h"
#include "protocol/message.h"
#include "runtime/router.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SESSIONS_MAX = 4096,
    SESSIONS_PER_KEY = 64,
    SESSIONS_ANONYMOUS = 256,
    SESSIONS_MISSED_HEARTBEATS = 3,   /* a provider is suspect */
    SESSIONS_SILENT_HEARTBEATS = 30,  /* a session has lost its connection */
    SESSIONS_RESUME_HEARTBEATS = 120, /* after so many more the session is over */
};

struct session {
    uint64_t number; /* 0: the place is free */
    struct route route;
    struct key32 transport;
    uint32_t account; /* EXCHANGE_NO_ACCOUNT while anonymous */
    enum session_role role;
    /* The session has no connection; its messages are kept until the client comes back. */
    bool is_detached;
    bool is_closing; /* over, but the core has not been told yet */
    bool waits;      /* the client knows NO_QUORUM */
    int64_t heard_ns, sent_ns;
    uint64_t heard_sequence;
    /* Sequence of the last message that the connection has taken. */
    uint64_t wire_sequence;
    /* The Welcome of a resumed session is still unsent; no message may leave before it. */
    bool is_welcome_due;
    struct id128 hello; /* id of the Hello that this Welcome answers */
    struct resend_buffer resend;
    struct allowance allowance;
};

/* A resumed session keeps its number, so that messages on their way to the session still arrive. */
enum sessions_status { SESSIONS_OK, SESSIONS_FULL, SESSIONS_FULL_FOR_KEY, SESSIONS_FULL_ANONYMOUS };

struct sessions;

/* Creates the table. `first` is where numbers start: random, so that numbers of an earlier broker
 * are not used again. Returns NULL when memory is short. */
struct sessions *sessions_create(uint64_t first);
void sessions_destroy(struct sessions **self);

/* Ends the route's former session, if any, and opens a new one. Returns FULL also when memory is
 * short. */
enum sessions_status sessions_open(struct sessions *sessions, const struct route *route,
                                   const struct key32 *transport, uint32_t account,
                                   enum session_role role, int64_t now_ns, struct session **ret);
/* Resumes session `number` on the connection `route`; `seen` is the last message that its client
 * has. Returns NULL when key, account or role differ, or when a message after `seen` is not
 * kept. */
struct session *sessions_resume(struct sessions *sessions, uint64_t number, uint64_t seen,
                                const struct route *route, const struct key32 *transport,
                                uint32_t account, enum session_role role, int64_t now_ns);
/* Notes that the session has lost its connection; a session that cannot be resumed is closed. */
void sessions_detach(struct session *session);
/* Keeps one more message for the session, and takes the body over. Above the cap of its account, or
 * of all, the oldest messages of the largest account's largest session go. Closes a session when
 * its unsent messages are above the caps. */
void sessions_keep(struct sessions *sessions, struct session *session,
                   const struct resend_message *message);
/* Gives the session to `account`. Returns false when memory is short; then nothing has changed. */
bool sessions_know(struct sessions *sessions, struct session *session, uint32_t account);
void sessions_seen(struct sessions *sessions, struct session *session, uint64_t sequence);
/* Returns the number of live sessions. */
uint32_t sessions_count(const struct sessions *sessions);
/* Returns the live session `number` if it has this route and key, else NULL. */
struct session *sessions_of(struct sessions *sessions, uint64_t number, const struct route *route,
                            const struct key32 *transport);
/* Returns the live session `number`, or NULL. */
struct session *sessions_number(struct sessions *sessions, uint64_t number);
/* Ends all sending to the session; sessions_forget then frees its place. */
void sessions_close(struct session *session);
void sessions_forget(struct sessions *sessions, struct session *session);
/* Walks the places in use, closing ones too; `position` starts at 0. Returns NULL at the end. */
struct session *sessions_next(struct sessions *sessions, size_t *position);

#endif
