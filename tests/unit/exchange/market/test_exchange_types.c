/* The tests follow orders that do not simply rest: immediate or cancel, fill or kill, post-only,
 * all or none. */
#include "exchange/view/listings.h"
#include "tests/support/hand_market.h"

#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- helpers */

static struct id128 submit_type(enum exchange_order_type type, uint32_t subtasks, int64_t cap_micro)
{
    struct exchange_command made = submit_of(subtasks, 500);
    made.submit.cap_micro = cap_micro;
    made.submit.type = type;
    apply(&made);
    return made.id;
}

static void ask_type(enum exchange_order_type type, uint32_t slots, int64_t price_micro)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){
        .device = {{PROVIDER}}, .slots = slots, .price_micro = price_micro, .type = type};
    apply(&made);
}

static void replace_cap(struct id128 job, int64_t cap_micro)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, CONSUMER);
    made.replace = (struct exchange_replace){
        .order = job, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = cap_micro};
    apply(&made);
}

static void check_ended(struct id128 job, uint32_t state, uint32_t reason)
{
    ck_assert_uint_eq(job_row(job).state, state);
    ck_assert_uint_eq(job_row(job).reason, reason);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    reload();
}

struct listed {
    uint32_t count;
    struct exchange_order_row last;
};

static bool list(void *context, const struct exchange_order_row *row)
{
    struct listed *listed = context;
    listed->count++;
    listed->last = *row;
    return true;
}

static struct listed orders_of(uint32_t account)
{
    struct listed listed = {0};
    uint64_t next;
    ck_assert_int_eq(exchange_list_orders(market.exchange, account, 0, list, &listed, &next),
                     LISTING_END);
    return listed;
}

static bool count_row(void *context, const struct exchange_book_row *row)
{
    *(uint32_t *)context += row->is_bid;
    return true;
}

static uint32_t bids_shown(void)
{
    uint32_t bids = 0;
    uint32_t next;
    ck_assert_int_eq(exchange_list_book(market.exchange, NULL, 0, count_row, &bids, &next),
                     LISTING_END);
    return bids;
}

/* ---------------------------------------------------------------- immediate or cancel */

START_TEST(what_is_there_is_taken_and_used_until_all_is_done)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_type(EXCHANGE_IOC, 3, price);
    ck_assert_uint_eq(granted_to(job), 1);
    ck_assert_uint_eq(record_of(LEDGER_CANCEL)->status, 6); /* the rest of the bid */
    ck_assert_uint_eq(orders_of(CONSUMER).count, 0);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_RUNNING);
    offer(OTHER_PROVIDER, 4, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    reload();
    for (uint32_t index = 0; index < 3; index++) {
        result(PROVIDER, job, (struct exchange_work){.lease = 1, .index = index, .attempt = 1},
               OUTCOME_OK, 0);
    }
    check_ended(job, JOB_DONE, JOB_REASON_NONE);
}
END_TEST

START_TEST(with_nothing_there_the_job_ends_at_once)
{
    offer(PROVIDER, 1, 2 * price);
    struct id128 job = submit_type(EXCHANGE_IOC, 3, price);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(job_row(job).cancelled, 3);
    check_ended(job, JOB_CANCELLED, JOB_REASON_NOT_FILLED);
}
END_TEST

START_TEST(when_its_leases_are_over_what_is_left_is_cancelled)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_type(EXCHANGE_IOC, 3, price);
    result(PROVIDER, job, (struct exchange_work){.lease = 1, .index = 0, .attempt = 1}, OUTCOME_OK,
           0);
    reload();
    presence(EXCHANGE_GOODBYE, PROVIDER);
    ck_assert_uint_eq(job_row(job).accepted, 1);
    ck_assert_uint_eq(job_row(job).cancelled, 2);
    check_ended(job, JOB_CANCELLED, JOB_REASON_LEASES_OVER);
}
END_TEST

START_TEST(a_lost_provider_that_may_come_back_is_waited_for)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_type(EXCHANGE_IOC, 3, price);
    presence(EXCHANGE_SUSPECT, PROVIDER);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN);
    presence(EXCHANGE_RETURNED, PROVIDER);
    ck_assert_uint_eq(job_row(job).running, 2);
    presence(EXCHANGE_SUSPECT, PROVIDER);
    market.now_ns += 3600 * NS_PER_S;
    tick();
    check_ended(job, JOB_CANCELLED, JOB_REASON_LEASES_OVER);
}
END_TEST

