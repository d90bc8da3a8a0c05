/* The tests write, read and refuse lines between a plug-in and bourse-plugin. */
#include "formats/plugin/plugin_line.h"

#include "tests/support/suite.h"

#include <string.h>

#define BEGIN                                                                                      \
    "{\"bourse\":1,\"name\":\"An FPGA\",\"kind\":\"fpga\",\"vendor\":\"acme\",\"model\":\"x-1\","
#define GOOD BEGIN "\"memory\":8589934592,\"operations\":[\"fft\",\"vector-add.v2\"],\"more\":[]}\n"

static char line[PLUGIN_LINE_BYTES];

START_TEST(requests_are_lines_of_json)
{
    static const char umlaut[] = "gr\xc3\xb6\xc3\x9f"
                                 "e";
    static const char *const arguments[] = {"a.bin", "\"\n", umlaut};
    struct problem problem;
    size_t length = plugin_write_request("describe", line);
    ck_assert_str_eq(line, "{\"bourse\":1,\"do\":\"describe\"}\n");
    ck_assert_uint_eq(length, strlen(line));
    length = plugin_write_run("fft", arguments, 3, line, &problem);
    static const char wanted[] = "{\"bourse\":1,\"do\":\"run\",\"operation\":\"fft\",\"arguments\":"
                                 "[\"a.bin\",\"\\\"\\n\",\"gr\\u00F6\\u00DFe\"]}\n";
    ck_assert_uint_eq(length, strlen(wanted));
    ck_assert(memcmp(line, wanted, length) == 0);
    length = plugin_write_multiply(2048, line);
    ck_assert_str_eq(line, "{\"bourse\":1,\"do\":\"multiply\",\"side\":2048,\"left\":\"left.f32\","
                           "\"right\":\"right.f32\",\"product\":\"product.f32\"}\n");
    ck_assert_uint_eq(length, strlen(line));
}
END_TEST

START_TEST(a_request_that_cannot_be_written_says_why)
{
    static char large[PLUGIN_LINE_BYTES];
    const char *const raw[] = {"\xff"};
    const char *const much[] = {large};
    struct problem problem;
    memset(large, 'x', sizeof large - 1);
    ck_assert_uint_eq(plugin_write_run("fft", raw, 1, line, &problem), 0);
    ck_assert_str_eq(problem.text, "an argument of the operation is no UTF-8 text");
    ck_assert_uint_eq(plugin_write_run("fft", much, 1, line, &problem), 0);
    ck_assert_str_eq(problem.text, "the arguments of the operation are too long");
}
END_TEST

START_TEST(a_description_is_read)
{
    struct plugin_description said;
    struct problem problem;
    ck_assert_msg(plugin_read_description(GOOD, strlen(GOOD), &said, &problem), "%s", problem.text);
    ck_assert_str_eq(said.name, "An FPGA");
    ck_assert_str_eq(said.kind, "fpga");
    ck_assert_str_eq(said.vendor, "acme");
    ck_assert_str_eq(said.model, "x-1");
    ck_assert(said.memory_bytes == UINT64_C(8589934592));
    ck_assert_uint_eq(said.operation_count, 2);
    ck_assert(plugin_takes(&said, "fft") && plugin_takes(&said, "vector-add.v2"));
    ck_assert(!plugin_takes(&said, "vector-add"));
}
END_TEST

START_TEST(a_plugin_says_whether_it_takes_a_cancel)
{
    static const struct {
        const char *text;
        bool cancels;
    } said[] = {
        {BEGIN "\"operations\":[\"fft\"]}", false},
        {BEGIN "\"operations\":[\"fft\"],\"features\":null}", false},
        {BEGIN "\"operations\":[\"fft\"],\"features\":[]}", false},
        {BEGIN "\"operations\":[\"fft\"],\"features\":[\"later\",\"cancel\"]}", true},
        {BEGIN "\"operations\":[\"fft\"],\"features\":[\"later\"]}", false},
    };
    struct plugin_description description;
    struct problem problem;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        ck_assert_msg(
            plugin_read_description(said[i].text, strlen(said[i].text), &description, &problem),
            "%zu: %s", i, problem.text);
        ck_assert_msg(description.cancels == said[i].cancels, "%zu", i);
    }
    static const char *const wrong[] = {BEGIN "\"operations\":[\"fft\"],\"features\":\"cancel\"}",
                                        BEGIN "\"operations\":[\"fft\"],\"features\":[1]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert(!plugin_read_description(wrong[i], strlen(wrong[i]), &description, &problem));
        ck_assert_ptr_nonnull(strstr(problem.text, "\"features\" is no list"));
    }
}
END_TEST

