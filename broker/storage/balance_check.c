#include "broker/storage/balance_check.h"

#include <string.h>

static bool differs(struct problem *ret_problem, const char *table, long long number)
{
    problem_set(ret_problem,
                "table %s, account %lld: it differs from its replay, that is, from what the "
                "journal leads to",
                table, number);
    return false;
}

static bool unreadable(sqlite3 *database, const char *table, struct problem *ret_problem)
{
    problem_set(ret_problem, "table %s cannot be read: %s", table, sqlite3_errmsg(database));
    return false;
}

static bool has_money(const struct exchange *exchange, uint32_t number)
{
    struct exchange_account_row row;
    return exchange_account(exchange, number, &row) &&
           (row.available_micro != 0 || row.held_micro != 0);
}

static bool balance_agrees(const struct exchange *exchange, sqlite3_stmt *balance)
{
    struct exchange_account_row row;
    sqlite3_int64 number = sqlite3_column_int64(balance, 0);
    return number >= 0 && number < UINT32_MAX &&
           exchange_account(exchange, (uint32_t)number, &row) &&
           row.available_micro == sqlite3_column_int64(balance, 1) &&
           row.held_micro == sqlite3_column_int64(balance, 2);
}

static bool account_agrees(const struct exchange *exchange, sqlite3_stmt *account)
{
    struct exchange_account_row row;
    sqlite3_int64 number = sqlite3_column_int64(account, 0);
    const void *key = sqlite3_column_blob(account, 1);
    const char *name = (const char *)sqlite3_column_text(account, 3);
    return number >= 0 && number < UINT32_MAX && key != NULL && name != NULL &&
           sqlite3_column_bytes(account, 1) == (int)sizeof row.key.bytes &&
           exchange_account(exchange, (uint32_t)number, &row) &&
           memcmp(key, row.key.bytes, sizeof row.key.bytes) == 0 &&
           sqlite3_column_int64(account, 2) == row.roles && strcmp(name, row.name) == 0;
}

/* Compares every row of `table`; its first column is the account's number. */
static bool walk(sqlite3 *database, const char *table, const char *sql,
                 bool (*agrees)(const struct exchange *, sqlite3_stmt *),
                 const struct exchange *exchange, int64_t *ret_rows, struct problem *ret_problem)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &rows, NULL) != SQLITE_OK) {
        return unreadable(database, table, ret_problem);
    }
    bool good = true;
    int step = SQLITE_DONE;
    while (good && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        good = agrees(exchange, rows) || differs(ret_problem, table, sqlite3_column_int64(rows, 0));
        *ret_rows += 1;
    }
    good = good && (step == SQLITE_DONE || unreadable(database, table, ret_problem));
    (void)sqlite3_finalize(rows); /* repeats the error of the step */
    return good;
}

bool balance_check(sqlite3 *database, const struct exchange *exchange, struct problem *ret_problem)
{
    int64_t ignored = 0;
    int64_t with_money = 0;
    if (!walk(database, "accounts", "SELECT number, key, roles, name FROM accounts ORDER BY number",
              account_agrees, exchange, &ignored, ret_problem) ||
        !walk(database, "balances",
              "SELECT account, available, held FROM balances WHERE available <> 0 OR held <> 0",
              balance_agrees, exchange, &with_money, ret_problem)) {
        return false;
    }
    for (uint32_t number = 0; number < exchange_account_count(exchange); number++) {
        with_money -= has_money(exchange, number) ? 1 : 0;
    }
    if (with_money != 0) {
        problem_set(ret_problem, "table balances: the number of rows with money differs from its "
                                 "replay: one is missing");
    }
    return with_money == 0;
}
