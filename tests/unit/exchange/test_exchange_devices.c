/* Devices of an exchange: how many kinds of them a provider may use, what simulated ones may do,
 * and what an agent hears of their asks. */
#include "base/checked.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

/* Devices that differ in all they say. */
static void advertise_kinds(uint32_t provider, int64_t from, size_t count)
{
    static struct attribute attributes[8];
    static struct exchange_device devices[8];
    for (size_t i = 0; i < count; i++) {
        attributes[i] = (struct attribute){.name = "memory", .number = from + (int64_t)i};
        devices[i] = (struct exchange_device){.device = {{(uint8_t)(i + 1)}},
                                              .slots = 1,
                                              .attributes = &attributes[i],
                                              .attribute_count = 1};
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){devices, count};
    apply(&advertise);
}

START_TEST(a_simulated_device_does_no_work_for_who_does_not_ask_for_one)
{
    struct attribute simulated = {.name = "simulated", .number = 1};
    struct exchange_device device = {
        .device = {{1}}, .slots = 1, .attributes = &simulated, .attribute_count = 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct id128 job = submit(1, 100); /* rests before the ask, as one does after it */
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_NO_DEVICE);

    struct exchange_need need = {
        .needs = &anything, .account = CONSUMER, .subtasks = 1, .slots = 1, .cap_micro = -1};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.devices, 1);
    ck_assert_uint_eq(why.simulated, 1);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_uint_eq(why.simulated_fitting, 1);
    ck_assert_uint_eq(why.predicate_count, 0);

    struct requirement asks = {.count = 1};
    asks.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = simulated};
    need.needs = &asks;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.simulated, 0);
    ck_assert_uint_eq(why.predicate_count, 1); /* its own */
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.free, 1);
}
END_TEST

/* The result of `work`, done well, that says of itself whether a model was the device. */
static void result_saying(struct id128 job, struct exchange_work work, bool is_simulated)
{
    struct exchange_result one = {.job = job,
                                  .index = work.index,
                                  .attempt = work.attempt,
                                  .lease = work.lease,
                                  .device = {{PROVIDER}},
                                  .manifest = {{9}},
                                  .outcome = OUTCOME_OK,
                                  .is_simulated = is_simulated,
                                  .busy_ns = NS_PER_S};
    struct exchange_command results = command(EXCHANGE_RESULTS, PROVIDER);
    results.results = (struct exchange_results){.results = &one, .count = 1};
    market.now_ns += NS_PER_S;
    apply(&results);
}

static uint32_t status_of_result(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_RESULT) {
            return effect->ledger.status;
        }
    }
    ck_abort_msg("no result was settled");
    return 0;
}

START_TEST(a_result_that_hides_its_simulation_is_not_accepted)
{
    struct attribute attributes[] = {
        {.name = "instrument", .is_text = true, .text = "sim.tpu.google.v5p"}};
    struct exchange_device device = {
        .device = {{PROVIDER}}, .slots = 1, .attributes = attributes, .attribute_count = 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{PROVIDER}}, .slots = 1, .price_micro = price};
    apply(&ask);
    struct requirement needs = {.count = 1};
    needs.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = attributes[0]};
    struct exchange_command made = submit_of(3, 100);
    made.submit.needs = &needs;
    apply(&made);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    struct exchange_lease_row lease;
    ck_assert_uint_eq(exchange_leases(market.exchange, &made.id, &lease, 1), 1);
    ck_assert(lease.is_simulated);

    result_saying(made.id, first, false);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_FAILED_UNPAID);
    ck_assert_uint_eq(job_row(made.id).accepted, 0);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    /* The device counts as it was when it was bought, not as it is called since. */
    attributes[0] = (struct attribute){.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_command anew = command(EXCHANGE_ADVERTISE, PROVIDER);
    anew.advertise = advertise.advertise;
    apply(&anew);
    result_saying(made.id, second, true);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_ACCEPTED);
    ck_assert_int_gt(balance(PROVIDER).available_micro, 0);
    check_hash();
}
END_TEST

START_TEST(a_real_device_has_no_simulated_results)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100); /* one runs, one is queued behind it */
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    struct exchange_lease_row lease;
    ck_assert_uint_eq(exchange_leases(market.exchange, &job, &lease, 1), 1);
    ck_assert(!lease.is_simulated);
    result_saying(job, first, true);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_FAILED_UNPAID);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    result_saying(job, second, false);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_ACCEPTED);
}
END_TEST

/* The exchange does not know which session of the account placed or cancelled an ask: the agent
 * sorts its own out. */
