/* The audit log is checked here by the audit's own reading of docs/ledger.md, sections 2 and 11. */
#include "audit/audit_internal.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "protocol/identity.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_MAX = 512 };

static const char record_domain[] = "bourse/act/v1"; /* written with its NUL, like the next */
static const char mark_domain[] = "bourse/acts/v1";

/* Selects commands whose act must be in the log: kinds 16 to 20. The kind is in the two bytes after
 * domain, number and both times. */
static const char unrecorded[] =
    "SELECT log_index FROM ("
    "  SELECT log_index FROM flags UNION SELECT log_index FROM transfers WHERE kind = 2)"
    " WHERE log_index > ?1 AND log_index NOT IN ("
    "  SELECT log_index FROM acts"
    "  WHERE hex(substr(bytes, 39, 2)) IN ('1000', '1100', '1200', '1300', '1400', '1600', '1700'))"
    " ORDER BY log_index LIMIT 1";

struct walk { /* state of the chain */
    uint64_t number;
    struct hash32 chain;
    struct key32 key;     /* the signing key: starts name it, an adoption may change it */
    uint64_t first_index; /* the log begins after this command */
    struct hash32 chain_at_mark;
    int64_t log_time_ns;
    size_t paid; /* entries of audit.owed found so far */
};

const char *audit_act_name(uint16_t kind)
{
    switch (kind) {
    case AUDIT_ACT_START:
        return "start";
    case AUDIT_ACT_STOP:
        return "stop";
    case AUDIT_ACT_ADOPT:
        return "adopt-journal";
    case AUDIT_ACT_RESTORE:
        return "restore";
    case AUDIT_ACT_JOIN:
        return "join";
    case AUDIT_ACT_MINT:
        return "mint";
    case AUDIT_ACT_INVITE:
        return "invite";
    case AUDIT_ACT_FREEZE:
        return "freeze";
    case AUDIT_ACT_HALT:
        return "halt";
    case AUDIT_ACT_LIMITS:
        return "limits";
    case AUDIT_ACT_BANDS:
        return "bands";
    case AUDIT_ACT_OWNER:
        return "owner";
    case AUDIT_ACT_REFUSAL:
        return "refusal";
    default:
        return "unknown"; /* a later version wrote the record, which is in the chain all the same */
    }
}

static bool read_act(const uint8_t *bytes, size_t length, struct audit_act *ret_act)
{
    struct reader in = reader_over(bytes, length);
    const uint8_t *domain = reader_view(&in, sizeof record_domain);
    ret_act->number = reader_u64(&in);
    ret_act->log_time_ns = reader_i64(&in);
    ret_act->wall_ms = reader_i64(&in);
    ret_act->kind = reader_u16(&in);
    ret_act->account = reader_u32(&in);
    ret_act->log_index = reader_u64(&in);
    reader_bytes(&in, ret_act->target.bytes, sizeof ret_act->target.bytes);
    ret_act->amount_micro = reader_i64(&in);
    ret_act->state = reader_u32(&in);
    ret_act->code = reader_u16(&in);
    ret_act->type = reader_u16(&in);
    ret_act->count = reader_u64(&in);
    size_t text_length = reader_u8(&in);
    reader_bytes(&in, ret_act->text, text_length);
    ret_act->text[text_length] = '\0';
    return reader_finished(&in) && memcmp(domain, record_domain, sizeof record_domain) == 0;
}

static void read_name(struct audit *audit, struct audit_act *act)
{
    sqlite3_stmt *select;
    if (sqlite3_prepare_v2(audit->database, "SELECT name FROM accounts WHERE number = ?1", -1,
                           &select, NULL) != SQLITE_OK) {
        return; /* only people read the name, so its lack is no finding */
    }
    (void)sqlite3_bind_int64(select, 1, act->account); /* a failed bind selects nothing */
    if (sqlite3_step(select) == SQLITE_ROW && sqlite3_column_type(select, 0) == SQLITE_TEXT) {
        (void)snprintf(act->name, sizeof act->name, "%s",
                       (const char *)sqlite3_column_text(select, 0));
    }
    (void)sqlite3_finalize(select); /* read only */
}

/* ---------------------------------------------------------------- the chain */

/* Every start names the key that signs the log, always the same. An adoption of a journal without
 * HEAD, which is an act of its own, may alone bring another key. */
static bool check_key(struct audit *audit, const struct audit_act *act, struct walk *walk)
{
    if (act->number == 1) {
        walk->first_index = act->log_index;
    }
    if (act->kind == AUDIT_ACT_ADOPT || (act->number == 1 && act->kind == AUDIT_ACT_START)) {
        walk->key = act->target;
        return true;
    }
    if (act->number == 1) {
        return audit_finding(audit, "acts", 1, "the log does not begin with a start");
    }
    return act->kind != AUDIT_ACT_START || memcmp(act->target.bytes, walk->key.bytes, 32) == 0 ||
           audit_finding(audit, "acts", act->number, "the broker started with another audit key");
}

