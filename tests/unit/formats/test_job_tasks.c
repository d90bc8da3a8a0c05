/* Jobs that are graphs of programs: what is read, what is inherited, what is refused and in which
 * words. */
#include "formats/job.h"

#include "base/cleanup.h"
#include "formats/limits.h"
#include "formats/requirement.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct job_file *parse(const char *text, struct problem *ret_problem)
{
    return job_file_parse(text, strlen(text), "job.yaml", ret_problem);
}

static struct job_file *taken(const char *text)
{
    struct problem problem;
    struct job_file *job = parse(text, &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    return job;
}

static void check_refused(const char *text, const char *wanted)
{
    struct problem problem = {"nothing"};
    CLEANUP(job_file_destroy) struct job_file *job = parse(text, &problem);
    ck_assert_msg(job == NULL, "taken: %s", text);
    ck_assert_str_eq(problem.text, wanted);
}

static void check_wait(const struct job_wait *wait, uint32_t task, const char *output,
                       const char *name)
{
    ck_assert_uint_eq(wait->task, task);
    if (output == NULL) {
        ck_assert_ptr_null(wait->output);
        ck_assert_ptr_null(wait->name);
    } else {
        ck_assert_str_eq(wait->output, output);
        ck_assert_str_eq(wait->name, name);
    }
}

START_TEST(a_diamond_is_read_in_any_order)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = taken("name: diamond\n"
                                 "tasks:\n"
                                 "- name: join\n"
                                 "  from: {l.txt: left/sorted, right.txt: right/sorted}\n"
                                 "  after: [left, cleanup]\n"
                                 "  run: [sort, -m, l.txt, right.txt]\n"
                                 "- {name: left, from: split/aa, run: [sort, aa, -o, sorted],\n"
                                 "   outputs: sorted}\n"
                                 "- {name: right, from: [split/ab], run: [sort, ab, -o, sorted],\n"
                                 "   outputs: [sorted]}\n"
                                 "- {name: split, run: [split, in.txt, \"\"], files: in.txt,\n"
                                 "   outputs: [aa, ab]}\n"
                                 "- {name: cleanup, run: [\"true\"]}\n");
    ck_assert_uint_eq(job->task_count, 5);
    ck_assert_int_eq(job->source, TEMPLATE_ONE);
    const struct job_task *join = &job->tasks[0];
    ck_assert_str_eq(join->name, "join");
    ck_assert_uint_eq(join->line, 3);
    ck_assert_uint_eq(join->wait_count, 4);
    check_wait(&join->waits[0], 1, NULL, NULL);
    check_wait(&join->waits[1], 4, NULL, NULL);
    check_wait(&join->waits[2], 1, "sorted", "l.txt");
    check_wait(&join->waits[3], 2, "sorted", "right.txt");
    check_wait(&job->tasks[1].waits[0], 3, "aa", "aa");
    check_wait(&job->tasks[2].waits[0], 3, "ab", "ab");
    ck_assert_str_eq(job->tasks[3].files.items[0], "in.txt");
    ck_assert_uint_eq(job->tasks[4].wait_count, 0);
}
END_TEST

START_TEST(files_of_a_pattern_go_into_a_folder)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = taken("tasks:\n"
                                 "- {name: a, run: [x], outputs: ['part-*', 'r/[0-9].csv', "
                                 "'r/*.txt']}\n"
                                 "- {name: b, run: [x], from: ['a/part-*', 'a/r/[0-9].csv', "
                                 "'a/r/*.txt']}\n"
                                 "- {name: c, run: [x], from: {parts/: 'a/part-*'}}\n");
    check_wait(&job->tasks[1].waits[0], 0, "part-*", "./");
    check_wait(&job->tasks[1].waits[1], 0, "r/[0-9].csv", "r/");
    check_wait(&job->tasks[1].waits[2], 0, "r/*.txt", "r/"); /* both lie there */
    check_wait(&job->tasks[2].waits[0], 0, "part-*", "parts/");
    check_refused("tasks:\n- {name: a, run: [x], outputs: ['p-*']}\n"
                  "- {name: b, run: [x], from: {p: 'a/p-*'}}\n",
                  "job.yaml:3: p: a/p-* is a pattern: give it a name that ends with a slash");
    check_refused("tasks:\n- {name: a, run: [x], outputs: [p/]}\n"
                  "- {name: b, run: [x], from: {./: a/p/}}\n",
                  "job.yaml:3: ./: \"./\" must be a path inside the work folder: relative, "
                  "without \"..\"");
}
END_TEST

START_TEST(a_pattern_goes_into_a_folder_once)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = taken("tasks:\n- {name: a, run: [x], outputs: ['p-*', 'p-?']}\n"
                                 "- {name: b, run: [x], from: {q/: 'a/p-*', r/: 'a/p-*'}}\n"
                                 "- {name: c, run: [x], outputs: ['p-*']}\n"
                                 "- {name: d, run: [x], from: ['a/p-*', 'c/p-*', 'a/p-?']}\n");
    ck_assert_uint_eq(job->tasks[1].wait_count, 2);
    ck_assert_uint_eq(job->tasks[3].wait_count, 3);
    check_refused("tasks:\n- {name: a, run: [x], outputs: ['p-*']}\n"
                  "- {name: b, run: [x], from: ['a/p-*', a]}\n",
                  "job.yaml:3: from: the task takes the files of a twice; "
                  "name the pattern once");
}
END_TEST

