/* Bids that say what a unit of work is worth: who wins, what is paid, held and refused, and what is
 * told of them. */
#include "broker/answer/smallest_change.h"
#include "exchange/view/listings.h"
#include "exchange/view/why.h"
#include "tests/support/hand_market.h"

#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- helpers */

static struct exchange_explanation why; /* large */

static void set_up_many(void)
{
    set_up_with(64, 4096, 64);
}

/* A device that does so many operations a second in bf16; 0: it does not say. */
static void offer_speed(uint32_t provider, uint32_t slots, int64_t at_price, int64_t operations)
{
    const struct attribute facts[] = {
        {.name = "instrument", .is_text = true, .text = "gpu.test"},
        {.name = "bf16", .number = operations},
    };
    struct exchange_device device = {.device = {{(uint8_t)provider}},
                                     .slots = slots,
                                     .attributes = facts,
                                     .attribute_count = operations == 0 ? 1 : 2,
                                     .label = "a gpu"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask =
        (struct exchange_ask){.device = device.device, .slots = slots, .price_micro = at_price};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static struct exchange_command worth(int64_t value_micro, int64_t budget_credits)
{
    struct exchange_command made = submit_of(1, budget_credits);
    made.submit.cap_micro = value_micro;
    made.submit.rate = RATE_BF16;
    return made;
}

static struct id128 submit_worth(int64_t value_micro)
{
    struct exchange_command made = worth(value_micro, 200);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static int64_t granted_price(void)
{
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    return nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro;
}

static struct exchange_command replace_of(struct id128 order, int64_t limit_micro, uint32_t rate)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, CONSUMER);
    made.replace = (struct exchange_replace){.order = order,
                                             .part = EXCHANGE_ANY_PART,
                                             .has_price = true,
                                             .price_micro = limit_micro,
                                             .rate = rate};
    return made;
}

static void explain(struct id128 job)
{
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
}

/* ---------------------------------------------------------------- fills */

START_TEST(the_dearer_and_faster_one_wins_by_worth)
{
    offer_speed(PROVIDER, 1, price, RATE_UNIT);
    offer_speed(OTHER_PROVIDER, 1, 2 * price, 3 * RATE_UNIT);
    submit_worth(price);
    ck_assert_int_eq(granted_price(), 2 * price);
    ck_assert_uint_eq(nth(EFFECT_LEASE_GRANT, 0)->account, OTHER_PROVIDER);
    submit_worth(price);
    ck_assert_uint_eq(nth(EFFECT_LEASE_GRANT, 0)->account, PROVIDER);
}
END_TEST

START_TEST(what_waits_pays_its_limit_there_and_escrow_is_of_that_price)
{
    struct id128 job = submit_worth(price + 1);
    offer_speed(PROVIDER, 1, 0, 0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0); /* free, but of no known speed */
    reload();
    offer_speed(OTHER_PROVIDER, 1, 1, RATE_UNIT / 2);
    ck_assert_int_eq(granted_price(), price / 2);                         /* rounded down */
    ck_assert_int_eq(job_row(job).reserved_micro, 10 * MICRO_PER_CREDIT); /* 20 s */
    reload();
}
END_TEST

START_TEST(no_fill_is_above_the_price_band)
{
    submit_worth(INT64_MAX);
    struct exchange_command rich = submit_of(1, 300);
    rich.submit.cap_micro = 10 * price;
    apply(&rich);
    offer_speed(PROVIDER, 1, price, INT64_MAX);
    ck_assert_int_eq(granted_price(), 10 * price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
}
END_TEST

START_TEST(the_budget_binds_whatever_the_work_is_worth)
{
    struct exchange_command poor = worth(9 * price, 10);
    apply(&poor);
    offer_speed(PROVIDER, 1, price, RATE_UNIT); /* 20 s at 9 credits a second: more than there is */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_int_eq(job_row(poor.id).reason, JOB_REASON_BUDGET);
}
END_TEST

START_TEST(a_lease_above_what_it_is_worth_now_is_not_renewed)
{
    offer_speed(PROVIDER, 1, price, RATE_UNIT / 2);
    struct exchange_command made = worth(2 * price, 300);
    made.submit.subtasks = 100;
    apply(&made);
    ck_assert_int_eq(granted_price(), price);
    struct exchange_command lower = replace_of(made.id, 2 * price - 2, RATE_BF16);
    apply(&lower);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    bool has_ended = false;
    for (int i = 0; i < 200 && !has_ended; i++) {
        market.now_ns = exchange_next_deadline_ns(market.exchange);
        tick();
        ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 0);
        has_ended = count_of(EFFECT_LEASE_END) > 0;
    }
    ck_assert(has_ended);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_PRICE);
}
END_TEST

