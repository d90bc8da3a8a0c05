#include "broker/core/act_log.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "ledger/store/sqlite_code.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The hashes cover the NUL of the domains. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS acts("
    "  number INTEGER PRIMARY KEY, log_index INTEGER NOT NULL, chain BLOB NOT NULL,"
    "  bytes BLOB NOT NULL) STRICT";
static const char record_domain[] = "bourse/act/v1";
static const char mark_domain[] = "bourse/acts/v1";

/* The place where the chain stands. */
struct end {
    uint64_t number;
    struct hash32 chain;
    int64_t log_time_ns; /* log time of that record */
};

struct act_log {
    sqlite3_stmt *insert;
    const struct identity *key;
    struct id128 cluster;
    struct end durable, open;
    struct act_log_mark mark; /* signs `durable` */
};

/* ---------------------------------------------------------------- bytes */

static size_t write_act(const struct act *act, const struct end *end,
                        uint8_t ret_bytes[ACT_BYTES_MAX])
{
    struct writer out = writer_over(ret_bytes, ACT_BYTES_MAX);
    size_t length = strnlen(act->text, sizeof act->text - 1);
    writer_bytes(&out, record_domain, sizeof record_domain);
    writer_u64(&out, end->number);
    writer_i64(&out, end->log_time_ns);
    writer_i64(&out, act->wall_ms);
    writer_u16(&out, (uint16_t)act->kind);
    writer_u32(&out, act->account);
    writer_u64(&out, act->log_index);
    writer_bytes(&out, act->target.bytes, sizeof act->target.bytes);
    writer_i64(&out, act->amount_micro);
    writer_u32(&out, act->state);
    writer_u16(&out, act->code);
    writer_u16(&out, act->type);
    writer_u64(&out, act->count);
    writer_u8(&out, (uint8_t)length);
    writer_bytes(&out, act->text, length);
    assert(!out.failed);
    return out.position;
}

static size_t write_signed(const struct id128 *cluster, uint64_t number, const struct hash32 *chain,
                           uint8_t ret_bytes[128])
{
    struct writer out = writer_over(ret_bytes, 128);
    writer_bytes(&out, mark_domain, sizeof mark_domain);
    writer_bytes(&out, cluster->bytes, sizeof cluster->bytes);
    writer_u64(&out, number);
    writer_bytes(&out, chain->bytes, sizeof chain->bytes);
    assert(!out.failed);
    return out.position;
}

static bool is_signed(const struct act_log_mark *mark, const struct id128 *cluster,
                      const struct key32 *key)
{
    uint8_t bytes[128];
    size_t length = write_signed(cluster, mark->number, &mark->chain, bytes);
    return identity_verify(key, bytes, length, &mark->signature);
}

static void sign(struct act_log *acts)
{
    uint8_t bytes[128];
    size_t length = write_signed(&acts->cluster, acts->durable.number, &acts->durable.chain, bytes);
    acts->mark = (struct act_log_mark){.number = acts->durable.number,
                                       .chain = acts->durable.chain,
                                       .signature = identity_sign(acts->key, bytes, length)};
}

/* ---------------------------------------------------------------- opening */

static bool unreadable(sqlite3 *database, struct problem *ret_problem)
{
    problem_set(ret_problem, "the audit log cannot be read: %s", sqlite3_errmsg(database));
    return false;
}

/* Reads the chain hash after record `number`, or after the newest when `number` is 0. Returns false
 * when there is no such record. */
static bool read_end(sqlite3 *database, uint64_t number, struct end *ret_end)
{
    sqlite3_stmt *select;
    const char *sql = number == 0
                          ? "SELECT number, chain, bytes FROM acts ORDER BY number DESC LIMIT 1"
                          : "SELECT number, chain, bytes FROM acts WHERE number = ?1";
    if (sqlite3_prepare_v2(database, sql, -1, &select, NULL) != SQLITE_OK) {
        return false;
    }
    if (number != 0) {
        (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)number); /* a failure selects nothing */
    }
    bool found = sqlite3_step(select) == SQLITE_ROW && sqlite3_column_bytes(select, 1) == 32;
    if (found) {
        ret_end->number = (uint64_t)sqlite3_column_int64(select, 0);
        memcpy(ret_end->chain.bytes, sqlite3_column_blob(select, 1), 32);
        struct reader in =
            reader_over(sqlite3_column_blob(select, 2), (size_t)sqlite3_column_bytes(select, 2));
        (void)reader_view(&in, sizeof record_domain);
        (void)reader_u64(&in); /* the record repeats its number */
        /* The time is 0 when the bytes are no record; act_log_check_chain reports that. */
        ret_end->log_time_ns = reader_i64(&in);
    }
    (void)sqlite3_finalize(select); /* read only */
    return found;
}

/* Reads the key that the newest start or adoption up to record `number` names. A record that names
 * none gives zeros, which sign nothing. Returns false when the log has no such record yet. */
