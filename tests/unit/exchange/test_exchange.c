/* The exchange as its users meet it: one market, one provider, one consumer, by hand. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

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

/* Devices that differ in all they say. */
static void advertise_kinds(uint32_t provider, int64_t from, size_t count)
{
    static struct attribute attributes[8];
    static struct exchange_device devices[8];
    for (size_t i = 0; i < count; i++) {
        attributes[i] = (struct attribute){.name = "memory", .number = from + (int64_t)i};
        devices[i] = (struct exchange_device){.device = {{(uint8_t)(i + 1)}},
                                              .slots = 1,
                                              .attributes = &attributes[i],
                                              .attribute_count = 1};
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){devices, count};
    apply(&advertise);
}

START_TEST(a_simulated_device_does_no_work_for_who_does_not_ask_for_one)
{
    struct attribute simulated = {.name = "simulated", .number = 1};
    struct exchange_device device = {
        .device = {{1}}, .slots = 1, .attributes = &simulated, .attribute_count = 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct id128 job = submit(1, 100); /* rests before the ask, as one does after it */
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_NO_DEVICE);

    struct exchange_need need = {
        .needs = &anything, .account = CONSUMER, .subtasks = 1, .slots = 1, .cap_micro = -1};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.devices, 1);
    ck_assert_uint_eq(why.simulated, 1);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_uint_eq(why.simulated_fitting, 1);
    ck_assert_uint_eq(why.predicate_count, 0);

    struct requirement asks = {.count = 1};
    asks.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = simulated};
    need.needs = &asks;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.simulated, 0);
    ck_assert_uint_eq(why.predicate_count, 1); /* its own */
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.free, 1);
}
END_TEST

/* The result of `work`, done well, that says of itself whether a model was the device. */
static void result_saying(struct id128 job, struct exchange_work work, bool is_simulated)
{
    struct exchange_result one = {.job = job,
                                  .index = work.index,
                                  .attempt = work.attempt,
                                  .lease = work.lease,
                                  .device = {{PROVIDER}},
                                  .manifest = {{9}},
                                  .outcome = OUTCOME_OK,
                                  .is_simulated = is_simulated,
                                  .busy_ns = NS_PER_S};
    struct exchange_command results = command(EXCHANGE_RESULTS, PROVIDER);
    results.results = (struct exchange_results){.results = &one, .count = 1};
    market.now_ns += NS_PER_S;
    apply(&results);
}

static uint32_t status_of_result(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_RESULT) {
            return effect->ledger.status;
        }
    }
    ck_abort_msg("no result was settled");
    return 0;
}

START_TEST(a_result_that_hides_its_simulation_is_not_accepted)
{
    struct attribute attributes[] = {
        {.name = "instrument", .is_text = true, .text = "sim.tpu.google.v5p"}};
    struct exchange_device device = {
        .device = {{PROVIDER}}, .slots = 1, .attributes = attributes, .attribute_count = 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{PROVIDER}}, .slots = 1, .price_micro = price};
    apply(&ask);
    struct requirement needs = {.count = 1};
    needs.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = attributes[0]};
    struct exchange_command made = submit_of(3, 100);
    made.submit.needs = &needs;
    apply(&made);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    struct exchange_lease_row lease;
    ck_assert_uint_eq(exchange_leases(market.exchange, &made.id, &lease, 1), 1);
    ck_assert(lease.is_simulated);

    result_saying(made.id, first, false);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_FAILED_UNPAID);
    ck_assert_uint_eq(job_row(made.id).accepted, 0);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    /* The device counts as it was when it was bought, not as it is called since. */
    attributes[0] = (struct attribute){.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_command anew = command(EXCHANGE_ADVERTISE, PROVIDER);
    anew.advertise = advertise.advertise;
    apply(&anew);
    result_saying(made.id, second, true);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_ACCEPTED);
    ck_assert_int_gt(balance(PROVIDER).available_micro, 0);
    check_hash();
}
END_TEST

START_TEST(a_real_device_has_no_simulated_results)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100); /* one runs, one is queued behind it */
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    struct exchange_lease_row lease;
    ck_assert_uint_eq(exchange_leases(market.exchange, &job, &lease, 1), 1);
    ck_assert(!lease.is_simulated);
    result_saying(job, first, true);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_FAILED_UNPAID);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    result_saying(job, second, false);
    ck_assert_uint_eq(status_of_result(), ATTEMPT_ACCEPTED);
}
END_TEST

/* The exchange does not know which session of the account placed or cancelled an ask: the agent
 * sorts its own out. */
