/* The tests ask who may do what, and try the same id again, invitations, and a market that is
 * halted. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(who_may_not_is_told_so)
{
    struct exchange_command by_provider = submit_of(1, 1);
    by_provider.account = PROVIDER;
    apply(&by_provider);
    check_rejected(REJECT_ROLE);

    struct exchange_command by_consumer = command(EXCHANGE_MINT, CONSUMER);
    by_consumer.mint = (struct exchange_mint){.account = {{1}}, .amount_micro = 1};
    apply(&by_consumer);
    check_rejected(REJECT_ROLE);

    struct exchange_command by_nobody = submit_of(1, 1);
    by_nobody.account = EXCHANGE_NO_ACCOUNT;
    apply(&by_nobody);
    check_rejected(REJECT_ROLE);

    struct exchange_command by_the_mint = submit_of(1, 1);
    by_the_mint.account = ACCOUNT_MINT;
    apply(&by_the_mint);
    check_rejected(REJECT_ROLE);
}
END_TEST

START_TEST(someone_elses_job_is_not_found)
{
    struct id128 job = submit(1, 1);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, PROVIDER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    check_rejected(REJECT_NOT_FOUND);
}
END_TEST

START_TEST(the_same_id_is_answered_again_and_another_body_is_refused)
{
    struct exchange_command first = submit_of(1, 1);
    apply(&first);
    uint64_t index = nth(EFFECT_ACCEPT, 0)->index;
    struct exchange_command again = first;
    again.index = market.index + 1;
    apply(&again);
    ck_assert_uint_eq(nth(EFFECT_ACCEPT, 0)->index, index);
    ck_assert(nth(EFFECT_ACCEPT, 0)->repeated);
    ck_assert_int_eq(balance(CONSUMER).held_micro, MICRO_PER_CREDIT);

    again.index = market.index + 1;
    again.body.bytes[0] ^= 1;
    apply(&again);
    check_rejected(REJECT_ID_REUSED);
}
END_TEST

static void apply_again(struct exchange_command *given)
{
    given->index = market.index + 1;
    given->log_time_ns = market.now_ns;
    apply(given);
}

/* A refusal stays true when a copy, sent over the connection before, comes late. */
START_TEST(what_was_refused_stays_refused_when_it_comes_again)
{
    struct exchange_command bid = submit_of(1, 10000000);
    apply(&bid);
    check_rejected(REJECT_FUNDS);
    const struct exchange_reject first = nth(EFFECT_REJECT, 0)->reject;
    ck_assert(!nth(EFFECT_REJECT, 0)->repeated);
    struct exchange_command mint = command(EXCHANGE_MINT, OPERATOR);
    struct exchange_account_row row;
    ck_assert(exchange_account(market.exchange, CONSUMER, &row));
    mint.mint =
        (struct exchange_mint){.account = row.key, .amount_micro = 20000000 * MICRO_PER_CREDIT};
    apply(&mint);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);

    apply_again(&bid);
    check_rejected(REJECT_FUNDS);
    ck_assert(nth(EFFECT_REJECT, 0)->repeated);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, first.field);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, first.value);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, first.limit);
    bid.body.bytes[0] ^= 1;
    apply_again(&bid);
    check_rejected(REJECT_ID_REUSED);
    bid.body.bytes[0] ^= 1;

    reload(); /* also after a restart */
    apply_again(&bid);
    check_rejected(REJECT_FUNDS);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, first.limit);

    (void)submit(1, 10000000); /* under an id of its own it is another try */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    market.now_ns += 25 * NS_PER_HOUR;
    apply_again(&bid);
    check_rejected(REJECT_ID_EXPIRED);
}
END_TEST

START_TEST(an_accounts_last_refusals_are_remembered_and_no_more)
{
    enum { KEPT = 256 };
    struct exchange_command first = submit_of(1, 10000000);
    apply(&first);
    struct exchange_command second = submit_of(1, 10000000);
    for (int i = 0; i < KEPT - 1; i++) {
        second = submit_of(1, 10000000);
        apply(&second);
        check_rejected(REJECT_FUNDS);
    }
    apply_again(&first);
    ck_assert(nth(EFFECT_REJECT, 0)->repeated);
    struct exchange_command one_more = submit_of(1, 10000000);
    apply(&one_more);
    apply_again(&second);
    ck_assert(nth(EFFECT_REJECT, 0)->repeated);
    apply_again(&first); /* the oldest made room */
    ck_assert(!nth(EFFECT_REJECT, 0)->repeated);
    struct exchange_command cheap = submit_of(1, 1); /* and the id table has room as ever */
    apply(&cheap);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    check_hash();
    market.now_ns += 25 * NS_PER_HOUR; /* all of them expire */
    tick();
    check_hash();
}
END_TEST

