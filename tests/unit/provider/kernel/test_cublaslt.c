/* The tests compute products by a stand-in for cuBLASLt on a stand-in for the CUDA driver: in each
 * type, with each call failing, and with a library that rounds or lies. */
#include "provider/kernel/cublaslt.h"
#include "provider/kernel/cuda.h"
#include "provider/kernel/engine.h"
#include "provider/kernel/product/product.h"
#include "provider/kernel/product/product_trial.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 19, INNER = 23, COLUMNS = 31, CELLS = ROWS * COLUMNS, MEMORY = 1 << 20 };

static struct cuda_api api;
static struct devices devices;
static struct engine engine;
static float a[ROWS * INNER], b[INNER * COLUMNS], c[CELLS], wanted[CELLS], magnitudes[CELLS];

/* Functions of the stand-ins. */
static void (*fail_at)(const char *function, int result);
static int (*count_alive)(void);
static void (*limit_memory)(size_t most);
static void (*fail_lt)(const char *function, int status);
static int (*count_lt)(void);
static int (*count_products)(void);
static void (*set_version)(size_t number);
static void (*round_all)(bool rounds);
static void (*lie)(bool lies);

static void find(void *library, const char *name, void *ret_function)
{
    void *place = dlsym(library, name);
    ck_assert_msg(place != NULL, "%s", name);
    memcpy(ret_function, &place, sizeof place);
}

static void find_all(void)
{
    void *lt = dlopen(BOURSE_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lt != NULL, "%s", dlerror());
    find(api.library, "fake_cuda_fail", (void *)&fail_at);
    find(api.library, "fake_cuda_alive", (void *)&count_alive);
    find(api.library, "fake_cuda_memory", (void *)&limit_memory);
    find(lt, "fake_cublaslt_fail", (void *)&fail_lt);
    find(lt, "fake_cublaslt_alive", (void *)&count_lt);
    find(lt, "fake_cublaslt_products", (void *)&count_products);
    find(lt, "fake_cublaslt_version", (void *)&set_version);
    find(lt, "fake_cublaslt_rounds", (void *)&round_all);
    find(lt, "fake_cublaslt_lies", (void *)&lie);
}

static void begin(void)
{
    struct problem problem = {""};
    ck_assert_msg(cuda_api_load(BOURSE_FAKE_CUDA, &api, &problem), "%s", problem.text);
    find_all();
    fail_at(NULL, 0);
    fail_lt(NULL, 0);
    limit_memory(1 << 24);
    set_version(130100);
    round_all(false);
    lie(false);
    ck_assert_msg(cuda_find_devices(&api, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
}

static void end(void)
{
    fail_at(NULL, 0);
    engine_close(&engine);
    ck_assert_int_eq(count_alive(), 0); /* whatever failed, all is released */
    ck_assert_int_eq(count_lt(), 0);
}

static bool open_with(const char *library, uint64_t memory_bytes, struct problem *problem)
{
    char name[KERNEL_LIBRARY_NAME_SIZE] = "untouched";
    *problem = (struct problem){""};
    const bool good =
        devices.items[0].interface->open_library(&engine, library, memory_bytes, name, problem);
    ck_assert_str_eq(name, good ? "cuBLASLt 13.1.0" : "");
    ck_assert_msg(good == engine.has_library, "%s", problem->text);
    return good;
}

static void open_lt(void)
{
    struct problem problem;
    ck_assert_msg(open_with(BOURSE_FAKE_CUBLASLT, MEMORY, &problem), "%s", problem.text);
}

static void fill(float beta)
{
    for (size_t i = 0; i < sizeof a / sizeof *a; i++) {
        a[i] = (float)((i * 7919) % 10007) / 10007.0F - 0.5F;
    }
    for (size_t i = 0; i < sizeof b / sizeof *b; i++) {
        b[i] = (float)((i * 104729) % 20011) / 20011.0F - 0.5F;
    }
    for (size_t i = 0; i < CELLS; i++) {
        c[i] = wanted[i] = (float)(i % 17) - 8.0F;
        magnitudes[i] = fabsf(beta * c[i]);
    }
}

/* Computes the product of the type, and the sums of plain C beside it. */
static enum operation_status run(enum tensor_compute compute, float beta, uint64_t memory_bytes,
                                 struct problem *problem)
{
    const struct product_parts nothing = {.a = NULL};
    struct gemm gemm = {.rows = ROWS,
                        .inner = INNER,
                        .columns = COLUMNS,
                        .alpha = 1.5F,
                        .beta = beta,
                        .a = a,
                        .b = b,
                        .c = c,
                        .compute = compute};
    *problem = (struct problem){""};
    fill(beta);
    const enum operation_status status =
        product_run(&engine, &gemm, nothing, memory_bytes, problem);
    gemm.c = wanted;
    gemm_reference(&gemm);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t column = 0; column < COLUMNS; column++) {
            for (size_t i = 0; i < INNER; i++) {
                magnitudes[row * COLUMNS + column] +=
                    1.5F * fabsf(a[row * INNER + i] * b[i * COLUMNS + column]);
            }
        }
    }
    return status;
}

