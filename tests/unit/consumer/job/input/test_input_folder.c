#include "consumer/job/input/input_folder.h"

#include "base/cleanup.h"
#include "formats/limits.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
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
    if (!input_folder_add(folder_of_job, name, FORMAT_SHARED_FILES, &list, NULL, &problem)) {
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
    if (!input_folder_add_work(work, &list, NULL, &problem)) {
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

/* Writes the entries of a listing, sorted, into `shown`. */
static bool show_entry(void *context, const struct work_tree_entry *entry,
                       struct problem *ret_problem)
{
    static const char marks[] = {[WORK_TREE_FILE] = ' ', [WORK_TREE_FOLDER] = '/'};
    char *shown = context;
    const size_t length = strlen(shown);
    (void)ret_problem;
    if (entry->kind == WORK_TREE_LINK) {
        (void)snprintf(shown + length, 1024 - length, "%s>%s ", entry->name, entry->target);
    } else {
        (void)snprintf(shown + length, 1024 - length, "%s%c%s", entry->name, marks[entry->kind],
                       entry->kind == WORK_TREE_FOLDER ? " " : "");
    }
    return true;
}

/* Makes the listing of one name, and returns it as text, or "refused". */
static const char *tree_of(const char *name, bool is_work)
{
    static char shown[1024];
    static uint8_t bytes[4096];
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    CLEANUP(input_tree_fini) struct input_tree tree = {.items = NULL};
    uint64_t size = 0;
    shown[0] = '\0';
    problem = (struct problem){.text = ""};
    if (!(is_work ? input_folder_add_work(name, &list, &tree, &problem)
                  : input_folder_add(".", name, FORMAT_SHARED_FILES, &list, &tree, &problem))) {
        return "refused";
    }
    const size_t files = list.count;
    ck_assert_msg(input_tree_list(&tree, &list, &problem), "%s", problem.text);
    if (list.count == files) {
        return "none";
    }
    ck_assert_str_eq(list.items[files].name, INPUT_LIST_LISTING);
    const int fd = input_file_open(&list.items[files], &size, &problem);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_le(size, sizeof bytes);
    ck_assert_int_eq(pread(fd, bytes, size, 0), (ssize_t)size);
    (void)close(fd);
    ck_assert_msg(work_tree_read(bytes, size, show_entry, shown, &problem), "%s", problem.text);
    return shown;
}

START_TEST(a_listing_has_folders_and_links)
{
    make_tree();
    ck_assert_int_eq(symlink("../b", "data/sub/up"), 0);
    ck_assert_int_eq(symlink("sub", "data/to-folder"), 0);
    ck_assert_int_eq(symlink("absent", "data/dangling"), 0);
    ck_assert_int_eq(symlink(".", "data/self"), 0);
    ck_assert_int_eq(symlink("loop-b", "data/loop-a"), 0);
    ck_assert_int_eq(symlink("loop-a", "data/loop-b"), 0);
    ck_assert_str_eq(tree_of("data", false),
                     "data/ data/.a data/b data/dangling>absent data/empty/ data/loop-a>loop-b "
                     "data/loop-b>loop-a data/self>. data/sub/ data/sub/c data/sub/up>../b "
                     "data/to-folder>sub ");
    ck_assert_str_eq(tree_of("data", true),
                     ".a b dangling>absent empty/ loop-a>loop-b loop-b>loop-a self>. sub/ sub/c "
                     "sub/up>../b to-folder>sub ");
    put("data/.bourseignore", "loop-*\nempty/\nsub\n");
    ck_assert_str_eq(tree_of("data", true), ".a b dangling>absent self>. to-folder>sub ");
    ck_assert_str_eq(tree_of("data/empty", false), "data/empty/ ");
    ck_assert_str_eq(tree_of("data/b", false), "none");
    ck_assert_str_eq(tree_of("data/[b]", false), "none");
}
END_TEST

START_TEST(a_link_that_does_not_travel_is_a_copy_or_refused)
{
    static const struct {
        const char *target, *why; /* NULL: a copy */
    } cases[] = {
        {"../secret", "leads out of the folder"},
        {"/etc/passwd", "leads out of the folder"},
        {"/absent", "has an absolute target"},
        {"../absent", "leads out of the folder"},
        {"sub/../absent", "has \"..\" behind a name"},
        {"sub/../sub", "has \"..\" behind a name"},
        {"sub/../b", NULL},
    };
    make_tree();
    put("secret", "s");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(symlink(cases[i].target, "data/out"), 0);
        const char *tree = tree_of("data", false);
        ck_assert_msg(cases[i].why == NULL
                          ? strcmp(tree, "data/ data/.a data/b data/empty/ data/out data/sub/ "
                                         "data/sub/c ") == 0
                          : strcmp(tree, "refused") == 0 &&
                                strstr(problem.text, cases[i].why) != NULL,
                      "%s: %s %s", cases[i].target, tree, problem.text);
        ck_assert_int_eq(unlink("data/out"), 0);
    }
    ck_assert_int_eq(symlink("../../b", "data/sub/out"), 0); /* out of data/sub/.., not of here */
    ck_assert_str_eq(tree_of("data", false), "refused");
}
END_TEST

START_TEST(a_listing_keeps_times_and_permissions)
{
    const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 1000000000, .tv_nsec = 7}};
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    CLEANUP(input_tree_fini) struct input_tree tree = {.items = NULL};
    make_tree();
    ck_assert_int_eq(chmod("data/b", 04640), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, "data/b", times, 0), 0);
    ck_assert_msg(input_folder_add(".", "data", 10, &list, &tree, &problem) &&
                      input_tree_list(&tree, &list, &problem),
                  "%s", problem.text);
    ck_assert_str_eq(tree.items[2].name, "data/b");
    ck_assert_uint_eq(tree.items[2].mode, 0640);
    ck_assert_int_eq(tree.items[2].modified_ns, INT64_C(1000000000000000007));
    ck_assert_uint_eq(tree.items[0].mode, 0755);
}
END_TEST

/* Two names may stand for one folder, but not for two things of one name. */
START_TEST(a_listing_has_a_name_once)
{
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    CLEANUP(input_tree_fini) struct input_tree tree = {.items = NULL};
    make_tree();
    ck_assert_int_eq(mkdir("other", 0755), 0);
    ck_assert_int_eq(symlink("b", "other/empty"), 0);
    ck_assert(input_folder_add(".", "data/empty", 10, &list, &tree, &problem) &&
              input_folder_add(".", "data/empty/", 10, &list, &tree, &problem));
    ck_assert_msg(input_tree_list(&tree, &list, &problem), "%s", problem.text);
    ck_assert_uint_eq(tree.count, 1);
    ck_assert(input_folder_add("data", "empty", 10, &list, &tree, &problem) &&
              input_folder_add("other", ".", 10, &list, &tree, &problem));
    ck_assert(!input_tree_list(&tree, &list, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "'empty' is given twice"));
}
END_TEST

START_TEST(a_program_in_a_folder_of_files_is_sent_once)
{
    make_tree();
    put("data/go", "#!/bin/sh\n");
    ck_assert_int_eq(chmod("data/go", 0700), 0);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("files: data\nrun: [./data/go]\n");
    ck_assert_uint_eq(job->shared.count, 5); /* four files, and the listing of the folder */
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
      TEST(a_listing_has_folders_and_links), TEST(a_link_that_does_not_travel_is_a_copy_or_refused),
      TEST(a_listing_keeps_times_and_permissions), TEST(a_listing_has_a_name_once),
      TEST(a_program_in_a_folder_of_files_is_sent_once))
