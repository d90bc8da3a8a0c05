/* Outputs have names that strangers chose: where they may land, and where never. */
#include "consumer/job/place.h"

#include "base/sha256.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANY = 70, BATCH = 64 };

static char here[64];
static struct place_folder *places;

/* The disk was asked for these, in order: b bytes of a file synced, f a folder, S the file system,
 * r a name given. */
static char asked[4 * MANY];
static int sync_error;

static void ask(char what)
{
    size_t length = strlen(asked);
    ck_assert_uint_lt(length + 1, sizeof asked);
    asked[length] = what;
    asked[length + 1] = '\0';
}

static int answer(void)
{
    errno = sync_error;
    return sync_error == 0 ? 0 : -1;
}

/* The linker prefers these to the C library's. */
int fsync(int fd)
{
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    ask(S_ISDIR(status.st_mode) ? 'f' : 'b');
    return answer();
}
int syncfs(int fd)
{
    ck_assert_int_ge(fd, 0);
    ask('S');
    return answer();
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    ask('r');
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

static void setup(void)
{
    (void)snprintf(here, sizeof here, "/tmp/bourse-place-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(here));
    ck_assert_int_eq(chdir(here), 0);
    struct problem problem;
    ck_assert_ptr_null(place_folder_open("", &problem));
    ck_assert_str_eq(problem.text, "the output folder has an empty name");
    places = place_folder_open("out", &problem);
    ck_assert_ptr_nonnull(places);
    sync_error = 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void teardown(void)
{
    place_folder_close(&places);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(nftw(here, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static bool fill_text(void *context, int fd)
{
    const char *text = context;
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool fill_nothing(void *context, int fd)
{
    (void)context;
    (void)fd;
    return false;
}

static struct place_content content_of(const char *text)
{
    return (struct place_content){.hash = sha256_of(text, strlen(text)), .size = strlen(text)};
}

static enum place_status place(const char *path, const char *text, struct problem *ret_problem)
{
    const struct place_content content = content_of(text);
    enum place_status status =
        place_file(places, path, &content, fill_text, (char *)(uintptr_t)text, ret_problem);
    return status == PLACE_WRITTEN ? place_folder_settle(places, ret_problem) : status;
}

static void ck_content(const char *path, const char *expected)
{
    char content[64] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t length = fread(content, 1, sizeof content - 1, file);
    content[length] = '\0';
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_str_eq(content, expected);
}

static size_t entries(const char *path)
{
    size_t count = 0;
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    ck_assert_int_eq(closedir(folder), 0);
    return count - 2;
}

static const char *path_of(const char *input, bool single, uint32_t index, const char *output)
{
    static char path[PLACE_PATH_SIZE];
    return place_path(input, single, index, output, path) ? path : NULL;
}

START_TEST(outputs_of_files_land_beside_where_their_inputs_were)
{
    ck_assert_str_eq(path_of("photos/a.jpg", false, 3, "small.jpg"), "photos/small.jpg");
    ck_assert_str_eq(path_of("photos/a.jpg", false, 3, "photos/a.jpg.xz"), "photos/a.jpg.xz");
    ck_assert_str_eq(path_of("photos/a.jpg", false, 3, "out/photos/a.jpg"), "photos/a.jpg");
    ck_assert_str_eq(path_of("a.jpg", false, 3, "a.jpg.xz"), "a.jpg.xz");
}
END_TEST

START_TEST(outputs_without_an_input_land_in_a_folder_per_subtask)
{
    ck_assert_str_eq(path_of(NULL, false, 7, "result.txt"), "7/result.txt");
    ck_assert_str_eq(path_of(NULL, false, 7, "out/7"), "7/7");
    ck_assert_str_eq(path_of(NULL, true, 0, "deep/result.txt"), "deep/result.txt");
}
END_TEST

START_TEST(names_that_would_leave_the_folder_are_refused)
{
    static const char *const bad[] = {"",
                                      "/etc/passwd",
                                      "..",
                                      "../x",
                                      "a/../../x",
                                      "a//b",
                                      "a/",
                                      ".",
                                      "./a",
                                      "out/../../x",
                                      "out/",
                                      "a/./b",
                                      "a\nb",
                                      "out//etc/passwd",
                                      "a\xe2\x80\xaegnp.sh",
                                      "\xc2\x9b",
                                      "a\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(path_of(NULL, true, 0, bad[i]) == NULL, "'%s' was accepted", bad[i]);
        ck_assert_msg(path_of("d/in", false, 0, bad[i]) == NULL, "'%s' was accepted", bad[i]);
    }
    ck_assert_ptr_null(path_of("../in", false, 0, "x"));
    char component[300];
    memset(component, 'a', sizeof component - 1);
    component[sizeof component - 1] = '\0';
    ck_assert_ptr_null(path_of(NULL, true, 0, component));
}
END_TEST

START_TEST(a_file_is_written_with_its_folders)
{
    struct problem problem;
    ck_assert_int_eq(place("a/b/c.txt", "hello", &problem), PLACE_WRITTEN);
    ck_content("out/a/b/c.txt", "hello");
    ck_assert_uint_eq(entries("out/a/b"), 1); /* no temporary file is left */
}
END_TEST

START_TEST(what_is_there_with_the_right_content_is_left_alone)
{
    struct problem problem;
    ck_assert_int_eq(place("a", "hello", &problem), PLACE_WRITTEN);
    const struct place_content content = content_of("hello");
    ck_assert_int_eq(place_file(places, "a", &content, fill_nothing, NULL, &problem),
                     PLACE_PRESENT);
}
END_TEST

static enum place_status place_mode(const char *path, bool is_executable)
{
    struct problem problem;
    struct place_content content = content_of("hello");
    content.is_executable = is_executable;
    const enum place_status status =
        place_file(places, path, &content, fill_text, (char *)(uintptr_t) "hello", &problem);
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_WRITTEN);
    return status;
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 07777;
}

START_TEST(what_is_there_gets_the_mode_of_a_new_file)
{
    static const mode_t modes[] = {0600, 0644, 0777, 0755, 0444, 0700, 06755};
    const mode_t before = umask(_i == 0 ? 0022 : 0027);
    const mode_t plain = _i == 0 ? 0644 : 0640;
    const mode_t program = _i == 0 ? 0755 : 0750;
    ck_assert_int_eq(place_mode("plain", false), PLACE_WRITTEN);
    ck_assert_int_eq(place_mode("program", true), PLACE_WRITTEN);
    ck_assert_uint_eq(mode_of("out/plain"), plain);
    ck_assert_uint_eq(mode_of("out/program"), program);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(chmod("out/plain", modes[i]), 0);
        ck_assert_int_eq(chmod("out/program", modes[i]), 0);
        ck_assert_int_eq(place_mode("plain", false), PLACE_PRESENT);
        ck_assert_int_eq(place_mode("program", true), PLACE_PRESENT);
        ck_assert_uint_eq(mode_of("out/plain"), plain);
        ck_assert_uint_eq(mode_of("out/program"), program);
    }
    (void)umask(before);
}
END_TEST

START_TEST(what_is_there_with_other_content_is_never_overwritten)
{
    struct problem problem = {.text = ""};
    ck_assert_int_eq(place("a", "mine", &problem), PLACE_WRITTEN);
    ck_assert_int_eq(place("a", "theirs", &problem), PLACE_OCCUPIED);
    ck_assert_ptr_nonnull(strstr(problem.text, "nothing is overwritten"));
    ck_content("out/a", "mine");
    ck_assert_int_eq(mkdir("out/folder", 0700), 0);
    ck_assert_int_eq(place("folder", "theirs", &problem), PLACE_OCCUPIED);
    ck_assert_int_eq(place("a/b", "theirs", &problem), PLACE_OCCUPIED);
}
END_TEST

START_TEST(symbolic_links_are_not_followed)
{
    struct problem problem;
    ck_assert_int_eq(mkdir("elsewhere", 0700), 0);
    ck_assert_int_eq(symlink("../elsewhere", "out/link"), 0);
    ck_assert_int_eq(place("link/x", "text", &problem), PLACE_OCCUPIED);
    ck_assert_uint_eq(entries("elsewhere"), 0);
    ck_assert_int_eq(symlink("../victim", "out/file"), 0);
    ck_assert_int_eq(place("file", "text", &problem), PLACE_OCCUPIED);
    ck_assert_int_ne(access("victim", F_OK), 0);
    FILE *victim = fopen("victim", "w");
    ck_assert_ptr_nonnull(victim);
    ck_assert_int_ge(fputs("text", victim), 0);
    ck_assert_int_eq(fclose(victim), 0);
    /* Even where the link's target has the very content: it is not the file that was asked for. */
    ck_assert_int_eq(place("file", "text", &problem), PLACE_OCCUPIED);
}
END_TEST

START_TEST(folders_and_links_come_without_content)
{
    struct problem problem;
    struct stat status;
    char target[64] = "";
    ck_assert_int_eq(place_empty_folder(places, "a/b", &problem), PLACE_WRITTEN);
    ck_assert_int_eq(place_empty_folder(places, "a/b", &problem), PLACE_PRESENT);
    ck_assert_int_eq(lstat("out/a/b", &status), 0);
    ck_assert(S_ISDIR(status.st_mode));
    ck_assert_int_eq(place_link(places, "a/l", "b/c", &problem), PLACE_WRITTEN);
    ck_assert_int_eq(place_link(places, "a/l", "b/c", &problem), PLACE_PRESENT);
    ck_assert_int_eq(place_link(places, "a/l", "b", &problem), PLACE_OCCUPIED);
    ck_assert_int_eq(readlink("out/a/l", target, sizeof target - 1), 3);
    ck_assert_str_eq(target, "b/c");
    ck_assert_int_eq(place_link(places, "a/b", "c", &problem), PLACE_OCCUPIED);
    ck_assert_int_eq(place_empty_folder(places, "a/l", &problem), PLACE_OCCUPIED);
    asked[0] = '\0';
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_WRITTEN);
    ck_assert_str_eq(asked, "S");
}
END_TEST

START_TEST(a_link_never_leads_out_of_the_output_folder)
{
    static const char *const bad[] = {"..", "../x", "/etc/passwd", "b/../..", ""};
    struct problem problem;
    struct stat status;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(place_link(places, "l", bad[i], &problem) == PLACE_WRONG, "%s", bad[i]);
    }
    ck_assert_int_eq(place_link(places, "../l", "x", &problem), PLACE_WRONG);
    ck_assert_int_eq(place_empty_folder(places, "../l", &problem), PLACE_FAILED);
    ck_assert_int_ne(lstat("out/l", &status), 0);
    ck_assert_int_ne(lstat("l", &status), 0);
    /* Nothing is written through a link that was placed. */
    ck_assert_int_eq(mkdir("out/folder", 0700), 0);
    ck_assert_int_eq(place_link(places, "to-folder", "folder", &problem), PLACE_WRITTEN);
    ck_assert_int_eq(place("to-folder/x", "text", &problem), PLACE_OCCUPIED);
    ck_assert_int_eq(place_link(places, "to-folder/y", "x", &problem), PLACE_OCCUPIED);
    ck_assert_int_eq(place_empty_folder(places, "to-folder/z", &problem), PLACE_OCCUPIED);
    ck_assert_uint_eq(entries("out/folder"), 0);
}
END_TEST

START_TEST(a_fifo_in_the_way_does_not_block)
{
    struct problem problem;
    ck_assert_int_eq(mkfifo("out/pipe", 0600), 0);
    ck_assert_int_eq(place("pipe", "text", &problem), PLACE_OCCUPIED);
}
END_TEST

START_TEST(bytes_with_another_hash_leave_nothing)
{
    struct problem problem;
    const struct place_content content = content_of("honest");
    ck_assert_int_eq(
        place_file(places, "a", &content, fill_text, (char *)(uintptr_t) "forged", &problem),
        PLACE_WRONG);
    ck_assert_int_eq(
        place_file(places, "a", &content, fill_text, (char *)(uintptr_t) "honest+", &problem),
        PLACE_WRONG);
    ck_assert_int_eq(place_file(places, "a", &content, fill_nothing, NULL, &problem),
                     PLACE_UNFILLED);
    ck_assert_uint_eq(entries("out"), 0);
}
END_TEST

START_TEST(an_empty_file_is_a_file)
{
    struct problem problem;
    ck_assert_int_eq(place("empty", "", &problem), PLACE_WRITTEN);
    ck_content("out/empty", "");
    ck_assert_int_eq(place("empty", "", &problem), PLACE_PRESENT);
}
END_TEST

START_TEST(a_name_is_given_to_durable_bytes_and_is_durable_itself)
{
    struct problem problem;
    ck_assert_int_eq(place("a", "first", &problem), PLACE_WRITTEN);
    ck_assert_str_eq(asked, "brS"); /* `out` is new, and its name is in another folder */
    asked[0] = '\0';
    ck_assert_int_eq(place("b", "second", &problem), PLACE_WRITTEN);
    ck_assert_str_eq(asked, "brf");
    asked[0] = '\0';
    ck_assert_int_eq(place("b", "second", &problem), PLACE_PRESENT);
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_WRITTEN);
    ck_assert_str_eq(asked,
                     "S"); /* who gave that name may have been killed before it was durable */
    asked[0] = '\0';
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_WRITTEN);
    ck_assert_str_eq(asked, ""); /* there was nothing to do */
}
END_TEST

START_TEST(what_is_there_already_costs_one_sync)
{
    struct problem problem;
    static const char *const names[] = {"a/x", "b/x", "c"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(place(names[i], "x", &problem), PLACE_WRITTEN);
    }
    asked[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(place(names[i], "x", &problem), PLACE_PRESENT);
    }
    ck_assert_str_eq(asked, "");
    sync_error = EIO;
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "cannot be made durable"));
    ck_assert_str_eq(asked, "S");
}
END_TEST

