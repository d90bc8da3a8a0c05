/* broker/storage.h - everything durable of a market, opened and checked together: the folder's lock, the keys,
 * the ledger, the journal in the same file, and HEAD beside it.
 *
 * After storage_open only the committer uses the store. Its commit makes a group durable: one transaction
 * with the entry, the ledger records and the signed checkpoint, then HEAD. */
#ifndef BOURSE_BROKER_STORAGE_H
#define BOURSE_BROKER_STORAGE_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/group.h"
#include "broker/journal_sqlite.h"
#include "broker/watermark.h"
#include "ledger/sqlite.h"
#include "protocol/genesis.h"
#include "protocol/identity.h"

#include <stdbool.h>

struct storage {
    char folder[4096];
    int lock;                       /* descriptor that holds the flock */
    struct identity *transport_key; /* of both ports */
    struct identity *log_key;       /* signs checkpoints */
    struct ledger_store *ledger;
    struct journal *journal;
    struct head_file *head;
    uint64_t epoch;
    struct journal_last last; /* newest entry */
    struct genesis genesis;   /* of this market, from entry 1 */
    struct watermark durable; /* newest entry that HEAD holds */
    uint8_t *buffer;          /* ENTRY_MAX_BYTES: the entry being written */
};

/* DIR/name. False when that is too long. */
bool store_path(const char *folder, const char *name, char *ret_path, size_t capacity,
                struct problem *ret_problem);

/* Opens or makes the market in `folder`. `adopt`: believe a journal without HEAD (a restored backup). False
 * with a problem, "LOCKED ..." when another broker has it. *ret_new: the journal is empty, genesis has to
 * be committed first; the genesis is then the config's with a fresh cluster id. */
bool storage_open(const char *folder, const struct broker_config *config, bool adopt,
                  struct storage *ret_store, bool *ret_new, struct problem *ret_problem);
void storage_close(struct storage *store);

enum store_status { STORE_OK, STORE_FULL };
/* Makes `group` durable. FULL: nothing was changed, try again when there is room. Any other failure
 * ends the process with a line that says why. */
enum store_status store_commit(struct storage *store, const struct group *group);

/* Bytes of the genesis command. */
size_t store_genesis(const struct storage *store, uint8_t *ret_bytes, size_t capacity);

#endif
