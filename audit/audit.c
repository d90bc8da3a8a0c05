#include "audit/audit_internal.h"

#include "base/problem.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCHEMA_VERSION = 3 };

/* ---- reporting */

bool audit_finding(struct audit *audit, const char *table, uint64_t entry, const char *format, ...)
{
    struct audit_report *report = audit->report;
    va_list arguments;
    if (audit_reads_failed()) {
        return audit_unreadable(audit, "%s", ""); /* unread bytes may be intact */
    }
    report->verdict = AUDIT_FINDING;
    report->entry = entry;
    (void)snprintf(report->table, sizeof report->table, "%s", table); /* our own names fit */
    va_start(arguments, format);
    (void)vsnprintf(report->what, sizeof report->what, format, arguments); /* cut, never overrun */
    va_end(arguments);
    return false;
}

bool audit_unreadable(struct audit *audit, const char *format, ...)
{
    va_list arguments;
    audit->report->verdict = AUDIT_UNREADABLE;
    if (audit_reads_failed()) {
        audit_explain_unread(audit->report->what, sizeof audit->report->what);
        return false;
    }
    va_start(arguments, format);
    /* A text that is too long is cut. */
    (void)vsnprintf(audit->report->what, sizeof audit->report->what, format, arguments);
    va_end(arguments);
    return false;
}

bool audit_out_of_memory(struct audit *audit)
{
    return audit_unreadable(audit, "out of memory");
}

bool audit_row_finding(struct audit *audit, const char *rule)
{
    return audit_finding(audit, audit_table_name(audit->rows.row.table), audit->rows.row.entry,
                         "broken rule: %s", rule);
}

bool audit_expect_i64(struct audit *audit, const char *rule, int64_t expected, int64_t found)
{
    if (expected == found) {
        return true;
    }
    /* The text fits. */
    (void)snprintf(audit->report->expected, sizeof audit->report->expected, "%" PRId64, expected);
    (void)snprintf(audit->report->found, sizeof audit->report->found, "%" PRId64, found);
    return audit_row_finding(audit, rule);
}

bool audit_expect_bytes(struct audit *audit, const char *rule, const void *expected,
                        const void *found, size_t length)
{
    if (memcmp(expected, found, length) == 0) {
        return true;
    }
    text_hex(expected, length, audit->report->expected);
    text_hex(found, length, audit->report->found);
    return audit_row_finding(audit, rule);
}

void audit_cut_name(char ret_name[AUDIT_NAME_SIZE], const char *sent)
{
    size_t length = sent == NULL ? 0 : strlen(sent);
    if (length >= AUDIT_NAME_SIZE) {
        length = AUDIT_NAME_SIZE - 1;
        while (length > 0 && ((unsigned char)sent[length] & 0xc0) == 0x80) {
            length--; /* inside a UTF-8 character */
        }
    }
    memset(ret_name, 0, AUDIT_NAME_SIZE);
    if (length > 0) {
        memcpy(ret_name, sent, length);
    }
}

bool audit_expect_name(struct audit *audit, const char *rule, const char *sent)
{
    char expected[AUDIT_NAME_SIZE];
    audit_cut_name(expected, sent);
    return audit_expect_bytes(audit, rule, expected, audit->rows.row.name, sizeof expected);
}

/* ---- the run */

static bool read_version(struct audit *audit)
{
    sqlite3_stmt *select;
    int64_t version = -1;
    int64_t cut = 0;
    int64_t first = 1;
    bool is_empty = true;
    if (sqlite3_prepare_v2(
            audit->database,
            "SELECT user_version, (SELECT idx FROM journal_base), (SELECT next_command FROM "
            "journal_base), (SELECT chain = zeroblob(32) AND state = zeroblob(32) FROM "
            "journal_base) FROM pragma_user_version",
            -1, &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "this is not a ledger that this program knows: %s",
                                sqlite3_errmsg(audit->database));
    }
    if (sqlite3_step(select) == SQLITE_ROW) {
        version = sqlite3_column_int64(select, 0);
        cut = sqlite3_column_int64(select, 1);
        first = sqlite3_column_int64(select, 2);
        is_empty = sqlite3_column_int(select, 3) == 1;
    }
    (void)sqlite3_finalize(select); /* read only */
    if (version != SCHEMA_VERSION) {
        return audit_unreadable(audit,
                                "the ledger has schema version %" PRId64 ", this program knows %d",
                                version, SCHEMA_VERSION);
    }
    if (cut != 0) {
        return audit_unreadable(
            audit, "the journal was cut at entry %" PRId64 ": audit a copy that has all of it",
            cut);
    }
    if (!is_empty) {
        return audit_finding(audit, "journal_base", 0,
                             "the first entry of the journal follows another entry");
    }
    return first == 1 ||
           audit_finding(audit, "journal_base", 0,
                         "the first command of the journal is %" PRId64 ", not 1", first);
}

