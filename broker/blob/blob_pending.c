#include "broker/blob/blob_pending.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum statement { HAS, FOR, FOR_ANY, ADD, TAKE, ANY, SUMS, STATEMENT_COUNT };

static const char *const statement_texts[STATEMENT_COUNT] = {
    [HAS] = "SELECT account, size FROM pending WHERE provider = ?1 AND job = ?2 AND hash = ?3",
    [FOR] = "SELECT 1 FROM pending WHERE hash = ?1 AND account = ?2 LIMIT 1",
    [FOR_ANY] = "SELECT 1 FROM pending WHERE hash = ?1 LIMIT 1",
    [ADD] = "INSERT INTO pending (provider, job, hash, account, size) VALUES (?1, ?2, ?3, ?4, ?5)",
    [TAKE] = "DELETE FROM pending WHERE provider = ?1 AND job = ?2 AND hash = ?3",
    [ANY] = "SELECT hash FROM pending WHERE provider = ?1 AND job = ?2 LIMIT 1",
    [SUMS] = ("SELECT provider, job, min(account), count(*), sum(size) FROM pending "
              "GROUP BY provider, job"),
};

struct blob_pending {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct blob_holding *holdings;
    size_t count, capacity;
};

/* ---------------------------------------------------------------- sums */

static struct blob_holding *find(const struct blob_pending *pending,
                                 const struct blob_holder *holder)
{
    for (size_t i = 0; i < pending->count; i++) {
        struct blob_holding *holding = &pending->holdings[i];
        if (holding->holder.provider == holder->provider &&
            id128_equal(&holding->holder.job, &holder->job)) {
            return holding;
        }
    }
    return NULL;
}

static bool has_room(struct blob_pending *pending)
{
    struct blob_holding *holdings =
        array_with_room(pending->holdings, pending->count, &pending->capacity, sizeof *holdings);
    if (holdings == NULL) {
        return false;
    }
    pending->holdings = holdings;
    return true;
}

static bool add_sum(struct blob_pending *pending, const struct blob_holding *added)
{
    struct blob_holding *holding = find(pending, &added->holder);
    if (holding == NULL) {
        if (!has_room(pending)) {
            return false;
        }
        pending->holdings[pending->count++] = *added;
        return true;
    }
    holding->count += added->count;
    holding->bytes += added->bytes;
    return true;
}

static void subtract(struct blob_pending *pending, const struct blob_holder *holder, uint64_t size)
{
    struct blob_holding *holding = find(pending, holder);
    if (holding == NULL) {
        return;
    }
    holding->count--;
    holding->bytes -= size < holding->bytes ? size : holding->bytes;
    if (holding->count == 0) {
        *holding = pending->holdings[--pending->count];
    }
}

/* ---------------------------------------------------------------- rows */

static sqlite3_stmt *fresh(struct blob_pending *pending, enum statement which)
{
    sqlite3_stmt *statement = pending->statements[which];
    (void)sqlite3_reset(statement); /* repeats an error that was reported when it happened */
    (void)sqlite3_clear_bindings(statement);
    return statement;
}

static sqlite3_stmt *of_holder(struct blob_pending *pending, enum statement which,
                               const struct blob_holder *holder)
{
    sqlite3_stmt *statement = fresh(pending, which);
    (void)sqlite3_bind_int64(statement, 1, holder->provider);
    (void)sqlite3_bind_blob(statement, 2, holder->job.bytes, sizeof holder->job.bytes,
                            SQLITE_STATIC);
    return statement;
}

