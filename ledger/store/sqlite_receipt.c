/* A reader makes receipts of results here, from leaf, batch, tree and checkpoint. */
#include "base/array.h"
#include "ledger/receipt.h"
#include "ledger/store/sqlite_reader_internal.h"
#include "ledger/store/tables.h"
#include "ledger/store/tree.h"
#include "ledger/store/tree_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESULT_LEAF_COLUMN = 3,
    /* A receipt's bytes without checkpoint, result and the path in the tree; the last is what the
     * wire adds. */
    RECEIPT_REST = RECORD_LEAF_MAX + 64 + RECEIPT_BATCH_PATH_MAX * 32 + 64,
};

/* The receipts that a page may have: of `job`, from subtask `from` on. */
struct span {
    const struct id128 *cluster, *job;
    uint32_t from;
    int64_t most_rows; /* -1: any number */
    size_t most_bytes;
};

/* A prover makes several receipts of one transaction. The batch and the blocks of the tree are
 * those that were read last. */
struct prover {
    struct ledger_reader *reader;
    uint64_t tree_size;
    struct tree_cache tree;
    bool has_batch;
    uint64_t batch_index;
    struct signature64 signature;
    struct merkle_block batch;
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

/* Reads the row of a result; the receipt owns the copy of its bytes, also on failure. */
static enum ledger_store_status read_row(sqlite3_stmt *select, struct receipt *receipt)
{
    uint8_t *result = NULL;
    receipt->leaf_index = (uint64_t)sqlite3_column_int64(select, RESULT_LEAF_COLUMN);
    if (!tables_read(select, TABLE_RESULTS, &receipt->leaf)) {
        return LEDGER_STORE_CORRUPT;
    }
    if (!ledger_reader_copy_blob(select, sqlite3_column_count(select) - 1, &result,
                                 &receipt->result_length)) {
        return LEDGER_STORE_OUT_OF_MEMORY;
    }
    receipt->result = result;
    return receipt->result_length <= RECEIPT_RESULT_MAX ? LEDGER_STORE_OK : LEDGER_STORE_FULL;
}

static void free_result(const struct receipt *receipt)
{
    free((void *)(uintptr_t)receipt->result);
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

/* Reads a batch, unless it was read last. */
static enum ledger_store_status read_batch(struct prover *prover, uint64_t batch_index)
{
    static_assert((int)LEDGER_BATCH_MAX == (int)MERKLE_BLOCK_LEAVES, "a batch fits a block");
    if (prover->has_batch && prover->batch_index == batch_index) {
        return LEDGER_STORE_OK;
    }
    sqlite3_stmt *select = prover->reader->prepared[SELECT_BATCH];
    struct merkle_block *batch = &prover->batch;
    const int hash_size = sizeof batch->nodes[0];
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)batch_index);
    prover->has_batch = false;
    int code = sqlite3_step(select);
    enum ledger_store_status status = LEDGER_STORE_CORRUPT;
    if (code == SQLITE_ROW) {
        int length = sqlite3_column_bytes(select, 1);
        if (length > 0 && length <= LEDGER_BATCH_MAX * hash_size && length % hash_size == 0 &&
            table_column_bytes(select, 0, prover->signature.bytes,
                               sizeof prover->signature.bytes) &&
            table_column_bytes(select, 1, batch->nodes, length)) {
            batch->count = (size_t)(length / hash_size);
            merkle_block_fill(batch);
            prover->has_batch = true;
            prover->batch_index = batch_index;
            status = LEDGER_STORE_OK;
        }
    } else if (code != SQLITE_DONE) {
        status = LEDGER_STORE_OK; /* the code says what failed */
    }
    return ledger_reader_end_walk(select, code, status);
}

static enum ledger_store_status prove_in_batch(struct prover *prover, struct receipt *receipt)
{
    enum ledger_store_status status = read_batch(prover, receipt->leaf.batch_index);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    struct hash32 path[MERKLE_LEVELS_MAX];
    struct hash32 leaf = merkle_leaf_hash(receipt->result, receipt->result_length);
    size_t length;
    const size_t count = prover->batch.count;
    uint32_t position = receipt->leaf.position;
    if (position >= count || !hash32_equal(&leaf, &prover->batch.nodes[position]) ||
        !merkle_inclusion(count, position, merkle_block_read, &prover->batch, path, &length)) {
        return LEDGER_STORE_CORRUPT;
    }
    assert(length <= RECEIPT_BATCH_PATH_MAX);
    receipt->signature = prover->signature;
    receipt->batch_path_length = (uint8_t)length;
    receipt->batch_sides = sides_of(count, position);
    memcpy(receipt->batch_path, path, length * sizeof path[0]);
    return LEDGER_STORE_OK;
}

static enum ledger_store_status prove(struct prover *prover, struct receipt *receipt)
{
    enum ledger_store_status status = prove_in_batch(prover, receipt);
    if (status == LEDGER_STORE_OK &&
        !merkle_inclusion(prover->tree_size, receipt->leaf_index, tree_cache_read, &prover->tree,
                          receipt->path, &receipt->path_length)) {
        status = store_status_of(prover->reader->tree.error);
    }
    return status;
}

/* Returns how many hashes a path in a tree of so many leaves has at most. */
static size_t levels_of(uint64_t tree_size)
{
    size_t levels = 0;
    while (levels < MERKLE_LEVELS_MAX && UINT64_C(1) << levels < tree_size) {
        levels++;
    }
    return levels;
}