/* ---------------------------------------------------------------- bounds */

START_TEST(what_is_out_of_bounds_is_refused_without_a_trace)
{
    static const struct requirement needs = {0};
    const struct {
        int64_t value;
        uint32_t rate;
        enum reject_code code;
        const char *field;
    } rows[] = {
        {-1, RATE_BF16, REJECT_PRICE, "value.micro"},
        {INT64_MIN, RATE_INT8, REJECT_PRICE, "value.micro"},
        {1, RATES, REJECT_REQUIREMENT, "value.rate"},
        {1, UINT32_MAX, REJECT_REQUIREMENT, "value.rate"},
    };
    offer_speed(PROVIDER, 4, price, RATE_UNIT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned in_part = 0; in_part < 2; in_part++) {
            struct exchange_command made = submit_of(2, 100);
            struct exchange_part part = {.subtasks = 1,
                                         .needs = &needs,
                                         .slots = 1,
                                         .cap_micro = rows[i].value,
                                         .rate = rows[i].rate,
                                         .limit_ns = NS_PER_S,
                                         .term_ns = 2 * NS_PER_S};
            if (in_part == 1) {
                made.submit.parts = &part;
                made.submit.part_count = 1;
            } else {
                made.submit.cap_micro = rows[i].value;
                made.submit.rate = rows[i].rate;
            }
            apply(&made);
            check_rejected(rows[i].code);
            const char *field = nth(EFFECT_REJECT, 0)->reject.field;
            ck_assert_str_eq(field + (in_part == 1 ? strlen("parts.") : 0), rows[i].field);
        }
    }
    /* Refused ids are remembered, and nothing else. */
    struct exchange_job_row row;
    ck_assert_uint_eq(exchange_jobs(market.exchange, CONSUMER, &row, 1), 0);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    check_hash();
}
END_TEST

START_TEST(a_refusal_says_that_its_limit_is_by_value)
{
    static const struct requirement needs = {0};
    offer_speed(PROVIDER, 4, price, RATE_UNIT);
    struct exchange_command made = worth(2 * price, 200);
    made.submit.type = EXCHANGE_POST_ONLY;
    for (unsigned again = 0; again < 2; again++) { /* is answered alike */
        apply(&made);
        check_rejected(REJECT_WOULD_TRADE);
        ck_assert_int_eq(nth(EFFECT_REJECT, 0)->rate, RATE_BF16);
        ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 2 * price);
        made.index = command(EXCHANGE_SUBMIT, CONSUMER).index;
    }
    struct exchange_part part = {.subtasks = 1,
                                 .needs = &needs,
                                 .slots = 1,
                                 .cap_micro = 3 * price,
                                 .rate = RATE_BF16,
                                 .limit_ns = NS_PER_S,
                                 .term_ns = 2 * NS_PER_S};
    made = submit_of(2, 200);
    made.submit.type = EXCHANGE_POST_ONLY;
    made.submit.cap_micro = price / 2;
    made.submit.parts = &part;
    made.submit.part_count = 1;
    apply(&made);
    check_rejected(REJECT_WOULD_TRADE);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "parts.cap_micro");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->rate, RATE_BF16);
    made = submit_of(1, 200); /* per slot-hour */
    made.submit.type = EXCHANGE_POST_ONLY;
    made.submit.cap_micro = 2 * price;
    apply(&made);
    check_rejected(REJECT_WOULD_TRADE);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->rate, RATE_NONE);
}
END_TEST

