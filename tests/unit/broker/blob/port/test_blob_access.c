/* The tests follow who may read which blobs: leases, what they were given, and a grace. */
#include "broker/blob/port/blob_access.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { ALICE = 3 };

START_TEST(who_has_the_lease_may_read_what_was_given_with_its_work)
{
    enum { MANY = 500 };
    struct blob_access *access = blob_access_create();
    const struct id128 job = {{1}};
    const struct hash32 manifest = {{9}};
    struct hash32 given[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        given[i] = sha256_of(&i, sizeof i);
    }
    ck_assert(blob_access_add(access, 1, 5, &job, ALICE, &manifest));
    ck_assert(blob_access_add(access, 2, 6, &job, ALICE, &manifest));
    ck_assert(blob_access_give(access, 77, given, MANY)); /* no such lease any more */
    const struct blob_access_job *served = blob_access_find(access, 5, &job, 0);
    ck_assert(!blob_access_gave(access, 5, served, &given[0]));
    ck_assert(blob_access_give(access, 1, given, MANY - 1));
    ck_assert(blob_access_give(access, 1, given, 3)); /* again: nothing new */
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert(blob_access_gave(access, 5, served, &given[i]) == (i < MANY - 1));
        ck_assert(!blob_access_gave(access, 6, served, &given[i]));
    }
    blob_access_end(access, 1, 1000 * NS_PER_S);
    blob_access_expire(access, 1061 * NS_PER_S);
    ck_assert(!blob_access_gave(access, 5, blob_access_find(access, 6, &job, 0), &given[0]));
    blob_access_destroy(&access);
}
END_TEST

START_TEST(a_provider_serves_while_its_lease_stands_and_a_minute_more)
{
    struct blob_access *access = blob_access_create();
    const struct id128 job = {{1}};
    const struct id128 other = {{2}};
    const struct hash32 manifest = {{9}};
    const struct hash32 input = {{7}};
    const struct hash32 stranger = {{8}};

    ck_assert(blob_access_add(access, 1, 5, &job, ALICE, &manifest));
    ck_assert(blob_access_add(access, 1, 5, &job, ALICE,
                              &manifest)); /* granted again after a statement */
    ck_assert_ptr_null(blob_access_find(access, 6, &job, 0));
    ck_assert_ptr_null(blob_access_find(access, 5, &other, 0));
    struct blob_access_job *served = blob_access_find(access, 5, &job, 0);
    ck_assert_ptr_nonnull(served);
    ck_assert_uint_eq(served->owner, ALICE);
    struct hash32 *hashes = calloc(2, sizeof *hashes);
    ck_assert_ptr_nonnull(hashes);
    hashes[0] = input;
    hashes[1] = (struct hash32){{3}};
    blob_access_job_set_hashes(served, hashes, 2);
    ck_assert(blob_access_job_names(served, &manifest));
    ck_assert(blob_access_job_names(served, &input));
    ck_assert(!blob_access_job_names(served, &stranger));

    blob_access_end(access, 1, 1000 * NS_PER_S);
    ck_assert_ptr_nonnull(blob_access_find(access, 5, &job, 1060 * NS_PER_S));
    ck_assert_ptr_null(blob_access_find(access, 5, &job, 1061 * NS_PER_S));
    blob_access_expire(access, 1061 * NS_PER_S);
    ck_assert_ptr_null(blob_access_find(access, 5, &job, 0));
    blob_access_destroy(&access);
}
END_TEST

SUITE("blob_access", NULL, NULL, TEST(who_has_the_lease_may_read_what_was_given_with_its_work),
      TEST(a_provider_serves_while_its_lease_stands_and_a_minute_more))
