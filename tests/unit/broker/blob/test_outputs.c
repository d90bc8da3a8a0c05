/* The tests ask what a job declares for each subtask, and whether an output is stored for the job's
 * owner with that hash and size. */
#include "base/sha256.h"
#include "base/text.h"
#include "broker/blob/blob_store.h"
#include "broker/blob/declared.h"
#include "broker/blob/outputs.h"
#include "protocol/codec.h"
#include "protocol/message.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALICE = 3, BOB = 4, PROVIDER = 5, OTHER = 6, LEASE = 7, LARGE = BLOB_ROW_BYTES + 1 };

static char folder[64];
static struct blob_store *store;
static struct outputs *outputs;

static void set_up(void)
{
    struct problem problem;
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-outputs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    struct blob_store_config config = {
        .folder = folder, .quota_bytes = 1 << 24, .size_bytes = 1 << 24};
    ck_assert_msg(blob_store_open(&config, &store, &problem), "%s", problem.text);
    outputs = outputs_open(folder);
    ck_assert_ptr_nonnull(outputs);
}

static void tear_down(void)
{
    outputs_close(&outputs);
    blob_store_close(&store);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

static const struct id128 JOB = {{9}};

static struct hash32 put_for(uint32_t account, const struct blob_lease *lease, const void *bytes,
                             size_t length)
{
    const struct blob_chunk chunk = {.account = account,
                                     .lease = lease,
                                     .hash = sha256_of(bytes, length),
                                     .size = length,
                                     .data = bytes,
                                     .length = length};
    uint64_t stored;
    bool is_complete;
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_store_put(store, &chunk, 0, &stored, &is_complete), BLOB_OK);
    ck_assert(is_complete);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    return chunk.hash;
}

static struct hash32 put(uint32_t account, const void *bytes, size_t length)
{
    return put_for(account, NULL, bytes, length);
}

static bool serve(uint64_t lease, const struct hash32 *manifest)
{
    return outputs_serve(outputs, &(struct outputs_lease){.lease = lease,
                                                          .holder = {PROVIDER, JOB},
                                                          .owner = ALICE,
                                                          .manifest = *manifest});
}

/* ---- a job of three subtasks: the first has an output of its own, the others those of all */

static Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
static Bourse__V1__ManifestSubtask subtasks[2];
static Bourse__V1__ManifestSubtask *listed[] = {&subtasks[0], &subtasks[1]};
static uint64_t looks; /* of the last call */
static Bourse__V1__ManifestInput input = BOURSE__V1__MANIFEST_INPUT__INIT;
static Bourse__V1__ManifestInput *inputs[] = {&input};
static char *own[] = {"{out}"};
static char *all[] = {"{in}.xz", "log-{index}"};
static char *arguments[] = {"true"};
static uint8_t zeros[32];

static Bourse__V1__Manifest manifest_of(size_t output_count)
{
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    bourse__v1__manifest_subtask__init(&subtasks[0]);
    bourse__v1__manifest_subtask__init(&subtasks[1]);
    task.name = "first";
    task.n_outputs = output_count > 0;
    task.outputs = own;
    input.name = "a.txt";
    input.hash = (ProtobufCBinaryData){.data = zeros, .len = sizeof zeros};
    subtasks[0].task = &task;
    subtasks[1].n_inputs = 1;
    subtasks[1].inputs = inputs;
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "job";
    manifest.n_arguments = 1;
    manifest.arguments = arguments;
    manifest.n_outputs = output_count;
    manifest.outputs = all;
    manifest.n_subtasks = 2;
    manifest.subtasks = listed;
    manifest.subtask_count = 2;
    return manifest;
}

static void check_name(const struct declared *declared, uint32_t index, uint32_t number,
                       const char *expected)
{
    char *name = declared_name(declared, index, number);
    ck_assert_ptr_nonnull(name);
    ck_assert_str_eq(name, expected);
    free(name);
}

