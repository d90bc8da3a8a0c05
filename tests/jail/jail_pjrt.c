/* bourse-pjrt in a real jail, with a library that computes: programs and .npy files of a job go in,
 * results come out, and a program that never ends, or by which the device is lost, harms nobody. */
#include "fixture.h"
#include "formats/npy.h"
#include "provider/executors/plugin.h"

#include <sys/mman.h>

static struct plugin_device device;

/* Copies the plug-in, which has the library inside, where the jail's owner can read it. */
static struct fixture prepare(int way)
{
    static char bytes[1 << 20];
    ssize_t length;
    const int source = open(BOURSE_BIN_DIR "/bourse-pjrt-fake", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(source, 0);
    struct fixture fixture = fixture_open(way);
    device = (struct plugin_device){.name = "fake"};
    (void)snprintf(device.program.path, sizeof device.program.path, "%s/pjrt", fixture.folder);
    const int file = open(device.program.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ck_assert_int_ge(file, 0);
    while ((length = read(source, bytes, sizeof bytes)) > 0) {
        ck_assert_int_eq(write(file, bytes, (size_t)length), length);
    }
    (void)close(file);
    (void)close(source);
    return fixture;
}

static void close_all(struct fixture *fixture)
{
    (void)unlink(device.program.path);
    fixture_close(fixture);
}

static void open_jail(struct fixture *fixture)
{
    static struct plugin_parts parts;
    struct problem problem;
    plugin_fill(fixture->plugin, &device.program, &parts);
    struct jail_spec spec = fixture_spec(fixture);
    spec.name = "lane-1";
    spec.plugin = &parts.jail;
    jail_close(&fixture->jail);
    ck_assert_msg(jail_open(fixture->launcher, &spec, &fixture->jail, &problem), "%s",
                  problem.text);
}

static struct jail_input input_of(const char *name, const void *head, size_t head_size,
                                  const void *bytes, size_t size)
{
    const int file = memfd_create(name, MFD_CLOEXEC);
    ck_assert_int_eq(write(file, head, head_size), (ssize_t)head_size);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    return (struct jail_input){.name = name, .fd = file, .size = head_size + size};
}

/* Runs the program on two arrays of four numbers. */
static void run(struct fixture *fixture, const char *code, uint64_t wall_ns,
                struct jail_reply *reply)
{
    static const char *const outputs[] = {"c.npy"};
    static const char *const argv[] = {"mlir", "job.mlir", "a.npy", "b.npy", "to", "c.npy", NULL};
    const float a[] = {1, 2, 3, 4};
    const float b[] = {10, 20, 30, 40};
    const struct npy npy = {.kind = 'f', .item_bytes = 4, .dimension_count = 1, .shape = {4}};
    uint8_t head[NPY_HEADER_MOST];
    const size_t head_size = npy_write(&npy, head);
    const struct jail_input inputs[] = {input_of("job.mlir", "", 0, code, strlen(code)),
                                        input_of("a.npy", head, head_size, a, sizeof a),
                                        input_of("b.npy", head, head_size, b, sizeof b)};
    struct jail_request request = {.tensor_threads = 1,
                                   .argv = argv,
                                   .inputs = inputs,
                                   .input_count = 3,
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

#define PROGRAM(line)                                                                              \
    "module @job {\n"                                                                              \
    "  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n"          \
    "    %c = " line "\n"                                                                          \
    "    return %c : tensor<4xf32>\n"                                                              \
    "  }\n"                                                                                        \
    "}\n"
#define ADD PROGRAM("stablehlo.add %a, %b : tensor<4xf32>")
#define CALL(name) PROGRAM("stablehlo.custom_call @" name "(%a) : (tensor<4xf32>) -> tensor<4xf32>")

static void expect_sum(struct fixture *fixture)
{
    static struct jail_reply reply;
    const float wanted[] = {11, 22, 33, 44};
    uint8_t file[256];
    struct npy npy;
    struct problem problem;
    char text[256];
    run(fixture, ADD, 60 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d: %s", (int)reply.outcome, reply.detail);
    const ssize_t length = pread(reply.outputs[0].fd, file, sizeof file, 0);
    ck_assert_int_gt(length, 0);
    ck_assert_msg(npy_read(file, (size_t)length, (uint64_t)length, &npy, &problem), "%s",
                  problem.text);
    ck_assert_uint_eq(npy.data_bytes, sizeof wanted);
    ck_assert_mem_eq(file + npy.data_offset, wanted, sizeof wanted);
    fixture_output(&reply.standard_output, text, sizeof text);
    ck_assert_msg(strstr(text, "ran on Fake v1 (lite) in ") != NULL, "%s", text);
    jail_reply_fini(&reply);
}

static void expect(struct fixture *fixture, const char *code, enum result_outcome outcome,
                   const char *detail, const char *said)
{
    static struct jail_reply reply;
    char text[4096];
    run(fixture, code, outcome == OUTCOME_TIME_LIMIT ? SECOND : 60 * SECOND, &reply);
    ck_assert_msg(reply.outcome == outcome, "%d: %s", (int)reply.outcome, reply.detail);
    ck_assert_msg(strstr(reply.detail, detail) != NULL, "%s", reply.detail);
    fixture_output(&reply.standard_error, text, sizeof text);
    ck_assert_msg(strstr(text, said) != NULL, "%s", text);
    jail_reply_fini(&reply);
}

START_TEST(a_start_learns_what_the_device_is)
{
    struct fixture fixture = prepare(_i);
    const struct plugin_trial trial = {.launcher = fixture.launcher,
                                       .cgroups = fixture.cgroups,
                                       .worker_path = fixture.worker,
                                       .helper_path = fixture.plugin};
    plugin_look(&trial, &device);
    ck_assert_str_eq(device.unusable, "");
    ck_assert_str_eq(device.description.name, "Fake v1 (lite), device 0 of 1 by PJRT");
    ck_assert_str_eq(device.description.kind, "cpu");
    ck_assert(plugin_takes(&device.description, "mlir"));
    ck_assert_uint_eq(device.description.memory_bytes, 1 << 30);
    ck_assert(device.probe.fp32 > 0 && device.probe.bandwidth > 0);
    ck_assert(device.figures.memory_used == 0);
    close_all(&fixture);
}
END_TEST

START_TEST(a_program_computes_on_the_files_of_a_job)
{
    struct fixture fixture = prepare(_i);
    open_jail(&fixture);
    expect_sum(&fixture);
    expect_sum(&fixture); /* the same process, with the program compiled */
    expect(&fixture, PROGRAM("stablehlo.toast %a, %b : tensor<4xf32>"), OUTCOME_PROGRAM_FAILED,
           "mlir: PJRT_Client_Compile: INVALID_ARGUMENT (3): program:3: error:",
           "bourse-pjrt: PJRT_Client_Compile: INVALID_ARGUMENT (3): program:3:\nerror:");
    expect_sum(&fixture);
    close_all(&fixture);
}
END_TEST

START_TEST(a_lost_device_is_the_providers_fault)
{
    struct fixture fixture = prepare(_i);
    open_jail(&fixture);
    expect(&fixture, CALL("fake_lost"), OUTCOME_JAIL_FAILED,
           "the device fails: PJRT_LoadedExecutable_Execute: UNAVAILABLE (14): the device is gone",
           "bourse-pjrt: PJRT_LoadedExecutable_Execute: UNAVAILABLE (14): the device is gone");
    expect_sum(&fixture);
    close_all(&fixture);
}
END_TEST

START_TEST(a_program_that_never_ends_is_ended_at_its_limit)
{
    struct fixture fixture = prepare(_i);
    open_jail(&fixture);
    expect(&fixture, CALL("fake_hang"), OUTCOME_TIME_LIMIT, "its limit is 1.000 s", "");
    expect_sum(&fixture);
    close_all(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_start_learns_what_the_device_is,
        a_program_computes_on_the_files_of_a_job,
        a_lost_device_is_the_providers_fault,
        a_program_that_never_ends_is_ended_at_its_limit,
    };
    return fixture_main("jail_pjrt", tests, sizeof tests / sizeof *tests);
}
