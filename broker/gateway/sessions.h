/* broker/gateway/sessions.h - who is connected, and when each was last heard: the gateway's memory,
 * without its sockets and clocks.
 *
 * A session begins with Hello, belongs to one route and one connection key, and ends by Goodbye,
 * silence, or a new Hello on its route. Presence is something else: a provider is one account,
 * whatever connections come and go, and the exchange hears SUSPECT, RETURNED and GOODBYE of it,
 * each until it was taken. Time is an argument. */
#ifndef BOURSE_BROKER_GATEWAY_SESSIONS_H
#define BOURSE_BROKER_GATEWAY_SESSIONS_H

#include "base/id.h"
#include "broker/gateway/allowance.h"
#include "broker/gateway/kept.h"
#include "broker/storage/entry.h"
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
    SESSIONS_RESUME_HEARTBEATS = 120, /* and after that many it is over */
};

struct session {
    uint64_t number; /* 0: the place is free */
    struct route route;
    struct key32 transport;
    uint32_t account; /* EXCHANGE_NO_ACCOUNT while anonymous */
    enum session_role role;
    bool is_detached; /* it has no connection; what it would be sent is kept until it comes back */
    bool is_closing;  /* over, but the core has not been told yet */
    int64_t heard_ns, sent_ns;
    uint64_t heard_sequence;
    uint64_t wire_sequence; /* of what was sent the last that the connection has taken */
    bool is_welcome_due;    /* of a session that goes on: nothing may leave before it */
    struct id128 hello;     /* which that Welcome answers */
    struct kept kept;
    struct allowance allowance;
};

/* A session that goes on keeps its number, so that whatever is on its way to it still finds it. */
enum sessions_status { SESSIONS_OK, SESSIONS_FULL, SESSIONS_FULL_FOR_KEY, SESSIONS_FULL_ANONYMOUS };

struct sessions;

/* `first`: where numbers start, random, so that those of an earlier broker are not met again. */
struct sessions *sessions_create(uint64_t first);
void sessions_destroy(struct sessions **self);

/* Ends the route's former session, if any, and opens a new one. FULL also when out of memory. */
enum sessions_status sessions_open(struct sessions *sessions, const struct route *route,
                                   const struct key32 *transport, uint32_t account,
                                   enum session_role role, int64_t now_ns, struct session **ret);
/* The session of that number, if it is of this key, account and role, and all that came after
 * `seen` is kept: its connection is `route` from now on, and `seen` is the last that its client
 * has. NULL: it cannot go on. */
struct session *sessions_resume(struct sessions *sessions, uint64_t number, uint64_t seen,
                                const struct route *route, const struct key32 *transport,
                                uint32_t account, enum session_role role, int64_t now_ns);
/* It has lost its connection; one that nobody could resume is closed. */
void sessions_detach(struct session *session);
/* Keeps one more message for it, which is on its way then, and takes the body. Over the cap of its
 * account, or of all, the oldest go where most is kept: of the largest account, in its largest
 * session. Closes a session when what its connection has not taken is over the caps. */
void sessions_keep(struct sessions *sessions, struct session *session,
                   const struct kept_message *message);
/* The session is this account's from now on. False: out of memory, and it is whose it was. */
bool sessions_know(struct sessions *sessions, struct session *session, uint32_t account);
void sessions_seen(struct sessions *sessions, struct session *session, uint64_t sequence);
uint32_t sessions_count(const struct sessions *sessions); /* live */
/* The live session of that number, if it has that route and key; NULL otherwise. */
struct session *sessions_of(struct sessions *sessions, uint64_t number, const struct route *route,
                            const struct key32 *transport);
struct session *sessions_number(struct sessions *sessions, uint64_t number); /* live, or NULL */
/* The session gets nothing more; its place is free after sessions_forget. */
void sessions_close(struct session *session);
void sessions_forget(struct sessions *sessions, struct session *session);
/* Walks the places in use, closing ones too: `position` starts at 0. NULL at the end. */
struct session *sessions_next(struct sessions *sessions, size_t *position);

/* ---------------------------------------------------------------- presence of providers */

/* `account` may be present since before we started: it is missed only after the usual silence. */
bool presence_expect(struct sessions *sessions, uint32_t account, int64_t now_ns);
/* Its agent said Hello on `session`, which from now on gets what is pushed to it. */
bool presence_hello(struct sessions *sessions, uint32_t account, uint64_t session, int64_t now_ns);
void presence_heard(struct sessions *sessions, uint32_t account, int64_t now_ns);
void presence_goodbye(struct sessions *sessions, uint32_t account);
/* It said goodbye, and presence_told has not followed. */
bool presence_owes_goodbye(const struct sessions *sessions, uint32_t account);
/* The session that pushes to the provider go to; 0: none. */
uint64_t presence_session(const struct sessions *sessions, uint32_t account);

/* Whose state has to be told to the exchange now: false when nobody's. `position` starts at 0;
 * after the notice was taken, presence_told. */
bool presence_next_notice(struct sessions *sessions, int64_t now_ns, int64_t heartbeat_ns,
                          uint32_t *position, uint32_t *ret_account,
                          enum entry_command_kind *ret_kind);
/* The exchange will hear of it. A suspect provider's session loses its connection: an agent that
 * was only stopped for a while would otherwise never learn that its asks are gone. */
void presence_told(struct sessions *sessions, uint32_t account, enum entry_command_kind kind);

#endif
