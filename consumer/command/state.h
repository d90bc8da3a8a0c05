/* The functions print the state of the market and of the account. */
#ifndef BOURSE_CONSUMER_COMMAND_STATE_H
#define BOURSE_CONSUMER_COMMAND_STATE_H

#include "consumer/client/bourse.h"
#include "consumer/command/command.h"

/* Says on standard error whether the market is halted, or the account frozen, with the operator's
 * reasons. */
void state_say_of_market(struct invocation *invocation);
/* Says on standard error how far log time is behind, when it is. */
void state_say_behind(struct invocation *invocation);
/* Says on stderr that a broker that follows answered, and of which state. Says nothing when the
 * leader did, or with --json. */
void state_say_follows(struct invocation *invocation);

#endif
