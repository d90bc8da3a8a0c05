/* Asks for some, and at some hours: who gets them, and when, by log time alone. */
#include "tests/support/hand_market.h"

#include "exchange/view/listings.h"
#include "exchange/view/why.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
/* Monday, 20 November 2023, 00:00 UTC: some days after start_ns */
#define MONDAY_NS (INT64_C(1700438400) * NS_PER_S)

enum { LATECOMER = 7 };

static const struct exchange_ask_account the_consumer = {.name = "consumer"};
static const struct exchange_ask_account the_operator = {.name = "operator"};
/* The nights of working days. */
static const struct hours nights = {
    .count = 1, .windows = {{.days = 0x1f, .from_min = 22 * 60, .till_min = 7 * 60}}};

static struct exchange_command ask_of(uint32_t slots, int64_t price_micro)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask =
        (struct exchange_ask){.device = {{PROVIDER}}, .slots = slots, .price_micro = price_micro};
    return made;
}

static void advertise(void)
{
    offer(PROVIDER, 4, 0);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_ORDER, PROVIDER);
    cancel.cancel_order.order = record_of(LEDGER_ASK)->order;
    apply(&cancel);
}

static struct id128 ask_to(const struct exchange_ask_account *to, size_t count)
{
    struct exchange_command made = ask_of(4, 0);
    made.ask.to = to;
    made.ask.to_count = count;
    apply(&made);
    return made.id;
}

static struct id128 ask_at(const struct hours *hours)
{
    struct exchange_command made = ask_of(4, 0);
    made.ask.hours = *hours;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static void tick_at(int64_t at_ns)
{
    market.now_ns = at_ns;
    tick();
}

static void set_up_devices(void)
{
    set_up();
    advertise();
}

/* An account beside those of the market, of any name. */
static void join(uint8_t number, const char *name)
{
    struct exchange_command invite = command(EXCHANGE_INVITE, OPERATOR);
    invite.invite = (struct exchange_invite){.token_hash = {{number}},
                                             .roles = 1,
                                             .credits_micro = 100 * MICRO_PER_CREDIT,
                                             .expires_ns = market.now_ns + HOUR_NS};
    apply(&invite);
    struct exchange_command made = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    made.join.account = (struct key32){{number, 1}};
    made.join.token_hash = invite.invite.token_hash;
    strcpy(made.join.name, name);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static struct id128 submit_by(uint32_t account)
{
    struct exchange_command made = submit_of(4, 50);
    made.account = account;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

/* ---------------------------------------------------------------- for whom */

START_TEST(an_ask_for_some_is_nobody_elses)
{
    join(21, "dora");
    ask_to(&(struct exchange_ask_account){.name = "dora"}, 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct id128 job = submit(4, 50);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    reload();
    tick_at(market.now_ns + NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, 0, &why));
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.asking, 0);
    ck_assert_uint_eq(why.for_others, 1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
    ck_assert(granted_to(submit_by(LATECOMER)) > 0);
}
END_TEST

START_TEST(an_ask_that_arrives_passes_over_whom_it_is_not_for)
{
    join(21, "dora");
    struct id128 rich = submit(4, 50); /* first, and pays as much */
    struct id128 meant = submit_by(LATECOMER);
    ask_to(&(struct exchange_ask_account){.has_key = true, .key = {{21, 1}}}, 1);
    ck_assert(granted_to(meant) > 0);
    ck_assert_uint_eq(job_row(rich).lease_count, 0);
}
END_TEST

START_TEST(an_account_is_found_by_key_or_name_or_refused)
{
    const struct exchange_ask_account by_key = {.has_key = true, .key = {{1}}};
    const struct exchange_ask_account unknown = {.has_key = true, .key = {{99}}};
    const struct exchange_ask_account nobody = {.name = "nobody"};
    const struct exchange_ask_account system = {.name = "mint"};
    const struct exchange_ask_account both[] = {by_key, nobody};
    ask_to(&by_key, 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ask_to(&unknown, 1);
    check_rejected(REJECT_ACCOUNT);
    ask_to(&system, 1);
    check_rejected(REJECT_ACCOUNT);
    ask_to(both, 2);
    check_rejected(REJECT_ACCOUNT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "to");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 1);
    check_hash();
    ck_assert(granted_to(submit(4, 50)) > 0); /* the first still stands */
}
END_TEST

START_TEST(a_name_that_two_have_is_nobodys)
{
    join(21, "dora");
    ask_to(&(struct exchange_ask_account){.name = "dora"}, 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    join(22, "dora");
    reload();
    struct id128 of_second = submit_by(LATECOMER + 1);
    ck_assert(granted_to(of_second) == 0); /* the name was looked up when the ask was placed */
    ask_to(&(struct exchange_ask_account){.name = "dora"}, 1);
    check_rejected(REJECT_ACCOUNT);
    ask_to(&(struct exchange_ask_account){.has_key = true, .key = {{22, 1}}}, 1);
    ck_assert(granted_to(of_second) > 0);
}
END_TEST

START_TEST(an_ask_names_no_more_than_the_cap)
{
    static struct exchange_ask_account many[EXCHANGE_ASK_TO_MOST + 1];
    for (size_t i = 0; i <= EXCHANGE_ASK_TO_MOST; i++) {
        many[i] = the_consumer;
    }
    ask_to(many, EXCHANGE_ASK_TO_MOST);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ask_to(many, EXCHANGE_ASK_TO_MOST + 1);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "to");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, EXCHANGE_ASK_TO_MOST);
}
END_TEST

/* Two that would never trade are no trade with oneself. */
START_TEST(an_own_bid_that_it_is_not_for_does_not_stop_an_ask)
{
    struct exchange_command invite = command(EXCHANGE_INVITE, OPERATOR);
    invite.invite = (struct exchange_invite){.token_hash = {{5}},
                                             .roles = 3,
                                             .credits_micro = 100 * MICRO_PER_CREDIT,
                                             .expires_ns = market.now_ns + HOUR_NS};
    apply(&invite);
    struct exchange_command made = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    made.join.account = (struct key32){{21, 1}};
    made.join.token_hash = invite.invite.token_hash;
    apply(&made);
    (void)submit_by(LATECOMER);
    offer(LATECOMER, 1, 0); /* the device, and an ask for anybody */
    check_rejected(REJECT_SELF_MATCH);
    struct exchange_command ask = command(EXCHANGE_ASK, LATECOMER);
    ask.ask = (struct exchange_ask){
        .device = {{LATECOMER}}, .slots = 1, .to = &the_consumer, .to_count = 1};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert(granted_to(submit(1, 50)) > 0);
}
END_TEST

/* ---------------------------------------------------------------- when */

START_TEST(an_ask_opens_and_closes_by_the_log)
{
    tick_at(MONDAY_NS + 21 * HOUR_NS);
    ask_at(&nights);
    struct id128 job = submit(4, 50);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), MONDAY_NS + 22 * HOUR_NS);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, 0, &why));
    ck_assert_uint_eq(why.closed, 1);
    ck_assert_int_eq(why.opens_ns, HOUR_NS);
    reload();
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), MONDAY_NS + 22 * HOUR_NS);
    tick_at(MONDAY_NS + 22 * HOUR_NS - 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    tick_at(MONDAY_NS + 22 * HOUR_NS);
    ck_assert(granted_to(job) > 0);
}
END_TEST

