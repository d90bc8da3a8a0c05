/* These tests show that what a provider may store for a job follows from the manifest, and that the
 * bounds are never below what an honest agent may send. */
#include "broker/blob/lease_bounds.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TERABYTE (INT64_C(1) << 40)

enum { MANY = 10000, LISTED = 3 };

static const struct lease_bounds_caps caps = {.file_bytes = 64 * GIB, .all_bytes = 1024 * GIB};
static const uint64_t streams = 64 * MIB;
static const uint64_t tries = 4;
static char *names[] = {(char *)"one", (char *)"two"};

static Bourse__V1__Manifest manifest_of(uint32_t count)
{
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.subtask_count = count;
    return manifest;
}

static void declare(Bourse__V1__Manifest *manifest, size_t count)
{
    manifest->outputs = names;
    manifest->n_outputs = count;
}

static Bourse__V1__ManifestLimits limits_of(int64_t output_bytes, int64_t disk_bytes)
{
    Bourse__V1__ManifestLimits limits = BOURSE__V1__MANIFEST_LIMITS__INIT;
    limits.has_output_bytes = output_bytes != 0;
    limits.output_bytes = output_bytes;
    limits.has_disk_bytes = disk_bytes != 0;
    limits.disk_bytes = disk_bytes;
    return limits;
}

static void check_bounds(const Bourse__V1__Manifest *manifest, uint64_t bytes, uint64_t blobs)
{
    const struct lease_bounds bounds = lease_bounds_of(manifest, &caps);
    ck_assert_uint_eq(bounds.bytes, bytes);
    ck_assert_uint_eq(bounds.blobs, blobs);
}

START_TEST(a_job_without_outputs_leaves_its_streams)
{
    Bourse__V1__Manifest manifest = manifest_of(1);
    check_bounds(&manifest, tries * streams, tries * 2);
    manifest.subtask_count = LISTED;
    check_bounds(&manifest, tries * LISTED * streams, tries * LISTED * 2);

    /* The limits give no right where no output is declared. */
    Bourse__V1__ManifestLimits limits = limits_of(TERABYTE, TERABYTE);
    manifest.limits = &limits;
    check_bounds(&manifest, tries * LISTED * streams, tries * LISTED * 2);
}
END_TEST

START_TEST(declared_sizes_bound_all_outputs_of_a_try_together)
{
    Bourse__V1__Manifest manifest = manifest_of(1);
    declare(&manifest, 2);
    Bourse__V1__ManifestLimits limits = limits_of(5, 9);
    manifest.limits = &limits;
    check_bounds(&manifest, tries * (streams + 5), tries * 4);
    limits = limits_of(0, 9);
    check_bounds(&manifest, tries * (streams + 9), tries * 4);
}
END_TEST

START_TEST(an_output_without_a_size_is_at_most_one_blob)
{
    Bourse__V1__Manifest manifest = manifest_of(1);
    declare(&manifest, 1);
    check_bounds(&manifest, tries * (streams + caps.file_bytes), tries * 3);
    declare(&manifest, 2);
    check_bounds(&manifest, tries * (streams + 2 * caps.file_bytes), tries * 4);

    /* No blob is larger, whatever the manifest declares. */
    Bourse__V1__ManifestLimits limits = limits_of(TERABYTE, 0);
    manifest.limits = &limits;
    check_bounds(&manifest, tries * (streams + 2 * caps.file_bytes), tries * 4);
}
END_TEST

START_TEST(a_checkpoint_counts_where_the_job_asks_for_one)
{
    Bourse__V1__Manifest manifest = manifest_of(1);
    Bourse__V1__ManifestLimits limits = limits_of(5, 0);
    manifest.limits = &limits;
    manifest.checkpoint = names[0];
    check_bounds(&manifest, tries * (streams + 5), tries * (2 + LIMIT_CHECKPOINT_FILES));

    /* A try leaves its outputs or a checkpoint, so the bytes count once. */
    declare(&manifest, 1);
    check_bounds(&manifest, tries * (streams + 5), tries * (3 + LIMIT_CHECKPOINT_FILES));

    /* The files of a checkpoint without a size have what the account may store. */
    manifest.limits = NULL;
    check_bounds(&manifest, caps.all_bytes, tries * (3 + LIMIT_CHECKPOINT_FILES));
}
END_TEST

