/* The 1st, 2nd, 3rd ... open, read, write, fsync, rename of a day fails: the broker lives through
 * it or stops with a line that says why, promises nothing that is not durable, and the next start
 * needs no repair (P11). A failed fsync is the end, whatever its reason: what it should have
 * written may never be written by a later one, and the market that starts again must not build on
 * it.
 *
 * A plain run takes every so manieth call, BOURSE_LONG=yes every one, BOURSE_NTH=n the nth alone.
 */
#include "base/random.h"
#include "tests/crash/apart.h"
#include "tests/crash/cut.h"
#include "tests/crash/day.h"
#include "tests/crash/disk.h"
#include "tests/crash/scratch.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct fault {
    unsigned calls;
    int error;
    bool lasts;
    uint64_t stride; /* of a plain run */
};

struct start {
    const char *market;
    const struct fault *fault;
    uint64_t nth;
    size_t changes;
};

static struct diary *diary;

static void morning(void *context)
{
    day_morning(((const struct start *)context)->market, diary);
}

static void evening(void *context)
{
    day_evening(((const struct start *)context)->market, diary);
}

static void recover(void *context)
{
    const struct start *start = context;
    day_recover(start->market, diary, start->changes);
}

/* A snapshot is a cache in a new file: one that could not be synced is given up, and nobody is
 * promised it. */
static bool is_of_a_snapshot(uint32_t node)
{
    const char *name = disk_name(node);
    return strncmp(name, "state-", 6) == 0 || strncmp(name, ".new-", 5) == 0 ||
           strcmp(name, "snapshots") == 0;
}

/* Nothing may be acknowledged until then, because a file's bytes may be lost for good. Names are
 * not lost, so a folder is well again with its next fsync (SQLite makes one of its own and ignores
 * the answer). */
