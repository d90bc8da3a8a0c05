/* ledger/receipt.h writes and verifies receipts. A receipt is one text file that proves one result
 * (C2SP tlog-proof).
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
 * bits above the length are zero), path hashes. The sides alone determine the path to the batch's
 * root. A count and a position would be ambiguous, because several pairs share one path.
 *
 * receipt_verify accepts exactly the text that receipt_write makes. The function then checks that
 * the broker's log key signed the checkpoint, and that the tree includes the leaf. SHA-256 of the
 * Result must be the hash in the leaf. The batch path must lead to a root that the provider in the
 * leaf signed. Any changed byte is thus refused, offline. */
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
    RECEIPT_BAD_CHECKPOINT, /* not signed by the given key */
    RECEIPT_NOT_INCLUDED,
    RECEIPT_WRONG_RESULT,  /* the result is not the one in the leaf */
    RECEIPT_BAD_SIGNATURE, /* not signed by the provider in the leaf */
};

/* Writes the text with a NUL into `ret_text` of `capacity` and returns its length. Returns 0 when
 * the text does not fit (RECEIPT_TEXT_MAX always suffices) or memory is short. */
size_t receipt_write(const struct receipt *receipt, char *ret_text, size_t capacity);

/* Verifies a receipt offline. `origin` may be NULL; any origin under the key is then accepted. On
 * RECEIPT_OK, ret_receipt borrows from `scratch`, which the caller provides with RECEIPT_TEXT_MAX
 * bytes. A smaller scratch gives RECEIPT_MALFORMED. */
enum receipt_status receipt_verify(const char *text, size_t length, const char *origin,
                                   const struct key32 *log_key, void *scratch,
                                   size_t scratch_capacity, struct receipt *ret_receipt);
/* The struct has what was verified and what other receipts may share: the checkpoint and the newest
 * batch. A zeroed struct knows nothing. The struct belongs to one log key and one origin. */
struct receipt_known {
    bool has_checkpoint;
    char note[CHECKPOINT_TEXT_SIZE];
    struct checkpoint checkpoint;
    bool has_batch;
    struct key32 provider;
    struct id128 cluster;
    struct hash32 root;
    struct signature64 signature;
};
/* Does the checks of receipt_verify on the fields of a receipt. The checks skip a signature that
 * `known` holds, and note there what they verified. Many receipts with one checkpoint and one batch
 * thus take two signatures instead of two each. */
enum receipt_status receipt_check(const struct receipt *receipt, const char *origin,
                                  const struct key32 *log_key, struct receipt_known *known);
/* Returns how many hashes at the end of a path, next to the root, also end the other path. */
size_t receipt_shared_path(const struct hash32 *path, size_t length, const struct hash32 *other,
                           size_t other_length);
const char *receipt_status_text(enum receipt_status status);

#endif
