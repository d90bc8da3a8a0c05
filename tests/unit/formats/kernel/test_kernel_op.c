/* The tests read the words of a launch, and the key `kernel` of a job file that makes these
 * words. */
#include "formats/job.h"
#include "formats/kernel/kernel_op.h"
#include "tests/support/suite.h"

#include <string.h>

static bool read_words(const char *const *words, bool has_holes, struct kernel_op *op,
                       struct problem *problem)
{
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    *problem = (struct problem){""};
    return kernel_op_read(words, count, has_holes, op, problem);
}
#define READ(op, problem, ...)                                                                     \
    read_words((const char *const[]){__VA_ARGS__, NULL}, false, (op), (problem))

START_TEST(a_launch_has_a_range_and_arguments)
{
    struct kernel_op op;
    struct problem problem;
    ck_assert_msg(READ(&op, &problem, "add.cl", "add", "--global", "1024,16", "--group", "64,2",
                       "--options", "-D N=4", "--input", "a", "--inout", "b", "c", "--output", "d",
                       "4096", "--local", "128", "--int", "-2147483648", "--uint", "4294967295",
                       "--long", "-9223372036854775808", "--ulong", "18446744073709551615",
                       "--float", "-1.5e-3", "--double", "+.5"),
                  "%s", problem.text);
    ck_assert_str_eq(op.source, "add.cl");
    ck_assert_str_eq(op.entry, "add");
    ck_assert_str_eq(op.options, "-D N=4");
    ck_assert_uint_eq(op.dimensions, 2);
    ck_assert(op.has_group && op.global[0] == 1024 && op.global[1] == 16 && op.group[1] == 2);
    ck_assert_uint_eq(op.argument_count, 10);
    ck_assert_str_eq(op.arguments[1].file, "b");
    ck_assert_str_eq(op.arguments[1].result, "c");
    ck_assert(op.arguments[2].size_bytes == 4096 && op.arguments[3].size_bytes == 128);
    ck_assert(op.arguments[4].integer == INT32_MIN && op.arguments[5].natural == UINT32_MAX);
    ck_assert(op.arguments[6].integer == INT64_MIN && op.arguments[7].natural == UINT64_MAX);
    ck_assert_str_eq(op.arguments[8].number, "-1.5e-3");
}
END_TEST

