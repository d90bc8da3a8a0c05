/* Interruptible leases: who takes them, from whom, at what price and when; and what becomes of
 * those they are taken from. What a waiting bid is told is in test_spot_told.c. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/spot_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static void answer(struct id128 job, struct exchange_work work, uint8_t device, uint8_t outcome,
                   int64_t busy_ns)
{
    result_on(PROVIDER, (struct id128){{device}}, job, work, outcome, busy_ns);
}

/* ---------------------------------------------------------------- who takes what */

START_TEST(a_higher_bid_takes_the_lease_and_pays_the_rank_and_the_increment)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, 2 * price);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    struct id128 high = bid(HIGH, 1, 3 * price);
    ck_assert(was_noticed(low));
    ck_assert_int_eq(nth(EFFECT_LEASE_NOTICE, 0)->lease.term_ns, NOTICE_S * NS_PER_S);
    ck_assert_uint_eq(nth(EFFECT_LEASE_NOTICE, 0)->account, PROVIDER);
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, 2 * price + increment);
    ck_assert(granted_to(high) == 0); /* not yet */
    ck_assert_uint_eq(job_row(high).reason, JOB_REASON_PROMISED);
    ck_assert(lease_row(low, 0).is_taken);
    reload();

    market.now_ns += 3 * NS_PER_S;
    answer(low, work, 1, OUTCOME_PREEMPTED, 3 * NS_PER_S);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->lease.reason, LEASE_END_PREEMPTED);
    ck_assert(granted_to(high) > 0);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, 2 * price + increment);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.term_ns, 20 * NS_PER_S); /* from now on */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_PAID); /* its time is paid */
    ck_assert_int_eq(record_of(LEDGER_RESULT)->paid_ns, 3 * NS_PER_S);
    ck_assert_uint_eq(job_row(low).waiting, 1); /* and it goes on elsewhere, if it can */
    ck_assert_uint_eq(job_row(low).state, JOB_OPEN);
    reload();
}
END_TEST

/* Its own account's leases are no one's to take: then it is said whose they are. */
START_TEST(a_bid_that_meets_only_its_own_leases_is_told_so)
{
    advertise(2, 1);
    ask(1, 1, spot);
    (void)bid(LOW, 1, 2 * price);
    struct id128 own = bid(LOW, 1, 5 * price);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &own, 0, &why));
    ck_assert(why.is_own_leases);
    ck_assert_int_eq(why.takes_at_micro, -1);
    cancel(LOW, own);
    ask(2, 1, firm);
    (void)bid(HIGH, 1, 5 * price);
    struct id128 last = bid(LOW, 1, price);
    ck_assert(exchange_explain_job(market.exchange, &last, 0, &why));
    ck_assert(!why.is_own_leases); /* others have one */
}
END_TEST

/* It never takes: it waits for others to come to it. One that may take, and bids less, goes before
 * it. */
START_TEST(a_post_only_bid_takes_no_lease)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, 2 * price);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_command made = bid_of(MIDDLE, 1, 5 * price);
    made.submit.type = EXCHANGE_POST_ONLY;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert(!was_noticed(low));
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_BUSY);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &made.id, 0, &why));
    ck_assert_int_eq(why.takes_at_micro, -1);
    struct id128 high = bid(HIGH, 1, 3 * price);
    ck_assert(was_noticed(low));
    answer(low, work, 1, OUTCOME_PREEMPTED, 0);
    ck_assert(granted_to(high) > 0);
    work = nth(EFFECT_DISPATCH, 0)->work;
    reload();
    answer(high, work, 1, OUTCOME_OK, 0);
    ck_assert(granted_to(made.id) > 0); /* what comes free it buys */
}
END_TEST

START_TEST(a_bid_of_less_than_the_rank_and_the_increment_waits)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, 2 * price);
    bid(HIGH, 1, 2 * price + increment - 1);
    ck_assert(!was_noticed(low));
    ck_assert_ptr_null(record_of(LEDGER_FILL));
    bid(MIDDLE, 1, 2 * price + increment);
    ck_assert(was_noticed(low));
}
END_TEST

START_TEST(what_is_free_is_filled_first)
{
    advertise(2, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, price);
    ask(2, 1, firm);
    struct id128 high = bid(HIGH, 1, 5 * price);
    ck_assert(!was_noticed(low));
    ck_assert(granted_to(high) > 0);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, price);
}
END_TEST

