/* The tests count the steps of reads: the same for the same state, in proportion to what there is
 * to look at, and none for handles that nobody has. */
#include "exchange/view/listings.h"
#include "exchange/view/why.h"

#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct id128 device_id(uint32_t number)
{
    struct id128 id = {{1}};
    memcpy(&id.bytes[4], &number, sizeof number);
    return id;
}

/* Offers so many devices, each with an ask of its own price. */
static void offer_many(uint32_t provider, uint32_t count)
{
    static struct exchange_device devices[64];
    static struct attribute facts[64];
    for (uint32_t i = 0; i < count; i++) {
        facts[i] = (struct attribute){.name = "memory", .number = i % 2};
        devices[i] = (struct exchange_device){
            .device = device_id(i), .slots = 4, .attributes = &facts[i], .attribute_count = 1};
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){devices, count};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    for (uint32_t i = 0; i < count; i++) {
        struct exchange_command ask = command(EXCHANGE_ASK, provider);
        ask.ask =
            (struct exchange_ask){.device = device_id(i), .slots = 4, .price_micro = price + i};
        apply(&ask);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
}

static bool see_order(void *context, const struct exchange_book_row *row)
{
    (void)row;
    ++*(size_t *)context;
    return true;
}

static uint64_t steps_of_book(size_t *ret_rows)
{
    uint32_t next;
    const uint64_t before = exchange_steps(market.exchange);
    *ret_rows = 0;
    ck_assert_int_eq(exchange_list_book(market.exchange, NULL, 0, see_order, ret_rows, &next),
                     LISTING_END);
    return exchange_steps(market.exchange) - before;
}

START_TEST(an_empty_book_is_no_work)
{
    size_t rows;
    ck_assert_uint_eq(steps_of_book(&rows), 0); /* whatever the handles that there may be */
    ck_assert_uint_eq(rows, 0);
}
END_TEST

START_TEST(the_book_costs_what_stands_in_it)
{
    size_t rows;
    offer_many(PROVIDER, 60);
    const uint64_t steps = steps_of_book(&rows);
    ck_assert_uint_eq(rows, 60);
    ck_assert_uint_ge(steps, 60);
    ck_assert_uint_le(steps, 120);
    ck_assert_uint_eq(steps_of_book(&rows), steps);
    reload(); /* a broker that starts again charges the same */
    ck_assert_uint_eq(steps_of_book(&rows), steps);
}
END_TEST

static uint64_t steps_of_quote(void)
{
    static struct exchange_explanation explanation;
    static struct exchange_quote quote;
    const struct exchange_need need = {.needs = &anything,
                                       .account = CONSUMER,
                                       .subtasks = 1,
                                       .slots = 1,
                                       .cap_micro = 1,
                                       .limit_ns = NS_PER_S,
                                       .term_ns = NS_PER_S};
    const uint64_t before = exchange_steps(market.exchange);
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    exchange_explain(market.exchange, &need, &explanation);
    return exchange_steps(market.exchange) - before;
}

START_TEST(a_quote_costs_in_proportion_to_the_devices)
{
    offer_many(PROVIDER, 6);
    const uint64_t few = steps_of_quote();
    offer_many(OTHER_PROVIDER, 54);
    const uint64_t many = steps_of_quote();
    ck_assert_uint_ge(few, 6 * 10);
    ck_assert_uint_ge(many, 5 * few);
    ck_assert_uint_le(many, 13 * few);
    ck_assert_uint_eq(steps_of_quote(), many);
}
END_TEST

static uint64_t steps_of_why(void)
{
    static struct exchange_why why;
    const uint64_t before = exchange_steps(market.exchange);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &why), WHY_OK);
    return exchange_steps(market.exchange) - before;
}

static uint64_t steps_of_donations(void)
{
    struct exchange_donated donated;
    const uint64_t before = exchange_steps(market.exchange);
    ck_assert(exchange_donated(market.exchange, CONSUMER, &donated));
    return exchange_steps(market.exchange) - before;
}

START_TEST(who_asks_why_pays_for_the_bids_that_wait)
{
    offer_many(PROVIDER, 1);
    const uint64_t before = steps_of_why();
    const uint64_t donated = steps_of_donations();
    for (int i = 0; i < 30; i++) {
        struct exchange_command job = submit_of(1, 1);
        job.submit.cap_micro = 1; /* less than anybody asks */
        apply(&job);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
    ck_assert_uint_ge(steps_of_why(), before + 30);
    ck_assert_uint_ge(steps_of_donations(), donated + 30);
}
END_TEST

START_TEST(a_job_that_waits_costs_a_look_at_each_device)
{
    offer_many(PROVIDER, 60);
    struct exchange_command job = submit_of(1, 1);
    job.submit.cap_micro = 1;
    apply(&job);
    const uint64_t before = exchange_steps(market.exchange);
    (void)job_row(job.id);
    ck_assert_uint_ge(exchange_steps(market.exchange) - before, 60);
}
END_TEST

START_TEST(no_read_changes_the_state)
{
    offer_many(PROVIDER, 20);
    const struct hash32 before = exchange_state_hash(market.exchange);
    size_t rows;
    (void)steps_of_book(&rows);
    (void)steps_of_quote();
    (void)steps_of_why();
    (void)steps_of_donations();
    const struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert(hash32_equal(&before, &after));
    check_hash();
}
END_TEST

SUITE("steps", set_up, tear_down, TEST(an_empty_book_is_no_work),
      TEST(the_book_costs_what_stands_in_it), TEST(a_quote_costs_in_proportion_to_the_devices),
      TEST(who_asks_why_pays_for_the_bids_that_wait),
      TEST(a_job_that_waits_costs_a_look_at_each_device), TEST(no_read_changes_the_state))
