#include "broker/storage/startable.h"

#include "broker/storage/entry.h"
#include "broker/storage/folder.h"
#include "broker/storage/head.h"
#include "broker/storage/journal_sqlite.h"
#include "broker/storage/tail/tail.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/market.h"

#include <limits.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

/* The genesis is the first command of the first entry. */
static bool read_origin(sqlite3 *database, char ret_origin[GENESIS_ORIGIN_SIZE])
{
    sqlite3_stmt *select = NULL;
    bool found = sqlite3_prepare_v2(database, "SELECT bytes FROM journal WHERE idx = 1", -1,
                                    &select, NULL) == SQLITE_OK &&
                 sqlite3_step(select) == SQLITE_ROW;
    if (found) {
        const uint8_t *bytes = sqlite3_column_blob(select, 0);
        const size_t length = (size_t)sqlite3_column_bytes(select, 0);
        struct entry_head head;
        struct entry_command command;
        struct genesis genesis;
        size_t position = 0;
        found = bytes != NULL && entry_read_head(bytes, length, &head) &&
                entry_next(bytes, length, &position, &command) && command.kind == ENTRY_GENESIS &&
                genesis_read(command.payload, command.payload_length, &genesis);
        if (found) {
            memcpy(ret_origin, genesis.origin, GENESIS_ORIGIN_SIZE);
        }
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return found;
}

static bool tail_has(const struct tail *tail, const struct head *head)
{
    for (size_t i = 0; i < tail->count; i++) {
        const struct journal_last *end = &tail->entries[i].end;
        if (end->index == head->index && hash32_equal(&end->chain, &head->chain)) {
            return true;
        }
    }
    return false;
}

/* HEAD with entries vouches for the journal that has its last entry. */
static bool agrees(sqlite3 *database, const struct tail *tail, enum head_status status,
                   const struct head *head)
{
    return status == HEAD_MISSING ||
           (status == HEAD_OK &&
            (head->index == 0 || tail_has(tail, head) ||
             journal_sqlite_has(database, head->index, &head->chain) == JOURNAL_HAS));
}

static bool look(sqlite3 *database, const struct tail *tail, enum head_status status,
                 const struct head *head, struct startable *ret_found)
{
    return read_origin(database, ret_found->origin) &&
           journal_sqlite_last_entry(database, &ret_found->entries) &&
           journal_sqlite_number(database, "SELECT count(*) FROM accounts", &ret_found->accounts) &&
           agrees(database, tail, status, head);
}

bool startable_find(const char *folder, struct startable *ret_found, struct problem *ret_problem)
{
    char path[PATH_MAX];
    char head_path[PATH_MAX];
    struct head head = {.index = 0};
    *ret_found = (struct startable){.starts = false};
    if (!folder_path(folder, MARKET_DATABASE, path, sizeof path, ret_problem) ||
        !folder_path(folder, MARKET_HEAD, head_path, sizeof head_path, ret_problem)) {
        return false;
    }
    const enum head_status status = head_read(head_path, &head, ret_problem);
    if (status == HEAD_FAILED) {
        return false;
    }
    if (access(path, F_OK) != 0) {
        return true; /* the caller has looked for the file */
    }
    sqlite3 *database = NULL;
    struct tail tail;
    if (!tail_read(folder, &tail, ret_problem)) {
        return false;
    }
    sqlite_know_errors();
    bool good = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
    ret_found->has_head = status == HEAD_OK;
    ret_found->starts = good && look(database, &tail, status, &head, ret_found);
    tail_fini(&tail);
    good = ret_found->starts || !sqlite_could_not(database);
    if (!good) {
        problem_set(ret_problem, "%s cannot be read (%s), so that nothing is known of its market",
                    path, sqlite3_errmsg(database));
    }
    (void)sqlite3_close(database); /* read only */
    return good;
}
