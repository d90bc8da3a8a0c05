/* Small files, one call at a time: what keyfile_create, file_write, head_create and head_write said
 * was done survives a power cut right after, and a cut within leaves the old or the new, never a
 * mixture. In a whole day a later fsync of the same folder would hide one that is missing here. */
#include "base/problem.h"
#include "broker/storage/head.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"
#include "runtime/private_folder.h"
#include "tests/crash/cut.h"
#include "tests/crash/disk.h"
#include "tests/crash/scratch.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROUNDS = 20, MARKS = 4 };

static char root[SCRATCH_PATH_SIZE];

static void path_in(const char *folder, const char *name, char ret_path[SCRATCH_PATH_SIZE + 64])
{
    (void)snprintf(ret_path, SCRATCH_PATH_SIZE + 64, "%s/%s", folder, name); /* fits */
}

static void begin(void)
{
    scratch_path("files", root);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    disk_restart(root);
}

/* Cuts the power in every way before change `before` and lets `check` look at what is left. */
static void each_cut(size_t before, void (*check)(const char *folder, bool is_done), bool is_done)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        char folder[SCRATCH_PATH_SIZE];
        scratch_path("cut", folder);
        struct cut cut = {.before = before,
                          .rest = round == 0 ? CUT_LOSES_ALL : CUT_SOME_STAYS,
                          .seed = before * ROUNDS + round};
        cut_power(&cut, folder);
        check(folder, is_done);
        scratch_remove(folder);
    }
}

static void sweep(void (*check)(const char *folder, bool is_done), size_t from)
{
    size_t changes = disk_change_count();
    for (size_t before = from; before <= changes; before++) {
        each_cut(before, check, before == changes);
    }
    scratch_remove(root);
}

static void check_key(const char *folder, bool is_done)
{
    char path[SCRATCH_PATH_SIZE + 64];
    struct identity *identity = NULL;
    struct problem problem = {.text = ""};
    struct stat status;
    path_in(folder, "a.key", path);
    if (is_done || stat(path, &status) == 0) {
        ck_assert_msg(keyfile_load(path, &identity, &problem), "%s", problem.text);
        identity_destroy(&identity);
    }
}

START_TEST(a_key_is_there_whole_or_not_at_all)
{
    char path[SCRATCH_PATH_SIZE + 64];
    struct identity *identity = NULL;
    struct problem problem = {.text = ""};
    begin();
    path_in(root, "a.key", path);
    ck_assert_msg(keyfile_create(path, &identity, &problem), "%s", problem.text);
    identity_destroy(&identity);
    sweep(check_key, 0);
}
END_TEST

static void check_text(const char *folder, bool is_done)
{
    char path[SCRATCH_PATH_SIZE + 64];
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem problem = {.text = ""};
    path_in(folder, "text", path);
    ck_assert_msg(file_read(path, 5000, &bytes, &length, &problem), "%s", problem.text);
    ck_assert_uint_eq(length, 3000);
    ck_assert(bytes[0] == 'b' || (bytes[0] == 'a' && !is_done));
    for (size_t i = 0; i < length; i++) {
        ck_assert_int_eq(bytes[i], bytes[0]);
    }
    free(bytes);
}

START_TEST(a_file_written_over_is_the_old_or_the_new)
{
    char path[SCRATCH_PATH_SIZE + 64];
    char text[3000];
    struct problem problem = {.text = ""};
    begin();
    path_in(root, "text", path);
    memset(text, 'a', sizeof text);
    ck_assert(file_write(path, text, sizeof text, 0600, &problem));
    size_t from = disk_change_count();
    memset(text, 'b', sizeof text);
    ck_assert(file_write(path, text, sizeof text, 0600, &problem));
    sweep(check_text, from);
}
END_TEST

static void check_folder(const char *folder, bool is_done)
{
    char path[SCRATCH_PATH_SIZE + 64];
    struct problem problem = {.text = ""};
    path_in(folder, "one/two/three", path);
    ck_assert(!is_done || private_folder(path, false, &problem));
}

START_TEST(a_folder_that_was_made_stays)
{
    char path[SCRATCH_PATH_SIZE + 64];
    struct problem problem = {.text = ""};
    begin();
    path_in(root, "one/two/three", path);
    ck_assert_msg(private_folder(path, true, &problem), "%s", problem.text);
    sweep(check_folder, 0);
}
END_TEST

static uint64_t marks_done; /* before the cut */

static void check_mark(const char *folder, bool is_done)
{
    char path[SCRATCH_PATH_SIZE + 64];
    struct head head = {.index = 0};
    struct problem problem = {.text = ""};
    path_in(folder, "HEAD", path);
    enum head_status status = head_read(path, &head, &problem);
    ck_assert_msg(status == HEAD_OK || (status == HEAD_MISSING && !is_done), "%d: %s", (int)status,
                  problem.text);
    ck_assert_uint_ge(head.index, marks_done);
    ck_assert_uint_le(head.index, MARKS);
}

START_TEST(a_mark_is_never_lost_nor_torn)
{
    char path[SCRATCH_PATH_SIZE + 64];
    struct head_file *file = NULL;
    struct head head = {.index = 0};
    struct problem problem = {.text = ""};
    size_t ends[MARKS + 1];
    begin();
    path_in(root, "HEAD", path);
    ck_assert_int_eq(head_create(path, &head, &file, &problem), HEAD_OK);
    ends[0] = disk_change_count();
    for (head.index = 1; head.index <= MARKS; head.index++) {
        ck_assert_int_eq(head_write(file, &head), HEAD_OK);
        ends[head.index] = disk_change_count();
    }
    head_close(&file);
    for (size_t before = 0; before <= ends[MARKS]; before++) {
        marks_done = 0;
        while (marks_done < MARKS && ends[marks_done + 1] <= before) {
            marks_done++;
        }
        each_cut(before, check_mark, before >= ends[0]);
    }
    scratch_remove(root);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    disk_watch("");
    Suite *suite = suite_create("files");
    TCase *small = tcase_create("small files");
    tcase_set_timeout(small, 120);
    tcase_add_test(small, a_key_is_there_whole_or_not_at_all);
    tcase_add_test(small, a_file_written_over_is_the_old_or_the_new);
    tcase_add_test(small, a_folder_that_was_made_stays);
    tcase_add_test(small, a_mark_is_never_lost_nor_torn);
    suite_add_tcase(suite, small);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
