/* This part of backup.h turns a backup into a market again, after all checks. */
#include "base/sha256.h"
#include "base/text.h"
#include "broker/core/act_log.h"
#include "broker/storage/backup.h"
#include "broker/storage/backup_removed.h"
#include "broker/storage/journal_sqlite.h"
#include "broker/storage/replay.h"
#include "broker/storage/storage.h"
#include "broker/storage/tail/tail.h"
#include "ledger/checkpoint.h"
#include "ledger/receipt.h"
#include "ledger/store/sqlite.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/files.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOB_HASH_BYTES = sizeof(struct hash32) };

/* A restore in progress; its folder is still beside its place. */
struct restore {
    const struct restore_options *options;
    char folder[PATH_MAX];
    struct backup_report report;
    struct replay_summary summary;
    struct head head; /* the HEAD that was shown */
    /* A checkpoint that was shown, or a receipt, which ends with one. */
    char *shown;
    size_t shown_length;
    struct journal_last last;
    /* The restore ended because of the content, not because an operation failed. */
    bool is_wrong;
};

static bool wrong(struct restore *restore)
{
    restore->is_wrong = true;
    return false;
}

/* ---------------------------------------------------------------- the journal, and a shown HEAD */

static bool read_head(struct restore *restore, struct problem *ret_problem)
{
    switch (head_read(restore->options->head, &restore->head, ret_problem)) {
    case HEAD_OK:
        head_warn(restore->options->head, &restore->head);
        return true;
    case HEAD_MISSING:
        problem_set(ret_problem, "%s is not there, or empty", restore->options->head);
        return false;
    case HEAD_CORRUPT:
        return wrong(restore);
    case HEAD_FAILED:
        break;
    }
    return false;
}

/* The shown files are read before anything is copied: a mistyped name says nothing about the
 * backup. */
static bool read_shown(struct restore *restore, struct problem *ret_problem)
{
    const struct restore_options *options = restore->options;
    return (options->head == NULL || read_head(restore, ret_problem)) &&
           (options->checkpoint == NULL ||
            file_read(options->checkpoint, RECEIPT_TEXT_MAX, (uint8_t **)&restore->shown,
                      &restore->shown_length, ret_problem));
}

static const char way_on[] = "find a newer backup. Where there is none, restore without what was "
                             "shown, and start once with --adopt-journal: what came later is lost";

/* This is the usual fault that journal_sqlite_open would find: last night's backup, and HEAD of
 * today. */
static bool check_reach(struct restore *restore, struct problem *ret_problem)
{
    if (restore->report.entry >= restore->head.index) {
        return true;
    }
    problem_set(ret_problem,
                "the backup ends at entry %" PRIu64 ", but HEAD has seen %" PRIu64 ": %s",
                restore->report.entry, restore->head.index, way_on);
    return wrong(restore);
}

static bool check_journal(struct restore *restore, struct ledger_store *ledger,
                          struct problem *ret_problem)
{
    struct journal *journal = NULL;
    const bool is_shown = restore->options->head != NULL;
    struct tail tail;
    if (!check_reach(restore, ret_problem) || !tail_read(restore->folder, &tail, ret_problem)) {
        return false;
    }
    const struct journal_sqlite_start start = {.head = is_shown ? &restore->head : NULL,
                                               .tail = &tail,
                                               .tree_size = ledger_store_tree(ledger)->size,
                                               .adopt = !is_shown};
    enum journal_status status = journal_sqlite_open(ledger_store_database(ledger), &start,
                                                     &journal, &restore->last, ret_problem);
    journal_destroy(&journal);
    restore->last = *tail_end(&tail, &restore->last);
    tail_fini(&tail);
    restore->is_wrong = status == JOURNAL_CORRUPT;
    return status == JOURNAL_OK;
}

