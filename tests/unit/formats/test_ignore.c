#include "formats/ignore.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool leaves_out(const char *lines, const char *path)
{
    struct problem problem = {.text = ""};
    const size_t length = strlen(path);
    const bool is_folder = path[length - 1] == '/';
    char name[256];
    (void)snprintf(name, sizeof name, "%.*s", (int)(length - is_folder), path);
    CLEANUP(ignore_destroy) struct ignore *ignore = ignore_parse(lines, strlen(lines), &problem);
    ck_assert_msg(ignore != NULL, "%s", problem.text);
    return ignore_leaves_out(ignore, name, is_folder);
}

struct example {
    const char *lines, *path; /* a folder's path ends with a slash */
    bool is_left_out;
};

/* `git check-ignore` agrees, and asks for the folders on the way itself. */
START_TEST(lines_match_as_in_git)
{
    static const struct example examples[] = {
        {"*.o\n", "a.o", true},
        {"*.o\n", "deep/er/a.o", true},
        {"*.o\n", "a.obj", false},
        {"# *.o\n\n", "a.o", false},
        {"build/\n", "build/", true},
        {"build/\n", "build", false},
        {"build/\n", "deep/build/", true},
        {"/notes\n", "notes", true},
        {"/notes\n", "deep/notes", false},
        {"data/raw\n", "data/raw", true},
        {"data/raw\n", "deep/data/raw", false},
        {"**/raw\n", "raw", true},
        {"**/raw\n", "a/b/raw", true},
        {"a/**/b\n", "a/b", true},
        {"a/**/b\n", "a/x/y/b", true},
        {"a/**/b\n", "a/x/y/c", false},
        {"a/**\n", "a/", false},
        {"a/**\n", "a/x", true},
        {"a/**\n", "a/x/y", true},
        {"a**b\n", "axxb", true},
        {"a*b*c\n", "aXbYbZc", true},
        {"a/*\n", "a/x/y", false},
        {"?.c\n", "a.c", true},
        {"?.c\n", "ab.c", false},
        {"[a-c]1\n", "b1", true},
        {"[a-c]1\n", "d1", false},
        {"[!a-c]1\n", "d1", true},
        {"[]x]\n", "]", true},
        {"[a-]\n", "-", true},
        {"*.log\n!keep.log\n", "keep.log", false},
        {"*.log\n!keep.log\n", "other.log", true},
        {"!keep.log\n*.log\n", "keep.log", true},
        {"\\#x\n\\!y\n", "#x", true},
        {"\\#x\n\\!y\n", "!y", true},
        {"a\\*\n", "a*", true},
        {"a\\*\n", "ab", false},
        {"trail  \r\n", "trail", true},
        {"last", "last", true},
        {".*\n", ".git/", true},
        {"**\n", "any/thing", true},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *example = &examples[i];
        ck_assert_msg(leaves_out(example->lines, example->path) == example->is_left_out, "%s of %s",
                      example->path, example->lines);
    }
}
END_TEST

START_TEST(a_long_name_with_many_stars_takes_no_long_time)
{
    char lines[256];
    char name[200];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    lines[0] = '\0';
    for (int i = 0; i < 60; i++) {
        strcat(lines, "*a");
    }
    ck_assert(!leaves_out(strcat(lines, "b\n"), name));
}
END_TEST

static void refuses(const char *lines, size_t length, const char *why)
{
    struct problem problem = {.text = ""};
    ck_assert_ptr_null(ignore_parse(lines, length, &problem));
    ck_assert_msg(strstr(problem.text, why) != NULL, "%s", problem.text);
}

START_TEST(lines_that_mean_nothing_are_refused_by_number)
{
    refuses("a\n[a-\n", 6, "line 2: a set");
    refuses("[a/b]\n", 6, "line 1: a set");
    refuses("!/\n", 3, "line 1: no name");
    refuses("a\0b\n", 4, "line 1: a NUL");
    char *text = calloc(1, IGNORE_FILE_BYTES + 1);
    memset(text, 'a', IGNORE_FILE_BYTES + 1);
    refuses(text, IGNORE_PATTERN_BYTES + 1, "line 1: the line has more than 1024");
    refuses(text, IGNORE_FILE_BYTES + 1, "more than 65536");
    for (size_t i = 1; i < IGNORE_FILE_BYTES; i += 2) {
        text[i] = '\n';
    }
    refuses(text, 2 * (size_t)(IGNORE_PATTERNS + 1), "line 1025: there are more than 1024");
    free(text);
}
END_TEST

SUITE("ignore", NULL, NULL, TEST(lines_match_as_in_git),
      TEST(a_long_name_with_many_stars_takes_no_long_time),
      TEST(lines_that_mean_nothing_are_refused_by_number))
