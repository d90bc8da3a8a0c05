/* broker/answer/recall.h - what was traded before a start, out of the ledger: so that prices do not
 * begin anew with every start. */
#ifndef BOURSE_BROKER_ANSWER_RECALL_H
#define BOURSE_BROKER_ANSWER_RECALL_H

#include "base/problem.h"
#include "exchange/view/feed.h"

/* As many as are looked at, and how old they may be. */
enum { RECALL_TRADES = 1 << 16 };
#define RECALL_AGE_NS (7 * 24 * 3600 * INT64_C(1000000000))

/* Opens the exchange's feed, and recalls in it the last trades in `database`. False with a problem:
 * out of memory, or the ledger cannot be read. */
bool recall_market(const char *database, struct exchange *exchange, struct problem *ret_problem);

#endif
