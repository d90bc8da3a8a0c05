/* The tests ask when the mark of history.db is evidence that the ledger has lost entries. */
#include "broker/storage/history_mark.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96], aside[128];
static sqlite3 *ledger;

static sqlite3 *database_with(const char *name, const char *statements)
{
    sqlite3 *database = NULL;
    ck_assert_int_eq(sqlite3_open(name, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, statements, NULL, NULL, NULL), SQLITE_OK);
    return database;
}

static void begin(void)
{
    strcpy(folder, "/tmp/bourse-history-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/history.db", folder);
    (void)snprintf(aside, sizeof aside, "%s.before-adoption", path);
    ledger = database_with(":memory:", "CREATE TABLE results (entry INTEGER);"
                                       "INSERT INTO results VALUES (3), (17), (5)");
}

static void end(void)
{
    ck_assert_int_eq(sqlite3_close(ledger), SQLITE_OK);
    (void)unlink(path); /* not in every test */
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_mark(unsigned entry)
{
    char text[128];
    (void)snprintf(text, sizeof text,
                   "CREATE TABLE mark (one INTEGER PRIMARY KEY, entry INTEGER);"
                   "INSERT INTO mark VALUES (1, %u)",
                   entry);
    ck_assert_int_eq(sqlite3_close(database_with(path, text)), SQLITE_OK);
}

START_TEST(no_file_and_no_mark_are_no_evidence)
{
    struct problem problem = {""};
    ck_assert_int_eq(history_mark_look(folder, ledger, false, &problem), HISTORY_FITS);
    ck_assert_int_ne(access(path, F_OK), 0); /* a look makes no file */
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("no database at all, and longer than a header of SQLite is; see above "
                           "and below, where the same is said again\n",
                           file),
                     0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(history_mark_look(folder, ledger, false, &problem), HISTORY_FITS);
}
END_TEST

START_TEST(a_mark_up_to_the_last_result_fits)
{
    struct problem problem = {""};
    write_mark(17);
    ck_assert_int_eq(history_mark_look(folder, ledger, false, &problem), HISTORY_FITS);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_mark_ahead_of_the_ledger_is_evidence)
{
    struct problem problem = {""};
    write_mark(18);
    ck_assert_int_eq(history_mark_look(folder, ledger, false, &problem), HISTORY_BEYOND);
    ck_assert_ptr_nonnull(strstr(problem.text, "record 18"));
    ck_assert_ptr_nonnull(strstr(problem.text, "record 17"));
    ck_assert_int_eq(access(path, F_OK), 0); /* nothing was changed */
}
END_TEST

START_TEST(an_adoption_sets_the_file_aside)
{
    struct problem problem = {""};
    write_mark(18);
    ck_assert_int_eq(history_mark_look(folder, ledger, true, &problem), HISTORY_FITS);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(unlink(aside), 0);
}
END_TEST

/* Whoever cannot look must not say that nothing is lost. */
START_TEST(a_file_that_cannot_be_opened_is_no_answer)
{
    struct problem problem = {""};
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(history_mark_look(folder, ledger, false, &problem), HISTORY_UNREAD);
    ck_assert_ptr_nonnull(strstr(problem.text, path));
    ck_assert_ptr_nonnull(strstr(problem.text, "try again"));
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(a_ledger_that_cannot_be_read_is_no_evidence)
{
    struct problem problem = {""};
    sqlite3 *other = database_with(":memory:", "CREATE TABLE other (entry INTEGER)");
    write_mark(18);
    ck_assert_int_eq(history_mark_look(folder, other, false, &problem), HISTORY_UNREAD);
    ck_assert_ptr_nonnull(strstr(problem.text, "no such table"));
    ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
}
END_TEST

SUITE("history mark", begin, end, TEST(no_file_and_no_mark_are_no_evidence),
      TEST(a_mark_up_to_the_last_result_fits), TEST(a_mark_ahead_of_the_ledger_is_evidence),
      TEST(an_adoption_sets_the_file_aside), TEST(a_file_that_cannot_be_opened_is_no_answer),
      TEST(a_ledger_that_cannot_be_read_is_no_evidence))