START_TEST(nothing_and_all_there_is_are_values)
{
    offer_speed(PROVIDER, 1, 0, RATE_UNIT);
    submit_worth(0);
    ck_assert_int_eq(granted_price(), 0); /* a donation */
    offer_speed(OTHER_PROVIDER, 1, 1, RATE_UNIT);
    submit_worth(0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    submit_worth(INT64_MAX);
    ck_assert_int_eq(granted_price(), 1);
    reload();
}
END_TEST

START_TEST(a_limit_is_replaced_in_its_own_unit)
{
    offer_speed(PROVIDER, 1, price, RATE_UNIT / 2);
    struct id128 job = submit_worth(price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0); /* half of it there */
    struct exchange_command plain = replace_of(job, 2 * price, RATE_NONE);
    apply(&plain);
    check_rejected(REJECT_PRICE);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "value.rate");
    struct exchange_command other = replace_of(job, 2 * price, RATE_INT8);
    apply(&other);
    check_rejected(REJECT_PRICE);
    struct exchange_command low = replace_of(job, -1, RATE_BF16);
    apply(&low);
    check_rejected(REJECT_PRICE);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "value.micro");
    struct exchange_command good = replace_of(job, 2 * price, RATE_BF16);
    apply(&good);
    ck_assert_int_eq(granted_price(), price);

    struct exchange_command cheap = submit_of(1, 100);
    apply(&cheap);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command by_value = replace_of(cheap.id, price, RATE_BF16);
    apply(&by_value);
    check_rejected(REJECT_PRICE);
}
END_TEST

/* ---------------------------------------------------------------- what is told */

START_TEST(explain_says_what_value_would_do)
{
    char text[512];
    offer_speed(PROVIDER, 1, price, RATE_UNIT / 2);
    offer_speed(OTHER_PROVIDER, 1, 1, 0);
    struct id128 job = submit_worth(price);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_PRICE);
    explain(job);
    ck_assert_uint_eq(why.devices, 2);
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.affordable, 0);
    ck_assert_int_eq(why.rate, RATE_BF16);
    ck_assert_int_eq(why.fills_at_micro, 2 * price);
    ck_assert_uint_eq(why.predicate_count, 1);
    ck_assert_str_eq(why.predicates[0].text, "bf16 > 0");
    ck_assert_uint_eq(why.predicates[0].failing, 1);
    smallest_change_text(&why.smallest_change, text, sizeof text);
    ck_assert_str_eq(text, "with a value of 7.20 per bf16 TFLOP-hour instead of 3.60 per bf16 "
                           "TFLOP-hour it fills now at 3600.00");
    struct exchange_command raise = replace_of(job, why.smallest_change.cap_micro, RATE_BF16);
    apply(&raise);
    ck_assert_int_eq(granted_price(), price);
}
END_TEST

START_TEST(a_device_too_slow_for_any_value_is_no_change_that_helps)
{
    offer_speed(PROVIDER, 1, price, 1);
    struct id128 job = submit_worth(INT64_MAX);
    explain(job);
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(who_is_worth_more_there_comes_before_it)
{
    offer_speed(PROVIDER, 1, price, 3 * RATE_UNIT);
    struct exchange_command holder = worth(price, 300);
    holder.submit.subtasks = 100;
    apply(&holder);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    struct exchange_command more = submit_of(1, 100);
    more.submit.cap_micro = 3 * price + 1;
    apply(&more);
    struct exchange_command less = submit_of(1, 100);
    less.submit.cap_micro = 3 * price - 1;
    apply(&less);
    submit_worth(price + 1);
    struct id128 job = submit_worth(price);
    explain(job);
    ck_assert(why.has_ahead);
    ck_assert_uint_eq(why.ahead, 3); /* the holder too: it wants more */
    explain(less.id);
    ck_assert_uint_eq(why.ahead, 4);
}
END_TEST

START_TEST(asks_come_before_one_by_price_and_by_work)
{
    offer_speed(PROVIDER, 1, price, RATE_UNIT);
    offer_speed(OTHER_PROVIDER, 1, 2 * price, 3 * RATE_UNIT);
    static struct exchange_why seen;
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &seen), WHY_OK);
    ck_assert_uint_eq(seen.ahead, 0); /* nobody asks for both */
    struct exchange_command bid = worth(1, 200);
    apply(&bid);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &seen), WHY_OK);
    ck_assert(seen.has_ahead);
    ck_assert_uint_eq(seen.ahead, 1); /* dearer, and cheaper by work */
    ck_assert_int_eq(exchange_explain_ask(market.exchange, OTHER_PROVIDER, 0, &seen), WHY_OK);
    ck_assert_uint_eq(seen.ahead, 0);
    struct exchange_command plain = submit_of(1, 100);
    plain.submit.cap_micro = 1;
    apply(&plain);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, OTHER_PROVIDER, 0, &seen), WHY_OK);
    ck_assert_uint_eq(seen.ahead, 1); /* a bid by price takes the other one first */
}
END_TEST

