/* Some providers may be referees; they leave and come back. */
#include "exchange/work/check_roles.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_market.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(nobody_judges_results_of_its_own)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(3);
    make_all(job, 3);
    size_t leases = 0;
    size_t dispatches = 0;
    for (int i = 0; i < 50; i++) { /* nor does it get leases that it could not use */
        market.now_ns += NS_PER_S;
        tick();
        leases += count_of(EFFECT_LEASE_GRANT);
        dispatches += count_of(EFFECT_DISPATCH);
    }
    ck_assert_uint_eq(leases, 0);
    ck_assert_uint_eq(dispatches, 0);
    ck_assert_uint_eq(job_row(job).checking, 3);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_REFEREE);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.own, 1);
    ck_assert_uint_eq(why.free, 0);
    offer(NO_REFEREE, 1, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    offer(REFEREE, 1, price);
    ck_assert_uint_eq(sent_to(REFEREE).index, 3); /* what came first is checked first */
}
END_TEST

START_TEST(only_the_role_makes_a_referee)
{
    struct attribute said[] = {{.name = "kind", .is_text = true, .text = "cpu"},
                               {.name = "referee", .number = 1}};
    struct exchange_device device = {
        .device = {{NO_REFEREE}}, .slots = 1, .attributes = said, .attribute_count = 2};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, NO_REFEREE);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, NO_REFEREE);
    ask.ask = (struct exchange_ask){.device = device.device, .slots = 1, .price_micro = price};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);

    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    (void)strcpy(needs.nodes[0].attribute.name, "referee");
    needs.nodes[0].attribute.number = 1;
    struct exchange_need need = {.needs = &needs,
                                 .account = CONSUMER,
                                 .subtasks = 1,
                                 .slots = 1,
                                 .cap_micro = -1,
                                 .limit_ns = NS_PER_S,
                                 .term_ns = NS_PER_S};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 0);
    offer(REFEREE, 1, price);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 1);
}
END_TEST

START_TEST(a_referee_is_required_once)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0] = (struct requirement_node){.op = REQUIREMENT_GE,
                                               .attribute = {.name = "memory", .number = 1024}};
    struct requirement once, twice;
    ck_assert(check_role_require(&needs, &once)); /* as the consumer does, for its quote */
    ck_assert_uint_eq(once.count, 3);
    ck_assert(check_role_require(&once, &twice));
    ck_assert_uint_eq(twice.count, 3);
    ck_assert(check_role_require(&anything, &once));
    ck_assert_uint_eq(once.count, 1);
    ck_assert(check_role_require(&once, &twice));
    ck_assert_uint_eq(twice.count, 1);
    /* A need that either of two branches may hold is no demand for it. */
    once.nodes[1] = needs.nodes[0];
    once.nodes[2] = (struct requirement_node){.op = REQUIREMENT_OR, .arity = 2};
    once.count = 3;
    ck_assert(check_role_require(&once, &twice));
    ck_assert_uint_eq(twice.count, 5);
}
END_TEST

START_TEST(two_agents_of_one_slot_judge_each_other_at_once)
{
    offer(MAKER, 1, price);
    offer(REFEREE, 1, price);
    struct id128 job = submit_checked(2);
    struct exchange_work first = sent_to(MAKER);
    struct exchange_work second = sent_to(REFEREE);
    done(MAKER, job, first); /* its slot has no more to do, and nothing that it may check */
    done(REFEREE, job, second);
    /* Each has a check of the other's result, without waiting until idle leases run out. */
    struct exchange_work of_maker = sent_to(REFEREE);
    ck_assert_uint_eq(of_maker.index, 2 + first.index);
    struct exchange_work of_referee = sent_to(MAKER);
    ck_assert_uint_eq(of_referee.index, 2 + second.index);
    (void)answer(REFEREE, job, of_maker, OUTCOME_OK, VERDICT_ACCEPT);
    (void)answer(MAKER, job, of_referee, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_maker_that_comes_back_judges_at_once)
{
    offer(MAKER, 1, price);
    offer(REFEREE, 1, price);
    struct id128 job = submit_checked(2);
    struct exchange_work first = sent_to(MAKER);
    struct exchange_work second = sent_to(REFEREE);
    done(MAKER, job, first);
    presence(EXCHANGE_SUSPECT, MAKER);
    done(REFEREE, job, second);
    ck_assert_uint_eq(sent_to(REFEREE).index, 2 + first.index);
    reload();
    offer(MAKER, 1, price); /* its lease for products stood all the time, with nothing to do */
    ck_assert_uint_eq(sent_to(MAKER).index, 2 + second.index);
}
END_TEST

START_TEST(an_idle_referee_that_comes_back_takes_what_waits_in_another_part)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(2);
    done(MAKER, job, sent_to(MAKER));
    const struct exchange_work work = sent_to(MAKER); /* its next */
    offer(REFEREE, 1, price);
    (void)answer(REFEREE, job, sent_to(REFEREE), OUTCOME_OK, VERDICT_ACCEPT);
    presence(EXCHANGE_SUSPECT, REFEREE);
    reload();
    presence(EXCHANGE_GOODBYE, MAKER); /* what it ran waits for a device */
    ck_assert(!is_sent_to(REFEREE));
    offer(REFEREE, 1, price); /* its lease for checks has nothing to do */
    ck_assert_uint_eq(sent_to(REFEREE).index, work.index);
}
END_TEST