/* Returns the largest error, as a part of the sum of the magnitudes. */
static double worst(void)
{
    double most = 0;
    for (size_t i = 0; i < CELLS; i++) {
        const double part = (double)fabsf(c[i] - wanted[i]) / (double)magnitudes[i];
        most = part > most || isnan(part) ? part : most;
    }
    return most;
}

START_TEST(a_product_is_right_in_each_type)
{
    static const struct {
        enum tensor_compute compute;
        double least, most;
    } ways[] = {
        {TENSOR_FP32, 0, 1e-6},
        {TENSOR_TF32, 1e-6, PRODUCT_TF32_TOLERANCE}, /* it was rounded, and not too much */
        {TENSOR_BF16, 1e-4, PRODUCT_BF16_TOLERANCE},
    };
    struct problem problem;
    open_lt();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        for (int k = 0; k < 2; k++) {
            const int before = count_products();
            ck_assert_msg(run(ways[i].compute, k == 0 ? 0 : -0.25F, MEMORY, &problem) ==
                              OPERATION_OK,
                          "%s", problem.text);
            ck_assert_int_eq(count_products(), before + 1);
            ck_assert_msg(worst() >= ways[i].least && worst() <= ways[i].most, "%zu: %g", i,
                          worst());
        }
    }
}
END_TEST

START_TEST(without_a_library_every_type_is_computed_in_float32)
{
    struct problem problem;
    for (int i = 0; i < TENSOR_COMPUTES; i++) {
        const enum tensor_compute compute = (enum tensor_compute)i;
        ck_assert_msg(run(compute, 1, MEMORY, &problem) == OPERATION_OK, "%s", problem.text);
        ck_assert_msg(worst() <= 1e-6, "%g", worst());
    }
}
END_TEST

START_TEST(bands_of_rows_go_one_after_another)
{
    struct problem problem;
    const int before = count_products();
    open_lt();
    /* B, and five rows of A and C */
    ck_assert_msg(run(TENSOR_FP32, 1, (INNER * COLUMNS + 5 * (INNER + COLUMNS)) * sizeof(float),
                      &problem) == OPERATION_OK,
                  "%s", problem.text);
    ck_assert_int_eq(count_products(), before + 4);
    ck_assert_msg(worst() <= 1e-6, "%g", worst());
}
END_TEST

