/* The tests go from a job file that names a program here to the manifest that runs the program
 * elsewhere. */
#include "base/cleanup.h"
#include "consumer/job/bourse_job.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_program(const char *name, const char *content)
{
    put(name, content);
    ck_assert_int_eq(chmod(name, 0755), 0);
}

static bool needs(const struct bourse_job *job, const char *name, const char *text)
{
    const struct requirement *needs = &job->parts[0].needs;
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct attribute *attribute = &needs->nodes[i].attribute;
        if (strcmp(attribute->name, name) == 0 && strcmp(attribute->text, text) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(a_script_runs_on_the_interpreter_of_its_first_line)
{
    put_program("go.sh", "#! /bin/sh  -e x \necho\n");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared("run: [./go.sh, a]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(manifest->n_arguments, 4);
    ck_assert_str_eq(manifest->arguments[0], "sh");
    ck_assert_str_eq(manifest->arguments[1], "-e x"); /* one word, as the kernel passes it */
    ck_assert_str_eq(manifest->arguments[2], "./go.sh");
    ck_assert_str_eq(manifest->arguments[3], "a");
    ck_assert_uint_eq(manifest->n_shared, 1);
    ck_assert_str_eq(manifest->shared[0]->name, "go.sh");
    ck_assert(manifest->shared[0]->has_executable && manifest->shared[0]->executable);
    ck_assert(!manifest->has_image);
    ck_assert(needs(job, "program", "sh"));

    put_program("go.py", "#!/usr/bin/env python3\n");
    CLEANUP(bourse_job_destroy) struct bourse_job *python = prepared("run: [./go.py]\n");
    ck_assert(needs(python, "program", "python3"));
}
END_TEST

START_TEST(an_elf_program_brings_its_libraries_as_an_image)
{
    char target[64] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", target, sizeof target - 1), 0);
    ck_assert_int_eq(symlink("/proc/self/exe", "me"), 0); /* this test is a dynamic program */
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared("run: [./me, a]\n");
    CLEANUP(bourse_job_destroy) struct bourse_job *again = prepared("run: [./me, b]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_str_eq(manifest->arguments[0], "./me");
    ck_assert(manifest->has_image);
    ck_assert_uint_ge(job->program.libraries, 2);
    ck_assert_uint_gt(manifest->image_size, job->program.library_bytes);
    ck_assert_str_eq(manifest->shared[0]->name, "me");
    ck_assert(needs(job, "arch", job->program.arch));
    ck_assert(hash32_equal(&job->image.items[0].hash, &again->image.items[0].hash));
}
END_TEST

/* The text has a NUL, so the file is written here. */
static void put_bytes(const char *name, const char *bytes, size_t length)
{
    FILE *file = fopen(name, "wb");
    ck_assert(file != NULL && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
}

START_TEST(a_module_makes_a_job_of_the_executor_wasm)
{
    put_bytes("tool.wasm", "\0asm\1\0\0\0", 8); /* nobody may execute the file */
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared("run: [./tool.wasm, a]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_str_eq(manifest->executor, "wasm");
    ck_assert_uint_eq(manifest->n_arguments, 2);
    ck_assert_str_eq(manifest->arguments[0], "./tool.wasm");
    ck_assert_uint_eq(manifest->n_shared, 1);
    ck_assert_str_eq(manifest->shared[0]->name, "tool.wasm");
    ck_assert(!manifest->has_image);
    ck_assert(needs(job, "executor", "wasm"));
    ck_assert(!needs(job, "program", "./tool.wasm"));
    CLEANUP(bourse_job_destroy)
    struct bourse_job *named = prepared("executor: wasm\nfiles: tool.wasm\nrun: [tool.wasm]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *same = manifest_of(named);
    ck_assert_uint_eq(same->n_shared, 1);
    ck_assert_str_eq(same->arguments[0], "./tool.wasm");
}
END_TEST

START_TEST(a_file_that_is_no_module_is_refused_before_it_is_sent)
{
    put_bytes("part.wasm", "\0asm\x0d\0\1\0", 8);
    put_bytes("text.wasm", "(module)", 8);
    put_bytes("tool.wasm", "\0asm\1\0\0\0", 8);
    static const char *const wrong[][2] = {
        {"run: [./part.wasm]\n", "./part.wasm is a WASM component (WASI preview 2)"},
        {"executor: wasm\nrun: [part.wasm]\n", "part.wasm is a WASM component"},
        {"executor: wasm\nrun: [text.wasm]\n", "text.wasm is no WASM module"},
        {"executor: wasm\nrun: [none.wasm]\n", "none.wasm: No such file or directory"},
        {"run: [./tool.wasm]\ncheckpoint: state\n", "does not go with checkpoint"},
        {"executor: wasm\ntasks: [{name: a, run: [text.wasm], files: [text.wasm]}]\n",
         "'text.wasm' is no WASM module"},
        {"executor: wasm\ntasks: [{name: a, run: [none.wasm]}]\n",
         "'none.wasm' is none of the job's files"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct bourse_error error = refused(wrong[i][0]);
        ck_assert_msg(strstr(error.text, wrong[i][1]) != NULL, "%s", error.text);
    }
}
END_TEST

START_TEST(a_listed_program_is_not_sent_twice)
{
    put_program("go.sh", "#!/bin/sh\n");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("files: go.sh\nrun: [./go.sh]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(manifest->n_shared, 1);
}
END_TEST

START_TEST(a_host_path_stays_a_host_program)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared("run: [/usr/bin/true]\n");
    ck_assert(!job->program.is_own);
    ck_assert(needs(job, "program", "/usr/bin/true"));
}
END_TEST

START_TEST(what_cannot_run_is_refused)
{
    struct bourse_error error = refused("run: [./absent]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "job:1: run: ./absent: No such file"));
    put("data", "#!/bin/sh\n");
    error = refused("run: [./data]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "chmod +x"));
    put_program("text", "hello\n");
    error = refused("run: [./text]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "neither an ELF program nor a script"));
    put_program("far", "#!/opt/x/perl\n");
    error = refused("run: [./far]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "#!/opt/x/perl"));
    put_program("odd", "#!/bin/sh\n");
    error = refused("files: odd\neach: odd\nrun: [./odd]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "given twice"));
}
END_TEST

SUITE("own_program", setup, teardown, TEST(a_script_runs_on_the_interpreter_of_its_first_line),
      TEST(an_elf_program_brings_its_libraries_as_an_image),
      TEST(a_listed_program_is_not_sent_twice), TEST(a_host_path_stays_a_host_program),
      TEST(what_cannot_run_is_refused), TEST(a_module_makes_a_job_of_the_executor_wasm),
      TEST(a_file_that_is_no_module_is_refused_before_it_is_sent))
