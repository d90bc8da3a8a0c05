/* The tests read out of a ledger what work took, and keep it in a file over restarts. */
#include "broker/answer/measuring.h"
#include "broker/storage/journal_sqlite.h"
#include "protocol/codec.h"
#include "tests/support/measured_rows.h"
#include "tests/support/scarce_vfs.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct small_market market;
static char history[128], blobs[128];
static struct ledger_reader *ledger;

static void store_manifest(void)
{
    char path[256];
    sqlite3 *database;
    sqlite3_stmt *insert;
    uint8_t *bytes;
    size_t length;
    const struct hash32 hash = small_market_manifest(&bytes, &length);
    ck_assert_int_eq(mkdir(blobs, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/blobs.db", blobs);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database,
                                  "CREATE TABLE blob (hash BLOB NOT NULL UNIQUE, size INTEGER NOT "
                                  "NULL, bytes BLOB) STRICT",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "INSERT INTO blob VALUES (?, ?, ?)", -1, &insert, NULL),
        SQLITE_OK);
    sqlite3_bind_blob(insert, 1, hash.bytes, 32, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, (sqlite3_int64)length);
    sqlite3_bind_blob(insert, 3, bytes, (int)length, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_finalize(insert);
    sqlite3_close(database);
    free(bytes);
}

static void begin(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    small_market_create(&market, NULL, NULL);
    (void)snprintf(history, sizeof history, "%s-history", market.database);
    (void)snprintf(blobs, sizeof blobs, "%s-blobs", market.folder);
    store_manifest();
    ck_assert_int_eq(ledger_reader_open(market.database, &ledger), LEDGER_STORE_OK);
}

static void end(void)
{
    char path[256];
    ledger_reader_close(&ledger);
    (void)snprintf(path, sizeof path, "%s/blobs.db", blobs);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(blobs), 0);
    small_market_destroy(&market);
}

/* The work of the market's job. */
static struct work its_work(void)
{
    uint8_t *bytes;
    size_t length;
    struct codec_error error;
    Bourse__V1__Manifest *manifest = NULL;
    (void)small_market_manifest(&bytes, &length);
    ck_assert_int_eq(codec_decode_manifest(bytes, length, &manifest, &error), CODEC_OK);
    const struct work work = work_of(manifest, 0);
    codec_manifest_free(&manifest);
    free(bytes);
    return work;
}

static void check_rows(const struct measuring *measuring)
{
    const struct work work = its_work();
    const struct measured_row row = row_of(measuring_rows(measuring), &work);
    ck_assert_uint_eq(count_rows(measuring_rows(measuring)), 1);
    ck_assert_str_eq(row.device_class, "cpu.x86_64.avx2");
    ck_assert_uint_eq(row.history.count, 3); /* and not the attempt that failed */
    ck_assert_int_eq(row.history.samples[1], 666666667);
    ck_assert_int_gt(row.at_ns, 0);
    ck_assert_uint_eq(count_rows(measuring_devices(measuring)), 1);
    const struct measured_row device = row_of(measuring_devices(measuring), &work);
    ck_assert_str_eq(device.device_class, row.device_class);
    ck_assert(!id128_is_zero(&device.device.device));
    ck_assert_int_eq(memcmp(&device.history, &row.history, sizeof row.history), 0);
}

