/* ledger/receipt.h - a receipt: everything that proves one result, in one text file (C2SP
 * tlog-proof).
 *
 *     c2sp.org/tlog-proof@v1
 *     extra <base64 of the extra bytes below>
 *     index <n>
 *     <base64 hash> ...
 *     (empty line)
 *     <checkpoint>
 *
 * extra bytes (little endian, cursor): "bourse/receipt/v1" NUL, cluster 16, u16 leaf length,
 * leaf (the canonical RESULT leaf of ledger/record.h), u32 result length, encoded Result,
 * signature of the batch 64, u8 path length, u8 sides (bit i: path hash i stands to the left;
 * bits above the length are zero), path hashes. The sides say the way to the batch's root by
 * themselves: a count and a position would leave room, since several pairs of them share one
 * way.
 *
 * receipt_verify accepts only the exact text that receipt_write makes, then checks: the
 * checkpoint's signature by the broker's log key; the leaf's inclusion; SHA-256 of the Result =
 * the hash in the leaf; the batch path leads to the root that the provider named in the leaf
 * signed. So any changed byte is refused, offline. Pure. */
#ifndef BOURSE_LEDGER_RECEIPT_H
#define BOURSE_LEDGER_RECEIPT_H

#include "base/id.h"
#include "ledger/checkpoint.h"
#include "ledger/merkle.h"
#include "ledger/record.h"

#include <stdbool.h>
#include <stddef.h>

enum { RECEIPT_TEXT_MAX = 1 << 18, RECEIPT_RESULT_MAX = 1 << 16, RECEIPT_BATCH_PATH_MAX = 8 };

struct receipt {
    struct id128 cluster;
    struct ledger_record leaf; /* the fields of a RESULT leaf */
    const uint8_t *result;     /* borrowed */
    size_t result_length;
    struct signature64 signature;
    uint8_t batch_path_length;
    uint8_t batch_sides; /* bit i: batch_path[i] is a left sibling */
    struct hash32 batch_path[RECEIPT_BATCH_PATH_MAX];
    uint64_t leaf_index;
    size_t path_length;
    struct hash32 path[MERKLE_LEVELS_MAX];
    const char *checkpoint; /* the note, borrowed, NUL at the end */
};

enum receipt_status {
    RECEIPT_OK,
    RECEIPT_MALFORMED,      /* not the text that receipt_write makes */
    RECEIPT_BAD_CHECKPOINT, /* not signed by that key */
    RECEIPT_NOT_INCLUDED,
    RECEIPT_WRONG_RESULT,  /* the result is not the one in the leaf */
    RECEIPT_BAD_SIGNATURE, /* not signed by the provider in the leaf */
};

/* Writes the text with a NUL into `ret_text` of `capacity`; returns its length, or 0 when it
 * does not fit (RECEIPT_TEXT_MAX always suffices) or memory is short. */
size_t receipt_write(const struct receipt *receipt, char *ret_text, size_t capacity);

/* Verifies offline. `origin` may be NULL (then any origin under that key). On OK, ret_receipt
 * borrows from `scratch`, which the caller gives: RECEIPT_TEXT_MAX bytes. Less is MALFORMED. */
enum receipt_status receipt_verify(const char *text, size_t length, const char *origin,
                                   const struct key32 *log_key, void *scratch,
                                   size_t scratch_capacity, struct receipt *ret_receipt);
const char *receipt_status_text(enum receipt_status status);

#endif
