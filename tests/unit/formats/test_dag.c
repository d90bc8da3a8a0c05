#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/dag.h"
#include "tests/support/suite.h"

#define GOOD                                                                                       \
    "{\"format\":\"bourse-dag-1\",\"name\":\"one\",\"time_unit\":\"ms\","                          \
    "\"processors\":[{\"id\":\"p0\"},{\"id\":\"p1\"}],"                                            \
    "\"links\":[{\"src\":\"p0\",\"dst\":\"p1\",\"latency\":1,\"bandwidth\":2.5}],"                 \
    "\"tasks\":[{\"id\":\"b\",\"cost\":[14,null]},{\"id\":\"a\",\"cost\":[9,1.5]}],"               \
    "\"edges\":[{\"src\":\"b\",\"dst\":\"a\",\"bytes\":18}]}"

static struct dag_file *parse(const char *text)
{
    struct dag_file *file = NULL;
    struct problem problem = {""};
    enum dag_status status = dag_parse(text, strlen(text), &file, &problem);
    ck_assert_msg(status == DAG_OK, "%s", problem.text);
    return file;
}

static void refuse(const char *text, enum dag_status expected, const char *said)
{
    struct dag_file *file = NULL;
    struct problem problem = {""};
    enum dag_status status = dag_parse(text, strlen(text), &file, &problem);
    ck_assert_ptr_null(file);
    ck_assert_msg(status == expected, "%d: %s", (int)status, problem.text);
    ck_assert_msg(strstr(problem.text, said) != NULL, "\"%s\" has no \"%s\"", problem.text, said);
}

/* GOOD with `old` replaced. */
static void refuse_changed(const char *old, const char *new, enum dag_status expected,
                           const char *said)
{
    static char text[4096];
    const char *at = strstr(GOOD, old);
    ck_assert_ptr_nonnull(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - GOOD), GOOD, new, at + strlen(old));
    refuse(text, expected, said);
}

START_TEST(a_file_is_read_in_its_own_order)
{
    CLEANUP(dag_file_destroy) struct dag_file *file = parse(GOOD);
    ck_assert_str_eq(file->name, "one");
    ck_assert_str_eq(file->time_unit, "ms");
    ck_assert_uint_eq(file->processor_count, 2);
    ck_assert_uint_eq(file->task_count, 2);
    ck_assert_str_eq(file->tasks[0], "b");
    ck_assert_str_eq(file->processors[1], "p1");
    ck_assert_double_eq(file->costs[0], 14);
    ck_assert(isinf(file->costs[1]));
    ck_assert_double_eq(file->costs[3], 1.5);
    ck_assert_uint_eq(file->link_count, 1);
    ck_assert_uint_eq(file->links[0].from, 0);
    ck_assert_uint_eq(file->links[0].to, 1);
    ck_assert_double_eq(file->links[0].latency, 1);
    ck_assert_double_eq(file->links[0].bandwidth, 2.5);
    ck_assert_uint_eq(file->edges[0].from, 0);
    ck_assert_uint_eq(file->edges[0].to, 1);
    ck_assert_double_eq(file->edges[0].bytes, 18);
}
END_TEST

START_TEST(name_and_unit_may_be_left_out_and_other_keys_are_left_alone)
{
    CLEANUP(dag_file_destroy)
    struct dag_file *file = parse("{\"format\":\"bourse-dag-1\",\"source\":[1],"
                                  "\"processors\":[{\"id\":\"p\",\"kind\":\"cpu\"}],\"links\":[],"
                                  "\"tasks\":[{\"id\":\"t\",\"cost\":[1]}],\"edges\":[]}");
    ck_assert_str_eq(file->name, "");
    ck_assert_str_eq(file->time_unit, "");
    ck_assert_uint_eq(file->edge_count, 0);
}
END_TEST

START_TEST(what_is_no_such_file_is_refused)
{
    refuse("", DAG_SYNTAX, "line 1");
    refuse("{", DAG_SYNTAX, "line 1");
    refuse(GOOD "x", DAG_SYNTAX, "line 1");
    refuse("[]", DAG_FIELD, "a list, not an object");
    refuse("{}", DAG_FIELD, "bourse-dag-1");
    refuse_changed("bourse-dag-1", "bourse-dag-2", DAG_FIELD, "bourse-dag-1");
    refuse_changed("\"name\":\"one\"", "\"name\":\"one\",\"name\":\"two\"", DAG_SYNTAX, "dup");
    refuse_changed("\"edges\"", "\"edgse\"", DAG_FIELD, "no \"edges\"");
    refuse_changed("[{\"id\":\"p0\"},{\"id\":\"p1\"}]", "[]", DAG_FIELD, "0 processors");
    refuse_changed("[{\"id\":\"p0\"},{\"id\":\"p1\"}]", "{}", DAG_FIELD, "not a list");
}
END_TEST

