/* broker/storage/balance_check.h compares the ledger's accounts and balances with those of the
 * exchange.
 *
 * The exchange comes from the journal, whose chain was checked. Where the two differ, the ledger's
 * row was changed. */
#ifndef BOURSE_BROKER_STORAGE_BALANCE_CHECK_H
#define BOURSE_BROKER_STORAGE_BALANCE_CHECK_H

#include "base/problem.h"
#include "exchange/exchange.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Compares the tables balances and accounts with the exchange. Returns false with a problem that
 * names table and account when a row differs. */
bool balance_check(sqlite3 *database, const struct exchange *exchange, struct problem *ret_problem);

#endif
