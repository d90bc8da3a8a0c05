/* The tests ask what a job would cost, and why one waits. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(a_quote_tells_price_time_and_what_must_be_held)
{
    offer(PROVIDER, 2, price);
    offer(OTHER_PROVIDER, 2, 2 * price);
    const struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 30,
        .slots = 1,
        .at_most = 3,
        .cap_micro = -1,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.slots_now, 4);
    ck_assert_int_eq(quote.price_low_micro, price);
    ck_assert_int_eq(quote.price_high_micro, 2 * price);
    ck_assert_int_eq(quote.expected_micro, 40 * MICRO_PER_CREDIT); /* 20 at one credit, 10 at two */
    ck_assert_int_eq(quote.makespan_ns, 10 * NS_PER_S);
    ck_assert_int_eq(quote.minimum_micro, 20 * MICRO_PER_CREDIT);
    ck_assert_int_eq(quote.suggested_micro,
                     180 * MICRO_PER_CREDIT); /* 60, three lanes' terms: 20 + 20 + 40, and 40 */
    ck_assert_uint_eq(quote.level_count, 2);
}
END_TEST

START_TEST(a_budget_of_nothing_is_quoted_with_what_is_given_away)
{
    offer(PROVIDER, 1, 0);
    offer(OTHER_PROVIDER, 2, price);
    struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 6,
        .slots = 1,
        .cap_micro = -1,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
        .holds_nothing = true,
    };
    struct exchange_quote quote;
    for (int i = 0; i < 2; i++, need.cap_micro = 2 * price) { /* whatever its cap */
        ck_assert(exchange_quote(market.exchange, &need, &quote));
        ck_assert_uint_eq(quote.slots_now, 1);
        ck_assert_uint_eq(quote.level_count, 1);
        ck_assert_int_eq(quote.price_high_micro, 0);
        ck_assert_int_eq(quote.expected_micro, 0);
        ck_assert_int_eq(quote.makespan_ns, 6 * NS_PER_S);
    }
    need.slots = 2; /* nothing so wide is given away, and its cap is no price that it pays */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.level_count, 0);
    ck_assert_int_eq(quote.minimum_micro, 0);
    ck_assert_int_eq(quote.suggested_micro, 0);
}
END_TEST

START_TEST(a_budget_below_the_asks_pays_for_a_cap_that_is_raised)
{
    offer(PROVIDER, 2, price);
    struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 1,
        .slots = 1,
        .cap_micro = price / 4,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_eq(quote.minimum_micro, 5 * MICRO_PER_CREDIT); /* a term at the cap */

    struct exchange_command job = submit_of(1, 0);
    job.submit.budget_micro = quote.suggested_micro;
    job.submit.cap_micro = need.cap_micro;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.expect_ns = NS_PER_S;
    apply(&job);
    ck_assert_uint_ne(job_row(job.id).reason, JOB_REASON_RUNNING);
    struct exchange_command raised = command(EXCHANGE_REPLACE, CONSUMER);
    raised.replace =
        (struct exchange_replace){.order = job.id, .has_price = true, .price_micro = price};
    apply(&raised);
    ck_assert_uint_eq(job_row(job.id).reason, JOB_REASON_RUNNING);

    /* Asks that are far above the cap do not swell the budget. */
    int64_t suggested_micro = quote.suggested_micro;
    need.cap_micro = price / 1000;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_lt(quote.suggested_micro, suggested_micro / 10);
    ck_assert_int_gt(quote.suggested_micro, 0);
}
END_TEST

