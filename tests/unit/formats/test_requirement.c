#include "formats/requirement.h"

#include "base/cleanup.h"
#include "base/device_kind.h"
#include "formats/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 4096 };

static void check_text(const char *text, const char *wanted)
{
    struct requirement requirement;
    struct requirement again;
    struct problem problem;
    char canonical[TEXT_SIZE];
    ck_assert_msg(requirement_parse(text, &requirement, &problem), "%s: %s", text, problem.text);
    ck_assert_msg(requirement_text(&requirement, canonical, sizeof canonical), "%s", text);
    ck_assert_str_eq(canonical, wanted);
    ck_assert(requirement_parse(canonical, &again, &problem));
    ck_assert_mem_eq(&again, &requirement, sizeof again);
}

static void check_refused(const char *text, const char *wanted)
{
    struct requirement requirement;
    struct problem problem = {"nothing"};
    ck_assert_msg(!requirement_parse(text, &requirement, &problem), "taken: %s", text);
    ck_assert_str_eq(problem.text, wanted);
}

START_TEST(a_requirement_becomes_a_postfix_tree)
{
    struct requirement requirement;
    ck_assert(requirement_parse("memory >= 2GiB and kind = cpu", &requirement, NULL));
    ck_assert_uint_eq(requirement.count, 3);
    ck_assert_int_eq(requirement.nodes[0].op, REQUIREMENT_GE);
    ck_assert_str_eq(requirement.nodes[0].attribute.name, "memory");
    ck_assert(!requirement.nodes[0].attribute.is_text);
    ck_assert_int_eq(requirement.nodes[0].attribute.number, INT64_C(2) << 30);
    ck_assert_int_eq(requirement.nodes[1].op, REQUIREMENT_EQ);
    ck_assert(requirement.nodes[1].attribute.is_text);
    ck_assert_str_eq(requirement.nodes[1].attribute.text, "cpu");
    ck_assert_int_eq(requirement.nodes[2].op, REQUIREMENT_AND);
    ck_assert_uint_eq(requirement.nodes[2].arity, 2);
}
END_TEST

START_TEST(one_need_has_one_text)
{
    check_text("any", "any");
    check_text("kind=cpu", "kind = cpu");
    check_text("  kind  =  cpu\n", "kind = cpu");
    check_text("((kind = cpu))", "kind = cpu");
    check_text("kind = cpu and (memory >= 2048MiB and cores > 3)",
               "kind = cpu and memory >= 2GiB and cores > 3");
    check_text("kind = cpu or kind = gpu and cores > 3", "kind = cpu or kind = gpu and cores > 3");
    check_text("(kind = cpu or kind = gpu) and cores > 3",
               "(kind = cpu or kind = gpu) and cores > 3");
    check_text("kind in (cpu, gpu) and not region = \"eu west\"",
               "(kind = cpu or kind = gpu) and not region = \"eu west\"");
    check_text("kind in (cpu)", "kind = cpu");
    check_text("not (kind = cpu and cores < 2)", "not (kind = cpu and cores < 2)");
    check_text("not not simulated = true", "not not simulated = true");
    check_text("region != \"a \\\"b\\\" \\\\\"", "region != \"a \\\"b\\\" \\\\\"");
    check_text("program = /usr/bin/xz", "program = /usr/bin/xz");
    check_text("label = and", "label = and");
    check_text("kind = tpu-edge or kind in (npu-dc, wasm-wasi)",
               "kind = tpu-edge or kind = npu-dc or kind = wasm-wasi");
    check_text("simulated = false or memory < 1.5GiB", "simulated = false or memory < 1536MiB");
    check_text("bandwidth >= 100GB and gflops >= 50 and isolation >= 1",
               "bandwidth >= 100GB/s and gflops >= 50 and isolation >= 1");
    check_text("bandwidth >= 1.5TiB/s and bf16 >= 300TFLOPS and int8 < 0.5POPS",
               "bandwidth >= 1536GiB/s and bf16 >= 300TFLOPS and int8 < 500TOPS");
    check_text("region not in (fr, de) and not kind in (gpu)",
               "not (region = fr or region = de) and not kind = gpu");
    check_text(
        "kind = gpu and memory >= 40GiB and bf16 >= 300TFLOPS and region in (eu, us) and not "
        "model = \"GeForce RTX 4090\"",
        "kind = gpu and memory >= 40GiB and bf16 >= 300TFLOPS and (region = eu or region = "
        "us) and not model = \"GeForce RTX 4090\"");
}
END_TEST

