/* Inputs that stay on a device, by the fake drivers, which count the copies. */
#include "provider/kernel/cuda.h"
#include "provider/kernel/engine.h"
#include "provider/kernel/opencl.h"
#include "provider/kernel/product/product.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct cuda_api cuda;
static struct opencl_api opencl;
static struct devices devices;
static struct engine engine;
static char folder[] = "/tmp/bourse-held-XXXXXX";
static uint64_t memory_bytes;

/* Functions of the fake driver. */
static void (*fail_at)(const char *function, int result);
static int (*count_alive)(void);
static int (*count_copies)(void);
static void (*limit_memory)(size_t most);

enum { CAP = 1 << 16, MEMORY = 1 << 20, DRIVER_MEMORY = 1 << 24 };

#define PTX                                                                                        \
    ".version 6.0\n.target sm_50\n.address_size 64\n"                                              \
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 f) {}\n"         \
    ".visible .entry fill(.param .u64 out, .param .u32 byte) {}\n"

static const float numbers[4] = {1, 2, 3, 4};

static void *find(void *library, const char *name)
{
    void *place = dlsym(library, name);
    ck_assert_ptr_nonnull(place);
    return place;
}
#define FIND(library, name, function)                                                              \
    do {                                                                                           \
        void *place_ = find((library), (name));                                                    \
        memcpy(&(function), &place_, sizeof place_);                                               \
    } while (0)

static void begin_ask(uint64_t cap_bytes)
{
    engine_buffers_begin(&engine, &(struct engine_terms){.cap_bytes = cap_bytes});
}

static void put(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    (void)fclose(file);
}