START_TEST(each_task_counts_by_its_own_terms)
{
    Bourse__V1__ManifestLimits large = limits_of(7000, 0);
    Bourse__V1__ManifestLimits small = limits_of(50, 0);
    Bourse__V1__ManifestTask tasks[LISTED];
    Bourse__V1__ManifestSubtask subtasks[LISTED];
    Bourse__V1__ManifestSubtask *pointers[LISTED];
    for (size_t i = 0; i < LISTED; i++) {
        bourse__v1__manifest_task__init(&tasks[i]);
        bourse__v1__manifest_subtask__init(&subtasks[i]);
        subtasks[i].task = &tasks[i];
        pointers[i] = &subtasks[i];
    }
    Bourse__V1__Manifest manifest = manifest_of(LISTED);
    manifest.subtasks = pointers;
    manifest.n_subtasks = LISTED;
    manifest.limits = &small;
    tasks[0].outputs = names;
    tasks[0].n_outputs = 2;
    tasks[0].limits = &large;
    tasks[1].outputs = names;
    tasks[1].n_outputs = 1;
    check_bounds(&manifest, tries * (LISTED * streams + 7000 + 50), tries * (LISTED * 2 + 3));

    /* Subtasks that the manifest does not list have its common terms. */
    manifest.subtask_count = LISTED + 2;
    check_bounds(&manifest, tries * ((LISTED + 2) * streams + 7000 + 50), tries * (5 * 2 + 3));
}
END_TEST

START_TEST(a_large_job_counts_by_4096_of_its_largest_subtasks)
{
    Bourse__V1__Manifest manifest = manifest_of(MANY);
    declare(&manifest, 1);
    Bourse__V1__ManifestLimits limits = limits_of(1, 0);
    manifest.limits = &limits;
    const struct lease_bounds_caps wide = {.file_bytes = UINT64_MAX, .all_bytes = UINT64_MAX};
    const struct lease_bounds bounds = lease_bounds_of(&manifest, &wide);
    ck_assert_uint_eq(bounds.bytes, tries * LEASE_BOUNDS_SUBTASKS * (streams + 1));
    ck_assert_uint_eq(bounds.blobs, tries * LEASE_BOUNDS_SUBTASKS * 3);
}
END_TEST

START_TEST(no_bound_is_above_what_an_account_may_store)
{
    Bourse__V1__Manifest manifest = manifest_of(LIMIT_SUBTASKS);
    declare(&manifest, 2);
    Bourse__V1__ManifestLimits limits = limits_of(INT64_MAX, INT64_MAX);
    manifest.limits = &limits;
    check_bounds(&manifest, caps.all_bytes, tries * LEASE_BOUNDS_SUBTASKS * 4);
    const struct lease_bounds_caps wide = {.file_bytes = UINT64_MAX, .all_bytes = UINT64_MAX};
    ck_assert_uint_eq(lease_bounds_of(&manifest, &wide).bytes, UINT64_MAX);
}
END_TEST

START_TEST(a_manifest_that_cannot_be_read_counts_as_any_subtask)
{
    check_bounds(NULL, caps.all_bytes, tries * (LIMIT_OUTPUTS + LIMIT_CHECKPOINT_FILES + 2));
}
END_TEST

SUITE("lease_bounds", NULL, NULL, TEST(a_job_without_outputs_leaves_its_streams),
      TEST(declared_sizes_bound_all_outputs_of_a_try_together),
      TEST(an_output_without_a_size_is_at_most_one_blob),
      TEST(a_checkpoint_counts_where_the_job_asks_for_one), TEST(each_task_counts_by_its_own_terms),
      TEST(a_large_job_counts_by_4096_of_its_largest_subtasks),
      TEST(no_bound_is_above_what_an_account_may_store),
      TEST(a_manifest_that_cannot_be_read_counts_as_any_subtask))
