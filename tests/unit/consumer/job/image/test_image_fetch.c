/* The tests fetch an image with a skopeo that copies, fails, takes too long or fills the disk. */
#include "consumer/job/image/image_fetch.h"

#include "runtime/clock.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* Puts a program named skopeo before all others. */
static void be_skopeo(const char *body)
{
    char program[128];
    char search[512];
    (void)snprintf(program, sizeof program, "%s/skopeo", folder);
    FILE *file = fopen(program, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\n%s\n", body);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(program, 0700), 0);
    (void)snprintf(search, sizeof search, "%s:/usr/bin:/bin", folder);
    ck_assert_int_eq(setenv("PATH", search, 1), 0);
    ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
}

static bool fetch(int64_t time_ms, uint64_t bytes, struct image_fetched *ret_fetched)
{
    const struct image_fetch_caps caps = {.time_ms = time_ms, .bytes = bytes};
    return image_fetch_within("docker://some:1", folder, "amd64", &caps, ret_fetched, &problem);
}

START_TEST(what_skopeo_copies_is_there_until_it_is_given_up)
{
    struct image_fetched fetched;
    be_skopeo("for to; do :; done; to=${to#oci:}; mkdir -p \"${to%:image}\"; echo {} "
              ">\"${to%:image}/index.json\"");
    ck_assert_msg(fetch(60000, 1 << 20, &fetched), "%s", problem.text);
    ck_assert_int_eq(access(fetched.layout, F_OK), 0);
    image_fetched_fini(&fetched);
    ck_assert_int_ne(access(fetched.layout, F_OK), 0);
}
END_TEST

START_TEST(a_failure_says_what_skopeo_says)
{
    struct image_fetched fetched;
    be_skopeo("echo 'level=fatal msg=\"no such image\"' >&2; exit 1");
    ck_assert(!fetch(60000, 1 << 20, &fetched));
    ck_assert_msg(says("no such image"), "%s", problem.text);
}
END_TEST

START_TEST(a_skopeo_that_never_ends_is_ended)
{
    struct image_fetched fetched;
    const int64_t began_ns = clock_monotonic_ns();
    be_skopeo("exec sleep 600");
    ck_assert(!fetch(300, 1 << 20, &fetched));
    ck_assert_msg(says("the most that fetching an image may take"), "%s", problem.text);
    ck_assert_int_lt(clock_monotonic_ns() - began_ns, 300 * NS_PER_S);
    ck_assert_str_eq(fetched.folder, "");
}
END_TEST

START_TEST(a_skopeo_that_fills_the_disk_is_ended)
{
    struct image_fetched fetched;
    be_skopeo("head -c 3000000 /dev/zero >\"$TMPDIR/layer\"; exec sleep 600");
    ck_assert(!fetch(600000, 2 << 20, &fetched));
    ck_assert_msg(says("takes more than 2 MiB"), "%s", problem.text);
    ck_assert_str_eq(fetched.folder, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image fetch");
    TCase *tests = tcase_create("image fetch");
    tcase_set_timeout(tests, 400);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_skopeo_copies_is_there_until_it_is_given_up);
    tcase_add_test(tests, a_failure_says_what_skopeo_says);
    tcase_add_test(tests, a_skopeo_that_never_ends_is_ended);
    tcase_add_test(tests, a_skopeo_that_fills_the_disk_is_ended);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
