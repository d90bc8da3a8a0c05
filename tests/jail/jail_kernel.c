/* The tests run bourse-kernel in a real jail, on pocl. They run the kernels of one job one after
 * another, kernels with faults, and kernels that never end. A machine without pocl skips the
 * program. */
#include "base/cursor.h"
#include "fixture.h"
#include "provider/executors/kernel.h"
#include "provider/tensor/ahead.h"
#include "provider/tensor/ask.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>

static struct kernel_device_list list;
static struct jail_kernel kernel;

static struct kernel_trial trial_of(const struct fixture *fixture)
{
    return (struct kernel_trial){.launcher = fixture->launcher,
                                 .cgroups = fixture->cgroups,
                                 .worker_path = fixture->worker,
                                 .kernel_path = fixture->kernel};
}

/* Opens a jail for the first device that bourse-kernel lists. */
static struct fixture open_with_kernel(int way)
{
    struct fixture fixture = fixture_open(way);
    const struct kernel_trial trial = trial_of(&fixture);
    kernel_list(&trial, KERNEL_OPENCL, &list);
    ck_assert_msg(list.count > 0, "%s", list.problem);
    kernel = kernel_jail(fixture.kernel, &list.items[0]);
    struct problem problem;
    struct jail_spec spec = fixture_spec(&fixture);
    spec.name = "lane-1";
    spec.kernel = &kernel;
    spec.limits = (struct jail_limits){
        .memory_bytes = 1024 * MIB, .disk_bytes = 64 * MIB, .processes = 64, .cpu_milli = 1000};
    jail_close(&fixture.jail);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    return fixture;
}

static struct jail_input file_of(const char *name, const void *bytes, size_t size)
{
    const int fd = memfd_create(name, MFD_CLOEXEC);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    return (struct jail_input){.name = name, .fd = fd, .size = size};
}

static const char source[] =
    "kernel void add(global const float *a, global const float *b, global float *c, float f)\n"
    "{ size_t i = get_global_id(0); c[i] = a[i] + f * b[i]; }\n"
    "kernel void endless(global int *a) { while (a[0] == 0) { a[1] += 1; } }\n";

/* The device may hold so many bytes of inputs; NULL: none, and their hashes are not told. */
static const char *held_bytes;
static struct hash32 hashes[2] = {{"a"}, {"b"}};
static int ahead = -1; /* the jail's end of a connection for inputs of the next run; -1: none */

/* Runs the words, which end with NULL, after those of the device. The reply is the caller's. */
static void run(struct fixture *fixture, const char *text, const char *const *words,
                uint64_t wall_ns, struct jail_reply *reply)
{
    const float a[4] = {1, 2, 3, 4};
    const float b[4] = {10, 20, 30, 40};
    struct jail_input inputs[] = {file_of("add.cl", text, strlen(text)), file_of("a", a, sizeof a),
                                  file_of("b", b, sizeof b)};
    static const char *const outputs[] = {"c"};
    const char *argv[24] = {
        "opencl", "0", list.items[0].name, "0", held_bytes != NULL ? held_bytes : "0", "-", "-"};
    for (size_t i = 0; words[i] != NULL; i++) {
        argv[i + KERNEL_DEVICE_WORDS] = words[i];
    }
    for (size_t i = 0; i < 2 && held_bytes != NULL; i++) {
        inputs[1 + i].content = &hashes[i];
    }
    struct jail_request request = {.tensor_threads = 1,
                                   .argv = argv,
                                   .inputs = inputs,
                                   .input_count = 3,
                                   .has_ahead = ahead >= 0,
                                   .ahead = ahead,
                                   .stdin_fd = -1,
                                   .outputs = outputs,
                                   .output_count = 1,
                                   .wall_ns = wall_ns};
    memset(reply, 0, sizeof *reply);
    jail_run(fixture->jail, &request, reply);
    for (size_t i = 0; i < 3; i++) {
        (void)close(inputs[i].fd);
    }
}

