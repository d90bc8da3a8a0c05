/* The exchange as its users meet it: one market, one provider, one consumer, by hand. Its devices
 * are in test_exchange_devices.c, its limits in test_exchange_limits.c. */
#include "base/checked.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(a_job_is_run_paid_and_settled)
{
    offer(PROVIDER, 1, price / 2);
    struct id128 job = submit(1, 100);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 100 * MICRO_PER_CREDIT);
    const struct exchange_effect *grant = nth(EFFECT_LEASE_GRANT, 0);
    ck_assert_ptr_nonnull(grant);
    ck_assert_uint_eq(grant->account, PROVIDER);
    ck_assert_int_eq(grant->grant.price_micro, price / 2); /* the maker's */
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;

    market.now_ns += 4 * NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, 3 * NS_PER_S);
    ck_assert_int_eq(record_of(LEDGER_RESULT)->paid_ns,
                     3 * NS_PER_S); /* claimed less than was seen */
    ck_assert_int_eq(record_of(LEDGER_CAPTURE)->amount_micro, 3 * MICRO_PER_CREDIT / 2);
    ck_assert_int_eq(record_of(LEDGER_RELEASE)->amount_micro,
                     100 * MICRO_PER_CREDIT - 3 * MICRO_PER_CREDIT / 2);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 3 * MICRO_PER_CREDIT / 2);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_job_has_its_owner_also_when_it_is_done)
{
    const struct id128 unknown = {{0xee}};
    offer(PROVIDER, 1, price / 2);
    struct id128 job = submit(1, 100);
    ck_assert_uint_eq(exchange_job_owner(market.exchange, &job), CONSUMER);
    result(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(exchange_job_owner(market.exchange, &job), CONSUMER);
    ck_assert_uint_eq(exchange_job_owner(market.exchange, &unknown), EXCHANGE_NO_ACCOUNT);
}
END_TEST

START_TEST(a_claim_above_what_was_seen_is_cut)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 2 * NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, 3600 * NS_PER_S);
    ck_assert_int_eq(record_of(LEDGER_CAPTURE)->amount_micro, 2 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(two_in_flight_are_not_billed_twice)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(9, 100);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    market.now_ns += 3 * NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, 3 * NS_PER_S);
    market.now_ns += 3 * NS_PER_S;
    result(PROVIDER, job, second, OUTCOME_OK, 6 * NS_PER_S); /* claims its wait in the queue too */
    ck_assert_int_eq(job_row(job).charged_micro, 6 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(the_same_result_twice_is_paid_once)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
    int64_t paid = balance(PROVIDER).available_micro;
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEDGER), 0);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1); /* so that the agent stops sending it */
    ck_assert_int_eq(balance(PROVIDER).available_micro, paid);
}
END_TEST

START_TEST(another_providers_result_is_worth_nothing)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, 2 * price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    result(OTHER_PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEDGER), 0);
    ck_assert_uint_eq(job_row(job).accepted, 0);
}
END_TEST

START_TEST(a_program_that_fails_is_paid_and_its_subtask_ends)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_PROGRAM_FAILED, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_int_eq(balance(PROVIDER).available_micro, MICRO_PER_CREDIT);
}
END_TEST

START_TEST(a_provider_that_fails_is_not_paid_and_the_work_goes_elsewhere)
{
    offer(PROVIDER, 1, price / 2);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, price / 2);
    for (int i = 0; i < 2; i++) { /* two in a row end the lease */
        market.now_ns += NS_PER_S;
        result(PROVIDER, job, work, OUTCOME_JAIL_FAILED, NS_PER_S);
        work = nth(EFFECT_DISPATCH, 0)->work;
    }
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, OTHER_PROVIDER);
    result(OTHER_PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_suspect_providers_work_starts_elsewhere_and_the_first_result_wins)
{
    offer(PROVIDER, 1, price / 2);
    struct id128 job = submit(1, 100);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, price / 2);
    struct exchange_command suspect = command(EXCHANGE_SUSPECT, EXCHANGE_NO_ACCOUNT);
    suspect.provider = PROVIDER;
    market.now_ns += NS_PER_S;
    suspect.log_time_ns = market.now_ns;
    apply(&suspect);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    struct exchange_work second = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(second.attempt, first.attempt + 1);

    market.now_ns += NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, NS_PER_S); /* it was only cut off */
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 1);
    int64_t charged = job_row(job).charged_micro;
    result(OTHER_PROVIDER, job, second, OUTCOME_OK, NS_PER_S);
    ck_assert_int_eq(job_row(job).charged_micro, charged);
}
END_TEST

START_TEST(a_lease_ends_with_its_term_even_if_every_message_is_lost)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns = exchange_next_deadline_ns(market.exchange);
    tick();
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT),
                      1); /* the ask still stands: a new lease, a new attempt */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.attempt, work.attempt + 1);
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S); /* past the fence */
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_LATE);
    ck_assert_ptr_null(record_of(LEDGER_CAPTURE));
}
END_TEST

