/* The audit checks leaves, root and the signed checkpoint. RFC 6962 and docs/ledger.md, sections 3
 * and 4, have the rules. */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LEAF_MAX = 320, KIND_ACCOUNT = 1, KIND_MINT = 2, KIND_JOB = 8 };

/* ---- leaves */

static void put(struct writer *out, const void *bytes, size_t length)
{
    writer_bytes(out, bytes, length);
}

static void put_fill(struct writer *out, const struct audit_row *row)
{
    writer_u64(out, row->lease);
    put(out, row->order.bytes, 16);
    put(out, row->bid.bytes, 16);
    put(out, row->job.bytes, 16);
    put(out, row->provider.bytes, 32);
    put(out, row->owner.bytes, 32);
    put(out, row->device.bytes, 16);
    writer_u32(out, row->slots);
    writer_i64(out, row->price);
    writer_i64(out, row->term_ns);
}

static void put_attempt(struct writer *out, const struct audit_row *row)
{
    put(out, row->job.bytes, 16);
    writer_u32(out, row->index);
    writer_u32(out, row->attempt);
    writer_u64(out, row->lease);
    put(out, row->provider.bytes, 32);
    put(out, row->owner.bytes, 32);
    put(out, row->hash.bytes, 32);
}

static void put_result(struct writer *out, const struct audit_row *row)
{
    put_attempt(out, row);
    writer_u8(out, row->outcome);
    writer_u8(out, row->status);
    writer_i64(out, row->price);
    writer_i64(out, row->paid_ns);
    writer_i64(out, row->charge);
    writer_u64(out, row->batch_index);
    writer_u8(out, row->level);
    put(out, row->check.bytes, 32);
}

static void put_job(struct writer *out, const struct audit_row *row)
{
    put(out, row->job.bytes, 16);
    put(out, row->owner.bytes, 32);
    put(out, row->hash.bytes, 32);
    writer_u32(out, row->subtasks);
    writer_i64(out, row->budget);
    writer_i64(out, row->cap);
    writer_u32(out, row->width);
}

static void put_order(struct writer *out, const struct audit_row *row)
{
    put(out, row->order.bytes, 16);
    put(out, row->owner.bytes, 32);
    put(out, row->table == AUDIT_ASKS ? row->device.bytes : row->job.bytes, 16);
    writer_u32(out, row->slots);
    if (row->table == AUDIT_BIDS) {
        writer_u32(out, row->width);
    }
    writer_i64(out, row->price);
}

static void put_settlement(struct writer *out, const struct audit_row *row)
{
    put(out, row->job.bytes, 16);
    writer_u8(out, row->status);
    writer_u32(out, row->accepted);
    writer_u32(out, row->failed);
    writer_u32(out, row->cancelled);
    writer_i64(out, row->charged);
    writer_i64(out, row->released);
}

static void put_fields(struct audit *audit, struct writer *out, const struct audit_row *row)
{
    switch (row->table) {
    case AUDIT_ACCOUNTS:
        put(out, row->owner.bytes, 32);
        writer_u32(out, row->number);
        writer_u32(out, row->roles);
        return;
    case AUDIT_TRANSFERS:
        put(out, audit->accounts[row->credit].key.bytes, 32);
        writer_i64(out, row->amount);
        return;
    case AUDIT_JOBS:
        put_job(out, row);
        return;
    case AUDIT_ASKS:
    case AUDIT_BIDS:
        put_order(out, row);
        return;
    case AUDIT_CANCELS:
        put(out, row->order.bytes, 16);
        writer_u8(out, row->status);
        return;
    case AUDIT_FILLS:
        put_fill(out, row);
        return;
    case AUDIT_RESULTS:
        put_result(out, row);
        return;
    case AUDIT_SETTLEMENTS:
        put_settlement(out, row);
        return;
    case AUDIT_HELD:
        put_attempt(out, row);
        return;
    case AUDIT_EPOCHS:
        put(out, row->hash.bytes, 32);
        put(out, row->check.bytes, 32);
        return;
    case AUDIT_FLAGS:
    case AUDIT_TABLES:
        return;
    }
}

