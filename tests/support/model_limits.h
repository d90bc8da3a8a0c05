/* tests/support/model_limits.h has caps small enough that a random market meets them. */
#ifndef BOURSE_TESTS_MODEL_LIMITS_H
#define BOURSE_TESTS_MODEL_LIMITS_H

#include "exchange/exchange.h"

static inline struct exchange_limits model_limits(void)
{
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = 64;
    limits.jobs = 256;
    limits.cells = 64;
    limits.classes = 64;
    limits.ids_per_account = 4096;
    limits.accounts = 40;
    limits.leases = 150; /* few, so that ended leases must make room */
    limits.attempts = 400;
    return limits;
}

#endif
