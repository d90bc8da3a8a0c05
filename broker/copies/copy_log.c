#include "broker/copies/copy_log.h"

#include <stdlib.h>
#include <string.h>

enum statement {
    PUT,
    VERSION,
    READ,
    REIGNED,
    NEWEST,
    GONE,
    REMOVE,
    LOST,
    META_GET,
    META_SET,
    STATEMENT_COUNT
};

static const char *const statement_texts[STATEMENT_COUNT] = {
    [PUT] = ("INSERT OR REPLACE INTO copy (kind, key, version, value, gone_s, stamp) "
             "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
    [VERSION] = "SELECT version, stamp FROM copy WHERE kind = ?1 AND key = ?2",
    [READ] = ("SELECT kind, key, version, value, gone_s, stamp FROM copy "
              "WHERE version > ?1 AND version <= ?2 ORDER BY version LIMIT ?3"),
    [REIGNED] = ("SELECT value FROM copy WHERE kind = 4 AND version >= ?1 "
                 "ORDER BY version LIMIT 1"),
    [NEWEST] = "SELECT max(version) FROM copy WHERE version >= ?1 AND version < ?2",
    [GONE] = ("SELECT version FROM copy WHERE gone_s > 0 AND gone_s < ?1 "
              "ORDER BY gone_s LIMIT ?2"),
    [REMOVE] = "DELETE FROM copy WHERE version = ?1 AND gone_s > 0",
    [LOST] = ("SELECT lost.hash, blob.size FROM lost JOIN blob ON blob.hash = lost.hash "
              "WHERE lost.hash > ?1 ORDER BY lost.hash LIMIT ?2"),
    [META_GET] = "SELECT value FROM copy_meta WHERE name = ?1",
    [META_SET] = "INSERT OR REPLACE INTO copy_meta (name, value) VALUES (?1, ?2)",
};

struct copy_log {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    bool is_silent;
    uint64_t epoch;         /* as which this broker leads; 0: it does not */
    uint64_t next;          /* version of the next change */
    uint64_t last;          /* committed */
    uint64_t position;      /* as it is on the disk */
    uint64_t next_position; /* as it is after the commit */
    uint64_t floor;
    int64_t now_s;
};

static sqlite3_stmt *fresh(struct copy_log *log, enum statement which)
{
    sqlite3_stmt *statement = log->statements[which];
    (void)sqlite3_reset(statement); /* repeats an error that was reported when it happened */
    (void)sqlite3_clear_bindings(statement);
    return statement;
}

static bool run(sqlite3_stmt *statement)
{
    const bool good = sqlite3_step(statement) == SQLITE_DONE;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return good;
}

static bool execute(struct copy_log *log, const char *text)
{
    return sqlite3_exec(log->database, text, NULL, NULL, NULL) == SQLITE_OK;
}

/* Reads the one number of a query; a missing row or NULL is 0. */
static bool number_of(sqlite3_stmt *statement, uint64_t *ret_number)
{
    const int code = sqlite3_step(statement);
    *ret_number = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool get_meta(struct copy_log *log, const char *name, uint64_t *ret_value)
{
    sqlite3_stmt *statement = fresh(log, META_GET);
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    return number_of(statement, ret_value);
}

static bool set_meta(struct copy_log *log, const char *name, uint64_t value)
{
    sqlite3_stmt *statement = fresh(log, META_SET);
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)value);
    return run(statement);
}

/* A broker that led has all that it wrote, up to its last change. */
static bool load_position(struct copy_log *log)
{
    uint64_t led = 0;
    uint64_t newest = 0;
    if (!get_meta(log, "position", &log->position) || !get_meta(log, "led", &led) ||
        !get_meta(log, "floor", &log->floor)) {
        return false;
    }
    if (led > copy_version_epoch(log->position)) {
        sqlite3_stmt *statement = fresh(log, NEWEST);
        (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)copy_version_first(led));
        (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)copy_version_first(led + 1));
        if (!number_of(statement, &newest)) {
            return false;
        }
        log->position = newest > log->position ? newest : log->position;
    }
    log->next_position = log->position;
    return true;
}

struct copy_log *copy_log_create(sqlite3 *database)
{
    struct copy_log *log = calloc(1, sizeof *log);
    bool good = log != NULL;
    if (good) {
        log->database = database;
    }
    for (int i = 0; good && i < STATEMENT_COUNT; i++) {
        good = sqlite3_prepare_v2(database, statement_texts[i], -1, &log->statements[i], NULL) ==
               SQLITE_OK;
    }
    if (!good || !load_position(log)) {
        copy_log_destroy(&log);
    }
    return log;
}

