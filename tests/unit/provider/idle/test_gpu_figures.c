/* The tests read lines with figures of GPUs. Anything in a line may be absent, impossible or no
 * figure, because the program that wrote the line loads a maker's library. */
#include "provider/idle/gpu_figures.h"
#include "provider/idle/process_sensor.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gpu_figures figures[2];
static struct problem problem;

static void setup(void)
{
    memset(figures, 0x55, sizeof figures);
    figures[0].is_lost = figures[1].is_lost = false;
    (void)snprintf(figures[0].id, GPU_ID_SIZE, "a");
    (void)snprintf(figures[1].id, GPU_ID_SIZE, "b");
    problem.text[0] = '\0';
}

static bool read_line(const char *line)
{
    return gpu_figures_read(line, strlen(line), figures, 2, &problem);
}

static void check_unknown(const struct gpu_figures *of)
{
    ck_assert(!of->is_lost && !of->is_split && !of->compute.is_known && !of->graphics.is_known);
    ck_assert_int_eq(of->memory_used, -1);
    ck_assert_int_eq(of->memory_total, -1);
    ck_assert_int_eq(of->busy_percent, -1);
    ck_assert_int_eq(of->power_mw, -1);
    ck_assert_int_eq(of->power_limit_mw, -1);
    ck_assert_int_eq(of->energy_mj, -1);
    ck_assert_int_eq(of->celsius, -1);
    ck_assert_str_eq(of->why, "");
}

START_TEST(devices_are_found_by_their_place_and_absent_ones_are_unknown)
{
    ck_assert(read_line("{\"problem\":\"\",\"devices\":[{\"id\":\"c\",\"celsius\":1},"
                        "{\"id\":\"b\",\"celsius\":50,\"compute\":[7,8],\"lost\":false}]}"));
    check_unknown(&figures[0]);
    ck_assert_str_eq(figures[0].id, "a");
    ck_assert_int_eq(figures[1].celsius, 50);
    ck_assert_uint_eq(figures[1].compute.count, 2);
    ck_assert_int_eq(figures[1].compute.pids[1], 8);
}
END_TEST

START_TEST(the_memory_of_each_process_is_known_or_not)
{
    ck_assert(read_line("{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"compute\":[7,0,8,9],"
                        "\"compute_memory\":[100,5,-1]}]}"));
    ck_assert_uint_eq(figures[0].compute.count, 3); /* 0 names nobody */
    ck_assert_int_eq(figures[0].compute.memory_bytes[0], 100);
    ck_assert_int_eq(figures[0].compute.memory_bytes[1], -1);
    ck_assert_int_eq(figures[0].compute.memory_bytes[2], -1); /* the list is shorter */
}
END_TEST

START_TEST(impossible_figures_are_unknown)
{
    ck_assert(read_line("{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"celsius\":-3,"
                        "\"busy_percent\":101,\"energy_mj\":9223372036854775807,\"power_mw\":"
                        "\"61\",\"power_limit_mw\":1e3,"
                        "\"memory_used\":9223372036854775807,\"memory_total\":null,"
                        "\"compute\":{},\"graphics\":3,\"lost\":1,\"why\":[]}]}"));
    check_unknown(&figures[0]);
}
END_TEST

START_TEST(processes_without_a_number_are_noted_and_too_many_are_unknown)
{
    char line[2048] = "{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"compute\":[0,-1,5000000000,"
                      "\"7\",9],\"graphics\":[";
    for (int i = 0; i <= GPU_PROCESSES_MAX; i++) {
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), "%s%d", i > 0 ? "," : "",
                       i + 1);
    }
    (void)snprintf(line + strlen(line), sizeof line - strlen(line), "]}]}");
    ck_assert(read_line(line));
    ck_assert(figures[0].compute.is_known && !figures[0].graphics.is_known);
    ck_assert_uint_eq(figures[0].compute.count, 1);
    ck_assert_int_eq(figures[0].compute.pids[0], 9);
    ck_assert(figures[0].compute.has_unnamed && !figures[0].graphics.has_unnamed);
    ck_assert_uint_eq(figures[0].graphics.count, 0);
    ck_assert(read_line("{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"compute\":[0,0]},"
                        "{\"id\":\"b\",\"compute\":[]}]}"));
    ck_assert(figures[0].compute.is_known && figures[0].compute.has_unnamed);
    ck_assert(figures[1].compute.is_known && !figures[1].compute.has_unnamed);
}
END_TEST