START_TEST(over_midnight_and_over_the_weekend)
{
    tick_at(MONDAY_NS + 5 * DAY_NS + 7 * HOUR_NS - 1); /* Saturday morning: Friday's night */
    ask_at(&nights);
    struct id128 job = submit(1, 50);
    ck_assert(granted_to(job) > 0);
    result(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, 0, NS_PER_S);
    tick_at(MONDAY_NS + 5 * DAY_NS + 7 * HOUR_NS);
    job = submit(1, 50);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    tick_at(MONDAY_NS + 6 * DAY_NS + 23 * HOUR_NS); /* Sunday night */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    tick_at(MONDAY_NS + 7 * DAY_NS + 22 * HOUR_NS);
    ck_assert(granted_to(job) > 0);
}
END_TEST

/* A lease that runs at the end of a window ends with its term: it is not renewed, and not cut
 * short. */
START_TEST(a_lease_is_not_renewed_outside_the_hours)
{
    const int64_t closes_ns = MONDAY_NS + DAY_NS + 7 * HOUR_NS;
    tick_at(closes_ns - 15 * NS_PER_S);
    ask_at(&nights);
    struct id128 job = submit(100, 100);
    ck_assert(granted_to(job) > 0);
    uint64_t lease = nth(EFFECT_LEASE_GRANT, 0)->grant.lease;
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    tick_at(closes_ns - 1 * NS_PER_S);
    market.now_ns = closes_ns - NS_PER_S; /* no time for one more within the term */
    result(PROVIDER, job, work, 0, NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 1); /* within the hours */
    ck_assert_int_eq(nth(EFFECT_LEASE_RENEW, 0)->lease.term_ns, 20 * NS_PER_S);
    work = nth(EFFECT_DISPATCH, 0)->work;
    tick_at(closes_ns);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0); /* what runs goes on */
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    market.now_ns = closes_ns + 15 * NS_PER_S;
    result(PROVIDER, job, work, 0, NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 0);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    tick_at(closes_ns + 25 * NS_PER_S); /* the term is over, and the time for late results */
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->lease.lease, lease);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    tick_at(MONDAY_NS + DAY_NS + 22 * HOUR_NS);
    ck_assert(granted_to(job) > 0);
}
END_TEST