/* The kernel of bourse computes what the library does not begin. */
START_TEST(what_the_library_refuses_is_computed_by_the_kernel)
{
    static const struct {
        const char *function;
        int status;
    } ways[] = {
        {"cublasLtMatmulDescCreate", CUBLASLT_ALLOC_FAILED},
        {"cublasLtMatrixLayoutCreate", CUBLASLT_INVALID_VALUE},
        {"cublasLtMatmulPreferenceCreate", CUBLASLT_ALLOC_FAILED},
        {"cublasLtMatmulPreferenceSetAttribute", CUBLASLT_INVALID_VALUE},
        {"cublasLtMatmulAlgoGetHeuristic", CUBLASLT_NOT_SUPPORTED},
        {"none found", 0},
        {"cublasLtMatmul", CUBLASLT_NOT_SUPPORTED},
        {"cublasLtMatmul", CUBLASLT_ALLOC_FAILED},
        {"cublasLtMatmul", CUBLASLT_INVALID_VALUE},
    };
    struct problem problem;
    open_lt();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const int before = count_products();
        fail_lt(ways[i].function, ways[i].status);
        ck_assert_msg(run(TENSOR_FP32, 1, MEMORY, &problem) == OPERATION_OK, "%s", problem.text);
        ck_assert_int_eq(count_products(), before);
        ck_assert_msg(worst() <= 1e-6, "%s: %g", ways[i].function, worst());
        ck_assert(!engine.is_spent);
        ck_assert_int_eq(count_lt(), 1); /* the handle alone */
    }
}
END_TEST

START_TEST(a_library_that_fails_is_the_devices_failure)
{
    static const int statuses[] = {CUBLASLT_EXECUTION_FAILED, CUBLASLT_INTERNAL_ERROR,
                                   CUBLASLT_MAPPING_ERROR, CUBLASLT_ARCH_MISMATCH};
    struct problem problem;
    char said[64];
    open_lt();
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        engine.is_spent = false;
        fail_lt("cublasLtMatmul", statuses[i]);
        ck_assert_int_eq(run(TENSOR_FP32, 1, MEMORY, &problem), OPERATION_DEVICE);
        (void)snprintf(said, sizeof said, "(status %d)", statuses[i]);
        ck_assert_msg(strstr(problem.text, "cuBLASLt 13.1.0: a product: ") == problem.text &&
                          strstr(problem.text, said) != NULL,
                      "%s", problem.text);
        ck_assert(engine.is_spent);
    }
}
END_TEST

START_TEST(a_device_that_fails_under_the_library_is_told)
{
    struct problem problem;
    open_lt();
    fail_at("cuCtxSynchronize", CUDA_ECC_UNCORRECTABLE);
    ck_assert_int_eq(run(TENSOR_FP32, 1, MEMORY, &problem), OPERATION_DEVICE);
    ck_assert_msg(strstr(problem.text, "a product by cuBLASLt: the device's memory failed") != NULL,
                  "%s", problem.text);
    ck_assert(engine.is_spent);
}
END_TEST

START_TEST(a_library_that_cannot_be_used_is_told)
{
    struct problem problem;
    ck_assert(!open_with("/no/such/libcublasLt.so", MEMORY, &problem));
    ck_assert_msg(strstr(problem.text, "no cuBLASLt: /no/such/libcublasLt.so") != NULL, "%s",
                  problem.text);
    ck_assert(!open_with("libm.so.6", MEMORY, &problem));
    ck_assert_msg(strstr(problem.text, "cuBLASLt has no function cublasLtGetVersion") != NULL, "%s",
                  problem.text);
    set_version(110901);
    ck_assert(!open_with(BOURSE_FAKE_CUBLASLT, MEMORY, &problem));
    ck_assert_str_eq(problem.text, "cuBLASLt 11.9.1 is not known here; versions 12 and 13 are");
    set_version(140000);
    ck_assert(!open_with(BOURSE_FAKE_CUBLASLT, MEMORY, &problem));
    ck_assert_str_eq(problem.text, "cuBLASLt 14.0.0 is not known here; versions 12 and 13 are");
    set_version(130100);
    fail_lt("cublasLtCreate", CUBLASLT_NOT_INITIALIZED);
    ck_assert(!open_with(BOURSE_FAKE_CUBLASLT, MEMORY, &problem));
    ck_assert_str_eq(problem.text, "cuBLASLt 13.1.0: it cannot be used: the library does not start "
                                   "(status 1)");
}
END_TEST

