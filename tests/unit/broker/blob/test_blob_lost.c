/* The blob store notices bytes that rotted or are gone, and takes them again from whoever sends
 * them. */
#include "base/sha256.h"
#include "base/text.h"
#include "broker/blob/blob_store.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_blob_whose_file_is_gone_or_shorter_is_lost)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    char path[192], hex[65];
    uint64_t stored = 0;
    bool complete = false;
    size_t length = 0;
    uint64_t size = 0;
    uint8_t back[16];
    int fd = -1;
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    text_hex(hash.bytes, sizeof hash.bytes, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", folder, hex, hex);

    ck_assert_int_eq(truncate(path, LARGE - 8), 0);
    ck_assert_int_eq(blob_store_get(store, &hash, LARGE - 16, 16, back, &length, &size), BLOB_LOST);
    ck_assert_int_eq(blob_store_get(store, &hash, 0, 16, back, &length, &size), BLOB_LOST);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(blob_store_get(store, &hash, 0, 16, back, &length, &size), BLOB_LOST);
    bool is_hashed = true;
    ck_assert_int_eq(blob_store_file(store, &hash, &fd, &is_hashed), BLOB_LOST);
    ck_assert_int_eq(fd, -1);
    ck_assert(!is_hashed);
}
END_TEST

static bool is_said_hashed(const struct hash32 *hash)
{
    int fd = -1;
    bool is_hashed = false;
    ck_assert_int_eq(blob_store_file(store, hash, &fd, &is_hashed), BLOB_OK);
    (void)close(fd);
    return is_hashed;
}

static void flip_file(const struct hash32 *hash, off_t at)
{
    char path[256];
    uint8_t byte = 0;
    path_of(hash, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(a_file_with_a_flipped_bit_is_lost_until_it_is_sent_again)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    int fd = -1;
    bool is_hashed = true;
    put_large(ALICE, &hash, bytes);
    ck_assert_int_eq(read_all(&hash, 60000), BLOB_OK);
    flip_file(&hash, LARGE / 2);
    ck_assert_int_eq(read_all(&hash, 60000), BLOB_LOST); /* its last piece does not leave */
    ck_assert_ptr_nonnull(strstr(blob_store_error(store), "do not have its hash"));
    reopen(1 << 20);
    ck_assert_int_eq(read_all(&hash, 60000), BLOB_LOST); /* at once */
    ck_assert_int_eq(blob_store_file(store, &hash, &fd, &is_hashed), BLOB_LOST);
    ck_assert_int_eq(fd, -1);
    ck_assert(!is_hashed);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_OK);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_NOT_FOUND);
    put_large(ALICE, &hash, bytes);
    ck_assert_int_eq(read_all(&hash, 60000), BLOB_OK);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_OK);
    ck_assert_int_eq(usage(ALICE), LARGE); /* it counts once */
}
END_TEST

START_TEST(who_sends_what_was_lost_mends_it_for_all)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    put_large(ALICE, &hash, bytes);
    flip_file(&hash, 0);
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_LOST);
    put_large(BOB, &hash, bytes);
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_OK);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_OK);
    ck_assert_int_eq(usage(BOB), LARGE);
}
END_TEST

START_TEST(a_row_with_a_flipped_bit_is_lost_until_it_is_sent_again)
{
    struct hash32 hash = sha256_of("hello", 5);
    uint8_t back[8];
    size_t length = 0;
    uint64_t size = 0;
    uint64_t stored = 0;
    bool complete = false;
    char path[128];
    sqlite3 *database = NULL;
    ck_assert_int_eq(put(ALICE, hash, "hello", 5, 0, 5, &stored, &complete), BLOB_OK);
    (void)snprintf(path, sizeof path, "%s/blobs.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(database, "UPDATE blob SET bytes = x'68656c6c6e'", NULL, NULL, NULL),
        SQLITE_OK);
    (void)sqlite3_close(database);
    ck_assert_int_eq(blob_store_get(store, &hash, 0, 2, back, &length, &size), BLOB_LOST);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_NOT_FOUND);
    ck_assert_int_eq(put(ALICE, hash, "hello", 5, 0, 5, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(blob_store_get(store, &hash, 0, 8, back, &length, &size), BLOB_OK);
    ck_assert_int_eq(memcmp(back, "hello", 5), 0);
}
END_TEST

START_TEST(what_is_said_to_be_here_has_its_file)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    char path[256];
    put_large(ALICE, &hash, bytes);
    path_of(&hash, path);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_OK);
    ck_assert_int_eq(truncate(path, LARGE - 8), 0);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_LOST);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_NOT_FOUND);
    put_large(ALICE, &hash, bytes);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_LOST);
    put_large(ALICE, &hash, bytes);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &hash), BLOB_OK);
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_OK);
}
END_TEST

