/* The tests run the engine of bourse-kernel on an OpenCL library that fails wherever a test tells
 * it to. */
#include "provider/kernel/engine.h"
#include "provider/kernel/measure.h"
#include "provider/kernel/opencl.h"
#include "provider/kernel/product/product.h"
#include "provider/kernel/product/product_trial.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct opencl_api api;
static struct devices devices;
static struct engine engine;
static char folder[] = "/tmp/bourse-kernel-XXXXXX";

/* Functions of the fake library. */
static void (*fail_at)(const char *function, int code);
static int (*count_alive)(void);
static void (*err)(void);

static void find(const char *name, void *ret_function)
{
    void *place = dlsym(api.library, name);
    ck_assert_ptr_nonnull(place);
    memcpy(ret_function, &place, sizeof place);
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void begin(void)
{
    struct problem problem = {""};
    ck_assert_msg(opencl_api_load(BOURSE_FAKE_OPENCL, &api, &problem), "%s", problem.text);
    find("fake_opencl_fail", (void *)&fail_at);
    find("fake_opencl_alive", (void *)&count_alive);
    find("fake_opencl_err", (void *)&err);
    fail_at(NULL, 0);
    ck_assert_msg(opencl_find_devices(&api, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-kernel-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    put("x.cl", "kernel void copy() {}");
    put("wrong.cl", "broken");
    put("a.bin", "abcdefgh");
    put("none.bin", "");
}

static void end(void)
{
    static const char *const names[] = {"x.cl", "wrong.cl", "a.bin", "none.bin", "b.bin", "x.ptx"};
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

START_TEST(a_launch_reads_and_leaves_files)
{
    struct problem problem;
    char text[16] = "";
    ck_assert_int_eq(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin",
                            "--output", "b.bin", "10"),
                     OPERATION_OK);
    FILE *file = fopen("b.bin", "r");
    ck_assert_uint_eq(fread(text, 1, sizeof text, file), 10);
    (void)fclose(file);
    ck_assert_mem_eq(text, "abcdefgh\0\0", 10); /* what the kernel leaves alone is zero */
    (void)unlink("b.bin");
    ck_assert_int_eq(
        LAUNCH(&problem, "x.cl", "fill", "--global", "8", "--output", "b.bin", "3", "--int", "7"),
        OPERATION_OK);
}
END_TEST

START_TEST(what_is_wrong_with_a_launch_is_said)
{
    struct problem problem;
    expect(LAUNCH(&problem, "wrong.cl", "copy", "--global", "8"), OPERATION_FAILED, &problem,
           "wrong.cl does not compile: x.cl:1:1: error: broken");
    put("x.ptx", ".version 6.0");
    expect(LAUNCH(&problem, "x.ptx", "copy", "--global", "8"), OPERATION_FAILED, &problem,
           "x.ptx is a source for CUDA, by the end of its name, and this device is reached by "
           "OpenCL");
    expect(LAUNCH(&problem, "no.cl", "copy", "--global", "8"), OPERATION_FAILED, &problem,
           "no.cl: No such file");
    expect(LAUNCH(&problem, "none.bin", "copy", "--global", "8"), OPERATION_FAILED, &problem,
           "none.bin is empty");
    expect(LAUNCH(&problem, "x.cl", "sum", "--global", "8"), OPERATION_FAILED, &problem,
           "x.cl has no kernel \"sum\"; its kernels are copy;fill");
    expect(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin"), OPERATION_FAILED,
           &problem, "the kernel \"copy\" has 2 parameters, and 1 argument is given");
    expect(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin", "--long", "1"),
           OPERATION_FAILED, &problem,
           "argument 2 of \"copy\" is of the kind long, and the kernel takes a buffer there");
    expect(
        LAUNCH(&problem, "x.cl", "fill", "--global", "8", "--output", "b.bin", "3", "--long", "7"),
        OPERATION_FAILED, &problem,
        "argument 2, long: the argument has another size than the kernel's parameter");
    expect(LAUNCH(&problem, "x.cl", "copy", "--global", "128", "--group", "128", "--input", "a.bin",
                  "--output", "b.bin", "3"),
           OPERATION_FAILED, &problem, "a work-group of 128 work-items");
}
END_TEST

START_TEST(what_does_not_fit_is_a_limit_of_memory)
{
    struct problem problem;
    expect(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin", "--output",
                  "b.bin", "4090"),
           OPERATION_MEMORY, &problem, "has 4090 bytes, and 4088 are left");
    expect(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin", "--output",
                  "b.bin", "2000000"),
           OPERATION_MEMORY, &problem, "a buffer of this device has at most 1048576");
}
END_TEST

/* Every call of a launch fails once; nothing is left, and the next launch runs. */
START_TEST(a_failure_of_any_call_is_an_answer)
{
    static const char *const calls[] = {"clCreateProgramWithSource",
                                        "clBuildProgram",
                                        "clCreateKernel",
                                        "clCreateBuffer",
                                        "clEnqueueFillBuffer",
                                        "clEnqueueWriteBuffer",
                                        "clSetKernelArg",
                                        "clEnqueueReadBuffer",
                                        "clEnqueueNDRangeKernel",
                                        "clFinish"};
    static const int codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_VALUE};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
            struct problem problem;
            char options[32];
            (void)snprintf(options, sizeof options, "-D N=%zu", 10 * i + k); /* built anew */
            fail_at(calls[i], codes[k]);
            expect(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--options", options,
                          "--input", "a.bin", "--output", "b.bin", "8"),
                   k < 2 ? OPERATION_MEMORY : OPERATION_FAILED, &problem, ":");
            (void)unlink("b.bin");
            fail_at(NULL, 0);
            ck_assert_int_eq(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--options", options,
                                    "--input", "a.bin", "--output", "b.bin", "8"),
                             OPERATION_OK);
            (void)unlink("b.bin");
        }
    }
}
END_TEST