START_TEST(names_are_those_that_the_agent_makes)
{
    const Bourse__V1__Manifest manifest = manifest_of(2);
    struct declared *declared = declared_of(&manifest);
    ck_assert_ptr_nonnull(declared);
    ck_assert_uint_eq(declared_count(declared, 0), 1);
    check_name(declared, 0, 0, "out/first");
    ck_assert_uint_eq(declared_count(declared, 1), 2);
    check_name(declared, 1, 0, "a.txt.xz");
    ck_assert_ptr_null(declared_name(declared, 1, 2));
    /* One that is not listed has no file, so that no agent can have made the first. */
    ck_assert_uint_eq(declared_count(declared, 5), 2);
    ck_assert_ptr_null(declared_name(declared, 5, 0));
    check_name(declared, 5, 1, "log-5");
    declared_destroy(&declared);

    const Bourse__V1__Manifest silent = manifest_of(0);
    declared = declared_of(&silent);
    ck_assert_uint_eq(declared_count(declared, 0), 0);
    ck_assert_uint_eq(declared_count(declared, 1), 0);
    declared_destroy(&declared);
}
END_TEST

/* ---- results */

static struct hash32 store_manifest(size_t output_count)
{
    const Bourse__V1__Manifest manifest = manifest_of(output_count);
    size_t length;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    ck_assert_ptr_nonnull(bytes);
    struct hash32 hash = put(ALICE, bytes, length);
    free(bytes);
    return hash;
}

struct claim {
    uint32_t index;
    uint32_t outcome;
    const char *names[3];
    struct hash32 hashes[3];
    uint64_t sizes[3];
};

static enum outputs_verdict look(const struct claim *claim, uint64_t lease)
{
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    Bourse__V1__Output files[3];
    Bourse__V1__Output *pointers[3];
    for (size_t i = 0; i < 3 && claim->names[i] != NULL; i++) {
        bourse__v1__output__init(&files[i]);
        files[i].name = (char *)(uintptr_t)claim->names[i];
        files[i].hash =
            (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)claim->hashes[i].bytes, .len = 32};
        files[i].size = claim->sizes[i];
        pointers[i] = &files[i];
        result.n_outputs++;
    }
    result.outputs = pointers;
    result.index = claim->index;
    result.lease = lease;
    result.outcome = claim->outcome;
    looks = 0;
    return outputs_look(outputs, PROVIDER, &result, &looks);
}

START_TEST(what_is_declared_is_there_with_its_hash_and_size)
{
    static uint8_t large[LARGE];
    const struct hash32 manifest = store_manifest(2);
    const struct hash32 small = put(ALICE, "123", 3);
    const struct hash32 file = put(ALICE, large, LARGE);
    const struct hash32 of_bob = put(BOB, "of bob", 6);
    const struct hash32 empty = sha256_of("", 0);
    ck_assert(serve(LEASE, &manifest));
    const struct claim good = {
        .index = 1, .names = {"a.txt.xz", "log-1"}, .hashes = {small, file}, .sizes = {3, LARGE}};
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_STORED);
    ck_assert_int_eq(look(&good, LEASE + 1), OUTPUTS_MISSING); /* nobody has that lease */

    struct claim lie = good;
    lie.names[1] = NULL; /* left out */
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_MISSING);
    lie = good;
    lie.names[1] = "log-2"; /* of another subtask */
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_MISSING);
    lie = good;
    lie.hashes[0].bytes[3] ^= 1; /* never stored */
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_UNSTORED);
    lie = good;
    lie.hashes[0] = of_bob; /* stored, and not for the job's owner */
    lie.sizes[0] = 6;
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_UNSTORED);
    lie = good;
    lie.sizes[0] = UINT64_C(1) << 50;
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_MISSING);
    lie = good;
    lie.names[2] = "more"; /* beyond what is declared: it is named, so it has to be there */
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_UNSTORED);
    lie.hashes[2] = empty; /* which nobody sends */
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_STORED);

    lie = good;
    lie.names[0] = NULL;
    lie.outcome = OUTCOME_OUTPUT_MISSING; /* it says so itself */
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_STORED);
    outputs_end(outputs, LEASE);
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_MISSING);
}
END_TEST

