/* A waiting bid is told the limit or the budget at which it takes an interruptible lease, and what
 * it may ask of leases. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/spot_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(what_bears_no_interruption_says_what_keeps_it_from_each_device)
{
    advertise(3, 1);
    ask(1, 1, spot);
    struct exchange_command made = bid_of(LOW, 1, price);
    made.submit.has_interruptions = true;
    apply(&made);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_FIRM);
    ask(2, 1, firm);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_RUNNING);
    struct exchange_command second = bid_of(HIGH, 1, price);
    second.submit.has_interruptions = true;
    apply(&second);
    ck_assert_uint_eq(job_row(second.id).reason, JOB_REASON_BUSY); /* the firm one, for a while */
}
END_TEST

static int64_t takes_at(struct id128 job)
{
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, 0, &why));
    return why.takes_at_micro;
}

static void set_cap(uint32_t account, struct id128 job, int64_t cap)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, account);
    made.replace = (struct exchange_replace){
        .order = job, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = cap};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static void set_budget(uint32_t account, struct id128 job, int64_t budget)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, account);
    made.replace = (struct exchange_replace){
        .order = job, .part = EXCHANGE_ANY_PART, .has_budget = true, .budget_micro = budget};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

START_TEST(the_limit_that_is_named_takes_the_lease_and_no_lower_one)
{
    advertise(2, 1);
    ask(1, 1, spot);
    ask(2, 1, spot);
    struct id128 middle = bid(MIDDLE, 1, 3 * price);
    struct id128 low = bid(LOW, 1, 2 * price);
    struct id128 high = bid(HIGH, 1, price);
    struct id128 own = bid(LOW, 1, price);
    const int64_t named = takes_at(high);
    ck_assert_int_eq(named, 2 * price + increment);
    ck_assert_int_eq(takes_at(own), 3 * price + increment); /* not its own account's */
    reload();
    ck_assert_int_eq(takes_at(high), named);
    set_cap(HIGH, high, named - 1);
    ck_assert(!was_noticed(low));
    ck_assert_int_eq(takes_at(high), named);
    set_cap(HIGH, high, named);
    ck_assert(was_noticed(low));
    ck_assert_uint_eq(job_row(middle).lease_count, 1);
    ck_assert_int_eq(lease_row(high, 0).price_micro, named);
}
END_TEST

START_TEST(the_budget_that_is_named_takes_the_lease_and_no_smaller_one)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, 2 * price);
    struct exchange_command made = bid_of(HIGH, 1, 4 * price);
    made.submit.budget_micro = 10; /* it covers no term */
    apply(&made);
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &made.id, 0, &why));
    const int64_t named = why.takes_budget_micro;
    ck_assert_int_gt(named, 10);
    ck_assert_int_eq(why.takes_at_micro, -1);
    set_budget(HIGH, made.id, named - 1);
    ck_assert(!was_noticed(low));
    ck_assert(exchange_explain_job(market.exchange, &made.id, 0, &why));
    ck_assert_int_eq(why.takes_budget_micro, named);
    set_budget(HIGH, made.id, named);
    ck_assert(was_noticed(low));
}
END_TEST

START_TEST(none_is_named_where_no_lease_may_be_taken)
{
    struct exchange_terms long_run = spot;
    long_run.minimum_run_ns = 10 * NS_PER_S;
    advertise(1, 1);
    ask(1, 1, long_run);
    (void)bid(LOW, 1, 2 * price);
    struct id128 high = bid(HIGH, 1, price);
    ck_assert_int_eq(takes_at(high), -1);
    wait_s(10);
    ck_assert_int_eq(takes_at(high), 2 * price + increment);
    ask(1, 1, firm);
    ck_assert_int_eq(takes_at(high), 2 * price + increment); /* that lease is as it was */
    struct exchange_command made = command(EXCHANGE_HALT, HIGH);
    made.halt.halted = true;
    apply(&made);
    ck_assert_int_eq(takes_at(high), -1);
}
END_TEST

START_TEST(a_free_device_at_less_is_named_instead)
{
    advertise(2, 1);
    ask(1, 1, spot);
    (void)bid(LOW, 1, 2 * price);
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){.device = {{2}}, .slots = 1, .price_micro = 2 * price + 1};
    apply(&made);
    struct id128 high = bid(HIGH, 1, price);
    ck_assert_int_eq(takes_at(high), -1);
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &high, 0, &why));
    ck_assert_int_eq(why.fills_at_micro, 2 * price + 1);
}
END_TEST