START_TEST(every_kind_and_variant_can_be_asked_for)
{
    size_t count;
    const struct device_kind *kinds = device_kinds(&count);
    ck_assert_uint_eq(count, 10);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(kinds[i].name);
        char need[64];
        (void)snprintf(need, sizeof need, "kind = %s", kinds[i].name);
        check_text(need, need);
        ck_assert(strncmp(kinds[i].family, kinds[i].name, length) == 0);
        for (size_t k = 0; k < KIND_VARIANTS_MAX && kinds[i].variants[k] != NULL; k++) {
            (void)snprintf(need, sizeof need, "kind = %s", kinds[i].variants[k]);
            check_text(need, need);
            ck_assert(strncmp(kinds[i].variants[k], kinds[i].name, length) == 0);
        }
    }
}
END_TEST

START_TEST(wrong_texts_say_what_is_wrong)
{
    check_refused("", "column 1: a field is needed here, as in `memory >= 2GiB`, not the end");
    check_refused("memroy >= 2GiB", "column 1: unknown field \"memroy\"; did you mean \"memory\"?");
    check_refused(
        "weight > 2",
        "column 1: unknown field \"weight\"; `man bourse-job` lists those that are known");
    check_refused("kind = cpuu", "column 8: unknown kind \"cpuu\"; did you mean \"cpu\"?");
    check_refused("kind = tpu-egde",
                  "column 8: unknown kind \"tpu-egde\"; did you mean \"tpu-edge\"?");
    check_refused("kind = toaster", "column 8: unknown kind \"toaster\"; known are cpu, gpu, tpu, "
                                    "lpu, npu, fpga, dsp, webgpu, wasm "
                                    "or custom");
    check_refused("kind > cpu", "column 8: kind is not a number: it takes only =, != and in");
    check_refused("memory >= big",
                  "column 11: memory: \"big\" is not a size; write for example 512MB or 1.5GiB");
    check_refused("cores >= 2GiB",
                  "column 10: cores: \"2GiB\" is not a whole number; write for example 100");
    check_refused("simulated = yes", "column 13: simulated is true or false, not \"yes\"");
    check_refused("kind", "column 5: =, !=, <, <=, >, >= or in is needed after kind, not the end");
    check_refused("kind =", "column 7: a value is needed for kind, not the end");
    check_refused("kind = = cpu", "column 8: a value is needed for kind, not \"=\"");
    check_refused("kind = cpu gpu",
                  "column 12: `and`, `or` or the end is needed here, not \"gpu\"");
    check_refused("kind = cpu AND cores > 1", "column 12: AND is written and here");
    check_refused("kind = cpu and",
                  "column 15: a field is needed here, as in `memory >= 2GiB`, not the end");
    check_refused("(kind = cpu", "column 12: `and`, `or` or \")\" is needed here, not the end");
    check_refused("kind = cpu)", "column 11: `and`, `or` or the end is needed here, not \")\"");
    check_refused("kind in cpu",
                  "column 9: `in` needs a list, as in `region in (fr, de)`, not \"cpu\"");
    check_refused("kind in ()", "column 10: a value is needed in the list of `in`, not \")\"");
    check_refused("kind in (cpu gpu)",
                  "column 14: \",\" or \")\" is needed in the list of `in`, not \"gpu\"");
    check_refused("region = \"x", "column 10: the quoted text has no closing quote");
    check_refused("label = \"v\\m\"",
                  "column 9: in quotes \\ stands before \" or \\ only: write \\\\ for one");
    check_refused("label = \"v\\",
                  "column 9: in quotes \\ stands before \" or \\ only: write \\\\ for one");
    check_refused("region = \"\"", "column 10: \"\" is not a text for region: 1 to 63 bytes, no "
                                   "control characters and no bidirectional marks");
    check_refused("region = \"a\x1b\"", "column 10: \"a?\" is not a text for region: 1 to 63 "
                                        "bytes, no control characters and no bidirectional marks");
    check_refused("kind % cpu", "column 6: nothing begins with \"% cpu\"");
    check_refused("any and kind = cpu",
                  "column 5: `and`, `or` or the end is needed here, not \"and\"");
}
END_TEST