void copy_log_destroy(struct copy_log **self)
{
    struct copy_log *log = *self;
    if (log != NULL) {
        for (int i = 0; i < STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(log->statements[i]);
        }
        free(log);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- changes */

static bool write_change(struct copy_log *log, const struct copy_change *change)
{
    static const uint8_t nothing;
    sqlite3_stmt *statement = fresh(log, PUT);
    (void)sqlite3_bind_int64(statement, 1, change->kind);
    (void)sqlite3_bind_blob(statement, 2, change->key, (int)change->key_length, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 3, (sqlite3_int64)change->version);
    (void)sqlite3_bind_blob(statement, 4, change->value_length > 0 ? change->value : &nothing,
                            (int)change->value_length, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 5, change->value_length > 0 ? 0 : change->gone_s);
    (void)sqlite3_bind_int64(statement, 6, (sqlite3_int64)change->stamp);
    return run(statement);
}

bool copy_log_note(struct copy_log *log, enum copy_kind kind, const struct copy_facts *facts)
{
    if (log->epoch == 0 || log->is_silent) {
        return true;
    }
    struct copy_change change = copy_change_of(kind, facts);
    change.version = change.stamp = log->next++;
    change.gone_s = log->now_s;
    return write_change(log, &change);
}

bool copy_log_note_late(struct copy_log *log, const struct copy_change *change)
{
    struct copy_change late = *change;
    late.version = log->next++;
    late.gone_s = log->now_s;
    return write_change(log, &late);
}

bool copy_log_take(struct copy_log *log, const struct copy_change *change)
{
    return write_change(log, change);
}

void copy_log_silence(struct copy_log *log, bool is_silent)
{
    log->is_silent = is_silent;
}

bool copy_log_find(struct copy_log *log, const struct copy_change *change, uint64_t *ret_version,
                   uint64_t *ret_stamp)
{
    sqlite3_stmt *row = fresh(log, VERSION);
    (void)sqlite3_bind_int64(row, 1, change->kind);
    (void)sqlite3_bind_blob(row, 2, change->key, (int)change->key_length, SQLITE_STATIC);
    const int code = sqlite3_step(row);
    *ret_version = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    *ret_stamp = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 1) : 0;
    (void)sqlite3_reset(row); /* repeats the step's code */
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

void copy_log_committed(struct copy_log *log)
{
    log->last = log->epoch == 0 ? 0 : log->next - 1;
    log->position = log->next_position;
}

void copy_log_rolled_back(struct copy_log *log)
{
    log->next_position = log->position;
}

uint64_t copy_log_last(const struct copy_log *log)
{
    return log->last;
}

uint64_t copy_log_epoch(const struct copy_log *log)
{
    return log->epoch;
}

void copy_log_set_time(struct copy_log *log, int64_t now_s)
{
    log->now_s = now_s;
}

static bool read_row(sqlite3_stmt *row, struct copy_change *ret_change)
{
    struct copy_change change = {.kind = (enum copy_kind)sqlite3_column_int(row, 0),
                                 .version = (uint64_t)sqlite3_column_int64(row, 2),
                                 .stamp = (uint64_t)sqlite3_column_int64(row, 5),
                                 .key_length = (size_t)sqlite3_column_bytes(row, 1),
                                 .value_length = (size_t)sqlite3_column_bytes(row, 3),
                                 .gone_s = sqlite3_column_int64(row, 4)};
    if (change.key_length == 0 || change.key_length > sizeof change.key ||
        change.value_length > sizeof change.value) {
        return false;
    }
    memcpy(change.key, sqlite3_column_blob(row, 1), change.key_length);
    if (change.value_length > 0) {
        memcpy(change.value, sqlite3_column_blob(row, 3), change.value_length);
    }
    *ret_change = change;
    return true;
}

int copy_log_read(struct copy_log *log, uint64_t after, uint64_t until, size_t most,
                  struct copy_change *ret_changes)
{
    const uint64_t highest = INT64_MAX;
    sqlite3_stmt *row = fresh(log, READ);
    int count = 0;
    int code;
    (void)sqlite3_bind_int64(row, 1, (sqlite3_int64)(after < highest ? after : highest));
    (void)sqlite3_bind_int64(row, 2, (sqlite3_int64)(until < highest ? until : highest));
    (void)sqlite3_bind_int64(row, 3, (sqlite3_int64)most);
    while ((code = sqlite3_step(row)) == SQLITE_ROW && read_row(row, &ret_changes[count])) {
        count++;
    }
    (void)sqlite3_reset(row); /* repeats the step's code */
    return code == SQLITE_DONE ? count : -1;
}

bool copy_log_offers_after(struct copy_log *log, uint64_t epoch, uint64_t *ret_version)
{
    sqlite3_stmt *row = fresh(log, REIGNED);
    (void)sqlite3_bind_int64(row, 1, (sqlite3_int64)copy_version_first(epoch + 1));
    const int code = sqlite3_step(row);
    struct copy_change reign = {.kind = COPY_REIGN, .key_length = sizeof(uint64_t)};
    struct copy_facts facts = {.founded = UINT64_MAX};
    if (code == SQLITE_ROW && sqlite3_column_bytes(row, 0) == (int)sizeof(uint64_t)) {
        reign.value_length = sizeof(uint64_t);
        memcpy(reign.value, sqlite3_column_blob(row, 0), reign.value_length);
        (void)copy_change_read(&reign, &facts); /* the sizes are those of a reign */
    }
    (void)sqlite3_reset(row); /* repeats the step's code */
    *ret_version = facts.founded;
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* ---------------------------------------------------------------- roles */

/* Writes the changes that say what the tables of a blobs.db without a log have, in the byte order
 * of copy_change.h, from version `first` on. SQLite has no function that writes a number as bytes,
 * so the rows come through copy_change_of. */
typedef struct copy_facts facts_of(sqlite3_stmt *row);

static void copy_bytes(sqlite3_stmt *row, int column, uint8_t *ret_bytes, size_t size)
{
    if (sqlite3_column_bytes(row, column) == (int)size) {
        memcpy(ret_bytes, sqlite3_column_blob(row, column), size);
    }
}

static struct copy_facts owner_of(sqlite3_stmt *row)
{
    struct copy_facts facts = {.account = (uint32_t)sqlite3_column_int64(row, 0),
                               .size = (uint64_t)sqlite3_column_int64(row, 2),
                               .since_s = sqlite3_column_int64(row, 3)};
    copy_bytes(row, 1, facts.hash.bytes, sizeof facts.hash.bytes);
    return facts;
}

static struct copy_facts pending_of(sqlite3_stmt *row)
{
    struct copy_facts facts = {.provider = (uint32_t)sqlite3_column_int64(row, 0),
                               .account = (uint32_t)sqlite3_column_int64(row, 3),
                               .size = (uint64_t)sqlite3_column_int64(row, 4)};
    copy_bytes(row, 1, facts.job.bytes, sizeof facts.job.bytes);
    copy_bytes(row, 2, facts.hash.bytes, sizeof facts.hash.bytes);
    return facts;
}

static struct copy_facts forgotten_of(sqlite3_stmt *row)
{
    struct copy_facts facts = {.account = (uint32_t)sqlite3_column_int64(row, 1),
                               .at_ms = sqlite3_column_int64(row, 2),
                               .reason = (uint8_t)sqlite3_column_int64(row, 3),
                               .state = (uint8_t)sqlite3_column_int64(row, 4)};
    copy_bytes(row, 0, facts.job.bytes, sizeof facts.job.bytes);
    return facts;
}

static bool build_kind(struct copy_log *log, enum copy_kind kind, const char *select,
                       facts_of *facts_of_row)
{
    sqlite3_stmt *rows = NULL;
    bool good = sqlite3_prepare_v2(log->database, select, -1, &rows, NULL) == SQLITE_OK;
    int code = SQLITE_DONE;
    while (good && (code = sqlite3_step(rows)) == SQLITE_ROW) {
        const struct copy_facts facts = facts_of_row(rows);
        struct copy_change change = copy_change_of(kind, &facts);
        change.version = change.stamp = log->next++;
        good = write_change(log, &change);
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    return good && code == SQLITE_DONE;
}

static bool build(struct copy_log *log)
{
    uint64_t is_built = 0;
    if (!get_meta(log, "built", &is_built) || is_built != 0) {
        return is_built != 0;
    }
    return execute(log, "DELETE FROM copy; DELETE FROM copy_meta") &&
           build_kind(log, COPY_OWNER,
                      "SELECT owner.account, owner.hash, blob.size, coalesce(condemned.since_s, 0) "
                      "FROM owner JOIN blob ON blob.hash = owner.hash "
                      "LEFT JOIN condemned ON condemned.account = owner.account "
                      "AND condemned.hash = owner.hash",
                      owner_of) &&
           build_kind(log, COPY_PENDING, "SELECT provider, job, hash, account, size FROM pending",
                      pending_of) &&
           build_kind(log, COPY_FORGOTTEN,
                      "SELECT job, account, at_ms, reason, state FROM forgotten", forgotten_of) &&
           set_meta(log, "built", 1);
}

bool copy_log_be_alone(struct copy_log *log)
{
    uint64_t is_built = 0;
    log->epoch = log->last = log->next_position = log->floor = 0;
    return get_meta(log, "built", &is_built) &&
           (is_built == 0 || execute(log, "DELETE FROM copy; DELETE FROM copy_meta"));
}

/* Forgets versions of a history that was left behind: a market that was restored from a backup
 * begins with low epochs again. */
static bool forget_other_history(struct copy_log *log, uint64_t epoch)
{
    uint64_t newest = 0;
    sqlite3_stmt *statement = fresh(log, NEWEST);
    (void)sqlite3_bind_int64(statement, 1, 0);
    (void)sqlite3_bind_int64(statement, 2, INT64_MAX);
    return number_of(statement, &newest) &&
           (copy_version_epoch(newest) < epoch || copy_log_be_alone(log));
}

/* Changes of a table that was made before any leader had a log get versions of this leader. */
static bool renumber(struct copy_log *log)
{
    enum { AT_ONCE = 64 };
    struct copy_change changes[AT_ONCE];
    int count;
    while ((count = copy_log_read(log, 0, copy_version_first(1) - 1, AT_ONCE, changes)) > 0) {
        for (int i = 0; i < count; i++) {
            changes[i].version = changes[i].stamp = log->next++;
            if (!write_change(log, &changes[i])) {
                return false;
            }
        }
    }
    return count == 0;
}

bool copy_log_lead(struct copy_log *log, uint64_t epoch)
{
    log->next = 1;
    if (!forget_other_history(log, epoch) || !build(log)) {
        return false;
    }
    const struct copy_facts reign = {.epoch = epoch, .founded = log->next_position};
    log->epoch = epoch;
    log->next = copy_version_first(epoch) + 1;
    return copy_log_note(log, COPY_REIGN, &reign) && renumber(log) &&
           set_meta(log, "position", log->next_position) && set_meta(log, "led", epoch);
}

bool copy_log_follow(struct copy_log *log)
{
    log->next = 1;
    log->epoch = log->last = 0;
    return build(log) && set_meta(log, "position", log->next_position);
}

bool copy_log_begin_anew(struct copy_log *log)
{
    log->next_position = log->floor = 0;
    return execute(log, "DELETE FROM owner; DELETE FROM pending; DELETE FROM condemned;"
                        "DELETE FROM forgotten; DELETE FROM usage; DELETE FROM copy;"
                        "DELETE FROM copy_meta") &&
           set_meta(log, "built", 1);
}

/* ---------------------------------------------------------------- position, floor */

uint64_t copy_log_position(const struct copy_log *log)
{
    return log->position;
}

bool copy_log_set_position(struct copy_log *log, uint64_t position)
{
    log->next_position = position;
    return set_meta(log, "position", position);
}

uint64_t copy_log_floor(const struct copy_log *log)
{
    return log->floor;
}

bool copy_log_trim(struct copy_log *log)
{
    sqlite3_stmt *rows = fresh(log, GONE);
    uint64_t versions[COPY_TRIMMED_AT_ONCE];
    size_t count = 0;
    int code;
    (void)sqlite3_bind_int64(rows, 1, log->now_s - COPY_GONE_KEPT_S);
    (void)sqlite3_bind_int64(rows, 2, COPY_TRIMMED_AT_ONCE);
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        versions[count++] = (uint64_t)sqlite3_column_int64(rows, 0);
    }
    (void)sqlite3_reset(rows); /* repeats the step's code */
    uint64_t floor = log->floor;
    bool good = code == SQLITE_DONE;
    for (size_t i = 0; good && i < count; i++) {
        sqlite3_stmt *remove = fresh(log, REMOVE);
        (void)sqlite3_bind_int64(remove, 1, (sqlite3_int64)versions[i]);
        good = run(remove);
        floor = versions[i] > floor ? versions[i] : floor;
    }
    if (good && floor != log->floor) {
        log->floor = floor;
        good = set_meta(log, "floor", floor);
    }
    return good;
}

int copy_log_lost(struct copy_log *log, const struct hash32 *after, size_t most,
                  struct hash32 *ret_hashes, uint64_t *ret_sizes)
{
    sqlite3_stmt *row = fresh(log, LOST);
    int count = 0;
    int code;
    (void)sqlite3_bind_blob(row, 1, after->bytes, sizeof after->bytes, SQLITE_STATIC);
    (void)sqlite3_bind_int64(row, 2, (sqlite3_int64)most);
    while ((code = sqlite3_step(row)) == SQLITE_ROW &&
           sqlite3_column_bytes(row, 0) == (int)sizeof ret_hashes->bytes) {
        memcpy(ret_hashes[count].bytes, sqlite3_column_blob(row, 0), sizeof ret_hashes->bytes);
        ret_sizes[count++] = (uint64_t)sqlite3_column_int64(row, 1);
    }
    (void)sqlite3_reset(row); /* repeats the step's code */
    return code == SQLITE_DONE ? count : -1;
}