START_TEST(a_wrong_launch_says_what_to_do)
{
    static const struct {
        const char *words[9];
        const char *said;
    } wrong[] = {
        {{"a.cl"}, "a launch begins with a source file and the name of a kernel"},
        {{"../a.cl", "k", "--global", "1"}, "\"../a.cl\" is no file of the work folder"},
        {{"a.cl", "2k", "--global", "1"}, "entry: \"2k\" is no name of a kernel"},
        {{"a.cl", "k"}, "global: the number of work-items is missing, as in [1024]"},
        {{"a.cl", "k", "--global", "0"}, "global: \"0\" is no range"},
        {{"a.cl", "k", "--global", "1,2,3,4"}, "global: \"1,2,3,4\" has more than 3 dimensions"},
        {{"a.cl", "k", "--global", "1,"}, "global: \"1,\" is no range"},
        {{"a.cl", "k", "--global", "1099511627777"}, "is no range"},
        {{"a.cl", "k", "--global", "8", "--group", "2,2"}, "local: 2 dimensions, and global has 1"},
        {{"a.cl", "k", "--global", "9", "--group", "2"}, "global: 9 is no multiple of local, 2"},
        {{"a.cl", "k", "--global", "9", "--sum", "2"}, "no argument \"--sum\"; there are input,"},
        {{"a.cl", "k", "--global", "9", "--output", "b"}, "output: its value is missing"},
        {{"a.cl", "k", "--global", "9", "--output", "b", "0"}, "size: \"0\" is no size"},
        {{"a.cl", "k", "--global", "9", "--int", "2147483648"}, "int: \"2147483648\" is no whole"},
        {{"a.cl", "k", "--global", "9", "--int", "-2147483649"}, "is no whole number of 32 bits"},
        {{"a.cl", "k", "--global", "9", "--uint", "-1"}, "is no whole number of 32 bits without"},
        {{"a.cl", "k", "--global", "9", "--float", "nan"}, "float: \"nan\" is no decimal number"},
        {{"a.cl", "k", "--global", "9", "--output", "a.cl", "4"}, "output: \"a.cl\" is read, too"},
        {{"a.cl", "k", "--global", "9", "--inout", "b", "b"}, "output: \"b\" is read, too"},
        {{"a.ptx", "k", "--global", "9", "--group", "2"}, "global: 9 is no multiple of local, 2"},
        {{"a.ptx", "k", "--global", "9", "--options", "-O3"}, "options: PTX and cubins are"},
        {{"a.cubin", "k", "--global", "9", "--local", "8", "--local", "8"},
         "local: 2 of them; a kernel of CUDA has one dynamic shared memory"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct kernel_op op;
        struct problem problem;
        ck_assert(!read_words(wrong[i].words, false, &op, &problem));
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(the_end_of_a_sources_name_says_for_what_it_is)
{
    static const struct {
        const char *source;
        enum kernel_api api;
    } sources[] = {
        {"a.ptx", KERNEL_CUDA},     {"b.d/a.cubin", KERNEL_CUDA}, {"a.cl", KERNEL_OPENCL},
        {"a", KERNEL_OPENCL},       {".ptx", KERNEL_OPENCL},      {"a.ptx.cl", KERNEL_OPENCL},
        {"a.cubic", KERNEL_OPENCL}, {"{in}.ptx", KERNEL_CUDA},    {"{in}", KERNEL_OPENCL},
    };
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        struct kernel_op op;
        struct problem problem = {""};
        const char *const words[] = {sources[i].source, "k", "--global", "8", "--local", "8"};
        ck_assert_msg(kernel_op_read(words, 6, true, &op, &problem), "%s", problem.text);
        ck_assert_msg(op.api == sources[i].api, "%s", sources[i].source);
        ck_assert(kernel_op_api(sources[i].source) == sources[i].api);
    }
    ck_assert_str_eq(kernel_op_api_word(KERNEL_CUDA), "cuda");
    ck_assert_str_eq(kernel_op_api_name(KERNEL_CUDA), "CUDA");
}
END_TEST

START_TEST(a_placeholder_is_checked_when_it_is_filled_in)
{
    static const char *const words[] = {"a.cl",    "k",     "--global", "{index},8",
                                        "--group", "2,2",   "--output", "{in}.out",
                                        "{value}", "--int", "{index}",  NULL};
    struct kernel_op op;
    struct problem problem;
    ck_assert_msg(read_words(words, true, &op, &problem), "%s", problem.text);
    ck_assert_uint_eq(op.dimensions, 2);
    ck_assert(!read_words(words, false, &op, &problem));
}
END_TEST

/* ---------------------------------------------------------------- the job file */

static struct job_file *parse(const char *text, struct problem *problem)
{
    *problem = (struct problem){""};
    return job_file_parse(text, strlen(text), "job.yaml", problem);
}

START_TEST(the_key_makes_words_files_and_outputs)
{
    struct problem problem;
    struct job_file *job = parse("files: [b.bin]\n"
                                 "outputs: [log]\n"
                                 "kernel:\n"
                                 "  source: add.cl\n"
                                 "  entry: add\n"
                                 "  global: [1024, 2]\n"
                                 "  local: [64, 1]\n"
                                 "  options: -cl-fast-relaxed-math\n"
                                 "  arguments:\n"
                                 "  - {input: a.bin}\n"
                                 "  - {input: b.bin}\n"
                                 "  - {output: c.bin, size: 4KiB}\n"
                                 "  - {inout: d.bin, output: e.bin}\n"
                                 "  - {local: 1KiB}\n"
                                 "  - {float: 2.5}\n",
                                 &problem);
    static const char *const words[] = {"add.cl",   "add",   "--global",  "1024,2",
                                        "--group",  "64,1",  "--options", "-cl-fast-relaxed-math",
                                        "--input",  "a.bin", "--input",   "b.bin",
                                        "--output", "c.bin", "4096",      "--inout",
                                        "d.bin",    "e.bin", "--local",   "1024",
                                        "--float",  "2.5"};
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_kernel);
    ck_assert_str_eq(job->name, "add.cl");
    ck_assert_uint_eq(job->run.count, sizeof words / sizeof words[0]);
    for (size_t i = 0; i < job->run.count; i++) {
        ck_assert_str_eq(job->run.items[i], words[i]);
    }
    ck_assert_uint_eq(job->files.count, 4); /* b.bin once */
    ck_assert_str_eq(job->files.items[1], "add.cl");
    ck_assert_uint_eq(job->outputs.count, 3);
    ck_assert_str_eq(job->outputs.items[2], "e.bin");
    job_file_destroy(&job);
}
END_TEST

START_TEST(a_wrong_key_is_refused_with_its_line)
{
#define BEGIN "kernel:\n  source: a.cl\n  entry: k\n"
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"kernel: {source: a.cl, entry: k}\n", "job.yaml:1: kernel: \"global:\" is missing"},
        {BEGIN "  global: []\n", "job.yaml:4: global: an empty range"},
        {BEGIN "  global: [1, 2, 3, 4]\n", "job.yaml:4: global: 4 items; at most 3"},
        {BEGIN "  global: many\n", "job.yaml:2: kernel: global: \"many\" is no range"},
        {BEGIN "  gloobal: 4\n", "job.yaml:4: unknown key \"gloobal\"; did you mean \"global\"?"},
        {BEGIN "  global: 4\n  arguments: [{output: b}]\n", "an argument is one of {input: FILE}"},
        {BEGIN "  global: 4\n  arguments: [{input: b, size: 4KiB}]\n", "an argument is one of"},
        {BEGIN "  global: 4\n  arguments: [{inout: b}]\n", "an argument is one of"},
        {BEGIN "  global: 4\n  arguments: [{int: 1, float: 2}]\n", "an argument is one of"},
        {BEGIN "  global: 4\nrun: [ls]\n", "job.yaml:5: run: does not go with kernel"},
        {BEGIN "  global: 4\nenv: {A: b}\n", "job.yaml:2: kernel: does not go with env"},
        {BEGIN "  global: 4\nimage: x.tar\n", "job.yaml:2: kernel: does not go with image"},
        {BEGIN "  global: 4\nverify: cheap\n", "verify: cheap checks exist for matrix products"},
        {BEGIN "  global: 4\n  arguments: [{int: \"{in}\"}]\n", "\"{in}\" only has a meaning"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem;
        struct job_file *job = parse(wrong[i].text, &problem);
        ck_assert_msg(job == NULL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

SUITE("kernel_op", NULL, NULL, TEST(a_launch_has_a_range_and_arguments),
      TEST(the_end_of_a_sources_name_says_for_what_it_is), TEST(a_wrong_launch_says_what_to_do),
      TEST(a_placeholder_is_checked_when_it_is_filled_in),
      TEST(the_key_makes_words_files_and_outputs), TEST(a_wrong_key_is_refused_with_its_line))