/* Returns true when SQLite's log beside the database holds commits, as after a broker was
 * killed. */
static bool has_log(const char *path)
{
    char log[PATH_MAX + 8];
    struct stat facts;
    (void)snprintf(log, sizeof log, "%s-wal", path);
    return stat(log, &facts) == 0 && facts.st_size > 0;
}

/* Opens one read transaction, so that a running broker does not change the data meanwhile. */
bool audit_open_database(struct audit *audit, const char *path)
{
    struct stat facts;
    const bool is_there = stat(path, &facts) == 0;
    if (is_there ? facts.st_size == 0 && !has_log(path) : errno == ENOENT) {
        return audit_unreadable(audit, "there is no journal: %.120s is %s", path,
                                is_there ? "empty" : "not there");
    }
    audit_watch_reads();
    if (sqlite3_open_v2(path, &audit->database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "%s cannot be opened: %s", path,
                                sqlite3_errmsg(audit->database));
    }
    (void)sqlite3_busy_timeout(audit->database, 5000); /* cannot fail on an open handle */
    if (sqlite3_exec(audit->database, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "%s cannot be read: %s", path,
                                sqlite3_errmsg(audit->database));
    }
    return read_version(audit);
}

static bool run(struct audit *audit, const char *folder, const char *database_path,
                const char *head_path)
{
    /* HEAD is read first, then the tail. Beside a running broker HEAD may be behind tail and
     * database, but never ahead of both. */
    return audit_read_head(audit, head_path) && audit_tail_read(audit, folder) &&
           audit_folder_look(audit, folder) && audit_open_database(audit, database_path) &&
           audit_tree_open(audit) && audit_rows_open(audit) && audit_journal(audit) &&
           audit_tree_end(audit) && audit_balances(audit) && audit_outcomes(audit) &&
           audit_acts(audit, 1, NULL, NULL) && audit_folder_check(audit);
}

static void end(struct audit *audit)
{
    audit_rows_close(audit);
    audit_tail_end(audit);
    audit_tree_close(audit);
    audit_folder_end(audit);
    (void)sqlite3_close(audit->database); /* read only */
    free(audit->accounts);
    free(audit->owed);
    audit_map_fini(&audit->numbers, NULL);
    audit_map_fini(&audit->invitations, NULL);
    audit_map_fini(&audit->devices, NULL);
    audit_map_fini(&audit->asks, NULL);
    audit_map_fini(&audit->bids, NULL);
    audit_map_fini(&audit->jobs, audit_job_end);
    audit_map_fini(&audit->leases, NULL);
    audit_map_fini(&audit->tainted, NULL);
    audit_map_fini(&audit->held, NULL);
    audit_map_fini(&audit->checks, NULL);
    audit_map_fini(&audit->juries, NULL);
    audit_map_fini(&audit->instruments, NULL);
}

bool audit_paths(struct audit *audit, const char *folder, char *ret_database, char *ret_head)
{
    int length = snprintf(ret_database, PATH_MAX, "%s/ledger.db", folder);
    (void)snprintf(ret_head, PATH_MAX, "%s/HEAD", folder); /* shorter than the path above */
    return (length > 0 && length < PATH_MAX) ||
           audit_unreadable(audit, "the path of the folder is too long");
}

void audit_run(const char *folder, struct audit_report *ret_report)
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
    if (audit_paths(audit, folder, database_path, head_path)) {
        (void)run(audit, folder, database_path, head_path); /* the report has the result */
    }
    end(audit);
    free(audit);
}
