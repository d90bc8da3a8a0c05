/* This file compares what the client of bench/cluster.c was told with the ledger of a broker. */
#include "bench/cluster/parts.h"

#include "ledger/record.h"
#include "runtime/market.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* The ledger and the independent program agree about the folder. */
static bool audit(const struct brokers *brokers, const char *folder, struct problem *problem)
{
    char path[PROGRAM_PATH_SIZE];
    char log[SCALE_PATH_SIZE * 2];
    int status = 0;
    (void)snprintf(path, sizeof path, "%s/bourse-broker", brokers->market.programs);
    (void)snprintf(log, sizeof log, "%s/audit.log", brokers->market.folder);
    const char *words[] = {path, "audit", folder, NULL};
    pid_t pid = program_start(words, log);
    while (!program_has_ended(&pid, &status)) {
        program_pause();
    }
    if (status != 0) {
        problem_set(problem, "the audit of %s failed", folder);
    }
    return status == 0;
}

static bool count_mints(sqlite3 *database, const struct load *load, uint8_t *found,
                        struct verdict *verdict)
{
    sqlite3_stmt *rows = NULL;
    bool good = sqlite3_prepare_v2(database, "SELECT amount FROM transfers WHERE kind = ?", -1,
                                   &rows, NULL) == SQLITE_OK &&
                sqlite3_bind_int(rows, 1, LEDGER_TRANSFER) == SQLITE_OK;
    while (good && sqlite3_step(rows) == SQLITE_ROW) {
        const int64_t amount = sqlite3_column_int64(rows, 0);
        if (amount < 1 || (uint64_t)amount > load_sent(load)) {
            continue; /* the credits of the genesis */
        }
        verdict->duplicated += found[amount - 1];
        verdict->unanswered +=
            load_state(load, (uint64_t)amount - 1) != COMMAND_ACKNOWLEDGED && !found[amount - 1];
        found[amount - 1] = 1;
    }
    (void)sqlite3_finalize(rows);
    return good;
}

static bool count_subtasks(sqlite3 *database, struct verdict *verdict)
{
    static const char query[] =
        "SELECT count(*) FROM (SELECT 1 FROM results WHERE status = 0 GROUP BY job, idx"
        " HAVING count(*) > 1 UNION ALL SELECT 1 FROM results WHERE charge > 0"
        " GROUP BY job, idx, attempt HAVING count(*) > 1)";
    sqlite3_stmt *row = NULL;
    const bool good = sqlite3_prepare_v2(database, query, -1, &row, NULL) == SQLITE_OK &&
                      sqlite3_step(row) == SQLITE_ROW;
    if (good) {
        verdict->duplicated += (uint64_t)sqlite3_column_int64(row, 0);
    }
    (void)sqlite3_finalize(row);
    return good;
}

bool verify_ledger(const struct brokers *brokers, uint32_t number, const struct load *load,
                   struct verdict *ret_verdict, struct problem *ret_problem)
{
    char path[SCALE_PATH_SIZE * 2];
    sqlite3 *database = NULL;
    const char *folder = brokers->places[number].folder;
    uint8_t *found = calloc(load_sent(load) + 1, 1);
    *ret_verdict = (struct verdict){.lost = 0};
    (void)snprintf(path, sizeof path, "%s/" MARKET_DATABASE, folder);
    const bool good = found != NULL && audit(brokers, folder, ret_problem) &&
                      sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                      count_mints(database, load, found, ret_verdict) &&
                      count_subtasks(database, ret_verdict);
    for (uint64_t i = 0; good && i < load_sent(load); i++) {
        ret_verdict->lost += load_state(load, i) == COMMAND_ACKNOWLEDGED && !found[i];
    }
    if (!good && ret_problem->text[0] == '\0') {
        problem_set(ret_problem, "%s cannot be read", path);
    }
    (void)sqlite3_close(database); /* read only */
    free(found);
    return good;
}
