#include "formats/yaml.h"

#include "base/cleanup.h"
#include "formats/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct yaml_file *open_text(const char *text, struct problem *ret_problem)
{
    return yaml_open(text, strlen(text), "f.yaml", ret_problem);
}

static void check_refused(const char *text, const char *wanted)
{
    struct problem problem = {"nothing"};
    struct yaml_file *file = open_text(text, &problem);
    ck_assert_msg(file == NULL, "taken: %s", text);
    ck_assert_str_eq(problem.text, wanted);
}

START_TEST(values_are_read_with_their_types)
{
    struct problem problem;
    CLEANUP(yaml_close)
    struct yaml_file *file = open_text("name: broker\n"
                                       "port: 7_000\n"
                                       "below: -3\n"
                                       "open: true\n"
                                       "beat: 1.5s\n"
                                       "cache: 2GiB\n"
                                       "fee: 0.000125\n"
                                       "mode: fast\n"
                                       "key: 00ff10\n"
                                       "list: [a, \"b c\", 3]\n"
                                       "map: {x: 1, y: 2}\n",
                                       &problem);
    ck_assert_ptr_nonnull(file);
    static const char *const keys[] = {"name", "port", "below", "open", "beat", "cache",
                                       "fee",  "mode", "key",   "list", "map"};
    static const char *const modes[] = {"slow", "fast"};
    struct yaml_value root = yaml_root(file);
    yaml_known_keys(root, keys, sizeof keys / sizeof keys[0]);
    ck_assert_str_eq(yaml_text(yaml_key(root, "name"), 10, NULL), "broker");
    ck_assert_int_eq(yaml_integer(yaml_key(root, "port"), 1, 65535, 0), 7000);
    ck_assert_int_eq(yaml_integer(yaml_key(root, "below"), -5, 5, 0), -3);
    ck_assert(yaml_boolean(yaml_key(root, "open"), false));
    ck_assert_int_eq(yaml_duration_ns(yaml_key(root, "beat"), 0, INT64_MAX, 0), 1500000000);
    ck_assert_int_eq(yaml_duration_ms(yaml_key(root, "beat"), 0, INT64_MAX, 0), 1500);
    ck_assert_int_eq(yaml_bytes(yaml_key(root, "cache"), 0, INT64_MAX, 0), INT64_C(2) << 30);
    ck_assert_int_eq(yaml_money(yaml_key(root, "fee"), 0, INT64_MAX, 0), 125);
    ck_assert_uint_eq(yaml_choice(yaml_key(root, "mode"), modes, 2, 0), 1);
    uint8_t bytes[3];
    ck_assert(yaml_hex(yaml_key(root, "key"), bytes, 3));
    ck_assert_mem_eq(bytes, "\x00\xff\x10", 3);
    struct yaml_value list = yaml_key(root, "list");
    ck_assert(yaml_is_list(list, 3));
    ck_assert_uint_eq(yaml_count(list), 3);
    ck_assert_str_eq(yaml_text(yaml_item(list, 1), 10, NULL), "b c");
    ck_assert_str_eq(yaml_text(yaml_item(list, 2), 10, NULL), "3");
    struct yaml_value map = yaml_key(root, "map");
    ck_assert(yaml_is_map(map, 2));
    ck_assert_str_eq(yaml_entry_key(map, 1), "y");
    ck_assert_int_eq(yaml_integer(yaml_entry(map, 1), 0, 9, 0), 2);
    ck_assert_uint_eq(yaml_line(map), 11);
    ck_assert(yaml_finished(file, &problem));
}
END_TEST

START_TEST(absent_keys_give_the_fallback)
{
    CLEANUP(yaml_close) struct yaml_file *file = yaml_open(NULL, 0, "f.yaml", NULL);
    ck_assert_ptr_nonnull(file);
    struct yaml_value root = yaml_root(file);
    yaml_known_keys(root, NULL, 0);
    ck_assert_int_eq(yaml_kind(root), YAML_KIND_ABSENT);
    ck_assert_str_eq(yaml_text(yaml_key(root, "a"), 1, "fallback"), "fallback");
    ck_assert_int_eq(yaml_integer(yaml_key(root, "a"), 0, 1, 42), 42);
    ck_assert(yaml_boolean(yaml_key(root, "a"), true));
    ck_assert_uint_eq(yaml_choice(yaml_key(root, "a"), NULL, 0, 9), 9);
    uint8_t byte = 7;
    ck_assert(!yaml_hex(yaml_key(root, "a"), &byte, 1));
    ck_assert(yaml_finished(file, NULL));
    (void)yaml_required(root, "a");
    struct problem problem;
    ck_assert(!yaml_finished(file, &problem));
    ck_assert_str_eq(problem.text, "f.yaml:1: \"a:\" is missing");
}
END_TEST

