/* Replay turns journal entries back into an exchange at start, for snapshots, and to verify.
 *
 * It uses the same translation and the same exchange_step as live commands, so it gives the same
 * state (P8). */
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
    REPLAY_WRONG,       /* the content does not follow from the commands, or is damaged */
    REPLAY_OTHER_RULES, /* a command was written under rules that this program does not have */
    REPLAY_FAILED,      /* the replay could not be done: no memory, or an unreadable file */
};

struct entry_command; /* broker/storage/entry.h */
struct translation;   /* broker/core/translate.h */

/* Gets each command and its effects after the command was applied. Returns false to end the
 * replay. */
typedef bool replay_on_effects(void *context, const struct translation *said,
                               const struct exchange_effects *effects);

/* Applies all commands of one entry. `on_effects` may be NULL; the result is FAILED when it ends
 * the replay. Every result but OK comes with a problem that names entry and command; the exchange
 * is then useless. */
enum replay_status replay_entry(struct exchange *exchange, const void *bytes, size_t length,
                                replay_on_effects *on_effects, void *context,
                                struct problem *ret_problem);

/* Returns true when this program can apply commands under `rules`. No entry has set any yet when
 * they are 0: the genesis is the same under all rules. */
bool replay_knows_rules(uint32_t rules);
/* Returns true when this program knows the rules under which command `index` of the journal comes
 * next. Limits count under the rules that they set. Otherwise there is a problem, and the command
 * must not be applied. */
bool replay_allows(const struct exchange *exchange, const struct entry_command *entry,
                   uint64_t index, struct problem *ret_problem);
/* Writes the problem that `what`, such as "the market is", is under rules that this program does
 * not know, and what to do. */
void replay_refuse_rules(uint32_t rules, const char *what, struct problem *ret_problem);
/* Sets limits in an exchange that has none from the journal: those of the first entry that sets
 * any, from entry `first` of `database` on. They are presumed for earlier commands too. Without
 * such an entry the exchange stays unchanged. */
void replay_presume_limits(sqlite3 *database, struct exchange *exchange, uint64_t first);

/* Compares the state hash that a tick may carry with that of `exchange`, before the tick is
 * applied. Returns true when they agree, or `entry` carries none (P10). */
bool replay_state_agrees(struct exchange *exchange, const struct entry_command *entry);

/* A summary says where a market stands. */
struct replay_summary {
    uint64_t command, entries, records, tree_size;
    uint64_t tail; /* entries in the journal's tail that the tables do not have yet */
    int64_t log_time_ns;
    uint32_t accounts;
    struct hash32 state;
    bool has_head;
    struct genesis genesis;
};

/* Rebuilds the market in `folder` from entry 1 with a fresh exchange and compares everything:
 * hashes and numbers of entries, and the state hash of the newest snapshot. Every table of the
 * ledger is compared bit for bit, and the tree's head with the signed one.
 *
 * Entries that stand in the journal's tail alone are checked for their chain. The audit log does
 * not follow from the journal, so only its chain is checked. If there is a HEAD, journal and audit
 * log must reach it. The check only reads; a broker may be running. Every result but OK comes with
 * a problem: the first difference, or what could not be done. */
enum replay_status replay_check(const char *folder, struct replay_summary *ret_summary,
                                struct problem *ret_problem);
/* Calls replay_check and prints one line. */
enum replay_status replay_verify(const char *folder, bool json, struct problem *ret_problem);

#endif