static bool read_key(sqlite3 *database, uint64_t number, struct key32 *ret_key)
{
    static const char sql[] =
        "SELECT substr(bytes, 53, 32) FROM acts"
        " WHERE number <= ?1 AND hex(substr(bytes, 39, 2)) IN ('0100', '0300')"
        " ORDER BY number DESC LIMIT 1";
    sqlite3_stmt *select;
    if (sqlite3_prepare_v2(database, sql, -1, &select, NULL) != SQLITE_OK) {
        return false;
    }
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)number); /* a failure selects nothing */
    bool found = sqlite3_step(select) == SQLITE_ROW;
    if (found) {
        *ret_key = (struct key32){{0}};
        if (sqlite3_column_bytes(select, 0) == 32) {
            memcpy(ret_key->bytes, sqlite3_column_blob(select, 0), 32);
        }
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return found;
}

/* The newest start or adoption names the key; a new log names none yet. */
static bool check_key(const struct act_log *acts, sqlite3 *database, struct problem *ret_problem)
{
    struct key32 named;
    if (!read_key(database, INT64_MAX, &named)) {
        return !sqlite_could_not(database) || unreadable(database, ret_problem);
    }
    bool is_other = !key32_equal(&named, identity_key(acts->key));
    if (is_other) {
        problem_set(ret_problem,
                    "audit.key is not the key of this market's audit log: restore the right one");
    }
    return !is_other;
}

static bool check_mark(struct act_log *acts, sqlite3 *database, const struct act_log_mark *mark,
                       struct problem *ret_problem)
{
    struct end stored = {.number = 0};
    if (!is_signed(mark, &acts->cluster, identity_key(acts->key))) {
        problem_set(ret_problem, "HEAD's mark of the audit log is not signed by audit.key");
        return false;
    }
    if (!read_end(database, mark->number, &stored)) {
        problem_set(ret_problem,
                    "the audit log (table acts) ends short of HEAD: record %" PRIu64
                    " is missing; the ledger was cut or an old copy put back",
                    mark->number);
        return false;
    }
    if (!hash32_equal(&stored.chain, &mark->chain)) {
        problem_set(ret_problem,
                    "the audit log (table acts) differs from HEAD at record %" PRIu64
                    ": `bourse-broker acts` says where",
                    mark->number);
        return false;
    }
    return true;
}