START_TEST(a_lease_is_renewed_while_there_is_work_and_budget)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(40, 100);
    struct exchange_work queue[2] = {nth(EFFECT_DISPATCH, 0)->work, nth(EFFECT_DISPATCH, 1)->work};
    size_t renewals = 0;
    for (int i = 0; i < 10; i++) {
        market.now_ns += 8 * NS_PER_S;
        result(PROVIDER, job, queue[0], OUTCOME_OK, 8 * NS_PER_S);
        renewals += count_of(EFFECT_LEASE_RENEW);
        queue[0] = queue[1];
        if (count_of(EFFECT_DISPATCH) == 0) {
            break; /* the budget covers no further term */
        }
        queue[1] = nth(EFFECT_DISPATCH, 0)->work;
    }
    ck_assert_uint_ge(renewals, 2);
    struct exchange_job_row row = job_row(job);
    ck_assert_int_le(row.charged_micro + row.reserved_micro, row.budget_micro);
}
END_TEST

START_TEST(a_job_whose_budget_is_used_up_ends_and_says_so)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(100, 25); /* a term is 20 credits */
    struct exchange_work queue[2] = {nth(EFFECT_DISPATCH, 0)->work, nth(EFFECT_DISPATCH, 1)->work};
    for (int i = 0; i < 50 && job_row(job).state == JOB_OPEN; i++) {
        market.now_ns += 4 * NS_PER_S;
        result(PROVIDER, job, queue[0], OUTCOME_OK, 4 * NS_PER_S);
        queue[0] = queue[1];
        if (count_of(EFFECT_DISPATCH) > 0) {
            queue[1] = nth(EFFECT_DISPATCH, count_of(EFFECT_DISPATCH) - 1)->work;
        }
    }
    struct exchange_job_row row = job_row(job);
    ck_assert_uint_eq(row.state, JOB_FAILED);
    ck_assert_uint_eq(row.reason, JOB_REASON_BUDGET);
    ck_assert_uint_gt(row.accepted, 0);
    ck_assert_int_le(row.charged_micro, row.budget_micro);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(cancelling_pays_the_time_used_and_gives_back_the_rest)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(5, 100);
    struct exchange_work running = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work queued = nth(EFFECT_DISPATCH, 1)->work;
    market.now_ns += 2 * NS_PER_S;
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 2);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN); /* until its attempts are back */
    result(PROVIDER, job, queued, OUTCOME_CANCELLED, 0);
    result(PROVIDER, job, running, OUTCOME_CANCELLED, 2 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(job).cancelled, 5);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 2 * MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(CONSUMER).available_micro, 998 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(a_refusal_names_what_is_wrong_and_changes_nothing)
{
    offer(PROVIDER, 1, price);
    struct exchange_command wrong = submit_of(1, 100000);
    apply(&wrong);
    check_rejected(REJECT_FUNDS);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 100000 * MICRO_PER_CREDIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 1000 * MICRO_PER_CREDIT);

    struct {
        enum reject_code code;
        struct exchange_command command;
    } cases[9];
    size_t count = 0;
#define CASE(reject, change)                                                                       \
    cases[count].code = (reject);                                                                  \
    cases[count].command = submit_of(1, 1);                                                        \
    cases[count].command.submit.change;                                                            \
    count++
    CASE(REJECT_QUANTITY, subtasks = 0);
    CASE(REJECT_QUANTITY, slots = 0);
    CASE(REJECT_QUANTITY, term_ns = NS_PER_S); /* shorter than the limit of one subtask */
    CASE(REJECT_PRICE, cap_micro = 11 * price);
    CASE(REJECT_PRICE, cap_micro = -2);
    CASE(REJECT_BUDGET, budget_micro = -1);
    CASE(REJECT_BUDGET, budget_micro = INT64_MIN);
    CASE(REJECT_VERIFY, verify = EXCHANGE_VERIFY_UNKNOWN);
    CASE(REJECT_QUANTITY, retries = 101);
#undef CASE
    for (size_t i = 0; i < count; i++) {
        cases[i].command.index = market.index + 1;
        apply(&cases[i].command);
        check_rejected(cases[i].code);
        ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    }
}
END_TEST

START_TEST(a_statement_is_answered_with_what_differs)
{
    offer(PROVIDER, 1, price);
    (void)submit(5, 100);
    struct exchange_work held = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_held list[] = {{held.lease, held.index, held.attempt}, {999, 0, 0}};
    struct exchange_command statement = command(EXCHANGE_STATEMENT, PROVIDER);
    statement.statement = (struct exchange_statement){.held = list, .count = 2};
    apply(&statement);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* the one it does not hold */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->lease.lease, 999);

    struct exchange_command empty = command(EXCHANGE_STATEMENT, PROVIDER); /* it restarted */
    apply(&empty);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
}
END_TEST

