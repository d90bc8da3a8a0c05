/* Nothing is started that cannot end before its job's deadline, where its time is known. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static struct exchange_command submit_by(uint32_t subtasks, int64_t for_ns, int64_t stated_ns)
{
    struct exchange_command made = submit_of(subtasks, 100);
    made.submit.deadline_ns = market.now_ns + for_ns;
    made.submit.is_expectation_stated = stated_ns > 0;
    made.submit.expect_ns = stated_ns;
    return made;
}

static void pass(int64_t for_ns)
{
    market.now_ns += for_ns;
    tick();
}

static struct exchange_explanation explain(struct id128 job)
{
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    return why;
}

static const struct id128 gpu = {{99}};

/* Offers a device with other attributes than those of `offer`. */
static void offer_another(uint32_t provider, uint32_t slots, int64_t at_price)
{
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "gpu"};
    struct exchange_device device = {
        .device = gpu, .slots = slots, .attributes = &kind, .attribute_count = 1, .label = "a gpu"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask =
        (struct exchange_ask){.device = device.device, .slots = slots, .price_micro = at_price};
    apply(&ask);
}

static void check_late(struct id128 job, int64_t takes_ns, int64_t left_ns)
{
    const struct exchange_explanation why = explain(job);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_LATE);
    ck_assert_uint_eq(why.affordable, 1);
    ck_assert_uint_eq(why.late, 1);
    ck_assert_uint_eq(why.free, 0);
    ck_assert_int_eq(why.late_takes_ns, takes_ns);
    ck_assert_int_eq(why.late_left_ns, left_ns);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.smallest_change.count, 0);
}

START_TEST(what_is_stated_to_take_too_long_is_not_started)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 10 * NS_PER_S, 4 * NS_PER_S);
    apply(&made);
    for (int i = 0; i < 2; i++) { /* none is queued, because the time for two is short */
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
        const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
        market.now_ns += 4 * NS_PER_S;
        result(PROVIDER, made.id, work, OUTCOME_OK, 4 * NS_PER_S);
        ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    }
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0); /* 2 seconds are left */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    check_late(made.id, 4 * NS_PER_S, 2 * NS_PER_S);
    reload();
    check_late(made.id, 4 * NS_PER_S, 2 * NS_PER_S);
    pass(2 * NS_PER_S);
    const struct exchange_job_row row = job_row(made.id);
    ck_assert_uint_eq(row.state, JOB_CANCELLED);
    ck_assert_uint_eq(row.reason, JOB_REASON_DEADLINE);
    ck_assert_uint_eq(row.accepted, 2);
    ck_assert_uint_eq(row.cancelled, 3);
    ck_assert_int_eq(row.charged_micro, 8 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(what_was_measured_to_take_too_long_is_not_started)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(9, 10 * NS_PER_S, 0);
    apply(&made);
    const struct exchange_work works[2] = {nth(EFFECT_DISPATCH, 0)->work,
                                           nth(EFFECT_DISPATCH, 1)->work};
    market.now_ns += 4 * NS_PER_S;
    result(PROVIDER, made.id, works[0], OUTCOME_OK, 4 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0); /* of 6 s, works[1] takes 4 */
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    reload();
    check_hash();
    market.now_ns += 3 * NS_PER_S;
    result(PROVIDER, made.id, works[1], OUTCOME_OK, 3 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* one took 3 s, as much as is left */
    ck_assert_uint_eq(job_row(made.id).running, 1);
}
END_TEST

START_TEST(a_claim_counts_up_to_the_time_in_its_lane)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(9, 10 * NS_PER_S, 0);
    apply(&made);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 2 * NS_PER_S;
    result(PROVIDER, made.id, work, OUTCOME_OK, NS_PER_HOUR);
    ck_assert_uint_eq(job_row(made.id).running, 2); /* two seconds, not an hour, are what counts */
}
END_TEST

START_TEST(work_of_unknown_time_is_started_to_the_last)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(9, 10 * NS_PER_S, 0);
    made.submit.expect_ns = 8 * NS_PER_S; /* a guess */
    apply(&made);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 9 * NS_PER_S;
    result(PROVIDER, made.id, work, OUTCOME_PROGRAM_FAILED, 9 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).running, 2);
}
END_TEST

START_TEST(a_job_whose_devices_are_too_slow_waits_for_another_device)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(9, 10 * NS_PER_S, 0);
    apply(&made);
    const struct exchange_work works[2] = {nth(EFFECT_DISPATCH, 0)->work,
                                           nth(EFFECT_DISPATCH, 1)->work};
    market.now_ns += 6 * NS_PER_S;
    result(PROVIDER, made.id, works[0], OUTCOME_OK, 6 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 1); /* works[1] would begin now */
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->work.index, works[1].index);
    result(PROVIDER, made.id, works[1], OUTCOME_CANCELLED, 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    check_late(made.id, 6 * NS_PER_S, 4 * NS_PER_S);

    offer(OTHER_PROVIDER, 1, price); /* a device like the first */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(explain(made.id).late, 2);
    offer_another(OTHER_PROVIDER, 1, price); /* nobody knows how fast this one is */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert_uint_ge(count_of(EFFECT_DISPATCH), 1);
    const struct exchange_work fast = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result_on(OTHER_PROVIDER, gpu, made.id, fast, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).running, 1); /* it was queued, and has a second more */
    ck_assert_uint_eq(job_row(made.id).accepted, 2);
    reload();
    check_hash();
}
END_TEST