START_TEST(a_quote_while_all_is_leased_is_the_price_of_waiting)
{
    offer(PROVIDER, 2, price);
    struct id128 first = submit(2, 100);
    struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 30,
        .slots = 1,
        .cap_micro = -1,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.slots_now, 0);
    ck_assert_int_eq(quote.price_low_micro, price);
    ck_assert_int_eq(quote.expected_micro, 30 * MICRO_PER_CREDIT);
    ck_assert_int_eq(quote.minimum_micro, 20 * MICRO_PER_CREDIT);
    ck_assert_int_eq(quote.suggested_micro, 145 * MICRO_PER_CREDIT); /* 45, and five terms */
    ck_assert_uint_eq(quote.level_count, 1);
    ck_assert_uint_eq(quote.levels[0].slots, 2);

    struct exchange_command second = submit_of(30, 0);
    second.submit.budget_micro = quote.suggested_micro;
    second.submit.cap_micro = -1;
    second.submit.type = EXCHANGE_MARKET;
    second.submit.expect_ns = NS_PER_S;
    apply(&second);
    ck_assert_uint_eq(job_row(second.id).reason, JOB_REASON_BUSY);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = first;
    apply(&cancel);
    market.now_ns += 20 * NS_PER_S; /* until what was withdrawn is given up */
    tick();
    ck_assert_uint_eq(job_row(second.id).reason, JOB_REASON_RUNNING);

    need.slots = 3; /* wider than the device is when idle */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_eq(quote.suggested_micro, 0);
    need.cap_micro = price / 2; /* below every ask: the cap is the only price known */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_eq(quote.minimum_micro, 30 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(what_else_there_is_is_told_of_what_is_given_away)
{
    offer(OTHER_PROVIDER, 2, price);
    struct id128 first = submit(2, 100);
    ck_assert_uint_eq(granted_to(first), 2);
    offer(PROVIDER, 1, 0);
    struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 6,
        .slots = 1,
        .cap_micro = -1,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.slots_now, 1);
    ck_assert_uint_eq(quote.level_count, 1);
    ck_assert_int_eq(quote.price_high_micro, 0);
    ck_assert_int_eq(quote.elsewhere_micro, price); /* leased as it is */
    ck_assert_uint_eq(quote.elsewhere_slots, 2);
    need.at_most = 1;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.elsewhere_slots, 1);
    need.cap_micro = price - 1;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.elsewhere_slots, 0);
}
END_TEST

START_TEST(explain_counts_who_fails_at_what)
{
    offer(PROVIDER, 1, 2 * price);
    struct requirement gpu = {.count = 1};
    gpu.nodes[0].op = REQUIREMENT_EQ;
    gpu.nodes[0].attribute = (struct attribute){.name = "kind", .is_text = true, .text = "gpu"};
    struct exchange_need need = {
        .needs = &gpu, .account = CONSUMER, .slots = 1, .cap_micro = price};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.devices, 1);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_uint_eq(why.predicate_count, 1);
    ck_assert_uint_eq(why.predicates[0].failing, 1);
    ck_assert_str_eq(why.predicates[0].text, "kind = \"gpu\"");

    need.needs = &anything;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.asking, 1);
    ck_assert_uint_eq(why.affordable, 0);
    ck_assert_int_eq(why.fills_at_micro, 2 * price);

    need.slots = 3; /* no time makes one slot three */
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_uint_eq(why.predicate_count, 1);
    ck_assert_str_eq(why.predicates[0].text, "slots >= 3");
    ck_assert_uint_eq(why.predicates[0].failing, 1);
    ck_assert_int_eq(why.predicates[0].best, 1);
}
END_TEST

START_TEST(explain_knows_of_agents_that_offer_nothing)
{
    struct exchange_need need = {
        .needs = &anything, .account = CONSUMER, .slots = 1, .cap_micro = price};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.quiet_agents, 0); /* none has come */
    offer(PROVIDER, 1, price);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.quiet_agents, 0);
    struct exchange_command paused = command(EXCHANGE_ADVERTISE, PROVIDER);
    apply(&paused);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.devices, 0);
    ck_assert_uint_eq(why.quiet_agents, 1);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.quiet_agents, 0);
}
END_TEST

/* A condition that must not hold is said the other way round, and counted so. */
START_TEST(explain_counts_what_fails_under_not)
{
    offer(PROVIDER, 1, price);
    struct requirement needs = {.count = 3};
    needs.nodes[0].op = REQUIREMENT_EQ;
    needs.nodes[0].attribute = (struct attribute){.name = "kind", .is_text = true, .text = "gpu"};
    needs.nodes[1].op = REQUIREMENT_NOT;
    needs.nodes[2].op = REQUIREMENT_NOT;
    struct exchange_need need = {
        .needs = &needs, .account = CONSUMER, .slots = 1, .cap_micro = price};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_str_eq(why.predicates[0].text, "kind = \"gpu\""); /* twice turned */
    ck_assert_uint_eq(why.predicates[0].failing, 1);

    needs.count = 2;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_str_eq(why.predicates[0].text, "kind != \"gpu\"");
    ck_assert_uint_eq(why.predicates[0].failing, 0);

    (void)strcpy(needs.nodes[0].attribute.text, "cpu");
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_str_eq(why.predicates[0].text, "kind != \"cpu\"");
    ck_assert_uint_eq(why.predicates[0].failing, 1);

    needs.nodes[0].op = REQUIREMENT_GE;
    needs.nodes[0].attribute = (struct attribute){.name = "memory", .number = 1};
    exchange_explain(market.exchange, &need, &why);
    ck_assert_str_eq(why.predicates[0].text, "memory < 1");
    ck_assert_uint_eq(why.predicates[0].failing, 0); /* it says nothing of its memory */
}
END_TEST

