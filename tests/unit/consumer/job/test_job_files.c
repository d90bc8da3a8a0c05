/* These tests find the files of a job, and name its subtasks by them. */
#include "base/cleanup.h"
#include "base/sha256.h"
#include "consumer/job/bourse_job.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EACH(pattern) "each: " pattern "\nrun: [xz, \"{in}\"]\noutputs: [\"{in}.xz\"]\n"

START_TEST(each_file_is_a_subtask_in_the_order_of_its_bytes)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    put("d/b.txt", "two");
    put("d/a.txt", "one");
    put("d/Z.txt", "zed");
    put("d/other.log", "no");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("d/*.txt"));
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(manifest->n_subtasks, 3);
    ck_assert_uint_eq(manifest->subtask_count, 3);
    ck_assert_str_eq(manifest->subtasks[0]->inputs[0]->name, "d/Z.txt");
    ck_assert_str_eq(manifest->subtasks[1]->inputs[0]->name, "d/a.txt");
    ck_assert_str_eq(manifest->subtasks[2]->inputs[0]->name, "d/b.txt");
    struct hash32 one = sha256_of("one", 3);
    ck_assert_mem_eq(manifest->subtasks[1]->inputs[0]->hash.data, one.bytes, 32);
    ck_assert_uint_eq(manifest->subtasks[1]->inputs[0]->size, 3);
}
END_TEST

START_TEST(the_manifest_has_the_hash_that_is_submitted)
{
    put("a", "x");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("a"));
    struct hash32 hash = sha256_of(job->manifest, job->manifest_length);
    ck_assert(hash32_equal(&hash, &job->manifest_hash));
}
END_TEST

START_TEST(a_pattern_that_matches_nothing_is_named)
{
    struct bourse_error error = refused(EACH("\"nothing*.jpg\""));
    ck_assert_ptr_nonnull(strstr(error.text, "nothing*.jpg"));
    put("a.txt", "x");
    error = refused("each: [\"*.txt\", \"*.jpg\"]\nrun: [xz, \"{in}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "'*.jpg'"));
}
END_TEST

START_TEST(names_with_spaces_brackets_and_accents_are_fine)
{
    put("a b.txt", "1");
    put("c[1].txt", "2");
    put("d\xc3\xa9j\xc3\xa0.txt", "3");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("\"*.txt\""));
    ck_assert_uint_eq(job->own.count, 3);
    ck_assert_str_eq(job->own.items[0].name, "a b.txt");
    ck_assert_str_eq(job->own.items[1].name, "c[1].txt");
}
END_TEST

START_TEST(names_with_control_characters_or_broken_text_are_refused_printably)
{
    put("a\nb.txt", "1");
    struct bourse_error error = refused(EACH("\"*.txt\""));
    ck_assert_ptr_nonnull(strstr(error.text, "a?b.txt"));
    ck_assert_ptr_null(strchr(error.text, '\n'));
    ck_assert_int_eq(remove("a\nb.txt"), 0);
    put("a\xff.txt", "1");
    error = refused(EACH("\"*.txt\""));
    ck_assert_ptr_nonnull(strstr(error.text, "a?.txt"));
}
END_TEST

START_TEST(only_regular_files_count_and_the_rest_is_counted)
{
    put("a.txt", "1");
    ck_assert_int_eq(mkdir("b.txt", 0700), 0);
    ck_assert_int_eq(symlink("/etc/passwd", "c.txt"), 0);
    ck_assert_int_eq(mkfifo("d.txt", 0600), 0);
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("\"*.txt\""));
    ck_assert_uint_eq(job->own.count, 1);
    ck_assert_uint_eq(job->own.skipped, 3);
    struct bourse_error error = refused(EACH("\"[bcd].txt\""));
    ck_assert_ptr_nonnull(strstr(error.text, "[bcd].txt"));
}
END_TEST

START_TEST(a_shared_file_may_not_be_a_symbolic_link)
{
    ck_assert_int_eq(symlink("/etc/passwd", "model"), 0);
    struct bourse_error error = refused("run: [cat, model]\nfiles: [model]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "symbolic link"));
}
END_TEST

START_TEST(a_file_without_a_size_of_its_own_says_how_to_send_it)
{
    struct bourse_error error = refused("run: [cat, version]\nfiles: [/proc/version]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "/proc/version has no size of its own"));
    ck_assert_ptr_nonnull(strstr(error.text, "`cat /proc/version > copy` makes a copy"));
}
END_TEST

START_TEST(a_file_matched_twice_is_one_subtask)
{
    put("a.txt", "1");
    put("b.txt", "2");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("each: [\"*.txt\", a.txt, \"?.txt\"]\nrun: [xz, \"{in}\"]\n");
    ck_assert_uint_eq(job->own.count, 2);
}
END_TEST

START_TEST(absolute_and_upward_patterns_get_relative_names)
{
    char text[256];
    ck_assert_int_eq(mkdir("in", 0700), 0);
    put("in/a", "1");
    (void)snprintf(text, sizeof text, EACH("\"%s/in/*\""), here);
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(text);
    ck_assert_str_eq(job->own.items[0].name, job->own.items[0].path + 1);
    ck_assert_int_eq(chdir("in"), 0);
    put("../up", "1");
    CLEANUP(bourse_job_destroy) struct bourse_job *upward = prepared(EACH("../up"));
    ck_assert_str_eq(upward->own.items[0].name, "up");
}
END_TEST

START_TEST(two_files_under_one_name_are_refused)
{
    ck_assert_int_eq(mkdir("in", 0700), 0);
    put("a", "1");
    put("in/a", "2");
    ck_assert_int_eq(chdir("in"), 0);
    struct bourse_error error = refused("each: [a, ../a]\nrun: [xz, \"{in}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "two files"));
}
END_TEST

START_TEST(the_folder_of_the_job_may_hold_pattern_characters)
{
    ck_assert_int_eq(mkdir("a*[x] y", 0700), 0);
    put("a*[x] y/in.txt", "1");
    put("a*[x] y/job.yaml", EACH("\"*.txt\""));
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct bourse_error error;
    ck_assert(bourse_job_load("a*[x] y/job.yaml", &job, &error));
    ck_assert_str_eq(job->own.items[0].name, "in.txt");
}
END_TEST

SUITE("job_files", setup, teardown, TEST(each_file_is_a_subtask_in_the_order_of_its_bytes),
      TEST(the_manifest_has_the_hash_that_is_submitted),
      TEST(a_pattern_that_matches_nothing_is_named),
      TEST(names_with_spaces_brackets_and_accents_are_fine),
      TEST(names_with_control_characters_or_broken_text_are_refused_printably),
      TEST(only_regular_files_count_and_the_rest_is_counted),
      TEST(a_shared_file_may_not_be_a_symbolic_link),
      TEST(a_file_without_a_size_of_its_own_says_how_to_send_it),
      TEST(a_file_matched_twice_is_one_subtask),
      TEST(absolute_and_upward_patterns_get_relative_names),
      TEST(two_files_under_one_name_are_refused),
      TEST(the_folder_of_the_job_may_hold_pattern_characters))