START_TEST(what_the_provider_stored_for_the_job_is_there_before_a_result_names_it)
{
    const struct hash32 manifest = store_manifest(2);
    const struct blob_lease of_ours = {
        .holder = {PROVIDER, JOB}, .bytes_most = 99, .count_most = 9};
    const struct blob_lease of_other = {.holder = {OTHER, JOB}, .bytes_most = 99, .count_most = 9};
    const struct hash32 first = put_for(ALICE, &of_ours, "123", 3);
    const struct hash32 second = put_for(ALICE, &of_ours, "4567", 4);
    const struct hash32 elsewhere = put_for(ALICE, &of_other, "89", 2);
    ck_assert(serve(LEASE, &manifest));
    const struct claim good = {
        .index = 1, .names = {"a.txt.xz", "log-1"}, .hashes = {first, second}, .sizes = {3, 4}};
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_STORED);

    struct claim lie = good;
    lie.hashes[1] = elsewhere; /* another provider's, which goes when that one's leases are over */
    lie.sizes[1] = 2;
    ck_assert_int_eq(look(&lie, LEASE), OUTPUTS_UNSTORED);
}
END_TEST

START_TEST(a_lost_blob_is_not_stored)
{
    static uint8_t large[LARGE];
    const struct hash32 manifest = store_manifest(2);
    const struct hash32 small = put(ALICE, "123", 3);
    const struct hash32 file = put(ALICE, large, LARGE);
    ck_assert(serve(LEASE, &manifest));
    const struct claim good = {
        .index = 1, .names = {"a.txt.xz", "log-1"}, .hashes = {small, file}, .sizes = {3, LARGE}};
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_STORED);
    ck_assert_int_eq(blob_store_checked(store, &file, false), BLOB_LOST);
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_UNSTORED);
    (void)put(ALICE, large, LARGE); /* sent again */
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_STORED);

    /* Nobody has noticed yet that its file is shorter, or gone. */
    char path[256];
    char hex[2 * sizeof file.bytes + 1];
    text_hex(file.bytes, sizeof file.bytes, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", folder, hex, hex);
    ck_assert_int_eq(truncate(path, LARGE - 1), 0);
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_UNSTORED);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_UNSTORED);
    (void)put(ALICE, large, LARGE); /* which the store does not take for stored either */
    ck_assert_int_eq(look(&good, LEASE), OUTPUTS_STORED);
}
END_TEST

START_TEST(a_lost_manifest_declares_what_it_did_and_is_asked_for_later)
{
    const struct hash32 manifest = store_manifest(2);
    ck_assert(serve(LEASE, &manifest));
    ck_assert_int_eq(blob_store_checked(store, &manifest, false), BLOB_LOST);
    const struct claim nothing = {.index = 1};
    ck_assert_int_eq(look(&nothing, LEASE), OUTPUTS_UNREAD);
    (void)store_manifest(2); /* sent again */
    ck_assert_int_eq(look(&nothing, LEASE), OUTPUTS_MISSING);
}
END_TEST

START_TEST(a_lease_is_looked_at_for_its_provider_alone)
{
    const struct hash32 manifest = store_manifest(0);
    ck_assert(serve(LEASE, &manifest));
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.lease = LEASE;
    result.outcome = OUTCOME_OK;
    ck_assert_int_eq(outputs_look(outputs, PROVIDER, &result, &looks), OUTPUTS_STORED);
    ck_assert_int_eq(outputs_look(outputs, OTHER, &result, &looks), OUTPUTS_MISSING);
    ck_assert_uint_eq(looks, 0); /* only what is said to be missing is charged for */
}
END_TEST

