/* Asks that give so many slot-hours a day: when they are filled, and what counts. */
#include "tests/support/hand_market.h"

#include "exchange/view/listings.h"
#include "exchange/view/why.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define NOON_NS (INT64_C(1700438400) * NS_PER_S + 12 * HOUR_NS) /* of a Monday */
#define TERM_NS (20 * NS_PER_S)                                 /* of submit_of */

static void tick_at(int64_t at_ns)
{
    market.now_ns = at_ns;
    struct exchange_command tick = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(&tick);
}

static void advertise(bool anything_at_all)
{
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_device device = {.device = {{PROVIDER}},
                                     .slots = 4,
                                     .attributes = &kind,
                                     .attribute_count = 1,
                                     .label = "a cpu"};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&device, anything_at_all ? 1 : 0};
    apply(&made);
}

static struct exchange_command ask_of(int64_t daily_ns)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){
        .device = {{PROVIDER}}, .slots = 4, .daily_ns = daily_ns, .max_term_ns = TERM_NS};
    return made;
}

static void ask(int64_t daily_ns)
{
    struct exchange_command made = ask_of(daily_ns);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static void set_up_at_noon(void)
{
    set_up();
    tick_at(NOON_NS);
    advertise(true);
}

static uint32_t slots_granted(void)
{
    uint32_t slots = 0;
    for (size_t i = 0; i < count_of(EFFECT_LEASE_GRANT); i++) {
        slots += nth(EFFECT_LEASE_GRANT, i)->grant.slots;
    }
    return slots;
}

static bool take_row(void *context, const struct exchange_order_row *row)
{
    struct exchange_order_row *kept = context;
    *kept = row->is_bid ? *kept : *row;
    return true;
}

static struct exchange_order_row row_of_ask(void)
{
    static struct exchange_order_row row;
    uint64_t next;
    memset(&row, 0, sizeof row);
    ck_assert_int_eq(exchange_list_orders(market.exchange, PROVIDER, 0, take_row, &row, &next),
                     LISTING_END);
    return row;
}

/* The attempts that were sent last, each with a result after it took so long. */
static void settle_all(struct id128 job, int64_t busy_ns)
{
    struct exchange_work works[8];
    const size_t count = count_of(EFFECT_DISPATCH);
    ck_assert_uint_le(count, 8);
    for (size_t i = 0; i < count; i++) {
        works[i] = nth(EFFECT_DISPATCH, i)->work;
    }
    market.now_ns += busy_ns;
    for (size_t i = 0; i < count; i++) {
        result(PROVIDER, job, works[i], 0, busy_ns);
    }
}

/* ---------------------------------------------------------------- what a day has */

START_TEST(no_more_is_let_than_the_day_has_for_a_term)
{
    ask(2 * TERM_NS);
    ck_assert_uint_eq(row_of_ask().free, 2); /* of four */
    (void)submit(4, 50);
    ck_assert_uint_eq(slots_granted(), 2);
    ck_assert_uint_eq(row_of_ask().free, 0);
    ck_assert_int_eq(row_of_ask().left_ns, 0);
    reload();
    ck_assert_uint_eq(row_of_ask().free, 0);
    ck_assert_int_eq(row_of_ask().left_ns, 0);
    ck_assert_int_eq(row_of_ask().daily_ns, 2 * TERM_NS);
}
END_TEST

START_TEST(what_was_used_is_gone_until_midnight_and_no_longer)
{
    ask(2 * TERM_NS);
    struct id128 job = submit(8, 50);
    settle_all(job, 10 * NS_PER_S); /* two, of ten seconds; the lanes go on */
    settle_all(job, 10 * NS_PER_S);
    tick_at(market.now_ns + 30 * NS_PER_S); /* the term is over, with all its grace */
    ck_assert_uint_gt(job_row(job).waiting, 0);
    ck_assert_uint_eq(slots_granted(), 0);
    ck_assert_int_lt(row_of_ask().left_ns, TERM_NS);
    ck_assert_uint_eq(row_of_ask().free, 0);
    reload();
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), NOON_NS + 12 * HOUR_NS);
    tick_at(NOON_NS + 12 * HOUR_NS - 1);
    ck_assert_uint_eq(slots_granted(), 0);
    tick_at(NOON_NS + 12 * HOUR_NS);
    ck_assert_uint_eq(slots_granted(), 2);
    check_hash();
}
END_TEST

START_TEST(what_a_lease_did_not_use_is_there_again)
{
    ask(2 * TERM_NS);
    struct id128 job = submit(2, 50);
    settle_all(job, 5 * NS_PER_S);
    tick_at(market.now_ns + 15 * NS_PER_S);
    ck_assert_int_eq(row_of_ask().left_ns, 2 * TERM_NS - 10 * NS_PER_S);
    ck_assert_uint_eq(row_of_ask().free, 1); /* thirty seconds: one whole term */
    (void)submit(4, 50);
    ck_assert_uint_eq(slots_granted(), 1);
}
END_TEST

