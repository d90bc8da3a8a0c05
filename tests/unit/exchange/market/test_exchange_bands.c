/* Bands of prices and the bound on what one order comes to: who sets them, what they refuse, and
 * what stays. */
#include "tests/support/hand_market.h"

#include "exchange/view/why.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* ---------------------------------------------------------------- helpers */

static struct exchange_explanation why; /* large */

static void set_band(int64_t least_micro, int64_t most_micro)
{
    struct exchange_command made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){
        .has_least = true, .has_most = true, .least_micro = least_micro, .most_micro = most_micro};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static void set_notional(int64_t most_micro)
{
    struct exchange_command made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_notional = true, .notional_micro = most_micro};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static struct exchange_command submit_at(int64_t cap_micro)
{
    struct exchange_command made = submit_of(1, 500);
    made.submit.cap_micro = cap_micro;
    return made;
}

static void check_refused(const struct exchange_command *given, enum reject_code code,
                          const char *field, int64_t value, int64_t limit)
{
    apply(given);
    check_rejected(code);
    const struct exchange_reject *reject = &nth(EFFECT_REJECT, 0)->reject;
    ck_assert_str_eq(reject->field, field);
    ck_assert_int_eq(reject->value, value);
    ck_assert_int_eq(reject->limit, limit);
}

static struct exchange_command ask_at(uint32_t provider, int64_t price_micro)
{
    struct exchange_command made = command(EXCHANGE_ASK, provider);
    made.ask = (struct exchange_ask){
        .device = {{(uint8_t)provider}}, .slots = 1, .price_micro = price_micro};
    return made;
}

static struct exchange_command replace_at(uint32_t account, struct id128 order, int64_t price_micro)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, account);
    made.replace = (struct exchange_replace){
        .order = order, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = price_micro};
    return made;
}

static struct exchange_command slots_of(uint32_t account, struct id128 order, uint32_t slots)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, account);
    made.replace = (struct exchange_replace){
        .order = order, .part = EXCHANGE_ANY_PART, .has_slots = true, .slots = slots};
    return made;
}

static struct exchange_need need_at(int64_t cap_micro)
{
    return (struct exchange_need){.needs = &anything,
                                  .account = CONSUMER,
                                  .subtasks = 1,
                                  .slots = 1,
                                  .cap_micro = cap_micro,
                                  .limit_ns = NS_PER_S,
                                  .term_ns = 20 * NS_PER_S,
                                  .budget_micro = 500 * MICRO_PER_CREDIT};
}

/* ---------------------------------------------------------------- the band */

START_TEST(an_order_outside_of_the_band_is_refused_with_the_bound_that_it_is_beyond)
{
    set_band(price, 3 * price);
    const struct exchange_bands bands = exchange_bands_now(market.exchange);
    ck_assert_int_eq(bands.least_micro, price);
    ck_assert_int_eq(bands.most_micro, 3 * price);
    struct exchange_command made = submit_at(3 * price + 1);
    check_refused(&made, REJECT_PRICE, "cap_micro", 3 * price + 1, 3 * price);
    made = submit_at(price - 1);
    check_refused(&made, REJECT_PRICE, "cap_micro", price - 1, price);
    offer(PROVIDER, 1, 0); /* what costs nothing is always within */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = ask_at(PROVIDER, 3 * price + 1);
    check_refused(&made, REJECT_PRICE, "price_micro", 3 * price + 1, 3 * price);
    made = ask_at(PROVIDER, 1);
    check_refused(&made, REJECT_PRICE, "price_micro", 1, price);
    made = ask_at(PROVIDER, 3 * price);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = submit_at(0); /* for donations alone */
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    reload();
    made = submit_at(3 * price + 1);
    check_refused(&made, REJECT_PRICE, "cap_micro", 3 * price + 1, 3 * price);
}
END_TEST

START_TEST(what_is_not_said_stays)
{
    set_band(price, 3 * price);
    set_notional(MICRO_PER_CREDIT);
    struct exchange_command made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_most = true, .most_micro = 2 * price};
    apply(&made);
    const struct exchange_bands bands = exchange_bands_now(market.exchange);
    ck_assert_int_eq(bands.least_micro, price);
    ck_assert_int_eq(bands.most_micro, 2 * price);
    ck_assert_int_eq(bands.notional_micro, MICRO_PER_CREDIT);
    ck_assert_str_eq(record_of(LEDGER_FLAG)->name, "bands");
}
END_TEST