START_TEST(json_is_a_subset)
{
    CLEANUP(yaml_close)
    struct yaml_file *file = open_text(
        "{\"a\": [1, 2.50, \"x\\u00e9\\n\"],\n \"b\": {\"c\": null, \"d\": true}}\n", NULL);
    ck_assert_ptr_nonnull(file);
    struct yaml_value list = yaml_key(yaml_root(file), "a");
    ck_assert_int_eq(yaml_money(yaml_item(list, 1), 0, INT64_MAX, 0), 2500000);
    ck_assert_str_eq(yaml_text(yaml_item(list, 2), 10, NULL), "x\xc3\xa9\n");
    struct yaml_value map = yaml_key(yaml_root(file), "b");
    ck_assert_int_eq(yaml_kind(yaml_key(map, "c")), YAML_KIND_NULL);
    ck_assert_uint_eq(yaml_line(yaml_key(map, "d")), 2);
    ck_assert(yaml_finished(file, NULL));
}
END_TEST

START_TEST(what_yaml_can_do_and_we_do_not_take_is_refused)
{
    check_refused("a: &x 1\nb: 2\n",
                  "f.yaml:1: anchors (&name) are not taken; write the value again");
    check_refused("a: 1\nb: *x\n",
                  "f.yaml:2: aliases (*name) are not taken; write the value again");
    check_refused("a: !!int 1\n", "f.yaml:1: tags (!name) are not taken; leave the tag out");
    check_refused("a: !x [1]\n", "f.yaml:1: tags (!name) are not taken; leave the tag out");
    check_refused("a: &x {b: 1}\n",
                  "f.yaml:1: anchors (&name) are not taken; write the value again");
    check_refused("%YAML 1.1\n---\na: 1\n",
                  "f.yaml:1: directives (%YAML, %TAG) are not taken; leave the line out");
    check_refused("a: 1\n---\nb: 2\n",
                  "f.yaml:2: a second document begins here; one file holds one");
    check_refused("a: 1\nb: 2\na: 3\n", "f.yaml:3: key \"a\" is given twice, first on line 1");
    check_refused("x: {a: 1, b: {q: 1,\n q: 1}}\n",
                  "f.yaml:2: key \"q\" is given twice, first on line 1");
    check_refused("[1, 2]: 3\n", "f.yaml:1: a key must be plain text");
    check_refused("a: \"x\\0y\"\n", "f.yaml:1: a text with a NUL byte in it");
}
END_TEST

START_TEST(what_is_not_yaml_is_refused_with_its_line)
{
    struct problem problem;
    ck_assert_ptr_null(open_text("a: 1\nb: [1, 2\n", &problem));
    ck_assert_msg(strncmp(problem.text, "f.yaml:", 7) == 0 &&
                      strstr(problem.text, "not YAML") != NULL,
                  "%s", problem.text);
    ck_assert_ptr_null(open_text("a: \xff\xfe\n", &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "not text"));
    ck_assert_ptr_null(yaml_open("a: \0b\n", 6, "f.yaml", &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "not text"));
    ck_assert_ptr_null(open_text("a: 1\n\tb: 2\n", &problem));
    ck_assert_msg(strstr(problem.text, "f.yaml:2") != NULL, "%s", problem.text);
}
END_TEST

START_TEST(caps_hold_before_a_tree_is_built)
{
    static char text[FORMAT_FILE_BYTES + 2];
    struct problem problem;
    memset(text, '[', 100000);
    ck_assert_ptr_null(yaml_open(text, 100000, "f.yaml", &problem));
    ck_assert_str_eq(problem.text, "f.yaml:1: nested deeper than 16");

    memset(text, '[', 16);
    memset(text + 16, ']', 16);
    struct yaml_file *file = yaml_open(text, 32, "f.yaml", &problem);
    ck_assert_ptr_nonnull(file);
    yaml_close(&file);

    text[0] = '[';
    for (size_t i = 1; i + 1 < 2 * (size_t)FORMAT_NODES + 3; i += 2) {
        memcpy(text + i, "1,", 2);
    }
    ck_assert_ptr_null(yaml_open(text, 2 * (size_t)FORMAT_NODES + 1, "f.yaml", &problem));
    ck_assert_str_eq(problem.text, "f.yaml:1: more values than 1048576");

    size_t length = 0;
    for (int i = 0; i <= FORMAT_KEYS; i++) {
        length += (size_t)snprintf(text + length, 16, "k%d: 1\n", i);
    }
    ck_assert_ptr_null(yaml_open(text, length, "f.yaml", &problem));
    ck_assert_str_eq(problem.text, "f.yaml:1: a map with more than 1024 keys");

    memset(text, ' ', sizeof text);
    ck_assert_ptr_null(yaml_open(text, FORMAT_FILE_BYTES + 1, "f.yaml", &problem));
    ck_assert_str_eq(problem.text,
                     "f.yaml:1: the file has 4194305 bytes; at most 4194304 are read");
}
END_TEST

