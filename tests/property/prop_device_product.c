/* The property compares products on pocl's device with plain C: every kernel of OpenCL that there
 * is, odd shapes, any factors, and memory that holds A and C only in bands. Whole numbers must be
 * equal to the last bit. Other numbers must be as near as float32 sums can be in any order. */
#include "base/random.h"
#include "provider/kernel/opencl.h"
#include "provider/kernel/opencl_product.h"
#include "provider/kernel/product/product.h"
#include "provider/kernel/product/product_trial.h"
#include "tests/support/chain_play.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 60, SIDE_MOST = 150 };

static struct opencl_api api;
static struct devices devices;
static struct engine engine;
static struct kernel_interface interface;
static struct kernel_product plan; /* the kernel that is tried */

static void chosen(const struct engine *which, struct kernel_product *ret_product)
{
    (void)which;
    *ret_product = plan;
}

static void begin(void)
{
    struct problem problem = {""};
    ck_assert_msg(opencl_api_load(OPENCL_LIBRARY, &api, &problem) &&
                      opencl_find_devices(&api, &devices, &problem),
                  "%s", problem.text);
    interface = opencl_interface;
    interface.product = chosen;
    devices.items[0].interface = &interface;
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
}

static void end(void)
{
    engine_close(&engine);
}

static struct kernel_product plan_of(int number)
{
    return number == 0 ? opencl_product_of_groups() : opencl_product_of_cores(2U << number);
}
enum { PLANS = 4 }; /* groups, and cores with vectors of 4, 8 and 16 */

/* ---------------------------------------------------------------- matrices */

static float any_number(struct random *random, bool is_whole)
{
    return is_whole ? (float)random_below(random, 17) - 8.0F
                    : (float)((double)random_below(random, 1 << 24) / (1 << 23) - 1);
}

static float *any_matrix(struct random *random, uint64_t cells, bool is_whole)
{
    float *values = calloc(cells, sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (uint64_t i = 0; i < cells; i++) {
        values[i] = any_number(random, is_whole);
    }
    return values;
}

/* Each sum of `inner` products differs by no more than this from that of another order, where every
 * factor is below 1. */
static double tolerance(const struct gemm *gemm)
{
    const double inner = (double)gemm->inner;
    return 2 * inner * inner * fabs((double)gemm->alpha) * 1.2e-7 + 1e-5;
}

static void compare(const struct gemm *gemm, const float *found, const float *right, bool is_whole)
{
    for (uint64_t i = 0; i < gemm->rows * gemm->columns; i++) {
        const bool good = is_whole ? found[i] == right[i]
                                   : fabs((double)found[i] - (double)right[i]) <= tolerance(gemm);
        ck_assert_msg(good, "%llu x %llu x %llu, alpha %g, beta %g: entry %llu is %.9g, not %.9g",
                      (unsigned long long)gemm->rows, (unsigned long long)gemm->inner,
                      (unsigned long long)gemm->columns, (double)gemm->alpha, (double)gemm->beta,
                      (unsigned long long)i, (double)found[i], (double)right[i]);
    }
}

/* C holds NaN before where beta is 0, because it is not read then. */
static void try_product(struct random *random, uint64_t rows, uint64_t inner, uint64_t columns,
                        uint64_t memory_bytes)
{
    static const float factors[] = {1, 2, -0.5F, 0};
    const bool is_whole = random_below(random, 2) == 0;
    struct problem problem = {""};
    struct gemm gemm = {.rows = rows,
                        .inner = inner,
                        .columns = columns,
                        .alpha = factors[random_below(random, 4)],
                        .beta = factors[random_below(random, 4)]};
    float *a = any_matrix(random, rows * inner, is_whole);
    float *b = any_matrix(random, inner * columns, is_whole);
    float *found = any_matrix(random, rows * columns, is_whole);
    float *right = any_matrix(random, rows * columns, is_whole);
    for (uint64_t i = 0; i < rows * columns; i++) {
        right[i] = found[i] = gemm.beta == 0 ? NAN : found[i];
    }
    gemm.a = a;
    gemm.b = b;
    gemm.c = found;
    ck_assert_msg(product_run(&engine, &gemm, (struct product_parts){.a = NULL}, memory_bytes,
                              &problem) == OPERATION_OK,
                  "%llu x %llu x %llu in %llu bytes: %s", (unsigned long long)rows,
                  (unsigned long long)inner, (unsigned long long)columns,
                  (unsigned long long)memory_bytes, problem.text);
    gemm.c = right;
    gemm_reference(&gemm);
    compare(&gemm, found, right, is_whole);
    free(a);
    free(b);
    free(found);
    free(right);
}

/* ---------------------------------------------------------------- tests */

START_TEST(a_product_is_that_of_plain_c)
{
    struct random random = random_seeded(property_seed(20261130) + (uint64_t)_i);
    plan = plan_of(_i);
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t rows = 1 + random_below(&random, SIDE_MOST);
        const uint64_t inner = 1 + random_below(&random, SIDE_MOST);
        const uint64_t columns = 1 + random_below(&random, SIDE_MOST);
        /* Half of the time, the memory holds B, and so many rows of A and C. */
        const uint64_t band = 1 + random_below(&random, (uint32_t)rows);
        const bool is_tight = random_below(&random, 2) == 0;
        const uint64_t tight_bytes = sizeof(float) * (inner * columns + band * (inner + columns));
        try_product(&random, rows, inner, columns, is_tight ? tight_bytes : 1 << 24);
    }
}
END_TEST