START_TEST(a_band_that_lets_nothing_in_or_of_who_may_not_is_refused)
{
    struct exchange_command made = command(EXCHANGE_BANDS, CONSUMER);
    made.bands = (struct exchange_bands){.has_most = true, .most_micro = price};
    check_refused(&made, REJECT_ROLE, "account", 0, 0);
    made.account = OPERATOR;
    made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_most = true, .most_micro = 0};
    check_refused(&made, REJECT_PRICE, "most_micro", 0, 1);
    made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_least = true, .least_micro = INT64_MAX};
    check_refused(&made, REJECT_PRICE, "least_micro", INT64_MAX, 10 * price);
    made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_least = true, .least_micro = -1};
    check_refused(&made, REJECT_PRICE, "least_micro", -1, 0);
    made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_notional = true, .notional_micro = -1};
    check_refused(&made, REJECT_NOTIONAL, "notional_micro", -1, 0);
}
END_TEST

START_TEST(what_rests_outside_of_a_new_band_stays_and_fills_but_is_not_replaced)
{
    struct exchange_command dear = submit_at(5 * price);
    dear.submit.subtasks = 4;
    dear.submit.at_most = 4;
    apply(&dear);
    offer(PROVIDER, 2, 8 * price);
    const struct id128 ask = record_of(LEDGER_ASK)->order;
    set_band(0, 3 * price);
    reload();
    struct exchange_command made = replace_at(CONSUMER, dear.id, 4 * price);
    check_refused(&made, REJECT_PRICE, "price_micro", 4 * price, 3 * price);
    made = slots_of(CONSUMER, dear.id,
                    8); /* another place in the queue, at a price that no new order has */
    check_refused(&made, REJECT_PRICE, "price_micro", 5 * price, 3 * price);
    made = slots_of(CONSUMER, dear.id, 2); /* less of it keeps its place */
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = replace_at(PROVIDER, ask, 7 * price);
    check_refused(&made, REJECT_PRICE, "price_micro", 7 * price, 3 * price);
    made = slots_of(PROVIDER, ask, 1);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = replace_at(PROVIDER, ask, 8 * price); /* as it is: whether it still stands */
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    offer(OTHER_PROVIDER, 1, 2 * price);
    ck_assert_uint_eq(granted_to(dear.id), 1);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, 5 * price);
    made = replace_at(PROVIDER, ask, 3 * price);
    apply(&made);
    ck_assert_uint_eq(granted_to(dear.id), 1);
    reload();
}
END_TEST

START_TEST(what_names_no_price_follows_the_band)
{
    set_band(0, 3 * price);
    struct exchange_command made = submit_at(-1);
    made.submit.type = EXCHANGE_MARKET;
    apply(&made);
    ck_assert_int_eq(record_of(LEDGER_BID)->price_micro, 3 * price);
    set_band(0, 4 * price);
    made = submit_at(-1);
    made.submit.type = EXCHANGE_MARKET;
    apply(&made);
    ck_assert_int_eq(record_of(LEDGER_BID)->price_micro, 4 * price);
}
END_TEST

START_TEST(a_higher_band_fills_bids_by_value_that_could_not_pay)
{
    const struct attribute facts[] = {{.name = "bf16", .number = RATE_UNIT}};
    struct exchange_device device = {.device = {{PROVIDER}},
                                     .slots = 1,
                                     .attributes = facts,
                                     .attribute_count = 1,
                                     .label = "fast"};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&device, 1};
    apply(&made);
    made = ask_at(PROVIDER, 5 * price);
    apply(&made);
    set_band(0, 3 * price);
    struct exchange_command bid = submit_at(8 * price);
    bid.submit.rate = RATE_BF16;
    apply(&bid);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0); /* a value is no way around the band */
    check_hash();
    set_band(0, 6 * price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, 5 * price);
    reload();
}
END_TEST

/* A bid by value is worth more than one that came after it at a cap above the lowered band, and has
 * no turn all the same. */
