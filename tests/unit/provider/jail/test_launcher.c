#include "provider/jail/launcher.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int launch(struct launcher *launcher, const char *script, const int *files,
                  size_t file_count)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct launch request = {
        .argv = argv, .files = files, .file_count = file_count, .error_file = -1};
    struct problem problem;
    int control = -1;
    ck_assert_msg(launcher_launch(launcher, &request, &control, &problem), "%s", problem.text);
    return control;
}

static struct launcher *start(void)
{
    struct launcher *launcher = NULL;
    struct problem problem;
    ck_assert_msg(launcher_start(&launcher, &problem), "%s", problem.text);
    return launcher;
}

enum { LONG_MS = 60000 };

START_TEST(a_program_runs_and_its_status_comes_back)
{
    struct launcher *launcher = start();
    int control = launch(launcher, "exit 7", NULL, 0);
    int status = 0;
    ck_assert(launcher_wait(control, LONG_MS, &status));
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 7);
    (void)close(control);
    launcher_stop(&launcher);
}
END_TEST

START_TEST(descriptors_get_their_places_and_no_other_is_there)
{
    struct launcher *launcher = start();
    int files[] = {memfd_create("a", 0),
                   memfd_create("b", 0)}; /* not close-on-exec: still none leaks */
    int control =
        launch(launcher, "echo one >&3; echo two >&4; ls /proc/self/fd >&4; env >&4", files, 2);
    int status = 0;
    char text[256] = "";
    ck_assert(launcher_wait(control, LONG_MS, &status));
    ck_assert_int_eq(pread(files[0], text, sizeof text, 0), 4);
    ck_assert_str_eq(text, "one\n");
    ck_assert_int_gt(pread(files[1], text, sizeof text - 1, 0), 0);
    ck_assert_ptr_eq(strstr(text, "two\n0\n1\n2\n3\n4\n5\nPWD="), text); /* 5 is ls's own */
    ck_assert_ptr_null(strstr(text, "HOME="));
    (void)close(control);
    launcher_stop(&launcher);
}
END_TEST

START_TEST(closing_the_control_socket_kills)
{
    struct launcher *launcher = start();
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    int control = launch(launcher, "echo x >&3; exec sleep 1000", &ends[1], 1);
    (void)close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    (void)close(control);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0); /* the last writer is dead */
    (void)close(ends[0]);
    launcher_stop(&launcher);
}
END_TEST

START_TEST(killing_is_reported)
{
    struct launcher *launcher = start();
    int control = launch(launcher, "exec sleep 1000", NULL, 0);
    int status = 0;
    ck_assert(!launcher_wait(control, 0, &status));
    launcher_kill(control);
    ck_assert(launcher_wait(control, LONG_MS, &status));
    ck_assert(WIFSIGNALED(status));
    (void)close(control);
    launcher_stop(&launcher);
}
END_TEST

START_TEST(programs_die_with_the_launcher_and_it_with_the_agent)
{
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t agent = fork();
    if (agent == 0) {
        struct launcher *launcher = start();
        (void)launch(launcher, "echo x >&3; exec sleep 1000", &ends[1], 1);
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(kill(agent, SIGKILL), 0);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);
    ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
    (void)close(ends[0]);
}
END_TEST

START_TEST(a_missing_program_is_told_on_its_stderr)
{
    struct launcher *launcher = start();
    const char *const argv[] = {"/nowhere/program", NULL};
    int errors = memfd_create("errors", MFD_CLOEXEC);
    struct launch request = {.argv = argv, .error_file = errors};
    struct problem problem;
    int control = -1;
    int status = 0;
    char text[128] = "";
    ck_assert(launcher_launch(launcher, &request, &control, &problem));
    ck_assert(launcher_wait(control, LONG_MS, &status));
    ck_assert_int_gt(pread(errors, text, sizeof text - 1, 0), 0);
    ck_assert_ptr_nonnull(strstr(text, "/nowhere/program"));
    (void)close(control);
    (void)close(errors);
    launcher_stop(&launcher);
}
END_TEST

START_TEST(many_at_a_time_each_with_its_own_status)
{
    struct launcher *launcher = start();
    int controls[32];
    for (int i = 0; i < 32; i++) {
        char script[32];
        (void)snprintf(script, sizeof script, "exit %d", i);
        controls[i] = launch(launcher, script, NULL, 0);
    }
    for (int i = 31; i >= 0; i--) {
        int status = 0;
        ck_assert(launcher_wait(controls[i], LONG_MS, &status));
        ck_assert_int_eq(WEXITSTATUS(status), i);
        (void)close(controls[i]);
    }
    launcher_stop(&launcher);
}
END_TEST

SUITE("launcher", NULL, NULL, TEST(a_program_runs_and_its_status_comes_back),
      TEST(descriptors_get_their_places_and_no_other_is_there),
      TEST(closing_the_control_socket_kills), TEST(killing_is_reported),
      TEST(programs_die_with_the_launcher_and_it_with_the_agent),
      TEST(a_missing_program_is_told_on_its_stderr), TEST(many_at_a_time_each_with_its_own_status))
