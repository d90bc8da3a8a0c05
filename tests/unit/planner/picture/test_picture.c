/* Pictures of schedules, and what schedules use. What reports look like is golden_report's. */
#include "planner/picture/picture.h"

#include "base/cleanup.h"
#include "planner/picture/picture_plan.h"
#include "planner/schedule/usage.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct picture_schedule schedule_of(uint32_t tasks, uint32_t processors)
{
    static uint32_t processor[1000];
    static double start[1000], finish[1000];
    static const char *names[1000];
    static char texts[1000][16];
    for (uint32_t i = 0; i < 1000; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "n%u", i);
        names[i] = texts[i];
        processor[i] = i % processors;
        start[i] = i / processors;
        finish[i] = start[i] + 1;
    }
    return (struct picture_schedule){.task_count = tasks,
                                     .processor_count = processors,
                                     .processor = processor,
                                     .start = start,
                                     .finish = finish,
                                     .makespan = finish[tasks - 1],
                                     .unit = "ms",
                                     .task_names = names,
                                     .processor_names = names};
}

START_TEST(a_schedule_is_drawn_by_processor_in_its_own_unit)
{
    const struct picture_schedule schedule = schedule_of(4, 2);
    CLEANUP(picture_destroy) struct picture *picture = picture_of_schedule(&schedule);
    char *text = picture_timeline(picture, &(struct picture_style){.width = 40, .ascii = true});
    ck_assert_str_eq(text, "    |0ms        |0.7742ms   |       busy\n"
                           "n0  ############################### 100%\n"
                           "n1  ############################### 100%\n");
    free(text);
    text = picture_svg(picture);
    ck_assert_ptr_nonnull(strstr(text, "<title>task n3, 1ms to 2ms</title>"));
    free(text);
}
END_TEST

START_TEST(waiting_is_lighter_and_not_busy)
{
    static const uint32_t processor[] = {0, 0, 0, 1};
    static const double start[] = {0, 1, 3, 0};
    static const double finish[] = {1, 3, 4, 4};
    static const char *const names[] = {"there", "there", "and back", "all"};
    const struct picture_schedule schedule = {.task_count = 4,
                                              .processor_count = 2,
                                              .processor = processor,
                                              .start = start,
                                              .finish = finish,
                                              .makespan = 4,
                                              .unit = "ms",
                                              .task_names = names,
                                              .processor_names = names};
    CLEANUP(picture_destroy) struct picture *picture = picture_of_schedule(&schedule);
    picture->bars[1].is_wait = true;
    char *text = picture_timeline(picture, &(struct picture_style){.width = 44, .ascii = true});
    ck_assert_ptr_nonnull(strstr(text, "########________________########  50%\n"));
    ck_assert_ptr_nonnull(strstr(text, "################################ 100%\n"));
    ck_assert_ptr_nonnull(strstr(text, "_ waits for others or for a link\n"));
    free(text);
    text = picture_svg(picture);
    ck_assert_ptr_nonnull(strstr(text, "class=\"wait\""));
    ck_assert_ptr_nonnull(strstr(text, "<title>waits, 1ms to 3ms</title>"));
    ck_assert_ptr_nonnull(strstr(text, ">50%</text>"));
    free(text);
}
END_TEST

START_TEST(who_runs_nothing_stands_nowhere)
{
    struct picture_schedule schedule = schedule_of(1, 3);
    CLEANUP(picture_destroy) struct picture *picture = picture_of_schedule(&schedule);
    char *text = picture_timeline(picture, &(struct picture_style){.width = 40, .ascii = true});
    ck_assert_ptr_nonnull(strstr(text, "\nn0 "));
    ck_assert_ptr_null(strstr(text, "\nn1 "));
    free(text);
}
END_TEST