/* It ends as at the end of the hours: with its term. */
START_TEST(a_lease_is_renewed_for_as_long_as_the_day_has_and_not_longer)
{
    ask(TERM_NS + 20 * NS_PER_S);
    struct exchange_command made = submit_of(20, 50);
    made.submit.at_most = 1;
    apply(&made);
    struct id128 job = made.id;
    uint32_t renewed = 0;
    const int64_t begun_ns = market.now_ns;
    while (job_row(job).running > 0 && market.now_ns < begun_ns + 10 * 60 * NS_PER_S) {
        ck_assert_uint_gt(count_of(EFFECT_DISPATCH), 0);
        const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
        market.now_ns += 8 * NS_PER_S;
        result(PROVIDER, job, work, 0, 8 * NS_PER_S);
        renewed += count_of(EFFECT_LEASE_RENEW) > 0;
        ck_assert_uint_eq(slots_granted(), 0);
        ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
        reload();
        if (count_of(EFFECT_DISPATCH) == 0) {
            break;
        }
    }
    static struct exchange_why why;
    ck_assert_uint_ge(renewed, 1);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &why), WHY_OK);
    ck_assert_int_le(why.used_ns + why.promised_ns, TERM_NS + 20 * NS_PER_S);
    ck_assert_int_ge(why.used_ns, TERM_NS);
    ck_assert_uint_lt(job_row(job).accepted, 20);
}
END_TEST

START_TEST(an_agent_that_comes_back_does_not_begin_another_day)
{
    ask(2 * TERM_NS);
    struct id128 job = submit(2, 50);
    settle_all(job, 20 * NS_PER_S);
    tick_at(market.now_ns + 30 * NS_PER_S);
    advertise(false); /* paused: the device is gone */
    reload();
    advertise(true);
    ask(2 * TERM_NS);
    ck_assert_int_eq(row_of_ask().left_ns, 0);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    advertise(true);
    ask(3 * TERM_NS); /* its owner gives more */
    ck_assert_int_eq(row_of_ask().left_ns, TERM_NS);
    ck_assert_uint_eq(row_of_ask().free, 1);
}
END_TEST

START_TEST(the_day_is_that_of_the_owners_clock)
{
    struct exchange_command made = ask_of(2 * TERM_NS);
    made.ask.hours.offset_min = 11 * 60; /* it is 23:00 there */
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct id128 job = submit(2, 50);
    settle_all(job, 20 * NS_PER_S);
    (void)submit(4, 50);
    ck_assert_uint_eq(slots_granted(), 0);
    tick_at(NOON_NS + HOUR_NS);
    ck_assert_uint_eq(slots_granted(), 2);
}
END_TEST

/* Work that is paid for is bounded by the day just as well. */
START_TEST(a_price_makes_no_difference)
{
    struct exchange_command made = ask_of(2 * TERM_NS);
    made.ask.price_micro = price;
    apply(&made);
    struct id128 job = submit(4, 200);
    ck_assert_uint_eq(slots_granted(), 2);
    settle_all(job, 20 * NS_PER_S);
    ck_assert_uint_eq(slots_granted(), 0);
    reload();
    ck_assert_int_eq(row_of_ask().left_ns, 0);
}
END_TEST

/* Leases that stood before there was a bound count from then on. */
START_TEST(a_bound_counts_the_leases_that_stand)
{
    struct exchange_command made = ask_of(0);
    made.ask.price_micro = price;
    apply(&made);
    (void)submit(3, 200);
    ck_assert_uint_eq(slots_granted(), 3);
    made = ask_of(4 * TERM_NS);
    made.ask.price_micro = price;
    apply(&made);
    ck_assert_int_eq(row_of_ask().left_ns, TERM_NS);
    reload();
    ck_assert_int_eq(row_of_ask().left_ns, TERM_NS);
}
END_TEST

/* All three terms of a day are let when the bound comes: the fourth slot is not free, and meets
 * nobody. */
START_TEST(a_bound_counts_them_before_it_stands)
{
    struct exchange_command made = ask_of(0);
    made.ask.price_micro = price;
    made.ask.slots = 3;
    apply(&made);
    (void)submit(3, 200);
    ck_assert_uint_eq(slots_granted(), 3);
    (void)submit(1, 200);
    ck_assert_uint_eq(slots_granted(), 0);
    made = ask_of(3 * TERM_NS);
    made.ask.price_micro = price;
    made.ask.type = EXCHANGE_POST_ONLY;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(row_of_ask().free, 0);
    ck_assert_uint_eq(slots_granted(), 0);
}
END_TEST

