/* This file verifies receipts offline, with no connection and no key but the log's. */
#include "consumer/client/client.h"
#include "consumer/client/names.h"
#include "consumer/client/rows.h"

#include "base/cleanup.h"
#include "base/energy.h"
#include "base/text.h"
#include "ledger/receipt.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void result_free(Bourse__V1__Result **self)
{
    ProtobufCMessage *message = *self != NULL ? &(*self)->base : NULL;
    codec_free(&message);
    *self = NULL;
}

/* The leaf is the broker's statement and the result the provider's. Both must be about the same
 * attempt. */
static bool agree(const struct receipt *receipt, const Bourse__V1__Result *result)
{
    struct id128 cluster = codec_id(result->cluster);
    struct id128 job = codec_id(result->job);
    struct key32 provider = codec_key(result->provider);
    const struct ledger_record *leaf = &receipt->leaf;
    return id128_equal(&cluster, &receipt->cluster) && id128_equal(&job, &leaf->job) &&
           key32_equal(&provider, &leaf->provider) && result->index == leaf->index &&
           result->attempt == leaf->attempt && result->lease == leaf->lease &&
           result->outcome == leaf->outcome;
}

bool client_receipt_agrees(const struct receipt *receipt)
{
    CLEANUP(result_free) Bourse__V1__Result *result = NULL;
    return codec_decode_result(receipt->result, receipt->result_length, &result, NULL) ==
               CODEC_OK &&
           agree(receipt, result);
}

static void fill(const struct receipt *receipt, const Bourse__V1__Result *result,
                 const struct key32 *key, struct bourse_verified *verified)
{
    *verified = (struct bourse_verified){
        .index = receipt->leaf.index,
        .attempt = receipt->leaf.attempt,
        .outcome_text = names_outcome(result->outcome),
        .price_micro = receipt->leaf.price_micro,
        .paid_ns = receipt->leaf.paid_ns,
        .charge_micro = receipt->leaf.charge_micro,
        .leaf = receipt->leaf_index,
        .status = receipt->leaf.status,
        .status_text = names_attempt(receipt->leaf.status),
        .isolation = rows_isolation(result),
        .simulated = result->has_simulated && result->simulated,
        .energy_uj = result->has_energy_uj ? result->energy_uj : -1,
        .energy_source_text =
            names_energy(result->has_energy_source ? result->energy_source : ENERGY_UNSTATED)};
    text_hex(receipt->cluster.bytes, 16, verified->cluster);
    text_hex(receipt->leaf.job.bytes, 16, verified->job);
    text_hex(receipt->leaf.provider.bytes, 32, verified->provider);
    text_hex(receipt->leaf.owner.bytes, 32, verified->consumer);
    text_hex(result->manifest.data, 32, verified->manifest);
    text_hex(receipt->leaf.hash.bytes, 32, verified->result);
    verified->checked = names_check(receipt->leaf.level);
    if (receipt->leaf.level != CHECK_NONE) {
        text_hex(receipt->leaf.check.bytes, 32, verified->check);
    }
    struct checkpoint checkpoint;
    if (checkpoint_read(receipt->checkpoint, strlen(receipt->checkpoint), key, &checkpoint)) {
        verified->tree_size = checkpoint.size;
        client_copy(verified->origin, sizeof verified->origin, checkpoint.origin);
    }
}

bool bourse_verify(const char *text, size_t length, const char *verifier,
                   struct bourse_verified *ret_verified, struct bourse_error *ret_error)
{
    char origin[CHECKPOINT_ORIGIN_SIZE];
    struct key32 key;
    if (sodium_init() < 0) {
        return client_fail(ret_error, BOURSE_LOCAL,
                           "libsodium cannot be initialised on this machine");
    }
    if (!checkpoint_verifier_read(verifier, origin, &key)) {
        return client_fail(ret_error, BOURSE_USAGE,
                           "the verifier key is not <origin>+<8 hex digits>+<base64>; `bourse key "
                           "--log` prints it");
    }
    void *scratch = malloc(RECEIPT_TEXT_MAX);
    if (scratch == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    struct receipt receipt;
    CLEANUP(result_free) Bourse__V1__Result *result = NULL;
    enum receipt_status status =
        receipt_verify(text, length, origin, &key, scratch, RECEIPT_TEXT_MAX, &receipt);
    bool ok = status == RECEIPT_OK;
    if (!ok) {
        (void)client_fail(ret_error, BOURSE_UNVERIFIED, "%s", receipt_status_text(status));
    } else if (codec_decode_result(receipt.result, receipt.result_length, &result, NULL) !=
                   CODEC_OK ||
               !agree(&receipt, result)) {
        ok = client_fail(ret_error, BOURSE_UNVERIFIED,
                         "the provider's result is not the one that the log speaks of");
    } else {
        fill(&receipt, result, &key, ret_verified);
    }
    free(scratch);
    return ok;
}
