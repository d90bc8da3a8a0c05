#include "broker/storage/backup.h"

#include "broker/storage/backup_removed.h"
#include "broker/storage/entry.h"
#include "broker/storage/journal_sqlite.h"
#include "broker/storage/storage.h"
#include "broker/storage/tail/tail.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/files.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUSY_MS = 10000, HASH_DIGITS = 64, WALK_DEPTH = 16 };

/* ---------------------------------------------------------------- folders */

static bool is_empty_or_absent(const char *folder, struct problem *ret_problem)
{
    DIR *directory = opendir(folder);
    if (directory == NULL && errno == ENOENT) {
        return true;
    }
    if (directory == NULL) {
        problem_set(ret_problem, "%s: %s", folder, strerror(errno));
        return false;
    }
    bool is_empty = true;
    for (struct dirent *entry; is_empty && (entry = readdir(directory)) != NULL;) {
        is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    (void)closedir(directory); /* only read */
    if (!is_empty) {
        problem_set(ret_problem, "%s is not empty: nothing was touched; name a new folder", folder);
    }
    return is_empty;
}

bool backup_beside(const char *folder, char *ret_beside, size_t capacity,
                   struct problem *ret_problem)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    int written = snprintf(ret_beside, capacity, "%.*s.partial", (int)length, folder);
    if (written < 0 || (size_t)written >= capacity) {
        problem_set(ret_problem, "%.100s...: the path of the folder is too long", folder);
        return false;
    }
    if (!is_empty_or_absent(folder, ret_problem)) {
        return false;
    }
    if (mkdir(ret_beside, 0700) != 0) {
        problem_set(ret_problem, "%s: %s%s", ret_beside, strerror(errno),
                    errno == EEXIST ? "; an interrupted run left it: remove it" : "");
        return false;
    }
    return true;
}

static int discard_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void backup_discard(const char *beside)
{
    if (nftw(beside, discard_one, WALK_DEPTH, FTW_DEPTH | FTW_PHYS) != 0) {
        log_warning("%s could not be removed: remove it by hand", beside);
    }
}

bool backup_publish(const char *beside, const char *folder, struct problem *ret_problem)
{
    char parent[PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s", beside);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        strcpy(parent, ".");
    } else {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    if (!file_sync_folder(beside, ret_problem)) {
        return false;
    }
    if (rename(beside, folder) != 0) {
        problem_set(ret_problem, "%s: %s", folder, strerror(errno));
        return false;
    }
    return file_sync_folder(parent, ret_problem);
}

/* ---------------------------------------------------------------- one database */

static bool failed(const char *path, sqlite3 *database, bool *ret_is_wrong,
                   struct problem *ret_problem)
{
    problem_set(ret_problem, "%s: %s", path,
                database == NULL ? "out of memory" : sqlite3_errmsg(database));
    *ret_is_wrong = !sqlite_could_not(database);
    return false;
}

/* All pages are copied in one step, so in one read transaction. A commit in between would restart a
 * stepwise copy, for ever under load. Writers are not held up; only the WAL grows meanwhile. */
static bool copy_pages(sqlite3 *source, sqlite3 *target)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", source, "main");
    if (backup == NULL) {
        return false;
    }
    (void)sqlite3_backup_step(backup, -1); /* finish returns its code again */
    return sqlite3_backup_finish(backup) == SQLITE_OK;
}

static int keep_first(void *context, int columns, char **values, char **names)
{
    (void)names;
    char *line = context;
    if (columns > 0 && values[0] != NULL && line[0] == '\0') {
        (void)snprintf(line, 200, "%s", values[0]);
    }
    return 0;
}

/* A damaged copy is no backup. */
static bool check_pages(sqlite3 *database, const char *path, bool *ret_is_wrong,
                        struct problem *ret_problem)
{
    char why[PAGES_TEXT];
    switch (sqlite_check_pages(database, NULL, why)) {
    case PAGES_WHOLE:
        break;
    case PAGES_DAMAGED:
        problem_set(ret_problem, "%s is damaged (%s)", path, why);
        *ret_is_wrong = true;
        return false;
    case PAGES_UNREAD:
        problem_set(
            ret_problem,
            "%.200s cannot be read: the disk did not give every page (%.60s). " PROBLEM_TRY_AGAIN,
            path, why);
        return false;
    }
    return true;
}

