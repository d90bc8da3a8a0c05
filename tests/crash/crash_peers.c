/* The disks of agents and clients fail, one call after the other: an output that a client places
 * and a blob that an agent caches are whole and right under their names or not there, the reason
 * that is told is the disk's and accuses nobody, and the next try, with the disk well again,
 * succeeds. */
#include "base/sha256.h"
#include "consumer/job/place.h"
#include "provider/work/store.h"
#include "tests/crash/disk.h"
#include "tests/crash/scratch.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A cache begins with 256 folders: of the calls that make or list them a few are enough. */
enum { SIZE = 100000, FIRST_CALLS = 8, FOLDERS = 256, CALLS_MAX = 600 };

static const struct {
    unsigned call;
    int error;
} faults[] = {
    {DISK_CALL_OPEN, EMFILE},  {DISK_CALL_READ, EIO},    {DISK_CALL_WRITE, EIO},
    {DISK_CALL_WRITE, ENOSPC}, {DISK_CALL_NAME, ENOSPC}, {DISK_CALL_SYNC, EIO},
};

static uint8_t content[SIZE];
static struct hash32 content_hash;
static char root[SCRATCH_PATH_SIZE];
static bool has_struck; /* the fault, since it was set up */

static void begin(void)
{
    scratch_path("peer", root);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    disk_restart(root);
    disk_fail(0, 0, 0, false);
}

static void set_fault(size_t which, uint64_t nth)
{
    has_struck = false;
    disk_fail(faults[which].call, nth, faults[which].error, false);
}

static void clear_fault(void)
{
    has_struck = has_struck || disk_has_failed();
    disk_fail(0, 0, 0, false);
}