START_TEST(a_wrong_value_is_named_with_its_owner)
{
    refuse_changed("{\"id\":\"p1\"}", "7", DAG_FIELD, "processor 1 is a number");
    refuse_changed("{\"id\":\"p1\"}", "{}", DAG_FIELD, "processor 1 has no \"id\"");
    refuse_changed("{\"id\":\"p1\"}", "{\"id\":\"\"}", DAG_FIELD, "1 to 256 bytes");
    refuse_changed("{\"id\":\"p1\"}", "{\"id\":3}", DAG_FIELD, "a number, not a string");
    refuse_changed("[14,null]", "[14]", DAG_FIELD, "task \"b\"");
    refuse_changed("[14,null]", "[14,null,3]", DAG_FIELD, "2 processors");
    refuse_changed("[14,null]", "[14,\"x\"]", DAG_FIELD, "task \"b\" on \"p1\"");
    refuse_changed("[14,null]", "[14,true]", DAG_FIELD, "true or false");
    refuse_changed("\"latency\":1", "\"latency\":null", DAG_FIELD, "link \"p0\" -> \"p1\"");
    refuse_changed("\"bandwidth\":2.5", "\"band\":2.5", DAG_FIELD, "no \"bandwidth\"");
    refuse_changed("\"bytes\":18", "\"bytes\":[18]", DAG_FIELD, "edge \"b\" -> \"a\"");
    refuse_changed("\"src\":\"b\",", "", DAG_FIELD, "edge 0 has no \"src\"");
}
END_TEST

START_TEST(ids_are_found_or_refused)
{
    refuse_changed("\"dst\":\"p1\"", "\"dst\":\"p9\"", DAG_UNKNOWN, "\"p9\", which no processor");
    refuse_changed("\"dst\":\"a\"", "\"dst\":\"p0\"", DAG_UNKNOWN, "\"p0\", which no task");
    refuse_changed("{\"id\":\"p1\"}", "{\"id\":\"p0\"}", DAG_DUPLICATE,
                   "processor 0 and 1 have the same id, \"p0\"");
    refuse_changed("{\"id\":\"a\"", "{\"id\":\"b\"", DAG_DUPLICATE, "task 0 and 1");
}
END_TEST

START_TEST(numbers_that_json_has_not_are_named_too)
{
    refuse_changed("[14,null]", "[14,NaN]", DAG_FIELD, "task \"b\" on \"p1\": \"cost\" is NaN");
    refuse_changed("[14,null]", "[-Infinity,1]", DAG_FIELD, "task \"b\" on \"p0\"");
    refuse_changed("\"bytes\":18", "\"bytes\":NaN", DAG_FIELD, "edge \"b\" -> \"a\"");
    refuse_changed("\"name\":\"one\"", "\"other\":NaN", DAG_SYNTAX,
                   "line 1"); /* a key that is not read */
    refuse_changed("[14,null]", "[14,1e999]", DAG_SYNTAX, "overflow");
    CLEANUP(dag_file_destroy)
    struct dag_file *file = parse("{\"format\":\"bourse-dag-1\",\"name\":\"NaN \\\" Infinity\","
                                  "\"processors\":[{\"id\":\"NaN\"}],\"links\":[],"
                                  "\"tasks\":[{\"id\":\"NaN\",\"cost\":[1]}],\"edges\":[]}");
    ck_assert_str_eq(file->tasks[0], "NaN");
}
END_TEST

START_TEST(names_in_a_problem_can_be_printed)
{
    refuse_changed("\"dst\":\"a\"", "\"dst\":\"\\u001b[2J\"", DAG_UNKNOWN, "\"?[2J\"");
}
END_TEST

SUITE("dag", NULL, NULL, TEST(a_file_is_read_in_its_own_order),
      TEST(name_and_unit_may_be_left_out_and_other_keys_are_left_alone),
      TEST(what_is_no_such_file_is_refused), TEST(a_wrong_value_is_named_with_its_owner),
      TEST(ids_are_found_or_refused), TEST(numbers_that_json_has_not_are_named_too),
      TEST(names_in_a_problem_can_be_printed))
