/* tests/sim/market.h - one run: a market drawn from the seed, its work, its faults, and the calm
 * after. */
#ifndef BOURSE_TESTS_SIM_MARKET_H
#define BOURSE_TESTS_SIM_MARKET_H

#include "tests/sim/oracle.h"

#include <stdbool.h>
#include <stdint.h>

/* Every seed must have had so many. */
extern const uint64_t market_commands_least, market_faults_least;
/* Three brokers, of which more is seen. */
extern const bool market_is_cluster;
/* The command that runs a seed again. */
extern const char market_command[];

struct market_result {
    uint64_t commands, entries, faults;
    struct oracle_counts seen;
    double virtual_s;
};

/* Runs the whole seed; the process ends with a message when a promise is broken. */
struct market_result run_market(uint64_t seed, bool traces);

#endif
