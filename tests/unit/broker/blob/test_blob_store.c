/* The blob store takes blobs whole, in chunks and as lent files, and counts them for each owner. */
#include "broker/blob/blob_store.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

START_TEST(a_small_blob_is_stored_at_once_and_read_back_by_its_owner)
{
    struct hash32 hash = sha256_of("hello", 5);
    uint64_t stored = 0;
    bool complete = false;
    uint8_t back[16];
    size_t length = 0;
    uint64_t size = 0;

    ck_assert_int_eq(put(ALICE, hash, "hello", 5, 0, 5, &stored, &complete), BLOB_OK);
    ck_assert(complete);
    ck_assert_uint_eq(stored, 5);
    reopen(1 << 20);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_OK);
    ck_assert_int_eq(blob_store_owns(store, BOB, &hash),
                     BLOB_NOT_FOUND); /* knowing the hash is not having the bytes */
    ck_assert_int_eq(blob_store_get(store, &hash, 1, sizeof back, back, &length, &size), BLOB_OK);
    ck_assert_uint_eq(length, 4);
    ck_assert_uint_eq(size, 5);
    ck_assert_int_eq(memcmp(back, "ello", 4), 0);
    ck_assert_int_eq(blob_store_get(store, &hash, 6, 1, back, &length, &size), BLOB_WRONG_OFFSET);
}
END_TEST

START_TEST(nothing_at_all_is_a_blob_too)
{
    struct hash32 hash = sha256_of("", 0);
    uint64_t stored = 1;
    bool complete = false;
    uint8_t back[1];
    size_t length = 1;
    uint64_t size = 1;

    ck_assert_int_eq(put(ALICE, hash, "", 0, 0, 0, &stored, &complete), BLOB_OK);
    ck_assert(complete);
    ck_assert_int_eq(blob_store_get(store, &hash, 0, 1, back, &length, &size), BLOB_OK);
    ck_assert_uint_eq(length, 0);
    ck_assert_uint_eq(size, 0);
}
END_TEST

START_TEST(bytes_of_another_hash_are_refused_and_leave_nothing)
{
    struct hash32 hash = sha256_of("hello", 5);
    struct hash32 large_hash;
    uint8_t *bytes = large_bytes(&large_hash);
    uint64_t stored = 0;
    bool complete = false;

    ck_assert_int_eq(put(ALICE, hash, "hellO", 5, 0, 5, &stored, &complete), BLOB_WRONG_HASH);
    bytes[LARGE - 1] ^= 1;
    ck_assert_int_eq(put(ALICE, large_hash, bytes, LARGE, 0, LARGE, &stored, &complete),
                     BLOB_WRONG_HASH);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_NOT_FOUND);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &large_hash), BLOB_NOT_FOUND);
    ck_assert_int_eq(usage(ALICE), 0);
    bytes[LARGE - 1] ^= 1; /* and the right bytes are welcome afterwards, from the start */
    ck_assert_int_eq(put(ALICE, large_hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(complete);
}
END_TEST

START_TEST(a_large_blob_comes_in_chunks_and_says_where_to_go_on)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = true;
    uint8_t back[100];
    size_t length = 0;
    uint64_t size = 0;

    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 100, 50, &stored, &complete),
                     BLOB_WRONG_OFFSET);
    ck_assert_uint_eq(stored, 0);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, 150000, &stored, &complete), BLOB_OK);
    ck_assert(!complete);
    ck_assert_uint_eq(stored, 150000);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_NOT_FOUND);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, 1000, &stored, &complete),
                     BLOB_WRONG_OFFSET);
    ck_assert_uint_eq(stored, 150000); /* sent again after a lost answer: go on from here */
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 150000, 50000, &stored, &complete), BLOB_OK);
    ck_assert(complete);
    ck_assert_int_eq(blob_store_get(store, &hash, LARGE - 60, 100, back, &length, &size), BLOB_OK);
    ck_assert_uint_eq(length, 60);
    ck_assert_int_eq(memcmp(back, bytes + LARGE - 60, 60), 0);
}
END_TEST

START_TEST(chunks_past_the_size_are_malformed)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;

    ck_assert_int_eq(put(ALICE, hash, bytes, 100, 90, 20, &stored, &complete), BLOB_MALFORMED);
    ck_assert_int_eq(put(ALICE, hash, bytes, 100, 200, 0, &stored, &complete), BLOB_MALFORMED);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, 0, &stored, &complete), BLOB_MALFORMED);
}
END_TEST