START_TEST(what_no_device_ever_has_is_refused_with_the_range)
{
    struct requirement needs;
    struct problem problem;
    check_refused("isolation >= 4", "column 14: isolation is 0 to 3: no device has more");
    check_refused("isolation > 3", "column 13: isolation is 0 to 3: no device has more");
    check_refused("isolation in (1, 9)", "column 18: isolation is 0 to 3: no device has more");
    check_refused("trust = 3", "column 9: trust is 0 to 2: no device has more");
    check_refused("notice >= 8d", "column 11: notice is 0 to 7d: no device has more");
    check_refused("memory < 0", "column 10: memory is never less than 0");
    ck_assert(requirement_parse("isolation >= 3 and notice >= 7d and trust < 9", &needs, &problem));
}
END_TEST

START_TEST(a_word_with_other_letters_is_shown_whole)
{
    check_refused("kind = gpü", "column 8: unknown kind \"gpü\"; known are cpu, gpu, tpu, "
                                "lpu, npu, fpga, dsp, webgpu, wasm or custom");
    check_refused("kïnd = gpu", "column 1: unknown field \"kïnd\"; `man bourse-job` lists those "
                                "that are known");
    check_refused("region = münchen",
                  "column 10: write \"münchen\" in quotes: it has letters that words do not have");
    check_refused("memory≥2GiB", "column 7: ≥ is written >= here");
}
END_TEST

START_TEST(what_other_languages_write_is_refused_with_what_is_right)
{
    check_refused("kind == gpu", "column 6: == is written = here");
    check_refused("kind = gpu && cores > 1", "column 12: && is written and here");
    check_refused("kind = gpu || cores > 1", "column 12: || is written or here");
    check_refused("kind <> gpu", "column 6: <> is written != here");
    check_refused("memory => 2GiB", "column 8: => is written >= here");
    check_refused("memory =< 2GiB", "column 8: =< is written <= here");
    check_refused("memory \xe2\x89\xa5 2GiB", "column 8: \xe2\x89\xa5 is written >= here");
    check_refused("!(kind = gpu)", "column 1: ! is written not here");
    check_refused("region = 'eu west'", "column 10: ' is written \" here");
    check_refused("NOT kind = gpu", "column 1: NOT is written not here");
    check_refused("region IN (fr)", "column 8: IN is written in here");
    check_refused("Memory >= 2GiB", "column 1: unknown field \"Memory\"; did you mean \"memory\"?");
    check_refused("BF16 >= 2TFLOPS", "column 1: unknown field \"BF16\"; did you mean \"bf16\"?");
    check_refused("kind = GPU", "column 8: unknown kind \"GPU\"; did you mean \"gpu\"?");
    check_refused("executor = tensr",
                  "column 12: unknown executor \"tensr\"; did you mean \"tensor\"?");
    check_refused("executor = docker", "column 12: unknown executor \"docker\"; known are command, "
                                       "noop, tensor, kernel, plugin, wasm and onnx");
    check_refused("region not (fr)", "column 12: `in` is needed after `not`, not \"(\"");
}
END_TEST

