/* The tests ask what a file's stamp tells. */
#include "runtime/stamp.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_stamp_tells_another_file_and_other_bytes)
{
    char path[] = "/tmp/stamp-XXXXXX";
    char other_path[sizeof path + 1];
    struct stamp stamp;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    ck_assert(stamp_take(fd, &stamp) && stamp.is_known);
    ck_assert(!stamp_has_changed(&stamp, fd));
    (void)snprintf(other_path, sizeof other_path, "%s2", path);
    ck_assert_int_eq(link(path, other_path), 0);
    ck_assert(!stamp_has_changed(&stamp, fd)); /* a name more */
    ck_assert_int_eq(unlink(other_path), 0);
    ck_assert_int_eq(write(fd, "d", 1), 1);
    ck_assert(stamp_has_changed(&stamp, fd));
    ck_assert(stamp_take(fd, &stamp));
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    ck_assert_int_eq(futimens(fd, times), 0);
    ck_assert(stamp_has_changed(&stamp, fd));
    ck_assert(stamp_take(fd, &stamp));
    int other = open(other_path, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(write(other, "abcd", 4), 4);
    ck_assert_int_eq(futimens(other, times), 0);
    ck_assert(stamp_has_changed(&stamp, other));
    (void)close(other);
    (void)close(fd);
    ck_assert(stamp_has_changed(&stamp, fd));
    ck_assert(!stamp_take(fd, &stamp) && !stamp.is_known);
    ck_assert_int_eq(unlink(path) + unlink(other_path), 0);
}
END_TEST

SUITE("stamp", NULL, NULL, TEST(a_stamp_tells_another_file_and_other_bytes))
