/* Orders get other terms: who keeps its place, who pays, and what is refused without a trace. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/replace_orders.h"
#include "tests/support/suite.h"

#include <check.h>

static void replace_price(uint32_t account, struct id128 order, int64_t price_micro)
{
    struct exchange_command made = replace_of(account, order);
    made.replace.has_price = true;
    made.replace.price_micro = price_micro;
    apply(&made);
}

static void replace_slots(uint32_t account, struct id128 order, uint32_t slots)
{
    struct exchange_command made = replace_of(account, order);
    made.replace.has_slots = true;
    made.replace.slots = slots;
    apply(&made);
}

static void replace_budget(uint32_t account, struct id128 order, int64_t budget_micro)
{
    struct exchange_command made = replace_of(account, order);
    made.replace.has_budget = true;
    made.replace.budget_micro = budget_micro;
    apply(&made);
}

static struct id128 submit_at(int64_t cap_micro, uint32_t at_most)
{
    struct exchange_command made = submit_of(8, 100);
    made.submit.cap_micro = cap_micro;
    made.submit.at_most = at_most;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static struct id128 ask_of(uint32_t provider, uint32_t slots, int64_t price_micro)
{
    offer(provider, slots, price_micro);
    return record_of(LEDGER_ASK)->order;
}

/* ---------------------------------------------------------------- bids */

START_TEST(a_waiting_job_pays_more_and_starts)
{
    offer(PROVIDER, 1, 2 * price);
    struct id128 job = submit(2, 100);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_PRICE);
    replace_price(CONSUMER, job, 2 * price);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert(id128_equal(&record_of(LEDGER_BID)->order, &job));
    ck_assert_int_eq(record_of(LEDGER_BID)->price_micro, 2 * price);
    ck_assert_uint_eq(granted_to(job), 1);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, 2 * price);
    reload();
}
END_TEST

START_TEST(another_price_is_a_new_place_and_fewer_slots_are_not)
{
    struct id128 first = submit_at(price, 4);
    struct id128 second = submit_at(price, 4);
    replace_slots(CONSUMER, first, 1); /* less of it: still first */
    ck_assert_uint_eq(record_of(LEDGER_BID)->slots, 1);
    reload();
    offer(PROVIDER, 1, price);
    ck_assert_uint_eq(granted_to(first), 1);

    replace_slots(CONSUMER, first, 2); /* more of it: behind the second */
    offer(OTHER_PROVIDER, 2, price);
    ck_assert_uint_eq(granted_to(second), 2);
    ck_assert_uint_eq(granted_to(first), 0);
}
END_TEST

START_TEST(back_at_its_price_it_is_last)
{
    struct id128 first = submit_at(price, 1);
    struct id128 second = submit_at(price, 1);
    replace_price(CONSUMER, first, 2 * price);
    replace_price(CONSUMER, first, price);
    offer(PROVIDER, 1, price);
    ck_assert_uint_eq(granted_to(second), 1);
    ck_assert_uint_eq(granted_to(first), 0);
}
END_TEST

/* Log time of the command is later than all of it. */
START_TEST(what_fell_due_is_settled_before_a_command_is_looked_at)
{
    offer(PROVIDER, 1, price);
    struct id128 first = submit_at(price, 1);
    struct id128 second = submit_at(2 * price, 1);
    ck_assert_uint_eq(granted_to(second), 0);
    market.now_ns += 3600 * NS_PER_S; /* the first's lease is over: its slot is the second's */
    struct id128 third = submit_at(3 * price, 1);
    ck_assert_uint_eq(granted_to(first), 0);
    ck_assert_uint_eq(granted_to(second), 1);
    ck_assert_uint_eq(granted_to(third), 0);
}
END_TEST

START_TEST(what_is_said_again_changes_nothing)
{
    struct id128 first = submit_at(price, 4);
    struct id128 second = submit_at(price, 4);
    replace_price(CONSUMER, first, price);
    ck_assert_ptr_null(record_of(LEDGER_BID));
    replace_slots(CONSUMER, first, 4);
    ck_assert_ptr_null(record_of(LEDGER_BID));
    replace_budget(CONSUMER, first, 100 * MICRO_PER_CREDIT);
    ck_assert_ptr_null(record_of(LEDGER_HOLD));
    offer(PROVIDER, 4, price);
    ck_assert_uint_eq(granted_to(first), 4);
    ck_assert_uint_eq(granted_to(second), 0);
}
END_TEST