typedef void use(struct yaml_value root);

static void check_use(const char *text, use *act, const char *wanted)
{
    struct problem problem = {"nothing"};
    CLEANUP(yaml_close) struct yaml_file *file = open_text(text, &problem);
    ck_assert_msg(file != NULL, "%s", problem.text);
    act(yaml_root(file));
    ck_assert_msg(!yaml_finished(file, &problem), "taken: %s", text);
    ck_assert_str_eq(problem.text, wanted);
}

static void use_keys(struct yaml_value root)
{
    static const char *const keys[] = {"budget", "cap", "outputs"};
    yaml_known_keys(root, keys, 3);
}
static void use_duration(struct yaml_value root)
{
    (void)yaml_duration_ms(yaml_key(root, "limit"), 1000, 3600000, 0);
}
static void use_integer(struct yaml_value root)
{
    (void)yaml_integer(yaml_key(root, "slots"), 1, 4096, 0);
}
static void use_boolean(struct yaml_value root)
{
    (void)yaml_boolean(yaml_key(root, "open"), false);
}
static void use_money(struct yaml_value root)
{
    (void)yaml_money(yaml_key(root, "budget"), 0, INT64_MAX, 0);
}
static void use_choice(struct yaml_value root)
{
    static const char *const modes[] = {"none", "cheap"};
    (void)yaml_choice(yaml_key(root, "verify"), modes, 2, 0);
}
static void use_hex(struct yaml_value root)
{
    uint8_t bytes[2];
    (void)yaml_hex(yaml_key(root, "key"), bytes, 2);
}
static void use_list(struct yaml_value root)
{
    struct yaml_value list = yaml_key(root, "run");
    if (yaml_is_list(list, 2)) {
        (void)yaml_text(yaml_item(list, 1), 3, NULL);
    }
}

static void use_any_item(struct yaml_value root)
{
    ck_assert(!yaml_present(yaml_item(yaml_key(root, "hours"), 0)));
}
static void use_any_entry(struct yaml_value root)
{
    ck_assert(!yaml_present(yaml_entry(yaml_key(root, "set"), 0)));
    ck_assert_str_eq(yaml_entry_key(yaml_key(root, "set"), 0), "");
}

START_TEST(no_kind_of_value_reaches_an_assertion)
{
    check_use("hours: {a: b}\n", use_any_item,
              "f.yaml:1: hours: a longer list is needed here, not a map of keys");
    check_use("hours: a\n", use_any_item,
              "f.yaml:1: hours: a longer list is needed here, not a single value");
    check_use("hours: []\n", use_any_item,
              "f.yaml:1: hours: a longer list is needed here, not a list");
    check_use("x: 1\n", use_any_item, "f.yaml:1: a longer list is needed here, not nothing");
    check_use("set: [a]\n", use_any_entry,
              "f.yaml:1: set: a map of more keys is needed here, not a list");
    check_use("set: ~\n", use_any_entry,
              "f.yaml:1: set: a map of more keys is needed here, not no value");
    check_use("set: {}\n", use_any_entry,
              "f.yaml:1: set: a map of more keys is needed here, not a map of keys");
}
END_TEST

