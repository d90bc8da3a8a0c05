/* tests/support/suite.h is the main() of a test program: one suite of Check's, its tests by name.
 *
 *     SUITE("merkle", setup, teardown, TEST(an_empty_tree_has_a_root), LOOP(every_size, 1, 64))
 *
 * `setup` and `teardown` run around each test, in its process; NULL means none. LOOP runs a test
 * once for each number from its first to one below its second, as `_i`. A program may have to do
 * something before its tests, or need a longer time limit. Such a program has a main() of its own
 * that ends with suite_run(). */
#ifndef BOURSE_TESTS_SUPPORT_SUITE_H
#define BOURSE_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

/* A bound for a test that hangs, in seconds, before Check's multiplier. */
enum { SUITE_TIMEOUT_S = 120 };

struct suite_test {
    const TTest *test;
    int from, to;
};

#define TEST(name)                                                                                 \
    {                                                                                              \
        (name), 0, 1                                                                               \
    }
#define LOOP(name, first, end)                                                                     \
    {                                                                                              \
        (name), (int)(first), (int)(end)                                                           \
    }

/* Runs the suite, frees it, and returns the exit status of the program. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int suite_main(const char *name, SFun before, SFun after,
                             const struct suite_test *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, SUITE_TIMEOUT_S);
    if (before != NULL || after != NULL) {
        tcase_add_checked_fixture(all, before, after);
    }
    for (size_t i = 0; i < count; i++) {
        tcase_add_loop_test(all, tests[i].test, tests[i].from, tests[i].to);
    }
    suite_add_tcase(suite, all);
    return suite_run(suite);
}

#define SUITE(name, setup, teardown, ...)                                                          \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct suite_test tests[] = {__VA_ARGS__};                                           \
        return suite_main(name, setup, teardown, tests, sizeof tests / sizeof tests[0]);           \
    }

#endif