START_TEST(a_lease_without_work_to_come_makes_room_for_other_jobs_at_once)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(1);
    struct exchange_work work = sent_to(MAKER);
    struct id128 other = submit(1, 100);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    done(MAKER, job, work); /* held, and nobody there to judge it */
    ck_assert_uint_eq(job_row(job).checking, 1);
    ck_assert_uint_eq(job_row(other).running, 1);
}
END_TEST

START_TEST(without_a_budget_checks_wait_for_a_referee_who_gives_away)
{
    offer(MAKER, 1, 0);
    offer(REFEREE, 1, price);
    struct exchange_command made = checked_of(1, 0);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_work work = sent_to(MAKER);
    done(MAKER, made.id, work);
    presence(EXCHANGE_GOODBYE, MAKER);
    market.now_ns += 60 * NS_PER_S;
    struct exchange_command tick = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(&tick);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    ck_assert_uint_eq(job_row(made.id).checking, 1);
    ck_assert(!is_sent_to(REFEREE));
    offer(SECOND, 1, 0);
    ck_assert_uint_eq(sent_to(SECOND).index, 1);
}
END_TEST

START_TEST(a_lost_referee_is_replaced_and_its_late_verdict_does_not_count_twice)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    presence(EXCHANGE_SUSPECT, REFEREE);
    struct exchange_work second = sent_to(SECOND);
    ck_assert_uint_eq(second.index, 1);
    reload();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(job_row(held.job).accused, 1);
    (void)answer(SECOND, held.job, second, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(exchange_standing(market.exchange, REFEREE).overruled, 1);
}
END_TEST

START_TEST(a_check_that_nobody_wants_any_more_may_be_lost)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    presence(EXCHANGE_SUSPECT, REFEREE);
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_REJECT);
    presence(EXCHANGE_RETURNED, REFEREE);
    check_hash();
    struct exchange_command statement = command(EXCHANGE_STATEMENT, REFEREE);
    const struct exchange_held nothing = {.lease = held.check.lease};
    statement.statement = (struct exchange_statement){&nothing, 1, market.now_ns};
    apply(&statement);
    check_hash();
    reload();
}
END_TEST

START_TEST(a_referee_that_comes_back_goes_on)
{
    struct held_case held = hold_one();
    presence(EXCHANGE_SUSPECT, REFEREE);
    ck_assert_uint_eq(job_row(held.job).running, 0);
    reload();
    presence(EXCHANGE_RETURNED, REFEREE);
    ck_assert_uint_eq(job_row(held.job).running, 1);
    check_hash();
    reload();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
}
END_TEST

SUITE("checks_referees", set_up_referees, tear_down, TEST(nobody_judges_results_of_its_own),
      TEST(only_the_role_makes_a_referee), TEST(a_referee_is_required_once),
      TEST(two_agents_of_one_slot_judge_each_other_at_once),
      TEST(a_maker_that_comes_back_judges_at_once),
      TEST(an_idle_referee_that_comes_back_takes_what_waits_in_another_part),
      TEST(a_lease_without_work_to_come_makes_room_for_other_jobs_at_once),
      TEST(without_a_budget_checks_wait_for_a_referee_who_gives_away),
      TEST(a_lost_referee_is_replaced_and_its_late_verdict_does_not_count_twice),
      TEST(a_check_that_nobody_wants_any_more_may_be_lost), TEST(a_referee_that_comes_back_goes_on))