START_TEST(work_for_another_than_the_cheapest_counts_at_what_that_one_asks)
{
    offer(PROVIDER, 2, price);
    struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 1,
        .slots = 1,
        .cap_micro = -1,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
        .apart = true,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert(quote.is_asked);
    ck_assert_int_eq(quote.second_micro, -1); /* nobody else: as if it were not asked */
    ck_assert_int_eq(quote.minimum_micro, 20 * MICRO_PER_CREDIT);

    offer(OTHER_PROVIDER, 2, 3 * price);
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_eq(quote.second_micro, 3 * price);
    ck_assert_int_eq(quote.price_low_micro, price);
    ck_assert_int_eq(quote.expected_micro, 3 * MICRO_PER_CREDIT);
    ck_assert_int_eq(quote.minimum_micro, 60 * MICRO_PER_CREDIT);

    need.cap_micro = 2 * price; /* told, though the cap excludes it */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_eq(quote.second_micro, 3 * price);
    ck_assert_int_eq(quote.minimum_micro, 20 * MICRO_PER_CREDIT);

    need.account = PROVIDER; /* its own are not for it */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert(quote.is_asked);
    ck_assert_int_eq(quote.second_micro, -1);

    static struct requirement nobody = {.count = 1};
    nobody.nodes[0].op = REQUIREMENT_EQ;
    nobody.nodes[0].attribute = (struct attribute){.name = "kind", .is_text = true, .text = "gpu"};
    need.needs = &nobody;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert(!quote.is_asked);
}
END_TEST

START_TEST(a_provider_with_many_devices_at_a_price_is_one)
{
    static const struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_device devices[3];
    for (uint8_t i = 0; i < 3; i++) {
        devices[i] = (struct exchange_device){.device = {{PROVIDER, i}},
                                              .slots = 1,
                                              .attributes = &kind,
                                              .attribute_count = 1,
                                              .label = "a cpu"};
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 3};
    apply(&advertise);
    for (uint8_t i = 0; i < 3;
         i++) { /* two of them before the other's, one after, and that dearer */
        if (i == 1) {
            offer(OTHER_PROVIDER, 2, price);
        }
        struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
        ask.ask = (struct exchange_ask){
            .device = devices[i].device, .slots = 1, .price_micro = i < 2 ? price : 2 * price};
        apply(&ask);
    }
    const struct exchange_need need = {
        .needs = &anything, .account = CONSUMER, .subtasks = 1, .slots = 1, .cap_micro = -1};
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_uint_eq(quote.level_count, 2);
    ck_assert_uint_eq(quote.levels[0].slots, 4);
    ck_assert_uint_eq(quote.levels[0].providers, 2);
    ck_assert_uint_eq(quote.levels[1].slots, 1);
    ck_assert_uint_eq(quote.levels[1].providers, 1);
}
END_TEST

START_TEST(leases_that_it_would_take_are_part_of_a_quote)
{
    const int64_t taken_at = price + EXCHANGE_INCREMENT_MICRO;
    static struct exchange_explanation why;
    struct exchange_quote quote;
    struct exchange_need need = {
        .needs = &anything,
        .account = OTHER_PROVIDER,
        .subtasks = 30,
        .slots = 1,
        .at_most = 3,
        .cap_micro = 2 * price,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .expect_ns = NS_PER_S,
    };
    offer_on(PROVIDER, 3, price, &(struct exchange_terms){.is_interruptible = true});
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    (void)submit(2, 100);
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(quote.slots_now, 1);
    ck_assert_uint_eq(quote.slots_taken, 2);
    ck_assert_int_eq(quote.taken_low_micro, taken_at);
    ck_assert_int_eq(quote.expected_micro,
                     (10 * price + 20 * taken_at + 3599) / 3600); /* ten seconds each */
    ck_assert_int_eq(why.starts_at_micro, price);                 /* what is free comes first */
    ck_assert(!why.starts_with_lease);

    (void)submit(1, 100);
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(quote.slots_now, 0);
    ck_assert_uint_eq(quote.slots_taken, 3);
    ck_assert_int_eq(quote.price_low_micro, taken_at);
    ck_assert_int_eq(why.starts_at_micro, taken_at);
    ck_assert(why.starts_with_lease);

    need.cap_micro = taken_at - 1; /* it waits, and is told what takes one */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(quote.slots_taken, 0);
    ck_assert_int_eq(why.starts_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].to, taken_at);
    ck_assert(why.smallest_change.takes);

    need.cap_micro = 2 * price;
    need.type = EXCHANGE_IOC; /* it does not stay for that */
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(quote.slots_taken, 0);
    ck_assert_int_eq(why.starts_at_micro, -1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_ORDER);
    need.type = EXCHANGE_LIMIT;
    need.is_firm_only = true;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(quote.slots_taken, 0);
    ck_assert_int_eq(why.starts_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(what_would_be_refused_is_told_so)
{
    static struct exchange_explanation why;
    struct exchange_need need = {.needs = &anything,
                                 .account = PROVIDER,
                                 .subtasks = 1,
                                 .slots = 1,
                                 .cap_micro = 2 * price,
                                 .limit_ns = NS_PER_S,
                                 .term_ns = NS_PER_S};
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, 2 * price);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, REJECT_SELF_MATCH);
    ck_assert_int_eq(why.refused_at_micro, price);
    ck_assert_uint_eq(why.own_devices, 1);
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_int_eq(why.starts_at_micro, -1);
    need.cap_micro =
        price / 2; /* below one's own: at what the other one asks it would be refused */
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, 0);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_int_eq(why.past_own_micro, 2 * price);
    ck_assert_uint_eq(why.smallest_change.count, 0);
    need.cap_micro = 2 * price;
    need.account = CONSUMER;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, 0);
    ck_assert_int_eq(why.starts_at_micro, price);
    need.type = EXCHANGE_POST_ONLY;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, REJECT_WOULD_TRADE);
    ck_assert_int_eq(why.refused_at_micro, price);
    need.cap_micro = price - 1; /* it rests, and no cap fills it */
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, 0);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 2);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_ORDER);
}
END_TEST