START_TEST(a_library_without_the_facts_serves_all_the_same)
{
    struct problem problem;
    fail_at("clGetKernelArgInfo", CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    ck_assert_int_eq(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin",
                            "--output", "b.bin", "8"),
                     OPERATION_OK);
    fail_at("clGetProgramBuildInfo", CL_INVALID_VALUE);
    expect(LAUNCH(&problem, "wrong.cl", "copy", "--global", "8"), OPERATION_FAILED, &problem,
           "wrong.cl does not compile, and the compiler does not say why");
}
END_TEST

START_TEST(a_device_that_fails_is_not_opened)
{
    static const char *const calls[] = {"clCreateContext", "clCreateCommandQueue"};
    for (size_t i = 0; i < 2; i++) {
        struct engine other;
        struct problem problem = {""};
        fail_at(calls[i], CL_DEVICE_NOT_AVAILABLE);
        ck_assert(!engine_open(&devices.items[1], &other, &problem));
        ck_assert_str_eq(problem.text, "the device cannot be opened: the device is not available");
    }
}
END_TEST

START_TEST(the_measuring_program_needs_kernels_that_the_fake_lacks)
{
    struct measure figures;
    struct problem problem = {""};
    ck_assert(!measure_run(&engine, 1 << 20, &figures, &problem));
    ck_assert_str_ne(problem.text, "");
}
END_TEST

/* ---------------------------------------------------------------- products */

static enum operation_status multiply(uint64_t memory_bytes, struct problem *problem)
{
    static const float a[] = {1, 2, 3, 4, 5, 6};
    static const float b[] = {1, 0, 0, 1, 1, 1};
    float c[] = {1, 1, 1, 1};
    const struct gemm gemm = {
        .rows = 2, .inner = 3, .columns = 2, .alpha = 2, .beta = -1, .a = a, .b = b, .c = c};
    *problem = (struct problem){""};
    const enum operation_status status =
        product_run(&engine, &gemm, (struct product_parts){.a = NULL}, memory_bytes, problem);
    if (status == OPERATION_OK) {
        ck_assert(c[0] == 7 && c[1] == 9 && c[2] == 19 && c[3] == 21);
    }
    return status;
}

START_TEST(a_product_goes_in_bands_where_memory_is_short)
{
    struct problem problem;
    ck_assert_int_eq(multiply(4096, &problem), OPERATION_OK);
    ck_assert_int_eq(multiply(4 * (6 + 3 + 2), &problem), OPERATION_OK); /* a row at a time */
    expect(multiply(4 * (6 + 3 + 2) - 1, &problem), OPERATION_MEMORY, &problem,
           "a factor of 3 x 2 float32 numbers is too large beside one row of the others: buffers "
           "have at most 43 B");
}
END_TEST

/* Whatever call fails, the device is to blame and not the job, unless memory is short. */
START_TEST(a_failure_of_a_product_is_the_devices)
{
    static const char *const calls[] = {"clCreateProgramWithSource",
                                        "clBuildProgram",
                                        "clCreateKernel",
                                        "clCreateBuffer",
                                        "clEnqueueFillBuffer",
                                        "clEnqueueWriteBuffer",
                                        "clSetKernelArg",
                                        "clEnqueueReadBuffer",
                                        "clEnqueueNDRangeKernel",
                                        "clFinish"};
    const size_t count = sizeof calls / sizeof calls[0];
    for (size_t i = 0; i < count; i++) {
        struct problem problem;
        engine_close(&engine); /* the next one builds the program anew */
        ck_assert(engine_open(&devices.items[0], &engine, &problem));
        fail_at(calls[i], CL_INVALID_VALUE);
        const bool is_used = strcmp(calls[i], "clEnqueueFillBuffer") != 0; /* beta is not 0 */
        const enum operation_status status = multiply(4096, &problem);
        ck_assert_msg(status == (is_used ? OPERATION_DEVICE : OPERATION_OK), "%s: %d %s", calls[i],
                      (int)status, problem.text);
        fail_at(NULL, 0);
        ck_assert_int_eq(multiply(4096, &problem), OPERATION_OK);
    }
}
END_TEST