START_TEST(what_the_band_holds_is_in_nobodys_way)
{
    tear_down();
    set_up_with(64, 4096, 64); /* room for both classes */
    const struct attribute facts[] = {{.name = "bf16", .number = RATE_UNIT}};
    struct exchange_device device = {.device = {{PROVIDER}},
                                     .slots = 1,
                                     .attributes = facts,
                                     .attribute_count = 1,
                                     .label = "fast"};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&device, 1};
    apply(&made);
    made = ask_at(PROVIDER, 5 * price);
    apply(&made);
    made = submit_at(5 * price); /* has it */
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    struct exchange_command by_value = submit_at(8 * price);
    by_value.submit.rate = RATE_BF16;
    by_value.submit.budget_micro = 200 * MICRO_PER_CREDIT;
    apply(&by_value);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command by_cap = submit_at(6 * price);
    by_cap.submit.budget_micro = 200 * MICRO_PER_CREDIT;
    apply(&by_cap);
    ck_assert(exchange_explain_job(market.exchange, &by_cap.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.affordable, 1);
    ck_assert_uint_eq(why.ahead, 1);
    set_band(0, 3 * price);
    ck_assert(exchange_explain_job(market.exchange, &by_cap.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.affordable, 1);
    ck_assert_uint_eq(why.ahead, 0);
}
END_TEST

/* ---------------------------------------------------------------- what one order comes to */

START_TEST(an_order_that_comes_to_more_than_one_may_is_refused)
{
    set_notional(40 * MICRO_PER_CREDIT);
    struct exchange_command made = submit_at(price); /* a credit a second, for 20 s */
    made.submit.subtasks = 3;
    made.submit.at_most = 3;
    check_refused(&made, REJECT_NOTIONAL, "notional_micro", 60 * MICRO_PER_CREDIT,
                  40 * MICRO_PER_CREDIT);
    made = submit_at(price);
    made.submit.subtasks = 3;
    made.submit.at_most = 2;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command more = slots_of(CONSUMER, made.id, 3);
    check_refused(&more, REJECT_NOTIONAL, "notional_micro", 60 * MICRO_PER_CREDIT,
                  40 * MICRO_PER_CREDIT);
    more = replace_at(CONSUMER, made.id, 2 * price);
    check_refused(&more, REJECT_NOTIONAL, "notional_micro", 80 * MICRO_PER_CREDIT,
                  40 * MICRO_PER_CREDIT);
    made = submit_of(1000, 40); /* its budget bounds it, whatever it asks for */
    made.submit.cap_micro = 9 * price;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    reload();
}
END_TEST

START_TEST(an_ask_comes_to_its_longest_term_or_to_an_hour)
{
    offer(PROVIDER, 2, price);
    set_notional(7200 * MICRO_PER_CREDIT);
    struct exchange_command made = ask_at(PROVIDER, price);
    made.ask.slots = 2;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    made = ask_at(PROVIDER, price + 1800);
    made.ask.slots = 2;
    check_refused(&made, REJECT_NOTIONAL, "notional_micro", 7200 * MICRO_PER_CREDIT + 3600,
                  7200 * MICRO_PER_CREDIT);
    made = ask_at(PROVIDER, price);
    made.ask.max_term_ns = 3 * NS_PER_HOUR;
    check_refused(&made, REJECT_NOTIONAL, "notional_micro", 10800 * MICRO_PER_CREDIT,
                  7200 * MICRO_PER_CREDIT);
    made.ask.max_term_ns = 2 * NS_PER_HOUR;
    made.id.bytes[3] ^= 1;
    made.index = market.index + 1;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    set_notional(0);
    made = ask_at(PROVIDER, 9 * price);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

/* ---------------------------------------------------------------- what is told */

START_TEST(explain_names_what_no_order_reaches_and_suggests_no_such_price)
{
    offer(PROVIDER, 1, 5 * price);
    offer(OTHER_PROVIDER, 1, 4 * price);
    set_band(0, 3 * price);
    struct exchange_command made = submit_at(price);
    apply(&made);
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.asking, 2);
    ck_assert_uint_eq(why.beyond, 2);
    ck_assert_int_eq(why.band_most_micro, 3 * price);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
    struct exchange_command lower = ask_at(PROVIDER, 2 * price);
    apply(&lower);
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.beyond, 1);
    ck_assert_int_eq(why.fills_at_micro, 2 * price);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.cap_micro, 2 * price);
}
END_TEST

START_TEST(a_suggested_cap_is_one_that_an_order_may_have)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_at(price / 2);
    apply(&made);
    set_band(2 * price, 3 * price);
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_int_eq(why.fills_at_micro, 2 * price);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.cap_micro, 2 * price);
    ck_assert_int_eq(why.smallest_change.price_micro, price);
    struct exchange_command again = replace_at(CONSUMER, made.id, why.smallest_change.cap_micro);
    apply(&again);
    ck_assert_uint_eq(granted_to(made.id), 1);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, price);
}
END_TEST

