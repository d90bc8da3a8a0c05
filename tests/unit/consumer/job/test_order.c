/* The order of tasks, the parts that they make, and how urgent each is. */
#include "consumer/job/order.h"

#include "base/cleanup.h"
#include "formats/requirement.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct job_file *parsed(const char *text)
{
    struct problem problem;
    struct job_file *job = job_file_parse(text, strlen(text), "job.yaml", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    return job;
}

static struct order *ordered(const struct job_file *job)
{
    struct problem problem = {""};
    struct order *order = order_tasks(job, &problem);
    ck_assert_msg(order != NULL, "%s", problem.text);
    return order;
}

static void check_names(const struct job_file *job, const struct order *order, const char *wanted)
{
    char text[512] = "";
    for (size_t i = 0; i < job->task_count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, job->tasks[order->task[i]].name);
    }
    ck_assert_str_eq(text, wanted);
}

static void check_needs(const struct order_part *part, uint32_t subtasks, const char *wanted)
{
    char text[2048];
    ck_assert(requirement_text(&part->needs, text, sizeof text));
    ck_assert_str_eq(text, wanted);
    ck_assert_uint_eq(part->subtasks, subtasks);
}

START_TEST(each_comes_after_what_it_waits_for)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = parsed("run: [x]\n"
                                  "limit: 1h\n"
                                  "tasks:\n"
                                  "- {name: join, after: [left, right, left], expect: 1s}\n"
                                  "- {name: right, after: split, expect: 30s}\n"
                                  "- {name: left, after: split, expect: 10s}\n"
                                  "- {name: split, expect: 2s}\n"
                                  "- {name: alone}\n");
    CLEANUP(order_destroy) struct order *order = ordered(job);
    check_names(job, order, "split right left join alone");
    ck_assert_uint_eq(order->part_count, 1);
    check_needs(&order->parts[0], 5, "program = x");
    ck_assert_int_eq(order->parts[0].expect_ns,
                     (1000 + 30000 + 10000 + 2000 + 5000) * NS_PER_MS / 5);
    const struct order_graph *graph = &order->graph;
    const uint32_t counts[] = {0, 1, 1, 2, 0};
    const uint32_t after[] = {0, 0, 1, 2};
    const uint32_t ranks[] = {33000, 31000, 11000, 1000, 5000};
    ck_assert_uint_eq(graph->count, 5);
    ck_assert_uint_eq(graph->edge_count, 4);
    ck_assert_mem_eq(graph->after_count, counts, sizeof counts);
    ck_assert_mem_eq(graph->after, after, sizeof after);
    ck_assert_mem_eq(graph->rank, ranks, sizeof ranks);
    ck_assert_int_eq(order_longest_ms(graph), 33000);
}
END_TEST

START_TEST(those_of_a_kind_stand_together_as_far_as_they_can)
{
    CLEANUP(job_file_destroy)
    struct job_file *job =
        parsed("run: [x]\n"
               "tasks:\n"
               "- {name: a1}\n"
               "- {name: g1, needs: {kind: gpu}, slots: 2, limit: 1m}\n"
               "- {name: a2}\n"
               "- {name: g2, needs: kind = gpu, slots: 2, limit: 1m, after: a3}\n"
               "- {name: a3}\n"
               "- {name: last, after: [g1, g2]}\n");
    CLEANUP(order_destroy) struct order *order = ordered(job);
    check_names(job, order, "a1 a2 a3 g1 g2 last");
    ck_assert_uint_eq(order->part_count, 3);
    check_needs(&order->parts[0], 3, "program = x");
    check_needs(&order->parts[1], 2, "kind = gpu and program = x");
    check_needs(&order->parts[2], 1, "program = x");
    ck_assert_uint_eq(order->parts[1].slots, 2);
    ck_assert_int_eq(order->parts[1].limit_ms, 60000);
    ck_assert_int_eq(order->parts[1].term_ms, 120000);
}
END_TEST

START_TEST(too_many_programs_share_a_device_that_has_them_all)
{
    enum { COUNT = 40 };
    char text[4096] = "tasks:\n";
    for (int i = 0; i < COUNT; i++) {
        size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "- {name: t%d, run: [%s]", i,
                       i % 2 == 0 ? "even" : "odd");
        length += strlen(text + length);
        (void)snprintf(text + length, sizeof text - length, i > 0 ? ", after: t%d}\n" : "}\n",
                       i - 1);
    }
    CLEANUP(job_file_destroy) struct job_file *job = parsed(text);
    CLEANUP(order_destroy) struct order *order = ordered(job);
    ck_assert_uint_eq(order->part_count, 1);
    check_needs(&order->parts[0], COUNT, "program = even and program = odd");
    ck_assert_uint_eq(order->task[COUNT - 1], COUNT - 1);
}
END_TEST

START_TEST(kinds_that_take_turns_too_often_are_refused)
{
    char text[4096] = "run: [x]\ntasks:\n";
    for (int i = 0; i < 2 * ORDER_PARTS_MAX; i++) {
        size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "- {name: t%d, slots: %d", i,
                       1 + i % 2);
        length += strlen(text + length);
        (void)snprintf(text + length, sizeof text - length, i > 0 ? ", after: t%d}\n" : "}\n",
                       i - 1);
    }
    CLEANUP(job_file_destroy) struct job_file *job = parsed(text);
    struct problem problem = {""};
    ck_assert_ptr_null(order_tasks(job, &problem));
    ck_assert_str_eq(
        problem.text,
        "tasks: those that need unlike devices take turns more than 16 times; let more "
        "of them have the same needs, slots and limits");
}
END_TEST