START_TEST(accepted_results_are_read_out_of_the_ledger_once)
{
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    ck_assert_uint_eq(count_rows(measuring_rows(measuring)), 0);
    ck_assert(!measuring_look(measuring, ledger));
    check_rows(measuring);
    ck_assert(!measuring_look(measuring, ledger)); /* there is nothing new */
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

START_TEST(what_was_measured_is_there_after_a_restart)
{
    struct stat status;
    struct measuring *measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    measuring_close(&measuring);
    ck_assert_int_eq(stat(history, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    measuring = measuring_open(history, blobs);
    check_rows(measuring);
    (void)measuring_look(measuring, ledger); /* not counted twice */
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

START_TEST(a_damaged_file_is_made_anew_from_the_ledger)
{
    FILE *file = fopen(history, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 200; i++) {
        (void)fputs("this is no database of anybody's. ", file);
    }
    (void)fclose(file);
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    (void)measuring_look(measuring, ledger);
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

static void write_history(void)
{
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    (void)measuring_look(measuring, ledger);
    measuring_close(&measuring);
}

START_TEST(a_full_disk_does_not_keep_a_file_from_being_read)
{
    write_history();
    scarce_register();
    scarce.database_write = SQLITE_FULL;
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    check_rows(measuring); /* without a look at the ledger */
    measuring_close(&measuring);
    scarce_unregister();
}
END_TEST

/* The other user stands for a machine that does not open the file. */
START_TEST(a_file_that_cannot_be_opened_stays_as_it_is)
{
    struct stat before;
    struct stat after;
    sqlite3 *other;
    write_history();
    ck_assert_int_eq(stat(history, &before), 0);
    ck_assert_int_eq(sqlite3_open(history, &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert_ptr_nonnull(measuring);
    (void)measuring_look(measuring, ledger);
    check_rows(measuring);
    ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
    measuring_close(&measuring); /* writes nothing over what was not read */
    ck_assert_int_eq(stat(history, &after), 0);
    ck_assert(before.st_ino == after.st_ino);
    ck_assert(before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
              before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    measuring = measuring_open(history, blobs);
    check_rows(measuring);
    measuring_close(&measuring);
}
END_TEST

/* A restore of an older ledger looks like this. */
static void change_history(const char *query)
{
    sqlite3 *database;
    ck_assert_int_eq(sqlite3_open(history, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, query, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
}

static uint64_t mark_of(const char *path)
{
    sqlite3 *database;
    uint64_t mark = 0;
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert(journal_sqlite_number(database, "SELECT entry FROM mark", &mark));
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    return mark;
}

START_TEST(a_file_of_a_later_time_is_made_anew_from_the_ledger)
{
    struct measuring *measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    measuring_close(&measuring);
    change_history("UPDATE mark SET entry = 1000000; UPDATE measured SET class = 'x'");
    measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    check_rows(measuring);
    measuring_close(&measuring);
    /* The file is evidence that entries are lost, and stays; so does a second one beside it. */
    change_history("UPDATE mark SET entry = 2000000");
    measuring = measuring_open(history, blobs);
    (void)measuring_look(measuring, ledger);
    check_rows(measuring);
    measuring_close(&measuring);
    ck_assert_uint_eq(mark_of(history), 2000000);
    char ahead[256];
    (void)snprintf(ahead, sizeof ahead, "%s.ahead", history);
    ck_assert_uint_eq(mark_of(ahead), 1000000);
    ck_assert_int_eq(unlink(ahead), 0);
}
END_TEST

START_TEST(of_a_manifest_that_is_not_there_nothing_is_measured)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/blobs.db", blobs);
    ck_assert_int_eq(unlink(path), 0);
    struct measuring *measuring = measuring_open(history, blobs);
    ck_assert(!measuring_look(measuring, ledger));
    ck_assert_uint_eq(count_rows(measuring_rows(measuring)), 0);
    measuring_close(&measuring);
}
END_TEST

SUITE("measuring", begin, end, TEST(accepted_results_are_read_out_of_the_ledger_once),
      TEST(what_was_measured_is_there_after_a_restart),
      TEST(a_damaged_file_is_made_anew_from_the_ledger),
      TEST(a_full_disk_does_not_keep_a_file_from_being_read),
      TEST(a_file_that_cannot_be_opened_stays_as_it_is),
      TEST(a_file_of_a_later_time_is_made_anew_from_the_ledger),
      TEST(of_a_manifest_that_is_not_there_nothing_is_measured))
