/* Recovery names, at the start, the blobs that results had named before the broker ended.
 *
 * The blob port writes these names down a moment after a result was recorded. A broker that was
 * killed in between finds the results in the ledger. Results that are held until their check are in
 * the exchange. */
#ifndef BOURSE_BROKER_BLOB_BLOB_RECOVER_H
#define BOURSE_BROKER_BLOB_BLOB_RECOVER_H

#include "base/problem.h"
#include "broker/blob/blob_store.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* Returns false with a problem when memory is short, or when the ledger or the store fails. */
bool blob_recover(struct blob_store *store, const char *database, const struct exchange *exchange,
                  struct problem *ret_problem);

#endif
