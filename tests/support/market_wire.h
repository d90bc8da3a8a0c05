/* tests/support/market_wire.h - the random market of market_model.h as its members would send it: signed
 * envelopes, journal entries.
 *
 * Keys of the model are stand-ins; each maps to a true identity here, and what comes back from the wire
 * names that. Tokens likewise. */
#ifndef BOURSE_TESTS_MARKET_WIRE_H
#define BOURSE_TESTS_MARKET_WIRE_H

#include "broker/storage/entry.h"
#include "exchange/exchange.h"
#include "protocol/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct market_wire {
    struct id128 cluster;
    struct identity *identities[256]; /* by the first byte of the model's key; made when needed */
};

void market_wire_fini(struct market_wire *wire);

/* Whoever sends `command` of the model. Lives as long as `wire`. */
const struct identity *market_wire_sender(struct market_wire *wire,
                                          const struct exchange_command *command);

/* The payload of a journal entry for `command`, malloc'ed: an envelope signed by its sender, the
 * genesis, or what the broker itself writes. `padded`: with an unknown field more, which changes
 * the body and not its meaning. `ret_command` has all but payload and log time. */
uint8_t *market_wire_payload(struct market_wire *wire, const struct exchange_command *command,
                             bool padded, struct entry_command *ret_command);

#endif