START_TEST(what_is_filled_at_once_or_not_at_all_starts_with_all_of_it)
{
    static struct exchange_explanation why;
    struct exchange_need need = {.needs = &anything,
                                 .account = CONSUMER,
                                 .subtasks = 3,
                                 .slots = 1,
                                 .cap_micro = price,
                                 .limit_ns = NS_PER_S,
                                 .term_ns = NS_PER_S};
    offer(PROVIDER, 2, price);
    offer(OTHER_PROVIDER, 2, 2 * price);
    const uint8_t types[] = {EXCHANGE_FOK, EXCHANGE_ALL_OR_NONE};
    for (size_t i = 0; i < sizeof types; i++) {
        need.type = types[i];
        need.cap_micro = price;
        exchange_explain(market.exchange, &need, &why);
        ck_assert_uint_eq(why.whole.slots, 3);
        ck_assert_uint_eq(why.whole.free, 2);
        ck_assert_int_eq(why.starts_at_micro, -1);
        ck_assert_uint_eq(why.smallest_change.count, 1);
        ck_assert_int_eq(why.smallest_change.changes[0].to, 2 * price);
        need.cap_micro = 2 * price;
        exchange_explain(market.exchange, &need, &why);
        ck_assert_int_eq(why.starts_at_micro, 2 * price);
        ck_assert_uint_eq(why.smallest_change.count, 0);
    }
}
END_TEST

START_TEST(a_quote_of_absurd_numbers_is_an_answer)
{
    offer(PROVIDER, 4000, 10 * price);
    const struct exchange_need need = {
        .needs = &anything,
        .account = CONSUMER,
        .subtasks = 10000000,
        .slots = 1,
        .cap_micro = INT64_MAX,
        .limit_ns = INT64_MAX,
        .term_ns = INT64_MAX,
        .expect_ns = INT64_MAX,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    ck_assert_int_eq(quote.expected_micro, INT64_MAX);
    ck_assert_int_eq(quote.suggested_micro, INT64_MAX);
}
END_TEST

SUITE("exchange quotes", set_up, tear_down, TEST(a_quote_tells_price_time_and_what_must_be_held),
      TEST(a_budget_of_nothing_is_quoted_with_what_is_given_away),
      TEST(a_budget_below_the_asks_pays_for_a_cap_that_is_raised),
      TEST(a_quote_while_all_is_leased_is_the_price_of_waiting),
      TEST(what_else_there_is_is_told_of_what_is_given_away),
      TEST(explain_counts_who_fails_at_what), TEST(explain_counts_what_fails_under_not),
      TEST(explain_knows_of_agents_that_offer_nothing),
      TEST(work_for_another_than_the_cheapest_counts_at_what_that_one_asks),
      TEST(a_provider_with_many_devices_at_a_price_is_one),
      TEST(leases_that_it_would_take_are_part_of_a_quote), TEST(what_would_be_refused_is_told_so),
      TEST(what_is_filled_at_once_or_not_at_all_starts_with_all_of_it),
      TEST(a_quote_of_absurd_numbers_is_an_answer))
