/* broker/storage/etcd/replicated.h joins a market's folder to the market's journal on etcd.
 *
 * A group is appended to etcd first, and then written to the disk with its ledger records. So a
 * folder is a copy of the journal that may lack its end: by the entry that was under way when the
 * broker died, or by all that another broker wrote meanwhile. A broker that does not lead follows:
 * it reads each entry, applies it, and writes it to its own disk like a leader. Only a broker that
 * has all entries can take the lead. From then on etcd refuses what an earlier leader sends. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_REPLICATED_H
#define BOURSE_BROKER_STORAGE_ETCD_REPLICATED_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/storage/storage.h"
#include "exchange/exchange.h"

#include <pthread.h>
#include <stdbool.h>

struct replicated;

/* Opens the journal on etcd after storage_lead(), with an exchange that stands at the end of the
 * folder's journal, and checks that the folder's last entry is one of etcd's. `adopt` lets a folder
 * go to another etcd cluster. All arguments outlive the result. Returns NULL with a problem. */
struct replicated *replicated_open(struct storage *store, struct exchange *exchange,
                                   const struct broker_config *config, bool adopt,
                                   struct problem *ret_problem);
void replicated_close(struct replicated **self);

enum replicated_turn {
    REPLICATED_NEWS,  /* an entry was applied, and this disk has it */
    REPLICATED_QUIET, /* there is no entry yet */
    REPLICATED_DEAF,  /* etcd does not answer */
    REPLICATED_FAILED /* with a problem: this broker cannot follow */
};
/* Applies the next entry, and waits up to `timeout_ms` for it. */
enum replicated_turn replicated_follow(struct replicated *replicated, int timeout_ms,
                                       struct problem *ret_problem);

/* Others read the exchange, too, while it follows. */
struct replicated_readers {
    pthread_mutex_t *state; /* held while the exchange changes */
    /* Is told the effects of every entry, without the lock. */
    void (*applied)(void *context, const struct exchange_effects *effects);
    void *context;
};
/* Sets who reads; NULL: nobody does any more. */
void replicated_share(struct replicated *replicated, const struct replicated_readers *readers);

/* Returns true when the leader whose entries were read last does not serve yet. */
bool replicated_is_starting(const struct replicated *replicated);

/* Asks etcd who leads; epoch 0: nobody yet. The answer is a hint, never proof. Returns false when
 * etcd does not answer. */
bool replicated_leader(struct replicated *replicated, struct journal_leader *ret_leader);
/* Returns true when this leader gave the lead up. */
bool replicated_is_resigned(const struct journal_leader *leader);
/* Returns the successor that a leader wished for when it resigned: the address of its control port,
 * or "rank N"; "" for anybody. */
const char *replicated_wish(const struct journal_leader *leader);
/* Writes the name that a broker of process `pid` on `folder`, an absolute path, leads under. */
void replicated_name(const char *folder, unsigned rank, long pid,
                     char ret_name[sizeof((struct journal_leader *)NULL)->broker]);
/* Returns true when nobody leads: there is no leader yet, it resigned, or it was an earlier run on
 * this folder, whose lock this broker has. */
bool replicated_is_free(const struct replicated *replicated, const struct journal_leader *leader);

/* Tries to take the lead, for clients that reach this broker at `address`. OK: this broker leads.
 * BEHIND and DEPOSED: another broker does. UNKNOWN, UNAVAILABLE and FULL: etcd does not say.
 * CORRUPT comes with a problem. The store forgets when its own last run was, if another broker led
 * since then. */
enum journal_status replicated_lead(struct replicated *replicated, const char *address,
                                    struct problem *ret_problem);
/* Gives the lead up, after the last entry of a broker that stops. `wish` names the successor, as
 * replicated_wish does. Does nothing without etcd. */
void replicated_resign(struct storage *store, const char *wish);

/* Appends the group to the journal on etcd, as an entry of *ret_length bytes in `store->buffer`.
 * OK: etcd has the entry, and this disk must get it. AWAY: etcd may have it; only the same group
 * may follow, and its bytes stay. Another leader, or an entry that etcd refuses, ends the
 * process. */
enum storage_status replicated_append(struct storage *store, const struct group *group,
                                      size_t *ret_length);

/* Notes an entry of `length` bytes that was committed, and cuts what etcd need not keep. */
void replicated_trim(struct storage *store, size_t length);

#endif
