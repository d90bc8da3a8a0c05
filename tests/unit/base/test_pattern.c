#include "base/pattern.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static enum pattern_reach file(const char *pattern, const char *path)
{
    return pattern_reach(pattern, path, false);
}
static enum pattern_reach folder(const char *pattern, const char *path)
{
    return pattern_reach(pattern, path, true);
}

START_TEST(a_name_is_matched_as_by_a_shell)
{
    static const char *const matched[][2] = {
        {"*.csv", "a.csv"},
        {"*.csv", "ü b.csv"},
        {"part-*", "part-"},
        {"part-??", "part-aü"},
        {"[a-c]x", "bx"},
        {"[!a-c]x", "dx"},
        {"[^a-c]x", "öx"},
        {"[]]", "]"},
        {"[a-]", "-"},
        {"[a", "[a"},
        {"a\\*", "a*"},
        {"a\\[1\\]*", "a[1].txt"},
        {"*a*b*c", "xaxbxaxbxc"},
        {".*", ".hidden"},
        {"results/*", "results/x"},
        {"*/out-*.txt", "r/out-1.txt"},
        {"a[1].txt", "a[1].txt"},
        {"a[1].txt", "a1.txt"},
        {"[ä-ö]", "ö"},
        {"\\.x*", ".xy"},
        {"?", "\xff"},
    };
    static const char *const missed[][2] = {
        {"*.csv", "a.csvx"}, {"*.csv", ".csv"},        {"*", ".hidden"},   {"?x", ".x"},
        {"[!a]x", ".x"},     {"part-??", "part-a"},    {"[a-c]x", "dx"},   {"[!a-c]x", "ax"},
        {"a\\*", "ab"},      {"results/*", "other/x"}, {"?", "ab"},        {"?", ""},
        {"[ä-ö]", "z"},      {"a\\[1\\]*", "a1.txt"},  {"*.csv", "A.CSV"},
    };
    for (size_t i = 0; i < sizeof matched / sizeof *matched; i++) {
        ck_assert_msg(file(matched[i][0], matched[i][1]) == PATTERN_MATCHES, "%s of %s",
                      matched[i][1], matched[i][0]);
    }
    for (size_t i = 0; i < sizeof missed / sizeof *missed; i++) {
        ck_assert_msg(file(missed[i][0], missed[i][1]) != PATTERN_MATCHES, "%s of %s", missed[i][1],
                      missed[i][0]);
    }
}
END_TEST

START_TEST(a_folder_is_taken_whole_and_one_above_is_walked)
{
    ck_assert_int_eq(folder("run-*", "run-1"), PATTERN_MATCHES);
    ck_assert_int_eq(file("run-*", "run-1/a/.b"), PATTERN_MATCHES);
    ck_assert_int_eq(folder("run-*/", "run-1"), PATTERN_MATCHES);
    ck_assert_int_eq(file("run-*/", "run-1"), PATTERN_MISSES);
    ck_assert_int_eq(file("run-*/", "run-1/a"), PATTERN_MATCHES);
    ck_assert_int_eq(folder("*/x.csv", "a"), PATTERN_ABOVE);
    ck_assert_int_eq(folder("*/x.csv", ".a"), PATTERN_MISSES);
    ck_assert_int_eq(file("*/x.csv", "a"), PATTERN_MISSES);
    ck_assert_int_eq(folder("*/b-?/x", "a/b-1"), PATTERN_ABOVE);
    ck_assert_int_eq(folder("*/b-?/x", "a/c"), PATTERN_MISSES);
    ck_assert_int_eq(file("*", "a/b/c"), PATTERN_MATCHES);
}
END_TEST