START_TEST(a_job_that_leaves_nothing_has_nothing_to_store)
{
    const struct hash32 manifest = store_manifest(0);
    const struct hash32 unknown = {{1}};
    ck_assert(serve(LEASE, &manifest));
    ck_assert(serve(LEASE, &manifest)); /* said again */
    ck_assert(serve(LEASE + 1, &unknown));
    const struct claim nothing = {.index = 0};
    ck_assert_int_eq(look(&nothing, LEASE), OUTPUTS_STORED);
    ck_assert_int_eq(look(&nothing, LEASE + 1), OUTPUTS_STORED); /* no manifest declares any */
}
END_TEST

START_TEST(a_manifest_that_comes_later_is_read_then)
{
    const Bourse__V1__Manifest manifest = manifest_of(2);
    size_t length;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    const struct hash32 hash = sha256_of(bytes, length);
    ck_assert(serve(LEASE, &hash));
    const struct claim nothing = {.index = 0};
    ck_assert_int_eq(look(&nothing, LEASE), OUTPUTS_STORED);
    (void)put(ALICE, bytes, length);
    ck_assert_int_eq(look(&nothing, LEASE), OUTPUTS_MISSING);
    free(bytes);
}
END_TEST

START_TEST(nothing_is_said_where_nobody_can_look)
{
    char path[128];
    const struct hash32 manifest = store_manifest(2);
    ck_assert(serve(LEASE, &manifest));
    blob_store_close(&store);
    (void)snprintf(path, sizeof path, "%s/blobs.db", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("no database, but long enough to look like one if nobody reads it", file);
    (void)fclose(file);
    const struct claim claim = {.index = 0, .names = {"out/first"}};
    ck_assert_int_eq(look(&claim, LEASE), OUTPUTS_UNREAD);
    const struct claim missing = {.index = 1, .outcome = OUTCOME_INPUT_MISSING};
    ck_assert_int_eq(look(&missing, LEASE), OUTPUTS_UNREAD);
}
END_TEST

/* ---- inputs that are said to be missing */

static enum outputs_verdict miss(uint32_t index, uint32_t outcome)
{
    const struct claim claim = {.index = index, .outcome = outcome};
    return look(&claim, LEASE);
}

/* The manifest of two subtasks whose second has this input. */
static struct hash32 store_manifest_with(const struct hash32 *file)
{
    memcpy(zeros, file->bytes, sizeof zeros);
    return store_manifest(0);
}

START_TEST(an_input_is_missing_only_where_the_store_lacks_it)
{
    static const uint32_t outcomes[] = {OUTCOME_INPUT_MISSING, OUTCOME_IMAGE_MISSING};
    const uint32_t outcome = outcomes[_i];
    static uint8_t large[LARGE] = {1};
    const struct hash32 file = put(ALICE, large, LARGE);
    const struct hash32 manifest = store_manifest_with(&file);
    ck_assert_int_eq(miss(1, outcome), OUTPUTS_MISSING); /* nobody has that lease */
    ck_assert(serve(LEASE, &manifest));
    ck_assert_int_eq(miss(1, outcome), OUTPUTS_STORED);
    ck_assert_int_eq(blob_store_checked(store, &file, false), BLOB_LOST);
    ck_assert_int_eq(miss(1, outcome), OUTPUTS_MISSING);
    ck_assert_int_eq(miss(0, outcome), OUTPUTS_STORED); /* the other subtask does not need it */
    (void)put(ALICE, large, LARGE);                     /* sent again */
    ck_assert_int_eq(miss(1, outcome), OUTPUTS_STORED);
}
END_TEST

/* The disk does not give the file, and the agent that asked for it says so. */
START_TEST(an_input_that_could_not_be_given_out_is_missing_for_a_while)
{
    const struct hash32 file = put(ALICE, "123", 3);
    const struct hash32 manifest = store_manifest_with(&file);
    ck_assert(serve(LEASE, &manifest));
    outputs_ungiven(outputs, &file);
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_MISSING);
    ck_assert_int_eq(miss(0, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
    for (uint8_t i = 0; i < OUTPUTS_UNGIVEN_MAX; i++) { /* newer ones take all places */
        outputs_ungiven(outputs, &(struct hash32){{i, 1}});
    }
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
    for (uint8_t i = 0; i < OUTPUTS_UNGIVEN_MAX; i++) { /* one blob takes one place */
        outputs_ungiven(outputs, &file);
    }
    outputs_ungiven(outputs, &manifest);
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_MISSING);
    ck_assert_int_eq(miss(0, OUTCOME_INPUT_MISSING), OUTPUTS_MISSING);
}
END_TEST

START_TEST(an_input_that_nobody_stored_for_the_owner_is_missing)
{
    const struct hash32 of_bob = put(BOB, "of bob", 6);
    const struct hash32 manifest = store_manifest_with(&of_bob);
    ck_assert(serve(LEASE, &manifest));
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_MISSING);
    (void)put(ALICE, "of bob", 6);
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
}
END_TEST

