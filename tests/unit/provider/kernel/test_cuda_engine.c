/* The tests run the engine of bourse-kernel on a CUDA driver that fails wherever a test tells it
 * to. */
#include "provider/kernel/cuda.h"
#include "provider/kernel/engine.h"
#include "provider/kernel/measure.h"
#include "provider/kernel/product/product.h"
#include "provider/kernel/product/product_trial.h"
#include "tests/programs/fake_cuda_memory.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct cuda_api api;
static struct devices devices;
static struct engine engine;
static char folder[] = "/tmp/bourse-cuda-XXXXXX";

/* Functions of the fake driver. */
static void (*fail_at)(const char *function, int result);
static int (*count_alive)(void);
static void (*limit_grid)(unsigned blocks);
static void (*limit_memory)(size_t most);
static bool (*is_soiled)(void);
static void (*launched)(unsigned ret_grid[3], unsigned ret_block[3], unsigned *ret_shared);

#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
#define PTX                                                                                        \
    HEAD ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 f) {}\n"    \
         ".visible .entry fill(.param .u64 out, .param .u32 byte) {}\n"                            \
         ".visible .entry many() {}\n"                                                             \
         ".visible .entry tile() {}\n"                                                             \
         ".visible .entry spotless(.param .u64 out) {}\n"                                          \
         ".visible .entry wild(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 f) {}\n"
#define ADD "--input", "a.bin", "--input", "a.bin", "--output", "b.bin", "16", "--float", "0.5"

static void find(const char *name, void *ret_function)
{
    void *place = dlsym(api.library, name);
    ck_assert_ptr_nonnull(place);
    memcpy(ret_function, &place, sizeof place);
}

static void put(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    (void)fclose(file);
}

