/* bourse-pjrt with a library that fails wherever it is told to: who is to blame for each failure,
 * and what its owner and its consumer read. */
#include "tests/support/pjrt_play.h"
#include "tests/support/suite.h"

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

START_TEST(an_owner_sees_the_devices_of_a_library)
{
    ck_assert_int_eq(run_program("devices:2 platform:tpu print", "--list " BOURSE_FAKE_PJRT, ""),
                     0);
    ck_assert_str_eq(text_of("answer"),
                     "0: Fake v1 (lite), 1.0 GiB of memory, of the platform tpu\n"
                     "1: Fake v1 (lite), 1.0 GiB of memory, of the platform tpu\n");
    ck_assert_int_eq(run_program("tight", "--list " BOURSE_FAKE_PJRT, ""), 0);
    ck_assert_str_eq(text_of("answer"),
                     "0: Fake v1 (lite), memory not told, of the platform cpu\n");
    ck_assert_int_eq(
        run_program("fail:PJRT_DeviceDescription_Kind:5", "--list " BOURSE_FAKE_PJRT, ""), 1);
    expect_in(text_of("errors"), "PJRT_DeviceDescription_Kind: NOT_FOUND (5)");
    ck_assert_int_eq(run_program("devices:0", "--list " BOURSE_FAKE_PJRT, ""), 1);
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

SUITE("pjrt_failures", begin, end,
      LOOP(an_error_of_the_library_comes_back_with_its_code, 0, FUNCTIONS),
      TEST(a_device_that_fails_says_so_and_ends_the_plugin),
      TEST(a_compiler_that_stumbles_is_no_failing_device), TEST(a_probe_that_fails_ends_the_plugin),
      TEST(a_library_that_cannot_be_used_is_told), TEST(a_library_may_lack_what_is_not_needed),
      TEST(what_a_library_prints_is_no_answer), TEST(an_owner_sees_the_devices_of_a_library),
      TEST(wrong_words_are_refused_with_the_usage))