START_TEST(an_order_that_does_not_stand_gets_no_other_terms)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_type(EXCHANGE_IOC, 3, price);
    replace_cap(job, 2 * price);
    check_rejected(REJECT_STATE);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(an_ask_that_is_immediate_sells_one_term_and_is_gone)
{
    struct id128 job = submit_type(EXCHANGE_LIMIT, 8, price);
    offer(PROVIDER, 4, 2 * price); /* nobody pays that */
    ask_type(EXCHANGE_IOC, 2, price);
    ck_assert_uint_eq(granted_to(job), 2);
    ck_assert(nth(EFFECT_ASK, 0)->ask.stands);
    ck_assert(!nth(EFFECT_ASK, 1)->ask.stands);
    ck_assert_uint_eq(orders_of(PROVIDER).count, 0);
    market.now_ns += 3600 * NS_PER_S; /* no ask stands: it is not renewed */
    tick();
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(job_row(job).running, 0);
    reload();
}
END_TEST

/* ---------------------------------------------------------------- fill or kill */

START_TEST(all_of_it_or_nothing)
{
    offer(PROVIDER, 2, price);
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit_type(EXCHANGE_FOK, 4, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    check_ended(job, JOB_CANCELLED, JOB_REASON_NOT_FILLED);
    job = submit_type(EXCHANGE_FOK, 3, price);
    ck_assert_uint_eq(granted_to(job), 3);
    ck_assert_uint_eq(orders_of(CONSUMER).count, 0);
    reload();
}
END_TEST

START_TEST(a_budget_that_does_not_cover_all_of_it_buys_nothing)
{
    offer(PROVIDER, 4, price);
    struct exchange_command made = submit_of(4, 79); /* a term of one slot costs 20 */
    made.submit.type = EXCHANGE_FOK;
    apply(&made);
    check_ended(made.id, JOB_CANCELLED, JOB_REASON_NOT_FILLED);
}
END_TEST

/* ---------------------------------------------------------------- post-only */

START_TEST(a_bid_that_would_trade_at_once_is_refused)
{
    offer(PROVIDER, 1, price);
    (void)submit_type(EXCHANGE_POST_ONLY, 1, 2 * price);
    check_rejected(REJECT_WOULD_TRADE);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 2 * price);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, price);

    struct id128 job = submit_type(EXCHANGE_POST_ONLY, 1, price - 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_int_eq(orders_of(CONSUMER).last.type, EXCHANGE_POST_ONLY);
    replace_cap(job, price);
    check_rejected(REJECT_WOULD_TRADE);
    reload();
    offer(OTHER_PROVIDER, 1, price / 2);
    ck_assert_uint_eq(granted_to(job), 1);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, price - 1);
}
END_TEST

START_TEST(a_post_only_bid_that_could_not_pay_is_refused_for_its_budget)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_of(1, 19); /* a term is 20 s at a credit a second */
    made.submit.type = EXCHANGE_POST_ONLY;
    apply(&made);
    check_rejected(REJECT_BUDGET);
    const struct exchange_reject *reject = &nth(EFFECT_REJECT, 0)->reject;
    ck_assert_str_eq(reject->field, "budget_micro");
    ck_assert_int_eq(reject->value, 19 * MICRO_PER_CREDIT);
    ck_assert_int_eq(reject->limit, 20 * MICRO_PER_CREDIT);

    made = submit_of(1, 19);
    made.submit.type = EXCHANGE_POST_ONLY;
    made.submit.cap_micro = price / 2;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    replace_cap(made.id, price);
    check_rejected(REJECT_BUDGET);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 20 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(an_ask_that_would_trade_at_once_is_refused)
{
    offer(PROVIDER, 4, 3 * price);
    (void)submit_type(EXCHANGE_LIMIT, 1, price);
    ask_type(EXCHANGE_POST_ONLY, 4, price);
    check_rejected(REJECT_WOULD_TRADE);
    ck_assert_int_eq(orders_of(PROVIDER).last.price_micro, 3 * price); /* the former stands */
    ask_type(EXCHANGE_POST_ONLY, 4, 2 * price);
    ck_assert_int_eq(orders_of(PROVIDER).last.type, EXCHANGE_POST_ONLY);
    reload();
    struct exchange_command made = command(EXCHANGE_REPLACE, PROVIDER);
    made.replace = (struct exchange_replace){.order = orders_of(PROVIDER).last.order,
                                             .part = EXCHANGE_ANY_PART,
                                             .has_price = true,
                                             .price_micro = price};
    apply(&made);
    check_rejected(REJECT_WOULD_TRADE);
}
END_TEST

/* ---------------------------------------------------------------- all or none */

