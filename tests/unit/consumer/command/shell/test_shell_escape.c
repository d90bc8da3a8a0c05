/* The tests type bytes. A tilde at the beginning of a line is for the command, and everything else
 * is for the program. */
#include "consumer/command/shell/shell_escape.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Types the text in pieces of `step` bytes. Returns the first action, with what the program got. */
static enum shell_action type(const char *text, size_t step, char ret_bytes[128])
{
    struct shell_escape escape = {.is_in_line = false};
    enum shell_action action = SHELL_NOTHING;
    size_t total = 0;
    const size_t length = strlen(text);
    for (size_t at = 0; at < length && action == SHELL_NOTHING;) {
        const size_t size = length - at < step ? length - at : step;
        size_t count = 0;
        size_t used = 0;
        action = shell_escape_read(&escape, text + at, size, ret_bytes + total, &count, &used);
        ck_assert_uint_le(count, size + 1);
        ck_assert(action != SHELL_NOTHING || used == size);
        total += count;
        at += used;
    }
    ret_bytes[total] = '\0';
    return action;
}

static void check(const char *text, enum shell_action action, const char *for_program)
{
    for (size_t step = 1; step <= 8; step++) {
        char got[128];
        ck_assert_int_eq(type(text, step, got), action);
        ck_assert_str_eq(got, for_program);
    }
}

START_TEST(an_escape_is_read_at_the_beginning_of_a_line)
{
    check("~.", SHELL_LEAVE, "");
    check("ls\r~.rest", SHELL_LEAVE, "ls\r");
    check("ls\n~?", SHELL_HELP, "ls\n");
    check("ls\r~\x1a", SHELL_SUSPEND, "ls\r");
}
END_TEST

START_TEST(other_tildes_are_the_programs)
{
    check("ls ~.\r", SHELL_NOTHING, "ls ~.\r");
    check("\x1a\r~~\x1a", SHELL_NOTHING, "\x1a\r~\x1a");
    check("ls ~\x1a", SHELL_NOTHING, "ls ~\x1a");
    check("~~.", SHELL_NOTHING, "~.");
    check("~a~.", SHELL_NOTHING, "~a~.");
    check("~\r~.", SHELL_LEAVE, "~\r");
    check("a~~\r", SHELL_NOTHING, "a~~\r");
}
END_TEST

START_TEST(help_leaves_the_line_as_it_was)
{
    struct shell_escape escape = {.is_in_line = false};
    char got[8];
    size_t count = 0;
    size_t used = 0;
    ck_assert_int_eq(shell_escape_read(&escape, "~?~.", 4, got, &count, &used), SHELL_HELP);
    ck_assert_uint_eq(used, 2);
    ck_assert_int_eq(shell_escape_read(&escape, "~.", 2, got, &count, &used), SHELL_LEAVE);
    ck_assert_uint_eq(count, 0);
}
END_TEST

SUITE("shell_escape", NULL, NULL, TEST(an_escape_is_read_at_the_beginning_of_a_line),
      TEST(other_tildes_are_the_programs), TEST(help_leaves_the_line_as_it_was))