START_TEST(hours_hold_for_priced_asks_and_after_2038)
{
    const int64_t late_ns = (INT64_C(1) << 31) * NS_PER_S; /* Tuesday, 03:14:08 */
    const struct hours tuesday = {
        .count = 1,
        .offset_min = 60,
        .windows = {{.days = 1 << 1, .from_min = 5 * 60, .till_min = 6 * 60}}};
    struct exchange_command made;
    tick_at(late_ns);
    made = ask_of(4, price);
    made.ask.hours = tuesday;
    apply(&made);
    struct id128 job = submit(1, 50);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    const int64_t opens_ns = late_ns - 14 * 60 * NS_PER_S - 8 * NS_PER_S + HOUR_NS; /* 04:00 UTC */
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), opens_ns);
    tick_at(opens_ns);
    ck_assert(granted_to(job) > 0);
    ck_assert_int_eq(nth(EFFECT_LEASE_GRANT, 0)->grant.price_micro, price);
}
END_TEST

START_TEST(bad_hours_are_refused_and_change_nothing)
{
    struct hours bad[4] = {nights, nights, nights, nights};
    bad[0].windows[0].days = 0;
    bad[1].windows[0].till_min = bad[1].windows[0].from_min;
    bad[2].offset_min = 15 * 60;
    bad[3].count = HOURS_WINDOWS_MOST + 1;
    for (size_t i = 0; i < 4; i++) {
        struct exchange_command made = ask_of(4, 0);
        made.ask.hours = bad[i];
        apply(&made);
        check_rejected(REJECT_HOURS);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "hours");
        check_hash();
    }
    (void)submit(1, 50);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0); /* none of them stands */
}
END_TEST

struct listed {
    struct exchange_order_row row;
    size_t count;
};

static bool take_row(void *context, const struct exchange_order_row *row)
{
    struct listed *listed = context;
    listed->row = *row;
    listed->count++;
    return true;
}

START_TEST(an_owner_sees_the_conditions_and_keeps_them_in_a_replace)
{
    struct exchange_command made = ask_of(4, 0);
    const struct exchange_ask_account both[] = {the_consumer, the_operator};
    made.ask.hours = nights;
    made.ask.to = both;
    made.ask.to_count = 2;
    apply(&made);
    struct exchange_command replace = command(EXCHANGE_REPLACE, PROVIDER);
    replace.replace = (struct exchange_replace){
        .order = made.id, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = price};
    apply(&replace);
    reload();
    struct listed listed = {.count = 0};
    uint64_t next;
    ck_assert_int_eq(exchange_list_orders(market.exchange, PROVIDER, 0, take_row, &listed, &next),
                     LISTING_END);
    ck_assert_uint_eq(listed.count, 1);
    ck_assert_int_eq(listed.row.price_micro, price);
    ck_assert_uint_eq(listed.row.to_count, 2);
    ck_assert_uint_eq(listed.row.to[0], CONSUMER);
    ck_assert_uint_eq(listed.row.to[1], OPERATOR);
    ck_assert_uint_eq(listed.row.hours.count, 1);
    ck_assert_uint_eq(listed.row.hours.windows[0].till_min, 7 * 60);
}
END_TEST

START_TEST(a_provider_hears_that_it_is_outside_its_hours)
{
    tick_at(MONDAY_NS + 12 * HOUR_NS);
    ask_at(&nights);
    (void)submit(1, 50);
    static struct exchange_why why;
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &why), WHY_OK);
    ck_assert_int_eq(why.opens_ns, 10 * HOUR_NS);
    ck_assert_uint_eq(why.bids, 1);
    ask_to(&the_operator, 1);
    ck_assert_int_eq(exchange_explain_ask(market.exchange, PROVIDER, 0, &why), WHY_OK);
    ck_assert_int_eq(why.opens_ns, 0);
    ck_assert(why.is_for_some);
    ck_assert_uint_eq(why.bids, 0); /* none that it is for */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conditions");
    TCase *whom = tcase_create("whom");
    tcase_add_checked_fixture(whom, set_up_devices, tear_down);
    tcase_add_test(whom, an_ask_for_some_is_nobody_elses);
    tcase_add_test(whom, an_ask_that_arrives_passes_over_whom_it_is_not_for);
    tcase_add_test(whom, an_account_is_found_by_key_or_name_or_refused);
    tcase_add_test(whom, a_name_that_two_have_is_nobodys);
    tcase_add_test(whom, an_ask_names_no_more_than_the_cap);
    tcase_add_test(whom, an_own_bid_that_it_is_not_for_does_not_stop_an_ask);
    suite_add_tcase(suite, whom);
    TCase *when = tcase_create("when");
    tcase_add_checked_fixture(when, set_up_devices, tear_down);
    tcase_add_test(when, an_ask_opens_and_closes_by_the_log);
    tcase_add_test(when, over_midnight_and_over_the_weekend);
    tcase_add_test(when, a_lease_is_not_renewed_outside_the_hours);
    tcase_add_test(when, hours_hold_for_priced_asks_and_after_2038);
    tcase_add_test(when, bad_hours_are_refused_and_change_nothing);
    tcase_add_test(when, an_owner_sees_the_conditions_and_keeps_them_in_a_replace);
    tcase_add_test(when, a_provider_hears_that_it_is_outside_its_hours);
    suite_add_tcase(suite, when);
    return suite_run(suite);
}