START_TEST(what_would_be_refused_is_foretold)
{
    offer(PROVIDER, 1, price);
    set_band(0, 3 * price);
    struct exchange_need need = need_at(4 * price);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, REJECT_PRICE);
    ck_assert_int_eq(why.refused_at_micro, 3 * price);
    ck_assert_int_eq(why.smallest_change.cap_micro, 3 * price);
    need = need_at(2 * price);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, 0);
    ck_assert_int_eq(why.starts_at_micro, price);
    set_notional(30 * MICRO_PER_CREDIT);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, REJECT_NOTIONAL);
    ck_assert_int_eq(why.refused_at_micro, 30 * MICRO_PER_CREDIT);
    need = need_at(price / 2); /* 10 credits; with a cap that fills it is 20 */
    set_notional(15 * MICRO_PER_CREDIT);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.refusal, 0);
    ck_assert_uint_eq(why.smallest_change.count, 0);
    set_notional(20 * MICRO_PER_CREDIT);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.smallest_change.count, 1);
}
END_TEST

START_TEST(without_a_cap_nothing_above_the_band_is_foretold)
{
    offer(PROVIDER, 1, 3 * price);
    set_band(0, 2 * price);
    const struct exchange_need need = need_at(-1);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_int_eq(why.starts_at_micro, -1);
    ck_assert_uint_eq(why.beyond, 1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(no_budget_is_suggested_that_no_order_may_have)
{
    offer(PROVIDER, 2, price);
    struct exchange_command made = submit_of(2, 30); /* two slots for a term come to 40 */
    made.submit.type = EXCHANGE_ALL_OR_NONE;
    made.submit.cap_micro = price;
    apply(&made);
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_BUDGET);
    set_notional(why.smallest_change.budget_micro -
                 1); /* then it is a term that the budget covers */
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_TERM);
    ck_assert_int_eq(why.smallest_change.term_ns, 15 * NS_PER_S);
    ck_assert_int_eq(why.smallest_change.price_micro, price);
    set_notional(40 * MICRO_PER_CREDIT);
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_BUDGET);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = made.id;
    apply(&cancel);
    set_notional(40 * MICRO_PER_CREDIT - 1);
    struct exchange_command again = submit_of(2, 30);
    again.submit.type = EXCHANGE_ALL_OR_NONE;
    again.submit.cap_micro = price;
    again.submit.term_ns = 15 * NS_PER_S;
    apply(&again);
    ck_assert_uint_eq(granted_to(again.id), 2);
    offer(OTHER_PROVIDER, 2, price);
    made = submit_of(2, 10); /* which buys less time than one subtask may take */
    made.submit.type = EXCHANGE_ALL_OR_NONE;
    made.submit.cap_micro = price;
    apply(&made);
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(an_agent_is_told_no_price_that_its_ask_may_not_have)
{
    static struct exchange_why told;
    struct exchange_command made = submit_at(5 * price);
    apply(&made);
    offer(PROVIDER, 1, 8 * price);
    set_band(0, 3 * price);
    ck_assert(exchange_explain_ask(market.exchange, PROVIDER, 0, &told) == WHY_OK);
    ck_assert_int_eq(told.fills_at_micro, 3 * price);
    set_band(6 * price, 8 * price);
    ck_assert(exchange_explain_ask(market.exchange, PROVIDER, 0, &told) == WHY_OK);
    ck_assert_int_eq(told.fills_at_micro, -1);
}
END_TEST

SUITE("bands", set_up, tear_down,
      TEST(an_order_outside_of_the_band_is_refused_with_the_bound_that_it_is_beyond),
      TEST(what_is_not_said_stays), TEST(a_band_that_lets_nothing_in_or_of_who_may_not_is_refused),
      TEST(what_rests_outside_of_a_new_band_stays_and_fills_but_is_not_replaced),
      TEST(what_names_no_price_follows_the_band),
      TEST(a_higher_band_fills_bids_by_value_that_could_not_pay),
      TEST(what_the_band_holds_is_in_nobodys_way),
      TEST(an_order_that_comes_to_more_than_one_may_is_refused),
      TEST(an_ask_comes_to_its_longest_term_or_to_an_hour),
      TEST(explain_names_what_no_order_reaches_and_suggests_no_such_price),
      TEST(a_suggested_cap_is_one_that_an_order_may_have), TEST(what_would_be_refused_is_foretold),
      TEST(without_a_cap_nothing_above_the_band_is_foretold),
      TEST(no_budget_is_suggested_that_no_order_may_have),
      TEST(an_agent_is_told_no_price_that_its_ask_may_not_have))
