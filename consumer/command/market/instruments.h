/* consumer/command/market/instruments.h - which names of instruments mean something: an answer
 * without rows says nothing of a slip. */
#ifndef BOURSE_CONSUMER_COMMAND_MARKET_INSTRUMENTS_H
#define BOURSE_CONSUMER_COMMAND_MARKET_INSTRUMENTS_H

#include "consumer/command/command.h"

/* Whether it is a device's on this market, was traded here, or is of the catalogue, simulated or
 * not. False after having said which is the nearest, with the exit status. */
bool instrument_is_known(struct invocation *invocation, const char *name, int *ret_status);

#endif