START_TEST(an_agent_hears_what_becomes_of_its_devices_asks)
{
    advertise_kinds(PROVIDER, 1, 1);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    const struct id128 first = ask.id;
    struct exchange_ask_note note = nth(EFFECT_ASK, 0)->ask;
    ck_assert_uint_eq(nth(EFFECT_ASK, 0)->account, PROVIDER);
    ck_assert(note.stands);
    ck_assert(id128_equal(&note.order, &first));
    ck_assert_int_eq(note.price_micro, price);

    ask = command(EXCHANGE_ASK, PROVIDER); /* the device has one ask: this one replaces it */
    ask.ask = (struct exchange_ask){
        .device = {{1}}, .slots = 1, .price_micro = 7, .good_till_ns = market.now_ns + NS_PER_S};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ASK), 1);
    note = nth(EFFECT_ASK, 0)->ask;
    ck_assert(note.stands);
    ck_assert(id128_equal(&note.order, &ask.id));
    ck_assert_int_eq(note.good_till_ns, ask.ask.good_till_ns);
    market.now_ns += NS_PER_S;
    tick();
    ck_assert_uint_eq(count_of(EFFECT_ASK), 1);
    note = nth(EFFECT_ASK, 0)->ask;
    ck_assert(!note.stands);
    ck_assert(id128_equal(&note.order, &ask.id));

    ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_ORDER, PROVIDER);
    cancel.cancel_order.order = ask.id;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_ASK), 1);
    ck_assert(!nth(EFFECT_ASK, 0)->ask.stands);

    ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    advertise_kinds(PROVIDER, 1, 0); /* its own doing; and no ask can be placed from here on */
    ck_assert_uint_eq(count_of(EFFECT_ASK), 0);
    ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    check_rejected(REJECT_DEVICE);
}
END_TEST

START_TEST(a_provider_uses_only_so_many_kinds_of_device)
{
    advertise_kinds(PROVIDER, 1, 3);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "cells_per_account");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 2);
    advertise_kinds(PROVIDER, 1, 2); /* nothing is left of the refused ones */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    advertise_kinds(OTHER_PROVIDER, 1, 2);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    advertise_kinds(OTHER_PROVIDER, 1, 3); /* to have them with another does not make them free */
    check_rejected(REJECT_LIMIT);
    advertise_kinds(PROVIDER, 1, 0);
    advertise_kinds(OTHER_PROVIDER, 1, 0);
    for (int64_t i = 0; i < 200; i += 2) { /* more than there is room for, one after another */
        advertise_kinds(PROVIDER, i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        advertise_kinds(PROVIDER, i, 0);
    }
    check_hash();
}
END_TEST

