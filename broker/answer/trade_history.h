/* broker/answer/trade_history.h reads earlier trades from the ledger, so that a start keeps the
 * prices. */
#ifndef BOURSE_BROKER_ANSWER_TRADE_HISTORY_H
#define BOURSE_BROKER_ANSWER_TRADE_HISTORY_H

#include "base/problem.h"
#include "exchange/view/feed.h"

/* The history keeps at most this many trades, up to this age. */
enum { TRADE_HISTORY_TRADES = 1 << 16 };
#define TRADE_HISTORY_AGE_NS (7 * 24 * 3600 * INT64_C(1000000000))

/* Opens the exchange's feed and fills it with the last trades in `database`. Returns false with a
 * problem when memory is short or the ledger cannot be read. */
bool trade_history_load(const char *database, struct exchange *exchange,
                        struct problem *ret_problem);

#endif