static struct hash32 leaf_of(struct audit *audit, const struct audit_row *row)
{
    static const uint8_t kinds[AUDIT_TABLES] = {
        [AUDIT_ACCOUNTS] = KIND_ACCOUNT,
        [AUDIT_TRANSFERS] = KIND_MINT,
        [AUDIT_JOBS] = KIND_JOB,
        [AUDIT_ASKS] = 9,
        [AUDIT_BIDS] = 10,
        [AUDIT_CANCELS] = 11,
        [AUDIT_FILLS] = 12,
        [AUDIT_RESULTS] = 13,
        [AUDIT_SETTLEMENTS] = 14,
        [AUDIT_HELD] = 16,
        [AUDIT_EPOCHS] = 17,
    };
    uint8_t bytes[1 + LEAF_MAX] = {0x00}; /* RFC 6962 begins a leaf with a zero */
    struct writer out = writer_over(bytes + 1, LEAF_MAX);
    put(&out, "bourse/leaf/v1", 15);
    writer_u8(&out, kinds[row->table]);
    writer_u64(&out, row->log_index);
    writer_i64(&out, row->log_time_ns);
    put_fields(audit, &out, row);
    return sha256_of(bytes, 1 + out.position);
}

/* ---- the tree */

static struct hash32 join(const struct hash32 *left, const struct hash32 *right)
{
    uint8_t bytes[65] = {0x01};
    memcpy(bytes + 1, left->bytes, 32);
    memcpy(bytes + 33, right->bytes, 32);
    return sha256_of(bytes, sizeof bytes);
}

static struct hash32 root_of(const struct audit_tree *tree)
{
    struct hash32 root = sha256_of("", 0);
    bool begun = false;
    for (unsigned level = 0; level < AUDIT_LEVELS; level++) {
        if (tree->size >> level & 1) {
            root = begun ? join(&tree->complete[level], &root) : tree->complete[level];
            begun = true;
        }
    }
    return root;
}

static bool check_stored(struct audit *audit, unsigned level, uint64_t index,
                         const struct hash32 *hash)
{
    sqlite3_stmt *select = audit->tree.nodes[0];
    (void)sqlite3_bind_int64(select, 1, level); /* a failed bind finds nothing */
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)index);
    bool found = sqlite3_step(select) == SQLITE_ROW && sqlite3_column_bytes(select, 0) == 32;
    struct hash32 stored = {{0}};
    if (found) {
        memcpy(stored.bytes, sqlite3_column_blob(select, 0), 32);
    }
    (void)sqlite3_reset(select); /* read only */
    if (found && hash32_equal(&stored, hash)) {
        return true;
    }
    text_hex(hash->bytes, 32, audit->report->expected);
    text_hex(stored.bytes, found ? 32 : 0, audit->report->found);
    return audit_finding(audit, "tree", audit->rows.row.entry,
                         "node %" PRIu64
                         " of level %u is not the hash of its rows; the row's table is %s",
                         index, level, audit_table_name(audit->rows.row.table));
}

bool audit_tree_add(struct audit *audit, const struct audit_row *row)
{
    struct audit_tree *tree = &audit->tree;
    struct hash32 hash = leaf_of(audit, row);
    unsigned level = 0;
    if (!check_stored(audit, 0, tree->size, &hash)) {
        return false;
    }
    for (; tree->size >> level & 1; level++) {
        hash = join(&tree->complete[level], &hash);
        if ((level + 1) % AUDIT_NODE_STEP == 0 &&
            !check_stored(audit, level + 1, tree->size >> (level + 1), &hash)) {
            return false;
        }
    }
    tree->complete[level] = hash;
    tree->size++;
    audit->report->leaves++;
    if (tree->has_note && tree->size == tree->note_size) {
        tree->root_at_checkpoint = root_of(tree);
        tree->has_root = true;
    }
    return true;
}

/* ---- the checkpoint */