/* Takes the record off the list of records that the journal requires. Both stand in one order. The
 * journal requires no record of acts from before the audit log began. */
static void take_owed(const struct audit *audit, const struct audit_act *act, struct walk *walk)
{
    while (walk->paid < audit->owed_count &&
           audit->owed[walk->paid].log_index < walk->first_index) {
        walk->paid++;
    }
    if (walk->paid < audit->owed_count && audit->owed[walk->paid].kind == act->kind &&
        audit->owed[walk->paid].log_index == act->log_index) {
        walk->paid++;
    }
}

static bool check_row(struct audit *audit, sqlite3_stmt *select, struct walk *walk,
                      struct audit_act *act)
{
    uint8_t bytes[32 + RECORD_MAX];
    uint64_t number = walk->number + 1;
    size_t length = (size_t)sqlite3_column_bytes(select, 3);
    if ((uint64_t)sqlite3_column_int64(select, 0) != number) {
        return audit_finding(audit, "acts", number, "the record is missing");
    }
    if (length == 0 || length > RECORD_MAX || sqlite3_column_bytes(select, 2) != 32) {
        return audit_finding(audit, "acts", number, "the row is not a record");
    }
    memcpy(bytes, walk->chain.bytes, 32);
    memcpy(bytes + 32, sqlite3_column_blob(select, 3), length);
    struct hash32 chain = sha256_of(bytes, 32 + length);
    if (memcmp(chain.bytes, sqlite3_column_blob(select, 2), 32) != 0) {
        return audit_finding(audit, "acts", number,
                             "the record does not follow from the one before: the record or its "
                             "place was changed");
    }
    if (!read_act(bytes + 32, length, act) || act->number != number ||
        act->log_index != (uint64_t)sqlite3_column_int64(select, 1)) {
        return audit_finding(audit, "acts", number, "the record contradicts its row");
    }
    if (act->log_time_ns < walk->log_time_ns) {
        return audit_finding(audit, "acts", number, "the record is earlier than the record before");
    }
    walk->number = number;
    walk->chain = chain;
    walk->log_time_ns = act->log_time_ns;
    if (audit->has_mark && audit->mark.acts == number) {
        walk->chain_at_mark = chain;
    }
    audit->report->acts++;
    return check_key(audit, act, walk);
}

static bool walk_rows(struct audit *audit, sqlite3_stmt *select, struct walk *walk, uint64_t since,
                      audit_on_act *on_act, void *context)
{
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        struct audit_act act = {.number = 0};
        if (!check_row(audit, select, walk, &act)) {
            return false;
        }
        take_owed(audit, &act, walk);
        if (on_act != NULL && act.number >= since) {
            read_name(audit, &act);
            if (!on_act(context, &act)) {
                return audit_out_of_memory(audit);
            }
        }
    }
    return code == SQLITE_DONE || audit_unreadable(audit, "table acts cannot be read: %s",
                                                   sqlite3_errmsg(audit->database));
}

/* ---------------------------------------------------------------- the end and completeness */

static bool check_mark(struct audit *audit, const struct walk *walk)
{
    const struct audit_mark *mark = &audit->mark;
    uint8_t bytes[sizeof mark_domain + 16 + 8 + 32];
    if (!audit->has_mark || mark->acts == 0) {
        return true; /* a backup has no HEAD; an empty audit log has no signature */
    }
    if (mark->acts > walk->number) {
        return audit_finding(audit, "acts", walk->number + 1,
                             "HEAD has seen record %" PRIu64 ", the log ends at record %" PRIu64,
                             mark->acts, walk->number);
    }
    if (!hash32_equal(&mark->acts_chain, &walk->chain_at_mark)) {
        return audit_finding(audit, "acts", mark->acts,
                             "the record is not the one that HEAD has seen");
    }
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, mark_domain, sizeof mark_domain);
    writer_bytes(&out, audit->genesis.cluster.bytes, 16);
    writer_u64(&out, mark->acts);
    writer_bytes(&out, mark->acts_chain.bytes, 32);
    audit->report->signatures++;
    return identity_verify(&walk->key, bytes, out.position, &mark->acts_signature) ||
           audit_finding(audit, "HEAD", 0,
                         "the end of the audit log is not signed by the key that its starts name");
}

bool audit_owe(struct audit *audit, uint16_t kind, uint64_t log_index)
{
    struct audit_owed *owed =
        array_with_room(audit->owed, audit->owed_count, &audit->owed_capacity, sizeof *owed);
    if (owed == NULL) {
        return audit_out_of_memory(audit);
    }
    audit->owed = owed;
    audit->owed[audit->owed_count++] = (struct audit_owed){.kind = kind, .log_index = log_index};
    return true;
}

