/* The tests ask which checks a referee runs: those of what the subtask was asked to compute, and no
 * others, whoever wrote them. */
#include "provider/executors/check.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SUBTASKS = 4, PRODUCTS = 2 };

struct job {
    uint8_t hashes[5][32];
    Bourse__V1__ManifestInput shared, own[SUBTASKS], spare;
    Bourse__V1__ManifestInput *shared_pointer, *own_pointers[SUBTASKS][2];
    Bourse__V1__ManifestFrom from[SUBTASKS], more;
    Bourse__V1__ManifestFrom *from_pointers[SUBTASKS][2];
    Bourse__V1__ManifestTask tasks[SUBTASKS];
    Bourse__V1__ManifestSubtask subtasks[SUBTASKS];
    Bourse__V1__ManifestSubtask *pointers[SUBTASKS];
    char *products[PRODUCTS][4], *checks[PRODUCTS][6], *output;
    Bourse__V1__Manifest manifest;
};

#define WORD(text) ((char *)(uintptr_t)(text))

static void input(struct job *job, Bourse__V1__ManifestInput *ret_input, const char *name,
                  size_t hash)
{
    bourse__v1__manifest_input__init(ret_input);
    ret_input->name = WORD(name);
    ret_input->hash = (ProtobufCBinaryData){32, job->hashes[hash]};
}

/* Subtask k is the product of the shared a.npy and its own b.npy, and subtask 2 + k the check of
 * it. */
static void job_init(struct job *job)
{
    memset(job, 0, sizeof *job);
    for (size_t i = 0; i < 5; i++) {
        memset(job->hashes[i], (int)i + 1, 32);
    }
    input(job, &job->shared, "a.npy", 0);
    input(job, &job->spare, "b.npy", 4);
    job->shared_pointer = &job->shared;
    job->output = WORD("c.npy");
    bourse__v1__manifest__init(&job->manifest);
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        uint32_t k = i % PRODUCTS;
        input(job, &job->own[i], "b.npy", 1 + k);
        job->own_pointers[i][0] = &job->own[i];
        bourse__v1__manifest_task__init(&job->tasks[i]);
        bourse__v1__manifest_subtask__init(&job->subtasks[i]);
        job->subtasks[i].n_inputs = 1;
        job->subtasks[i].inputs = job->own_pointers[i];
        job->subtasks[i].task = &job->tasks[i];
        job->pointers[i] = &job->subtasks[i];
    }
    for (uint32_t k = 0; k < PRODUCTS; k++) {
        char *const product[] = {WORD("matmul"), WORD("a.npy"), WORD("b.npy"), WORD("c.npy")};
        memcpy(job->products[k], product, sizeof product);
        job->tasks[k].n_arguments = 4;
        job->tasks[k].arguments = job->products[k];
        job->tasks[k].n_outputs = 1;
        job->tasks[k].outputs = &job->output;
        char *const check[] = {WORD("freivalds"), WORD("a.npy"), WORD("b.npy"),
                               WORD("c.npy"),     WORD("drawn"), WORD("20")};
        memcpy(job->checks[k], check, sizeof check);
        Bourse__V1__ManifestTask *task = &job->tasks[PRODUCTS + k];
        task->n_arguments = 6;
        task->arguments = job->checks[k];
        bourse__v1__manifest_from__init(&job->from[k]);
        job->from[k].task = k;
        job->from[k].name = WORD("c.npy");
        job->from[k].output = WORD("c.npy");
        job->from_pointers[k][0] = &job->from[k];
        task->n_from = 1;
        task->from = job->from_pointers[k];
    }
    job->manifest.version = 1;
    job->manifest.executor = WORD("tensor");
    job->manifest.n_shared = 1;
    job->manifest.shared = &job->shared_pointer;
    job->manifest.n_subtasks = SUBTASKS;
    job->manifest.subtasks = job->pointers;
    job->manifest.subtask_count = SUBTASKS;
}

static void good(const struct job *job, uint32_t index, uint32_t checked)
{
    struct problem problem = {""};
    ck_assert_msg(check_is_about(&job->manifest, index, checked, &problem), "%s", problem.text);
}

static void bad(const struct job *job, uint32_t index, uint32_t checked, const char *text)
{
    struct problem problem = {""};
    ck_assert(!check_is_about(&job->manifest, index, checked, &problem));
    ck_assert_msg(strstr(problem.text, text) != NULL, "'%s' is not in '%s'", text, problem.text);
}

