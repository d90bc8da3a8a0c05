/* consumer/command/market/follow.h runs `book --follow` and `trades --follow`, which show the
 * market as it changes until Ctrl-C. */
#ifndef BOURSE_CONSUMER_COMMAND_MARKET_FOLLOW_H
#define BOURSE_CONSUMER_COMMAND_MARKET_FOLLOW_H

#include "consumer/command/command.h"

/* Each function returns the exit status. */
int follow_book(struct invocation *invocation);
/* Shows the last `limit` trades, then the new ones. */
int follow_trades(struct invocation *invocation, uint64_t limit);

#endif