START_TEST(the_trial_finds_a_library_that_rounds_or_lies)
{
    struct problem problem = {""};
    struct product_figures figures = {.mflops = 0};
    open_lt();
    for (int i = 0; i < TENSOR_COMPUTES; i++) {
        const enum tensor_compute compute = (enum tensor_compute)i;
        ck_assert_msg(product_trial(&engine, compute, MEMORY, &figures, &problem), "%s",
                      problem.text);
        ck_assert(figures.mflops > 0 && figures.held_mflops > 0);
    }
    round_all(true); /* the jobs did not ask for it */
    ck_assert(!product_trial(&engine, TENSOR_FP32, MEMORY, &figures, &problem));
    ck_assert_msg(strstr(problem.text, "a product of the device is wrong: ") != NULL &&
                      strstr(problem.text, " in fp32") != NULL,
                  "%s", problem.text);
    ck_assert(product_trial(&engine, TENSOR_TF32, MEMORY, &figures, &problem));
    engine.shuns_library = true; /* the kernel is right all the same */
    ck_assert_msg(product_trial(&engine, TENSOR_FP32, MEMORY, &figures, &problem), "%s",
                  problem.text);
    engine.shuns_library = false;
    round_all(false);
    lie(true);
    for (int i = 0; i < TENSOR_COMPUTES; i++) {
        const enum tensor_compute compute = (enum tensor_compute)i;
        ck_assert(!product_trial(&engine, compute, MEMORY, &figures, &problem));
    }
}
END_TEST

START_TEST(the_library_has_memory_where_it_is_little_of_all)
{
    struct problem problem;
    limit_memory((size_t)1 << 30);
    ck_assert(open_with(BOURSE_FAKE_CUBLASLT, UINT64_C(1) << 30, &problem));
    ck_assert_uint_eq(engine.library_bytes, CUBLASLT_WORKSPACE_BYTES);
    ck_assert_msg(run(TENSOR_FP32, 1, MEMORY, &problem) == OPERATION_OK, "%s", problem.text);
    ck_assert_msg(worst() <= 1e-6, "%g", worst());
}
END_TEST

START_TEST(the_library_goes_without_memory_that_it_does_not_get)
{
    struct problem problem;
    ck_assert(open_with(BOURSE_FAKE_CUBLASLT, UINT64_C(1) << 30, &problem)); /* it has 16 MiB */
    ck_assert_uint_eq(engine.library_bytes, 0);
    ck_assert_msg(run(TENSOR_FP32, 1, MEMORY, &problem) == OPERATION_OK, "%s", problem.text);
    ck_assert_msg(worst() <= 1e-6, "%g", worst());
}
END_TEST

/* The real library loads without a device, says its version, and cannot be used. */
START_TEST(the_real_library_says_its_version)
{
    struct cublaslt_api real;
    struct problem problem = {""};
    char name[CUBLASLT_NAME_SIZE] = "";
    if (!cublaslt_api_load("libcublasLt.so.13", &real, name, &problem) &&
        !cublaslt_api_load("libcublasLt.so.12", &real, name, &problem)) {
        ck_assert_msg(strstr(problem.text, "no cuBLASLt") != NULL, "%s", problem.text);
        return; /* most machines have none */
    }
    ck_assert_msg(strncmp(name, "cuBLASLt 1", 10) == 0, "%s", name);
}
END_TEST

SUITE("cublaslt", begin, end, TEST(a_product_is_right_in_each_type),
      TEST(without_a_library_every_type_is_computed_in_float32),
      TEST(bands_of_rows_go_one_after_another),
      TEST(what_the_library_refuses_is_computed_by_the_kernel),
      TEST(a_library_that_fails_is_the_devices_failure),
      TEST(a_device_that_fails_under_the_library_is_told),
      TEST(a_library_that_cannot_be_used_is_told),
      TEST(the_trial_finds_a_library_that_rounds_or_lies),
      TEST(the_library_has_memory_where_it_is_little_of_all),
      TEST(the_library_goes_without_memory_that_it_does_not_get),
      TEST(the_real_library_says_its_version))
