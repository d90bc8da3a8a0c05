/* A reader makes receipts of results here, from leaf, batch, tree and checkpoint. */
#include "ledger/receipt.h"
#include "ledger/store/sqlite_reader_internal.h"
#include "ledger/store/tables.h"
#include "ledger/store/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RESULT_LEAF_COLUMN = 3 };

struct proof { /* a receipt and the memory it borrows */
    struct receipt receipt;
    uint8_t *result;
    char note[CHECKPOINT_TEXT_SIZE];
    uint64_t tree_size;
};

static enum ledger_store_status read_checkpoint(struct ledger_reader *reader,
                                                char ret_text[CHECKPOINT_TEXT_SIZE],
                                                uint64_t *ret_size)
{
    sqlite3_stmt *select = reader->prepared[SELECT_CHECKPOINT];
    int code = sqlite3_step(select);
    enum ledger_store_status status =
        code == SQLITE_DONE ? LEDGER_STORE_NOT_FOUND : LEDGER_STORE_OK;
    if (code == SQLITE_ROW) {
        const char *note = (const char *)sqlite3_column_text(select, 1);
        size_t length = (size_t)sqlite3_column_bytes(select, 1);
        if (note == NULL || length >= CHECKPOINT_TEXT_SIZE) {
            status = LEDGER_STORE_CORRUPT;
        } else {
            memcpy(ret_text, note, length);
            ret_text[length] = '\0';
            *ret_size = (uint64_t)sqlite3_column_int64(select, 0);
        }
    }
    return ledger_reader_end_walk(select, code, status);
}

static enum ledger_store_status read_decided(struct ledger_reader *reader, const struct id128 *job,
                                             uint32_t index, struct proof *proof)
{
    sqlite3_stmt *select = reader->prepared[SELECT_DECIDED];
    (void)sqlite3_bind_blob(select, 1, job->bytes, sizeof job->bytes, SQLITE_STATIC);
    (void)sqlite3_bind_int64(select, 2, index);
    int code = sqlite3_step(select);
    enum ledger_store_status status =
        code == SQLITE_DONE ? LEDGER_STORE_NOT_FOUND : LEDGER_STORE_OK;
    if (code == SQLITE_ROW) {
        struct receipt *receipt = &proof->receipt;
        receipt->leaf_index = (uint64_t)sqlite3_column_int64(select, RESULT_LEAF_COLUMN);
        if (!tables_read(select, TABLE_RESULTS, &receipt->leaf)) {
            status = LEDGER_STORE_CORRUPT;
        } else if (!ledger_reader_copy_blob(select, sqlite3_column_count(select) - 1,
                                            &proof->result, &receipt->result_length)) {
            status = LEDGER_STORE_OUT_OF_MEMORY;
        } else if (receipt->result_length > RECEIPT_RESULT_MAX) {
            status = LEDGER_STORE_FULL;
        }
        receipt->result = proof->result;
    }
    return ledger_reader_end_walk(select, code, status);
}

static bool read_batch_node(void *context, unsigned level, uint64_t index, struct hash32 *ret_hash)
{
    const struct hash32 *leaves = context;
    struct merkle folded = {0};
    for (uint64_t i = index << level; i < (index + 1) << level; i++) {
        merkle_append(&folded, &leaves[i], NULL, NULL);
    }
    *ret_hash = merkle_root(&folded);
    return true;
}

/* Returns the sides of the path: bit i says that the i-th hash stands to the left. The walk goes
 * from the root down, so the first bit shifts to the top. */
static uint8_t sides_of(uint64_t count, uint64_t position)
{
    unsigned sides = 0;
    while (count > 1) {
        uint64_t split = 1;
        while (split < count - split) {
            split *= 2;
        }
        bool goes_right = position >= split;
        sides = sides << 1 | (goes_right ? 1 : 0);
        position -= goes_right ? split : 0;
        count = goes_right ? count - split : split;
    }
    return (uint8_t)sides;
}

static enum ledger_store_status prove_in_batch(struct receipt *receipt, const struct hash32 *leaves,
                                               size_t count)
{
    struct hash32 path[MERKLE_LEVELS_MAX];
    struct hash32 leaf = merkle_leaf_hash(receipt->result, receipt->result_length);
    size_t length;
    uint32_t position = receipt->leaf.position;
    if (count == 0 || count > LEDGER_BATCH_MAX || position >= count ||
        !hash32_equal(&leaf, &leaves[position]) ||
        !merkle_inclusion(count, position, read_batch_node, (void *)leaves, path, &length)) {
        return LEDGER_STORE_CORRUPT;
    }
    assert(length <= RECEIPT_BATCH_PATH_MAX);
    receipt->batch_path_length = (uint8_t)length;
    receipt->batch_sides = sides_of(count, position);
    memcpy(receipt->batch_path, path, length * sizeof path[0]);
    return LEDGER_STORE_OK;
}