START_TEST(odd_sides_are_right)
{
    static const uint64_t sides[] = {1, 7, 63, 64, 65, 1000};
    enum { SIDES = sizeof sides / sizeof sides[0] };
    struct random random = random_seeded(property_seed(20261201) + (uint64_t)_i);
    plan = plan_of(_i);
    for (size_t i = 0; i < SIDES; i++) {
        for (size_t k = 0; k < SIDES; k++) {
            try_product(&random, sides[i], sides[k], sides[(i + k) % SIDES], 1 << 24);
        }
    }
}
END_TEST

START_TEST(what_holds_no_row_is_refused)
{
    struct problem problem = {""};
    float values[3 * 16] = {0};
    const struct gemm gemm = {.rows = 4,
                              .inner = 4,
                              .columns = 4,
                              .alpha = 1,
                              .a = values,
                              .b = values + 16,
                              .c = values + 32};
    plan = plan_of(0);
    ck_assert_int_eq(
        product_run(&engine, &gemm, (struct product_parts){.a = NULL}, 4 * (16 + 8), &problem),
        OPERATION_OK);
    ck_assert_int_eq(
        product_run(&engine, &gemm, (struct product_parts){.a = NULL}, 4 * (16 + 8) - 1, &problem),
        OPERATION_MEMORY);
    ck_assert_ptr_nonnull(strstr(problem.text, "a factor of 4 x 4 float32 numbers is too large"));
}
END_TEST

START_TEST(a_device_is_tried_and_measured)
{
    struct problem problem = {""};
    struct product_figures figures = {.mflops = 0};
    plan = plan_of(_i);
    ck_assert_msg(product_trial(&engine, TENSOR_FP32, 64 << 20, &figures, &problem), "%s",
                  problem.text);
    ck_assert(figures.mflops > 0 && figures.held_mflops > 0);
    plan.entry = "another";
    ck_assert(!product_trial(&engine, TENSOR_FP32, 64 << 20, &figures, &problem));
}
END_TEST

START_TEST(a_chain_of_products_is_that_of_whole_numbers)
{
    const struct challenge_product product = {
        .seed = {{(uint8_t)_i, 7}}, .side = 192, .rounds = 2, .rows = 320, .steps = 5};
    struct problem problem = {""};
    enum operation_status status;
    plan = plan_of(_i);
    char *hex = chain_play(&engine, &product, 64 << 20, &status, &problem);
    ck_assert_msg(hex != NULL, "%s", problem.text);
    ck_assert_uint_eq(chain_right(&product, hex), 640);
    free(hex);
}
END_TEST

int main(void)
{
    if (access("/etc/OpenCL/vendors/pocl.icd", R_OK) != 0) {
        (void)puts("skipped: pocl is not installed");
        return 77;
    }
    const struct suite_test tests[] = {
        LOOP(a_product_is_that_of_plain_c, 0, PLANS), LOOP(odd_sides_are_right, 0, PLANS),
        TEST(what_holds_no_row_is_refused), LOOP(a_device_is_tried_and_measured, 0, PLANS),
        LOOP(a_chain_of_products_is_that_of_whole_numbers, 0, PLANS)};
    return suite_main("device_product", begin, end, tests, sizeof tests / sizeof tests[0]);
}
