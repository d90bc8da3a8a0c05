/* The limits of the market and the rules in force are a record, once a command has set them. */
#ifndef BOURSE_EXCHANGE_STATE_LIMITS_H
#define BOURSE_EXCHANGE_STATE_LIMITS_H

#include "exchange/state/records.h"

/* Sets the caps and rules, and makes them a record of the state. */
void limits_restore(struct exchange *exchange, const struct exchange_set_limits *set);

#endif