static void begin(void)
{
    static const float numbers[4] = {1, 2, 3, 4};
    struct problem problem = {""};
    ck_assert_msg(cuda_api_load(BOURSE_FAKE_CUDA, &api, &problem), "%s", problem.text);
    find("fake_cuda_fail", (void *)&fail_at);
    find("fake_cuda_alive", (void *)&count_alive);
    find("fake_cuda_launched", (void *)&launched);
    find("fake_cuda_grid_most", (void *)&limit_grid);
    find("fake_cuda_memory", (void *)&limit_memory);
    find("fake_cuda_is_soiled", (void *)&is_soiled);
    limit_grid(65535);
    limit_memory(FAKE_CUDA_MEMORY_BYTES);
    fail_at(NULL, 0);
    ck_assert_msg(cuda_find_devices(&api, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-cuda-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    put("x.ptx", PTX, strlen(PTX));
    put("a.bin", numbers, sizeof numbers);
}

static void end(void)
{
    static const char *const names[] = {"x.ptx", "y.ptx", "x.cubin", "x.cl", "a.bin", "b.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(names[i]);
    }
    ck_assert_int_eq(chdir("/"), 0);
    (void)rmdir(folder);
    fail_at(NULL, 0);
    engine_close(&engine);
    ck_assert_int_eq(count_alive(), 0); /* whatever failed, all is released */
}

/* Launches the words, which end with NULL. */
static enum operation_status launch(const char *const *words, struct problem *problem)
{
    struct kernel_op op;
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    *problem = (struct problem){""};
    ck_assert_msg(kernel_op_read(words, count, false, &op, problem), "%s", problem->text);
    return engine_launch(&engine, &op, NULL, 4096, problem);
}
#define LAUNCH(problem, ...) launch((const char *const[]){__VA_ARGS__, NULL}, (problem))

static void expect(enum operation_status status, enum operation_status wanted,
                   const struct problem *problem, const char *text)
{
    ck_assert_msg(status == wanted, "status %d: %s", (int)status, problem->text);
    ck_assert_msg(strstr(problem->text, text) != NULL, "%s", problem->text);
}

static void expect_sum(void)
{
    float sum[4] = {0};
    FILE *file = fopen("b.bin", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(sum, sizeof sum[0], 4, file), 4);
    (void)fclose(file);
    (void)unlink("b.bin");
    ck_assert(sum[0] == 1.5F && sum[1] == 3 && sum[2] == 4.5F && sum[3] == 6);
}

START_TEST(a_launch_computes_from_files_to_files)
{
    struct problem problem;
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", ADD), OPERATION_OK, &problem, "");
    expect_sum();
    put("x.cubin", "\177ELF\2\1\1\0", 8);
    expect(LAUNCH(&problem, "x.cubin", "add", "--global", "4", ADD), OPERATION_OK, &problem, "");
    expect_sum();
    ck_assert(!engine.is_spent);
}
END_TEST

static void expect_shape(const char *global, const char *group, const unsigned grid[3],
                         const unsigned block[3])
{
    struct problem problem;
    unsigned had_grid[3];
    unsigned had_block[3];
    unsigned shared;
    const enum operation_status status =
        group != NULL ? LAUNCH(&problem, "x.ptx", "fill", "--global", global, "--group", group,
                               "--output", "b.bin", "2048", "--uint", "7")
                      : LAUNCH(&problem, "x.ptx", "fill", "--global", global, "--output", "b.bin",
                               "2048", "--uint", "7");
    (void)unlink("b.bin");
    expect(status, OPERATION_OK, &problem, "");
    launched(had_grid, had_block, &shared);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_msg(had_grid[i] == grid[i] && had_block[i] == block[i], "%s: %u blocks of %u",
                      global, had_grid[i], had_block[i]);
    }
    ck_assert_uint_eq(shared, 0);
}
#define THREE(x, y, z)                                                                             \
    (const unsigned[])                                                                             \
    {                                                                                              \
        x, y, z                                                                                    \
    }

START_TEST(the_range_is_split_into_blocks)
{
    struct problem problem;
    expect_shape("1024", "128", THREE(8, 1, 1), THREE(128, 1, 1));
    expect_shape("64,8,2", "32,4,2", THREE(2, 2, 1), THREE(32, 4, 2));
    expect_shape("1024", NULL, THREE(4, 1, 1), THREE(256, 1, 1));
    expect_shape("1000", NULL, THREE(4, 1, 1), THREE(250, 1, 1));
    expect_shape("1009", NULL, THREE(1009, 1, 1), THREE(1, 1, 1)); /* a prime number */
    expect_shape("16,2", NULL, THREE(1, 2, 1), THREE(16, 1, 1));
    expect(LAUNCH(&problem, "x.ptx", "fill", "--global", "1024", "--group", "1024", "--output",
                  "b.bin", "1", "--uint", "1"),
           OPERATION_FAILED, &problem,
           "a work-group of 1024 work-items; this kernel has at most 512 on this device");
    expect(LAUNCH(&problem, "x.ptx", "fill", "--global", "4,65536", "--output", "b.bin", "1",
                  "--uint", "1"),
           OPERATION_FAILED, &problem,
           "global: 65536 work-groups in dimension 2; this device has at most 65535 there");
    fail_at("cuFuncGetAttribute", CUDA_INVALID_VALUE); /* nobody knows how many fit */
    expect(LAUNCH(&problem, "x.ptx", "fill", "--global", "1024", "--group", "1024", "--output",
                  "b.bin", "1", "--uint", "1"),
           OPERATION_FAILED, &problem,
           "local: 1024 work-items in dimension 1; this device has at most 512 there");
}
END_TEST

START_TEST(local_memory_is_a_setting_and_no_parameter)
{
    struct problem problem;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared = 0;
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", "--local", "65536", ADD), OPERATION_OK,
           &problem, "");
    expect_sum();
    launched(grid, block, &shared);
    ck_assert_uint_eq(shared, 65536);
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", "--local", "1000000", ADD),
           OPERATION_FAILED, &problem, "argument 1, local: the driver takes no such value");
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", "--local", "5000000000", ADD),
           OPERATION_FAILED, &problem, "argument 1, local: no device has so much shared memory");
    /* The kernel has 16 KiB of its own, so the driver lets a block have 32 KiB more by default. */
    expect(LAUNCH(&problem, "x.ptx", "tile", "--global", "4", "--local", "40960"), OPERATION_OK,
           &problem, "");
    launched(grid, block, &shared);
    ck_assert_uint_eq(shared, 40960);
}
END_TEST

static void put_ptx(const char *text)
{
    put("y.ptx", text, strlen(text));
}