static struct held_figures add_once(struct fixture *fixture)
{
    static const char *const words[] = {"add.cl", "add",     "--global", "4",        "--input",
                                        "a",      "--input", "b",        "--output", "c",
                                        "16",     "--float", "0.5",      NULL};
    static struct jail_reply reply;
    float c[4] = {0};
    run(fixture, source, words, 120 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d: %s", (int)reply.outcome, reply.detail);
    ck_assert_int_eq(pread(reply.outputs[0].fd, c, sizeof c, 0), (ssize_t)sizeof c);
    ck_assert(c[0] == 6 && c[1] == 12 && c[2] == 18 && c[3] == 24);
    jail_reply_fini(&reply);
    return reply.held;
}

START_TEST(kernels_of_a_jail_run_one_after_another)
{
    struct fixture fixture = open_with_kernel(_i);
    (void)add_once(&fixture);
    (void)add_once(&fixture);
    fixture_close(&fixture);
}
END_TEST

static void expect_held(const struct held_figures *held, uint64_t hits, uint64_t copies,
                        uint64_t held_most)
{
    ck_assert_uint_eq(held->hits, hits);
    ck_assert_uint_eq(held->saved_bytes, 16 * hits);
    ck_assert_uint_eq(held->copies, copies);
    ck_assert_uint_eq(held->copied_bytes, 16 * copies);
    ck_assert_uint_eq(held->held_bytes, held_most);
}

/* Each parameter is const, and the same bytes come with the same hashes. */
START_TEST(inputs_stay_on_the_device_until_the_jail_ends)
{
    struct fixture fixture = open_with_kernel(_i);
    struct held_figures held = add_once(&fixture);
    expect_held(&held, 0, 2, 0); /* no hash is told */
    held_bytes = "1000";
    held = add_once(&fixture);
    expect_held(&held, 0, 2, 32);
    held = add_once(&fixture);
    expect_held(&held, 2, 0, 32);
    held_bytes = "16";
    held = add_once(&fixture);
    expect_held(&held, 0, 2, 16); /* there is room for one, and each needs it in turn */
    held_bytes = "0";
    held = add_once(&fixture);
    expect_held(&held, 0, 2, 0);
    held_bytes = "1000";
    held = add_once(&fixture);
    fixture_close(&fixture);
    fixture = open_with_kernel(_i); /* another lease has one of its own */
    held = add_once(&fixture);
    expect_held(&held, 0, 2, 32);
    held_bytes = NULL;
    fixture_close(&fixture);
}
END_TEST

/* Sends the bytes of the first input as the next run's, under the hash "z". Returns NULL when the
 * jail took them. */
static void *send_ahead(void *argument)
{
    static char refused[] = "refused";
    const int connection = *(const int *)argument;
    const float a[4] = {1, 2, 3, 4};
    const struct hash32 hash = {"z"};
    uint8_t bytes[AHEAD_LIST_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u32(&out, 1);
    writer_bytes(&out, hash.bytes, sizeof hash.bytes);
    writer_u64(&out, sizeof a);
    writer_u8(&out, AHEAD_FILE);
    uint8_t word = 0;
    bool good = send(connection, bytes, out.position, MSG_NOSIGNAL) == (ssize_t)out.position &&
                recv(connection, &word, 1, 0) == 1 && word == AHEAD_SEND;
    word = AHEAD_GOOD;
    good = good && send(connection, a, sizeof a, MSG_NOSIGNAL) == (ssize_t)sizeof a &&
           send(connection, &word, 1, MSG_NOSIGNAL) == 1 && recv(connection, &word, 1, 0) == 0;
    return good ? NULL : refused;
}

START_TEST(an_input_of_the_next_run_is_there_when_it_begins)
{
    struct fixture fixture = open_with_kernel(_i);
    int ends[2];
    pthread_t agent;
    void *refused = NULL;
    held_bytes = "1000";
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(pthread_create(&agent, NULL, send_ahead, &ends[0]), 0);
    ahead = ends[1];
    const struct held_figures first = add_once(&fixture);
    (void)close(ends[1]);
    ahead = -1;
    ck_assert_int_eq(pthread_join(agent, &refused), 0);
    ck_assert_ptr_null(refused);
    (void)close(ends[0]);
    hashes[0] = (struct hash32){"z"};
    const struct held_figures second = add_once(&fixture);
    expect_held(&second, 2, 0, 48);
    ck_assert_uint_eq(first.aheads + second.aheads, 1); /* the first run may be over sooner */
    ck_assert_uint_eq(first.ahead_bytes + second.ahead_bytes, 16);
    hashes[0] = (struct hash32){"a"};
    held_bytes = NULL;
    fixture_close(&fixture);
}
END_TEST

static void expect(struct fixture *fixture, const char *text, const char *const *words,
                   enum result_outcome outcome, const char *said)
{
    static struct jail_reply reply;
    char error[2048];
    /* Compiling alone may take more than five seconds on a busy machine. */
    const uint64_t wall_ns = outcome == OUTCOME_TIME_LIMIT ? 5 * SECOND : 120 * SECOND;
    run(fixture, text, words, wall_ns, &reply);
    ck_assert_msg(reply.outcome == outcome, "%d: %s", (int)reply.outcome, reply.detail);
    ck_assert_msg(strstr(reply.detail, said) != NULL, "%s", reply.detail);
    if (outcome == OUTCOME_PROGRAM_FAILED) {
        ck_assert_ptr_nonnull(
            strstr(fixture_output(&reply.standard_error, error, sizeof error), said));
    }
    jail_reply_fini(&reply);
}

START_TEST(what_is_wrong_is_the_consumers_to_read)
{
    static const char *const add[] = {"add.cl", "add", "--global", "4", NULL};
    static const char *const sum[] = {"add.cl", "sum", "--global", "4", NULL};
    static const char *const large[] = {"add.cl", "add",         "--global", "4", "--output",
                                        "c",      "99999999999", "--input",  "a", "--input",
                                        "b",      "--float",     "1",        NULL};
    struct fixture fixture = open_with_kernel(_i);
    expect(&fixture, "kernel void add(global float *a) { a[0] = nothing; }", add,
           OUTCOME_PROGRAM_FAILED, "add.cl does not compile: ");
    expect(&fixture, source, sum, OUTCOME_PROGRAM_FAILED, "add.cl has no kernel \"sum\"");
    expect(&fixture, source, add, OUTCOME_PROGRAM_FAILED,
           "the kernel \"add\" has 4 parameters, and 0 arguments are given");
    expect(&fixture, source, large, OUTCOME_MEMORY_LIMIT, "the buffer of argument 1 has");
    (void)add_once(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_kernel_that_never_ends_is_killed_at_its_limit)
{
    static const char *const words[] = {"add.cl",   "endless", "--global", "1",
                                        "--output", "c",       "8",        NULL};
    struct fixture fixture = open_with_kernel(_i);
    expect(&fixture, source, words, OUTCOME_TIME_LIMIT, "its limit is 5.000 s");
    (void)add_once(&fixture); /* the next subtask has a process of its own */
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_device_is_measured_in_its_jail)
{
    struct fixture fixture = fixture_open(_i);
    const struct kernel_trial trial = trial_of(&fixture);
    kernel_list(&trial, KERNEL_OPENCL, &list);
    ck_assert_msg(list.count > 0, "%s", list.problem);
    struct kernel_device *device = &list.items[0];
    kernel_measure(&trial, device);
    ck_assert_str_eq(device->unusable, "");
    ck_assert(device->mflops > 0 && device->bandwidth_bytes > 0);
    ck_assert_msg(device->gemm_mflops > 0, "%s", device->no_gemm);
    ck_assert(device->gemm_held_mflops > 0);

    (void)snprintf(device->name, sizeof device->name, "another");
    kernel_measure(&trial, device);
    ck_assert_msg(strstr(device->unusable, "is not there any more") != NULL, "%s",
                  device->unusable);
    fixture_close(&fixture);
}
END_TEST

/* A library that crashes or hangs takes its process along, and nothing else. */
START_TEST(a_program_that_crashes_or_hangs_lists_nothing)
{
    static const char *const programs[] = {"/usr/bin/false", "/usr/bin/yes"};
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < 2; i++) {
        struct kernel_trial trial = trial_of(&fixture);
        trial.kernel_path = programs[i];
        kernel_list(&trial, KERNEL_OPENCL, &list);
        ck_assert(list.is_known && list.count == 0);
        ck_assert_msg(strncmp(list.problem, "OpenCL devices cannot be listed: ", 33) == 0, "%s",
                      list.problem);
    }
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    if (access("/etc/OpenCL/vendors/pocl.icd", R_OK) != 0) {
        (void)puts("skipped: pocl is not installed");
        return 77;
    }
    const TTest *const tests[] = {
        kernels_of_a_jail_run_one_after_another,
        what_is_wrong_is_the_consumers_to_read,
        a_kernel_that_never_ends_is_killed_at_its_limit,
        a_device_is_measured_in_its_jail,
        a_program_that_crashes_or_hangs_lists_nothing,
        inputs_stay_on_the_device_until_the_jail_ends,
        an_input_of_the_next_run_is_there_when_it_begins,
    };
    return fixture_main("jail_kernel", tests, sizeof tests / sizeof *tests);
}
