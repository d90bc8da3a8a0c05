/* broker/storage/agreement.h - does the ledger say of every account what the exchange says? The
 * exchange comes from the journal, whose chain was checked, so where they differ the ledger's row
 * was changed. */
#ifndef BOURSE_BROKER_STORAGE_AGREEMENT_H
#define BOURSE_BROKER_STORAGE_AGREEMENT_H

#include "base/problem.h"
#include "exchange/exchange.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Tables balances and accounts against the exchange. False with a problem that names table and
 * account. */
bool agreement_check(sqlite3 *database, const struct exchange *exchange,
                     struct problem *ret_problem);

#endif
