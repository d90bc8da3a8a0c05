/* The tests follow private folders: how they are made, and which are refused. */
#include "runtime/private_folder.h"

#include "runtime/files.h"
#include "runtime/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(nobody_is_told_to_close_a_folder_of_the_system)
{
    static const char *const folders[] = {"/", "/etc", "/etc/", "/usr/bin", "/tmp", "/bin/../etc"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        ck_assert(!private_folder(folders[i], false, &problem));
        ck_assert_msg(!says("chmod"), "%s", problem.text);
        ck_assert_msg(geteuid() != 0 || says("must stay so"), "%s", problem.text);
    }
}
END_TEST

START_TEST(private_folders_are_made_with_their_parents)
{
    (void)snprintf(path, sizeof path, "%s/a/b c/d", folder);
    ck_assert(!private_folder(path, false, &problem));
    ck_assert_msg(private_folder(path, true, &problem), "%s", problem.text);
    ck_assert(private_folder(path, false, &problem));
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0700);

    (void)snprintf(path, sizeof path, "%s/file", folder);
    ck_assert(file_write(path, "x", 1, 0600, &problem));
    ck_assert(!private_folder(path, true, &problem));
    ck_assert(says("not a folder"));
    ck_assert(!private_folder("", true, &problem));
    if (geteuid() == 0) {
        (void)snprintf(path, sizeof path, "%s/theirs", folder);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_eq(chown(path, 12345, 12345), 0);
        ck_assert(!private_folder(path, true, &problem));
        ck_assert(says("belongs to user 12345"));
        ck_assert(says("runuser -u 12345 -- "));
    }
}
END_TEST

SUITE("private_folder", setup, teardown, TEST(nobody_is_told_to_close_a_folder_of_the_system),
      TEST(private_folders_are_made_with_their_parents))
