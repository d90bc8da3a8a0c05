/* The tests read jobs whose executor is wasm, and the first bytes of WASM files. */
#include "formats/job.h"
#include "formats/wasm/wasm_head.h"

#include "tests/support/suite.h"

#include <string.h>

static struct job_file *parse(const char *text, struct problem *problem)
{
    return job_file_parse(text, strlen(text), "job.yaml", problem);
}

START_TEST(a_module_is_a_program_with_words_variables_and_files)
{
    static const char text[] = "executor: wasm\n"
                               "each: [\"*.bin\"]\n"
                               "run: [tool.wasm, -9, \"{in}\", \"{out}\"]\n"
                               "env: {LEVEL: \"{in}\"}\n"
                               "stdin: \"{in}\"\n"
                               "outputs: [\"{out}\", \"{out}.parts/\"]\n";
    struct problem problem;
    struct job_file *job = parse(text, &problem);
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_wasm && !job->is_plugin && !job->is_tensor && !job->is_noop);
    ck_assert_uint_eq(job->run.count, 4);
    job_file_destroy(&job);
    job = parse("executor: wasm\neach: [\"*.wasm\"]\nrun: [\"{in}\"]\n", &problem);
    ck_assert_msg(job != NULL, "%s", problem.text); /* each input is a module */
    job_file_destroy(&job);
}
END_TEST

START_TEST(what_does_not_go_with_a_module_is_refused_with_its_line)
{
#define MODULE "executor: wasm\nrun: [tool.wasm]\n"
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"executor: wasm\n", "job.yaml:1: \"run:\" is missing"},
        {"executor: wasm\nrun: []\n", "run: the program is missing"},
        {"executor: wasm\nrun: [\"\"]\n", "run: "},
        {"executor: wasm\nrun: [\"{in}\"]\n", "\"{in}\" only has a meaning"},
        {MODULE "image: x.tar\n", "job.yaml:3: image: a WASM module needs no image"},
        {MODULE "directory: /srv\n", "directory: "},
        {MODULE "entrypoint: [sh]\n", "entrypoint: "},
        {MODULE "checkpoint: state\n", "checkpoint: only programs save their state"},
        {MODULE "verify: cheap\n", "verify: cheap checks exist for matrix products"},
        {MODULE "kernel: {source: a.cl, entry: k, global: 1}\n", "does not go with kernel"},
        {"run: [\"{in}\"]\neach: [\"*.wasm\"]\n", "program only inside an image"},
        {MODULE "limits: {disk: 1MiB, memory: 64MiB}\n",
         "job.yaml:3: limits: memory: 64MiB is too small for a WASM module with its engine; the "
         "least is 128MiB"},
        {MODULE "limits: {memory: 134217727B}\n", "is too small for a WASM module"},
        {"executor: wasm\nbudget: 1\ntasks:\n  - {name: a, run: [tool.wasm], limits: {memory: "
         "1MiB}}\n",
         "is too small for a WASM module"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem;
        struct job_file *job = parse(wrong[i].text, &problem);
        ck_assert_msg(job == NULL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(a_module_takes_the_least_memory_and_no_limit)
{
    static const char *const right[] = {MODULE "limits: {memory: 128MiB}\n",
                                        MODULE "limits: {disk: 1MiB}\n",
                                        "run: [tool]\nlimits: {memory: 1MiB}\n"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct problem problem;
        struct job_file *job = parse(right[i], &problem);
        ck_assert_msg(job != NULL, "%s", problem.text);
        job_file_destroy(&job);
    }
}
END_TEST

START_TEST(a_file_says_in_its_first_bytes_what_it_is)
{
    static const struct {
        const char *bytes;
        size_t length;
        bool is_wasm;
        const char *said; /* NULL: a module */
    } files[] = {
        {"\0asm\1\0\0\0", 8, true, NULL},
        {"\0asm\1\0\0\0more", 12, true, NULL},
        {"\0asm\x0d\0\1\0", 8, true, "a WASM component (WASI preview 2)"},
        {"\0asm\1\0\0\1", 8, true, "a WASM component (WASI preview 2)"},
        {"\0asm\2\0\0\0", 8, true, "a WASM module of version 2"},
        {"\0asm\1\1\0\0", 8, true, "a WASM module of version 257"},
        {"\0asm\1\0\0", 7, true, "a WASM file that ends after 7 bytes"},
        {"\0asm", 4, true, "ends after 4 bytes"},
        {"\0as", 3, false, "does not begin with \\0asm"},
        {"\0asn\1\0\0\0", 8, false, "does not begin with \\0asm"},
        {"(module)", 8, false, "does not begin with \\0asm"},
        {"", 0, false, "does not begin with \\0asm"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct problem problem = {""};
        ck_assert_int_eq(wasm_head_is(files[i].bytes, files[i].length), files[i].is_wasm);
        ck_assert_int_eq(wasm_head_check(files[i].bytes, files[i].length, &problem),
                         files[i].said == NULL);
        ck_assert_msg(files[i].said == NULL || strstr(problem.text, files[i].said) != NULL,
                      "%zu: %s", i, problem.text);
    }
}
END_TEST

SUITE("job_wasm", NULL, NULL, TEST(a_module_is_a_program_with_words_variables_and_files),
      TEST(what_does_not_go_with_a_module_is_refused_with_its_line),
      TEST(a_module_takes_the_least_memory_and_no_limit),
      TEST(a_file_says_in_its_first_bytes_what_it_is))