START_TEST(a_figure_says_its_unit)
{
    check_refused("bf16 >= 300",
                  "column 9: bf16: \"300\" has no unit; write for example 300TFLOPS or 1.5PFLOPS");
    check_refused(
        "bf16 >= 300TOPS",
        "column 9: bf16: \"300TOPS\" has an unknown unit; known are FLOPS, kFLOPS, MFLOPS, "
        "GFLOPS, TFLOPS, PFLOPS, EFLOPS");
    check_refused("int8 >= 300TFLOPS",
                  "column 9: int8: \"300TFLOPS\" has an unknown unit; known are OPS, kOPS, MOPS, "
                  "GOPS, TOPS, POPS, EOPS");
    check_refused("memory >= 40gib",
                  "column 11: memory: \"40gib\" has an unknown unit; did you mean GiB? known are "
                  "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB");
    check_refused(
        "memory >= 40GiB/s",
        "column 11: memory: \"40GiB/s\" is not a size; write for example 512MB or 1.5GiB");
    check_refused("memory >= 40 GiB", "column 14: a value has no blank in it: write 40GiB");
    check_refused(
        "bandwidth >= 2Gbit/s",
        "column 14: bandwidth: \"2Gbit/s\" has an unknown unit; known are B/s, kB/s, MB/s, "
        "GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s");
    check_refused("fp32 >= 1.5FLOPS",
                  "column 9: fp32: \"1.5FLOPS\" is finer than the smallest step, 1 FLOPS");
    check_refused("fp32 >= 10EFLOPS", "column 9: fp32: \"10EFLOPS\" is too large");
}
END_TEST

START_TEST(a_place_is_counted_as_editors_do)
{
    check_refused("label = \"\xc3\xa4\xc3\xb6\" and memroy > 1",
                  "column 18: unknown field \"memroy\"; did you mean \"memory\"?");
    check_refused("kind = cpu\n  and memroy > 1",
                  "line 2, column 7: unknown field \"memroy\"; did you mean \"memory\"?");
}
END_TEST

START_TEST(depth_and_size_are_capped)
{
    struct problem problem;
    struct requirement requirement;
    char text[FORMAT_REQUIREMENT_BYTES + 2];
    size_t length = 0;
    for (int i = 0; i < FORMAT_REQUIREMENT_DEPTH; i++) {
        text[length++] = '(';
    }
    length += (size_t)sprintf(text + length, "kind = cpu");
    for (int i = 0; i < FORMAT_REQUIREMENT_DEPTH; i++) {
        text[length++] = ')';
    }
    text[length] = '\0';
    ck_assert(requirement_parse(text, &requirement, &problem));
    memset(text, '(', 8000);
    text[8000] = '\0';
    check_refused(text, "column 17: nested deeper than 16");
    text[0] = '\0';
    for (int i = 0; i < 1000; i++) {
        memcpy(text + 4 * i, "not ", 5);
    }
    check_refused(text, "column 65: nested deeper than 16");

    length = (size_t)sprintf(text, "cores in (0");
    for (int i = 1; i < REQUIREMENT_NODES_MAX; i++) {
        length += (size_t)sprintf(text + length, ", %d", i);
    }
    (void)sprintf(text + length, ")");
    check_refused(
        text,
        "column 256: more than 64 conditions, with each `and`, `or` and `not` counted as one");

    memset(text, ' ', FORMAT_REQUIREMENT_BYTES + 1);
    text[FORMAT_REQUIREMENT_BYTES + 1] = '\0';
    check_refused(text, "the requirement has more than 8192 bytes");
    memset(text, 'a', 64);
    text[64] = '\0';
    check_refused(text, "column 1: the word has more than 63 bytes, the most that it may have");
}
END_TEST

static bool read_yaml(const char *text, struct requirement *ret, struct problem *ret_problem)
{
    CLEANUP(yaml_close) struct yaml_file *file = yaml_open(text, strlen(text), "f", ret_problem);
    ck_assert_ptr_nonnull(file);
    requirement_read(yaml_key(yaml_root(file), "needs"), ret);
    return yaml_finished(file, ret_problem);
}

