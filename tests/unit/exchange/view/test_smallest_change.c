/* The tests read what explain suggests, in the words that people read;
 * tests/property/prop_explain.c shows that it is true. */
#include "base/limit.h"
#include "broker/answer/smallest_change.h"
#include "formats/requirement.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

static struct exchange_explanation why; /* large */

static void set_up_many(void)
{
    set_up_with(64, 4096, 64);
}

/* A GPU of 24 GiB in Europe, for leases of a minute at most. */
static void offer_gpu(uint32_t slots, int64_t at_price)
{
    static const struct attribute facts[] = {
        {.name = "kind", .is_text = true, .text = "gpu"},
        {.name = "memory", .number = 24 * GIB + 12345},
        {.name = "program", .is_text = true, .text = "xz"},
        {.name = "region", .is_text = true, .text = "eu"},
        {.name = "image_files", .number = 150},
        {.name = "image_size", .number = 2 * GIB},
    };
    struct exchange_device device = {.device = {{PROVIDER}},
                                     .slots = slots,
                                     .attributes = facts,
                                     .attribute_count = sizeof facts / sizeof facts[0],
                                     .label = "a gpu"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = device.device,
                                    .slots = slots,
                                    .price_micro = at_price,
                                    .max_term_ns = 60 * NS_PER_S};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static struct exchange_command wanting(const char *text, struct requirement *needs)
{
    struct problem problem = {""};
    ck_assert_msg(requirement_parse(text, needs, &problem), "%s", problem.text);
    struct exchange_command job = submit_of(1, 100);
    job.submit.needs = needs;
    return job;
}

static void check_smallest_change(const struct exchange_command *job, const char *wanted)
{
    char text[512];
    apply(job);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert(exchange_explain_job(market.exchange, &job->id, EXCHANGE_ANY_PART, &why));
    smallest_change_text(&why.smallest_change, text, sizeof text);
    ck_assert_str_eq(text, wanted);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job->id;
    apply(&cancel);
}

START_TEST(each_kind_of_change_has_its_words)
{
    struct requirement needs;
    offer_gpu(2, 2 * price);
    struct exchange_command job = wanting("kind = gpu", &needs);
    check_smallest_change(&job, "at 7200.00 instead of 3600.00 it fills now");

    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = 2 * price;
    job.submit.budget_micro = MICRO_PER_CREDIT;
    check_smallest_change(&job, "with a budget of 40.00 instead of 1.00 it fills now at 7200.00");

    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = 2 * price;
    job.submit.term_ns = 120 * NS_PER_S;
    job.submit.budget_micro = 1000 * MICRO_PER_CREDIT;
    check_smallest_change(&job, "with a term of 1m instead of 2m it fills now at 7200.00");

    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = 2 * price;
    job.submit.slots = 3;
    check_smallest_change(&job, "with slots: 2 instead of 3 it fills now at 7200.00");

    /* A job with an image asks for this by itself; the change is said of the image. */
    job = wanting("kind = gpu and not image_files < 201", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(
        &job, "with an image of at most 150 files instead of 201 it fills now at 7200.00");
    job = wanting("kind = gpu and not image_size < 3GiB", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(
        &job, "with an image of at most 2.0 GiB instead of 3.0 GiB it fills now at 7200.00");

    job = wanting("kind = gpu and memory >= 40GiB", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(
        &job, "with memory >= 25700MB instead of memory >= 40GiB it fills now at 7200.00");

    job = wanting("kind = gpu and region = us", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(&job, "without region = us it fills now at 7200.00");
    ck_assert_uint_eq(why.smallest_change.needs.count, 1);

    job = wanting("not region = eu", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(&job, "without not region = eu it fills now at 7200.00");
    ck_assert_uint_eq(why.smallest_change.needs.count, 0);

    job = wanting("kind = gpu and not memory >= 16GiB", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(
        &job, "with not memory > 25800MB instead of not memory >= 16GiB it fills now at "
              "7200.00");
}
END_TEST

/* The limit of a job without a cap follows from its budget, which is the one figure to change. Work
 * for many leases would need a budget for all of them, and a cap is the smaller change. */
START_TEST(a_cap_that_nobody_wrote_is_not_named)
{
    struct requirement needs;
    offer_gpu(2, 2 * price);
    struct exchange_command job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = LIMIT_NONE;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.budget_micro = MICRO_PER_CREDIT;
    check_smallest_change(&job, "with a budget of 40.00 instead of 1.00 it fills now at 7200.00");
    ck_assert_uint_eq(why.smallest_change.count, 1);
    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = LIMIT_NONE;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.budget_micro = MICRO_PER_CREDIT;
    job.submit.subtasks = 100;
    job.submit.expect_ns = NS_PER_S;
    check_smallest_change(&job, "with a cap of 7200.00 and with a budget of 40.00 instead of 1.00 "
                                "it fills now at 7200.00, 1 of the 100 slots");
    ck_assert_int_eq(why.smallest_change.changes[0].from, LIMIT_NONE);
    ck_assert_int_eq(why.smallest_change.cap_micro, 2 * price);
}
END_TEST

START_TEST(from_a_value_of_nothing_the_least_that_fills_is_named)
{
    static const int64_t tera = INT64_C(1000000000000);
    const int64_t rates[] = {100 * tera, 400 * tera};
    struct attribute facts[2];
    struct exchange_device devices[2];
    memset(facts, 0, sizeof facts);
    for (uint32_t i = 0; i < 2; i++) {
        facts[i] = (struct attribute){.name = "bf16", .number = rates[i]};
        devices[i] = (struct exchange_device){.device = {{(uint8_t)(i + 1)}},
                                              .slots = 1,
                                              .attributes = &facts[i],
                                              .attribute_count = 1,
                                              .label = "a gpu"};
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 2};
    apply(&advertise);
    for (uint8_t i = 1; i <= 2;
         i++) { /* the dearer one does four times as much for twice as much */
        struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
        ask.ask = (struct exchange_ask){.device = {{i}}, .slots = 1, .price_micro = i * price};
        apply(&ask);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
    const struct exchange_need need = {.needs = &anything,
                                       .account = CONSUMER,
                                       .subtasks = 1,
                                       .slots = 1,
                                       .limit_ns = NS_PER_S,
                                       .term_ns = NS_PER_S,
                                       .rate = RATE_BF16};
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.price_micro, 2 * price);
    ck_assert_int_eq(why.smallest_change.changes[0].to, why.fills_at_micro);
}
END_TEST

static uint32_t slots_suggested(uint32_t at_most, int64_t budget)
{
    const struct exchange_need need = {.needs = &anything,
                                       .account = CONSUMER,
                                       .subtasks = 100,
                                       .slots = 4096,
                                       .at_most = at_most,
                                       .cap_micro = price,
                                       .budget_micro = budget * MICRO_PER_CREDIT,
                                       .limit_ns = NS_PER_S,
                                       .term_ns = 60 * NS_PER_S};
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_gt(why.smallest_change.count, 0);
    return why.smallest_change.slots;
}

START_TEST(of_fewer_slots_it_is_the_most_that_the_budget_covers)
{
    offer_gpu(4000, price); /* a slot for a term is 60 credits */
    ck_assert_uint_eq(slots_suggested(0, 60 * 1000), 1000);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_uint_eq(slots_suggested(0, 60 * 1000 - 1), 999);
    ck_assert_uint_eq(slots_suggested(0, 60 * 5000), 4000);
    ck_assert_uint_eq(slots_suggested(3 * 4096, 60 * 1000), 768); /* of which that is a multiple */
    ck_assert_uint_eq(slots_suggested(3 * 4096, 60 * 768 - 1), 512);
    ck_assert_uint_eq(slots_suggested(4096, 60), 1);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_uint_eq(slots_suggested(3 * 4096, 59), 3072); /* it covers none */
    ck_assert_uint_eq(why.smallest_change.count, 2);
}
END_TEST

START_TEST(without_a_cap_fewer_slots_or_a_shorter_term_can_pay_more_for_each)
{
    struct requirement needs;
    offer_gpu(1, 2 * price);
    struct exchange_command job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = -1;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.budget_micro = 60 * MICRO_PER_CREDIT;
    job.submit.slots = 2; /* of 20 s: at most 1.5 x the price */
    check_smallest_change(&job, "with slots: 1 instead of 2 it fills now at 7200.00");
    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = -1;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.budget_micro = 150 * MICRO_PER_CREDIT;
    job.submit.term_ns = 120 * NS_PER_S; /* 1.25 x the price; of a minute 2.5 x */
    check_smallest_change(&job, "with a term of 1m instead of 2m it fills now at 7200.00");
}
END_TEST

START_TEST(of_a_budget_of_nothing_the_least_is_named_and_no_cap_that_it_lacks)
{
    struct requirement needs;
    offer_gpu(1, price);
    struct exchange_command job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = -1;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.budget_micro = 0;
    check_smallest_change(&job, "with a budget of 20.00 instead of 0.00 it fills now at 3600.00");
    job = wanting("kind = gpu", &needs);
    job.submit.subtasks =
        100; /* of a second each: with a lease's price alone it would bid less than is asked */
    job.submit.expect_ns = NS_PER_S;
    job.submit.cap_micro = -1;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.budget_micro = 0;
    check_smallest_change(&job,
                          "with a budget of 100.00 instead of 0.00 it fills now at 3600.00, 1 of "
                          "the 100 slots");
    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = price;
    job.submit.budget_micro = 0;
    check_smallest_change(&job, "with a budget of 20.00 instead of 0.00 it fills now at 3600.00");
    job = wanting("kind = gpu", &needs);
    job.submit.cap_micro = price / 2;
    job.submit.budget_micro = 0;
    check_smallest_change(&job,
                          "with a cap of 3600.00 instead of 1800.00 and with a budget of 20.00 "
                          "instead of 0.00 it fills now at 3600.00");
}
END_TEST

START_TEST(a_list_goes_as_a_whole_and_is_named_so)
{
    struct requirement needs;
    offer_gpu(2, 2 * price);
    struct exchange_command job = wanting("region in (us, asia) and kind = gpu", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(&job, "without region in (us, asia) it fills now at 7200.00");
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_uint_eq(why.smallest_change.needs.count, 1);

    job = wanting("(region = us or kind = cpu and program = xz) and kind = gpu", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(
        &job, "without (region = us or kind = cpu and program = xz) it fills now at 7200.00");

    job = wanting("not (region = eu and kind = gpu)", &needs);
    job.submit.cap_micro = 2 * price;
    check_smallest_change(&job, "without not (region = eu and kind = gpu) it fills now at 7200.00");
    ck_assert_uint_eq(why.smallest_change.needs.count, 0);
}
END_TEST

START_TEST(an_order_type_that_keeps_it_from_filling_is_named)
{
    struct requirement needs;
    offer_gpu(2, 2 * price);
    struct exchange_command job = wanting("kind = gpu", &needs);
    job.submit.type = EXCHANGE_POST_ONLY;
    check_smallest_change(
        &job, "without order: post-only and with a cap of 7200.00 instead of 3600.00 it "
              "fills now at 7200.00");
}
END_TEST

START_TEST(several_changes_stand_in_one_sentence)
{
    struct requirement needs;
    offer_gpu(2, 2 * price);
    struct exchange_command job = wanting("memory >= 40GiB and region = us", &needs);
    check_smallest_change(
        &job, "with a cap of 7200.00 instead of 3600.00, with memory >= 25700MB instead of "
              "memory >= 40GiB and without region = us it fills now at 7200.00");
}
END_TEST

START_TEST(nothing_is_suggested_that_would_be_other_work)
{
    struct requirement needs;
    offer_gpu(2, price);
    struct exchange_command job = wanting("program = ffmpeg", &needs);
    check_smallest_change(&job, "");
    /* A job with an image or a program of its own asks for these by itself. */
    static const char *const starts[] = {"arch = aarch64", "kind = gpu and image_config >= 1",
                                         "terminal >= 1", "api = opencl", "operation = fft"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        job = wanting(starts[i], &needs);
        check_smallest_change(&job, "");
    }
    job = wanting("memory >= 40GiB and region = us and cores >= 4 and isolation >= 1 and label = x",
                  &needs);
    check_smallest_change(&job, ""); /* nothing of it would be left */
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt.halted = true;
    apply(&halt);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    const struct exchange_need need = {.needs = &anything, .slots = 1, .cap_micro = 0};
    exchange_explain(market.exchange, &need, &why);
    ck_assert(why.is_halted);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(who_waits_in_line_is_told_how_many_come_before)
{
    offer_gpu(1, price);
    (void)submit(1, 100); /* runs */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    (void)submit(1, 100);
    struct exchange_command other = submit_of(1, 100);
    struct requirement needs;
    struct problem problem;
    ck_assert(requirement_parse("kind = cpu", &needs, &problem));
    other.submit.needs = &needs; /* never for this device */
    apply(&other);
    struct id128 last = submit(1, 100);
    ck_assert(exchange_explain_job(market.exchange, &last, EXCHANGE_ANY_PART, &why));
    ck_assert(why.has_ahead);
    ck_assert_uint_eq(why.ahead, 1);
    struct exchange_command better = submit_of(1, 100);
    better.submit.cap_micro = 2 * price;
    apply(&better);
    ck_assert(exchange_explain_job(market.exchange, &last, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.ahead, 2);
    ck_assert(exchange_explain_job(market.exchange, &better.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.ahead, 0);
}
END_TEST

SUITE("smallest change", set_up_many, tear_down, TEST(each_kind_of_change_has_its_words),
      TEST(a_cap_that_nobody_wrote_is_not_named),
      TEST(from_a_value_of_nothing_the_least_that_fills_is_named),
      TEST(of_fewer_slots_it_is_the_most_that_the_budget_covers),
      TEST(without_a_cap_fewer_slots_or_a_shorter_term_can_pay_more_for_each),
      TEST(of_a_budget_of_nothing_the_least_is_named_and_no_cap_that_it_lacks),
      TEST(a_list_goes_as_a_whole_and_is_named_so),
      TEST(an_order_type_that_keeps_it_from_filling_is_named),
      TEST(several_changes_stand_in_one_sentence),
      TEST(nothing_is_suggested_that_would_be_other_work),
      TEST(who_waits_in_line_is_told_how_many_come_before))