START_TEST(commands_out_of_order_are_not_applied)
{
    struct exchange_command skip = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    skip.index += 1;
    exchange_effects_clear(&market.effects);
    ck_assert_int_eq(exchange_step(market.exchange, &skip, &market.effects), EXCHANGE_OUT_OF_ORDER);
    struct exchange_command back = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    back.log_time_ns -= 1;
    ck_assert_int_eq(exchange_step(market.exchange, &back, &market.effects), EXCHANGE_OUT_OF_ORDER);
    ck_assert_uint_eq(exchange_index(market.exchange), market.index);
}
END_TEST

START_TEST(of_asks_freed_together_the_better_is_filled_first)
{
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit(3, 100);
    struct exchange_work dear[] = {nth(EFFECT_DISPATCH, 0)->work, nth(EFFECT_DISPATCH, 1)->work};
    offer(PROVIDER, 1, price / 2);
    struct exchange_work cheap = nth(EFFECT_DISPATCH, 0)->work;
    struct id128 waiting = submit(1, 100);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);

    result(OTHER_PROVIDER, job, dear[0], OUTCOME_OK, 1);
    result(OTHER_PROVIDER, job, dear[1], OUTCOME_OK, 1);
    result(PROVIDER, job, cheap, OUTCOME_OK, 1); /* both leases end, the dear one first */
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert(id128_equal(&record_of(LEDGER_FILL)->job, &waiting));
    ck_assert_int_eq(record_of(LEDGER_FILL)->price_micro, price / 2);
}
END_TEST

START_TEST(a_refused_submit_forgets_no_ended_job)
{
    struct id128 first = {{0}};
    (void)submit(1, 1);            /* stands, and holds the only class */
    for (int i = 0; i < 63; i++) { /* as many jobs as fit */
        struct id128 job = submit(1, 1);
        struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
        cancel.cancel_job.job = job;
        apply(&cancel);
        first = i == 0 ? job : first;
    }
    struct requirement other = {.count = 1};
    other.nodes[0].op = REQUIREMENT_EQ;
    other.nodes[0].attribute = (struct attribute){.name = "memory", .number = 1};
    struct exchange_command refused = submit_of(1, 1);
    refused.submit.needs = &other;
    apply(&refused);
    check_rejected(REJECT_LIMIT); /* of classes: looked at last */
    struct exchange_command conflict = submit_of(1, 1);
    conflict.id = first;
    conflict.body.bytes[0] = 1;
    apply(&conflict);
    check_rejected(REJECT_ID_REUSED);
    ck_assert_uint_eq(job_row(first).state, JOB_CANCELLED);
    (void)submit(1, 1);
    struct exchange_job_row row;
    ck_assert(!exchange_job(market.exchange, &first, &row));
}
END_TEST

static struct requirement memory_of(int64_t bytes)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    needs.nodes[0].attribute = (struct attribute){.name = "memory", .number = bytes};
    return needs;
}

START_TEST(what_a_job_asked_for_goes_with_its_bid)
{
    for (int64_t i = 0; i < 5; i++) { /* there is room for one class */
        struct requirement needs = memory_of(i);
        struct exchange_command made = submit_of(1, 1);
        made.submit.needs = &needs;
        apply(&made);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        struct requirement other = memory_of(i + 100);
        struct exchange_command second = submit_of(1, 1);
        second.submit.needs = &other;
        apply(&second);
        check_rejected(REJECT_LIMIT);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "classes");
        struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
        cancel.cancel_job.job = made.id;
        apply(&cancel);
        struct exchange_explanation why;
        ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    }
}
END_TEST

SUITE("exchange", set_up, tear_down, TEST(a_job_is_run_paid_and_settled),
      TEST(a_job_has_its_owner_also_when_it_is_done), TEST(a_claim_above_what_was_seen_is_cut),
      TEST(two_in_flight_are_not_billed_twice), TEST(the_same_result_twice_is_paid_once),
      TEST(another_providers_result_is_worth_nothing),
      TEST(a_program_that_fails_is_paid_and_its_subtask_ends),
      TEST(a_provider_that_fails_is_not_paid_and_the_work_goes_elsewhere),
      TEST(a_suspect_providers_work_starts_elsewhere_and_the_first_result_wins),
      TEST(a_lease_ends_with_its_term_even_if_every_message_is_lost),
      TEST(a_lease_is_renewed_while_there_is_work_and_budget),
      TEST(a_job_whose_budget_is_used_up_ends_and_says_so),
      TEST(cancelling_pays_the_time_used_and_gives_back_the_rest),
      TEST(a_refusal_names_what_is_wrong_and_changes_nothing),
      TEST(a_statement_is_answered_with_what_differs), TEST(commands_out_of_order_are_not_applied),
      TEST(of_asks_freed_together_the_better_is_filled_first),
      TEST(a_refused_submit_forgets_no_ended_job), TEST(what_a_job_asked_for_goes_with_its_bid))
