/* broker/storage/replay.h - journal entries back into an exchange: at start, for snapshots, and to
 * verify.
 *
 * The same translation and the same exchange_step as on the live path, so the same state (P8). */
#ifndef BOURSE_BROKER_STORAGE_REPLAY_H
#define BOURSE_BROKER_STORAGE_REPLAY_H

#include "base/problem.h"
#include "exchange/exchange.h"
#include "protocol/genesis.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum replay_status {
    REPLAY_OK,
    REPLAY_WRONG,       /* what is there does not follow from the commands, or is damaged */
    REPLAY_OTHER_RULES, /* a command was written under rules that this program does not have */
    REPLAY_FAILED,      /* it could not be done: no memory, or a file that cannot be read */
};

struct translation; /* broker/core/translate.h */

/* Told of the effects of each command after it was applied, and of what it said; false ends the
 * replay. */
typedef bool replay_on_effects(void *context, const struct translation *said,
                               const struct exchange_effects *effects);

/* Applies all commands of one entry. `on_effects` may be NULL; when it ends the replay that is
 * FAILED. Anything but OK comes with a problem that names entry and command; the exchange is then
 * of no use. */
enum replay_status replay_entry(struct exchange *exchange, const void *bytes, size_t length,
                                replay_on_effects *on_effects, void *context,
                                struct problem *ret_problem);

/* Whether this program replays commands that were written under `rules` (0: no entry has said any
 * yet). */
bool replay_knows_rules(uint32_t rules);
/* For an exchange that holds no limits of the journal: those of the first entry that sets any, from
 * entry `first` of `database` on, are presumed for what came before it too. Without one the
 * exchange stays as it is. */
void replay_presume_limits(sqlite3 *database, struct exchange *exchange, uint64_t first);

struct replay_summary { /* where a market stands */
    uint64_t command, entries, records, tree_size;
    int64_t log_time_ns;
    uint32_t accounts;
    struct hash32 state;
    bool has_head;
    struct genesis genesis;
};

/* Rebuilds everything of the market in `folder` from entry 1 with a fresh exchange and compares:
 * hashes and numbers of entries, state hash of the newest snapshot, and every table of the ledger,
 * bit for bit; the tree's head is the signed one. The audit log does not follow from the journal:
 * of it the chain alone is checked. Where there is a HEAD, journal and audit log reach what it has
 * seen. Read only; a broker may be running. Anything but OK comes with a problem: the first
 * difference, or what could not be done. */
enum replay_status replay_check(const char *folder, struct replay_summary *ret_summary,
                                struct problem *ret_problem);
/* The same, and prints one line. */
enum replay_status replay_verify(const char *folder, bool json, struct problem *ret_problem);

#endif
