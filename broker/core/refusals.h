/* Refusals of members are counted here until the committer writes them into the audit log.
 *
 * Any thread notes a refusal; the committer takes the counts. The first refusal of an account and
 * code is due at once. Refusals within the next minute become one count, so a flood costs one
 * record a minute. Strangers have no account and are not counted: the gateway drops them. Clocks
 * are arguments. */
#ifndef BOURSE_BROKER_CORE_REFUSALS_H
#define BOURSE_BROKER_CORE_REFUSALS_H

#include "protocol/message.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The table holds REFUSALS_MAX pairs of account and code at a time. Beyond that, refusals are
 * counted by code alone, under no account. */
enum { REFUSALS_MAX = 256, REFUSALS_TAKE_MAX = REFUSALS_MAX + 64, REFUSALS_INTERVAL_S = 60 };

struct refusal_count {
    uint32_t account; /* EXCHANGE_NO_ACCOUNT: several accounts, beyond REFUSALS_MAX */
    enum reject_code code;
    enum message_type type; /* type of the first one counted */
    uint64_t count;
};

struct refusals;

/* Returns NULL when memory is short. */
struct refusals *refusals_create(void);
void refusals_destroy(struct refusals **self);

/* Counts a refusal. A code that says nothing about the sender, such as BUSY, is not counted. */
void refusals_note(struct refusals *refusals, uint32_t account, enum reject_code code,
                   enum message_type type);
/* Takes the counts due at `now_ns` (monotonic), or all of them, oldest first. Returns how many. */
size_t refusals_take(struct refusals *refusals, int64_t now_ns, bool all,
                     struct refusal_count ret_counts[REFUSALS_TAKE_MAX]);

#endif
