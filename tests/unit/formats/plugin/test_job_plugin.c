/* The tests read jobs whose executor is a plug-in. */
#include "formats/job.h"

#include "tests/support/suite.h"

#include <string.h>

static struct job_file *parse(const char *text, struct problem *problem)
{
    return job_file_parse(text, strlen(text), "job.yaml", problem);
}

START_TEST(an_operation_has_arguments_and_files)
{
    static const char text[] = "executor: plugin\n"
                               "each: [\"*.bin\"]\n"
                               "run: [vector-add.v2, \"{in}\", b.bin, \"{out}\"]\n"
                               "files: [b.bin]\n"
                               "outputs: [\"{out}\"]\n";
    struct problem problem;
    struct job_file *job = parse(text, &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_plugin && !job->is_tensor && !job->is_noop && !job->is_kernel);
    ck_assert_uint_eq(job->run.count, 4);
    job_file_destroy(&job);
}
END_TEST

START_TEST(tasks_are_operations_too)
{
    struct problem problem;
    struct job_file *job = parse("executor: plugin\n"
                                 "tasks:\n"
                                 "- {name: a, run: [fft, x]}\n"
                                 "- {name: b, run: [sum], after: [a]}\n",
                                 &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    job_file_destroy(&job);
    job = parse("executor: plugin\ntasks: [{name: a, run: [F, x]}]\n", &problem);
    ck_assert_ptr_null(job);
    ck_assert_ptr_nonnull(strstr(problem.text, "\"F\" is no operation of a plug-in"));
}
END_TEST

START_TEST(what_does_not_go_with_a_plugin_is_refused_with_its_line)
{
#define OPERATION "executor: plugin\nrun: [fft, x]\n"
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"executor: plugin\n", "job.yaml:1: \"run:\" is missing"},
        {"executor: plugin\nrun: []\n", "run: the program is missing"},
        {"executor: plugin\nrun: [Fft]\n", "job.yaml:2: run: \"Fft\" is no operation of a plug-in"},
        {"executor: plugin\nrun: [--look]\n", "\"--look\" is no operation of a plug-in"},
        {"executor: plugin\narray: 1-2\nrun: [\"op{index}\"]\n", "is no operation of a plug-in"},
        {"executor: plugin\nrun: [a, \"{in}\"]\n", "\"{in}\" only has a meaning"},
        {OPERATION "env: {A: b}\n", "job.yaml:3: A: a plug-in's operation takes only arguments"},
        {OPERATION "stdin: x\n", "stdin: a plug-in's operation takes only arguments and files"},
        {OPERATION "image: x.tar\n", "image: a plug-in's operation takes only arguments and files"},
        {OPERATION "checkpoint: state\n", "checkpoint: only programs save their state"},
        {OPERATION "verify: cheap\n", "verify: cheap checks exist for matrix products"},
        {OPERATION "kernel: {source: a.cl, entry: k, global: 1}\n", "does not go with kernel"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem;
        struct job_file *job = parse(wrong[i].text, &problem);
        ck_assert_msg(job == NULL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

SUITE("job_plugin", NULL, NULL, TEST(an_operation_has_arguments_and_files),
      TEST(tasks_are_operations_too), TEST(what_does_not_go_with_a_plugin_is_refused_with_its_line))
