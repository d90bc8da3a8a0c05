/* The comparison of the ledger with the blob store looks at bounded parts of large tables. */
#include "broker/blob/blob_census.h"
#include "broker/blob/named_blobs.h"
#include "protocol/message.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static sqlite3 *ledger;
static char database[96];

static void run_sql(const char *sql)
{
    ck_assert_msg(sqlite3_exec(ledger, sql, NULL, NULL, NULL) == SQLITE_OK, "%s",
                  sqlite3_errmsg(ledger));
}

static void begin(void)
{
    setup();
    (void)snprintf(database, sizeof database, "%s/ledger.db", folder);
    ck_assert_int_eq(sqlite3_open(database, &ledger), SQLITE_OK);
    run_sql("CREATE TABLE jobs (entry INTEGER PRIMARY KEY, manifest BLOB NOT NULL, "
            "job BLOB NOT NULL DEFAULT x'') STRICT");
    run_sql("CREATE TABLE results (entry INTEGER PRIMARY KEY, status INTEGER NOT NULL, "
            "outcome INTEGER NOT NULL, bytes BLOB NOT NULL, job BLOB NOT NULL DEFAULT x'') STRICT");
}

static void end(void)
{
    (void)sqlite3_close(ledger);
    teardown();
}

static struct hash32 store_text(const char *text)
{
    uint64_t stored;
    bool complete = false;
    const struct hash32 hash = sha256_of(text, strlen(text));
    ck_assert_int_eq(put(ALICE, hash, text, strlen(text), 0, strlen(text), &stored, &complete),
                     BLOB_OK);
    ck_assert(complete);
    return hash;
}

/* Adds jobs with entries `step` apart from entry `from` to before `to`. */
static void add_jobs(const struct hash32 *manifest, int from, int to, int step)
{
    char hex[65];
    char sql[400];
    text_hex(manifest->bytes, sizeof manifest->bytes, hex);
    (void)snprintf(sql, sizeof sql,
                   "WITH RECURSIVE number(i) AS (SELECT %d UNION ALL SELECT i + %d FROM number "
                   "WHERE i + %d < %d) INSERT INTO jobs SELECT i, x'%s', x'' FROM number",
                   from, step, step, to, hex);
    run_sql(sql);
}

/* Adds a result whose only field is the output (field 15) of that hash. */
static void add_result(int entry, const struct hash32 *output, enum attempt_status status,
                       enum result_outcome outcome)
{
    char hex[65];
    char sql[256];
    text_hex(output->bytes, sizeof output->bytes, hex);
    (void)snprintf(sql, sizeof sql, "INSERT INTO results VALUES (%d, %d, %d, x'7a221220%s', x'')",
                   entry, (int)status, (int)outcome, hex);
    run_sql(sql);
}

static struct named_blobs compare(void)
{
    struct named_blobs named;
    ck_assert(named_blobs_compare(database, store, &named));
    return named;
}

START_TEST(what_the_ledger_names_and_the_store_lacks_is_counted)
{
    const struct hash32 stored = store_text("stored");
    const struct hash32 gone = sha256_of("gone", 4);
    const struct hash32 nothing = sha256_of("", 0);
    add_jobs(&stored, 1, 3, 1);
    add_jobs(&gone, 7, 8, 1);
    add_result(10, &stored, ATTEMPT_ACCEPTED, OUTCOME_OK);
    add_result(12, &gone, ATTEMPT_ACCEPTED, OUTCOME_OK);
    add_result(20, &nothing, ATTEMPT_ACCEPTED, OUTCOME_OK); /* nobody sends that */
    const struct named_blobs named = compare();
    ck_assert_uint_eq(named.jobs, 3);
    ck_assert_uint_eq(named.jobs_lost, 1);
    ck_assert_uint_eq(named.results, 2);
    ck_assert_uint_eq(named.results_lost, 1);
    ck_assert_uint_eq(named.files, 0);
    ck_assert(!named.is_sample);
}
END_TEST

START_TEST(a_result_that_was_not_taken_may_name_what_nobody_stored)
{
    const struct hash32 gone = sha256_of("gone", 4);
    add_result(1, &gone, ATTEMPT_LATE, OUTCOME_OK);
    add_result(2, &gone, ATTEMPT_FAILED_UNPAID, OUTCOME_OK);
    add_result(3, &gone, ATTEMPT_FAILED_PAID, OUTCOME_CANCELLED);
    add_result(4, &gone, ATTEMPT_FAILED_PAID, OUTCOME_PREEMPTED); /* no checkpoint */
    const struct named_blobs named = compare();
    ck_assert_uint_eq(named.results, 0);
    ck_assert_uint_eq(named.results_lost, 0);
}
END_TEST

START_TEST(a_file_without_a_row_is_counted)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    sqlite3 *blobs = NULL;
    char path[96];
    uint64_t stored;
    bool complete = false;
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    (void)snprintf(path, sizeof path, "%s/blobs.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &blobs), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(blobs, "DELETE FROM blob", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(blobs), SQLITE_OK);
    add_result(1, &hash, ATTEMPT_ACCEPTED, OUTCOME_OK);
    const struct named_blobs named = compare();
    ck_assert_uint_eq(named.results_lost, 1);
    ck_assert_uint_eq(named.files, 1);
}
END_TEST

START_TEST(a_large_table_is_looked_at_in_bounded_parts)
{
    const struct hash32 stored = store_text("stored");
    const struct hash32 gone = sha256_of("gone", 4);
    add_jobs(&gone, 1000, 4000, 3);     /* 1,000 of 101,001 jobs, the oldest */
    add_jobs(&stored, 4000, 304000, 3); /* the others */
    add_jobs(&gone, 304000, 304001, 1); /* and the newest */
    struct named_blobs named = compare();
    ck_assert(named.is_sample);
    ck_assert_uint_le(named.jobs, NAMED_BLOBS_ROWS + 1);
    ck_assert_uint_ge(named.jobs, NAMED_BLOBS_ROWS / 2 + 1000);
    ck_assert_uint_ge(named.jobs_lost, 1 + 15);
    ck_assert_uint_le(named.jobs_lost, 1 + 25);
    run_sql("DELETE FROM jobs WHERE entry < 4000 OR entry = 304000");
    named = compare();
    ck_assert(named.is_sample);
    ck_assert_uint_eq(named.jobs_lost, 0);
}
END_TEST

START_TEST(what_cannot_be_read_is_not_counted_as_lost)
{
    struct named_blobs named;
    ck_assert(!named_blobs_compare("/nonexistent", store, &named));
    run_sql("DROP TABLE results");
    ck_assert(!named_blobs_compare(database, store, &named));
}
END_TEST

START_TEST(a_store_without_rows_is_not_swept_unseen)
{
    struct problem problem = {.text = ""};
    ck_assert(blob_census(store, folder, database, &problem)); /* the ledger names nothing */
    ck_assert(!blob_census(store, folder, "/nonexistent", &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "cannot be compared with blobs.db"));
    (void)store_text("stored");
    ck_assert(blob_census(store, folder, "/nonexistent", &problem));
}
END_TEST

SUITE("named blobs", begin, end, TEST(what_the_ledger_names_and_the_store_lacks_is_counted),
      TEST(a_result_that_was_not_taken_may_name_what_nobody_stored),
      TEST(a_file_without_a_row_is_counted), TEST(a_large_table_is_looked_at_in_bounded_parts),
      TEST(what_cannot_be_read_is_not_counted_as_lost),
      TEST(a_store_without_rows_is_not_swept_unseen))
