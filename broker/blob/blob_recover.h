/* Recovery at a start tells the blob store which blobs results named before the broker ended.
 *
 * The blob port stores these names a moment after the result is recorded, and a kill may come
 * between. Recovery takes the results from the ledger, and results held for a check from the
 * exchange. */
#ifndef BOURSE_BROKER_BLOB_BLOB_RECOVER_H
#define BOURSE_BROKER_BLOB_BLOB_RECOVER_H

#include "base/problem.h"
#include "broker/blob/blob_store.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* `exchange` is NULL for the results in the ledger alone. Returns false with a problem when memory
 * is short, or when the ledger or the store fails. */
bool blob_recover(struct blob_store *store, const char *database, const struct exchange *exchange,
                  struct problem *ret_problem);

#endif
