/* Inputs that are copied to a device while a launch computes there, by the fake drivers. The test
 * is the agent at the other end of the connection. */
#include "base/cursor.h"
#include "formats/npy.h"
#include "provider/kernel/cuda.h"
#include "provider/kernel/engine.h"
#include "provider/kernel/opencl.h"
#include "provider/kernel/product/product.h"
#include "provider/tensor/ahead.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct cuda_api cuda;
static struct opencl_api opencl;
static struct devices devices;
static struct engine engine;
static char folder[] = "/tmp/bourse-ahead-XXXXXX";
static uint64_t memory_bytes;

static void (*fail_at)(const char *function, int result);
static int (*count_alive)(void);
static int (*count_copies)(void);

enum { CAP = 1 << 16, MEMORY = 1 << 20, BYTES = 16 };

#define PTX                                                                                        \
    ".version 6.0\n.target sm_50\n.address_size 64\n"                                              \
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 f) {}\n"         \
    ".visible .entry until_copied(.param .u64 count) {}\n"

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

static void begin(void)
{
    struct problem problem = {""};
    ck_assert_msg(cuda_api_load(BOURSE_FAKE_CUDA, &cuda, &problem), "%s", problem.text);
    FIND(cuda.library, "fake_cuda_fail", fail_at);
    FIND(cuda.library, "fake_cuda_alive", count_alive);
    FIND(cuda.library, "fake_cuda_copies", count_copies);
    fail_at(NULL, 0);
    ck_assert_msg(cuda_find_devices(&cuda, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-ahead-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    put("x.ptx", PTX, strlen(PTX));
    put("x.cl", "kernel void copy() {}", 21);
    put("a.bin", numbers, sizeof numbers);
    put("n.bin", numbers, sizeof numbers);
    put("one.bin", "\1", 1);
    memory_bytes = MEMORY;
    begin_ask(CAP);
}

static void end(void)
{
    static const char *const names[] = {"x.ptx", "x.cl", "a.bin", "n.bin", "one.bin", "out.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(names[i]);
    }
    ck_assert_int_eq(chdir("/"), 0);
    (void)rmdir(folder);
    fail_at(NULL, 0);
    engine_close(&engine);
    ck_assert_int_eq(count_alive(), 0); /* the thread's stream is released, too */
}

/* ---------------------------------------------------------------- launches */

/* Launches the words, which end with NULL. Each input has its first letter as hash. */
static enum operation_status launch(const char *const *words, struct problem *problem)
{
    static const struct operation_content items[] = {{.name = "a.bin", .hash = {{'a'}}},
                                                     {.name = "n.bin", .hash = {{'n'}}}};
    const struct operation_contents contents = {.items = items, .count = 2};
    struct kernel_op op;
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    *problem = (struct problem){""};
    (void)unlink("out.bin");
    ck_assert_msg(kernel_op_read(words, count, false, &op, problem), "%s", problem->text);
    return engine_launch(&engine, &op, &contents, memory_bytes, problem);
}
#define LAUNCH(problem, ...) launch((const char *const[]){__VA_ARGS__, NULL}, (problem))

/* Adds a file to itself. */
static void expect_sum(const char *name)
{
    float sum[4] = {0};
    struct problem problem;
    ck_assert_msg(LAUNCH(&problem, "x.ptx", "add", "--global", "4", "--input", name, "--input",
                         name, "--output", "out.bin", "16", "--float", "0.5") == OPERATION_OK,
                  "%s", problem.text);
    FILE *file = fopen("out.bin", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(sum, sizeof sum[0], 4, file), 4);
    (void)fclose(file);
    ck_assert(sum[0] == 1.5F && sum[1] == 3 && sum[2] == 4.5F && sum[3] == 6);
}

/* ---------------------------------------------------------------- the agent's end */

static int offer_raw(const uint8_t *bytes, size_t size)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(send(ends[0], bytes, size, MSG_NOSIGNAL), (ssize_t)size);
    engine_ahead_take(&engine, ends[1]); /* may close it at once */
    return ends[0];
}

static int offer_kind(char hash, uint64_t size, enum ahead_kind kind)
{
    uint8_t bytes[AHEAD_LIST_BYTES];
    const struct hash32 full = {{(uint8_t)hash}};
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u32(&out, 1);
    writer_bytes(&out, full.bytes, sizeof full.bytes);
    writer_u64(&out, size);
    writer_u8(&out, (uint8_t)kind);
    return offer_raw(bytes, out.position);
}

static int offer(char hash)
{
    return offer_kind(hash, BYTES, AHEAD_FILE);
}

static void expect_word(int connection, enum ahead_word word)
{
    uint8_t byte = 0;
    ck_assert_int_eq(recv(connection, &byte, 1, 0), 1);
    ck_assert_uint_eq(byte, word);
}

static void say(int connection, const void *bytes, size_t size)
{
    ck_assert_int_eq(send(connection, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void say_word(int connection, enum ahead_word word)
{
    const uint8_t byte = (uint8_t)word;
    say(connection, &byte, 1);
}

/* Waits until the thread has served the connection. */
static void expect_end(int connection)
{
    uint8_t byte;
    ck_assert_int_le(recv(connection, &byte, 1, 0), 0);
    (void)close(connection);
}

/* Sends n.bin as the next subtask's input. */
static void send_next(int connection)
{
    expect_word(connection, AHEAD_SEND);
    say(connection, numbers, sizeof numbers);
    say_word(connection, AHEAD_GOOD);
    expect_end(connection);
}

/* Sends the first half of n.bin. */
static int send_half(void)
{
    const int connection = offer('n');
    expect_word(connection, AHEAD_SEND);
    say(connection, numbers, sizeof numbers / 2);
    return connection;
}

/* The next subtask has n.bin. `hits` of its two arguments were there. */
static void expect_next(uint64_t hits)
{
    begin_ask(CAP);
    expect_sum("n.bin");
    ck_assert_uint_eq(engine.figures.hits, hits);
    ck_assert_uint_eq(engine.figures.copies, 2 - hits);
    ck_assert(!engine.is_spent);
}

/* ---------------------------------------------------------------- copies */

START_TEST(what_arrives_while_a_launch_computes_is_there_for_the_next_one)
{
    const int before = count_copies();
    expect_sum("a.bin");
    send_next(offer('n'));
    ck_assert_int_eq(count_copies() - before, 2);
    const struct held_figures figures = engine_buffers_figures(&engine);
    ck_assert_uint_eq(figures.aheads, 1);
    ck_assert_uint_eq(figures.ahead_bytes, BYTES);
    ck_assert_uint_eq(figures.copies, 1);
    ck_assert_uint_eq(figures.held_bytes, 2 * BYTES);
    expect_next(2);
    ck_assert_int_eq(count_copies() - before, 2);
    ck_assert_uint_eq(engine_buffers_figures(&engine).aheads, 0);
}
END_TEST

static void *run_agent(void *argument)
{
    send_next(*(const int *)argument);
    return NULL;
}

/* The kernel ends only when a copy was made beside it. */
START_TEST(the_copy_does_not_wait_for_the_launch)
{
    struct problem problem;
    pthread_t agent;
    int connection = offer('n'); /* no launch computes, so nothing is copied yet */
    ck_assert_int_eq(pthread_create(&agent, NULL, run_agent, &connection), 0);
    ck_assert_msg(LAUNCH(&problem, "x.ptx", "until_copied", "--global", "1", "--input",
                         "one.bin") == OPERATION_OK,
                  "%s", problem.text);
    ck_assert_int_eq(pthread_join(agent, NULL), 0);
    expect_next(2);
}
END_TEST

START_TEST(opencl_copies_beside_the_launch_too)
{
    struct problem problem = {""};
    engine_close(&engine);
    ck_assert_msg(opencl_api_load(BOURSE_FAKE_OPENCL, &opencl, &problem), "%s", problem.text);
    FIND(opencl.library, "fake_opencl_fail", fail_at);
    FIND(opencl.library, "fake_opencl_alive", count_alive);
    ck_assert_msg(opencl_find_devices(&opencl, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
    static const char *const calls[] = {"clEnqueueWriteBuffer", "clCreateBuffer",
                                        "clCreateCommandQueue", NULL};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        begin_ask(CAP);
        ck_assert_int_eq(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "a.bin",
                                "--output", "out.bin", "16"),
                         OPERATION_OK);
        fail_at(calls[i], CL_OUT_OF_RESOURCES);
        const int connection = offer('n');
        if (calls[i] == NULL) {
            send_next(connection);
        } else {
            (void)send(connection, numbers, sizeof numbers, MSG_NOSIGNAL);
            uint8_t word;
            while (recv(connection, &word, 1, 0) > 0) {
            }
            (void)close(connection);
        }
        engine_ahead_close(&engine); /* the next one opens a queue again */
        fail_at(NULL, 0);
        ck_assert_uint_eq(engine_buffers_figures(&engine).aheads, calls[i] == NULL ? 1 : 0);
    }
    begin_ask(CAP);
    ck_assert_int_eq(LAUNCH(&problem, "x.cl", "copy", "--global", "8", "--input", "n.bin",
                            "--output", "out.bin", "16"),
                     OPERATION_OK);
    ck_assert_uint_eq(engine.figures.hits, 1);
}
END_TEST

START_TEST(what_is_there_or_above_the_cap_is_skipped)
{
    expect_sum("a.bin");
    int connection = offer('a');
    expect_word(connection, AHEAD_SKIP);
    expect_end(connection);
    connection = offer_kind('n', CAP + 1, AHEAD_FILE);
    expect_word(connection, AHEAD_SKIP);
    expect_end(connection);
}
END_TEST

START_TEST(what_the_launch_uses_stays_and_what_it_does_not_use_goes)
{
    begin_ask(BYTES + 8);
    expect_sum("a.bin");
    expect_end(offer('n')); /* no word: there is no room beside a.bin */
    ck_assert_uint_eq(engine_buffers_figures(&engine).held_bytes, BYTES);
    begin_ask(BYTES + 8);
    struct problem problem;
    ck_assert_int_eq(LAUNCH(&problem, "x.ptx", "add", "--global", "4", "--output", "out.bin", "16",
                            "--output", "o", "16", "--output", "p", "16", "--float", "1"),
                     OPERATION_OK);
    (void)unlink("o");
    (void)unlink("p");
    send_next(offer('n'));
    expect_next(2);
}
END_TEST

/* A launch with a.bin has three buffers. All inputs that are held share the rest of the memory. */
START_TEST(a_copy_keeps_to_the_memory_that_the_launch_leaves)
{
    memory_bytes = 3 * BYTES + 2 * BYTES - 1;
    expect_sum("a.bin");
    expect_end(offer('n'));
    begin_ask(CAP);
    memory_bytes = 3 * BYTES + 2 * BYTES;
    expect_sum("a.bin");
    send_next(offer('n'));
    expect_next(2);
}
END_TEST

START_TEST(an_input_under_way_makes_room_for_a_launch)
{
    expect_sum("a.bin");
    const int connection = send_half();
    begin_ask(CAP);
    memory_bytes = 3 * BYTES;
    expect_sum("a.bin");
    expect_end(connection);
    const struct held_figures figures = engine_buffers_figures(&engine);
    ck_assert_uint_eq(figures.aheads, 0);
    ck_assert_uint_eq(figures.held_bytes, 0);
}
END_TEST

static void *send_rest(void *argument)
{
    const int connection = *(const int *)argument;
    say(connection, &numbers[2], sizeof numbers / 2);
    say_word(connection, AHEAD_GOOD);
    expect_end(connection);
    return NULL;
}

START_TEST(a_launch_waits_for_its_input_under_way)
{
    pthread_t agent;
    expect_sum("a.bin");
    int connection = send_half();
    ck_assert_int_eq(pthread_create(&agent, NULL, send_rest, &connection), 0);
    expect_next(2);
    ck_assert_int_eq(pthread_join(agent, NULL), 0);
}
END_TEST

START_TEST(a_launch_does_not_wait_for_a_copy_that_stands_still)
{
    expect_sum("a.bin");
    const int connection = send_half();
    expect_next(1); /* the second argument is the first one's copy */
    expect_end(connection);
}
END_TEST

/* ---------------------------------------------------------------- failures */

START_TEST(an_input_that_does_not_arrive_whole_is_forgotten)
{
    expect_sum("a.bin");
    (void)close(send_half());
    const int connection = offer('n'); /* served behind the broken one */
    expect_word(connection, AHEAD_SEND);
    say(connection, "wrong bytes !!!!", BYTES);
    say_word(connection, AHEAD_SKIP); /* the file did not have its hash */
    expect_end(connection);
    ck_assert_uint_eq(engine_buffers_figures(&engine).aheads, 0);
    ck_assert_uint_eq(engine.held.held_bytes, BYTES);
    expect_next(1);
}
END_TEST

START_TEST(a_list_that_does_not_decode_is_dropped)
{
    expect_sum("a.bin");
    expect_end(offer_raw((const uint8_t[]){0, 0, 0, 0}, 4));
    expect_end(offer_raw((const uint8_t[]){AHEAD_INPUTS + 1, 0, 0, 0}, 4));
    expect_end(offer_kind('n', 0, AHEAD_FILE));
    expect_end(offer_kind('n', BYTES, AHEAD_KINDS));
    expect_next(1);
}
END_TEST

START_TEST(a_failure_of_any_call_reaches_no_launch)
{
    static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                        "cuStreamCreate",           "cuMemAlloc_v2",
                                        "cuMemcpyHtoDAsync_v2",     "cuStreamSynchronize"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        begin_ask(CAP);
        expect_sum("a.bin");
        fail_at(calls[i], CUDA_ILLEGAL_ADDRESS);
        const int connection = offer('n');
        (void)send(connection, numbers, sizeof numbers, MSG_NOSIGNAL);
        uint8_t word;
        while (recv(connection, &word, 1, 0) > 0) {
        }
        (void)close(connection);
        engine_ahead_close(&engine);
        fail_at(NULL, 0);
        ck_assert_uint_eq(engine_buffers_figures(&engine).aheads, 0);
        expect_next(1);
        engine_buffers_clear(&engine);
        ck_assert_uint_eq(engine.held.held_bytes, 0);
    }
}
END_TEST

/* ---------------------------------------------------------------- matrices */

enum { SIDE = 3, CELLS = SIDE * SIDE };

START_TEST(a_product_finds_its_factor)
{
    uint8_t file[NPY_MATRIX_BYTES + CELLS * sizeof(float)];
    const float values[CELLS] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    float one[CELLS] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    float c[CELLS];
    npy_write_matrix(SIDE, SIDE, file);
    memcpy(file + NPY_MATRIX_BYTES, values, sizeof values);
    const struct held_part part = {
        .hash = {{'m'}}, .file_bytes = sizeof file, .at = NPY_MATRIX_BYTES, .bytes = sizeof values};
    expect_sum("a.bin");
    const int connection = offer_kind('m', sizeof file, AHEAD_MATRIX);
    expect_word(connection, AHEAD_SEND);
    say(connection, file, sizeof file);
    say_word(connection, AHEAD_GOOD);
    expect_end(connection);
    begin_ask(CAP);
    /* The values are those of the device: the caller's own are zeros. */
    float zeros[CELLS] = {0};
    const struct gemm gemm = {
        .rows = SIDE, .inner = SIDE, .columns = SIDE, .alpha = 1, .a = zeros, .b = one, .c = c};
    struct problem problem = {""};
    ck_assert_msg(product_run(&engine, &gemm, (struct product_parts){.a = &part}, MEMORY,
                              &problem) == OPERATION_OK,
                  "%s", problem.text);
    ck_assert_mem_eq(c, values, sizeof values);
    ck_assert_uint_eq(engine.figures.hits, 1);
}
END_TEST

START_TEST(a_file_that_is_no_matrix_is_not_copied)
{
    expect_sum("a.bin");
    const int connection = offer_kind('m', BYTES, AHEAD_MATRIX);
    expect_word(connection, AHEAD_SEND);
    say(connection, numbers, sizeof numbers);
    expect_end(connection);
    ck_assert_uint_eq(engine.held.held_bytes, BYTES);
}
END_TEST

SUITE("engine_ahead", begin, end,
      TEST(what_arrives_while_a_launch_computes_is_there_for_the_next_one),
      TEST(the_copy_does_not_wait_for_the_launch), TEST(opencl_copies_beside_the_launch_too),
      TEST(what_is_there_or_above_the_cap_is_skipped),
      TEST(what_the_launch_uses_stays_and_what_it_does_not_use_goes),
      TEST(a_copy_keeps_to_the_memory_that_the_launch_leaves),
      TEST(an_input_under_way_makes_room_for_a_launch),
      TEST(a_launch_waits_for_its_input_under_way),
      TEST(a_launch_does_not_wait_for_a_copy_that_stands_still),
      TEST(an_input_that_does_not_arrive_whole_is_forgotten),
      TEST(a_list_that_does_not_decode_is_dropped), TEST(a_failure_of_any_call_reaches_no_launch),
      TEST(a_product_finds_its_factor), TEST(a_file_that_is_no_matrix_is_not_copied))
