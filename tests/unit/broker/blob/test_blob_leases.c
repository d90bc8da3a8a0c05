/* The outputs that a lease stores are pending until a result names them, and go with the lease. */
#include "base/sha256.h"
#include "broker/blob/blob_store.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sys/wait.h>
#include <unistd.h>

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

SUITE("blobs of leases", setup, teardown,
      TEST(what_a_lease_stores_costs_its_consumer_nothing_until_a_result_names_it),
      TEST(a_lease_stores_no_more_than_its_subtasks_declare),
      TEST(what_somebody_else_has_stored_stays),
      TEST(an_upload_of_a_lease_takes_nothing_of_its_consumers_quota),
      TEST(a_kill_before_the_commit_leaves_a_dropped_blob_whole),
      TEST(a_rollback_leaves_a_dropped_blob_whole))
