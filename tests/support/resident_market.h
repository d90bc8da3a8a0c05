/* tests/support/resident_market.h makes a market by hand whose devices have memory of their own,
 * and hands in results of a size. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_RESIDENT_MARKET_H
#define BOURSE_TESTS_SUPPORT_RESIDENT_MARKET_H

#include "base/checked.h"
#include "exchange/state/records.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

static inline void begin_under(uint32_t rules)
{
    set_up_with(256, 4096, 16);
    set_rules(rules);
}

static inline void begin(void)
{
    begin_under(EXCHANGE_RULES);
}

/* Offers a device; without an interface it is one of cores. */
static inline void offer_device(uint32_t provider, uint32_t slots, int64_t memory_bytes,
                                bool has_interface)
{
    struct attribute attributes[] = {
        {.name = "kind", .is_text = true, .text = "cpu"},
        {.name = "memory", .number = memory_bytes},
        {.name = "api", .is_text = true, .text = "opencl"},
    };
    struct exchange_device device = {.device = {{(uint8_t)provider}},
                                     .slots = slots,
                                     .attributes = attributes,
                                     .attribute_count = has_interface ? 3 : 2,
                                     .label = "a device"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_REJECT), 0);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask =
        (struct exchange_ask){.device = device.device, .slots = slots, .price_micro = price / 100};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_REJECT), 0);
}

static inline struct id128 submit_graph(uint32_t subtasks, const struct exchange_graph *graph)
{
    struct exchange_command made = submit_of(subtasks, 900);
    made.submit.graph = graph;
    made.submit.retries = 5;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

/* Hands in a result that leaves files of so many bytes. */
static inline void leave(uint32_t provider, struct id128 job, struct exchange_work work,
                         uint8_t outcome, int64_t bytes)
{
    struct exchange_result one = {
        .job = job,
        .index = work.index,
        .attempt = work.attempt,
        .lease = work.lease,
        .device = {{(uint8_t)provider}},
        .manifest = {{9}},
        .outcome = outcome,
        .busy_ns = 10 * NS_PER_MS,
        .given = (const uint8_t *)"out",
        .given_length = 3,
        .output_bytes = (uint64_t)bytes,
    };
    struct exchange_command results = command(EXCHANGE_RESULTS, provider);
    results.results = (struct exchange_results){.results = &one, .count = 1};
    results.log_time_ns = market.now_ns;
    apply(&results);
}

#endif
