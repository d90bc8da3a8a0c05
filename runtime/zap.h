/* runtime/zap.h decides which clients may connect. The module is the ZAP handler (ZeroMQ RFC 27) of
 * this process.
 *
 * A thread of its own answers libzmq's question for each handshake. Every CURVE client of the
 * domain "bourse" is admitted, and gets the hex of its X25519 key as User-Id. libzmq attaches the
 * User-Id to every message of the connection. The broker knows which account, if any, belongs to
 * the key; unknown keys are simply anonymous (D6). NULL and PLAIN, and other domains, are refused
 * and counted. */
#ifndef BOURSE_RUNTIME_ZAP_H
#define BOURSE_RUNTIME_ZAP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

#define ZAP_DOMAIN "bourse"

struct zap;

struct zap_counts {
    uint64_t admitted;
    uint64_t refused;
};

/* Starts the handler of `context` (a zmq context; one handler each). Call it before any router is
 * opened. */
bool zap_start(void *context, struct zap **ret_zap, struct problem *ret_problem);
/* Ends the thread and waits for it. Call it before the context is destroyed. */
void zap_stop(struct zap **self);
/* Returns the counts; any thread may call it. */
struct zap_counts zap_counts(const struct zap *zap);

#endif