static bool check_chain(struct restore *restore, struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct ledger_store *ledger = NULL;
    if (!folder_path(restore->folder, MARKET_DATABASE, path, sizeof path, ret_problem)) {
        return false;
    }
    enum ledger_store_status status = ledger_store_open(path, &ledger);
    bool good = status == LEDGER_STORE_OK;
    if (!good) {
        restore->is_wrong = status == LEDGER_STORE_CORRUPT;
        problem_set(ret_problem, "the ledger of the backup cannot be opened: %s",
                    ledger == NULL ? "out of memory" : ledger_store_error(ledger));
    }
    good = good && check_journal(restore, ledger, ret_problem);
    if (good) {
        ledger_store_trust(ledger);
    }
    ledger_store_close(&ledger);
    return good;
}

/* Checks the audit log up to the end that HEAD has seen. *ret_mark is the mark for the new HEAD. */
static bool check_acts(struct restore *restore, struct act_log_mark *ret_mark,
                       struct problem *ret_problem)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    if (!folder_path(restore->folder, MARKET_DATABASE, path, sizeof path, ret_problem)) {
        return false;
    }
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        problem_set(ret_problem, "%s cannot be read", path);
        (void)sqlite3_close(database); /* it is not open */
        return false;
    }
    enum act_log_reach reach =
        act_log_hold_against(database, &restore->head.acts, &restore->summary.genesis.cluster,
                             ret_mark, &restore->report.acts_lost, ret_problem);
    (void)sqlite3_close(database); /* only read */
    switch (reach) {
    case ACT_LOG_REACHED:
    case ACT_LOG_SHORT:
        return true;
    case ACT_LOG_OTHER:
        return wrong(restore);
    case ACT_LOG_UNREADABLE:
        break;
    }
    return false;
}

/* Writes HEAD when one was shown and journal and audit log fit it: from here on they belong
 * together. */
static bool settle_head(struct restore *restore, struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct head_file *file = NULL;
    struct head head = {.index = restore->last.index,
                        .chain = restore->last.chain,
                        .tree_size = restore->report.tree_size,
                        .restored = true};
    if (restore->options->head == NULL && !restore->options->joins) {
        return true;
    }
    if (!check_acts(restore, &head.acts, ret_problem)) {
        return false;
    }
    head.acts_lost = restore->report.acts_lost;
    bool good = folder_path(restore->folder, MARKET_HEAD, path, sizeof path, ret_problem) &&
                head_create(path, &head, &file, ret_problem) == HEAD_OK;
    head_close(&file);
    return good;
}

static bool check_replay(struct restore *restore, struct problem *ret_problem)
{
    enum replay_status status = replay_check(restore->folder, &restore->summary, ret_problem);
    restore->is_wrong = status == REPLAY_WRONG;
    return status == REPLAY_OK;
}

/* ---------------------------------------------------------------- a shown checkpoint */

static bool check_against(struct restore *restore, struct ledger_reader *reader,
                          const struct checkpoint *shown, struct problem *ret_problem)
{
    const uint64_t tree_size = restore->report.tree_size;
    struct hash32 root;
    switch (ledger_reader_root(reader, shown->size, &root)) {
    case LEDGER_STORE_OK:
        break;
    case LEDGER_STORE_NOT_FOUND:
        problem_set(ret_problem,
                    "the backup's tree has %" PRIu64 " leaves, the checkpoint signs %" PRIu64
                    ": the backup is older than what people hold; %s",
                    tree_size, shown->size, way_on);
        return wrong(restore);
    case LEDGER_STORE_CORRUPT:
        problem_set(ret_problem, "the backup's tree of %" PRIu64 " leaves is damaged", shown->size);
        return wrong(restore);
    case LEDGER_STORE_LOCKED:
    case LEDGER_STORE_NEWER:
    case LEDGER_STORE_FULL:
    case LEDGER_STORE_FAILED:
    case LEDGER_STORE_OUT_OF_MEMORY:
        problem_set(ret_problem, "the backup's tree of %" PRIu64 " leaves cannot be read",
                    shown->size);
        return false;
    }
    if (!hash32_equal(&root, &shown->root)) {
        problem_set(ret_problem,
                    "the checkpoint of %" PRIu64
                    " leaves signs another tree than the backup's: this is another history",
                    shown->size);
        return wrong(restore);
    }
    return true;
}

