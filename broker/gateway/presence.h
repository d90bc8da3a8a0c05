/* Presence says which providers are heard of. It belongs to a provider's account, over all its
 * connections.
 *
 * The exchange hears SUSPECT, RETURNED and GOODBYE of a provider, each until it was taken. The
 * table of sessions holds the presence. Time is an argument. */
#ifndef BOURSE_BROKER_GATEWAY_PRESENCE_H
#define BOURSE_BROKER_GATEWAY_PRESENCE_H

#include "broker/gateway/sessions.h"
#include "broker/storage/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Notes that `account` may be present since before the broker started. It is missed only after the
 * usual silence. */
bool presence_expect(struct sessions *sessions, uint32_t account, int64_t now_ns);
/* Notes a Hello of the provider's agent on `session`, which gets the provider's pushes from now
 * on. */
bool presence_hello(struct sessions *sessions, uint32_t account, uint64_t session, int64_t now_ns);
void presence_heard(struct sessions *sessions, uint32_t account, int64_t now_ns);
/* Notes that the provider's agent has left. Other agents with its key lose their connections, so
 * that they offer anew. */
void presence_goodbye(struct sessions *sessions, uint32_t account);
/* Notes that the session has lost its connection. Likewise, if it got a provider's pushes. */
void presence_lost(struct sessions *sessions, const struct session *session);
/* Returns true when the provider said goodbye and presence_told has not followed. */
bool presence_owes_goodbye(const struct sessions *sessions, uint32_t account);
/* Returns the session that gets the provider's pushes, or 0 when there is none. */
uint64_t presence_session(const struct sessions *sessions, uint32_t account);

/* Finds the next provider whose state the exchange must hear of now. `position` starts at 0.
 * Returns false when there is none. The caller calls presence_told after the notice was taken. */
bool presence_next_notice(struct sessions *sessions, int64_t now_ns, int64_t heartbeat_ns,
                          uint32_t *position, uint32_t *ret_account,
                          enum entry_command_kind *ret_kind);
/* Notes that the exchange will hear of the state. A suspect provider's session loses its
 * connection: an agent that was only stopped for a while would otherwise never learn that its asks
 * are gone. */
void presence_told(struct sessions *sessions, uint32_t account, enum entry_command_kind kind);

#endif