bool audit_tree_open(struct audit *audit)
{
    struct audit_tree *tree = &audit->tree;
    if (sqlite3_prepare_v2(audit->database, "SELECT hash FROM tree WHERE level = ?1 AND idx = ?2",
                           -1, &tree->nodes[0], NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(audit->database, "SELECT tree_size, note FROM checkpoint", -1,
                           &tree->nodes[1], NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "this is not a ledger that this program knows: %s",
                                sqlite3_errmsg(audit->database));
    }
    if (sqlite3_step(tree->nodes[1]) == SQLITE_ROW) {
        size_t length = (size_t)sqlite3_column_bytes(tree->nodes[1], 1);
        if (length >= sizeof tree->note) {
            return audit_finding(audit, "checkpoint", 0, "the checkpoint's note is too long");
        }
        memcpy(tree->note, sqlite3_column_text(tree->nodes[1], 1), length);
        tree->note_size = (uint64_t)sqlite3_column_int64(tree->nodes[1], 0);
        tree->has_note = true;
        tree->has_root = tree->note_size == 0;
        tree->root_at_checkpoint = root_of(tree);
    }
    return true;
}

void audit_tree_close(struct audit *audit)
{
    (void)sqlite3_finalize(audit->tree.nodes[0]); /* read only */
    (void)sqlite3_finalize(audit->tree.nodes[1]);
}

/* Writes the text that must stand before the signature: origin, size and re-derived root. Returns
 * the length. */
static size_t expected_body(const struct audit *audit, char ret_text[512])
{
    char root[48];
    text_base64(audit->tree.root_at_checkpoint.bytes, 32, root);
    int length = snprintf(ret_text, 512, "%s\n%" PRIu64 "\n%s\n", audit->genesis.origin,
                          audit->tree.note_size, root);
    return (size_t)length; /* origin, number and root are short */
}

static bool check_signature(struct audit *audit, const char *line, size_t body_length)
{
    char begin[96];
    uint8_t signed_bytes[4 + 64];
    size_t count;
    int length = snprintf(begin, sizeof begin, "\n\xe2\x80\x94 %s ", audit->genesis.origin);
    size_t left = strlen(line);
    if (strncmp(line, begin, (size_t)length) != 0 || left < (size_t)length + 1 ||
        line[left - 1] != '\n' ||
        !text_unbase64(line + length, left - (size_t)length - 1, signed_bytes, sizeof signed_bytes,
                       &count) ||
        count != sizeof signed_bytes) {
        return audit_finding(audit, "checkpoint", 0,
                             "the checkpoint's signature line is not well formed");
    }
    struct signature64 signature;
    memcpy(signature.bytes, signed_bytes + 4, 64);
    uint8_t named[64 + 2 + 32]; /* name, newline, 0x01, key */
    size_t name_length = strlen(audit->genesis.origin);
    memcpy(named, audit->genesis.origin, name_length);
    memcpy(named + name_length, "\n\x01", 2);
    memcpy(named + name_length + 2, audit->genesis.log_key.bytes, 32);
    struct hash32 id = sha256_of(named, name_length + 2 + 32);
    if (memcmp(id.bytes, signed_bytes, 4) != 0 ||
        !identity_verify(&audit->genesis.log_key, audit->tree.note, body_length, &signature)) {
        return audit_finding(audit, "checkpoint", 0,
                             "the checkpoint is not signed by the log key of the genesis");
    }
    audit->report->signatures++;
    return true;
}

static bool check_count(struct audit *audit)
{
    sqlite3_stmt *select;
    uint64_t stored = 0;
    if (sqlite3_prepare_v2(audit->database, "SELECT count(*) FROM tree WHERE level = 0", -1,
                           &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "table tree: %s", sqlite3_errmsg(audit->database));
    }
    if (sqlite3_step(select) == SQLITE_ROW) {
        stored = (uint64_t)sqlite3_column_int64(select, 0);
    }
    (void)sqlite3_finalize(select); /* read only */
    return stored == audit->tree.size ||
           audit_finding(audit, "tree", 0,
                         "the stored tree has %" PRIu64 " leaves, the rows make %" PRIu64, stored,
                         audit->tree.size);
}

bool audit_tree_end(struct audit *audit)
{
    struct audit_tree *tree = &audit->tree;
    if (!check_count(audit)) {
        return false;
    }
    if (!tree->has_note) {
        return tree->size == 0 ||
               audit_finding(audit, "checkpoint", 0, "the checkpoint is missing");
    }
    if (!tree->has_root) {
        return audit_finding(audit, "checkpoint", 0,
                             "the checkpoint signs %" PRIu64 " leaves, the rows make %" PRIu64,
                             tree->note_size, tree->size);
    }
    char body[512];
    size_t length = expected_body(audit, body);
    if (strncmp(tree->note, body, length) != 0) {
        text_printable(body, length, audit->report->expected, sizeof audit->report->expected);
        text_printable(tree->note, strnlen(tree->note, length), audit->report->found,
                       sizeof audit->report->found);
        return audit_finding(audit, "checkpoint", 0,
                             "the checkpoint's origin, size or root is not the one re-derived");
    }
    if (!check_signature(audit, tree->note + length, length)) {
        return false;
    }
    audit->report->tree_size = tree->note_size;
    text_hex(tree->root_at_checkpoint.bytes, 32, audit->report->root);
    return true;
}