/* The driver lost the device, hung, and did not start again: nothing of this is an answer. */
START_TEST(a_lost_device_stays_lost_until_it_tells_a_figure)
{
    static const char *const silent[] = {
        "{\"problem\":\"the driver is not loaded\",\"devices\":[]}", "no line of figures",
        "{\"problem\":\"\",\"devices\":[]}",
        ("{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"lost\":false,\"split\":false,"
         "\"why\":{\"device\":\"the library does not find it\"}}]}")};
    ck_assert(read_line("{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"lost\":true,"
                        "\"celsius\":40},{\"id\":\"b\",\"celsius\":40}]}"));
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        (void)read_line(silent[i]);
        ck_assert_msg(figures[0].is_lost && !figures[1].is_lost, "%s", silent[i]);
        gpu_figures_clear(&figures[0]);
        ck_assert(figures[0].is_lost);
    }
    ck_assert(read_line("{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"celsius\":40}]}"));
    ck_assert(!figures[0].is_lost);
}
END_TEST

START_TEST(what_is_no_list_of_figures_clears_all)
{
    static const char *const lines[] = {"",
                                        "{",
                                        "[]",
                                        "{\"devices\":[]}",
                                        "{\"problem\":\"\"}",
                                        "{\"problem\":\"\",\"devices\":{}}"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        setup();
        ck_assert(!read_line(lines[i]));
        ck_assert_str_eq(problem.text, "bourse-kernel prints no figures");
        check_unknown(&figures[0]);
        check_unknown(&figures[1]);
    }
    ck_assert(!read_line("{\"problem\":\"no \\u001b[31mdriver\",\"devices\":[]}"));
    ck_assert_msg(strchr(problem.text, '\033') == NULL, "%s", problem.text);
}
END_TEST

START_TEST(reasons_are_printable_and_end_with_their_room)
{
    char line[4096] =
        "{\"problem\":\"\",\"devices\":[{\"id\":\"a\",\"why\":{\"celsius\":\"\\u0007\"";
    for (int i = 0; i < 40; i++) {
        (void)snprintf(line + strlen(line), sizeof line - strlen(line),
                       ",\"figure%d\":\"the device does not tell\"", i);
    }
    (void)snprintf(line + strlen(line), sizeof line - strlen(line), "}}]}");
    ck_assert(read_line(line));
    ck_assert_uint_lt(strlen(figures[0].why), GPU_WHY_SIZE);
    ck_assert_ptr_null(strchr(figures[0].why, '\a'));
    ck_assert_ptr_nonnull(strstr(figures[0].why, "figure0: the device does not tell; figure1"));
}
END_TEST

START_TEST(a_process_is_ours_others_or_gone)
{
    char name[IDLE_PROGRAM_SIZE];
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) == 0 ? 0 : 1);
    }
    ck_assert_int_eq(process_sensor_owner("", getpid(), getpid(), name), PROCESS_OURS);
    ck_assert_int_eq(process_sensor_owner("", child, getpid(), name), PROCESS_OURS);
    ck_assert_str_ne(name, "");
    ck_assert_int_eq(process_sensor_owner("", getppid(), getpid(), name), PROCESS_OTHERS);
    ck_assert_int_eq(process_sensor_owner("", getpid(), child, name), PROCESS_OTHERS);
    ck_assert_int_eq(process_sensor_owner("/nonexistent", child, getpid(), name), PROCESS_OTHERS);
    ck_assert_str_eq(name, ""); /* hidden, and still there */
    (void)close(pipes[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(process_sensor_owner("", child, getpid(), name), PROCESS_GONE);
}
END_TEST

SUITE("figures of GPUs", setup, NULL,
      TEST(devices_are_found_by_their_place_and_absent_ones_are_unknown),
      TEST(the_memory_of_each_process_is_known_or_not), TEST(impossible_figures_are_unknown),
      TEST(processes_without_a_number_are_noted_and_too_many_are_unknown),
      TEST(a_lost_device_stays_lost_until_it_tells_a_figure),
      TEST(what_is_no_list_of_figures_clears_all),
      TEST(reasons_are_printable_and_end_with_their_room), TEST(a_process_is_ours_others_or_gone))
