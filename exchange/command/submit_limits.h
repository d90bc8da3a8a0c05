/* A submission is checked here before anything is created. */
#ifndef BOURSE_EXCHANGE_COMMAND_SUBMIT_LIMITS_H
#define BOURSE_EXCHANGE_COMMAND_SUBMIT_LIMITS_H

#include "exchange/state/records.h"

/* Checks the command itself; the sender and the market were checked before. */
bool submit_in_range(struct exchange *exchange, const struct exchange_submit *submit);
/* Returns false with the refusal when the moment has passed or lies too far ahead; 0 is none. */
bool submit_moment_in_range(struct exchange *exchange, const char *field, int64_t moment_ns);

#endif