START_TEST(what_is_wrong_with_a_launch_is_said)
{
    struct problem problem;
    put_ptx(HEAD "broken\n");
    expect(LAUNCH(&problem, "y.ptx", "add", "--global", "4"), OPERATION_FAILED, &problem,
           "y.ptx does not compile: ptxas application ptx input, line 4; error   : Not a name of "
           "any known instruction: 'broken'");
    put_ptx(".version 99.0\n");
    expect(LAUNCH(&problem, "y.ptx", "add", "--global", "4"), OPERATION_FAILED, &problem,
           "y.ptx does not compile: ptxas application ptx input, line 1; fatal   : Unsupported "
           ".version 99.0");
    put_ptx("kernel void add() {}\n");
    expect(LAUNCH(&problem, "y.ptx", "add", "--global", "4"), OPERATION_FAILED, &problem,
           "y.ptx does not compile: it is neither PTX nor a cubin");
    put_ptx("");
    expect(LAUNCH(&problem, "y.ptx", "add", "--global", "4"), OPERATION_FAILED, &problem,
           "y.ptx is empty, and a source has at least a byte");
    put("x.cl", "kernel void add() {}", 20);
    expect(LAUNCH(&problem, "x.cl", "add", "--global", "4"), OPERATION_FAILED, &problem,
           "x.cl is a source for OpenCL, by the end of its name, and this device is reached by "
           "CUDA");
    expect(LAUNCH(&problem, "x.ptx", "sum", "--global", "4"), OPERATION_FAILED, &problem,
           "x.ptx has no kernel \"sum\"");
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", "--input", "a.bin"), OPERATION_FAILED,
           &problem, "the kernel \"add\" has 4 parameters, and 1 argument is given");
    expect(LAUNCH(&problem, "x.ptx", "fill", "--global", "4", "--output", "b.bin", "4", "--ulong",
                  "7"),
           OPERATION_FAILED, &problem,
           "argument 2 of \"fill\" is of the kind ulong, and the kernel takes 4 bytes there");
    expect(LAUNCH(&problem, "x.ptx", "fill", "--global", "4", "--output", "b.bin", "5000", "--int",
                  "7"),
           OPERATION_MEMORY, &problem, "has 5000 bytes, and 4096 are left");
    ck_assert(!engine.is_spent);
}
END_TEST

/* A driver older than 12.4 does not tell the parameters, and then the kernel reads zeros. */
START_TEST(an_older_driver_serves_all_the_same)
{
    struct problem problem;
    api.cuFuncGetParamInfo = NULL;
    api.cuFuncSetAttribute = NULL;
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", ADD), OPERATION_OK, &problem, "");
    expect_sum();
    expect(LAUNCH(&problem, "x.ptx", "fill", "--global", "4", "--output", "b.bin", "4"),
           OPERATION_OK, &problem, "");
    expect(LAUNCH(&problem, "x.ptx", "many", "--global", "4"), OPERATION_OK, &problem, "");
}
END_TEST

