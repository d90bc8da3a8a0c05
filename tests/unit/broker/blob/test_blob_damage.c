/* The store says for its log which blobs are damaged. */
#include "base/sha256.h"
#include "broker/blob/blob_damage.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sqlite3.h>
#include <string.h>

static sqlite3 *database;
static struct blob_damage *damage;
static struct hash32 in_row, in_file;

static void set_up(void)
{
    static const char schema[] =
        "CREATE TABLE blob (hash BLOB PRIMARY KEY, size INTEGER, bytes BLOB);" BLOB_DAMAGE_SCHEMA;
    static const char *const rows[] = {"INSERT INTO blob VALUES (?1, 5, x'68656c6c6e')",
                                       "INSERT INTO blob VALUES (?1, 70000, NULL)"};
    in_row = sha256_of("hello", 5);
    in_file = sha256_of("of a file", 9);
    ck_assert_int_eq(sqlite3_open(":memory:", &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, schema, NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *insert;
        ck_assert_int_eq(sqlite3_prepare_v2(database, rows[i], -1, &insert, NULL), SQLITE_OK);
        (void)sqlite3_bind_blob(insert, 1, i == 0 ? in_row.bytes : in_file.bytes, 32,
                                SQLITE_STATIC);
        ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
        (void)sqlite3_finalize(insert);
    }
    damage = blob_damage_create(database);
    ck_assert_ptr_nonnull(damage);
}

static void tear_down(void)
{
    blob_damage_destroy(&damage);
    (void)sqlite3_close(database);
}

START_TEST(a_blob_in_a_row_is_told_by_its_row_and_another_by_its_file)
{
    char text[256];
    blob_damage_tell(damage, &in_file, "/blobs/ab/abcd", "lost", text, sizeof text);
    ck_assert_str_eq(text, "/blobs/ab/abcd: lost");
    blob_damage_tell(damage, &in_row, "/blobs/2c/2cf2", "lost", text, sizeof text);
    ck_assert_ptr_eq(strstr(text, "the row of blob 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e"
                                  "73043362938b9824 in "),
                     text);
    ck_assert_ptr_null(strstr(text, "/blobs/2c"));
    ck_assert_ptr_nonnull(strstr(text, ": lost"));
}
END_TEST

START_TEST(a_mark_tells_what_is_lost_and_whether_it_could_be_kept)
{
    char text[256];
    blob_damage_mark(damage, &in_file, "/blobs/ab/abcd", "shorter", text, sizeof text);
    ck_assert_str_eq(text, "/blobs/ab/abcd: shorter");
    ck_assert_int_eq(blob_damage_look(damage, &in_file, "/blobs/ab/abcd"), BLOB_HEALTH_LOST);
    ck_assert_int_eq(sqlite3_exec(database, "PRAGMA query_only = 1", NULL, NULL, NULL), SQLITE_OK);
    blob_damage_mark(damage, &in_row, "/blobs/2c/2cf2", "wrong", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, ": wrong (and blobs.db cannot be written)"));
}
END_TEST

SUITE("blob_damage", set_up, tear_down,
      TEST(a_blob_in_a_row_is_told_by_its_row_and_another_by_its_file),
      TEST(a_mark_tells_what_is_lost_and_whether_it_could_be_kept))