START_TEST(a_pattern_is_split_before_its_first_open_name)
{
    static const char *const cases[][3] = {
        {"*.csv", "./", "*.csv"},       {"results/*.csv", "results/", "*.csv"},
        {"a/b/c-?/x", "a/b/", "c-?/x"}, {"*/x", "./", "*/x"},
        {"a/run-*/", "a/", "run-*/"},   {"a\\[1\\]/*.csv", "a[1]/", "*.csv"},
        {"a/b\\*", "a/", "b\\*"},       {"a/b\\*/", "a/", "b\\*/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char place[64];
        const char *rest = NULL;
        pattern_split(cases[i][0], place, &rest);
        ck_assert_str_eq(place, cases[i][1]);
        ck_assert_str_eq(rest, cases[i][2]);
    }
}
END_TEST

START_TEST(a_quoted_text_matches_itself_alone)
{
    static const char *const texts[] = {"plain", "a[1].txt", "*?\\", "[!a]", "b\\"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char pattern[64];
        pattern[pattern_quote(texts[i], pattern)] = '\0';
        ck_assert_int_eq(file(pattern, texts[i]), PATTERN_MATCHES);
        ck_assert_int_eq(file(pattern, "other"), PATTERN_MISSES);
    }
    ck_assert_uint_eq(pattern_quote("*", (char[2]){0}), 2);
    ck_assert(pattern_is_special("a\\[", 3) && !pattern_is_special("a\\[", 2));
}
END_TEST

START_TEST(what_a_shell_reads_otherwise_is_a_problem)
{
    static const char *const wrong[] = {"a/**/b",  "**",   "[[:alpha:]]", "[:digit:]",
                                        "[[.x.]]", "a*\\", "a\\/*"};
    static const char *const good[] = {"*",     "a/*/b",  "[.]x",   "a\\\\*", "a\\\\/*",
                                       "a\\**", "\\[:x*", "[a-z]?", "[=]x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(pattern_problem(wrong[i]) != NULL, "%s", wrong[i]);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(pattern_problem(good[i]) == NULL, "%s", good[i]);
    }
}
END_TEST

/* Random patterns over few characters, against the C library's slow and obvious matcher. */
START_TEST(names_match_as_in_the_c_library)
{
    struct random random = {.state = 7};
    uint32_t matches = 0;
    for (uint32_t i = 0; i < 300000; i++) {
        static const char parts[] = "aab.*?-\\";
        char pattern[12] = "";
        char name[10] = "";
        const size_t pattern_length = random_below(&random, sizeof pattern);
        const size_t name_length = 1 + random_below(&random, sizeof name - 1);
        for (size_t k = 0; k < pattern_length; k++) {
            pattern[k] = parts[random_below(&random, sizeof parts - 1)];
        }
        for (size_t k = 0; k < name_length; k++) {
            name[k] = "aab.-"[random_below(&random, 5)];
        }
        if (pattern_length == 0 || pattern[pattern_length - 1] == '\\') {
            continue; /* no pattern that is taken */
        }
        const bool expected =
            fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) == 0 || strcmp(pattern, name) == 0;
        ck_assert_msg((file(pattern, name) == PATTERN_MATCHES) == expected, "%s of %s", name,
                      pattern);
        matches += expected;
    }
    ck_assert_uint_gt(matches, 1000);
}
END_TEST

/* A matcher that tries every split of the name would not end here. */
START_TEST(no_pattern_takes_long)
{
    char name[251];
    char pattern[1024] = "";
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < 400; i++) {
        (void)snprintf(pattern + 2 * i, sizeof pattern - 2 * i, "*a");
    }
    (void)snprintf(pattern + 480, sizeof pattern - 480, "*b");
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(file(pattern, name), PATTERN_MISSES);
    }
}
END_TEST

/* Fills `text` with copies of `piece`, and returns the length, at most size - 1. */
static size_t fill(char *text, size_t size, const char *piece)
{
    size_t length = 0;
    while (length + strlen(piece) < size) {
        length += (size_t)snprintf(text + length, size - length, "%s", piece);
    }
    return length;
}

/* A bracket without an end stands for itself. A search for its end at each try would read this
 * pattern as often as it has brackets. */
START_TEST(a_match_reads_no_more_than_pattern_times_name)
{
    static const char *const pieces[] = {"[",  "[!",  "[^]", "[a",    "[\\]", "[a-",
                                         "*[", "[[]", "?",   "*a[b]", "\\["};
    static const char *const ends[] = {"", "]", "\\]", "b", "[]"};
    static const char *const names[] = {"[", "a", "]", "[a", "\xc3\xb6", "\xff"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
            for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
                char pattern[124] = "*";
                char name[251];
                size_t steps = 0;
                (void)fill(pattern + 1, sizeof pattern - 4, pieces[i]);
                (void)strcat(pattern, ends[e]);
                const size_t length = fill(name, sizeof name, names[n]);
                (void)pattern_match_counted(pattern, strlen(pattern), name, length, &steps);
                ck_assert_msg(steps <= 3 * (strlen(pattern) + 1) * (length + 1),
                              "%zu steps for %s and %s", steps, pattern, name);
            }
        }
    }
}
END_TEST

/* The matcher remembers the first bracket without an end: those behind it must mean the same. */
START_TEST(brackets_match_as_in_the_c_library)
{
    struct random random = {.state = 23};
    uint32_t matches = 0;
    for (uint32_t i = 0; i < 300000; i++) {
        static const char parts[] = "[[]!^aab*?";
        char pattern[10] = "";
        char name[8] = "";
        const size_t pattern_length = 1 + random_below(&random, sizeof pattern - 1);
        const size_t name_length = 1 + random_below(&random, sizeof name - 1);
        for (size_t k = 0; k < pattern_length; k++) {
            pattern[k] = parts[random_below(&random, sizeof parts - 1)];
        }
        for (size_t k = 0; k < name_length; k++) {
            name[k] = "[[]!ab"[random_below(&random, 6)];
        }
        const bool expected = fnmatch(pattern, name, 0) == 0;
        ck_assert_msg(pattern_matches_name(pattern, pattern_length, name, name_length) == expected,
                      "%s of %s: %d", name, pattern, expected);
        matches += expected;
    }
    ck_assert_uint_gt(matches, 1000);
}
END_TEST

SUITE("pattern", NULL, NULL, TEST(a_name_is_matched_as_by_a_shell),
      TEST(a_folder_is_taken_whole_and_one_above_is_walked),
      TEST(a_pattern_is_split_before_its_first_open_name), TEST(a_quoted_text_matches_itself_alone),
      TEST(what_a_shell_reads_otherwise_is_a_problem), TEST(names_match_as_in_the_c_library),
      TEST(no_pattern_takes_long), TEST(a_match_reads_no_more_than_pattern_times_name),
      TEST(brackets_match_as_in_the_c_library))