/* Every call of a launch fails once; nothing is left, and the next launch runs. */
START_TEST(a_failure_of_any_call_is_an_answer)
{
    static const char *const calls[] = {
        "cuModuleLoadDataEx", "cuModuleGetFunction", "cuMemAlloc_v2",    "cuMemcpyHtoD_v2",
        "cuMemsetD8_v2",      "cuLaunchKernel",      "cuCtxSynchronize", "cuMemcpyDtoH_v2"};
    static const struct {
        int result;
        enum operation_status status;
        bool is_spent;
        enum device_fault fault; /* counts with OPERATION_DEVICE alone */
        const char *said;
    } results[] = {
        {CUDA_OUT_OF_MEMORY, OPERATION_MEMORY, false, DEVICE_FAULT_MEMORY,
         ": the device has no memory left"},
        {CUDA_INVALID_VALUE, OPERATION_FAILED, false, DEVICE_FAULT_OTHER,
         ": the driver takes no such value"},
        {CUDA_ILLEGAL_ADDRESS, OPERATION_FAILED, true, DEVICE_FAULT_OTHER,
         "wrote outside its buffers"},
        {CUDA_ECC_UNCORRECTABLE, OPERATION_DEVICE, true, DEVICE_FAULT_LOST,
         ": the device's memory failed"},
        {CUDA_SYSTEM_DRIVER_MISMATCH, OPERATION_DEVICE, true, DEVICE_FAULT_DRIVER,
         ": the library and the driver differ in version"},
        {CUDA_UNKNOWN, OPERATION_DEVICE, true, DEVICE_FAULT_OTHER,
         ": the driver does not know what failed"},
        {12345, OPERATION_FAILED, false, DEVICE_FAULT_OTHER, "12345"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (size_t k = 0; k < sizeof results / sizeof results[0]; k++) {
            struct problem problem;
            char text[400];
            (void)snprintf(text, sizeof text, PTX "// %zu\n", 10 * i + k); /* built anew */
            put_ptx(text);
            fail_at(calls[i], results[k].result);
            expect(LAUNCH(&problem, "y.ptx", "add", "--global", "4", ADD), results[k].status,
                   &problem, results[k].said);
            ck_assert_msg(engine.is_spent == results[k].is_spent, "%s", problem.text);
            ck_assert_msg(engine.fault == results[k].fault, "%s", problem.text);
            engine.is_spent = false; /* as if in another process */
            (void)unlink("b.bin");
            fail_at(NULL, 0);
            expect(LAUNCH(&problem, "y.ptx", "add", "--global", "4", ADD), OPERATION_OK, &problem,
                   "");
            expect_sum();
        }
    }
}
END_TEST

START_TEST(a_kernel_that_reads_outside_its_buffers_ends_its_process)
{
    struct problem problem;
    expect(LAUNCH(&problem, "x.ptx", "wild", "--global", "4", ADD), OPERATION_FAILED, &problem,
           "the kernel did not run: the kernel read or wrote outside its buffers");
    ck_assert(engine.is_spent);
}
END_TEST

START_TEST(a_device_that_fails_is_not_opened)
{
    static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"};
    for (size_t i = 0; i < 2; i++) {
        struct engine other;
        struct problem problem = {""};
        fail_at(calls[i], CUDA_DEVICE_UNAVAILABLE);
        ck_assert(!engine_open(&devices.items[1], &other, &problem));
        ck_assert_str_eq(problem.text, "the device cannot be opened: the device is in use by "
                                       "another program alone (error 46 of CUDA)");
        ck_assert(other.is_spent);
    }
}
END_TEST

START_TEST(a_device_is_measured)
{
    struct measure figures = {0};
    struct problem problem = {""};
    ck_assert_msg(measure_run(&engine, 1 << 20, &figures, &problem), "%s", problem.text);
    ck_assert(figures.mflops > 0 && figures.bandwidth > 0);
    fail_at("cuLaunchKernel", CUDA_LAUNCH_OUT_OF_RESOURCES);
    ck_assert(!measure_run(&engine, 1 << 20, &figures, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "too few registers"));
}
END_TEST

/* ---------------------------------------------------------------- products */

/* Fills a matrix with small whole numbers, whose products are exact. */
static void fill(float *values, uint64_t count, uint64_t factor)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (float)(i * factor % 17) - 8;
    }
}

/* Computes a product on the fake driver, and by plain C. C holds NaN where beta is 0. */
static enum operation_status multiply(const uint64_t shape[3], float alpha, float beta,
                                      uint64_t memory_bytes, struct problem *problem)
{
    enum { SIDE = 140 };
    static float a[SIDE * SIDE];
    static float b[SIDE * SIDE];
    static float c[SIDE * SIDE];
    static float right[SIDE * SIDE];
    struct gemm gemm = {.rows = shape[0],
                        .inner = shape[1],
                        .columns = shape[2],
                        .alpha = alpha,
                        .beta = beta,
                        .a = a,
                        .b = b,
                        .c = c};
    const uint64_t cells = gemm.rows * gemm.columns;
    fill(a, gemm.rows * gemm.inner, 7);
    fill(b, gemm.inner * gemm.columns, 5);
    fill(c, cells, 3);
    for (uint64_t i = 0; i < cells; i++) {
        right[i] = c[i] = beta == 0 ? NAN : c[i];
    }
    *problem = (struct problem){""};
    const enum operation_status status =
        product_run(&engine, &gemm, (struct product_parts){.a = NULL}, memory_bytes, problem);
    gemm.c = right;
    gemm_reference(&gemm);
    for (uint64_t i = 0; status == OPERATION_OK && i < cells; i++) {
        ck_assert_msg(c[i] == right[i], "%llu x %llu x %llu: entry %llu is %g, not %g",
                      (unsigned long long)shape[0], (unsigned long long)shape[1],
                      (unsigned long long)shape[2], (unsigned long long)i, (double)c[i],
                      (double)right[i]);
    }
    return status;
}

