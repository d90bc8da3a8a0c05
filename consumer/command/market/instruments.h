/* consumer/command/market/instruments.h finds out whether the name of an instrument is known,
 * because an empty answer does not reveal a typing error. */
#ifndef BOURSE_CONSUMER_COMMAND_MARKET_INSTRUMENTS_H
#define BOURSE_CONSUMER_COMMAND_MARKET_INSTRUMENTS_H

#include "consumer/command/command.h"

/* Returns true when a device of this market has the instrument, it was traded here, or the
 * catalogue has it, simulated or not. Returns false and the exit status after a message with the
 * nearest name. */
bool instrument_is_known(struct invocation *invocation, const char *name, int *ret_status);

#endif