START_TEST(a_frozen_account_hears_the_first_answer_again)
{
    struct exchange_command bid = submit_of(1, 1);
    apply(&bid);
    uint64_t index = nth(EFFECT_ACCEPT, 0)->index;
    struct exchange_account_row row;
    ck_assert(exchange_account(market.exchange, CONSUMER, &row));
    struct exchange_command freeze = command(EXCHANGE_FREEZE, OPERATOR);
    freeze.freeze = (struct exchange_freeze){.account = row.key, .frozen = true};
    apply(&freeze);
    struct exchange_command late = submit_of(1, 1);
    apply(&late);
    check_rejected(REJECT_FROZEN);
    apply_again(&bid);
    ck_assert(nth(EFFECT_ACCEPT, 0)->repeated);
    ck_assert_uint_eq(nth(EFFECT_ACCEPT, 0)->index, index);
    freeze = command(EXCHANGE_FREEZE, OPERATOR);
    freeze.freeze = (struct exchange_freeze){.account = row.key, .frozen = false};
    apply(&freeze);
    apply_again(&late);
    check_rejected(REJECT_FROZEN);
}
END_TEST

START_TEST(an_id_from_yesterday_or_from_tomorrow_has_expired)
{
    struct exchange_command old = submit_of(1, 1);
    old.created_ms -= 24 * 3600 * 1000 + 1;
    apply(&old);
    check_rejected(REJECT_ID_EXPIRED);
    struct exchange_command early = submit_of(1, 1);
    early.created_ms += 10 * 60 * 1000 + 1;
    apply(&early);
    check_rejected(REJECT_ID_EXPIRED);
    early.created_ms -= 10 * 60 * 1000 + 1; /* stamped anew it is as good as any */
    apply_again(&early);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command overflowing = submit_of(1, 1);
    overflowing.created_ms = INT64_MAX;
    apply(&overflowing);
    check_rejected(REJECT_ID_EXPIRED);
}
END_TEST

START_TEST(an_invitation_is_good_once)
{
    struct exchange_command invite = command(EXCHANGE_INVITE, OPERATOR);
    invite.invite = (struct exchange_invite){.token_hash = {{5}},
                                             .roles = ROLE_CONSUMER,
                                             .credits_micro = 7,
                                             .expires_ns = start_ns + NS_PER_HOUR};
    apply(&invite);
    struct exchange_command join = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    join.join = (struct exchange_join){.account = {{50}}, .token_hash = {{5}}, .name = "new"};
    apply(&join);
    uint32_t number;
    ck_assert(account_with(&join.join.account, &number));
    ck_assert_int_eq(balance(number).available_micro, 7);

    /* Sent again, before the sender's session knows of the account, it is the same acceptance. */
    uint64_t first = join.index;
    struct exchange_command again = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    again.id = join.id;
    again.join = join.join;
    apply(&again);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert(nth(EFFECT_ACCEPT, 0)->repeated);
    ck_assert_uint_eq(nth(EFFECT_ACCEPT, 0)->index, first);
    ck_assert_int_eq(balance(number).available_micro, 7);

    struct exchange_command second = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    second.join = (struct exchange_join){.account = {{51}}, .token_hash = {{5}}};
    apply(&second);
    check_rejected(REJECT_INVITATION);
}
END_TEST

static void invite_with(uint8_t token)
{
    struct exchange_command invite = command(EXCHANGE_INVITE, OPERATOR);
    invite.invite = (struct exchange_invite){
        .token_hash = {{token}}, .roles = ROLE_CONSUMER, .expires_ns = start_ns + NS_PER_HOUR};
    apply(&invite);
}