static void use_cuda(void)
{
    struct problem problem = {""};
    ck_assert_msg(cuda_api_load(BOURSE_FAKE_CUDA, &cuda, &problem), "%s", problem.text);
    FIND(cuda.library, "fake_cuda_fail", fail_at);
    FIND(cuda.library, "fake_cuda_alive", count_alive);
    FIND(cuda.library, "fake_cuda_copies", count_copies);
    FIND(cuda.library, "fake_cuda_memory", limit_memory);
    fail_at(NULL, 0);
    limit_memory(DRIVER_MEMORY);
    ck_assert_msg(cuda_find_devices(&cuda, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
}

/* Device 0 of the fake OpenCL is a GPU, and device 1 is made of cores. */
static void use_opencl(size_t device)
{
    struct problem problem = {""};
    engine_close(&engine);
    ck_assert_msg(opencl_api_load(BOURSE_FAKE_OPENCL, &opencl, &problem), "%s", problem.text);
    FIND(opencl.library, "fake_opencl_fail", fail_at);
    FIND(opencl.library, "fake_opencl_alive", count_alive);
    FIND(opencl.library, "fake_opencl_copies", count_copies);
    fail_at(NULL, 0);
    ck_assert_msg(opencl_find_devices(&opencl, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[device], &engine, &problem), "%s", problem.text);
    begin_ask(CAP);
}

static void begin(void)
{
    use_cuda();
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-held-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    put("x.ptx", PTX, strlen(PTX));
    put("x.cl", "kernel void copy() {}", 21);
    put("a.bin", numbers, sizeof numbers);
    memory_bytes = MEMORY;
    begin_ask(CAP);
}

static void end(void)
{
    static const char *const names[] = {"x.ptx", "x.cl", "a.bin", "b.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(names[i]);
    }
    ck_assert_int_eq(chdir("/"), 0);
    (void)rmdir(folder);
    fail_at(NULL, 0);
    engine_close(&engine);
    ck_assert_int_eq(count_alive(), 0); /* what was held is released, too */
}

/* Launches the words, which end with NULL. The hash of a.bin is known. */
static enum operation_status launch(const char *const *words, struct problem *problem)
{
    static const struct operation_content a = {.name = "a.bin", .hash = {{'a'}}};
    const struct operation_contents contents = {.items = &a, .count = 1};
    struct kernel_op op;
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    *problem = (struct problem){""};
    (void)unlink("b.bin");
    ck_assert_msg(kernel_op_read(words, count, false, &op, problem), "%s", problem->text);
    return engine_launch(&engine, &op, &contents, memory_bytes, problem);
}
#define LAUNCH(problem, ...) launch((const char *const[]){__VA_ARGS__, NULL}, (problem))

/* Adds a.bin to itself. */
static enum operation_status add(struct problem *problem)
{
    return LAUNCH(problem, "x.ptx", "add", "--global", "4", "--input", "a.bin", "--input", "a.bin",
                  "--output", "b.bin", "16", "--float", "0.5");
}

static void expect_sum(void)
{
    float sum[4] = {0};
    struct problem problem;
    ck_assert_msg(add(&problem) == OPERATION_OK, "%s", problem.text);
    FILE *file = fopen("b.bin", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(sum, sizeof sum[0], 4, file), 4);
    (void)fclose(file);
    ck_assert(sum[0] == 1.5F && sum[1] == 3 && sum[2] == 4.5F && sum[3] == 6);
}

START_TEST(an_input_that_is_held_is_not_copied_again)
{
    const int before = count_copies();
    expect_sum();
    ck_assert_int_eq(count_copies() - before, 1); /* the second argument is held already */
    ck_assert_uint_eq(engine.figures.hits, 1);
    ck_assert_uint_eq(engine.figures.saved_bytes, 16);
    ck_assert_uint_eq(engine.figures.copies, 1);
    ck_assert_uint_eq(engine.figures.copied_bytes, 16);
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
    begin_ask(CAP);
    expect_sum();
    ck_assert_int_eq(count_copies() - before, 1);
    ck_assert_uint_eq(engine.figures.hits, 2);
    ck_assert_uint_eq(engine.figures.copies, 0);
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
}
END_TEST

START_TEST(a_cap_of_nothing_holds_nothing)
{
    const int before = count_copies();
    expect_sum();
    begin_ask(0);
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
    expect_sum();
    ck_assert_int_eq(count_copies() - before, 3);
    ck_assert_uint_eq(engine.figures.hits, 0);
    ck_assert_uint_eq(engine.figures.copies, 2);
}
END_TEST

/* CUDA does not tell what a kernel writes to, so every kernel gets a copy of what is held. */
START_TEST(a_kernel_that_writes_to_its_input_spoils_nothing)
{
    struct problem problem;
    expect_sum();
    ck_assert_msg(LAUNCH(&problem, "x.ptx", "fill", "--global", "16", "--input", "a.bin", "--uint",
                         "7") == OPERATION_OK,
                  "%s", problem.text);
    ck_assert_uint_eq(engine.figures.hits, 2);
    expect_sum();
    ck_assert_uint_eq(engine.figures.copies, 1);
}
END_TEST

START_TEST(an_inout_and_an_unknown_input_are_not_held)
{
    struct problem problem;
    ck_assert_msg(LAUNCH(&problem, "x.ptx", "fill", "--global", "16", "--inout", "a.bin", "b.bin",
                         "--uint", "7") == OPERATION_OK,
                  "%s", problem.text);
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
    put("b.bin", numbers, sizeof numbers);
    static const char *const words[] = {"x.ptx",   "fill",  "--global", "16",
                                        "--input", "b.bin", "--uint",   "7"};
    struct kernel_op op;
    ck_assert(kernel_op_read(words, 8, false, &op, &problem));
    ck_assert_int_eq(engine_launch(&engine, &op, NULL, memory_bytes, &problem), OPERATION_OK);
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
    ck_assert_uint_eq(engine.figures.copies, 2);
}
END_TEST

/* Inputs that are held count against the memory of launches, and make room for them. */
START_TEST(a_launch_fits_beside_what_is_held_as_it_did_alone)
{
    struct problem problem;
    memory_bytes = 64; /* two inputs and the result, and 16 bytes that may be held */
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
    memory_bytes = 63;
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
    memory_bytes = 48;
    expect_sum();
    memory_bytes = 47;
    ck_assert_int_eq(add(&problem), OPERATION_MEMORY);
}
END_TEST

START_TEST(a_device_without_memory_gives_up_what_it_holds_and_is_asked_again)
{
    struct problem problem;
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
    limit_memory(48); /* for the two inputs and the result alone */
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
    limit_memory(47);
    ck_assert_int_eq(add(&problem), OPERATION_MEMORY);
    limit_memory(DRIVER_MEMORY);
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
}
END_TEST

START_TEST(a_failure_of_any_call_leaves_what_is_held_right)
{
    static const char *const calls[] = {"cuMemAlloc_v2",  "cuMemcpyDtoD_v2",  "cuMemsetD8_v2",
                                        "cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2",
                                        "cuMemcpyHtoD_v2"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int is_held = 0; is_held < 2; is_held++) {
            struct problem problem;
            engine_buffers_clear(&engine);
            if (is_held != 0) {
                expect_sum();
            }
            fail_at(calls[i], CUDA_INVALID_VALUE);
            const bool never_called =
                strcmp(calls[i], is_held != 0 ? "cuMemcpyHtoD_v2" : "cuMemcpyDtoD_v2") == 0;
            ck_assert_msg(add(&problem) == (never_called ? OPERATION_OK : OPERATION_FAILED),
                          "%s: %s", calls[i], problem.text);
            fail_at(calls[i], CUDA_OUT_OF_MEMORY);
            (void)add(&problem);
            fail_at(NULL, 0);
            expect_sum();
            engine_buffers_clear(&engine);
            ck_assert_uint_eq(engine.held.held_bytes, 0); /* nothing stays pinned */
        }
    }
}
END_TEST

/* ---------------------------------------------------------------- OpenCL */

static enum operation_status copy(struct problem *problem)
{
    return LAUNCH(problem, "x.cl", "copy", "--global", "8", "--input", "a.bin", "--output", "b.bin",
                  "16");
}

static void expect_copy(void)
{
    float had[4] = {0};
    struct problem problem;
    ck_assert_msg(copy(&problem) == OPERATION_OK, "%s", problem.text);
    FILE *file = fopen("b.bin", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(had, sizeof had[0], 4, file), 4);
    (void)fclose(file);
    ck_assert_mem_eq(had, numbers, sizeof numbers);
}

START_TEST(a_const_parameter_gets_what_is_held_itself)
{
    use_opencl(0);
    const int before = count_copies();
    memory_bytes = 32; /* the input and the result, and no copy of the input */
    expect_copy();
    expect_copy();
    ck_assert_int_eq(count_copies() - before, 1);
    ck_assert_uint_eq(engine.figures.hits, 1);
    fail_at("clGetKernelArgInfo", CL_KERNEL_ARG_INFO_NOT_AVAILABLE); /* nobody knows */
    memory_bytes = MEMORY;
    expect_copy();
    ck_assert_int_eq(count_copies() - before, 1);
    fail_at("clEnqueueCopyBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE);
    expect_copy(); /* the parameter is const again */
    ck_assert_int_eq(count_copies() - before, 1);
}
END_TEST

START_TEST(a_gpu_is_wiped_and_cores_are_not)
{
    struct problem problem = {""};
    use_opencl(0);
    const int before = count_alive();
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    ck_assert_int_eq(count_alive(), before);
    fail_at("clEnqueueFillBuffer", CL_INVALID_VALUE);
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_DEVICE);
    ck_assert_int_eq(count_alive(), before);
    fail_at(NULL, 0);
    use_opencl(1);
    fail_at("clEnqueueFillBuffer", CL_INVALID_VALUE); /* no call is made */
    ck_assert_int_eq(engine_buffers_wipe(&engine, &problem), OPERATION_OK);
    fail_at(NULL, 0);
}
END_TEST

START_TEST(cores_hold_only_what_is_read)
{
    use_opencl(1);
    struct problem problem;
    memory_bytes = 96; /* half of it is for the program itself */
    expect_copy();
    ck_assert_int_eq(
        LAUNCH(&problem, "x.cl", "fill", "--global", "8", "--output", "b.bin", "32", "--int", "7"),
        OPERATION_OK);
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
    ck_assert_int_eq(
        LAUNCH(&problem, "x.cl", "fill", "--global", "8", "--output", "b.bin", "33", "--int", "7"),
        OPERATION_OK);
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
    memory_bytes = MEMORY;
    engine_buffers_clear(&engine);
    fail_at("clGetKernelArgInfo", CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    expect_copy();
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
}
END_TEST

START_TEST(a_failure_of_any_call_of_opencl_leaves_what_is_held_right)
{
    static const char *const calls[] = {"clCreateBuffer",         "clEnqueueWriteBuffer",
                                        "clSetKernelArg",         "clEnqueueReadBuffer",
                                        "clEnqueueNDRangeKernel", "clFinish"};
    use_opencl(0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct problem problem;
        fail_at(calls[i], CL_MEM_OBJECT_ALLOCATION_FAILURE);
        (void)copy(&problem);
        fail_at(calls[i], CL_INVALID_VALUE);
        (void)copy(&problem);
        fail_at(NULL, 0);
        expect_copy();
        engine_buffers_clear(&engine);
        ck_assert_uint_eq(engine.held.held_bytes, 0);
        expect_copy();
    }
}
END_TEST

/* ---------------------------------------------------------------- products */

enum { ROWS = 5, INNER = 4, COLUMNS = 3 };

/* Multiplies matrices whose files have these first letters as hashes. The result's file is c.npy,
 * or there is none to stay. */
static void multiply_into(char a_hash, char b_hash, uint64_t bytes, const char *result_name)
{
    float a[ROWS * INNER];
    float b[INNER * COLUMNS];
    float c[ROWS * COLUMNS] = {0};
    float right[ROWS * COLUMNS] = {0};
    struct gemm gemm = {
        .rows = ROWS, .inner = INNER, .columns = COLUMNS, .alpha = 1, .a = a, .b = b, .c = c};
    const struct held_part parts[2] = {
        {.hash = {{(uint8_t)a_hash}}, .file_bytes = 999, .at = 128, .bytes = sizeof a},
        {.hash = {{(uint8_t)b_hash}}, .file_bytes = 999, .at = 128, .bytes = sizeof b}};
    const struct product_parts known = {
        .a = &parts[0],
        .b = &parts[1],
        .result_name = result_name,
        .result = {.file_bytes = 999, .at = 128, .bytes = sizeof c}};
    struct problem problem = {""};
    for (size_t i = 0; i < ROWS * INNER; i++) {
        a[i] = (float)(i + (size_t)a_hash % 16);
    }
    for (size_t i = 0; i < INNER * COLUMNS; i++) {
        b[i] = (float)(i + (size_t)b_hash % 16);
    }
    ck_assert_msg(product_run(&engine, &gemm, known, bytes, &problem) == OPERATION_OK, "%s",
                  problem.text);
    gemm.c = right;
    gemm_reference(&gemm);
    ck_assert_mem_eq(c, right, sizeof c);
}

static void multiply(char a_hash, char b_hash, uint64_t bytes)
{
    multiply_into(a_hash, b_hash, bytes, NULL);
}

START_TEST(factors_stay_for_the_next_products)
{
    const int before = count_copies();
    multiply('a', 'b', MEMORY);
    ck_assert_int_eq(count_copies() - before, 2);
    multiply('c', 'b', MEMORY);
    multiply('a', 'd', MEMORY);
    multiply('c', 'd', MEMORY);
    ck_assert_int_eq(count_copies() - before, 4);
    ck_assert_uint_eq(engine.figures.hits, 4);
    ck_assert_uint_eq(engine.figures.held_bytes, 4 * 2 * (ROWS * INNER + INNER * COLUMNS));
}
END_TEST

START_TEST(a_product_in_bands_holds_its_second_factor)
{
    const int before = count_copies();
    const uint64_t tight = 4 * (INNER * COLUMNS + 2 * (INNER + COLUMNS)); /* two rows at a time */
    multiply('a', 'b', tight);
    ck_assert_int_eq(count_copies() - before, 4);
    multiply('a', 'b', tight);
    ck_assert_int_eq(count_copies() - before, 7);
    ck_assert_uint_eq(engine.figures.held_bytes, 4 * INNER * COLUMNS);
}
END_TEST

START_TEST(the_oldest_factor_makes_room_below_the_cap)
{
    begin_ask(4 * (ROWS * INNER + INNER * COLUMNS));
    multiply('a', 'b', MEMORY);
    multiply('c', 'b', MEMORY); /* a goes */
    ck_assert_uint_eq(engine.figures.hits, 1);
    multiply('c', 'b', MEMORY);
    ck_assert_uint_eq(engine.figures.hits, 3);
    multiply('a', 'b', MEMORY);
    ck_assert_uint_eq(engine.figures.hits, 4);
    ck_assert_uint_eq(engine.figures.held_bytes, 4 * (ROWS * INNER + INNER * COLUMNS));
}
END_TEST

/* Begins an ASK whose results stay. The hash of the last result begins with the letter; 0: nobody
 * tells it. */
static void begin_link(uint64_t cap_bytes, char made)
{
    const struct operation_content content = {.name = "b.bin", .hash = {{(uint8_t)made}}};
    engine_buffers_begin(&engine, &(struct engine_terms){.cap_bytes = cap_bytes,
                                                         .keeps_results = true,
                                                         .made = {&content, made != 0}});
}

/* The result of a launch is the input a.bin of the next one. */
START_TEST(a_result_stays_for_the_launch_that_takes_it)
{
    const int before = count_copies();
    begin_link(CAP, 0);
    expect_sum(); /* a.bin comes from the file */
    ck_assert_uint_eq(engine.figures.held_bytes, 32);
    float sum[4];
    FILE *file = fopen("b.bin", "r");
    ck_assert_uint_eq(fread(sum, sizeof sum[0], 4, file), 4);
    (void)fclose(file);
    engine_buffers_begin(&engine, &(struct engine_terms){.cap_bytes = 0}); /* all goes */
    ck_assert_uint_eq(engine.held.held_bytes, 0);

    begin_link(CAP, 0);
    static const struct operation_content b = {.name = "b.bin", .hash = {{'b'}}};
    const struct operation_contents contents = {.items = &b, .count = 1};
    struct kernel_op op;
    struct problem problem = {""};
    static const char *const words[] = {"x.ptx", "add",     "--global", "4",        "--input",
                                        "b.bin", "--input", "b.bin",    "--output", "c.bin",
                                        "16",    "--float", "1"};
    expect_sum();
    begin_link(CAP, 'b');
    ck_assert(kernel_op_read(words, 13, false, &op, &problem));
    ck_assert_int_eq(engine_launch(&engine, &op, &contents, memory_bytes, &problem), OPERATION_OK);
    ck_assert_uint_eq(engine.figures.hits, 2);
    ck_assert_uint_eq(engine.figures.copies, 0);
    float twice[4];
    file = fopen("c.bin", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(twice, sizeof twice[0], 4, file), 4);
    (void)fclose(file);
    (void)unlink("c.bin");
    ck_assert(twice[0] == 2 * sum[0] && twice[3] == 2 * sum[3]);
    ck_assert_int_eq(count_copies() - before, 2);
}
END_TEST

START_TEST(a_result_without_a_hash_goes)
{
    begin_link(CAP, 0);
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 32);
    begin_link(CAP, 0);
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
    begin_ask(CAP); /* results do not stay by themselves */
    expect_sum();
    ck_assert_uint_eq(engine.figures.held_bytes, 16);
    struct problem problem;
    begin_link(CAP, 0);
    fail_at("cuMemcpyDtoH_v2", CUDA_INVALID_VALUE);
    ck_assert_int_eq(add(&problem), OPERATION_FAILED); /* nor do those of a failed launch */
    ck_assert_uint_eq(engine.held.held_bytes, 16);
    fail_at(NULL, 0);
    begin_link(CAP, 'b'); /* a name that no result has */
    ck_assert_uint_eq(engine.held.held_bytes, 16);
}
END_TEST

START_TEST(a_result_drives_out_nothing_that_its_launch_used)
{
    enum { FACTORS = 4 * (ROWS * INNER + INNER * COLUMNS), RESULT = 4 * ROWS * COLUMNS };
    begin_link(FACTORS + RESULT - 4, 0);
    multiply_into('a', 'b', MEMORY, "b.bin");
    ck_assert_uint_eq(engine.figures.held_bytes, FACTORS);
    begin_link(FACTORS + RESULT, 0);
    multiply_into('a', 'b', MEMORY, "b.bin");
    ck_assert_uint_eq(engine.figures.held_bytes, FACTORS + RESULT);
    begin_link(FACTORS + RESULT, 'c');
    multiply_into('a', 'b', MEMORY, "b.bin"); /* the result before goes, and not a factor */
    ck_assert_uint_eq(engine.figures.hits, 2);
    ck_assert_uint_eq(engine.figures.held_bytes, FACTORS + RESULT);
    engine_buffers_clear(&engine); /* as when the device is out of memory */
    begin_link(FACTORS + RESULT, 'd');
    ck_assert_uint_eq(engine.figures.held_bytes, 0);
}
END_TEST

SUITE("engine_buffers", begin, end, TEST(an_input_that_is_held_is_not_copied_again),
      TEST(a_cap_of_nothing_holds_nothing), TEST(a_kernel_that_writes_to_its_input_spoils_nothing),
      TEST(an_inout_and_an_unknown_input_are_not_held),
      TEST(a_launch_fits_beside_what_is_held_as_it_did_alone),
      TEST(a_device_without_memory_gives_up_what_it_holds_and_is_asked_again),
      TEST(a_failure_of_any_call_leaves_what_is_held_right),
      TEST(a_const_parameter_gets_what_is_held_itself), TEST(a_gpu_is_wiped_and_cores_are_not),
      TEST(cores_hold_only_what_is_read),
      TEST(a_failure_of_any_call_of_opencl_leaves_what_is_held_right),
      TEST(factors_stay_for_the_next_products), TEST(a_product_in_bands_holds_its_second_factor),
      TEST(the_oldest_factor_makes_room_below_the_cap),
      TEST(a_result_stays_for_the_launch_that_takes_it), TEST(a_result_without_a_hash_goes),
      TEST(a_result_drives_out_nothing_that_its_launch_used))
