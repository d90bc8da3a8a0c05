#include "provider/work/outcome.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "provider/work/free_space.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* A spool on a disk of its own, seen by this process alone. */
struct spool {
    char folder[64];
    int output; /* holes only: it takes no room before it is kept */
};

enum { DISK_BYTES = 4 << 20, LARGE_BYTES = 8 << 20 };

static void spool_start(struct spool *spool)
{
    (void)snprintf(spool->folder, sizeof spool->folder, "/tmp/bourse-spool-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(spool->folder));
    spool->output = memfd_create("output", MFD_CLOEXEC);
    ck_assert_int_ge(spool->output, 0);
    ck_assert_int_eq(ftruncate(spool->output, LARGE_BYTES), 0);
    ck_assert_int_eq(mount("tmpfs", spool->folder, "tmpfs", 0, "size=4m"), 0);
}

static void spool_end(struct spool *spool)
{
    close(spool->output);
    ck_assert_int_eq(umount2(spool->folder, MNT_DETACH), 0);
    ck_assert_int_eq(rmdir(spool->folder), 0);
}

static enum result_outcome keep(const struct spool *spool, uint64_t size, struct problem *problem)
{
    struct agent_work work = {.lease = 1, .attempt = 1};
    struct outcome *outcome = outcome_create(&work, &(struct id128){{1}});
    ck_assert_ptr_nonnull(outcome);
    enum result_outcome kept =
        outcome_keep(spool->folder, "out", spool->output, size, &outcome->standard_output, problem);
    outcome_destroy(&outcome);
    return kept;
}

START_TEST(a_spool_that_is_removed_is_made_again)
{
    struct spool spool = {.output = memfd_create("output", MFD_CLOEXEC)};
    struct problem problem = {""};
    (void)snprintf(spool.folder, sizeof spool.folder, "/tmp/bourse-spool-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(spool.folder));
    ck_assert_int_eq(ftruncate(spool.output, DISK_BYTES), 0);
    ck_assert_int_eq(keep(&spool, DISK_BYTES, &problem), OUTCOME_OK);
    ck_assert_int_eq(rmdir(spool.folder), 0);
    ck_assert_int_eq(keep(&spool, DISK_BYTES, &problem), OUTCOME_OK);
    ck_assert_int_eq(rmdir(spool.folder), 0);
    ck_assert_int_eq(symlink("absent", spool.folder), 0); /* in the way */
    ck_assert_int_eq(keep(&spool, DISK_BYTES, &problem), OUTCOME_CANCELLED);
    ck_assert_ptr_nonnull(strstr(problem.text, "is gone"));
    ck_assert_int_eq(unlink(spool.folder), 0);
    (void)close(spool.output);
}
END_TEST

START_TEST(an_output_larger_than_a_disk_that_is_not_crowded_has_failed)
{
    CLEANUP(spool_end) struct spool spool;
    struct problem problem = {""};
    spool_start(&spool);
    ck_assert_int_eq(keep(&spool, DISK_BYTES / 2, &problem), OUTCOME_OK);
    ck_assert_int_eq(keep(&spool, LARGE_BYTES, &problem), OUTCOME_JAIL_FAILED);
    ck_assert_msg(strstr(problem.text, "an output of 8388608 bytes does not fit") != NULL, "%s",
                  problem.text);
    ck_assert_msg(strstr(problem.text, "has 4194304 free") != NULL, "%s", problem.text);
}
END_TEST

START_TEST(an_output_that_finds_the_disk_crowded_is_given_back)
{
    CLEANUP(spool_end) struct spool spool;
    struct problem problem = {""};
    spool_start(&spool);
    int others = openat(AT_FDCWD, spool.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(others, 0);
    ck_assert_int_eq(posix_fallocate(others, 0, DISK_BYTES - (int)FREE_SPACE_LEAST / 2), 0);
    ck_assert_int_eq(keep(&spool, FREE_SPACE_LEAST, &problem), OUTCOME_CANCELLED);
    ck_assert_int_eq(keep(&spool, FREE_SPACE_LEAST / 4 + 4096, &problem), OUTCOME_OK);
    close(others);
}
END_TEST

START_TEST(an_output_that_stays_in_its_jail_takes_no_room_and_is_known_to_be_there)
{
    CLEANUP(spool_end) struct spool spool;
    struct problem problem = {""};
    struct agent_work work = {.lease = 1, .attempt = 1};
    struct outcome *outcome = outcome_create(&work, &(struct id128){{1}});
    struct left_outputs *left_outputs = outcome_left_create();
    ck_assert(outcome != NULL && left_outputs != NULL);
    spool_start(&spool);
    ck_assert(outcome_left_is_empty(left_outputs));
    struct kept *left = &outcome->standard_output;
    ck_assert_int_eq(outcome_leave(left_outputs, "out", spool.output, LARGE_BYTES, left, &problem),
                     OUTCOME_OK); /* larger than the disk */
    ck_assert(!outcome_left_is_empty(left_outputs));
    uint8_t *zeros = calloc(1, LARGE_BYTES);
    const struct hash32 hash = sha256_of(zeros, LARGE_BYTES);
    free(zeros);
    ck_assert(hash32_equal(&left->hash, &hash));
    ck_assert_int_ne(left->fd, spool.output);
    outcome_destroy(&outcome);
    ck_assert(outcome_left_is_empty(left_outputs));
    outcome_left_release(&left_outputs);
    ck_assert_ptr_null(left_outputs);
}
END_TEST

START_TEST(what_is_shorter_than_its_jail_says_cannot_stay_there)
{
    CLEANUP(spool_end) struct spool spool;
    struct problem problem = {""};
    struct kept left = {.fd = -1};
    struct left_outputs *left_outputs = outcome_left_create();
    spool_start(&spool);
    ck_assert_int_eq(
        outcome_leave(left_outputs, "out", spool.output, LARGE_BYTES + 1, &left, &problem),
        OUTCOME_JAIL_FAILED);
    ck_assert(outcome_left_is_empty(left_outputs) && left.name == NULL);
    outcome_left_release(&left_outputs);
}
END_TEST

static struct kept *leave(struct left_outputs *left_outputs, struct outcome **ret_outcome,
                          const char *text)
{
    struct agent_work work = {.lease = 1, .attempt = 1};
    struct problem problem = {""};
    int output = memfd_create("output", MFD_CLOEXEC);
    const size_t length = strlen(text);
    *ret_outcome = outcome_create(&work, &(struct id128){{1}});
    ck_assert(output >= 0 && *ret_outcome != NULL);
    ck_assert_int_eq(write(output, text, length), (int)length);
    struct kept *left = &(*ret_outcome)->standard_output;
    ck_assert_int_eq(outcome_leave(left_outputs, "out", output, length, left, &problem),
                     OUTCOME_OK);
    close(output);
    return left;
}

static bool lies_in(const struct kept *kept, const char *folder)
{
    struct stat file, place;
    ck_assert_int_eq(fstat(kept->fd, &file), 0);
    ck_assert_int_eq(stat(folder, &place), 0);
    return file.st_dev == place.st_dev;
}

START_TEST(what_was_left_moves_out_of_the_jail_under_its_descriptor)
{
    CLEANUP(spool_end) struct spool spool;
    struct outcome *first, *gone, *last;
    char bytes[16] = "";
    struct left_outputs *left_outputs = outcome_left_create();
    spool_start(&spool);
    const struct kept *kept = leave(left_outputs, &first, "the first");
    (void)leave(left_outputs, &gone, "stored already");
    const struct kept *other = leave(left_outputs, &last, "the last");
    const int descriptor = kept->fd;
    outcome_destroy(&gone);
    ck_assert(!lies_in(kept, spool.folder));
    ck_assert(outcome_left_move_out(left_outputs, spool.folder));
    ck_assert(outcome_left_is_empty(left_outputs));
    ck_assert_int_eq(kept->fd, descriptor);
    ck_assert(lies_in(kept, spool.folder) && lies_in(other, spool.folder));
    ck_assert_int_eq(pread(kept->fd, bytes, sizeof bytes, 0), 9);
    ck_assert_str_eq(bytes, "the first");
    outcome_destroy(&first);
    ck_assert(outcome_left_move_out(left_outputs, spool.folder)); /* nothing is left to move */
    outcome_left_release(&left_outputs);
    outcome_destroy(&last); /* later than its jail */
}
END_TEST

START_TEST(what_finds_no_room_stays_in_the_jail)
{
    CLEANUP(spool_end) struct spool spool;
    struct problem problem = {""};
    struct agent_work work = {.lease = 1, .attempt = 1};
    struct outcome *outcome = outcome_create(&work, &(struct id128){{1}});
    struct left_outputs *left_outputs = outcome_left_create();
    spool_start(&spool);
    ck_assert_int_eq(outcome_leave(left_outputs, "out", spool.output, LARGE_BYTES,
                                   &outcome->standard_output, &problem),
                     OUTCOME_OK);
    ck_assert(!outcome_left_move_out(left_outputs, spool.folder));
    ck_assert(!outcome_left_is_empty(left_outputs));
    ck_assert(!lies_in(&outcome->standard_output, spool.folder));
    outcome_destroy(&outcome);
    outcome_left_release(&left_outputs);
}
END_TEST

/* Mounts of this process are nobody else's. */
static bool may_mount(void)
{
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

int main(void)
{
    if (!may_mount()) {
        (void)printf("not run: nothing may be mounted here\n");
        return 77;
    }
    Suite *suite = suite_create("provider outcome");
    TCase *tcase = tcase_create("outcome");
    tcase_add_test(tcase, an_output_larger_than_a_disk_that_is_not_crowded_has_failed);
    tcase_add_test(tcase, an_output_that_finds_the_disk_crowded_is_given_back);
    tcase_add_test(tcase, an_output_that_stays_in_its_jail_takes_no_room_and_is_known_to_be_there);
    tcase_add_test(tcase, what_is_shorter_than_its_jail_says_cannot_stay_there);
    tcase_add_test(tcase, what_was_left_moves_out_of_the_jail_under_its_descriptor);
    tcase_add_test(tcase, what_finds_no_room_stays_in_the_jail);
    tcase_add_test(tcase, a_spool_that_is_removed_is_made_again);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