START_TEST(a_quote_shows_for_each_kind_what_the_limit_is)
{
    offer_speed(PROVIDER, 2, price, RATE_UNIT);
    offer_speed(OTHER_PROVIDER, 1, 4 * price, 3 * RATE_UNIT);
    static const struct requirement needs = {0};
    const struct exchange_need need = {.needs = &needs,
                                       .account = CONSUMER,
                                       .subtasks = 1,
                                       .slots = 1,
                                       .cap_micro = price,
                                       .rate = RATE_BF16,
                                       .limit_ns = 10 * NS_PER_S,
                                       .term_ns = 20 * NS_PER_S,
                                       .expect_ns = NS_PER_S};
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.slots_now, 2);
    ck_assert_int_eq(quote.price_low_micro, price);
    ck_assert_int_eq(quote.price_high_micro, price);
    ck_assert_int_eq(quote.expected_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(quote.level_count, 2);
    ck_assert_str_eq(quote.levels[0].instrument, "gpu.test");
    ck_assert_int_eq(quote.levels[0].limit_micro, price);
    ck_assert_int_eq(quote.levels[1].price_micro, 4 * price); /* told, though it is too dear */
    ck_assert_int_eq(quote.levels[1].limit_micro, 3 * price);
}
END_TEST

static bool see_order(void *context, const struct exchange_order_row *row)
{
    *(struct exchange_order_row *)context = *row;
    return true;
}

static bool see_bid(void *context, const struct exchange_book_row *row)
{
    if (row->is_bid) {
        *(struct exchange_book_row *)context = *row;
    }
    return true;
}

START_TEST(listings_say_in_which_unit_a_limit_is)
{
    struct exchange_order_row order = {0};
    struct exchange_book_row bid = {0};
    uint64_t next;
    uint32_t next_row;
    submit_worth(price);
    ck_assert_int_eq(exchange_list_orders(market.exchange, CONSUMER, 0, see_order, &order, &next),
                     LISTING_END);
    ck_assert_int_eq(order.price_micro, price);
    ck_assert_int_eq(order.rate, RATE_BF16);
    ck_assert_int_eq(exchange_list_book(market.exchange, NULL, 0, see_bid, &bid, &next_row),
                     LISTING_END);
    ck_assert_int_eq(bid.price_micro, price);
    ck_assert_int_eq(bid.rate, RATE_BF16);
}
END_TEST

START_TEST(a_provider_is_told_what_its_work_would_bring)
{
    static struct exchange_why seen; /* large */
    submit_worth(price);
    offer_speed(PROVIDER, 1, price, RATE_UNIT / 2);
    offer_speed(OTHER_PROVIDER, 1, 1, 0);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &seen), WHY_OK);
    ck_assert_uint_eq(seen.fitting, 1);
    ck_assert_uint_eq(seen.paying, 0);
    ck_assert_int_eq(seen.best_limit_micro, price / 2);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, OTHER_PROVIDER, 0, &seen), WHY_OK);
    ck_assert_uint_eq(seen.fitting, 0);
    ck_assert_uint_eq(seen.refusal_count, 1);
    ck_assert_str_eq(seen.refusals[0].predicate, "bf16 > 0");
}
END_TEST

SUITE("bids by value", set_up_many, tear_down, TEST(the_dearer_and_faster_one_wins_by_worth),
      TEST(what_waits_pays_its_limit_there_and_escrow_is_of_that_price),
      TEST(no_fill_is_above_the_price_band), TEST(the_budget_binds_whatever_the_work_is_worth),
      TEST(a_lease_above_what_it_is_worth_now_is_not_renewed),
      TEST(what_is_out_of_bounds_is_refused_without_a_trace),
      TEST(a_refusal_says_that_its_limit_is_by_value), TEST(nothing_and_all_there_is_are_values),
      TEST(a_limit_is_replaced_in_its_own_unit), TEST(explain_says_what_value_would_do),
      TEST(a_device_too_slow_for_any_value_is_no_change_that_helps),
      TEST(who_is_worth_more_there_comes_before_it),
      TEST(asks_come_before_one_by_price_and_by_work),
      TEST(a_quote_shows_for_each_kind_what_the_limit_is),
      TEST(listings_say_in_which_unit_a_limit_is),
      TEST(a_provider_is_told_what_its_work_would_bring))
