#include "ledger/store/tree.h"

#include "ledger/store/tables.h"

#include <assert.h>

int tree_reader_init(struct tree_reader *self, sqlite3 *database)
{
    *self = (struct tree_reader){.error = SQLITE_OK};
    return sqlite3_prepare_v3(
        database,
        "SELECT hash FROM tree WHERE level = ?1 AND idx >= ?2 AND idx < ?2 + ?3 ORDER BY idx", -1,
        SQLITE_PREPARE_PERSISTENT, &self->select_range, NULL);
}

void tree_reader_fini(struct tree_reader *self)
{
    (void)sqlite3_finalize(self->select_range); /* repeats the last step's code */
    self->select_range = NULL;
}

bool tree_read_node(void *tree_reader, unsigned level, uint64_t index, struct hash32 *ret_hash)
{
    struct tree_reader *reader = tree_reader;
    unsigned above = level % TREE_LEVEL_STEP;
    sqlite3_stmt *select = reader->select_range;
    (void)sqlite3_bind_int64(select, 1, level - above); /* a failed bind selects nothing */
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)(index << above));
    (void)sqlite3_bind_int64(select, 3, (sqlite3_int64)1 << above);

    /* A small tree over the stored hashes gives the wanted one. */
    struct merkle folded = {0};
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        struct hash32 hash;
        if (!table_column_bytes(select, 0, &hash, sizeof hash.bytes)) {
            break;
        }
        merkle_append(&folded, &hash, NULL, NULL);
    }
    (void)sqlite3_reset(select); /* repeats the step's code */
    if (code != SQLITE_DONE || folded.size != UINT64_C(1) << above) {
        reader->error = code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_CORRUPT : code;
        return false;
    }
    *ret_hash = merkle_root(&folded);
    return true;
}

bool tree_read_block(struct tree_reader *reader, unsigned level, uint64_t number,
                     struct merkle_block *ret_block)
{
    assert(level % TREE_LEVEL_STEP == 0);
    sqlite3_stmt *select = reader->select_range;
    (void)sqlite3_bind_int64(select, 1, level); /* a failed bind selects nothing */
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)(number * MERKLE_BLOCK_LEAVES));
    (void)sqlite3_bind_int64(select, 3, MERKLE_BLOCK_LEAVES);
    ret_block->count = 0;
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW && ret_block->count < MERKLE_BLOCK_LEAVES) {
        struct hash32 *leaf = &ret_block->nodes[ret_block->count];
        if (!table_column_bytes(select, 0, leaf, sizeof leaf->bytes)) {
            break;
        }
        ret_block->count++;
    }
    (void)sqlite3_reset(select); /* repeats the step's code */
    if (code != SQLITE_DONE) {
        reader->error = code == SQLITE_ROW ? SQLITE_CORRUPT : code;
        return false;
    }
    merkle_block_fill(ret_block);
    return true;
}

bool tree_load(struct tree_reader *reader, uint64_t size, struct merkle *ret_tree)
{
    struct merkle tree = {.size = size};
    assert(size < UINT64_C(1) << MERKLE_LEVELS_MAX);
    for (unsigned level = 0; level < MERKLE_LEVELS_MAX; level++) {
        if ((size >> level & 1) != 0 &&
            !tree_read_node(reader, level, (size >> level) - 1, &tree.edge[level])) {
            return false;
        }
    }
    *ret_tree = tree;
    return true;
}