START_TEST(a_file_put_in_the_place_of_a_lost_one_is_checked_first)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    int fd = -1;
    bool is_hashed = false;
    put_large(ALICE, &hash, bytes);
    flip_file(&hash, 5);
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_LOST);
    flip_file(&hash, 5); /* as an operator does with the file of a backup */
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_UNCHECKED);
    ck_assert_int_eq(blob_store_file(store, &hash, &fd, &is_hashed), BLOB_UNCHECKED);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(blob_store_checked(store, &hash, true), BLOB_OK);
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_OK);
    ck_assert_int_eq(blob_store_checked(store, &hash, false), BLOB_LOST);
    ck_assert_int_eq(read_all(&hash, LARGE), BLOB_LOST);
}
END_TEST

START_TEST(a_file_is_said_to_be_hashed_until_it_is_written_to_or_the_store_opened_anew)
{
    struct hash32 hash;
    uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;
    char hex[65];
    char path[512];
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(is_said_hashed(&hash));
    bytes[0]++;
    struct hash32 other = sha256_of(bytes, LARGE);
    ck_assert_int_eq(put(ALICE, other, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(is_said_hashed(&other) && is_said_hashed(&hash));
    text_hex(hash.bytes, sizeof hash.bytes, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", folder, hex, hex);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}}; /* no tick has to go by */
    ck_assert_int_eq(pwrite(fd, "x", 1, 9), 1);
    ck_assert_int_eq(futimens(fd, times), 0);
    (void)close(fd);
    ck_assert(!is_said_hashed(&hash));
    ck_assert(is_said_hashed(&other));
    reopen(1 << 20);
    ck_assert(!is_said_hashed(&other)); /* nobody knows what became of it meanwhile */
}
END_TEST

/* An unreadable table is not an empty one: nobody is told that a blob is missing. */
START_TEST(a_damaged_table_of_owners_is_a_failure)
{
    char path[128];
    sqlite3 *database = NULL;
    struct hash32 hash = sha256_of("abc", 3);
    uint64_t stored = 0;
    bool complete = false;
    int64_t bytes = 0;
    ck_assert_int_eq(put(ALICE, hash, "abc", 3, 0, 3, &stored, &complete), BLOB_OK);
    (void)snprintf(path, sizeof path, "%s/blobs.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, "DROP TABLE owner; DROP TABLE usage", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_FAILED);
    ck_assert_int_eq(blob_store_usage(store, ALICE, &bytes), BLOB_FAILED);
    ck_assert_int_eq(put(ALICE, hash, "abc", 3, 0, 3, &stored, &complete), BLOB_FAILED);
}
END_TEST

SUITE("lost blobs", setup, teardown, TEST(a_file_with_a_flipped_bit_is_lost_until_it_is_sent_again),
      TEST(who_sends_what_was_lost_mends_it_for_all),
      TEST(a_row_with_a_flipped_bit_is_lost_until_it_is_sent_again),
      TEST(what_is_said_to_be_here_has_its_file),
      TEST(a_file_put_in_the_place_of_a_lost_one_is_checked_first),
      TEST(a_blob_whose_file_is_gone_or_shorter_is_lost),
      TEST(a_file_is_said_to_be_hashed_until_it_is_written_to_or_the_store_opened_anew),
      TEST(a_damaged_table_of_owners_is_a_failure))