START_TEST(what_a_job_does_not_bear_any_more_is_not_free_to_it)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct exchange_command made = bid_of(LOW, 1, 2 * price);
    made.submit.has_interruptions = true;
    apply(&made);
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &made.id, 0, &why));
    ck_assert_uint_eq(why.affordable, 1);
    ck_assert_uint_eq(why.interruptible, 1);
    ck_assert_uint_eq(why.free, 0);
    ck_assert_int_eq(why.takes_at_micro, -1);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(one_that_bears_none_takes_nothing_that_may_be_taken)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct exchange_command made = bid_of(LOW, 1, price);
    made.submit.has_interruptions = true;
    apply(&made);
    ck_assert(granted_to(made.id) == 0);
    ask(1, 1, firm);
    ck_assert(granted_to(made.id) > 0);
}
END_TEST

/* Neither order meets the other, whoever came first: nothing is refused because they would
 * trade. */
START_TEST(nor_does_it_meet_it_on_paper)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct exchange_command made = bid_of(LOW, 1, price);
    made.submit.has_interruptions = true;
    made.submit.type = EXCHANGE_POST_ONLY;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = bid_of(PROVIDER, 1, price);
    made.submit.has_interruptions = true;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){.device = {{1}},
                                     .slots = 1,
                                     .price_micro = price,
                                     .terms = spot,
                                     .type = EXCHANGE_POST_ONLY};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
}
END_TEST

static struct id128 bid_needing(const char *name, enum requirement_op op, int64_t value)
{
    static struct requirement needs;
    needs = (struct requirement){.count = 1};
    needs.nodes[0].op = op;
    (void)strcpy(needs.nodes[0].attribute.name, name);
    needs.nodes[0].attribute.number = value;
    struct exchange_command made = bid_of(LOW, 1, price);
    made.submit.needs = &needs;
    apply(&made);
    return made.id;
}

START_TEST(what_leases_are_is_what_a_bid_can_need)
{
    advertise(2, 1);
    ask(1, 1, spot);
    struct id128 job = bid_needing("firm", REQUIREMENT_EQ, 1);
    ck_assert(granted_to(job) == 0);
    cancel(LOW, job);
    job = bid_needing("notice", REQUIREMENT_GE, NOTICE_S * NS_PER_S + 1);
    ck_assert(granted_to(job) == 0);
    ask(2, 1, firm); /* which is more than any notice */
    ck_assert(granted_to(job) > 0);
    job = bid_needing("notice", REQUIREMENT_GE, NOTICE_S * NS_PER_S);
    ck_assert(granted_to(job) > 0);
    reload();
}
END_TEST

START_TEST(terms_out_of_range_are_refused)
{
    advertise(1, 1);
    ask(1, 1, (struct exchange_terms){.is_interruptible = true, .notice_ns = -1});
    check_rejected(REJECT_QUANTITY);
    ask(1, 1,
        (struct exchange_terms){.is_interruptible = true,
                                .notice_ns = EXCHANGE_NOTICE_MOST_NS + NS_PER_MS});
    check_rejected(REJECT_QUANTITY);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "notice_ms");
    ask(1, 1,
        (struct exchange_terms){.is_interruptible = true,
                                .minimum_run_ns = EXCHANGE_RUN_MOST_NS + NS_PER_MS});
    check_rejected(REJECT_QUANTITY);
    struct exchange_command made = bid_of(LOW, 1, price);
    made.submit.has_interruptions = true;
    made.submit.interruptions = 1000001;
    apply(&made);
    check_rejected(REJECT_QUANTITY);
    check_hash();
}
END_TEST

SUITE("spot: what a bid is told", open_market, tear_down,
      TEST(what_bears_no_interruption_says_what_keeps_it_from_each_device),
      TEST(one_that_bears_none_takes_nothing_that_may_be_taken), TEST(nor_does_it_meet_it_on_paper),
      TEST(the_limit_that_is_named_takes_the_lease_and_no_lower_one),
      TEST(the_budget_that_is_named_takes_the_lease_and_no_smaller_one),
      TEST(none_is_named_where_no_lease_may_be_taken), TEST(a_free_device_at_less_is_named_instead),
      TEST(what_a_job_does_not_bear_any_more_is_not_free_to_it),
      TEST(what_leases_are_is_what_a_bid_can_need), TEST(terms_out_of_range_are_refused))