START_TEST(a_firm_lease_is_never_taken)
{
    advertise(1, 1);
    ask(1, 1, firm);
    struct id128 low = bid(LOW, 1, price);
    bid(HIGH, 1, 10 * price);
    ck_assert(!was_noticed(low));
    ask(1, 1, spot); /* what stands was granted before */
    ck_assert(!was_noticed(low));
}
END_TEST

START_TEST(nor_one_within_its_minimum_run)
{
    advertise(1, 1);
    ask(1, 1,
        (struct exchange_terms){
            .is_interruptible = true, .notice_ns = NS_PER_S, .minimum_run_ns = 7 * NS_PER_S});
    struct id128 low = bid(LOW, 1, price);
    struct id128 high = bid(HIGH, 1, 2 * price);
    ck_assert(!was_noticed(low));
    wait_s(6);
    ck_assert(!was_noticed(low));
    reload();
    wait_s(1);
    ck_assert(was_noticed(low));
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, price + increment);
    ck_assert(id128_equal(&record_of(LEDGER_FILL)->job, &high));
}
END_TEST

START_TEST(nor_ones_own)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, price);
    bid(LOW, 1, 5 * price);
    ck_assert(!was_noticed(low));
    bid(PROVIDER, 1, 5 * price); /* nobody trades with himself */
    ck_assert(!was_noticed(low));
}
END_TEST

START_TEST(the_lowest_rank_goes_first_and_of_equal_ones_the_oldest)
{
    advertise(3, 1);
    ask(1, 1, spot);
    struct id128 dear = bid(LOW, 1, 3 * price);
    ask(2, 1, spot);
    struct id128 first = bid(LOW, 1, 2 * price);
    ask(3, 1, spot);
    struct id128 second = bid(LOW, 1, 2 * price);
    bid(HIGH, 1, 5 * price);
    ck_assert(was_noticed(first));
    bid(HIGH, 1, 5 * price);
    ck_assert(was_noticed(second));
    bid(HIGH, 1, 5 * price);
    ck_assert(was_noticed(dear));
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, 3 * price + increment);
    bid(HIGH, 1, 5 * price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_NOTICE), 0);
}
END_TEST

START_TEST(the_best_bid_that_waits_takes_what_comes)
{
    const struct exchange_terms late = {.is_interruptible = true, .minimum_run_ns = 3 * NS_PER_S};
    advertise(1, 1);
    ask(1, 1, late);
    struct id128 low = bid(LOW, 1, price);
    bid(MIDDLE, 1, 3 * price);
    struct id128 high = bid(HIGH, 1, 4 * price);
    wait_s(3);
    ck_assert(was_noticed(low));
    ck_assert(id128_equal(&record_of(LEDGER_FILL)->job, &high));
}
END_TEST

START_TEST(who_raises_his_limit_is_safe_and_who_lowers_it_is_not)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 2, 2 * price);
    struct exchange_command made = command(EXCHANGE_REPLACE, LOW);
    made.replace = (struct exchange_replace){
        .order = low, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = 4 * price};
    apply(&made);
    bid(HIGH, 1, 3 * price);
    ck_assert(!was_noticed(low));
    made = command(EXCHANGE_REPLACE, LOW);
    made.replace = (struct exchange_replace){
        .order = low, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = 2 * price};
    apply(&made);
    ck_assert(was_noticed(low));
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, 2 * price + increment);
}
END_TEST

/* The rank is what the holder would pay; the slots that are asked for do not count. */
START_TEST(the_rank_is_the_holders_limit_whatever_it_needs)
{
    static struct requirement cpu = {.count = 1, .nodes = {{.op = REQUIREMENT_EQ}}};
    strcpy(cpu.nodes[0].attribute.name, "kind");
    strcpy(cpu.nodes[0].attribute.text, "cpu");
    cpu.nodes[0].attribute.is_text = true;
    advertise(1, 1);
    (void)bid(LOW, 1, 0); /* waits, and needs anything */
    ask(1, 1, spot);
    struct exchange_command made = bid_of(LOW, 1, 2 * price);
    made.submit.needs = &cpu;
    apply(&made);
    ck_assert(granted_to(made.id) > 0);
    bid(HIGH, 1, 2 * price);
    ck_assert(!was_noticed(made.id));
    bid(HIGH, 1, 3 * price);
    ck_assert(was_noticed(made.id));
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, 2 * price + increment);
    reload();
}
END_TEST