bool act_log_open(sqlite3 *database, const struct act_log_mark *mark, const struct identity *key,
                  const struct id128 *cluster, struct act_log **ret_log,
                  struct problem *ret_problem)
{
    struct act_log *acts = calloc(1, sizeof *acts);
    if (acts == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    acts->key = key;
    acts->cluster = *cluster;
    bool good = sqlite3_exec(database, schema, NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v3(database, "INSERT INTO acts VALUES(?1, ?2, ?3, ?4)", -1,
                                   SQLITE_PREPARE_PERSISTENT, &acts->insert, NULL) == SQLITE_OK;
    if (!good) {
        (void)unreadable(database, ret_problem);
    } else if (mark != NULL) {
        good = check_key(acts, database, ret_problem) &&
               (mark->number == 0 || check_mark(acts, database, mark, ret_problem));
    }
    if (!good) {
        act_log_close(&acts);
        return false;
    }
    /* A failure to read leaves zeros: the log is new. */
    (void)read_end(database, 0, &acts->durable);
    acts->open = acts->durable;
    sign(acts);
    *ret_log = acts;
    return true;
}

enum act_log_reach act_log_hold_against(sqlite3 *database, const struct act_log_mark *mark,
                                        const struct id128 *cluster, struct act_log_mark *ret_mark,
                                        uint64_t *ret_lost, struct problem *ret_problem)
{
    struct end last = {.number = 0};
    struct end stored = {.number = 0};
    struct key32 then = {{0}};
    struct key32 now;
    *ret_mark = (struct act_log_mark){.number = 0};
    *ret_lost = 0;
    if (mark->number == 0) {
        return ACT_LOG_REACHED;
    }
    bool is_there = read_end(database, 0, &last) && read_end(database, mark->number, &stored);
    if (!is_there && sqlite_could_not(database)) {
        (void)unreadable(database, ret_problem);
        return ACT_LOG_UNREADABLE;
    }
    if (is_there ? !hash32_equal(&stored.chain, &mark->chain) : last.number > mark->number) {
        problem_set(ret_problem,
                    "record %" PRIu64 " of the audit log is not the one that HEAD has seen: this "
                    "is another history, or the log was changed",
                    mark->number);
        return ACT_LOG_OTHER;
    }
    if (read_key(database, mark->number, &then) && !is_signed(mark, cluster, &then)) {
        problem_set(ret_problem, "HEAD's mark of the audit log is not signed by the key that this "
                                 "log names: HEAD was changed, or is another market's");
        return ACT_LOG_OTHER;
    }
    if (!is_there) {
        *ret_lost = mark->number - last.number;
        return ACT_LOG_SHORT;
    }
    if (read_key(database, INT64_MAX, &now) && key32_equal(&now, &then)) {
        *ret_mark = *mark;
    }
    return ACT_LOG_REACHED;
}

/* Returns true when number, log index, chain hash and bytes of a row follow from `end`. */
static bool row_follows(sqlite3_stmt *select, struct end *end)
{
    uint8_t bytes[32 + ACT_BYTES_MAX];
    const size_t length = (size_t)sqlite3_column_bytes(select, 3);
    if (sqlite3_column_bytes(select, 2) != 32 || length == 0 || length > ACT_BYTES_MAX) {
        return false;
    }
    struct reader in = reader_over(sqlite3_column_blob(select, 3), length);
    (void)reader_view(&in, sizeof record_domain);
    const uint64_t number = reader_u64(&in);
    (void)reader_view(&in, 8 + 8 + 2 + 4); /* both times, kind, account */
    const uint64_t log_index = reader_u64(&in);
    memcpy(bytes, end->chain.bytes, 32);
    memcpy(bytes + 32, sqlite3_column_blob(select, 3), length);
    const struct hash32 chain = sha256_of(bytes, 32 + length);
    if (in.failed || number != end->number + 1 ||
        (uint64_t)sqlite3_column_int64(select, 0) != number ||
        (uint64_t)sqlite3_column_int64(select, 1) != log_index ||
        memcmp(chain.bytes, sqlite3_column_blob(select, 2), 32) != 0) {
        return false;
    }
    *end = (struct end){.number = number, .chain = chain};
    return true;
}

bool act_log_check_chain(sqlite3 *database, uint64_t *ret_reached, struct problem *ret_problem)
{
    sqlite3_stmt *select;
    struct end end = {.number = 0};
    *ret_reached = 0;
    if (act_log_is_empty(database)) {
        return !sqlite_could_not(database) || unreadable(database, ret_problem);
    }
    if (sqlite3_prepare_v2(database,
                           "SELECT number, log_index, chain, bytes FROM acts ORDER BY number", -1,
                           &select, NULL) != SQLITE_OK) {
        return unreadable(database, ret_problem);
    }
    int step = SQLITE_DONE;
    bool good = true;
    while (good && (step = sqlite3_step(select)) == SQLITE_ROW) {
        good = row_follows(select, &end);
    }
    if (!good) {
        problem_set(ret_problem,
                    "table acts, record %" PRIu64
                    " does not follow from the one before: it was changed or is missing, "
                    "`bourse-broker acts` says which",
                    end.number + 1);
    }
    good = good && (step == SQLITE_DONE || unreadable(database, ret_problem));
    (void)sqlite3_finalize(select); /* repeats the step's code */
    *ret_reached = end.number;
    return good;
}

bool act_log_is_empty(sqlite3 *database)
{
    struct end end;
    return !read_end(database, 0, &end);
}

void act_log_close(struct act_log **self)
{
    struct act_log *acts = *self;
    if (acts != NULL) {
        (void)sqlite3_finalize(acts->insert); /* repeats the error of a step that was handled */
        free(acts);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- appending */

static enum act_log_status status_of(int code)
{
    if (code == SQLITE_IOERR_SHMSIZE) {
        return ACT_LOG_FULL; /* the WAL's index could not grow: nothing was written yet */
    }
    switch (code & 0xff) {
    case SQLITE_DONE:
        return ACT_LOG_OK;
    case SQLITE_FULL:
        return ACT_LOG_FULL;
    default:
        return ACT_LOG_FAILED;
    }
}

enum act_log_status act_log_append(struct act_log *acts, const struct act *act)
{
    uint8_t bytes[sizeof acts->open.chain + ACT_BYTES_MAX];
    struct end next = {.number = acts->open.number + 1, .log_time_ns = acts->open.log_time_ns};
    /* A command may have been stamped before a refusal that was written sooner. */
    next.log_time_ns = act->log_time_ns > next.log_time_ns ? act->log_time_ns : next.log_time_ns;
    memcpy(bytes, acts->open.chain.bytes, sizeof acts->open.chain);
    uint8_t *record = bytes + sizeof acts->open.chain;
    size_t length = write_act(act, &next, record);
    next.chain = sha256_of(bytes, sizeof acts->open.chain + length);
    sqlite3_stmt *insert = acts->insert;
    /* A failed bind leaves NULL, and every column is NOT NULL: the step says so. */
    (void)sqlite3_bind_int64(insert, 1, (sqlite3_int64)next.number);
    (void)sqlite3_bind_int64(insert, 2, (sqlite3_int64)act->log_index);
    (void)sqlite3_bind_blob(insert, 3, next.chain.bytes, sizeof next.chain.bytes, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(insert, 4, record, length, SQLITE_STATIC);
    enum act_log_status status = status_of(sqlite3_step(insert));
    (void)sqlite3_reset(insert); /* repeats the step's code */
    (void)sqlite3_clear_bindings(insert);
    if (status == ACT_LOG_OK) {
        acts->open = next;
    }
    return status;
}

void act_log_committed(struct act_log *acts)
{
    if (acts->open.number != acts->durable.number) {
        acts->durable = acts->open;
        sign(acts);
    }
}

void act_log_rolled_back(struct act_log *acts)
{
    acts->open = acts->durable;
}

int64_t act_log_time_ns(const struct act_log *acts)
{
    return acts->durable.log_time_ns;
}

const struct act_log_mark *act_log_mark(const struct act_log *acts)
{
    return &acts->mark;
}
