/* A translation is a command of the exchange and the memory that the command borrows.
 *
 * It starts as all zeros. broker/core/translate.h makes it from a message or a journal entry, and
 * translation_fini ends it. */
#ifndef BOURSE_BROKER_CORE_TRANSLATION_H
#define BOURSE_BROKER_CORE_TRANSLATION_H

#include "broker/core/arena.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"

#include <stdbool.h>

struct translation {
    struct exchange_command command;
    struct arena arena;
    ProtobufCMessage *body; /* owned: results and texts point into it */
    /* The next fields are set for RESULTS: the provider that claims to have signed, the root and
     * leaves, and the signature. Nothing here checks them. */
    struct key32 results_provider;
    struct hash32 results_root;
    const struct hash32 *results_leaves; /* in the arena, in the order sent */
    uint32_t results_count;
    struct signature64 results_signature;
    /* The results of the command; the broker marks missing ones here. */
    struct exchange_result *results;
    /* `results_wire` holds the results as they came when `keeps_wire` is set; the translation owns
     * them. */
    bool can_store_again; /* the sender of the results says so */
    bool keeps_wire;
    Bourse__V1__Result **results_wire;
};
/* Frees the memory, `body` and `results_wire`. */
void translation_fini(struct translation *translation);
/* Frees `results_wire`. */
void translation_drop_wire(struct translation *translation);

#endif
