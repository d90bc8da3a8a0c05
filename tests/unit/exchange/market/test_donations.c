/* The donation queue: who is first for what is given away, and how what was had fades. */
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define DAY_NS (24 * 3600 * NS_PER_S)

enum { SECOND = 7 }; /* an account beside the consumer */

static void set_up_two(void)
{
    set_up();
    struct exchange_command invite = command(EXCHANGE_INVITE, OPERATOR);
    invite.invite = (struct exchange_invite){.token_hash = {{8}},
                                             .roles = 1,
                                             .credits_micro = 100 * MICRO_PER_CREDIT,
                                             .expires_ns = market.now_ns + NS_PER_S};
    apply(&invite);
    struct exchange_command join = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    join.join.account = (struct key32){{8, 1}};
    join.join.token_hash = invite.invite.token_hash;
    apply(&join);
}

static struct id128 submit_by(uint32_t account, uint32_t subtasks, int64_t cap_micro)
{
    struct exchange_command made = submit_of(subtasks, 1);
    made.account = account;
    made.submit.cap_micro = cap_micro;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static struct exchange_donated donated(uint32_t account)
{
    struct exchange_donated had;
    ck_assert(exchange_donated(market.exchange, account, &had));
    return had;
}

static void tick_at(int64_t at_ns)
{
    market.now_ns = at_ns;
    tick();
}

/* One subtask of so long on a device that is given away and taken back again. */
static void use(uint32_t account, int64_t busy_ns)
{
    offer(PROVIDER, 1, 0);
    struct id128 job = submit_by(account, 1, 0);
    ck_assert(granted_to(job) > 0);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += busy_ns;
    result(PROVIDER, job, work, 0, busy_ns);
    presence(EXCHANGE_GOODBYE, PROVIDER);
}

START_TEST(half_of_it_is_left_after_a_week_and_nothing_after_years)
{
    use(CONSUMER, 7 * NS_PER_S);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 7 * NS_PER_S);
    ck_assert_int_eq(donated(SECOND).used_ns, 0);
    const int64_t midnight_ns = market.now_ns / DAY_NS * DAY_NS + DAY_NS;
    tick_at(midnight_ns - 1);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 7 * NS_PER_S);
    tick_at(midnight_ns);
    ck_assert_int_eq(donated(CONSUMER).used_ns, INT64_C(6340065649)); /* 2^(-1/7) of it */
    tick_at(midnight_ns + 5 * DAY_NS);
    ck_assert_int_eq(donated(CONSUMER).used_ns, INT64_C(3864313296)); /* 2^(-6/7) */
    reload();
    tick_at(midnight_ns + 6 * DAY_NS);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 7 * NS_PER_S / 2);
    tick_at(midnight_ns + 13 * DAY_NS);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 7 * NS_PER_S / 4);
    tick_at(midnight_ns + 300 * DAY_NS);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 0);
    tick_at(midnight_ns + 20000 * DAY_NS); /* past 2038, too */
    ck_assert_int_eq(donated(CONSUMER).used_ns, 0);
}
END_TEST

START_TEST(use_is_added_to_what_is_left)
{
    use(CONSUMER, 8 * NS_PER_S);
    market.now_ns += 7 * DAY_NS;
    use(CONSUMER, 3 * NS_PER_S);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 7 * NS_PER_S);
    reload();
    ck_assert_int_eq(donated(CONSUMER).used_ns, 7 * NS_PER_S);
}
END_TEST

START_TEST(what_a_provider_gave_stays_counted)
{
    use(CONSUMER, 8 * NS_PER_S);
    use(SECOND, 3 * NS_PER_S);
    market.now_ns += 20 * DAY_NS;
    ck_assert_int_eq(donated(PROVIDER).given_ns, 11 * NS_PER_S);
    ck_assert_int_eq(donated(CONSUMER).given_ns, 0);
    ck_assert_int_eq(donated(OTHER_PROVIDER).given_ns, 0);
    reload();
    ck_assert_int_eq(donated(PROVIDER).given_ns, 11 * NS_PER_S);
}
END_TEST

/* Time that a program took before it failed was given, too; what was late was not. */
START_TEST(only_what_is_settled_was_given)
{
    offer(PROVIDER, 1, 0);
    struct id128 job = submit_by(CONSUMER, 1, 0);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 2 * NS_PER_S;
    result(PROVIDER, job, work, 1, 2 * NS_PER_S);
    ck_assert_int_eq(donated(PROVIDER).given_ns, 2 * NS_PER_S);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, 0, NS_PER_S); /* said twice, and otherwise */
    ck_assert_int_eq(donated(PROVIDER).given_ns, 2 * NS_PER_S);
}
END_TEST

START_TEST(who_had_less_goes_first_whatever_the_other_would_pay)
{
    use(CONSUMER, 5 * NS_PER_S);
    use(SECOND, 4 * NS_PER_S);
    struct id128 rich = submit_by(CONSUMER, 1, 1000);
    struct id128 modest = submit_by(SECOND, 1, 0);
    ck_assert_uint_eq(donated(CONSUMER).waiting, 2);
    ck_assert_uint_eq(donated(CONSUMER).before, 1);
    ck_assert_uint_eq(donated(SECOND).before, 0);
    offer(PROVIDER, 1, 0);
    ck_assert(granted_to(modest) > 0);
    ck_assert_uint_eq(donated(SECOND).waiting, 1);
    ck_assert(!donated(SECOND).is_waiting);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    offer(OTHER_PROVIDER, 1, 1);
    ck_assert(granted_to(rich) > 0); /* a price goes by limits */
}
END_TEST

/* A use of 8 s is 4 after a week, 2 after two, 1 after three: the queue turns over without anybody
 * using anything. */
