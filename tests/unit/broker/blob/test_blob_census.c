#include "broker/blob/blob_census.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static sqlite3 *database;

static const char *path_of(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void begin(void)
{
    strcpy(folder, "/tmp/bourse-census-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(sqlite3_open(path_of("blobs.db"), &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database,
                                  "CREATE TABLE blob (hash BLOB NOT NULL UNIQUE, size INTEGER NOT "
                                  "NULL, bytes BLOB) STRICT",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
}

static void end(void)
{
    char command[128];
    (void)sqlite3_close(database);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Names a blob that begins with `byte` in the database. */
static void name(unsigned byte, unsigned number, bool is_file)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "INSERT INTO blob VALUES (x'%02x%062x', 9, %s)", byte, number,
                   is_file ? "NULL" : "x'00'");
    ck_assert_int_eq(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void put_file(unsigned byte, unsigned number)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%02x", byte);
    (void)mkdir(path_of(text), 0700); /* it may be there */
    (void)snprintf(text, sizeof text, "%02x/%02x%062x", byte, byte, number);
    FILE *file = fopen(path_of(text), "w");
    ck_assert_ptr_nonnull(file);
    (void)fclose(file);
}

START_TEST(files_and_folders_that_are_gone_are_counted)
{
    struct blob_census census;
    ck_assert(blob_census_take(folder, &census));
    ck_assert_uint_eq(census.named, 0);
    ck_assert_uint_eq(census.missing, 0);
    name(0x01, 1, true);
    name(0x01, 2, true);
    name(0xff, 1, true);
    name(0x30, 1, false); /* a small blob, whose bytes are in its row */
    put_file(0x01, 1);
    put_file(0x01, 2);
    put_file(0xff, 1);
    put_file(0xfe, 1); /* no row names it */
    ck_assert(blob_census_take(folder, &census));
    ck_assert_uint_eq(census.named, 3);
    ck_assert_uint_eq(census.missing, 0);
    ck_assert_uint_eq(census.folders, 0);
    char gone[80];
    (void)snprintf(gone, sizeof gone, "ff/ff%062x", 1);
    ck_assert_int_eq(unlink(path_of(gone)), 0);
    ck_assert(blob_census_take(folder, &census));
    ck_assert_uint_eq(census.missing, 1);
    ck_assert_uint_eq(census.folders, 0);
    ck_assert_int_eq(rmdir(path_of("ff")), 0);
    ck_assert(blob_census_take(folder, &census));
    ck_assert_uint_eq(census.missing, 1);
    ck_assert_uint_eq(census.folders, 1);
}
END_TEST

START_TEST(what_cannot_be_read_is_not_counted_as_gone)
{
    struct blob_census census;
    name(0x01, 1, true);
    FILE *file = fopen(path_of("01"), "w"); /* no folder */
    ck_assert_ptr_nonnull(file);
    (void)fclose(file);
    ck_assert(!blob_census_take(folder, &census));
    ck_assert(!blob_census_take("/nonexistent", &census));
}
END_TEST

SUITE("blob census", begin, end, TEST(files_and_folders_that_are_gone_are_counted),
      TEST(what_cannot_be_read_is_not_counted_as_gone))
