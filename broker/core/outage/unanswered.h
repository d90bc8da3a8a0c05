/* An unanswered list has the requests whose answers wait for groups that the core handed over.
 *
 * When the journal takes no entry, the core tells their senders so, once. The requests themselves
 * belong to the groups, which other threads may free at any moment, so the list has copies of what
 * an answer needs. The sender of a request that was answered meanwhile is told in vain, and no
 * longer waits for it. Only the core's thread uses the list. */
#ifndef BOURSE_BROKER_CORE_OUTAGE_UNANSWERED_H
#define BOURSE_BROKER_CORE_OUTAGE_UNANSWERED_H

#include "base/id.h"
#include "broker/core/group.h"

#include <stdint.h>

struct unanswered;

/* Returns NULL when memory is short. */
struct unanswered *unanswered_create(void);
void unanswered_destroy(struct unanswered **self);
/* Keeps what waits for this group, which is handed over now. */
void unanswered_keep(struct unanswered *unanswered, const struct group *group);
/* Forgets what waited for this group, which came back. */
void unanswered_forget(struct unanswered *unanswered, const struct group *group);

/* Tells one sender. */
typedef void unanswered_teller(void *context, uint64_t session, const struct id128 *id);
/* Tells every sender whose request waits for a group that was handed over, and those of `open`, and
 * forgets them. */
void unanswered_tell(struct unanswered *unanswered, const struct group *open,
                     unanswered_teller *teller, void *context);

#endif
