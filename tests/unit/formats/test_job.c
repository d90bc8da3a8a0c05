#include "formats/job.h"

#include "base/cleanup.h"
#include "formats/limits.h"
#include "formats/requirement.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct job_file *parse(const char *text, struct problem *ret_problem)
{
    return job_file_parse(text, strlen(text), "job.yaml", ret_problem);
}

static void check_refused(const char *text, const char *wanted)
{
    struct problem problem = {"nothing"};
    struct job_file *job = parse(text, &problem);
    ck_assert_msg(job == NULL, "taken: %s", text);
    ck_assert_str_eq(problem.text, wanted);
}

START_TEST(a_whole_job_is_read)
{
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *job =
        parse("name: thumbnails\n"
              "budget: 2.00\n"
              "cap: 0.12\n"
              "needs: {kind: cpu, memory: 2GiB}\n"
              "slots: 2\n"
              "at_most: 64\n"
              "each: [photos/*.jpg, more/*.jpg]\n"
              "files: [profile.icc]\n"
              "image: tools.tar\n"
              "run: [convert, \"{in}\", -resize, 800x, \"{out}\"]\n"
              "env: {OMP_NUM_THREADS: 1, LANG: C}\n"
              "stdin: \"{in}\"\n"
              "outputs: [\"{out}\"]\n"
              "limit: 10m\n"
              "term: 20m\n"
              "expect: 1.5s\n"
              "limits: {cpu: 5m, memory: 1GiB, disk: 10GB, processes: 8, output: 1MB}\n"
              "verify: none\n"
              "retries: 2\n"
              "error_limit: 10\n"
              "crash_limit: 0\n",
              &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_str_eq(job->name, "thumbnails");
    ck_assert_int_eq(job->budget_micro, 2000000);
    ck_assert_int_eq(job->cap_micro, 120000);
    char needs[128];
    ck_assert(requirement_text(&job->needs, needs, sizeof needs));
    ck_assert_str_eq(needs, "kind = cpu and memory >= 2GiB");
    ck_assert_uint_eq(job->slots, 2);
    ck_assert_uint_eq(job->at_most, 64);
    ck_assert_int_eq(job->source, TEMPLATE_EACH);
    ck_assert_uint_eq(job->each.count, 2);
    ck_assert_str_eq(job->each.items[1], "more/*.jpg");
    ck_assert_uint_eq(job->files.count, 1);
    ck_assert_str_eq(job->image, "tools.tar");
    ck_assert_uint_eq(job->run.count, 5);
    ck_assert_str_eq(job->run.items[3], "800x");
    ck_assert_uint_eq(job->env_count, 2);
    ck_assert_str_eq(job->env[0].name, "OMP_NUM_THREADS");
    ck_assert_str_eq(job->env[0].value, "1");
    ck_assert_str_eq(job->standard_input, "{in}");
    ck_assert_uint_eq(job->outputs.count, 1);
    ck_assert_int_eq(job->limit_ms, 600000);
    ck_assert_int_eq(job->term_ms, 1200000);
    ck_assert_int_eq(job->expect_ms, 1500);
    ck_assert_int_eq(job->limits.cpu_ms, 300000);
    ck_assert_int_eq(job->limits.memory_bytes, INT64_C(1) << 30);
    ck_assert_int_eq(job->limits.disk_bytes, INT64_C(10000000000));
    ck_assert_uint_eq(job->limits.processes, 8);
    ck_assert_int_eq(job->limits.output_bytes, 1000000);
    ck_assert_str_eq(job->verify, "none");
    ck_assert_uint_eq(job->retries, 2);
    ck_assert_int_eq(job->error_limit, 10);
    ck_assert_int_eq(job->crash_limit, 0);
}
END_TEST

START_TEST(a_job_needs_no_more_than_a_program)
{
    struct problem problem;
    CLEANUP(job_file_destroy) struct job_file *job = parse("run: [/usr/bin/xz]\n", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_str_eq(job->name, "xz");
    ck_assert_int_eq(job->budget_micro, LIMIT_NONE);
    ck_assert_int_eq(job->cap_micro, LIMIT_NONE);
    ck_assert_uint_eq(job->needs.count, 0);
    ck_assert_uint_eq(job->slots, 1);
    ck_assert_uint_eq(job->at_most, 0);
    ck_assert_int_eq(job->source, TEMPLATE_ONE);
    ck_assert_ptr_null(job->lines);
    ck_assert_ptr_null(job->image);
    ck_assert_ptr_null(job->standard_input);
    ck_assert_int_eq(job->limit_ms, JOB_LIMIT_MS_NONE);
    ck_assert_int_eq(job->term_ms, JOB_TERM_MS_UNLIMITED);
    ck_assert_int_eq(job->expect_ms, JOB_ABSENT);
    ck_assert_int_eq(job->limits.memory_bytes, 0);
    ck_assert_str_eq(job->verify, "none");
    ck_assert_int_eq(job->error_limit, JOB_ABSENT);
    ck_assert_int_eq(job->crash_limit, JOB_ABSENT);
}
END_TEST

START_TEST(a_noop_needs_no_program_and_takes_none)
{
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("executor: noop\narray: 1-100\n", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_noop);
    ck_assert_str_eq(job->name, "noop");
    CLEANUP(job_file_destroy)
    struct job_file *program = parse("executor: command\nrun: [a]\n", &problem);
    ck_assert(!program->is_noop);
    check_refused("executor: noop\nrun: [a]\n",
                  "job.yaml:2: run: a no-op has no program and no files; only array goes with it");
    check_refused("executor: noop\noutputs: a\n",
                  "job.yaml:2: outputs: a no-op has no program and no files; only array goes with "
                  "it");
    check_refused("executor: noop\neach: \"*\"\n",
                  "job.yaml:2: each: a no-op has no program and no files; only array goes with it");
    check_refused("executor: nop\n",
                  "job.yaml:1: executor: unknown \"nop\"; did you mean \"noop\"?");
}
END_TEST

START_TEST(a_tensor_job_is_an_operation_on_files)
{
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("executor: tensor\n"
                                 "each: rows-*.npy\n"
                                 "run: [gemm, --alpha, 2, \"{in}\", b.npy, c0.npy, \"{out}\"]\n"
                                 "outputs: [\"{out}\"]\n",
                                 &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_tensor && !job->is_noop);
    ck_assert_str_eq(job->name, "gemm");
    check_refused("executor: tensor\n", "job.yaml:1: \"run:\" is missing");
    check_refused("executor: tensor\nrun: [matmul, a, b]\n",
                  "job.yaml:2: run: 2 operands; write [matmul, A.npy, B.npy, C.npy]");
    check_refused("executor: tensor\nrun: [xz, -9]\n",
                  "job.yaml:2: run: no tensor operation \"xz\"; there are matmul, gemm and "
                  "freivalds");
    check_refused("executor: tensor\nrun: [matmul, a, b, c]\n",
                  "job.yaml:2: run: the result is not kept; add outputs: [\"c\"]");
    check_refused("executor: tensor\nrun: [matmul, \"{in}\", b, c]\noutputs: c\n",
                  "job.yaml:2: run: \"{in}\" only has a meaning with `each:`");
    check_refused("executor: tensor\nrun: [matmul, a, b, c]\noutputs: c\nenv: {A: b}\n",
                  "job.yaml:4: A: a tensor operation takes no env, stdin and image, only files");
    check_refused(
        "executor: tensor\nrun: [matmul, a, b, c]\noutputs: c\nimage: x.tar\n",
        "job.yaml:4: image: a tensor operation takes no env, stdin and image, only files");
}
END_TEST

START_TEST(a_byte_order_mark_and_tabs_do_no_harm)
{
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("\xef\xbb\xbfrun: [a]\t# tab\r\nslots:\t2\r\n", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_uint_eq(job->slots, 2);
}
END_TEST

START_TEST(an_input_is_a_program_inside_an_image)
{
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("image: root.tar\neach: tests/*\nrun: [\"./{in}\"]\n", NULL);
    ck_assert_ptr_nonnull(job);
    ck_assert_str_eq(job->name, "job");
}
END_TEST

START_TEST(arrays_and_lines_make_subtasks_too)
{
    CLEANUP(job_file_destroy)
    struct job_file *array = parse("array: 1-100:2\nrun: [seq, \"{index}\"]\n", NULL);
    ck_assert_ptr_nonnull(array);
    ck_assert_int_eq(array->source, TEMPLATE_ARRAY);
    ck_assert_int_eq(range_count(&array->array), 50);
    CLEANUP(job_file_destroy)
    struct job_file *lines =
        parse("{\"lines\": \"list.txt\", \"run\": [\"echo\", \"{line}\"]}", NULL);
    ck_assert_ptr_nonnull(lines);
    ck_assert_int_eq(lines->source, TEMPLATE_LINES);
    ck_assert_str_eq(lines->lines, "list.txt");
}
END_TEST

START_TEST(a_job_is_good_for_a_time_or_till_a_moment)
{
    struct problem problem = {""};
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("run: [x]\ngood_till: 2h\n", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_int_eq(job->good_till_ms, 7200000);
    ck_assert_int_eq(job->good_till_at_ms, 0);
    CLEANUP(job_file_destroy)
    struct job_file *other = parse("run: [x]\ngood_till: 2026-12-24T18:00:00Z\n", &problem);
    ck_assert_msg(other != NULL, "%s", problem.text);
    ck_assert_int_eq(other->good_till_ms, 0);
    ck_assert_int_eq(other->good_till_at_ms, INT64_C(1798135200000));
    check_refused("run: [x]\ngood_till: 2026-12-24\n",
                  "job.yaml:2: good_till: '2026-12-24' is no moment; a moment is of UTC, of the "
                  "years 1970 to 2199, as in 2026-12-24T18:00:00Z");
    check_refused("run: [x]\ndeadline: 9999-01-01T00:00:00Z\n",
                  "job.yaml:2: deadline: '9999-01-01T00:00:00Z' is no moment; a moment is of UTC, "
                  "of the years 1970 to 2199, as in 2026-12-24T18:00:00Z");
    ck_assert_ptr_null(parse("run: [x]\ngood_till: 400d\n", &problem));
    ck_assert_ptr_null(parse("run: [x]\ngood_till: [2h]\n", &problem));
}
END_TEST

START_TEST(a_job_has_a_deadline_and_an_objective)
{
    struct problem problem = {""};
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("run: [x]\ndeadline: 30m\nobjective: price\n", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_int_eq(job->deadline_ms, 1800000);
    ck_assert_int_eq(job->deadline_at_ms, 0);
    ck_assert_int_eq(job->objective, JOB_OBJECTIVE_PRICE);
    CLEANUP(job_file_destroy)
    struct job_file *lean = parse("run: [x]\nobjective: energy\n", &problem);
    ck_assert_msg(lean != NULL, "%s", problem.text);
    ck_assert_int_eq(lean->objective, JOB_OBJECTIVE_ENERGY);
    CLEANUP(job_file_destroy)
    struct job_file *other = parse("run: [x]\ndeadline: 2026-12-24T18:00:00Z\n", &problem);
    ck_assert_msg(other != NULL, "%s", problem.text);
    ck_assert_int_eq(other->deadline_ms, 0);
    ck_assert_int_eq(other->deadline_at_ms, INT64_C(1798135200000));
    ck_assert_int_eq(other->objective, JOB_OBJECTIVE_TIME);
    check_refused("run: [x]\ndeadline: 400d\n",
                  "job.yaml:2: deadline: 400d is too large; the most is 366d");
    check_refused("run: [x]\ndeadline: soon\n",
                  "job.yaml:2: deadline: 'soon' is neither a time from the submission, as in 2h, "
                  "nor a moment; a moment is of UTC, of the years 1970 to 2199, as in "
                  "2026-12-24T18:00:00Z");
    check_refused("run: [x]\nobjective: speed\n",
                  "job.yaml:2: objective: unknown \"speed\"; known are time, price, energy");
    check_refused("run: [x]\nobjective: energy\norder: all-or-none\n",
                  "job.yaml:2: objective: energy chooses which slots to buy, and this type of "
                  "order wants all");
    check_refused("run: [x]\nobjective: price\norder: fok\n",
                  "job.yaml:2: objective: price chooses which slots to buy, and this type of "
                  "order wants all");
    check_refused("executor: tensor\nrun: [matmul, a, b, c]\nfiles: [a, b]\noutputs: c\n"
                  "verify: cheap\nobjective: price\n",
                  "job.yaml:6: objective: price does not go with verify: cheap");
    job->deadline_ms = -1;
    ck_assert(!job_file_check(job, &problem));
    ck_assert_str_eq(problem.text, "deadline: at most 366d");
}
END_TEST

START_TEST(a_list_of_needs_has_the_first_until_another_is_chosen)
{
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *job = parse("run: [x]\n"
                                 "needs:\n"
                                 "- kind = gpu and memory >= 40GiB\n"
                                 "- {kind: cpu, cores: 16}\n",
                                 &problem);
    char needs[128];
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_uint_eq(job->choice_count, 2);
    ck_assert_uint_eq(job->choice, 0);
    ck_assert(requirement_text(&job->needs, needs, sizeof needs));
    ck_assert_str_eq(needs, "kind = gpu and memory >= 40GiB");
    job_file_choose(job, 1);
    ck_assert_uint_eq(job->choice, 1);
    ck_assert(requirement_text(&job->needs, needs, sizeof needs));
    ck_assert_str_eq(needs, "kind = cpu and cores >= 16");
}
END_TEST

START_TEST(a_list_of_needs_is_neither_empty_nor_long)
{
    check_refused(
        "run: [x]\nneeds: []\n",
        "job.yaml:2: needs: the list is empty; it takes 1 to 8 needs, the best one first");
    check_refused("run: [x]\nneeds: [a = 1]\n",
                  "job.yaml:2: needs: column 1: unknown field \"a\"; `man bourse-job` lists those "
                  "that are known");
    check_refused("run: [x]\nneeds: [cores > 1, cores > 2, cores > 3, cores > 4, cores > 5, "
                  "cores > 6, cores > 7, cores > 8, cores > 9]\n",
                  "job.yaml:2: needs: 9 items; at most 8 are taken");
}
END_TEST

START_TEST(mistyped_keys_and_units_name_line_and_nearest)
{
    check_refused("run: [a]\nbugdet: 2\n",
                  "job.yaml:2: unknown key \"bugdet\"; did you mean \"budget\"?");
    check_refused("run: [a]\nlimits: {memroy: 1GiB}\n",
                  "job.yaml:2: unknown key \"memroy\"; did you mean \"memory\"?");
    check_refused("run: [a]\nneeds: {memroy: 1GiB}\n",
                  "job.yaml:2: unknown key \"memroy\"; did you mean \"memory\"?");
    check_refused("run: [a]\nneeds: {memory: 2G}\n",
                  "job.yaml:2: memory: \"2G\" has an unknown unit; known are B, kB, MB, GB, TB, "
                  "PB, KiB, MiB, GiB, TiB, PiB");
    check_refused(
        "run: [a]\nneeds: kind = cpu and memry > 1\n",
        "job.yaml:2: needs: column 16: unknown field \"memry\"; did you mean \"memory\"?");
    check_refused("run: [a]\nlimit: 10\n",
                  "job.yaml:2: limit: \"10\" has no unit; write for example 90s, 10m, 1h30m or 7d");
    check_refused("run: [a]\nbudget: 0.0000001\n",
                  "job.yaml:2: budget: \"0.0000001\" is finer than the smallest step, 0.000001 (6 "
                  "decimals)");
    check_refused("run: [a]\nbudget: -1\n",
                  "job.yaml:2: budget: -1.00 is too small; the least is 0.00");
    check_refused("run: [a]\ncrash_limit: 101\n",
                  "job.yaml:2: crash_limit: 101 is too large; the most is 100");
    check_refused("run: [a]\ncrash_limit: -1\n",
                  "job.yaml:2: crash_limit: -1 is too small; the least is 0");
    check_refused("run: [a]\nslots: 0\n", "job.yaml:2: slots: 0 is too small; the least is 1");
    check_refused("run: [a]\narray: 5-1\n",
                  "job.yaml:2: array: the range \"5-1\" runs backwards; write "
                  "the smaller number first");
    check_refused("run: [a]\nrun: [b]\n",
                  "job.yaml:2: key \"run\" is given twice, first on line 1");
}
END_TEST

START_TEST(wrong_shapes_say_what_to_write)
{
    check_refused("", "job.yaml:1: \"run:\" is missing");
    check_refused("- run\n", "job.yaml:1: a map (key: value) is needed here, not a list");
    check_refused(
        "run: xz -9\n",
        "job.yaml:1: run: write a list, one argument each, as in [xz, -9, \"{in}\"]; no shell "
        "reads it (for one, write [sh, -c, \"...\"])");
    check_refused("run: []\n",
                  "job.yaml:1: run: the program is missing, as in run: [xz, -9, \"{in}\"]");
    check_refused(
        "run: [\"{in}\"]\neach: a\n",
        "job.yaml:1: run: a host program must be a plain name; an input runs as the program "
        "only inside an image");
    check_refused("run: [a, ~]\n",
                  "job.yaml:1: run: the value is missing (an empty text is written \"\")");
    check_refused("run: [a]\nenv: [A=1]\n",
                  "job.yaml:2: env: a map (key: value) is needed here, not a list");
    check_refused("run: [a]\nenv:\n  1X: a\n",
                  "job.yaml:3: 1X: \"1X\" is not the name of a variable: "
                  "letters, digits and _, at most 128");
    check_refused("run: [a]\neach: []\n", "job.yaml:2: each: at least one pattern is needed");
    check_refused("run: [a]\neach: [\"\"]\n", "job.yaml:2: each: an empty name");
    check_refused("run: [a]\nname: \"\"\n", "job.yaml:2: name: an empty name");
    check_refused("run: [a]\nname: \"a\\nb\"\n",
                  "job.yaml:2: name: a name has no control characters and no bidirectional marks");
}
END_TEST

START_TEST(what_is_not_there_yet_is_refused_not_ignored)
{
    static const char *const names[] = {"pipeline", "matmul", "llm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[64];
        char wanted[160];
        (void)snprintf(text, sizeof text, "name: x\n%s: y\n", names[i]);
        (void)snprintf(
            wanted, sizeof wanted,
            "job.yaml:2: %s: not available yet; this version runs one program per subtask "
            "(run:)",
            names[i]);
        check_refused(text, wanted);
    }
    check_refused("run: [a]\nverify: full\n",
                  "job.yaml:2: verify: unknown \"full\"; known are none, cheap");
    check_refused("run: [a]\nverify: quorum 2/3\n",
                  "job.yaml:2: verify: unknown \"quorum 2/3\"; known are none, cheap");
    check_refused("run: [a]\nverify: cheap\n",
                  "job.yaml:2: verify: cheap checks exist for matrix products: executor: tensor, "
                  "with matmul, or gemm with --alpha 1 --beta 0, and without --compute");
    check_refused("executor: tensor\nrun: [freivalds, a, b, c, drawn, \"20\"]\nverify: cheap\n",
                  "job.yaml:3: verify: cheap checks exist for matrix products: executor: tensor, "
                  "with matmul, or gemm with --alpha 1 --beta 0, and without --compute");
    check_refused("executor: tensor\nrun: [matmul, --compute, tf32, a, b, c]\noutputs: [c]\n"
                  "verify: cheap\n",
                  "job.yaml:4: verify: cheap checks exist for matrix products: executor: tensor, "
                  "with matmul, or gemm with --alpha 1 --beta 0, and without --compute");
    check_refused("run: [a]\nverify: chep\n",
                  "job.yaml:2: verify: unknown \"chep\"; did you mean \"cheap\"?");
}
END_TEST

START_TEST(an_order_is_one_of_six_words)
{
    for (unsigned order = 0; order < JOB_ORDERS; order++) {
        char text[64];
        struct problem problem = {""};
        (void)snprintf(text, sizeof text, "run: [a]\norder: %s\ncap: 0.1\n",
                       job_order_names[order]);
        CLEANUP(job_file_destroy) struct job_file *job = parse(text, &problem);
        ck_assert_msg(job != NULL, "%s", problem.text);
        ck_assert_uint_eq(job->order, order);
    }
    check_refused(
        "run: [a]\norder: gtc\n",
        "job.yaml:2: order: unknown \"gtc\"; known are limit, ioc, fok, post-only, all-or-none, "
        "market");
    check_refused("run: [a]\norder: limit\n",
                  "job.yaml:2: order: limit needs a cap, the price that the job is ready to pay; "
                  "give cap:, or leave order: out");
    check_refused("executor: tensor\nrun: [matmul, a.npy, b.npy, c.npy]\noutputs: c.npy\n"
                  "files: [a.npy, b.npy]\nverify: cheap\norder: fok\n",
                  "job.yaml:6: order: fok does not go with verify: cheap");
    check_refused("order: ioc\ntasks:\n- {name: a, run: [x]}\n- {name: b, run: [y], after: a}\n",
                  "job.yaml:1: order: ioc asks for everything at once, and the task b waits for "
                  "another");
}
END_TEST

START_TEST(keys_that_contradict_each_other_are_refused)
{
    check_refused("run: [a]\ncheckpoint: state/\n",
                  "job.yaml:2: checkpoint: \"state/\" ends with a slash: leave it out");
    check_refused("run: [a]\neach: x\narray: 1-2\n",
                  "job.yaml:3: array: only one of each, array and lines may stand in a job");
    check_refused("run: [a]\nlines: l\neach: x\n",
                  "job.yaml:2: lines: only one of each, array and lines may stand in a job");
    check_refused("array: 1-2\nrun: [a,\n  \"{in}\"]\n",
                  "job.yaml:3: run: \"{in}\" only has a meaning with `each:`");
    check_refused("each: x\nrun: [a, \"{inn}\"]\n",
                  "job.yaml:2: run: unknown placeholder \"{inn}\"; did you mean \"{in}\"?");
    check_refused("run: [a]\nenv: {A: b, C: \"{x}\"}\n",
                  "job.yaml:2: C: unknown placeholder \"{x}\"; known are {in} {out} {index} {line} "
                  "{value}, and \"{{\" for a brace itself");
    check_refused("run: [a]\nstdin: \"{\"\n",
                  "job.yaml:2: stdin: a single \"{\"; write \"{{\" for the character itself");
    check_refused("run: [a]\noutputs: [../x]\n",
                  "job.yaml:2: outputs: \"../x\" must be a path inside the work folder: relative, "
                  "without \"..\"");
    check_refused("run: [a]\noutputs: [/etc/passwd]\n",
                  "job.yaml:2: outputs: \"/etc/passwd\" must be a path inside the work folder: "
                  "relative, without \"..\"");
    check_refused("run: [a]\noutputs:\n- x\n- x\n",
                  "job.yaml:4: outputs: the same output is given twice");
    check_refused("run: [a]\noutputs:\n- x\n- x/y\n",
                  "job.yaml:4: outputs: \"x/y\" lies below \"x\", which is an output, too");
    check_refused("run: [a]\noutputs:\n- x/\n- x/y\n",
                  "job.yaml:4: outputs: \"x/y\" lies below \"x/\", which is an output, too");
    check_refused("run: [a]\noutputs:\n- x\n- x/\n",
                  "job.yaml:4: outputs: \"x/\" lies below \"x\", which is an output, too");
    check_refused("run: [a]\noutputs: ['../*.csv']\n",
                  "job.yaml:2: outputs: \"../*.csv\" must be a path inside the work folder: "
                  "relative, without \"..\"");
    check_refused("run: [a]\noutputs: ['/tmp/*']\n",
                  "job.yaml:2: outputs: \"/tmp/*\" must be a path inside the work folder: "
                  "relative, without \"..\"");
    check_refused("run: [a]\noutputs: ['r/**/x']\n",
                  "job.yaml:2: outputs: the pattern \"r/**/x\" has \"**\"; a folder, as in "
                  "results/, stands for everything below it");
    check_refused("run: [a]\noutputs: ['*.csv', 'a.csv']\n",
                  "job.yaml:2: outputs: the pattern \"*.csv\" also takes \"a.csv\", which is an "
                  "output, too");
    check_refused("run: [a]\noutputs: ['results/', 'results/*.csv']\n",
                  "job.yaml:2: outputs: the pattern \"results/*.csv\" also takes \"results/\", "
                  "which is an output, too");
    check_refused("executor: plugin\nrun: [add]\noutputs: ['*.csv']\n",
                  "job.yaml:3: outputs: \"*.csv\" is a pattern, which only the files of programs "
                  "have; name the file");
    check_refused("run: [a]\ncheckpoint: state\noutputs: ['s*/x']\n",
                  "job.yaml:2: checkpoint: \"s*/x\" of outputs lies there too");
    check_refused("run: [a]\noutputs: [/]\n",
                  "job.yaml:2: outputs: \"/\" must be a path inside the work folder: relative, "
                  "without \"..\"");
    check_refused("run: [a]\noutputs: [x//]\n",
                  "job.yaml:2: outputs: \"x//\" has two slashes in a row; write one");
    check_refused("run: [a]\noutputs: [a//b]\n",
                  "job.yaml:2: outputs: \"a//b\" has two slashes in a row; write one");
    check_refused("run: [a]\noutputs:\n- x/y/z\n- xy\n- x\n",
                  "job.yaml:5: outputs: \"x/y/z\" lies below \"x\", which is an output, too");
    check_refused(
        "run: [a]\nslots: 4\nat_most: 6\n",
        "job.yaml:3: at_most: 6 is not a multiple of slots, 4: every subtask takes that many");
    check_refused("run: [a]\nlimit: 10m\nterm: 5m\n",
                  "job.yaml:3: term: 5m is shorter than the limit of one subtask, 10m");
    check_refused("run: [a]\nlimit: 10m\nexpect: 1h\n",
                  "job.yaml:3: expect: longer than the limit of one subtask, 10m");
}
END_TEST

START_TEST(a_job_from_the_command_line_obeys_the_same_rules)
{
    struct problem problem;
    CLEANUP(job_file_destroy) struct job_file *job = job_file_create();
    ck_assert(!job_file_check(job, &problem));
    ck_assert_str_eq(problem.text, "run: the program is missing, as in run: [xz, -9, \"{in}\"]");
    ck_assert(job_strings_add(&job->run, FORMAT_ARGUMENTS, "/bin/echo"));
    ck_assert(job_strings_add(&job->run, FORMAT_ARGUMENTS, "{line}"));
    ck_assert(!job_file_check(job, &problem));
    ck_assert_str_eq(problem.text, "run: \"{line}\" only has a meaning with `lines:`");
    job->source = TEMPLATE_LINES;
    ck_assert(!job_file_check(job, &problem));
    ck_assert_str_eq(problem.text, "lines: the name of a file is needed");
    ck_assert(job_file_set(&job->lines, "list"));
    ck_assert(job_file_add_variable(job, "A", "1"));
    ck_assert(job_file_check(job, &problem));
    ck_assert_str_eq(job->name, "echo");
    ck_assert_int_eq(job->term_ms, JOB_TERM_MS_UNLIMITED);
    job->crash_limit = FORMAT_RETRIES + 1;
    ck_assert(!job_file_check(job, &problem));
    ck_assert_str_eq(problem.text, "crash_limit: not between 0 and 100");
    job->crash_limit = FORMAT_RETRIES;
    ck_assert(job_file_add_variable(job, "A", "2"));
    ck_assert(!job_file_check(job, &problem));
    ck_assert_str_eq(problem.text, "env: \"A\" is given twice");
}
END_TEST

START_TEST(lists_have_their_caps)
{
    struct job_strings strings = {0};
    for (int i = 0; i < 5; i++) {
        ck_assert(job_strings_add(&strings, 5, "x"));
    }
    ck_assert(!job_strings_add(&strings, 5, "x"));
    ck_assert_uint_eq(strings.count, 5);
    for (size_t i = 0; i < strings.count; i++) {
        free(strings.items[i]);
    }
    free(strings.items);

    CLEANUP(job_file_destroy) struct job_file *job = job_file_create();
    for (int i = 0; i < FORMAT_VARIABLES; i++) {
        ck_assert(job_file_add_variable(job, "A", ""));
    }
    ck_assert(!job_file_add_variable(job, "A", ""));
}
END_TEST

START_TEST(a_job_may_follow_others_and_leave_folders)
{
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *job =
        parse("run: [a]\nafter: [first, last]\noutputs: [results/, x]\n", &problem);
    ck_assert_ptr_nonnull(job);
    ck_assert_uint_eq(job->after.count, 2);
    ck_assert_str_eq(job->after.items[1], "last");
    ck_assert_str_eq(job->outputs.items[0], "results/");
    check_refused("run: [a]\nafter: \"\"\n", "job.yaml:2: after: an empty name");
}
END_TEST

START_TEST(no_cap_is_wider_than_the_wires)
{
    ck_assert_int_le(FORMAT_FOLDER_FILES, LIMIT_FOLDER_FILES);
    ck_assert_int_le(FORMAT_NAME_BYTES, LIMIT_NAME_BYTES);
    ck_assert_int_le(FORMAT_PATH_BYTES, LIMIT_PATH_BYTES);
    ck_assert_int_le(FORMAT_ARGUMENT_BYTES, LIMIT_ARGUMENT_BYTES);
    ck_assert_int_le(FORMAT_ARGUMENTS, LIMIT_ARGUMENTS);
    ck_assert_int_le(FORMAT_VARIABLES, LIMIT_VARIABLES);
    ck_assert_int_le(FORMAT_OUTPUTS, LIMIT_OUTPUTS);
    ck_assert_int_lt(FORMAT_SHARED_FILES, LIMIT_INPUTS);
    ck_assert_int_le(FORMAT_SUBTASKS, LIMIT_SUBTASKS);
    ck_assert_int_le(FORMAT_SLOTS, LIMIT_SLOTS);
    ck_assert_int_le(REQUIREMENT_NODES_MAX, LIMIT_REQUIREMENT_NODES);
}
END_TEST

SUITE("job", NULL, NULL, TEST(a_whole_job_is_read), TEST(a_job_needs_no_more_than_a_program),
      TEST(a_noop_needs_no_program_and_takes_none), TEST(a_tensor_job_is_an_operation_on_files),
      TEST(a_byte_order_mark_and_tabs_do_no_harm), TEST(an_input_is_a_program_inside_an_image),
      TEST(arrays_and_lines_make_subtasks_too), TEST(a_job_is_good_for_a_time_or_till_a_moment),
      TEST(a_job_has_a_deadline_and_an_objective),
      TEST(a_list_of_needs_has_the_first_until_another_is_chosen),
      TEST(a_list_of_needs_is_neither_empty_nor_long),
      TEST(mistyped_keys_and_units_name_line_and_nearest), TEST(wrong_shapes_say_what_to_write),
      TEST(what_is_not_there_yet_is_refused_not_ignored), TEST(an_order_is_one_of_six_words),
      TEST(keys_that_contradict_each_other_are_refused),
      TEST(a_job_from_the_command_line_obeys_the_same_rules), TEST(lists_have_their_caps),
      TEST(a_job_may_follow_others_and_leave_folders), TEST(no_cap_is_wider_than_the_wires))