START_TEST(a_check_of_the_very_product_is_run)
{
    struct job job;
    job_init(&job);
    good(&job, 2, 0);
    good(&job, 3, 1);
    /* Other names for the same files. */
    job.checks[0][2] = WORD("right.npy");
    job.own[2].name = WORD("right.npy");
    job.checks[0][3] = WORD("product.npy");
    job.from[0].name = WORD("product.npy");
    good(&job, 2, 0);
    /* The product is gemm's, where gemm adds nothing. */
    char *gemm[] = {WORD("gemm"),  WORD("--alpha"), WORD("1.0"),   WORD("--beta"), WORD("0"),
                    WORD("a.npy"), WORD("b.npy"),   WORD("a.npy"), WORD("c.npy")};
    job.tasks[0].n_arguments = sizeof gemm / sizeof gemm[0];
    job.tasks[0].arguments = gemm;
    good(&job, 2, 0);
    gemm[4] = WORD("1");
    bad(&job, 2, 0, "no product");
    gemm[4] = WORD("0");
    gemm[2] = WORD("2");
    bad(&job, 2, 0, "no product");
}
END_TEST

START_TEST(other_factors_prove_nothing)
{
    struct job job;
    job_init(&job);
    bad(&job, 2, 1, "factors");
    job.own[2].hash.data = job.hashes[3];
    bad(&job, 2, 0, "factors");
    job_init(&job);
    job.checks[0][1] = WORD("b.npy"); /* B B */
    bad(&job, 2, 0, "factors");
    job_init(&job);
    job.checks[0][2] = WORD("nowhere.npy");
    bad(&job, 2, 0, "factors");
    /* Two files of one name: which one does the product take? */
    job_init(&job);
    job.own_pointers[0][1] = &job.spare;
    job.subtasks[0].n_inputs = 2;
    bad(&job, 2, 0, "factors");
    /* A factor that another subtask leaves lies there instead. */
    job_init(&job);
    bourse__v1__manifest_from__init(&job.more);
    job.more.task = 0;
    job.more.name = WORD("b.npy");
    job.more.output = WORD("c.npy");
    job.from_pointers[0][1] = &job.more;
    job.tasks[2].n_from = 2;
    bad(&job, 2, 0, "factors");
}
END_TEST

START_TEST(other_results_prove_nothing)
{
    struct job job;
    job_init(&job);
    job.from[0].task = 1;
    bad(&job, 2, 0, "one file");
    job_init(&job);
    job.from[0].output = WORD("d.npy");
    bad(&job, 2, 0, "one file");
    job_init(&job);
    job.from[0].name = WORD("d.npy");
    bad(&job, 2, 0, "one file");
    job_init(&job);
    job.tasks[2].n_from = 0;
    bad(&job, 2, 0, "one file");
    /* The subtask was asked for no file, or for another, and so left none that a check could
     * find. */
    job_init(&job);
    job.tasks[0].n_outputs = 0;
    bad(&job, 2, 0, "one file");
    job_init(&job);
    job.output = WORD("d.npy");
    bad(&job, 2, 0, "one file");
    job_init(&job);
    job.spare.name = WORD("c.npy");
    job.own_pointers[2][1] = &job.spare;
    job.subtasks[2].n_inputs = 2;
    bad(&job, 2, 0, "one file");
}
END_TEST

START_TEST(other_operations_prove_nothing)
{
    struct job job;
    job_init(&job);
    bad(&job, 1, 0, "a check is freivalds");
    bad(&job, 3, 2, "no product");
    bad(&job, 2, SUBTASKS, "no subtask 4");
    job.checks[0][5] = WORD("19");
    bad(&job, 2, 0, "20 rounds at least");
    job_init(&job);
    static const char seed[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    job.checks[0][4] = WORD(seed);
    bad(&job, 2, 0, "the seed drawn");
    job_init(&job);
    job.manifest.executor = WORD("command");
    bad(&job, 2, 0, "executor tensor");
    job_init(&job);
    job.products[0][0] = WORD("cat");
    bad(&job, 2, 0, "cat");
}
END_TEST

SUITE("what a check is about", NULL, NULL, TEST(a_check_of_the_very_product_is_run),
      TEST(other_factors_prove_nothing), TEST(other_results_prove_nothing),
      TEST(other_operations_prove_nothing))
