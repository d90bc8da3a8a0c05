/* consumer/command/market/follow.h - `book --follow` and `trades --follow`: the market as it
 * changes, until Ctrl-C. */
#ifndef BOURSE_CONSUMER_COMMAND_MARKET_FOLLOW_H
#define BOURSE_CONSUMER_COMMAND_MARKET_FOLLOW_H

#include "consumer/command/command.h"

/* Each returns the exit status. */
int follow_book(struct invocation *invocation);
/* After the last `limit` trades those that come. */
int follow_trades(struct invocation *invocation, uint64_t limit);

#endif
