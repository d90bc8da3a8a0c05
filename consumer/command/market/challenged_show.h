/* consumer/command/market/challenged_show.h shows what the broker found when it challenged the
 * speed that devices claim. */
#ifndef BOURSE_CONSUMER_COMMAND_MARKET_CHALLENGED_SHOW_H
#define BOURSE_CONSUMER_COMMAND_MARKET_CHALLENGED_SHOW_H

#include "consumer/command/command.h"

/* Returns "claimed", or what the last challenge found, as in "challenged 2026-11-30: ok". A claim
 * of 0 has "". The text lives until the next call. */
const char *challenged_cell(const struct bourse_challenge *challenge, int64_t claim_mflops);
json_t *challenged_json(const struct bourse_challenge *challenge);

/* Returns "2 ok, 1 lowered, 1 failed, 3 not challenged", without the figures that are 0; "" when
 * all are. The text lives until the next call. */
const char *challenged_counts_cell(const struct bourse_challenged *counts);
/* Returns true when the broker has challenged one of the devices. */
bool challenged_is_any(const struct bourse_challenged *counts);

#endif