START_TEST(devices_advertised_anew_make_room_for_themselves)
{
    advertise_kinds(PROVIDER, 1, 2);
    for (int64_t i = 0; i < 5;
         i++) { /* the same devices, measured again: all it may have, each time */
        advertise_kinds(PROVIDER, 10 * i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
    advertise_kinds(PROVIDER, 10, 3);
    check_rejected(REJECT_LIMIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 3);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 2);
}
END_TEST

START_TEST(a_device_that_a_lease_still_holds_counts)
{
    advertise_kinds(PROVIDER, 1, 2);
    struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
    ask.ask = (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price};
    apply(&ask);
    (void)submit(2, 100);
    ck_assert_ptr_nonnull(nth(EFFECT_LEASE_GRANT, 0));
    advertise_kinds(PROVIDER, 10,
                    2); /* the same device: the lease goes on, its old kind does not */
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    const struct exchange_device other[2] = {{.device = {{100}}, .slots = 1},
                                             {.device = {{101}}, .slots = 1}};
    struct exchange_device devices[2] = {other[0], other[1]};
    struct attribute memory[2] = {{.name = "memory", .number = 50},
                                  {.name = "memory", .number = 51}};
    for (size_t i = 0; i < 2; i++) {
        devices[i].attributes = &memory[i];
        devices[i].attribute_count = 1;
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 2};
    apply(&advertise); /* with the one that is leased, and no longer said, these are three */
    check_rejected(REJECT_LIMIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 3);
    advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){devices, 1};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

START_TEST(what_another_account_keeps_in_use_is_not_charged_to_the_first)
{
    for (int64_t i = 0; i < 3; i++) { /* whoever was first with a kind no longer has it */
        advertise_kinds(PROVIDER, 10 * i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        advertise_kinds(OTHER_PROVIDER, 10 * i, 2);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
    advertise_kinds(PROVIDER, 100, 2);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}
END_TEST

START_TEST(a_device_with_every_attribute_and_an_instrument_survives_a_snapshot)
{
    static struct attribute attributes[ATTRIBUTE_COUNT_MAX + 1];
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        attributes[i] = (struct attribute){.name = "program", .number = (int64_t)i};
    }
    struct exchange_device device = {.device = {{1}},
                                     .slots = 1,
                                     .attributes = attributes,
                                     .attribute_count = ATTRIBUTE_COUNT_MAX + 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, PROVIDER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    reload();
}
END_TEST

/* ---------------------------------------------------------------- limits are part of the state */

static void set_limits(const struct exchange_limits *limits)
{
    struct exchange_command set = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    set.set_limits = (struct exchange_set_limits){.rules = EXCHANGE_RULES, .limits = *limits};
    apply(&set);
}

START_TEST(limits_are_a_command_and_what_stands_stays)
{
    struct exchange_limits limits = exchange_limits_default();
    ck_assert_uint_eq(exchange_rules(market.exchange), 0);
    ck_assert(!exchange_holds_limits(market.exchange, &limits));
    struct hash32 before = exchange_state_hash(market.exchange);
    set_limits(&limits);
    ck_assert(exchange_holds_limits(market.exchange, &limits));
    struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert(!hash32_equal(&before, &after));

    struct id128 first = submit(1, 10);
    (void)submit(1, 10);
    limits.jobs_per_account = 1;
    set_limits(&limits);
    ck_assert(exchange_holds_limits(market.exchange, &limits));
    ck_assert_uint_eq(job_row(first).state, JOB_OPEN); /* two stand, above the cap */
    struct exchange_command third = submit_of(1, 10);
    apply(&third);
    ck_assert_ptr_nonnull(nth(EFFECT_REJECT, 0));
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "jobs_per_account");
    limits.jobs_per_account = 10;
    set_limits(&limits);
    (void)submit(1, 10);
    ck_assert_uint_eq(count_of(EFFECT_REJECT), 0);
}
END_TEST

START_TEST(a_snapshot_brings_its_limits_and_more_than_they_allow)
{
    struct exchange_limits limits = exchange_limits_default();
    offer(PROVIDER, 1, price);
    (void)submit(3, 10);
    (void)submit(3, 10);
    (void)submit(3, 10);
    limits.asks = limits.jobs = limits.jobs_per_account = 1;
    limits.subtasks = 1;
    set_limits(&limits);

    size_t length;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    struct exchange_limits file = exchange_limits_default(); /* others: the snapshot's count */
    file.asks = file.jobs = 1;                               /* and its orders find room */
    struct exchange *loaded = exchange_load(&file, bytes, length);
    ck_assert_ptr_nonnull(loaded);
    ck_assert(exchange_holds_limits(loaded, &limits));
    struct hash32 ours = exchange_state_hash(market.exchange);
    struct hash32 theirs = exchange_state_hash(loaded);
    struct hash32 walked = exchange_state_hash_walk(loaded);
    ck_assert(hash32_equal(&ours, &theirs));
    ck_assert(hash32_equal(&walked, &theirs));
    exchange_destroy(&loaded);
    free(bytes);
}
END_TEST

START_TEST(one_account_cannot_have_all_subtasks)
{
    struct exchange_limits limits = exchange_limits_default();
    ck_assert_uint_lt(limits.subtasks_per_account, limits.subtasks);
    limits.subtasks = 100;
    limits.subtasks_per_account = 60;
    set_limits(&limits);
    struct id128 first = submit(50, 10);
    struct exchange_command more = submit_of(11, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "subtasks_per_account");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 61);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 60);
    (void)submit(10, 10);

    reload(); /* what it has is found again */
    more = submit_of(1, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = first;
    apply(&cancel);
    (void)submit(50, 10);
    more = submit_of(1, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT);
    limits.subtasks_per_account = 0; /* as a journal says it that is older than this cap */
    set_limits(&limits);
    (void)submit(40, 10);
    more = submit_of(1, 10);
    apply(&more);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "subtasks");
}
END_TEST

SUITE("exchange", set_up, tear_down, TEST(a_job_is_run_paid_and_settled),
      TEST(a_claim_above_what_was_seen_is_cut), TEST(two_in_flight_are_not_billed_twice),
      TEST(the_same_result_twice_is_paid_once), TEST(another_providers_result_is_worth_nothing),
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
      TEST(a_refused_submit_forgets_no_ended_job), TEST(what_a_job_asked_for_goes_with_its_bid),
      TEST(a_simulated_device_does_no_work_for_who_does_not_ask_for_one),
      TEST(a_provider_uses_only_so_many_kinds_of_device),
      TEST(an_agent_hears_what_becomes_of_its_devices_asks),
      TEST(a_result_that_hides_its_simulation_is_not_accepted),
      TEST(a_real_device_has_no_simulated_results),
      TEST(devices_advertised_anew_make_room_for_themselves),
      TEST(a_device_that_a_lease_still_holds_counts),
      TEST(what_another_account_keeps_in_use_is_not_charged_to_the_first),
      TEST(a_device_with_every_attribute_and_an_instrument_survives_a_snapshot),
      TEST(limits_are_a_command_and_what_stands_stays),
      TEST(a_snapshot_brings_its_limits_and_more_than_they_allow),
      TEST(one_account_cannot_have_all_subtasks))