START_TEST(a_plugin_says_whether_it_can_be_challenged)
{
    static const struct {
        const char *text;
        bool multiplies;
    } said[] = {
        {BEGIN "\"operations\":[\"fft\"]}", false},
        {BEGIN "\"operations\":[\"fft\"],\"challenge\":null}", false},
        {BEGIN "\"operations\":[\"fft\"],\"challenge\":\"gemm_fp32\"}", true},
        /* A later version may know more than this one. */
        {BEGIN "\"operations\":[\"fft\"],\"challenge\":\"gemm_bf16\"}", false},
    };
    static const char speed[] = "{\"fp32\":null,\"gemm_fp32\":7.5e9}";
    struct plugin_description description;
    struct plugin_probe probe;
    struct problem problem;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        ck_assert_msg(
            plugin_read_description(said[i].text, strlen(said[i].text), &description, &problem),
            "%s", problem.text);
        ck_assert(description.multiplies == said[i].multiplies);
    }
    ck_assert(plugin_read_probe(speed, strlen(speed), &probe, &problem));
    ck_assert(probe.gemm_fp32 == INT64_C(7500000000) && probe.fp32 == 0);
}
END_TEST

START_TEST(a_wrong_description_says_what_is_wrong)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"", "is no JSON object in one line"},
        {"[]", "is no JSON object in one line: []"},
        {"{\"bourse\":1} x", "is no JSON object"},
        {"{\"bourse\":1,\"bourse\":1}", "is no JSON object"},
        {"{}", "speaks version 0"},
        {"{\"bourse\":\"1\"}", "speaks version 0"},
        {"{\"bourse\":2}", "speaks version 2 of the protocol; this agent speaks version 1"},
        {"{\"bourse\":1}", "\"name\" is no text of 1 to 63 bytes"},
        {"{\"bourse\":1,\"name\":\"a\\u001bb\"}", "\"name\" is no text"},
        {"{\"bourse\":1,\"name\":\"a\",\"kind\":\"GPU\"}", "\"kind\" is no word"},
        {"{\"bourse\":1,\"name\":\"a\",\"kind\":\"gpu\",\"vendor\":\"a.b\"}",
         "\"vendor\" is no word: 1 to 32 of a-z, 0-9 and dash"},
        {"{\"bourse\":1,\"name\":\"a\",\"kind\":\"gpu\",\"vendor\":\"a\",\"model\":\"\"}",
         "\"model\" is no word"},
        {"{\"bourse\":1,\"name\":\"a\",\"kind\":\"oven\",\"vendor\":\"a\",\"model\":\"b\"}",
         "kind \"oven\" is none of the market's"},
        {"{\"bourse\":1,\"name\":\"a\",\"kind\":\"tpu-edge\",\"vendor\":\"a\",\"model\":\"b\"}",
         "kind \"tpu-edge\" is none of the market's"},
        {BEGIN "\"memory\":\"8G\"}", "\"memory\" is no number"},
        {BEGIN "\"memory\":1e300}", "\"memory\" is no number"},
        {BEGIN "\"challenge\":[\"gemm_fp32\"]}", "\"challenge\" is no text, as in \"gemm_fp32\""},
        {BEGIN "\"operations\":[]}", "\"operations\" are no list of 1 to 32 names"},
        {BEGIN "\"operations\":[\"a b\"]}", "\"operations\" is no word"},
        {BEGIN "\"operations\":[\"--look\"]}", "\"operations\" is no word"},
        {BEGIN "\"operations\":[\"a\",\"a\"]}", "names the operation \"a\" twice"},
        {BEGIN "\"operations\":[\"a\",3]}", "\"operations\" is no word"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct plugin_description said;
        struct problem problem;
        ck_assert_msg(
            !plugin_read_description(wrong[i].text, strlen(wrong[i].text), &said, &problem),
            "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(figures_may_be_unknown)
{
    static const char all[] = "{\"power\":71.5,\"temperature\":40,\"utilization\":0.5,"
                              "\"memory_used\":1e9}";
    static const char few[] = "{\"power\":null,\"temperature\":-3}";
    static const char busy[] = "{\"utilization\":50}";
    struct plugin_figures figures;
    struct plugin_probe probe;
    struct problem problem;
    ck_assert(plugin_read_figures(all, strlen(all), &figures, &problem));
    ck_assert(figures.power_w == 71.5 && figures.temperature_c == 40);
    ck_assert(figures.utilization == 0.5 && figures.memory_used == 1e9);
    ck_assert(plugin_read_figures(few, strlen(few), &figures, &problem));
    ck_assert(figures.power_w == -1 && figures.temperature_c == -1);
    ck_assert(figures.utilization == -1 && figures.memory_used == -1);
    ck_assert(!plugin_read_figures(busy, strlen(busy), &figures, &problem));
    ck_assert_str_eq(problem.text, "the plug-in's \"utilization\" is no number up to 1, and not "
                                   "null");
    ck_assert(plugin_read_probe("{\"fp32\":2.5e9}", 14, &probe, &problem));
    ck_assert(probe.fp32 == INT64_C(2500000000) && probe.bandwidth == 0);
    ck_assert(!plugin_read_probe("{\"fp32\":1e19}", 13, &probe, &problem));
}
END_TEST

START_TEST(a_result_has_a_status_and_perhaps_a_text)
{
    static const char failed[] = "{\"status\":255,\"text\":\"no\\nsuch \\u202e thing\"}";
    static const char *const wrong[] = {"{}", "{\"status\":256}", "{\"status\":-1}",
                                        "{\"status\":true}", "{\"status\":0,\"text\":[]}"};
    struct plugin_result result;
    struct problem problem;
    ck_assert(plugin_read_result("{\"status\":0,\"text\":null}", 24, &result, &problem));
    ck_assert(result.status == 0 && result.text[0] == '\0');
    ck_assert(plugin_read_result(failed, strlen(failed), &result, &problem));
    ck_assert_int_eq(result.status, 255);
    ck_assert_ptr_null(strchr(result.text, '\n'));
    ck_assert(strncmp(result.text, "no?such ?", 9) == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert(!plugin_read_result(wrong[i], strlen(wrong[i]), &result, &problem));
    }
}
END_TEST

/* Every reader bears a good line that is cut anywhere, or has one byte changed. */
START_TEST(a_device_that_failed_is_told_in_place_of_any_answer)
{
    static const char failed[] =
        "{\"failed\":\"no board\\nin slot 3\",\"status\":0,\"fp32\":1,\"bourse\":1}";
    static const char unknown[] = "{\"failed\":null,\"status\":0}";
    static const char wanted[] = "the device fails: no board?in slot 3";
    struct plugin_description description;
    struct plugin_figures figures;
    struct plugin_result result;
    struct plugin_probe probe;
    struct problem problem = {""};
    ck_assert(!plugin_read_result(failed, strlen(failed), &result, &problem));
    ck_assert_str_eq(problem.text, wanted);
    problem.text[0] = '\0';
    ck_assert(!plugin_read_description(failed, strlen(failed), &description, &problem));
    ck_assert_str_eq(problem.text, wanted);
    problem.text[0] = '\0';
    ck_assert(!plugin_read_probe(failed, strlen(failed), &probe, &problem));
    ck_assert_str_eq(problem.text, wanted);
    problem.text[0] = '\0';
    ck_assert(!plugin_read_figures(failed, strlen(failed), &figures, &problem));
    ck_assert_str_eq(problem.text, wanted);
    /* Any other value is a key that is not known. */
    ck_assert(plugin_read_result(unknown, strlen(unknown), &result, &problem));
}
END_TEST

START_TEST(garbage_is_refused_or_bounded)
{
    static char text[sizeof GOOD];
    for (size_t at = 0; at < sizeof GOOD - 1; at++) {
        for (unsigned byte = 0; byte < 256; byte += 5) {
            struct plugin_description said;
            struct plugin_figures figures;
            struct plugin_result result;
            struct plugin_probe probe;
            struct problem problem;
            memcpy(text, GOOD, sizeof text);
            text[at] = (char)byte;
            const size_t length = byte == 0 ? at : sizeof GOOD - 1;
            if (plugin_read_description(text, length, &said, &problem)) {
                ck_assert(said.operation_count >= 1);
                ck_assert(said.operation_count <= PLUGIN_OPERATIONS);
                ck_assert(plugin_word_is_operation(said.operations[said.operation_count - 1]));
            }
            ck_assert(!plugin_read_result(text, length, &result, &problem));
            (void)plugin_read_figures(text, length, &figures, &problem);
            (void)plugin_read_probe(text, length, &probe, &problem);
        }
    }
}
END_TEST

SUITE("plugin_line", NULL, NULL, TEST(requests_are_lines_of_json),
      TEST(a_request_that_cannot_be_written_says_why), TEST(a_description_is_read),
      TEST(a_plugin_says_whether_it_takes_a_cancel),
      TEST(a_plugin_says_whether_it_can_be_challenged),
      TEST(a_wrong_description_says_what_is_wrong), TEST(figures_may_be_unknown),
      TEST(a_result_has_a_status_and_perhaps_a_text),
      TEST(a_device_that_failed_is_told_in_place_of_any_answer),
      TEST(garbage_is_refused_or_bounded))
