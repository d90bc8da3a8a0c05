/* These tests show which bounds a sender has on the blob port, by the manifest in the store. */
#include "broker/blob/port/blobs_internal.h"

#include "base/sha256.h"
#include "broker/blob/lease_bounds.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWNER = 3, PROVIDER = 5, QUOTA = 1 << 30 };

static char folder[64];
static struct blobs blobs;
static const struct directory_account provider = {.number = PROVIDER};
static const struct asked asked = {.account = &provider};
static const struct id128 job = {{1}};

static void setup(void)
{
    struct problem problem;
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-rights-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const struct blob_store_config config = {
        .folder = folder, .quota_bytes = QUOTA, .size_bytes = QUOTA};
    blobs.config.quota_bytes = QUOTA;
    blobs.config.size_bytes = QUOTA;
    blobs.config.access = blob_access_create();
    ck_assert_msg(blob_store_open(&config, &blobs.config.store, &problem), "%s", problem.text);
}

static void teardown(void)
{
    blob_access_destroy(&blobs.config.access);
    blob_store_close(&blobs.config.store);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

static void store(const uint8_t *bytes, size_t size)
{
    uint64_t stored = 0;
    bool is_complete = false;
    const struct blob_chunk chunk = {.account = OWNER,
                                     .hash = sha256_of(bytes, size),
                                     .size = size,
                                     .data = bytes,
                                     .length = size};
    ck_assert_int_eq(blob_store_begin(blobs.config.store), BLOB_OK);
    ck_assert_int_eq(blob_store_put(blobs.config.store, &chunk, 0, &stored, &is_complete), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(blobs.config.store), BLOB_OK);
    ck_assert(is_complete);
}

static struct blob_access_job *served_of(const uint8_t *manifest, size_t size)
{
    const struct hash32 hash = sha256_of(manifest, size);
    ck_assert(blob_access_add(blobs.config.access, 1, PROVIDER, &job, OWNER, &hash));
    return blob_access_find(blobs.config.access, PROVIDER, &job, 0);
}

static void check_bounds(struct blob_access_job *served, uint64_t bytes, uint64_t count)
{
    struct blob_lease lease;
    ck_assert_ptr_eq(blobs_lease_of(&blobs, &asked, served, &lease), &lease);
    ck_assert_uint_eq(lease.holder.provider, PROVIDER);
    ck_assert_uint_eq(lease.bytes_most, bytes);
    ck_assert_uint_eq(lease.count_most, count);
}

/* Writes the manifest of one subtask that leaves its streams alone. The caller frees the bytes. */
static uint8_t *quiet_manifest(size_t *ret_size)
{
    static char executor[] = "command";
    static char name[] = "quiet";
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = executor;
    manifest.name = name;
    manifest.subtask_count = 1;
    return codec_encode(&manifest.base, ret_size);
}

START_TEST(the_bounds_are_those_of_the_manifest)
{
    size_t size = 0;
    uint8_t *bytes = quiet_manifest(&size);
    ck_assert_ptr_nonnull(bytes);
    store(bytes, size);
    check_bounds(served_of(bytes, size), (uint64_t)LEASE_BOUNDS_TRIES * LEASE_BOUNDS_STREAMS_BYTES,
                 LEASE_BOUNDS_TRIES * LEASE_BOUNDS_STREAMS);
    free(bytes);
}
END_TEST

START_TEST(a_manifest_that_comes_later_sets_the_bounds_then)
{
    const struct lease_bounds_caps caps = {.file_bytes = QUOTA, .all_bytes = QUOTA};
    const struct lease_bounds any = lease_bounds_of(NULL, &caps);
    size_t size = 0;
    uint8_t *bytes = quiet_manifest(&size);
    ck_assert_ptr_nonnull(bytes);
    struct blob_access_job *served = served_of(bytes, size);
    check_bounds(served, any.bytes, any.blobs);
    check_bounds(served, any.bytes, any.blobs);
    store(bytes, size);
    check_bounds(served, (uint64_t)LEASE_BOUNDS_TRIES * LEASE_BOUNDS_STREAMS_BYTES,
                 LEASE_BOUNDS_TRIES * LEASE_BOUNDS_STREAMS);
    free(bytes);
}
END_TEST

START_TEST(nothing_may_be_stored_for_a_manifest_that_does_not_parse)
{
    static const uint8_t bytes[] = "no manifest";
    store(bytes, sizeof bytes);
    check_bounds(served_of(bytes, sizeof bytes), 0, 0);
}
END_TEST

START_TEST(the_sender_s_own_blobs_have_no_lease)
{
    struct blob_lease lease;
    ck_assert_ptr_null(blobs_lease_of(&blobs, &asked, NULL, &lease));
}
END_TEST

SUITE("blobs_rights", setup, teardown, TEST(the_bounds_are_those_of_the_manifest),
      TEST(a_manifest_that_comes_later_sets_the_bounds_then),
      TEST(nothing_may_be_stored_for_a_manifest_that_does_not_parse),
      TEST(the_sender_s_own_blobs_have_no_lease))
