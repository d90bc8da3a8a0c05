/* The tests insert rows in bulks: full ones, the rest, large rows, and rows that SQLite refuses. */
#include "ledger/store/bulk.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"

enum { LARGE = BULK_BYTES + 1 };

static sqlite3 *database;
static struct bulk *bulk;

static void set_up(void)
{
    const struct bulk_target target = {
        .table = "rows",
        .columns = 3,
        .then = " ON CONFLICT(job, idx) DO UPDATE SET bytes = excluded.bytes"
                " WHERE length(excluded.bytes) >= length(bytes)"};
    ck_assert_int_eq(sqlite3_open(":memory:", &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database,
                                  "CREATE TABLE rows(job TEXT NOT NULL, idx INTEGER NOT NULL,"
                                  " bytes BLOB NOT NULL, PRIMARY KEY (job, idx),"
                                  " CHECK (idx <> 13)) STRICT;"
                                  "BEGIN",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(bulk_create(database, &target, &bulk), SQLITE_OK);
}

static void tear_down(void)
{
    bulk_destroy(&bulk);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
}

/* Adds a row whose bytes are gone when the call returns. */
static int add(int index, size_t length)
{
    char job[] = "job";
    uint8_t *bytes = malloc(length + 1);
    memset(bytes, index & 0xff, length);
    const struct cell cells[] = {{.type = CELL_TEXT, .bytes = job, .length = 3},
                                 cell_integer(index),
                                 cell_blob(bytes, length)};
    const int code = bulk_add(bulk, cells);
    memset(bytes, 0xee, length);
    memset(job, 'x', 3);
    free(bytes);
    return code;
}

static int number(const char *sql)
{
    sqlite3_stmt *select = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(database, sql, -1, &select, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(select), SQLITE_ROW);
    const int value = sqlite3_column_int(select, 0);
    ck_assert_int_eq(sqlite3_finalize(select), SQLITE_OK);
    return value;
}

START_TEST(rows_wait_until_there_are_enough)
{
    for (int i = 100; i < 100 + BULK_ROWS - 1; i++) {
        ck_assert_int_eq(add(i, 5), SQLITE_OK);
    }
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), 0);
    ck_assert_int_eq(add(1000, 5), SQLITE_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), BULK_ROWS);
    ck_assert_int_eq(number("SELECT count(*) FROM rows WHERE job = 'job' AND length(bytes) = 5"
                            " AND hex(substr(bytes, 5)) = printf('%02X', idx % 256)"),
                     BULK_ROWS);
}
END_TEST

/* Whatever the number of rows, a flush leaves none behind. */
START_TEST(a_flush_inserts_the_rest)
{
    for (int i = 0; i < _i; i++) {
        ck_assert_int_eq(add(100 + i, 0), SQLITE_OK);
    }
    ck_assert_int_eq(bulk_flush(bulk), SQLITE_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), _i);
    ck_assert_int_eq(bulk_flush(bulk), SQLITE_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), _i);
}
END_TEST

START_TEST(large_rows_come_after_those_that_wait)
{
    ck_assert_int_eq(add(1, 7), SQLITE_OK);
    ck_assert_int_eq(add(1, LARGE), SQLITE_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), 1);
    ck_assert_int_eq(number("SELECT length(bytes) FROM rows WHERE idx = 1"), LARGE);
    /* Rows that fill the memory before they are many go in as well. */
    for (int i = 2; i < 7; i++) {
        ck_assert_int_eq(add(i, BULK_BYTES / 3), SQLITE_OK);
    }
    ck_assert_int_eq(bulk_flush(bulk), SQLITE_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), 6);
}
END_TEST

/* The failed attempt of a subtask and its accepted one may meet in one statement. */
START_TEST(rows_of_one_statement_meet_in_their_order)
{
    for (int i = 0; i < BULK_ROWS; i++) {
        ck_assert_int_eq(add(100, i == BULK_ROWS - 2 ? 9 : (size_t)i % 8), SQLITE_OK);
    }
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), 1);
    ck_assert_int_eq(number("SELECT length(bytes) FROM rows"), 9);
}
END_TEST

START_TEST(a_row_that_is_refused_is_told)
{
    int code = SQLITE_OK;
    for (int i = 0; i < BULK_ROWS && code == SQLITE_OK; i++) {
        code = add(i, 4);
    }
    ck_assert_int_eq(code & 0xff, SQLITE_CONSTRAINT);
    ck_assert_int_eq(sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM rows"), 0);
    ck_assert_int_eq(add(13, 4), SQLITE_OK);
    ck_assert_int_eq(bulk_flush(bulk) & 0xff, SQLITE_CONSTRAINT);
    ck_assert_int_eq(bulk_flush(bulk), SQLITE_OK);
}
END_TEST

START_TEST(what_is_cleared_is_forgotten)
{
    ck_assert_int_eq(add(1, 4), SQLITE_OK);
    bulk_clear(bulk);
    ck_assert_int_eq(add(2, 4), SQLITE_OK);
    ck_assert_int_eq(bulk_flush(bulk), SQLITE_OK);
    ck_assert_int_eq(number("SELECT sum(idx) FROM rows"), 2);
}
END_TEST

SUITE("bulk", set_up, tear_down, TEST(rows_wait_until_there_are_enough),
      LOOP(a_flush_inserts_the_rest, 0, 2 * BULK_ROWS + 2),
      TEST(large_rows_come_after_those_that_wait), TEST(rows_of_one_statement_meet_in_their_order),
      TEST(a_row_that_is_refused_is_told), TEST(what_is_cleared_is_forgotten))