/* Collects the rows of decided subtasks that the checkpoint covers, until the page is full. */
static enum ledger_store_status collect(struct prover *prover, const struct span *span,
                                        struct ledger_receipts *page)
{
    sqlite3_stmt *select = prover->reader->prepared[SELECT_DECIDED];
    (void)sqlite3_bind_blob(select, 1, span->job->bytes, sizeof span->job->bytes, SQLITE_STATIC);
    (void)sqlite3_bind_int64(select, 2, span->from);
    (void)sqlite3_bind_int64(select, 3, span->most_rows);
    enum ledger_store_status status = LEDGER_STORE_OK;
    const size_t rest = RECEIPT_REST + levels_of(prover->tree_size) * sizeof(struct hash32);
    size_t capacity = 0;
    size_t bytes = 0;
    size_t rows = 0; /* also those that no checkpoint covers */
    int code = SQLITE_DONE;
    while (!page->has_next && status == LEDGER_STORE_OK &&
           (code = sqlite3_step(select)) == SQLITE_ROW) {
        struct receipt *items =
            array_with_room(page->items, page->count, &capacity, sizeof *page->items);
        if (items == NULL) {
            status = LEDGER_STORE_OUT_OF_MEMORY;
            break;
        }
        page->items = items;
        struct receipt *receipt = &items[page->count];
        *receipt = (struct receipt){.cluster = *span->cluster};
        status = read_row(select, receipt);
        bytes += rest + receipt->result_length;
        page->has_next = rows > 0 && (bytes > span->most_bytes || rows == LEDGER_RECEIPTS_MAX);
        rows++;
        page->next = receipt->leaf.index;
        if (page->has_next || status != LEDGER_STORE_OK ||
            receipt->leaf_index >= prover->tree_size) {
            free_result(receipt);
        } else {
            page->count++;
        }
    }
    return ledger_reader_end_walk(select, code, status);
}

static int by_leaf(const void *first, const void *second)
{
    const struct receipt *a = first;
    const struct receipt *b = second;
    return (a->leaf_index > b->leaf_index) - (a->leaf_index < b->leaf_index);
}

static enum ledger_store_status make_page(struct prover *prover, const struct span *span,
                                          struct ledger_receipts *page)
{
    enum ledger_store_status status =
        read_checkpoint(prover->reader, page->note, &prover->tree_size);
    if (status == LEDGER_STORE_OK) {
        status = collect(prover, span, page);
    }
    if (status == LEDGER_STORE_OK && page->count > 1) {
        qsort(page->items, page->count, sizeof *page->items, by_leaf);
    }
    for (size_t i = 0; i < page->count && status == LEDGER_STORE_OK; i++) {
        page->items[i].checkpoint = page->note;
        status = prove(prover, &page->items[i]);
    }
    return status;
}

static enum ledger_store_status receipts_of(struct ledger_reader *reader, const struct span *span,
                                            struct ledger_receipts *ret_page)
{
    *ret_page = (struct ledger_receipts){.count = 0};
    struct prover *prover = calloc(1, sizeof *prover);
    if (prover == NULL) {
        return LEDGER_STORE_OUT_OF_MEMORY;
    }
    prover->reader = reader;
    prover->tree.reader = &reader->tree;
    /* One transaction makes leaves, nodes and checkpoint consistent. */
    int code = sqlite3_exec(reader->database, "BEGIN", NULL, NULL, NULL);
    enum ledger_store_status status = store_status_of(code);
    if (status == LEDGER_STORE_OK) {
        status = make_page(prover, span, ret_page);
        (void)sqlite3_exec(reader->database, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    }
    free(prover);
    if (status != LEDGER_STORE_OK) {
        ledger_receipts_fini(ret_page);
    }
    return status;
}

enum ledger_store_status ledger_reader_receipts(struct ledger_reader *reader,
                                                const struct id128 *cluster,
                                                const struct id128 *job, uint32_t from,
                                                size_t most_bytes, struct ledger_receipts *ret_page)
{
    const struct span span = {
        .cluster = cluster, .job = job, .from = from, .most_rows = -1, .most_bytes = most_bytes};
    return receipts_of(reader, &span, ret_page);
}

void ledger_receipts_fini(struct ledger_receipts *page)
{
    for (size_t i = 0; i < page->count; i++) {
        free_result(&page->items[i]);
    }
    free(page->items);
    *page = (struct ledger_receipts){.count = 0};
}

enum ledger_store_status ledger_reader_receipt(struct ledger_reader *reader,
                                               const struct id128 *cluster, const struct id128 *job,
                                               uint32_t index, char *ret_text, size_t capacity,
                                               size_t *ret_length)
{
    struct ledger_receipts page;
    const struct span span = {.cluster = cluster, .job = job, .from = index, .most_rows = 1};
    enum ledger_store_status status = receipts_of(reader, &span, &page);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    if (page.count == 0 || page.items[0].leaf.index != index) {
        status = LEDGER_STORE_NOT_FOUND;
    } else {
        size_t length = receipt_write(&page.items[0], ret_text, capacity);
        status = length > 0 ? LEDGER_STORE_OK : LEDGER_STORE_FULL;
        *ret_length = length > 0 ? length : *ret_length;
    }
    ledger_receipts_fini(&page);
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
