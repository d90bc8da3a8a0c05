/* bourse-pjrt with a library that computes: what it says of the device, and what it makes of a
 * program and files. */
#include "formats/plugin/plugin_line.h"
#include "tests/support/pjrt_play.h"
#include "tests/support/suite.h"

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

SUITE("pjrt", begin, end, TEST(a_device_is_described_as_the_agent_reads_it),
      TEST(a_platform_has_the_kind_and_the_vendor_of_the_market),
      TEST(the_owner_chooses_the_device_its_kind_and_options_of_the_client),
      TEST(a_device_is_measured), TEST(a_program_computes_and_its_result_lies_by_rows),
      TEST(another_program_in_the_same_file_is_compiled_anew),
      TEST(every_type_of_numpy_goes_through_unchanged),
      TEST(a_number_and_an_empty_array_are_arrays),
      TEST(what_is_wrong_with_a_job_is_said_to_its_consumer))