START_TEST(a_budget_is_raised_out_of_what_is_there)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(4, 10); /* a term costs 20 */
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_BUDGET);
    replace_budget(CONSUMER, job, 2000 * MICRO_PER_CREDIT);
    check_rejected(REJECT_FUNDS);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 990 * MICRO_PER_CREDIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 1990 * MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 10 * MICRO_PER_CREDIT);

    replace_budget(CONSUMER, job, 25 * MICRO_PER_CREDIT);
    ck_assert_int_eq(record_of(LEDGER_HOLD)->amount_micro, 15 * MICRO_PER_CREDIT);
    ck_assert_ptr_null(record_of(LEDGER_BID)); /* its cap is what it was */
    ck_assert_int_eq(job_row(job).budget_micro, 25 * MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 25 * MICRO_PER_CREDIT);
    ck_assert_uint_eq(granted_to(job), 1);
    replace_budget(CONSUMER, job, 24 * MICRO_PER_CREDIT);
    check_rejected(REJECT_BUDGET);
    reload();
}
END_TEST

START_TEST(a_market_price_follows_the_budget)
{
    struct exchange_command made = submit_of(10, 10);
    made.submit.cap_micro = -1;
    made.submit.type = EXCHANGE_MARKET;
    made.submit.expect_ns = 4 * NS_PER_S;
    apply(&made);
    ck_assert_int_eq(record_of(LEDGER_BID)->price_micro, price / 4); /* 10 credits for 40 s */
    reload();
    replace_budget(CONSUMER, made.id, 40 * MICRO_PER_CREDIT);
    ck_assert_int_eq(record_of(LEDGER_BID)->price_micro, price);
}
END_TEST

START_TEST(a_lease_above_a_lowered_cap_runs_out)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1000, 500);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    const uint64_t lease = nth(EFFECT_LEASE_GRANT, 0)->grant.lease;
    replace_price(CONSUMER, job, price / 2);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    size_t renewed = 0;
    bool has_ended = false;
    for (int i = 0; i < 200 && !has_ended; i++) {
        market.now_ns = exchange_next_deadline_ns(market.exchange);
        tick();
        renewed += count_of(EFFECT_LEASE_RENEW);
        has_ended =
            count_of(EFFECT_LEASE_END) > 0 && nth(EFFECT_LEASE_END, 0)->lease.lease == lease;
    }
    ck_assert(has_ended);
    ck_assert_uint_eq(renewed, 0);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_PRICE);
}
END_TEST

START_TEST(one_part_or_all_of_them)
{
    struct exchange_command made = submit_of(10, 1000);
    struct exchange_part more = {.subtasks = 4,
                                 .needs = &anything,
                                 .slots = 3,
                                 .cap_micro = price,
                                 .limit_ns = 10 * NS_PER_S,
                                 .term_ns = 20 * NS_PER_S};
    made.submit.parts = &more;
    made.submit.part_count = 1;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);

    struct exchange_command replace = replace_of(CONSUMER, made.id);
    replace.replace.has_price = true;
    replace.replace.price_micro = price / 2;
    replace.replace.part = 1;
    apply(&replace);
    ck_assert_uint_eq(count_of(EFFECT_LEDGER), 1);
    ck_assert_uint_eq(record_of(LEDGER_BID)->width, 3);

    replace = replace_of(CONSUMER, made.id);
    replace.replace.has_price = true;
    replace.replace.price_micro = 2 * price;
    apply(&replace);
    ck_assert_uint_eq(count_of(EFFECT_LEDGER), 2);

    replace = replace_of(CONSUMER, made.id);
    replace.replace.has_slots = true;
    replace.replace.slots = 2; /* fits the first and not the second: neither has it */
    apply(&replace);
    check_rejected(REJECT_QUANTITY);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 3);
    offer(PROVIDER, 64, price);
    ck_assert_uint_eq(granted_to(made.id), 6 + 4 * 3);
    reload();
}
END_TEST

/* ---------------------------------------------------------------- asks */

START_TEST(an_ask_that_offers_less_keeps_its_place)
{
    struct id128 first = ask_of(PROVIDER, 2, price);
    (void)ask_of(OTHER_PROVIDER, 2, price);
    replace_slots(PROVIDER, first, 1);
    ck_assert(id128_equal(&record_of(LEDGER_ASK)->order, &first));
    ck_assert_uint_eq(nth(EFFECT_ASK, 0)->account, PROVIDER);
    ck_assert_uint_eq(nth(EFFECT_ASK, 0)->ask.slots, 1);
    reload();
    (void)submit_at(price, 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_GRANT, 0)->account, PROVIDER);
}
END_TEST

