#include "ledger/sqlite_code.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_the_machine(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
    case SQLITE_ERROR: /* a table or column that is not there */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return false;
    default:
        return true;
    }
}

bool sqlite_could_not(sqlite3 *database)
{
    return database == NULL || is_of_the_machine(sqlite3_errcode(database));
}

static int keep_first(void *context, int columns, char **values, char **names)
{
    char *line = context;
    (void)names;
    if (columns > 0 && values[0] != NULL && line[0] == '\0') {
        (void)snprintf(line, PAGES_TEXT, "%s", values[0]); /* cut, never overrun */
    }
    return 0;
}

/* "... Page 144: unable to get the page. error code=8458" */
static bool says_unread(const char *line)
{
    static const char words[] = "error code=";
    const char *code = strstr(line, words);
    return code != NULL && is_of_the_machine(atoi(code + sizeof words - 1));
}

enum pages_status sqlite_check_pages(sqlite3 *database, const char *table, char ret_why[PAGES_TEXT])
{
    char sql[128] = "PRAGMA quick_check(1)";
    if (table != NULL) {
        (void)snprintf(sql, sizeof sql, "PRAGMA quick_check('%.60s')", table); /* our own names */
    }
    ret_why[0] = '\0';
    if (sqlite3_exec(database, sql, keep_first, ret_why, NULL) != SQLITE_OK) {
        (void)snprintf(ret_why, PAGES_TEXT, "%s", sqlite3_errmsg(database));
        return sqlite_could_not(database) ? PAGES_UNREAD : PAGES_DAMAGED;
    }
    if (strcmp(ret_why, "ok") == 0) {
        return PAGES_WHOLE;
    }
    return says_unread(ret_why) ? PAGES_UNREAD : PAGES_DAMAGED;
}