static bool read_checkpoint(const struct restore *restore, struct checkpoint *ret_shown)
{
    static const char receipt[] = "c2sp.org/tlog-proof@v1\n";
    const char *text = restore->shown;
    if (strncmp(text, receipt, sizeof receipt - 1) == 0) {
        text = strstr(text, "\n\n");
        text = text == NULL ? restore->shown : text + 2;
    }
    const size_t length = restore->shown_length - (size_t)(text - restore->shown);
    return checkpoint_read(text, length, &restore->summary.genesis.log_key, ret_shown);
}

static bool check_checkpoint(struct restore *restore, struct problem *ret_problem)
{
    const char *name = restore->options->checkpoint;
    char path[PATH_MAX];
    struct checkpoint shown;
    struct ledger_reader *reader = NULL;
    if (name == NULL) {
        return true;
    }
    bool good = read_checkpoint(restore, &shown);
    if (!good) {
        problem_set(ret_problem,
                    "%s is no checkpoint signed by this market's log, nor a receipt with one",
                    name);
        return wrong(restore);
    }
    good = folder_path(restore->folder, MARKET_DATABASE, path, sizeof path, ret_problem);
    if (good && ledger_reader_open(path, &reader) != LEDGER_STORE_OK) {
        problem_set(ret_problem, "%s cannot be read", path);
        good = false;
    }
    good = good && check_against(restore, reader, &shown, ret_problem);
    ledger_reader_close(&reader);
    return good;
}

/* ---------------------------------------------------------------- audit */

/* bourse-audit ends with 1 after a finding, and with another code when it could not check. */
static bool check_audit(struct restore *restore, struct problem *ret_problem)
{
    enum { AUDIT_FOUND = 1, AUDIT_NOT_THERE = 127 };
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* our own standard output is a single report */
        (void)execl(restore->options->audit, "bourse-audit", restore->folder, (char *)NULL);
        _exit(AUDIT_NOT_THERE);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) == AUDIT_NOT_THERE) {
        problem_set(ret_problem, "%s could not be run: install it there, and try again",
                    restore->options->audit);
        return false;
    }
    switch (WEXITSTATUS(status)) {
    case EXIT_SUCCESS:
        return true;
    case AUDIT_FOUND:
        problem_set(ret_problem, "the audit of the copy failed, as said above");
        return wrong(restore);
    default:
        problem_set(ret_problem, "the audit of the copy came to no verdict, as said above");
        return false;
    }
}

/* ---------------------------------------------------------------- blobs */

/* Returns false with errno when the file cannot be read. */
static bool hash_file(const char *path, struct hash32 *ret_hash, int64_t *ret_size)
{
    uint8_t bytes[1 << 16];
    size_t count;
    struct sha256 hasher;
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return false;
    }
    *ret_size = 0;
    sha256_start(&hasher);
    while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) {
        sha256_add(&hasher, bytes, count);
        *ret_size += (int64_t)count;
    }
    bool good = ferror(file) == 0;
    int error = errno;
    (void)fclose(file); /* only read */
    errno = error;
    *ret_hash = sha256_end(&hasher);
    return good;
}

/* A missing file is a fault of the market; an unreadable one is not. Returns false with a problem
 * when the file cannot be read. */
