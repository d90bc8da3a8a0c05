/* consumer/market/challenged.h counts devices by what the broker found when it challenged the speed
 * that they claim. The header is not installed, and the code is pure. */
#ifndef BOURSE_CONSUMER_MARKET_CHALLENGED_H
#define BOURSE_CONSUMER_MARKET_CHALLENGED_H

#include "consumer/client/bourse.h"

/* Returns the Mflop/s of float32 products that a slot of the device claims, the higher figure of
 * those with and without copies; 0: the device claims none, or is simulated. */
int64_t challenged_claim(const struct bourse_device *device);
/* Counts the device. */
void challenged_add(struct bourse_challenged *counts, const struct bourse_device *device);

#endif
