#include "broker/blob/blob_store.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALICE = 3, BOB = 4, LARGE = 200000 };

static char folder[64];
static struct blob_store *store;

static int64_t usage(uint32_t account)
{
    int64_t bytes = -1;
    ck_assert_int_eq(blob_store_usage(store, account, &bytes), BLOB_OK);
    return bytes;
}

static void reopen(int64_t quota)
{
    struct problem problem;
    struct blob_store_config config = {
        .folder = folder, .quota_bytes = quota, .size_bytes = 1 << 20};
    blob_store_close(&store);
    ck_assert_msg(blob_store_open(&config, &store, &problem), "%s", problem.text);
}

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-blobs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    reopen(1 << 20);
}

static void teardown(void)
{
    blob_store_close(&store);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

static uint8_t *large_bytes(struct hash32 *ret_hash)
{
    static uint8_t bytes[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    }
    *ret_hash = sha256_of(bytes, LARGE);
    return bytes;
}

static enum blob_status put(uint32_t account, struct hash32 hash, const void *bytes, size_t size,
                            size_t offset, size_t length, uint64_t *ret_stored, bool *ret_complete)
{
    struct blob_chunk chunk = {.account = account,
                               .hash = hash,
                               .size = size,
                               .offset = offset,
                               .data = (const uint8_t *)bytes + offset,
                               .length = length};
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    enum blob_status status = blob_store_put(store, &chunk, 0, ret_stored, ret_complete);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    return status;
}

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

/* The file of a blob whose hash has that first byte. */
static void path_of(const struct hash32 *hash, char ret_path[256])
{
    char hex[65];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, 256, "%s/%.2s/%s", folder, hex, hex);
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

static void put_large(uint32_t account, const struct hash32 *hash, const uint8_t *bytes)
{
    uint64_t stored = 0;
    bool complete = false;
    ck_assert_int_eq(put(account, *hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(complete);
}

/* The status of the read that ends the blob, in pieces of `piece` bytes. */
static enum blob_status read_all(const struct hash32 *hash, size_t piece)
{
    static uint8_t back[LARGE];
    enum blob_status status = BLOB_OK;
    uint64_t size = LARGE;
    size_t length = 0;
    for (uint64_t at = 0; status == BLOB_OK && at < size; at += piece) {
        status = blob_store_get(store, hash, at, piece, back, &length, &size);
    }
    return status;
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

/* ---------------------------------------------------------------- what a lease stores */

enum { PROVIDER = 9, OTHER_PROVIDER = 10 };

static struct blob_lease lease_of(uint32_t provider, uint8_t job)
{
    return (struct blob_lease){
        .holder = {.provider = provider, .job = {{job}}}, .bytes_most = 2 * LARGE, .count_most = 3};
}

static enum blob_status put_for(const struct blob_lease *lease, const void *bytes, size_t size,
                                struct hash32 *ret_hash)
{
    uint64_t stored = 0;
    bool complete = false;
    *ret_hash = sha256_of(bytes, size);
    struct blob_chunk chunk = {.account = ALICE,
                               .lease = lease,
                               .hash = *ret_hash,
                               .size = size,
                               .data = bytes,
                               .length = size};
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    enum blob_status status = blob_store_put(store, &chunk, 0, &stored, &complete);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert(complete == (status == BLOB_OK));
    return status;
}

static void name_it(const struct blob_holder *holder, const struct hash32 *hash)
{
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_store_name(store, holder, hash), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
}

static void drop_all(const struct blob_holder *holder)
{
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_store_drop(store, holder, 100), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
}

static enum blob_status read_one(const struct hash32 *hash)
{
    uint8_t back[1];
    size_t length = 0;
    uint64_t size = 0;
    return blob_store_get(store, hash, 0, 1, back, &length, &size);
}

START_TEST(what_a_lease_stores_costs_its_consumer_nothing_until_a_result_names_it)
{
    struct hash32 kept, junk, large;
    const struct blob_lease lease = lease_of(PROVIDER, 1);
    const uint8_t *bytes = large_bytes(&large);
    char path[256];
    reopen(LARGE + 100);
    ck_assert_int_eq(put_for(&lease, "output", 6, &kept), BLOB_OK);
    ck_assert_int_eq(put_for(&lease, "junk", 4, &junk), BLOB_OK);
    ck_assert_int_eq(put_for(&lease, bytes, LARGE, &large), BLOB_OK);
    ck_assert_int_eq(usage(ALICE), 0);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &kept), BLOB_NOT_FOUND);
    ck_assert_int_eq(blob_store_may_read(store, ALICE, &kept), BLOB_OK); /* at once */
    ck_assert_int_eq(blob_store_may_read(store, BOB, &kept), BLOB_NOT_FOUND);
    ck_assert_int_eq(blob_store_has(store, ALICE, &lease, &kept), BLOB_OK);
    ck_assert_int_eq(blob_store_has(store, ALICE, NULL, &kept), BLOB_NOT_FOUND);
    name_it(&lease.holder, &kept);
    ck_assert_int_eq(usage(ALICE), 6);
    reopen(LARGE + 100); /* what is pending is known after a restart */
    ck_assert_uint_eq(blob_store_holdings(store), 1);
    ck_assert_uint_eq(blob_store_holding(store, 0).count, 2);
    ck_assert_uint_eq(blob_store_holding(store, 0).bytes, 4 + LARGE);
    path_of(&large, path);
    ck_assert_int_eq(access(path, F_OK), 0);
    drop_all(&lease.holder);
    ck_assert_uint_eq(blob_store_holdings(store), 0);
    ck_assert_int_eq(read_one(&junk), BLOB_NOT_FOUND);
    ck_assert_int_eq(read_one(&large), BLOB_NOT_FOUND);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(read_one(&kept), BLOB_OK);
    ck_assert_int_eq(usage(ALICE), 6);
}
END_TEST

START_TEST(a_lease_stores_no_more_than_its_subtasks_declare)
{
    struct hash32 hash, large;
    struct blob_lease lease = lease_of(PROVIDER, 1);
    const struct blob_lease other = lease_of(PROVIDER, 2);
    const uint8_t *bytes = large_bytes(&large);
    lease.bytes_most = LARGE - 1;
    ck_assert_int_eq(put_for(&lease, bytes, LARGE, &large), BLOB_OVER_LEASE);
    lease.bytes_most = 2 * LARGE;
    ck_assert_int_eq(put_for(&lease, "1", 1, &hash), BLOB_OK);
    ck_assert_int_eq(put_for(&lease, "1", 1, &hash), BLOB_OK); /* the same once more */
    ck_assert_int_eq(put_for(&lease, "2", 1, &hash), BLOB_OK);
    ck_assert_int_eq(put_for(&lease, "3", 1, &hash), BLOB_OK);
    ck_assert_int_eq(put_for(&lease, "4", 1, &hash), BLOB_OVER_LEASE);
    ck_assert_int_eq(put_for(&other, "4", 1, &hash), BLOB_OK);
    hash = sha256_of("2", 1);
    name_it(&lease.holder, &hash); /* there is room for the next */
    ck_assert_int_eq(put_for(&lease, "5", 1, &hash), BLOB_OK);
}
END_TEST

/* A blob that goes with one lease stays where another lease, or an owner, has it. */
START_TEST(what_somebody_else_has_stored_stays)
{
    struct hash32 both, own_too;
    uint64_t stored = 0;
    bool complete = false;
    const struct blob_lease lease = lease_of(PROVIDER, 1);
    const struct blob_lease other = lease_of(OTHER_PROVIDER, 1);
    ck_assert_int_eq(put_for(&lease, "both", 4, &both), BLOB_OK);
    ck_assert_int_eq(put_for(&other, "both", 4, &both), BLOB_OK);
    ck_assert_int_eq(put_for(&lease, "own", 3, &own_too), BLOB_OK);
    ck_assert_int_eq(put(BOB, own_too, "own", 3, 0, 3, &stored, &complete), BLOB_OK);
    drop_all(&lease.holder);
    ck_assert_int_eq(read_one(&both), BLOB_OK);
    ck_assert_int_eq(read_one(&own_too), BLOB_OK);
    drop_all(&other.holder);
    ck_assert_int_eq(read_one(&both), BLOB_NOT_FOUND);
    ck_assert_int_eq(usage(BOB), 3);
    ck_assert_int_eq(usage(ALICE), 0);
}
END_TEST

START_TEST(an_upload_of_a_lease_takes_nothing_of_its_consumers_quota)
{
    struct hash32 hash;
    const uint8_t *bytes = large_bytes(&hash);
    uint64_t stored = 0;
    bool complete = false;
    const struct blob_lease lease = lease_of(PROVIDER, 1);
    reopen(LARGE);
    struct blob_chunk chunk = {.account = ALICE,
                               .lease = &lease,
                               .hash = {{7}},
                               .size = LARGE,
                               .data = bytes,
                               .length = 10};
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_store_put(store, &chunk, 0, &stored, &complete), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert(!complete);
    put_large(ALICE, &hash, bytes);
    ck_assert_int_eq(usage(ALICE), LARGE);
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

/* A broker that drops what the lease stored, and is killed before the commit. */
static void drop_and_die(const struct blob_holder *holder)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct problem problem;
        struct blob_store *other = NULL;
        const struct blob_store_config config = {
            .folder = folder, .quota_bytes = 1 << 20, .size_bytes = 1 << 20};
        _exit(blob_store_open(&config, &other, &problem) && blob_store_begin(other) == BLOB_OK &&
                      blob_store_drop(other, holder, 100) == BLOB_OK
                  ? 0
                  : 1);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(a_kill_before_the_commit_leaves_a_dropped_blob_whole)
{
    struct hash32 large;
    const struct blob_lease lease = lease_of(PROVIDER, 1);
    const uint8_t *bytes = large_bytes(&large);
    reopen(1 << 20);
    ck_assert_int_eq(put_for(&lease, bytes, LARGE, &large), BLOB_OK);
    blob_store_close(&store);
    drop_and_die(&lease.holder);
    reopen(1 << 20);
    ck_assert_uint_eq(blob_store_holdings(store), 1);
    ck_assert_int_eq(read_all(&large, LARGE), BLOB_OK);
}
END_TEST

START_TEST(a_rollback_leaves_a_dropped_blob_whole)
{
    struct hash32 large;
    const struct blob_lease lease = lease_of(PROVIDER, 1);
    const uint8_t *bytes = large_bytes(&large);
    reopen(1 << 20);
    ck_assert_int_eq(put_for(&lease, bytes, LARGE, &large), BLOB_OK);
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_store_drop(store, &lease.holder, 100), BLOB_OK);
    blob_store_close(&store); /* as a broker does that stops without the commit */
    reopen(1 << 20);
    ck_assert_int_eq(read_all(&large, LARGE), BLOB_OK);
}
END_TEST

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

SUITE("blob store", setup, teardown,
      TEST(a_small_blob_is_stored_at_once_and_read_back_by_its_owner),
      TEST(nothing_at_all_is_a_blob_too),
      TEST(what_a_lease_stores_costs_its_consumer_nothing_until_a_result_names_it),
      TEST(a_lease_stores_no_more_than_its_subtasks_declare),
      TEST(what_somebody_else_has_stored_stays),
      TEST(an_upload_of_a_lease_takes_nothing_of_its_consumers_quota),
      TEST(a_file_with_a_flipped_bit_is_lost_until_it_is_sent_again),
      TEST(who_sends_what_was_lost_mends_it_for_all),
      TEST(a_row_with_a_flipped_bit_is_lost_until_it_is_sent_again),
      TEST(what_is_said_to_be_here_has_its_file),
      TEST(a_file_put_in_the_place_of_a_lost_one_is_checked_first),
      TEST(bytes_of_another_hash_are_refused_and_leave_nothing),
      TEST(a_large_blob_comes_in_chunks_and_says_where_to_go_on),
      TEST(chunks_past_the_size_are_malformed),
      TEST(quota_counts_what_is_stored_and_what_is_on_its_way),
      TEST(two_owners_of_one_blob_pay_each_and_idle_uploads_end),
      TEST(without_descriptors_an_upload_is_put_off_and_nothing_stops),
      TEST(a_blob_whose_file_is_gone_or_shorter_is_lost),
      TEST(a_file_is_said_to_be_hashed_until_it_is_written_to_or_the_store_opened_anew),
      TEST(a_lent_file_that_another_writes_is_a_blob_when_it_is_whole),
      TEST(a_lent_file_that_is_not_whole_leaves_nothing), TEST(what_is_lent_counts_like_any_upload),
      TEST(a_damaged_table_of_owners_is_a_failure),
      TEST(a_kill_before_the_commit_leaves_a_dropped_blob_whole),
      TEST(a_rollback_leaves_a_dropped_blob_whole),
      TEST(files_without_a_row_are_swept_and_others_stay),
      TEST(a_sweep_gives_up_where_many_files_have_no_row),
      TEST(leftovers_of_a_crash_are_removed_at_the_next_start))
