/* This unit checks that a market may be founded, and makes the genesis that its first start
 * commits. */
#ifndef BOURSE_BROKER_STORAGE_FOUNDING_H
#define BOURSE_BROKER_STORAGE_FOUNDING_H

#include "base/problem.h"
#include "broker/config.h"
#include "protocol/genesis.h"
#include "protocol/identity.h"

#include <stdbool.h>

/* Checks, before any file is made in `folder`, that a market may be founded there: the config names
 * an operator and is a valid genesis, and the clock can be right. Returns false with a problem. */
bool founding_may(const char *folder, const struct broker_config *config,
                  struct problem *ret_problem);

/* The keys of the market to be; `log_notes` are those of the log key's file. */
struct founding_keys {
    const struct identity *log, *transport;
    unsigned log_notes;
};

/* Makes the genesis of the config with a fresh cluster id. Returns false with a problem. */
bool founding_genesis(const struct broker_config *config, const struct founding_keys *keys,
                      struct genesis *ret_genesis, struct problem *ret_problem);

#endif