static size_t end_of_failure(size_t at)
{
    uint32_t node = disk_change_at(at)->node;
    for (size_t i = at + 1; i < disk_change_count() && disk_is_folder(node); i++) {
        if (disk_change_at(i)->kind == DISK_SYNC && disk_change_at(i)->node == node) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Returns true when a name in `folder` was changed since its last fsync before `at`. */
static bool had_names_to_keep(uint32_t folder, size_t at)
{
    for (size_t i = at; i-- > 0;) {
        const struct disk_change *change = disk_change_at(i);
        switch (change->kind) {
        case DISK_SYNC:
            if (change->node == folder) {
                return false;
            }
            break;
        case DISK_MAKE:
        case DISK_MAKE_FOLDER:
        case DISK_LINK:
        case DISK_UNLINK:
        case DISK_RENAME:
            if (change->folder == folder || change->to_folder == folder) {
                return true;
            }
            break;
        case DISK_WRITE:
        case DISK_RESIZE:
        case DISK_SYNC_FAILED:
            break;
        }
    }
    return false;
}

static bool is_failed_sync(size_t at)
{
    const struct disk_change *change = disk_change_at(at);
    return change->kind == DISK_SYNC_FAILED && !is_of_a_snapshot(change->node) &&
           (!disk_is_folder(change->node) || had_names_to_keep(change->node, at));
}

static void check_silence(size_t from, size_t to, uint64_t nth)
{
    const char *name = disk_name(disk_change_at(from)->node);
    for (size_t i = 0; i < diary->commit_count; i++) {
        ck_assert_msg(diary->commits[i].changes <= from || diary->commits[i].changes > to,
                      "fsync %" PRIu64 " of %s failed and an entry was acknowledged", nth, name);
    }
    for (size_t i = 0; i < diary->blob_count; i++) {
        ck_assert_msg(diary->blobs[i].changes <= from || diary->blobs[i].changes > to,
                      "fsync %" PRIu64 " of %s failed and a blob was acknowledged", nth, name);
    }
}

static bool has_failed_sync(void)
{
    for (size_t i = 0; i < disk_change_count(); i++) {
        if (is_failed_sync(i)) {
            return true;
        }
    }
    return false;
}

/* One process of the day. Nothing was acknowledged after an fsync had failed in it. */
static bool run_part(void (*part)(void *context), struct start *start)
{
    char said[APART_SAID_SIZE];
    size_t from = disk_change_count();
    int status = apart(part, start, said);
    bool has_stopped = status == DAY_STOPPED && disk_has_failed() && said[0] != '\0';
    ck_assert_msg(status == 0 || has_stopped,
                  "call %" PRIu64 " (kinds %u, error %d): status %d: %s", start->nth,
                  start->fault->calls, start->fault->error, status, said);
    for (size_t i = from; i < disk_change_count(); i++) {
        if (is_failed_sync(i)) {
            check_silence(i, end_of_failure(i), start->nth);
        }
    }
    return status == 0;
}

/* The power goes after everything: what both days acknowledged is there. */
static void check_cut(const struct start *start, enum cut_rest rest)
{
    char said[APART_SAID_SIZE];
    char folder[SCRATCH_PATH_SIZE];
    char market[SCRATCH_PATH_SIZE + 8];
    scratch_path("cut", folder);
    (void)snprintf(market, sizeof market, "%s/market", folder);
    struct cut cut = {.before = disk_change_count(), .rest = rest, .seed = start->nth};
    cut_power(&cut, folder);
    struct diary before = *diary;
    int status = apart(recover, &(struct start){.market = market, .changes = cut.before}, said);
    *diary = before;
    ck_assert_msg(status == 0,
                  "call %" PRIu64 " (kinds %u, error %d) failed, the market started again, and then"
                  " the power went: status %d: %s",
                  start->nth, start->fault->calls, start->fault->error, status, said);
    scratch_remove(folder);
}

static void check_recovery(struct start *start)
{
    char said[APART_SAID_SIZE];
    start->changes = disk_change_count();
    int status = apart(recover, start, said);
    ck_assert_msg(status == 0,
                  "after call %" PRIu64 " (kinds %u, error %d) failed the market does not recover:"
                  " status %d: %s",
                  start->nth, start->fault->calls, start->fault->error, status, said);
}

/* One day with one fault. False: the day had fewer calls than that. */
static bool check_fault(const struct fault *fault, uint64_t nth)
{
    char root[SCRATCH_PATH_SIZE];
    char market[SCRATCH_PATH_SIZE + 8];
    scratch_path("day", root);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    (void)snprintf(market, sizeof market, "%s/market", root);
    disk_restart(root);
    memset(diary, 0, sizeof *diary);
    struct start start = {.market = market, .fault = fault, .nth = nth};
    disk_fail(fault->calls, nth, fault->error, fault->lasts);
    if (run_part(morning, &start)) {
        (void)run_part(evening, &start);
    }
    bool has_failed = disk_has_failed();
    disk_fail(0, 0, 0, false);
    check_recovery(&start);
    if (has_failed_sync()) {
        check_cut(&start, CUT_LOSES_ALL);
        check_cut(&start, CUT_SOME_STAYS);
    }
    scratch_remove(root);
    return has_failed;
}

static void sweep(const struct fault *fault)
{
    const char *only = getenv("BOURSE_NTH"); /* one call of the case that CK_RUN_CASE names */
    if (only != NULL) {
        (void)check_fault(fault, strtoull(only, NULL, 10));
        return;
    }
    uint64_t stride = scratch_is_long() ? 1 : fault->stride;
    struct random random = random_seeded(stride == 1 ? 0 : scratch_seed());
    uint64_t nth = 1 + random_below(&random, stride);
    while (check_fault(fault, nth)) {
        nth += stride;
    }
    printf("kinds %u, error %d%s: %" PRIu64 " calls in a day, every %" PRIu64 ". failed\n",
           fault->calls, fault->error, fault->lasts ? " for good" : "", nth - 1, stride);
    ck_assert_uint_gt(nth, 10);
}

START_TEST(a_failed_fsync_is_the_end)
{
    sweep(&(struct fault){.calls = DISK_CALL_SYNC, .error = EIO, .stride = 4});
    sweep(&(struct fault){.calls = DISK_CALL_SYNC, .error = ENOSPC, .stride = 9});
}
END_TEST

START_TEST(a_failed_write_is_said_or_waited_out)
{
    sweep(&(struct fault){.calls = DISK_CALL_WRITE, .error = EIO, .stride = 29});
    sweep(&(struct fault){.calls = DISK_CALL_WRITE, .error = ENOSPC, .stride = 29});
    sweep(&(struct fault){.calls = DISK_CALL_WRITE, .error = ENOSPC, .lasts = true, .stride = 29});
}
END_TEST

START_TEST(a_failed_read_is_said)
{
    sweep(&(struct fault){.calls = DISK_CALL_READ, .error = EIO, .stride = 11});
}
END_TEST

START_TEST(a_file_that_does_not_open_is_said)
{
    sweep(&(struct fault){.calls = DISK_CALL_OPEN, .error = EMFILE, .stride = 5});
    sweep(&(struct fault){.calls = DISK_CALL_OPEN, .error = EMFILE, .lasts = true, .stride = 11});
}
END_TEST

START_TEST(a_failed_rename_is_said)
{
    sweep(&(struct fault){.calls = DISK_CALL_NAME, .error = ENOSPC, .stride = 3});
    sweep(&(struct fault){.calls = DISK_CALL_NAME, .error = EIO, .stride = 3});
}
END_TEST

static void add_case(Suite *suite, const char *name, const TTest *test)
{
    TCase *one = tcase_create(name);
    tcase_set_timeout(one, 0);
    tcase_add_test(one, test);
    suite_add_tcase(suite, one);
}

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    disk_watch("");
    diary = diary_create();
    Suite *suite = suite_create("faults");
    add_case(suite, "fsync", a_failed_fsync_is_the_end);
    add_case(suite, "write", a_failed_write_is_said_or_waited_out);
    add_case(suite, "read", a_failed_read_is_said);
    add_case(suite, "open", a_file_that_does_not_open_is_said);
    add_case(suite, "rename", a_failed_rename_is_said);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
