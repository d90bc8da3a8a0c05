/* provider/owner.h answers the owner's requests to the running agent (status, pause, resume and
 * drain).
 *
 * A pause is kept in the agent's folder (`paused`), so it survives a restart. An owner who wants
 * the machine back does not want a power cut to give it away again. A drain is not kept: it ends
 * the process, and the next start offers again. This module is the shell around the session:
 * control.h brings the requests, and provider/session/agent_session.h carries them out. */
#ifndef BOURSE_PROVIDER_OWNER_H
#define BOURSE_PROVIDER_OWNER_H

#include "provider/config.h"
#include "provider/control.h"
#include "provider/session/agent_session.h"
#include "provider/work/lanes.h"
#include "runtime/market.h"

enum { OWNER_STATUS_VERSION = 1, OWNER_LEASES_MAX = 256 /* leases listed one by one */ };
#define OWNER_PAUSED "paused"
/* The owner hears after this time that the broker's answer is missing. */
#define OWNER_WAIT_NS (5 * NS_PER_S)

struct owner;

/* The agent's facts are borrowed during the call; names in _ms are wall-clock times. */
struct owner_facts {
    const struct config *config;
    const struct market *market;
    int isolation;
    const struct lanes *lanes;
    bool is_crowded, is_leaving;
    int64_t started_ms;
    int64_t since_ms;       /* time of the last connect or disconnect; 0: never connected */
    const char *last_error; /* "": none */
    int64_t last_error_ms;
};

/* Reads a kept pause and listens for the owner. The caller holds the folder's lock. */
bool owner_open(const char *folder, struct owner **ret_owner, struct problem *ret_problem);
void owner_close(struct owner **self);
/* Continues a kept pause. Call it once, before the session is connected. */
void owner_begin(const struct owner *owner, struct agent_session *session, int64_t now_ns);
/* Reads the end of the pause kept in `path`, by the wall clock; 0: the pause lasts until it is
 * resumed. Returns false with the problem when the file keeps no pause. */
bool owner_read_pause(const char *path, int64_t *ret_until_ms, struct problem *ret_problem);
/* Returns a descriptor that is readable when owner_hear has something to do. The loop calls
 * owner_hear in every turn anyway. */
int owner_fd(const struct owner *owner);
int64_t owner_next_deadline_ns(const struct owner *owner);
/* Reads and carries out requests, answers requests that are now fulfilled, and ends a pause whose
 * time is over. */
void owner_hear(struct owner *owner, struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                const struct owner_facts *facts);
/* Returns true when the agent shall end once nothing runs and every result is accepted. */
bool owner_wants_drain(const struct owner *owner);
/* Tells clients that wait for the drain how far it came, because the agent ends. */
void owner_ends(struct owner *owner, const struct agent_session *session, int64_t now_ns);

#endif