/* The copy claims to have a WAL, like its source. SQLite writes beside such a file to read it,
 * which a read-only medium refuses. */
static bool leave_wal(sqlite3 *database, const char *path, bool *ret_is_wrong,
                      struct problem *ret_problem)
{
    char mode[200] = "";
    if (sqlite3_exec(database, "PRAGMA journal_mode = DELETE", keep_first, mode, NULL) !=
        SQLITE_OK) {
        return failed(path, database, ret_is_wrong, ret_problem);
    }
    if (strcmp(mode, "delete") != 0) {
        problem_set(ret_problem, "%s cannot leave the mode %s", path, mode);
        return false;
    }
    return true;
}

static bool open_source(const char *path, sqlite3 **ret_database)
{
    return sqlite3_open_v2(path, ret_database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
           sqlite3_busy_timeout(*ret_database, BUSY_MS) == SQLITE_OK &&
           sqlite3_exec(*ret_database, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL) ==
               SQLITE_OK;
}

static bool copy_database(const char *from, const char *to, bool *ret_is_wrong,
                          struct problem *ret_problem)
{
    sqlite3 *source = NULL;
    sqlite3 *target = NULL;
    bool good = open_source(from, &source);
    if (!good) {
        (void)failed(from, source, ret_is_wrong, ret_problem);
    } else {
        good = sqlite3_open_v2(to, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
                   SQLITE_OK &&
               copy_pages(source, target);
        good = good ? check_pages(target, to, ret_is_wrong, ret_problem) &&
                          leave_wal(target, to, ret_is_wrong, ret_problem)
                    : failed(to, target, ret_is_wrong, ret_problem);
    }
    (void)sqlite3_close(source); /* only read */
    (void)sqlite3_close(target); /* nothing is open in it */
    return good;
}

/* ---------------------------------------------------------------- blobs */

static bool is_hash(const char *name)
{
    return strlen(name) == HASH_DIGITS && strspn(name, "0123456789abcdef") == HASH_DIGITS;
}

static bool is_gone(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

static bool copy_files(const char *from, const char *to, struct problem *ret_problem)
{
    DIR *directory = opendir(from);
    if (directory == NULL && errno == ENOENT) {
        return true; /* no blob has this first byte */
    }
    if (directory == NULL) {
        problem_set_unread(ret_problem, from, errno);
        return false;
    }
    bool good = private_folder(to, true, ret_problem);
    errno = 0;
    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL; errno = 0) {
        char source[PATH_MAX];
        char target[PATH_MAX];
        good = !is_hash(entry->d_name) ||
               (folder_path(from, entry->d_name, source, sizeof source, ret_problem) &&
                folder_path(to, entry->d_name, target, sizeof target, ret_problem) &&
                /* A file may be removed beside: backup_removed_drop finds out what that means. */
                (file_copy(source, target, ret_problem) || is_gone(source)));
    }
    if (good && errno != 0) {
        problem_set_unread(ret_problem, from, errno);
        good = false;
    }
    (void)closedir(directory); /* only read */
    return good && file_sync_folder(to, ret_problem);
}

static bool copy_blobs(const char *from, const char *to, bool *ret_is_wrong,
                       struct problem *ret_problem)
{
    char source[PATH_MAX];
    char target[PATH_MAX];
    /* The index is copied before the files: a file exists before the index names it. */
    bool good = private_folder(to, true, ret_problem) &&
                folder_path(from, "blobs.db", source, sizeof source, ret_problem) &&
                folder_path(to, "blobs.db", target, sizeof target, ret_problem) &&
                copy_database(source, target, ret_is_wrong, ret_problem);
    for (unsigned byte = 0; good && byte < 256; byte++) {
        char name[3];
        (void)snprintf(name, sizeof name, "%02x", byte);
        good = folder_path(from, name, source, sizeof source, ret_problem) &&
               folder_path(to, name, target, sizeof target, ret_problem) &&
               copy_files(source, target, ret_problem);
    }
    return good && backup_removed_drop(from, to, ret_problem) && file_sync_folder(to, ret_problem);
}

/* ---------------------------------------------------------------- the whole market */

/* Returns false when the copy fails; *ret_is_wrong is then true when the content of `from` is
 * damaged. */
typedef bool copy_function(const char *from, const char *to, bool *ret_is_wrong,
                           struct problem *ret_problem);

static bool copy_key(const char *from, const char *to, bool *ret_is_wrong,
                     struct problem *ret_problem)
{
    (void)ret_is_wrong; /* only the user of the key sees whether it is right */
    return file_copy(from, to, ret_problem);
}

static bool copy_part(const char *from, const char *to, const char *name, copy_function *copy,
                      bool *ret_found, bool *ret_is_wrong, struct problem *ret_problem)
{
    char source[PATH_MAX];
    char target[PATH_MAX];
    if (!folder_path(from, name, source, sizeof source, ret_problem) ||
        !folder_path(to, name, target, sizeof target, ret_problem)) {
        return false;
    }
    *ret_found = access(source, F_OK) == 0;
    if (!*ret_found && errno != ENOENT) {
        problem_set_unread(ret_problem, source, errno);
        return false;
    }
    return !*ret_found || copy(source, target, ret_is_wrong, ret_problem);
}

/* A link to a config that is kept elsewhere is followed: the backup has the file that the broker
 * reads. */
static bool copy_config(const char *from, const char *to, bool *ret_is_wrong,
                        struct problem *ret_problem)
{
    char named[PATH_MAX];
    (void)ret_is_wrong; /* the reader of the config reports it */
    if (realpath(from, named) == NULL) {
        problem_set(ret_problem, "%s: %s", from, strerror(errno));
        return false;
    }
    return file_copy(named, to, ret_problem);
}

/* Reads HEAD before the copy begins: the copy may be newer than HEAD, never older. Index 0: HEAD
 * says nothing. */
static bool read_mark(const char *folder, struct head *ret_head, struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct problem damage = {.text = ""};
    struct head head = {.index = 0};
    if (!folder_path(folder, MARKET_HEAD, path, sizeof path, ret_problem)) {
        return false;
    }
    switch (head_read(path, &head, &damage)) {
    case HEAD_OK:
        head_warn(path, &head);
        break;
    /* A backup has no HEAD, nor has a restored market before its first start. */
    case HEAD_MISSING:
        break;
    case HEAD_CORRUPT:
        log_warning("%s: nothing shows that this copy is the newest state", damage.text);
        break;
    case HEAD_FAILED:
        problem_set(ret_problem, "%s", damage.text);
        return false;
    }
    *ret_head = head;
    return true;
}

/* Looks for the entry in the table journal of the copy, then in its tail. */
static enum journal_match find_entry(sqlite3 *database, const struct tail *tail, uint64_t index,
                                     const struct hash32 *chain)
{
    for (size_t i = 0; i < tail->count; i++) {
        const struct journal_last *end = &tail->entries[i].end;
        if (end->index == index) {
            return hash32_equal(&end->chain, chain) ? JOURNAL_HAS : JOURNAL_HAS_OTHER;
        }
    }
    return journal_sqlite_has(database, index, chain);
}

static bool check_mark(const char *from, const struct head *head, const struct tail *tail,
                       const struct backup_report *report, sqlite3 *database,
                       struct problem *ret_problem)
{
    if (head->index > report->entry) {
        problem_set(
            ret_problem,
            "the journal of %s ends at entry %" PRIu64 ", but HEAD has seen %" PRIu64
            ": its WAL is damaged or missing, or its tail is, or it is an old copy. Keep the "
            "older backups",
            from, report->entry, head->index);
        return false;
    }
    const enum journal_match match =
        head->index == 0 ? JOURNAL_HAS : find_entry(database, tail, head->index, &head->chain);
    if (match == JOURNAL_UNREAD) {
        problem_set(ret_problem, "the journal of the copy cannot be read: %s",
                    sqlite3_errmsg(database));
        return false;
    }
    if (match != JOURNAL_HAS) {
        problem_set(ret_problem,
                    "entry %" PRIu64 " of %s is not the one that HEAD has seen: this is another "
                    "history. Keep the older backups",
                    head->index, from);
        return false;
    }
    return true;
}

/* Takes the time of the last command of the entry that ends the journal. */
static bool take_last(const void *bytes, size_t length, const struct journal_last *end,
                      struct backup_report *report)
{
    struct entry_head head;
    struct entry_command command = {0};
    size_t position = 0;
    const bool good = entry_read_head(bytes, length, &head);
    while (good && entry_next(bytes, length, &position, &command)) {
    }
    report->entry = end->index;
    report->command = end->next_command - 1;
    report->log_time_ns = command.log_time_ns;
    return good;
}

/* Reads the end of the journal in the tables, with its entry, command and time. */
static bool read_end(sqlite3 *database, const char *from, struct backup_report *report,
                     struct journal_last *ret_last, struct problem *ret_problem)
{
    static const char text[] =
        "SELECT idx, next_command, bytes, (SELECT ifnull(max(tree_size), 0) FROM checkpoint), chain"
        " FROM journal ORDER BY idx DESC LIMIT 1";
    sqlite3_stmt *select = NULL;
    bool good = sqlite3_prepare_v2(database, text, -1, &select, NULL) == SQLITE_OK &&
                sqlite3_step(select) == SQLITE_ROW;
    if (good) {
        const void *bytes = sqlite3_column_blob(select, 2);
        size_t length = (size_t)sqlite3_column_bytes(select, 2);
        const void *chain = sqlite3_column_blob(select, 4);
        ret_last->index = (uint64_t)sqlite3_column_int64(select, 0);
        ret_last->next_command = (uint64_t)sqlite3_column_int64(select, 1);
        good = chain != NULL &&
               sqlite3_column_bytes(select, 4) == (int)sizeof ret_last->chain.bytes &&
               take_last(bytes, length, ret_last, report);
        if (good) {
            memcpy(ret_last->chain.bytes, chain, sizeof ret_last->chain.bytes);
        }
        report->tree_size = (uint64_t)sqlite3_column_int64(select, 3);
    }
    if (!good) {
        problem_set(ret_problem,
                    sqlite_could_not(database) ? "the journal of the copy of %s cannot be read: %s"
                                               : "%s holds no journal of a market (%s)",
                    from, sqlite3_errmsg(database));
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return good;
}

/* Adds to the copy in `folder` what its tables do not have yet, so that it ends where the market
 * ended. */
static bool add_tail(const char *folder, struct tail *tail, const struct journal_last *last,
                     struct backup_report *report, bool *ret_is_wrong, struct problem *ret_problem)
{
    *ret_is_wrong = tail_fit(tail, last, ret_problem) != TAIL_FITS;
    if (*ret_is_wrong) {
        return false;
    }
    if (tail->count > 0) {
        const struct tail_entry *newest = &tail->entries[tail->count - 1];
        (void)take_last(newest->bytes, newest->length, &newest->end, report); /* it was read */
    }
    return tail_copy(tail, folder, ret_problem);
}

/* Checks the end of the copy in `folder` against `head`, the HEAD of the market in `from`. */
static bool check_end(const char *from, const char *folder, const struct head *head,
                      struct tail *tail, struct backup_report *report, bool *ret_is_wrong,
                      struct problem *ret_problem)
{
    struct journal_last last;
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    if (!folder_path(folder, MARKET_DATABASE, path, sizeof path, ret_problem)) {
        return false;
    }
    bool good = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ||
                failed(path, database, ret_is_wrong, ret_problem);
    if (good) {
        good = read_end(database, from, report, &last, ret_problem);
        *ret_is_wrong = !good && !sqlite_could_not(database);
    }
    good = good && add_tail(folder, tail, &last, report, ret_is_wrong, ret_problem);
    if (good) {
        good = check_mark(from, head, tail, report, database, ret_problem);
        *ret_is_wrong = !good && !sqlite_could_not(database);
    }
    (void)sqlite3_close(database); /* only read */
    return good;
}

/* Copies the ledger, with what its tables do not have yet. HEAD and the tail are read first: what
 * leaves the tail later is in the tables. */
static bool copy_ledger(const char *from, const char *to, struct backup_report *report,
                        bool *ret_is_wrong, struct problem *ret_problem)
{
    struct head head;
    struct tail tail;
    bool found = false;
    if (!read_mark(from, &head, ret_problem) || !tail_read(from, &tail, ret_problem)) {
        return false;
    }
    bool good =
        copy_part(from, to, MARKET_DATABASE, copy_database, &found, ret_is_wrong, ret_problem);
    if (good && !found) {
        problem_set(ret_problem, "%s has no %s: is it the folder of a market, or a backup of one?",
                    from, MARKET_DATABASE);
        good = false;
    }
    good = good && check_end(from, to, &head, &tail, report, ret_is_wrong, ret_problem);
    tail_fini(&tail);
    return good;
}

bool backup_copy(const char *from, const char *to, const struct backup_parts *wanted,
                 struct backup_report *ret_report, bool *ret_is_wrong, struct problem *ret_problem)
{
    static const char *const keys[] = {MARKET_BROKER_KEY, MARKET_LOG_KEY, MARKET_AUDIT_KEY,
                                       MARKET_OWNER_KEY};
    struct backup_report report = {0};
    bool found = false;
    *ret_is_wrong = false;
    if (!copy_ledger(from, to, &report, ret_is_wrong, ret_problem) ||
        (wanted->blobs && !copy_part(from, to, MARKET_BLOBS, copy_blobs, &report.has_blobs,
                                     ret_is_wrong, ret_problem)) ||
        !copy_part(from, to, MARKET_BROKER_CONFIG, copy_config, &found, ret_is_wrong,
                   ret_problem)) {
        return false;
    }
    bool lacks_key = false;
    for (size_t i = 0; wanted->keys && i < sizeof keys / sizeof keys[0]; i++) {
        if (!copy_part(from, to, keys[i], copy_key, &found, ret_is_wrong, ret_problem)) {
            return false;
        }
        report.has_keys = report.has_keys || found;
        lacks_key = lacks_key || (!found && market_key_is_elsewhere(from, keys[i]));
    }
    report.has_keys = report.has_keys && !lacks_key;
    *ret_report = report;
    return true;
}

/* A copy inside the folder would be copied with the folder, and be lost with it. */
static bool is_outside(const char *copy, const char *folder, struct problem *ret_problem)
{
    char inner[PATH_MAX];
    char outer[PATH_MAX];
    if (realpath(copy, inner) == NULL || realpath(folder, outer) == NULL) {
        problem_set(ret_problem, "%s: %s", folder, strerror(errno));
        return false;
    }
    const size_t length = strlen(outer);
    if (strncmp(inner, outer, length) == 0 && inner[length] == '/') {
        problem_set(ret_problem, "the backup would lie inside %s: name a folder elsewhere", folder);
        return false;
    }
    return true;
}

static bool check_copy(const struct backup_options *options, const char *copy,
                       struct backup_report *report, struct problem *ret_problem)
{
    bool is_wrong = false;
    if (!backup_check(copy, options->audit, report, &is_wrong, ret_problem)) {
        struct problem found = *ret_problem;
        problem_set(ret_problem, "%s%.350s%s", is_wrong ? "this market cannot be restored: " : "",
                    found.text,
                    is_wrong ? ". Keep the older backups, and go by When something is wrong in "
                               "docs/operator.md"
                             : "");
        return false;
    }
    report->is_checked = true;
    return true;
}

bool backup_make(const struct backup_options *options, struct backup_report *ret_report,
                 struct problem *ret_problem)
{
    char beside[PATH_MAX];
    const struct backup_parts parts = {.blobs = !options->without_blobs,
                                       .keys = options->with_keys};
    if (!backup_beside(options->target, beside, sizeof beside, ret_problem)) {
        return false;
    }
    char head[PATH_MAX];
    if (folder_path(options->folder, MARKET_HEAD, head, sizeof head, NULL) &&
        access(head, F_OK) != 0) {
        log_warning("there is no %s: nothing shows that this copy is the newest state", head);
    }
    bool is_wrong = false;
    bool good = is_outside(beside, options->folder, ret_problem) &&
                backup_copy(options->folder, beside, &parts, ret_report, &is_wrong, ret_problem) &&
                (options->unchecked || check_copy(options, beside, ret_report, ret_problem)) &&
                backup_publish(beside, options->target, ret_problem);
    if (!good) {
        backup_discard(beside);
    }
    return good;
}