START_TEST(wrong_values_are_refused_with_line_and_key)
{
    check_use("cap: 1\nbugdet: 2\n", use_keys,
              "f.yaml:2: unknown key \"bugdet\"; did you mean \"budget\"?");
    check_use("cap: 1\nwhatever: 2\n", use_keys, "f.yaml:2: unknown key \"whatever\"");
    check_use("- cap\n", use_keys, "f.yaml:1: a map (key: value) is needed here, not a list");
    check_use("\nlimit: 10\n", use_duration,
              "f.yaml:2: limit: \"10\" has no unit; write for example 90s, 10m, 1h30m or 7d");
    check_use("limit: 2h\n", use_duration, "f.yaml:1: limit: 2h is too large; the most is 1h");
    check_use("limit: 10ms\n", use_duration, "f.yaml:1: limit: 10ms is too small; the least is 1s");
    check_use("limit: 1.0001s\n", use_duration,
              "f.yaml:1: limit: \"1.0001s\" is finer than the smallest step here, 1ms");
    check_use("limit: [1s]\n", use_duration,
              "f.yaml:1: limit: a single value is needed here, not a list");
    check_use("limit: {a: 1s}\n", use_duration,
              "f.yaml:1: limit: a single value is needed here, not a map of keys");
    check_use("limit:\n", use_duration,
              "f.yaml:1: limit: the value is missing (an empty text is written \"\")");
    check_use("slots: 0\n", use_integer, "f.yaml:1: slots: 0 is too small; the least is 1");
    check_use("slots: -9223372036854775808\n", use_integer,
              "f.yaml:1: slots: \"-9223372036854775808\" is too large");
    check_use("slots: 1.5\n", use_integer,
              "f.yaml:1: slots: \"1.5\" is not a whole number; write for example 100");
    check_use("open: yes\n", use_boolean, "f.yaml:1: open: \"yes\" is neither true nor false");
    check_use("budget: -1\n", use_money, "f.yaml:1: budget: -1.00 is too small; the least is 0.00");
    check_use("budget: .nan\n", use_money,
              "f.yaml:1: budget: \".nan\" is not an amount of credits; write for example 2.00 or "
              "0.000125");
    check_use("verify: chep\n", use_choice,
              "f.yaml:1: verify: unknown \"chep\"; did you mean \"cheap\"?");
    check_use("verify: all\n", use_choice,
              "f.yaml:1: verify: unknown \"all\"; known are none, cheap");
    check_use("key: 00ff1\n", use_hex, "f.yaml:1: key: 4 hexadecimal digits are needed here");
    check_use("run: xz -9\n", use_list, "f.yaml:1: run: a list is needed here, not a single value");
    check_use("run: [a, b, c]\n", use_list, "f.yaml:1: run: 3 items; at most 2 are taken");
    check_use("run: [a,\n abcd]\n", use_list, "f.yaml:2: run: 4 bytes; at most 3 are taken");
}
END_TEST

START_TEST(the_first_refusal_is_the_one_told)
{
    struct problem problem;
    CLEANUP(yaml_close) struct yaml_file *file = open_text("slots: 0\nopen: yes\n", NULL);
    use_boolean(yaml_root(file));
    use_integer(yaml_root(file));
    ck_assert(!yaml_finished(file, &problem));
    ck_assert_str_eq(problem.text, "f.yaml:2: open: \"yes\" is neither true nor false");
}
END_TEST

START_TEST(a_message_holds_no_control_character)
{
    static const char *const keys[] = {"a"};
    struct problem problem;
    CLEANUP(yaml_close) struct yaml_file *file = open_text("\"\\e[31mred\": 1\n", NULL);
    yaml_known_keys(yaml_root(file), keys, 1);
    ck_assert(!yaml_finished(file, &problem));
    ck_assert_str_eq(problem.text, "f.yaml:1: unknown key \"?[31mred\"");
}
END_TEST

START_TEST(quoted_texts_read_back_as_they_were)
{
    static const char *const texts[] = {"",
                                        "plain",
                                        "a \"b\" \\ c: [x], #y",
                                        "tab\tnewline\nreturn\rescape\x1b",
                                        "\x7f\xc2\x85\xc2\x9f",
                                        "\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\xef\xbf\xbe",
                                        "na\xc3\xafve \xf0\x9f\x90\x8e"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char quoted[256];
        ck_assert(yaml_quote(texts[i], quoted, sizeof quoted));
        struct problem problem;
        CLEANUP(yaml_close) struct yaml_file *file = open_text(quoted, &problem);
        ck_assert_msg(file != NULL, "%s", problem.text);
        ck_assert_str_eq(yaml_text(yaml_root(file), 100, NULL), texts[i]);
    }
    char small[8];
    ck_assert(!yaml_quote("abcdefg", small, sizeof small));
    ck_assert(!yaml_quote("a", small, 2));
    ck_assert(!yaml_quote("\xff", small, sizeof small));
}
END_TEST

SUITE("yaml", NULL, NULL, TEST(values_are_read_with_their_types),
      TEST(absent_keys_give_the_fallback), TEST(json_is_a_subset),
      TEST(what_yaml_can_do_and_we_do_not_take_is_refused),
      TEST(what_is_not_yaml_is_refused_with_its_line), TEST(caps_hold_before_a_tree_is_built),
      TEST(no_kind_of_value_reaches_an_assertion), TEST(wrong_values_are_refused_with_line_and_key),
      TEST(the_first_refusal_is_the_one_told), TEST(a_message_holds_no_control_character),
      TEST(quoted_texts_read_back_as_they_were))