START_TEST(many_small_files_cost_two_syncs_a_batch)
{
    struct problem problem;
    const struct place_content content = content_of("x");
    char expected[4 * MANY] = "S";
    memset(expected + 1, 'r', BATCH);
    strcat(expected, "SS");
    memset(expected + strlen(expected), 'r', MANY - BATCH);
    strcat(expected, "S");
    for (int i = 0; i < MANY; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "%d/x%d", i % 3, i);
        ck_assert_int_eq(
            place_file(places, path, &content, fill_text, (char *)(uintptr_t) "x", &problem),
            PLACE_WRITTEN);
    }
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_WRITTEN);
    ck_assert_str_eq(asked, expected);
    ck_assert_uint_eq(entries("out/0") + entries("out/1") + entries("out/2"), MANY);
}
END_TEST

START_TEST(what_is_not_durable_gets_no_name)
{
    struct problem problem;
    sync_error = EIO;
    ck_assert_int_eq(place("a", "lost", &problem), PLACE_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "cannot be made durable"));
    ck_assert_str_eq(asked, "b");
    ck_assert_uint_eq(entries("out"), 0);
    sync_error = 0;
    ck_assert_int_eq(place("a", "lost", &problem), PLACE_WRITTEN);
}
END_TEST

START_TEST(what_was_not_settled_is_gone_after_the_end)
{
    struct problem problem;
    const struct place_content content = content_of("x");
    ck_assert_int_eq(
        place_file(places, "a", &content, fill_text, (char *)(uintptr_t) "x", &problem),
        PLACE_WRITTEN);
    place_folder_close(&places);
    ck_assert_uint_eq(entries("out"), 0);
}
END_TEST