START_TEST(quota_counts_what_is_stored_and_what_is_on_its_way)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    struct hash32 other = sha256_of(bytes, 90000);
    uint64_t stored = 0;
    bool complete = false;

    reopen(250000);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, 1000, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(put(ALICE, other, bytes, 90000, 0, 90000, &stored, &complete),
                     BLOB_OVER_QUOTA);
    ck_assert_int_eq(put(BOB, other, bytes, 90000, 0, 90000, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(put(BOB, other, bytes, 90000, 0, 90000, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(usage(BOB), 90000); /* the same blob twice counts once */
    ck_assert_int_eq(put(ALICE, hash, bytes, 2 << 20, 0, 1000, &stored, &complete),
                     BLOB_WRONG_OFFSET);
}
END_TEST

START_TEST(two_owners_of_one_blob_pay_each_and_idle_uploads_end)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;

    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(put(BOB, hash, bytes, LARGE, 0, 1000, &stored, &complete), BLOB_OK);
    ck_assert(!complete); /* he has to show all of it */
    blob_store_expire(store, (BLOB_PARTIAL_IDLE_S + 1) * NS_PER_S);
    ck_assert_int_eq(put(BOB, hash, bytes, LARGE, 1000, LARGE - 1000, &stored, &complete),
                     BLOB_WRONG_OFFSET);
    ck_assert_int_eq(put(BOB, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(complete);
    ck_assert_int_eq(usage(ALICE), LARGE);
    ck_assert_int_eq(usage(BOB), LARGE);
}
END_TEST

/* Leaves so many more files to open: the lowest free number and as many above it. */
static void leave_descriptors(rlim_t left)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    if (left != RLIM_INFINITY) {
        int lowest = dup(STDERR_FILENO);
        ck_assert_int_ge(lowest, 0);
        (void)close(lowest);
        limit.rlim_cur = (rlim_t)lowest + left;
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(without_descriptors_an_upload_is_put_off_and_nothing_stops)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;
    size_t length = 0;
    uint64_t size = 0;
    uint8_t back[16];

    for (rlim_t left = 0; left < 2; left++) { /* none for the upload; none for its folder */
        leave_descriptors(left);
        enum blob_status status = put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete);
        leave_descriptors(RLIM_INFINITY);
        ck_assert_int_eq(status, BLOB_TOO_MANY);
        ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_NOT_FOUND);
    }
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(complete);

    leave_descriptors(0);
    enum blob_status status = blob_store_get(store, &hash, 0, sizeof back, back, &length, &size);
    leave_descriptors(RLIM_INFINITY);
    ck_assert_int_eq(status, BLOB_TOO_MANY);
    ck_assert_int_eq(blob_store_get(store, &hash, 0, sizeof back, back, &length, &size), BLOB_OK);
}
END_TEST

static enum blob_status take_back(size_t upload, bool is_whole)
{
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    enum blob_status status = blob_store_take_back(store, upload, is_whole);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    return status;
}

START_TEST(a_lent_file_that_another_writes_is_a_blob_when_it_is_whole)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    uint64_t size = 0;
    bool complete = false;
    uint8_t back[16];
    size_t length = 0;
    size_t upload = 0;
    int fd = -1;

    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, LARGE, &upload, &fd), BLOB_OK);
    ck_assert_int_eq(write(fd, bytes, LARGE), LARGE);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_TOO_MANY);
    blob_store_expire(store, (BLOB_PARTIAL_IDLE_S + 1) * NS_PER_S); /* it is in use */
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_NOT_FOUND);
    ck_assert_int_eq(take_back(upload, true), BLOB_OK);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_OK);
    ck_assert_int_eq(usage(ALICE), LARGE);
    ck_assert_int_eq(
        blob_store_get(store, &hash, LARGE - sizeof back, sizeof back, back, &length, &size),
        BLOB_OK);
    ck_assert_uint_eq(size, LARGE);
    ck_assert_mem_eq(back, bytes + LARGE - sizeof back, sizeof back);
}
END_TEST

START_TEST(a_lent_file_that_is_not_whole_leaves_nothing)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;
    size_t upload = 0;
    int fd = -1;

    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, LARGE, &upload, &fd), BLOB_OK);
    ck_assert_int_eq(take_back(upload, false), BLOB_WRONG_HASH);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &hash), BLOB_NOT_FOUND);
    ck_assert_int_eq(usage(ALICE), 0);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(complete);
}
END_TEST

START_TEST(what_is_lent_counts_like_any_upload)
{
    struct hash32 hash;
    struct hash32 other = sha256_of("other", 5);
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;
    size_t upload = 0;
    int fd = -1;

    reopen(LARGE + 10);
    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, (1 << 20) + 1, &upload, &fd),
                     BLOB_TOO_LARGE);
    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, UINT64_MAX, &upload, &fd),
                     BLOB_MALFORMED);
    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, LARGE, &upload, &fd), BLOB_OK);
    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, LARGE, &upload, &fd),
                     BLOB_TOO_MANY);
    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &other, LARGE, &upload, &fd),
                     BLOB_OVER_QUOTA);
    ck_assert_int_eq(take_back(upload, false), BLOB_WRONG_HASH);
    ck_assert_int_eq(put(ALICE, hash, bytes, LARGE, 0, 100000, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(blob_store_lend(store, ALICE, NULL, &hash, LARGE, &upload, &fd),
                     BLOB_TOO_MANY);
    leave_descriptors(0);
    enum blob_status status = blob_store_lend(store, BOB, NULL, &hash, LARGE, &upload, &fd);
    leave_descriptors(RLIM_INFINITY);
    ck_assert_int_eq(status, BLOB_TOO_MANY);
}
END_TEST

SUITE("blob store", setup, teardown,
      TEST(a_small_blob_is_stored_at_once_and_read_back_by_its_owner),
      TEST(nothing_at_all_is_a_blob_too), TEST(bytes_of_another_hash_are_refused_and_leave_nothing),
      TEST(a_large_blob_comes_in_chunks_and_says_where_to_go_on),
      TEST(chunks_past_the_size_are_malformed),
      TEST(quota_counts_what_is_stored_and_what_is_on_its_way),
      TEST(two_owners_of_one_blob_pay_each_and_idle_uploads_end),
      TEST(without_descriptors_an_upload_is_put_off_and_nothing_stops),
      TEST(a_lent_file_that_another_writes_is_a_blob_when_it_is_whole),
      TEST(a_lent_file_that_is_not_whole_leaves_nothing), TEST(what_is_lent_counts_like_any_upload))