static bool check_complete(struct audit *audit, const struct walk *walk)
{
    if (walk->paid < audit->owed_count) {
        const struct audit_owed *owed = &audit->owed[walk->paid];
        return audit_finding(audit, "acts", 0,
                             owed->kind == AUDIT_ACT_START
                                 ? "after command %" PRIu64 " another broker began to write, and "
                                   "no record says that this broker started"
                                 : "after command %" PRIu64 " the limits changed, and no record "
                                   "says so",
                             owed->log_index);
    }
    sqlite3_stmt *select;
    if (sqlite3_prepare_v2(audit->database, unrecorded, -1, &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "the ledger cannot be read: %s",
                                sqlite3_errmsg(audit->database));
    }
    /* The genesis mints for the founder; this is not an act. */
    uint64_t first = walk->first_index > 1 ? walk->first_index : 1;
    /* A failed bind selects all commands. */
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)first);
    int code = sqlite3_step(select);
    uint64_t missing = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(select, 0) : 0;
    (void)sqlite3_finalize(select); /* read only */
    return missing == 0 || audit_finding(audit, "acts", 0,
                                         "command %" PRIu64 " minted, froze, halted, set bands or "
                                         "named an owner, and has no record",
                                         missing);
}

static bool has_table(struct audit *audit)
{
    sqlite3_stmt *select;
    bool found =
        sqlite3_prepare_v2(audit->database, "SELECT 1 FROM acts", -1, &select, NULL) == SQLITE_OK;
    (void)sqlite3_finalize(select); /* read only */
    return found;
}

bool audit_acts(struct audit *audit, uint64_t since, audit_on_act *on_act, void *context)
{
    struct walk walk = {.number = 0};
    sqlite3_stmt *select;
    if (!has_table(audit)) { /* an early broker made this ledger, and had no audit log */
        return !audit->has_mark || audit->mark.acts == 0 ||
               audit_finding(audit, "acts", 0,
                             "the table is missing, although HEAD has seen its record %" PRIu64,
                             audit->mark.acts);
    }
    if (sqlite3_prepare_v2(audit->database,
                           "SELECT number, log_index, chain, bytes FROM acts ORDER BY number", -1,
                           &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "table acts cannot be read: %s",
                                sqlite3_errmsg(audit->database));
    }
    bool good = walk_rows(audit, select, &walk, since, on_act, context);
    (void)sqlite3_finalize(select); /* read only */
    audit->has_acts_key = walk.number > 0;
    audit->acts_key = walk.key;
    return good && check_mark(audit, &walk) && (walk.number == 0 || check_complete(audit, &walk));
}

/* ---------------------------------------------------------------- the audit log alone */

/* Reads the genesis, the first command of entry 1: head of 80 bytes, length 4, head of a command
 * 16. */
static bool read_cluster(struct audit *audit)
{
    enum { GENESIS_AT = 80 + 4 + 16 };
    sqlite3_stmt *select;
    bool found = false;
    if (sqlite3_prepare_v2(audit->database, "SELECT bytes FROM journal WHERE idx = 1", -1, &select,
                           NULL) == SQLITE_OK &&
        sqlite3_step(select) == SQLITE_ROW) {
        const uint8_t *bytes = sqlite3_column_blob(select, 0);
        int length = sqlite3_column_bytes(select, 0);
        struct reader in = reader_over(bytes, (size_t)length);
        (void)reader_view(&in, 80);
        uint32_t command_length = reader_u32(&in);
        found = length > GENESIS_AT && command_length >= 16 &&
                command_length - 16 <= (uint32_t)length - GENESIS_AT &&
                genesis_read(bytes + GENESIS_AT, command_length - 16, &audit->genesis);
    }
    (void)sqlite3_finalize(select); /* read only */
    return found || audit_unreadable(audit, "the journal does not begin with a genesis");
}

void audit_acts_run(const char *folder, uint64_t since, audit_on_act *on_act, void *context,
                    struct audit_report *ret_report)
{
    char database_path[PATH_MAX];
    char head_path[PATH_MAX];
    *ret_report = (struct audit_report){.verdict = AUDIT_OK};
    struct audit *audit = calloc(1, sizeof *audit);
    if (audit == NULL) {
        *ret_report = (struct audit_report){.verdict = AUDIT_UNREADABLE, .what = "out of memory"};
        return;
    }
    audit->report = ret_report;
    /* HEAD is read first, so it may be behind the database, but never ahead. */
    if (audit_paths(audit, folder, database_path, head_path) && audit_read_head(audit, head_path) &&
        audit_open_database(audit, database_path) && read_cluster(audit)) {
        memcpy(ret_report->head, audit->has_mark ? "ok" : "missing", audit->has_mark ? 3 : 8);
        memcpy(ret_report->origin, audit->genesis.origin, sizeof ret_report->origin);
        (void)audit_acts(audit, since, on_act, context); /* the report has the result */
    }
    (void)sqlite3_close(audit->database); /* read only */
    free(audit);
}
