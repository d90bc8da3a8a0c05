/* consumer/market/isolation_counts.h counts devices by the level of isolation that they state. The
 * header is not installed, and the code is pure. */
#ifndef BOURSE_CONSUMER_MARKET_ISOLATION_COUNTS_H
#define BOURSE_CONSUMER_MARKET_ISOLATION_COUNTS_H

#include "consumer/client/bourse.h"

/* Counts the device once. A level that does not exist counts as not stated. */
void isolation_counts_add(struct bourse_isolation *counts, const struct bourse_device *device);

#endif
