/* broker/core/translate.h - from the wire's words to the exchange's: the one door between them.
 *
 * The live path and replay go through the same two functions, so that a replayed journal makes the
 * same commands. Pure: no clock, no session; index, log time, account and origin are filled by the
 * caller. */
#ifndef BOURSE_BROKER_CORE_TRANSLATE_H
#define BOURSE_BROKER_CORE_TRANSLATE_H

#include "broker/core/arena.h"
#include "broker/storage/entry.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/reject.h"

#include <stdbool.h>

/* A command and the memory that it borrows. Starts as all zeros; translation_fini ends it. */
struct translation {
    struct exchange_command command;
    struct arena arena;
    ProtobufCMessage *body; /* owned: results and texts point into it */
    /* RESULTS: who says to have signed, over what, and the signature; nothing of it is checked
     * here. */
    struct key32 results_provider;
    struct hash32 results_root;
    const struct hash32 *results_leaves; /* in the arena, in the order sent */
    uint32_t results_count;
    struct signature64 results_signature;
    struct exchange_result
        *results; /* those of the command, to say what the broker found of them */
    /* As they came, where the caller asked for them; owned. */
    bool can_store_again; /* the sender of the results says so */
    bool keeps_wire;
    Bourse__V1__Result **results_wire;
};
void translation_fini(struct translation *translation);
/* Frees the results as they came. */
void translation_drop_wire(struct translation *translation);

/* Decodes the body of `envelope`, which must outlive the translation, for its type. True for any
 * type the codec knows from a client; ret->command is set only for those that become commands
 * (translate_is_command). REJECT_NONE, or why not, with *ret_error naming the field. */
enum reject_code translate_message(const struct envelope *envelope, const struct id128 *cluster,
                                   struct translation *ret, struct codec_error *ret_error);
bool translate_is_command(enum message_type type);

/* What a subtask was given, as the wire says it; the caller frees it
 * (bourse__v1__given__free_unpacked, NULL). NULL when out of memory. */
Bourse__V1__Given *translate_given(const struct exchange_given *given);
/* The same of the checkpoint that it goes on from (bourse__v1__saved__free_unpacked, NULL). */
Bourse__V1__Saved *translate_saved(const struct exchange_given *saved);

/* One command of a journal entry, complete but for `origin`. `payload` of the entry must outlive
 * the translation. False when it cannot have been written by this broker (a corrupt journal).
 * `cluster` is what the genesis said; ignored for the genesis itself. */
bool translate_entry(const struct entry_command *entry, uint64_t index, const struct id128 *cluster,
                     struct translation *ret);

/* Payload of SUSPECT, RETURNED and GOODBYE entries: the account number. */
enum { TRANSLATE_PRESENCE_BYTES = 4 };
void translate_presence(uint32_t account, uint8_t ret_payload[TRANSLATE_PRESENCE_BYTES]);
/* Payload of LIMITS: u32 rules, the caps of exchange_limits in the order of docs/ledger.md section
 * 1, u64 subtasks, u64 subtasks_per_account. */
enum { TRANSLATE_LIMITS_BYTES = 64 };
void translate_limits(const struct exchange_set_limits *set,
                      uint8_t ret_payload[TRANSLATE_LIMITS_BYTES]);
/* Payload of EPOCH: commitment, then the secret that is shown. */
enum { TRANSLATE_EPOCH_BYTES = 64 };
void translate_epoch(const struct exchange_epoch *epoch,
                     uint8_t ret_payload[TRANSLATE_EPOCH_BYTES]);

/* SHA-256 of type and body: what D7 compares for "same id, other body". */
struct hash32 translate_body_hash(const struct envelope *envelope);

#endif