START_TEST(a_member_joins_as_nobody_else)
{
    invite_with(5);
    struct exchange_command join = command(EXCHANGE_JOIN, CONSUMER);
    join.join = (struct exchange_join){.account = {{50}}, .token_hash = {{5}}};
    for (int i = 0; i < 2; i++) { /* the same once more */
        join.index = market.index + 1;
        apply(&join);
        check_rejected(REJECT_EXISTS);
    }
    uint32_t number;
    struct exchange_command operator_again = command(EXCHANGE_JOIN, CONSUMER);
    struct exchange_account_row row;
    ck_assert(exchange_account(market.exchange, OPERATOR, &row));
    operator_again.join = (struct exchange_join){.account = row.key, .token_hash = {{5}}};
    for (int i = 0; i < 2; i++) {
        operator_again.index = market.index + 1;
        apply(&operator_again);
        check_rejected(REJECT_EXISTS);
    }
    ck_assert(!account_with(&join.join.account, &number));
    check_hash();
}
END_TEST

START_TEST(the_key_of_the_other_sign_is_no_second_account)
{
    invite_with(5);
    invite_with(6);
    struct exchange_command join = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    join.join = (struct exchange_join){.account = {{50}}, .token_hash = {{5}}};
    apply(&join);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_command twin = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    twin.join = (struct exchange_join){.account = {{50}}, .token_hash = {{6}}};
    twin.join.account.bytes[31] = 0x80;
    apply(&twin);
    check_rejected(REJECT_EXISTS);
    struct exchange_command other = command(EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
    other.join = (struct exchange_join){.account = {{51}}, .token_hash = {{6}}};
    apply(&other); /* which the refused one did not spend */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

START_TEST(halted_means_no_new_fills_and_resuming_makes_them)
{
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt.halted = true;
    offer(PROVIDER, 1, price);
    halt.index = market.index + 1;
    apply(&halt);
    struct exchange_command refused = submit_of(1, 1);
    apply(&refused);
    check_rejected(REJECT_HALTED);
    struct exchange_command resume = command(EXCHANGE_HALT, OPERATOR);
    apply(&resume);
    (void)submit(1, 30);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
}
END_TEST

static void halt(bool halted)
{
    struct exchange_command made = command(EXCHANGE_HALT, OPERATOR);
    made.halt.halted = halted;
    apply(&made);
}

START_TEST(a_halt_ends_no_lease_but_none_outlives_its_term)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(9, 100);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    halt(true);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    market.now_ns += 2 * NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, 2 * NS_PER_S); /* what runs ends and is paid */
    ck_assert_int_eq(balance(PROVIDER).available_micro, 2 * MICRO_PER_CREDIT);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH),
                      1); /* and the lease's term is bought: it goes on */
    struct exchange_work third = nth(EFFECT_DISPATCH, 0)->work;

    market.now_ns += 10 * NS_PER_S; /* less is left of the term than a subtask may take */
    result(PROVIDER, job, second, OUTCOME_OK, 10 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 0);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    result(PROVIDER, job, third, OUTCOME_OK, 0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN); /* it keeps its budget and its place */
    ck_assert_uint_eq(job_row(job).accepted, 3);

    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{PROVIDER}}, .slots = 1, .price_micro = price};
    apply(&ask);
    check_rejected(REJECT_HALTED);
    halt(false);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1); /* the ask still stands */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
}
END_TEST

START_TEST(a_halted_market_takes_cancels)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    halt(true);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 1);
    result(PROVIDER, job, work, OUTCOME_CANCELLED, 0);
    ck_assert_uint_eq(job_row(job).state, JOB_CANCELLED);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

SUITE("exchange access", set_up, tear_down, TEST(who_may_not_is_told_so),
      TEST(someone_elses_job_is_not_found),
      TEST(the_same_id_is_answered_again_and_another_body_is_refused),
      TEST(what_was_refused_stays_refused_when_it_comes_again),
      TEST(an_accounts_last_refusals_are_remembered_and_no_more),
      TEST(a_frozen_account_hears_the_first_answer_again),
      TEST(an_id_from_yesterday_or_from_tomorrow_has_expired), TEST(an_invitation_is_good_once),
      TEST(a_member_joins_as_nobody_else), TEST(the_key_of_the_other_sign_is_no_second_account),
      TEST(halted_means_no_new_fills_and_resuming_makes_them),
      TEST(a_halt_ends_no_lease_but_none_outlives_its_term), TEST(a_halted_market_takes_cancels))
