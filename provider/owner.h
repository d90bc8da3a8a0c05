/* provider/owner.h answers the owner's requests to the running agent (status, pause, resume and
 * drain).
 *
 * A pause is kept in the agent's folder (`paused`), so it survives a restart. An owner who wants
 * the machine back does not want a power cut to give it away again. A drain is not kept: it ends
 * the process, and the next start offers again. This module is the shell around the session:
 * control.h brings the requests, and provider/session/agent_session.h carries them out. */
#ifndef BOURSE_PROVIDER_OWNER_H
#define BOURSE_PROVIDER_OWNER_H

#include "base/checked.h"
#include "provider/control.h"
#include "provider/owner_status.h"

#define OWNER_PAUSED "paused"
/* After this time the owner is told that the broker has not answered. */
#define OWNER_WAIT_NS (5 * NS_PER_S)

struct owner;

/* Reads a kept pause and listens for the owner. The caller holds the folder's lock. */
bool owner_open(const char *folder, struct owner **ret_owner, struct problem *ret_problem);
void owner_close(struct owner **self);
/* Continues a kept pause. Call it once, before the session is connected. */
void owner_begin(struct owner *owner, struct agent_session *session, int64_t now_ns);
/* Returns true when the owner paused the agent, or each of its devices. */
bool owner_offers_nothing(const struct owner *owner, const struct agent_session *session);
/* Returns a descriptor that is readable when owner_hear has something to do. The loop calls
 * owner_hear in every turn anyway. */
int owner_fd(const struct owner *owner);
int64_t owner_next_deadline_ns(const struct owner *owner);
/* Reads and carries out requests, answers requests that are now fulfilled, and ends a pause whose
 * time is over. */
void owner_hear(struct owner *owner, struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                const struct owner_facts *facts);
/* Notes whether somebody uses the machine. The session rests while somebody does, or while the
 * owner's own pause holds. */
void owner_yield(struct owner *owner, struct agent_session *session, int64_t now_ns,
                 bool is_in_use);
/* Returns true once after the owner resumed by hand while somebody uses the machine. */
bool owner_take_override(struct owner *owner);
/* Returns true when the agent shall end once nothing runs and every result is accepted. */
bool owner_wants_drain(const struct owner *owner);
/* Tells clients that still wait how much of their request was done, because the agent ends. */
void owner_ends(struct owner *owner, const struct agent_session *session, int64_t now_ns);

#endif