START_TEST(it_waits_for_all_of_it_and_starves_nobody)
{
    struct id128 gang = submit_type(EXCHANGE_ALL_OR_NONE, 4, 2 * price);
    offer(PROVIDER, 3, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(job_row(gang).reason, JOB_REASON_NOT_WHOLE);
    ck_assert_uint_eq(bids_shown(), 0);
    ck_assert_int_eq(orders_of(CONSUMER).last.type, EXCHANGE_ALL_OR_NONE);
    struct id128 small = submit_type(EXCHANGE_LIMIT, 1, price);
    ck_assert_uint_eq(granted_to(small), 1);
    reload();
    offer(OTHER_PROVIDER, 1, price);
    ck_assert_uint_eq(granted_to(gang), 0); /* three of four */
    result(PROVIDER, small, (struct exchange_work){.lease = 1, .index = 0, .attempt = 1},
           OUTCOME_OK, 0);
    ck_assert_uint_eq(granted_to(gang), 4); /* the small one is done, and there is room */
    ck_assert_int_eq(orders_of(CONSUMER).last.type, EXCHANGE_MARKET);
    reload();
}
END_TEST

START_TEST(a_budget_that_is_raised_fills_it)
{
    offer(PROVIDER, 4, price);
    struct exchange_command made = submit_of(4, 79);
    made.submit.type = EXCHANGE_ALL_OR_NONE;
    apply(&made);
    ck_assert_uint_eq(granted_to(made.id), 0);
    struct exchange_command more = command(EXCHANGE_REPLACE, CONSUMER);
    more.replace = (struct exchange_replace){.order = made.id,
                                             .part = EXCHANGE_ANY_PART,
                                             .has_budget = true,
                                             .budget_micro = 80 * MICRO_PER_CREDIT};
    apply(&more);
    ck_assert_uint_eq(granted_to(made.id), 4);
    reload();
}
END_TEST

static struct exchange_explanation why_whole(struct id128 job)
{
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    return why;
}

static void raise_to(struct id128 job, const struct exchange_smallest_change *smallest_change)
{
    struct exchange_command more = command(EXCHANGE_REPLACE, CONSUMER);
    more.replace = (struct exchange_replace){.order = job,
                                             .part = EXCHANGE_ANY_PART,
                                             .has_price = smallest_change->cap_micro >= 0,
                                             .price_micro = smallest_change->cap_micro,
                                             .has_budget = true,
                                             .budget_micro = smallest_change->budget_micro};
    apply(&more);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

/* One micro-credit less than what is said does not. */
START_TEST(what_its_budget_lacks_is_said_and_fills_it)
{
    offer(PROVIDER, 2, price);
    offer(OTHER_PROVIDER, 2, 2 * price);
    struct exchange_command made = submit_of(4, 79);
    made.submit.type = EXCHANGE_ALL_OR_NONE;
    made.submit.cap_micro = 3 * price;
    apply(&made);
    ck_assert_uint_eq(granted_to(made.id), 0);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_WHOLE_BUDGET);
    struct exchange_explanation why = why_whole(made.id);
    ck_assert_uint_eq(why.whole.slots, 4);
    ck_assert_uint_eq(why.whole.free, 0);
    ck_assert_int_lt(why.whole.limit_micro, price);
    ck_assert(why.whole.is_of_budget);
    ck_assert_uint_eq(why.smallest_change.count, 1);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_BUDGET);
    ck_assert_int_eq(why.smallest_change.changes[0].from, 79 * MICRO_PER_CREDIT);
    ck_assert_int_eq(why.smallest_change.changes[0].to, why.smallest_change.budget_micro);
    ck_assert_int_eq(why.smallest_change.price_micro, 2 * price);
    struct exchange_smallest_change less = why.smallest_change;
    less.budget_micro--;
    raise_to(made.id, &less);
    ck_assert_uint_eq(granted_to(made.id), 0);
    ck_assert_uint_eq(why_whole(made.id).whole.free, 2); /* those at the lower price */
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_NOT_WHOLE);
    raise_to(made.id, &why.smallest_change);
    ck_assert_uint_eq(granted_to(made.id), 4);
}
END_TEST

START_TEST(what_its_cap_and_its_budget_lack_is_said_together)
{
    offer(PROVIDER, 2, price);
    offer(OTHER_PROVIDER, 2, 2 * price);
    struct exchange_command made = submit_of(4, 100);
    made.submit.type = EXCHANGE_ALL_OR_NONE;
    made.submit.cap_micro = price;
    apply(&made);
    struct exchange_explanation why = why_whole(made.id);
    ck_assert_uint_eq(why.whole.free, 2);
    ck_assert(!why.whole.is_of_budget);
    ck_assert_uint_eq(why.smallest_change.count, 2);
    ck_assert_int_eq(why.smallest_change.changes[0].kind, BID_CHANGE_CAP);
    ck_assert_int_eq(why.smallest_change.changes[0].to, 2 * price);
    ck_assert_int_eq(why.smallest_change.changes[1].kind, BID_CHANGE_BUDGET);
    raise_to(made.id, &why.smallest_change);
    ck_assert_uint_eq(granted_to(made.id), 4);
}
END_TEST

