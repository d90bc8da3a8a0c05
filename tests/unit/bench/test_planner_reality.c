/* bench/planner_reality with few tasks: that plans were kept to and outputs are right. Its times
 * are not looked at. */
#include <check.h>
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASKS = 24, RUNS = 2, SKIPPED = 77 };

static json_t *measured;

static double number(json_t *row, const char *name)
{
    json_t *value = json_object_get(row, name);
    ck_assert_msg(json_is_number(value), "%s", name);
    return json_number_value(value);
}

static json_t *traced(const char *name)
{
    json_t *rows =
        json_object_get(json_object_get(json_object_get(measured, "graph"), "trace"), name);
    ck_assert_uint_gt(json_array_size(rows), 0);
    return rows;
}

/* The row of each task. */
static void find_tasks(json_t *ret_rows[TASKS])
{
    json_t *rows = traced("tasks");
    ck_assert_uint_eq(json_array_size(rows), TASKS);
    for (size_t i = 0; i < TASKS; i++) {
        json_t *row = json_array_get(rows, i);
        ret_rows[(size_t)number(row, "task")] = row;
    }
}

START_TEST(every_run_kept_to_its_plan_and_computed_what_one_core_computes)
{
    const char *const parts[] = {"graph", "pipeline", "split"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_t *part = json_object_get(measured, parts[i]);
        ck_assert_int_eq((int)number(part, "runs_kept"), RUNS);
        ck_assert_int_eq((int)number(part, "runs_right"), RUNS);
        ck_assert(number(part, "predicted_s") > 0);
        ck_assert(number(json_object_get(part, "measured_s"), "median") > 0);
        ck_assert(number(json_object_get(part, "error"), "median") >= 0);
    }
}
END_TEST

START_TEST(cores_run_their_tasks_in_the_order_planned_and_one_at_a_time)
{
    json_t *rows = traced("tasks");
    double planned[2] = {0};
    double free_from[2] = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        int core = (int)number(row, "processor");
        ck_assert(core == 0 || core == 1);
        ck_assert(number(row, "planned_start_s") >= planned[core] - 1e-9);
        ck_assert(number(row, "start_s") >= free_from[core]);
        ck_assert(number(row, "finish_s") > number(row, "start_s"));
        planned[core] = number(row, "planned_finish_s");
        free_from[core] = number(row, "finish_s");
    }
}
END_TEST

START_TEST(tasks_start_when_their_inputs_are_there_and_links_are_as_slow_as_is_said)
{
    json_t *parameters = json_object_get(measured, "parameters");
    json_t *tasks[TASKS] = {NULL};
    json_t *edges = traced("edges");
    double latency_s = number(parameters, "link_latency_s");
    double bytes_per_s = number(parameters, "link_bytes_per_s");
    size_t moved = 0;
    find_tasks(tasks);
    for (size_t i = 0; i < json_array_size(edges); i++) {
        json_t *edge = json_array_get(edges, i);
        json_t *from = tasks[(size_t)number(edge, "src")];
        json_t *to = tasks[(size_t)number(edge, "dst")];
        bool is_moved = json_is_true(json_object_get(edge, "moved"));
        ck_assert(is_moved == (number(from, "processor") != number(to, "processor")));
        ck_assert(number(to, "start_s") >= number(edge, "there_s"));
        if (is_moved) {
            double least_s = latency_s + number(edge, "bytes") / bytes_per_s;
            ck_assert(number(edge, "there_s") >= number(from, "finish_s") + least_s - 1e-6);
            moved++;
        }
    }
    json_t *graph = json_object_get(measured, "graph");
    ck_assert_uint_eq(json_array_size(edges), (size_t)number(graph, "edges"));
    ck_assert_uint_eq(moved, (size_t)number(graph, "transfers"));
}
END_TEST

START_TEST(what_is_predicted_is_not_below_what_is_possible)
{
    json_t *graph = json_object_get(measured, "graph");
    ck_assert(number(graph, "predicted_s") >= number(graph, "lower_bound_s") * (1 - 1e-9));
    ck_assert(number(graph, "predicted_s") <= number(graph, "one_core_predicted_s") * (1 + 1e-9));
}
END_TEST

static bool measure(void)
{
    char command[512];
    (void)snprintf(
        command, sizeof command,
        "exec '%s/../bench/planner_reality' --json --tasks %d --items 8 --runs %d --rounds 1 "
        "--trace",
        BOURSE_BIN_DIR, TASKS, RUNS);
    FILE *output = popen(command, "r");
    measured = output == NULL ? NULL : json_loadf(output, 0, NULL);
    return output != NULL && pclose(output) == 0 && measured != NULL;
}

int main(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) {
        (void)puts("skipped: fewer than two cores");
        return SKIPPED;
    }
    if (!measure()) {
        (void)fputs("the benchmark failed\n", stderr);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("planner_reality");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, every_run_kept_to_its_plan_and_computed_what_one_core_computes);
    tcase_add_test(tests, cores_run_their_tasks_in_the_order_planned_and_one_at_a_time);
    tcase_add_test(tests, tasks_start_when_their_inputs_are_there_and_links_are_as_slow_as_is_said);
    tcase_add_test(tests, what_is_predicted_is_not_below_what_is_possible);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    json_decref(measured);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
