/* A device of the catalogue as if it stood here: what is refused, and what time and energy a
 * product takes. */
#include "provider/device/simulation.h"

#include "formats/npy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct tensor_op matmul = {
    .verb = TENSOR_MATMUL, .a = "a.npy", .b = "b.npy", .result = "c.npy"};

static uint64_t file_of(uint64_t rows, uint64_t columns)
{
    return NPY_MATRIX_BYTES + rows * columns * sizeof(float);
}

static struct simulation_files files_of(uint64_t m, uint64_t n, uint64_t k)
{
    return (struct simulation_files){
        .a = file_of(m, k), .b = file_of(k, n), .result = file_of(m, n)};
}

static const struct catalogue_device *device(const char *id)
{
    const struct catalogue_device *found = catalogue_find(id);
    ck_assert_msg(found != NULL, "%s", id);
    return found;
}

START_TEST(time_and_energy_are_those_of_the_roofline)
{
    struct problem problem = {""};
    struct simulation simulation;
    struct simulation_files files = files_of(4096, 4096, 4096);
    ck_assert(simulation_begin(device("nvidia-h100-sxm5"), &matmul, &files, &problem));
    ck_assert(simulation_end(device("nvidia-h100-sxm5"), &matmul, &files, &simulation, &problem));
    ck_assert_int_eq(simulation.busy_ns, 2054393);   /* 2 x 4096^3 / 66.9e12 */
    ck_assert_int_eq(simulation.energy_uj, 1438076); /* at 700 W */
    ck_assert_str_eq(simulation.detail, "simulated nvidia-h100-sxm5: 2.054 ms by the roofline");

    ck_assert(simulation_end(device("google-tpu-v5p"), &matmul, &files, &simulation, &problem));
    ck_assert_int_eq(simulation.busy_ns, 1796587); /* 6 passes at 459e12 */
    ck_assert_int_eq(simulation.energy_uj, -1);    /* its power is not published */
    ck_assert_ptr_nonnull(strstr(simulation.detail, "fp32 in 6 passes of bf16"));

    struct simulation_files oblong = files_of(3, 5000, 7); /* each side is found */
    ck_assert(simulation_end(device("spacemit-k1"), &matmul, &oblong, &simulation, &problem));
    ck_assert_int_eq(simulation.busy_ns, 18769); /* (3 x 7 + 7 x 5000 + 3 x 5000) x 4 / 10.66e9 */
}
END_TEST

START_TEST(nothing_takes_less_than_a_microsecond)
{
    struct problem problem = {""};
    struct simulation simulation;
    struct simulation_files files = files_of(2, 2, 2);
    ck_assert(simulation_end(device("groq-lpu-v1"), &matmul, &files, &simulation, &problem));
    ck_assert_int_eq(simulation.busy_ns, SIMULATION_LEAST_NS);
    files = files_of(0, 5, 0); /* an empty sum is a product, too */
    ck_assert(simulation_begin(device("groq-lpu-v1"), &matmul, &files, &problem));
    ck_assert(simulation_end(device("groq-lpu-v1"), &matmul, &files, &simulation, &problem));
    ck_assert_int_eq(simulation.busy_ns, SIMULATION_LEAST_NS);
    files = (struct simulation_files){.a = UINT64_MAX, .b = 200, .result = UINT64_MAX};
    ck_assert(simulation_end(device("intel-npu-mtl"), &matmul, &files, &simulation, &problem) ==
              false); /* no length is an overflow */
}
END_TEST

START_TEST(what_the_device_cannot_do_is_refused_by_name)
{
    struct problem problem = {""};
    struct simulation simulation;
    struct simulation_files files = files_of(64, 64, 64);
    ck_assert(!simulation_begin(device("google-edge-tpu"), &matmul, &files, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "google-edge-tpu cannot multiply float32"));

    files = files_of(10000, 10000, 1000); /* 80 MB go in, 400 MB would come out */
    ck_assert(simulation_begin(device("groq-lpu-v1"), &matmul, &files, &problem));
    ck_assert(!simulation_end(device("groq-lpu-v1"), &matmul, &files, &simulation, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "0.48 GB, and groq-lpu-v1 has 0.23 GB"));
    files = files_of(1, 10000, 10000);
    ck_assert(!simulation_begin(device("groq-lpu-v1"), &matmul, &files, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "the operands are 0.4 GB"));

    struct tensor_op check = matmul;
    check.verb = TENSOR_FREIVALDS;
    ck_assert(!simulation_begin(device("nvidia-h100-sxm5"), &check, &files, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "matmul and gemm"));
}
END_TEST

START_TEST(a_speed_is_that_of_float32_products)
{
    ck_assert_int_eq(simulation_mflops(device("nvidia-h100-sxm5")), 66900000);
    ck_assert_int_eq(simulation_mflops(device("google-tpu-v5p")), 76500000);
    ck_assert_int_eq(simulation_mflops(device("google-edge-tpu")), 0);
    for (size_t i = 0; i < catalogue_count(); i++) {
        ck_assert_int_ge(simulation_mflops(catalogue_at(i)), 0);
    }
}
END_TEST

SUITE("simulation", NULL, NULL, TEST(time_and_energy_are_those_of_the_roofline),
      TEST(nothing_takes_less_than_a_microsecond),
      TEST(what_the_device_cannot_do_is_refused_by_name), TEST(a_speed_is_that_of_float32_products))
