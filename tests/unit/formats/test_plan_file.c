/* Plan files: what is to be planned, as YAML and as the command line has it. */
#include "formats/plan_file.h"
#include "tests/support/page.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static bool parse(const char *text, struct plan_file *file, struct problem *problem)
{
    problem->text[0] = '\0';
    return plan_file_parse(text, strlen(text), "p.yaml", file, problem);
}

START_TEST(all_that_can_be_said_is_read)
{
    struct plan_file file;
    struct problem problem;
    ck_assert_msg(
        parse("template: llm\n"
              "set: {model: llama-3-8b, prompt: 2048, tied: yes}\n"
              "devices: [h100:2@2.50, 'tpu-v5p:4,l4']\n"
              "pcie: 63GB/s,4us\n"
              "peer: 25GB/s\n"
              "fabric: none\n"
              "network: 10Gbit/s\n"
              "storage: 7GB/s\n"
              "stream: true\n"
              "objective: value\n"
              "deadline: 10m\n"
              "budget: 3.00\n"
              "worth: 0.5\n"
              "place: {decode: h100-sxm5 1}\n"
              "batch: 32\n"
              "samples: {h100: h100.txt, l4: /tmp/l4.txt}\n"
              "interruptible: {l4: '0.5/h,2m,30s', h100: 0.01/h}\n"
              "figures: {ascend-910b: {bandwidth: 1.2TB/s, memory: 64GB}, l4: {fp32: 30TFLOPS}}\n",
              &file, &problem),
        "%s", problem.text);
    ck_assert_str_eq(file.template, "llm");
    ck_assert_uint_eq(file.setting_count, 3);
    ck_assert_str_eq(file.settings[1].name, "prompt");
    ck_assert_str_eq(file.settings[1].value, "2048");
    ck_assert_str_eq(file.settings[2].value, "yes");
    ck_assert_uint_eq(file.devices.device_count, 7);
    ck_assert_uint_eq(file.devices.host_count, 3);
    ck_assert(!file.is_market);
    ck_assert_int_eq(file.pcie.link.bandwidth, 63000000000);
    ck_assert_int_eq(file.pcie.link.latency_ns, 4000);
    ck_assert(file.peer.is_given && file.peer.link.bandwidth == 25000000000);
    ck_assert(file.fabric.is_given && file.fabric.link.is_none);
    ck_assert(file.network.is_given && !file.network.has_latency);
    ck_assert_int_eq(file.storage, 7000000000);
    ck_assert(file.may_stream);
    ck_assert_str_eq(file.objective, "value");
    ck_assert_int_eq(file.deadline_ns, INT64_C(600000000000));
    ck_assert_int_eq(file.budget_micro, 3000000);
    ck_assert_int_eq(file.worth_micro, 500000);
    ck_assert_uint_eq(file.place_count, 1);
    ck_assert_str_eq(file.places[0].value, "h100-sxm5 1");
    ck_assert_int_eq(file.batch, 32);
    ck_assert_uint_eq(file.figure_count, 3);
    ck_assert_str_eq(file.figures[0].device, "ascend-910b");
    ck_assert_str_eq(file.figures[0].name, "bandwidth");
    ck_assert_int_eq(file.figures[0].value, INT64_C(1200000000000));
    ck_assert_int_eq(file.figures[1].value, INT64_C(64000000000));
    ck_assert_int_eq(file.figures[2].value, INT64_C(30000000000000));
    ck_assert_uint_eq(file.sample_count, 2);
    ck_assert_str_eq(file.samples[1].device, "l4");
    ck_assert_str_eq(file.samples[1].path, "/tmp/l4.txt");
    ck_assert(file.samples[1].is_of_file);
    ck_assert_uint_eq(file.risk_count, 2);
    ck_assert_str_eq(file.risks[0].device, "l4");
    ck_assert_double_eq(file.risks[0].per_hour, 0.5);
    ck_assert_int_eq(file.risks[0].restart_ns, INT64_C(120000000000));
    ck_assert_int_eq(file.risks[0].checkpoint_ns, INT64_C(30000000000));
    ck_assert_double_eq(file.risks[1].per_hour, 0.01);
    ck_assert_int_eq(file.risks[1].restart_ns + file.risks[1].checkpoint_ns, 0);
}
END_TEST

