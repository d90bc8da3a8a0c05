#include "runtime/files.h"

#include "runtime/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(files_are_written_whole_and_read_up_to_a_cap)
{
    uint8_t *bytes;
    size_t length;
    char text[200000];
    memset(text, 'x', sizeof text);
    ck_assert(file_write(path, text, sizeof text, 0640, &problem));
    ck_assert(file_write(path, text, sizeof text - 1, 0640, &problem)); /* over the former one */
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0640);

    ck_assert(file_read(path, sizeof text - 1, &bytes, &length, &problem));
    ck_assert_uint_eq(length, sizeof text - 1);
    ck_assert_mem_eq(bytes, text, length);
    ck_assert_uint_eq(bytes[length], 0);
    free(bytes);
    ck_assert(!file_read(path, sizeof text - 2, &bytes, &length, &problem));
    ck_assert(says("more than 199998 bytes"));

    ck_assert(file_write(path, "", 0, 0600, &problem));
    ck_assert(file_read(path, 0, &bytes, &length, &problem));
    ck_assert_uint_eq(length, 0);
    free(bytes);
    (void)snprintf(path, sizeof path, "%s/missing/file", folder);
    ck_assert(!file_write(path, "x", 1, 0600, &problem));
    ck_assert(!file_read(path, 10, &bytes, &length, &problem));
}
END_TEST

START_TEST(bytes_are_written_at_their_place_in_many_steps)
{
    enum { AT = 777, LENGTH = 3 * FILE_STEP_BYTES + 5 };
    uint8_t *bytes = malloc(LENGTH);
    uint8_t *read = malloc(LENGTH);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_ptr_nonnull(read);
    for (size_t i = 0; i < LENGTH; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert(file_write_at(fd, bytes, LENGTH, AT));
    ck_assert(file_read_at(fd, read, LENGTH, AT));
    ck_assert_mem_eq(read, bytes, LENGTH);
    errno = 0;
    ck_assert(!file_read_at(fd, read, LENGTH, AT + 1)); /* one byte more than there is */
    ck_assert_int_eq(errno, ENODATA);
    ck_assert(file_write_at(fd, bytes, 0, AT + LENGTH));
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_int_eq(status.st_size, AT + LENGTH);

    struct rlimit limit = {.rlim_cur = FILE_STEP_BYTES + 100, .rlim_max = FILE_STEP_BYTES + 100};
    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert(!file_write_at(fd, bytes, LENGTH, 0)); /* in its second step, of which a part fits */
    ck_assert_int_eq(errno, EFBIG);
    ck_assert_int_eq(close(fd), 0);
    free(bytes);
    free(read);
}
END_TEST

START_TEST(a_failed_write_leaves_the_old_file_and_no_spare)
{
    ck_assert(file_write(path, "old", 3, 0600, &problem));
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    static const char large[4000];
    ck_assert(!file_write(path, large, sizeof large, 0600, &problem));
    ck_assert(says("cannot be written"));

    uint8_t *bytes;
    size_t length;
    ck_assert(file_read(path, 10, &bytes, &length, &problem));
    ck_assert_mem_eq(bytes, "old", 3);
    free(bytes);
    char command[200];
    (void)snprintf(command, sizeof command, "test $(ls -A '%s' | wc -l) = 1", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_process_says_where_it_lives_and_leaves_no_cores)
{
    char here[512];
    ck_assert(process_folder(here, sizeof here));
    ck_assert_int_eq(here[0], '/');
    ck_assert_ptr_nonnull(strstr(here, "tests"));
    ck_assert(!process_folder(here, 3));
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_CORE, &limit), 0);
    ck_assert_uint_le(limit.rlim_cur, 1);
    ck_assert_uint_eq(umask(077), 077);
}
END_TEST

SUITE("files", setup, teardown, TEST(files_are_written_whole_and_read_up_to_a_cap),
      TEST(bytes_are_written_at_their_place_in_many_steps),
      TEST(a_failed_write_leaves_the_old_file_and_no_spare),
      TEST(the_process_says_where_it_lives_and_leaves_no_cores))