static enum ledger_store_status read_batch(struct ledger_reader *reader, struct receipt *receipt)
{
    sqlite3_stmt *select = reader->prepared[SELECT_BATCH];
    struct hash32 leaves[LEDGER_BATCH_MAX];
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)receipt->leaf.batch_index);
    int code = sqlite3_step(select);
    enum ledger_store_status status = code == SQLITE_DONE ? LEDGER_STORE_CORRUPT : LEDGER_STORE_OK;
    if (code == SQLITE_ROW) {
        int length = sqlite3_column_bytes(select, 1);
        bool fits =
            length > 0 && (size_t)length <= sizeof leaves && length % (int)sizeof leaves[0] == 0;
        if (!fits ||
            !table_column_bytes(select, 0, receipt->signature.bytes,
                                sizeof receipt->signature.bytes) ||
            !table_column_bytes(select, 1, leaves, length)) {
            status = LEDGER_STORE_CORRUPT;
        } else {
            status = prove_in_batch(receipt, leaves, (size_t)length / sizeof leaves[0]);
        }
    }
    return ledger_reader_end_walk(select, code, status);
}

static enum ledger_store_status prove_in_tree(struct ledger_reader *reader, struct proof *proof)
{
    struct receipt *receipt = &proof->receipt;
    enum ledger_store_status status = read_checkpoint(reader, proof->note, &proof->tree_size);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    receipt->checkpoint = proof->note;
    if (receipt->leaf_index >= proof->tree_size) {
        return LEDGER_STORE_NOT_FOUND; /* not signed yet */
    }
    if (!merkle_inclusion(proof->tree_size, receipt->leaf_index, tree_read_node, &reader->tree,
                          receipt->path, &receipt->path_length)) {
        return store_status_of(reader->tree.error);
    }
    return LEDGER_STORE_OK;
}

static enum ledger_store_status prove(struct ledger_reader *reader, const struct id128 *job,
                                      uint32_t index, struct proof *proof)
{
    enum ledger_store_status status = read_decided(reader, job, index, proof);
    if (status == LEDGER_STORE_OK) {
        status = read_batch(reader, &proof->receipt);
    }
    if (status == LEDGER_STORE_OK) {
        status = prove_in_tree(reader, proof);
    }
    return status;
}

enum ledger_store_status ledger_reader_receipt(struct ledger_reader *reader,
                                               const struct id128 *cluster, const struct id128 *job,
                                               uint32_t index, char *ret_text, size_t capacity,
                                               size_t *ret_length)
{
    struct proof proof = {.receipt = {.cluster = *cluster}};
    /* One transaction makes leaf, nodes and checkpoint consistent. */
    int code = sqlite3_exec(reader->database, "BEGIN", NULL, NULL, NULL);
    if (code != SQLITE_OK) {
        return store_status_of(code);
    }
    enum ledger_store_status status = prove(reader, job, index, &proof);
    (void)sqlite3_exec(reader->database, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    if (status == LEDGER_STORE_OK) {
        size_t length = receipt_write(&proof.receipt, ret_text, capacity);
        status = length > 0 ? LEDGER_STORE_OK : LEDGER_STORE_FULL;
        if (length > 0) {
            *ret_length = length;
        }
    }
    free(proof.result);
    return status;
}

enum ledger_store_status ledger_reader_checkpoint(struct ledger_reader *reader,
                                                  char ret_text[CHECKPOINT_TEXT_SIZE],
                                                  uint64_t *ret_size)
{
    return read_checkpoint(reader, ret_text, ret_size);
}

enum ledger_store_status ledger_reader_root(struct ledger_reader *reader, uint64_t size,
                                            struct hash32 *ret_root)
{
    char note[CHECKPOINT_TEXT_SIZE];
    uint64_t signed_size = 0;
    struct merkle tree;
    enum ledger_store_status status = read_checkpoint(reader, note, &signed_size);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    if (size > signed_size) {
        return LEDGER_STORE_NOT_FOUND;
    }
    if (!tree_load(&reader->tree, size, &tree)) {
        return store_status_of(reader->tree.error);
    }
    *ret_root = merkle_root(&tree);
    return LEDGER_STORE_OK;
}
