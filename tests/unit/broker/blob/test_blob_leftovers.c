/* Files that no row names, as a crash leaves them, are removed. */
#include "base/sha256.h"
#include "broker/blob/blob_store.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum blob_sweep sweep_all(size_t *ret_removed)
{
    enum blob_sweep state = BLOB_SWEEP_GOES_ON;
    while (state == BLOB_SWEEP_GOES_ON) {
        state = blob_store_sweep(store, ret_removed);
    }
    return state;
}

/* A file with that name and nothing in it. */
static void leave_file(const struct hash32 *hash)
{
    char path[256];
    path_of(hash, path);
    *strrchr(path, '/') = '\0';
    (void)mkdir(path, 0700); /* it may be there */
    path_of(hash, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(files_without_a_row_are_swept_and_others_stay)
{
    struct hash32 large;
    struct hash32 small = sha256_of("small", 5);
    const struct hash32 left = {{0x12, 0x34}};
    const uint8_t *bytes = large_bytes(&large);
    uint64_t stored = 0;
    bool complete = false;
    char path[256];
    size_t removed = 0;
    put_large(ALICE, &large, bytes);
    ck_assert_int_eq(put(ALICE, small, (const uint8_t *)"small", 5, 0, 5, &stored, &complete),
                     BLOB_OK);
    leave_file(&left);
    leave_file(&small); /* its bytes are in its row */
    (void)snprintf(path, sizeof path, "%s/12/notes", folder);
    FILE *other = fopen(path, "w");
    ck_assert_ptr_nonnull(other);
    (void)fclose(other);
    ck_assert_int_eq(sweep_all(&removed), BLOB_SWEEP_ENDED);
    ck_assert_uint_eq(removed, 2);
    ck_assert_int_eq(access(path, F_OK), 0); /* no blob's name */
    path_of(&left, path);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(read_all(&large, LARGE), BLOB_OK);
    ck_assert_int_eq(read_one(&small), BLOB_OK);
}
END_TEST

START_TEST(a_sweep_gives_up_where_many_files_have_no_row)
{
    size_t removed = 0;
    for (uint32_t i = 0; i <= BLOB_LEFTOVERS_MAX; i++) {
        const struct hash32 hash = {{(uint8_t)(i % 3), (uint8_t)(i >> 8), (uint8_t)i}};
        leave_file(&hash);
    }
    ck_assert_int_eq(sweep_all(&removed), BLOB_SWEEP_GAVE_UP);
    ck_assert_uint_eq(removed, BLOB_LEFTOVERS_MAX);
    ck_assert_int_eq(blob_store_sweep(store, &removed), BLOB_SWEEP_ENDED); /* nothing more goes */
    ck_assert_uint_eq(removed, BLOB_LEFTOVERS_MAX);
}
END_TEST

START_TEST(leftovers_of_a_crash_are_removed_at_the_next_start)
{
    char path[128];
    struct stat status;
    (void)snprintf(path, sizeof path, "%s/partial/3-abcd", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fclose(file);
    reopen(1 << 20);
    ck_assert_int_ne(stat(path, &status), 0);
}
END_TEST

SUITE("leftovers of blobs", setup, teardown, TEST(files_without_a_row_are_swept_and_others_stay),
      TEST(a_sweep_gives_up_where_many_files_have_no_row),
      TEST(leftovers_of_a_crash_are_removed_at_the_next_start))
