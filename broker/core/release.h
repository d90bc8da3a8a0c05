/* broker/core/release.h turns effects of a committed group into messages. These are answers,
 * pushes, and notes to the directories and the blob store. The code is pure but for memory; the
 * caller decides where messages go. */
#ifndef BOURSE_BROKER_CORE_RELEASE_H
#define BOURSE_BROKER_CORE_RELEASE_H

#include "broker/core/outgoing.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* The receiver of a message owns `outgoing`. */
typedef void release_send(void *context, struct outgoing *outgoing);

/* Sends one message for each effect, in order. Neighbouring dispatches (and withdrawals) of one
 * lease travel together. JOB effects make no message. LEDGER effects make a note to the blob port
 * of the blobs that a result names. Returns false when memory is short; some messages are already
 * sent. */
bool release_effects(const struct exchange_effects *effects, release_send *send, void *context);

/* Returns the blobs of a result that become the consumer's (enum results_blobs). `is_taken`: the
 * result was accepted, or is held until it is checked. */
unsigned release_names(bool is_taken, unsigned outcome);

#endif
