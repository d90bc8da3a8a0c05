/* tests/support/market_wire.h puts the random market of market_model.h on the wire: signed
 * envelopes and journal entries, as its members would send them.
 *
 * Keys of the model are stand-ins. Each maps to a true identity here, and what comes back from the
 * wire names the true identity. Tokens are mapped likewise. */
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
    /* Each is at the first byte of the model's key, and made when first needed. */
    struct identity *identities[256];
};

void market_wire_fini(struct market_wire *wire);

/* Returns the sender of `command` of the model. The identity lives as long as `wire`. */
const struct identity *market_wire_sender(struct market_wire *wire,
                                          const struct exchange_command *command);

/* Returns the malloc'ed payload of a journal entry for `command`: an envelope signed by its sender,
 * the genesis, or what the broker itself writes. `padded` adds an unknown field, which changes the
 * body and not its meaning. *ret_command gets all but payload and log time. */
uint8_t *market_wire_payload(struct market_wire *wire, const struct exchange_command *command,
                             bool padded, struct entry_command *ret_command);

#endif
