/* The 1st, 2nd, 3rd ... allocation of a day fails, ours and SQLite's: the market stops with a line
 * that says why, or lives through it; it promises nothing that is not durable, the next start needs
 * no repair, and where a start was given up nothing leaks (the sanitizer looks at each exit).
 *
 * Ours are caught by the linker (--wrap), so every malloc, calloc and realloc in the rooms counts;
 * the libraries' own do not, but SQLite's, which are asked for through its configuration. A plain
 * run takes every so manieth, BOURSE_LONG=yes every one, BOURSE_NTH=n the nth alone. */
#include "base/random.h"
#include "tests/crash/apart.h"
#include "tests/crash/day.h"
#include "tests/crash/disk.h"
#include "tests/crash/scratch.h"

#include <check.h>
#include <inttypes.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum whose { NOBODYS, OURS, SQLITES };

/* The counters are in shared memory, so they count on from one process of a day to the next. */
static struct shortage {
    enum whose whose;
    uint64_t left; /* allocations until one fails; 0: it did */
} * shortage;

static struct diary *diary;
static bool is_in_day; /* this process lives one: the test itself has memory enough */

static bool is_short(enum whose whose)
{
    if (!is_in_day || shortage->whose != whose || shortage->left == 0 || --shortage->left > 0) {
        return false;
    }
    disk_note_fault();
    return true;
}

/* ---- ours */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_short(OURS) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_short(OURS) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_short(OURS) ? NULL : __real_realloc(old, size);
}

/* ---- SQLite's */

static sqlite3_mem_methods its;

static void *sqlite_malloc(int size)
{
    return is_short(SQLITES) ? NULL : its.xMalloc(size);
}

static void *sqlite_realloc(void *old, int size)
{
    return is_short(SQLITES) ? NULL : its.xRealloc(old, size);
}

static void stand_before_sqlite(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_GETMALLOC, &its);
    sqlite3_mem_methods ours = its;
    ours.xMalloc = sqlite_malloc;
    ours.xRealloc = sqlite_realloc;
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
}

/* ---- the sweep */

static void morning(void *market)
{
    is_in_day = true;
    day_morning(market, diary);
}

static void evening(void *market)
{
    is_in_day = true;
    day_evening(market, diary);
}

static void recover(void *market)
{
    day_recover(market, diary, disk_change_count());
}

static bool run_part(void (*part)(void *context), char *market, uint64_t nth)
{
    char said[APART_SAID_SIZE];
    int status = apart(part, market, said);
    bool has_stopped = status == DAY_STOPPED && disk_has_failed() && said[0] != '\0';
    ck_assert_msg(status == 0 || has_stopped, "allocation %" PRIu64 ": status %d: %s", nth, status,
                  said);
    return status == 0;
}

/* One day with one failure. False: the day had fewer allocations than that. */
static bool check_shortage(enum whose whose, uint64_t nth)
{
    char root[SCRATCH_PATH_SIZE];
    char market[SCRATCH_PATH_SIZE + 8];
    char said[APART_SAID_SIZE];
    scratch_path("day", root);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    (void)snprintf(market, sizeof market, "%s/market", root);
    disk_restart(root);
    disk_fail(0, 0, 0, false);
    memset(diary, 0, sizeof *diary);
    *shortage = (struct shortage){.whose = whose, .left = nth};
    if (run_part(morning, market, nth)) {
        (void)run_part(evening, market, nth);
    }
    bool has_failed = shortage->left == 0;
    *shortage = (struct shortage){.whose = NOBODYS};
    disk_fail(0, 0, 0, false);
    int status = apart(recover, market, said);
    ck_assert_msg(status == 0, "after allocation %" PRIu64 " failed: status %d: %s", nth, status,
                  said);
    scratch_remove(root);
    return has_failed;
}

static void sweep(enum whose whose, uint64_t plain_stride)
{
    const char *only = getenv("BOURSE_NTH");
    if (only != NULL) {
        (void)check_shortage(whose, strtoull(only, NULL, 10));
        return;
    }
    uint64_t stride = scratch_is_long() ? 1 : plain_stride;
    struct random random = random_seeded(stride == 1 ? 0 : scratch_seed());
    uint64_t nth = 1 + random_below(&random, stride);
    while (check_shortage(whose, nth)) {
        nth += stride;
    }
    printf("%" PRIu64 " allocations in a day, every %" PRIu64 ". failed\n", nth - 1, stride);
    ck_assert_uint_gt(nth, 100);
}

START_TEST(memory_of_ours_runs_out)
{
    sweep(OURS, 7);
}
END_TEST

START_TEST(memory_of_sqlite_runs_out)
{
    sweep(SQLITES, 211);
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
    stand_before_sqlite();
    if (sodium_init() < 0) {
        return 1;
    }
    disk_watch("");
    diary = diary_create();
    shortage =
        mmap(NULL, sizeof *shortage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shortage == MAP_FAILED) {
        return 1;
    }
    Suite *suite = suite_create("memory");
    add_case(suite, "ours", memory_of_ours_runs_out);
    add_case(suite, "sqlite", memory_of_sqlite_runs_out);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
