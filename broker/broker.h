/* broker/broker.h - one broker, whole: opens a market's folder, rebuilds the exchange, starts the
 * threads, and stops them in the order in which work flows, so that what was accepted is committed
 * and answered. */
#ifndef BOURSE_BROKER_BROKER_H
#define BOURSE_BROKER_BROKER_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/storage/storage.h"
#include "exchange/exchange.h"

#include <stdbool.h>

struct broker_options {
    const char *folder;
    bool adopt;  /* believe a journal without HEAD */
    int signals; /* descriptor of process_signals */
};

/* Runs until SIGTERM or SIGINT. False with a problem when it could not start. */
bool broker_run(const struct broker_options *options, struct problem *ret_problem);

/* The exchange as the journal left it: newest good snapshot and the entries after it. */
struct exchange *broker_rebuild(struct storage *store, const struct broker_config *config,
                                struct problem *ret_problem);

/* Tells systemd, when NOTIFY_SOCKET says that it listens: "READY=1", "STOPPING=1". */
void notify_supervisor(const char *state);

#endif
