/* broker/blob/blob_recover.h - names, at the start, what results had named before the broker ended.
 *
 * The blob port writes that down a moment after a result was recorded. A broker that was killed in
 * between finds the results in the ledger, and those that are held until they are checked in the
 * exchange. */
#ifndef BOURSE_BROKER_BLOB_BLOB_RECOVER_H
#define BOURSE_BROKER_BLOB_BLOB_RECOVER_H

#include "base/problem.h"
#include "broker/blob/blob_store.h"
#include "exchange/exchange.h"

#include <stdbool.h>

bool blob_recover(struct blob_store *store, const char *database, const struct exchange *exchange,
                  struct problem *ret_problem);

#endif
