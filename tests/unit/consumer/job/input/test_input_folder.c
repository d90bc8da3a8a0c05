#include "consumer/job/input/input_folder.h"

#include "base/cleanup.h"
#include "formats/limits.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct problem problem;

/* Adds one name, and writes the names of all files, separated by spaces. */
static const char *names_of(const char *folder_of_job, const char *name)
{
    static char names[1024];
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    names[0] = '\0';
    problem = (struct problem){.text = ""};
    if (!input_folder_add(folder_of_job, name, FORMAT_SHARED_FILES, &list, &problem)) {
        return "refused";
    }
    for (size_t i = 0; i < list.count; i++) {
        const size_t length = strlen(names);
        (void)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? " " : "",
                       list.items[i].name);
    }
    return names;
}

static void refuses(const char *name, const char *why)
{
    ck_assert_str_eq(names_of(".", name), "refused");
    ck_assert_msg(strstr(problem.text, why) != NULL, "%s", problem.text);
}

static void make_tree(void)
{
    ck_assert_int_eq(mkdir("data", 0755), 0);
    ck_assert_int_eq(mkdir("data/sub", 0755), 0);
    ck_assert_int_eq(mkdir("data/empty", 0755), 0);
    put("data/b", "b");
    put("data/.a", "a");
    put("data/sub/c", "c");
}

START_TEST(a_folder_stands_for_every_file_below)
{
    make_tree();
    ck_assert_str_eq(names_of(".", "data"), "data/.a data/b data/sub/c");
    ck_assert_str_eq(names_of(".", "./data//"), "data/.a data/b data/sub/c");
    ck_assert_str_eq(names_of("data", "sub"), "sub/c");
    ck_assert_str_eq(names_of("data", "."), ".a b sub/c");
    ck_assert_str_eq(names_of("data/sub", "../sub/"), "sub/c");
    ck_assert_str_eq(names_of("data", "../data/sub"), "data/sub/c");
}
END_TEST

START_TEST(a_pattern_takes_files_and_folders)
{
    make_tree();
    put("data/x[1]", "x");
    ck_assert_str_eq(names_of(".", "data/[bs]*"), "data/b data/sub/c");
    ck_assert_str_eq(names_of("data", "*b"), "b sub/c");
    ck_assert_str_eq(names_of(".", "data/x[1]"), "data/x[1]"); /* what exists is no pattern */
    refuses("data/*.txt", "no file or folder matches 'data/*.txt'");
    refuses("data/empty", "there is no file in the folder");
}
END_TEST

START_TEST(a_link_inside_is_a_copy_and_one_that_leaves_is_refused)
{
    make_tree();
    put("secret", "s");
    ck_assert_int_eq(symlink("../b", "data/sub/link"), 0);
    ck_assert_str_eq(names_of(".", "data"), "data/.a data/b data/sub/c data/sub/link");
    refuses("data/sub", "data/sub/link leads out of the folder");
    ck_assert_int_eq(symlink("../secret", "data/out"), 0);
    refuses("data", "data/out leads out of the folder");
    ck_assert_int_eq(unlink("data/out"), 0);
    ck_assert_int_eq(symlink("absent", "data/out"), 0);
    refuses("data", "leads to nothing");
    ck_assert_int_eq(unlink("data/out"), 0);
    ck_assert_int_eq(symlink("sub", "data/out"), 0);
    refuses("data", "other than a regular file");
}
END_TEST

START_TEST(what_cannot_be_sent_is_refused_by_name)
{
    make_tree();
    ck_assert_int_eq(mkfifo("data/pipe", 0600), 0);
    refuses("data", "data/pipe is a device, a socket or a pipe");
    ck_assert_int_eq(unlink("data/pipe"), 0);
    put("data/new\nline", "x");
    refuses("data", "cannot be used");
}
END_TEST

START_TEST(a_folder_of_too_many_files_or_bytes_is_refused)
{
    char name[32];
    ck_assert_int_eq(mkdir("many", 0755), 0);
    for (int i = 0; i < FORMAT_SHARED_FILES; i++) {
        (void)snprintf(name, sizeof name, "many/%03d", i);
        put(name, "");
    }
    ck_assert_str_ne(names_of(".", "many"), "refused");
    put("many/one-more", "");
    refuses("many", "more than 255 files");
    ck_assert_int_eq(mkdir("large", 0755), 0);
    put("large/a", "");
    put("large/b", "");
    if (truncate("large/a", INPUT_FOLDER_BYTES_MAX) == 0) { /* no disk holds it, and some refuse */
        ck_assert_str_eq(names_of(".", "large"), "large/a large/b");
        ck_assert_int_eq(truncate("large/b", 1), 0);
        refuses("large", "more than 68719476736 bytes");
    }
}
END_TEST

/* Adds a work folder, and writes the names of all files, separated by spaces. */
static const char *work_of(const char *work)
{
    static char names[1024];
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    names[0] = '\0';
    problem = (struct problem){.text = ""};
    if (!input_folder_add_work(work, &list, &problem)) {
        return "refused";
    }
    for (size_t i = 0; i < list.count; i++) {
        const size_t length = strlen(names);
        (void)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? " " : "",
                       list.items[i].name);
    }
    return names;
}

START_TEST(a_work_folder_leaves_out_what_its_ignore_file_says)
{
    make_tree();
    ck_assert_str_eq(work_of("data"), ".a b sub/c");
    put("data/.bourseignore", "# not these\nsub/\n.*\n!.a\n/pipe\n");
    ck_assert_int_eq(mkfifo("data/pipe", 0600), 0);
    ck_assert_int_eq(symlink("/etc/passwd", "data/sub/out"), 0);
    ck_assert_str_eq(work_of("data/"), ".a b");
    ck_assert_int_eq(symlink("data", "link"), 0);
    ck_assert_str_eq(work_of("link"), ".a b");
    put("data/.bourseignore", "*.o\n[x\n");
    ck_assert_str_eq(work_of("data"), "refused");
    ck_assert_ptr_nonnull(strstr(problem.text, "data/.bourseignore: line 2"));
    put("data/.bourseignore", "*\n");
    ck_assert_str_eq(work_of("data"), "refused");
    ck_assert_ptr_nonnull(strstr(problem.text, "there is no file in the folder"));
    ck_assert_str_eq(work_of("absent"), "refused");
    ck_assert_ptr_nonnull(strstr(problem.text, "'absent' is no folder here"));
    ck_assert_str_eq(work_of("data/b"), "refused");
    ck_assert_str_eq(work_of(""), "refused");
}
END_TEST

START_TEST(a_program_in_a_folder_of_files_is_sent_once)
{
    make_tree();
    put("data/go", "#!/bin/sh\n");
    ck_assert_int_eq(chmod("data/go", 0700), 0);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("files: data\nrun: [./data/go]\n");
    ck_assert_uint_eq(job->shared.count, 4);
    struct bourse_error error =
        refused("files: \"d*\"\ncheckpoint: data/sub\nrun: [sh, -c, 'true']\n");
    ck_assert_ptr_nonnull(strstr(error.text, "saves its state"));
}
END_TEST

SUITE("input_folder", setup, teardown, TEST(a_folder_stands_for_every_file_below),
      TEST(a_pattern_takes_files_and_folders),
      TEST(a_link_inside_is_a_copy_and_one_that_leaves_is_refused),
      TEST(what_cannot_be_sent_is_refused_by_name),
      TEST(a_folder_of_too_many_files_or_bytes_is_refused),
      TEST(a_work_folder_leaves_out_what_its_ignore_file_says),
      TEST(a_program_in_a_folder_of_files_is_sent_once))
