/* Why no work comes: the demand of a market, seen from one ask. */
#include "exchange/view/why.h"

#include "base/problem.h"
#include "exchange/lifecycle.h"
#include "formats/requirement.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIB = 1 << 30 };

static struct exchange_why why; /* large */

static void set_up_many(void)
{
    set_up_with(64, 4096, 64);
}

static void ask_why(uint32_t provider)
{
    ck_assert_int_eq(exchange_explain_ask(market.exchange, provider, 0, &why), WHY_OK);
}

/* A job of the consumer's that needs this, as job files write it. */
static struct exchange_command wanting(const char *text, struct requirement *needs)
{
    struct problem problem = {""};
    ck_assert_msg(requirement_parse(text, needs, &problem), "%s", problem.text);
    struct exchange_command job = submit_of(1, 1);
    job.submit.needs = needs;
    return job;
}

static void want(const char *text)
{
    struct requirement needs;
    struct exchange_command job = wanting(text, &needs);
    apply(&job);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

/* A device with a gigabyte of memory and two programs. */
static void offer_figures(uint32_t provider, uint32_t slots, int64_t at_price, int64_t term_ns)
{
    static const struct attribute facts[] = {
        {.name = "kind", .is_text = true, .text = "cpu"},
        {.name = "memory", .number = GIB},
        {.name = "program", .is_text = true, .text = "sh"},
        {.name = "program", .is_text = true, .text = "xz"},
    };
    struct exchange_device device = {.device = {{(uint8_t)provider}},
                                     .slots = slots,
                                     .attributes = facts,
                                     .attribute_count = sizeof facts / sizeof facts[0],
                                     .label = "attic"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask = (struct exchange_ask){
        .device = device.device, .slots = slots, .price_micro = at_price, .max_term_ns = term_ns};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

START_TEST(a_provider_without_a_device_is_told_so)
{
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.devices, 0);
    ck_assert_int_eq(why.state, PROVIDER_AWAY);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 1, &why), WHY_NO_DEVICE);
    offer(PROVIDER, 1, price);
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.devices, 1);
    ck_assert_int_eq(why.state, PROVIDER_PRESENT);
    ck_assert_str_eq(why.label, "a cpu");
    ck_assert_uint_eq(why.free, 1);
    ck_assert_uint_eq(why.bids, 0);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 1, &why), WHY_NO_DEVICE);
}
END_TEST

START_TEST(only_bids_that_want_more_are_demand)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100); /* runs here: nothing is left to want */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.bids, 0);
    ck_assert_uint_eq(why.leased, 1);
    ck_assert_uint_eq(why.free, 0);
    (void)submit(2, 100); /* another waits */
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.bids, 1);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
}
END_TEST

START_TEST(the_price_that_would_do_is_the_best_limit)
{
    offer(PROVIDER, 1, 3 * price);
    (void)submit(1, 100);
    struct exchange_command better = submit_of(1, 100);
    better.submit.cap_micro = 2 * price;
    apply(&better);
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.bids, 2);
    ck_assert_uint_eq(why.lasting, 2);
    ck_assert_uint_eq(why.paying, 0);
    ck_assert_int_eq(why.best_limit_micro, 2 * price);
    ck_assert_int_eq(why.fills_at_micro, 2 * price);
    ck_assert_uint_eq(why.ahead, 0);
    offer(PROVIDER, 1, why.best_limit_micro);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1); /* it was true */
}
END_TEST

START_TEST(cheaper_and_earlier_asks_come_before_it)
{
    offer(PROVIDER, 1, 3 * price);
    offer(OTHER_PROVIDER, 1, 3 * price);
    ask_why(OTHER_PROVIDER);
    ck_assert(why.has_ahead);
    ck_assert_uint_eq(why.ahead, 1); /* of one kind, though nobody bids */
    ck_assert_int_eq(why.fills_at_micro, -1);
    offer(PROVIDER, 1, 4 * price);
    ask_why(OTHER_PROVIDER);
    ck_assert_uint_eq(why.ahead, 0);
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.ahead, 1);
}
END_TEST

START_TEST(the_term_that_would_do_is_the_longest_wanted)
{
    offer_figures(PROVIDER, 1, price, NS_PER_S);
    (void)submit(1, 100);
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.lasting, 0);
    ck_assert_int_eq(why.best_limit_micro, -1);
    offer_figures(PROVIDER, 1, price, why.longest_term_ns);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
}
END_TEST

