#include "runtime/terminal.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pty.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Runs `print` in a child whose stdout and stderr are a terminal, or a pipe, and returns what
 * came. */
static void run_on(bool is_terminal, void (*print)(void), char *ret_text, size_t capacity)
{
    int ends[2];
    if (is_terminal) {
        ck_assert_int_eq(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
        struct termios modes;
        ck_assert_int_eq(tcgetattr(ends[1], &modes), 0);
        cfmakeraw(&modes); /* newlines stay newlines */
        ck_assert_int_eq(tcsetattr(ends[1], TCSANOW, &modes), 0);
    } else {
        ck_assert_int_eq(pipe(ends), 0);
    }
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        bool ok = dup2(ends[1], STDOUT_FILENO) >= 0 && dup2(ends[1], STDERR_FILENO) >= 0;
        (void)close(ends[0]);
        (void)close(ends[1]);
        terminal_guard();
        print();
        _exit(ok && fflush(stdout) == 0 && fflush(stderr) == 0 ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], ret_text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got; /* a terminal whose last user has gone ends with EIO */
    }
    ret_text[length] = '\0';
    (void)close(ends[0]);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void print_tricks(void)
{
    (void)printf("job %s\n", "\033[2Ja\r\xe2\x80\xae\xc3\xa4\xff");
    (void)fprintf(stderr, "bourse: %s\n",
                  "\xc2\x9b"
                  "5n\033]0;t\a");
    (void)fputs("\033[1mTITLE\033[0m \033\033[32mgreen\033[0m\033[3", stdout);
    (void)fputs("3m\n", stdout);
}

START_TEST(a_terminal_is_not_steered_by_what_is_printed)
{
    char text[1024];
    run_on(true, print_tricks, text, sizeof text);
    ck_assert_str_eq(text, "job \\x1b[2Ja\\r\\u202e\xc3\xa4\\xff\n"
                           "bourse: \\u009b5n\\x1b]0;t\\x07\n"
                           "\033[1mTITLE\033[0m \\x1b\033[32mgreen\033[0m\\x1b[33m\n");
}
END_TEST

START_TEST(a_pipe_gets_it_as_it_is)
{
    char text[1024];
    run_on(false, print_tricks, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "job \033[2Ja\r\xe2\x80\xae\xc3\xa4\xff\n"));
    ck_assert_ptr_nonnull(strstr(text, "\033[33m"));
}
END_TEST

static void print_a_screen(void)
{
    (void)fputs("first\n", stdout);
    terminal_control(stdout, "\033[1A\033[J");
    (void)fputs("second", stdout);
    terminal_control(stderr, "\r");
    (void)fputs("line", stderr);
    terminal_control(stderr, "\033[K");
}

START_TEST(our_own_sequences_pass_in_their_place)
{
    char text[1024];
    run_on(true, print_a_screen, text, sizeof text);
    ck_assert_str_eq(text, "first\n\033[1A\033[J\rline\033[Ksecond");
}
END_TEST

static void print_much(void)
{
    for (int i = 0; i < 2000; i++) { /* characters and colours fall across the stream's buffers */
        (void)fputs("\xe2\x82\xac\033[1m", stdout);
    }
}

START_TEST(nothing_is_lost_between_two_buffers)
{
    static char text[32768];
    run_on(true, print_much, text, sizeof text);
    ck_assert_uint_eq(strlen(text), 2000 * 7);
    for (int i = 0; i < 2000; i++) {
        ck_assert_mem_eq(text + i * 7, "\xe2\x82\xac\033[1m", 7);
    }
}
END_TEST

SUITE("terminal", NULL, NULL, TEST(a_terminal_is_not_steered_by_what_is_printed),
      TEST(a_pipe_gets_it_as_it_is), TEST(our_own_sequences_pass_in_their_place),
      TEST(nothing_is_lost_between_two_buffers))