START_TEST(a_device_of_which_the_product_is_wrong_is_found_out)
{
    struct problem problem = {""};
    struct product_figures figures = {.mflops = 0};
    ck_assert_msg(product_trial(&engine, TENSOR_FP32, 1 << 20, &figures, &problem), "%s",
                  problem.text);
    ck_assert(figures.mflops > 0 && figures.held_mflops > 0);
    err();
    ck_assert(!product_trial(&engine, TENSOR_FP32, 1 << 20, &figures, &problem));
    ck_assert_msg(strncmp(problem.text, "a product of the device is wrong: ", 34) == 0, "%s",
                  problem.text);
}
END_TEST

/* A jail that has one GPU's files lists that GPU alone, so its id is its place where that is
 * known. */
START_TEST(each_way_to_tell_a_place_is_known)
{
    static const char *const places[] = {"0000:3b:00.0", "0001:c1:02.3", "0000:c1:02.1", ""};
    void (*tell)(int way);
    find("fake_opencl_place", (void *)&tell);
    for (int way = 0; way < 4; way++) {
        struct devices found;
        struct problem problem = {""};
        tell(way);
        ck_assert(opencl_find_devices(&api, &found, &problem));
        ck_assert_str_eq(found.items[0].place, places[way]);
        ck_assert_str_eq(found.items[0].id, way < 3 ? places[way] : "0");
        ck_assert_str_eq(found.items[1].id, "1");
    }
    tell(0);
}
END_TEST

START_TEST(the_devices_are_listed)
{
    char text[2048] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    ck_assert_uint_eq(devices.count, 2);
    ck_assert_str_eq(devices.items[0].place, "0000:3b:00.0"); /* NVIDIA's library tells it */
    ck_assert_str_eq(devices.items[1].place, "");
    ck_assert(devices_print(file, KERNEL_OPENCL, &devices, ""));
    (void)fclose(file);
    ck_assert_ptr_nonnull(
        strstr(text, "{\"api\":\"opencl\",\"devices\":[{\"id\":\"0000:3b:00.0\","));
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"Fake GPU 9000 (TM)\""));
    ck_assert_ptr_nonnull(strstr(text, "\"kind\":\"gpu\""));
    ck_assert_ptr_nonnull(strstr(text, "\"platform\":\"Fake Platform\""));
    ck_assert_ptr_nonnull(strstr(text, "\"compute_units\":3"));
}
END_TEST

START_TEST(no_library_platform_or_device_is_said)
{
    struct opencl_api other;
    struct devices none;
    struct problem problem = {""};
    ck_assert(!opencl_api_load("libno-such-opencl.so.1", &other, &problem));
    ck_assert_msg(strncmp(problem.text, "no OpenCL library: ", 19) == 0, "%s", problem.text);
    ck_assert(!opencl_api_load("libm.so.6", &other, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "has no function clGetPlatformIDs"));
    fail_at("clGetPlatformIDs", -1001);
    ck_assert(!opencl_find_devices(&api, &none, &problem));
    ck_assert_str_eq(problem.text, "no OpenCL platform is installed (error -1001 of OpenCL)");
    fail_at("clGetDeviceIDs", CL_DEVICE_NOT_FOUND);
    ck_assert(!opencl_find_devices(&api, &none, &problem));
    ck_assert_str_eq(problem.text, "1 OpenCL platform, and no device on it");
}
END_TEST

SUITE("kernel_engine", begin, end, TEST(a_launch_reads_and_leaves_files),
      TEST(what_is_wrong_with_a_launch_is_said), TEST(what_does_not_fit_is_a_limit_of_memory),
      TEST(a_failure_of_any_call_is_an_answer),
      TEST(a_library_without_the_facts_serves_all_the_same),
      TEST(a_device_that_fails_is_not_opened),
      TEST(the_measuring_program_needs_kernels_that_the_fake_lacks),
      TEST(a_product_goes_in_bands_where_memory_is_short),
      TEST(a_failure_of_a_product_is_the_devices),
      TEST(a_device_of_which_the_product_is_wrong_is_found_out),
      TEST(each_way_to_tell_a_place_is_known), TEST(the_devices_are_listed),
      TEST(no_library_platform_or_device_is_said))