static bool is_whole(sqlite3_stmt *row, const char *path, bool *ret_is_whole,
                     struct problem *ret_problem)
{
    struct hash32 found;
    const void *hash = sqlite3_column_blob(row, 0);
    int64_t found_size = 0;
    *ret_is_whole = false;
    if (sqlite3_column_type(row, 2) != SQLITE_NULL) {
        found_size = sqlite3_column_bytes(row, 2);
        found = sha256_of(sqlite3_column_blob(row, 2), (size_t)found_size);
    } else if (!hash_file(path, &found, &found_size)) {
        if (errno != ENOENT) {
            problem_set_unread(ret_problem, path, errno);
        }
        return errno == ENOENT;
    }
    *ret_is_whole = found_size == sqlite3_column_int64(row, 1) &&
                    memcmp(found.bytes, hash, sizeof found.bytes) == 0;
    return true;
}

/* `path` is NULL when the place of the blob's file is unknown. */
static bool forget_blob(sqlite3 *database, sqlite3_int64 row, const char *path,
                        struct problem *ret_problem)
{
    char text[96];
    (void)snprintf(text, sizeof text, "DELETE FROM blob WHERE rowid = %lld", (long long)row);
    if (sqlite3_exec(database, text, NULL, NULL, NULL) != SQLITE_OK) {
        problem_set(ret_problem, "row %lld of blobs.db cannot be left out: %s", (long long)row,
                    sqlite3_errmsg(database));
        return false;
    }
    if (path != NULL && unlink(path) != 0 && errno != ENOENT) {
        problem_set(ret_problem, "%s cannot be left out: %s", path, strerror(errno));
        return false;
    }
    return true;
}

/* Returns false with a problem when the blob could not be checked, or not forgotten. */
static bool check_blob(struct restore *restore, sqlite3_stmt *row, struct problem *ret_problem)
{
    char hex[2 * BLOB_HASH_BYTES + 1];
    char name[PATH_MAX];
    char path[PATH_MAX];
    bool whole = false;
    const sqlite3_int64 number = sqlite3_column_int64(row, 3);
    const bool has_hash = sqlite3_column_bytes(row, 0) == BLOB_HASH_BYTES;
    if (has_hash) {
        text_hex(sqlite3_column_blob(row, 0), BLOB_HASH_BYTES, hex);
        (void)snprintf(name, sizeof name, "%s/%.2s/%s", MARKET_BLOBS, hex, hex);
        if (!folder_path(restore->folder, name, path, sizeof path, ret_problem) ||
            !is_whole(row, path, &whole, ret_problem)) {
            return false;
        }
    }
    restore->report.blobs++;
    restore->report.blob_bytes += (uint64_t)sqlite3_column_int64(row, 1);
    if (whole) {
        return true;
    }
    restore->report.blobs_damaged++;
    if (has_hash) {
        log_error("blob %s is missing or damaged", hex);
    } else {
        log_error("row %lld of blobs.db is damaged: it names no blob", (long long)number);
    }
    return !restore->options->skip_damaged_blobs ||
           forget_blob(sqlite3_db_handle(row), number, has_hash ? path : NULL, ret_problem);
}

static bool check_blobs(struct restore *restore, struct problem *ret_problem)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;
    const bool forgets = restore->options->skip_damaged_blobs;
    if (!restore->report.has_blobs) {
        return true;
    }
    bool good =
        folder_path(restore->folder, MARKET_BLOBS "/blobs.db", path, sizeof path, ret_problem);
    if (good &&
        sqlite3_open_v2(path, &database, forgets ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY,
                        NULL) == SQLITE_OK &&
        sqlite3_exec(database, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, "SELECT hash, size, bytes, rowid FROM blob", -1, &rows,
                           NULL) == SQLITE_OK) {
        while (good && (step = sqlite3_step(rows)) == SQLITE_ROW) {
            good = check_blob(restore, rows, ret_problem);
        }
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    if (forgets) { /* the log names what is left out now; an older blobs.db has none */
        (void)sqlite3_exec(database, "DELETE FROM copy; DELETE FROM copy_meta", NULL, NULL, NULL);
    }
    if (good && (step != SQLITE_DONE || (forgets && !backup_removed_forget_owners(database)) ||
                 sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)) {
        problem_set(ret_problem, "%s: %s", path, sqlite3_errmsg(database));
        good = sqlite_could_not(database) ? false : wrong(restore);
    }
    (void)sqlite3_close(database); /* committed, or thrown away */
    return good;
}

