/* `struct blob_store` is an open store, which the units blob_store*.c share. */
#ifndef BOURSE_BROKER_BLOB_BLOB_STORE_INTERNAL_H
#define BOURSE_BROKER_BLOB_BLOB_STORE_INTERNAL_H

#include "broker/blob/blob_store.h"

#include "base/sha256.h"
#include "broker/blob/blob_damage.h"
#include "broker/blob/blob_leftovers.h"
#include "broker/copies/copy_log.h"
#include "ledger/store/wal.h"
#include "runtime/hasher.h"
#include "runtime/stamp.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tables of broker/blob/blob_forget.h. */
#define BLOB_FORGET_SCHEMA                                                                         \
    "CREATE TABLE IF NOT EXISTS condemned (account INTEGER NOT NULL, hash BLOB NOT NULL, "         \
    "since_s INTEGER NOT NULL, PRIMARY KEY (account, hash)) STRICT, WITHOUT ROWID;"                \
    "CREATE INDEX IF NOT EXISTS condemned_since ON condemned (since_s);"                           \
    "CREATE TABLE IF NOT EXISTS forgotten (job BLOB PRIMARY KEY, account INTEGER NOT NULL, "       \
    "at_ms INTEGER NOT NULL, reason INTEGER NOT NULL, state INTEGER NOT NULL) STRICT, "            \
    "WITHOUT ROWID;"                                                                               \
    "CREATE INDEX IF NOT EXISTS forgotten_open ON forgotten (state) WHERE state < 2;"

enum { PATH_SIZE = 4096, HEX_SIZE = 65 };

struct partial { /* an upload in progress */
    bool is_used;
    bool is_lent; /* another thread writes the file */
    uint32_t account;
    bool is_for_lease; /* a provider stores it, for the account */
    struct blob_lease lease;
    struct hash32 hash;
    uint64_t size, stored;
    int fd;
    struct sha256 hasher;
    int64_t touched_ns;
};

enum statement {
    FIND,
    INSERT,
    REPLACE,
    OWNS,
    LENDS,
    OWN,
    SPARE,
    USE,
    USAGE,
    FORGET,
    CONDEMN,
    DISOWN,
    NOTE_FORGOTTEN,
    FIND_FORGOTTEN,
    BEGIN,
    COMMIT,
    ROLLBACK,
    STATEMENT_COUNT
};

struct blob_store {
    char folder[PATH_SIZE - 256];
    int64_t quota_bytes, size_bytes;
    sqlite3 *database;
    struct wal wal;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct blob_damage *damage;
    struct blob_pending *pending;
    struct blob_leftovers *leftovers;
    struct copy_log *copies;
    struct partial partials[BLOB_PARTIALS_MAX];
    struct hashed_file {
        struct hash32 hash;
        struct stamp stamp;
    } hashed[BLOB_HASHED_MAX]; /* written and hashed by this process */
    size_t hashed_next;        /* place of the next, which is that of the oldest */
    struct hasher *hasher;     /* made with the first large chunk, by the thread that puts */
    char error[PATH_SIZE + 256];
};

/* Sets the store's error to `what` and errno. Returns TOO_MANY without descriptors, DISK_FULL, or
 * FAILED. */
enum blob_status blob_store_failed(struct blob_store *store, const char *what);
/* Sets the store's error to the database's. Returns DISK_FULL or FAILED. */
enum blob_status blob_store_sqlite_failed(struct blob_store *store);
/* Writes the path of a blob's file. */
void blob_store_path(const struct blob_store *store, const struct hash32 *hash,
                     char ret_path[PATH_SIZE]);

/* Returns a statement without bindings, ready for its first step. */
sqlite3_stmt *blob_store_fresh(struct blob_store *store, enum statement which);
/* Steps a statement that has no rows. Returns OK, DISK_FULL or FAILED. */
enum blob_status blob_store_run(struct blob_store *store, sqlite3_stmt *statement);
/* Runs a statement whose two parameters are the account and the hash. */
enum blob_status blob_store_change(struct blob_store *store, enum statement which, uint32_t account,
                                   const struct hash32 *hash);
/* Adds `bytes`, which may be negative, to what the account's blobs have. */
enum blob_status blob_store_use(struct blob_store *store, uint32_t account, int64_t bytes);
/* Sets *ret_size to the size of a blob that has a row, and to 0 for any other. */
enum blob_status blob_store_size(struct blob_store *store, const struct hash32 *hash,
                                 uint64_t *ret_size);
/* Removes the blob when nobody owns it and no provider has stored it. */
enum blob_status blob_store_drop_unowned(struct blob_store *store, const struct hash32 *hash);
/* Steps a query for one row: OK with the statement at it, NOT_FOUND, or FAILED. The caller
 * resets. */
enum blob_status blob_store_look_up(struct blob_store *store, sqlite3_stmt *statement);
/* Returns OK when the account owns the blob, or the provider stored it for the account; NOT_FOUND,
 * or FAILED. */
enum blob_status blob_store_is_stored_by(struct blob_store *store, uint32_t account,
                                         const struct blob_lease *lease, const struct hash32 *hash);
/* Returns the store's status for one of its pending blobs. */
enum blob_status blob_store_of_pending(struct blob_store *store, enum pending_status status);
/* Writes the row of the blob (with its bytes, or NULL for a file), its owner and what it costs the
 * owner. The row takes the place of what was lost, which costs its owner nothing more. */
enum blob_status blob_store_insert(struct blob_store *store, uint32_t account,
                                   const struct blob_lease *lease, const struct hash32 *hash,
                                   uint64_t size, const uint8_t *bytes);
static inline void blob_store_bind_hash(sqlite3_stmt *statement, int at, const struct hash32 *hash)
{
    (void)sqlite3_bind_blob(statement, at, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
}

/* Notes in the log of changes who owns the blob, and since when it is condemned (0: it is not). */
enum blob_status blob_store_note_owner(struct blob_store *store, uint32_t account,
                                       const struct hash32 *hash, uint64_t size, int64_t since_s);
enum blob_status blob_store_note_disowned(struct blob_store *store, uint32_t account,
                                          const struct hash32 *hash);

/* Returns what is known of a blob's file. */
enum blob_health blob_store_health(struct blob_store *store, const struct hash32 *hash);
/* Returns OK when nothing is known against the blob, else LOST, UNCHECKED or FAILED. */
enum blob_status blob_store_look_for_damage(struct blob_store *store, const struct hash32 *hash);
/* Marks the blob as lost for the reason `why`. Returns LOST. A mark that cannot be written is
 * written when the damage is met again. */
enum blob_status blob_store_lose(struct blob_store *store, const struct hash32 *hash,
                                 const char *why);
extern const char blob_store_wrong_bytes[];

/* Ends an upload and removes its file from partial/. */
void blob_store_drop_partial(struct blob_store *store, struct partial *partial);

#endif