/* The fake driver carries out the kernel's own text, instruction by instruction. */
START_TEST(the_program_of_products_computes_every_shape)
{
    static const uint64_t sides[] = {1, 7, 16, 63, 64, 65, 130};
    enum { SIDES = sizeof sides / sizeof sides[0] };
    struct problem problem;
    for (size_t i = 0; i < SIDES; i++) {
        for (size_t k = 0; k < SIDES; k++) {
            const uint64_t shape[] = {sides[i], sides[k], sides[(i + 2 * k) % SIDES]};
            const float beta = k % 2 == 0 ? 0 : -0.5F;
            ck_assert_msg(multiply(shape, i % 2 == 0 ? 1 : 2, beta, 1 << 20, &problem) ==
                              OPERATION_OK,
                          "%s", problem.text);
        }
    }
    const uint64_t shape[] = {70, 3, 66}; /* in bands of 20 rows */
    ck_assert_int_eq(multiply(shape, 1, 1, 4 * (3 * 66 + 20 * (3 + 66)), &problem), OPERATION_OK);
}
END_TEST

/* The real limit is 65535 blocks. More columns than its blocks hold go in the dimension without
 * such a limit, and more rows go in bands. */
START_TEST(the_limit_of_a_grid_is_no_limit_of_a_product)
{
    static const uint64_t wide[] = {3, 2, 130};
    static const uint64_t high[] = {130, 2, 3};
    static const uint64_t both[] = {130, 5, 129};
    struct problem problem;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    limit_grid(1);
    ck_assert_msg(multiply(wide, 1, 0, 1 << 20, &problem) == OPERATION_OK, "%s", problem.text);
    launched(grid, block, &shared);
    ck_assert_uint_eq(grid[0], 3);
    ck_assert_uint_eq(grid[1], 1);
    ck_assert_msg(multiply(high, 1, 0, 1 << 20, &problem) == OPERATION_OK, "%s", problem.text);
    ck_assert_msg(multiply(both, 2, -1, 1 << 20, &problem) == OPERATION_OK, "%s", problem.text);
}
END_TEST

START_TEST(a_failure_of_a_product_is_the_devices)
{
    static const char *const calls[] = {
        "cuModuleLoadDataEx", "cuModuleGetFunction", "cuMemAlloc_v2",  "cuMemcpyHtoD_v2",
        "cuLaunchKernel",     "cuCtxSynchronize",    "cuMemcpyDtoH_v2"};
    static const uint64_t shape[] = {2, 3, 4};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct problem problem;
        engine_close(&engine); /* the next one builds the program anew */
        ck_assert(engine_open(&devices.items[0], &engine, &problem));
        fail_at(calls[i], CUDA_INVALID_VALUE);
        expect(multiply(shape, 1, 1, 4096, &problem), OPERATION_DEVICE, &problem, ":");
        fail_at(calls[i], CUDA_OUT_OF_MEMORY);
        const enum operation_status status = multiply(shape, 1, 1, 4096, &problem);
        ck_assert_msg(status == OPERATION_MEMORY || (i < 2 && status == OPERATION_DEVICE), "%s: %d",
                      calls[i], (int)status);
        fail_at(NULL, 0);
        ck_assert_msg(multiply(shape, 1, 1, 4096, &problem) == OPERATION_OK, "%s", problem.text);
    }
}
END_TEST

static enum operation_status look_for_others(struct problem *problem)
{
    (void)unlink("b.bin");
    return LAUNCH(problem, "x.ptx", "spotless", "--global", "1", "--output", "b.bin", "16");
}

/* Opens the device anew, as the process of the next job does. */
static void open_anew(void)
{
    struct problem problem = {""};
    engine_close(&engine);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
}

START_TEST(a_wiped_device_has_nothing_of_earlier_jobs)
{
    struct problem problem = {""};
    ck_assert(is_soiled()); /* by programs before this one */
    expect(look_for_others(&problem), OPERATION_FAILED, &problem, "");
    open_anew();
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    expect(look_for_others(&problem), OPERATION_OK, &problem, "");

    /* A job leaves its input, by the end of its process. */
    put("a.bin", FAKE_CUDA_LEFT, 16);
    (void)unlink("b.bin");
    expect(LAUNCH(&problem, "x.ptx", "add", "--global", "4", ADD), OPERATION_OK, &problem, "");
    open_anew();
    ck_assert(is_soiled());
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    ck_assert(!is_soiled());
    expect(look_for_others(&problem), OPERATION_OK, &problem, "");
}
END_TEST