START_TEST(names_cannot_draw)
{
    struct picture_schedule schedule = schedule_of(2, 2);
    static const char *const hostile[] = {"<script>\"'&", "\033[31m\xef\xbf\xbe\xff"};
    schedule.task_names = hostile;
    schedule.processor_names = hostile;
    schedule.unit = "<&;\n";
    CLEANUP(picture_destroy) struct picture *picture = picture_of_schedule(&schedule);
    picture->title = hostile[0];
    picture->line = hostile[1];
    picture->note = "]]>";
    char *text = picture_timeline(picture, &(struct picture_style){.width = 80});
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_null(strstr(text, "<&"));
    free(text);
    text = picture_svg(picture);
    ck_assert_ptr_null(strstr(text, "<script"));
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_null(strstr(text, "\xef\xbf\xbe"));
    ck_assert_ptr_nonnull(strstr(text, "<title>task &lt;script&gt;&quot;&#39;&amp;, "));
    ck_assert_ptr_nonnull(strstr(text, "?[31m?\?</text>"));
    ck_assert_ptr_nonnull(strstr(text, "]]&gt;"));
    free(text);
}
END_TEST

START_TEST(many_processors_are_a_few_lines_and_a_rest)
{
    const struct picture_schedule schedule = schedule_of(1000, 100);
    CLEANUP(picture_destroy) struct picture *picture = picture_of_schedule(&schedule);
    char *text = picture_timeline(picture, &(struct picture_style){.width = 80, .ascii = true});
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    ck_assert_uint_eq(lines, 33);
    ck_assert_ptr_nonnull(strstr(text, "\n69 more processors "));
    free(text);
    text = picture_svg(picture);
    ck_assert_ptr_nonnull(strstr(text, " tasks, 100% busy, "));
    free(text);
}
END_TEST

START_TEST(what_goes_from_one_to_another_is_counted_by_link)
{
    static const double costs[] = {1, 1, 1, 1, 2, 2};
    static const struct workload_link links[] = {{0, 1, 0.5, 10}, {1, 0, 0.25, 4}};
    static const struct workload_edge edges[] = {{0, 1, 20}, {0, 2, 8}, {1, 2, 12}};
    const struct workload_input input = {.task_count = 3,
                                         .processor_count = 2,
                                         .link_count = 2,
                                         .edge_count = 3,
                                         .costs = costs,
                                         .links = links,
                                         .edges = edges};
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(3);
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    static const uint32_t sequence[] = {0, 1, 2};
    static const uint32_t where[] = {0, 1, 0};
    double scratch[2];
    ck_assert(schedule_time(graph, sequence, where, scratch, schedule));

    CLEANUP(usage_destroy) struct usage *usage = usage_create(graph, schedule);
    ck_assert_uint_eq(usage->processors[0].tasks, 2);
    ck_assert_double_eq(usage->processors[0].busy, 3);
    ck_assert_double_eq(usage->processors[1].busy, 1);
    ck_assert_uint_eq(usage->transfers, 2);
    ck_assert_double_eq(usage->bytes, 32); /* what stays is not moved */
    ck_assert_uint_eq(usage->link_count, 2);
    ck_assert_uint_eq(usage->links[0].from, 1); /* the busier first */
    ck_assert_double_eq(usage->links[0].busy, 3.25);
    ck_assert_double_eq(usage->links[1].busy, 2.5);
    ck_assert_double_eq(usage->ready[0], 0); /* waits for nobody */
    ck_assert_double_eq(usage->ready[1], schedule->finish[0] + 2.5);
    ck_assert_double_eq(usage->ready[2], schedule->finish[1] + 3.25); /* the later of two */
}
END_TEST

/* The second of three begins last, and the device of the first two has two lanes. */
static struct plan job_plan(void)
{
    static struct plan_row rows[] = {
        {.device = 1, .lane = 0, .start_s = 0, .finish_s = 0.004},
        {.device = 1, .lane = 1, .first_step = 1, .start_s = 0.002, .finish_s = 0.004},
        {.device = 1, .lane = 1, .first_step = 2, .start_s = 0, .finish_s = 0.001}};
    static struct plan_use uses[] = {{.lanes = 0}, {.row_count = 3, .lanes = 2}};
    return (struct plan){.rows = rows,
                         .row_count = 3,
                         .uses = uses,
                         .lanes = 2,
                         .device_count = 2,
                         .total = {.makespan_s = {.value = 0.004, .source = FIGURE_DECLARED}}};
}

