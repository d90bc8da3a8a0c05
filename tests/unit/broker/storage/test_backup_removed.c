/* The tests take a backup while blobs are removed. The backup names no file that it lacks, unless
 * the market lacks the file, too. */
#include "broker/storage/backup_removed.h"

#include "base/id.h"
#include "base/text.h"
#include "runtime/files.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

static char market[128], copied[128];

static void run_sql(const char *of, const char *sql)
{
    char index[192];
    sqlite3 *database = NULL;
    (void)snprintf(index, sizeof index, "%s/blobs.db", of);
    ck_assert_int_eq(sqlite3_open(index, &database), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(database));
    (void)sqlite3_close(database);
}

static int64_t number(const char *of, const char *sql)
{
    char index[192];
    sqlite3 *database = NULL;
    sqlite3_stmt *select = NULL;
    (void)snprintf(index, sizeof index, "%s/blobs.db", of);
    ck_assert_int_eq(sqlite3_open(index, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(database, sql, -1, &select, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(select), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(select, 0);
    (void)sqlite3_finalize(select);
    (void)sqlite3_close(database);
    return value;
}

/* Blob `digit` has a hash of 64 such digits. */
static void path_of(const char *of, char digit, char ret_path[256])
{
    char hex[65];
    memset(hex, digit, 64);
    hex[64] = '\0';
    (void)snprintf(ret_path, 256, "%s/%.2s/%s", of, hex, hex);
}

static void add_file(const char *of, char digit)
{
    char file[256];
    path_of(of, digit, file);
    char *slash = strrchr(file, '/');
    *slash = '\0';
    (void)mkdir(file, 0700);
    *slash = '/';
    ck_assert_msg(file_write(file, "bytes", 5, 0600, &problem), "%s", problem.text);
}

static bool has_file(const char *of, char digit)
{
    char file[256];
    path_of(of, digit, file);
    return access(file, F_OK) == 0;
}

static void add_row(const char *of, char digit)
{
    char hex[65];
    char sql[512];
    memset(hex, digit, 64);
    hex[64] = '\0';
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO blob VALUES (x'%s', 100, NULL); INSERT INTO owner VALUES (3, "
                   "x'%s'); UPDATE usage SET bytes = bytes + 100",
                   hex, hex);
    run_sql(of, sql);
}

static void begin(void)
{
    static const char tables[] =
        "CREATE TABLE blob(hash BLOB PRIMARY KEY, size INTEGER, bytes BLOB);"
        "CREATE TABLE owner(account INTEGER, hash BLOB);"
        "CREATE TABLE usage(account INTEGER PRIMARY KEY, bytes INTEGER);"
        "INSERT INTO usage VALUES (3, 0)";
    setup();
    (void)snprintf(market, sizeof market, "%s/market", folder);
    (void)snprintf(copied, sizeof copied, "%s/copied", folder);
    ck_assert_int_eq(mkdir(market, 0700), 0);
    ck_assert_int_eq(mkdir(copied, 0700), 0);
    run_sql(market, tables);
    run_sql(copied, tables);
}

START_TEST(a_blob_that_was_removed_meanwhile_leaves_the_copy)
{
    for (char digit = 'a'; digit <= 'd'; digit++) {
        add_row(copied, digit);
    }
    add_row(market, 'a'); /* both have it */
    add_file(market, 'a');
    add_file(copied, 'a');
    add_row(market, 'c'); /* was removed and stored again */
    add_file(market, 'c');
    add_row(market, 'd'); /* the market lacks it */
    ck_assert_msg(backup_removed_drop(market, copied, &problem), "%s", problem.text);
    ck_assert_int_eq(number(copied, "SELECT count(*) FROM blob"), 3);
    ck_assert_int_eq(number(copied, "SELECT count(*) FROM owner"), 3);
    ck_assert_int_eq(number(copied, "SELECT bytes FROM usage"), 300);
    ck_assert_int_eq(number(copied, "SELECT count(*) FROM blob WHERE hex(hash) LIKE 'BB%'"), 0);
    ck_assert(has_file(copied, 'a'));
    ck_assert(has_file(copied, 'c'));
    ck_assert(!has_file(copied, 'd'));
    ck_assert_int_eq(number(market, "SELECT count(*) FROM blob"), 3);
}
END_TEST

START_TEST(a_whole_copy_stays_as_it_is)
{
    add_row(market, 'a');
    add_row(copied, 'a');
    add_file(market, 'a');
    add_file(copied, 'a');
    run_sql(copied, "UPDATE usage SET bytes = 7");
    ck_assert_msg(backup_removed_drop(market, copied, &problem), "%s", problem.text);
    ck_assert_int_eq(number(copied, "SELECT bytes FROM usage"), 7);
}
END_TEST

START_TEST(condemned_blobs_count_against_no_quota)
{
    char index[192];
    sqlite3 *database = NULL;
    add_row(copied, 'a');
    add_row(copied, 'b');
    run_sql(copied, "CREATE TABLE condemned(account INTEGER NOT NULL, hash BLOB NOT NULL, since_s "
                    "INTEGER NOT NULL, PRIMARY KEY(account, hash)) STRICT, WITHOUT ROWID;"
                    "INSERT INTO condemned SELECT account, hash, 1 FROM owner WHERE hex(hash) LIKE "
                    "'AA%'; INSERT INTO condemned VALUES (3, x'00', 1)");
    (void)snprintf(index, sizeof index, "%s/blobs.db", copied);
    ck_assert_int_eq(sqlite3_open(index, &database), SQLITE_OK);
    ck_assert(backup_removed_forget_owners(database));
    (void)sqlite3_close(database);
    ck_assert_int_eq(number(copied, "SELECT bytes FROM usage"), 100);
    ck_assert_int_eq(number(copied, "SELECT count(*) FROM condemned"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backup removed");
    TCase *tests = tcase_create("backup removed");
    tcase_add_checked_fixture(tests, begin, teardown);
    tcase_add_test(tests, a_blob_that_was_removed_meanwhile_leaves_the_copy);
    tcase_add_test(tests, a_whole_copy_stays_as_it_is);
    tcase_add_test(tests, condemned_blobs_count_against_no_quota);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
