/* A refuted result may withdraw the asks of its account for a time. */
#ifndef BOURSE_EXCHANGE_MARKET_WITHDRAWAL_H
#define BOURSE_EXCHANGE_MARKET_WITHDRAWAL_H

#include "exchange/state/records.h"

/* Counts a refuted result of the account. From the second on, each closes the asks for a time. */
void withdrawal_count_refuted(struct exchange *exchange, uint32_t account);

#endif
