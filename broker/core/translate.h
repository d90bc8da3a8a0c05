/* broker/core/translate.h translates messages of the wire into commands of the exchange.
 *
 * Live commands and replay go through the same two functions, so a replayed journal makes the same
 * commands. The code is pure: no clock and no session. The caller fills index, log time, account
 * and origin. */
#ifndef BOURSE_BROKER_CORE_TRANSLATE_H
#define BOURSE_BROKER_CORE_TRANSLATE_H

#include "broker/core/translation.h"
#include "broker/storage/entry.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/reject.h"

#include <stdbool.h>

/* Decodes the body of `envelope`, which must outlive the translation, for its type. Returns
 * REJECT_NONE for any type that the codec knows from a client, else the reason, with *ret_error
 * naming the field. ret->command is set only for types that become commands
 * (translate_is_command). */
enum reject_code translate_message(const struct envelope *envelope, const struct id128 *cluster,
                                   struct translation *ret, struct codec_error *ret_error);
bool translate_is_command(enum message_type type);

/* Returns the outputs that a subtask was given, as the wire carries them, or NULL when memory is
 * short. The caller frees the answer with bourse__v1__given__free_unpacked(answer, NULL). */
Bourse__V1__Given *translate_given(const struct exchange_given *given);
/* Returns the checkpoint that a subtask goes on from, or NULL when memory is short. The caller
 * frees the answer with bourse__v1__saved__free_unpacked(answer, NULL). */
Bourse__V1__Saved *translate_saved(const struct exchange_given *saved);

/* Translates one command of a journal entry; only `origin` stays unset. `payload` of the entry must
 * outlive the translation. Returns false when this broker cannot have written the entry (a corrupt
 * journal). `cluster` is the id that the genesis gave; the genesis itself ignores `cluster`. */
bool translate_entry(const struct entry_command *entry, uint64_t index, const struct id128 *cluster,
                     struct translation *ret);

/* The payload of SUSPECT, RETURNED and GOODBYE entries is the account number. */
enum { TRANSLATE_PRESENCE_BYTES = 4 };
void translate_presence(uint32_t account, uint8_t ret_payload[TRANSLATE_PRESENCE_BYTES]);
/* The payload of LIMITS is u32 rules, the caps of exchange_limits in the order of docs/ledger.md
 * section 1, u64 subtasks, u64 subtasks_per_account. */
enum { TRANSLATE_LIMITS_BYTES = 64 };
void translate_limits(const struct exchange_set_limits *set,
                      uint8_t ret_payload[TRANSLATE_LIMITS_BYTES]);
/* The payload of EPOCH is the commitment, then the secret that is shown. */
enum { TRANSLATE_EPOCH_BYTES = 64 };
void translate_epoch(const struct exchange_epoch *epoch,
                     uint8_t ret_payload[TRANSLATE_EPOCH_BYTES]);
/* Payload of ENTRY_TICK, where it has one: the state hash before the tick. */
enum { TRANSLATE_STATE_BYTES = 32 };
/* Payload of ENTRY_OUTAGE: the time, more than 0, in ns. */
enum { TRANSLATE_OUTAGE_BYTES = 8 };
void translate_outage(int64_t outage_ns, uint8_t ret_payload[TRANSLATE_OUTAGE_BYTES]);

#endif