START_TEST(of_a_holder_by_value_the_rank_is_what_that_is_worth_there)
{
    struct attribute attributes[] = {{.name = "bf16", .number = RATE_UNIT / 2},
                                     {.name = "kind", .is_text = true, .text = "gpu"}};
    const struct exchange_device gpu = {.device = {{1}},
                                        .slots = 1,
                                        .attributes = attributes,
                                        .attribute_count = 2,
                                        .label = "a gpu"};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&gpu, 1};
    apply(&made);
    ask(1, 1, spot);
    made = bid_of(LOW, 1, 4 * price); /* 2 x price for a slot-hour of that */
    made.submit.rate = RATE_BF16;
    apply(&made);
    ck_assert(granted_to(made.id) > 0);
    bid(HIGH, 1, 2 * price + increment);
    ck_assert(was_noticed(made.id));
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, 2 * price + increment);
    reload();
}
END_TEST

START_TEST(a_lease_of_many_slots_goes_whole)
{
    advertise(1, 4);
    ask(1, 4, spot);
    struct id128 low = bid(LOW, 4, price);
    struct id128 high = bid(HIGH, 1, 2 * price);
    ck_assert(was_noticed(low));
    ck_assert_uint_eq(record_of(LEDGER_FILL)->slots, 1);
    wait_s(NOTICE_S + 5); /* the agent says nothing: its time is up all the same */
    ck_assert(granted_to(high) > 0);
    ck_assert(granted_to(low) > 0); /* what is left over is free, and its bid is there */
    for (size_t i = 0; i < 2; i++) {
        const struct exchange_grant *grant = &nth(EFFECT_LEASE_GRANT, i)->grant;
        ck_assert_uint_eq(grant->slots, id128_equal(&grant->job, &high) ? 1 : 3);
    }
    reload();
}
END_TEST

/* ---------------------------------------------------------------- what can come between */

START_TEST(the_notice_is_all_that_the_holder_has)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 3, price);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2); /* one runs, and one is on its way */
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work next = nth(EFFECT_DISPATCH, 1)->work;
    struct id128 high = bid(HIGH, 1, 2 * price);
    market.now_ns += NS_PER_S;
    answer(low, work, 1, OUTCOME_OK, NS_PER_S); /* what ends in time counts */
    ck_assert_uint_eq(job_row(low).accepted, 1);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    ck_assert(granted_to(high) == 0);
    wait_s(NOTICE_S + 3);
    ck_assert(granted_to(high) == 0); /* its result may be on its way */
    wait_s(1);
    ck_assert(granted_to(high) > 0);
    answer(low, next, 1, OUTCOME_PREEMPTED, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_LATE);
}
END_TEST

START_TEST(who_gives_up_gives_the_slot_back)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, price);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    struct id128 high = bid(HIGH, 1, 2 * price);
    ck_assert_int_gt(job_row(high).reserved_micro, 0);
    cancel(HIGH, high);
    ck_assert_uint_eq(job_row(high).state, JOB_CANCELLED);
    ck_assert_int_eq(balance(HIGH).held_micro, 0);
    reload();
    struct id128 middle = bid(MIDDLE, 1, price);
    ck_assert(granted_to(middle) == 0);
    answer(low, work, 1, OUTCOME_PREEMPTED, NS_PER_S);
    ck_assert(granted_to(low) > 0); /* as any free slot: its bid came first */
    ck_assert(granted_to(middle) == 0);
}
END_TEST

START_TEST(a_provider_that_is_cut_off_keeps_no_promise)
{
    advertise(1, 1);
    ask(1, 1, spot);
    bid(LOW, 1, price);
    struct id128 high = bid(HIGH, 1, 2 * price);
    presence(EXCHANGE_SUSPECT, PROVIDER);
    ck_assert_int_eq(job_row(high).reserved_micro, 0);
    ck_assert_uint_eq(lease_row(high, 0).state, 3);
    reload();
    presence(EXCHANGE_RETURNED, PROVIDER);
    ask(1, 1, spot);
    wait_s(NOTICE_S + 5);
    ck_assert(granted_to(high) > 0); /* a free slot by then: the bid was there before the ask */
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, 2 * price);
}
END_TEST

START_TEST(a_device_that_goes_takes_the_promise_with_it)
{
    advertise(1, 1);
    ask(1, 1, spot);
    bid(LOW, 1, price);
    struct id128 high = bid(HIGH, 1, 2 * price);
    advertise(0, 0);
    wait_s(NOTICE_S + 5);
    ck_assert(granted_to(high) == 0);
    ck_assert_int_eq(job_row(high).reserved_micro, 0);
    reload();
}
END_TEST

START_TEST(a_goodbye_ends_both)
{
    advertise(1, 1);
    ask(1, 1, spot);
    bid(LOW, 1, price);
    struct id128 high = bid(HIGH, 1, 2 * price);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    ck_assert(granted_to(high) == 0);
    ck_assert_int_eq(job_row(high).reserved_micro, 0);
    reload();
}
END_TEST