START_TEST(what_a_task_leaves_open_is_the_jobs)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = taken("run: [render]\n"
                                 "needs: {memory: 1GiB}\n"
                                 "slots: 2\n"
                                 "limit: 20m\n"
                                 "outputs: \"{out}\"\n"
                                 "limits: {memory: 1GiB, cpu: 5m}\n"
                                 "tasks:\n"
                                 "- name: first\n"
                                 "- name: second\n"
                                 "  run: [other, arg]\n"
                                 "  needs: kind = gpu\n"
                                 "  slots: 4\n"
                                 "  at_most: 8\n"
                                 "  limit: 1m\n"
                                 "  expect: 30s\n"
                                 "  outputs: []\n"
                                 "  stdin: hello\n"
                                 "  env: {A: b}\n"
                                 "  limits: {memory: 2GiB}\n"
                                 "  from: first\n");
    char text[128];
    const struct job_task *first = &job->tasks[0];
    const struct job_task *second = &job->tasks[1];
    ck_assert_str_eq(job->name, "tasks");
    ck_assert_str_eq(job_task_run(job, first)->items[0], "render");
    ck_assert_ptr_eq(job_task_needs(job, first), &job->needs);
    ck_assert_uint_eq(first->slots, 2);
    ck_assert_int_eq(first->limit_ms, 1200000);
    ck_assert_int_eq(first->term_ms, 2400000);
    ck_assert_int_eq(first->expect_ms, JOB_ABSENT);
    ck_assert_uint_eq(job_task_outputs(job, first)->count, 1);
    ck_assert_str_eq(job_task_run(job, second)->items[1], "arg");
    ck_assert(requirement_text(job_task_needs(job, second), text, sizeof text));
    ck_assert_str_eq(text, "kind = gpu");
    ck_assert_uint_eq(second->slots, 4);
    ck_assert_uint_eq(second->at_most, 8);
    ck_assert_int_eq(second->limit_ms, 60000);
    ck_assert_int_eq(second->term_ms, 120000); /* of its own limit */
    ck_assert_int_eq(second->expect_ms, 30000);
    ck_assert_uint_eq(job_task_outputs(job, second)->count, 0);
    ck_assert_str_eq(second->standard_input, "hello");
    ck_assert_str_eq(second->env[0].value, "b");
    ck_assert_int_eq(second->limits.memory_bytes, INT64_C(2) << 30);
    ck_assert_int_eq(second->limits.cpu_ms, 300000);
    check_wait(&second->waits[0], 0, "out/first", "out/first"); /* its one output */
}
END_TEST

#define TWO(first, second)                                                                         \
    "tasks:\n- {name: a, run: [x], outputs: [one, two]" first "}\n- {name: b, run: [x]" second "}" \
    "\n"

START_TEST(names_that_are_nobodys_are_refused_with_the_nearest)
{
    check_refused(TWO("", ", after: aa"), "job.yaml:3: after: no task \"aa\"; did you mean \"a\"?");
    check_refused(TWO("", ", after: [a, split]"), "job.yaml:3: after: no task \"split\"");
    check_refused(TWO("", ", from: a/ones"),
                  "job.yaml:3: from: task \"a\" has no output \"ones\"; did you mean \"one\"?");
    check_refused(TWO("", ", from: a/result.txt"),
                  "job.yaml:3: from: task \"a\" has no output \"result.txt\"; its `outputs:` name "
                  "what the task leaves");
    check_refused(TWO("", ", from: a"),
                  "job.yaml:3: from: task \"a\" has 2 outputs; write which one, as in a/NAME");
    check_refused(
        TWO(", from: b", ""),
        "job.yaml:2: from: task \"b\" has no outputs to take; name some in its `outputs:`");
    check_refused(TWO("", ", aftr: a"),
                  "job.yaml:3: unknown key \"aftr\"; did you mean \"after\"?");
    check_refused("tasks:\n- {name: a, run: [x]}\n- {name: b, run: [x]}\n- {name: a, run: [x]}\n",
                  "job.yaml:4: name: line 2 has a task \"a\" already; give this task another name");
}
END_TEST

START_TEST(a_circle_names_its_tasks)
{
    check_refused(TWO(", after: b", ", after: a"),
                  "job.yaml:2: name: the tasks wait in a circle: a after b after a");
    check_refused(TWO("", ", after: b"), "job.yaml:3: name: the tasks wait in a circle: b after b");
    check_refused("tasks:\n- {name: z, run: [x], after: a}\n- {name: a, run: [x], after: b}\n"
                  "- {name: b, run: [x], after: c}\n- {name: c, run: [x], after: a}\n",
                  "job.yaml:3: name: the tasks wait in a circle: a after b after c after a");
}
END_TEST

