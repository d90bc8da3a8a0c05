#include "broker/storage/backup_removed.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text.h"
#include "broker/storage/folder.h"
#include "runtime/files.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 10000 };

bool backup_removed_forget_owners(sqlite3 *database)
{
    /* A backup of an earlier version has no table of condemned blobs. */
    return sqlite3_exec(database,
                        "CREATE TABLE IF NOT EXISTS condemned (account INTEGER NOT NULL, hash BLOB "
                        "NOT NULL, since_s INTEGER NOT NULL, PRIMARY KEY (account, hash)) STRICT, "
                        "WITHOUT ROWID;"
                        "DELETE FROM owner WHERE hash NOT IN (SELECT hash FROM blob);"
                        "DELETE FROM condemned WHERE hash NOT IN (SELECT hash FROM blob);"
                        "UPDATE usage SET bytes = (SELECT coalesce(sum(size), 0) FROM owner"
                        " JOIN blob USING (hash) WHERE owner.account = usage.account AND NOT"
                        " EXISTS (SELECT 1 FROM condemned WHERE condemned.account = owner.account"
                        " AND condemned.hash = owner.hash))",
                        NULL, NULL, NULL) == SQLITE_OK;
}

struct removed {
    const char *market, *copied; /* folders */
    sqlite3 *index, *copy;       /* their databases */
    struct hash32 *hashes;       /* blobs whose files the copy lacks */
    size_t count, capacity;
};

static void removed_fini(struct removed *removed)
{
    (void)sqlite3_close(removed->index); /* only read */
    (void)sqlite3_close(removed->copy);  /* committed, or thrown away */
    free(removed->hashes);
}

static bool failed(sqlite3 *database, const char *folder, struct problem *ret_problem)
{
    problem_set(ret_problem, "%s/blobs.db: %s", folder,
                database == NULL ? "out of memory" : sqlite3_errmsg(database));
    return false;
}

static bool file_of(const char *folder, const struct hash32 *hash, char ret_path[PATH_MAX],
                    struct problem *ret_problem)
{
    char hex[65];
    char name[80];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(name, sizeof name, "%.2s/%s", hex, hex);
    return folder_path(folder, name, ret_path, PATH_MAX, ret_problem);
}

static bool open_both(struct removed *removed, struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (!folder_path(removed->market, "blobs.db", path, sizeof path, ret_problem)) {
        return false;
    }
    if (sqlite3_open_v2(path, &removed->index, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(removed->index, BUSY_MS) != SQLITE_OK) {
        return failed(removed->index, removed->market, ret_problem);
    }
    if (!folder_path(removed->copied, "blobs.db", path, sizeof path, ret_problem)) {
        return false;
    }
    return sqlite3_open_v2(path, &removed->copy, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK ||
           failed(removed->copy, removed->copied, ret_problem);
}

/* Collects the blobs whose files the copy should have and lacks. */
static bool find_lacking(struct removed *removed, struct problem *ret_problem)
{
    sqlite3_stmt *rows = NULL;
    int code = sqlite3_prepare_v2(removed->copy, "SELECT hash FROM blob WHERE bytes IS NULL", -1,
                                  &rows, NULL);
    bool good = code == SQLITE_OK;
    while (good && (code = sqlite3_step(rows)) == SQLITE_ROW) {
        char path[PATH_MAX];
        struct hash32 hash;
        if (sqlite3_column_bytes(rows, 0) != (int)sizeof hash.bytes) {
            continue; /* a restore reports the damaged row */
        }
        memcpy(hash.bytes, sqlite3_column_blob(rows, 0), sizeof hash.bytes);
        good = file_of(removed->copied, &hash, path, ret_problem);
        if (!good || access(path, F_OK) == 0) {
            continue;
        }
        struct hash32 *hashes =
            array_with_room(removed->hashes, removed->count, &removed->capacity, sizeof hash);
        if (hashes == NULL) {
            problem_set(ret_problem, "out of memory");
            good = false;
        } else {
            removed->hashes = hashes;
            hashes[removed->count++] = hash;
        }
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    return good ? code == SQLITE_DONE || failed(removed->copy, removed->copied, ret_problem)
                : false;
}

/* Returns the code of a statement about one blob. */
static int step_once(sqlite3 *database, const char *text, const struct hash32 *hash)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_blob(statement, 1, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
        code = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement); /* repeats the step's code */
    return code;
}

/* Copies a blob's file. Makes the folder of the file where the copy lacks it. */
static bool copy_one(const struct removed *removed, const struct hash32 *hash,
                     struct problem *ret_problem)
{
    char source[PATH_MAX];
    char target[PATH_MAX];
    char folder[PATH_MAX];
    if (!file_of(removed->market, hash, source, ret_problem) ||
        !file_of(removed->copied, hash, target, ret_problem)) {
        return false;
    }
    if (access(source, F_OK) != 0) {
        return true; /* a restore reports the missing file */
    }
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strlen(target) - 65), target);
    return private_folder(folder, true, ret_problem) && file_copy(source, target, ret_problem);
}

/* Drops a blob from the copy's database, or copies its file when the market has it. */
static bool drop_one(struct removed *removed, const struct hash32 *hash,
                     struct problem *ret_problem)
{
    switch (step_once(removed->index, "SELECT 1 FROM blob WHERE hash = ?1", hash)) {
    case SQLITE_DONE: /* the market removed the blob */
        return step_once(removed->copy, "DELETE FROM blob WHERE hash = ?1", hash) == SQLITE_DONE ||
               failed(removed->copy, removed->copied, ret_problem);
    case SQLITE_ROW: /* the blob was stored again, or the market lacks its file, too */
        return copy_one(removed, hash, ret_problem);
    default:
        return failed(removed->index, removed->market, ret_problem);
    }
}

bool backup_removed_drop(const char *market_blobs, const char *copied_blobs,
                         struct problem *ret_problem)
{
    CLEANUP(removed_fini)
    struct removed removed = {.market = market_blobs, .copied = copied_blobs};
    if (!open_both(&removed, ret_problem) || !find_lacking(&removed, ret_problem)) {
        return false;
    }
    if (removed.count == 0) {
        return true;
    }
    if (sqlite3_exec(removed.copy, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return failed(removed.copy, copied_blobs, ret_problem);
    }
    for (size_t i = 0; i < removed.count; i++) {
        if (!drop_one(&removed, &removed.hashes[i], ret_problem)) {
            return false;
        }
    }
    return (backup_removed_forget_owners(removed.copy) &&
            sqlite3_exec(removed.copy, "COMMIT", NULL, NULL, NULL) == SQLITE_OK) ||
           failed(removed.copy, copied_blobs, ret_problem);
}
