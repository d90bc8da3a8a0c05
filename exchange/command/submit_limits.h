/* A submission is checked here before anything is created. */
#ifndef BOURSE_EXCHANGE_COMMAND_SUBMIT_LIMITS_H
#define BOURSE_EXCHANGE_COMMAND_SUBMIT_LIMITS_H

#include "exchange/state/records.h"

/* Checks the command itself; the sender and the market were checked before. */
bool submit_in_range(struct exchange *exchange, const struct exchange_submit *submit);

#endif