START_TEST(an_ask_at_another_price_is_a_new_one)
{
    struct id128 first = ask_of(PROVIDER, 2, price);
    (void)ask_of(OTHER_PROVIDER, 2, price);
    replace_price(PROVIDER, first, price + 1);
    replace_price(PROVIDER, first, price);
    (void)submit_at(price, 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_GRANT, 0)->account, OTHER_PROVIDER);

    struct id128 waiting = submit_at(price / 2, 1);
    replace_price(PROVIDER, first, price / 2); /* comes to the bid that waits */
    ck_assert_uint_eq(granted_to(waiting), 1);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, price / 2);
}
END_TEST

START_TEST(leases_stand_whatever_becomes_of_their_ask)
{
    struct id128 ask = ask_of(PROVIDER, 4, price);
    struct id128 job = submit_at(price, 4);
    ck_assert_uint_eq(granted_to(job), 4);
    replace_slots(PROVIDER, ask, 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    replace_price(PROVIDER, ask, 2 * price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    market.now_ns += 20 * NS_PER_S;
    struct exchange_lease_row row;
    ck_assert_uint_eq(exchange_leases(market.exchange, &job, &row, 1), 1);
    ck_assert_int_eq(row.price_micro, price);
    reload();
}
END_TEST

START_TEST(a_refused_replace_leaves_no_trace)
{
    const int64_t band = 10 * price;
    struct id128 ask = ask_of(PROVIDER, 4, 2 * price);
    struct id128 job = submit_at(price, 4);
    const struct id128 nobody = {{9, 9}};
    const struct {
        uint32_t account;
        struct id128 order;
        struct exchange_replace what;
        enum reject_code code;
        const char *field;
        int64_t value, limit;
    } rows[] = {
        {CONSUMER, nobody, {.has_price = true}, REJECT_NOT_FOUND, "order", 0, 0},
        {PROVIDER, job, {.has_price = true}, REJECT_NOT_FOUND, "order", 0, 0},
        {OTHER_PROVIDER, ask, {.has_price = true}, REJECT_NOT_FOUND, "order", 0, 0},
        {CONSUMER, ask, {.has_price = true}, REJECT_NOT_FOUND, "order", 0, 0},
        {CONSUMER, job, {.part = 1, .has_slots = true}, REJECT_NOT_FOUND, "part", 1, 0},
        {CONSUMER, job, {.has_price = true, .price_micro = -1}, REJECT_PRICE, "price_micro", -1, 0},
        {CONSUMER,
         job,
         {.has_price = true, .price_micro = band + 1},
         REJECT_PRICE,
         "price_micro",
         band + 1,
         band},
        {CONSUMER,
         job,
         {.has_price = true, .price_micro = INT64_MAX},
         REJECT_PRICE,
         "price_micro",
         INT64_MAX,
         band},
        {CONSUMER,
         job,
         {.has_price = true, .price_micro = INT64_MIN},
         REJECT_PRICE,
         "price_micro",
         INT64_MIN,
         0},
        {CONSUMER,
         job,
         {.has_budget = true},
         REJECT_BUDGET,
         "budget_micro",
         0,
         100 * MICRO_PER_CREDIT},
        {CONSUMER,
         job,
         {.has_budget = true, .budget_micro = -1},
         REJECT_BUDGET,
         "budget_micro",
         -1,
         100 * MICRO_PER_CREDIT},
        {CONSUMER,
         job,
         {.has_budget = true, .budget_micro = INT64_MIN},
         REJECT_BUDGET,
         "budget_micro",
         INT64_MIN,
         100 * MICRO_PER_CREDIT},
        {CONSUMER,
         job,
         {.has_budget = true, .budget_micro = INT64_MAX},
         REJECT_FUNDS,
         "budget_micro",
         INT64_MAX - 100 * MICRO_PER_CREDIT,
         900 * MICRO_PER_CREDIT},
        /* One field is good, another is not: neither is taken. */
        {CONSUMER,
         job,
         {.has_price = true, .price_micro = 2 * price, .has_budget = true, .budget_micro = 1},
         REJECT_BUDGET,
         "budget_micro",
         1,
         100 * MICRO_PER_CREDIT},
        {PROVIDER, ask, {.has_slots = true, .slots = 0}, REJECT_QUANTITY, "slots", 0, 4},
        {PROVIDER, ask, {.has_slots = true, .slots = 5}, REJECT_QUANTITY, "slots", 5, 4},
        {PROVIDER, ask, {.has_price = true, .price_micro = -1}, REJECT_PRICE, "price_micro", -1, 0},
        {PROVIDER,
         ask,
         {.has_price = true, .price_micro = INT64_MAX},
         REJECT_PRICE,
         "price_micro",
         INT64_MAX,
         band},
        {PROVIDER,
         ask,
         {.has_budget = true, .budget_micro = 7},
         REJECT_BUDGET,
         "budget_micro",
         7,
         0},
        {PROVIDER,
         ask,
         {.has_slots = true, .slots = 1, .has_price = true, .price_micro = band + 1},
         REJECT_PRICE,
         "price_micro",
         band + 1,
         band},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exchange_command made = command(EXCHANGE_REPLACE, rows[i].account);
        made.replace = rows[i].what;
        made.replace.order = rows[i].order;
        check_refused(&made, rows[i].code, rows[i].field, rows[i].value, rows[i].limit);
    }
}
END_TEST

START_TEST(nothing_is_replaced_once_it_has_ended_or_while_the_market_is_halted)
{
    struct id128 job = submit_at(price, 4);
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt.halted = true;
    apply(&halt);
    struct exchange_command made = replace_of(CONSUMER, job);
    made.replace.has_price = true;
    check_refused(&made, REJECT_HALTED, "market", 0, 0);
    halt = command(EXCHANGE_HALT, OPERATOR);
    apply(&halt);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    made = replace_of(CONSUMER, job);
    made.replace.has_price = true;
    check_refused(&made, REJECT_STATE, "order", JOB_CANCELLED, JOB_OPEN);
    struct exchange_command again = made; /* the same id, another body */
    again.index = market.index + 1;
    again.body.bytes[0] = 1;
    check_refused(&again, REJECT_ID_REUSED, "id", 0, 0);
}
END_TEST

/* One account with both roles. */
static uint32_t join_trader(void)
{
    struct exchange_command invite = command(EXCHANGE_INVITE, OPERATOR);
    invite.invite = (struct exchange_invite){.token_hash = {{5}},
                                             .roles = ROLE_CONSUMER | ROLE_PROVIDER,
                                             .credits_micro = 500 * MICRO_PER_CREDIT,
                                             .expires_ns = market.now_ns + NS_PER_S};
    apply(&invite);
    struct exchange_command join = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    join.join = (struct exchange_join){.account = {{5}}, .token_hash = {{5}}};
    apply(&join);
    uint32_t number;
    ck_assert(account_with(&join.join.account, &number));
    return number;
}

START_TEST(nobody_comes_to_trade_with_himself_by_a_new_price)
{
    const uint32_t trader = join_trader();
    struct id128 ask = ask_of(trader, 2, 2 * price);
    struct exchange_command made = submit_of(4, 100);
    made.account = trader;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command up = replace_of(trader, made.id);
    up.replace.has_price = true;
    up.replace.price_micro = 3 * price;
    check_refused(&up, REJECT_SELF_MATCH, "price_micro", 3 * price, 0);
    struct exchange_command down = replace_of(trader, ask);
    down.replace.has_price = true;
    down.replace.price_micro = price;
    check_refused(&down, REJECT_SELF_MATCH, "price_micro", price, 0);
    /* The two stand as before, at their prices. */
    offer(OTHER_PROVIDER, 1, price);
    ck_assert_uint_eq(granted_to(made.id), 1);
    struct id128 other = submit_at(2 * price, 2);
    ck_assert_uint_eq(granted_to(other), 2);
}
END_TEST

SUITE("exchange: orders", set_up, tear_down, TEST(a_waiting_job_pays_more_and_starts),
      TEST(another_price_is_a_new_place_and_fewer_slots_are_not),
      TEST(back_at_its_price_it_is_last),
      TEST(what_fell_due_is_settled_before_a_command_is_looked_at),
      TEST(what_is_said_again_changes_nothing), TEST(a_budget_is_raised_out_of_what_is_there),
      TEST(a_market_price_follows_the_budget), TEST(a_lease_above_a_lowered_cap_runs_out),
      TEST(one_part_or_all_of_them), TEST(an_ask_that_offers_less_keeps_its_place),
      TEST(an_ask_at_another_price_is_a_new_one), TEST(leases_stand_whatever_becomes_of_their_ask),
      TEST(a_refused_replace_leaves_no_trace),
      TEST(nothing_is_replaced_once_it_has_ended_or_while_the_market_is_halted),
      TEST(nobody_comes_to_trade_with_himself_by_a_new_price))