START_TEST(the_plan_of_a_job_is_drawn_by_device_and_lane)
{
    static const struct picture_device devices[] = {{.label = "idle/a"},
                                                    {.label = "SIM b/c", .is_simulated = true}};
    static const char *const names[] = {"cut", "join", "sum"};
    const struct plan plan = job_plan();
    CLEANUP(picture_destroy)
    struct picture *picture =
        picture_of_plan(&(struct picture_plan){.plan = &plan, .labels = names, .devices = devices});
    char *text = picture_timeline(picture, &(struct picture_style){.width = 50, .ascii = true});
    ck_assert_ptr_nonnull(strstr(text, "SIM b/c #0"));
    ck_assert_ptr_nonnull(strstr(text, "100%\n"));
    ck_assert_ptr_nonnull(strstr(text, " 75%\n"));
    ck_assert_ptr_null(strstr(text, "idle/a"));
    free(text);
    text = picture_svg(picture);
    ck_assert_ptr_nonnull(strstr(text, "<title>subtask join, 2ms to 4ms</title>"));
    free(text);
}
END_TEST

START_TEST(bars_of_a_job_stand_by_device_and_start)
{
    const struct plan plan = job_plan();
    struct picture_bar bars[3];
    picture_plan_bars(&plan, 500, bars);
    static const uint32_t numbers[] = {0, 2, 1};
    static const int64_t from_ns[] = {500, 500, 2000500};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(bars[i].group, 1);
        ck_assert_uint_eq(bars[i].number, numbers[i]);
        ck_assert_int_eq(bars[i].from, from_ns[i]);
        ck_assert(!bars[i].is_bad && !bars[i].is_wait);
    }
    ck_assert_int_eq(bars[1].until, 1000500);
}
END_TEST

START_TEST(rows_of_a_plan_are_cut_where_they_wait)
{
    static struct plan_row rows[] = {
        {.device = 0, .start_s = 0, .finish_s = 0.004},
        {.device = 1, .start_s = 0.001, .finish_s = 0.004},
    };
    static struct plan_wait waits[] = {{.row = 1, .from_s = 0.002, .until_s = 0.003}};
    static struct plan_use uses[2];
    static const char *const labels[] = {"there", "back"};
    static const struct picture_device devices[] = {{.label = "h100 1"}, {.label = "h100 2"}};
    struct plan plan = {.rows = rows,
                        .row_count = 2,
                        .waits = waits,
                        .wait_count = 1,
                        .uses = uses,
                        .device_count = 2,
                        .total = {.makespan_s = {.value = 0.004, .source = FIGURE_DECLARED}}};
    const struct picture_plan drawn = {
        .plan = &plan, .labels = labels, .devices = devices, .unit_s = 1e-3, .unit = "ms"};
    CLEANUP(picture_destroy) struct picture *picture = picture_of_plan(&drawn);
    ck_assert_uint_eq(picture->bar_count, 4); /* the second row is two pieces and a wait */
    char *text = picture_timeline(picture, &(struct picture_style){.width = 50, .ascii = true});
    ck_assert_ptr_nonnull(strstr(text, "h100 1"));
    ck_assert_ptr_nonnull(strstr(text, "100%\n"));
    ck_assert_ptr_nonnull(strstr(text, " 50%\n"));
    free(text);
    text = picture_svg(picture);
    ck_assert_ptr_nonnull(strstr(text, "<title>waits, 2ms to 3ms</title>"));
    ck_assert_ptr_nonnull(strstr(text, "<title>step back, 1ms to 2ms</title>"));
    free(text);
    plan.total.makespan_s.value = 0;
    ck_assert_ptr_null(picture_of_plan(&drawn)); /* nothing to draw */
}
END_TEST

SUITE("picture", NULL, NULL, TEST(a_schedule_is_drawn_by_processor_in_its_own_unit),
      TEST(waiting_is_lighter_and_not_busy), TEST(who_runs_nothing_stands_nowhere),
      TEST(names_cannot_draw), TEST(many_processors_are_a_few_lines_and_a_rest),
      TEST(what_goes_from_one_to_another_is_counted_by_link),
      TEST(the_plan_of_a_job_is_drawn_by_device_and_lane),
      TEST(bars_of_a_job_stand_by_device_and_start), TEST(rows_of_a_plan_are_cut_where_they_wait))