START_TEST(an_agent_that_comes_back_is_told_again)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, price);
    bid(HIGH, 1, 2 * price);
    market.now_ns += NS_PER_S;
    struct exchange_command made = command(EXCHANGE_STATEMENT, PROVIDER);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1); /* the former's alone */
    ck_assert(id128_equal(&nth(EFFECT_LEASE_GRANT, 0)->grant.job, &low));
    ck_assert(was_noticed(low));
    ck_assert_int_eq(nth(EFFECT_LEASE_NOTICE, 0)->lease.term_ns, (NOTICE_S - 1) * NS_PER_S);
}
END_TEST

START_TEST(one_that_was_not_taken_was_given_up)
{
    advertise(1, 1);
    ask(1, 1, spot);
    struct id128 low = bid(LOW, 1, price);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    answer(low, work, 1, OUTCOME_PREEMPTED, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_UNPAID);
}
END_TEST

START_TEST(while_the_market_is_halted_nothing_is_taken)
{
    const struct exchange_terms late = {.is_interruptible = true, .minimum_run_ns = 3 * NS_PER_S};
    advertise(1, 1);
    ask(1, 1, late);
    struct id128 low = bid(LOW, 1, price);
    bid(MIDDLE, 1, 2 * price);
    struct exchange_command halt = command(EXCHANGE_HALT, HIGH);
    halt.halt.halted = true;
    apply(&halt);
    wait_s(3);
    ck_assert(!was_noticed(low));
    halt = command(EXCHANGE_HALT, HIGH);
    apply(&halt);
    ck_assert(was_noticed(low));
}
END_TEST

/* ---------------------------------------------------------------- what a job can say */

START_TEST(after_so_many_interruptions_it_takes_firm_leases_only)
{
    advertise(3, 1);
    ask(1, 1, spot);
    struct exchange_command made = bid_of(LOW, 1, price);
    made.submit.has_interruptions = true;
    made.submit.interruptions = 1;
    apply(&made);
    struct id128 low = made.id;
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    bid(HIGH, 1, 2 * price);
    ck_assert(was_noticed(low));
    reload();
    answer(low, work, 1, OUTCOME_PREEMPTED, 0);
    ask(2, 1, spot);
    ck_assert(granted_to(low) == 0);
    ck_assert_uint_eq(job_row(low).reason, JOB_REASON_FIRM); /* there is money enough */
    ask(3, 1, firm);
    ck_assert(granted_to(low) > 0);
    ck_assert(!lease_row(low, 1).is_interruptible);
}
END_TEST

START_TEST(a_donation_is_nobodys_to_outbid)
{
    advertise(1, 1);
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .terms = spot};
    apply(&made);
    struct id128 low = bid(LOW, 1, price);
    bid(HIGH, 1, 5 * price);
    ck_assert(!was_noticed(low));
}
END_TEST

SUITE("spot", open_market, tear_down,
      TEST(a_higher_bid_takes_the_lease_and_pays_the_rank_and_the_increment),
      TEST(a_bid_that_meets_only_its_own_leases_is_told_so), TEST(a_post_only_bid_takes_no_lease),
      TEST(a_bid_of_less_than_the_rank_and_the_increment_waits), TEST(what_is_free_is_filled_first),
      TEST(a_firm_lease_is_never_taken), TEST(nor_one_within_its_minimum_run), TEST(nor_ones_own),
      TEST(the_lowest_rank_goes_first_and_of_equal_ones_the_oldest),
      TEST(the_best_bid_that_waits_takes_what_comes),
      TEST(who_raises_his_limit_is_safe_and_who_lowers_it_is_not),
      TEST(the_rank_is_the_holders_limit_whatever_it_needs),
      TEST(of_a_holder_by_value_the_rank_is_what_that_is_worth_there),
      TEST(a_lease_of_many_slots_goes_whole), TEST(the_notice_is_all_that_the_holder_has),
      TEST(who_gives_up_gives_the_slot_back), TEST(a_provider_that_is_cut_off_keeps_no_promise),
      TEST(a_device_that_goes_takes_the_promise_with_it), TEST(a_goodbye_ends_both),
      TEST(an_agent_that_comes_back_is_told_again), TEST(one_that_was_not_taken_was_given_up),
      TEST(while_the_market_is_halted_nothing_is_taken),
      TEST(after_so_many_interruptions_it_takes_firm_leases_only),
      TEST(a_donation_is_nobodys_to_outbid))
