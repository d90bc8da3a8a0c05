#include "formats/template.h"

#include "formats/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void check_expands(const char *text, const struct template_values *values,
                          const char *wanted)
{
    char got[256];
    size_t length = 0;
    ck_assert_msg(template_expand(text, values, got, sizeof got, &length) == TEMPLATE_OK, "%s",
                  text);
    ck_assert_str_eq(got, wanted);
    ck_assert_uint_eq(length, strlen(wanted));
    ck_assert_uint_eq(template_size(text, values), strlen(wanted) + 1);
}

START_TEST(placeholders_stand_for_the_subtask)
{
    const struct template_values file = {.in = "photos/a.jpg", .value = "photos/a.jpg", .index = 4};
    const struct template_values line = {.value = "--fast ../x", .index = 4};
    const struct template_values number = {.value = "17", .index = 4};
    const struct template_values bare = {.index = 4};
    check_expands("{in}", &file, "photos/a.jpg");
    check_expands("{in}.xz", &file, "photos/a.jpg.xz");
    check_expands("-o={out}:{value}", &file, "-o=out/photos/a.jpg:photos/a.jpg");
    check_expands("{line}", &line, "--fast ../x");
    check_expands("{out}", &line, "out/4"); /* a line is no file name */
    check_expands("{index}/{index}", &number, "17/17");
    check_expands("{out}", &number, "out/17");
    check_expands("{value}{out}", &bare, "4out/4");
    check_expands("", &file, "");
    check_expands("plain", &file, "plain");
    check_expands("{{in}}", &file, "{in}");
    check_expands("{{{in}}}", &file, "{photos/a.jpg}");
    check_expands("awk '{{ print }}'", &file, "awk '{ print }'");
}
END_TEST

START_TEST(names_that_could_leave_the_folder_are_not_used_for_outputs)
{
    static const char *const values[] = {"..",  ".", ".hidden", "-rf", "a/b",
                                         "a b", "",  "\xff",    "a\nb"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        check_expands("{out}", &(struct template_values){.value = values[i], .index = 9}, "out/9");
    }
}
END_TEST

START_TEST(an_expansion_never_overruns)
{
    const struct template_values values = {.in = "abc", .value = "abc"};
    char text[8] = "#######";
    ck_assert_int_eq(template_expand("{in}{in}", &values, text, 7, NULL), TEMPLATE_OK);
    ck_assert_str_eq(text, "abcabc");
    ck_assert_int_eq(text[7], '\0');
    ck_assert_int_eq(template_expand("{in}{in}", &values, text, 6, NULL), TEMPLATE_TOO_LONG);
    ck_assert_int_eq(template_expand("", &values, text, 1, NULL), TEMPLATE_OK);
    ck_assert_int_eq(template_expand("", &values, text, 0, NULL), TEMPLATE_TOO_LONG);
}
END_TEST

START_TEST(what_is_no_template_is_refused)
{
    static const char *const texts[] = {"{",     "}",     "{}",    "{in",   "in}", "{ in}", "{IN}",
                                        "{in }", "{{in}", "{inn}", "{foo}", "a}b", "{in}}", "{in{"};
    const struct template_values values = {.in = "a", .value = "a"};
    char text[32];
    struct problem problem;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(!template_check(texts[i], TEMPLATE_ANY, &problem), "%s", texts[i]);
        ck_assert_int_eq(template_expand(texts[i], &values, text, sizeof text, NULL),
                         TEMPLATE_MALFORMED);
        ck_assert_uint_eq(template_size(texts[i], &values), 0);
    }
    const struct template_values no_input = {.value = "a"};
    ck_assert_int_eq(template_expand("{in}", &no_input, text, sizeof text, NULL),
                     TEMPLATE_MALFORMED);
}
END_TEST