/* No limit makes slots that are not there. */
START_TEST(where_there_are_not_enough_slots_no_change_is_suggested)
{
    offer(PROVIDER, 3, price);
    struct id128 gang = submit_type(EXCHANGE_ALL_OR_NONE, 4, 2 * price);
    struct exchange_explanation why = why_whole(gang);
    ck_assert_uint_eq(why.whole.slots, 4);
    ck_assert_uint_eq(why.whole.free, 3);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}
END_TEST

START_TEST(one_that_is_cancelled_leaves_nothing_behind)
{
    struct id128 gang = submit_type(EXCHANGE_ALL_OR_NONE, 4, 2 * price);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = gang;
    apply(&cancel);
    check_ended(gang, JOB_CANCELLED, JOB_REASON_CANCELLED);
    struct id128 small = submit_type(EXCHANGE_LIMIT, 1, price);
    offer(PROVIDER, 4, price);
    ck_assert_uint_eq(granted_to(small), 1);
}
END_TEST

START_TEST(what_a_filled_one_loses_it_buys_again_alone)
{
    offer(PROVIDER, 2, price);
    offer(OTHER_PROVIDER, 2, price);
    struct id128 gang = submit_type(EXCHANGE_ALL_OR_NONE, 8, price);
    ck_assert_uint_eq(granted_to(gang), 0); /* eight at a time: all subtasks are ready */
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = gang;
    apply(&cancel);
    struct exchange_command made = submit_of(8, 1000);
    made.submit.type = EXCHANGE_ALL_OR_NONE;
    made.submit.at_most = 4;
    apply(&made);
    ck_assert_uint_eq(granted_to(made.id), 4);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    offer(PROVIDER, 1, price);
    ck_assert_uint_eq(granted_to(made.id), 0); /* avoided for a while */
    market.now_ns += 11 * NS_PER_S;
    tick();
    ck_assert_uint_eq(granted_to(made.id), 1);
    reload();
}
END_TEST

/* ---------------------------------------------------------------- refusals */

START_TEST(what_cannot_be_is_refused_by_name)
{
    static const uint32_t after_count[2] = {0, 1};
    static const uint32_t after[1] = {0};
    const struct exchange_graph graph = {
        .after_count = after_count, .after_count_count = 2, .after = after, .after_length = 1};
    static const enum exchange_order_type at_once[] = {EXCHANGE_IOC, EXCHANGE_FOK,
                                                       EXCHANGE_ALL_OR_NONE};
    for (size_t i = 0; i < 3; i++) {
        struct exchange_command made = submit_of(2, 100);
        made.submit.type = at_once[i];
        made.submit.graph = &graph;
        apply(&made);
        check_rejected(REJECT_QUANTITY);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "graph.after");
    }
    (void)submit_type(EXCHANGE_ALL_OR_NONE, EXCHANGE_WHOLE_LANES_MOST + 1, price);
    check_rejected(REJECT_QUANTITY);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "at_most");
    (void)submit_type((enum exchange_order_type)9, 1, price);
    check_rejected(REJECT_QUANTITY);
    offer(PROVIDER, 1, price);
    ask_type(EXCHANGE_FOK, 1, price);
    check_rejected(REJECT_QUANTITY);
    ask_type(EXCHANGE_ALL_OR_NONE, 1, price);
    check_rejected(REJECT_QUANTITY);
}
END_TEST

SUITE("order types", set_up, tear_down, TEST(what_is_there_is_taken_and_used_until_all_is_done),
      TEST(with_nothing_there_the_job_ends_at_once),
      TEST(when_its_leases_are_over_what_is_left_is_cancelled),
      TEST(a_lost_provider_that_may_come_back_is_waited_for),
      TEST(an_order_that_does_not_stand_gets_no_other_terms),
      TEST(an_ask_that_is_immediate_sells_one_term_and_is_gone), TEST(all_of_it_or_nothing),
      TEST(a_budget_that_does_not_cover_all_of_it_buys_nothing),
      TEST(a_bid_that_would_trade_at_once_is_refused),
      TEST(a_post_only_bid_that_could_not_pay_is_refused_for_its_budget),
      TEST(an_ask_that_would_trade_at_once_is_refused),
      TEST(it_waits_for_all_of_it_and_starves_nobody), TEST(a_budget_that_is_raised_fills_it),
      TEST(what_its_budget_lacks_is_said_and_fills_it),
      TEST(what_its_cap_and_its_budget_lack_is_said_together),
      TEST(where_there_are_not_enough_slots_no_change_is_suggested),
      TEST(one_that_is_cancelled_leaves_nothing_behind),
      TEST(what_a_filled_one_loses_it_buys_again_alone), TEST(what_cannot_be_is_refused_by_name))