START_TEST(a_stated_time_that_results_elsewhere_disprove_counts_no_more)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(9, 10 * NS_PER_S, 4 * NS_PER_S);
    apply(&made);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, work, OUTCOME_OK, NS_PER_S);
    pass(6 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).accepted, 1);
    offer_another(OTHER_PROVIDER, 1, price); /* 3 s are left */
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
}
END_TEST

START_TEST(of_unlike_subtasks_those_are_started_that_can_end_in_time)
{
    static const uint32_t expect_ms[4] = {9000, 2000, 0, 3000};
    static const uint32_t after_count[4] = {0};
    const struct exchange_graph graph = {.expect_ms = expect_ms,
                                         .expect_count = 4,
                                         .after_count = after_count,
                                         .after_count_count = 4};
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(4, 5 * NS_PER_S, NS_PER_S);
    made.submit.graph = &graph;
    apply(&made);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.index, 3);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 1)->work.index, 2); /* of unknown time */
    reload();
    market.now_ns += 3 * NS_PER_S;
    result(PROVIDER, made.id, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, 3 * NS_PER_S);
}
END_TEST

START_TEST(the_others_of_unlike_subtasks_wait_until_the_deadline)
{
    static const uint32_t expect_ms[3] = {9000, 2000, 3000};
    static const uint32_t after_count[3] = {0};
    const struct exchange_graph graph = {.expect_ms = expect_ms,
                                         .expect_count = 3,
                                         .after_count = after_count,
                                         .after_count_count = 3};
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(3, 5 * NS_PER_S, NS_PER_S);
    made.submit.graph = &graph;
    apply(&made);
    for (uint32_t index = 2; index > 0; index--) {
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
        const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
        ck_assert_uint_eq(work.index, index);
        market.now_ns += (int64_t)expect_ms[index] * NS_PER_MS - NS_PER_MS;
        result(PROVIDER, made.id, work, OUTCOME_OK,
               (int64_t)expect_ms[index] * NS_PER_MS - NS_PER_MS);
    }
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_LATE);
    ck_assert_int_eq(explain(made.id).late_left_ns, 2 * NS_PER_MS);
    ck_assert_int_gt(explain(made.id).late_takes_ns, 8 * NS_PER_S); /* 9 s at the pace of results */
    reload();
    pass(2 * NS_PER_MS);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).accepted, 2);
}
END_TEST

enum {
    MANY = 10000,     /* subtasks that are ready at once */
    LOOK_STEPS = 200, /* most steps of one look at them, with what else the exchange counts */
};