START_TEST(who_had_more_long_ago_goes_before_who_had_less_of_late)
{
    use(CONSUMER, 8 * NS_PER_S);
    market.now_ns += 14 * DAY_NS;
    use(SECOND, 3 * NS_PER_S);
    struct id128 recent = submit_by(SECOND, 1, 0);
    struct id128 faded = submit_by(CONSUMER, 1, 0);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 2 * NS_PER_S);
    ck_assert_uint_eq(donated(CONSUMER).before, 0);
    ck_assert_uint_eq(donated(SECOND).before, 1);
    reload();
    tick_at(market.now_ns + 7 * DAY_NS); /* both fade, and by as much */
    ck_assert_int_eq(donated(CONSUMER).used_ns, NS_PER_S);
    ck_assert_int_eq(donated(SECOND).used_ns, 3 * NS_PER_S / 2);
    offer(PROVIDER, 1, 0);
    ck_assert(granted_to(faded) > 0);
    ck_assert_uint_eq(granted_to(recent), 0);
    offer(OTHER_PROVIDER, 1, 0);
    ck_assert(granted_to(recent) > 0);
}
END_TEST

START_TEST(of_equals_the_first_to_come)
{
    struct id128 first = submit_by(SECOND, 1, 0);
    (void)submit_by(CONSUMER, 1, price);
    ck_assert_uint_eq(donated(SECOND).before, 0);
    ck_assert_uint_eq(donated(CONSUMER).before, 1);
    offer(PROVIDER, 1, 0);
    ck_assert(granted_to(first) > 0);
}
END_TEST

START_TEST(paid_use_is_none)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_of(1, 100);
    apply(&made);
    ck_assert_int_eq(donated(CONSUMER).promised_ns, 0);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, work, 0, NS_PER_S);
    ck_assert_int_eq(record_of(LEDGER_RESULT)->paid_ns, NS_PER_S);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 0);
    ck_assert_int_eq(donated(PROVIDER).given_ns, 0);
}
END_TEST

/* The first in the queue would otherwise have all that comes free before anything of it is counted.
 * */
START_TEST(what_a_lease_may_use_counts_until_it_ends)
{
    (void)submit_by(CONSUMER, 8, 0);
    (void)submit_by(SECOND, 8, 0);
    offer(PROVIDER, 2, 0);
    ck_assert_int_eq(donated(CONSUMER).promised_ns, 2 * 20 * NS_PER_S);
    reload();
    ck_assert_int_eq(donated(CONSUMER).promised_ns, 2 * 20 * NS_PER_S);
    offer(OTHER_PROVIDER, 1, 0);
    ck_assert_int_eq(donated(CONSUMER).promised_ns, 2 * 20 * NS_PER_S);
    ck_assert_int_eq(donated(SECOND).promised_ns, 20 * NS_PER_S);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    ck_assert_int_eq(donated(CONSUMER).promised_ns, 0);
    ck_assert_int_eq(donated(CONSUMER).used_ns, 0);
}
END_TEST

/* A lease goes on while nobody waits who had less; then it ends with its term, and its slots are
 * the other's. */
START_TEST(a_lease_is_not_renewed_when_another_is_due)
{
    struct id128 first = submit_by(CONSUMER, 100, 0);
    offer(PROVIDER, 1, 0);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 8 * NS_PER_S;
    result(PROVIDER, first, work, 0, 8 * NS_PER_S);
    market.now_ns += 8 * NS_PER_S; /* no time for another 10 s within the term */
    work.index = 1;
    work.attempt = 1;
    result(PROVIDER, first, work, 0, 8 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 1);
    struct id128 second = submit_by(SECOND, 100, 0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    for (uint32_t i = 2; i < 6 && granted_to(second) == 0; i++) {
        market.now_ns += 8 * NS_PER_S;
        work.index = i;
        result(PROVIDER, first, work, 0, 8 * NS_PER_S);
        ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 0);
    }
    ck_assert(granted_to(second) > 0);
    ck_assert_int_le(donated(CONSUMER).used_ns, 40 * NS_PER_S);
}
END_TEST

/* All that it has is held, and a donation takes none of it: not for its first term, nor for the
 * next. */
START_TEST(a_donation_takes_no_credits)
{
    struct exchange_command all = submit_of(1, 100);
    all.account = SECOND;
    all.submit.cap_micro = 1;
    apply(&all);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    offer(OTHER_PROVIDER, 1, 1);
    struct exchange_command made = submit_of(100, 0);
    made.account = SECOND;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(granted_to(made.id), 0); /* what has a price is not for it */
    offer(PROVIDER, 1, 0);
    ck_assert(granted_to(made.id) > 0);
    reload();
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    for (uint32_t i = 0; i < 2; i++) {
        work.index = i;
        work.attempt = 1;
        market.now_ns += 8 * NS_PER_S;
        result(PROVIDER, made.id, work, 0, 8 * NS_PER_S);
    }
    ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 1);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, SECOND);
    cancel.cancel_job.job = made.id;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

SUITE("donations", set_up_two, tear_down,
      TEST(half_of_it_is_left_after_a_week_and_nothing_after_years),
      TEST(use_is_added_to_what_is_left), TEST(what_a_provider_gave_stays_counted),
      TEST(only_what_is_settled_was_given), TEST(what_a_provider_gave_stays_counted),
      TEST(only_what_is_settled_was_given),
      TEST(who_had_less_goes_first_whatever_the_other_would_pay),
      TEST(who_had_more_long_ago_goes_before_who_had_less_of_late),
      TEST(of_equals_the_first_to_come), TEST(paid_use_is_none), TEST(a_donation_takes_no_credits),
      TEST(what_a_lease_may_use_counts_until_it_ends),
      TEST(a_lease_is_not_renewed_when_another_is_due))