static bool refuse_damaged(struct restore *restore, struct problem *ret_problem)
{
    const struct backup_report *report = &restore->report;
    if (report->blobs_damaged == 0 || restore->options->skip_damaged_blobs) {
        return true;
    }
    problem_set(ret_problem,
                "%" PRIu64 " of %" PRIu64
                " blobs, named above, are missing or damaged: find an older "
                "or newer backup, put them back into it, or go on without them by "
                "--skip-damaged-blobs",
                report->blobs_damaged, report->blobs);
    return wrong(restore);
}

/* ---------------------------------------------------------------- the whole market */

static bool check_all(struct restore *restore, struct problem *ret_problem)
{
    return check_chain(restore, ret_problem) && check_replay(restore, ret_problem) &&
           settle_head(restore, ret_problem) && check_audit(restore, ret_problem) &&
           check_checkpoint(restore, ret_problem) && check_blobs(restore, ret_problem) &&
           refuse_damaged(restore, ret_problem);
}

bool backup_check(const char *folder, const char *audit, struct backup_report *report,
                  bool *ret_is_wrong, struct problem *ret_problem)
{
    const struct restore_options options = {.audit = audit};
    struct restore restore = {.options = &options, .report = *report};
    enum replay_status status = REPLAY_FAILED;
    bool good = folder_path(folder, ".", restore.folder, sizeof restore.folder, ret_problem);
    if (good) {
        status = replay_check(folder, &restore.summary, ret_problem);
    }
    if (good && status == REPLAY_OTHER_RULES) { /* no replay is possible, only an audit */
        log_warning("not replayed: %s", ret_problem->text);
        status = REPLAY_OK;
    }
    restore.is_wrong = status == REPLAY_WRONG;
    good = status == REPLAY_OK && check_audit(&restore, ret_problem) &&
           check_blobs(&restore, ret_problem);
    *report = restore.report;
    *ret_is_wrong = restore.is_wrong;
    return good;
}

/* A folder with HEAD belongs to a broker that serves or served it. Two brokers from one folder
 * would be two histories. */
static bool is_backup(const char *folder, struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (!folder_path(folder, MARKET_HEAD, path, sizeof path, ret_problem)) {
        return false;
    }
    if (access(path, F_OK) != 0 && problem_is_of_disk(errno)) {
        problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
        return false;
    }
    if (access(path, F_OK) == 0) {
        problem_set(ret_problem,
                    "%s has a %s: it is the folder of a market, not a backup. Make one first: "
                    "bourse-broker backup DIR TARGET",
                    folder, MARKET_HEAD);
        return false;
    }
    return true;
}

bool backup_restore(const struct restore_options *options, struct backup_report *ret_report,
                    bool *ret_is_wrong, struct problem *ret_problem)
{
    const struct backup_parts all = {.blobs = !options->without_blobs, .keys = true};
    struct restore restore = {.options = options};
    if (!is_backup(options->backup, ret_problem) || !read_shown(&restore, ret_problem) ||
        !backup_beside(options->folder, restore.folder, sizeof restore.folder, ret_problem)) {
        *ret_is_wrong = restore.is_wrong;
        free(restore.shown);
        return false;
    }
    bool good = backup_copy(options->backup, restore.folder, &all, &restore.report,
                            &restore.is_wrong, ret_problem) &&
                check_all(&restore, ret_problem) &&
                backup_publish(restore.folder, options->folder, ret_problem);
    *ret_is_wrong = restore.is_wrong;
    free(restore.shown);
    if (good) {
        restore.report.is_checked = true;
        *ret_report = restore.report;
    } else {
        backup_discard(restore.folder);
    }
    return good;
}