static void check_map(const char *text, const char *wanted)
{
    struct requirement requirement;
    struct problem problem;
    char canonical[TEXT_SIZE];
    ck_assert_msg(read_yaml(text, &requirement, &problem), "%s", problem.text);
    ck_assert(requirement_text(&requirement, canonical, sizeof canonical));
    ck_assert_str_eq(canonical, wanted);
}

static void check_map_refused(const char *text, const char *wanted)
{
    struct requirement requirement;
    struct problem problem = {"nothing"};
    ck_assert_msg(!read_yaml(text, &requirement, &problem), "taken: %s", text);
    ck_assert_str_eq(problem.text, wanted);
    ck_assert_uint_eq(requirement.count, 0);
}

START_TEST(a_map_holds_with_all_its_entries)
{
    check_map("a: 1", "any");
    check_map("needs: {}", "any");
    check_map("needs: kind = cpu", "kind = cpu");
    check_map("needs: {kind: cpu}", "kind = cpu");
    check_map("needs: {kind: cpu, memory: 2GiB, isolation: 1}",
              "kind = cpu and memory >= 2GiB and isolation >= 1");
    check_map("needs: {region: [fr, de], cores: \"< 64\", simulated: true}",
              "(region = fr or region = de) and cores < 64 and simulated = true");
    check_map("needs: {cores: [4, 8]}", "cores = 4 or cores = 8");
    check_map("needs: {region: \"!= x y\", model: [one]}", "region != \"x y\" and model = one");
    check_map("needs: {memory: =4GiB}", "memory = 4GiB");
    check_map("needs: {region: \"not in (fr, de)\", kind: cpu}",
              "not (region = fr or region = de) and kind = cpu");
    check_map("needs: {region: \"in (fr, \\\"eu west\\\")\"}",
              "region = fr or region = \"eu west\"");
    check_map("needs: {isolation: \"not in(0)\", region: \"in stock\", label: not}",
              "not isolation = 0 and region = \"in stock\" and label = not");
    check_map("needs: {label: [\"not so\", \"in (a)\"]}",
              "label = \"not so\" or label = \"in (a)\"");
    check_map("needs: {kind: gpu, bf16: 300TFLOPS, bandwidth: 2TB/s, int8: \"< 1POPS\"}",
              "kind = gpu and bf16 >= 300TFLOPS and bandwidth >= 2TB/s and int8 < 1POPS");
    check_map("needs: {label: \"&x\"}", "label = \"&x\"");
}
END_TEST

START_TEST(wrong_maps_are_refused_where_they_stand)
{
    check_map_refused("needs: {knd: cpu}", "f:1: unknown key \"knd\"; did you mean \"kind\"?");
    check_map_refused("needs:\n  kind: cpuu",
                      "f:2: kind: unknown kind \"cpuu\"; did you mean \"cpu\"?");
    check_map_refused("needs: {kind: []}", "f:1: kind: an empty list: nothing could ever fit");
    check_map_refused("needs: {kind: \"> cpu\"}",
                      "f:1: kind: kind is not a number: it takes only =, != and in");
    check_map_refused("needs: {memory: \"=> 2GiB\"}", "f:1: memory: => is written >= here");
    check_map_refused("needs: {region: \"not in (fr, de\"}",
                      "f:1: region: \",\" or \")\" is needed in the list of `in`, not the end");
    check_map_refused("needs: {region: \"in (fr) and kind = cpu\"}",
                      "f:1: region: nothing can follow the list of `in`, not \"and\"");
    check_map_refused("needs: {region: \"NOT IN (fr)\"}", "f:1: region: NOT is written not here");
    check_map_refused("needs: {memory: \"in (2GiB, x)\"}",
                      "f:1: memory: \"x\" is not a size; write for example 512MB or 1.5GiB");
    check_map_refused(
        "needs: {region: \"not fr\"}",
        "f:1: region: `not` stands before `in` here, as in \"not in (fr, de)\". Before "
        "one value write !=; put a text that begins with `not` in brackets, as in [\"not "
        "so\"]");
    check_map_refused("needs: {bf16: 300}",
                      "f:1: bf16: \"300\" has no unit; write for example 300TFLOPS or 1.5PFLOPS");
    check_map_refused("needs: {kind: {a: b}}",
                      "f:1: kind: a single value is needed here, not a map of keys");
    check_map_refused("needs: [cpu]", "f:1: needs: a single value is needed here, not a list");
    check_map_refused(
        "needs: \"\"",
        "f:1: needs: column 1: a field is needed here, as in `memory >= 2GiB`, not the end");
    check_map_refused("needs:", "f:1: needs: the value is missing (an empty text is written \"\")");
}
END_TEST

