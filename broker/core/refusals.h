/* broker/core/refusals.h - counts what was refused to members, until the committer writes it into
 * the audit log.
 *
 * Any thread notes; the committer takes. The first refusal of an account and code is due at once,
 * what follows within a minute is one count: a flood costs one record a minute. Strangers are not
 * here: they have no account, and the gateway drops them. Clocks are arguments. */
#ifndef BOURSE_BROKER_CORE_REFUSALS_H
#define BOURSE_BROKER_CORE_REFUSALS_H

#include "protocol/message.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* REFUSALS_MAX pairs of account and code at a time; with more, refusals are counted by code alone,
 * under nobody's account. */
enum { REFUSALS_MAX = 256, REFUSALS_TAKE_MAX = REFUSALS_MAX + 64, REFUSALS_INTERVAL_S = 60 };

struct refusal_count {
    uint32_t account; /* EXCHANGE_NO_ACCOUNT: several, beyond REFUSALS_MAX */
    enum reject_code code;
    enum message_type type; /* of the first one counted */
    uint64_t count;
};

struct refusals;

struct refusals *refusals_create(void); /* NULL when out of memory */
void refusals_destroy(struct refusals **self);

/* Whether this refusal says something about its sender: not BUSY, SESSION and the like, which are
 * about the broker, nor BLOB_OFFSET, by which uploads resume. */
bool refusals_concern_the_sender(enum reject_code code);
void refusals_note(struct refusals *refusals, uint32_t account, enum reject_code code,
                   enum message_type type);
/* Takes what is due at `now_ns` (monotonic), or all; returns how many. Oldest first. */
size_t refusals_take(struct refusals *refusals, int64_t now_ns, bool all,
                     struct refusal_count ret_counts[REFUSALS_TAKE_MAX]);

#endif