START_TEST(a_refusal_names_the_nearest)
{
    struct problem problem;
    ck_assert(!template_check("{vlaue}", TEMPLATE_EACH, &problem));
    ck_assert_str_eq(problem.text, "unknown placeholder \"{vlaue}\"; did you mean \"{value}\"?");
    ck_assert(!template_check("{ni}", TEMPLATE_EACH, &problem));
    ck_assert_str_eq(problem.text, "unknown placeholder \"{ni}\"; did you mean \"{in}\"?");
    ck_assert(!template_check("{nothing}", TEMPLATE_EACH, &problem));
    ck_assert_str_eq(
        problem.text,
        "unknown placeholder \"{nothing}\"; known are {in} {out} {index} {line} {value}, "
        "and \"{{\" for a brace itself");
    ck_assert(!template_check("a { b", TEMPLATE_EACH, &problem));
    ck_assert_str_eq(problem.text, "a single \"{\"; write \"{{\" for the character itself");
}
END_TEST

START_TEST(each_source_has_its_placeholders)
{
    struct problem problem;
    ck_assert(template_check("{in}{value}{out}", TEMPLATE_EACH, NULL));
    ck_assert(template_check("{line}{value}{out}", TEMPLATE_LINES, NULL));
    ck_assert(template_check("{index}{value}{out}", TEMPLATE_ARRAY, NULL));
    ck_assert(template_check("{out}", TEMPLATE_ONE, NULL));
    ck_assert(!template_check("{in}", TEMPLATE_ARRAY, &problem));
    ck_assert_str_eq(problem.text, "\"{in}\" only has a meaning with `each:`");
    ck_assert(!template_check("{index}", TEMPLATE_EACH, &problem));
    ck_assert(!template_check("{line}", TEMPLATE_ONE, &problem));
    ck_assert(!template_check("{value}", TEMPLATE_ONE, &problem));
    ck_assert_str_eq(problem.text,
                     "\"{value}\" only has a meaning with `each:`, `array:` or `lines:`");
}
END_TEST

START_TEST(paths_stay_inside)
{
    static const char *const safe[] = {"a", "a/b", "a.b/..c", "...", "-x", "a b", "na\xc3\xafve"};
    static const char *const unsafe[] = {"",
                                         "/",
                                         "/a",
                                         "a/",
                                         "a//b",
                                         ".",
                                         "..",
                                         "./a",
                                         "a/.",
                                         "../a",
                                         "a/../b",
                                         "a/..",
                                         "a\nb",
                                         "a\x7f",
                                         "a\x01",
                                         ("a\xe2\x80\xae"
                                          "b"),
                                         "a\xff",
                                         "\xc2\x9b"};
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++) {
        ck_assert_msg(template_path_safe(safe[i]), "%s", safe[i]);
    }
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        ck_assert_msg(!template_path_safe(unsafe[i]), "%s", unsafe[i]);
    }
    char path[FORMAT_PATH_BYTES + 2];
    memset(path, 'a', sizeof path);
    path[FORMAT_PATH_BYTES] = '\0';
    ck_assert(template_path_safe(path));
    path[FORMAT_PATH_BYTES] = 'a';
    path[FORMAT_PATH_BYTES + 1] = '\0';
    ck_assert(!template_path_safe(path));
}
END_TEST

START_TEST(an_output_may_be_a_folder)
{
    ck_assert(template_output_safe("a") && template_output_safe("a/"));
    ck_assert(template_output_safe("a/b/") && !template_is_folder("a/b"));
    ck_assert(template_is_folder("a/") && template_is_folder("./"));
    ck_assert(!template_output_safe("/") && !template_output_safe("a//"));
    ck_assert(!template_output_safe("./") && !template_output_safe("../"));
    ck_assert(!template_output_safe("") && !template_is_folder(""));
    ck_assert(template_paths_meet("a/", "a/b") && template_paths_meet("a", "a/"));
    ck_assert(!template_paths_meet("a/", "ab"));
}
END_TEST

SUITE("template", NULL, NULL, TEST(placeholders_stand_for_the_subtask),
      TEST(names_that_could_leave_the_folder_are_not_used_for_outputs),
      TEST(an_expansion_never_overruns), TEST(what_is_no_template_is_refused),
      TEST(a_refusal_names_the_nearest), TEST(each_source_has_its_placeholders),
      TEST(paths_stay_inside), TEST(an_output_may_be_a_folder))
