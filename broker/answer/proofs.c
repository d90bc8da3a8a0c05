#include "broker/answer/proofs.h"

#include "ledger/receipt.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The receipts of one reply have at most so many bytes, so that the checkpoint fits beside them. */
enum { RECEIPTS_BYTES = 960 << 10 };

static_assert(RECEIPTS_BYTES + LIMIT_NOTE_BYTES + 1024 <= LIMIT_LARGE_BODY_BYTES, "a page fits");
static_assert((int)LEDGER_RECEIPTS_MAX <= (int)LIMIT_ROWS, "a reply has room for a page");
static_assert((int)RECORD_LEAF_MAX <= (int)LIMIT_LEAF_BYTES, "a row has room for a leaf");
static_assert((int)RECEIPT_BATCH_PATH_MAX <= (int)LIMIT_BATCH_PATH, "and for a batch path");
static_assert((int)MERKLE_LEVELS_MAX <= (int)LIMIT_TREE_PATH, "and for a path in the tree");

enum ledger_store_status proofs_receipt(struct ledger_reader *ledger, const struct id128 *cluster,
                                        const struct request *request,
                                        struct outgoing **ret_outgoing)
{
    const Bourse__V1__ReceiptRequest *body = (const void *)request->translation.body;
    struct id128 job = codec_id(body->job);
    char *text = malloc(RECEIPT_TEXT_MAX);
    if (text == NULL) {
        *ret_outgoing = NULL;
        return LEDGER_STORE_OK;
    }
    size_t length = 0;
    enum ledger_store_status status =
        ledger_reader_receipt(ledger, cluster, &job, body->index, text, RECEIPT_TEXT_MAX, &length);
    if (status == LEDGER_STORE_OK) {
        Bourse__V1__ReceiptReply answer = BOURSE__V1__RECEIPT_REPLY__INIT;
        answer.receipt = (ProtobufCBinaryData){.data = (uint8_t *)text, .len = length};
        *ret_outgoing = outgoing_reply(request, MESSAGE_RECEIPT_REPLY, &answer.base);
    }
    free(text);
    return status;
}

/* ---------------------------------------------------------------- many receipts */

struct receipt_rows {
    uint8_t leaves[LEDGER_RECEIPTS_MAX][RECORD_LEAF_MAX];
    Bourse__V1__ReceiptRow rows[LEDGER_RECEIPTS_MAX];
    Bourse__V1__ReceiptRow *pointers[LEDGER_RECEIPTS_MAX];
};

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

/* Fills one row of the reply. `before` is the receipt of the row before, or NULL. The two mostly
 * have one signature and the same hashes near the roots, which are not sent again. */
static void fill_row(const struct receipt *receipt, const struct receipt *before, uint8_t *leaf,
                     Bourse__V1__ReceiptRow *row)
{
    bourse__v1__receipt_row__init(row);
    row->leaf = view(leaf, record_leaf(&receipt->leaf, leaf));
    row->leaf_index = receipt->leaf_index;
    row->result = view(receipt->result, receipt->result_length);
    row->has_signature = before == NULL || memcmp(before->signature.bytes, receipt->signature.bytes,
                                                  sizeof receipt->signature.bytes) != 0;
    row->signature = view(receipt->signature.bytes, sizeof receipt->signature.bytes);
    row->batch_sides = receipt->batch_sides;
    row->batch_shared = (uint32_t)receipt_shared_path(
        receipt->batch_path, receipt->batch_path_length, before != NULL ? before->batch_path : NULL,
        before != NULL ? before->batch_path_length : 0);
    row->batch_path =
        view(receipt->batch_path, (receipt->batch_path_length - row->batch_shared) * 32);
    row->shared = (uint32_t)receipt_shared_path(receipt->path, receipt->path_length,
                                                before != NULL ? before->path : NULL,
                                                before != NULL ? before->path_length : 0);
    row->path = view(receipt->path, (receipt->path_length - row->shared) * 32);
}

enum ledger_store_status proofs_receipts(struct ledger_reader *ledger, const struct id128 *cluster,
                                         const struct request *request,
                                         struct outgoing **ret_outgoing)
{
    const Bourse__V1__ReceiptsRequest *body = (const void *)request->translation.body;
    struct id128 job = codec_id(body->job);
    struct ledger_receipts page;
    enum ledger_store_status status = ledger_reader_receipts(
        ledger, cluster, &job, body->has_from ? body->from : 0, RECEIPTS_BYTES, &page);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    struct receipt_rows *rows = malloc(sizeof *rows);
    *ret_outgoing = NULL;
    if (rows != NULL) {
        Bourse__V1__ReceiptsReply answer = BOURSE__V1__RECEIPTS_REPLY__INIT;
        for (size_t i = 0; i < page.count; i++) {
            fill_row(&page.items[i], i > 0 ? &page.items[i - 1] : NULL, rows->leaves[i],
                     &rows->rows[i]);
            rows->pointers[i] = &rows->rows[i];
        }
        answer.note = view(page.note, strlen(page.note));
        answer.n_rows = page.count;
        answer.rows = rows->pointers;
        answer.has_next = page.has_next;
        answer.next = page.next;
        *ret_outgoing = outgoing_reply(request, MESSAGE_RECEIPTS_REPLY, &answer.base);
    }
    free(rows);
    ledger_receipts_fini(&page);
    return LEDGER_STORE_OK;
}

enum ledger_store_status proofs_checkpoint(struct ledger_reader *ledger,
                                           const struct id128 *cluster,
                                           const struct request *request,
                                           struct outgoing **ret_outgoing)
{
    char note[CHECKPOINT_TEXT_SIZE];
    uint64_t size = 0;
    (void)cluster; /* the note has the log's origin instead */
    enum ledger_store_status status = ledger_reader_checkpoint(ledger, note, &size);
    if (status == LEDGER_STORE_OK) {
        Bourse__V1__CheckpointReply answer = BOURSE__V1__CHECKPOINT_REPLY__INIT;
        answer.note = view(note, strlen(note));
        answer.tree_size = size;
        *ret_outgoing = outgoing_reply(request, MESSAGE_CHECKPOINT_REPLY, &answer.base);
    }
    return status;
}