START_TEST(a_manifest_that_is_lost_or_never_came_is_missing)
{
    const struct hash32 file = put(ALICE, "123", 3);
    const struct hash32 manifest = store_manifest_with(&file);
    const struct hash32 unknown = {{1}};
    ck_assert(serve(LEASE, &manifest));
    ck_assert(serve(LEASE + 1, &unknown));
    const struct claim elsewhere = {.index = 0, .outcome = OUTCOME_INPUT_MISSING};
    ck_assert_int_eq(look(&elsewhere, LEASE + 1), OUTPUTS_MISSING);
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
    ck_assert_int_eq(blob_store_checked(store, &manifest, false), BLOB_LOST);
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_MISSING);
}
END_TEST

/* An output of another subtask, which another provider has stored, or a file of a checkpoint. */
START_TEST(what_a_subtask_was_given_is_looked_for_too)
{
    const struct blob_lease of_other = {.holder = {OTHER, JOB}, .bytes_most = 99, .count_most = 9};
    const struct hash32 file = put(ALICE, "123", 3);
    const struct hash32 manifest = store_manifest_with(&file);
    const struct hash32 given = put_for(ALICE, &of_other, "4567", 4);
    ck_assert(outputs_give(outputs, LEASE, 1, &given, 1)); /* no such lease */
    ck_assert(serve(LEASE, &manifest));
    ck_assert(outputs_give(outputs, LEASE, 1, &file, 1));
    ck_assert(outputs_give(outputs, LEASE, 1, &given, 1));
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
    ck_assert_uint_eq(looks, 4); /* the manifest, its input, and the two that were given */
    ck_assert_int_eq(blob_store_checked(store, &given, false), BLOB_LOST);
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_MISSING);
    ck_assert_int_eq(miss(0, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
    ck_assert_int_eq(miss(257, OUTCOME_INPUT_MISSING), OUTPUTS_STORED); /* in the same bucket */
    outputs_end(outputs, LEASE);
    ck_assert(serve(LEASE, &manifest));
    ck_assert_int_eq(miss(1, OUTCOME_INPUT_MISSING), OUTPUTS_STORED);
}
END_TEST

SUITE("outputs", set_up, tear_down, TEST(names_are_those_that_the_agent_makes),
      TEST(what_is_declared_is_there_with_its_hash_and_size),
      TEST(what_the_provider_stored_for_the_job_is_there_before_a_result_names_it),
      TEST(a_lost_blob_is_not_stored),
      TEST(a_lost_manifest_declares_what_it_did_and_is_asked_for_later),
      TEST(a_lease_is_looked_at_for_its_provider_alone),
      TEST(a_job_that_leaves_nothing_has_nothing_to_store),
      TEST(a_manifest_that_comes_later_is_read_then), TEST(nothing_is_said_where_nobody_can_look),
      LOOP(an_input_is_missing_only_where_the_store_lacks_it, 0, 2),
      TEST(an_input_that_could_not_be_given_out_is_missing_for_a_while),
      TEST(an_input_that_nobody_stored_for_the_owner_is_missing),
      TEST(a_manifest_that_is_lost_or_never_came_is_missing),
      TEST(what_a_subtask_was_given_is_looked_for_too))