static bool write_content(int fd)
{
    for (size_t done = 0; done < SIZE;) {
        size_t step = SIZE - done < 30000 ? SIZE - done : 30000;
        ssize_t put = pwrite(fd, content + done, step, (off_t)done);
        if (put <= 0) {
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

/* ---- outputs of a client */

static bool fill(void *context, int fd)
{
    (void)context;
    return write_content(fd);
}

static enum place_status place(struct problem *problem)
{
    problem->text[0] = '\0';
    struct place_folder *places = place_folder_open(root, problem);
    if (places == NULL) {
        return PLACE_FAILED;
    }
    const struct place_content wanted = {.hash = content_hash, .size = SIZE};
    enum place_status status = place_file(places, "a/result", &wanted, fill, NULL, problem);
    if (status == PLACE_WRITTEN) {
        status = place_folder_settle(places, problem);
    }
    place_folder_close(&places);
    return status;
}

static void check_placed(enum place_status status, const struct problem *problem, uint64_t nth)
{
    switch (status) {
    case PLACE_WRITTEN:
    case PLACE_PRESENT:
    case PLACE_UNFILLED:
        return;
    case PLACE_FAILED:
        ck_assert_msg(problem->text[0] != '\0', "call %" PRIu64 " failed without a word", nth);
        return;
    case PLACE_OCCUPIED:
    case PLACE_WRONG:
        ck_abort_msg("call %" PRIu64 " failed, and what was said is: %s", nth, problem->text);
    }
}

/* Once into nothing, once onto what is there. False: no call failed. */
static bool check_output(size_t fault, uint64_t nth)
{
    struct problem problem;
    bool has_failed = false;
    for (int twice = 0; twice < 2; twice++) {
        set_fault(fault, nth);
        check_placed(place(&problem), &problem, nth);
        clear_fault();
        has_failed = has_failed || has_struck;
        enum place_status status = place(&problem);
        ck_assert_msg(status == PLACE_WRITTEN || status == PLACE_PRESENT, "call %" PRIu64 ": %s",
                      nth, problem.text);
        ck_assert_int_eq(place(&problem), PLACE_PRESENT);
    }
    return has_failed;
}

START_TEST(an_output_is_placed_whole_or_the_disk_is_blamed)
{
    uint64_t nth = 0;
    bool has_failed = true;
    while (has_failed) {
        begin();
        has_failed = check_output((size_t)_i, ++nth);
        scratch_remove(root);
        ck_assert_uint_lt(nth, CALLS_MAX);
    }
    ck_assert_uint_gt(nth, 1);
}
END_TEST

/* ---- the cache of an agent */

static enum store_status fetch(void *context, size_t thread, const struct hash32 *hash,
                               const struct id128 *job, uint64_t cap, int fd, uint64_t *ret_size,
                               struct problem *ret_problem)
{
    (void)context;
    (void)thread;
    (void)job;
    ck_assert(hash32_equal(hash, &content_hash));
    ck_assert_uint_ge(cap, SIZE);
    if (!write_content(fd)) {
        problem_set(ret_problem, "cannot write");
        return STORE_FAILED;
    }
    *ret_size = SIZE;
    return STORE_OK;
}

static bool open_cache(struct store **ret_store, struct problem *problem)
{
    char folder[SCRATCH_PATH_SIZE + 16];
    (void)snprintf(folder, sizeof folder, "%s/cache", root);
    const struct store_config config = {
        .folder = folder, .cap_bytes = 10 * SIZE, .threads = 1, .fetch = fetch};
    problem->text[0] = '\0';
    return store_open(&config, ret_store, problem);
}

/* The bytes themselves, read past the fault. */
static void check_blob(const struct store_blob *blob)
{
    static uint8_t found[SIZE];
    clear_fault();
    ck_assert_uint_eq(blob->size, SIZE);
    ck_assert_int_eq(pread(blob->fd, found, SIZE, 0), SIZE);
    ck_assert_mem_eq(found, content, SIZE);
}

static enum store_status take(struct store *store, struct problem *problem)
{
    const struct id128 job = {.bytes = {1}};
    struct store_blob blob;
    problem->text[0] = '\0';
    enum store_status status =
        store_take(store, &content_hash, &job, 2 * SIZE, NULL, &blob, problem);
    if (status == STORE_OK) {
        check_blob(&blob);
        store_release(store, &blob);
    } else {
        ck_assert(status == STORE_FAILED || status == STORE_FULL);
        ck_assert_msg(problem->text[0] != '\0', "a failure without a word");
    }
    return status;
}

/* An agent's start and one blob, with the fault; then the same agent, or the next, without. */
static bool check_cache(size_t fault, uint64_t nth)
{
    struct store *store = NULL;
    struct problem problem;
    set_fault(fault, nth);
    if (open_cache(&store, &problem)) {
        (void)take(store, &problem);
    } else {
        ck_assert_msg(problem.text[0] != '\0', "a start failed without a word");
    }
    clear_fault();
    bool has_failed = has_struck;
    if (store == NULL) {
        ck_assert_msg(open_cache(&store, &problem), "%s", problem.text);
    }
    ck_assert_msg(take(store, &problem) == STORE_OK, "call %" PRIu64 ": %s", nth, problem.text);
    store_close(&store);
    return has_failed;
}

START_TEST(a_cached_blob_is_right_or_fetched_again)
{
    uint64_t nth = 0;
    bool has_failed = true;
    while (has_failed) {
        begin();
        nth += nth > FIRST_CALLS && nth < FOLDERS ? FOLDERS - FIRST_CALLS : 1;
        has_failed = check_cache((size_t)_i, nth);
        has_failed = check_cache((size_t)_i, nth) || has_failed; /* finds the file of the first */
        scratch_remove(root);
        ck_assert_uint_lt(nth, CALLS_MAX);
    }
    ck_assert_uint_gt(nth, 1);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    for (size_t i = 0; i < SIZE; i++) {
        content[i] = (uint8_t)(i * 7 + i / 256);
    }
    content_hash = sha256_of(content, SIZE);
    disk_watch("");
    const int fault_count = sizeof faults / sizeof faults[0];
    Suite *suite = suite_create("peers");
    TCase *tests = tcase_create("disks");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, an_output_is_placed_whole_or_the_disk_is_blamed, 0, fault_count);
    tcase_add_loop_test(tests, a_cached_blob_is_right_or_fetched_again, 0, fault_count);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