START_TEST(what_is_ordered_can_be_sent)
{
    ck_assert_int_eq(ORDER_PARTS_MAX, LIMIT_PARTS + 1);
    ck_assert_int_eq(ORDER_PARTS_MAX, LIMIT_MANIFEST_PARTS);
}
END_TEST

START_TEST(a_bound_that_would_not_hold_is_refused)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = parsed("run: [x]\n"
                                  "tasks:\n"
                                  "- {name: a, at_most: 2}\n"
                                  "- {name: b, slots: 2, after: a}\n"
                                  "- {name: c, at_most: 2, after: b}\n");
    struct problem problem = {""};
    ck_assert_ptr_null(order_tasks(job, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "at_most"));
}
END_TEST

START_TEST(a_very_long_way_is_as_urgent_as_can_be_said)
{
    uint32_t rank[3];
    uint32_t after_count[] = {0, 1, 1};
    uint32_t after[] = {0, 1};
    struct order_graph graph = {
        .count = 3, .rank = rank, .after_count = after_count, .after = after, .edge_count = 2};
    order_rank(&graph, (const int64_t[]){1, UINT32_MAX * NS_PER_MS, UINT32_MAX * NS_PER_MS});
    ck_assert_uint_eq(rank[0], UINT32_MAX);
    ck_assert_uint_eq(rank[2], UINT32_MAX);
}
END_TEST

/* Files of unlike size: nobody waits for them. */
START_TEST(what_nobody_waits_for_is_as_urgent_as_it_is_long)
{
    uint32_t rank[3] = {9, 9, 9};
    struct order_graph graph = {.count = 3, .rank = rank};
    order_rank(&graph, (const int64_t[]){7 * NS_PER_MS, 30 * NS_PER_MS, NS_PER_MS});
    ck_assert_uint_eq(rank[0], 7);
    ck_assert_uint_eq(rank[1], 30);
    ck_assert_uint_eq(rank[2], 1);
    ck_assert_int_eq(order_longest_ms(&graph), 0);
}
END_TEST

/* Many tasks that all wait for one, and one that waits for them, the last ones first. */
/* Whatever the order asks for a guess: that is known of nobody. */
START_TEST(what_is_known_of_each_task_is_told_and_a_guess_is_not)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = parsed("executor: noop\ntasks:\n"
                                  "- {name: long, after: cut, expect: 8s}\n"
                                  "- {name: unknown, after: cut}\n"
                                  "- {name: cut, expect: 100ms}\n");
    CLEANUP(order_destroy) struct order *order = ordered(job);
    for (uint32_t i = 0; i < 3; i++) {
        static const uint32_t expect_ms[] = {8000, 0, 100}; /* by place in the file */
        ck_assert_uint_eq(order->graph.expect_ms[i], expect_ms[order->task[i]]);
    }
    ck_assert_uint_eq(order->graph.rank[0], 8100);
    ck_assert_uint_eq(order_known_ms(INT64_MAX), UINT32_MAX);
}
END_TEST

START_TEST(a_wide_graph_is_ordered)
{
    enum { COUNT = 20000 };
    size_t size = 64 * COUNT;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    size_t length =
        (size_t)snprintf(text, size, "executor: noop\ntasks:\n- {name: last, after: [m0");
    for (int i = 1; i < COUNT; i++) {
        length += (size_t)snprintf(text + length, size - length, ", m%d", i);
    }
    length += (size_t)snprintf(text + length, size - length, "]}\n");
    for (int i = COUNT; i-- > 0;) {
        length +=
            (size_t)snprintf(text + length, size - length, "- {name: m%d, after: first}\n", i);
    }
    (void)snprintf(text + length, size - length, "- name: first\n");
    CLEANUP(job_file_destroy) struct job_file *job = parsed(text);
    CLEANUP(order_destroy) struct order *order = ordered(job);
    ck_assert_uint_eq(order->graph.edge_count, 2 * COUNT);
    ck_assert_uint_eq(order->task[0], COUNT + 1);
    ck_assert_uint_eq(order->task[COUNT + 1], 0);
    ck_assert_uint_eq(order->graph.rank[0], 15000);
    check_needs(&order->parts[0], COUNT + 2, "executor = noop");
    free(text);
}
END_TEST

SUITE("order", NULL, NULL, TEST(each_comes_after_what_it_waits_for),
      TEST(those_of_a_kind_stand_together_as_far_as_they_can),
      TEST(too_many_programs_share_a_device_that_has_them_all),
      TEST(kinds_that_take_turns_too_often_are_refused), TEST(what_is_ordered_can_be_sent),
      TEST(a_bound_that_would_not_hold_is_refused),
      TEST(a_very_long_way_is_as_urgent_as_can_be_said),
      TEST(what_nobody_waits_for_is_as_urgent_as_it_is_long),
      TEST(what_is_known_of_each_task_is_told_and_a_guess_is_not), TEST(a_wide_graph_is_ordered))
