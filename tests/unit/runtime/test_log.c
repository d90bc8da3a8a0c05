#include "runtime/log.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The test puts into a pipe what log_line writes to stderr, and keeps it here. */
static char written[16384];

static void catch_stderr(int ret_pipe[2])
{
    ck_assert_int_eq(pipe(ret_pipe), 0);
    ck_assert_int_ge(dup2(ret_pipe[1], STDERR_FILENO), 0);
}

static const char *caught(const int pipes[2])
{
    ck_assert_int_eq(close(pipes[1]), 0);
    ck_assert_int_eq(close(STDERR_FILENO), 0);
    ssize_t length = read(pipes[0], written, sizeof written - 1);
    ck_assert_int_ge(length, 0);
    written[length] = '\0';
    return written;
}

START_TEST(a_line_has_time_level_and_message)
{
    int pipes[2];
    catch_stderr(pipes);
    log_setup(LOG_LEVEL_INFO, false);
    log_info("started with %d %s", 3, "slots");
    log_debug("not shown");
    log_error("shown");
    log_error("two\nlines");
    const char *text = caught(pipes);
    ck_assert_uint_eq(strspn(text, "0123456789-:.TZ"), strlen("2026-01-02T03:04:05.678Z"));
    ck_assert_ptr_nonnull(strstr(text, "Z info started with 3 slots\n"));
    ck_assert_ptr_nonnull(strstr(text, "Z error shown\n"));
    ck_assert_ptr_nonnull(strstr(text, "Z error two lines\n"));
    ck_assert_ptr_null(strstr(text, "debug"));
}
END_TEST

START_TEST(a_json_line_holds_any_text)
{
    int pipes[2];
    catch_stderr(pipes);
    log_setup(LOG_LEVEL_DEBUG, true);
    log_warning("a \"quote\", a \\ and a\nbreak");
    const char *text = caught(pipes);
    ck_assert_int_eq(strncmp(text, "{\"time\":\"", 9), 0);
    ck_assert_ptr_nonnull(strstr(
        text,
        "\"level\":\"warning\",\"message\":\"a \\\"quote\\\", a \\\\ and a\\u000abreak\"}\n"));
}
END_TEST

START_TEST(a_long_message_is_cut_and_ends_its_line)
{
    int pipes[2];
    char longest[5000];
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    catch_stderr(pipes);
    log_setup(LOG_LEVEL_INFO, true);
    log_info("%s", longest);
    const char *text = caught(pipes);
    size_t length = strlen(text);
    ck_assert_uint_lt(length, 3000);
    ck_assert_str_eq(text + length - 3, "\"}\n");
    ck_assert_ptr_eq(strchr(text, '\n'), text + length - 1);
}
END_TEST

START_TEST(levels_have_names)
{
    enum log_level level = LOG_LEVEL_DEBUG;
    ck_assert(log_level_from("error", &level));
    ck_assert_int_eq(level, LOG_LEVEL_ERROR);
    ck_assert(log_level_from("debug", &level));
    ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
    ck_assert(!log_level_from("verbose", &level));
    ck_assert(!log_level_from("", &level));
    ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
}
END_TEST

SUITE("log", NULL, NULL, TEST(a_line_has_time_level_and_message), TEST(a_json_line_holds_any_text),
      TEST(a_long_message_is_cut_and_ends_its_line), TEST(levels_have_names))