/* Somebody else's file of that name appeared meanwhile: it stays, and the others of the batch get
 * theirs. */
START_TEST(a_name_that_was_taken_meanwhile_is_not_replaced)
{
    struct problem problem;
    static const char *const names[] = {"a", "b", "c"};
    const struct place_content content = content_of("x");
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(
            place_file(places, names[i], &content, fill_text, (char *)(uintptr_t) "x", &problem),
            PLACE_WRITTEN);
    }
    FILE *mine = fopen("out/b", "w");
    ck_assert_ptr_nonnull(mine);
    ck_assert_int_ge(fputs("mine", mine), 0);
    ck_assert_int_eq(fclose(mine), 0);
    ck_assert_int_eq(place_folder_settle(places, &problem), PLACE_OCCUPIED);
    ck_assert_ptr_nonnull(strstr(problem.text, "b: "));
    ck_content("out/a", "x");
    ck_content("out/b", "mine");
    ck_content("out/c", "x");
    ck_assert_uint_eq(entries("out"), 3);
}
END_TEST

START_TEST(a_task_has_a_folder_of_its_own)
{
    char path[PLACE_PATH_SIZE];
    ck_assert(place_path_of_task("split", "out/parts/a", path));
    ck_assert_str_eq(path, "split/parts/a");
    ck_assert(!place_path_of_task("..", "a", path));
    ck_assert(!place_path_of_task("a/b", "a", path));
    ck_assert(!place_path_of_task("split", "../a", path));
    ck_assert(!place_path_of_task("", "a", path));
}
END_TEST

SUITE("place", setup, teardown, TEST(outputs_of_files_land_beside_where_their_inputs_were),
      TEST(a_task_has_a_folder_of_its_own),
      TEST(outputs_without_an_input_land_in_a_folder_per_subtask),
      TEST(names_that_would_leave_the_folder_are_refused), TEST(a_file_is_written_with_its_folders),
      TEST(what_is_there_with_the_right_content_is_left_alone),
      LOOP(what_is_there_gets_the_mode_of_a_new_file, 0, 2),
      TEST(what_is_there_with_other_content_is_never_overwritten),
      TEST(symbolic_links_are_not_followed), TEST(folders_and_links_come_without_content),
      TEST(a_link_never_leads_out_of_the_output_folder), TEST(a_fifo_in_the_way_does_not_block),
      TEST(bytes_with_another_hash_leave_nothing), TEST(an_empty_file_is_a_file),
      TEST(a_name_is_given_to_durable_bytes_and_is_durable_itself),
      TEST(what_is_there_already_costs_one_sync), TEST(many_small_files_cost_two_syncs_a_batch),
      TEST(what_is_not_durable_gets_no_name), TEST(what_was_not_settled_is_gone_after_the_end),
      TEST(a_name_that_was_taken_meanwhile_is_not_replaced))