START_TEST(what_is_not_said_is_not_said)
{
    struct plan_file file;
    struct problem problem;
    ck_assert(parse("template: llm", &file, &problem));
    ck_assert_uint_eq(file.devices.device_count, 0);
    ck_assert(!file.pcie.is_given && !file.fabric.is_given && !file.network.is_given);
    ck_assert_int_eq(file.budget_micro, -1);
    ck_assert_int_eq(file.deadline_ns + file.storage + file.worth_micro, 0);
    ck_assert_str_eq(file.objective, "");
    ck_assert_int_eq(file.batch, 0);
    ck_assert_uint_eq(file.sample_count + file.risk_count, 0);
    ck_assert(parse("{template: llm, interruptible: 1/h}", &file, &problem));
    ck_assert_str_eq(file.risks[0].device, ""); /* all of them */
    ck_assert(parse("{template: llm, devices: market}", &file, &problem));
    ck_assert(file.is_market);
}
END_TEST

START_TEST(what_is_wrong_is_said_with_its_line)
{
    static const char *const wrong[][2] = {
        {"set: {a: 1}", "p.yaml:1: "},
        {"template: llm\ndevises: h100", "unknown key \"devises\"; did you mean \"devices\""},
        {"template: llm\ndevices: h100:0", "p.yaml:2: devices: h100:0"},
        {"template: llm\ndevices: [h100, {a: b}]", "p.yaml:2: "},
        {"template: llm\ndevices: [market, h100]", "not both"},
        {"template: llm\ndevices: [h100, market]", "not both"},
        {"template: llm\nnetwork: fast", "\"fast\" is no link"},
        {"template: llm\nstorage: 7GB/s,1us", "has no latency"},
        {"template: llm\ndeadline: 10", "p.yaml:2: "},
        {"template: llm\nbudget: -1", "p.yaml:2: "},
        {"template: llm\nworth: 0", "p.yaml:2: "},
        {"template: llm\nset: [a, b]", "p.yaml:2: "},
        {"template: llm\nset: {a: ''}", "p.yaml:2: "},
        {"template: llm\nstream: perhaps", "p.yaml:2: "},
        {"template: llm\nset: {a: 1, a: 2}", "p.yaml:2"},
        {"template: [llm]", "p.yaml:1: "},
        {"template: llm\nbatch: 0", "p.yaml:2: "},
        {"template: llm\nsamples: h100.txt", "p.yaml:2: "},
        {"template: llm\nsamples: {h100: ''}", "p.yaml:2: "},
        {"template: llm\ninterruptible: 0.5", "p.yaml:2: "},
        {"template: llm\ninterruptible: {l4: -1/h}", "p.yaml:2: "},
        {"template: llm\nfigures: {'': {memory: 1GB}}", "p.yaml:2: : whose figures?"},
        {"template: llm\nfigures: {l4: {bandwidth: 1TB}}", "by the second, as in 1.2TB/s"},
        {"template: llm\nfigures: {l4: {speed: 1TB}}", "\"speed\" is no figure of a device"},
        {"template: llm\npeer: 30GB", "by the second, 1B/s at least"},
        {"template: llm\ninterruptible: {l4: -1/h}", "p.yaml:2: "},
        {"template: llm\ninterruptible: {l4: '1/h,soon'}", "p.yaml:2: "},
        {"template: llm\ninterruptible: {l4: '1/h,1s,1s,1s'}", "p.yaml:2: "},
        {"template: llm\ninterruptible: [1/h]", "p.yaml:2: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct plan_file file;
        struct problem problem;
        ck_assert_msg(!parse(wrong[i][0], &file, &problem), "taken: %s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
    }
}
END_TEST

START_TEST(a_name_that_is_set_again_has_the_later_value)
{
    struct plan_file_pair pairs[2];
    size_t count = 0;
    struct problem problem;
    ck_assert(plan_file_pair(pairs, 2, &count, "a=1", &problem));
    ck_assert(plan_file_pair(pairs, 2, &count, "step 1=h100 2=3", &problem));
    ck_assert(plan_file_pair(pairs, 2, &count, "a=2", &problem));
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(pairs[0].value, "2");
    ck_assert_str_eq(pairs[1].name, "step 1");
    ck_assert_str_eq(pairs[1].value, "h100 2=3");
    static const char *const wrong[] = {"b=1", "a", "a=", "=1", ""}; /* the first: no room */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        problem.text[0] = '\0';
        ck_assert_msg(!plan_file_pair(pairs, 2, &count, wrong[i], &problem), "taken: %s", wrong[i]);
        ck_assert_uint_eq(count, 2);
        ck_assert_str_ne(problem.text, "");
    }
}
END_TEST

START_TEST(what_is_said_of_a_device_twice_is_refused_but_over_the_file)
{
    static const char text[] = "template: llm\ndevices: l4\ninterruptible: {l4: 2/h}\n"
                               "samples: {h100: a.txt}\nfigures: {l4: {memory: 24GB}}\n";
    struct plan_file file;
    struct problem problem;
    ck_assert_msg(plan_file_parse(text, strlen(text), "plan.yaml", &file, &problem), "%s",
                  problem.text);
    ck_assert(plan_file_samples(&file, "h100=c.txt", &problem));
    ck_assert(plan_file_risk(&file, "l4=3/h", &problem));
    ck_assert(plan_file_figure(&file, "l4=memory=48GB", &problem));
    ck_assert_uint_eq(file.sample_count + file.risk_count + file.figure_count, 3);
    ck_assert_double_eq(file.risks[0].per_hour, 3);
    ck_assert(!plan_file_samples(&file, "h100=d.txt", &problem));
    ck_assert(!plan_file_risk(&file, "l4=4/h", &problem));
    ck_assert_str_eq(problem.text, "l4: said twice; say it once");
    ck_assert(!plan_file_figure(&file, "l4=memory=96GB", &problem));
    ck_assert(plan_file_figure(&file, "l4=fp32=1TFLOPS", &problem));
    ck_assert(plan_file_risk(&file, "1/h", &problem));
    ck_assert(!plan_file_risk(&file, "2/h", &problem));
    ck_assert_str_eq(file.samples[0].path, "c.txt");
    ck_assert_double_eq(file.risks[0].per_hour, 3);
}
END_TEST

START_TEST(samples_and_risks_are_of_devices)
{
    struct plan_file file;
    struct problem problem;
    plan_file_begin(&file);
    ck_assert(plan_file_samples(&file, "h100=a=b.txt", &problem));
    ck_assert_uint_eq(file.sample_count, 1);
    ck_assert_str_eq(file.samples[0].path, "a=b.txt");
    ck_assert(!file.samples[0].is_of_file);
    ck_assert(!plan_file_samples(&file, "h100", &problem));
    ck_assert(!plan_file_samples(&file, "=c.txt", &problem));
    ck_assert(plan_file_risk(&file, "1/h", &problem));
    ck_assert(plan_file_risk(&file, "l4=3/h,1m", &problem));
    ck_assert_uint_eq(file.risk_count, 2);
    ck_assert_double_eq(file.risks[1].per_hour, 3);
    static const char *const wrong[] = {
        "", "/h", "x/h", "1", "l4=", "l4=1/d", "1/h,", "1/h,1m,", "=1/h"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!plan_file_risk(&file, wrong[i], &problem), "taken: %s", wrong[i]);
    }
    ck_assert_uint_eq(file.risk_count, 2);
}
END_TEST

START_TEST(the_plan_of_the_page_is_read)
{
    char example[PAGE_EXAMPLE_SIZE];
    char *page = page_read("docs/planner.md");
    struct plan_file file;
    struct problem problem;
    ck_assert_ptr_nonnull(page_example(page, "```yaml", "```", example));
    free(page);
    ck_assert_msg(parse(example, &file, &problem), "%s in:\n%s", problem.text, example);
}
END_TEST

SUITE("plan_file", NULL, NULL, TEST(all_that_can_be_said_is_read),
      TEST(what_is_not_said_is_not_said), TEST(what_is_wrong_is_said_with_its_line),
      TEST(a_name_that_is_set_again_has_the_later_value),
      TEST(what_is_said_of_a_device_twice_is_refused_but_over_the_file),
      TEST(samples_and_risks_are_of_devices), TEST(the_plan_of_the_page_is_read))
