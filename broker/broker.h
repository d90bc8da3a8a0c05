/* broker/broker.h runs one complete broker.
 *
 * It opens a market's folder, rebuilds the exchange and starts the threads. It stops them in the
 * order in which work flows, so that everything accepted is committed and answered. */
#ifndef BOURSE_BROKER_BROKER_H
#define BOURSE_BROKER_BROKER_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/storage/storage.h"
#include "exchange/exchange.h"

#include <stdbool.h>

struct broker_options {
    const char *folder;
    bool adopt;  /* accepts a journal without HEAD */
    int signals; /* descriptor of process_signals */
};

/* Runs until SIGTERM or SIGINT. Returns false with a problem when the broker could not start. */
bool broker_run(const struct broker_options *options, struct problem *ret_problem);

/* Rebuilds the exchange from the newest good snapshot and the entries after it. Returns NULL with a
 * problem on failure. */
struct exchange *broker_rebuild(struct storage *store, const struct broker_config *config,
                                struct problem *ret_problem);

#endif