START_TEST(a_wipe_takes_what_is_free_and_gives_it_back)
{
    struct problem problem = {""};
    const int before = count_alive();
    limit_memory(3 << 20); /* others use the rest */
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    ck_assert_int_eq(count_alive(), before);
    limit_memory(0);
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    limit_memory(FAKE_CUDA_MEMORY_BYTES);

    fail_at("cuMemsetD8_v2", CUDA_INVALID_VALUE);
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_DEVICE);
    ck_assert_ptr_nonnull(strstr(problem.text, "the device's memory cannot be cleared"));
    ck_assert_int_eq(count_alive(), before);
    fail_at(NULL, 0);

    struct device_facts pieces = devices.items[0];
    pieces.buffer_bytes = ENGINE_WIPE_LEAST; /* of 16 MiB: 4,096 buffers */
    engine.device = &pieces;
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_DEVICE);
    ck_assert_ptr_nonnull(strstr(problem.text, "in more than 1024 pieces"));
    ck_assert_int_eq(count_alive(), before);
    pieces.has_host_memory = true; /* the operating system clears pages */
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    engine.device = &devices.items[0];
}
END_TEST

START_TEST(the_products_of_a_device_are_tried_and_measured)
{
    struct problem problem = {""};
    struct product_figures figures = {.mflops = 0};
    ck_assert_msg(product_trial(&engine, TENSOR_FP32, 1 << 20, &figures, &problem), "%s",
                  problem.text);
    ck_assert(figures.mflops > 0 && figures.held_mflops > 0);
}
END_TEST

START_TEST(the_devices_are_listed)
{
    char text[2048] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    ck_assert_uint_eq(devices.count, 2);
    ck_assert(devices_print(file, KERNEL_CUDA, &devices, ""));
    (void)fclose(file);
    static const char *const parts[] = {
        "{\"api\":\"cuda\",\"devices\":[{\"id\":\"0000:3b:00.0\",",
        "\"name\":\"NVIDIA Fake F200\"",
        "\"driver\":\"CUDA 12.4\"",
        "\"target\":\"sm_50\"",
        "\"target\":\"sm_90\",\"kind\":\"gpu\",\"memory_bytes\":16777216",
        "\"fp16\":true",
        "\"fp16\":false", /* of sm_50 */
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(text, parts[i]) != NULL, "%s is not in %s", parts[i], text);
    }
}
END_TEST

START_TEST(no_driver_or_device_is_said)
{
    struct cuda_api other;
    struct devices none;
    struct problem problem = {""};
    ck_assert(!cuda_api_load("libno-such-cuda.so.1", &other, &problem));
    ck_assert_msg(strncmp(problem.text, "no CUDA driver: ", 16) == 0, "%s", problem.text);
    ck_assert(!cuda_api_load("libm.so.6", &other, &problem));
    ck_assert_str_eq(problem.text, "the CUDA driver has no function cuInit, so it is too old");
    fail_at("cuInit", CUDA_NO_DEVICE);
    ck_assert(!cuda_find_devices(&api, &none, &problem));
    ck_assert_str_eq(problem.text, "the CUDA driver does not start: no device (error 100 of CUDA)");
    fail_at("cuInit", CUDA_SYSTEM_DRIVER_MISMATCH);
    ck_assert(!cuda_find_devices(&api, &none, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "the library and the driver differ in version"));
    static const char *const calls[] = {"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetPCIBusId",
                                        "cuDeviceTotalMem_v2"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fail_at(calls[i], CUDA_UNKNOWN);
        ck_assert(!cuda_find_devices(&api, &none, &problem));
        ck_assert_str_eq(problem.text,
                         "CUDA device 1: the driver does not know what failed (error 999 of CUDA)");
    }
}
END_TEST

SUITE("cuda_engine", begin, end, TEST(a_launch_computes_from_files_to_files),
      TEST(the_range_is_split_into_blocks), TEST(local_memory_is_a_setting_and_no_parameter),
      TEST(what_is_wrong_with_a_launch_is_said), TEST(an_older_driver_serves_all_the_same),
      TEST(a_failure_of_any_call_is_an_answer),
      TEST(a_kernel_that_reads_outside_its_buffers_ends_its_process),
      TEST(a_device_that_fails_is_not_opened), TEST(a_device_is_measured),
      TEST(the_program_of_products_computes_every_shape),
      TEST(the_limit_of_a_grid_is_no_limit_of_a_product),
      TEST(a_failure_of_a_product_is_the_devices), TEST(a_wiped_device_has_nothing_of_earlier_jobs),
      TEST(a_wipe_takes_what_is_free_and_gives_it_back),
      TEST(the_products_of_a_device_are_tried_and_measured), TEST(the_devices_are_listed),
      TEST(no_driver_or_device_is_said))
