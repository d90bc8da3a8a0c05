/* These tests build jobs whose results are checked, and look at what their operations read. */
#include "base/cleanup.h"
#include "consumer/job/bourse_job.h"
#include "consumer/job/result_checks.h"
#include "consumer/job/tasks.h"
#include "formats/npy.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Makes a file as large as it says, nearly all of it a hole. */
static void put_hole(const char *name, uint32_t rows, uint32_t columns)
{
    uint8_t head[NPY_MATRIX_BYTES];
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    npy_write_matrix(rows, columns, head);
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, file), sizeof head);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(
        truncate(name, (off_t)(sizeof head + (uint64_t)rows * columns * sizeof(float))), 0);
}

static const Bourse__V1__ManifestTask *check_in(const Bourse__V1__Manifest *manifest, size_t index)
{
    ck_assert_uint_lt(index, manifest->n_subtasks);
    ck_assert_ptr_nonnull(manifest->subtasks[index]->task);
    return manifest->subtasks[index]->task;
}

START_TEST(each_product_of_a_cheap_job_gets_a_check_that_waits_for_it_alone)
{
    put_matrix("a1.npy", 2, 2);
    put_matrix("a2.npy", 3, 2);
    put_matrix("b.npy", 2, 4);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job =
        prepared("executor: tensor\neach: a*.npy\nfiles: b.npy\nneeds: {memory: 1GiB}\n"
                 "slots: 2\nrun: [matmul, \"{in}\", b.npy, \"{in}.c\"]\n"
                 "outputs: \"{in}.c\"\nverify: cheap\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(job->subtasks, 4);
    ck_assert_uint_eq(job->checks, 2);
    ck_assert_uint_eq(manifest->subtask_count, 4);
    ck_assert_uint_eq(result_checks_count(manifest), 2);
    ck_assert_str_eq(manifest->terms->verify, "cheap");
    ck_assert(tasks_well_formed(manifest));
    ck_assert_ptr_null(manifest->subtasks[1]->task);

    const Bourse__V1__ManifestTask *check = check_in(manifest, 3);
    static const char *const arguments[] = {"freivalds", "a2.npy", "b.npy",
                                            "a2.npy.c",  "drawn",  "20"};
    ck_assert_str_eq(check->name, "check of subtask 1");
    ck_assert_uint_eq(check->n_arguments, 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_str_eq(check->arguments[i], arguments[i]);
    }
    ck_assert_uint_eq(check->n_from, 1);
    ck_assert_uint_eq(check->from[0]->task, 1);
    ck_assert_str_eq(check->from[0]->output, "a2.npy.c");
    ck_assert_uint_eq(manifest->subtasks[3]->n_inputs, 1); /* b.npy is everybody's */
    ck_assert_str_eq(manifest->subtasks[3]->inputs[0]->name, "a2.npy");

    ck_assert_uint_eq(job->part_count, 2);
    ck_assert_uint_eq(job->parts[1].subtasks, 2);
    ck_assert_uint_eq(job->parts[1].slots, 2);
    ck_assert_uint_eq(job->parts[1].needs.count, 5);
    ck_assert_str_eq(job->parts[1].needs.nodes[1].attribute.text, "tensor");
    ck_assert_str_eq(job->parts[1].needs.nodes[3].attribute.name, "referee");
    ck_assert_int_eq(job->parts[1].needs.nodes[3].attribute.number, 1);
    ck_assert_uint_eq(job->graph.count, 4);
    ck_assert_uint_eq(job->graph.edge_count, 2);
    ck_assert_uint_eq(job->graph.after_count[0], 0);
    ck_assert_uint_eq(job->graph.after_count[3], 1);
    ck_assert_uint_eq(job->graph.after[1], 1);
    ck_assert_uint_gt(job->graph.rank[0], job->graph.rank[2]);
    ck_assert_ptr_null(job->graph.expect_ms); /* they are alike */

    struct bourse_job_summary summary;
    bourse_job_summary(job, &summary);
    ck_assert_uint_eq(summary.subtasks, 2);
    ck_assert_uint_eq(summary.checks, 2);
    ck_assert_uint_eq(summary.parts, 1);

    struct order_part part;
    ck_assert(result_checks_remove(manifest, &part));
    ck_assert_uint_eq(manifest->subtask_count, 2);
    ck_assert_uint_eq(manifest->n_subtasks, 2);
    ck_assert_uint_eq(manifest->terms->n_parts, 1);
    ck_assert_uint_eq(part.needs.count, 5);
}
END_TEST

START_TEST(a_single_product_and_an_array_get_checks_too_and_names_with_braces_stay)
{
    put_matrix("a{}.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *one =
        prepared("executor: tensor\nfiles: \"a{}.npy\"\n"
                 "run: [gemm, --alpha, \"1.0\", --beta, \"0\", \"a{{}}.npy\", \"a{{}}.npy\", "
                 "\"a{{}}.npy\", c.npy]\noutputs: c.npy\nverify: cheap\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(one);
    ck_assert_uint_eq(manifest->subtask_count, 2);
    ck_assert_str_eq(check_in(manifest, 1)->arguments[1], "a{{}}.npy");
    ck_assert_str_eq(check_in(manifest, 1)->name, "check of subtask 0");

    put_matrix("b3.npy", 2, 2);
    put_matrix("b5.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *many = prepared("executor: tensor\narray: 3-5:2\nfiles: [b3.npy, b5.npy]\n"
                                       "run: [matmul, \"b{index}.npy\", b3.npy, c.npy]\n"
                                       "outputs: c.npy\nverify: cheap\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *array = manifest_of(many);
    ck_assert_str_eq(check_in(array, 3)->arguments[1], "b5.npy");
}
END_TEST

START_TEST(tasks_are_checked_by_name)
{
    put_matrix("a.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared(
        "executor: tensor\nfiles: a.npy\nverify: cheap\ntasks:\n"
        "  - {name: second, run: [matmul, a.npy, a.npy, c.npy], outputs: c.npy, after: first, "
        "expect: 2s}\n"
        "  - {name: first, run: [matmul, a.npy, a.npy, c.npy], outputs: c.npy}\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_str_eq(check_in(manifest, 2)->name, "check of first");
    ck_assert_str_eq(check_in(manifest, 3)->name, "check of second");
    ck_assert_uint_eq(check_in(manifest, 3)->from[0]->task, 1);
    ck_assert_uint_eq(job->graph.edge_count, 3);
    ck_assert_uint_gt(job->graph.rank[0], job->graph.rank[1]);
    static const uint32_t expect_ms[] = {0, 2000, 0, 0}; /* none of a check */
    ck_assert_mem_eq(job->graph.expect_ms, expect_ms, sizeof expect_ms);
}
END_TEST

START_TEST(what_no_check_can_see_is_refused)
{
    put_matrix("a.npy", 2, 2);
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"executor: tensor\nfiles: a.npy\nverify: cheap\n"
         "run: [gemm, a.npy, a.npy, a.npy, c.npy]\noutputs: c.npy\n",
         "verify: cheap checks exist for matrix products"},
        {"executor: tensor\nfiles: a.npy\nverify: cheap\n"
         "run: [matmul, a.npy, a.npy, c.npy]\noutputs: [c.npy, a.npy]\n",
         "job:4: verify: cheap: the product 'c.npy' must be all that `outputs:` names"},
        {"executor: tensor\nfiles: a.npy\nverify: cheap\ntasks:\n"
         "  - {name: first, run: [matmul, a.npy, a.npy, c.npy], outputs: c.npy}\n"
         "  - {name: second, run: [matmul, c.npy, a.npy, d.npy], outputs: d.npy, from: first}\n",
         "job:6: verify: cheap: 'c.npy' must be one of the job's files, not what another task "
         "leaves; use verify: none"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bourse_error error = refused(wrong[i].text);
        ck_assert_msg(strstr(error.text, wrong[i].says) != NULL, "%zu: %s", i, error.text);
    }
}
END_TEST

START_TEST(what_an_operation_reads_is_looked_at_before_it_is_sent)
{
    put_matrix("a.npy", 2, 3);
    put_matrix("b.npy", 3, 2);
    put_matrix("wide.npy", 3, 5);
    put("none.npy", "no matrix");
    put("lines", "a\n");
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"executor: tensor\nfiles: a.npy\nrun: [matmul, a.npy, b.npy, c.npy]\noutputs: c.npy\n",
         "job:3: run: 'b.npy' is none of the job's files: add it to them"},
        {"executor: tensor\nfiles: [a.npy, none.npy]\nrun: [matmul, a.npy, none.npy, c.npy]\n"
         "outputs: c.npy\n",
         "job:3: run: none.npy: the file is no .npy file"},
        {"executor: tensor\nfiles: a.npy\nrun: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n",
         "job:3: run: a.npy is 2 x 3 and a.npy 2 x 3; the first must have as many columns"},
        {"executor: tensor\nfiles: [a.npy, b.npy, wide.npy]\noutputs: c.npy\n"
         "run: [gemm, a.npy, b.npy, wide.npy, c.npy]\n",
         "job:4: run: wide.npy is 3 x 5, and what it is added to has another shape"},
        {"executor: tensor\neach: [a.npy, wide.npy]\nfiles: b.npy\n"
         "run: [matmul, \"{in}\", b.npy, \"{out}\"]\noutputs: \"{out}\"\n",
         "job:4: run: wide.npy is 3 x 5 and b.npy 3 x 2; the first must have"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\ntasks:\n"
         "  - {name: first, run: [matmul, a.npy, b.npy, c.npy], outputs: c.npy}\n"
         "  - {name: second, run: [matmul, a.npy, d.npy, e.npy], outputs: e.npy, from: first}\n",
         "job:5: run: 'd.npy' is none of the job's files"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [gemm, --beta, \"1\", a.npy, b.npy, c.npy]\n",
         "job:4: run: gemm reads a file C0 to add, and three are named; write [gemm, "},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [matmul, a.npy, b.npy, ../c.npy]\n",
         "job:4: run: \"../c.npy\" is no file of the work folder"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: d.npy\n"
         "run: [matmul, a.npy, b.npy, c.npy]\n",
         "job:4: run: the operation makes 'c.npy' and nothing else, so there will be no 'd.npy'"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [gemm, --alpha, \"1e400\", a.npy, b.npy, b.npy, c.npy]\n",
         "job:4: run: --alpha 1e400 is more than a float32 holds"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [gemm, --beta, \"-0.001e-43\", a.npy, b.npy, b.npy, c.npy]\n",
         "job:4: run: --beta -0.001e-43 is less than a float32 holds, which is 1.4e-45 at least; "
         "write 0 if that is meant"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\n"
         "run: [freivalds, a.npy, b.npy, a.npy, \"00\", \"20\"]\n",
         "job:3: run: the seed \"00\" is not 64 hexadecimal digits"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\n"
         "run: [freivalds, a.npy, b.npy, a.npy, drawn, \"20\"]\n",
         "job:3: run: the seed \"drawn\" is for the checks that `verify: cheap` makes"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\n"
         "run: [freivalds, a.npy, b.npy, a.npy, \"{value}\", \"65\"]\n",
         "job:3: run: \"65\" rounds; 1 to 64 are computed"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bourse_error error = refused(wrong[i].text);
        ck_assert_msg(strstr(error.text, wrong[i].says) != NULL, "%zu: %s", i, error.text);
    }
    static const char *const right[] = {
        /* An unread file may be anything; one that is made or filled in later is unknown. */
        "executor: tensor\nfiles: [a.npy, b.npy, none.npy]\noutputs: c.npy\n"
        "run: [gemm, --beta, \"0\", a.npy, b.npy, none.npy, c.npy]\n",
        "executor: tensor\nfiles: [a.npy, b.npy]\ntasks:\n"
        "  - {name: first, run: [matmul, a.npy, b.npy, c.npy], outputs: c.npy}\n"
        "  - {name: second, run: [matmul, c.npy, a.npy, d.npy], outputs: d.npy, from: first}\n",
        "executor: tensor\nlines: lines\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
        "run: [matmul, \"{line}.npy\", b.npy, c.npy]\n",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        bourse_job_destroy(&(struct bourse_job *){prepared(right[i])});
    }
}
END_TEST

/* The test could not wait until a terabyte is hashed. */
START_TEST(shapes_are_compared_before_anything_is_hashed)
{
    put_hole("huge.npy", 1U << 20, 1U << 18);
    put_matrix("b.npy", 3, 2);
    ck_assert_str_eq(
        refused("executor: tensor\nfiles: [huge.npy, b.npy]\noutputs: c.npy\n"
                "run: [matmul, huge.npy, b.npy, c.npy]\n")
            .text,
        "job:4: run: huge.npy is 1048576 x 262144 and b.npy 3 x 2; the first must have as many "
        "columns as the second has rows");
    ck_assert_str_eq(refused("run: [cat, huge.npy]\nfiles: [huge.npy, b.np]\n").text,
                     "job:2: files: b.np: No such file or directory; did you mean 'b.npy'?");
}
END_TEST

START_TEST(a_matrix_without_elements_is_no_factor)
{
    put_matrix("none.npy", 0, 4);
    put_matrix("b.npy", 4, 2);
    struct bourse_error error =
        refused("executor: tensor\nfiles: [none.npy, b.npy]\noutputs: c.npy\n"
                "run: [matmul, none.npy, b.npy, c.npy]\n");
    ck_assert_str_eq(
        error.text,
        "job:4: run: none.npy: the file has no elements: the shape is (0, 4); a product is "
        "of one row and one column at least");
}
END_TEST

START_TEST(what_a_simulation_makes_is_not_checked)
{
    static const char *const asking[] = {"{simulated: true}", "{instrument: sim.lpu.groq.v1}"};
    put_matrix("a.npy", 2, 2);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "executor: tensor\nfiles: a.npy\nneeds: %s\nverify: cheap\n"
                       "run: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n",
                       asking[i]);
        struct bourse_error error = refused(text);
        ck_assert_int_eq(error.status, BOURSE_REFUSED);
        ck_assert_int_eq(error.reject, REJECT_VERIFY);
        ck_assert_str_eq(error.name, "VERIFY");
        ck_assert_str_eq(error.field, "needs");
    }
    bourse_job_destroy(&(struct bourse_job *){
        prepared("executor: tensor\nfiles: a.npy\nneeds: {simulated: false}\nverify: cheap\n"
                 "run: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n")});
}
END_TEST

SUITE("job_checks", setup, teardown,
      TEST(each_product_of_a_cheap_job_gets_a_check_that_waits_for_it_alone),
      TEST(a_single_product_and_an_array_get_checks_too_and_names_with_braces_stay),
      TEST(tasks_are_checked_by_name), TEST(what_no_check_can_see_is_refused),
      TEST(what_an_operation_reads_is_looked_at_before_it_is_sent),
      TEST(shapes_are_compared_before_anything_is_hashed),
      TEST(a_matrix_without_elements_is_no_factor), TEST(what_a_simulation_makes_is_not_checked))
