#include "broker/storage/history_mark.h"

#include "broker/storage/folder.h"
#include "broker/storage/journal_sqlite.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum mark_found { MARK_NONE, MARK_READ, MARK_UNREAD };

/* Returns true when the machine kept the file from being read, and not its content. A full disk, or
 * a folder that may not be written to, keeps only a journal from being undone; that stops no
 * start. */
static bool may_be_whole(sqlite3 *database)
{
    const int code = database == NULL ? SQLITE_NOMEM : sqlite3_errcode(database) & 0xff;
    return sqlite_could_not(database) && code != SQLITE_FULL && code != SQLITE_READONLY;
}

/* A killed broker may have left a journal of history.db. Only a handle that may write undoes the
 * change that the journal begins; such a handle changes nothing else here. */
static enum mark_found read_mark(const char *path, uint64_t *ret_mark, struct problem *ret_problem)
{
    if (access(path, F_OK) != 0) {
        if (errno == ENOENT) {
            return MARK_NONE;
        }
        problem_set(ret_problem, "%.300s cannot be looked at: %s. " PROBLEM_TRY_AGAIN, path,
                    strerror(errno));
        return MARK_UNREAD;
    }
    sqlite3 *database = NULL;
    enum mark_found found = MARK_NONE;
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(database, 5000) == SQLITE_OK && /* a running broker may write */
        journal_sqlite_number(database, "SELECT entry FROM mark", ret_mark)) {
        found = MARK_READ;
    } else if (sqlite_reads_failed()) {
        sqlite_explain_unread(ret_problem);
        found = MARK_UNREAD;
    } else if (may_be_whole(database)) {
        problem_set(ret_problem, "%.300s cannot be read: %s. " PROBLEM_TRY_AGAIN, path,
                    sqlite3_errmsg(database));
        found = MARK_UNREAD;
    }
    (void)sqlite3_close(database); /* nothing was written */
    return found;
}

static enum history_found set_aside(const char *path, uint64_t mark, uint64_t last,
                                    struct problem *ret_problem)
{
    char aside[PATH_MAX + 24];
    (void)snprintf(aside, sizeof aside, "%s.before-adoption", path);
    if (rename(path, aside) != 0) {
        problem_set(ret_problem, "%.300s, which is ahead of the ledger, cannot be set aside: %s",
                    path, strerror(errno));
        return HISTORY_UNREAD;
    }
    log_warning("%s has seen record %" PRIu64
                ", the last result of the adopted ledger is record %" PRIu64 ": it is now %s",
                path, mark, last, aside);
    return HISTORY_FITS;
}

enum history_found history_mark_look(const char *folder, sqlite3 *ledger, bool adopts,
                                     struct problem *ret_problem)
{
    char path[PATH_MAX];
    uint64_t mark = 0;
    uint64_t last = 0;
    if (!folder_path(folder, MARKET_HISTORY, path, sizeof path, ret_problem)) {
        return HISTORY_UNREAD;
    }
    /* The mark is read first: a running broker only adds results to the ledger. */
    switch (read_mark(path, &mark, ret_problem)) {
    case MARK_NONE:
        return HISTORY_FITS;
    case MARK_READ:
        break;
    case MARK_UNREAD:
        return HISTORY_UNREAD;
    }
    if (!journal_sqlite_number(ledger, "SELECT ifnull(max(entry), 0) FROM results", &last)) {
        problem_set(ret_problem, "the ledger cannot be read: %s", sqlite3_errmsg(ledger));
        return HISTORY_UNREAD;
    }
    if (mark <= last) {
        return HISTORY_FITS;
    }
    if (adopts) {
        return set_aside(path, mark, last, ret_problem);
    }
    problem_set(ret_problem,
                "%.100s has seen record %" PRIu64
                ", and the last result of the ledger is record %" PRIu64
                ": entries are lost; nothing was changed. Put the newer ledger.db and HEAD back, "
                "or restore the newest backup. Where nothing newer is left: bourse-broker backup "
                "DIR B; bourse-broker restore B NEWDIR; start NEWDIR once with --adopt-journal. "
                "Where the file came from another folder: move it away",
                path, mark, last);
    return HISTORY_BEYOND;
}