START_TEST(a_requirement_comes_with_what_to_change)
{
    static const struct {
        const char *needs, *predicate;
        uint32_t changes;
        int64_t have; /* -1: no figure */
    } cases[] = {
        {"kind = gpu", "kind = \"gpu\"", 1, -1},
        {"memory >= 2GiB", "memory >= 2147483648", 1, GIB},
        {"kind = gpu and memory >= 2GiB", "kind = \"gpu\"", 2, -1},
        {"kind = cpu and memory >= 2GiB", "memory >= 2147483648", 1, GIB},
        {"(kind = gpu and memory >= 2GiB) or memory >= 4GiB", "memory >= 4294967296", 1, GIB},
        {"not program = xz", "not program = \"xz\"", 1, -1},
        {"not (program = xz or kind = gpu)", "not program = \"xz\"", 1, -1},
        {"not (program = xz and program = sh)", "not program = \"xz\"", 1, -1},
        {"program = ffmpeg", "program = \"ffmpeg\"", 1, -1},
        {"cores >= 2", "cores >= 2", 1, -1},
    };
    offer_figures(PROVIDER, 1, price, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct requirement needs;
        struct exchange_command job = wanting(cases[i].needs, &needs);
        apply(&job);
        ask_why(PROVIDER);
        ck_assert_uint_eq(why.bids, 1);
        ck_assert_uint_eq(why.fitting, 0);
        ck_assert_uint_eq(why.refusal_count, 1);
        const struct exchange_why_refusal *refusal = &why.refusals[0];
        ck_assert_str_eq(refusal->predicate, cases[i].predicate);
        ck_assert_msg(refusal->changes == cases[i].changes, "%s: %u", cases[i].needs,
                      refusal->changes);
        ck_assert_int_eq(refusal->has_have, cases[i].have >= 0);
        ck_assert(!refusal->has_have || refusal->have == cases[i].have);
        ck_assert_int_eq(refusal->limit_micro, price);
        struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
        cancel.cancel_job.job = job.id;
        apply(&cancel);
    }
}
END_TEST

START_TEST(the_nearest_comes_first_and_the_many_before_the_few)
{
    offer_figures(PROVIDER, 1, price, 0);
    want("kind = gpu and memory >= 2GiB and cores >= 9");
    want("memory >= 8GiB");
    want("memory >= 4GiB");
    want("memory >= 4GiB");
    want("kind = gpu and memory >= 2GiB");
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.bids, 5);
    ck_assert_uint_eq(why.refusal_count, 4);
    ck_assert_str_eq(why.refusals[0].predicate, "memory >= 4294967296");
    ck_assert_uint_eq(why.refusals[0].bids, 2);
    ck_assert_str_eq(why.refusals[1].predicate, "memory >= 8589934592");
    ck_assert_uint_eq(why.refusals[2].changes, 2);
    ck_assert_uint_eq(why.refusals[3].changes, 3);
}
END_TEST

START_TEST(of_more_requirements_than_there_is_room_for_the_nearest_are_kept)
{
    offer_figures(PROVIDER, 1, price, 0);
    for (int i = 0; i < EXCHANGE_WHY_REFUSALS + 4; i++) {
        char text[96];
        (void)snprintf(text, sizeof text, "kind = gpu and cores >= %d", i + 2);
        want(text);
    }
    want("memory >= 4GiB");
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.bids, EXCHANGE_WHY_REFUSALS + 5);
    ck_assert_uint_eq(why.refusal_count, EXCHANGE_WHY_REFUSALS);
    ck_assert_uint_eq(why.refusals[0].changes, 1);
    ck_assert_uint_eq(why.refusals[EXCHANGE_WHY_REFUSALS - 1].changes, 2);
    ck_assert(!why.is_partial);
}
END_TEST

START_TEST(a_subtask_that_is_too_wide_is_a_change_of_its_own)
{
    offer_figures(PROVIDER, 2, price, 0);
    struct exchange_command wide = submit_of(1, 100);
    wide.submit.slots = 3;
    apply(&wide);
    ask_why(PROVIDER);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_str_eq(why.refusals[0].predicate, "slots >= 3");
    ck_assert_int_eq(why.refusals[0].have, 2);
    ck_assert_uint_eq(why.refusals[0].changes, 1);
}
END_TEST

START_TEST(halt_and_freeze_are_named)
{
    offer(PROVIDER, 1, price);
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt.halted = true;
    apply(&halt);
    ask_why(PROVIDER);
    ck_assert(why.is_halted);
    ck_assert(!why.is_frozen);
    struct exchange_account_row row;
    ck_assert(exchange_account(market.exchange, PROVIDER, &row));
    struct exchange_command freeze = command(EXCHANGE_FREEZE, OPERATOR);
    freeze.freeze = (struct exchange_freeze){.account = row.key, .frozen = true};
    apply(&freeze);
    ask_why(PROVIDER);
    ck_assert(why.is_frozen);
    ck_assert_int_eq(why.price_micro, -1); /* freezing took the ask */
}
END_TEST

START_TEST(a_read_leaves_no_trace)
{
    offer_figures(PROVIDER, 1, price, 0);
    want("memory >= 4GiB");
    struct hash32 before = exchange_state_hash_walk(market.exchange);
    ask_why(PROVIDER);
    struct hash32 after = exchange_state_hash_walk(market.exchange);
    ck_assert_int_eq(memcmp(&before, &after, sizeof before), 0);
}
END_TEST

SUITE("why", set_up_many, tear_down, TEST(a_provider_without_a_device_is_told_so),
      TEST(only_bids_that_want_more_are_demand), TEST(the_price_that_would_do_is_the_best_limit),
      TEST(cheaper_and_earlier_asks_come_before_it),
      TEST(the_term_that_would_do_is_the_longest_wanted),
      TEST(a_requirement_comes_with_what_to_change),
      TEST(the_nearest_comes_first_and_the_many_before_the_few),
      TEST(of_more_requirements_than_there_is_room_for_the_nearest_are_kept),
      TEST(a_subtask_that_is_too_wide_is_a_change_of_its_own), TEST(halt_and_freeze_are_named),
      TEST(a_read_leaves_no_trace))
