/* provider/owner.h - what the owner asked of the running agent: how it stands, pause, resume,
 * drain.
 *
 * A pause is kept in the agent's folder (`paused`) and so survives a restart: whoever wants his
 * machine back does not want it given away again by a power cut. A drain is not kept: it ends the
 * process, and the next start offers. The shell around the session: control.h brings the requests,
 * provider/session/session.h carries them out. */
#ifndef BOURSE_PROVIDER_OWNER_H
#define BOURSE_PROVIDER_OWNER_H

#include "provider/config.h"
#include "provider/control.h"
#include "provider/session/session.h"
#include "provider/work/lanes.h"
#include "runtime/market.h"

enum { OWNER_STATUS_VERSION = 1, OWNER_LEASES_MAX = 256 /* shown by name */ };
#define OWNER_PAUSED "paused"
#define OWNER_WAIT_NS                                                                              \
    (5 * NS_PER_S) /* for the broker's answer, before the owner is told that it is missing */

struct owner;

struct owner_facts { /* of the agent, borrowed during the call; _ms by the wall clock */
    const struct config *config;
    const struct market *market;
    int isolation;
    const struct lanes *lanes;
    bool is_crowded, is_leaving;
    int64_t started_ms;
    int64_t since_ms;       /* when the connection came, or went; 0: it never stood */
    const char *last_error; /* "": none */
    int64_t last_error_ms;
};

/* Reads what is kept of a pause and listens for the owner. The caller holds the folder's lock. */
bool owner_open(const char *folder, struct owner **ret_owner, struct problem *ret_problem);
void owner_close(struct owner **self);
/* Once, before the session is connected: a pause that is kept goes on. */
void owner_begin(const struct owner *owner, struct agent_session *session, int64_t now_ns);
/* When the pause ends that `path` keeps, by the wall clock; 0: when it is resumed. False, with the
 * problem, for a file that keeps none. */
bool owner_read_pause(const char *path, int64_t *ret_until_ms, struct problem *ret_problem);
/* Readable when owner_hear has something to do; it is called in every turn of the loop anyway. */
int owner_fd(const struct owner *owner);
int64_t owner_next_deadline_ns(const struct owner *owner);
/* Hears and carries out what came, answers whose wish has come true, and ends a pause whose time is
 * over. */
void owner_hear(struct owner *owner, struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                const struct owner_facts *facts);
/* The agent shall end, once nothing runs and every result is accepted. */
bool owner_wants_drain(const struct owner *owner);
/* The agent ends: who waits for the drain is told how far it came. */
void owner_ends(struct owner *owner, const struct agent_session *session, int64_t now_ns);

#endif