static void bind_hash(sqlite3_stmt *statement, int at, const struct hash32 *hash)
{
    (void)sqlite3_bind_blob(statement, at, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
}

static enum pending_status status_of(int code)
{
    return code == SQLITE_ROW ? PENDING_OK : code == SQLITE_DONE ? PENDING_NONE : PENDING_FAILED;
}

static enum pending_status look(sqlite3_stmt *statement)
{
    const enum pending_status status = status_of(sqlite3_step(statement));
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}

enum pending_status blob_pending_reload(struct blob_pending *pending)
{
    sqlite3_stmt *row = fresh(pending, SUMS);
    enum pending_status status = PENDING_OK;
    pending->count = 0;
    int code;
    while (status == PENDING_OK && (code = sqlite3_step(row)) != SQLITE_DONE) {
        struct blob_holding holding = {0};
        if (code != SQLITE_ROW ||
            sqlite3_column_bytes(row, 1) != (int)sizeof holding.holder.job.bytes) {
            status = PENDING_FAILED;
            break;
        }
        holding.holder.provider = (uint32_t)sqlite3_column_int64(row, 0);
        memcpy(holding.holder.job.bytes, sqlite3_column_blob(row, 1),
               sizeof holding.holder.job.bytes);
        holding.account = (uint32_t)sqlite3_column_int64(row, 2);
        holding.count = (uint64_t)sqlite3_column_int64(row, 3);
        holding.bytes = (uint64_t)sqlite3_column_int64(row, 4);
        status = add_sum(pending, &holding) ? PENDING_OK : PENDING_FAILED;
    }
    (void)sqlite3_reset(row); /* repeats the step's code */
    return status;
}

struct blob_pending *blob_pending_create(sqlite3 *database)
{
    struct blob_pending *pending = calloc(1, sizeof *pending);
    bool good = pending != NULL;
    if (good) {
        pending->database = database;
    }
    for (int i = 0; good && i < STATEMENT_COUNT; i++) {
        good = sqlite3_prepare_v2(database, statement_texts[i], -1, &pending->statements[i],
                                  NULL) == SQLITE_OK;
    }
    if (!good || blob_pending_reload(pending) != PENDING_OK) {
        blob_pending_destroy(&pending);
    }
    return pending;
}

void blob_pending_destroy(struct blob_pending **self)
{
    struct blob_pending *pending = *self;
    if (pending != NULL) {
        for (int i = 0; i < STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(pending->statements[i]);
        }
        free(pending->holdings);
        free(pending);
        *self = NULL;
    }
}

enum pending_status blob_pending_has(struct blob_pending *pending, const struct blob_holder *holder,
                                     const struct hash32 *hash)
{
    if (find(pending, holder) == NULL) {
        return PENDING_NONE;
    }
    sqlite3_stmt *statement = of_holder(pending, HAS, holder);
    bind_hash(statement, 3, hash);
    return look(statement);
}

enum pending_status blob_pending_for(struct blob_pending *pending, uint32_t account,
                                     const struct hash32 *hash)
{
    if (pending->count == 0) {
        return PENDING_NONE;
    }
    sqlite3_stmt *statement = fresh(pending, account == UINT32_MAX ? FOR_ANY : FOR);
    bind_hash(statement, 1, hash);
    if (account != UINT32_MAX) {
        (void)sqlite3_bind_int64(statement, 2, account);
    }
    return look(statement);
}

struct blob_holding blob_pending_of(const struct blob_pending *pending,
                                    const struct blob_holder *holder)
{
    const struct blob_holding nothing = {.holder = *holder};
    const struct blob_holding *holding = find(pending, holder);
    return holding == NULL ? nothing : *holding;
}

size_t blob_pending_count(const struct blob_pending *pending)
{
    return pending->count;
}

struct blob_holding blob_pending_at(const struct blob_pending *pending, size_t index)
{
    return pending->holdings[index];
}

enum pending_status blob_pending_add(struct blob_pending *pending, const struct blob_holder *holder,
                                     uint32_t account, const struct hash32 *hash, uint64_t size)
{
    sqlite3_stmt *statement = of_holder(pending, ADD, holder);
    bind_hash(statement, 3, hash);
    (void)sqlite3_bind_int64(statement, 4, account);
    (void)sqlite3_bind_int64(statement, 5, (sqlite3_int64)size);
    const struct blob_holding added = {
        .holder = *holder, .account = account, .count = 1, .bytes = size};
    return look(statement) == PENDING_NONE && add_sum(pending, &added) ? PENDING_OK
                                                                       : PENDING_FAILED;
}

enum pending_status blob_pending_take(struct blob_pending *pending,
                                      const struct blob_holder *holder, const struct hash32 *hash,
                                      uint32_t *ret_account, uint64_t *ret_size)
{
    if (find(pending, holder) == NULL) {
        return PENDING_NONE;
    }
    sqlite3_stmt *statement = of_holder(pending, HAS, holder);
    bind_hash(statement, 3, hash);
    const enum pending_status status = status_of(sqlite3_step(statement));
    if (status == PENDING_OK) {
        *ret_account = (uint32_t)sqlite3_column_int64(statement, 0);
        *ret_size = (uint64_t)sqlite3_column_int64(statement, 1);
    }
    (void)sqlite3_reset(statement); /* repeats the step's code */
    if (status != PENDING_OK) {
        return status;
    }
    statement = of_holder(pending, TAKE, holder);
    bind_hash(statement, 3, hash);
    if (look(statement) != PENDING_NONE) {
        return PENDING_FAILED;
    }
    subtract(pending, holder, *ret_size);
    return PENDING_OK;
}

enum pending_status blob_pending_any(struct blob_pending *pending, const struct blob_holder *holder,
                                     struct hash32 *ret_hash)
{
    sqlite3_stmt *statement = of_holder(pending, ANY, holder);
    enum pending_status status = status_of(sqlite3_step(statement));
    if (status == PENDING_OK && sqlite3_column_bytes(statement, 0) == (int)sizeof *ret_hash) {
        memcpy(ret_hash->bytes, sqlite3_column_blob(statement, 0), sizeof *ret_hash);
    } else if (status == PENDING_OK) {
        status = PENDING_FAILED;
    }
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}
