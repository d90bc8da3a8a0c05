/* bench/endtoend over a small market: its figures are not looked at, only that they are there. */
#include <check.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SUBTASKS = 300, SKIPPED = 77 };

static json_t *measured;

static double number(json_t *row, const char *name)
{
    json_t *value = json_object_get(row, name);
    ck_assert_msg(json_is_number(value), "%s", name);
    return json_number_value(value);
}

static void check_row(json_t *row, const char *figure, int agents)
{
    double least = json_number_value(json_array_get(json_object_get(row, "spread"), 0));
    double most = json_number_value(json_array_get(json_object_get(row, "spread"), 1));
    ck_assert_int_eq((int)number(row, "agents"), agents);
    ck_assert(number(row, figure) > 0);
    ck_assert(least > 0 && least <= number(row, figure) && number(row, figure) <= most);
    ck_assert(number(row, "p50_ms") > 0);
    ck_assert(number(row, "p99_ms") >= number(row, "p50_ms"));
    ck_assert(number(row, "per_curve_echo") > 0);
    ck_assert(number(row, "per_sqlite_row") > 0);
    ck_assert(json_is_object(json_object_get(row, "cpu_us")));
}

START_TEST(it_prints_a_row_for_each_number_of_agents)
{
    json_t *rows = json_object_get(measured, "rows");
    ck_assert_uint_eq(json_array_size(rows), 2);
    check_row(json_array_get(rows, 0), "noop_per_s", 1);
    check_row(json_array_get(rows, 1), "noop_per_s", 3);
}
END_TEST

START_TEST(a_program_is_measured_beside_it)
{
    json_t *rows = json_object_get(measured, "command");
    ck_assert_uint_eq(json_array_size(rows), 2);
    check_row(json_array_get(rows, 0), "true_per_s", 1);
    check_row(json_array_get(rows, 1), "true_per_s", 3);
}
END_TEST

START_TEST(it_says_where_and_how_it_measured)
{
    json_t *parameters = json_object_get(measured, "parameters");
    ck_assert_int_eq((int)number(parameters, "subtasks"), SUBTASKS);
    ck_assert(number(parameters, "ed25519_verifies_per_s") > 0);
    ck_assert(number(json_object_get(measured, "machine"), "processors") >= 1);
    ck_assert(json_is_string(json_object_get(json_object_get(measured, "versions"), "libzmq")));
}
END_TEST

static bool measure(void)
{
    char command[512];
    json_error_t error;
    (void)snprintf(command, sizeof command,
                   "exec '%s/../bench/endtoend' --json --agents 1,3 --rounds 2 --subtasks %d "
                   "--trues 40 --seconds 0.05",
                   BOURSE_BIN_DIR, SUBTASKS);
    FILE *output = popen(command, "r");
    measured = output == NULL ? NULL : json_loadf(output, 0, &error);
    return output != NULL && pclose(output) == 0 && measured != NULL;
}

int main(void)
{
    if (access("/usr/bin/bwrap", X_OK) != 0) {
        (void)puts("skipped: no bubblewrap");
        return SKIPPED;
    }
    if (!measure()) {
        (void)fputs("the benchmark failed\n", stderr);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("endtoend");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, it_prints_a_row_for_each_number_of_agents);
    tcase_add_test(tests, a_program_is_measured_beside_it);
    tcase_add_test(tests, it_says_where_and_how_it_measured);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    json_decref(measured);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
