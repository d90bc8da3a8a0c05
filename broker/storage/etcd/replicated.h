/* broker/storage/etcd/replicated.h joins a market's folder to the market's journal on etcd.
 *
 * A group is appended to etcd first, and then written to the disk with its ledger records. So a
 * folder is a copy of the journal that may lack its end: by the entry that was under way when the
 * broker died, or by all that another broker wrote meanwhile. A start reads what is missing,
 * applies it, and only then takes the lead. From then on etcd refuses what an earlier leader
 * sends. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_REPLICATED_H
#define BOURSE_BROKER_STORAGE_ETCD_REPLICATED_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/storage/storage.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* Joins, after storage_lead(), with an exchange that stands at the end of the folder's journal.
 * Without `journal.etcd` in the config, the function only checks that the folder was not on etcd;
 * `adopt` lets such a folder go on alone, or on another etcd cluster. Returns false with a problem.
 * When another leader's entries were read, the store forgets when its own last run was. */
bool replicated_join(struct storage *store, struct exchange *exchange,
                     const struct broker_config *config, bool adopt, struct problem *ret_problem);

/* Notes an entry of `length` bytes that was committed, and cuts what etcd need not keep. */
void replicated_trim(struct storage *store, size_t length);

#endif