START_TEST(the_rules_of_a_job_hold_for_its_tasks)
{
    check_refused("tasks:\n- {name: a}\n",
                  "job.yaml:2: tasks: a: run: the program is missing, as in run: "
                  "[xz, -9, \"{in}\"]");
    check_refused(
        "run: [x]\ntasks:\n- {name: a, outputs: [/etc/x]}\n",
        "job.yaml:3: outputs: \"/etc/x\" must be a path inside the work folder: relative, "
        "without \"..\"");
    check_refused("run: [x]\ntasks:\n- {name: a, run: [x, \"{in}\"]}\n",
                  "job.yaml:3: run: \"{in}\" only has a meaning with `each:`");
    check_refused("run: [x]\ntasks:\n- {name: a, slots: 3, at_most: 4}\n",
                  "job.yaml:3: at_most: 4 is not a multiple of slots, 3: every subtask takes that "
                  "many");
    check_refused("run: [x]\nterm: 1m\nlimit: 1s\ntasks:\n- {name: a, limit: 5m}\n",
                  "job.yaml:5: tasks: a: term: 1m is shorter than the limit of one subtask, 5m");
    check_refused(
        "run: [x]\narray: 1-3\ntasks:\n- {name: a}\n",
        "job.yaml:4: tasks: each task is one subtask; each, array and lines do not go with "
        "tasks");
    check_refused("run: [x]\ntasks: []\n", "job.yaml:2: tasks: the list needs at least one task");
    check_refused("run: [x]\ntasks: {a: {run: [x]}}\n",
                  "job.yaml:2: tasks: a list is needed here, not a map of keys");
    check_refused("run: [x]\ntasks:\n- {name: 3}\n",
                  "job.yaml:3: name: \"3\" cannot name a task; a task's name is a letter, then "
                  "letters, digits, \".\", \"_\" or \"-\"");
    check_refused("run: [x]\ntasks:\n- {name: ../a}\n",
                  "job.yaml:3: name: \"../a\" cannot name a task; a task's name is a letter, then "
                  "letters, digits, \".\", \"_\" or \"-\"");
    check_refused("run: [x]\nenv: {\"1\": b}\ntasks:\n- {name: a}\n",
                  "job.yaml:2: 1: \"1\" is not the name of a variable: letters, digits and _, at "
                  "most 128");
}
END_TEST

START_TEST(files_do_not_meet_in_the_work_folder)
{
    check_refused(TWO("", ", from: [a/one, a/one]"),
                  "job.yaml:3: from: the task takes two files as \"one\"; give one another name, "
                  "as in {other: a/one}");
    check_refused(TWO("", ", from: {../one: a/one}"),
                  "job.yaml:3: ../one: \"../one\" must be a path inside the work folder: relative, "
                  "without \"..\"");
}
END_TEST

START_TEST(tasks_of_no_ops_wait_and_take_nothing)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = taken("executor: noop\ntasks:\n- name: a\n- {name: b, after: a}\n");
    ck_assert_uint_eq(job->tasks[1].wait_count, 1);
    check_refused("executor: noop\ntasks:\n- {name: a, run: [x]}\n",
                  "job.yaml:3: run: a no-op has no program and no files; only array goes with it");
}
END_TEST

/* Ten thousand, each waiting for the one before, the last ones first. */
START_TEST(a_long_chain_is_read)
{
    enum { COUNT = 10000 };
    size_t size = 80 * COUNT + 100;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    size_t length = (size_t)snprintf(text, size, "tasks:\n");
    for (int i = COUNT; i-- > 0;) {
        length +=
            (size_t)snprintf(text + length, size - length, "- {name: step-%d, run: [\"true\"]", i);
        length += (size_t)snprintf(text + length, size - length,
                                   i > 0 ? ", after: step-%d}\n" : "}\n", i - 1);
    }
    CLEANUP(job_file_destroy) struct job_file *job = taken(text);
    ck_assert_uint_eq(job->task_count, COUNT);
    ck_assert_uint_eq(job->tasks[0].waits[0].task, 1);
    free(text);
}
END_TEST

START_TEST(what_is_read_can_be_sent)
{
    ck_assert_int_le(FORMAT_TASKS, LIMIT_GRAPH_SUBTASKS);
    ck_assert_int_le(FORMAT_WAITS, LIMIT_GRAPH_EDGES);
    ck_assert_int_le(FORMAT_TASKS, LIMIT_FROM);
    ck_assert_int_le(FORMAT_SHARED_FILES, LIMIT_INPUTS);
}
END_TEST

SUITE("job_tasks", NULL, NULL, TEST(a_diamond_is_read_in_any_order),
      TEST(files_of_a_pattern_go_into_a_folder), TEST(a_pattern_goes_into_a_folder_once),
      TEST(what_a_task_leaves_open_is_the_jobs),
      TEST(names_that_are_nobodys_are_refused_with_the_nearest), TEST(a_circle_names_its_tasks),
      TEST(the_rules_of_a_job_hold_for_its_tasks), TEST(files_do_not_meet_in_the_work_folder),
      TEST(tasks_of_no_ops_wait_and_take_nothing), TEST(a_long_chain_is_read),
      TEST(what_is_read_can_be_sent))
