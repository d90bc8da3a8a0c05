/* A power cut before every change of the disk in a scripted day: what was acknowledged is there at
 * the next start, the rest wholly or not at all, and nobody has to repair anything (P6, P7).
 *
 * One day is recorded; each cut is made from the record, in a folder of its own, and recovered in a
 * process of its own. A plain run takes a sample that it draws from a printed seed; BOURSE_LONG=yes
 * takes every change, several times. BOURSE_SEED repeats a sample. */
#include "base/random.h"
#include "tests/crash/apart.h"
#include "tests/crash/cut.h"
#include "tests/crash/day.h"
#include "tests/crash/disk.h"
#include "tests/crash/scratch.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { SAMPLE = 250, ROUNDS = 6 };

static struct diary *diary;

struct start {
    const char *market;
    size_t changes;
};

static void live(void *context)
{
    day_morning(((const struct start *)context)->market, diary);
    day_evening(((const struct start *)context)->market, diary);
}

static void recover(void *context)
{
    const struct start *start = context;
    day_recover(start->market, diary, start->changes);
}

static void check_cut(const struct cut *cut)
{
    char words[256];
    char said[APART_SAID_SIZE];
    char folder[SCRATCH_PATH_SIZE];
    char market[SCRATCH_PATH_SIZE + 8];
    scratch_path("cut", folder);
    (void)snprintf(market, sizeof market, "%s/market", folder);
    cut_power(cut, folder);
    struct diary before = *diary; /* the afternoon notes things of another history */
    int status = apart(recover, &(struct start){market, cut->before}, said);
    *diary = before;
    cut_describe(cut, words, sizeof words);
    ck_assert_msg(status == 0, "after a power cut %s the market does not recover: status %d: %s",
                  words, status, said);
    scratch_remove(folder);
}

/* Right after each acknowledgement nothing that was not synced is left: the hardest instants. */
static void check_acknowledgements(void)
{
    for (size_t i = 0; i < diary->commit_count; i++) {
        check_cut(&(struct cut){.before = diary->commits[i].changes, .rest = CUT_LOSES_ALL});
    }
    for (size_t i = 0; i < diary->blob_count; i++) {
        check_cut(&(struct cut){.before = diary->blobs[i].changes, .rest = CUT_LOSES_ALL});
    }
}

static void check_sample(size_t changes, uint64_t seed)
{
    struct random random = random_seeded(seed);
    check_acknowledgements();
    for (size_t i = 0; i < SAMPLE; i++) {
        struct cut cut = {.before = random_below(&random, changes + 1),
                          .rest = (enum cut_rest)random_below(&random, 3),
                          .seed = random_u64(&random)};
        check_cut(&cut);
    }
}

static void check_all(size_t changes)
{
    for (size_t before = 0; before <= changes; before++) {
        for (uint64_t round = 0; round < ROUNDS; round++) {
            enum cut_rest rest = round == 0   ? CUT_LOSES_ALL
                                 : round == 1 ? CUT_KEEPS_ALL
                                              : CUT_SOME_STAYS;
            struct cut cut = {.before = before, .rest = rest, .seed = before * ROUNDS + round};
            check_cut(&cut);
        }
    }
}

START_TEST(a_power_cut_anywhere_in_a_day_loses_nothing_acknowledged)
{
    char root[SCRATCH_PATH_SIZE];
    char market[SCRATCH_PATH_SIZE + 8];
    scratch_path("day", root);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    (void)snprintf(market, sizeof market, "%s/market", root);
    disk_watch(root);
    diary = diary_create();
    char said[APART_SAID_SIZE];
    ck_assert_msg(apart(live, &(struct start){market, 0}, said) == 0, "%s", said);
    size_t changes = disk_change_count();
    printf("a day of %zu changes, %zu commits, %zu blobs\n", changes, diary->commit_count,
           diary->blob_count);
    ck_assert_uint_gt(diary->commit_count, 15);
    ck_assert_uint_gt(changes, 500);
    if (scratch_is_long()) {
        check_all(changes);
    } else {
        check_sample(changes, scratch_seed());
    }
    scratch_remove(root);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    Suite *suite = suite_create("power");
    TCase *day = tcase_create("day");
    tcase_set_timeout(day, 0);
    tcase_add_test(day, a_power_cut_anywhere_in_a_day_loses_nothing_acknowledged);
    suite_add_tcase(suite, day);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
