#include "broker/blob/blob_damage.h"

#include "base/sha256.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOKS_SIZE = 160 };

enum statement { LOOK, MARK, MEND, ANY, IN_ROW, STATEMENT_COUNT };

static const char *const statement_texts[STATEMENT_COUNT] = {
    [LOOK] = "SELECT looks FROM lost WHERE hash = ?1",
    [MARK] = "INSERT OR REPLACE INTO lost (hash, looks) VALUES (?1, ?2)",
    [MEND] = "DELETE FROM lost WHERE hash = ?1",
    [ANY] = "SELECT 1 FROM lost LIMIT 1",
    [IN_ROW] = "SELECT 1 FROM blob WHERE hash = ?1 AND bytes IS NOT NULL",
};

static const char no_file[] = "none";     /* the looks of a file that is not there */
static const char any_file[] = "unknown"; /* no file looks so */

/* A reading is a blob that is read from its first byte on. The bytes before `next` are hashed. */
struct reading {
    bool is_used;
    struct hash32 hash;
    uint64_t next;
    struct sha256 sum;
    uint64_t begun;
};

struct blob_damage {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    bool has_any; /* false: no blob is lost, and no row is looked for */
    uint64_t begun;
    struct reading readings[BLOB_READINGS_MAX];
};

static sqlite3_stmt *fresh(struct blob_damage *damage, enum statement which,
                           const struct hash32 *hash)
{
    sqlite3_stmt *statement = damage->statements[which];
    (void)sqlite3_reset(statement); /* repeats an error that was reported when it happened */
    (void)sqlite3_clear_bindings(statement);
    (void)sqlite3_bind_blob(statement, 1, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
    return statement;
}

struct blob_damage *blob_damage_create(sqlite3 *database)
{
    struct blob_damage *damage = calloc(1, sizeof *damage);
    bool good = damage != NULL;
    if (good) {
        damage->database = database;
    }
    for (int i = 0; good && i < STATEMENT_COUNT; i++) {
        good = sqlite3_prepare_v2(database, statement_texts[i], -1, &damage->statements[i], NULL) ==
               SQLITE_OK;
    }
    if (!good) {
        blob_damage_destroy(&damage);
        return NULL;
    }
    damage->has_any = sqlite3_step(damage->statements[ANY]) != SQLITE_DONE;
    (void)sqlite3_reset(damage->statements[ANY]); /* an error is met again where it matters */
    return damage;
}

void blob_damage_destroy(struct blob_damage **self)
{
    struct blob_damage *damage = *self;
    if (damage != NULL) {
        for (int i = 0; i < STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(damage->statements[i]);
        }
        free(damage);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- marks */

/* The looks of a file are its inode, size and times. A file that is put in the place of another
 * differs in one of them. */
static void looks_of(const char *path, char ret_looks[LOOKS_SIZE])
{
    struct stat file;
    if (stat(path, &file) != 0) {
        (void)snprintf(ret_looks, LOOKS_SIZE, "%s", no_file);
        return;
    }
    (void)snprintf(ret_looks, LOOKS_SIZE, "%ju %jd %jd.%09ld %jd.%09ld", (uintmax_t)file.st_ino,
                   (intmax_t)file.st_size, (intmax_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec,
                   (intmax_t)file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

enum blob_health blob_damage_look(struct blob_damage *damage, const struct hash32 *hash,
                                  const char *path)
{
    enum blob_health health = BLOB_HEALTH_GOOD;
    char looks[LOOKS_SIZE];
    if (!damage->has_any) {
        return health;
    }
    sqlite3_stmt *statement = fresh(damage, LOOK, hash);
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
        looks_of(path, looks);
        health = strcmp(looks, no_file) == 0 ||
                         strcmp((const char *)sqlite3_column_text(statement, 0), looks) == 0
                     ? BLOB_HEALTH_LOST
                     : BLOB_HEALTH_DOUBTED;
        break;
    case SQLITE_DONE:
        break;
    default:
        health = BLOB_HEALTH_UNKNOWN;
        break;
    }
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return health;
}

static bool run(sqlite3_stmt *statement)
{
    const bool good = sqlite3_step(statement) == SQLITE_DONE;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return good;
}

void blob_damage_tell(struct blob_damage *damage, const struct hash32 *hash, const char *path,
                      const char *what, char *ret_text, size_t capacity)
{
    sqlite3_stmt *statement = fresh(damage, IN_ROW, hash);
    const bool is_row = sqlite3_step(statement) == SQLITE_ROW;
    (void)sqlite3_reset(statement); /* an error is met again where it matters */
    if (is_row) {
        char hex[2 * sizeof hash->bytes + 1];
        text_hex(hash->bytes, sizeof hash->bytes, hex);
        (void)snprintf(ret_text, capacity, "the row of blob %s in %s: %s", hex,
                       sqlite3_db_filename(damage->database, "main"), what);
    } else {
        (void)snprintf(ret_text, capacity, "%s: %s", path, what);
    }
}

void blob_damage_mark(struct blob_damage *damage, const struct hash32 *hash, const char *path,
                      const char *why, char *ret_text, size_t capacity)
{
    char looks[LOOKS_SIZE];
    looks_of(path, looks);
    blob_damage_tell(damage, hash, path, why, ret_text, capacity);
    sqlite3_stmt *statement = fresh(damage, MARK, hash);
    (void)sqlite3_bind_text(statement, 2, looks, -1, SQLITE_STATIC);
    damage->has_any = true;
    if (!run(statement)) {
        const size_t said = strlen(ret_text);
        (void)snprintf(ret_text + said, capacity - said, " (and blobs.db cannot be written)");
    }
}

bool blob_damage_doubt(struct blob_damage *damage, const struct hash32 *hash)
{
    sqlite3_stmt *statement = fresh(damage, MARK, hash);
    (void)sqlite3_bind_text(statement, 2, any_file, -1, SQLITE_STATIC);
    damage->has_any = true;
    return run(statement);
}

bool blob_damage_mend(struct blob_damage *damage, const struct hash32 *hash)
{
    return !damage->has_any || run(fresh(damage, MEND, hash));
}

/* ---------------------------------------------------------------- readings */

/* Returns the reading that goes on at `offset`, or NULL when there is none. At offset 0 a new
 * reading begins, in a free place or in that of the oldest. */
static struct reading *reading_at(struct blob_damage *damage, const struct hash32 *hash,
                                  uint64_t offset)
{
    struct reading *oldest = &damage->readings[0];
    for (size_t i = 0; i < BLOB_READINGS_MAX; i++) {
        struct reading *reading = &damage->readings[i];
        if (offset > 0 && reading->is_used && reading->next == offset &&
            hash32_equal(&reading->hash, hash)) {
            return reading;
        }
        if (!reading->is_used || (oldest->is_used && reading->begun < oldest->begun)) {
            oldest = reading;
        }
    }
    if (offset > 0) {
        return NULL;
    }
    *oldest = (struct reading){.is_used = true, .hash = *hash, .begun = ++damage->begun};
    sha256_start(&oldest->sum);
    return oldest;
}

bool blob_damage_read(struct blob_damage *damage, const struct hash32 *hash, uint64_t offset,
                      const uint8_t *bytes, size_t length, uint64_t size)
{
    struct reading *reading = length == 0 ? NULL : reading_at(damage, hash, offset);
    if (reading == NULL) {
        return true; /* the hash says nothing of a part, neither here nor to the reader */
    }
    sha256_add(&reading->sum, bytes, length);
    reading->next = offset + length;
    if (reading->next < size) {
        return true;
    }
    const struct hash32 found = sha256_end(&reading->sum);
    reading->is_used = false;
    return hash32_equal(&found, hash);
}