/* Beyond its term a lease uses no more than what runs there still, however many slots it has. */
START_TEST(a_bound_that_comes_after_a_term_counts_what_still_runs)
{
    struct exchange_command made = ask_of(0);
    made.ask.price_micro = price;
    apply(&made);
    const struct id128 unbounded = made.id;
    const int64_t begun_ns = market.now_ns;
    struct id128 job = submit(5, 400);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 4);
    settle_all(job, TERM_NS / 2 - 1); /* the fifth starts in one of four lanes */
    made = command(EXCHANGE_CANCEL_ORDER, PROVIDER);
    made.cancel_order = (struct exchange_cancel_order){unbounded}; /* no term more */
    apply(&made);
    tick_at(begun_ns + TERM_NS + 4 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).running, 1);
    const int64_t runs_ns = TERM_NS / 2 + 4 * NS_PER_S + 1;
    made = ask_of(HOUR_NS);
    made.ask.price_micro = price;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_int_eq(row_of_ask().left_ns, HOUR_NS - runs_ns);
    reload();
    ck_assert_int_eq(row_of_ask().left_ns, HOUR_NS - runs_ns);
}
END_TEST

START_TEST(leases_of_a_bounded_day_have_a_longest_term)
{
    struct exchange_command made = ask_of(8 * HOUR_NS);
    made.ask.max_term_ns = 0;
    apply(&made);
    ck_assert_int_eq(row_of_ask().max_term_ns, EXCHANGE_DAILY_TERM_NS);
    made = ask_of(60 * NS_PER_S);
    made.ask.max_term_ns = 0;
    apply(&made);
    ck_assert_int_eq(row_of_ask().max_term_ns, 60 * NS_PER_S);
    ck_assert_uint_eq(row_of_ask().free, 1);
}
END_TEST

START_TEST(what_is_no_bound_is_refused_and_changes_nothing)
{
    const int64_t bad[] = {-1, TERM_NS - 1, EXCHANGE_DAILY_MOST_NS + 1};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct exchange_command made = ask_of(bad[i]);
        apply(&made);
        check_rejected(REJECT_QUANTITY);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "daily_ms");
        check_hash();
    }
    struct exchange_command made = ask_of(0);
    made.ask.hours.offset_min = 60; /* a clock for nothing */
    apply(&made);
    check_rejected(REJECT_HOURS);
}
END_TEST

/* ---------------------------------------------------------------- why nothing is let */

START_TEST(a_used_up_day_says_so_to_both_sides)
{
    ask(2 * TERM_NS);
    struct id128 job = submit(2, 50);
    settle_all(job, 20 * NS_PER_S);
    job = submit(1, 50);
    struct exchange_explanation explained;
    ck_assert(exchange_explain_job(market.exchange, &job, 0, &explained));
    ck_assert_uint_eq(explained.fitting, 1);
    ck_assert_uint_eq(explained.asking, 0);
    ck_assert_uint_eq(explained.closed, 1);
    ck_assert_uint_eq(explained.spent, 1);
    ck_assert_int_eq(explained.opens_ns, NOON_NS + 12 * HOUR_NS - market.now_ns);
    ck_assert_uint_eq(explained.smallest_change.count, 0);
    ck_assert_uint_eq(job_row(job).reason, 2); /* no ask */
    static struct exchange_why why;
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &why), WHY_OK);
    ck_assert(why.is_spent);
    ck_assert_int_eq(why.opens_ns, explained.opens_ns);
    ck_assert_int_eq(why.daily_ns, 2 * TERM_NS);
    ck_assert_int_eq(why.used_ns, 2 * TERM_NS);
    ck_assert_int_eq(why.promised_ns, 0);
}
END_TEST

SUITE("daily", set_up_at_noon, tear_down, TEST(no_more_is_let_than_the_day_has_for_a_term),
      TEST(what_was_used_is_gone_until_midnight_and_no_longer),
      TEST(what_a_lease_did_not_use_is_there_again),
      TEST(a_lease_is_renewed_for_as_long_as_the_day_has_and_not_longer),
      TEST(an_agent_that_comes_back_does_not_begin_another_day),
      TEST(the_day_is_that_of_the_owners_clock), TEST(a_price_makes_no_difference),
      TEST(a_bound_counts_the_leases_that_stand), TEST(a_bound_counts_them_before_it_stands),
      TEST(a_bound_that_comes_after_a_term_counts_what_still_runs),
      TEST(leases_of_a_bounded_day_have_a_longest_term),
      TEST(what_is_no_bound_is_refused_and_changes_nothing),
      TEST(a_used_up_day_says_so_to_both_sides))
