/* bourse-pjrt with a library that computes, and that fails wherever it is told to: what it says of
 * the device, what it makes of a program and files, and who is to blame for each failure. */
#include "provider/pjrt/pjrt_serve.h"

#include "formats/npy.h"
#include "formats/plugin/plugin_line.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DESCRIBE "{\"bourse\":1,\"do\":\"describe\"}\n"
#define PROBE "{\"bourse\":1,\"do\":\"probe\"}\n"
#define FIGURES "{\"bourse\":1,\"do\":\"figures\"}\n"
#define RUN(words)                                                                                 \
    "{\"bourse\":1,\"do\":\"run\",\"operation\":\"mlir\",\"arguments\":[" words "]}\n"
#define NPY BOURSE_SOURCE_DIR "/tests/golden/npy/"
#define ADD RUN("\"add.mlir\",\"a.npy\",\"b.npy\",\"to\",\"c.npy\"")

static char folder[64];
static int home;
static char *said;
static size_t said_length;

/* Functions of the fake library. */
static int (*count_alive)(void);
static int (*count_compiled)(void);
static const char *(*tell_options)(void);

static void find(void *library, const char *name, void *ret_function)
{
    void *place = dlsym(library, name);
    ck_assert_msg(place != NULL, "%s", name);
    memcpy(ret_function, &place, sizeof place);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_array(const char *name, const struct npy *shape, const void *data, size_t size)
{
    uint8_t header[NPY_HEADER_MOST];
    const size_t length = npy_write(shape, header);
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(header, 1, length, file), length);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static size_t read_bytes(const char *name, void *ret_bytes, size_t capacity)
{
    FILE *file = fopen(name, "rb");
    ck_assert_msg(file != NULL, "%s", name);
    const size_t length = fread(ret_bytes, 1, capacity, file);
    ck_assert_int_eq(fclose(file), 0);
    return length;
}

/* Reads an array that was written. */
static struct npy read_array(const char *name, void *ret_data, size_t capacity)
{
    static uint8_t bytes[1 << 16];
    struct npy npy;
    struct problem problem;
    const size_t length = read_bytes(name, bytes, sizeof bytes);
    ck_assert_msg(npy_read(bytes, length, length, &npy, &problem), "%s", problem.text);
    ck_assert_uint_le(npy.data_bytes, capacity);
    memcpy(ret_data, bytes + npy.data_offset, npy.data_bytes);
    return npy;
}

static void begin(void)
{
    const struct npy matrix = {.kind = 'f', .item_bytes = 4, .dimension_count = 2, .shape = {2, 3}};
    const float a[] = {1, 2, 3, 4, 5, 6};
    const float b[] = {10, 20, 30, 40, 50, 60};
    void *library = dlopen(BOURSE_FAKE_PJRT, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    find(library, "fake_pjrt_alive", (void *)&count_alive);
    find(library, "fake_pjrt_compiled", (void *)&count_compiled);
    find(library, "fake_pjrt_options", (void *)&tell_options);
    strcpy(folder, "/tmp/bourse-pjrt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(chdir(folder), 0);
    write_array("a.npy", &matrix, a, sizeof a);
    write_array("b.npy", &matrix, b, sizeof b);
    write_file("add.mlir", "module @add {\n"
                           "  func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> "
                           "tensor<2x3xf32> {\n"
                           "    %c = stablehlo.add %a, %b : tensor<2x3xf32>\n"
                           "    return %c : tensor<2x3xf32>\n"
                           "  }\n"
                           "}\n");
    (void)unsetenv("FAKE_PJRT");
}

static void end(void)
{
    free(said);
    said = NULL;
    (void)unsetenv("FAKE_PJRT");
    ck_assert_int_eq(fchdir(home), 0);
    (void)close(home);
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Lets this process answer the requests. Nothing of the library's is left when it ends well. */
static int serve_with(const struct pjrt_options *options, const char *requests)
{
    FILE *in = fmemopen((void *)(uintptr_t)requests, strlen(requests), "r");
    free(said);
    FILE *out = open_memstream(&said, &said_length);
    ck_assert(in != NULL && out != NULL);
    const int status = pjrt_serve(options, in, out);
    (void)fclose(in);
    (void)fclose(out);
    if (status == 0) {
        ck_assert_int_eq(count_alive(), 0);
    }
    return status;
}

static const char *serve(const char *requests)
{
    const struct pjrt_options options = {.library = BOURSE_FAKE_PJRT};
    ck_assert_int_eq(serve_with(&options, requests), 0);
    return said;
}

/* Lets the program answer the requests, with a failing library. Fills `answer` and `errors`, the
 * files of its output. Returns its exit status. */
static int run_program(const char *fake, const char *arguments, const char *requests)
{
    char command[1024];
    write_file("requests", requests);
    (void)snprintf(command, sizeof command,
                   "FAKE_PJRT='%s' %s/bourse-pjrt %s <requests >answer 2>errors", fake,
                   BOURSE_BIN_DIR, arguments);
    const int status = system(command);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const char *text_of(const char *name)
{
    static char text[16384];
    text[read_bytes(name, text, sizeof text - 1)] = '\0';
    return text;
}

static void expect_in(const char *text, const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "\"%s\" is not in: %s", wanted, text);
}

/* ---------------------------------------------------------------- the device */

START_TEST(a_device_is_described_as_the_agent_reads_it)
{
    struct plugin_description description;
    struct problem problem;
    serve(DESCRIBE);
    ck_assert_msg(plugin_read_description(said, said_length, &description, &problem), "%s",
                  problem.text);
    ck_assert_str_eq(description.name, "Fake v1 (lite), device 0 of 1 by PJRT");
    ck_assert_str_eq(description.kind, "cpu");
    ck_assert_str_eq(description.model, "fake-v1-lite");
    ck_assert_uint_eq(description.memory_bytes, 1 << 30);
    ck_assert(plugin_takes(&description, "mlir") && description.operation_count == 1);
}
END_TEST

START_TEST(a_platform_has_the_kind_and_the_vendor_of_the_market)
{
    static const struct {
        const char *platform, *kind, *vendor;
    } ways[] = {{"tpu", "tpu", "google"},
                {"cuda", "gpu", "nvidia"},
                {"neuron", "npu", "amazon"},
                {"Iree:Vulkan", "custom", "iree-vulkan"},
                {"---", "custom", "unknown"}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char words[64];
        struct plugin_description description;
        struct problem problem;
        (void)snprintf(words, sizeof words, "tight platform:%s", ways[i].platform);
        (void)setenv("FAKE_PJRT", words, 1);
        serve(DESCRIBE);
        ck_assert_msg(plugin_read_description(said, said_length, &description, &problem), "%s",
                      problem.text);
        ck_assert_str_eq(description.kind, ways[i].kind);
        ck_assert_str_eq(description.vendor, ways[i].vendor);
        ck_assert_uint_eq(description.memory_bytes, 0);
    }
}
END_TEST

START_TEST(the_owner_chooses_the_device_its_kind_and_options_of_the_client)
{
    struct pjrt_options options = {
        .library = BOURSE_FAKE_PJRT,
        .device = 3,
        .kind = "npu",
        .create = {"count=-4", "fast=true", "name=4 chips", "slow=false", "rest="},
        .create_count = 5};
    (void)setenv("FAKE_PJRT", "devices:4", 1);
    ck_assert_int_eq(serve_with(&options, DESCRIBE ADD), 0); /* it is compiled for that device */
    expect_in(said, "device 3 of 4");
    expect_in(said, "\"kind\":\"npu\"");
    expect_in(said, "{\"status\":0,");
    ck_assert_str_eq(tell_options(), "count=#-4 fast=?1 name=4 chips slow=?0 rest=");
    options.device = 4;
    ck_assert_int_eq(serve_with(&options, DESCRIBE), 1);
    ck_assert_uint_eq(said_length, 0);
}
END_TEST

START_TEST(a_device_is_measured)
{
    struct plugin_probe probe;
    struct problem problem;
    serve(PROBE);
    ck_assert_msg(plugin_read_probe(said, said_length, &probe, &problem), "%s", problem.text);
    ck_assert_int_gt(probe.fp32, 1000000);
    ck_assert_int_gt(probe.bandwidth, 1000000);
    struct plugin_figures figures;
    serve(FIGURES);
    ck_assert_msg(plugin_read_figures(said, said_length, &figures, &problem), "%s", problem.text);
    ck_assert(figures.memory_used == 0 && figures.power_w == -1);
    (void)setenv("FAKE_PJRT", "fail:PJRT_Device_MemoryStats:12", 1);
    ck_assert_str_eq(serve(FIGURES), "{}\n");
}
END_TEST

/* ---------------------------------------------------------------- runs */

START_TEST(a_program_computes_and_its_result_lies_by_rows)
{
    float c[6];
    const float wanted[] = {11, 22, 33, 44, 55, 66};
    const int before = count_compiled();
    expect_in(serve(ADD ADD), "{\"status\":0,\"text\":\"ran on Fake v1 (lite) in ");
    ck_assert_int_eq(count_compiled(), before + 1); /* the second run has the program still */
    const struct npy npy = read_array("c.npy", c, sizeof c);
    ck_assert(npy.dimension_count == 2 && npy.shape[0] == 2 && npy.shape[1] == 3);
    ck_assert(npy.kind == 'f' && npy.item_bytes == 4 && !npy.is_fortran);
    ck_assert_mem_eq(c, wanted, sizeof wanted);
}
END_TEST

START_TEST(another_program_in_the_same_file_is_compiled_anew)
{
    float c[9];
    const float wanted[] = {14, 32, 32, 77};
    const struct npy tall = {.kind = 'f', .item_bytes = 4, .dimension_count = 2, .shape = {3, 2}};
    const float b[] = {1, 4, 2, 5, 3, 6};
    serve(ADD);
    write_array("b.npy", &tall, b, sizeof b);
    write_file("add.mlir", "func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> "
                           "(tensor<2x2xf32>, tensor<2x3xf32>) {\n"
                           "  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
                           "(tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n"
                           "  return %c, %a : tensor<2x2xf32>, tensor<2x3xf32>\n"
                           "}\n");
    expect_in(serve(RUN("\"add.mlir\",\"a.npy\",\"b.npy\",\"to\",\"c.npy\",\"d.npy\"")),
              "{\"status\":0,");
    const struct npy npy = read_array("c.npy", c, sizeof c);
    ck_assert(npy.shape[0] == 2 && npy.shape[1] == 2);
    ck_assert_mem_eq(c, wanted, sizeof wanted);
    (void)read_array("d.npy", c, sizeof c);
    ck_assert(c[0] == 1 && c[1] == 2 && c[5] == 6);
}
END_TEST

START_TEST(every_type_of_numpy_goes_through_unchanged)
{
    static const struct {
        const char *type;
        char kind;
        uint32_t bytes;
    } types[] = {{"i1", 'b', 1},          {"i8", 'i', 1},  {"i16", 'i', 2},  {"i32", 'i', 4},
                 {"i64", 'i', 8},         {"ui8", 'u', 1}, {"ui16", 'u', 2}, {"ui32", 'u', 4},
                 {"ui64", 'u', 8},        {"f16", 'f', 2}, {"f32", 'f', 4},  {"f64", 'f', 8},
                 {"complex<f32>", 'c', 8}};
    uint8_t data[3 * 16];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(7 * i);
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char program[256];
        uint8_t before[1024];
        uint8_t after[1024];
        const struct npy npy = {.kind = types[i].kind,
                                .item_bytes = types[i].bytes,
                                .dimension_count = 1,
                                .shape = {3}};
        (void)snprintf(program, sizeof program,
                       "func.func @main(%%a: tensor<3x%s>) -> tensor<3x%s> {\n"
                       "  return %%a : tensor<3x%s>\n"
                       "}\n",
                       types[i].type, types[i].type, types[i].type);
        write_file("same.mlir", program);
        write_array("x.npy", &npy, data, 3 * (size_t)types[i].bytes);
        expect_in(serve(RUN("\"same.mlir\",\"x.npy\",\"to\",\"y.npy\"")), "{\"status\":0,");
        const size_t length = read_bytes("x.npy", before, sizeof before);
        ck_assert_uint_eq(read_bytes("y.npy", after, sizeof after), length);
        ck_assert_mem_eq(before, after, length);
    }
}
END_TEST

START_TEST(a_number_and_an_empty_array_are_arrays)
{
    float c[2] = {0, 0};
    const float one = 1.5F;
    const struct npy number = {.kind = 'f', .item_bytes = 4};
    const struct npy none = {.kind = 'f', .item_bytes = 4, .dimension_count = 2, .shape = {0, 3}};
    write_file("two.mlir", "func.func @main(%a: tensor<f32>, %b: tensor<0x3xf32>) -> x {\n"
                           "  %c = stablehlo.add %a, %a : tensor<f32>\n"
                           "  return %c, %b : tensor<f32>, tensor<0x3xf32>\n"
                           "}\n");
    write_array("n.npy", &number, &one, sizeof one);
    write_array("e.npy", &none, "", 0);
    expect_in(serve(RUN("\"two.mlir\",\"n.npy\",\"e.npy\",\"to\",\"c.npy\",\"d.npy\"")),
              "{\"status\":0,");
    ck_assert_uint_eq(read_array("c.npy", c, sizeof c).dimension_count, 0);
    ck_assert(c[0] == 3);
    ck_assert_uint_eq(read_array("d.npy", c, sizeof c).data_bytes, 0);
}
END_TEST

START_TEST(what_is_wrong_with_a_job_is_said_to_its_consumer)
{
    static const struct {
        const char *request, *answer;
    } ways[] = {
        {"{\"do\":\"run\",\"operation\":\"fft\",\"arguments\":[]}\n",
         "{\"status\":2,\"text\":\"the one operation is mlir\"}"},
        {RUN(""), "{\"status\":2,\"text\":\"write mlir PROGRAM INPUT... to OUTPUT..."},
        {RUN("\"add.mlir\",\"a.npy\",\"b.npy\""), "{\"status\":2,\"text\":\"write mlir"},
        {RUN("\"none.mlir\",\"to\",\"c.npy\""), "\"none.mlir: No such file or directory\""},
        {RUN("\"empty\",\"to\",\"c.npy\""), "\"empty: the file is empty\""},
        {RUN("\".\",\"to\",\"c.npy\""), "\".: the file is empty\""},
        {RUN("\"wrong.mlir\",\"to\",\"c.npy\""),
         "{\"status\":1,\"text\":\"PJRT_Client_Compile: INVALID_ARGUMENT (3): program:2: error: "
         "this line is not understood\"}"},
        {RUN("\"add.mlir\",\"a.npy\",\"to\",\"c.npy\""),
         "PJRT_LoadedExecutable_Execute: INVALID_ARGUMENT (3): the program takes 2 inputs, and 1"},
        {RUN("\"add.mlir\",\"a.npy\",\"b.npy\",\"to\",\"c.npy\",\"d.npy\""),
         "\"the program has 1 output, and 2 files are named\""},
        {RUN("\"add.mlir\",\"a.npy\",\"none.npy\",\"to\",\"c.npy\""),
         "\"none.npy: No such file or directory\""},
        {RUN("\"add.mlir\",\"a.npy\",\"add.mlir\",\"to\",\"c.npy\""),
         "\"add.mlir: the file is no .npy file"},
        {RUN("\"add.mlir\",\"a.npy\",\"long.npy\",\"to\",\"c.npy\""),
         "\"long.npy: the elements are float128, which devices do not take"},
        {RUN("\"add.mlir\",\"a.npy\",\"" NPY "fortran-2x3.npy\",\"to\",\"c.npy\""),
         ": the file is in Fortran order"},
        {RUN("\"add.mlir\",\"a.npy\",\"" NPY "big-endian.npy\",\"to\",\"c.npy\""),
         "big-endian, which devices do not take"},
        {RUN("\"bf16.mlir\",\"a.npy\",\"to\",\"c.npy\""),
         "\"c.npy: .npy files have no elements of type bf16; convert them in the program\""},
        {RUN("\"deep.mlir\",\"a.npy\",\"to\",\"c.npy\""), "has 9 dimensions"},
        {RUN("\"add.mlir\",\"a.npy\",\"b.npy\",\"to\",\"no/c.npy\""),
         "\"no/c.npy: No such file or directory\""},
    };
    const struct npy longer = {.kind = 'f', .item_bytes = 16, .dimension_count = 1, .shape = {1}};
    write_file("empty", "");
    write_file("wrong.mlir", "module {\n  this is no program\n}\n");
    write_file("bf16.mlir", "func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xbf16> {\n"
                            "  %c = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<2x3xbf16>\n"
                            "  return %c : tensor<2x3xbf16>\n"
                            "}\n");
    write_file("deep.mlir", "func.func @main(%a: tensor<2x3xf32>) -> x {\n"
                            "  %b = stablehlo.reshape %a : (x) -> tensor<1x1x1x1x1x1x1x2x3xf32>\n"
                            "  return %b : x\n"
                            "}\n");
    write_array("long.npy", &longer, "0123456789abcdef", 16);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        expect_in(serve(ways[i].request), ways[i].answer);
    }
    /* The process goes on with the next subtask. */
    serve(RUN("\"wrong.mlir\",\"to\",\"c.npy\"") RUN("\"none.mlir\",\"to\",\"c.npy\"") ADD);
    expect_in(strchr(strchr(said, '\n') + 1, '\n') + 1, "{\"status\":0,");
}
END_TEST

/* ---------------------------------------------------------------- failures of the library */

/* Every function that is called, and whether its failure is heard of. */
static const struct {
    const char *name;
    bool is_passed_over;
} functions[] = {
    {"PJRT_Plugin_Initialize", false},
    {"PJRT_Client_Create", false},
    {"PJRT_Client_Destroy", true},
    {"PJRT_Client_PlatformName", false},
    {"PJRT_Client_AddressableDevices", false},
    {"PJRT_Client_Compile", false},
    {"PJRT_Client_BufferFromHostBuffer", false},
    {"PJRT_DeviceDescription_Id", false},
    {"PJRT_DeviceDescription_Kind", false},
    {"PJRT_Device_GetDescription", false},
    {"PJRT_Device_MemoryStats", true},
    {"PJRT_Executable_Destroy", false},
    {"PJRT_Executable_NumOutputs", false},
    {"PJRT_LoadedExecutable_Destroy", true},
    {"PJRT_LoadedExecutable_GetExecutable", false},
    {"PJRT_LoadedExecutable_Execute", false},
    {"PJRT_Buffer_Destroy", true},
    {"PJRT_Buffer_ElementType", false},
    {"PJRT_Buffer_Dimensions", false},
    {"PJRT_Buffer_ToHostBuffer", false},
    {"PJRT_Event_Await", false},
    {"PJRT_Event_Destroy", false},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

START_TEST(an_error_of_the_library_comes_back_with_its_code)
{
    char words[96];
    char wanted[128];
    (void)snprintf(words, sizeof words, "fail:%s:8", functions[_i].name);
    const int status = run_program(words, BOURSE_FAKE_PJRT, DESCRIBE ADD ADD);
    const char *awaited = strcmp(functions[_i].name, "PJRT_Event_Await") == 0
                              ? "PJRT_Client_BufferFromHostBuffer"
                              : functions[_i].name;
    (void)snprintf(wanted, sizeof wanted, "%s: RESOURCE_EXHAUSTED (8): the fake", awaited);
    if (functions[_i].is_passed_over) {
        ck_assert_int_eq(status, 0);
        expect_in(text_of("answer"), "{\"status\":0,");
    } else if (status == 0) { /* the device was described, and the job cannot be done on it */
        expect_in(text_of("answer"), "{\"status\":1,");
        expect_in(text_of("answer"), wanted);
        expect_in(text_of("errors"), wanted);
    } else {
        ck_assert_int_eq(status, 1);
        expect_in(text_of("errors"), wanted);
        ck_assert_str_eq(text_of("answer"), "");
    }
}
END_TEST

/* The text is one line that begins so, and has the part. */
static void expect_alone(const char *text, const char *begin, const char *part)
{
    ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
    ck_assert_msg(strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
    expect_in(text, part);
}

START_TEST(a_device_that_fails_says_so_and_ends_the_plugin)
{
    static const char *const ways[] = {
        "fail:PJRT_LoadedExecutable_Execute:14",    "event:PJRT_LoadedExecutable_Execute:14",
        "event:PJRT_LoadedExecutable_Execute:13",   "fail:PJRT_Client_BufferFromHostBuffer:15",
        "event:PJRT_Client_BufferFromHostBuffer:2", "fail:PJRT_Buffer_ToHostBuffer:10",
        "event:PJRT_Buffer_ToHostBuffer:14",        "fail:PJRT_Client_Compile:14",
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char code[16];
        ck_assert_int_eq(run_program(ways[i], BOURSE_FAKE_PJRT, ADD ADD), 1);
        (void)snprintf(code, sizeof code, "(%s): ", strrchr(ways[i], ':') + 1);
        expect_alone(text_of("answer"), "{\"failed\":\"PJRT_", code);
        expect_in(text_of("errors"), code);
    }
    write_file("add.mlir", "func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> x {\n"
                           "  %c = stablehlo.custom_call @fake_lost(%a) : (x) -> tensor<2x3xf32>\n"
                           "  return %c : tensor<2x3xf32>\n"
                           "}\n");
    ck_assert_int_eq(run_program("", BOURSE_FAKE_PJRT, ADD), 1);
    expect_in(text_of("errors"),
              "bourse-pjrt: PJRT_LoadedExecutable_Execute: UNAVAILABLE (14): the device is gone");
}
END_TEST

START_TEST(a_compiler_that_stumbles_is_no_failing_device)
{
    static const char *const ways[] = {"fail:PJRT_Client_Compile:13", "fail:PJRT_Client_Compile:2"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        (void)setenv("FAKE_PJRT", ways[i], 1);
        expect_in(serve(ADD), "{\"status\":1,\"text\":\"PJRT_Client_Compile: ");
    }
}
END_TEST

START_TEST(a_probe_that_fails_ends_the_plugin)
{
    ck_assert_int_eq(
        run_program("fail:PJRT_LoadedExecutable_Execute:12", BOURSE_FAKE_PJRT, DESCRIBE PROBE), 1);
    expect_in(text_of("errors"), "UNIMPLEMENTED (12)");
    expect_in(text_of("answer"), "\"bourse\":1");
    expect_in(text_of("answer"), "}\n{\"failed\":\"PJRT_LoadedExecutable_Execute: UNIMPL");
}
END_TEST

START_TEST(a_library_that_cannot_be_used_is_told)
{
    static const struct {
        const char *fake, *library, *said;
    } ways[] = {
        {"", "/no/such/library.so", "no PJRT library: /no/such/library.so: cannot open"},
        {"", "libc.so.6", "the library has no function GetPjrtApi, so it is no PJRT library"},
        {"none", BOURSE_FAKE_PJRT, "GetPjrtApi of the library returns no table"},
        {"version:1.0", BOURSE_FAKE_PJRT,
         "the library speaks version 1.0 of PJRT; this program speaks 0.57 and later versions 0.x"},
        {"version:0.56", BOURSE_FAKE_PJRT, "the library speaks version 0.56 of PJRT"},
        {"bytes:39", BOURSE_FAKE_PJRT, "has 39 bytes, too few for a version"},
        {"bytes:607", BOURSE_FAKE_PJRT, "has 607 bytes, and 608 are needed"},
        {"lacks:PJRT_Buffer_ToHostBuffer", BOURSE_FAKE_PJRT,
         "the library has no function PJRT_Buffer_ToHostBuffer"},
        {"devices:0", BOURSE_FAKE_PJRT, "the library has 0 devices; there is no device 0"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ck_assert_int_eq(run_program(ways[i].fake, ways[i].library, DESCRIBE), 1);
        ck_assert_str_eq(text_of("answer"), "");
        expect_in(text_of("errors"), ways[i].said);
    }
}
END_TEST

START_TEST(a_library_may_lack_what_is_not_needed)
{
    static const char *const ways[] = {"version:0.57", "version:0.9999", "bytes:608",
                                       "lacks:PJRT_Plugin_Initialize",
                                       "lacks:PJRT_Device_MemoryStats"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        (void)setenv("FAKE_PJRT", ways[i], 1);
        expect_in(serve(DESCRIBE FIGURES ADD), "{\"status\":0,");
    }
}
END_TEST

/* ---------------------------------------------------------------- the program */

START_TEST(what_a_library_prints_is_no_answer)
{
    ck_assert_int_eq(run_program("print devices:2",
                                 "--device 1 --kind tpu --create a=1 " BOURSE_FAKE_PJRT,
                                 DESCRIBE "{\"do\":\"later\"}\n" ADD),
                     0);
    const char *text = text_of("answer");
    ck_assert_msg(strncmp(text, "{\"bourse\":1,", 12) == 0, "%s", text);
    expect_in(text, "device 1 of 2");
    expect_in(text, "}\n{}\n{\"status\":0,");
    expect_in(text_of("errors"), "the library has a word to say");
}
END_TEST

START_TEST(wrong_words_are_refused_with_the_usage)
{
    static const char *const ways[] = {"",
                                       "a b",
                                       "--device",
                                       "--device x a",
                                       "--device -1 a",
                                       "--kind toaster a",
                                       "--create a b",
                                       "--create =a b",
                                       "--unknown a"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ck_assert_int_eq(run_program("", ways[i], DESCRIBE), 2);
        expect_in(text_of("errors"), "usage: bourse-pjrt ");
        ck_assert_str_eq(text_of("answer"), "");
    }
    ck_assert_int_eq(run_program("", "--help", ""), 0);
    expect_in(text_of("answer"), "--create NAME=VALUE");
    ck_assert_int_eq(run_program("", BOURSE_FAKE_PJRT, "no request\n"), 1);
    expect_in(text_of("errors"), "a request is no line of JSON");
}
END_TEST

SUITE("pjrt", begin, end, TEST(a_device_is_described_as_the_agent_reads_it),
      TEST(a_platform_has_the_kind_and_the_vendor_of_the_market),
      TEST(the_owner_chooses_the_device_its_kind_and_options_of_the_client),
      TEST(a_device_is_measured), TEST(a_program_computes_and_its_result_lies_by_rows),
      TEST(another_program_in_the_same_file_is_compiled_anew),
      TEST(every_type_of_numpy_goes_through_unchanged),
      TEST(a_number_and_an_empty_array_are_arrays),
      TEST(what_is_wrong_with_a_job_is_said_to_its_consumer),
      LOOP(an_error_of_the_library_comes_back_with_its_code, 0, FUNCTIONS),
      TEST(a_device_that_fails_says_so_and_ends_the_plugin),
      TEST(a_compiler_that_stumbles_is_no_failing_device), TEST(a_probe_that_fails_ends_the_plugin),
      TEST(a_library_that_cannot_be_used_is_told), TEST(a_library_may_lack_what_is_not_needed),
      TEST(what_a_library_prints_is_no_answer), TEST(wrong_words_are_refused_with_the_usage))