START_TEST(trees_of_a_peer_are_checked_before_they_are_printed)
{
    char text[64];
    struct requirement requirement = {.count = 1};
    ck_assert(!requirement_text(&requirement, text, sizeof text)); /* op 0 */
    requirement.nodes[0].op = REQUIREMENT_NOT;
    ck_assert(!requirement_text(&requirement, text, sizeof text)); /* no operand */
    requirement.nodes[0].op = REQUIREMENT_AND;
    ck_assert(!requirement_text(&requirement, text, sizeof text));
    requirement.nodes[0] =
        (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = {.name = "hue", .number = -7}};
    ck_assert(requirement_text(&requirement, text, sizeof text)); /* a field of a later version */
    ck_assert_str_eq(text, "hue = -7");
    requirement.nodes[1] = requirement.nodes[0];
    requirement.count = 2;
    ck_assert(!requirement_text(&requirement, text, sizeof text)); /* two roots */
    requirement.nodes[2] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 3};
    requirement.count = 3;
    ck_assert(!requirement_text(&requirement, text, sizeof text));
    requirement.nodes[2].arity = 2;
    ck_assert(requirement_text(&requirement, text, sizeof text));
    ck_assert(!requirement_text(&requirement, text, 10));
    requirement.count = REQUIREMENT_NODES_MAX + 1;
    ck_assert(!requirement_text(&requirement, text, sizeof text));
    ck_assert(requirement_node_text(&requirement.nodes[0], text, sizeof text));
    ck_assert(!requirement_node_text(&requirement.nodes[2], text, sizeof text));
}
END_TEST

START_TEST(a_chain_as_long_as_a_tree_may_be_prints)
{
    struct requirement requirement = {.count = REQUIREMENT_NODES_MAX};
    requirement.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ,
                                                     .attribute = {.name = "cores", .number = 1}};
    for (int i = 1; i < REQUIREMENT_NODES_MAX; i++) {
        requirement.nodes[i].op = REQUIREMENT_NOT;
    }
    char text[TEXT_SIZE];
    ck_assert(requirement_text(&requirement, text, sizeof text));
    ck_assert_uint_eq(strlen(text), 4 * (REQUIREMENT_NODES_MAX - 1) + strlen("cores = 1"));
}
END_TEST

SUITE("requirement", NULL, NULL, TEST(a_requirement_becomes_a_postfix_tree),
      TEST(one_need_has_one_text), TEST(every_kind_and_variant_can_be_asked_for),
      TEST(wrong_texts_say_what_is_wrong), TEST(what_no_device_ever_has_is_refused_with_the_range),
      TEST(a_word_with_other_letters_is_shown_whole),
      TEST(what_other_languages_write_is_refused_with_what_is_right), TEST(a_figure_says_its_unit),
      TEST(a_place_is_counted_as_editors_do), TEST(depth_and_size_are_capped),
      TEST(a_map_holds_with_all_its_entries), TEST(wrong_maps_are_refused_where_they_stand),
      TEST(trees_of_a_peer_are_checked_before_they_are_printed),
      TEST(a_chain_as_long_as_a_tree_may_be_prints))