START_TEST(an_agent_hears_what_becomes_of_its_devices_asks)
{
    advertise_kinds(PROVIDER, 1, 1);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    const struct id128 first = ask.id;
    struct exchange_ask_note note = nth(EFFECT_ASK, 0)->ask;
    ck_assert_uint_eq(nth(EFFECT_ASK, 0)->account, PROVIDER);
    ck_assert(note.stands);
    ck_assert(id128_equal(&note.order, &first));
    ck_assert_int_eq(note.price_micro, price);

    ask = command(EXCHANGE_ASK, PROVIDER); /* the device has one ask: this one replaces it */
    ask.ask = (struct exchange_ask){
        .device = {{1}}, .slots = 1, .price_micro = 7, .good_till_ns = market.now_ns + NS_PER_S};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ASK), 1);
    note = nth(EFFECT_ASK, 0)->ask;
    ck_assert(note.stands);
    ck_assert(id128_equal(&note.order, &ask.id));
    ck_assert_int_eq(note.good_till_ns, ask.ask.good_till_ns);
    market.now_ns += NS_PER_S;
    tick();
    ck_assert_uint_eq(count_of(EFFECT_ASK), 1);
    note = nth(EFFECT_ASK, 0)->ask;
    ck_assert(!note.stands);
    ck_assert(id128_equal(&note.order, &ask.id));

    ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_ORDER, PROVIDER);
    cancel.cancel_order.order = ask.id;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_ASK), 1);
    ck_assert(!nth(EFFECT_ASK, 0)->ask.stands);

    ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    advertise_kinds(PROVIDER, 1, 0); /* its own doing; and no ask can be placed from here on */
    ck_assert_uint_eq(count_of(EFFECT_ASK), 0);
    ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    check_rejected(REJECT_DEVICE);
}
END_TEST

START_TEST(a_provider_uses_only_so_many_kinds_of_device)
{
    advertise_kinds(PROVIDER, 1, 3);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "cells_per_account");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 2);
    advertise_kinds(PROVIDER, 1, 2); /* nothing is left of the refused ones */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    advertise_kinds(OTHER_PROVIDER, 1, 2);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    advertise_kinds(OTHER_PROVIDER, 1, 3); /* to have them with another does not make them free */
    check_rejected(REJECT_LIMIT);
    advertise_kinds(PROVIDER, 1, 0);
    advertise_kinds(OTHER_PROVIDER, 1, 0);
    for (int64_t i = 0; i < 200; i += 2) { /* more than there is room for, one after another */
        advertise_kinds(PROVIDER, i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        advertise_kinds(PROVIDER, i, 0);
    }
    check_hash();
}
END_TEST

START_TEST(devices_advertised_anew_make_room_for_themselves)
{
    advertise_kinds(PROVIDER, 1, 2);
    for (int64_t i = 0; i < 5;
         i++) { /* the same devices, measured again: all it may have, each time */
        advertise_kinds(PROVIDER, 10 * i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
    advertise_kinds(PROVIDER, 10, 3);
    check_rejected(REJECT_LIMIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 3);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 2);
}
END_TEST

START_TEST(a_device_that_a_lease_still_holds_counts)
{
    advertise_kinds(PROVIDER, 1, 2);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    (void)submit(2, 100);
    ck_assert_ptr_nonnull(nth(EFFECT_LEASE_GRANT, 0));
    advertise_kinds(PROVIDER, 10,
                    2); /* the same device: the lease goes on, its old kind does not */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    const struct exchange_device other[2] = {{.device = {{100}}, .slots = 1},
                                             {.device = {{101}}, .slots = 1}};
    struct exchange_device devices[2] = {other[0], other[1]};
    struct attribute memory[2] = {{.name = "memory", .number = 50},
                                  {.name = "memory", .number = 51}};
    for (size_t i = 0; i < 2; i++) {
        devices[i].attributes = &memory[i];
        devices[i].attribute_count = 1;
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 2};
    apply(&advertise); /* with the one that is leased, and no longer said, these are three */
    check_rejected(REJECT_LIMIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 3);
    advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 1};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

START_TEST(what_another_account_keeps_in_use_is_not_charged_to_the_first)
{
    for (int64_t i = 0; i < 3; i++) { /* whoever was first with a kind no longer has it */
        advertise_kinds(PROVIDER, 10 * i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        advertise_kinds(OTHER_PROVIDER, 10 * i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
    advertise_kinds(PROVIDER, 100, 2);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

START_TEST(a_device_with_every_attribute_and_an_instrument_survives_a_snapshot)
{
    static struct attribute attributes[ATTRIBUTE_COUNT_MAX + 1];
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        attributes[i] = (struct attribute){.name = "program", .number = (int64_t)i};
    }
    struct exchange_device device = {.device = {{1}},
                                     .slots = 1,
                                     .attributes = attributes,
                                     .attribute_count = ATTRIBUTE_COUNT_MAX + 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    reload();
}
END_TEST

SUITE("exchange: devices", set_up, tear_down,
      TEST(a_simulated_device_does_no_work_for_who_does_not_ask_for_one),
      TEST(a_provider_uses_only_so_many_kinds_of_device),
      TEST(an_agent_hears_what_becomes_of_its_devices_asks),
      TEST(a_result_that_hides_its_simulation_is_not_accepted),
      TEST(a_real_device_has_no_simulated_results),
      TEST(devices_advertised_anew_make_room_for_themselves),
      TEST(a_device_that_a_lease_still_holds_counts),
      TEST(what_another_account_keeps_in_use_is_not_charged_to_the_first),
      TEST(a_device_with_every_attribute_and_an_instrument_survives_a_snapshot))