/* Submits MANY subtasks that take `long_ms`, but for the last `shorts`, which take a second. */
static struct id128 submit_many(uint32_t long_ms, uint32_t shorts)
{
    static uint32_t expect_ms[MANY], after_count[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        expect_ms[i] = i < MANY - shorts ? long_ms + i : 1000;
    }
    const struct exchange_graph graph = {.expect_ms = expect_ms,
                                         .expect_count = MANY,
                                         .after_count = after_count,
                                         .after_count_count = MANY};
    struct exchange_command made = submit_by(MANY, 60 * NS_PER_S, NS_PER_S);
    made.submit.graph = &graph;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

START_TEST(a_look_at_many_late_subtasks_takes_few_steps)
{
    const struct id128 job = submit_many(70000, 0);
    uint64_t before = exchange_steps(market.exchange);
    offer(PROVIDER, 1, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_gt(exchange_steps(market.exchange), before);
    ck_assert_uint_lt(exchange_steps(market.exchange) - before, LOOK_STEPS);
    check_late(job, 70 * NS_PER_S, 60 * NS_PER_S);
    reload();
    before = exchange_steps(market.exchange);
    check_late(job, 70 * NS_PER_S, 60 * NS_PER_S);
    ck_assert_uint_lt(exchange_steps(market.exchange) - before, 2 * LOOK_STEPS);
}
END_TEST

START_TEST(what_ends_in_time_is_found_among_many_late_subtasks_in_few_steps)
{
    const struct id128 job = submit_many(70000, 20);
    offer(PROVIDER, 1, price);
    for (uint32_t i = 0; i < 15; i++) {
        ck_assert_uint_ge(count_of(EFFECT_DISPATCH), 1);
        ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.index, MANY - 20 + i + (i > 0));
        const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
        const uint64_t before = exchange_steps(market.exchange);
        market.now_ns += NS_PER_S;
        result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
        ck_assert_uint_lt(exchange_steps(market.exchange) - before, 2 * LOOK_STEPS);
    }
    reload();
    check_hash();
}
END_TEST

/* A deadline that comes later finds the subtasks that are ready by then. */
START_TEST(a_deadline_that_is_set_later_bounds_the_looks_too)
{
    static uint32_t expect_ms[MANY], after_count[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        expect_ms[i] = 7000 + i / 10;
    }
    const struct exchange_graph graph = {.expect_ms = expect_ms,
                                         .expect_count = MANY,
                                         .after_count = after_count,
                                         .after_count_count = MANY};
    struct exchange_command made = submit_of(MANY, 100);
    made.submit.graph = &graph;
    apply(&made);
    offer(PROVIDER, 1, price);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 8 * NS_PER_S;
    result(PROVIDER, made.id, work, OUTCOME_OK, 8 * NS_PER_S);
    struct exchange_command replace = command(EXCHANGE_REPLACE, CONSUMER);
    replace.replace = (struct exchange_replace){
        .order = made.id, .has_deadline = true, .deadline_ns = market.now_ns + 6 * NS_PER_S};
    apply(&replace);
    ck_assert_int_eq(job_row(made.id).deadline_ns, replace.replace.deadline_ns);
    const uint64_t before = exchange_steps(market.exchange);
    offer(OTHER_PROVIDER, 1, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_gt(exchange_steps(market.exchange), before);
    ck_assert_uint_lt(exchange_steps(market.exchange) - before, LOOK_STEPS);
    reload();
    check_hash();
}
END_TEST

START_TEST(a_straggler_is_not_copied_when_the_copy_would_be_late)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_command made = submit_by(2, 6 * NS_PER_S, 2 * NS_PER_S);
    made.submit.limit_ns = 20 * NS_PER_S;
    made.submit.term_ns = 40 * NS_PER_S;
    apply(&made);
    const struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    const uint32_t maker = nth(EFFECT_DISPATCH, 0)->account;
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    market.now_ns += 2 * NS_PER_S;
    result(maker, made.id, first, OUTCOME_OK, 2 * NS_PER_S);
    const int64_t until_ns = market.now_ns + 3 * NS_PER_S;
    size_t copies = 0;
    while (exchange_next_deadline_ns(market.exchange) < until_ns) {
        market.now_ns = exchange_next_deadline_ns(market.exchange);
        tick();
        copies += count_of(EFFECT_DISPATCH);
    }
    ck_assert_uint_eq(copies, 1); /* at 2.4 s, in time for 4.4 s */
    tear_down();

    set_up_now();
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    made = submit_by(2, 4 * NS_PER_S + NS_PER_S / 10, 2 * NS_PER_S);
    made.submit.limit_ns = 20 * NS_PER_S;
    made.submit.term_ns = 40 * NS_PER_S;
    apply(&made);
    const struct exchange_work again = nth(EFFECT_DISPATCH, 0)->work;
    const uint32_t other = nth(EFFECT_DISPATCH, 0)->account;
    market.now_ns += 2 * NS_PER_S;
    result(other, made.id, again, OUTCOME_OK, 2 * NS_PER_S);
    copies = 0;
    while (exchange_next_deadline_ns(market.exchange) < made.submit.deadline_ns) {
        market.now_ns = exchange_next_deadline_ns(market.exchange);
        tick();
        copies += count_of(EFFECT_DISPATCH);
    }
    ck_assert_uint_eq(copies, 0);
}
END_TEST

START_TEST(a_job_without_a_deadline_or_statement_has_the_snapshot_of_before)
{
    size_t lengths[3];
    for (size_t i = 0; i < 3; i++) {
        struct exchange_command made = submit_by(1, 5 * NS_PER_S, NS_PER_S);
        made.submit.deadline_ns = i == 0 ? 0 : made.submit.deadline_ns;
        made.submit.is_expectation_stated = i != 1;
        apply(&made);
        free(exchange_save(market.exchange, &lengths[i]));
        tear_down();
        set_up_now();
    }
    ck_assert_uint_eq(lengths[1], lengths[0] + sizeof(int64_t));
    ck_assert_uint_eq(lengths[2], lengths[1] + 1);
}
END_TEST

SUITE("exchange: lateness", set_up_now, tear_down,
      TEST(what_is_stated_to_take_too_long_is_not_started),
      TEST(what_was_measured_to_take_too_long_is_not_started),
      TEST(a_claim_counts_up_to_the_time_in_its_lane),
      TEST(work_of_unknown_time_is_started_to_the_last),
      TEST(a_job_whose_devices_are_too_slow_waits_for_another_device),
      TEST(a_stated_time_that_results_elsewhere_disprove_counts_no_more),
      TEST(of_unlike_subtasks_those_are_started_that_can_end_in_time),
      TEST(the_others_of_unlike_subtasks_wait_until_the_deadline),
      TEST(a_look_at_many_late_subtasks_takes_few_steps),
      TEST(what_ends_in_time_is_found_among_many_late_subtasks_in_few_steps),
      TEST(a_deadline_that_is_set_later_bounds_the_looks_too),
      TEST(a_straggler_is_not_copied_when_the_copy_would_be_late),
      TEST(a_job_without_a_deadline_or_statement_has_the_snapshot_of_before))
