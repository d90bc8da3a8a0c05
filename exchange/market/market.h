/* The market runs turns until no order wants anything. */
#ifndef BOURSE_EXCHANGE_MARKET_MARKET_H
#define BOURSE_EXCHANGE_MARKET_MARKET_H

#include "exchange/state/records.h"

void market_run(struct exchange *exchange); /* matches all that wants, refills all that can take */

#endif
